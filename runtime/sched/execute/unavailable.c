/* SPDX-License-Identifier: Apache-2.0 */
/* One traversal settles the work of an offline or a failed device. Work that every worker can find
 * stays: thieves rob deques and ranges, under every policy but the static one for failed devices.
 * Work known to the worker only goes to another device. The rest waits with an offline device, and
 * fails with the device's error on a failed one. Cancelled work ends at once.
 *
 * An offline worker looks at the work that others can find only when presence changed
 * (worker/presence.h), and can sleep. Further devices may fail later: a failed worker looks at all
 * its work in every step.
 *
 * A device without capacity is neither. A thread placing a task knows the capacities, but not the
 * memory taken by other users, which shows at fetch. A task lacking memory, although no other item
 * uses the memory, moves to a device with more capacity by present knowledge. Devices are tried in
 * turn, starting with the next device. The number of moves is at most the number of devices, so two
 * devices do not send a task back and forth. The task stays claimed.
 *
 * A chunk of a batch without capacity goes back into the device's range, and the device leaves the
 * range to other devices, which rob the range as for a failed device. If a policy cut the batch,
 * the range may consist of pieces or be shared: the chunk is put beside the range, open to every
 * device. The last device cannot leave the range, and tries every remaining grain before failing.
 */
#include "sched/execute/unavailable.h"

#include "sched/account/account.h"
#include "sched/execute/divide.h"
#include "sched/execute/pending.h"
#include "sched/execute/pick.h"
#include "sched/execute/placed.h"
#include "sched/execute/shared_queue.h"
#include "sched/execute/step.h"
#include "sched/execute/window.h"
#include "sched/ready/aside.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/jobs.h"
#include "sched/worker/others.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* --- Who takes the work over --- */

/* Tells whether a second device may have the task, whole or its part. */
static bool may_have(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    (void)w;
    return !fl_task_is_divided(task) || fl_divide_is_here(other, task);
}

/* Tells whether the work stays with the device: under the static policy a failed device's work. */
static bool is_bound(const fl_worker *w)
{
    return fl_worker_has_failed(w) && w->sched->policy == FILCH_POLICY_STATIC;
}

/* Finds a device for a task of the worker's: a device online, or for a failed device one that may
 * return. Null: no device. */
static fl_worker *find_other(const fl_worker *w, const fl_task *task, uint64_t first)
{
    fl_worker *other = NULL;
    if (!is_bound(w)) {
        other = fl_other_for(w->sched, w, task, FL_OTHERS_ONLINE, first, may_have);
    }
    if (other == NULL && fl_worker_has_failed(w) && !is_bound(w)) {
        other = fl_other_for(w->sched, w, task, FL_OTHERS_OFFLINE, first, may_have);
    }
    return other;
}

/* Sends a claimed task to a second worker. */
static void send(fl_worker *w, fl_worker *other, fl_task *task)
{
    /* The job may be over as soon as a second worker has the task. */
    fl_worker_flush(w);
    w->now.has_worked = true;
    fl_claimed_send(other, task);
    fl_sched_wake_worker(w->sched, other->index);
}

bool fl_offline_give(fl_worker *w, fl_task *task)
{
    /* The starting device varies from call to call. */
    fl_worker *other = find_other(w, task, fl_add_relaxed(&w->sched->routed, 1));
    if (other != NULL) {
        send(w, other, task);
    }
    return other != NULL;
}

/* Tells whether thieves take the task of a live hint. */
static bool is_for_thieves(const fl_worker *w, uint64_t hint)
{
    return !is_bound(w) &&
           fl_others_can_hint(w, hint, fl_worker_has_failed(w) ? FL_OTHERS_GOOD : FL_OTHERS_ONLINE);
}

/* --- One task --- */

static bool is_over(const fl_task *task)
{
    return !fl_task_passes(task) && fl_load_relaxed(&task->graph->job->cancelled) != 0;
}

/* Tells whether a combining task has begun: a part of the result is on the device. */
static bool is_begun(const fl_task *task)
{
    return task->combines && fl_task_extras(task)[0].reduction->current != 0;
}

/* Retires an item that is not run: skipped, or failed with the failed device's error. */
static void end_item(fl_worker *w, fl_item *item)
{
    if (fl_worker_has_failed(w) && !item->skip) {
        item->code = -1;
        item->is_refused = true;
        w->stall.error = w->stall.failure;
    }
    w->now.has_worked = true;
    fl_worker_retire(w, item);
}

