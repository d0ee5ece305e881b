/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the graph layer's scheduler interface (graph/scheduler.h), and init and fini of the
 * scheduler. */
#include "sched/worker/sched.h"

#include <stdio.h>
#include <string.h>

#include "sched/account/account.h"
#include "sched/decide/pick.h"
#include "sched/decide/place.h"
#include "sched/decide/slow.h"
#include "sched/drive/driver.h"
#include "sched/drive/host_events.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/offline.h"
#include "sched/execute/step.h"
#include "sched/model/partition.h"
#include "sched/model/prior.h"
#include "sched/model/speed.h"
#include "sched/ready/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/wake.h"
#include "sched/worker/worker.h"

static fl_sched *sched_of(fl_scheduler *self)
{
    return (fl_sched *)(void *)self;
}

static void codelet_init(fl_scheduler *self, filch_codelet *codelet)
{
    fl_sched *sched = sched_of(self);
    codelet->device_count = 0;
    memset(codelet->runs_on, 0, sizeof codelet->runs_on);
    for (uint32_t device = 0; device < sched->count; ++device) {
        fl_speed_init(fl_codelet_speed(codelet, device));
        if ((codelet->implementations & sched->pool->devices[device].implementations) != 0) {
            codelet->runs_on[device / 64] |= (uint64_t)1 << device % 64;
            ++codelet->device_count;
        }
    }
    codelet->kind_count = codelet->device_count;
    fl_prior_set(sched, codelet);
}

static uint8_t able(fl_scheduler *self, const uint64_t *set)
{
    fl_sched *sched = sched_of(self);
    uint32_t devices = 0;
    for (uint32_t word = 0; word < FL_IDLE_WORDS; ++word) {
        devices += (uint32_t)__builtin_popcountll(set[word]);
    }
    if (devices == sched->count) {
        return FL_ABLE_ALL;
    }
    uint32_t number = FL_ABLE_ALL + 1;
    fl_mutex_lock(&sched->slots_lock);
    while (number < sched->able_count &&
           memcmp(sched->able[number], set, sizeof sched->able[number]) != 0) {
        ++number;
    }
    if (number == sched->able_count && number < FL_ABLE_UNKNOWN) {
        memcpy(sched->able[number], set, sizeof sched->able[number]);
        ++sched->able_count;
    }
    fl_mutex_unlock(&sched->slots_lock);
    return (uint8_t)number;
}

