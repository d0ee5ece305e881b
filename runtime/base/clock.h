/* SPDX-License-Identifier: Apache-2.0 */
/* Time behind one interface: the machine's monotonic clock, or a virtual clock advanced by a
 * simulation. Every time is in nanoseconds from an arbitrary origin. */
#ifndef FL_BASE_CLOCK_H
#define FL_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define FL_TIME_NEVER UINT64_MAX
#define FL_NS_PER_S 1000000000ull

typedef struct fl_clock {
    bool is_virtual;
    /* Written by the thread that drives the simulation. Relaxed: readers use the time for a
     * deadline or a statistic only. */
    _Atomic uint64_t virtual_now;
} fl_clock;

void fl_clock_init(fl_clock *clock, bool is_virtual);
/* Returns the time. Thread-safe; wait-free. */
uint64_t fl_clock_now(const fl_clock *clock);
/* Moves a virtual clock to t, never backwards. One thread at a time. */
void fl_clock_advance(fl_clock *clock, uint64_t t);
/* Returns the machine's monotonic time. */
uint64_t fl_time_now(void);
/* Converts seconds to nanoseconds, saturating: negative and NaN give 0, huge or infinite give
 * FL_TIME_NEVER. */
uint64_t fl_time_from_seconds(double seconds);

#endif
