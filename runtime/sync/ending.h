/* SPDX-License-Identifier: Apache-2.0 */
/* End of a task that ends after its function has returned. Two parties meet: the worker, whose
 * function returns, and an ender, the first of any threads that claim the end. The party that comes
 * second has the task from then on, and retires the task or hands the task over.
 *
 * The word is {serial : 61 | state : 3}. A serial names one run of one task. Closing an ending
 * moves the word to the next serial, so every claim with an earlier serial fails: objects with an
 * ending are used again and again, and are never freed while a claim may come.
 *
 * The state is a set of bits:
 *
 *     CLAIMED   some ender's claim succeeded: no other ender's will
 *     GIVEN     the ender has written how the task ends
 *     RETURNED  the worker has let the task go
 *
 * GIVEN and RETURNED are set by read-modify-writes of one word: exactly one of the two parties
 * finds the bit of the other. */
#ifndef FL_SYNC_ENDING_H
#define FL_SYNC_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

typedef struct fl_ending {
    _Atomic uint64_t word;
} fl_ending;

/* Prepares the ending of a new object: no serial was given out. */
void fl_ending_init(fl_ending *ending);
/* Returns the serial of the present run. Worker. */
uint64_t fl_ending_serial(const fl_ending *ending);
/* Claims the end of a run. True for at most one caller a serial; false: that run's end was claimed,
 * or is over. Lock-free; any thread. */
bool fl_ending_claim(fl_ending *ending, uint64_t serial);
/* The claimer has written how the task ends. True: the worker has let the task go, and the task is
 * the caller's. False: the worker takes the task; the caller touches the object no more.
 * Wait-free. */
bool fl_ending_give(fl_ending *ending);
/* The worker has written everything that the retiring thread needs, and lets the task go. True: the
 * end is given already, and the task is the caller's. False: the ender takes the task; the caller
 * touches the object no more. Wait-free. */
bool fl_ending_return(fl_ending *ending);
/* Ends a run, whose task is the caller's. Wait-free. */
void fl_ending_close(fl_ending *ending);
/* Tells whether the end of the serial's run is unclaimed. Wait-free; any thread. */
bool fl_ending_is_open(const fl_ending *ending, uint64_t serial);
/* Tells whether a task is pending: let go by the worker, and the end not given. A guess, for
 * messages. Wait-free; any thread. */
bool fl_ending_is_pending(const fl_ending *ending);

#endif
