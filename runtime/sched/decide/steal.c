/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/steal.h"

#include <math.h>

#include "sched/decide/place.h"
#include "sched/model/cost.h"
#include "sched/model/explore.h"
#include "sched/model/predict.h"
#include "sched/worker/device.h"
#include "sched/worker/tuning.h"

/* --- Candidates --- */

bool fl_steal_is_watched(const fl_worker *w, uint32_t victim)
{
    return w->theft.watch.since != 0 && w->theft.watch.victim == victim &&
           w->theft.watch.steps == fl_load_relaxed(&w->sched->workers[victim].queues.steps);
}

/* Returns the time for which the worker has seen the victim at the present item, ns; 0: not
 * watched. */
static double seen_ns(const fl_worker *w, uint32_t victim)
{
    return fl_steal_is_watched(w, victim) ? (double)(fl_worker_clock(w) - w->theft.watch.since) : 0;
}

/* Returns the victim's time for the present task: the mean, or the time seen if longer. */
static double present_ns(const fl_worker *w, const fl_worker *victim)
{
    double mean = fl_worker_mean_ns(victim), seen = seen_ns(w, victim->index);
    return seen > mean ? seen : mean;
}

/* Returns the time until the victim has run the present item, of which at_work is left, and the
 * entries, which take `each` ns. An item that takes longer than an entry may take as long again.
 * The entries are not expected to. */
static double ns_until_done(const fl_worker *w, const fl_worker *victim, double each,
                            double entries, double at_work)
{
    double seen = seen_ns(w, victim->index);
    return each * entries + (seen > each ? seen : at_work * each);
}

fl_steal_candidate fl_steal_of_deques(const fl_worker *w, const fl_worker *victim)
{
    uint32_t mask = fl_load_relaxed(&victim->queues.level_mask);
    int64_t entries = 0;
    while (mask != 0) {
        uint32_t level = (uint32_t)__builtin_ctz(mask);
        mask &= mask - 1;
        entries += fl_deque_size(&victim->queues.levels[level]);
    }
    if (entries <= 0) {
        return (fl_steal_candidate){0};
    }
    double own = fl_cost_of_unseen(w, victim);
    double way = fl_place_theft_ns(w, victim);
    /* The victim ends the present item before the entries. Where tiles are brought, the thief's
     * transfer costs about as much as half an item, which is left out. */
    double at_work = w->offload == NULL ? FL_STEAL_HALF_DONE : 0;
    double left = ns_until_done(w, victim, fl_worker_mean_ns(victim), (double)entries, at_work);
    return (fl_steal_candidate){.victim = victim->index,
                                .slot = FL_ACTIVE_SLOTS,
                                .ns_left = fl_worker_is_unavailable(victim) ? FL_STEAL_NEVER_NS
                                           : left > 0                       ? left
                                                                            : FL_STEAL_UNKNOWN_NS,
                                .ns_thief = (own + way) * (double)entries,
                                .ns_way = way,
                                .entries = (uint32_t)entries};
}

/* Fills in a candidate of `entries` roots in a victim's range. Tasks of other kinds, run since the
 * last roots, may have been far shorter; for cores the time of a root is known. */
static void look_at_roots(const fl_worker *w, const filch_job *job, const fl_worker *victim,
                          fl_steal_candidate *candidate)
{
    double theirs = fl_worker_mean_ns(victim), own = fl_cost_of_unseen(w, victim);
    double way = fl_place_theft_ns(w, victim);
    double known = (double)fl_job_share(job, victim->index)->root_ns;
    double mine = (double)fl_job_share(job, w->index)->root_ns;
    own = mine > 0 ? mine : known > 0 ? known : own;
    theirs = known > 0 ? known : theirs;
    /* A core has the present item to end first, as in fl_steal_of_deques. */
    double at_work = w->sched->keeps_holders ? FL_STEAL_HALF_DONE : 0;
    candidate->ns_left = ns_until_done(w, victim, theirs, candidate->entries, at_work);
    candidate->ns_thief = (own + way) * candidate->entries;
    candidate->ns_way = way;
}

