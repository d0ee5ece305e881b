/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/ending.h"

enum { CLAIMED = 1, GIVEN = 2, RETURNED = 4, SERIAL_SHIFT = 3 };

void fl_ending_init(fl_ending *ending)
{
    /* Serial 0 names no run. */
    atomic_init(&ending->word, (uint64_t)1 << SERIAL_SHIFT);
}

uint64_t fl_ending_serial(const fl_ending *ending)
{
    /* Relaxed: only the caller closes the run; the state is cut off. */
    return fl_load_relaxed(&ending->word) >> SERIAL_SHIFT;
}

bool fl_ending_claim(fl_ending *ending, uint64_t serial)
{
    /* Relaxed: the swap confirms the value. */
    uint64_t word = fl_load_relaxed(&ending->word);
    do {
        if (word >> SERIAL_SHIFT != serial || (word & CLAIMED) != 0) {
            return false;
        }
        /* Acquire: what the previous run's reader did to the object precedes the writes of this
         * claimer. The serial alone does not order them, since the caller's way of passing the
         * handle on need not. */
    } while (!fl_cas_acquire(&ending->word, &word, word | CLAIMED));
    return true;
}

bool fl_ending_give(fl_ending *ending)
{
    /* Release: how the task ends, and what the ender wrote to the task's data, for the worker that
     * finds GIVEN. Acquire: what the worker wrote, where RETURNED came first. */
    return (fl_or_acq_rel(&ending->word, (uint64_t)GIVEN) & RETURNED) != 0;
}

bool fl_ending_return(fl_ending *ending)
{
    /* Release: the task's item and the worker's counts, for the ender that finds RETURNED. Acquire:
     * how the task ends, where GIVEN came first. */
    return (fl_or_acq_rel(&ending->word, (uint64_t)RETURNED) & GIVEN) != 0;
}

void fl_ending_close(fl_ending *ending)
{
    /* Relaxed load: no other thread changes the word of a run both of whose parties are done, and a
     * late claim changes nothing where CLAIMED is set. */
    uint64_t word = fl_load_relaxed(&ending->word);
    /* Release: our reads of how the task ended precede the writes of the next run's claimer. */
    fl_store_release(&ending->word, ((word >> SERIAL_SHIFT) + 1) << SERIAL_SHIFT);
}

bool fl_ending_is_open(const fl_ending *ending, uint64_t serial)
{
    /* Acquire: reads of the object's members, before, precede the read. */
    uint64_t word = fl_load_acquire(&ending->word);
    return word >> SERIAL_SHIFT == serial && (word & CLAIMED) == 0;
}

bool fl_ending_is_pending(const fl_ending *ending)
{
    /* Acquire: the members written before RETURNED are visible. */
    return (fl_load_acquire(&ending->word) & (GIVEN | RETURNED)) == RETURNED;
}
