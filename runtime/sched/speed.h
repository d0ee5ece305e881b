/* SPDX-License-Identifier: Apache-2.0 */
/* Measured speed of one (device, codelet) pair. Written by the device's worker only; any thread may
 * read the published estimate (relaxed: an old estimate is a valid estimate). */
#ifndef FL_SCHED_SPEED_H
#define FL_SCHED_SPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define FL_SPEED_SAMPLES 16

typedef struct fl_speed {
    _Atomic uint64_t published;     /* bits of a double: ns per unit of work; 0 = unknown */
    double ns_per_work[FL_SPEED_SAMPLES]; /* the last samples, ring */
    uint32_t count;                 /* samples taken in all, saturating */
    uint32_t outliers;              /* outliers in a row */
    double pending[3];              /* the outliers held back, until three say the regime changed */
    uint32_t countdown;             /* tiles until the next one is timed */
} fl_speed;

void fl_speed_init(fl_speed *speed);
/* Owner: is the next tile to be timed? First 16, then one in 64, all while a change is suspected. */
bool fl_speed_wants_sample(fl_speed *speed);
/* Owner: a timed tile of work units (> 0) took ns. The first sample is dropped (cold start); an
 * outlier beyond 5 MAD is held back until three in a row say the regime changed. */
void fl_speed_add(fl_speed *speed, double work, double ns);
/* Any thread: estimated ns per unit of work; 0 when unknown. */
double fl_speed_get(const fl_speed *speed);

#endif
