/* SPDX-License-Identifier: Apache-2.0 */
/* How long the tiles of a simulated device take: a speed over time, constant between the times at
 * which it changes, and an overhead for each tile that does not depend on it. */
#ifndef FL_BACKEND_SIM_PACE_H
#define FL_BACKEND_SIM_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

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
    double overhead_ns;
    double carry; /* what rounding to whole nanoseconds has kept back so far, -1/2 to 1/2 */
    uint64_t until_misread; /* tiles; 0: none any more */
    double misread_by;
} fl_pace;

/* The steps are copied. FILCH_OUT_OF_MEMORY. */
filch_status fl_pace_open(fl_pace *pace, const fl_memory *memory, double speed,
                          const fl_pace_step *steps, size_t count, double overhead_us);
void fl_pace_close(fl_pace *pace, const fl_memory *memory);
/* ns that a tile of `work` units takes which begins at start; starts never go back.
 * FILCH_INVALID_ARGUMENT: that is no work; FILCH_OVERFLOW: it would end after all time. */
filch_status fl_pace_take(fl_pace *pace, uint64_t start, double work, uint64_t *ns);
/* What is told of a tile that took so long, in the order in which they were taken. */
uint64_t fl_pace_told(fl_pace *pace, uint64_t ns);
/* As fl_pace_take for a tile that is not taken, at any time. */
double fl_pace_foretell(const fl_pace *pace, uint64_t start, double work);

#endif
