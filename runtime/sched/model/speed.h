/* SPDX-License-Identifier: Apache-2.0 */
/* Measured speed of one (device, codelet) pair: a work item of w units takes a + w/s. Only the
 * device's worker writes. Published values may be read by every thread (relaxed, word by word: an
 * old estimate is a valid estimate, and so is a new rate with an old fixed part). */
#ifndef FL_SCHED_MODEL_SPEED_H
#define FL_SCHED_MODEL_SPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "graph/task/codelet.h"
#include "sched/worker/tuning.h"

#define FL_SPEED_SAMPLES 16
/* Number of outliers in a row that begin a new regime even without agreement. */
#define FL_SPEED_PENDING 5
/* Weight of a prior, in samples. */
#define FL_SPEED_PRIOR 3
/* Least time between two samples of brief items, ns (measured: docs/performance.md). A sample takes
 * some 170 ns, which is 6 % of 64 items of 44 ns. */
#define FL_SPEED_BETWEEN_NS 20000u

typedef struct fl_sample {
    double work;
    double ns;
    uint64_t at; /* time of measurement */
} fl_sample;

/* Estimate for a device before any measurement. */
typedef struct fl_prior {
    double rate;  /* ns per unit of work, above 0; 0: no prior */
    double fixed; /* ns per work item */
    double most_work;
    uint64_t taken; /* number of samples behind the prior */
} fl_prior;

/* Best speed ever proven by a device (speed.c tells a proven speed from luck). A work item of w
 * units takes fixed + rate * w ns or more. Items of `from` to `to` units proved the speed. */
typedef struct fl_proven {
    double rate; /* ns per unit of work; 0: not known */
    double fixed;
    double from, to;
} fl_proven;

typedef enum fl_prior_state {
    FL_PRIOR_NONE,
    FL_PRIOR_HELD,
    FL_PRIOR_FORGOTTEN /* the measurements disagreed */
} fl_prior_state;

typedef struct fl_speed {
    /* Bits of doubles. */
    _Alignas(64) _Atomic uint64_t rate; /* ns per unit of work; 0 = unknown */
    _Atomic uint64_t fixed;             /* ns per work item, 0 or more */
    _Atomic uint64_t spread;            /* median absolute deviation over the median */
    _Atomic uint64_t most_work;
    _Atomic uint64_t taken; /* samples ever taken */
    _Atomic uint64_t state; /* filled, an fl_prior_state, and regimes: see fl_speed_view */
    /* Bits of the doubles of an fl_proven; written rarely, and read when a job ends. */
    _Alignas(64) _Atomic uint64_t proven_rate, proven_fixed, proven_from, proven_to;

    /* Owner's members, on cache lines not read by other threads: the owner writes for every item.
     */
    _Alignas(64) fl_sample samples[FL_SPEED_SAMPLES]; /* present regime, oldest first */
    fl_sample pending[FL_SPEED_PENDING];
    fl_prior prior;
    double cold;               /* the dropped first sample, ns per unit; 0 = not seen yet */
    double shape;              /* work that takes as long as the fixed part */
    double told_from, told_to; /* range of works that shape holds for; 0: not told yet */
    double middle; /* unweighted median of ns / (work + shape); deviation: median deviation from
                      middle */
    double deviation;
    double best;     /* lowest rate of a regime, or of the prior; 0 = not known */
    double quickest; /* least ns of an item believed, raised by slower regimes; 0 = not known */
    double shortest; /* least ns of an item believed, as measured; 0 = not known */
    fl_sample least; /* newest sample of least work; large: of most work */
    fl_sample large;
    uint64_t probe_at;    /* earliest time to explore again when judged slow */
    uint64_t probe_after; /* wait after the last exploration, ns; 0: not explored yet */
    uint32_t filled;      /* number of elements in samples */
    uint32_t count;       /* samples taken in the present regime, saturating */
    uint32_t outliers;    /* outliers in a row: number of elements in pending */
    uint32_t countdown;   /* items until the next timed item */
    uint32_t period;      /* items that the sample at the countdown's end will stand for */
    uint32_t stands;      /* items that the last wanted sample stands for, itself included */
    bool is_asked;        /* the next item is to be timed, regardless of the period */
    uint64_t sampled_at;  /* end of the last sample */
    uint32_t regimes;     /* regime changes seen */
    int32_t against;      /* samples in a row that disagree with the prior; below 0: faster */
    double usual_spread;  /* smoothed spread of recent windows: deviation over median */
    fl_sample window[FL_SPEED_SAMPLES]; /* samples in arrival order, since the last full window */
    uint32_t window_count;              /* number of samples in window */
    bool is_firm; /* the proven speed comes from a full window or an earlier run */
} fl_speed;

void fl_speed_init(fl_speed *speed);
/* Sets the prior. Call before the first sample, while no other thread reads. */
void fl_speed_set_prior(fl_speed *speed, const fl_prior *prior);
/* Owner: tells whether the next item is to be timed. Times the first 16 items of a regime, then one
 * in 64. Times every item while a change is suspected. Sets stands: a sample stands for itself and
 * for the items that were let pass since the sample before. The samples of items that are timed at
 * unlike rates can therefore be added up. */
