/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/slow.h"

#include <math.h>

#include "memory/tiles/tiles.h"
#include "sched/account/current_job.h"
#include "sched/model/missing.h"
#include "sched/model/speed.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* --- Lagging devices --- */

static double times_of(const fl_worker *w)
{
    return fl_bits_double(fl_load_relaxed(&w->theft.slow.times)); /* an estimate: no order */
}

static bool counts(const fl_worker *w)
{
    return w->device->place != 0 && w->device->backend->lane != NULL;
}

/* Tells whether copies come directly to the device's memory from a second device's memory. */
static bool is_linked(const fl_sched *sched, const fl_worker *w)
{
    for (uint32_t d = 0; d < sched->count; ++d) {
        uint32_t place = sched->workers[d].device->place;
        if (place != 0 && place != w->device->place && fl_device_reaches(w->device, place)) {
            return true;
        }
    }
    return false;
}

void fl_slow_init(fl_sched *sched)
{
    double most = 0;
    bool has_links = false;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        if (counts(w)) {
            most = fmax(most, sched->scores[d]);
            has_links = has_links || is_linked(sched, w);
        }
    }
    for (uint32_t d = 0; d < sched->count && sched->rules.kind == FILCH_POLICY_STEAL; ++d) {
        fl_worker *w = &sched->workers[d];
        fl_slow *lag = &w->theft.slow;
        double score = sched->scores[d];
        lag->by_score = score > 0 && most > score ? most / score : 1;
        lag->alike = lag->by_score >= FL_SLOW_FROM ? 0 : FL_SLOW_UNTIL;
        /* Relaxed, twice: no other thread exists yet. */
        fl_store_relaxed(&lag->times, fl_double_bits(lag->by_score));
        if (counts(w) && sched->mails) {
            lag->is_far = has_links && !is_linked(sched, w);
            fl_store_relaxed(&lag->is_on, lag->is_far || lag->alike < FL_SLOW_UNTIL);
        }
    }
}

static double measured_ns(const fl_worker *w, const fl_task *task)
{
    return fl_speed_time(fl_codelet_speed(task->codelet, w->index), (double)task->work);
}

static bool can_take(const fl_worker *w, const fl_task *task)
{
    return counts(w) && !fl_worker_is_unavailable(w) && fl_worker_can_run(w, task);
}

void fl_slow_learn(fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    fl_slow *lag = &w->theft.slow;
    double own = measured_ns(w, task), least = INFINITY;
    if (!sched->mails || sched->rules.kind != FILCH_POLICY_STEAL || !counts(w) || own <= 0) {
        return;
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        double ns = can_take(&sched->workers[d], task) ? measured_ns(&sched->workers[d], task) : 0;
        least = ns > 0 ? fmin(least, ns) : least;
    }
    if (!(own >= least)) {
        return; /* the worker's device is unavailable */
    }
    lag->alike = own >= FL_SLOW_FROM * least ? 0 : lag->alike + (lag->alike < FL_SLOW_UNTIL);
    /* Relaxed, twice: estimates for other workers. */
    fl_store_relaxed(&lag->times, fl_double_bits(own / least));
    fl_store_relaxed(&lag->is_on, lag->is_far || lag->alike < FL_SLOW_UNTIL);
}

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

static fl_rivals find_rivals(const fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    fl_rivals rivals = {.ahead = waiting(w, task->level)};
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *other = &sched->workers[d];
        double ns = other != w && can_take(other, task) ? measured_ns(other, task) : 0;
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
    double ns = measured_ns(w, task);
    return ns > 0 ? ns : least * fmin(times_of(w), w->theft.slow.by_score);
}

/* Returns the time of the items in flight, ns, as though no item had run yet. An item of unknown
 * time counts as `own`. */
static double in_flight_ns(const fl_worker *w, double own)
{
    double sum = 0;
    uint32_t left = w->pipeline.computing;
    for (uint32_t i = 0; i < w->pipeline.flight_count && left != 0; ++i) {
        const fl_in_flight *flight = &w->pipeline.flights[i];
        if (flight->item.state == FL_ITEM_LAUNCHED) {
            sum += flight->expected > 0 ? flight->expected : own;
            --left;
        }
    }
    return sum;
}

static void longest_below(fl_task *successor, void *user)
{
    float *longest = user;
    *longest = successor->rank > *longest ? successor->rank : *longest;
}

/* Tells whether all devices together are busy with the graph until the task's successors are over.
 * The worker would end the task in `end` ns. */
