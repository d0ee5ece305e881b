/* SPDX-License-Identifier: Apache-2.0 */
/* Work-sharing team: division of one task into pieces run by several workers (divide.c). Holds the
 * range of grains not begun, and the number of parts, i.e. workers in the team. The last worker to
 * leave ends the task.
 *
 * The word is {turn : 32 | parts : 32}. A division without parts is free. The owner opens the
 * division with one part. A worker with a part may take grains from the range. Further workers may
 * join while at least one part exists. The task is not over before every part is given up: the
 * parts alone keep the task alive. The last part is not given up before the range is empty. The
 * turn increases with every opening and joining. A fixed turn would let a worker join, fail and
 * leave while the last worker reads the task's result, and would restore the old word. Lock-free.
 */
#ifndef FL_SYNC_DIVISION_H
#define FL_SYNC_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "sync/range.h"

/* Words of a set of devices. */
#define FL_MEMBER_WORDS 16

enum {
    FL_DIVISION_FAILED = 1, /* a piece failed */
    FL_DIVISION_CUT = 2     /* grains were left out, as the job was cancelled */
};

typedef struct fl_division {
    _Alignas(64) _Atomic uint64_t word;
    fl_range range; /* grains not begun */
    /* Address of the task, constant while the division is open. Only workers with a part may follow
     * the address. */
    _Atomic uintptr_t task;
    _Atomic uintptr_t codelet;   /* lives as long as the runtime */
    _Atomic uint64_t grain_work; /* bits of a double: units of work per grain */
    _Atomic uint32_t owner;      /* device that opened the division */
    _Atomic uint32_t place;      /* memory node of every piece */
    _Atomic uint32_t flags;      /* FL_DIVISION_* */
    _Atomic uint32_t begun;      /* pieces begun: a statistic, like the members below */
    _Atomic uint64_t rate; /* bits of a double: units per ns of every worker able to take part */
    _Atomic uint64_t members[FL_MEMBER_WORDS]; /* devices with a part */
} fl_division;

typedef struct fl_division_about {
    uintptr_t task, codelet;
    double grain_work;
    uint32_t owner, place;
} fl_division_about;

static inline uint32_t fl_division_parts_of(uint64_t word)
{
    return (uint32_t)word;
}

/* Tells whether the owner may open the division: no worker has a part. */
bool fl_division_is_free(const fl_division *division);
/* Owner of a free division: stores the facts about the next task. The division stays free. */
void fl_division_prepare(fl_division *division, const fl_division_about *about);
/* Owner of a prepared division: takes a part and lets workers join in grains [lo, hi). */
void fl_division_open(fl_division *division, uint32_t lo, uint32_t hi);
/* Reads the word, with acquire, before the remaining members. */
uint64_t fl_division_look(const fl_division *division);
/* Takes a part, if the word is unchanged and has at least one part. */
bool fl_division_join(fl_division *division, uint64_t word);
/* Gives up the caller's part; *word is the word as seen, updated after a change. Requires more than
 * one part. The division may belong to a new task when the call returns true. */
bool fl_division_leave(fl_division *division, uint64_t *word);
/* Gives up the last part; requires an empty range. True: the division is free, the task is over and
 * belongs to the caller, and *flags tells the outcome. */
bool fl_division_end(fl_division *division, uint64_t *word, uint32_t *flags);

#endif
