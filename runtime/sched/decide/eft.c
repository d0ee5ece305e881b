/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses tasks from the shared ready queue by earliest finish time (EFT). A free device takes, by
 * prediction:
 *
 * - the first task that the device would finish first, assuming that every earlier task has gone to
 *   the device finishing the earlier task first. Fast devices thus get urgent tasks, and a slow
 *   device begins no task that a fast device would finish sooner. List schedulers use the rule:
 *   H. Topcuoglu, S. Hariri, M. Wu, "Performance-effective and low-complexity task scheduling for
 *   heterogeneous computing", IEEE Trans. Parallel and Distributed Systems 13, 2002. The rule is
 *   applied anew whenever a device is free: a wrong prediction costs one task;
 * - otherwise the least urgent task with slack: the chain of its successors, on the fastest device,
 *   ends before the devices together finish the rest of the graph. Few tasks are ready compared
 *   with the tasks to come, and a slow device waiting for many ready tasks would mostly wait. The
 *   rule needs more than a few ready tasks: the remaining devices would otherwise wait for the
 *   slow device.
 *
 * A GPU is free while one of its lanes is. A GPU takes a next task behind a computing task when the
 * gap between the two would cost more than a late choice saves. A device without measurements
 * explores the least urgent task. A device that once was faster explores now and then. */
#include "sched/decide/eft.h"

#include <math.h>

#include "sched/model/cost.h"
#include "sched/model/critical.h"
#include "sched/model/explore.h"
#include "sched/model/timeline.h"
#include "sched/worker/device.h"
#include "sched/worker/tuning.h"

uint32_t fl_eft_depth(const fl_worker *w)
{
    uint32_t lanes = fl_timeline_lanes(w);
    double mean = fl_worker_mean_ns(w);
    if (mean > 0 && mean <= FL_SHORT_NS) {
        return UINT32_MAX; /* items end too soon for the depth to matter */
    }
    return fl_worker_computes(w) && mean < FL_EFT_FOLLOWED_NS ? FL_DEPTH_OF_LANE * lanes : lanes;
}

/* Finds the first task that the worker can run, from the urgent or from the least urgent end. */
static bool find_any(const fl_worker *w, bool is_upwards, fl_ranked_spot *spot)
{
    *spot = (fl_ranked_spot){0};
    while (fl_ranked_step(&w->sched->shared_queue->tasks, spot, is_upwards)) {
        if (fl_worker_can_run(w, fl_task_of_link(spot->link))) {
            return true;
        }
    }
    return false;
}

/* Prefers, among the next tasks from the spot on, a task whose home is the worker's device. */
static void prefer_own(const fl_worker *w, fl_ranked_spot *spot)
{
    fl_ranked_spot at = *spot;
    for (uint32_t i = 0; i < FL_EFT_MOST_SLACK && at.link != NULL; ++i) {
        const fl_task *task = fl_task_of_link(at.link);
        if (task->home == w->index + 1 && fl_worker_can_run(w, task)) {
            *spot = at;
            return;
        }
        at.before = at.link;
        at.link = at.link->next;
    }
}

/* Relaxed: a stale value only means that the task is weighed as usual. */
static bool is_cancelled(const fl_task *task)
{
    return fl_load_relaxed(&task->graph->job->cancelled) != 0;
}

/* Finds the first urgent task that is cancelled or that the worker ends before every competitor. */
static bool find_urgent(const fl_worker *w, uint64_t t, fl_eft_choice *choice)
{
    const fl_sched *sched = w->sched;
    fl_ranked_spot *spot = &choice->spot;
    uint32_t most = FL_EFT_MOST_WEIGHED / sched->count;
    most = most < FL_EFT_LEAST_URGENT ? FL_EFT_LEAST_URGENT
           : most < FL_TASKS_SEEN     ? most
                                      : FL_TASKS_SEEN;
    *spot = (fl_ranked_spot){0};
    while (most-- > 0 && fl_ranked_step(&sched->shared_queue->tasks, spot, false)) {
        double ns = 0;
        const fl_task *task = fl_task_of_link(spot->link);
        uint32_t best = fl_timeline_first(sched, task, &ns);
        if (best == w->index || (is_cancelled(task) && fl_worker_can_run(w, task))) {
            return true;
        }
        if (best != UINT32_MAX) {
            if (fl_timeline_call(sched, best, t)) {
                choice->called[best / 64] |= (uint64_t)1 << best % 64;
            }
            fl_timeline_expect(sched, best, ns);
        }
    }
    return false;
}

