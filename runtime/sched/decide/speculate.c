/* SPDX-License-Identifier: Apache-2.0 */
/* Speculative execution: chunks run twice. With nothing left to steal, a worker looks for a chunk
 * in flight on a second device that would end later than a fresh run. The worker starts a backup
 * run, and the first run to finish counts (race.h).
 *
 * Either run writes to private output (private_output.c), and the winner sends the private output
 * to the final location. So the loser may go on for an arbitrary time, even when the job is over
 * and the results belong to somebody else. Inputs stay in place, so a backup run keeps the job
 * (fl_job_keep).
 *
 * A GPU may refuse a launch, for lack of memory or for a second reason. On a GPU, a first run
 * therefore becomes visible at the launch, and a backup run joins the race at the launch: a run
 * never launched is no run.
 *
 * A backup run begins at once where the first run is predicted to end later. An overdue first run
 * is assumed to need as long again as the run is overdue. The backup run then begins when the first
 * run is late by the duration of a backup run. The waste of the two runs is at most twice the
 * better duration. */
#include "sched/decide/speculate.h"

#include <math.h>

#include "sched/account/account.h"
#include "sched/account/current_job.h"
#include "sched/execute/private_output.h"
#include "sched/model/cost.h"
#include "sched/model/missing.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/tuning.h"

/* Longest delay, ns, of the next look at a chunk whose backup run lacks inputs. */
#define MOST_LACK_NS 1e9

static uint64_t now(const fl_worker *w)
{
    return fl_clock_now(&w->sched->core->clock);
}

/* --- First runs --- */

/* Returns a free run; for a first run, the run's race is free, too. */
static fl_backup_run *find_run(fl_worker *w, bool is_second)
{
    for (uint32_t i = 0; i < FL_RACES; ++i) {
        if (!w->backup.runs[i].is_taken && (is_second || fl_race_is_free(&w->signals.races[i]))) {
            return &w->backup.runs[i];
        }
    }
    return NULL;
}

/* Tells whether chunks of batches are run twice at all: only by the default rules. */
static bool is_on(const fl_worker *w)
{
    return w->sched->policy == FILCH_POLICY_STEAL && w->sched->count > 1;
}

static void take_run(fl_backup_run *run, fl_race *race, uint32_t first, fl_item *item)
{
    run->race = race;
    run->first = first;
    run->is_taken = true;
    run->has_lost = false;
    item->run = run;
}

/* Starts the race of a first run that is under way, or certain to begin. */
static void begin(fl_worker *w, const fl_item *item)
{
    filch_job *job = item->job;
    fl_race_begin(item->run->race,
                  &(fl_race_piece){.job = (uintptr_t)job,
                                   .codelet = (uintptr_t)fl_batch_codelet(job->batch),
                                   .lo = item->lo,
                                   .hi = item->hi,
                                   .work = item->work,
                                   .since = now(w) + 1});
    /* Relaxed, as below: tells other workers whether to look. */
    fl_store_relaxed(&w->signals.racing, fl_load_relaxed(&w->signals.racing) + 1);
    if (FL_UNLIKELY(!fl_sched_attends(w->sched, FL_ATTEND_RACES))) {
        fl_or_relaxed(&w->sched->attention, (uint32_t)FL_ATTEND_RACES);
    }
}

static void count_refused(fl_worker *w, const fl_item *item)
{
    fl_count(&fl_job_share(item->job, w->index)->account.restarts_refused, 1);
}

void fl_speculate_offer(fl_worker *w, fl_item *item)
{
    bool computes = fl_worker_computes(w);
    fl_backup_run *run = NULL;
    if (item->run != NULL) {
        return; /* the item is a backup run already */
    }
    if (is_on(w) && fl_batch_is_restartable(item->job->batch)) {
        run = find_run(w, false);
    }
    if (run != NULL && (computes || fl_private_take(w, item, run))) {
        run->is_second = false;
        take_run(run, &w->signals.races[run - w->backup.runs], w->index, item);
        if (!computes) {
            begin(w, item);
        }
    } else if (!computes) {
        /* A device that computes counts at the launch: the chunk may have to wait for the launch.
         */
        count_refused(w, item);
    }
}

bool fl_speculate_forgo(fl_item *item)
{
    if (item->run == NULL || item->run->is_second) {
        return false;
    }
    item->run->is_taken = false;
    item->run = NULL;
    return true;
}

