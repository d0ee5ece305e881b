/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks run twice: where nothing is left to steal, and a chunk in flight on another device would
 * end later than a fresh run here, it is run here, too, and the first to finish counts (race.h).
 *
 * Both runs write to memory of their own (private_output.c), which the one that counts sends to its
 * place: so the other one may go on for as long as it likes, also when the job is over and its
 * results are somebody else's. What it reads is where it was; therefore it keeps the job
 * (fl_job_keep).
 *
 * A GPU may refuse what it is given, for lack of memory or else. There a first run is told of when
 * it was launched, and a second one joins the race then: what was never launched is no run.
 *
 * A second run begins at once where the first is predicted to end later. One that is overdue is
 * taken to need as long again as it is overdue by: then the second begins when the first has been
 * late for as long as it takes, and what is wasted on both is at most twice the better of them. */
#include "sched/decide/speculate.h"

#include <math.h>

#include "sched/account/account.h"
#include "sched/decide/pick.h"
#include "sched/execute/private_output.h"
#include "sched/execute/step.h"
#include "sched/model/missing.h"
#include "sched/worker/device.h"

/* Beginning, and copying a few cache lines home. */
#define RESTART_NS 2000.0
/* Where another one would need less than this part of the time, a device leaves a chunk to it for
 * such a part of its own. */
#define FASTER 0.5
#define LEFT_FOR 0.25
/* A device that could not take a second run is not tried again before. */
#define REFUSED_NS 1000000u
/* Nor is one that would have to wait so long for what it lacks looked at before. */
#define MOST_LACK_NS 1e9

static uint64_t now(const fl_worker *w)
{
    return fl_clock_now(&w->sched->core->clock);
}

/* --- First runs --- */

/* One that is free; for a first run, whose race is free, too. */
static fl_backup_run *find_run(fl_worker *w, bool is_second)
{
    for (uint32_t i = 0; i < FL_RACES; ++i) {
        if (!w->runs[i].is_taken && (is_second || fl_race_is_free(&w->races[i]))) {
            return &w->runs[i];
        }
    }
    return NULL;
}

/* Whether chunks of batches are run twice at all: by the default rules. */
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

/* A first run is under way, or will be for certain. */
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
    /* Relaxed, here and below: it tells others whether to look. */
    fl_store_relaxed(&w->racing, fl_load_relaxed(&w->racing) + 1);
    if (FL_UNLIKELY(fl_load_relaxed(&w->sched->has_races) == 0)) {
        fl_store_relaxed(&w->sched->has_races, 1);
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
        return; /* it is a second run itself */
    }
    if (is_on(w) && fl_batch_is_restartable(item->job->batch)) {
        run = find_run(w, false);
    }
    if (run != NULL && (computes || fl_private_take(w, item, run))) {
        run->is_second = false;
        take_run(run, &w->races[run - w->runs], w->index, item);
        if (!computes) {
            begin(w, item);
        }
    } else if (!computes) {
        count_refused(w, item); /* else when it is launched: it may have to wait for that */
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

/* The chunk found so far that would gain the most. */
typedef struct fl_prey {
    uint32_t victim;
    fl_race *race;
    uint64_t word;
    fl_race_piece piece;
    double gain; /* ns */
} fl_prey;

/* The first runs in flight on a worker, oldest first. */
static uint32_t list_races(fl_worker *victim, fl_prey *found)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FL_RACES; ++i) {
        fl_prey prey = {.victim = victim->index, .race = &victim->races[i]};
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

/* ns of a run here or there; 0: it was never measured. */
static double predict(const fl_race_piece *piece, uint32_t device)
{
    const fl_speed *speed = fl_codelet_speed((const filch_codelet *)piece->codelet, device);
    return fl_speed_get(speed) > 0 ? fl_speed_time(speed, piece->work) : 0;
}

/* Finds the chunk of one worker's that would gain the most, if more than *best. */
static void look_at(fl_worker *w, fl_worker *victim, fl_prey *best)
{
    fl_prey found[FL_RACES];
    uint32_t count = list_races(victim, found);
    double t = (double)now(w), end = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const fl_race_piece *piece = &found[i].piece;
        double there = predict(piece, victim->index), here = predict(piece, w->index);
        if (there == 0) {
            return; /* nobody knows when it ends, nor what is behind it */
        }
        end = fmax(end, (double)(piece->since - 1)) + there;
        double due = end;
        end = end < t ? t + (t - end) : end; /* overdue: as long again */
        if (fl_race_state_of(found[i].word) != FL_RACE_ALONE || here == 0) {
            continue;
        }
        found[i].gain = end - t - here - RESTART_NS;
        if (found[i].gain > best->gain) {
            *best = found[i];
        } else if (found[i].gain <= 0) {
            /* The clock counts whole nanoseconds: then it is over, or worth it. */
            uint64_t at = (uint64_t)ceil(due + here + RESTART_NS) + 1;
            w->ready_at = at < w->ready_at ? at : w->ready_at;
        }
    }
}

/* Which device begins the second run, and there is but one, is not for who is idle first: one that
 * is much faster may be soon, as nothing is left to steal. False: not yet. */
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
    if (least >= FASTER * here) {
        return true;
    }
    /* Only we write these. */
    const fl_ledger *ledger = &w->ledger;
    bool is_idle = fl_load_relaxed(&ledger->kind) != FL_SPELL_ON;
    uint64_t t = now(w), since = is_idle ? fl_load_relaxed(&ledger->idle_since) : t;
    uint64_t at = since + (uint64_t)(LEFT_FOR * here);
    if (t >= at) {
        return true;
    }
    w->ready_at = at < w->ready_at ? at : w->ready_at;
    return false;
}

