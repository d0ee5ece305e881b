/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that the host has withdrawn, or that a simulation's description has leave for a while.
 *
 * The flag stands among the duties of the device's worker, which it looks at in each step. What is
 * in flight there ends; what waits is the others' from then on, whatever the policy: they rob the
 * worker's deques and ranges as those of a lost device, and what nobody else knows of the worker
 * gives away itself. What no device that is there can run it keeps, claimed, until one is.
 *
 * Who is there changes seldom; each change is counted, and everybody is woken to look again.
 * Between changes a withdrawn worker does nothing but what is sent to it, so that it sleeps.
 *
 * No wake-up is lost with a worker that was chosen for work just before it was withdrawn: whoever
 * chose it had published the work before, and the change wakes all others after. */
#include "sched/execute/offline.h"

#include "sched/account/account.h"
#include "sched/decide/locality.h"
#include "sched/decide/pick.h"
#include "sched/execute/divide.h"
#include "sched/execute/failed.h"
#include "sched/execute/full.h"
#include "sched/execute/step.h"
#include "sched/ready/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"

/* How often copies that were begun ahead are looked at before what they were for is given away. */
#define FETCHED_NAP_NS 20000u

/* --- Who is there --- */

/* Under slots_lock. */
static void count_change(fl_sched *sched, bool was_away, bool is_away)
{
    if (was_away != is_away) {
        fl_add_relaxed(&sched->away_count, is_away ? 1 : UINT32_MAX); /* modulo 2^32 */
    }
    /* Release: the duties, or what was cancelled, before the count that tells of them. */
    fl_add_release(&sched->roster, 1);
}

/* Everybody looks again, those that are away too. */
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
    uint32_t before = fl_load_relaxed(&w->duties); /* these bits change under the lock alone */
    bool changes = ((before & duty) != 0) != is_set;
    if (changes) {
        uint32_t after = is_set ? before | duty : before & ~duty;
        bool was_away = (before & FL_DUTY_OFFLINE) != 0;
        if (!was_away) {
            fl_store_relaxed(&w->is_quiet, 0); /* before the duty that has the worker say so */
        }
        /* Release: as above. */
        fl_store_release(&w->duties, after);
        count_change(sched, was_away, (after & FL_DUTY_OFFLINE) != 0);
    }
    fl_mutex_unlock(&sched->slots_lock);
    if (changes) {
        fl_sched_wake_worker(sched, index);
        tell(sched);
    }
    return changes;
}

void fl_offline_cancelled(fl_sched *sched)
{
    fl_fence_seq_cst(); /* the cancellation, against a device that is being withdrawn */
    if (fl_load_relaxed(&sched->away_count) != 0) {
        fl_add_release(&sched->roster, 1);
        tell(sched);
    } else if (fl_load_relaxed(&sched->boarding) != 0) {
        fl_sched_wake(sched, sched->count); /* what is cancelled is no better left to others */
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
    /* Acquire: what ran on the device is over. */
    return fl_load_acquire(&w->is_quiet) != 0 ? FILCH_PRESENCE_WITHDRAWN : FILCH_PRESENCE_LEAVING;
}

uint64_t fl_offline_turn(fl_worker *w)
{
    const fl_device *device = w->device;
    if (FL_LIKELY(device->leaves_at >= device->returns_at)) {
        return FL_TIME_NEVER; /* it does not leave */
    }
    uint64_t t = fl_clock_now(&w->sched->core->clock);
    bool has_left = t >= device->leaves_at && t < device->returns_at;
    if (has_left != ((fl_load_relaxed(&w->duties) & FL_DUTY_LEFT) != 0)) {
        fl_offline_set(w->sched, w->index, FL_DUTY_LEFT, has_left);
    }
    return t < device->leaves_at    ? device->leaves_at
           : t < device->returns_at ? device->returns_at
                                    : FL_TIME_NEVER;
}

/* --- What others can do --- */

/* From one on that changes from call to call: a device that is there, other than the worker's, that
 * can run the task, which is ours. Null: none. */
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
    fl_worker_flush(w); /* the job may be over as soon as others have the task */
    fl_inbox_push(&other->moved, &task->link);
    fl_sched_wake_worker(w->sched, other->index);
    return true;
}

/* --- What nobody else knows of --- */

static void keep(fl_worker *w, fl_task *task)
{
    task->link.next = w->kept;
    w->kept = &task->link;
}

/* There is nothing to run of a task that is claimed. */
static void pass_over(fl_worker *w, fl_task *task, bool poisoned)
{
    fl_item item = {0};
    fl_worker_take(w, task, poisoned, &item);
    if (task->is_gate) {
        fl_item_pass(&item);
    }
    fl_worker_retire(w, &item);
}