static bool device_is_lost(fl_scheduler *self, uint32_t device)
{
    const fl_worker *w = &sched_of(self)->workers[device];
    /* The backend may have found a failure not yet noticed by the worker. */
    return fl_worker_has_failed(w) || fl_device_is_lost(w->device, NULL);
}

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
static uint32_t owner(fl_scheduler *self, const uint64_t *set, uint64_t index, uint64_t count)
{
    uint32_t devices[FL_DEVICE_LIMIT];
    double scores[FL_DEVICE_LIMIT];
    uint32_t able = choose_devices(sched_of(self), set, devices, scores);
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

static double estimate(fl_scheduler *self, const filch_codelet *codelet, double work)
{
    double least = 0;
    for (uint32_t device = 0; device < self->device_count; ++device) {
        double ns = fl_speed_time(fl_codelet_speed(codelet, device), work);
        least = ns > 0 && (least == 0 || ns < least) ? ns : least;
    }
    return least > 0 ? least : work;
}

static double least_ns(fl_scheduler *self, const filch_codelet *codelet)
{
    double least = 0;
    for (uint32_t device = 0; device < self->device_count; ++device) {
        double ns = fl_speed_get(fl_codelet_speed(codelet, device));
        fl_proven proven = fl_speed_proven(fl_codelet_speed(codelet, device));
        /* The best possible speed is unknown for tasks without declared work. */
        ns = codelet->work != NULL && proven.rate > 0 && proven.rate < ns ? proven.rate : ns;
        least = ns > 0 && (least == 0 || ns < least) ? ns : least;
    }
    return least;
}

/* --- Active jobs --- */

static void job_reset(fl_scheduler *self, filch_job *job)
{
    const fl_memory *memory = &sched_of(self)->core->memory;
    fl_free(memory, job->pieces, job->pieces != NULL ? job->pieces->bytes : 0);
    job->pieces = NULL;
    job->cut = FL_CUT_SHARES;
    memset(job->shares, 0, self->share_bytes);
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
    if (FL_UNLIKELY(sched->rules.with.batches != FILCH_BATCHES_SHARED_OUT) &&
        fl_pieces_fill(sched, job)) {
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

/* Gives the job a free slot. Under slots_lock. */
static bool enter_slot(fl_sched *sched, filch_job *job)
{
    for (uint32_t word = 0; word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Relaxed: the mask changes under our lock only. */
        uint64_t bits = fl_load_relaxed(&sched->active[word]);
        if (bits != UINT64_MAX) {
            uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(~bits);
            /* Release: orders the job's fields and ranges before the slot leading to the job. */
            fl_store_release(&sched->slots[slot], job);
            /* Release: orders the slot before the bit. */
            fl_or_release(&sched->active[word], (uint64_t)1 << (slot % 64));
            return true;
        }
    }
    return false;
}

/* Appends the job to the queue. Under slots_lock. */
static void enqueue(fl_sched *sched, filch_job *job)
{
    job->queued_next = NULL;
    if (sched->queue == NULL) {
        sched->queue = job;
    } else {
        sched->queue_last->queued_next = job;
    }
    sched->queue_last = job;
}

/* Removes the job from the queue, most often the head. Under slots_lock. */
static void dequeue(fl_sched *sched, const filch_job *job)
{
    filch_job **at = &sched->queue, *before = NULL;
    while (*at != job) {
        before = *at;
        at = &before->queued_next;
    }
    *at = job->queued_next;
    if (sched->queue_last == job) {
        sched->queue_last = before;
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
    return has_roots(job) && !fl_rules_place(&sched->rules) && !job->graph->has_roots_on_board;
}

/* Tells whether the job was cancelled before getting a slot. Under slots_lock, without which the
 * job cannot end. Fence: orders the slot before the load of `cancelled`, against job_cancelled,
 * after which workers of offline devices look at the slots. Either our load sees the cancellation,
 * or the workers see the slot. */
static bool was_cancelled(const filch_job *job)
{
    fl_fence_seq_cst();
    return fl_load_relaxed(&job->cancelled) != 0;
}

static void job_start(fl_scheduler *self, filch_job *job)
{
    fl_sched *sched = sched_of(self);
    fl_account_begin(sched, job);
    if (job->batch == NULL && has_roots(job) && fl_shared_queue_begin(sched, job)) {
        return;
    }
    if (!needs_slot(sched, job)) {
        if (job->batch == NULL && has_roots(job)) {
            fl_policy_place_roots(sched, job);
        } else if (job->is_open) {
            /* No worker may be needed yet. But a worker asleep since before any job ran does not
             * look for work unasked; see begin_idle. */
            fl_sched_wake(sched, sched->count);
        }
        return;
    }
    fill_ranges(sched, job);
    fl_mutex_lock(&sched->slots_lock);
    if (!enter_slot(sched, job)) {
        enqueue(sched, job);
    }
    /* Release, and last: a waiting thread may run the job from here on, with or without a slot.
     * Completing the job needs our lock. */
    fl_store_release(&job->is_offered, 1);
    bool is_cancelled = was_cancelled(job);
    fl_mutex_unlock(&sched->slots_lock);
    fl_sched_wake(sched, sched->count);
    if (FL_UNLIKELY(is_cancelled)) {
        fl_offline_cancelled(sched);
    }
}

/* Empties the job's slot; false for a job without a slot. Under slots_lock. */
static bool leave_slot(fl_sched *sched, const filch_job *job)
{
    for (uint32_t slot = 0; slot < FL_ACTIVE_SLOTS; ++slot) {
        if (fl_load_relaxed(&sched->slots[slot]) == job) {
            fl_and_release(&sched->active[slot / 64], ~((uint64_t)1 << (slot % 64)));
            /* Seq_cst: precedes the loads of the hazards in job_is_quiet. */
            fl_store_seq_cst(&sched->slots[slot], NULL);
            return true;
        }
    }
    return false;
}

static void job_retire(fl_scheduler *self, filch_job *job)
{
    fl_sched *sched = sched_of(self);
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
    filch_job *next = NULL;
    bool is_cancelled = false;
    fl_mutex_lock(&sched->slots_lock);
    if (leave_slot(sched, job)) {
        next = sched->queue;
        if (next != NULL) {
            dequeue(sched, next);
            enter_slot(sched, next);
            is_cancelled = was_cancelled(next);
        }
    } else {
        /* Waiting threads ran the whole job. */
        dequeue(sched, job);
    }
    fl_mutex_unlock(&sched->slots_lock);
    if (next != NULL) {
        fl_sched_wake(sched, sched->count);
    }
    if (FL_UNLIKELY(is_cancelled)) {
        fl_offline_cancelled(sched);
    }
}

static void job_cancelled(fl_scheduler *self)
{
    fl_offline_cancelled(sched_of(self));
}

static fl_traffic *job_traffic(fl_scheduler *self, const filch_job *job)
{
    return fl_job_traffic(job, sched_of(self)->count);
}

static void job_await(fl_scheduler *self, filch_job *job)
{
    fl_host_events_add(sched_of(self), job);
}

static bool job_is_quiet(fl_scheduler *self, const filch_job *job)
{
    const fl_sched *sched = sched_of(self);
    for (uint32_t i = 0; i < sched->count; ++i) {
        /* Seq_cst: follows the emptying of the slot; pairs with fl_worker_visit. Acquire: the
         * worker's reads are over. */
        if (fl_load_seq_cst(&sched->workers[i].signals.hazard) == job) {
            return false;
        }
    }
    return true;
}

/* --- Ready tasks --- */

fl_worker *fl_sched_self(const fl_sched *sched)
{
    return fl_tss_get(sched->core->worker);
}

/* Predicted time of one task, ns; 0 when unknown. */
static double predicted_ns(const fl_sched *sched, const fl_task *task)
{
    double work = task->work > 0 ? (double)task->work : 1;
    return task->codelet != NULL ? fl_sched_ns(sched, task->codelet, 0) * work : 0;
}

/* Chooses a device able to run the task, starting at `first`. An available device comes first, then
 * an offline device, then a failed device. The static policy keeps a failed device's work on the
 * failed device. */
static uint32_t choose_target(const fl_sched *sched, const fl_task *task, uint32_t first)
{
    uint32_t away = sched->count, lost = sched->count;
    for (uint32_t i = 0, target = first; i < sched->count; ++i, ++target) {
        target = target == sched->count ? 0 : target;
        const fl_worker *w = &sched->workers[target];
        if (!fl_worker_can_run(w, task)) {
            continue;
        }
        if (!fl_worker_is_unavailable(w)) {
            return target;
        }
        if (!fl_worker_has_failed(w)) {
            away = away == sched->count ? target : away;
        } else if (sched->policy == FILCH_POLICY_STATIC && away == sched->count) {
            return target;
        } else {
            lost = lost == sched->count ? target : lost;
        }
    }
    return away != sched->count ? away : lost != sched->count ? lost : first;
}

void fl_sched_route(fl_sched *sched, fl_task *task)
{
    /* Sends short tasks to one worker until the sum is worth waking a second worker. Long or
     * unknown tasks go to the workers in turn. */
    double ns = predicted_ns(sched, task);
    uint64_t run =
        ns > 0 && ns < FL_WAKE_UP_NS ? (uint64_t)(FL_WAKE_UP_NS / (ns < 1 ? 1 : ns)) + 1 : 1;
    /* Two threads may draw equal numbers: the number only spreads tasks, and an atomic addition
     * would wait for the task's cache lines. */
    uint64_t ticket = fl_load_relaxed(&sched->routed);
    fl_store_relaxed(&sched->routed, ticket + 1);
    uint64_t turn = ticket / run;
    uint32_t target = task->home != 0 ? task->home - 1u : (uint32_t)(turn % sched->count);
    if (sched->keeps_holders) {
        target = fl_place_target(sched, task, target);
    }
    target = choose_target(sched, task, target);
    fl_worker *worker = &sched->workers[target];
    fl_inbox_push(&worker->queues.inbox, &task->link);
    if (sched->keeps_holders) {
        fl_place_tell(sched, worker);
        return;
    }
    if (!fl_sched_wake_worker(sched, target) && sched->policy != FILCH_POLICY_STATIC &&
        ticket == turn * run) {
        /* The target is busy: an idle worker empties the inbox. */
        fl_sched_wake(sched, 1);
    }
}

static void task_ready(fl_scheduler *self, fl_task *task)
{
    fl_sched *sched = sched_of(self);
    fl_worker *w = fl_sched_self(sched);
    fl_placed placed = FL_UNLIKELY(fl_rules_place(&sched->rules)) ? fl_policy_place(sched, w, task)
                                                                  : FL_PLACED_AUTO;
    if (placed == FL_PLACED_AWAY) {
        return;
    }
    bool stays =
        placed == FL_PLACED_HERE || (w != NULL && (task->home == 0 || task->home == w->index + 1 ||
                                                   sched->policy != FILCH_POLICY_STATIC));
    if (stays && fl_worker_can_run(w, task)) {
        fl_worker_push(w, task);
        if (!w->ready.in_step) {
            w->ready.pushed = false;
            /* The caller's task may run for long. */
            fl_sched_wake(sched, 1);
        }
        return;
    }
    fl_sched_route(sched, task);
}

/* --- Waiting and totals --- */

static void job_done(fl_scheduler *self, filch_job *job)
{
    fl_sched *sched = sched_of(self);
    (void)job;
    /* Fence: orders the result before the waiter's second look. */
    fl_fence_seq_cst();
    if (fl_load_relaxed(&sched->waiters) != 0) {
        fl_mutex_lock(&sched->done_lock);
        fl_cond_broadcast(&sched->done);
        fl_mutex_unlock(&sched->done_lock);
    }
    /* Workers waiting for the job inside a task sleep as idle workers do. */
    fl_sched_wake(sched, sched->count);
}

static filch_status wait_blocking(fl_sched *sched, const fl_goal *goal, uint64_t deadline)
{
    filch_status status = FILCH_OK;
    /* Seq_cst: precedes the second look, against job_done. */
    fl_add_seq_cst(&sched->waiters, 1);
    fl_fence_seq_cst();
    fl_mutex_lock(&sched->done_lock);
    while (!fl_goal_is_met(goal)) {
        uint64_t t = fl_time_now();
        if (t >= deadline) {
            status = FILCH_TIMEOUT;
            break;
        }
        if (deadline == FL_TIME_NEVER) {
            fl_cond_wait(&sched->done, &sched->done_lock);
        } else {
            fl_cond_wait_for(&sched->done, &sched->done_lock, deadline - t);
        }
    }
    fl_mutex_unlock(&sched->done_lock);
    fl_sub_seq_cst(&sched->waiters, 1);
    return status;
}

/* Drives the workers on the host's thread. Without progress, because other threads drive the
 * workers or a graph is still open, the thread sleeps briefly, or until a job is done. */
static filch_status wait_polling(fl_sched *sched, const fl_goal *goal, uint64_t deadline)
{
    while (!fl_goal_is_met(goal)) {
        bool worked;
        fl_drive_poll(sched, 0, &worked);
        uint64_t t = fl_time_now();
        if (!worked && !fl_goal_is_met(goal)) {
            if (t >= deadline) {
                return FILCH_TIMEOUT;
            }
            uint64_t nap = t + FL_POLL_MODE_NAP_NS < deadline ? t + FL_POLL_MODE_NAP_NS : deadline;
            wait_blocking(sched, goal, nap);
        } else if (t >= deadline && !fl_goal_is_met(goal)) {
            return FILCH_TIMEOUT;
        }
    }
    return FILCH_OK;
}

static uint64_t deadline_after(const fl_sched *sched, double seconds)
{
    uint64_t start = fl_clock_now(&sched->core->clock);
    uint64_t range = seconds < 0 ? FL_TIME_NEVER : fl_time_from_seconds(seconds);
    return range > FL_TIME_NEVER - start ? FL_TIME_NEVER : start + range;
}

filch_status fl_sched_wait(fl_sched *sched, fl_goal goal, double seconds)
{
    if (fl_goal_is_met(&goal)) {
        return FILCH_OK;
    }
    uint64_t deadline = deadline_after(sched, seconds);
    if (sched->pool->is_virtual) {
        return fl_drive_virtual(sched, goal, deadline);
    }
    return sched->drive == FILCH_DRIVE_POLL ? wait_polling(sched, &goal, deadline)
                                            : wait_blocking(sched, &goal, deadline);
}

static bool is_callers(const filch_job *job, const void *worker)
{
    return fl_worker_is_inside(worker, job);
}

static filch_status job_wait(fl_scheduler *self, filch_job *job, double seconds)
{
    fl_sched *sched = sched_of(self);
    fl_goal goal = {.job = job};
    fl_worker *w = fl_sched_self(sched);
    if (w == NULL || fl_goal_is_met(&goal)) {
        return fl_sched_wait(sched, goal, seconds);
    }
    if (w->ready.in_step || fl_worker_is_inside(w, job)) {
        return fl_core_fail(sched->core, FILCH_WRONG_STATE, "filch_job_wait", job->label, "%s",
                            w->ready.in_step ? "a callback cannot wait"
                                             : "a task cannot wait for the job it belongs to");
    }
    if (fl_job_waits_for(job, is_callers, w)) {
        return fl_core_fail(sched->core, FILCH_WRONG_STATE, "filch_job_wait", job->label,
                            "the job waits for the calling task's own, through a handle");
    }
    return fl_drive_nested(w, goal, deadline_after(sched, seconds));
}

static filch_status count_wait(fl_scheduler *self, const _Atomic uint64_t *count, double seconds)
{
    fl_sched *sched = sched_of(self);
    fl_goal goal = {.running = count};
    if (fl_sched_self(sched) != NULL) {
        return fl_goal_is_met(&goal) ? FILCH_OK : FILCH_TIMEOUT;
    }
    return fl_sched_wait(sched, goal, seconds);
}

static void job_stats(fl_scheduler *self, const filch_job *job, filch_job_info *info, void *devices,
                      size_t device_bytes, uint32_t count)
{
    const fl_sched *sched = sched_of(self);
    fl_goal goal = {.job = job};
    /* Relaxed: loaded before the goal is tested. */
    uint64_t begin = fl_load_relaxed(&job->started);
    uint64_t end = fl_goal_is_met(&goal) ? job->finished : fl_clock_now(&sched->core->clock);
    bool has_begun = begin != 0 || sched->pool->is_virtual;
    info->seconds = has_begun && end > begin ? (double)(end - begin) / 1e9 : 0;
    info->done = info->failed = info->skipped = info->bytes = info->evicted = 0;
    info->moved = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_share *share = fl_job_share(job, d);
        info->done += fl_load_relaxed(&share->done);
        info->failed += fl_load_relaxed(&share->failed);
        info->skipped += fl_load_relaxed(&share->skipped);
        const fl_traffic *traffic = fl_job_traffic(job, sched->count) + d;
        uint64_t in = fl_load_relaxed(&traffic->in), out = fl_load_relaxed(&traffic->out);
        uint64_t peer = fl_load_relaxed(&traffic->peer);
        info->bytes += in + out + peer;
        info->evicted += fl_load_relaxed(&traffic->evicted);
        info->moved += fl_load_relaxed(&share->moved);
        if (d >= count) {
            continue;
        }
        double busy = (double)fl_load_relaxed(&share->busy_ns) / 1e9;
        double work = fl_bits_double(fl_load_relaxed(&share->work));
        uint64_t tiles = fl_load_relaxed(&share->tiles);
        work = work > 0 ? work : (double)tiles;
        const filch_device_stats stats = {
            .tiles = tiles,
            .stolen_in = fl_load_relaxed(&share->stolen_in),
            .stolen_out = fl_load_relaxed(&share->stolen_out),
            .items = fl_load_relaxed(&share->items),
            .work = work,
            .busy_s = busy,
            .idle_s = info->seconds > busy ? info->seconds - busy : 0,
            .speed = busy > 0 ? work / busy : 0,
            .bytes_in = in,
            .bytes_out = out,
            .bytes_peer = peer,
            .evicted = fl_load_relaxed(&traffic->evicted),
            .bytes_evicted = fl_load_relaxed(&traffic->written_back),
            .moved = fl_load_relaxed(&share->moved),
        };
        memcpy((char *)devices + d * device_bytes, &stats, device_bytes);
    }
}

/* --- Beginning and end --- */

static void set_scores(fl_sched *sched, const double *scores)
{
    double total = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        double score = scores != NULL ? scores[d] : sched->pool->devices[d].info.score;
        sched->scores[d] = score > 0 && score <= 1e300 ? score : 0; /* NaN fails the test, too */
        total += sched->scores[d];
    }
    for (uint32_t d = 0; total == 0 && d < sched->count; ++d) {
        sched->scores[d] = 1;
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        sched->pool->devices[d].info.score = sched->scores[d];
    }
}

static void graph_drop(fl_scheduler *self, filch_graph *graph)
{
    (void)self;
    if (graph->graph_launch != NULL) {
        fl_graph_launch_drop(graph);
    }
    if (graph->root_room != NULL) {
        fl_place_drop(graph);
    }
}

static void fill_interface(fl_sched *sched)
{
    sched->scheduler = (fl_scheduler){
        .device_count = sched->count,
        .looks_ahead = sched->looks_ahead,
        .recalls = fl_speed_file_is_on(&sched->speed_file),
        .speed_bytes = sched->count * sizeof(fl_speed),
        .codelet_init = codelet_init,
        .able = able,
        .device_is_lost = device_is_lost,
        .owner = owner,
        .estimate = estimate,
        .share_bytes = sched->count * (sizeof(fl_share) + sizeof(fl_traffic)),
        .job_reset = job_reset,
        .job_start = job_start,
        .job_await = job_await,
        .job_cancelled = job_cancelled,
        .job_traffic = job_traffic,
        .job_retire = job_retire,
        .job_is_quiet = job_is_quiet,
        .task_ready = task_ready,
        .job_wait = job_wait,
        .count_wait = count_wait,
        .job_stats = job_stats,
        .job_report = fl_account_report,
        .least_ns = least_ns,
        .job_done = job_done,
        .graph_drop = graph_drop,
    };
}

static filch_status init_locks(fl_sched *sched)
{
    filch_status status = fl_mutex_init(&sched->slots_lock);
    if (status != FILCH_OK) {
        return status;
    }
    if ((status = fl_mutex_init(&sched->done_lock)) != FILCH_OK) {
        goto slots;
    }
    if ((status = fl_cond_init(&sched->done)) != FILCH_OK) {
        goto done;
    }
    if ((status = fl_mutex_init(&sched->drive_lock)) == FILCH_OK) {
        return FILCH_OK;
    }
    fl_cond_fini(&sched->done);
done:
    fl_mutex_fini(&sched->done_lock);
    slots:
    fl_mutex_fini(&sched->slots_lock);
    return status;
}

static void fini_locks(fl_sched *sched)
{
    fl_mutex_fini(&sched->drive_lock);
    fl_cond_fini(&sched->done);
    fl_mutex_fini(&sched->done_lock);
    fl_mutex_fini(&sched->slots_lock);
}

static filch_status init_workers(fl_sched *sched)
{
    for (uint32_t d = 0; d < sched->count; ++d) {
        filch_status status =
            fl_worker_init(&sched->workers[d], sched, &sched->pool->devices[d], d);
        if (status != FILCH_OK) {
            while (d-- > 0) {
                fl_worker_fini(&sched->workers[d]);
            }
            return status;
        }
    }
    return FILCH_OK;
}

void fl_sched_sort_devices(fl_sched *sched)
{
    const fl_device *devices = sched->pool->devices;
    memset(sched->kinds, 0, sizeof sched->kinds);
    sched->able_count = FL_ABLE_ALL + 1;
    for (uint32_t d = 0; d < sched->count; ++d) {
        sched->kinds[devices[d].implementations % FL_KINDS][d / 64] |= (uint64_t)1 << d % 64;
        sched->looks_ahead |= devices[d].backend->lane != NULL && !fl_rules_place(&sched->rules);
        sched->mails |= devices[d].place != devices[0].place ||
                        devices[d].implementations != devices[0].implementations;
    }
    bool are_cores =
        sched->count > 1 && sched->drive == FILCH_DRIVE_THREADS && !sched->pool->is_virtual;
    for (uint32_t d = 0; d < sched->count; ++d) {
        are_cores = are_cores && devices[d].is_synchronous;
    }
    sched->keeps_holders = are_cores && !sched->mails && sched->rules.kind == FILCH_POLICY_STEAL;
    sched->core->keeps_holders = sched->keeps_holders;
    /* Relaxed: no second thread is running yet. */
    fl_store_relaxed(&sched->has_offers, sched->mails);
    fl_store_relaxed(&sched->is_careful, sched->mails || sched->policy == FILCH_POLICY_STATIC ||
                                             fl_rules_place(&sched->rules));
}

static void stop_threads(fl_sched *sched)
{
    /* Seq_cst: precedes the loads of the idle bits. */
    fl_store_seq_cst(&sched->stopping, 1);
    for (uint32_t i = 0; i < sched->thread_count; ++i) {
        fl_sched_wake_worker(sched, i);
    }
    for (uint32_t i = 0; i < sched->thread_count; ++i) {
        fl_thread_join(sched->threads[i]);
    }
    sched->thread_count = 0;
}

static filch_status start_threads(fl_sched *sched)
{
    if (sched->drive != FILCH_DRIVE_THREADS) {
        return FILCH_OK;
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        filch_status status =
            fl_thread_start(&sched->threads[d], fl_drive_thread, &sched->workers[d]);
        if (status != FILCH_OK) {
            stop_threads(sched);
            return status;
        }
        sched->thread_count = d + 1;
    }
    return FILCH_OK;
}

/* Makes the event queue of a virtual clock. */
static filch_status init_agenda(fl_sched *sched)
{
    const fl_memory *memory = &sched->core->memory;
    if (!sched->pool->is_virtual) {
        return FILCH_OK;
    }
    sched->events = fl_alloc_zeroed(memory, sizeof *sched->events);
    if (sched->events == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    return fl_event_queue_init(sched->events, memory, sched->count);
}

static void free_arrays(fl_sched *sched)
{
    const fl_memory *memory = &sched->core->memory;
    if (sched->events != NULL) {
        fl_event_queue_fini(sched->events, memory);
        fl_free(memory, sched->events, sizeof *sched->events);
    }
    fl_free(memory, sched->scores, sched->count * sizeof *sched->scores);
    fl_free_aligned(memory, sched->workers, sched->count * sizeof *sched->workers, 64);
    fl_free(memory, sched->threads, sched->count * sizeof *sched->threads);
}

static void open_history(fl_sched *sched)
{
    fl_speed_file *history = &sched->speed_file;
    fl_speed_file_open(history, &sched->core->memory, sched->core->settings.speeds);
    if (history->loaded != FILCH_OK && history->loaded != FILCH_NOT_FOUND) {
        fl_log_write(&sched->core->log, FILCH_LOG_WARNING,
                     "speeds of earlier runs are not known: %s (%s)", sched->core->settings.speeds,
                     filch_status_name(history->loaded));
    }
}

filch_status fl_sched_init(fl_sched *sched, fl_core *core, fl_pool *pool,
                           const fl_sched_config *config, filch_error *error)
{
    const fl_memory *memory = &core->memory;
    const char *what = "memory for its workers";
    sched->core = core;
    sched->pool = pool;
    sched->count = (uint32_t)pool->count;
    sched->policy = config->policy == FILCH_POLICY_PERFECT ? FILCH_POLICY_STATIC : config->policy;
    sched->drive = config->drive;
    sched->scores = fl_alloc(memory, sched->count * sizeof *sched->scores);
    sched->workers = fl_alloc_aligned(memory, sched->count * sizeof *sched->workers, 64);
    sched->threads = fl_alloc(memory, sched->count * sizeof *sched->threads);
    filch_status status = FILCH_OUT_OF_MEMORY;
    if (sched->scores == NULL || sched->workers == NULL || sched->threads == NULL ||
        init_agenda(sched) != FILCH_OK) {
        goto arrays;
    }
    set_scores(sched, config->scores);
    if ((status = fl_rules_init(sched, config->policy, config->custom)) != FILCH_OK) {
        what = "memory for its policy";
        goto arrays;
    }
    fl_sched_sort_devices(sched);
    if ((status = fl_shared_queue_open(sched)) != FILCH_OK) {
        what = "memory for its board";
        goto rules;
    }
    fl_host_events_init(sched);
    if ((status = init_locks(sched)) != FILCH_OK) {
        what = "locks";
        goto rules;
    }
    if ((status = init_workers(sched)) != FILCH_OK) {
        goto locks;
    }
    fl_slow_init(sched);
    open_history(sched);
    /* Relaxed: no second thread is running yet. */
    fl_store_relaxed(&sched->saved, (uint32_t)FILCH_NOT_READY);
    fill_interface(sched);
    core->scheduler = &sched->scheduler;
    if ((status = start_threads(sched)) == FILCH_OK) {
        return FILCH_OK;
    }
    what = "worker threads";
    fl_speed_file_close(&sched->speed_file);
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_worker_fini(&sched->workers[d]);
    }
locks:
    fini_locks(sched);
rules:
    fl_shared_queue_close(sched);
    fl_rules_fini(sched);
arrays:
    free_arrays(sched);
    return fl_error_fill(error, (fl_fault){.status = status, .call = "filch_runtime_create"},
                         "the scheduler has no %s", what);
}

void fl_sched_fini(fl_sched *sched)
{
    stop_threads(sched);
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_worker_fini(&sched->workers[d]);
    }
    fl_speed_file_close(&sched->speed_file);
    fini_locks(sched);
    fl_shared_queue_close(sched);
    fl_rules_fini(sched);
    free_arrays(sched);
}
