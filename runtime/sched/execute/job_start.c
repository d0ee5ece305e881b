/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of a job on the devices: hands roots or ranges out, and takes the job out of every
 * list at the end. */
#include "sched/execute/job_start.h"
#include "sched/decide/policy.h"
#include "sched/execute/ahead.h"

#include <string.h>

#include "sched/account/account.h"
#include "sched/decide/place.h"
#include "sched/execute/backup.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/placed.h"
#include "sched/execute/shared_queue.h"
#include "sched/model/next_use.h"
#include "sched/model/partition.h"
#include "sched/model/proven.h"
#include "sched/worker/device.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/jobs.h"
#include "sched/worker/presence.h"
#include "sched/worker/wake.h"

/* Lists the devices of the set, or every device for a null set, with scores. Zero scores become
 * equal scores. The arrays have room for sched->count entries each. */
static uint32_t choose_devices(const fl_sched *sched, const uint64_t *set, uint32_t *devices,
                               double *scores)
{
    uint32_t count = 0;
    double total = 0;
    for (uint32_t device = 0; device < sched->count; ++device) {
        if (set == NULL || fl_devices_have(set, device)) {
            devices[count] = device;
            scores[count] = sched->scores[device];
            total += scores[count++];
        }
    }
    for (uint32_t i = 0; total == 0 && i < count; ++i) {
        scores[i] = 1;
    }
    return count;
}

/* Maps the index to a position on the line of scores. Pieces are contiguous, as fl_partition's, but
 * not exact. */
uint32_t fl_job_owner(fl_scheduler *self, const uint64_t *set, uint64_t index, uint64_t count)
{
    uint32_t devices[FL_DEVICE_LIMIT];
    double scores[FL_DEVICE_LIMIT];
    uint32_t able = choose_devices((fl_sched *)(void *)self, set, devices, scores);
    double total = 0, sum = 0;
    for (uint32_t i = 0; i < able; ++i) {
        total += scores[i];
    }
    double at = ((double)index + 0.5) / (double)count * total;
    for (uint32_t i = 0; i + 1 < able; ++i) {
        sum += scores[i];
        if (at < sum) {
            return devices[i];
        }
    }
    return devices[able - 1];
}

void fl_job_drop_part(fl_scheduler *self, filch_job *job)
{
    fl_pieces *pieces = fl_part_of_job(job)->pieces;
    if (pieces != NULL) {
        fl_free(&((fl_sched *)(void *)self)->core->memory, pieces, pieces->bytes);
    }
}

void fl_job_reset_part(fl_scheduler *self, filch_job *job)
{
    fl_job_drop_part(self, job);
    memset(job->part, 0, self->job_bytes);
    fl_part_of_job(job)->job = job;
    fl_part_of_job(job)->cut = FL_CUT_SHARES;
}

/* Tells whether the device is offline, or absent at time t by the device's description. */
static bool is_absent(const fl_sched *sched, uint32_t index, uint64_t t)
{
    const fl_device *device = &sched->pool->devices[index];
    return fl_worker_is_offline(&sched->workers[index]) || device->joins_at > t ||
           (t >= device->leaves_at && t < device->returns_at);
}

/* Leaves out absent devices, unless every device is absent; returns the number of devices left. */
static uint32_t drop_absent(const fl_sched *sched, uint32_t *devices, double *scores,
                            uint32_t count)
{
    uint64_t t = fl_clock_now(&sched->core->clock);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (!is_absent(sched, devices[i], t)) {
            devices[kept] = devices[i];
            scores[kept++] = scores[i];
        }
    }
    return kept != 0 ? kept : count;
}

/* Fills the ranges of a batch that the policy cuts, or that every device takes from one range.
 * False: the static partition applies, also where a list of pieces has no memory. */
static bool fill_by_policy(fl_sched *sched, filch_job *job)
{
    const filch_policy_desc *with = &sched->rules.with;
    fl_job_part *part = fl_part_of_job(job);
    if (with->batches == FILCH_POLICY_BATCHES_COMMON) {
        part->cut = FL_CUT_COMMON;
        fl_range_set(&fl_job_share(job, 0)->range, 0, fl_batch_grains(job->batch));
        return true;
    }
    if (with->batches != FILCH_POLICY_BATCHES_PLACED || with->place == NULL) {
        return false;
    }
    uint32_t ends[FL_DEVICE_LIMIT + 1] = {0};
    fl_pieces *pieces = fl_pieces_cut(sched, job, ends);
    if (pieces == NULL) {
        return false;
    }
    part->pieces = pieces;
    part->cut = FL_CUT_PIECES;
    for (uint32_t d = 0, begin = 0; d < sched->count; begin = ends[d++]) {
        fl_range_set(&fl_job_share(job, d)->range, begin, ends[d]);
    }
    return true;
}

