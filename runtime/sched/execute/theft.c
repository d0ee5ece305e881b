/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/theft.h"

#include <math.h>
#include <string.h>

#include "sched/account/ledger.h"
#include "sched/decide/chunk.h"
#include "sched/decide/placement.h"
#include "sched/decide/policy.h"
#include "sched/decide/slow.h"
#include "sched/decide/steal.h"
#include "sched/decide/victims.h"
#include "sched/execute/oldest.h"
#include "sched/model/explore.h"
#include "sched/ready/queue.h"
#include "sched/worker/jobs.h"
#include "sched/worker/others.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

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

/* --- Refusals and waits --- */

/* Sets the time of the next look at a victim that would end first, and watches the victim. By the
 * predictions a theft would never pay, but predictions may be wrong, so the thief looks again after
 * a part of the predicted time. A single victim is watched at a time, until the victim moves on or
 * is robbed. */
static void watch(fl_worker *w, uint32_t victim, uint64_t at, uint64_t t)
{
    fl_victims_note(w, &w->theft.victim_order, victim);
    w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
    if (fl_steal_is_watched(w, victim)) {
        w->theft.next_watch = w->theft.watch;
    } else if (w->theft.next_watch.since == 0) {
        uint64_t steps = fl_load_relaxed(&w->sched->workers[victim].queues.steps);
        w->theft.next_watch = (fl_watch){victim, steps, t};
    }
}

static void refuse(fl_worker *w, uint32_t victim, double ns_left, fl_refusal why)
{
    uint64_t t = fl_worker_clock(w);
    double ns = fmax(ns_left / FL_LOOK_AGAIN_OF_TIME, FL_LOOK_AGAIN_NS);
    fl_ledger_refuse(&w->ledger, why);
    watch(w, victim, t + (uint64_t)ns, t);
}

/* Tells whether the worker has been idle, with work to steal, for as long as the transfer of a
 * task's data costs. A theft moves a tile for good, and the robbed device misses the tile in the
 * next run of the graph. Where all devices have equal work, and one ends a little earlier, waiting
 * is cheaper. Between cores waiting in vain adds up, so a lasting imbalance is noticed at once the
 * next time (ski rental: at most twice the time of a choice with full knowledge). A GPU forgets its
 * wait once it has seen no such work. */
