/* SPDX-License-Identifier: Apache-2.0 */
/* Theft: a thief takes from the victim with the most time left, as much as lets thief and victim
 * end together. A theft happens only where the thief would end before the victim, with the transfer
 * of missing data included. */
#include "sched/decide/steal.h"

#include <math.h>
#include <string.h>

#include "sched/account/ledger.h"
#include "sched/decide/chunk.h"
#include "sched/decide/place.h"
#include "sched/decide/placement.h"
#include "sched/decide/slow.h"
#include "sched/decide/victims.h"
#include "sched/execute/divide.h"
#include "sched/model/cost.h"
#include "sched/model/explore.h"
#include "sched/model/missing.h"
#include "sched/model/predict.h"
#include "sched/model/speed.h"
#include "sched/model/transfer.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/others.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* Of the oldest of a deque that it can run, one of so many: that for which it lacks least. */
#define OLDEST 8u
/* One whose device was lost or withdrawn, or has no room, is not done before anybody. */
#define LOST_NS 1e300

/* Best steal candidate found so far. */
typedef struct fl_steal_candidate {
    uint32_t victim;
    uint32_t slot;    /* slot of the job with the range; FL_ACTIVE_SLOTS: the victim's deques */
    double ns_left;   /* victim's time for the remaining work */
    double ns_thief;  /* thief's time for the entries */
    uint32_t entries; /* grains, roots or deque entries */
    uint32_t want;    /* number of entries wanted by a policy; 0: the fair share */
    double ns_fixed;  /* thief's time for every item, in addition to ns_thief */
    fl_speed *speed;  /* speed of a batch's codelet on the thief; else null */
    double ns_trial;  /* nonzero: predicted time of a single grain, or task, stolen to explore
                         whether the prediction still holds */
    double ns_bring;  /* time to bring an entry's missing data; 0: none, or unknown */
    double ns_way;    /* cores: transfer cost of an entry's data; 0: none, or unknown */
} fl_steal_candidate;

/* Sets of workers without a paying theft in the present attempt. */
typedef struct fl_ruled_out {
    uint64_t deques[FL_IDLE_WORDS], ranges[FL_IDLE_WORDS];
} fl_ruled_out;

static bool has(const uint64_t *set, uint32_t index)
{
    return (set[index / 64] >> index % 64 & 1) != 0;
}

static void add(uint64_t *set, uint32_t index)
{
    set[index / 64] |= (uint64_t)1 << index % 64;
}

/* Tells whether the worker is the watched victim, and still at the same item. */
static bool is_watched(const fl_worker *w, uint32_t victim)
{
    return w->theft.watch.since != 0 && w->theft.watch.victim == victim &&
           w->theft.watch.steps == fl_load_relaxed(&w->sched->workers[victim].queues.steps);
}

/* Sets the time of the next look at a victim that would end first, and watches the victim. By the
 * predictions a theft would never pay, but predictions may be wrong, so the thief looks again after
 * a part of the predicted time. A single victim is watched at a time, until the victim moves on or
 * is robbed. */
static void watch(fl_worker *w, uint32_t victim, uint64_t at, uint64_t t)
{
    fl_victims_note(w, victim);
    w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
    if (is_watched(w, victim)) {
        w->theft.next_watch = w->theft.watch;
    } else if (w->theft.next_watch.since == 0) {
        uint64_t steps = fl_load_relaxed(&w->sched->workers[victim].queues.steps);
        w->theft.next_watch = (fl_watch){victim, steps, t};
    }
}

static void refuse(fl_worker *w, uint32_t victim, double ns_left, fl_refusal why)
{
    uint64_t t = fl_clock_now(&w->sched->core->clock);
    double ns = ns_left / 4 > FL_LOOK_AGAIN_NS ? ns_left / 4 : FL_LOOK_AGAIN_NS;
    fl_ledger_refuse(&w->ledger, why);
    watch(w, victim, t + (uint64_t)ns, t);
}

/* Returns the time for which the victim has been seen at the same item, ns; 0 without a watch. */
static double seen_ns(const fl_worker *w, uint32_t victim)
{
    return is_watched(w, victim)
               ? (double)(fl_clock_now(&w->sched->core->clock) - w->theft.watch.since)
               : 0;
}

/* Returns the victim's time for a task: the mean, or the time seen at the present task if longer.
 */
static double victim_tile(const fl_worker *w, const fl_worker *victim)
{
    double mean = fl_worker_mean_ns(victim), seen = seen_ns(w, victim->index);
    return seen > mean ? seen : mean;
}

/* Tells whether to explore by a theft that the measured speeds refuse. The theft has to pay at the
 * best earlier speed of the device, or at the score's speed. An exploration also has to be due:
 * nothing else would reveal a changed speed. The victim's last grain is never explored. */
