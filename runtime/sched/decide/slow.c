/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/slow.h"

#include <math.h>

#include "sched/model/cost.h"
#include "sched/model/critical.h"
#include "sched/model/missing.h"
#include "sched/model/slowness.h"
#include "sched/worker/device.h"
#include "sched/worker/others.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* --- Predictions --- */

/* Speed of a task on the rivals: the able devices other than the worker's. A rival is available,
 * and has measured the codelet. */
typedef struct fl_rivals {
    double least; /* ns on the fastest rival; 0: no rival */
    double rate;  /* tasks a ns, by all rivals together */
    double ahead; /* tasks of equal or higher urgency, waiting at the rivals or at the worker, where
                     rivals take tasks */
} fl_rivals;

static double waiting(const fl_worker *w, uint32_t level)
{
    int64_t entries = 0;
    for (; level < FL_LEVELS; ++level) {
        entries += fl_deque_size(&w->queues.levels[level]);
    }
    return (double)entries + fl_load_relaxed(&w->theft.slow.given);
}

/* Tells whether a second device, with a memory of its own, could run the task. */
static bool can_take(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    return fl_worker_computes(other) && fl_other_can(w, other, task, FL_OTHERS_ONLINE);
}

static fl_rivals find_rivals(const fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    fl_rivals rivals = {.ahead = waiting(w, task->level)};
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *other = &sched->workers[d];
        double ns = can_take(w, other, task) ? fl_cost_of_task(other, task) : 0;
        if (ns > 0) {
            rivals.least = rivals.least > 0 ? fmin(rivals.least, ns) : ns;
            rivals.rate += 1 / ns;
            rivals.ahead += waiting(other, task->level);
        }
    }
    return rivals;
}

/* Predicts the worker's time of a task, ns. A codelet not measured on the device is estimated by
 * the last ratio to the fastest device, or by the scores if less. Otherwise a codelet never tried
 * would never be measured. */
static double own_ns(const fl_worker *w, const fl_task *task, double least)
{
    double ns = fl_cost_of_task(w, task);
    return ns > 0 ? ns : least * fmin(fl_slow_times(w), w->theft.slow.by_score);
}

/* Tells whether all devices together are busy with the graph until the task's successors are over.
 * The worker would end the task in `end` ns. */
static bool has_time(const fl_worker *w, const fl_task *task, const fl_rivals *rivals, double own,
                     double end)
{
    const fl_sched *sched = w->sched;
    const filch_graph *graph = task->graph;
    /* Relaxed: a guess. A hungry slow device is no reason to refuse: it would refuse likewise. */
    if (graph->kind != FILCH_GRAPH_CLOSED || fl_load_relaxed(&sched->hungry_fast) != 0) {
        return false;
    }
    fl_critical rank = fl_critical_of(task);
    if (!(rank.own > 0)) {
        return false;
    }
    double unit = rivals->least / rank.own; /* ns of a unit of rank */
    double left = fl_critical_left_by_count(graph, sched->count) * unit;
    double all = (rivals->rate + 1 / own) * rivals->least;
    return (1 + FL_SLOW_MARGIN) * (end + rank.after * unit) <= left / all;
}

bool fl_slow_holds_up(const fl_worker *w, const fl_task *task)
{
    /* Tasks added by filch, and partial results, are bound to devices. */
    bool is_bound = task->is_gate || task->reduces || task->combines || task->begins;
    if (FL_LIKELY(!fl_slow_is_on(w)) || is_bound || w->now.frames != NULL ||
        (w->theft.explore.is_on && w->pipeline.in_flight == 0)) {
        return false;
    }
    fl_rivals rivals = find_rivals(w, task);
    /* A device without a completed task is tried with a single task, or with more if many wait.
     * Relaxed: the worker's own value. */
    if (rivals.least <= 0 || fl_worker_mean_ns(w) == 0) {
        return w->pipeline.in_flight != 0 && rivals.ahead == 0;
    }
    double own = own_ns(w, task, rivals.least);
    if (own < FL_SLOW_FROM * rivals.least && !w->theft.slow.is_far) {
        return false;
    }
    fl_missing_total haul = fl_missing_haul(w, task);
    double end = fl_cost_finish(fl_cost_in_flight(w, own), haul.in_ns, own, haul.out_ns);
    return end > rivals.ahead / rivals.rate + rivals.least && !has_time(w, task, &rivals, own, end);
}

/* Returns the number of lanes of the fastest device. */
static uint32_t fastest_lanes(const fl_sched *sched)
{
    const fl_worker *fastest = &sched->workers[0];
    for (uint32_t d = 1; d < sched->count; ++d) {
        const fl_worker *other = &sched->workers[d];
        bool is_faster = fl_slow_times(other) < fl_slow_times(fastest);
        if (fl_worker_computes(other) && (!fl_worker_computes(fastest) || is_faster)) {
            fastest = other;
        }
    }
    return fastest->device->lanes;
}

bool fl_slow_keeps_up(const fl_worker *w)
{
    return !fl_slow_is_on(w) || (!w->theft.slow.is_far &&
                                 fl_slow_times(w) <= FL_DEPTH_OF_LANE * fastest_lanes(w->sched));
}

/* --- Giving away --- */

/* Tells whether a second device is better: faster, and at least as well linked; or linked, and
 * about as fast. A task leaving a lagging device for a better device therefore does not come back.
 */
static bool is_better(const fl_worker *w, const fl_worker *other)
{
    double own = fl_slow_times(w), theirs = fl_slow_times(other);
    return w->theft.slow.is_far > other->theft.slow.is_far
               ? theirs < FL_SLOW_FROM * fmax(own, 1)
               : w->theft.slow.is_far == other->theft.slow.is_far && theirs * FL_SLOW_FROM <= own;
}

fl_worker *fl_slow_receiver(const fl_worker *w, const fl_task *task, uint64_t turn)
{
    fl_sched *sched = w->sched;
    fl_worker *best = NULL;
    double soonest = INFINITY;
    for (uint32_t i = 0; i < sched->count; ++i) {
        uint32_t d = (uint32_t)((turn + i) % sched->count);
        fl_worker *other = &sched->workers[d];
        double ns = fl_cost_of_task(other, task);
        if (!can_take(w, other, task) || !is_better(w, other)) {
            continue;
        }
        /* A task given before counts among the waiting tasks. */
        double tasks = waiting(other, task->level) + (task->home != d + 1);
        double end = fl_cost_finish(0, 0, tasks * ns, fl_missing_haul(other, task).in_ns);
        if (end < soonest) {
            soonest = end;
            best = other;
        }
    }
    return best;
}