/* --- Second runs --- */

/* Chunk with the largest gain found so far. */
typedef struct fl_prey {
    uint32_t victim;
    fl_race *race;
    uint64_t word;
    fl_race_piece piece;
    double gain; /* ns */
} fl_prey;

/* Lists the first runs in flight on a worker, oldest first. */
static uint32_t list_races(fl_worker *victim, fl_prey *found)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FL_RACES; ++i) {
        fl_prey prey = {.victim = victim->index, .race = &victim->signals.races[i]};
        prey.word = fl_race_look(prey.race, &prey.piece);
        if (fl_race_state_of(prey.word) == FL_RACE_FREE || prey.piece.since == 0) {
            continue;
        }
        uint32_t at = count++;
        for (; at > 0 && (found[at - 1].piece.since > prey.piece.since ||
                          (found[at - 1].piece.since == prey.piece.since &&
                           found[at - 1].piece.lo > prey.piece.lo));
             --at) {
            found[at] = found[at - 1];
        }
        found[at] = prey;
    }
    return count;
}

/* Predicts the time of a run on a device, ns; 0: never measured. */
static double predict(const fl_race_piece *piece, uint32_t device)
{
    return fl_cost_measured((const filch_codelet *)piece->codelet, device, piece->work);
}

/* Finds the worker's chunk with the largest gain, if larger than *best. */
static void look_at(fl_worker *w, fl_worker *victim, fl_prey *best)
{
    fl_prey found[FL_RACES];
    uint32_t count = list_races(victim, found);
    double t = (double)now(w), end = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const fl_race_piece *piece = &found[i].piece;
        double there = predict(piece, victim->index), here = predict(piece, w->index);
        if (there == 0) {
            /* The ends of the chunk, and of the chunks behind, are unknown. */
            return;
        }
        end = fmax(end, (double)(piece->since - 1)) + there;
        double due = end;
        end = end < t ? t + (t - end) : end; /* overdue: as long again */
        if (fl_race_state_of(found[i].word) != FL_RACE_ALONE || here == 0) {
            continue;
        }
        found[i].gain = end - t - here - FL_RESTART_NS;
        if (found[i].gain > best->gain) {
            *best = found[i];
        } else if (found[i].gain <= 0) {
            /* The clock counts whole nanoseconds: by then the chunk is over, or a backup run pays.
             */
            uint64_t at = (uint64_t)ceil(due + here + FL_RESTART_NS) + 1;
            w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
        }
    }
}

/* Tells whether the worker should begin the only backup run. The first idle device is not always
 * the best: a much faster device may be idle soon, as nothing is left to steal. False: not yet. */
static bool is_turn(fl_worker *w, const fl_prey *prey)
{
    const fl_sched *sched = w->sched;
    double here = predict(&prey->piece, w->index), least = here;
    for (uint32_t d = 0; d < sched->count; ++d) {
        double ns = d != prey->victim && !fl_worker_is_unavailable(&sched->workers[d])
                        ? predict(&prey->piece, d)
                        : 0;
        least = ns > 0 ? fmin(least, ns) : least;
    }
    if (FL_FASTER * least >= here) {
        return true;
    }
    /* Relaxed: the worker is the only writer. */
    const fl_ledger *ledger = &w->ledger;
    bool is_idle = fl_load_relaxed(&ledger->kind) != FL_SPELL_ON;
    uint64_t t = now(w), since = is_idle ? fl_load_relaxed(&ledger->idle_since) : t;
    uint64_t at = since + (uint64_t)(here / FL_LOOK_AGAIN_OF_TIME);
    if (t >= at) {
        return true;
    }
    w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
    return false;
}

/* Protects the job of a chunk in flight by the hazard pointer; false: the run is over. */
static bool protect(fl_worker *w, const fl_prey *prey)
{
    filch_job *job = (filch_job *)prey->piece.job;
    fl_jobs_peek_at(w, job);
    if (!fl_race_is_at(prey->race, prey->word)) {
        fl_jobs_end_peek(w); /* the hazard protects nothing */
        return false;
    }
    return true;
}