static bool may_try(const fl_worker *w, const fl_steal_candidate *candidate, double ns_piece)
{
    if (candidate->entries == 1) {
        return false;
    }
    if (candidate->speed == NULL) {
        /* Tasks: only from deques, since a graph's roots are not known individually here. */
        double once = w->theft.explore.best;
        return candidate->slot == FL_ACTIVE_SLOTS && once > 0 &&
               once + FL_THEFT_NS < candidate->ns_left &&
               fl_explore_is_due(w, fl_worker_mean_ns(w));
    }
    double score = w->sched->scores[w->index], best = fl_speed_best(candidate->speed);
    double by_score =
        candidate->ns_left * w->sched->scores[candidate->victim] / score; /* maybe infinite */
    double as_once = ns_piece * best / fl_speed_get(candidate->speed);
    double hope =
        best > 0 ? fmin(as_once, by_score / candidate->entries) : by_score / candidate->entries;
    return hope + FL_THEFT_NS < candidate->ns_left &&
           fl_speed_probe_is_due(candidate->speed, ns_piece, fl_clock_now(&w->sched->core->clock));
}

/* Cores: tells whether the worker has been idle, with work to steal, for as long as the transfer of
 * a task's data costs. A theft moves a tile for good, and the robbed core misses the tile in the
 * next run of the graph. Where all cores have equal work, and one ends a little earlier, waiting is
 * cheaper. Waiting in vain adds up, so a lasting imbalance is noticed at once the next time (ski
 * rental: at most twice the time of a choice with full knowledge). */
static bool has_waited(fl_worker *w, uint32_t victim, double ns_way)
{
    if (ns_way <= FL_HANDOFF_NS) {
        return true;
    }
    uint64_t t = fl_clock_now(&w->sched->core->clock);
    if (w->theft.waited_at != 0) { /* the worker ran nothing since */
        w->theft.waited_ns += (double)(t - w->theft.waited_at);
    }
    w->theft.waited_at = t;
    if (w->theft.waited_ns >= ns_way) {
        return true;
    }
    watch(w, victim, t + (uint64_t)(ns_way - w->theft.waited_ns) + 1, t);
    fl_ledger_refuse(&w->ledger, FL_REFUSED_DEAR);
    return false;
}

/* Resets the wait after a theft that cost a transfer. */
static void end_wait(fl_worker *w, double ns_way)
{
    if (ns_way > FL_HANDOFF_NS) {
        w->theft.waited_ns = 0;
        w->theft.waited_at = 0;
    }
}

/* Returns the cost of a theft without the task and the data, ns. */
static double theft_ns(const fl_worker *w, const fl_worker *victim)
{
    if (!w->sched->keeps_holders) {
        return FL_THEFT_NS;
    }
    /* A task with placed data returns in the next step, so the cost counts twice. Relaxed: an
     * estimate. */
    return fl_load_relaxed(&victim->queues.cargo) != 0 ? 2 * w->theft.theft_ns : FL_HANDOFF_NS;
}

/* Updates the mean cost of thefts. since: time at which the look began. */
static void note_success(fl_worker *w, const fl_steal_candidate *candidate, uint64_t since)
{
    if (w->sched->keeps_holders) {
        double ns = (double)(fl_clock_now(&w->sched->core->clock) - since);
        ns = fmin(fmax(ns, FL_STEAL_LEAST_NS), FL_STEAL_MOST_NS);
        w->theft.theft_ns += FL_STEAL_WEIGHT * (ns - w->theft.theft_ns);
        end_wait(w, candidate->ns_way);
    }
}

/* Cores: tells whether a theft refused only for the theft's own cost may happen after a wait. The
 * worker waits, idle and with work to steal, for the time of a wake-up: one core may own all tasks,
 * and never show more than a single task. The data then stay with the thief. Tasks far shorter than
 * a theft are better left together. ns_piece, ns_left: times without the theft. */
static bool may_wait_for_held(const fl_worker *w, double ns_piece, double ns_left)
{
    return w->sched->keeps_holders && ns_piece < ns_left &&
           FL_STEAL_LONG * ns_piece > w->theft.theft_ns;
}

static double price_of_held(double ns_way)
{
    return fmax(ns_way, FL_WAKE_UP_NS);
}

static void consider(fl_worker *w, fl_steal_candidate *best, fl_steal_candidate candidate)
{
    if (candidate.ns_left <= best->ns_left) {
        return;
    }
    /* Steal throttling: compares a single piece on the thief, theft included, with the victim's
     * remaining time. */
    double ns_piece = candidate.ns_thief / candidate.entries + candidate.ns_fixed;
    if (ns_piece + fl_cost_in_flight_mean(w) + theft_ns(w, &w->sched->workers[candidate.victim]) <
        candidate.ns_left) {
        *best = candidate;
    } else if (best->entries == 0 && may_try(w, &candidate, ns_piece)) {
        candidate.ns_left = 0; /* every paying theft is better */
        candidate.ns_trial = ns_piece;
        *best = candidate;
    } else if (best->entries == 0 &&
               may_wait_for_held(w, ns_piece + fl_cost_in_flight_mean(w), candidate.ns_left)) {
        candidate.ns_left = 0;
        candidate.ns_way = price_of_held(candidate.ns_way);
        *best = candidate;
    } else {
        refuse(w, candidate.victim, candidate.ns_left, FL_REFUSED_HELD);
    }
}

