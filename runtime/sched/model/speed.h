/* SPDX-License-Identifier: Apache-2.0 */
/* Measured speed of one (device, codelet) pair: a tile of w units takes a + w/s. Written by the
 * device's worker only; any thread may read what is published (relaxed, word by word: an old
 * estimate is a valid estimate, and so is a new rate with an old fixed part). */
#ifndef FL_SCHED_MODEL_SPEED_H
#define FL_SCHED_MODEL_SPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"

#define FL_SPEED_SAMPLES 16
/* Outliers held back: three that agree are a new regime, so many in a row whatever they say. */
#define FL_SPEED_PENDING 5
/* What a prior weighs, in samples. */
#define FL_SPEED_PRIOR 3

typedef struct fl_sample {
    double work;
    double ns;
    uint64_t at; /* when it was taken */
} fl_sample;

/* What is thought of a device before it is measured. */
typedef struct fl_prior {
    double rate;  /* ns a unit of work, above 0; 0: nothing */
    double fixed; /* ns a tile */
    double most_work;
    uint64_t taken; /* samples behind it */
} fl_prior;

/* The best speed that a device was ever seen at (speed.c says how it is told from luck): a tile of
 * w units takes fixed + rate * w ns or more, as tiles of from to to units showed. */
typedef struct fl_proven {
    double rate; /* 0: not known */
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
    _Atomic uint64_t fixed;             /* ns per tile, 0 or more */
    _Atomic uint64_t spread;            /* median absolute deviation over the median */
    _Atomic uint64_t most_work;
    _Atomic uint64_t taken; /* samples ever */
    _Atomic uint64_t state; /* filled, an fl_prior_state, and regimes: see fl_speed_view */
    /* Bits of the doubles of an fl_proven; written rarely, and read when a job ends. */
    _Alignas(64) _Atomic uint64_t proven_rate, proven_fixed, proven_from, proven_to;

    /* The owner's, away from what others read: it writes there for every tile. */
    _Alignas(64) fl_sample samples[FL_SPEED_SAMPLES]; /* of the present regime, oldest first */
    fl_sample pending[FL_SPEED_PENDING];
    fl_prior prior;
    double cold;               /* of the dropped first sample, ns per unit; 0 = none yet */
    double shape;              /* the work that takes as long as the fixed part … */
    double told_from, told_to; /* … as tiles of this to that much work told; 0: none yet */
    double middle; /* unweighted median of ns / (work + shape), and the deviation from it */
    double deviation;
    double best;     /* lowest rate that a regime had; 0 = none */
    double quickest; /* least ns of any tile that was believed, as it would be now; 0 = none */
    double shortest; /* the same as it was then */
    fl_sample least; /* the newest of the samples with the least work, and with the most */
    fl_sample large;
    uint64_t probe_at;    /* one judged slow may be tried again from then on … */
    uint64_t probe_after; /* … and so long after that trial; 0: none yet */
    uint32_t filled;      /* elements of samples */
    uint32_t count;       /* samples taken in the present regime, saturating */
    uint32_t outliers;    /* in a row: elements of pending */
    uint32_t countdown;   /* tiles until the next one is timed */
    uint32_t regimes;     /* changes seen */
    int32_t against;      /* samples in a row that disagree with the prior; below 0: faster */
    double usual_spread;  /* deviation over median of the windows lately */
    fl_sample window[FL_SPEED_SAMPLES]; /* samples as they came, since the last full window … */
    uint32_t window_count;              /* … and how many */
    bool is_firm; /* the proven speed is of a full window, or of an earlier run */
} fl_speed;

void fl_speed_init(fl_speed *speed);
/* Before the first sample; no other thread reads yet. */
void fl_speed_set_prior(fl_speed *speed, const fl_prior *prior);
/* Owner: is the next tile to be timed? The first 16, of a new regime too, then one in 64, all while
 * a change is suspected. */
bool fl_speed_wants_sample(fl_speed *speed);
/* Owner: a sample is dear beside tiles as short as these: the next but this may come much later. */
void fl_speed_put_off(fl_speed *speed);
/* Owner: the next tile is to be timed, whatever the turn. */
void fl_speed_ask(fl_speed *speed);
/* Owner: a timed tile of work units (> 0) took ns (> 0; a sample that is not a finite positive
 * speed only counts as taken) and ended `at`. The first sample is dropped (cold start); an outlier
 * beyond 5 MAD is held back until three in a row that agree say the regime changed, and then
 * replace all older samples. Where one poisoned sample would decide, the estimate errs to the fast
 * side: the next tiles correct it, while a device taken for slow gets none.
 *
 * What the tile may be believed to have taken: ns, or for an outlier what was expected. */
double fl_speed_add(fl_speed *speed, double work, double ns, uint64_t at);
/* Owner: work begins after a pause: samples that have grown old weigh less against the prior. */
void fl_speed_rest(fl_speed *speed, uint64_t now);

/* Owner: whether a device that is held off by its estimate (ns for the tile in question) is to be
 * tried with that tile all the same, as things may have changed. Not before 64 times as long has
 * passed since it was measured last; after each trial that changed nothing twice as long, up to 64
 * times that. A suspected change to the better is followed up at once. */
bool fl_speed_probe_is_due(const fl_speed *speed, double ns, uint64_t now);
/* Owner: it is being tried. */
void fl_speed_probe(fl_speed *speed, double ns, uint64_t now);
/* Owner: the lowest rate that this device ever had, or was said to have; 0: never measured. */
double fl_speed_best(const fl_speed *speed);

/* Any thread: the best speed that the device was ever seen at. Each member is valid; they may be of
 * two updates. */
fl_proven fl_speed_proven(const fl_speed *speed);

/* Any thread: estimated ns per unit of work, beside the fixed part; 0 when unknown. Any published
 * estimate is a valid one: no order is needed, here or below. */
static inline double fl_speed_get(const fl_speed *speed)
{
    return fl_bits_double(fl_load_relaxed(&speed->rate));
}

/* Any thread: estimated ns that each tile takes beside its work. */
static inline double fl_speed_fixed(const fl_speed *speed)
{
    return fl_bits_double(fl_load_relaxed(&speed->fixed));
}

/* Owner: the same, of which it is sure: no more than any tile took. Where tiles of unlike cost were
 * taken for ones with a fixed part, it is little. */
static inline double fl_speed_floor(const fl_speed *speed)
{
    double fixed = fl_speed_fixed(speed);
    return fixed < speed->shortest ? fixed : speed->shortest;
}

/* Any thread: estimated ns of a tile; 0 when unknown. */
static inline double fl_speed_time(const fl_speed *speed, double work)
{
    return fl_speed_get(speed) * work + fl_speed_fixed(speed);
}

/* Any thread: the most work that a timed tile had. Far beyond it the estimate is a guess: a tile of
 * little work may have taken no longer than its dispatch. */
static inline double fl_speed_most_work(const fl_speed *speed)
{
    return fl_bits_double(fl_load_relaxed(&speed->most_work));
}

/* All that is published; each member is recent, but they need not be of one moment. */
typedef struct fl_speed_view {
    double rate, fixed, spread, most_work;
    uint64_t taken;
    uint32_t samples; /* behind the estimate */
    uint32_t regimes;
    fl_prior_state prior;
} fl_speed_view;

/* Any thread. */
fl_speed_view fl_speed_look(const fl_speed *speed);

#endif
