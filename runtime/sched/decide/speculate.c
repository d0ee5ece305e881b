/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/speculate.h"

#include <math.h>

#include "sched/model/cost.h"
#include "sched/model/missing.h"
#include "sched/worker/device.h"
#include "sched/worker/tuning.h"

/* Longest delay, ns, of the next look at a chunk whose backup run lacks inputs. */
#define MOST_LACK_NS 1e9

/* Lists the first runs in flight on a worker, oldest first. */
static uint32_t list_races(fl_worker *victim, fl_backup_candidate *found)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FL_RACES; ++i) {
        fl_backup_candidate candidate = {.victim = victim->index,
                                         .race = &victim->signals.races[i]};
        candidate.word = fl_race_look(candidate.race, &candidate.piece);
        if (fl_race_state_of(candidate.word) == FL_RACE_FREE || candidate.piece.since == 0) {
            continue;
        }
        uint32_t at = count++;
        for (; at > 0 && (found[at - 1].piece.since > candidate.piece.since ||
                          (found[at - 1].piece.since == candidate.piece.since &&
                           found[at - 1].piece.lo > candidate.piece.lo));
             --at) {
            found[at] = found[at - 1];
        }
        found[at] = candidate;
    }
    return count;
}

/* Predicts the time of a run on a device, ns; 0: never measured. */
static double predict(const fl_race_piece *piece, uint32_t device)
{
    return fl_cost_measured((const filch_codelet *)piece->codelet, device, piece->work);
}

/* Finds the worker's chunk with the largest gain, if larger than *best. */
static void look_at(const fl_worker *w, fl_worker *victim, fl_backup_candidate *best)
{
    fl_backup_candidate found[FL_RACES];
    uint32_t count = list_races(victim, found);
    double t = (double)fl_worker_clock(w), end = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const fl_race_piece *piece = &found[i].piece;
        double there = predict(piece, victim->index), here = predict(piece, w->index);
        if (there == 0) {
            /* The ends of the chunk, and of the chunks behind, are unknown. */
            return;
        }
        end = fl_cost_finish(end, (double)(piece->since - 1), there, 0);
        double due = end;
        end = end < t ? t + (t - end) : end; /* overdue: as long again */
        if (fl_race_state_of(found[i].word) != FL_RACE_ALONE || here == 0) {
            continue;
        }
        double own = fl_cost_finish(0, 0, here, FL_RESTART_NS);
        found[i].gain = end - t - own;
        if (found[i].gain > best->gain) {
            found[i].look_at = best->look_at;
            *best = found[i];
        } else if (found[i].gain <= 0) {
            /* The clock counts whole nanoseconds: by then the chunk is over, or a backup run pays.
             */
            uint64_t at = (uint64_t)ceil(due + own) + 1;
            best->look_at = at < best->look_at ? at : best->look_at;
        }
    }
}

/* Tells whether the worker should begin the only backup run. The first idle device is not always
 * the best: a much faster device may be idle soon, as nothing is left to steal. False: not yet. */
static bool is_turn(const fl_worker *w, fl_backup_candidate *candidate)
{
    const fl_sched *sched = w->sched;
    double here = predict(&candidate->piece, w->index), least = here;
    for (uint32_t d = 0; d < sched->count; ++d) {
        double ns = d != candidate->victim && !fl_worker_is_unavailable(&sched->workers[d])
                        ? predict(&candidate->piece, d)
                        : 0;
        least = ns > 0 ? fmin(least, ns) : least;
    }
    if (FL_FASTER * least >= here) {
        return true;
    }
    /* Relaxed: the worker is the only writer. */
    const fl_ledger *ledger = &w->ledger;
    bool is_idle = fl_load_relaxed(&ledger->kind) != FL_SPELL_ON;
    uint64_t t = fl_worker_clock(w), since = is_idle ? fl_load_relaxed(&ledger->idle_since) : t;
    uint64_t at = since + (uint64_t)(here / FL_LOOK_AGAIN_OF_TIME);
    if (t >= at) {
        return true;
    }
    candidate->look_at = at < candidate->look_at ? at : candidate->look_at;
    return false;
}

bool fl_speculate_find(const fl_worker *w, fl_backup_candidate *best)
{
    const fl_sched *sched = w->sched;
    *best = (fl_backup_candidate){.look_at = FL_TIME_NEVER};
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *victim = &sched->workers[(w->index + i) % sched->count];
        if (fl_load_relaxed(&victim->signals.racing) != 0) {
            look_at(w, victim, best);
        }
    }
    return best->race != NULL && is_turn(w, best);
}

uint64_t fl_speculate_waits(const fl_worker *w, const fl_backup_candidate *candidate,
                            const fl_item *item)
{
    const fl_worker *victim = &w->sched->workers[candidate->victim];
    double here = 0, there = 0;
    if (w->offload != NULL) {
        here = fl_missing_of_run(w, victim, item->job, item->lo, item->hi, &there);
    }
    double lacks = here - there - candidate->gain;
    if (lacks < 0) {
        return 0;
    }
    /* The gain grows as the first run becomes overdue. */
    return fl_worker_clock(w) + (uint64_t)ceil(fmin(lacks, MOST_LACK_NS)) + 1;
}