static void look_at_deques(fl_worker *w, const fl_worker *victim, fl_steal_candidate *best)
{
    uint32_t mask = fl_load_relaxed(&victim->queues.level_mask);
    int64_t entries = 0;
    while (mask != 0) {
        uint32_t level = (uint32_t)__builtin_ctz(mask);
        mask &= mask - 1;
        entries += fl_deque_size(&victim->queues.levels[level]);
    }
    if (entries <= 0) {
        return;
    }
    double theirs = victim_tile(w, victim);
    double own = fl_cost_of_unseen(w, victim);
    double way = fl_place_theft_ns(w, victim);
    /* The victim ends the present item before the entries. Where tiles are brought, the thief's
     * transfer costs about as much, and the item is left out. */
    double at_work = w->offload == NULL ? FL_STEAL_HALF_DONE : 0;
    fl_steal_candidate candidate = {.victim = victim->index,
                                    .slot = FL_ACTIVE_SLOTS,
                                    .ns_left = fl_worker_is_unavailable(victim) ? LOST_NS
                                               : theirs > 0 ? theirs * ((double)entries + at_work)
                                                            : FL_STEAL_UNKNOWN_NS,
                                    .ns_thief = (own + way) * (double)entries,
                                    .ns_way = way,
                                    .entries = (uint32_t)entries};
    consider(w, best, candidate);
}

/* Tells whether a device has left the range to other devices (execute/unavailable.c). Relaxed: a
 * hint. */
static bool is_left(const filch_job *job, uint32_t device)
{
    return fl_load_relaxed(&fl_job_share(job, device)->is_out) != 0;
}

/* Fills in a candidate of `entries` roots in a victim's range. Tasks of other kinds, run since the
 * last roots, may have been far shorter; for cores the time of a root is known. */
static void look_at_roots(const fl_worker *w, const filch_job *job, const fl_worker *victim,
                          fl_steal_candidate *candidate)
{
    double theirs = victim_tile(w, victim), own = fl_cost_of_unseen(w, victim);
    double way = fl_place_theft_ns(w, victim);
    double known = (double)fl_job_share(job, victim->index)->root_ns;
    double mine = (double)fl_job_share(job, w->index)->root_ns;
    own = mine > 0 ? mine : known > 0 ? known : own;
    theirs = fmax(known > 0 ? known : theirs, seen_ns(w, victim->index));
    /* A core has the present item to end first, as in look_at_deques. */
    double at_work = w->sched->keeps_holders ? FL_STEAL_HALF_DONE : 0;
    candidate->ns_left = theirs * (candidate->entries + at_work);
    candidate->ns_thief = (own + way) * candidate->entries;
    candidate->ns_way = way;
}

static void look_at_range(fl_worker *w, const filch_job *job, uint32_t slot, uint32_t victim,
                          fl_steal_candidate *best)
{
    uint32_t lo, hi, floor;
    uint32_t rest = fl_range_peek(&fl_job_share(job, victim)->range, &lo, &hi);
    if (rest == 0) {
        return;
    }
    if (!fl_range_is_open(w, job, hi, &floor) || floor >= hi ||
        (job->batch != NULL && fl_share_is_left(w, job))) {
        fl_ledger_refuse(&w->ledger, FL_REFUSED_UNABLE);
        return;
    }
    /* Roots closed to the thief are no reason to rob the victim. */
    lo = lo > floor ? lo : floor;
    rest = hi - lo;
    fl_steal_candidate candidate = {.victim = victim, .slot = slot, .entries = rest};
    if (job->batch != NULL) {
        const filch_codelet *codelet = fl_batch_codelet(job->batch);
        double work = fl_pieces_work(w, job, lo, hi);
        candidate.ns_left =
            fmax(work * fl_cost_batch_rate(w->sched, job, victim), seen_ns(w, victim));
        candidate.ns_thief = work * fl_cost_rate(w->sched, codelet, w->index);
        candidate.speed = fl_codelet_speed(codelet, w->index);
        candidate.ns_fixed = fl_speed_fixed(candidate.speed);
    } else {
        look_at_roots(w, job, &w->sched->workers[victim], &candidate);
    }
    candidate.ns_left = candidate.ns_left > 0 ? candidate.ns_left : FL_STEAL_UNKNOWN_NS;
    if (fl_worker_is_unavailable(&w->sched->workers[victim]) || is_left(job, victim)) {
        candidate.ns_left = LOST_NS;
    }
    consider(w, best, candidate);
}

