/* SPDX-License-Identifier: Apache-2.0 */
/* Offline devices: withdrawn by the host, or absent for a while by a simulation's description.
 *
 * The flag is among the worker's duties, read in every step. Items in flight end on the device.
 * Waiting work is left to available devices, under every policy. Workers of available devices rob
 * the deques and ranges as for a failed device. The worker gives away work known to the worker
 * only. Work without an available device stays claimed by the worker until a suitable device is
 * available.
 *
 * Presence changes seldom; every change is counted, and every worker is woken to look again.
 * Between changes an offline worker handles only work sent directly, and can sleep.
 *
 * No wake-up is lost with a worker chosen just before going offline. The waker had published the
 * work before, and the change wakes every remaining worker after. */
#include "sched/execute/offline.h"

#include "sched/account/account.h"
#include "sched/decide/locality.h"
#include "sched/execute/divide.h"
#include "sched/execute/failed.h"
#include "sched/execute/full.h"
#include "sched/execute/pick.h"
#include "sched/execute/step.h"
#include "sched/ready/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* --- Presence --- */

/* Counts a change. Under slots_lock. */
static void count_change(fl_sched *sched, bool was_away, bool is_away)
{
    if (was_away != is_away) {
        /* Adds -1 modulo 2^32. */
        fl_add_relaxed(&sched->offline_count, is_away ? 1 : UINT32_MAX);
    }
    /* Release: orders the duties, or the cancellation, before the count announcing the change. */
    fl_add_release(&sched->roster, 1);
}

/* Wakes every worker to look again, offline workers too. */
static void tell(fl_sched *sched)
{
    fl_sched_wake(sched, sched->count);
    for (uint32_t d = 0; d < sched->count; ++d) {
        if (fl_worker_is_offline(&sched->workers[d])) {
            fl_sched_wake_worker(sched, d);
        }
    }
}

bool fl_offline_set(fl_sched *sched, uint32_t index, uint32_t duty, bool is_set)
{
    fl_worker *w = &sched->workers[index];
    fl_mutex_lock(&sched->slots_lock);
    /* Relaxed: the presence bits change under the lock only. */
    uint32_t before = fl_load_relaxed(&w->signals.duties);
    bool changes = ((before & duty) != 0) != is_set;
    if (changes) {
        uint32_t after = is_set ? before | duty : before & ~duty;
        bool was_away = (before & FL_DUTY_OFFLINE) != 0;
        if (!was_away) {
            /* Precedes the duty; afterwards the worker may set is_quiet. */
            fl_store_relaxed(&w->signals.is_quiet, 0);
        }
        /* Release: as in count_change. */
        fl_store_release(&w->signals.duties, after);
        count_change(sched, was_away, (after & FL_DUTY_OFFLINE) != 0);
    }
    fl_mutex_unlock(&sched->slots_lock);
    if (changes) {
        fl_sched_wake_worker(sched, index);
        tell(sched);
    }
    return changes;
}

void fl_offline_cancelled(fl_scheduler *self)
{
    fl_sched *sched = (fl_sched *)(void *)self;
    /* Fence: orders the cancellation against a device going offline. */
    fl_fence_seq_cst();
    if (fl_load_relaxed(&sched->offline_count) != 0) {
        fl_add_release(&sched->roster, 1);
        tell(sched);
    } else if (fl_load_relaxed(&sched->shared_jobs) != 0) {
        /* A cancelled task is no longer better left to a second device. */
        fl_sched_wake(sched, sched->count);
    }
}

filch_presence fl_offline_presence(const fl_sched *sched, uint32_t index)
{
    const fl_worker *w = &sched->workers[index];
    if (sched->scheduler.device_is_lost((fl_scheduler *)(uintptr_t)&sched->scheduler, index)) {
        return FILCH_PRESENCE_LOST;
    }
    if (!fl_worker_is_offline(w)) {
        return FILCH_PRESENCE_THERE;
    }
    /* Acquire: items on the device are over. */
    return fl_load_acquire(&w->signals.is_quiet) != 0 ? FILCH_PRESENCE_WITHDRAWN
                                                      : FILCH_PRESENCE_LEAVING;
}

uint64_t fl_offline_turn(fl_worker *w)
{
    const fl_device *device = w->device;
    if (FL_LIKELY(device->leaves_at >= device->returns_at)) {
        /* The device does not leave. */
        return FL_TIME_NEVER;
    }
    uint64_t t = fl_clock_now(&w->sched->core->clock);
    bool has_left = t >= device->leaves_at && t < device->returns_at;
    if (has_left != ((fl_load_relaxed(&w->signals.duties) & FL_DUTY_LEFT) != 0)) {
        fl_offline_set(w->sched, w->index, FL_DUTY_LEFT, has_left);
    }
    return t < device->leaves_at    ? device->leaves_at
           : t < device->returns_at ? device->returns_at
                                    : FL_TIME_NEVER;
}