/* Tells whether the backup run of a chunk is in the race; the job is kept. */
static bool join_race(fl_worker *w, const fl_item *item)
{
    fl_backup_run *run = item->run;
    _Atomic uint64_t *restarts = &fl_job_share(item->job, w->index)->account.restarts;
    fl_count(restarts, 1); /* counted before the first run can end the job */
    if (fl_race_join(run->race, run->word, w->index)) {
        /* For the deciding run; a statistic. */
        fl_store_relaxed(&run->race->second, now(w) + 1);
        return true;
    }
    fl_store_relaxed(restarts, fl_load_relaxed(restarts) - 1);
    return false;
}

/* Tells whether the backup run's gain exceeds the transfer cost of inputs and results. Either run
 * sends results to the final location, so only the difference between the runs counts. */
static bool is_worth(fl_worker *w, const fl_prey *prey, const fl_item *item)
{
    const fl_worker *victim = &w->sched->workers[prey->victim];
    double here = 0, there = 0;
    if (w->offload != NULL) {
        here = fl_missing_of_run(w, victim, item->job, item->lo, item->hi, &there);
    }
    double lacks = here - there - prey->gain;
    if (lacks < 0) {
        return true;
    }
    /* The gain grows as the first run becomes overdue. */
    uint64_t at = now(w) + (uint64_t)ceil(fmin(lacks, MOST_LACK_NS)) + 1;
    w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
    return false;
}

/* Starts the backup run of a chunk; the job is kept. The run takes private output, and joins the
 * race; on a GPU, only at the launch. */
static bool start_kept(fl_worker *w, const fl_prey *prey, fl_item *item, fl_backup_run *run)
{
    bool computes = fl_worker_computes(w);
    if (!is_worth(w, prey, item) || (!computes && !fl_private_take(w, item, run))) {
        return false;
    }
    run->is_second = true;
    run->word = prey->word;
    take_run(run, prey->race, prey->victim, item);
    if (computes || join_race(w, item)) {
        return true;
    }
    fl_private_give(w, run);
    run->is_taken = false;
    return false;
}

/* Begins a backup run of a chunk; the job is protected. */
static bool join(fl_worker *w, const fl_prey *prey, fl_item *item)
{
    filch_job *job = (filch_job *)prey->piece.job;
    fl_backup_run *run = find_run(w, true);
    *item = (fl_item){.job = job,
                      .lo = prey->piece.lo,
                      .hi = prey->piece.hi,
                      .timed = true,
                      .work = prey->piece.work};
    if (run == NULL || !fl_devices_have(fl_batch_devices(job->batch), w->index) ||
        fl_load_relaxed(&job->cancelled) != 0 || !fl_job_keep(job)) {
        return false;
    }
    if (start_kept(w, prey, item, run)) {
        return true;
    }
    fl_job_unkeep(job); /* the worker's hazard still names the job */
    return false;
}

bool fl_speculate_pick(fl_worker *w, fl_item *item)
{
    fl_sched *sched = w->sched;
    fl_prey best = {.gain = 0};
    if (!fl_sched_attends(sched, FL_ATTEND_RACES) || !is_on(w) || w->now.frames != NULL) {
        return false;
    }
    if (w->backup.next_at != 0) {
        if (now(w) < w->backup.next_at) {
            w->idle.ready_at =
                w->backup.next_at < w->idle.ready_at ? w->backup.next_at : w->idle.ready_at;
            return false;
        }
        w->backup.next_at = 0;
    }
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *victim = &sched->workers[(w->index + i) % sched->count];
        if (fl_load_relaxed(&victim->signals.racing) != 0) {
            look_at(w, victim, &best);
        }
    }
    if (best.race == NULL || !is_turn(w, &best) || !protect(w, &best) || !join(w, &best, item)) {
        return false;
    }
    fl_worker_turn(w, item->job);
    return true;
}

/* --- Launches on a GPU --- */

void fl_speculate_launched(fl_worker *w, fl_item *item)
{
    if (item->run == NULL) {
        count_refused(w, item);
    } else if (!item->run->is_second) {
        begin(w, item);
    } else if (!join_race(w, item)) {
        /* The first run was faster than the launch. */
        item->run->has_lost = true;
    }
}

void fl_speculate_refused(fl_worker *w, fl_item *item)
{
    if (fl_speculate_forgo(item) || item->run == NULL) {
        return;
    }
    w->backup.next_at = now(w) + FL_RESTART_REFUSED_NS;
    fl_speculate_drop(w, item);
}

void fl_speculate_settle(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    if (!flight->has_failed && !item->run->has_lost && fl_speculate_decide(w, item, flight)) {
        item->run = NULL;
    }
}

