/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/division.h"

#include "base/bits.h"

/* Of the turn. */
#define NEXT ((uint64_t)1 << 32)

bool fl_division_is_free(const fl_division *division)
{
    /* Acquire: the last of those who had a part before is done with it. */
    return fl_division_parts_of(fl_load_acquire(&division->word)) == 0;
}

void fl_division_prepare(fl_division *division, const fl_division_about *about)
{
    /* Relaxed: the word publishes them to who joins. Who looks without a part may see some of one
     * task and some of another, and goes by wrong estimates at worst. */
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
    uint64_t word = fl_load_relaxed(&division->word); /* free: only we change it */
    fl_range_set(&division->range, lo, hi);
    /* Release: the above, what it is about, and what the task reads, to whoever joins. */
    fl_store_release(&division->word, word + NEXT + 1);
}

uint64_t fl_division_look(const fl_division *division)
{
    return fl_load_acquire(&division->word); /* before what it stands for */
}

bool fl_division_join(fl_division *division, uint64_t word)
{
    /* Acquire: what the owner published. All changes since are read-modify-writes, which continue
     * its release. */
    return fl_division_parts_of(word) != 0 &&
           fl_cas_acquire(&division->word, &word, word + NEXT + 1);
}

bool fl_division_leave(fl_division *division, uint64_t *word)
{
    /* Release: our pieces, what we took from the range and our flags, to who ends the task. Nothing
     * needs the acquire. */
    return fl_cas_acq_rel(&division->word, word, *word - 1);
}

bool fl_division_end(fl_division *division, uint64_t *word, uint32_t *flags)
{
    /* Relaxed: who has left had changed them before, which the word, acquired, told. Who joins from
     * then on makes the swap fail, whether or not it has left again. */
    *flags = fl_load_relaxed(&division->flags);
    /* Acquire: what all did; release: our looks at the division come before it is opened again. */
    return fl_cas_acq_rel(&division->word, word, *word - 1);
}