/* --- Giving work away --- */

/* Finds an available device, other than the worker's own, able to run our task. The starting device
 * varies from call to call. Null: no device. */
static fl_worker *find_other(const fl_worker *w, const fl_task *task, bool is_divided)
{
    fl_sched *sched = w->sched;
    uint64_t first = fl_add_relaxed(&sched->routed, 1);
    for (uint32_t i = 0; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(first + i) % sched->count];
        if (other != w && !fl_worker_is_unavailable(other) && fl_worker_can_run(other, task) &&
            (!is_divided || fl_divide_is_here(other, task))) {
            return other;
        }
    }
    return NULL;
}

static bool is_over(const fl_task *task)
{
    return !fl_task_passes(task) && fl_load_relaxed(&task->graph->job->cancelled) != 0;
}

bool fl_offline_give(fl_worker *w, fl_task *task)
{
    fl_worker *other = find_other(w, task, fl_task_is_divided(task));
    if (other == NULL) {
        return false;
    }
    /* The job may be over as soon as a second worker has the task. */
    fl_worker_flush(w);
    fl_inbox_push(&other->queues.moved, &task->link);
    fl_sched_wake_worker(w->sched, other->index);
    return true;
}

/* --- Work known to the worker only --- */

static void keep(fl_worker *w, fl_task *task)
{
    task->link.next = w->ready.kept;
    w->ready.kept = &task->link;
}

/* Retires a claimed task with nothing to run. */
static void pass_over(fl_worker *w, fl_task *task, bool poisoned)
{
    fl_item item = {0};
    fl_worker_take(w, task, poisoned, &item);
    if (task->is_gate) {
        fl_item_pass(&item);
    }
    fl_worker_retire(w, &item);
}

/* Settles a claimed task outside every list. A task refused by a full device waits here: the task
 * would only come back. A combining task stays when begun, because a part of the result is here. */
static void settle_claimed(fl_worker *w, fl_task *task, bool poisoned)
{
    bool is_begun = task->combines && fl_task_extras(task)[0].reduction->current != 0;
    if (poisoned || fl_task_passes(task) || is_over(task)) {
        pass_over(w, task, poisoned);
    } else if (is_begun || task->moves != 0 || !fl_offline_give(w, task)) {
        keep(w, task);
    }
}

/* Settles a task claimed just now. */
static void settle_new(fl_worker *w, fl_task *task, bool poisoned)
{
    if (task->predecessors != 0) {
        /* Reset as for a task that runs. */
        fl_store_relaxed(&task->pending, task->predecessors);
    }
    settle_claimed(w, task, poisoned);
}

/* Settles a ready task. */
static void settle_ready(fl_worker *w, fl_task *task)
{
    if (!fl_task_passes(task) && find_other(w, task, false) != NULL) {
        fl_sched_route(w->sched, task);
    } else {
        settle_new(w, task, fl_task_own(task));
    }
}

static bool is_left(const fl_worker *w, const fl_task *task)
{
    return is_over(task) && find_other(w, task, false) == NULL;
}

/* Settles the kept tasks. After a change of presence, tasks without room elsewhere are offered
 * again. */
static void settle_kept(fl_worker *w, bool is_new)
{
    fl_full_gather(w);
    fl_link *link = w->ready.kept;
    w->ready.kept = NULL;
    while (link != NULL) {
        /* Read first: the task may go to a second list. */
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        task->moves = is_new ? 0 : task->moves;
        settle_claimed(w, task, false);
        link = next;
    }
}

static void settle_own(fl_worker *w, bool is_new)
{
    uint64_t hint;
    settle_kept(w, is_new);
    if (w->ready.adopted != NULL) {
        fl_task *task = w->ready.adopted;
        w->ready.adopted = NULL;
        if (!fl_task_is_divided(task)) {
            settle_new(w, task, w->ready.adopted_poisoned);
        } else if (!fl_divide_drop(w, task)) {
            /* The worker's part is the only part: the task's link is free. */
            settle_claimed(w, task, false);
        }
    }
    for (fl_link *link = fl_inbox_drain(&w->queues.inbox); link != NULL;) {
        /* Read first, as above. */
        fl_link *next = link->next;
        settle_ready(w, fl_task_of_link(link));
        link = next;
    }
    /* The sender has the task in a deque, too. */
    while (fl_mailbox_take(&w->queues.mailbox, &hint)) {
    }
    while (w->offload != NULL && w->offload->window_count != 0) {
        fl_item item;
        fl_locality_take(w, &item);
        if (item.is_claimed) {
            settle_new(w, item.task, item.skip);
        } else {
            settle_ready(w, item.task);
        }
    }
    while (w->ready.next_task != NULL) {
        fl_task *task = w->ready.next_task;
        w->ready.next_task = NULL;
        settle_ready(w, task);
    }
}

