/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of work in flight that another device may run a second time, and which of the two runs is
 * the one that counts: decided once, by one compare-and-swap (restart on another resource, or
 * spoliation: Beaumont, Eyraud-Dubois, Kumar, IPDPS 2017).
 *
 * The word is {turn : 32 | second device : 16 | state : 16}:
 *
 *     FREE -> ALONE    the owner begins a first run
 *     ALONE -> BOTH    somebody else begins a second one
 *     ALONE -> FREE    the first run is over, and was the only one
 *     BOTH -> DECIDED  one of them is over, and counts; the other one will be told that it has lost
 *     BOTH -> ALONE    the second run's device did not do it: as though it had never begun
 *     BOTH -> LEFT     the first run's did not: the second one is alone, for good
 *     LEFT -> FREE     the second run is over
 *     DECIDED -> FREE  the one that lost is over
 *
 * The turn moves on with each way to FREE, so a word that was seen once tells one piece from all
 * others. Lock-free; the owner begins, anybody does the rest. */
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

/* All but the word is written by the owner while the race is free, or as said, and read by anybody:
 * what was read counts if a later swap of the word succeeds (or its look finds it unchanged). */
typedef struct fl_race {
    _Alignas(64) _Atomic uint64_t word;
    _Atomic uintptr_t job;     /* names, to be followed by who has made sure that they live */
    _Atomic uintptr_t codelet; /* lives as long as the runtime */
    _Atomic uint64_t grains;   /* hi in the upper half, lo in the lower */
    _Atomic uint64_t work;     /* bits of a double */
    _Atomic uint64_t since;    /* the first run's beginning + 1; 0: it is over */
    _Atomic uint64_t second;   /* the second one's + 1, by who runs it; 0: not known yet */
} fl_race;

/* What a race is about, as a reader has it. */
typedef struct fl_race_piece {
    uintptr_t job, codelet;
    uint32_t lo, hi;
    double work;
    uint64_t since;
} fl_race_piece;

typedef enum fl_race_end {
    FL_RACE_WON,     /* the run counts: the caller commits it */
    FL_RACE_LOST,    /* the other one does */
    FL_RACE_WITHDREW /* no result, and the other one goes on */
} fl_race_end;

static inline fl_race_state fl_race_state_of(uint64_t word)
{
    return (fl_race_state)(word & 0xffff);
}

/* The device of the second run, if the word has one. */
static inline uint32_t fl_race_second_of(uint64_t word)
{
    return (uint32_t)(word >> 16 & 0xffff);
}

/* Whether the owner may begin: nobody is left of the piece before. */
bool fl_race_is_free(const fl_race *race);
/* The owner, of a race that is free: a first run of the piece begins. */
void fl_race_begin(fl_race *race, const fl_race_piece *piece);
/* The word, and what the race is about; wait-free. */
uint64_t fl_race_look(const fl_race *race, fl_race_piece *piece);
/* Whether the word is still that. Seq_cst: after a hazard that was published before, and against
 * the look at the hazards of who comes after the race was decided. */
bool fl_race_is_at(const fl_race *race, uint64_t word);
/* Begins a second run, if the first is alone since the word was seen. */
bool fl_race_join(fl_race *race, uint64_t word, uint32_t device);
/* A run is over; is_good: it has a result, if only that of having failed. *before: the word as it
 * was then. Unless the run won, or of a second one, the race may be another's when this returns. */
fl_race_end fl_race_leave(fl_race *race, bool is_second, bool is_good, uint64_t *before);

#endif
