/* SPDX-License-Identifier: Apache-2.0 */
/* Rest of a batch, as a separate batch: the items of the first batch, without the finished
 * items. */
#include <string.h>

#include "graph/job/batch.h"

#define RESUME "filch_job_resume"

static filch_status fail(const filch_job *job, filch_status status, const char *what)
{
    return fl_core_fail(job->object.core, status, RESUME, job->label, "%s", what);
}

/* --- Devices of the rest --- */

static const char *check_desc(const filch_resume_desc *desc)
{
    return desc->devices == NULL && desc->device_count != 0
               ? "device_count is not 0, but devices is null"
           : desc->reserved != 0 ? "reserved is not 0"
                                 : NULL;
}

/* Fills the set with the named devices. */
static filch_status name_devices(const filch_job *job, const filch_resume_desc *desc, uint64_t *set)
{
    filch_status status = fl_size_check(job->object.core, desc, sizeof *desc, sizeof *desc,
                                        "the descriptor", RESUME, job->label);
    if (status != FILCH_OK) {
        return status;
    }
    const char *wrong = desc != NULL ? check_desc(desc) : NULL;
    if (wrong != NULL) {
        return fail(job, FILCH_INVALID_ARGUMENT, wrong);
    }
    bool is_all = desc == NULL || desc->devices == NULL;
    memset(set, is_all ? 0xff : 0, FL_DEVICE_LIMIT / 8);
    for (uint32_t i = 0; !is_all && i < desc->device_count; ++i) {
        uint32_t device = desc->devices[i];
        if (device >= job->object.core->scheduler->device_count) {
            return fl_core_fail(job->object.core, FILCH_BAD_INDEX, RESUME, job->label,
                                "there is no device %u", device);
        }
        set[device / 64] |= (uint64_t)1 << device % 64;
    }
    return FILCH_OK;
}

/* Removes devices unable to run the codelet, and failed devices; false: the set is empty. */
static bool keep_able(fl_core *core, const filch_codelet *codelet, uint64_t *set)
{
    fl_scheduler *scheduler = core->scheduler;
    bool any = false;
    for (uint32_t device = 0; device < scheduler->device_count; ++device) {
        if (!fl_codelet_runs_on(codelet, device) || scheduler->device_is_lost(scheduler, device)) {
            set[device / 64] &= ~((uint64_t)1 << device % 64);
        }
        any = any || fl_devices_have(set, device);
    }
    return any;
}

/* --- Items of the rest --- */

/* Returns the grain beginning at an item. Cuts fell between grains: notes begin and end at grain
 * boundaries. */
static uint32_t grain_at(const fl_batch *whole, uint64_t item)
{
    if (item == whole->n) {
        return whole->cuts;
    }
    if (whole->bounds == NULL) {
        return (uint32_t)(item / whole->grain);
    }
    uint32_t low = 0, high = whole->cuts;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (whole->bounds[middle] < item) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Counts the stretches. Adjacent notes form a single stretch, whatever their status. */
static uint32_t count_stretches(const filch_item_range *notes, size_t count, uint64_t *items)
{
    uint32_t stretches = 0;
    *items = 0;
    for (size_t i = 0; i < count; ++i) {
        stretches += i == 0 || notes[i].lo != notes[i - 1].hi;
        *items += notes[i].hi - notes[i].lo;
    }
    return stretches;
}

static void fill_stretches(fl_batch *rest, const fl_batch *whole, const filch_item_range *notes,
                           size_t count)
{
    uint32_t grains = 0;
    size_t stretch = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t lo = grain_at(whole, notes[i].lo), hi = grain_at(whole, notes[i].hi);
        stretch += i != 0 && notes[i].lo != notes[i - 1].hi;
        rest->stretches[stretch].shift = lo - grains; /* constant within a stretch */
        grains += hi - lo;
        rest->stretches[stretch].end = grains;
    }
    rest->grains = grains;
}

