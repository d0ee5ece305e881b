/* SPDX-License-Identifier: Apache-2.0 */
/* Race between two runs of a work item in flight: a second device may execute a backup run
 * (speculative execution). One compare-and-swap decides, once, which run counts (restart on another
 * resource, or spoliation: Beaumont, Eyraud-Dubois, Kumar, IPDPS 2017).
 *
 * The word is {turn : 32 | second device : 16 | state : 16}:
 *
 *     FREE -> ALONE    the owner begins a first run
 *     ALONE -> BOTH    a second device begins a backup run
 *     ALONE -> FREE    the first run is over, and was the only run
 *     BOTH -> DECIDED  the first finisher counts; the loser learns the outcome at its own end
 *     BOTH -> ALONE    the backup run gave no result: as though never begun
 *     BOTH -> LEFT     the first run gave no result: the backup run is alone, for good
 *     LEFT -> FREE     the backup run is over
 *     DECIDED -> FREE  the loser is over
 *
 * The turn increases with every step to FREE: a word once seen identifies one work item. Lock-free.
 * Only the owner begins a race; every thread may call the remaining functions. */
#ifndef FL_SYNC_RACE_H
#define FL_SYNC_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

typedef enum fl_race_state {
    FL_RACE_FREE,
    FL_RACE_ALONE,
    FL_RACE_BOTH,
    FL_RACE_LEFT,
    FL_RACE_DECIDED
} fl_race_state;

/* Members other than the word are written by the owner while the race is free, except as noted, and
 * read by every thread. Values read count only if a later swap of the word succeeds, or a later
 * fl_race_is_at finds the word unchanged. */
typedef struct fl_race {
    _Alignas(64) _Atomic uint64_t word;
    _Atomic uintptr_t job;     /* address; follow only after ensuring that the job lives */
    _Atomic uintptr_t codelet; /* lives as long as the runtime */
    _Atomic uint64_t grains;   /* range of grains: hi in the upper half, lo in the lower */
    _Atomic uint64_t work;     /* bits of a double */
    _Atomic uint64_t since;    /* start of the first run + 1; 0: over */
    _Atomic uint64_t second;   /* start of the backup run + 1, set by its device; 0: not known */
} fl_race;

/* Work item of a race, as read by a thread. */
typedef struct fl_race_piece {
    uintptr_t job, codelet;
    uint32_t lo, hi;
    double work;
    uint64_t since;
} fl_race_piece;

typedef enum fl_race_end {
    FL_RACE_WON,     /* the run counts: the caller commits it */
    FL_RACE_LOST,    /* the competing run counts */
    FL_RACE_WITHDREW /* no result; the competing run goes on */
} fl_race_end;

static inline fl_race_state fl_race_state_of(uint64_t word)
{
    return (fl_race_state)(word & 0xffff);
}

/* Returns the device of the backup run, if the word has one. */
static inline uint32_t fl_race_second_of(uint64_t word)
{
    return (uint32_t)(word >> 16 & 0xffff);
}

/* Tells whether the owner may begin: no run of the previous work item is left. */
bool fl_race_is_free(const fl_race *race);
/* Owner of a free race: begins the first run of a work item. */
void fl_race_begin(fl_race *race, const fl_race_piece *piece);
/* Reads the word and the members; wait-free. */
uint64_t fl_race_look(const fl_race *race, fl_race_piece *piece);
/* Tells whether the word is unchanged. Seq_cst: ordered after the caller's store of its hazard;
 * pairs with fl_race_leave, whose swap precedes the reads of the hazards. */
bool fl_race_is_at(const fl_race *race, uint64_t word);
/* Begins a backup run, if the first run is still alone since the word was seen. */
bool fl_race_join(fl_race *race, uint64_t word, uint32_t device);
/* Ends a run. is_good: the run has a result, even if only a failure. *before receives the word
 * before the change. The race may belong to a new work item on return, except after a first run's
 * win. */
fl_race_end fl_race_leave(fl_race *race, bool is_second, bool is_good, uint64_t *before);

#endif
