/* SPDX-License-Identifier: Apache-2.0 */
/* Median and median absolute deviation as location and scale, with a rejection rule, follow the
 * Hampel identifier: F. R. Hampel, "The influence curve and its role in robust estimation",
 * J. Amer. Statist. Assoc. 69, 1974. */
#include "sched/speed.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"

/* One tile in so many is timed once the first FL_SPEED_SAMPLES of a regime are. */
#define PERIOD 64
#define PERIOD_LONG 512
/* Outliers in a row that make a new regime. */
#define REGIME 3
/* Samples from which a deviation says anything. Until then the median alone holds off a bad one. */
#define MAD_FILLED 5
#define MAD_LIMIT 5.0
/* Deviations below this part of the median are not told apart: samples that agree by chance, or to
 * the clock's grain, would make outliers of good ones, and three of these next to a bad one a
 * regime. A change that stays inside the band is the median's to follow. */
#define MAD_FLOOR (1.0 / 16.0)

void fl_speed_init(fl_speed *speed)
{
    memset(speed, 0, sizeof *speed);
    speed->countdown = PERIOD - 1;
}

bool fl_speed_wants_sample(fl_speed *speed)
{
    if (speed->count < FL_SPEED_SAMPLES || speed->outliers > 0)
        return true;
    if (speed->countdown > 0) {
        speed->countdown--;
        return false;
    }
    speed->countdown = PERIOD - 1;
    return true;
}

void fl_speed_put_off(fl_speed *speed)
{
    speed->countdown = PERIOD_LONG - 1;
}

/* The lower of the two in the middle where count (> 0) is even. */
static double median(const double *values, uint32_t count)
{
    double sorted[FL_SPEED_SAMPLES];

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return sorted[(count - 1) / 2];
}

static bool is_outlier(const fl_speed *speed, double sample)
{
    double deviations[FL_SPEED_SAMPLES];

    if (speed->filled < MAD_FILLED)
        return false;

    double middle = median(speed->ns_per_work, speed->filled);

    for (uint32_t i = 0; i < speed->filled; i++)
        deviations[i] = fabs(speed->ns_per_work[i] - middle);

    double spread = fmax(median(deviations, speed->filled), MAD_FLOOR * middle);

    return fabs(sample - middle) > MAD_LIMIT * spread;
}

static void history_push(fl_speed *speed, double sample)
{
    if (speed->filled == FL_SPEED_SAMPLES) {
        speed->filled--;
        memmove(speed->ns_per_work, speed->ns_per_work + 1,
                speed->filled * sizeof speed->ns_per_work[0]);
    }
    speed->ns_per_work[speed->filled++] = sample;
}

static void publish(fl_speed *speed)
{
    double estimate = median(speed->ns_per_work, speed->filled);

    /* One sample after the cold one cannot be told from a poisoned one; the cold one bounds it. */
    if (speed->filled == 1)
        estimate = fmin(estimate, speed->cold);
    /* Nothing else is published with the estimate, so nothing has to be seen before it. */
    fl_store_relaxed(&speed->published, fl_double_bits(estimate));
}

void fl_speed_add(fl_speed *speed, double work, double ns)
{
    double sample = ns / work;

    if (speed->count < UINT32_MAX)
        speed->count++;
    if (!(work > 0.0) || !(ns > 0.0) || !isnormal(sample))
        return;
    speed->most_work = fmax(speed->most_work, work);
    if (speed->cold == 0.0) {
        speed->cold = sample;
        return;
    }
    if (is_outlier(speed, sample)) {
        speed->pending[speed->outliers++] = sample;
        if (speed->outliers < REGIME)
            return;
        memcpy(speed->ns_per_work, speed->pending, sizeof speed->pending);
        speed->filled = REGIME;
        speed->count = REGIME;
    } else {
        history_push(speed, sample);
    }
    speed->outliers = 0;
    publish(speed);
}

double fl_speed_most_work(const fl_speed *speed)
{
    return speed->most_work;
}

double fl_speed_get(const fl_speed *speed)
{
    /* Any published estimate is a valid one: no order is needed. */
    return fl_bits_double(fl_load_relaxed(&speed->published));
}
