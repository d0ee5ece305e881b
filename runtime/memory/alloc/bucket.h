/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets: blocks given back of late, by size, in front of a heap; one a worker and place. What a
 * worker needs over and over it takes from there and gives back there without a lock.
 *
 * A bucket is for who has claimed it, by one exchange. Its worker never waits for that: where
 * another thread is at it, which hands blocks back under pressure or counts, the worker goes to the
 * heap. So only those wait whom nobody waits for, and for a few nanoseconds (or for a worker that
 * the system stopped in between). Claims also let any thread use any bucket, as the callers of
 * filch_poll do.
 *
 * Blocks carry the marker of the last work that touched them, which may not be past yet. */
#ifndef FL_MEMORY_ALLOC_BUCKET_H
#define FL_MEMORY_ALLOC_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

enum { FL_BUCKET_BINS = 32, FL_BIN_BLOCKS = 16 };

typedef struct fl_spare {
    void *ptr;
    uint64_t last; /* fl_marker; 0: past */
} fl_spare;

/* Blocks of one size. A bin takes on a size when it is asked for twice in a row: sizes that do not
 * come back would be kept for nothing. */
typedef struct fl_bin {
    size_t bytes, candidate; /* 0: none */
    uint32_t first, count;
    fl_spare blocks[FL_BIN_BLOCKS]; /* a ring, oldest first: it is past before the others */
} fl_bin;

typedef struct fl_bucket {
    _Atomic uint32_t claimed;
    size_t bin_most; /* bytes in one bin at most */
    /* Under the claim: */
    uint64_t cached;       /* bytes in the bins */
    uint64_t taken, given; /* bytes, as asked for, that passed through here */
    uint64_t takes, gives; /* and how often */
    fl_bin bins[FL_BUCKET_BINS];
} fl_bucket;

/* Whether a marker is known to be past, without asking a driver. */
typedef bool (*fl_past_fn)(const void *user, uint64_t marker);

static inline bool fl_bucket_claim(fl_bucket *bucket)
{
    /* Acquire: pairs with the release; what the last claimer left. */
    return fl_exchange_acquire(&bucket->claimed, 1) == 0;
}

static inline void fl_bucket_release(fl_bucket *bucket)
{
    fl_store_release(&bucket->claimed, 0); /* release: what we leave, before the next claim */
}

/* Waits for the claim. */
void fl_bucket_claim_wait(fl_bucket *bucket);

/* All that follow: claimed by the caller. Sizes are rounded. */
/* Takes the oldest block of a size whose marker is past, or (any) the oldest block. Null: there is
 * none. */
void *fl_bucket_take(fl_bucket *bucket, size_t bytes, bool any, fl_past_fn past, const void *user,
                     uint64_t *last);
/* Notes that a size was asked for and not there. Where a bin takes it on, what the bin held goes to
 * out, which has room for FL_BIN_BLOCKS; returns how many, and their size. */
uint32_t fl_bucket_miss(fl_bucket *bucket, size_t bytes, fl_spare *out, size_t *out_bytes);
/* Keeps a block; false: it has no room for it. */
bool fl_bucket_give(fl_bucket *bucket, size_t bytes, void *block, uint64_t last);
/* Empties one bin into out; returns how many there were, and their size. */
uint32_t fl_bucket_empty(fl_bucket *bucket, uint32_t bin, fl_spare *out, size_t *out_bytes);

#endif