/* Returns the number of entries to take, so that victim and thief end together. */
static uint32_t fair_share(const fl_steal_candidate *candidate)
{
    if (FL_UNLIKELY(candidate->want != 0)) {
        return candidate->want;
    }
    if (candidate->ns_trial != 0) {
        return 1;
    }
    if (candidate->ns_bring > 0) {
        /* Data of the next entry arrive while an entry runs, except for the first. */
        double own = candidate->ns_thief / candidate->entries,
               theirs = candidate->ns_left / candidate->entries;
        double most = (candidate->ns_left - fmin(own, candidate->ns_bring)) /
                      (theirs + fmax(own, candidate->ns_bring));
        return most < 1 ? 1 : most < candidate->entries ? (uint32_t)most : candidate->entries;
    }
    double share = candidate->ns_thief > 0
                       ? candidate->ns_left / (candidate->ns_left + candidate->ns_thief)
                       : 0.5;
    double pieces = share * candidate->entries;
    return pieces < 1 ? 1 : (uint32_t)pieces;
}

/* Tells whether the theft of a piece pays, with the piece's time on the thief and the transfer of
 * missing data. */
static bool pays(fl_worker *w, const fl_steal_candidate *candidate, double ns_piece)
{
    double ns_then =
        fl_cost_finish(fl_cost_in_flight_mean(w), candidate->ns_bring, ns_piece, 0) + FL_THEFT_NS;
    if (candidate->ns_bring <= 0 || ns_then < candidate->ns_left) {
        return true;
    }
    bool is_dear = ns_piece + fl_cost_in_flight_mean(w) + FL_THEFT_NS < candidate->ns_left;
    refuse(w, candidate->victim, candidate->ns_left, is_dear ? FL_REFUSED_DEAR : FL_REFUSED_HELD);
    return false;
}

/* Adds the transfer of a range's missing data, on the thief and on the victim, to the candidate.
 * False: the theft does not pay then. */
static bool weigh_range(fl_worker *w, fl_steal_candidate *candidate)
{
    const fl_worker *victim = &w->sched->workers[candidate->victim];
    uint32_t lo, hi, floor, want = fair_share(candidate);
    fl_missing missing;
    const filch_job *job = NULL;
    if (!fl_missing_matters(w, victim) || candidate->ns_trial != 0 ||
        (candidate->ns_left >= FL_STEAL_UNKNOWN_NS && !fl_slow_is_on(w)) ||
        (job = fl_jobs_peek(w, candidate->slot)) == NULL ||
        fl_range_peek(&fl_job_share(job, candidate->victim)->range, &lo, &hi) == 0 ||
        !fl_range_is_open(w, job, hi, &floor)) {
        return true;
    }
    lo = lo > floor ? lo : floor;
    lo = hi - lo > want ? hi - want : lo;
    fl_missing_of_range(w, victim, candidate->slot, lo, hi, fl_slow_holds_up, &missing);
    if (FL_UNLIKELY(missing.is_late) && !fl_worker_is_unavailable(victim)) {
        refuse(w, candidate->victim, candidate->ns_left, FL_REFUSED_HELD);
        return false;
    }
    if (!missing.is_known || candidate->ns_left >= FL_STEAL_UNKNOWN_NS) {
        return true;
    }
    candidate->ns_bring = missing.bring_ns / (hi - lo);
    candidate->ns_left =
        fmax(candidate->ns_left, missing.victim_ns / (hi - lo) * candidate->entries);
    return pays(w, candidate, candidate->ns_thief / candidate->entries + candidate->ns_fixed);
}

static void note_theft(fl_worker *w, const filch_job *job, uint32_t victim, uint64_t n,
                       uint64_t start)
{
    fl_count(&fl_job_share(job, w->index)->stolen_in, n);
    fl_add_relaxed(&fl_job_share(job, victim)->stolen_out, n);
    fl_trace_ring *ring = fl_trace_of(w);
    if (ring != NULL) {
        uint64_t end = fl_clock_now(&w->sched->core->clock);
        fl_trace_add(ring, (fl_trace_event){.start = start != 0 ? start : end,
                                            .end = end,
                                            .first = n,
                                            .other = victim,
                                            .kind = FL_TRACE_THEFT});
    }
}

/* Begins the exploration with the stolen task. */
static void note_trial(fl_worker *w, const fl_steal_candidate *candidate, const fl_task *task)
{
    if (FL_UNLIKELY(candidate->ns_trial != 0)) {
        fl_explore_begin(w, fl_worker_mean_ns(w), task);
    }
}

/* Tells whether the worker may receive a range of the job (null: no job). A worker that still has a
 * part of a range may not: possibly the worker has to wait for a first measurement before going on.
 * Only the worker fills the range once the job is in the slot, so an empty range stays empty. */
static bool has_place(const fl_worker *w, const filch_job *job)
{
    uint32_t lo, hi;
    return job != NULL && fl_range_peek(&fl_job_share(job, w->index)->range, &lo, &hi) == 0 &&
           !(job->batch != NULL && fl_share_is_left(w, job));
}

