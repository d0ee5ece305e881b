/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/timeline.h"

#include <math.h>

#include "sched/model/cost.h"
#include "sched/model/critical.h"
#include "sched/worker/device.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/tuning.h"

/* --- Tasks that a device took --- */

void fl_timeline_update(fl_worker *w)
{
    fl_timeline *timeline = fl_timeline_of(w);
    /* Retired tasks count as the tasks with the earliest predicted ends. */
    uint32_t left = fl_timeline_in_flight(w);
    uint32_t over = timeline->count > left ? timeline->count - left : 0;
    timeline->count -= over;
    for (uint32_t i = 0; i < timeline->count && over != 0; ++i) {
        timeline->due[i] = timeline->due[i + over];
    }
    timeline->others = left - timeline->count;
    timeline->has_left_all = false;
    if (timeline->called_for != w->sched->shared_queue->changes) {
        timeline->called_at = 0; /* kept otherwise: the device answers the call */
    }
}

/* Tells whether a second device left a task to the worker, and the queue is unchanged since. */
static bool is_called(const fl_worker *w)
{
    const fl_timeline *timeline = fl_timeline_of(w);
    return timeline->called_at != 0 && timeline->called_for == w->sched->shared_queue->changes;
}

bool fl_timeline_call(const fl_sched *sched, uint32_t device, uint64_t t)
{
    const fl_worker *w = &sched->workers[device];
    fl_timeline *timeline = fl_timeline_of(w);
    if (timeline->rest > 0 || is_called(w)) {
        return false;
    }
    timeline->called_at = t != 0 ? t : 1; /* a virtual clock begins at 0 */
    timeline->called_for = sched->shared_queue->changes;
    return true;
}

void fl_timeline_take(fl_worker *w, uint64_t t, const fl_task *task)
{
    fl_timeline *timeline = fl_timeline_of(w);
    uint32_t lanes = fl_timeline_lanes(w);
    fl_critical rank = fl_critical_of(task);
    double ns = fmin(fl_cost_of_any(w, task), 0x1p60);
    double after = rank.own > 0 ? rank.after / rank.own * fl_timeline_least(w->sched, task) : 0;
    double before = 0;
    if (timeline->count >= lanes && timeline->due[timeline->count - lanes].end > t) {
        before = (double)(timeline->due[timeline->count - lanes].end - t);
    }
    uint64_t end = t + (uint64_t)fl_cost_finish(before, 0, ns, 0);
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
    fl_part_of_graph(task->graph)->rank_taken += rank.own;
}

/* --- Predictions of one choice --- */

/* Tells whether the device takes ready tasks. A worker deep in nested waits may ask for tasks, but
 * no device waits for the worker. */
static bool is_there(const fl_worker *w, uint64_t t, bool asks)
{
    return !fl_worker_is_unavailable(w) && w->device->joins_at <= t &&
           (asks || fl_load_relaxed(&w->signals.nested) <= FL_DEEP_WAIT); /* an estimate */
}

/* Ns until one more task could begin on a device. A device busy for longer than predicted is
 * expected to need its delay again. A device busy with unknown work is expected to need its time up
 * to now again. */
static double time_to_free(const fl_worker *w, uint64_t t, bool asks)
{
    const fl_timeline *timeline = fl_timeline_of(w);
    uint32_t lanes = fl_timeline_lanes(w);
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
    const fl_timeline *timeline = fl_timeline_of(w);
    uint32_t lanes = fl_timeline_lanes(w);
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

void fl_timeline_survey(const fl_worker *asker, uint64_t t, const fl_task *task)
{
    fl_sched *sched = asker->sched;
    bool is_known = fl_worker_mean_ns(asker) > 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        fl_timeline *timeline = &sched->shared_queue->timelines[d];
        bool counts = is_there(w, t, w == asker) && fl_worker_can_run(w, task) &&
                      (!is_known || fl_worker_mean_ns(w) > 0);
        timeline->rest = time_to_free(w, t, w == asker);
        timeline->speed = counts ? 1 / fl_cost_of_any(w, task) : 0;
    }
}

void fl_timeline_follow(const fl_worker *asker, uint64_t t)
{
    const fl_sched *sched = asker->sched;
    const fl_timeline *timeline = fl_timeline_of(asker);
    double before = 0;
    if (timeline->count != 0 && timeline->due[timeline->count - 1].end > t) {
        before = (double)(timeline->due[timeline->count - 1].end - t);
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        sched->shared_queue->timelines[d].rest =
            fmax(sched->shared_queue->timelines[d].rest, before);
    }
}

uint32_t fl_timeline_first(const fl_sched *sched, const fl_task *task, double *ns)
{
    uint32_t best = UINT32_MAX;
    double soonest = INFINITY;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        const fl_timeline *timeline = &sched->shared_queue->timelines[d];
        if (timeline->speed == 0 || !fl_worker_can_run(w, task)) {
            continue;
        }
        double own = fl_cost_of_any(w, task), end = fl_cost_finish(timeline->rest, 0, own, 0);
        if (end < soonest * (1 - FL_TIE) || best == UINT32_MAX) {
            soonest = end;
            best = d;
            *ns = own / fl_timeline_lanes(w);
        }
    }
    return best;
}

void fl_timeline_expect(const fl_sched *sched, uint32_t device, double ns)
{
    sched->shared_queue->timelines[device].rest += ns;
}

double fl_timeline_least(const fl_sched *sched, const fl_task *task)
{
    double least = INFINITY;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        if (sched->shared_queue->timelines[d].speed > 0 && fl_worker_can_run(w, task)) {
            least = fmin(least, fl_cost_of_any(w, task));
        }
    }
    return least;
}

fl_outlay fl_timeline_sum(const fl_sched *sched, uint64_t t)
{
    const fl_timeline *timelines = sched->shared_queue->timelines;
    fl_outlay sum = {0};
    for (uint32_t d = 0; d < sched->count; ++d) {
        sum.speed = fmax(sum.speed, timelines[d].speed);
    }
    for (uint32_t d = 0; d < sched->count && sum.speed > 0; ++d) {
        const fl_worker *w = &sched->workers[d];
        double speed = timelines[d].speed / sum.speed * fl_timeline_lanes(w);
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