fl_steal_candidate fl_steal_of_range(const fl_worker *w, const filch_job *job, uint32_t victim,
                                     uint32_t lo, uint32_t hi, bool is_left)
{
    fl_steal_candidate candidate = {.victim = victim, .entries = hi - lo};
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
    if (fl_worker_is_unavailable(&w->sched->workers[victim]) || is_left) {
        candidate.ns_left = FL_STEAL_NEVER_NS;
    }
    return candidate;
}

/* --- Choice --- */

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
               fl_theft_pays(0, 0, once, FL_THEFT_NS, candidate->ns_left) &&
               fl_explore_is_due(w, fl_worker_mean_ns(w));
    }
    double score = w->sched->scores[w->index], best = fl_speed_best(candidate->speed);
    double by_score =
        candidate->ns_left * w->sched->scores[candidate->victim] / score; /* maybe infinite */
    double as_once = ns_piece * best / fl_speed_get(candidate->speed);
    double hope =
        best > 0 ? fmin(as_once, by_score / candidate->entries) : by_score / candidate->entries;
    return fl_theft_pays(0, 0, hope, FL_THEFT_NS, candidate->ns_left) &&
           fl_speed_probe_is_due(candidate->speed, ns_piece, fl_worker_clock(w));
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

/* Cores: tells whether a theft refused only for the theft's own cost may happen after a wait. The
 * worker waits, idle and with work to steal, for the time of a wake-up: one core may own all tasks,
 * and never show more than a single task. The data then stay with the thief. Tasks far shorter than
 * a theft are better left together. ns_piece, ns_left: times without the theft. */
static bool may_wait_for_held(const fl_worker *w, double ns_piece, double ns_left)
{
    return w->sched->keeps_holders && fl_theft_pays(0, 0, ns_piece, 0, ns_left) &&
           FL_STEAL_LONG * ns_piece > w->theft.theft_ns;
}

static double price_of_held(double ns_way)
{
    return fmax(ns_way, FL_WAKE_UP_NS);
}

fl_steal_choice fl_steal_compare(const fl_worker *w, const fl_steal_candidate *best,
                                 fl_steal_candidate *candidate)
{
    if (candidate->ns_left <= best->ns_left) {
        return FL_STEAL_IGNORE;
    }
    /* Steal throttling: compares a single piece on the thief, theft included, with the victim's
     * remaining time. */
    const fl_worker *victim = &w->sched->workers[candidate->victim];
    double ns_piece = candidate->ns_thief / candidate->entries + candidate->ns_fixed;
    if (fl_theft_pays(fl_cost_in_flight_mean(w), 0, ns_piece, theft_ns(w, victim),
                      candidate->ns_left)) {
        return FL_STEAL_PREFER;
    }
    if (best->entries == 0 && may_try(w, candidate, ns_piece)) {
        candidate->ns_left = 0; /* every paying theft is better */
        candidate->ns_trial = ns_piece;
        return FL_STEAL_PREFER;
    }
    if (best->entries == 0 &&
        may_wait_for_held(w, fl_cost_finish(fl_cost_in_flight_mean(w), 0, ns_piece, 0),
                          candidate->ns_left)) {
        candidate->ns_left = 0;
        candidate->ns_way = price_of_held(candidate->ns_way);
        return FL_STEAL_PREFER;
    }
    return FL_STEAL_REFUSE;
}

/* Weighs a piece of the candidate, with the piece's time on the thief. */
static fl_steal_verdict weigh(const fl_worker *w, const fl_steal_candidate *candidate,
                              double ns_piece)
{
    double bring = fmax(candidate->ns_bring, 0);
    double left = candidate->ns_left;
    bool is_dear = fl_theft_pays(fl_cost_in_flight_mean(w), 0, ns_piece, FL_THEFT_NS, left);
    bool pays = fl_theft_pays(fl_cost_in_flight_mean(w), bring, ns_piece, FL_THEFT_NS, left);
    return (fl_steal_verdict){bring == 0 || pays, is_dear ? FL_REFUSED_DEAR : FL_REFUSED_HELD,
                              left};
}