/* Cuts the victim's range; false: the work is gone, look again. */
static bool rob_range(fl_worker *w, const fl_steal_candidate *candidate, uint64_t start)
{
    filch_job *job = fl_jobs_peek(w, candidate->slot);
    uint32_t lo, hi, floor;
    /* The slot may hold a second job by now, and setting the worker's range would drop the worker's
     * share. */
    if (!has_place(w, job)) {
        return false;
    }
    fl_range *range = &fl_job_share(job, candidate->victim)->range;
    if (fl_range_peek(range, &lo, &hi) == 0 || !fl_range_is_open(w, job, hi, &floor) ||
        !fl_range_cut(range, fair_share(candidate), floor, hi, &lo, &hi)) {
        fl_ledger_refuse(&w->ledger, FL_REFUSED_RACED);
        return false;
    }
    if (candidate->ns_trial != 0) {
        fl_speed_probe(candidate->speed, candidate->ns_trial, fl_clock_now(&w->sched->core->clock));
    }
    /* Counts before setting the range: a second thief may then take everything and complete the
     * job. */
    note_theft(w, job, candidate->victim, hi - lo, start);
    fl_share_refill(fl_job_share(job, w->index), lo, hi);
    return true;
}

/* Oldest entries of a deque that seem claimable, and that the device can run. */
typedef struct fl_oldest {
    uint32_t count;
    uint64_t hints[OLDEST];
    int64_t at[OLDEST];
    /* The entry was the top when read: the index means the entry until the entry is removed. */
    bool is_top[OLDEST];
    fl_missing missing[OLDEST];
} fl_oldest;

static void look_at_oldest(fl_worker *w, fl_deque *deque, uint32_t most, fl_oldest *oldest)
{
    int64_t index = 0;
    uint64_t hint;
    bool is_top;
    oldest->count = 0;
    for (uint32_t i = 0; i < FL_STEAL_LOOK_DEPTH && oldest->count < most &&
                         fl_deque_look(deque, &index, &hint, &is_top);
         ++i, ++index) {
        if (hint == 0) {
            continue;
        }
        if (!fl_hint_is_live(hint)) {
            /* Dropping is final: the hint was received after the task had entered the hinted state,
             * and the state never returns. */
            if (is_top) {
                fl_deque_drop(deque, index);
            }
        } else if (!fl_hint_is_for(w, hint)) {
            fl_ledger_refuse(&w->ledger, FL_REFUSED_UNABLE);
        } else {
            oldest->hints[oldest->count] = hint;
            oldest->is_top[oldest->count] = is_top;
            oldest->at[oldest->count++] = index;
        }
    }
}

/* Returns the entry with the fewest missing bytes; of equals, the oldest. */
static uint32_t least_of(const fl_oldest *oldest)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < oldest->count; ++i) {
        best = oldest->missing[i].bytes < oldest->missing[best].bytes ? i : best;
    }
    return best;
}

static void forget(fl_oldest *oldest, uint32_t index)
{
    --oldest->count;
    for (uint32_t i = index; i < oldest->count; ++i) {
        oldest->hints[i] = oldest->hints[i + 1];
        oldest->at[i] = oldest->at[i + 1];
        oldest->is_top[i] = oldest->is_top[i + 1];
        oldest->missing[i] = oldest->missing[i + 1];
    }
}

/* Removes entries that the thief would end late. */
static void forget_late(fl_worker *w, fl_oldest *oldest)
{
    for (uint32_t i = oldest->count; i-- > 0;) {
        if (FL_UNLIKELY(oldest->missing[i].is_late)) {
            fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
            forget(oldest, i);
        }
    }
}

/* Adds the transfer of a task's missing data, and the victim's transfer for similar tasks. False:
 * the theft does not pay then. */
static bool weigh_task(fl_worker *w, const fl_steal_candidate *candidate, const fl_oldest *oldest,
                       uint32_t index)
{
    const fl_missing *missing = &oldest->missing[index];
    fl_steal_candidate all = *candidate;
    double theirs = 0;
    if (candidate->want != 0 || !missing->is_known || candidate->ns_left >= FL_STEAL_UNKNOWN_NS) {
        return true;
    }
    for (uint32_t i = 0; i < oldest->count; ++i) {
        theirs += oldest->missing[i].victim_ns / oldest->count;
    }
    all.ns_bring = missing->bring_ns;
    all.ns_left = fmax(candidate->ns_left, theirs * candidate->entries);
    return pays(w, &all, missing->ns > 0 ? missing->ns : candidate->ns_thief / candidate->entries);
}

/* Claims the entry with the fewest missing bytes among a deque's oldest entries. A claimed entry
 * below the top stays in the deque, dead, until the entry reaches the top or the owner pops the
 * entry. Null: no entry. */
