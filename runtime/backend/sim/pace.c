/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/sim/pace.h"

#define NS_PER_S 1e9

double fl_pace_ns(fl_pace *pace, uint64_t start, double after, double work)
{
    /* Relative to start: there a double keeps fractions of a nanosecond however late it is. */
    double at = after;

    while (pace->passed < pace->count && pace->steps[pace->passed].at_ns <= start)
        pace->passed++;
    for (size_t i = pace->passed;; i++) {
        double speed = i == 0 ? pace->speed : pace->steps[i - 1].speed;
        double left;

        if (work == 0.0)
            return at;
        if (i == pace->count)
            return at + work / speed * NS_PER_S;
        left = (double)(pace->steps[i].at_ns - start) - at;
        if (left <= 0.0)
            continue;
        if (work <= left / NS_PER_S * speed && speed > 0.0)
            return at + work / speed * NS_PER_S;
        work -= left / NS_PER_S * speed;
        at += left;
    }
}
