/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support/timing.h"

#include <time.h>

#define SETTLE_STEP_S 0.004
/* Share of one core below which the process counts as quiet: a few wake-ups a step. */
#define SETTLE_SHARE 0.05

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_now_s(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double bench_cpu_s(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

bool bench_settle(double limit_s)
{
    const struct timespec step = {0, (long)(SETTLE_STEP_S * 1e9)};
    double end = bench_now_s() + limit_s;
    double wall = bench_now_s();
    double used = bench_cpu_s();
    while (wall < end) {
        nanosleep(&step, NULL);
        double wall_now = bench_now_s();
        double used_now = bench_cpu_s();
        if (used_now - used < SETTLE_SHARE * (wall_now - wall))
            return true;
        wall = wall_now;
        used = used_now;
    }
    return false;
}