static fl_task *claim_one(fl_worker *w, const fl_steal_candidate *candidate, fl_deque *deque)
{
    const fl_worker *victim = &w->sched->workers[candidate->victim];
    bool matters = fl_missing_matters(w, victim);
    fl_oldest oldest;
    fl_task *task;
    bool poisoned;
    for (int tries = 0; tries < FL_RACE_TRIES; ++tries) {
        look_at_oldest(w, deque, matters ? OLDEST : 1, &oldest);
        if (oldest.count == 0) {
            return NULL;
        }
        memset(oldest.missing, 0, sizeof oldest.missing);
        if (matters) {
            fl_missing_of_hints(w, victim, oldest.hints, oldest.count, fl_slow_holds_up,
                                oldest.missing);
        }
        if (candidate->ns_trial == 0 && !fl_worker_is_unavailable(victim)) {
            forget_late(w, &oldest);
        }
        if (oldest.count == 0) {
            return NULL;
        }
        while (oldest.count != 0) {
            uint32_t best = least_of(&oldest);
            if (!weigh_task(w, candidate, &oldest, best)) {
                return NULL;
            }
            if (fl_ready_claim(w->sched, oldest.hints[best], &task, &poisoned)) {
                /* An entry found below the top stays. Since the look, the owner may have popped the
                 * entry and pushed an unclaimed entry at the same index. The top may have reached
                 * the index. */
                if (oldest.is_top[best]) {
                    fl_deque_drop(deque, oldest.at[best]);
                }
                w->theft.brought_ns = oldest.missing[best].bring_ns;
                fl_claimed_put(w, task, poisoned);
                return task;
            }
            fl_ledger_refuse(&w->ledger, FL_REFUSED_RACED);
            forget(&oldest, best);
        }
    }
    return NULL;
}

/* Devices of different memory nodes or kinds: claims a single task in the victim's deques. A
 * lagging device takes the least urgent task. */
static bool rob_hints(fl_worker *w, const fl_steal_candidate *candidate, uint64_t start)
{
    fl_worker *victim = &w->sched->workers[candidate->victim];
    for (uint32_t i = 0; i < FL_LEVELS; ++i) {
        uint32_t level = fl_slow_is_on(w) ? i : FL_LEVELS - 1 - i;
        const fl_task *task = claim_one(w, candidate, &victim->queues.levels[level]);
        if (task != NULL) {
            note_trial(w, candidate, task);
            note_theft(w, task->graph->job, candidate->victim, 1, start);
            return true;
        }
    }
    return false;
}

/* Devices that are alike: steals several tasks; every task has a single hint. */
static bool rob_deques(fl_worker *w, const fl_steal_candidate *candidate, uint64_t start)
{
    fl_worker *victim = &w->sched->workers[candidate->victim];
    double own = fl_cost_of_unseen(w, victim);
    uint32_t want = fair_share(candidate);
    if (candidate->want == 0 && own * want > FL_STEAL_HAUL_NS) {
        want = own > FL_STEAL_HAUL_NS ? 1 : (uint32_t)(FL_STEAL_HAUL_NS / own);
    }
    want = want < FL_STEAL_MOST ? want : FL_STEAL_MOST;
    uint32_t got = 0;
    for (uint32_t level = FL_LEVELS; level-- > 0 && got < want;) {
        uint64_t hint;
        fl_steal outcome;
        while (got < want &&
               (outcome = fl_deque_steal(&victim->queues.levels[level], &hint)) != FL_STEAL_EMPTY) {
            if (outcome == FL_STEAL_LOST) {
                fl_ledger_refuse(&w->ledger, FL_REFUSED_RACED);
                fl_relax();
                continue;
            }
            /* The only hint to the task, now the thief's. */
            fl_task *task = fl_hint_task(hint);
            note_theft(w, task->graph->job, candidate->victim, 1, start);
            note_trial(w, candidate, task);
            fl_ready_push(w, task);
            ++got;
        }
    }
    return got != 0;
}

/* Returns the time until the victim looks at the inbox, ns: the wake-up, the rest of the task that
 * the victim has been at for long, or the time without a core. 0: the victim takes the inbox's
 * tasks at once, or after the present task. */
static double away_ns(const fl_worker *w, const fl_worker *victim, double task_ns)
{
    double seen = seen_ns(w, victim->index);
    switch ((fl_worker_state)fl_load_relaxed(&victim->queues.state)) { /* relaxed: an estimate */
    case FL_WORKER_ASLEEP:
        return FL_WAKE_UP_NS;
    case FL_WORKER_SEARCHING:
        return seen > FL_STEAL_GONE_NS ? seen : 0;
    case FL_WORKER_RUNNING:
        break;
    }
    return seen > FL_STEAL_SEEN * task_ns ? FL_STEAL_HALF_DONE * task_ns : 0;
}

/* Cores: tells whether the victim ends the inbox's tasks before the thief would. An attentive
 * victim keeps the inbox: where all cores have equal work, a core ending a little earlier would
 * take the next core's task, and so on. *price: time that the thief waited for, ns. */