static bool has_time(const fl_worker *w, const fl_task *task, const fl_rivals *rivals, double own,
                     double end)
{
    const fl_sched *sched = w->sched;
    const filch_graph *graph = task->graph;
    float after = 0;
    /* Relaxed: a guess. */
    if (graph->kind != FILCH_GRAPH_CLOSED || graph->rank_most <= 0 ||
        fl_load_relaxed(&sched->hungry) != 0) {
        return false;
    }
    fl_graph_each_successor(task, longest_below, &after);
    double rank = (double)(task->rank - after), count = fl_load_relaxed(&graph->task_count);
    double done = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        done += (double)fl_load_relaxed(&fl_job_share(graph->job, d)->done);
    }
    if (!(rank > 0)) {
        return false;
    }
    double unit = rivals->least / rank; /* ns of a unit of rank */
    double left = graph->rank_sum * fmax(1 - done / count, 0) * unit;
    double all = (rivals->rate + 1 / own) * rivals->least;
    return (1 + FL_SLOW_MARGIN) * (end + (double)after * unit) <= left / all;
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
    if (rivals.least <= 0 || fl_load_relaxed(&w->queues.item_ns) == 0) {
        return w->pipeline.in_flight != 0 && rivals.ahead == 0;
    }
    double own = own_ns(w, task, rivals.least);
    if (own < FL_SLOW_FROM * rivals.least && !w->theft.slow.is_far) {
        return false;
    }
    fl_missing_total haul = fl_missing_haul(w, task);
    double end = fmax(haul.in_ns, in_flight_ns(w, own)) + own + haul.out_ns;
    return end > rivals.ahead / rivals.rate + rivals.least && !has_time(w, task, &rivals, own, end);
}

/* --- Giving away --- */

/* Tells whether a second device is better: faster, and at least as well linked; or linked, and
 * about as fast. A task leaving a lagging device for a better device therefore does not come back.
 */
static bool is_better(const fl_worker *w, const fl_worker *other)
{
    double own = times_of(w), theirs = times_of(other);
    return w->theft.slow.is_far > other->theft.slow.is_far
               ? theirs < FL_SLOW_FROM * fmax(own, 1)
               : w->theft.slow.is_far == other->theft.slow.is_far && theirs * FL_SLOW_FROM <= own;
}

/* Finds the better device with the earliest finish time of the task; among equals the home, or the
 * devices in turn. */
static fl_worker *find_better(const fl_worker *w, const fl_task *task)
{
    fl_sched *sched = w->sched;
    fl_worker *best = NULL;
    double soonest = INFINITY;
    uint64_t first = fl_add_relaxed(&sched->routed, 1);
    for (uint32_t i = 0; i < sched->count; ++i) {
        uint32_t d = (uint32_t)((first + i) % sched->count);
        fl_worker *other = &sched->workers[d];
        double ns = measured_ns(other, task);
        if (other == w || !can_take(other, task) || !is_better(w, other)) {
            continue;
        }
        double end = (waiting(other, task->level) + (task->home != d + 1)) * ns +
                     fl_missing_haul(other, task).in_ns;
        if (end < soonest) {
            soonest = end;
            best = other;
        }
    }
    return best;
}

bool fl_slow_sends(fl_worker *w, fl_task *task)
{
    fl_worker *better = NULL;
    if (FL_LIKELY(!fl_slow_is_on(w)) || !fl_slow_holds_up(w, task) ||
        (better = find_better(w, task)) == NULL) {
        return false;
    }
    fl_inbox_push(&better->queues.inbox, &task->link);
    fl_sched_wake_worker(w->sched, better->index);
    return true;
}

/* Tells whether no tile fetched ahead is on the way from memory of the host. The memory may return
 * to the caller at the job's end, so the fetching worker has to wait for the copy. */
static bool is_free(const fl_worker *w)
{
    return w->device->backend->lane->is_past(w->device, w->offload->fetched[0]);
}

bool fl_slow_passes_on(fl_worker *w, const fl_item *item)
{
    fl_task *task = item->task;
    fl_worker *better = NULL;
    if (FL_LIKELY(!fl_slow_is_on(w)) || task == NULL || item->skip || item->is_ahead ||
        task->moves != 0 || task->has_items || !is_free(w) || !fl_slow_holds_up(w, task) ||
        (better = find_better(w, task)) == NULL) {
        return false;
    }
    /* The job may be over as soon as a second worker has the task. */
    fl_worker_flush(w);
    fl_add_relaxed(&better->theft.slow.given, 1);
    fl_claimed_send(better, task);
    fl_sched_wake_worker(w->sched, better->index);
    return true;
}
