/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/next.h"

#include "sched/account/account.h"
#include "sched/decide/locality.h"
#include "sched/execute/divide.h"
#include "sched/execute/nested_wait.h"
#include "sched/execute/pick.h"
#include "sched/execute/placed.h"
#include "sched/execute/reduce.h"
#include "sched/execute/shared_queue.h"
#include "sched/execute/window.h"
#include "sched/model/kind.h"
#include "sched/model/slowness.h"
#include "sched/ready/aside.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"
#include "sched/worker/wake.h"

/* Fills the item with a claimed task. In line: runs for every task. */
static inline __attribute__((always_inline)) void take_claimed(fl_worker *w, fl_task *task,
                                                               bool poisoned, fl_item *item)
{
    fl_worker_enter(w, task);
    filch_job *job = w->now.job;
    item->job = job;
    item->task = task;
    item->code = 0;
    item->is_refused = item->is_ahead = item->continues = item->is_graph = false;
    item->skip = poisoned;
    item->timed = false;
    if (w->sched->keeps_holders) {
        fl_kind_begin(w, task);
    }
    if (FL_UNLIKELY(fl_load_relaxed(&job->cancelled) != 0 && !poisoned && !fl_task_passes(task))) {
        item->skip = true;
        if (FL_LIKELY(!fl_task_is_divided(item->task))) {
            /* A divided task counts as left out only if a piece is left out. */
            fl_job_note_left_out(job);
        }
    }
}

void fl_worker_take(fl_worker *w, fl_task *task, bool poisoned, fl_item *item)
{
    take_claimed(w, task, poisoned, item);
}

/* Fills the item with a task from a range, the shared ready queue or the locality window: no second
 * worker knows the task. */
static void take_private(fl_worker *w, fl_item *item)
{
    if (FL_UNLIKELY(item->is_graph)) {
        fl_worker_switch(w, item->job, item->job->graph);
    } else if (item->task != NULL) {
        bool poisoned = FL_UNLIKELY(item->is_claimed) ? item->skip : fl_ready_own(item->task);
        take_claimed(w, item->task, poisoned, item);
    } else {
        /* Busy time of the job starts. */
        fl_worker_switch(w, item->job, NULL);
    }
}

/* --- Sources --- */

/* Picks a claimed task. Parts of divided tasks come first: other tasks may be waiting for memory
 * held by the parts. */
static __attribute__((noinline)) bool pick_claimed(fl_worker *w, fl_item *item)
{
    fl_task *task = fl_divide_part(w);
    bool poisoned = false;
    if (task == NULL) {
        task = fl_claimed_take(w);
        poisoned = task->is_poisoned;
        fl_slow_note_taken(w);
    }
    take_claimed(w, task, poisoned, item);
    return true;
}

/* Picks from the next-task slot, the inbox and the deques. In line: runs for every task. */
static inline __attribute__((always_inline)) bool pick_own(fl_worker *w, fl_item *item)
{
    fl_task *task;
    bool poisoned;
    if (!fl_ready_take(w, &task, &poisoned)) {
        return false;
    }
    take_claimed(w, task, poisoned, item);
    return true;
}

static bool pick_mail(fl_worker *w, fl_item *item)
{
    fl_task *task;
    bool poisoned;
    if (!w->sched->mails || !fl_ready_take_mail(w, &task, &poisoned)) {
        return false;
    }
    take_claimed(w, task, poisoned, item);
    return true;
}

static bool pick_shared(fl_worker *w, fl_item *item)
{
    /* Relaxed: a thread putting the first task into the shared ready queue wakes every worker. */
    if (!fl_sched_attends(w->sched, FL_ATTEND_SHARED) || !fl_shared_queue_pick(w, item)) {
        return false;
    }
    take_private(w, item);
    return true;
}

/* Picks tasks offered by mail or by the shared ready queue. */
static __attribute__((noinline)) bool pick_offered(fl_worker *w, fl_item *item)
{
    return pick_mail(w, item) || pick_shared(w, item);
}

static bool pick_window(fl_worker *w, fl_item *item)
{
    if (w->offload == NULL || w->offload->window_count == 0) {
        return false;
    }
    fl_window_take(w, item);
    take_private(w, item);
    return true;
}

/* Picks from the ranges of active jobs. */
static bool pick_range(fl_worker *w, bool may_begin, fl_item *item)
{
    if (!fl_pick_range(w, may_begin, item)) {
        return false;
    }
    take_private(w, item);
    return true;
}

/* Picks from the ranges beside tasks in the locality window, which precede work not yet begun.
 * Roots come in groups, when few tasks are left in the window. */
static __attribute__((noinline)) bool pick_beside_window(fl_worker *w, fl_item *item)
{
    bool is_full = fl_locality_room(w, FL_LOCALITY_WINDOW) == 1;
    return (!is_full && pick_range(w, false, item)) || pick_window(w, item);
}

/* Picks a task that a policy left to anyone. */
static bool pick_common(fl_worker *w, fl_item *item)
{
    if (FL_LIKELY(!fl_rules_place(&w->sched->rules)) || !fl_placed_pick(w, item)) {
        return false;
    }
    take_private(w, item);
    return true;
}

/* Whether a worker that is in no deep wait may have a task set aside. Under the static policy a
 * task goes to its own device, unless the device starts nothing, or the worker waits. */
static bool may_have_aside(const fl_worker *w, const fl_task *task, const void *user)
{
    (void)user;
    bool is_bound = w->sched->policy == FILCH_POLICY_STATIC && w->now.frames == NULL &&
                    task->home != 0 && task->home != w->index + 1;
    return fl_worker_can_run(w, task) &&
           (!is_bound || fl_worker_is_unavailable(&w->sched->workers[task->home - 1]));
}

