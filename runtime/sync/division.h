/* SPDX-License-Identifier: Apache-2.0 */
/* A task that is being run in pieces, by whoever takes part (divide.c): the range of what has not
 * begun, and the count of those who have a part in it. The last of these to leave ends the task.
 *
 * The word is {turn : 32 | parts : 32}. Without parts the division is free. Its owner opens it with
 * one part; whoever has a part may take from the range; others join where there is a part, so that
 * the task, which is not over before all parts are given up, need not be kept alive by anything
 * else. The last part is not given up before the range is empty. The turn moves on with each who
 * opens or joins: were it not so, somebody could come, fail and go while the last one looks how the
 * task has ended, and the word be what it was. Lock-free. */
#ifndef FL_SYNC_DIVISION_H
#define FL_SYNC_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "sync/range.h"

/* Words of a set of devices. */
#define FL_MEMBER_WORDS 16

enum {
    FL_DIVISION_FAILED = 1, /* a piece did */
    FL_DIVISION_CUT = 2     /* something was left out, as the job was cancelled */
};

typedef struct fl_division {
    _Alignas(64) _Atomic uint64_t word;
    fl_range range; /* grains that nobody has begun */
    /* Constant while it is open. A name, to be followed by who has a part. */
    _Atomic uintptr_t task;
    _Atomic uintptr_t codelet;   /* lives as long as the runtime */
    _Atomic uint64_t grain_work; /* bits of a double: units of work of a grain */
    _Atomic uint32_t owner;      /* device of who opened it */
    _Atomic uint32_t place;      /* memory in which all pieces run */
    _Atomic uint32_t flags;      /* FL_DIVISION_* */
    _Atomic uint32_t begun;      /* pieces: a statistic, as are all below */
    _Atomic uint64_t rate;       /* bits of a double: units a ns of all who could take part */
    _Atomic uint64_t members[FL_MEMBER_WORDS]; /* devices that have a part */
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

/* Whether the owner may open it: nobody has a part any more. */
bool fl_division_is_free(const fl_division *division);
/* The owner, of one that is free, and stays so: says what it will be about. */
void fl_division_prepare(fl_division *division, const fl_division_about *about);
/* The owner, of one that it has prepared: it has a part from now on, and others may join it in
 * grains [lo, hi). */
void fl_division_open(fl_division *division, uint32_t lo, uint32_t hi);
/* The word, before what else there is to read. */
uint64_t fl_division_look(const fl_division *division);
/* Takes a part, if the word is still that and has some. */
bool fl_division_join(fl_division *division, uint64_t word);
/* Who has a part gives it up; *word: as seen, and as it is where it had changed. Of more than one:
 * the division may be another task's when this returns true. */
bool fl_division_leave(fl_division *division, uint64_t *word);
/* Of the last one, when the range is empty: true, the division is free, the task is over and the
 * caller's, and *flags says how. */
bool fl_division_end(fl_division *division, uint64_t *word, uint32_t *flags);

#endif
