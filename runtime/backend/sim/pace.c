/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/sim/pace.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

filch_status fl_pace_open(fl_pace *pace, const fl_memory *memory, double speed,
                          const fl_pace_step *steps, size_t count, double overhead_us)
{
    const size_t bytes = count * sizeof *steps;
    fl_pace_step *copy = bytes != 0 ? fl_alloc(memory, bytes) : NULL;

    if (copy == NULL && bytes != 0)
        return FILCH_OUT_OF_MEMORY;
    if (bytes != 0)
        memcpy(copy, steps, bytes);
    *pace =
        (fl_pace){.speed = speed, .steps = copy, .count = count, .overhead_ns = overhead_us * 1e3};
    return FILCH_OK;
}

void fl_pace_close(fl_pace *pace, const fl_memory *memory)
{
    fl_free(memory, (void *)(uintptr_t)pace->steps, pace->count * sizeof *pace->steps);
}

/* Returns the time from start to the end of `work` units begun `at` ns after start, fractions
 * included. */
static double ns_until(fl_pace *pace, uint64_t start, double at, double work)
{
    while (pace->passed < pace->count && pace->steps[pace->passed].at_ns <= start)
        pace->passed++;
    /* Count relative to start: a double then keeps fractions of a nanosecond, however late the
     * start. */
    for (size_t i = pace->passed;; i++) {
        double speed = i == 0 ? pace->speed : pace->steps[i - 1].speed;
        double left;

        if (work == 0.0)
            return at;
        if (i == pace->count)
            return at + work / speed * (double)FL_NS_PER_S;
        left = (double)(pace->steps[i].at_ns - start) - at;
        if (left <= 0.0)
            continue;
        if (work <= left / (double)FL_NS_PER_S * speed && speed > 0.0)
            return at + work / speed * (double)FL_NS_PER_S;
        work -= left / (double)FL_NS_PER_S * speed;
        at += left;
    }
}

filch_status fl_pace_take(fl_pace *pace, uint64_t start, double work, uint64_t *ns)
{
    double exact;
    double whole;

    if (!(work >= 0.0) || isinf(work))
        return FILCH_INVALID_ARGUMENT;
    /* The carry makes many items of a fraction of a nanosecond take their right time in sum. */
    exact = ns_until(pace, start, pace->overhead_ns + pace->carry, work);
    whole = floor(exact + 0.5);
    /* 2^64 is the first value not fitting; FL_TIME_NEVER itself is no time. */
    if (whole >= 0x1p64 || (uint64_t)whole >= FL_TIME_NEVER - start)
        return FILCH_OVERFLOW;
    pace->carry = exact - whole;
    *ns = (uint64_t)whole;
    return FILCH_OK;
}

uint64_t fl_pace_told(fl_pace *pace, uint64_t ns)
{
    if (pace->until_misread == 0 || --pace->until_misread != 0)
        return ns;
    return (uint64_t)fmin(floor((double)ns * pace->misread_by + 0.5), 0x1p62);
}

double fl_pace_foretell(const fl_pace *pace, uint64_t start, double work)
{
    /* Begin at the first step: start may be before the last item. */
    fl_pace fresh = *pace;

    fresh.passed = 0;
    return ns_until(&fresh, start, pace->overhead_ns, work);
}
