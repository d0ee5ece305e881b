/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasts as jobs. A broadcast job is ordered among the jobs using the handle, as a writing job.
 * memory/host/broadcast.c does the copies. */
#include "memory/host/broadcast.h"

#include <string.h>

#include "graph/job/job.h"

#define CALL "filch_data_broadcast"
#define LEAST_PIECE 4096u

/* --- Running --- */

static void fail(filch_job *job, const filch_error *error)
{
    fl_mutex_lock(&job->lock);
    if (fl_load_relaxed(&job->failed) == 0) {
        job->error = (filch_error)FILCH_ERROR_INIT;
        fl_error_fill(&job->error,
                      (fl_fault){.status = error->status,
                                 .native_code = error->native_code,
                                 .native_name = error->native_name,
                                 .call = error->call[0] != '\0' ? error->call : CALL,
                                 .device = error->device,
                                 .label = error->label},
                      "%s%s%s cannot broadcast %s%s%s: %s", FL_NAME("job ", job->label, "the job"),
                      FL_NAME("", error->label, "the handle"), error->text);
        fl_store_release(&job->failed, 1); /* release: error is written first */
    }
    fl_mutex_unlock(&job->lock);
}

bool fl_job_spread_on(filch_job *job, bool *moved)
{
    fl_scheduler *scheduler = job->object.core->scheduler;
    filch_error error = FILCH_ERROR_INIT;
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    if (is_cancelled) {
        fl_broadcast_stop(job->broadcast);
    }
    filch_status status =
        fl_broadcast_step(job->broadcast, scheduler->job_traffic(scheduler, job), moved, &error);
    if (status == FILCH_NOT_READY) {
        return false;
    }
    if (status != FILCH_OK) {
        fail(job, &error);
    } else if (!fl_broadcast_is_whole(job->broadcast)) {
        /* Store left_out before the count that completes the job. */
        fl_store_relaxed(&job->left_out, 1);
    }
    return true;
}

void fl_job_spread(filch_job *job)
{
    fl_core *core = job->object.core;
    if (core->places->count == 1) {
        fl_job_retired(job, 1); /* the host's memory is the only node, and has the contents */
        return;
    }
    bool moved;
    if (!fl_broadcast_use(job->broadcast)->queued) {
        /* The job was cancelled before its use was granted. */
        fl_store_relaxed(&job->left_out, 1);
        fl_job_retired(job, 1);
        return;
    }
    job->is_spreading = true;
    (void)fl_job_spread_on(job, &moved);
    /* Needed even if the broadcast is over by now: like every job, the job ends in a worker's
     * step. */
    core->scheduler->job_await(core->scheduler, job);
}

/* --- Submitting --- */

static filch_status refuse(const filch_data *data, filch_status status, const char *text)
{
    return fl_core_fail(data->object.core, status, CALL, data->label, "%s", text);
}

static filch_status check(const filch_data *data, const filch_broadcast_desc *how)
{
    filch_status status = fl_size_check(data->object.core, how, sizeof *how, sizeof *how,
                                        "the description", CALL, data->label);
    if (status != FILCH_OK) {
        return status;
    }
    const char *wrong =
        (unsigned)how->way > FILCH_BROADCAST_DIRECT    ? "unknown way"
        : how->reserved != 0                           ? "reserved is not 0"
        : !how->one_tile && (how->row | how->col) != 0 ? "a tile is named, but one_tile is false"
        : (how->devices == NULL) != (how->device_count == 0)
            ? "devices and device_count contradict each other"
        : how->piece != 0 && how->piece < LEAST_PIECE ? "a piece of less than 4096 bytes"
                                                      : NULL;
    if (wrong != NULL) {
        return refuse(data, FILCH_INVALID_ARGUMENT, wrong);
    }
    if (!data->is_managed) {
        return refuse(data, FILCH_UNSUPPORTED,
                      "the handle is not managed: what devices have of it ends with each job");
    }
    if (how->row >= data->tiles_down || how->col >= data->tiles_across) {
        return fl_core_fail(data->object.core, FILCH_BAD_INDEX, CALL, data->label,
                            "there is no tile (%u, %u) in %u x %u", how->row, how->col,
                            data->tiles_down, data->tiles_across);
    }
    return FILCH_OK;
}

