/* SPDX-License-Identifier: Apache-2.0 */
/* Step of a worker whose device failed. Work for healthy devices stays available: hints and ranges
 * stay until taken, and tasks known to the worker only are routed away. The remaining work fails
 * with the device's error. Further devices may fail later; every step therefore looks again. */
#include "sched/execute/failed.h"

#include "sched/decide/locality.h"
#include "sched/execute/divide.h"
#include "sched/execute/full.h"
#include "sched/execute/offline.h"
#include "sched/execute/pick.h"
#include "sched/execute/step.h"
#include "sched/ready/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/wake.h"

/* Tells whether a device still answering can run our task; under the static policy a device's work
 * stays with the device. */
static bool others_can(const fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    for (uint32_t d = 0; d < sched->count && sched->policy != FILCH_POLICY_STATIC; ++d) {
        const fl_worker *other = &sched->workers[d];
        if (other != w && !fl_worker_has_failed(other) && fl_worker_can_run(other, task)) {
            return true;
        }
    }
    return false;
}

/* Tells whether a second device may take the hint's task. Without a number for the set of devices
 * no thief takes the task either. */
bool fl_hint_is_for_others(const fl_worker *w, uint64_t hint, bool now)
{
    const fl_sched *sched = w->sched;
    /* Acquire: orders the set before the set's number. */
    uint8_t able = fl_load_acquire(&fl_hint_task(hint)->able);
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *other = &sched->workers[d];
        bool is_there = now ? !fl_worker_is_unavailable(other) : !fl_worker_has_failed(other);
        if (d != w->index && is_there &&
            (!sched->mails || able == FL_ABLE_ALL ||
             (able != FL_ABLE_UNKNOWN && (sched->able[able][d / 64] >> d % 64 & 1) != 0))) {
            return true;
        }
    }
    return false;
}

/* Tells whether thieves take the task of the hint; under the static policy a device's work stays
 * with the device. */
static bool others_take(const fl_worker *w, uint64_t hint)
{
    return w->sched->policy != FILCH_POLICY_STATIC && fl_hint_is_for_others(w, hint, false);
}

/* --- Failing --- */

static void refuse(fl_worker *w, fl_item *item)
{
    if (!item->skip) {
        item->code = -1;
        item->is_refused = true;
        w->stall.error = w->stall.failure;
    }
    fl_worker_retire(w, item);
}

/* Fails a task claimed earlier and put off. The pending count was reset at the claim. Finished
 * predecessors of a task claimed ahead (lookahead.c) may not have counted down yet. A second reset
 * would add their decrements to the next run. */
static void refuse_claimed(fl_worker *w, fl_task *task, bool poisoned)
{
    fl_item item = {0};
    fl_worker_take(w, task, poisoned, &item);
    if (task->is_gate) {
        fl_item_pass(&item);
    }
    refuse(w, &item);
}

/* Fails a ready task claimed just now. */
static void refuse_task(fl_worker *w, fl_task *task, bool poisoned)
{
    if (task->predecessors != 0) {
        /* Reset as for a task that runs. */
        fl_store_relaxed(&task->pending, task->predecessors);
    }
    refuse_claimed(w, task, poisoned);
}

/* Settles a ready task known to the worker only. */
static void settle_task(fl_worker *w, fl_task *task)
{
    if (!fl_task_passes(task) && others_can(w, task)) {
        fl_sched_route(w->sched, task);
    } else {
        refuse_task(w, task, fl_task_own(task));
    }
}

/* Settles a task of the locality window (locality.c). */
static void settle_kept(fl_worker *w, const fl_item *item)
{
    fl_task *task = item->task;
    if (!item->is_claimed) {
        settle_task(w, task);
        return;
    }
    if (task->predecessors != 0) {
        /* Reset before the task goes to a second worker. */
        fl_store_relaxed(&task->pending, task->predecessors);
    }
    /* A combining task already begun has a part of the result on the device. */
    bool is_begun = task->combines && fl_task_extras(task)[0].reduction->current != 0;
    bool may_move = !item->skip && !is_begun && w->sched->policy != FILCH_POLICY_STATIC;
    if (!may_move || !fl_offline_give(w, task)) {
        refuse_claimed(w, task, item->skip);
    }
}

/* --- Work left on the device --- */

static bool is_live(uint64_t hint)
{
    /* Relaxed: a claim looks again. */
    uint64_t word = fl_load_relaxed(&fl_hint_task(hint)->word);
    return (fl_word_epoch(word) & FL_HINT_EPOCH_MASK) == (uint32_t)(hint & FL_HINT_EPOCH_MASK);
}

/* Turns a deque over once, from the thieves' end. An entry for healthy devices goes to the owner's
 * end; the push finds room, because an entry left before. True: entries for healthy devices
 * remain. */