/* Fills the ranges, then the slot: a worker seeing the slot sees the ranges. */
static void fill_ranges(fl_sched *sched, filch_job *job)
{
    if (job->batch == NULL) {
        const uint32_t *begin =
            sched->keeps_holders ? fl_place_roots(sched, job->graph) : job->graph->root_begin;
        for (uint32_t d = 0; d < sched->count; ++d) {
            fl_share *share = fl_job_share(job, d);
            share->root_begin = begin[d];
            share->root_kind = job->graph->root_kind[d];
            share->root_free = job->graph->root_free[d];
            share->root_ns = sched->keeps_holders && begin[d] < begin[d + 1]
                                 ? (float)fl_place_root_ns(sched, job->graph->roots[begin[d]], d)
                                 : 0;
            fl_range_set(&share->range, share->root_begin, begin[d + 1]);
        }
        return;
    }
    if (FL_UNLIKELY(sched->rules.with.batches != FILCH_POLICY_BATCHES_SHARED_OUT) &&
        fill_by_policy(sched, job)) {
        return;
    }
    uint32_t grains = fl_batch_grains(job->batch);
    uint32_t devices[FL_DEVICE_LIMIT];
    double scores[FL_DEVICE_LIMIT];
    fl_device_part parts[FL_DEVICE_LIMIT];
    uint32_t able = choose_devices(sched, fl_batch_devices(job->batch), devices, scores);
    uint32_t count = 0;
    if (sched->pool->is_virtual || fl_load_relaxed(&sched->offline_count) != 0) {
        able = drop_absent(sched, devices, scores, able);
    }
    if (fl_partition(&sched->core->memory, FL_PARTITION_MAKESPAN, grains, scores, able, parts,
                     &count) != FILCH_OK) {
        /* Exact partition has no memory: the first device takes the whole, and theft spreads the
         * grains. */
        parts[0] = (fl_device_part){0, grains, 0};
        count = 1;
    }
    for (uint32_t p = 0; p < count; ++p) {
        fl_range_set(&fl_job_share(job, devices[parts[p].device])->range, (uint32_t)parts[p].lo,
                     (uint32_t)parts[p].hi);
    }
}

static bool has_roots(const filch_job *job)
{
    return !job->is_open && job->graph->root_count != 0;
}

/* Tells whether the job needs a slot. Placed roots are in no range. */
static bool needs_slot(const fl_sched *sched, const filch_job *job)
{
    if (job->batch != NULL) {
        return fl_batch_grains(job->batch) != 0;
    }
    return has_roots(job) && !fl_rules_place(&sched->rules) &&
           !fl_part_of_graph(job->graph)->has_shared_roots;
}

void fl_job_start(fl_scheduler *self, filch_job *job)
{
    fl_sched *sched = (fl_sched *)(void *)self;
    fl_account_begin(sched, job);
    if (job->batch == NULL && has_roots(job) && fl_shared_queue_begin(sched, job)) {
        return;
    }
    if (!needs_slot(sched, job)) {
        if (job->batch == NULL && has_roots(job)) {
            fl_placed_give_roots(sched, job);
        } else if (job->is_open) {
            /* No worker may be needed yet. But a worker asleep since before any job ran does not
             * look for work unasked; see begin_idle. */
            fl_sched_wake(sched, sched->count);
        }
        return;
    }
    fill_ranges(sched, job);
    bool is_cancelled = fl_jobs_add(sched, job);
    fl_sched_wake(sched, sched->count);
    if (FL_UNLIKELY(is_cancelled)) {
        fl_presence_cancelled(self);
    }
}

void fl_job_retire(fl_scheduler *self, filch_job *job)
{
    fl_sched *sched = (fl_sched *)(void *)self;
    fl_proven_end(sched, job);
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_backup_end(fl_job_share(job, d), job->finished);
    }
    fl_account_end(sched, job);
    fl_shared_queue_end(sched, job);
    if (FL_UNLIKELY(sched->looks_ahead) && job->graph != NULL && !job->is_open) {
        fl_graph_launch_note(job);
    }
    if (sched->keeps_holders && job->graph != NULL) {
        fl_place_restore(job->graph);
    }
    if (!needs_slot(sched, job)) {
        return;
    }
    bool is_cancelled;
    const filch_job *next = fl_jobs_remove(sched, job, &is_cancelled);
    if (next != NULL) {
        fl_sched_wake(sched, sched->count);
    }
    if (FL_UNLIKELY(is_cancelled)) {
        fl_presence_cancelled(self);
    }
}

bool fl_graph_seal_part(fl_scheduler *self, filch_graph *graph)
{
    (void)self;
    return fl_ahead_prepare(graph);
}

void fl_graph_drop_part(fl_scheduler *self, filch_graph *graph)
{
    (void)self;
    fl_graph_launch_drop(graph);
    fl_place_drop(graph);
    fl_next_use_drop(graph);
    fl_ahead_drop(graph);
}
