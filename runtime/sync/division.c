/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/division.h"

#include "base/bits.h"

/* Increment of the turn in the word. */
#define NEXT ((uint64_t)1 << 32)

bool fl_division_is_free(const fl_division *division)
{
    /* Acquire: the last member of the previous team is done with the division. */
    return fl_division_parts_of(fl_load_acquire(&division->word)) == 0;
}

void fl_division_prepare(fl_division *division, const fl_division_about *about)
{
    /* Relaxed: the word publishes the members to a joining worker. A reader without a part may see
     * a mix of two tasks, at worst giving wrong estimates. */
    fl_store_relaxed(&division->task, about->task);
    fl_store_relaxed(&division->codelet, about->codelet);
    fl_store_relaxed(&division->grain_work, fl_double_bits(about->grain_work));
    fl_store_relaxed(&division->owner, about->owner);
    fl_store_relaxed(&division->place, about->place);
    fl_store_relaxed(&division->flags, 0);
    fl_store_relaxed(&division->begun, 0);
    fl_store_relaxed(&division->rate, 0);
    for (uint32_t i = 0; i < FL_MEMBER_WORDS; ++i) {
        fl_store_relaxed(&division->members[i], 0);
    }
}

void fl_division_open(fl_division *division, uint32_t lo, uint32_t hi)
{
    uint64_t word = fl_load_relaxed(&division->word); /* free: only the owner changes the word */
    fl_range_set(&division->range, lo, hi);
    /* Release: the range, the facts stored by fl_division_prepare and the data read by the task, to
     * every joining worker. */
    fl_store_release(&division->word, word + NEXT + 1);
}

uint64_t fl_division_look(const fl_division *division)
{
    return fl_load_acquire(&division->word); /* acquire: the word before the facts it stands for */
}

bool fl_division_join(fl_division *division, uint64_t word)
{
    /* Acquire: the owner's publication. Every change since is a read-modify-write and continues the
     * owner's release. */
    return fl_division_parts_of(word) != 0 &&
           fl_cas_acquire(&division->word, &word, word + NEXT + 1);
}

bool fl_division_leave(fl_division *division, uint64_t *word)
{
    /* Release: our pieces, our takes from the range and our flags, to the worker that ends the
     * task. The acquire half is not needed. */
    return fl_cas_acq_rel(&division->word, word, *word - 1);
}

bool fl_division_end(fl_division *division, uint64_t *word, uint32_t *flags)
{
    /* Relaxed: workers that left had set their flags earlier; acquiring the word made the flags
     * visible. A worker joining from now on makes the swap fail, even after leaving again. */
    *flags = fl_load_relaxed(&division->flags);
    /* Acquire: the work of every member; release: our reads of the division come before the next
     * opening. */
    return fl_cas_acq_rel(&division->word, word, *word - 1);
}
