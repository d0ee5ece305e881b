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
#include "sched/model/eft.h"

#include <math.h>

#include "sched/account/ledger.h"
#include "sched/decide/depth.h"
#include "sched/model/explore.h"
#include "sched/model/predict.h"
#include "sched/model/speed.h"
#include "sched/worker/device.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/timeline.h"
#include "sched/worker/tuning.h"

static fl_timeline *seat_of(const fl_worker *w)
{
    return &w->sched->shared_queue->timelines[w->index];
}

/* --- Predictions --- */

/* Guesses ns for a codelet not measured on the device: by the score and a second device's
 * measurement, or by the device's own mean. Takes the smaller, because a first task that took too
 * long must not be the device's last. */
static double guess(const fl_worker *w, const fl_task *task, double work)
{
    const fl_sched *sched = w->sched;
    double score = fmax(sched->scores[w->index], FL_SCORE_LEAST), mean = fl_eft_mean(w);
    double ns = fl_sched_ns(sched, task->codelet, w->index) * work;
    if (mean > 0) {
        return ns > 0 && ns < mean ? ns : mean;
    }
    for (uint32_t d = 0; ns <= 0 && d < sched->count; ++d) {
        ns = fl_eft_mean(&sched->workers[d]) * sched->scores[d] / score;
    }
    return ns > 0 ? ns : work * FL_WORK_USUAL_NS / score;
}

double fl_eft_ns(const fl_worker *w, const fl_task *task)
{
    const fl_speed *speed = fl_codelet_speed(task->codelet, w->index);
    double work = task->work > 0 ? (double)task->work : 1;
    double ns = fl_speed_get(speed) > 0 ? fl_speed_time(speed, work) : guess(w, task, work);
    return ns > 1 ? ns : 1;
}

uint32_t fl_eft_depth(const fl_worker *w)
{
    uint32_t lanes = fl_eft_lanes(w);
    double mean = fl_eft_mean(w);
    if (mean > 0 && mean <= FL_SHORT_NS) {
        return UINT32_MAX; /* items end too soon for the depth to matter */
    }
    return w->device->backend->lane != NULL && mean < FL_EFT_FOLLOWED_NS
               ? FL_EFT_DEPTH_OF_LANE * lanes
               : lanes;
}

/* Tells whether the device takes ready tasks. A worker deep in nested waits may ask for tasks, but
 * no device waits for the worker. */
static bool is_there(const fl_worker *w, uint64_t t, bool asks)
{
    return !fl_worker_is_unavailable(w) && w->device->joins_at <= t &&
           (asks || fl_load_relaxed(&w->signals.nested) <= FL_DEEP_WAIT); /* an estimate */
}

static void longest_below(fl_task *successor, void *user)
{
    float *longest = user;
    *longest = successor->rank > *longest ? successor->rank : *longest;
}

/* Returns the part of a task's rank that is the task's own. */
static double own_rank(const fl_task *task)
{
    float longest = 0;
    if (task->graph->rank_most <= 0) {
        return 0;
    }
    if (task->successor_count != 0) {
        fl_graph_each_successor(task, longest_below, &longest);
    }
    return (double)(task->rank - longest);
}

/* --- Timelines --- */

void fl_eft_arrive(fl_worker *w)
{
    fl_timeline *timeline = seat_of(w);
    /* Retired tasks count as the tasks with the earliest predicted ends. */
    uint32_t left = fl_eft_in_flight(w);
    uint32_t over = timeline->count > left ? timeline->count - left : 0;
    timeline->count -= over;
    for (uint32_t i = 0; i < timeline->count && over != 0; ++i) {
        timeline->due[i] = timeline->due[i + over];
    }
    timeline->others = left - timeline->count;
    timeline->is_held = false;
    if (timeline->called_for != w->sched->shared_queue->changes) {
        timeline->called_at = 0; /* kept otherwise: the device answers the call */
    }
}

