/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"

#include <time.h>

void fl_clock_init(fl_clock *clock, bool is_virtual)
{
    clock->is_virtual = is_virtual;
    atomic_init(&clock->virtual_now, 0);
}

uint64_t fl_clock_now(const fl_clock *clock)
{
    return clock->is_virtual ? fl_load_relaxed(&clock->virtual_now) : fl_time_now();
}

void fl_clock_advance(fl_clock *clock, uint64_t t)
{
    if (clock->is_virtual && t > fl_load_relaxed(&clock->virtual_now))
        fl_store_relaxed(&clock->virtual_now, t);
}

uint64_t fl_time_now(void)
{
    struct timespec now = {0, 0};

    /* The call cannot fail: every POSIX system has the clock, and the address is valid. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * FL_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t fl_time_from_seconds(double seconds)
{
    double ns = seconds * 1e9;

    /* The negated comparison sends NaN here, too. */
    if (!(ns > 0.0))
        return 0;
    /* UINT64_MAX is not a double. The conversion is defined up to the largest double below 2^64. */
    if (ns >= 0x1p64)
        return FL_TIME_NEVER;
    /* Rounds values small enough for a double to have fractions: 1.5e-8 gives 15, not 14. */
    return (uint64_t)(ns < 0x1p52 ? ns + 0.5 : ns);
}