/* Sets a flag for every memory node that receives the contents. */
static filch_status choose_places(const filch_data *data, const filch_broadcast_desc *how,
                                  bool *wants)
{
    const fl_core *core = data->object.core;
    const fl_places *places = core->places;
    for (uint32_t i = 0; i < how->device_count; ++i) {
        if (how->devices[i] >= core->scheduler->device_count) {
            return fl_core_fail(data->object.core, FILCH_BAD_INDEX, CALL, data->label,
                                "there is no device %u of %u", how->devices[i],
                                core->scheduler->device_count);
        }
        uint32_t place = places->devices[how->devices[i]].place;
        if (place < places->count) { /* otherwise the device only simulates */
            wants[place] = true;
        }
    }
    for (uint32_t place = 1; how->devices == NULL && place < places->count; ++place) {
        const fl_device *device = places->at[place].device;
        wants[place] = device != NULL && !fl_device_is_lost(device, NULL);
    }
    return FILCH_OK;
}

static filch_status make_broadcast(filch_data *data, const filch_broadcast_desc *how,
                                   fl_broadcast **made)
{
    fl_core *core = data->object.core;
    uint32_t count = core->places->count;
    bool *wants = fl_alloc_zeroed(&core->memory, count * sizeof *wants);
    if (wants == NULL) {
        return refuse(data, FILCH_OUT_OF_MEMORY, "no memory for a broadcast");
    }
    filch_status status = choose_places(data, how, wants);
    if (status == FILCH_OK) {
        uint32_t tile = how->col * data->tiles_down + how->row;
        *made = fl_broadcast_new(core->places, data, wants, tile,
                                 how->one_tile ? tile + 1 : fl_data_tile_count(data), how->way,
                                 how->piece);
        if (*made == NULL) {
            status = refuse(data, FILCH_OUT_OF_MEMORY, "no memory for a broadcast");
        }
    }
    fl_free(&core->memory, wants, count * sizeof *wants);
    return status;
}

static filch_status make_job(filch_data *data, const filch_broadcast_desc *how,
                             const filch_submit_desc *submit, filch_job **made)
{
    fl_core *core = data->object.core;
    filch_job *job = fl_job_new(core, submit, data->label);
    if (job == NULL) {
        return refuse(data, FILCH_OUT_OF_MEMORY, "no memory for a job");
    }
    filch_status status = make_broadcast(data, how, &job->broadcast);
    status = status == FILCH_OK ? fl_job_take_events(job, submit, CALL) : status;
    if (status != FILCH_OK) {
        fl_job_discard(job);
        return status;
    }
    fl_store_relaxed(&job->remaining, 1);
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_lock(&core->lock);
    status = fl_job_enqueue(job, &error);
    fl_mutex_unlock(&core->lock);
    if (status != FILCH_OK) {
        fl_job_discard(job);
        return refuse(data, status, error.text);
    }
    *made = job;
    return FILCH_OK;
}

filch_status filch_data_broadcast(filch_data *data, const filch_broadcast_desc *broadcast,
                                  const filch_submit_desc *submit, filch_job **job)
{
    static const filch_broadcast_desc everything = FILCH_BROADCAST_DESC_INIT;
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    const filch_broadcast_desc *how = broadcast != NULL ? broadcast : &everything;
    filch_submit_desc full;
    filch_job *made = NULL;
    status = fl_data_refuse_inner(data, CALL);
    status = status == FILCH_OK ? check(data, how) : status;
    if (status == FILCH_OK) {
        status = fl_submit_check(data->object.core, submit, CALL, data->label, &full);
    }
    if (status == FILCH_OK) {
        status = make_job(data, how, &full, &made);
    }
    if (status != FILCH_OK) {
        return status;
    }
    fl_job_lend(made, true, job);
    fl_job_submit(made);
    return FILCH_OK;
}