/* Tells whether a second device left a task to the worker, and the queue is unchanged since. */
static bool is_called(const fl_worker *w)
{
    const fl_timeline *timeline = seat_of(w);
    return timeline->called_at != 0 && timeline->called_for == w->sched->shared_queue->changes;
}

/* Leaves a task to a device. A free device may sleep and not know of the queue's task: the device
 * is woken, once per change of the queue. */
static void call(const fl_sched *sched, uint32_t device, uint64_t t)
{
    const fl_worker *w = &sched->workers[device];
    fl_timeline *timeline = seat_of(w);
    if (timeline->rest > 0 || is_called(w)) {
        return;
    }
    timeline->called_at = t != 0 ? t : 1; /* a virtual clock begins at 0 */
    timeline->called_for = sched->shared_queue->changes;
    sched->shared_queue->called[device / 64] |= (uint64_t)1 << device % 64;
}

/* Ns until one more task could begin on a device. A device busy for longer than predicted is
 * expected to need its delay again. A device busy with unknown work is expected to need its time up
 * to now again. */
static double time_to_free(const fl_worker *w, uint64_t t, bool asks)
{
    const fl_timeline *timeline = seat_of(w);
    uint32_t lanes = fl_eft_lanes(w);
    uint64_t since = t;
    if (timeline->count >= lanes) {
        uint64_t end = timeline->due[timeline->count - lanes].end;
        if (end > t) {
            return (double)(end - t);
        }
        since = end;
    } else if (timeline->count + timeline->others < lanes &&
               (asks || timeline->count != 0 ||
                fl_load_relaxed(&w->ledger.kind) != FL_SPELL_ON)) { /* estimates: no order */
        bool is_late = !asks && is_called(w);
        return is_late && t > timeline->called_at ? (double)(t - timeline->called_at) : 0;
    } else {
        since = fl_load_relaxed(&w->ledger.since);
    }
    return t > since ? (double)(t - since) + 1 : 1;
}

/* Ns that a device would need for its tasks in flight, per lane, if no task were added. */
static double backlog(const fl_worker *w, uint64_t t)
{
    const fl_timeline *timeline = seat_of(w);
    uint32_t lanes = fl_eft_lanes(w);
    double sum = 0;
    if (timeline->count == 0) {
        return timeline->rest;
    }
    for (uint32_t i = timeline->count > lanes ? timeline->count - lanes : 0; i < timeline->count;
         ++i) {
        sum += timeline->due[i].end > t ? (double)(timeline->due[i].end - t) : 0;
    }
    return fmax(sum / lanes, timeline->rest);
}

/* Surveys every device: time until free, and speed at the task. Unmeasured devices count only for
 * an asker that is unmeasured, too. */
static void survey(const fl_worker *asker, uint64_t t, const fl_task *task)
{
    fl_sched *sched = asker->sched;
    bool is_known = fl_eft_mean(asker) > 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        fl_timeline *timeline = &sched->shared_queue->timelines[d];
        bool counts = is_there(w, t, w == asker) && fl_worker_can_run(w, task) &&
                      (!is_known || fl_eft_mean(w) > 0);
        timeline->rest = time_to_free(w, t, w == asker);
        timeline->speed = counts ? 1 / fl_eft_ns(w, task) : 0;
    }
}

/* --- Choosing --- */

/* Returns the device that ends the task first, after its tasks in flight; UINT32_MAX: no device is
 * available. */
