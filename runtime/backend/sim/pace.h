/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a simulated device's work items: a speed constant between its changes, and an overhead
 * per item independent of the speed. */
#ifndef FL_BACKEND_SIM_PACE_H
#define FL_BACKEND_SIM_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

/* Change of the speed: from at_ns on the device does `speed` units of work a second, 0 or more. */
typedef struct fl_pace_step {
    uint64_t at_ns;
    double speed;
} fl_pace_step;

/* Steps in the order of their times; the last step's speed is above 0. */
typedef struct fl_pace {
    double speed; /* speed before the first step */
    const fl_pace_step *steps;
    size_t count;
    size_t passed; /* steps before the start of every item so far */
    double overhead_ns;
    double carry; /* time kept back by rounding to whole nanoseconds so far, -1/2 to 1/2 */
    uint64_t until_misread; /* items until the misread one; 0: no more */
    double misread_by;
} fl_pace;

/* Opens a pace with a copy of the steps. May return FILCH_OUT_OF_MEMORY. */
filch_status fl_pace_open(fl_pace *pace, const fl_memory *memory, double speed,
                          const fl_pace_step *steps, size_t count, double overhead_us);
void fl_pace_close(fl_pace *pace, const fl_memory *memory);
/* Takes an item of `work` units beginning at start, and stores its duration in ns; starts never go
 * back. FILCH_INVALID_ARGUMENT: work is negative or not finite. FILCH_OVERFLOW: the item would end
 * after all time. */
filch_status fl_pace_take(fl_pace *pace, uint64_t start, double work, uint64_t *ns);
/* Returns the duration reported for an item of ns, in the order of taking. */
uint64_t fl_pace_told(fl_pace *pace, uint64_t ns);
/* Predicts the duration of an item not taken, at any start; otherwise like fl_pace_take. */
double fl_pace_foretell(const fl_pace *pace, uint64_t start, double work);

#endif