static bool has_waited(fl_worker *w, uint32_t victim, double ns_way)
{
    if (ns_way <= FL_HANDOFF_NS) {
        return true;
    }
    uint64_t t = fl_worker_clock(w);
    if (w->theft.waited_at != 0) { /* the worker ran nothing since */
        w->theft.waited_ns += (double)(t - w->theft.waited_at);
    }
    w->theft.waited_at = t;
    w->theft.is_waiting = true;
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

/* Updates the mean cost of thefts. since: time at which the look began. */
static void note_success(fl_worker *w, const fl_steal_candidate *candidate, uint64_t since)
{
    if (w->sched->keeps_holders) {
        double ns = (double)(fl_worker_clock(w) - since);
        ns = fmin(fmax(ns, FL_STEAL_LEAST_NS), FL_STEAL_MOST_NS);
        w->theft.theft_ns += FL_MEAN_WEIGHT * (ns - w->theft.theft_ns);
        end_wait(w, candidate->ns_way);
    }
}

/* Notes a refusal. */
static bool is_paying(fl_worker *w, uint32_t victim, fl_steal_verdict verdict)
{
    if (!verdict.pays) {
        refuse(w, victim, verdict.ns_left, verdict.why);
    }
    return verdict.pays;
}

/* --- Candidates --- */

static void consider(fl_worker *w, fl_steal_candidate *best, fl_steal_candidate candidate)
{
    switch (fl_steal_compare(w, best, &candidate)) {
    case FL_STEAL_IGNORE:
        break;
    case FL_STEAL_PREFER:
        *best = candidate;
        break;
    case FL_STEAL_REFUSE:
        refuse(w, candidate.victim, candidate.ns_left, FL_REFUSED_HELD);
        break;
    }
}

static void look_at_deques(fl_worker *w, const fl_worker *victim, fl_steal_candidate *best)
{
    fl_steal_candidate candidate = fl_steal_of_deques(w, victim);
    if (candidate.entries != 0) {
        consider(w, best, candidate);
    }
}

/* Tells whether a device has left the range to other devices (execute/unavailable.c). Relaxed: a
 * hint. */
static bool is_left(const filch_job *job, uint32_t device)
{
    return fl_load_relaxed(&fl_job_share(job, device)->is_out) != 0;
}

static void look_at_range(fl_worker *w, const filch_job *job, uint32_t slot, uint32_t victim,
                          fl_steal_candidate *best)
{
    uint32_t lo, hi, floor;
    if (fl_range_peek(&fl_job_share(job, victim)->range, &lo, &hi) == 0) {
        return;
    }
    if (!fl_range_is_open(w, job, hi, &floor) || floor >= hi ||
        (job->batch != NULL && fl_share_is_left(w, job))) {
        fl_ledger_refuse(&w->ledger, FL_REFUSED_UNABLE);
        return;
    }
    /* Roots closed to the thief are no reason to rob the victim. */
    lo = lo > floor ? lo : floor;
    fl_steal_candidate candidate = fl_steal_of_range(w, job, victim, lo, hi, is_left(job, victim));
    candidate.slot = slot;
    consider(w, best, candidate);
}

/* Adds the transfer of a range's missing data, on the thief and on the victim, to the candidate.
 * False: the theft does not pay then. */
static bool weigh_range(fl_worker *w, fl_steal_candidate *candidate)
{
    const fl_worker *victim = &w->sched->workers[candidate->victim];
    uint32_t lo, hi, floor, want = fl_steal_share(candidate);
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
    return is_paying(w, candidate->victim, fl_steal_weigh_range(w, candidate, &missing, hi - lo));
}

/* Tells whether the rules let the worker rob the victim. The default rules permit every victim.
 * Where a policy chooses, the rules permit only failed and offline victims (and ranges left to
 * other devices). A policy need not know of such victims. */
static bool may_rob(const fl_worker *w, uint32_t victim, bool is_of_off)
{
    return victim != w->index &&
           FL_LIKELY(!is_of_off || fl_worker_is_unavailable(&w->sched->workers[victim]));
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

static fl_steal_candidate find_best(fl_worker *w, const fl_victim_list *victims,
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

/* --- Taking --- */

static void note_theft(fl_worker *w, const filch_job *job, uint32_t victim, uint64_t n,
                       uint64_t start)
{
    fl_count(&fl_job_share(job, w->index)->stolen_in, n);
    fl_ledger_add_stolen(&w->ledger, n);
    fl_add_relaxed(&fl_job_share(job, victim)->stolen_out, n);
    fl_trace_ring *ring = fl_trace_of(w);
    if (ring != NULL) {
        uint64_t end = fl_worker_clock(w);
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
        !fl_range_cut(range, fl_steal_share(candidate), floor, hi, &lo, &hi)) {
        fl_ledger_refuse(&w->ledger, FL_REFUSED_RACED);
        return false;
    }
    if (candidate->ns_trial != 0) {
        fl_speed_probe(candidate->speed, candidate->ns_trial, fl_worker_clock(w));
    }
    /* Counts before setting the range: a second thief may then take everything and complete the
     * job. */
    note_theft(w, job, candidate->victim, hi - lo, start);
    fl_share_refill(fl_job_share(job, w->index), lo, hi);
    return true;
}

/* Removes entries that the thief would end late. */
static void forget_late(fl_worker *w, fl_oldest *oldest)
{
    for (uint32_t i = oldest->count; i-- > 0;) {
        if (FL_UNLIKELY(oldest->missing[i].is_late)) {
            fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
            fl_oldest_forget(oldest, i);
        }
    }
}

/* Adds a stolen task's missing bytes to the decaying mean. Over unmeasured links the bytes count
 * only for a device that keeps up: a very slow device with a second item behind its present one
 * would hold up the successors of that item. */
static void note_brought(fl_worker *w, const fl_missing *missing)
{
    if (missing->is_known) {
        bool counts = missing->bring_ns > 0 || fl_slow_keeps_up(w);
        w->theft.brought_bytes = (w->theft.brought_bytes + (counts ? missing->bytes : 0)) / 2;
    }
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
        fl_oldest_look(w, deque, matters ? FL_OLDEST : 1, &oldest);
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
            uint32_t best = fl_oldest_least(&oldest);
            if (!is_paying(w, candidate->victim,
                           fl_steal_weigh_task(w, candidate, oldest.missing, best, oldest.count))) {
                return NULL;
            }
            if (fl_ready_claim(w->sched, oldest.hints[best], &task, &poisoned)) {
                /* An entry found below the top stays. Since the look, the owner may have popped the
                 * entry and pushed an unclaimed entry at the same index. The top may have reached
                 * the index. */
                if (oldest.is_top[best]) {
                    fl_deque_drop(deque, oldest.at[best]);
                }
                note_brought(w, &oldest.missing[best]);
                fl_claimed_put(w, task, poisoned);
                return task;
            }
            fl_ledger_refuse(&w->ledger, FL_REFUSED_RACED);
            fl_oldest_forget(&oldest, best);
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
    uint32_t want = fl_steal_haul(w, candidate), got = 0;
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

/* Tells whether the victim keeps the inbox for now. *price: time that the thief waited for, ns. */
static bool is_for_victim(fl_worker *w, const fl_worker *victim, double *price)
{
    fl_steal_inbox inbox = fl_steal_of_inbox(w, victim);
    *price = inbox.price;
    if (inbox.is_refused) {
        refuse(w, victim->index, inbox.ns_left, FL_REFUSED_HELD);
    }
    return inbox.is_refused || !has_waited(w, victim->index, inbox.price);
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

/* Tells whether the thief leaves a task in the victim's inbox for now. There are three reasons: the
 * thief is slow and would hold up the graph, the victim ends the task much sooner, or the copies
 * take longer than the task and the thief was not yet idle for as long. Each task is waited for. */
static bool leaves(fl_worker *w, const fl_worker *victim, const fl_task *task)
{
    if ((!fl_worker_is_unavailable(victim) && fl_slow_holds_up(w, task)) ||
        (w->sched->mails && fl_worker_is_outdone(w, victim, task) && !keeps(w, victim, task))) {
        fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
        return true;
    }
    double way = fl_placement_way_ns(w, victim, task);
    if (way > 0 && w->pipeline.in_flight != w->pipeline.writing_back_count) {
        w->theft.is_waiting = true; /* keeps waited_ns, which steal_by_rules resets otherwise */
        fl_ledger_refuse(&w->ledger, FL_REFUSED_DEAR);
        return true;
    }
    if (!has_waited(w, victim->index, way)) {
        return true;
    }
    if (way > FL_HANDOFF_NS) {
        w->theft.waited_ns -= way;
    }
    return false;
}

/* The same where a policy decides how many tasks it wants. */
static bool leaves_as_told(fl_worker *w, const fl_worker *victim, const fl_task *task,
                           bool is_wanted)
{
    if (is_wanted && (fl_worker_is_unavailable(victim) || !fl_slow_holds_up(w, task))) {
        return false;
    }
    fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
    return true;
}

/* Robs a whole inbox: the tasks wait for a busy worker. most: number of tasks wanted by a policy,
 * deciding instead; 0: no policy. */
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
        if (!can_run) {
            fl_ledger_refuse(&w->ledger, FL_REFUSED_UNABLE);
        }
        if (can_run &&
            !(most != 0 ? leaves_as_told(w, victim, task, got < most) : leaves(w, victim, task))) {
            note_theft(w, task->graph->job, victim->index, 1, 0);
            fl_ready_push(w, task);
            ++got;
        } else {
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

/* Robs the best candidate. True: work was taken, or a second thief was quicker: look again. */
static bool rob_some(fl_worker *w, const fl_victim_list *victims, fl_ruled_out *ruled_out,
                     bool is_of_off, uint64_t start)
{
    for (;;) {
        uint64_t since = w->sched->keeps_holders ? fl_worker_clock(w) : 0;
        fl_steal_candidate best = find_best(w, victims, ruled_out, is_of_off);
        if (best.entries == 0) {
            return false;
        }
        fl_victims_note(w, &w->theft.victim_order, best.victim);
        if (best.ns_left < FL_STEAL_UNKNOWN_NS && !has_waited(w, best.victim, best.ns_way)) {
            /* A second victim's work may cost nothing. */
            add(best.slot < FL_ACTIVE_SLOTS ? ruled_out->ranges : ruled_out->deques, best.victim);
            continue;
        }
        if (is_of_off) {
            best.want = fl_steal_part_of_absent(w->sched, best.entries);
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
    uint64_t start = fl_trace_of(w) != NULL ? fl_worker_clock(w) : 0;
    fl_ruled_out ruled_out = {.deques = {0}};
    fl_victim_list victims;
    w->theft.is_waiting = false;
    fl_victims_begin(w, &w->theft.victim_order, &victims);
    while (fl_victims_next(w, &w->theft.victim_order, &victims)) {
        if (rob_inboxes(w, &victims, is_of_off) ||
            rob_some(w, &victims, &ruled_out, is_of_off, start)) {
            return true;
        }
    }
    if (is_of_off) {
        return false; /* the look at the others is yet to come, or is a policy's */
    }
    if (fl_ledger_refused(&w->ledger) == refused) {
        fl_ledger_refuse(&w->ledger, FL_REFUSED_EMPTY);
    }
    if (!w->theft.is_waiting) {
        /* No work was to be had: later work was not waited for. */
        w->theft.waited_at = 0;
        w->theft.waited_ns = w->sched->keeps_holders ? w->theft.waited_ns : 0;
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
        return steal_by_rules(w, false);
    }
    if (steal_by_rules(w, true)) {
        return true;
    }
    return fl_policy_victim(w, &victim, &amount) &&
           (victim == FILCH_POLICY_AUTO ? steal_by_rules(w, false)
                                        : steal_as_told(w, victim, amount));
}
