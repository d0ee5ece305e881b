/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/range.h"

/* Memory orders. fl_range_set releases; every take acquires. Between two sets only
 * read-modify-writes change the word and continue the set's release sequence: every taker sees the
 * publication of the set, without a release by takers. The word is the whole state: a
 * compare-and-swap that succeeds on a restored old value takes the grains present now. The ABA
 * problem cannot arise. */

static uint64_t word_pack(uint32_t lo, uint32_t hi)
{
    return (uint64_t)hi << 32 | lo;
}

static uint32_t word_lo(uint64_t word)
{
    return (uint32_t)word;
}

static uint32_t word_hi(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

void fl_range_set(fl_range *range, uint32_t lo, uint32_t hi)
{
    /* Release: the data behind the range before the range. */
    fl_store_release(&range->word, word_pack(lo, hi));
}

bool fl_range_take(fl_range *range, uint32_t want, uint32_t *lo, uint32_t *hi)
{
    /* Relaxed: the swap acquires; an empty range gives access to no data. */
    uint64_t word = fl_load_relaxed(&range->word);
    for (;;) {
        uint32_t first = word_lo(word), end = word_hi(word);
        if (first >= end)
            return false;
        uint32_t next = end - first > want ? first + want : end;
        /* Acquire: data published with the set before the use of the range. */
        if (fl_cas_acquire(&range->word, &word, word_pack(next, end))) {
            *lo = first;
            *hi = next;
            return true;
        }
    }
}

bool fl_range_take_at(fl_range *range, uint32_t lo, uint32_t want, uint32_t *hi)
{
    /* Relaxed and acquire: see fl_range_take. */
    uint64_t word = fl_load_relaxed(&range->word);
    for (;;) {
        uint32_t end = word_hi(word);
        if (word_lo(word) != lo || lo >= end)
            return false;
        uint32_t next = end - lo > want ? lo + want : end;
        if (fl_cas_acquire(&range->word, &word, word_pack(next, end))) {
            *hi = next;
            return true;
        }
    }
}

bool fl_range_cut(fl_range *range, uint32_t want, uint32_t floor, uint32_t end, uint32_t *lo,
                  uint32_t *hi)
{
    /* Relaxed and acquire: see fl_range_take. */
    uint64_t word = fl_load_relaxed(&range->word);
    for (;;) {
        uint32_t first = word_lo(word);
        uint32_t least = first > floor ? first : floor;
        if (word_hi(word) != end || least >= end)
            return false;
        uint32_t next = end - least > want ? end - want : least;
        if (fl_cas_acquire(&range->word, &word, word_pack(first, next))) {
            *lo = next;
            *hi = end;
            return true;
        }
    }
}

bool fl_range_return(fl_range *range, uint32_t lo, uint32_t hi)
{
    /* Relaxed: thieves change the end alone. */
    uint64_t word = fl_load_relaxed(&range->word);
    while (word_lo(word) == hi) {
        /* Acquire: see fl_range_take; the set published the data behind the range. */
        if (fl_cas_acquire(&range->word, &word, word_pack(lo, word_hi(word)))) {
            return true;
        }
    }
    return false;
}

bool fl_range_drain(fl_range *range, uint32_t *lo, uint32_t *hi)
{
    return fl_range_take(range, UINT32_MAX, lo, hi);
}

uint32_t fl_range_peek(const fl_range *range, uint32_t *lo, uint32_t *hi)
{
    /* Relaxed: a snapshot of one word, for estimates; only taking synchronizes. */
    uint64_t word = fl_load_relaxed(&range->word);
    *lo = word_lo(word);
    *hi = word_hi(word);
    return *lo < *hi ? *hi - *lo : 0;
}