static bool is_for_victim(fl_worker *w, const fl_worker *victim, double *price)
{
    *price = 0;
    if (!w->sched->keeps_holders || fl_worker_is_unavailable(victim) ||
        fl_load_relaxed(&victim->signals.nested) != 0) { /* relaxed: an estimate */
        return false;
    }
    double theirs = victim_tile(w, victim), way = fl_place_theft_ns(w, victim);
    double own = fl_cost_of_unseen(w, victim), away = away_ns(w, victim, theirs);
    if (theirs == 0) {
        return false;
    }
    if (away > 0 && own + way + theft_ns(w, victim) < away + theirs) {
        *price = way;
        return !has_waited(w, victim->index, *price);
    }
    if (away > 0 && may_wait_for_held(w, own + way, (1 + FL_STEAL_HALF_DONE) * theirs)) {
        *price = price_of_held(way);
        return !has_waited(w, victim->index, *price);
    }
    refuse(w, victim->index, away + theirs, FL_REFUSED_HELD);
    return true;
}

/* Explores whether the device is as slow as before by a task better left to the victim. */
static bool keeps(const fl_worker *w, const fl_worker *victim, const fl_task *task)
{
    bool explores = fl_explore_keeps(w, victim, task);
    if (explores) {
        fl_explore_keep(w, task);
    }
    return explores;
}

/* Robs a whole inbox: the tasks wait for a busy worker. The victim keeps a task that the victim
 * ends much sooner even so. most: number of tasks wanted by a policy, deciding instead; 0: no
 * policy. */
static bool rob_inbox(fl_worker *w, fl_worker *victim, uint32_t most)
{
    fl_sched *sched = w->sched;
    uint32_t got = 0;
    bool some_left = false;
    double price;
    if (fl_inbox_is_empty(&victim->queues.inbox) || is_for_victim(w, victim, &price)) {
        return false;
    }
    for (fl_link *link = fl_inbox_drain(&victim->queues.inbox); link != NULL;) {
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        bool can_run = fl_worker_can_run(w, task);
        bool is_wanted = most != 0 ? got < most
                                   : !(sched->mails && fl_worker_is_outdone(w, victim, task)) ||
                                         (can_run && keeps(w, victim, task));
        is_wanted = is_wanted && (fl_worker_is_unavailable(victim) || !fl_slow_holds_up(w, task));
        if (is_wanted && can_run) {
            note_theft(w, task->graph->job, victim->index, 1, 0);
            fl_ready_push(w, task);
            ++got;
        } else {
            fl_ledger_refuse(&w->ledger, can_run ? FL_REFUSED_HELD : FL_REFUSED_UNABLE);
            fl_inbox_push(&victim->queues.inbox, link);
            some_left = true;
        }
        link = next;
    }
    if (some_left) {
        /* The victim may have looked in the meantime. */
        fl_sched_wake_worker(sched, victim->index);
    }
    if (got != 0) {
        end_wait(w, price);
    }
    return got != 0;
}

/* Tells whether the rules let the worker rob the victim. The default rules permit every victim.
 * Where a policy chooses, the rules permit only failed and offline victims (and ranges left to
 * other devices). A policy need not know of such victims. */
static bool may_rob(const fl_worker *w, uint32_t victim, bool is_of_off)
{
    return victim != w->index &&
           FL_LIKELY(!is_of_off || fl_worker_is_unavailable(&w->sched->workers[victim]));
}

static bool rob_inboxes(fl_worker *w, const fl_victim_list *victims, bool is_of_off)
{
    for (uint32_t i = 0; i < victims->count; ++i) {
        uint32_t victim = victims->victims[i];
        if (may_rob(w, victim, is_of_off) && rob_inbox(w, &w->sched->workers[victim], 0)) {
            return true;
        }
    }
    return false;
}

static void look_at_ranges(fl_worker *w, const fl_victim_list *victims,
                           const fl_ruled_out *ruled_out, bool is_of_off, fl_steal_candidate *best)
{
    fl_jobs_walk walk = {0};
    for (const filch_job *job; (job = fl_jobs_next(w, &walk)) != NULL;) {
        for (uint32_t i = 0; i < victims->count; ++i) {
            uint32_t victim = victims->victims[i];
            if (!has(ruled_out->ranges, victim) &&
                (may_rob(w, victim, is_of_off) || (is_of_off && is_left(job, victim)))) {
                look_at_range(w, job, walk.slot, victim, best);
            }
        }
    }
}

static fl_steal_candidate find_loot(fl_worker *w, const fl_victim_list *victims,
                                    const fl_ruled_out *ruled_out, bool is_of_off)
{
    fl_steal_candidate best = {0};
    look_at_ranges(w, victims, ruled_out, is_of_off, &best);
    for (uint32_t i = 0; i < victims->count; ++i) {
        uint32_t victim = victims->victims[i];
        if (!has(ruled_out->deques, victim) && may_rob(w, victim, is_of_off)) {
            look_at_deques(w, &w->sched->workers[victim], &best);
        }
    }
    return best;
}

/* Returns the number of entries to take from an absent device. Nobody robs the thief in turn, so
 * the thief takes a part, and the present devices share the rest regardless of speed. */
static uint32_t part_of_off(const fl_sched *sched, uint32_t entries)
{
    uint32_t away = fl_load_relaxed(&sched->offline_count); /* a hint */
    uint32_t there = sched->count > away ? sched->count - away : 1;
    return entries / (FL_STEAL_PARTS * there) + 1;
}

