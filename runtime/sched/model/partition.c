/* SPDX-License-Identifier: Apache-2.0 */
/* Balanced is the largest-remainder method (Hamilton's apportionment). Makespan minimizes max(width
 * / score) over every integer split: a greedy list schedule of equal pieces onto uniform machines
 * is optimal. The first pieces are known without running the schedule, because no split ends before
 * the ideal time n/S. Device i has finished floor(n s_i / S) pieces by then. */
#include "sched/model/partition.h"

#include <math.h>
#include <stdbool.h>

__extension__ typedef unsigned __int128 u128;

typedef struct share {
    u128 remainder; /* numerator of the fraction cut off by the floor; the denominator is the total
                       score */
    uint64_t score; /* fixed point, 0 to 2^64 - 1; the largest has its top bit set */
    uint64_t width; /* below 2^63 */
} share;

typedef struct leftover_heap {
    const share *shares;
    uint32_t *order; /* devices as a heap; the taker of the next leftover is first */
    uint32_t count;
    fl_partition_policy policy;
} leftover_heap;

/* Converts scores above zero to fixed point, relative to the largest score: the nearest multiple of
 * 2^-64 of the power of two above the largest. The result is coarser than the floating-point scores
 * only below 2^-11 of the largest. n * score then stays below 2^127 and the total below 2^96.
 * Rounds by hand: the caller's rounding mode must not change the result. */
static void scores_convert(const double *scores, uint32_t count, share *shares)
{
    double largest = 0.0;
    int exponent = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (scores[i] > largest)
            largest = scores[i];
    }
    if (!(largest > 0.0) || isinf(largest)) {
        for (uint32_t i = 0; i < count; i++)
            shares[i].score = UINT64_C(1) << 63;
        return;
    }
    (void)frexp(largest, &exponent);
    for (uint32_t i = 0; i < count; i++) {
        double scaled = scores[i] > 0.0 ? ldexp(scores[i], 64 - exponent) : 0.0;
        uint64_t whole = (uint64_t)scaled;

        if (scaled - (double)whole >= 0.5)
            whole++;
        shares[i].score = whole;
    }
}

/* Gives every device the floor of its ideal. Returns the rest of n, less than the number of devices
 * with a score. */
static uint64_t floors_assign(share *shares, uint32_t count, uint64_t n)
{
    u128 total = 0;
    uint64_t left = n;

    for (uint32_t i = 0; i < count; i++)
        total += shares[i].score;
    for (uint32_t i = 0; i < count; i++) {
        u128 product = (u128)n * shares[i].score;

        shares[i].width = (uint64_t)(product / total);
        shares[i].remainder = product % total;
        left -= shares[i].width;
    }
    return left;
}

/* Tells whether device a takes a leftover before device b. A total order: ties go to the lower
 * index. */
static bool goes_first(const leftover_heap *heap, uint32_t a, uint32_t b)
{
    const share *x = &heap->shares[a];
    const share *y = &heap->shares[b];

    if (heap->policy == FL_PARTITION_BALANCED) {
        if (x->remainder != y->remainder)
            return x->remainder > y->remainder;
    } else {
        /* Compares (x.width + 1) / x.score with (y.width + 1) / y.score, cross-multiplied. */
        u128 left = (u128)(x->width + 1) * y->score;
        u128 right = (u128)(y->width + 1) * x->score;

        if (left != right)
            return left < right;
    }
    return a < b;
}

static void sift_down(leftover_heap *heap, uint32_t hole)
{
    uint32_t moving = heap->order[hole];

    while (hole < heap->count / 2) {
        uint32_t child = 2 * hole + 1;

        if (child + 1 < heap->count && goes_first(heap, heap->order[child + 1], heap->order[child]))
            child++;
        if (!goes_first(heap, heap->order[child], moving))
            break;
        heap->order[hole] = heap->order[child];
        hole = child;
    }
    heap->order[hole] = moving;
}

static void leftovers_assign(leftover_heap *heap, share *shares, uint32_t count, uint64_t left)
{
    heap->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (shares[i].score > 0)
            heap->order[heap->count++] = i;
    }
    for (uint32_t i = heap->count / 2; i-- > 0;)
        sift_down(heap, i);
    for (; left > 0; left--) {
        shares[heap->order[0]].width++;
        /* Largest remainder gives a device one leftover at most; the earliest finisher may take
         * more. */
        if (heap->policy == FL_PARTITION_BALANCED)
            heap->order[0] = heap->order[--heap->count];
        sift_down(heap, 0);
    }
}

static uint32_t parts_write(const share *shares, uint32_t count, fl_device_part *parts)
{
    uint64_t lo = 0;
    uint32_t written = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (shares[i].width == 0)
            continue;
        parts[written++] = (fl_device_part){.lo = lo, .hi = lo + shares[i].width, .device = i};
        lo += shares[i].width;
    }
    return written;
}

filch_status fl_partition(const fl_memory *memory, fl_partition_policy policy, uint64_t n,
                          const double *scores, uint32_t count, fl_device_part *parts,
                          uint32_t *part_count)
{
    size_t share_bytes;
    size_t order_bytes;

    if (memory == NULL || part_count == NULL || n > INT64_MAX ||
        (policy != FL_PARTITION_MAKESPAN && policy != FL_PARTITION_BALANCED) ||
        (count > 0 && (scores == NULL || parts == NULL)))
        return FILCH_INVALID_ARGUMENT;
    if (n == 0 || count == 0) {
        *part_count = 0;
        return FILCH_OK;
    }
    if (!fl_size_mul(count, sizeof(share), &share_bytes) ||
        !fl_size_mul(count, sizeof(uint32_t), &order_bytes))
        return FILCH_OUT_OF_MEMORY;

    share *shares = fl_alloc_aligned(memory, share_bytes, _Alignof(share));
    uint32_t *order = fl_alloc(memory, order_bytes);
    filch_status status = FILCH_OUT_OF_MEMORY;

    if (shares != NULL && order != NULL) {
        leftover_heap heap = {.shares = shares, .order = order, .policy = policy};

        scores_convert(scores, count, shares);
        leftovers_assign(&heap, shares, count, floors_assign(shares, count, n));
        *part_count = parts_write(shares, count, parts);
        status = FILCH_OK;
    }
    fl_free(memory, order, order_bytes);
    fl_free_aligned(memory, shares, share_bytes, _Alignof(share));
    return status;
}