fl_steal_verdict fl_steal_weigh_range(const fl_worker *w, fl_steal_candidate *candidate,
                                      const fl_missing *missing, uint32_t n)
{
    if (FL_UNLIKELY(missing->is_late) &&
        !fl_worker_is_unavailable(&w->sched->workers[candidate->victim])) {
        return (fl_steal_verdict){false, FL_REFUSED_HELD, candidate->ns_left};
    }
    if (!missing->is_known || candidate->ns_left >= FL_STEAL_UNKNOWN_NS) {
        return (fl_steal_verdict){.pays = true};
    }
    candidate->ns_bring = missing->bring_ns / n;
    candidate->ns_left = fmax(candidate->ns_left, missing->victim_ns / n * candidate->entries);
    return weigh(w, candidate, candidate->ns_thief / candidate->entries + candidate->ns_fixed);
}

fl_steal_verdict fl_steal_weigh_task(const fl_worker *w, const fl_steal_candidate *candidate,
                                     const fl_missing *missing, uint32_t index, uint32_t count)
{
    fl_steal_candidate all = *candidate;
    double theirs = 0, ns = missing[index].ns;
    if (candidate->want != 0 || !missing[index].is_known ||
        candidate->ns_left >= FL_STEAL_UNKNOWN_NS) {
        return (fl_steal_verdict){.pays = true};
    }
    for (uint32_t i = 0; i < count; ++i) {
        theirs += missing[i].victim_ns / count;
    }
    all.ns_bring = missing[index].bring_ns;
    all.ns_left = fmax(candidate->ns_left, theirs * candidate->entries);
    return weigh(w, &all, ns > 0 ? ns : candidate->ns_thief / candidate->entries);
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

/* An attentive victim keeps the inbox: where all cores have equal work, a core ending a little
 * earlier would take the next core's task, and so on. */
fl_steal_inbox fl_steal_of_inbox(const fl_worker *w, const fl_worker *victim)
{
    if (!w->sched->keeps_holders || fl_worker_is_unavailable(victim) ||
        fl_load_relaxed(&victim->signals.nested) != 0) { /* relaxed: an estimate */
        return (fl_steal_inbox){0};
    }
    double theirs = present_ns(w, victim), way = fl_place_theft_ns(w, victim);
    double own = fl_cost_of_unseen(w, victim), away = away_ns(w, victim, theirs);
    if (theirs == 0) {
        return (fl_steal_inbox){0};
    }
    if (away > 0 && fl_theft_pays(0, 0, own + way, theft_ns(w, victim), away + theirs)) {
        return (fl_steal_inbox){.price = way};
    }
    if (away > 0 && may_wait_for_held(w, own + way, (1 + FL_STEAL_HALF_DONE) * theirs)) {
        return (fl_steal_inbox){.price = price_of_held(way)};
    }
    return (fl_steal_inbox){.is_refused = true, .ns_left = away + theirs};
}

/* --- Amount --- */

uint32_t fl_steal_share(const fl_steal_candidate *candidate)
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

uint32_t fl_steal_haul(const fl_worker *w, const fl_steal_candidate *candidate)
{
    double own = fl_cost_of_unseen(w, &w->sched->workers[candidate->victim]);
    uint32_t want = fl_steal_share(candidate);
    if (candidate->want == 0 && own * want > FL_STEAL_HAUL_NS) {
        want = own > FL_STEAL_HAUL_NS ? 1 : (uint32_t)(FL_STEAL_HAUL_NS / own);
    }
    return want < FL_STEAL_MOST ? want : FL_STEAL_MOST;
}

uint32_t fl_steal_part_of_absent(const fl_sched *sched, uint32_t entries)
{
    uint32_t away = fl_load_relaxed(&sched->offline_count); /* a hint */
    uint32_t there = sched->count > away ? sched->count - away : 1;
    return entries / (FL_STEAL_PARTS * there) + 1;
}