/* Makes sure that the job of a chunk lives while its run is in flight. */
static bool protect(fl_worker *w, const fl_prey *prey)
{
    filch_job *job = (filch_job *)prey->piece.job;
    /* Seq_cst: the hazard before the second look at the race; who ends the race looks at the
     * hazards after that, before the job's memory is used again. */
    fl_store_seq_cst(&w->hazard, job);
    if (!fl_race_is_at(prey->race, prey->word)) {
        fl_worker_leave(w); /* it protects nothing */
        return false;
    }
    return true;
}

/* Whether the second run of a chunk, whose job is kept, is in the race. */
static bool join_race(fl_worker *w, const fl_item *item)
{
    fl_backup_run *run = item->run;
    _Atomic uint64_t *restarts = &fl_job_share(item->job, w->index)->account.restarts;
    fl_count(restarts, 1); /* before the first run can end the job */
    if (fl_race_join(run->race, run->word, w->index)) {
        fl_store_relaxed(&run->race->second, now(w) + 1); /* for who decides; a statistic */
        return true;
    }
    fl_store_relaxed(restarts, fl_load_relaxed(restarts) - 1);
    return false;
}

/* Whether what the second run would gain is more than what it has to have brought, and to send.
 * Both runs' results go home; what only one of them would have to copy is the difference. */
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
    /* It gains as the first run becomes overdue. */
    uint64_t at = now(w) + (uint64_t)ceil(fmin(lacks, MOST_LACK_NS)) + 1;
    w->ready_at = at < w->ready_at ? at : w->ready_at;
    return false;
}

/* The second run of a chunk, whose job is kept: with memory to write to, and in the race; on a GPU
 * it has neither before it is launched. */
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

/* Begins a second run of a chunk whose job is protected. */
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
    fl_job_unkeep(job); /* our hazard still names it */
    return false;
}

bool fl_speculate_pick(fl_worker *w, fl_item *item)
{
    fl_sched *sched = w->sched;
    fl_prey best = {.gain = 0};
    if (fl_load_relaxed(&sched->has_races) == 0 || !is_on(w) || w->frames != NULL) {
        return false;
    }
    if (w->spoil_at != 0) {
        if (now(w) < w->spoil_at) {
            w->ready_at = w->spoil_at < w->ready_at ? w->spoil_at : w->ready_at;
            return false;
        }
        w->spoil_at = 0;
    }
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *victim = &sched->workers[(w->index + i) % sched->count];
        if (fl_load_relaxed(&victim->racing) != 0) {
            look_at(w, victim, &best);
        }
    }
    if (best.race == NULL || !is_turn(w, &best) || !protect(w, &best) || !join(w, &best, item)) {
        return false;
    }
    fl_worker_turn(w, item->job);
    return true;
}

/* --- On a GPU --- */

void fl_speculate_launched(fl_worker *w, fl_item *item)
{
    if (item->run == NULL) {
        count_refused(w, item);
    } else if (!item->run->is_second) {
        begin(w, item);
    } else if (!join_race(w, item)) {
        item->run->has_lost = true; /* the first run was faster than the launch */
    }
}

void fl_speculate_refused(fl_worker *w, fl_item *item)
{
    if (fl_speculate_forgo(item) || item->run == NULL) {
        return;
    }
    w->spoil_at = now(w) + REFUSED_NS;
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

/* A device was at a run that does not count, from `since` until now. Runs on one device may
 * overlap, so time counts once. */
static void waste(fl_share *share, uint64_t since, uint64_t t)
{
    uint64_t from = fl_exchange_acquire(&share->wasted_until, t + 1); /* all are statistics */
    from = from != 0 && from - 1 > since ? from - 1 : since;
    fl_add_relaxed(&share->wasted_ns, t > from ? t - from : 0);
}

void fl_speculate_end(fl_share *share, uint64_t end)
{
    if (fl_load_relaxed(&share->losing) != 0) {
        waste(share, fl_load_relaxed(&share->wasted_until) - 1, end);
    }
}

/* This run counts, and the other one, begun at since + 1 (0: just now), does not. */
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

/* The run has lost, as had been noted. */
static void note_lost(const fl_worker *w, const fl_item *item)
{
    fl_share *share = fl_job_share(item->job, w->index);
    /* Acquire: the job's end is noted before; what comes after it is not the job's. */
    if (fl_load_acquire(&item->job->accounted) != FL_ACCOUNT_ENDED) {
        waste(share, fl_load_relaxed(&share->wasted_until) - 1, now(w));
    }
    fl_sub_relaxed(&share->losing, 1);
}

/* The run counts. */
static void publish(fl_worker *w, fl_item *item, fl_in_flight *flight)
{
    if (item->code != 0) {
        return; /* it has no results */
    }
    if (flight != NULL) {
        fl_private_send(w, flight);
    } else if (w->offload == NULL) {
        fl_private_copy(w, item);
    } else if (!fl_private_publish(w, item)) {
        item->is_refused = true; /* it ran, but what it wrote is not where it is wanted */
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
        fl_store_relaxed(&w->racing, fl_load_relaxed(&w->racing) - 1);
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
        w->spoil_at = w->offload != NULL ? now(w) + REFUSED_NS : 0; /* what it reads may be lost */
    }
    run->has_lost = end != FL_RACE_WON;
    fl_private_give(w, run);
    run->is_taken = run->has_lost; /* until it is dropped */
    return end == FL_RACE_WON;
}

void fl_speculate_drop(fl_worker *w, fl_item *item)
{
    filch_job *job = item->job;
    fl_private_give(w, item->run);
    item->run->is_taken = false;
    if (w->job == job) {
        fl_worker_flush(w);
    }
    fl_job_unkeep(job);
}
