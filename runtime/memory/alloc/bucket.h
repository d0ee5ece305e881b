/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets: recently returned blocks, by size, in front of a heap; a bucket per worker and node. A
 * worker takes and returns blocks of frequent sizes in its bucket without a lock.
 *
 * A thread claims a bucket by a single exchange. The bucket's worker never waits for the claim. If
 * a second thread holds the claim, to hand blocks back under pressure or to count, the worker goes
 * to the heap. Only threads without waiters of their own wait, for a few nanoseconds (or for a
 * worker the system stopped during a claim). Claims also let every thread use every bucket, as the
 * callers of filch_runtime_poll do.
 *
 * Blocks carry the marker of the last work touching the memory. The marker may not be past yet. */
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

/* Blocks of a single size. A bin adopts a size after two requests in a row, since a bin for a
 * rare size keeps memory in vain. */
typedef struct fl_bin {
    size_t bytes, candidate; /* 0: no size */
    uint32_t first, count;
    fl_spare blocks[FL_BIN_BLOCKS]; /* ring, oldest first: the oldest block's marker passes first */
} fl_bin;

typedef struct fl_bucket {
    _Atomic uint32_t claimed;
    size_t bin_most; /* maximum bytes in a bin */
    /* Under the claim: */
    uint64_t cached;       /* bytes in the bins */
    uint64_t taken, given; /* requested bytes taken from and given to the bucket */
    uint64_t takes, gives; /* number of takes and gives */
    fl_bin bins[FL_BUCKET_BINS];
} fl_bucket;

/* Tells whether a marker is known to be past, without a question to the driver. */
typedef bool (*fl_past_fn)(const void *user, uint64_t marker);

static inline bool fl_bucket_claim(fl_bucket *bucket)
{
    /* Acquire: pairs with the release; the previous claimer's writes are visible. */
    return fl_exchange_acquire(&bucket->claimed, 1) == 0;
}

static inline void fl_bucket_release(fl_bucket *bucket)
{
    /* Release: the claimer's writes precede the next claim. */
    fl_store_release(&bucket->claimed, 0);
}

/* Waits for the claim. */
void fl_bucket_claim_wait(fl_bucket *bucket);

/* Every function below requires the caller's claim. Sizes are rounded. */
/* Takes the oldest block of a size with a past marker, or (any) the oldest block. Null: no such
 * block. */
void *fl_bucket_take(fl_bucket *bucket, size_t bytes, bool any, fl_past_fn past, const void *user,
                     uint64_t *last);
/* Notes a request for a missing size. A bin adopting the size moves its old blocks to out, with
 * room for FL_BIN_BLOCKS. Returns the number of blocks moved, and their size. */
uint32_t fl_bucket_miss(fl_bucket *bucket, size_t bytes, fl_spare *out, size_t *out_bytes);
/* Keeps a block. False: the bin has no room or a different size. */
bool fl_bucket_give(fl_bucket *bucket, size_t bytes, void *block, uint64_t last);
/* Empties a bin into out; returns the number of blocks, and their size. */
uint32_t fl_bucket_empty(fl_bucket *bucket, uint32_t bin, fl_spare *out, size_t *out_bytes);

#endif