static void end_task(fl_worker *w, fl_task *task, bool poisoned)
{
    fl_item item = {0};
    fl_worker_take(w, task, poisoned, &item);
    if (task->is_gate) {
        fl_item_pass(&item);
    }
    end_item(w, &item);
}

/* Gives a claimed task away, if it may leave the device. A task that came for want of capacity
 * waits with an offline device: the task would only come back. A part of a failed device's divided
 * task fails the task. */
static bool give(fl_worker *w, fl_task *task)
{
    bool has_failed = fl_worker_has_failed(w);
    if (is_begun(task) || (has_failed && fl_task_is_divided(task))) {
        return false;
    }
    return task->moves == 0 ? fl_offline_give(w, task) : has_failed && fl_full_move(w, task);
}

/* Settles a claimed task outside every list. */
static void settle_claimed(fl_worker *w, fl_task *task, bool poisoned)
{
    if (poisoned || fl_task_passes(task) || is_over(task)) {
        end_task(w, task, poisoned);
    } else if (give(w, task)) {
        return;
    } else if (fl_worker_has_failed(w)) {
        end_task(w, task, false);
    } else {
        fl_claimed_put(w, task, false);
    }
}

/* Settles a ready task known to the worker only. */
static void settle_ready(fl_worker *w, fl_task *task)
{
    if (!fl_task_passes(task) && !is_over(task) && find_other(w, task, 0) != NULL) {
        w->now.has_worked = true;
        fl_sched_route(w->sched, task);
    } else {
        settle_claimed(w, task, fl_ready_own(task));
    }
}

/* --- The traversal --- */

/* Settles the claimed queue. After a change of presence, tasks without capacity elsewhere are
 * offered again. */
static void settle_claims(fl_worker *w, bool is_new)
{
    fl_claimed_gather(w);
    fl_link *link = w->ready.claimed;
    w->ready.claimed = NULL;
    while (link != NULL) {
        /* Read first: the task may go to a second list. */
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        if (is_new && !fl_worker_has_failed(w)) {
            task->moves = 0;
        }
        settle_claimed(w, task, task->is_poisoned);
        link = next;
    }
}

static void settle_part(fl_worker *w)
{
    fl_task *task = w->ready.part;
    w->ready.part = NULL;
    if (task == NULL) {
        return;
    }
    if (fl_worker_has_failed(w)) {
        end_task(w, task, false);
    } else if (!fl_divide_drop(w, task)) {
        /* The worker's part is the only part: the task's link is free. */
        settle_claimed(w, task, false);
    }
}

static void settle_window(fl_worker *w)
{
    while (w->offload != NULL && w->offload->window_count != 0) {
        fl_item item;
        fl_window_take(w, &item);
        if (item.is_claimed) {
            settle_claimed(w, item.task, item.skip);
        } else {
            settle_ready(w, item.task);
        }
    }
}

/* Tells whether a task that every worker may take is left to the worker. */
static bool is_left(const fl_worker *w, const fl_task *task, const void *user)
{
    (void)user;
    return (fl_worker_has_failed(w) || is_over(task)) && fl_worker_can_run(w, task) &&
           find_other(w, task, 0) == NULL;
}

/* Tells whether a task set aside is left to the worker. Under the static policy other devices'
 * tasks stand there, too. */
static bool is_left_aside(const fl_worker *w, const fl_task *task, const void *user)
{
    bool is_others = w->sched->policy == FILCH_POLICY_STATIC && task->home != w->index + 1 &&
                     fl_other_for(w->sched, w, task, FL_OTHERS_GOOD, 0, may_have) != NULL;
    return !is_others && is_left(w, task, user);
}

static void settle_shared(fl_worker *w)
{
    fl_task *task;
    while ((task = fl_placed_drop(w, is_left)) != NULL ||
           (task = fl_shared_queue_drop(w, is_left)) != NULL) {
        settle_claimed(w, task, fl_ready_own(task));
    }
    while ((task = fl_aside_take(w, is_left_aside, NULL)) != NULL) {
        settle_claimed(w, task, task->is_poisoned);
    }
}

