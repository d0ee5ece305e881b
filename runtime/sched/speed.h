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
    _Atomic uint64_t published;           /* bits of a double: ns per unit of work; 0 = unknown */
    double ns_per_work[FL_SPEED_SAMPLES]; /* the last samples, oldest first */
    double pending[3];  /* the outliers held back, until three say the regime changed */
    double cold;        /* the dropped first sample; 0 = none yet */
    double most_work;   /* of a tile that was timed */
    uint32_t filled;    /* samples in ns_per_work */
    uint32_t count;     /* samples taken in the present regime, saturating */
    uint32_t outliers;  /* outliers in a row */
    uint32_t countdown; /* tiles until the next one is timed */
} fl_speed;

void fl_speed_init(fl_speed *speed);
/* Owner: is the next tile to be timed? The first 16, of a new regime too, then one in 64, all while
 * a change is suspected. */
bool fl_speed_wants_sample(fl_speed *speed);
/* Owner: a sample is dear beside tiles as short as these: the next but this may come much later. */
void fl_speed_put_off(fl_speed *speed);
/* Owner: a timed tile of work units (> 0) took ns (> 0; a sample that is not a finite positive
 * speed only counts as taken). The first sample is dropped (cold start); an outlier beyond 5 MAD is
 * held back until three in a row say the regime changed, and then replace all older samples. Where
 * one poisoned sample would decide, the estimate errs to the fast side: the next tiles correct it,
 * while a device taken for slow gets none. */
void fl_speed_add(fl_speed *speed, double work, double ns);
/* Owner: the most work that a timed tile had. Far beyond it the estimate is a guess: a tile of
 * little work may have taken no longer than its dispatch. */
double fl_speed_most_work(const fl_speed *speed);
/* Any thread: estimated ns per unit of work; 0 when unknown. */
double fl_speed_get(const fl_speed *speed);

#endif