static bool pick_aside(fl_worker *w, fl_item *item)
{
    if (!fl_item_set_claimed(item, fl_aside_take(w, may_have_aside, NULL))) {
        return false;
    }
    take_private(w, item);
    return true;
}

static bool pick_unbegun(fl_worker *w, fl_item *item)
{
    if (FL_UNLIKELY(w->offload != NULL && w->offload->window_count != 0)) {
        return pick_beside_window(w, item);
    }
    return pick_range(w, true, item) || pick_common(w, item) || pick_aside(w, item);
}

/* --- Nested waits --- */

/* Claims the newest task made ready on the worker since the wait began. */
static bool take_since(fl_worker *w, fl_task **task, bool *poisoned)
{
    const fl_frame *wait = w->now.frames;
    fl_ready_unslot(w);
    for (uint32_t mask = w->ready.mask; mask != 0;) {
        uint32_t level = 31u - (uint32_t)__builtin_clz(mask);
        if (fl_ready_pop_level(w, level, wait->floors[level], task, poisoned)) {
            return true;
        }
        mask &= ~(1u << level);
    }
    return false;
}

/* Picks a task made ready on the worker since the wait began. Older tasks might wait in turn, in
 * unlimited number, on our stack. */
static bool pick_since(fl_worker *w, fl_item *item)
{
    fl_task *task;
    bool poisoned;
    if (!take_since(w, &task, &poisoned)) {
        return false;
    }
    take_claimed(w, task, poisoned, item);
    return true;
}

/* Picks a task of the goal made ready on the worker since the wait began. */
static bool pick_since_of_goal(fl_worker *w, fl_item *item)
{
    const fl_frame *wait = w->now.frames;
    fl_task *task;
    bool poisoned, any = false, found = false;
    while (!found && wait->worker == w && take_since(w, &task, &poisoned)) {
        found = task->graph->job == wait->goal;
        if (!found) {
            fl_aside_put(w->sched, task, poisoned);
            any = true;
        }
    }
    if (any) {
        fl_sched_wake(w->sched, w->sched->count);
    }
    if (found) {
        take_claimed(w, task, poisoned, item);
    }
    return found;
}

/* Picks from the ranges of the job waited for. */
static bool pick_goal(fl_worker *w, fl_item *item)
{
    if (w->now.frames->goal == NULL || !fl_nested_pick_goal(w, item)) {
        return false;
    }
    take_private(w, item);
    return true;
}

/* Picks work of the jobs that the goal stands behind. */
static bool pick_ahead(fl_worker *w, fl_item *item)
{
    if (!fl_nested_pick_ahead(w, item)) {
        return false;
    }
    take_private(w, item);
    return true;
}

/* Picks in a nested wait. *is_all: the wait takes nothing else. */
static __attribute__((noinline)) bool pick_in_wait(fl_worker *w, fl_item *item, bool *is_all)
{
    bool is_deep = fl_worker_is_deep(w), is_offline = fl_worker_is_offline(w);
    *is_all = true;
    if (is_offline && !is_deep) {
        fl_ready_drain(w);
    }
    if ((is_deep ? pick_since_of_goal(w, item) : pick_since(w, item)) || pick_goal(w, item)) {
        return true;
    }
    fl_worker_flush(w);
    if (w->now.completed != NULL) {
        /* The wait may be over: a further item would add a frame to the stack. */
        return false;
    }
    if (is_deep || is_offline) {
        /* The goal may need a task that no second worker can find, and so may the goals of other
         * waits. */
        return pick_ahead(w, item) ||
               (fl_nested_set_aside(w) && (pick_goal(w, item) || pick_ahead(w, item)));
    }
    *is_all = false;
    return false;
}

/* --- The order of the sources --- */

bool fl_item_admit(fl_worker *w, fl_item *item)
{
    const fl_task *task = item->task;
    if (FL_LIKELY(task == NULL ||
                  !(task->reduces || task->combines || task->begins || task->has_items))) {
        return true;
    }
    return (!fl_task_has_partials(task) || fl_reduce_admit(w, item)) &&
           (!item->task->has_items || fl_divide_admit(w, item));
}

static bool pick(fl_worker *w, fl_item *item)
{
    if (FL_UNLIKELY(!fl_inbox_is_empty(&w->queues.claimed))) {
        fl_claimed_gather(w);
    }
    if (FL_UNLIKELY(w->ready.claimed != NULL && fl_worker_is_deep(w))) {
        fl_nested_set_claimed_aside(w);
    }
    if (FL_UNLIKELY(w->ready.claimed != NULL || w->ready.part != NULL)) {
        return pick_claimed(w, item);
    }
    if (FL_UNLIKELY(w->now.frames != NULL)) {
        bool is_all, any = pick_in_wait(w, item, &is_all);
        if (any || is_all) {
            return any;
        }
    }
    if (w->offload != NULL && fl_window_gather(w)) {
        return pick_beside_window(w, item);
    }
    /* Offers precede ranges: graphs in progress come before jobs not yet begun. Relaxed: as in
     * pick_shared. */
    return pick_own(w, item) ||
           (fl_sched_attends(w->sched, FL_ATTEND_OFFERS) && pick_offered(w, item)) ||
           pick_unbegun(w, item) || (FL_UNLIKELY(w->now.frames != NULL) && pick_ahead(w, item));
}

bool fl_worker_pick(fl_worker *w, fl_item *item)
{
    while (pick(w, item)) {
        if (fl_item_admit(w, item)) {
            return true;
        }
    }
    return false;
}