/* Settles the worker's range of a job. True: the range has work for thieves of a failed device. */
static bool settle_range(fl_worker *w, filch_job *job)
{
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    uint32_t lo, hi;
    if (!fl_worker_has_failed(w) && !is_cancelled) {
        return false;
    }
    if (job->batch == NULL) {
        while (fl_range_take(&fl_job_share(job, w->index)->range, 1, &lo, &hi)) {
            settle_ready(w, job->graph->roots[lo]);
        }
        return false;
    }
    if (!is_cancelled && !is_bound(w) && fl_others_can_batch(w, job, FL_OTHERS_GOOD)) {
        return fl_pieces_rest(w, job) != 0;
    }
    while (fl_pieces_take_any(w, job, &lo, &hi)) {
        fl_item item = {.job = job, .lo = lo, .hi = hi, .skip = is_cancelled};
        end_item(w, &item);
    }
    return false;
}

static bool settle_ranges(fl_worker *w)
{
    fl_jobs_walk walk = {0};
    bool is_wanted = false;
    for (filch_job *job; (job = fl_jobs_next(w, &walk)) != NULL;) {
        is_wanted = settle_range(w, job) || is_wanted;
    }
    return is_wanted;
}

/* Turns a deque over once, from the thieves' end. A hint for thieves goes to the owner's end; the
 * push finds room, because an entry left before. True: a hint for thieves remains. */
static bool settle_deque(fl_worker *w, fl_deque *deque)
{
    bool is_wanted = false;
    for (int64_t left = fl_deque_size(deque); left > 0; --left) {
        uint64_t hint;
        fl_steal outcome;
        while ((outcome = fl_deque_steal(deque, &hint)) == FL_STEAL_LOST) {
            fl_relax();
        }
        if (outcome == FL_STEAL_EMPTY) {
            break;
        }
        fl_task *task;
        bool poisoned;
        if (!fl_hint_is_live(hint)) {
            continue;
        }
        if (is_for_thieves(w, hint) && fl_deque_push(deque, hint)) {
            is_wanted = true;
        } else if (fl_ready_claim(w->sched, hint, &task, &poisoned)) {
            settle_claimed(w, task, poisoned);
        }
    }
    return is_wanted;
}

static bool settle_deques(fl_worker *w)
{
    bool is_wanted = false;
    w->ready.pushed = false;
    for (uint32_t level = FL_LEVELS; level-- > 0;) {
        is_wanted = settle_deque(w, &w->queues.levels[level]) || is_wanted;
    }
    return is_wanted;
}

/* Settles all work that the worker holds. is_new: work that others can find is looked at, too.
 * True: work for thieves remains. */
static bool settle(fl_worker *w, bool is_new)
{
    bool is_wanted = false;
    settle_claims(w, is_new);
    settle_part(w);
    settle_window(w);
    fl_ready_each(w, settle_ready);
    if (is_new) {
        is_wanted = settle_ranges(w);
        settle_shared(w);
    }
    if (is_new || w->ready.pushed) {
        is_wanted = settle_deques(w) || is_wanted;
    }
    return is_wanted;
}

/* --- Offline --- */

/* Tells whether prefetch copies are over. A copy for a task not yet given away may read memory the
 * caller owns again once the task is over. */
static bool is_fetched(fl_worker *w)
{
    fl_offload *offload = w->offload;
    bool all = true;
    for (int from = 0; from < 2 && offload != NULL && !w->device->is_synchronous; ++from) {
        const fl_lane_ops *lane = w->device->backend->lane;
        /* Asks the driver: no item in flight does. */
        filch_status status = offload->fetched[from] != 0
                                  ? lane->reached(w->device, offload->fetched[from], NULL)
                                  : FILCH_OK;
        if (status != FILCH_OK && status != FILCH_NOT_READY) {
            lane->drain(w->device, NULL); /* how far a failed device got is unknown */
        }
        if (status == FILCH_NOT_READY) {
            all = false;
        } else {
            offload->fetched[from] = 0;
        }
    }
    return all;
}

void fl_offline_settle(fl_worker *w)
{
    if (!is_fetched(w) || w->now.frames != NULL) {
        /* The waiting task needs the work. */
        return;
    }
    /* Acquire: pairs with the release in worker/presence.c. */
    uint64_t roster = fl_load_acquire(&w->sched->roster);
    bool is_new = roster != w->ready.roster;
    w->ready.roster = roster;
    if (settle(w, is_new)) {
        fl_sched_wake(w->sched, w->sched->count);
    }
}

/* Tells whether a kept task is bound to end on the device: a combining task already begun, or a
 * gate, because gates compute nothing. */
static bool ends_here(const fl_task *task)
{
    return task->is_gate || is_begun(task);
}

bool fl_offline_pick(fl_worker *w, fl_item *item)
{
    if (w->now.frames != NULL) {
        return fl_worker_pick(w, item);
    }
    for (fl_task *task; (task = fl_claimed_take_if(w, ends_here)) != NULL;) {
        fl_worker_take(w, task, task->is_poisoned, item);
        if (fl_item_admit(w, item)) {
            return true;
        }
    }
    return false;
}

