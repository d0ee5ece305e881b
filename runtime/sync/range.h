/* SPDX-License-Identifier: Apache-2.0 */
/* A device's share of a divisible range: {lo, hi} in one 64-bit word, counted in grains. The owner
 * takes from lo, a thief cuts from hi, each with one compare-and-swap. Lock-free; any thread may
 * call anything. */
#ifndef FL_SYNC_RANGE_H
#define FL_SYNC_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

typedef struct fl_range {
    _Alignas(64) _Atomic uint64_t word; /* hi in the upper half, lo in the lower */
} fl_range;

/* Publishes [lo, hi): what was written before is seen by whoever takes from it. What the range
 * still held is dropped, so only its owner sets it, and only when it is empty. */
void fl_range_set(fl_range *range, uint32_t lo, uint32_t hi);
/* Takes up to want (> 0) grains from the front; false when empty. */
bool fl_range_take(fl_range *range, uint32_t want, uint32_t *lo, uint32_t *hi);
/* The same if the range still begins at lo; false when it does not or is empty. */
bool fl_range_take_at(fl_range *range, uint32_t lo, uint32_t want, uint32_t *hi);
/* Cuts up to want (> 0) grains off the back, none below floor, if the range still ends at end;
 * false when it does not or there are none. */
bool fl_range_cut(fl_range *range, uint32_t want, uint32_t floor, uint32_t end, uint32_t *lo,
                  uint32_t *hi);
/* Gives back the end of what was taken last from the front, [lo, hi), which goes first again; only
 * who takes from the front. False: it is not what the range begins behind. */
bool fl_range_return(fl_range *range, uint32_t lo, uint32_t hi);
/* Takes everything that is left, leaving it empty; false when it was. */
bool fl_range_drain(fl_range *range, uint32_t *lo, uint32_t *hi);
/* Snapshot; returns the number of grains left. */
uint32_t fl_range_peek(const fl_range *range, uint32_t *lo, uint32_t *hi);

#endif