/* A task that is claimed, and kept by nobody. Of those that another device had no room for, each
 * waits: it would only come back. Of one that is being combined, a part is here. */
static void settle_claimed(fl_worker *w, fl_task *task, bool poisoned)
{
    bool is_begun = task->combines && fl_task_extras(task)[0].reduction->current != 0;
    if (poisoned || fl_task_passes(task) || is_over(task)) {
        pass_over(w, task, poisoned);
    } else if (is_begun || task->moves != 0 || !fl_offline_give(w, task)) {
        keep(w, task);
    }
}

/* One that was just claimed. */
static void settle_new(fl_worker *w, fl_task *task, bool poisoned)
{
    if (task->predecessors != 0) {
        fl_store_relaxed(&task->pending, task->predecessors); /* as for one that runs */
    }
    settle_claimed(w, task, poisoned);
}

/* A ready task. */
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

/* Once it has changed who is there, what had no room elsewhere may have some. */
static void settle_kept(fl_worker *w, bool is_new)
{
    fl_full_gather(w);
    fl_link *link = w->kept;
    w->kept = NULL;
    while (link != NULL) {
        fl_link *next = link->next; /* before the task is another's */
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
    if (w->adopted != NULL) {
        fl_task *task = w->adopted;
        w->adopted = NULL;
        if (!fl_task_is_divided(task)) {
            settle_new(w, task, w->adopted_poisoned);
        } else if (!fl_divide_drop(w, task)) {
            settle_claimed(w, task, false); /* the only part: its link is free */
        }
    }
    for (fl_link *link = fl_inbox_drain(&w->inbox); link != NULL;) {
        fl_link *next = link->next; /* as above */
        settle_ready(w, fl_task_of_link(link));
        link = next;
    }
    while (fl_mailbox_take(&w->mailbox, &hint)) { /* its sender has the task in a deque, too */
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
    while (w->next_task != NULL) {
        fl_task *task = w->next_task;
        w->next_task = NULL;
        settle_ready(w, task);
    }
}

/* --- What is left where others find it --- */

/* Whether somebody who is there takes what a live hint leads to; only the set of devices may be
 * read. */
static bool is_taken(const fl_worker *w, uint64_t hint)
{
    return fl_hint_is_for_others(w, hint, true);
}

/* Of jobs that were cancelled there is nothing to wait for. */
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

/* Copies that were begun for tasks still to be given away may come from memory that is the caller's
 * again as soon as those are over. */
static bool is_fetched(fl_worker *w)
{
    fl_offload *offload = w->offload;
    bool all = true;
    for (int from = 0; from < 2 && offload != NULL && !w->device->is_synchronous; ++from) {
        if (offload->fetched[from] != 0 &&
            !w->device->backend->is_past(w->device, offload->fetched[from])) {
            all = false;
        } else {
            offload->fetched[from] = 0;
        }
    }
    return all;
}

void fl_offline_settle(fl_worker *w)
{
    if (w->frames != NULL || !is_fetched(w)) {
        return; /* the tile that waits needs what is here */
    }
    /* Acquire: pairs with the release of who counted the change. */
    uint64_t roster = fl_load_acquire(&w->sched->roster);
    bool is_new = roster != w->roster;
    w->roster = roster;
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
    if (is_new || w->pushed) {
        w->pushed = false;
        if (fl_deques_settle(w, is_taken, settle_new)) {
            fl_sched_wake(w->sched, w->sched->count);
        }
    }
}

/* Of what is kept: what is in the middle of something here, and what computes nothing. */
static fl_task *take_kept(fl_worker *w)
{
    for (fl_link **at = &w->kept; *at != NULL; at = &(*at)->next) {
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
    if (w->frames != NULL) {
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
    if (w->completed != NULL) {
        return FL_ACT_MORE;
    }
    w->ready_at = FL_TIME_NEVER;
    fl_account_idle(w);
    if (!is_fetched(w)) {
        w->wake_at = fl_clock_now(&w->sched->core->clock) + FETCHED_NAP_NS;
        return FL_ACT_WAIT;
    }
    w->wake_at = FL_TIME_NEVER;
    if (w->frames != NULL) {
        return FL_ACT_WAIT;
    }
    if (w->next_task != NULL || w->pushed) {
        return FL_ACT_MORE; /* what was settled made others ready */
    }
    /* Release: what ran is over; whoever asks may use the device. */
    fl_store_release(&w->is_quiet, 1);
    return FL_ACT_WAIT;
}