fl_act fl_offline_rest(fl_worker *w)
{
    fl_jobs_end_peek(w);
    if (w->now.completed != NULL) {
        return FL_ACT_MORE;
    }
    w->idle.ready_at = FL_TIME_NEVER;
    fl_account_event(w, FL_EVENT_IDLE, NULL);
    if (!is_fetched(w)) {
        w->idle.wake_at = fl_worker_clock(w) + FL_LOOK_AGAIN_NS;
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

/* --- Failed --- */

fl_act fl_failed_step(fl_worker *w)
{
    if (w->sched->events != NULL && fl_pending_has_ended(w)) {
        /* Of simulated devices, all may be lost. A failed GPU leaves them to the host's workers. */
        fl_pending_retire_ended(w);
    }
    bool is_wanted = settle(w, true);
    is_wanted = fl_shared_queue_leave(w) || is_wanted;
    /* A failing task makes successors ready. */
    bool again = w->ready.next_task != NULL;
    fl_worker_flush(w);
    fl_jobs_end_peek(w);
    if (is_wanted) {
        fl_sched_wake(w->sched, w->sched->count);
    }
    w->ready.pushed = false;
    w->idle.ready_at = FL_TIME_NEVER;
    if (again || w->now.completed != NULL) {
        return FL_ACT_MORE;
    }
    fl_worker_begin_idle(w);
    return FL_ACT_WAIT;
}

/* --- Full --- */

/* Tells whether the device of `other` has capacity by present knowledge. A device sharing the
 * worker's memory node has none. */
static bool has_room(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    const fl_places *places = w->sched->core->places;
    uint32_t place = other->device->place;
    return place != w->device->place &&
           (place == 0 || fl_capacity_need(task, place) <= fl_place_budget(places, place));
}

bool fl_full_move(fl_worker *w, fl_task *task)
{
    fl_sched *sched = w->sched;
    fl_worker *other = NULL;
    /* Gates, filch's own tasks and partial results are bound to devices. */
    bool may_move = !task->is_gate && !task->reduces && !task->combines && !task->begins;
    if (may_move && task->moves < sched->count && sched->policy != FILCH_POLICY_STATIC) {
        /* Lacking an available device with capacity, the task waits with an offline device. */
        uint64_t first = (uint64_t)w->index + 1;
        other = fl_other_for(sched, w, task, FL_OTHERS_ONLINE, first, has_room);
        other = other != NULL ? other
                              : fl_other_for(sched, w, task, FL_OTHERS_OFFLINE, first, has_room);
    }
    if (other == NULL) {
        task->moves = 0;
        return false;
    }
    ++task->moves;
    send(w, other, task);
    return true;
}

bool fl_full_leave(fl_worker *w, const fl_item *item)
{
    filch_job *job = item->job;
    fl_share *share = fl_job_share(job, w->index);
    if (!fl_others_can_batch(w, job, FL_OTHERS_GOOD)) {
        return false;
    }
    /* The job may be over as soon as a second worker has the chunk. */
    fl_worker_flush(w);
    fl_store_relaxed(&share->is_out, 1);
    /* Relaxed: precedes the fence of the wake-up, as do the earlier stores. */
    fl_or_relaxed(&w->sched->attention, (uint32_t)FL_ATTEND_LEFT);
    if (!fl_pieces_return(w, item)) {
        return false;
    }
    fl_sched_wake(w->sched, w->sched->count);
    return true;
}

bool fl_full_relieve(fl_worker *w)
{
    fl_sched *sched = w->sched;
    bool any = false;
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(w->index + i) % sched->count];
        /* Relaxed: a task taken from a worker driven by a second thread runs here as well. */
        if (fl_inbox_is_empty(&other->queues.claimed) ||
            fl_load_relaxed(&other->signals.held) == 0) {
            continue;
        }
        for (fl_link *link = fl_inbox_drain(&other->queues.claimed); link != NULL;) {
            /* Read first: the task goes to a second list. */
            fl_link *next = link->next;
            const fl_task *task = fl_task_of_link(link);
            bool is_ours = fl_worker_can_run(w, task) && may_have(NULL, w, task);
            fl_inbox_push(is_ours ? &w->queues.claimed : &other->queues.claimed, link);
            any = any || is_ours;
            link = next;
        }
    }
    return any;
}