/* --- The end of a run --- */

/* Adds the device's time in a run that does not count, from `since` until t. Runs on a device may
 * overlap, so time counts once. */
static void waste(fl_share *share, uint64_t since, uint64_t t)
{
    uint64_t from = fl_exchange_acquire(&share->wasted_until, t + 1); /* statistics throughout */
    from = from != 0 && from - 1 > since ? from - 1 : since;
    fl_add_relaxed(&share->wasted_ns, t > from ? t - from : 0);
}

void fl_speculate_end(fl_share *share, uint64_t end)
{
    if (fl_load_relaxed(&share->losing) != 0) {
        waste(share, fl_load_relaxed(&share->wasted_until) - 1, end);
    }
}

/* Notes that the caller's run counts, and the loser does not. The loser began at since - 1; 0: just
 * now. */
static void note_loser(const fl_worker *w, const fl_item *item, uint32_t second, uint64_t since)
{
    const fl_backup_run *run = item->run;
    uint64_t t = now(w);
    fl_share *share = fl_job_share(item->job, run->is_second ? run->first : second);
    if (run->is_second) {
        fl_count(&fl_job_share(item->job, w->index)->account.restarts_won, 1);
    } else {
        fl_add_relaxed(&share->restarts_lost, 1);
    }
    fl_add_relaxed(&share->losing, 1);
    waste(share, since != 0 ? since - 1 : t, t);
}

/* Notes the end of a loser; the defeat was noted before. */
static void note_lost(const fl_worker *w, const fl_item *item)
{
    fl_share *share = fl_job_share(item->job, w->index);
    /* Acquire: the job's end is noted before; time after the end is not the job's. */
    if (fl_load_acquire(&fl_part_of_job(item->job)->accounted) != FL_ACCOUNT_ENDED) {
        waste(share, fl_load_relaxed(&share->wasted_until) - 1, now(w));
    }
    fl_sub_relaxed(&share->losing, 1);
}

/* Publishes the results of the run that counts. */
static void publish(fl_worker *w, fl_item *item, fl_in_flight *flight)
{
    if (item->code != 0) {
        return; /* a failed run has no results */
    }
    if (flight != NULL) {
        fl_private_send(w, flight);
    } else if (w->offload == NULL) {
        fl_private_copy(w, item);
    } else if (!fl_private_publish(w, item)) {
        item->is_refused = true; /* the run ended, but the results are not in the final location */
        item->code = -1;
    }
}

bool fl_speculate_decide(fl_worker *w, fl_item *item, fl_in_flight *flight)
{
    fl_backup_run *run = item->run;
    fl_race *race = run->race;
    if (run->has_lost) {
        return false;
    }
    uint64_t before, since = fl_load_relaxed(run->is_second ? &race->since : &race->second);
    if (!run->is_second) {
        fl_store_relaxed(&race->since, 0);
        fl_store_relaxed(&w->signals.racing, fl_load_relaxed(&w->signals.racing) - 1);
    } else if (item->is_refused) {
        fl_store_relaxed(&race->second, 0);
    }
    fl_race_end end = fl_race_leave(race, run->is_second, !item->is_refused, &before);
    if (end == FL_RACE_WON) {
        publish(w, item, flight);
        if (fl_race_state_of(before) == FL_RACE_BOTH) {
            note_loser(w, item, fl_race_second_of(before), since);
        } else if (run->is_second) {
            fl_count(&fl_job_share(item->job, w->index)->account.restarts_won, 1);
        }
    } else if (end == FL_RACE_LOST) {
        note_lost(w, item);
    } else if (run->is_second) {
        fl_add_relaxed(&fl_job_share(item->job, w->index)->restarts_lost, 1);
        /* Inputs of the run may be lost. */
        w->backup.next_at = w->offload != NULL ? now(w) + FL_RESTART_REFUSED_NS : 0;
    }
    run->has_lost = end != FL_RACE_WON;
    fl_private_give(w, run);
    /* Taken until the run is dropped. */
    run->is_taken = run->has_lost;
    return end == FL_RACE_WON;
}

void fl_speculate_drop(fl_worker *w, fl_item *item)
{
    filch_job *job = item->job;
    fl_private_give(w, item->run);
    item->run->is_taken = false;
    if (w->now.job == job) {
        fl_worker_flush(w);
    }
    fl_job_unkeep(job);
}