static uint32_t first_to_end(const fl_sched *sched, const fl_task *task, double *ns)
{
    uint32_t best = UINT32_MAX;
    double soonest = INFINITY;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        const fl_timeline *timeline = &sched->shared_queue->timelines[d];
        if (timeline->speed == 0 || !fl_worker_can_run(w, task)) {
            continue;
        }
        double own = fl_eft_ns(w, task), end = timeline->rest + own;
        if (end < soonest * (1 - FL_TIE) || best == UINT32_MAX) {
            soonest = end;
            best = d;
            *ns = own / fl_eft_lanes(w);
        }
    }
    return best;
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
static bool find_urgent(fl_worker *w, uint64_t t, fl_ranked_spot *spot)
{
    fl_sched *sched = w->sched;
    uint32_t most = FL_EFT_MOST_WEIGHED / sched->count;
    most = most < FL_EFT_LEAST_URGENT  ? FL_EFT_LEAST_URGENT
           : most < FL_EFT_MOST_URGENT ? most
                                       : FL_EFT_MOST_URGENT;
    *spot = (fl_ranked_spot){0};
    while (most-- > 0 && fl_ranked_step(&sched->shared_queue->tasks, spot, false)) {
        double ns = 0;
        const fl_task *task = fl_task_of_link(spot->link);
        uint32_t best = first_to_end(sched, task, &ns);
        if (best == w->index || (is_cancelled(task) && fl_worker_can_run(w, task))) {
            return true;
        }
        if (best != UINT32_MAX) {
            call(sched, best, t);
            sched->shared_queue->timelines[best].rest += ns;
        }
    }
    return false;
}

/* Remaining work of the graph, at the time of a survey. */
typedef struct fl_outlay {
    double speed;   /* speed of the fastest device */
    double all;     /* sum of the devices' speeds, in fastest devices */
    double in_work; /* ns that the fastest device would need for the tasks in flight */
    double longest; /* ns until the last successor of the tasks in flight is over */
} fl_outlay;

static fl_outlay sum_up(const fl_sched *sched, uint64_t t)
{
    const fl_timeline *timelines = sched->shared_queue->timelines;
    fl_outlay sum = {0};
    for (uint32_t d = 0; d < sched->count; ++d) {
        sum.speed = fmax(sum.speed, timelines[d].speed);
    }
    for (uint32_t d = 0; d < sched->count && sum.speed > 0; ++d) {
        const fl_worker *w = &sched->workers[d];
        double speed = timelines[d].speed / sum.speed * fl_eft_lanes(w);
        sum.all += speed;
        sum.in_work += backlog(w, t) * speed;
        for (uint32_t i = 0; i < timelines[d].count; ++i) {
            /* Successors of an overdue task are late by the expected delay. */
            uint64_t end = timelines[d].due[i].end, follows = timelines[d].due[i].follows;
            double late = end > t ? 0 : timelines[d].rest + (double)(t - end);
            sum.longest = fmax(sum.longest, (double)follows - (double)t + late);
        }
    }
    return sum;
}

/* Returns ns of the task on the device that is fastest at the task. */
static double least_ns(const fl_sched *sched, const fl_task *task)
{
    double least = INFINITY;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        if (sched->shared_queue->timelines[d].speed > 0 && fl_worker_can_run(w, task)) {
            least = fmin(least, fl_eft_ns(w, task));
        }
    }
    return least;
}

/* Finds the least urgent task with slack: run by the worker, the task does not delay the graph's
 * end. */