/* --- Work visible to every worker --- */

/* Tells whether an available device takes the task of a live hint; only the task's set of devices
 * may be read. */
static bool is_taken(const fl_worker *w, uint64_t hint)
{
    return fl_hint_is_for_others(w, hint, true);
}

/* Settles the range of a cancelled job: no device needs to be waited for. */
static void settle_range(fl_worker *w, filch_job *job)
{
    uint32_t lo, hi;
    if (fl_load_relaxed(&job->cancelled) == 0) {
        return;
    }
    if (job->batch == NULL) {
        while (fl_range_take(&fl_job_share(job, w->index)->range, 1, &lo, &hi)) {
            fl_task *task = job->graph->roots[lo];
            settle_new(w, task, fl_task_own(task));
        }
        return;
    }
    while (fl_pieces_take_any(w, job, &lo, &hi)) {
        fl_item item = {.job = job, .lo = lo, .hi = hi, .skip = true};
        fl_worker_retire(w, &item);
    }
}

static void settle_ranges(fl_worker *w)
{
    fl_sched *sched = w->sched;
    for (uint32_t word = 0; word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Acquire: a set bit's slot is filled. */
        uint64_t bits = fl_load_acquire(&sched->active[word]);
        while (bits != 0) {
            uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            filch_job *job = fl_worker_visit(w, slot);
            if (job != NULL) {
                settle_range(w, job);
            }
        }
    }
}

/* Tells whether prefetch copies are over. A copy for a task not yet given away may read memory the
 * caller owns again once the task is over. */
static bool is_fetched(fl_worker *w)
{
    fl_offload *offload = w->offload;
    bool all = true;
    for (int from = 0; from < 2 && offload != NULL && !w->device->is_synchronous; ++from) {
        if (offload->fetched[from] != 0 &&
            !w->device->backend->lane->is_past(w->device, offload->fetched[from])) {
            all = false;
        } else {
            offload->fetched[from] = 0;
        }
    }
    return all;
}

void fl_offline_settle(fl_worker *w)
{
    if (w->now.frames != NULL || !is_fetched(w)) {
        /* The waiting task needs the work. */
        return;
    }
    /* Acquire: pairs with the release in count_change. */
    uint64_t roster = fl_load_acquire(&w->sched->roster);
    bool is_new = roster != w->ready.roster;
    w->ready.roster = roster;
    settle_own(w, is_new);
    if (is_new) {
        settle_ranges(w);
        for (fl_task *task; (task = fl_policy_drop(w, is_left)) != NULL;) {
            settle_new(w, task, fl_task_own(task));
        }
        for (fl_task *task; (task = fl_shared_queue_drop(w, is_left)) != NULL;) {
            settle_new(w, task, fl_task_own(task));
        }
    }
    if (is_new || w->ready.pushed) {
        w->ready.pushed = false;
        if (fl_deques_settle(w, is_taken, settle_new)) {
            fl_sched_wake(w->sched, w->sched->count);
        }
    }
}

/* Takes a kept task bound to end on the device: a combining task already begun, or a gate, because
 * gates compute nothing. */
static fl_task *take_kept(fl_worker *w)
{
    for (fl_link **at = &w->ready.kept; *at != NULL; at = &(*at)->next) {
        fl_task *task = fl_task_of_link(*at);
        if (task->is_gate || (task->combines && fl_task_extras(task)[0].reduction->current != 0)) {
            *at = task->link.next;
            return task;
        }
    }
    return NULL;
}

bool fl_offline_pick(fl_worker *w, fl_item *item)
{
    if (w->now.frames != NULL) {
        return fl_worker_pick(w, item);
    }
    for (fl_task *task; (task = take_kept(w)) != NULL;) {
        fl_worker_take(w, task, false, item);
        if (fl_item_admit(w, item)) {
            return true;
        }
    }
    return false;
}

fl_act fl_offline_rest(fl_worker *w)
{
    fl_worker_leave(w);
    if (w->now.completed != NULL) {
        return FL_ACT_MORE;
    }
    w->idle.ready_at = FL_TIME_NEVER;
    fl_account_idle(w);
    if (!is_fetched(w)) {
        w->idle.wake_at = fl_clock_now(&w->sched->core->clock) + FL_NAP_OFFLINE_NS;
        return FL_ACT_WAIT;
    }
    w->idle.wake_at = FL_TIME_NEVER;
    if (w->now.frames != NULL) {
        return FL_ACT_WAIT;
    }
    if (w->ready.next_task != NULL || w->ready.pushed) {
        return FL_ACT_MORE; /* settling made tasks ready */
    }
    /* Release: items are over; a thread asking may use the device. */
    fl_store_release(&w->signals.is_quiet, 1);
    return FL_ACT_WAIT;
}