static bool settle_deque(fl_worker *w, uint32_t level, fl_hint_fn stays, fl_settle_fn settle)
{
    fl_deque *deque = &w->queues.levels[level];
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
        if (!is_live(hint)) {
            continue;
        }
        if (stays(w, hint) && fl_deque_push(deque, hint)) {
            is_wanted = true;
        } else if (fl_task_claim(hint, &task, &poisoned)) {
            settle(w, task, poisoned);
        }
    }
    return is_wanted;
}

bool fl_deques_settle(fl_worker *w, fl_hint_fn stays, fl_settle_fn settle)
{
    bool is_wanted = false;
    for (uint32_t level = FL_LEVELS; level-- > 0;) {
        is_wanted = settle_deque(w, level, stays, settle) || is_wanted;
    }
    return is_wanted;
}

/* Settles the job's range. True: the range has work for healthy devices. */
static bool settle_range(fl_worker *w, filch_job *job)
{
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    uint32_t lo, hi;
    if (job->batch == NULL) {
        while (fl_range_take(&fl_job_share(job, w->index)->range, 1, &lo, &hi)) {
            settle_task(w, job->graph->roots[lo]);
        }
        return false;
    }
    if (!is_cancelled && w->sched->policy != FILCH_POLICY_STATIC && fl_full_others(w, job)) {
        return fl_pieces_rest(w, job) != 0;
    }
    while (fl_pieces_take_any(w, job, &lo, &hi)) {
        fl_item item = {.job = job, .lo = lo, .hi = hi, .skip = is_cancelled};
        refuse(w, &item);
    }
    return false;
}

static bool settle_ranges(fl_worker *w)
{
    fl_sched *sched = w->sched;
    bool is_wanted = false;
    for (uint32_t word = 0; word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Acquire: a set bit's slot is filled. */
        uint64_t bits = fl_load_acquire(&sched->active[word]);
        while (bits != 0) {
            uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            filch_job *job = fl_worker_visit(w, slot);
            is_wanted = (job != NULL && settle_range(w, job)) || is_wanted;
        }
    }
    return is_wanted;
}

static bool is_left(const fl_worker *w, const fl_task *task)
{
    return !others_can(w, task);
}

/* Settles tasks known to the worker only, tasks sent to the worker, and tasks open to every device
 * that no device can run. */
static void settle_own(fl_worker *w)
{
    uint64_t hint;
    while (w->ready.kept != NULL) {
        fl_link *link = w->ready.kept;
        w->ready.kept = link->next;
        refuse_claimed(w, fl_task_of_link(link), false);
    }
    for (fl_link *link = fl_inbox_drain(&w->queues.moved); link != NULL;) {
        /* Read first, as for the inbox. */
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        if (fl_task_is_divided(task) || !fl_full_move(w, task)) {
            refuse_claimed(w, task, false);
        }
        link = next;
    }
    if (w->ready.adopted != NULL) {
        fl_task *task = w->ready.adopted;
        w->ready.adopted = NULL;
        if (fl_task_is_divided(task)) {
            refuse_claimed(w, task, false);
        } else {
            refuse_task(w, task, w->ready.adopted_poisoned);
        }
    }
    for (fl_link *link = fl_inbox_drain(&w->queues.inbox); link != NULL;) {
        /* Read first: the task may go to a second worker. */
        fl_link *next = link->next;
        settle_task(w, fl_task_of_link(link));
        link = next;
    }
    /* The sender has the task in a deque, too. */
    while (fl_mailbox_take(&w->queues.mailbox, &hint)) {
    }
    while (w->offload != NULL && w->offload->window_count != 0) {
        fl_item item;
        fl_locality_take(w, &item);
        settle_kept(w, &item);
    }
    for (fl_task *task; (task = fl_policy_drop(w, is_left)) != NULL;) {
        refuse_task(w, task, fl_task_own(task));
    }
    for (fl_task *task; (task = fl_shared_queue_drop(w, is_left)) != NULL;) {
        refuse_task(w, task, fl_task_own(task));
    }
    /* A failing task makes successors ready. */
    while (w->ready.next_task != NULL) {
        fl_task *task = w->ready.next_task;
        w->ready.next_task = NULL;
        settle_task(w, task);
    }
}

fl_act fl_failed_step(fl_worker *w)
{
    settle_own(w);
    bool is_wanted = settle_ranges(w);
    is_wanted = fl_deques_settle(w, others_take, refuse_task) || is_wanted;
    is_wanted = fl_shared_queue_leave(w) || is_wanted;
    bool again = w->ready.next_task != NULL;
    fl_worker_flush(w);
    fl_worker_leave(w);
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