static bool find_spare(fl_worker *w, const fl_outlay *outlay, fl_ranked_spot *spot)
{
    const fl_sched *sched = w->sched;
    const fl_shared_queue *board = sched->shared_queue;
    double top = (64 - __builtin_clzll(board->tasks.ranks)) / (double)FL_RANKS;
    *spot = (fl_ranked_spot){0};
    for (uint32_t i = 0; i < FL_EFT_MOST_SLACK && fl_ranked_step(&board->tasks, spot, true); ++i) {
        const fl_task *task = fl_task_of_link(spot->link);
        const filch_graph *graph = task->graph;
        double own = own_rank(task);
        if (!fl_worker_can_run(w, task) || !(own > 0)) {
            continue;
        }
        double least = least_ns(sched, task), unit = least / own; /* ns per unit of rank */
        double left = fmax(0, graph->rank_sum - fl_part_of_graph(graph)->rank_taken) * unit;
        double end = fmax((left + outlay->in_work) / outlay->all, outlay->longest);
        end = fmax(end, top * (double)graph->rank_most * unit);
        if ((1 + FL_SLOW_MARGIN) * fl_eft_ns(w, task) + ((double)task->rank - own) * unit <= end) {
            return true;
        }
    }
    return false;
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

/* Explores whether the device is as fast again as before: no other measurement would ever tell. */
static bool tries(fl_worker *w, fl_ranked_spot *spot)
{
    double mean = fl_eft_mean(w), once = w->theft.explore.best;
    if (once <= 0 || mean < FL_EXPLORE_ONCE_FASTER * once || !fl_explore_is_due(w, mean) ||
        !find_any(w, true, spot)) {
        return false;
    }
    fl_explore_begin(w, mean, fl_task_of_link(spot->link));
    return true;
}

/* Chooses a task. True: *spot is for the worker. */
static bool choose(fl_worker *w, uint64_t t, fl_ranked_spot *spot)
{
    const fl_sched *sched = w->sched;
    const fl_shared_queue *board = sched->shared_queue;
    fl_timeline *timeline = seat_of(w);
    if (!find_any(w, false, spot)) {
        return false;
    }
    const fl_task *first = fl_task_of_link(spot->link);
    survey(w, t, first);
    fl_outlay outlay = sum_up(sched, t);
    /* A device without a free lane takes urgent tasks only: a device that becomes free meanwhile
     * might take the task sooner. */
    bool is_free = timeline->count + timeline->others < fl_eft_lanes(w);
    if (fl_eft_mean(w) == 0 && board->tasks.count > 1) {
        return is_free && find_any(w, true, spot);
    }
    if (find_urgent(w, t, spot)) {
        return true;
    }
    if (is_free && board->tasks.count > FL_EFT_LEFT_FOR_OTHERS &&
        (find_spare(w, &outlay, spot) || tries(w, spot))) {
        return true;
    }
    if (is_free) {
        double ns = fmax(fl_eft_ns(w, first) / FL_EFT_LOOKS_OF_TASK, FL_LOOK_AGAIN_NS);
        timeline->look_at = t + (uint64_t)fmin(ns, 0x1p60);
        fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
    }
    timeline->is_held = true;
    timeline->seen = board->tasks.count;
    return false;
}

bool fl_eft_choose(fl_worker *w, uint64_t t, fl_ranked_spot *spot)
{
    if (!choose(w, t, spot)) {
        return false;
    }
    prefer_own(w, spot);
    return true;
}

bool fl_eft_wins(fl_worker *w, uint64_t t, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    const fl_timeline *timeline = seat_of(w);
    double ns = 0, before = 0;
    survey(w, t, task);
    if (timeline->count != 0 && timeline->due[timeline->count - 1].end > t) {
        before = (double)(timeline->due[timeline->count - 1].end - t);
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        sched->shared_queue->timelines[d].rest =
            fmax(sched->shared_queue->timelines[d].rest, before);
    }
    return first_to_end(sched, task, &ns) == w->index;
}

void fl_eft_take(fl_worker *w, uint64_t t, const fl_task *task)
{
    fl_timeline *timeline = seat_of(w);
    uint32_t lanes = fl_eft_lanes(w);
    double own = own_rank(task), ns = fmin(fl_eft_ns(w, task), 0x1p60);
    double after = own > 0 ? ((double)task->rank - own) / own * least_ns(w->sched, task) : 0;
    uint64_t from = t;
    if (timeline->count >= lanes && timeline->due[timeline->count - lanes].end > t) {
        from = timeline->due[timeline->count - lanes].end;
    }
    uint64_t end = from + (uint64_t)ns;
    fl_timeline_end due = {end, end + (uint64_t)fmin(fmax(after, 0), 0x1p60)};
    if (timeline->count == FL_TIMELINE_TASKS) {
        --timeline->count;
        for (uint32_t i = 0; i < timeline->count; ++i) {
            timeline->due[i] = timeline->due[i + 1];
        }
    }
    timeline->called_at = 0;
    uint32_t at = timeline->count++;
    for (; at != 0 && timeline->due[at - 1].end > end; --at) {
        timeline->due[at] = timeline->due[at - 1];
    }
    timeline->due[at] = due;
    fl_part_of_graph(task->graph)->rank_taken += own;
}
