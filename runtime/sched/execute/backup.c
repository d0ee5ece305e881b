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
 * never launched is no run. */
#include "sched/execute/backup.h"

#include "sched/account/account.h"
#include "sched/decide/speculate.h"
#include "sched/execute/private_output.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/tuning.h"

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
                                   .since = fl_worker_clock(w) + 1});
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

void fl_backup_offer(fl_worker *w, fl_item *item)
{
    bool computes = fl_worker_computes(w);
    fl_backup_run *run = NULL;
    if (item->run != NULL) {
        return; /* the item is a backup run already */
    }
    if (fl_speculates(w) && fl_batch_is_restartable(item->job->batch)) {
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

bool fl_backup_forgo(fl_item *item)
{
    if (item->run == NULL || item->run->is_second) {
        return false;
    }
    item->run->is_taken = false;
    item->run = NULL;
    return true;
}

/* --- Second runs --- */

/* The worker looks again at a time, if not earlier. */
static void look_again(fl_worker *w, uint64_t at)
{
    w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
}

/* Protects the job of a chunk in flight by the hazard pointer; false: the run is over. */
static bool protect(fl_worker *w, const fl_backup_candidate *candidate)
{
    filch_job *job = (filch_job *)candidate->piece.job;
    fl_jobs_peek_at(w, job);
    if (!fl_race_is_at(candidate->race, candidate->word)) {
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
        fl_store_relaxed(&run->race->second, fl_worker_clock(w) + 1);
        return true;
    }
    fl_store_relaxed(restarts, fl_load_relaxed(restarts) - 1);
    return false;
}

/* Starts the backup run of a chunk; the job is kept. The run takes private output, and joins the
 * race; on a GPU, only at the launch. */
static bool start_kept(fl_worker *w, const fl_backup_candidate *candidate, fl_item *item,
                       fl_backup_run *run)
{
    bool computes = fl_worker_computes(w);
    uint64_t look_at = fl_speculate_waits(w, candidate, item);
    if (look_at != 0) {
        look_again(w, look_at);
        return false;
    }
    if (!computes && !fl_private_take(w, item, run)) {
        return false;
    }
    run->is_second = true;
    run->word = candidate->word;
    take_run(run, candidate->race, candidate->victim, item);
    if (computes || join_race(w, item)) {
        return true;
    }
    fl_private_give(w, run);
    run->is_taken = false;
    return false;
}

/* Begins a backup run of a chunk; the job is protected. */
static bool join(fl_worker *w, const fl_backup_candidate *candidate, fl_item *item)
{
    filch_job *job = (filch_job *)candidate->piece.job;
    fl_backup_run *run = find_run(w, true);
    *item = (fl_item){.job = job,
                      .lo = candidate->piece.lo,
                      .hi = candidate->piece.hi,
                      .timed = true,
                      .stands = 1,
                      .work = candidate->piece.work};
    if (run == NULL || !fl_devices_have(fl_batch_devices(job->batch), w->index) ||
        fl_load_relaxed(&job->cancelled) != 0 || !fl_job_keep(job)) {
        return false;
    }
    if (start_kept(w, candidate, item, run)) {
        return true;
    }
    fl_job_unkeep(job); /* the worker's hazard still names the job */
    return false;
}

bool fl_backup_pick(fl_worker *w, fl_item *item)
{
    fl_sched *sched = w->sched;
    fl_backup_candidate best;
    if (!fl_sched_attends(sched, FL_ATTEND_RACES) || !fl_speculates(w) || w->now.frames != NULL) {
        return false;
    }
    if (w->backup.next_at != 0) {
        if (fl_worker_clock(w) < w->backup.next_at) {
            look_again(w, w->backup.next_at);
            return false;
        }
        w->backup.next_at = 0;
    }
    bool is_found = fl_speculate_find(w, &best);
    look_again(w, best.look_at);
    if (!is_found || !protect(w, &best) || !join(w, &best, item)) {
        return false;
    }
    fl_worker_turn(w, item->job);
    return true;
}

/* --- Launches on a GPU --- */

void fl_backup_launched(fl_worker *w, fl_item *item)
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

void fl_backup_refused(fl_worker *w, fl_item *item)
{
    if (fl_backup_forgo(item) || item->run == NULL) {
        return;
    }
    w->backup.next_at = fl_worker_clock(w) + FL_RESTART_REFUSED_NS;
    fl_backup_drop(w, item);
}

void fl_backup_settle(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    if (!flight->has_failed && !item->run->has_lost && fl_backup_decide(w, item, flight)) {
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

void fl_backup_end(fl_share *share, uint64_t end)
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
    uint64_t t = fl_worker_clock(w);
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
        waste(share, fl_load_relaxed(&share->wasted_until) - 1, fl_worker_clock(w));
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

bool fl_backup_decide(fl_worker *w, fl_item *item, fl_in_flight *flight)
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
        w->backup.next_at = w->offload != NULL ? fl_worker_clock(w) + FL_RESTART_REFUSED_NS : 0;
    }
    run->has_lost = end != FL_RACE_WON;
    fl_private_give(w, run);
    /* Taken until the run is dropped. */
    run->is_taken = run->has_lost;
    return end == FL_RACE_WON;
}

void fl_backup_drop(fl_worker *w, fl_item *item)
{
    filch_job *job = item->job;
    fl_private_give(w, item->run);
    item->run->is_taken = false;
    if (w->now.job == job) {
        fl_worker_flush(w);
    }
    fl_job_unkeep(job);
}
