/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/placement.h"

#include "sched/decide/slow.h"
#include "sched/model/cost.h"
#include "sched/model/explore.h"
#include "sched/model/missing.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

double fl_placement_way_ns(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    if (task->is_gate || !w->sched->mails || !fl_worker_computes(w) || !fl_worker_computes(other) ||
        other->device->place == w->device->place || fl_worker_is_unavailable(other) ||
        fl_slow_is_on(other) || !fl_worker_can_run(other, task)) {
        return 0;
    }
    double own = fl_cost_of_task(w, task); /* 0: not known yet */
    if (own > 0 && own <= FL_SHORT_NS) {
        own = FL_WAKE_UP_NS; /* the hand-over costs more than the task */
    }
    double longer = fl_missing_haul(w, task).in_ns - fl_missing_haul(other, task).in_ns;
    return longer > own ? longer : 0;
}

bool fl_placement_is_dear(const fl_worker *w, const fl_task *task)
{
    return task->home != 0 && fl_placement_way_ns(w, &w->sched->workers[task->home - 1], task) > 0;
}

/* Decides about a ready task whose home is a different device. */
static fl_placement for_home(const fl_worker *w, const fl_task *task)
{
    fl_worker *home = &w->sched->workers[task->home - 1];
    if (w->sched->policy == FILCH_POLICY_STATIC || !fl_worker_can_run(w, task)) {
        return (fl_placement){.kind = FL_PLACEMENT_ROUTE};
    }
    if (home->device->place == w->device->place || fl_worker_is_unavailable(home) ||
        fl_slow_is_on(home)) {
        /* As good as the home, or better: theft balances the load. */
        return (fl_placement){.kind = FL_PLACEMENT_HERE};
    }
    return (fl_placement){fl_placement_is_dear(w, task) ? FL_PLACEMENT_GIVE : FL_PLACEMENT_HINT,
                          home};
}

bool fl_worker_is_outdone(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    if (!w->device->is_synchronous || other->device->is_synchronous || task->is_gate ||
        fl_worker_is_unavailable(other) || !fl_worker_can_run(other, task)) {
        return false;
    }
    double own = fl_cost_of_task(w, task), theirs = fl_cost_of_task(other, task);
    int64_t waiting = 0;
    for (uint32_t level = 0; level < FL_LEVELS && own > FL_LEFT_FROM_NS; ++level) {
        waiting += fl_deque_size(&other->queues.levels[level]);
    }
    double before = (double)waiting * fl_worker_mean_ns(other);
    return own > FL_LEFT_FROM_NS && theirs > 0 &&
           FL_FASTER * fl_cost_finish(before, 0, theirs, 0) < own;
}

/* Finds a faster device for a task. A core would keep a successor of a completed task. Further
 * successors would wait a hundred times as long as with a GPU in the machine. */
static fl_placement for_faster(const fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    for (uint32_t i = 0; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(task->order + i) % sched->count];
        if (fl_worker_is_outdone(w, other, task)) {
            return (fl_placement){
                fl_explore_keeps(w, other, task) ? FL_PLACEMENT_EXPLORE : FL_PLACEMENT_GIVE, other};
        }
    }
    return (fl_placement){.kind = FL_PLACEMENT_HERE};
}

fl_placement fl_placement_of(const fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    bool is_static = sched->policy == FILCH_POLICY_STATIC;
    if (task->home == 0 && sched->mails && w->device->is_synchronous && !is_static) {
        return for_faster(w, task);
    }
    if (task->home != 0 && task->home != w->index + 1 && (sched->mails || is_static)) {
        return for_home(w, task);
    }
    return (fl_placement){.kind = FL_PLACEMENT_HERE};
}