/* Copies the grain boundaries of the whole. False: no memory. */
static bool copy_bounds(fl_core *core, const fl_batch *whole, fl_batch *rest)
{
    size_t bytes = ((size_t)whole->cuts + 1) * sizeof *whole->bounds;
    rest->cuts = whole->cuts;
    if (whole->bounds != NULL) {
        rest->bounds = fl_alloc(&core->memory, bytes);
        if (rest->bounds != NULL) {
            memcpy(rest->bounds, whole->bounds, bytes);
        }
    }
    return whole->bounds == NULL || rest->bounds != NULL;
}

/* Makes the rest of the job's batch. The caller holds job->lock; the lock keeps the notes
 * unchanged. */
static filch_status make_rest(filch_job *job, uint64_t *set, fl_batch **made, const char **wrong)
{
    fl_core *core = job->object.core;
    const fl_batch *whole = job->batch;
    size_t count;
    uint64_t items;
    if (job->is_resumed) {
        *wrong = "the job was resumed before";
        return FILCH_WRONG_STATE;
    }
    if (job->notes_lost) {
        *wrong = "there was no memory to note what is left";
        return FILCH_OUT_OF_MEMORY;
    }
    const filch_item_range *notes = fl_job_notes(job, &count);
    if (count != 0 && !keep_able(core, whole->codelet, set)) {
        *wrong = "none of the devices can run what is left";
        return FILCH_NO_DEVICE;
    }
    uint32_t stretches = count_stretches(notes, count, &items);
    const filch_batch_desc desc = {.codelet = whole->codelet,
                                   .args = whole->args,
                                   .n = whole->n,
                                   .accesses = whole->accesses,
                                   .access_count = whole->access_count};
    fl_batch *rest = fl_batch_make(core, &desc, items, stretches, set);
    if (rest == NULL || !copy_bounds(core, whole, rest)) {
        fl_batch_free(core, rest);
        *wrong = "no memory for a batch";
        return FILCH_OUT_OF_MEMORY;
    }
    rest->grain = whole->grain;
    fill_stretches(rest, whole, notes, count);
    job->is_resumed = true;
    *made = rest;
    return FILCH_OK;
}

/* --- Resuming --- */

static filch_status check_job(const filch_job *job)
{
    if (!fl_job_is_over(job)) {
        return fail(job, FILCH_WRONG_STATE, "the job is not complete");
    }
    if (job->batch == NULL) {
        return fail(job, FILCH_WRONG_STATE, "the job is not a batch");
    }
    for (uint32_t i = 0; i < job->batch->access_count; ++i) {
        if (!fl_object_lives(job->batch->accesses[i].data, FL_MAGIC_DATA)) {
            return fl_core_fail(job->object.core, FILCH_INVALID_HANDLE, RESUME, job->label,
                                "access %u: the data handle is destroyed", i);
        }
    }
    return FILCH_OK;
}

filch_status filch_job_resume(filch_job *job, const filch_resume_desc *desc,
                              const filch_submit_desc *submit, filch_job **rest)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = job->object.core;
    uint64_t set[FL_DEVICE_LIMIT / 64];
    filch_submit_desc full;
    status = fl_submit_check(core, submit, RESUME, NULL, &full);
    status = status == FILCH_OK ? check_job(job) : status;
    status = status == FILCH_OK ? name_devices(job, desc, set) : status;
    if (status != FILCH_OK) {
        return status;
    }
    fl_batch *batch = NULL;
    const char *wrong = NULL;
    fl_mutex_lock(&job->lock);
    status = make_rest(job, set, &batch, &wrong);
    fl_mutex_unlock(&job->lock);
    if (status != FILCH_OK) {
        return fail(job, status, wrong);
    }
    status = fl_batch_start(core, batch, &full, RESUME, true, rest);
    if (status != FILCH_OK) {
        fl_mutex_lock(&job->lock);
        job->is_resumed = false;
        fl_mutex_unlock(&job->lock);
    }
    return status;
}
