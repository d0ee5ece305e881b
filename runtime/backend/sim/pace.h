/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of a simulated device over time: constant between the times at which it changes. */
#ifndef FL_BACKEND_SIM_PACE_H
#define FL_BACKEND_SIM_PACE_H

#include <stddef.h>
#include <stdint.h>

/* From at_ns on the device does so many units of work a second, 0 or more. */
typedef struct fl_pace_step {
    uint64_t at_ns;
    double speed;
} fl_pace_step;

/* Steps in the order of their times; the last one's speed is above 0. */
typedef struct fl_pace {
    double speed; /* until the first step */
    const fl_pace_step *steps;
    size_t count;
    size_t passed; /* steps that are before everything asked so far */
} fl_pace;

/* ns from start until `work` units are done that begin `after` ns behind it. Fractions count; after
 * is 0 or more, but for what rounding leaves. Starts never go back. */
double fl_pace_ns(fl_pace *pace, uint64_t start, double after, double work);

#endif