/* Robs the best candidate. True: work was taken, or a second thief was quicker: look again. */
static bool rob_some(fl_worker *w, const fl_victim_list *victims, fl_ruled_out *ruled_out,
                     bool is_of_off, uint64_t start)
{
    for (;;) {
        uint64_t since = w->sched->keeps_holders ? fl_clock_now(&w->sched->core->clock) : 0;
        fl_steal_candidate best = find_loot(w, victims, ruled_out, is_of_off);
        if (best.entries == 0) {
            return false;
        }
        fl_victims_note(w, best.victim);
        if (best.ns_left < FL_STEAL_UNKNOWN_NS && !has_waited(w, best.victim, best.ns_way)) {
            /* A second victim's work may cost nothing. */
            add(best.slot < FL_ACTIVE_SLOTS ? ruled_out->ranges : ruled_out->deques, best.victim);
            continue;
        }
        if (is_of_off) {
            best.want = part_of_off(w->sched, best.entries);
        }
        if (best.slot < FL_ACTIVE_SLOTS) {
            /* A second look would find the same candidate: on the virtual clock forever. */
            if (has_place(w, fl_jobs_peek(w, best.slot)) && weigh_range(w, &best)) {
                if (rob_range(w, &best, start)) {
                    note_success(w, &best, since);
                }
                return true;
            }
            add(ruled_out->ranges, best.victim);
        } else if (!w->sched->mails) {
            if (rob_deques(w, &best, start)) {
                note_success(w, &best, since);
            }
            return true;
        } else if (rob_hints(w, &best, start)) {
            return true;
        } else {
            add(ruled_out->deques, best.victim);
        }
    }
}

static bool steal_by_rules(fl_worker *w, bool is_of_off)
{
    uint64_t refused = fl_ledger_refused(&w->ledger);
    uint64_t start = fl_trace_of(w) != NULL ? fl_clock_now(&w->sched->core->clock) : 0;
    fl_ruled_out ruled_out = {.deques = {0}};
    fl_victim_list victims;
    uint64_t waited_at = w->theft.waited_at;
    fl_victims_begin(w, &victims);
    while (fl_victims_next(w, &victims)) {
        if (rob_inboxes(w, &victims, is_of_off) ||
            rob_some(w, &victims, &ruled_out, is_of_off, start)) {
            return true;
        }
    }
    if (!is_of_off && fl_ledger_refused(&w->ledger) == refused) {
        fl_ledger_refuse(&w->ledger, FL_REFUSED_EMPTY);
    }
    if (w->theft.waited_at == waited_at) {
        /* No work was to be had: later work was not waited for. */
        w->theft.waited_at = 0;
    }
    w->theft.watch = w->theft.next_watch;
    return false;
}

/* Steals from the victim named by a policy, regardless of steal throttling. */
static bool steal_as_told(fl_worker *w, uint32_t victim, uint32_t amount)
{
    fl_sched *sched = w->sched;
    uint64_t start = fl_trace_of(w) != NULL ? fl_clock_now(&sched->core->clock) : 0;
    fl_steal_candidate candidate = {
        .victim = victim, .slot = FL_ACTIVE_SLOTS, .entries = amount, .want = amount};
    if (rob_inbox(w, &sched->workers[victim], amount) ||
        (sched->mails ? rob_hints(w, &candidate, start) : rob_deques(w, &candidate, start))) {
        return true;
    }
    for (candidate.slot = 0; candidate.slot < FL_ACTIVE_SLOTS; ++candidate.slot) {
        /* Relaxed: a first check; the visit repeats the check. */
        uint64_t bits = fl_load_relaxed(&sched->active[candidate.slot / 64]) >> candidate.slot % 64;
        if ((bits & 1) != 0 && rob_range(w, &candidate, start)) {
            return true;
        }
    }
    return false;
}

bool fl_worker_steal(fl_worker *w)
{
    const fl_sched *sched = w->sched;
    uint32_t victim, amount;
    w->idle.ready_at = FL_TIME_NEVER;
    w->theft.next_watch.since = 0;
    if (sched->count == 1) {
        return false;
    }
    if (sched->policy == FILCH_POLICY_STATIC) {
        /* Relaxed: a thread withdrawing a device, or leaving a batch, wakes every worker
         * afterwards. */
        bool is_needed =
            fl_load_relaxed(&sched->offline_count) != 0 || fl_sched_attends(sched, FL_ATTEND_LEFT);
        return FL_UNLIKELY(is_needed) && steal_by_rules(w, true);
    }
    /* A nested wait takes work needed by the awaited job, from every owner. */
    if (FL_LIKELY(sched->rules.with.steal == NULL) || w->now.frames != NULL) {
        return steal_by_rules(w, false) || fl_divide_join(w);
    }
    if (steal_by_rules(w, true)) {
        return true;
    }
    return fl_policy_victim(w, &victim, &amount) &&
           (victim == FILCH_POLICY_AUTO ? steal_by_rules(w, false)
                                        : steal_as_told(w, victim, amount));
}
