/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/admission.h"

#include <math.h>

#include "sched/model/cost.h"
#include "sched/model/speed.h"
#include "sched/model/timeline.h"
#include "sched/worker/device.h"
#include "sched/worker/tuning.h"

/* --- Devices --- */

static bool has_one_place(const fl_sched *sched)
{
    const fl_device *devices = sched->pool->devices;
    /* Simulated devices without links have separate memory nodes, but transfer nothing. */
    if (sched->pool->is_virtual && sched->core->places->count == 1) {
        return true;
    }
    for (uint32_t d = 1; d < sched->count; ++d) {
        if (devices[d].place != devices[0].place) {
            return false;
        }
    }
    return true;
}

bool fl_admission_has_unlike_scores(const fl_sched *sched)
{
    double least = INFINITY, most = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        least = fmin(least, sched->scores[d]);
        most = fmax(most, sched->scores[d]);
    }
    return most >= FL_SLOW_FROM * least;
}

bool fl_admission_may_share(const fl_sched *sched)
{
    return sched->rules.kind == FILCH_POLICY_STEAL && sched->count != 1 && has_one_place(sched);
}

bool fl_admission_is_unlike_at(const fl_sched *sched, const fl_task *task, bool *is_known)
{
    double least = INFINITY, most = 0, work = task->work > 0 ? (double)task->work : 1;
    uint32_t known = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        const fl_speed *speed = fl_codelet_speed(task->codelet, d);
        if (fl_speed_get(speed) > 0 && !fl_worker_is_unavailable(w)) {
            double ns = fl_speed_time(speed, work);
            least = fmin(least, ns);
            most = fmax(most, ns);
            ++known;
        }
    }
    *is_known = known > 1;
    return most >= FL_SLOW_FROM * least;
}

/* --- Graphs --- */

bool fl_admission_runs_beside(const fl_sched *sched)
{
    return !sched->pool->devices[0].is_synchronous;
}

double fl_admission_length(const fl_sched *sched)
{
    double least = INFINITY;
    for (uint32_t d = 0; d < sched->count; ++d) {
        double mean = fl_worker_mean_ns(&sched->workers[d]);
        least = mean > 0 ? fmin(least, mean) : least;
    }
    return least / (fl_admission_runs_beside(sched)
                        ? fmax(FL_SHARED_QUEUE_LEAST_NS, FL_LOCK_NS / 10 * sched->count)
                        : FL_LOCK_NS * sched->count);
}

bool fl_admission_is_weighed(const fl_sched *sched, bool is_unlike)
{
    return fl_admission_length(sched) >= (is_unlike ? 1 : FL_LONGER_ALIKE);
}

bool fl_admission_is_wide(const fl_sched *sched, const filch_graph *graph, double width)
{
    return graph->rank_most > 0 &&
           graph->rank_sum > width * sched->count * (double)graph->rank_most;
}

bool fl_admission_is_shared(const fl_sched *sched, const filch_graph *graph, bool is_unlike)
{
    double width = is_unlike ? FL_WIDE_ENOUGH : FL_WIDE_ENOUGH_ALIKE;
    return (fl_admission_runs_beside(sched) ||
            (is_unlike && fl_admission_is_weighed(sched, true))) &&
           !fl_admission_is_wide(sched, graph, width);
}

/* --- Who is told of a task --- */

uint32_t fl_admission_called(const fl_sched *sched, const fl_task *task)
{
    const fl_shared_queue *shared = sched->shared_queue;
    uint32_t best = UINT32_MAX;
    double least = INFINITY;
    bool is_free = false;
    for (uint32_t word = 0; word < FL_IDLE_WORDS && word * 64 < sched->count; ++word) {
        /* A waiting worker without an idle bit has found work since the last look, or looks again
         * after announcing idleness. If the announcement was before the worker's last look, the
         * lock orders the bit before our look; otherwise the next look comes after. Relaxed: the
         * lock orders the accesses. */
        uint64_t bits = shared->waiting[word] & fl_load_relaxed(&sched->idle[word]);
        for (; bits != 0; bits &= bits - 1) {
            uint32_t d = word * 64 + (uint32_t)__builtin_ctzll(bits);
            const fl_worker *w = &sched->workers[d];
            const fl_timeline *timeline = &shared->timelines[d];
            bool has_lane = timeline->count + timeline->others < fl_timeline_lanes(w);
            if (fl_worker_is_unavailable(w) || (is_free && !has_lane) ||
                (timeline->has_left_all && shared->tasks.count <= timeline->seen) ||
                !fl_worker_can_run(w, task)) {
                continue;
            }
            double ns = fl_cost_of_any(w, task);
            if (ns < least || (has_lane && !is_free)) {
                least = ns;
                best = d;
                is_free = has_lane;
            }
        }
    }
    return best;
}