static inline bool fl_speed_wants_sample(fl_speed *speed)
{
    bool is_due = speed->count < FL_SPEED_SAMPLES || speed->outliers > 0;
    if (!is_due && speed->countdown > 0) {
        speed->countdown--;
        return false;
    }
    speed->stands = speed->period - speed->countdown;
    speed->countdown = is_due ? speed->countdown : FL_SPEED_PERIOD - 1;
    speed->period = speed->countdown + 1;
    return true;
}
/* Owner: tells whether a sample that fl_speed_wants_sample has just wanted would come too early:
 * the last one ended less than FL_SPEED_BETWEEN_NS before `now`, and the sample stands for fewer
 * than 512 items. If so, the item counts as let pass. A sample that was asked for is never too
 * early, nor is one of the first 16 or of a suspected change. */
bool fl_speed_is_early(fl_speed *speed, uint64_t now);
/* Owner: takes an item that fl_speed_wants_sample let pass out of the period, since the item is
 * timed in any case. */
static inline void fl_speed_leave_out(fl_speed *speed)
{
    speed->period--;
}
/* Owner: lets an item pass for which fl_speed_wants_sample was not called. */
static inline void fl_speed_put_in(fl_speed *speed)
{
    speed->period++;
}
/* Owner: takes back what was noted for an item that is to be launched again: it stood for so many
 * items, or passed, for none. */
static inline void fl_speed_take_back(fl_speed *speed, uint32_t stands)
{
    speed->period += stands - 1;
}
/* Owner: lets an item pass untimed, if fl_speed_wants_sample would. Quicker; allowed if
 * fl_speed_wants_sample has said no, or a sample was too early, since the last sample. */
static inline bool fl_speed_pass(fl_speed *speed)
{
    if (speed->countdown == 0) {
        return false;
    }
    speed->countdown--;
    return true;
}
/* Owner: delays the sample after the present one, because timing is expensive compared with such
 * short items. */
void fl_speed_put_off(fl_speed *speed);
/* Owner: asks to time the next item, regardless of the period. */
void fl_speed_ask(fl_speed *speed);
/* Owner: adds a sample: an item of work units (> 0) took ns (> 0) and ended `at`. A sample without
 * a finite positive speed only counts as taken. The first sample is dropped (cold start). An
 * outlier beyond 5 MAD is held back until three outliers agree, without a normal sample between.
 * The agreeing outliers then start a regime and replace every older sample. Where one poisoned
 * sample would decide, the estimate errs to the fast side: the next items correct a fast estimate,
 * while a device judged slow gets no items.
 *
 * Returns the believable time of the item: ns, or for an outlier the expected time. */
double fl_speed_add(fl_speed *speed, double work, double ns, uint64_t at);
/* Owner: begins work after a pause. Samples that have grown old weigh less against the prior. */
void fl_speed_rest(fl_speed *speed, uint64_t now);

/* Owner: tells whether a device refused by its estimate (ns for the item in question) is to explore
 * with the item, as its speed may have changed. The wait since the last measurement is at least 64
 * times ns, and 1 ms. Every exploration without a change doubles the wait, up to a further factor
 * of 64. A suspected improvement is followed up at once. */
bool fl_speed_probe_is_due(const fl_speed *speed, double ns, uint64_t now);
/* Owner: notes the beginning of an exploration. */
void fl_speed_probe(fl_speed *speed, double ns, uint64_t now);
/* Owner: returns the lowest rate ever measured or given by the prior; 0: never measured. */
double fl_speed_best(const fl_speed *speed);

/* Returns the best speed ever proven by the device. Thread-safe. Every member is valid; the members
 * may come from two updates. */
fl_proven fl_speed_proven(const fl_speed *speed);

/* Returns the estimated ns per unit of work, without the fixed part; 0 when unknown. Thread-safe.
 * Every published estimate is valid: no order is needed, here or below. */
static inline double fl_speed_get(const fl_speed *speed)
{
    return fl_bits_double(fl_load_relaxed(&speed->rate));
}

/* Returns the estimated fixed ns per item. Thread-safe. */
static inline double fl_speed_fixed(const fl_speed *speed)
{
    return fl_bits_double(fl_load_relaxed(&speed->fixed));
}

/* Owner: returns a certain fixed part, ns: no more than the shortest item ever took. The value
 * stays small even if the estimate mistakes items of unlike cost for a fixed part. */
static inline double fl_speed_floor(const fl_speed *speed)
{
    double fixed = fl_speed_fixed(speed);
    return fixed < speed->shortest ? fixed : speed->shortest;
}

/* Returns the estimated ns of an item; 0 when unknown. Thread-safe. */
static inline double fl_speed_time(const fl_speed *speed, double work)
{
    return fl_speed_get(speed) * work + fl_speed_fixed(speed);
}

/* Returns the most work of a timed item. Thread-safe. Estimates far beyond are guesses: an item of
 * little work may have taken no longer than its dispatch. */
static inline double fl_speed_most_work(const fl_speed *speed)
{
    return fl_bits_double(fl_load_relaxed(&speed->most_work));
}

/* Published values; every member is recent, but the members need not be of one moment. */
typedef struct fl_speed_view {
    double rate, fixed, spread, most_work;
    uint64_t taken;
    uint32_t samples; /* number of samples behind the estimate */
    uint32_t regimes;
    fl_prior_state prior;
} fl_speed_view;

/* Returns the published values. Thread-safe. */
fl_speed_view fl_speed_look(const fl_speed *speed);

/* Measured speed of the codelet on a device. */
static inline fl_speed *fl_codelet_speed(const filch_codelet *codelet, uint32_t device)
{
    return (fl_speed *)(uintptr_t)codelet->speeds + device;
}

#endif
