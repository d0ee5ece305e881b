/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/alloc/bucket.h"

#include "base/thread.h"

/* Number of polls before the waiter yields the processor to the claim's holder. */
#define SPINS 64

void fl_bucket_claim_wait(fl_bucket *bucket)
{
    for (uint32_t i = 0; !fl_bucket_claim(bucket); ++i) {
        if (i % SPINS == SPINS - 1) {
            fl_thread_yield();
        } else {
            fl_relax();
        }
    }
}

/* Finds a bin by multiplication with the golden ratio (D. E. Knuth, The Art of Computer
 * Programming 3, section 6.4): sizes are multiples of a power of two, often of a large power. */
static fl_bin *bin_of(fl_bucket *bucket, size_t bytes)
{
    return &bucket->bins[(uint64_t)bytes * UINT64_C(0x9e3779b97f4a7c15) >> 59];
}

_Static_assert(FL_BUCKET_BINS == 32, "bin_of takes five bits");

/* Takes block number i, counted from the oldest, out of the ring; older blocks move up. */
static void *take_out(fl_bucket *bucket, fl_bin *bin, uint32_t i, uint64_t *last)
{
    fl_spare found = bin->blocks[(bin->first + i) % FL_BIN_BLOCKS];
    for (; i != 0; --i) {
        bin->blocks[(bin->first + i) % FL_BIN_BLOCKS] =
            bin->blocks[(bin->first + i - 1) % FL_BIN_BLOCKS];
    }
    bin->first = (bin->first + 1) % FL_BIN_BLOCKS;
    --bin->count;
    bucket->cached -= bin->bytes;
    *last = found.last;
    return found.ptr;
}

void *fl_bucket_take(fl_bucket *bucket, size_t bytes, bool any, fl_past_fn past, const void *user,
                     uint64_t *last)
{
    fl_bin *bin = bin_of(bucket, bytes);
    if (bin->bytes != bytes) {
        return NULL;
    }
    for (uint32_t i = 0; i < bin->count; ++i) {
        fl_spare *block = &bin->blocks[(bin->first + i) % FL_BIN_BLOCKS];
        if (block->last == 0 || past(user, block->last)) {
            block->last = 0;
            return take_out(bucket, bin, i, last);
        }
    }
    return any && bin->count != 0 ? take_out(bucket, bin, 0, last) : NULL;
}

static uint32_t empty_bin(fl_bucket *bucket, fl_bin *bin, fl_spare *out, size_t *out_bytes)
{
    uint32_t count = 0;
    *out_bytes = bin->bytes;
    while (bin->count != 0) {
        out[count].ptr = take_out(bucket, bin, 0, &out[count].last);
        ++count;
    }
    return count;
}

uint32_t fl_bucket_miss(fl_bucket *bucket, size_t bytes, fl_spare *out, size_t *out_bytes)
{
    fl_bin *bin = bin_of(bucket, bytes);
    if (bin->bytes == bytes || bin->candidate != bytes) {
        bin->candidate = bytes;
        return 0;
    }
    uint32_t count = empty_bin(bucket, bin, out, out_bytes);
    bin->bytes = bytes;
    return count;
}

bool fl_bucket_give(fl_bucket *bucket, size_t bytes, void *block, uint64_t last)
{
    fl_bin *bin = bin_of(bucket, bytes);
    if (bin->bytes != bytes || bin->count == FL_BIN_BLOCKS ||
        (bin->count + 1) * bytes > bucket->bin_most) {
        return false;
    }
    bin->blocks[(bin->first + bin->count++) % FL_BIN_BLOCKS] = (fl_spare){block, last};
    bucket->cached += bytes;
    return true;
}

uint32_t fl_bucket_empty(fl_bucket *bucket, uint32_t bin, fl_spare *out, size_t *out_bytes)
{
    return empty_bin(bucket, &bucket->bins[bin], out, out_bytes);
}