/* Finds the least urgent task with slack: run by the worker, the task does not delay the graph's
 * end. */
static bool find_spare(const fl_worker *w, const fl_outlay *outlay, fl_ranked_spot *spot)
{
    const fl_sched *sched = w->sched;
    const fl_shared_queue *shared = sched->shared_queue;
    double top = (64 - __builtin_clzll(shared->tasks.ranks)) / (double)FL_RANKS;
    *spot = (fl_ranked_spot){0};
    for (uint32_t i = 0; i < FL_EFT_MOST_SLACK && fl_ranked_step(&shared->tasks, spot, true); ++i) {
        const fl_task *task = fl_task_of_link(spot->link);
        const filch_graph *graph = task->graph;
        fl_critical rank = fl_critical_of(task);
        if (!fl_worker_can_run(w, task) || !(rank.own > 0)) {
            continue;
        }
        double least = fl_timeline_least(sched, task),
               unit = least / rank.own; /* ns per unit of rank */
        double left = fl_critical_left(graph) * unit;
        double end = fmax((left + outlay->in_work) / outlay->all, outlay->longest);
        end = fmax(end, top * (double)graph->rank_most * unit);
        double own = (1 + FL_SLOW_MARGIN) * fl_cost_of_any(w, task);
        if (fl_cost_finish(0, 0, own, rank.after * unit) <= end) {
            return true;
        }
    }
    return false;
}

/* Explores whether the device is as fast again as before: no other measurement would ever tell. */
static bool tries(const fl_worker *w, fl_eft_choice *choice)
{
    double mean = fl_worker_mean_ns(w), once = w->theft.explore.best;
    choice->explores = once > 0 && mean >= FL_FASTER * once && fl_explore_is_due(w, mean) &&
                       find_any(w, true, &choice->spot);
    return choice->explores;
}

/* Chooses a task. True: the task at choice->spot is for the worker. */
static bool find(const fl_worker *w, uint64_t t, fl_eft_choice *choice)
{
    const fl_sched *sched = w->sched;
    const fl_shared_queue *shared = sched->shared_queue;
    const fl_timeline *timeline = fl_timeline_of(w);
    fl_ranked_spot *spot = &choice->spot;
    if (!find_any(w, false, spot)) {
        return false;
    }
    const fl_task *first = fl_task_of_link(spot->link);
    fl_timeline_survey(w, t, first);
    fl_outlay outlay = fl_timeline_sum(sched, t);
    /* A device without a free lane takes urgent tasks only: a device that becomes free meanwhile
     * might take the task sooner. */
    bool is_free = timeline->count + timeline->others < fl_timeline_lanes(w);
    if (fl_worker_mean_ns(w) == 0 && shared->tasks.count > 1) {
        return is_free && find_any(w, true, spot);
    }
    if (find_urgent(w, t, choice)) {
        return true;
    }
    if (is_free && shared->tasks.count > FL_EFT_LEFT_FOR_OTHERS &&
        (find_spare(w, &outlay, spot) || tries(w, choice))) {
        return true;
    }
    if (is_free) {
        double ns = fmax(fl_cost_of_any(w, first) / FL_LOOK_AGAIN_OF_TIME, FL_LOOK_AGAIN_NS);
        choice->look_at = t + (uint64_t)fmin(ns, 0x1p60);
    }
    choice->leaves_all = true;
    return false;
}

void fl_eft_choose(const fl_worker *w, uint64_t t, fl_eft_choice *choice)
{
    choice->is_found = find(w, t, choice);
    if (choice->is_found) {
        prefer_own(w, &choice->spot);
    }
}

bool fl_eft_wins(const fl_worker *w, uint64_t t, const fl_task *task)
{
    double ns = 0;
    fl_timeline_survey(w, t, task);
    fl_timeline_follow(w, t);
    return fl_timeline_first(w->sched, task, &ns) == w->index;
}
