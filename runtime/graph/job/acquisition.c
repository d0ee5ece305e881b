/* SPDX-License-Identifier: Apache-2.0 */
/* Holds: the host's place in the order of the jobs that use a handle. The host acquires tiles when
 * earlier jobs are done with the tiles. Later jobs wait for the host. */
#include <math.h>

#include "graph/job/job.h"

#define ACQUIRE "filch_data_acquire_tiles"

struct filch_hold {
    fl_object object;
    fl_queued_access use;
    filch_access_mode mode;
    /* 1 until the hold is granted. Release: the effects of earlier jobs are visible. */
    _Atomic uint64_t waits;
};

static filch_hold *hold_of(fl_queued_access *use)
{
    return use->job;
}

void fl_hold_granted(fl_queued_access *use)
{
    /* Release: the effects of the earlier jobs, for the thread that finds the wait over. */
    fl_store_release(&hold_of(use)->waits, 0);
}

/* --- Acquiring --- */

static filch_status check(const filch_data *data, const filch_tiles *tiles, filch_access_mode mode,
                          double seconds, filch_hold *const *hold, fl_tiles *which)
{
    fl_core *core = data->object.core;
    *which = fl_data_all_tiles(data);
    const char *wrong = hold == NULL ? "there is nowhere to put the hold"
                        : mode < FILCH_READ || mode > FILCH_READWRITE
                            ? "tiles cannot be acquired with this mode"
                        : isnan(seconds) ? "seconds is not a number"
                                         : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, ACQUIRE, data->label, "%s", wrong);
    }
    filch_status status =
        fl_size_check(core, tiles, sizeof *tiles, sizeof *tiles, "the tiles", ACQUIRE, data->label);
    status = status == FILCH_OK ? fl_data_refuse_inner(data, ACQUIRE) : status;
    if (status != FILCH_OK || tiles == NULL) {
        return status;
    }
    which->row0 = tiles->row0;
    which->col0 = tiles->col0;
    which->row1 = tiles->row1 != 0 ? tiles->row1 : which->row1;
    which->col1 = tiles->col1 != 0 ? tiles->col1 : which->col1;
    bool is_inside = which->row0 < which->row1 && which->row1 <= data->tiles_down &&
                     which->col0 < which->col1 && which->col1 <= data->tiles_across;
    return is_inside
               ? FILCH_OK
               : fl_core_fail(core, FILCH_INVALID_ARGUMENT, ACQUIRE, data->label,
                              "tiles [%u, %u) x [%u, %u) are none of the %u x %u of %s%s%s",
                              which->row0, which->row1, which->col0, which->col1, data->tiles_down,
                              data->tiles_across, FL_NAME("", data->label, "the handle"));
}

/* Queues the hold's use. The caller holds core->lock. */
static filch_status enter(filch_hold *hold, filch_error *error)
{
    filch_data *data = hold->use.data;
    uint32_t tile;
    if (data->is_acquired) {
        return fl_error_fill(
            error, (fl_fault){.status = FILCH_BUSY, .call = ACQUIRE, .label = data->label},
            "the host has acquired %s%s%s and not released it",
            FL_NAME("the handle ", data->label, "the handle"));
    }
    if ((hold->mode & FILCH_READ) != 0 && fl_data_find_unwritten(data, hold->use.used, &tile)) {
        return fl_data_fail_unwritten(data, tile, ACQUIRE, error);
    }
    fl_data_note_host(data);
    /* Relaxed: core->lock orders the store. */
    fl_store_relaxed(&hold->waits, !fl_access_queue_enqueue(&hold->use));
    return FILCH_OK;
}

/* Waits for the earlier jobs; fetches the tiles to the host's memory. */
static filch_status await(filch_hold *hold, double seconds, filch_error *error)
{
    filch_data *data = hold->use.data;
    fl_core *core = data->object.core;
    filch_status status = core->scheduler->count_wait(core->scheduler, &hold->waits, seconds);
    if (status == FILCH_OK) {
        status = fl_data_fetch_host(core->places, data, hold->use.used, hold->mode, error);
    }
    return status;
}

static void note_written(const filch_hold *hold)
{
    fl_tiles tiles = hold->use.wrote;
    for (uint32_t col = tiles.col0; hold->use.writes && col < tiles.col1; ++col) {
        for (uint32_t row = tiles.row0; row < tiles.row1; ++row) {
            fl_data_note_written(hold->use.data, fl_data_tile(hold->use.data, row, col));
        }
    }
}

filch_status filch_data_acquire_tiles(filch_data *data, const filch_tiles *tiles,
                                      filch_access_mode mode, double seconds, filch_hold **hold)
{
    fl_tiles which;
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = data->object.core;
    status = check(data, tiles, mode, seconds, hold, &which);
    if (status != FILCH_OK) {
        return status;
    }
    filch_hold *made = fl_object_new(core, FL_MAGIC_HOLD, sizeof *made, _Alignof(filch_hold));
    if (made == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, ACQUIRE, data->label,
                            "no memory for a hold");
    }
    made->mode = mode;
    made->use =
        (fl_queued_access){.data = data,
                           .job = made,
                           .used = which,
                           .wrote = which,
                           .writes = (mode & FILCH_WRITE) != 0,
                           .is_hold = true,
                           .is_trial = seconds == 0 || core->scheduler->is_inside(core->scheduler)};
    fl_mutex_lock(&core->lock);
    status = enter(made, &error);
    bool is_queued = status == FILCH_OK;
    fl_mutex_unlock(&core->lock);
    if (is_queued) {
        status = await(made, seconds, &error);
    }
    if (status == FILCH_OK) {
        fl_mutex_lock(&core->lock);
        note_written(made); /* later jobs may rely on the contents */
        fl_mutex_unlock(&core->lock);
        *hold = made;
        return FILCH_OK;
    }
    if (is_queued) {
        fl_job_let_go(&made->use);
    }
    fl_object_delete(made);
    if (error.status != FILCH_OK) {
        fl_error_store(&core->errors, &error);
    }
    return status;
}

/* --- Releasing --- */

filch_status filch_hold_release(filch_hold *hold)
{
    filch_status status = fl_object_check(hold, FL_MAGIC_HOLD);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = hold->object.core;
    filch_error error = FILCH_ERROR_INIT;
    if (hold->use.writes) {
        status = fl_data_host_wrote(core->places, hold->use.data, hold->use.wrote, &error);
    }
    fl_job_let_go(&hold->use);
    fl_object_delete(hold);
    if (status != FILCH_OK) {
        fl_error_store(&core->errors, &error);
    }
    return status;
}

void fl_holds_end(fl_core *core)
{
    for (;;) { /* releasing a hold takes core->lock */
        filch_hold *found = NULL;
        fl_mutex_lock(&core->lock);
        for (fl_object *object = core->objects; object != NULL && found == NULL;
             object = object->next) {
            filch_hold *hold = (filch_hold *)(void *)object;
            if (fl_load_relaxed(&object->magic) == (uint32_t)FL_MAGIC_HOLD && hold->use.granted) {
                found = hold;
            }
        }
        fl_mutex_unlock(&core->lock);
        if (found == NULL) {
            return;
        }
        fl_job_let_go(&found->use);
        fl_object_delete(found);
    }
}
