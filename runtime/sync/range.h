/* SPDX-License-Identifier: Apache-2.0 */
/* Device's share of a divisible range: {lo, hi} in one 64-bit word, counted in grains. The owner
 * takes from lo and a thief cuts from hi, by a single compare-and-swap. Lock-free; thread-safe. */
#ifndef FL_SYNC_RANGE_H
#define FL_SYNC_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

typedef struct fl_range {
    _Alignas(64) _Atomic uint64_t word; /* hi in the upper half, lo in the lower */
} fl_range;

/* Publishes [lo, hi): every taker sees the caller's earlier writes. Old contents are dropped: only
 * the owner may set the range, and only an empty range. */
void fl_range_set(fl_range *range, uint32_t lo, uint32_t hi);
/* Takes up to want (> 0) grains from the front; false when empty. */
bool fl_range_take(fl_range *range, uint32_t want, uint32_t *lo, uint32_t *hi);
/* Takes up to want grains if the range still begins at lo; false when the range begins elsewhere or
 * is empty. */
bool fl_range_take_at(fl_range *range, uint32_t lo, uint32_t want, uint32_t *hi);
/* Cuts up to want (> 0) grains off the back, not below floor, if the range still ends at end. False
 * when the range ends elsewhere or has no grains above floor. */
bool fl_range_cut(fl_range *range, uint32_t want, uint32_t floor, uint32_t end, uint32_t *lo,
                  uint32_t *hi);
/* Returns [lo, hi), the end of the latest take from the front; the grains go first again. Only for
 * the thread that takes from the front. False: the range does not begin at hi. */
bool fl_range_return(fl_range *range, uint32_t lo, uint32_t hi);
/* Takes every grain left and leaves the range empty; false when the range was empty. */
bool fl_range_drain(fl_range *range, uint32_t *lo, uint32_t *hi);
/* Takes a snapshot; returns the number of grains left. */
uint32_t fl_range_peek(const fl_range *range, uint32_t *lo, uint32_t *hi);

#endif
