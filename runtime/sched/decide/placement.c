/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of a ready task on a device other than the releasing worker's, where devices differ or
 * a policy places tasks. */
#include "sched/decide/placement.h"

#include "sched/decide/shared_queue.h"
#include "sched/decide/slow.h"
#include "sched/model/explore.h"
#include "sched/model/speed.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* Handles a ready task whose home is a different device. True: the task is dealt with. */
static bool send_home(fl_worker *w, fl_task *task)
{
    fl_sched *sched = w->sched;
    fl_worker *home = &sched->workers[task->home - 1];
    if (sched->policy == FILCH_POLICY_STATIC || !fl_worker_can_run(w, task)) {
        fl_sched_route(sched, task);
        return true;
    }
    if (home->device->place == w->device->place || fl_worker_is_unavailable(home) ||
        fl_slow_is_on(home)) {
        return false; /* as good as the home, or better: theft balances the load */
    }
    /* Makes the hint before the push: a thief may own the task afterwards. Relaxed: the worker
     * still owns the task. */
    uint64_t hint = fl_hint_make(task, fl_load_relaxed(&task->word));
    fl_ready_push(w, task);
    if (fl_mailbox_put(&home->queues.mailbox, hint)) {
        fl_sched_wake_worker(sched, home->index);
    }
    return true;
}

/* Predicts the time of a task on the device, ns; 0: not measured. Estimates: no order. */
static double task_ns(const fl_worker *w, const fl_task *task)
{
    return fl_speed_time(fl_codelet_speed(task->codelet, w->index), (double)task->work);
}

bool fl_worker_is_outdone(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    if (!w->device->is_synchronous || other->device->is_synchronous || task->is_gate ||
        fl_worker_is_unavailable(other) || !fl_worker_can_run(other, task)) {
        return false;
    }
    double own = task_ns(w, task), theirs = task_ns(other, task);
    int64_t waiting = 0;
    for (uint32_t level = 0; level < FL_LEVELS && own > FL_LEFT_FROM_NS; ++level) {
        waiting += fl_deque_size(&other->queues.levels[level]);
    }
    double before = (double)waiting * fl_bits_double(fl_load_relaxed(&other->queues.item_ns));
    return own > FL_LEFT_FROM_NS && theirs > 0 && FL_LEFT_IF_FASTER * (before + theirs) < own;
}

/* Leaves a task to a faster device; true: done. A core would keep a successor of a completed task.
 * Further successors would wait a hundred times as long as with a GPU in the machine. */
static bool leave_to_faster(fl_worker *w, fl_task *task)
{
    fl_sched *sched = w->sched;
    for (uint32_t i = 0; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(task->order + i) % sched->count];
        if (fl_worker_is_outdone(w, other, task)) {
            if (fl_explore_keeps(w, other, task)) {
                return false;
            }
            fl_inbox_push(&other->queues.inbox, &task->link);
            fl_sched_wake_worker(sched, other->index);
            return true;
        }
    }
    return false;
}

bool fl_worker_sends(fl_worker *w, fl_task *task)
{
    const fl_sched *sched = w->sched;
    if (sched->shared_queue != NULL && fl_shared_queue_put(w->sched, w, task)) {
        return true;
    }
    if (fl_rules_place(&sched->rules)) {
        fl_placed placed = fl_policy_place(w->sched, w, task);
        if (placed != FL_PLACED_AUTO) {
            return placed == FL_PLACED_AWAY;
        }
    }
    if (fl_slow_sends(w, task)) {
        return true;
    }
    if (task->home == 0) {
        return sched->mails && w->device->is_synchronous && sched->policy != FILCH_POLICY_STATIC &&
               leave_to_faster(w, task);
    }
    return task->home != w->index + 1 && (sched->mails || sched->policy == FILCH_POLICY_STATIC) &&
           send_home(w, task);
}
