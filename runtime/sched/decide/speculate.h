/* SPDX-License-Identifier: Apache-2.0 */
/* Speculative execution: which chunk in flight on a slower device gets a backup run, and when.
 *
 * A backup run begins at once where the first run is predicted to end later. An overdue first run
 * is assumed to need as long again as the run is overdue. The backup run then begins when the first
 * run is late by the duration of a backup run. The waste of the two runs is at most twice the
 * better duration. */
#ifndef FL_SCHED_DECIDE_SPECULATE_H
#define FL_SCHED_DECIDE_SPECULATE_H

#include "sched/worker/sched.h"

/* Tells whether chunks of batches are run twice at all: only by the default rules. */
static inline bool fl_speculates(const fl_worker *w)
{
    return w->sched->policy == FILCH_POLICY_STEAL && w->sched->count > 1;
}

/* Chunk with the largest gain found so far. */
typedef struct fl_backup_candidate {
    uint32_t victim;
    fl_race *race;
    uint64_t word;
    fl_race_piece piece;
    double gain;      /* ns */
    uint64_t look_at; /* when to look again; FL_TIME_NEVER: when woken */
} fl_backup_candidate;

/* Finds the chunk in flight elsewhere whose backup run gains most here. False: none, or not yet;
 * best->look_at is set in either case. */
bool fl_speculate_find(const fl_worker *worker, fl_backup_candidate *best);
/* Compares the backup run's gain with the transfer cost of inputs and results. Either run sends
 * results to the final location, so only the difference between the runs counts. 0: the backup run
 * pays; otherwise the time to look again. */
uint64_t fl_speculate_waits(const fl_worker *worker, const fl_backup_candidate *candidate,
                            const fl_item *item);

#endif
