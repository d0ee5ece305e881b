/* SPDX-License-Identifier: Apache-2.0 */
/* Median and median absolute deviation as location and scale, with a rejection rule, follow the
 * Hampel identifier: F. R. Hampel, "The influence curve and its role in robust estimation", J.
 * Amer. Statist. Assoc. 69, 1974. The fixed part comes from a resistant line through the middle of
 * the outer thirds, as in J. W. Tukey, "Exploratory Data Analysis", 1977. */
#include "sched/model/speed.h"

#include "sched/worker/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Age of a sample that counts as fresh, ns. */
#define FRESH_NS (FL_SPEED_AGED_NS / 64.0)
/* Least number of samples of a third: a fixed part is sought in thirds of the samples. */
#define THIRD 3
/* Sums of works stay finite. */
#define WORK_MOST 1e300
/* The proven speed is the least median of windows of samples in order of arrival: the estimate
 * chooses its own samples, so they prove nothing. The least median of a thousand windows is the
 * luckiest, so a window counts by four standard errors more. The variance of a median is pi / 2
 * times the variance of a mean (P. J. Huber, "Robust Statistics", 1981), and the deviation of a
 * normal distribution is 1.4826 times the median absolute deviation. The spread is the spread of
 * recent windows, or of this window. */
#define PROVEN_ERRORS (4.0 * 1.2533 * 1.4826)

static void set_period(fl_speed *speed, uint32_t period)
{
    speed->period = period;
    speed->countdown = period - 1;
}

void fl_speed_init(fl_speed *speed)
{
    memset(speed, 0, sizeof *speed);
    set_period(speed, FL_SPEED_PERIOD);
}

void fl_speed_put_off(fl_speed *speed)
{
    uint32_t passed = speed->period - 1 - speed->countdown;
    set_period(speed, FL_SPEED_PERIOD_LONG);
    speed->period += passed; /* still without a sample that stands for them */
}

void fl_speed_ask(fl_speed *speed)
{
    speed->period -= speed->countdown;
    speed->countdown = 0;
    speed->is_asked = true;
}

bool fl_speed_is_early(fl_speed *speed, uint64_t now)
{
    bool is_due = speed->count < FL_SPEED_SAMPLES || speed->outliers > 0 || speed->is_asked;
    speed->is_asked = false;
    if (is_due || speed->stands + FL_SPEED_PERIOD > FL_SPEED_PERIOD_LONG ||
        now - speed->sampled_at >= FL_SPEED_BETWEEN_NS) {
        return false;
    }
    speed->period += speed->stands;
    return true;
}

/* --- Medians --- */

/* Halves that are equal stay so when their weights are added up in another order. */
#define ALMOST (1.0 - 1e-9)

typedef struct weighted {
    double value;
    double weight;
} weighted;

static void insert(weighted *sorted, uint32_t count, weighted one)
{
    uint32_t at = count;

    for (; at > 0 && sorted[at - 1].value > one.value; at--)
        sorted[at] = sorted[at - 1];
    sorted[at] = one;
}

/* Returns the least value up to which half of the weight lies. Equal weights and an even count (>
 * 0) give the lower of the two middle values. */
static double weighted_median(const weighted *sorted, uint32_t count)
{
    double total = 0.0, sum = 0.0;
    uint32_t at = 0;

    for (uint32_t i = 0; i < count; i++)
        total += sorted[i].weight;
    for (; at + 1 < count; at++) {
        sum += sorted[at].weight;
        if (2.0 * sum >= total * ALMOST)
            break;
    }
    return sorted[at].value;
}

/* Returns the median distance from the middle value. Merges the values below and above the middle,
 * already in order. */
static double median_distance(const weighted *sorted, uint32_t count)
{
    uint32_t low = (count - 1) / 2, high = low, steps = (count - 1) / 2;
    double middle = sorted[low].value, distance = 0.0;

    while (steps-- > 0) {
        double down = low > 0 ? middle - sorted[low - 1].value : INFINITY;
        double up = high + 1 < count ? sorted[high + 1].value - middle : INFINITY;

        if (down <= up) {
            low--;
            distance = down;
        } else {
            high++;
            distance = up;
        }
    }
    return distance;
}

/* --- The estimate --- */

static double newest_age(const fl_speed *speed, uint64_t now)
{
    uint64_t at = speed->samples[speed->filled - 1].at;

    return now > at ? (double)(now - at) : 0.0;
}

/* Computes the weight of every sample, in order. */
static void weigh(const fl_speed *speed, uint64_t now, double weights[FL_SPEED_SAMPLES])
{
    double floor = fmin(1.0, FL_SPEED_AGED_LEAST / (speed->filled > 1 ? speed->filled - 1 : 1));

    for (uint32_t i = 0; i < speed->filled; i++) {
        uint64_t at = speed->samples[i].at;
        double age = now > at ? (double)(now - at) : 0.0;

        /* exp2 costs as much as the rest of the function, and hardly changes the weight of a sample
         * younger than FRESH_NS. */
        weights[i] = age < FRESH_NS ? 1.0 : fmax(floor, exp2(-age / FL_SPEED_AGED_NS));
    }
}

/* Returns the unweighted median of the samples; *deviation: the median deviation. sorted receives
 * the values with their weights. */
static double reduce(const fl_speed *speed, const double *weights, weighted *sorted,
                     double *deviation)
{
    for (uint32_t i = 0; i < speed->filled; i++) {
        const fl_sample *sample = &speed->samples[i];
        double value = sample->ns / (sample->work + speed->shape);

        insert(sorted, i, (weighted){value, weights[i]});
    }
    *deviation = median_distance(sorted, speed->filled);
    return sorted[(speed->filled - 1) / 2].value;
}

/* --- The proven speed --- */

static void set_proven(fl_speed *speed, const fl_proven *proven)
{
    /* Relaxed: see fl_speed_get. */
    fl_store_relaxed(&speed->proven_rate, fl_double_bits(proven->rate));
    fl_store_relaxed(&speed->proven_fixed, fl_double_bits(proven->fixed));
    fl_store_relaxed(&speed->proven_from, fl_double_bits(proven->from));
    fl_store_relaxed(&speed->proven_to, fl_double_bits(proven->to));
}

fl_proven fl_speed_proven(const fl_speed *speed)
{
    return (fl_proven){.rate = fl_bits_double(fl_load_relaxed(&speed->proven_rate)),
                       .fixed = fl_bits_double(fl_load_relaxed(&speed->proven_fixed)),
                       .from = fl_bits_double(fl_load_relaxed(&speed->proven_from)),
                       .to = fl_bits_double(fl_load_relaxed(&speed->proven_to))};
}

static double proven_time(const fl_proven *proven, double work)
{
    return proven->rate * work + proven->fixed;
}

/* Tells whether `line` predicts at most factor times the time predicted by `other`, at the two
 * ends of the range of `other`. */
static bool reaches(const fl_proven *line, const fl_proven *other, double factor)
{
    return proven_time(line, other->from) <= factor * proven_time(other, other->from) &&
           proven_time(line, other->to) <= factor * proven_time(other, other->to);
}

/* Extends the line's range by the range of `other`, if work items there took about as long as the
 * line predicts. Otherwise part of their time may be fixed. */
static void join_ranges(fl_proven *line, const fl_proven *other)
{
    if (reaches(other, &(fl_proven){line->rate, line->fixed, other->from, other->to},
                FL_SPEED_FIT_GAIN)) {
        line->from = fmin(line->from, other->from);
        line->to = fmax(line->to, other->to);
    }
}

static bool is_wider(const fl_proven *line, const fl_proven *other)
{
    return line->to / line->from > FL_SPEED_APART * other->to / other->from &&
           reaches(line, other, 1.0 + FL_SPEED_GRAIN);
}

/* Measures the window's speed. The quartiles of the works are the range: a single item of different
 * work proves nothing. */
static fl_proven measure_window(fl_speed *speed, uint32_t count)
{
    weighted rates[FL_SPEED_SAMPLES], works[FL_SPEED_SAMPLES];

    for (uint32_t i = 0; i < count; i++) {
        const fl_sample *sample = &speed->window[i];

        insert(rates, i, (weighted){sample->ns / (sample->work + speed->shape), 1.0});
        insert(works, i, (weighted){sample->work, 1.0});
    }

    double middle = rates[(count - 1) / 2].value;
    double spread = median_distance(rates, count) / middle;

    if (count == FL_SPEED_SAMPLES) {
        double gain = speed->is_firm ? FL_MEAN_WEIGHT : 1.0;

        speed->usual_spread += gain * (spread - speed->usual_spread);
    }

    double doubt = PROVEN_ERRORS * fmax(spread, speed->usual_spread) / sqrt(count);
    double rate = middle * (1.0 + doubt);

    return (fl_proven){rate, rate * speed->shape, works[count / 4].value,
                       works[count - 1 - count / 4].value};
}

/* Proves a speed by the samples in arrival order, and keeps the better of the new and the proven
 * speed. The speed of a full window stays for ever. The speed of a shorter window stands until more
 * samples arrive, since three bad samples of five make the median. Windows are compared by a large
 * item of the newer window, as two lines may cross. */
static void prove(fl_speed *speed, const fl_sample *sample)
{
    uint32_t count = speed->window_count + 1;

    speed->window[speed->window_count] = *sample;
    speed->window_count = count % FL_SPEED_SAMPLES;
    if (count < FL_SPEED_MAD_FILLED || (speed->is_firm && count < FL_SPEED_SAMPLES))
        return;

    fl_proven seen = measure_window(speed, count);
    fl_proven before = fl_speed_proven(speed);

    if (speed->is_firm &&
        (proven_time(&seen, seen.to) < proven_time(&before, seen.to) || is_wider(&seen, &before))) {
        join_ranges(&seen, &before);
    } else if (speed->is_firm) {
        join_ranges(&before, &seen);
        seen = before;
    }
    speed->is_firm |= count == FL_SPEED_SAMPLES;
    set_proven(speed, &seen);
}

static void publish(fl_speed *speed, uint64_t now)
{
    weighted sorted[FL_SPEED_SAMPLES + 1];
    double weights[FL_SPEED_SAMPLES];
    uint32_t count = speed->filled;
    double rate;

    if (count > 0) {
        weigh(speed, now, weights);
        speed->middle = reduce(speed, weights, sorted, &speed->deviation);
    }
    if (speed->prior.rate > 0.0) {
        /* The prior enters as its time for a large measured item, comparable whatever part is
         * fixed. */
        double work = count > 0 ? speed->large.work : 1.0;
        double ns = speed->prior.rate * work + speed->prior.fixed;

        insert(sorted, count++, (weighted){ns / (work + speed->shape), FL_SPEED_PRIOR});
    }
    rate = weighted_median(sorted, count);
    /* A single sample after the cold one cannot be told from a poisoned sample; the cold sample
     * bounds the rate. */
    if (count == 1 && speed->filled == 1)
        rate = fmin(rate, speed->cold);
    if (speed->filled >= FL_SPEED_MAD_FILLED)
        speed->best = speed->best > 0.0 ? fmin(speed->best, rate) : rate;
    /* Relaxed: no published value makes a second value valid. */
    fl_store_relaxed(&speed->rate, fl_double_bits(rate));
    fl_store_relaxed(&speed->fixed, fl_double_bits(rate * speed->shape));
    fl_store_relaxed(&speed->spread,
                     fl_double_bits(speed->filled > 0 ? speed->deviation / speed->middle : 0.0));

    fl_prior_state prior = speed->prior.rate > 0.0 ? FL_PRIOR_HELD
                           : speed->against != 0   ? FL_PRIOR_FORGOTTEN
                                                   : FL_PRIOR_NONE;

    fl_store_relaxed(&speed->state, (uint64_t)speed->regimes << 32 | (uint64_t)prior << 16 |
                                        (uint64_t)speed->filled);
}

fl_speed_view fl_speed_look(const fl_speed *speed)
{
    uint64_t state = fl_load_relaxed(&speed->state); /* relaxed: see fl_speed_get */

    return (fl_speed_view){.rate = fl_speed_get(speed),
                           .fixed = fl_speed_fixed(speed),
                           .spread = fl_bits_double(fl_load_relaxed(&speed->spread)),
                           .most_work = fl_speed_most_work(speed),
                           .taken = fl_load_relaxed(&speed->taken),
                           .samples = (uint32_t)(state & 0xffff),
                           .regimes = (uint32_t)(state >> 32),
                           .prior = (fl_prior_state)(state >> 16 & 0xffff)};
}

void fl_speed_set_prior(fl_speed *speed, const fl_prior *prior)
{
    speed->prior = *prior;
    speed->shape = prior->fixed / prior->rate;
    speed->best = prior->rate;
    fl_store_relaxed(&speed->most_work, fl_double_bits(prior->most_work));
    if (prior->taken >= FL_SPEED_SAMPLES && prior->most_work > 0.0) {
        const fl_proven proven = {prior->rate, prior->fixed, prior->most_work, prior->most_work};

        set_proven(speed, &proven);
        speed->is_firm = true;
    }
    publish(speed, 0);
}

void fl_speed_rest(fl_speed *speed, uint64_t now)
{
    if (speed->prior.rate > 0.0 && speed->filled > 0)
        publish(speed, now);
}

/* --- The fixed part --- */

/* Returns the middle of count samples by time per unit of work. Separate medians of works and times
 * need not belong together in a third with two kinds of items. */
static const fl_sample *typical(const fl_sample *const *third, uint32_t count)
{
    const fl_sample *sorted[FL_SPEED_SAMPLES / THIRD];

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && sorted[at - 1]->ns * third[i]->work > third[i]->ns * sorted[at - 1]->work;
             at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = third[i];
    }
    return sorted[(count - 1) / 2];
}

static void sort_by_work(const fl_speed *speed, const fl_sample **sorted)
{
    for (uint32_t i = 0; i < speed->filled; i++) {
        uint32_t at = i;

        for (; at > 0 && sorted[at - 1]->work > speed->samples[i].work; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &speed->samples[i];
    }
}

/* Returns the shape of the line through a small and a large item. The fixed part is at most the
 * quickest time believed. Chunks are cut to last about equally long. A device with a drift too
 * small for a new regime therefore has items of unlike work and equal time, as though the whole
 * time were fixed. */
static double line_shape(const fl_speed *speed, const fl_sample *small, const fl_sample *large)
{
    double slope = (large->ns - small->ns) / (large->work - small->work), least, fixed;

    least = FL_SPEED_WORK_LEAST * large->ns / large->work;
    slope = fmax(slope, least);
    fixed = small->ns - slope * small->work;
    if (fixed > speed->quickest) {
        fixed = speed->quickest;
        slope = fmax((large->ns - fixed) / large->work, least);
    }
    return fmax(0.0, fixed / slope);
}

/* Separates the fixed part from the rate, if the samples' works differ enough. Otherwise the fixed
 * part stays: items of one size, or two strays, say nothing about the fixed part. */
static void fit(fl_speed *speed)
{
    const fl_sample *sorted[FL_SPEED_SAMPLES];
    uint32_t third = speed->filled / 3;

    if (third < THIRD || speed->large.work < FL_SPEED_APART * speed->least.work)
        return;
    sort_by_work(speed, sorted);

    const fl_sample *small = typical(sorted, third);
    const fl_sample *large = typical(sorted + speed->filled - third, third);

    if (large->work < FL_SPEED_APART * small->work)
        return;

    double gain = small->ns / small->work / (large->ns / large->work);

    speed->told_from = small->work / FL_SPEED_APART;
    speed->told_to = large->work * FL_SPEED_APART;
    speed->shape = gain > FL_SPEED_FIT_GAIN ? line_shape(speed, small, large) : 0.0;
}

/* --- Samples --- */

static double expected(const fl_speed *speed, double work)
{
    return speed->middle * (work + speed->shape);
}

/* Predicts the bounds of an item's time if the speed is unchanged. The fixed part is unknown when
 * no items of similar work have told it, and may be anything from zero to the whole time seen. More
 * work then takes no less than the time seen, and at most proportionally more. */
static void foresee(const fl_speed *speed, double work, double *low, double *high)
{
    const fl_sample *least = &speed->least, *large = &speed->large;
    bool is_told = work >= speed->told_from && work <= speed->told_to;
    bool is_within = work >= least->work && work <= large->work;

    *low = *high = expected(speed, work);
    if (is_told || (is_within && large->work < FL_SPEED_APART * least->work))
        return;

    double fewest = fmin(least->ns, expected(speed, least->work));
    double most = fmax(large->ns, expected(speed, large->work));

    if (work < least->work) {
        *low = fmin(*low, fewest * (work / least->work));
        *high = fmax(*high, fmax(least->ns, expected(speed, least->work)));
    } else if (work > large->work) {
        *low = fmin(*low, fmin(large->ns, expected(speed, large->work)));
        *high = fmax(*high, most * (work / large->work));
    } else {
        *low = fmin(*low, fewest);
        *high = fmax(*high, most);
    }
}

static bool is_outlier(const fl_speed *speed, double work, double ns)
{
    double low, high, band;

    if (speed->filled < FL_SPEED_MAD_FILLED)
        return false;
    foresee(speed, work, &low, &high);
    band = 1.0 + FL_SPEED_MAD_LIMIT * fmax(speed->deviation / speed->middle, FL_SPEED_GRAIN);
    return ns > high * band || ns < low / band;
}

static void measure_range(fl_speed *speed)
{
    speed->least = speed->large = speed->samples[0];
    for (uint32_t i = 1; i < speed->filled; i++) {
        if (speed->samples[i].work <= speed->least.work)
            speed->least = speed->samples[i];
        if (speed->samples[i].work >= speed->large.work)
            speed->large = speed->samples[i];
    }
}

static void drop_oldest(fl_sample *samples, uint32_t *count)
{
    --*count;
    memmove(samples, samples + 1, *count * sizeof *samples);
}

static void keep(fl_speed *speed, const fl_sample *sample)
{
    if (speed->filled == FL_SPEED_SAMPLES)
        drop_oldest(speed->samples, &speed->filled);
    speed->samples[speed->filled++] = *sample;
    speed->outliers = 0;
}

/* Holds an outlier back; returns true when the outliers held back make a new regime. The agreeing
 * outliers become the samples. All become samples when no outliers agree: their common message is
 * that the old regime is over. */
static bool suspect(fl_speed *speed, const fl_sample *sample)
{
    weighted sorted[FL_SPEED_PENDING];
    uint32_t need = newest_age(speed, sample->at) > FL_SPEED_AGED_NS ? FL_SPEED_REGIME_OLD
                                                                     : FL_SPEED_REGIME,
             from = 0;
    double low = 0.0, high = INFINITY;

    speed->pending[speed->outliers++] = *sample;
    for (uint32_t i = 0; i < speed->outliers; i++) {
        const fl_sample *one = &speed->pending[i];

        insert(sorted, i, (weighted){one->ns / expected(speed, one->work), 1.0});
    }
    while (from + need <= speed->outliers &&
           sorted[from + need - 1].value > FL_SPEED_AGREE * sorted[from].value)
        from++;
    if (from + need <= speed->outliers) {
        low = sorted[from].value;
        high = sorted[from + need - 1].value;
    } else if (speed->outliers < FL_SPEED_PENDING) {
        return false;
    }

    uint32_t filled = 0;

    for (uint32_t i = 0; i < speed->outliers; i++) {
        double value = speed->pending[i].ns / expected(speed, speed->pending[i].work);

        if (value >= low && value <= high)
            speed->samples[filled++] = speed->pending[i];
    }
    speed->filled = speed->count = filled;
    /* A cause that slows a device down may slow its fixed part down, too. */
    speed->quickest *= fmax(1.0, fmin(high, sorted[speed->outliers - 1].value));
    speed->outliers = 0;
    speed->told_from = speed->told_to = 0.0;
    speed->regimes++;
    return true;
}

/* Forgets a prior that is found wrong. */
static void doubt(fl_speed *speed, double work, double ns, uint64_t now)
{
    double said = speed->prior.rate * work + speed->prior.fixed;

    if (!(speed->prior.rate > 0.0))
        return;
    if (ns > FL_SPEED_DISAGREE * said)
        speed->against = speed->against > 0 ? speed->against + 1 : 1;
    else if (ns < said / FL_SPEED_DISAGREE)
        speed->against = speed->against < 0 ? speed->against - 1 : -1;
    else
        speed->against = 0;
    if ((uint32_t)abs(speed->against) >= FL_SPEED_REGIME_OLD) {
        speed->prior.rate = 0.0;
        speed->best = 0.0;
        speed->shape = speed->told_to > 0.0 ? speed->shape : 0.0;
        if (speed->filled > 0)
            publish(speed, now);
    }
}

static void raise(_Atomic uint64_t *most, double value)
{
    if (value > fl_bits_double(fl_load_relaxed(most)))
        fl_store_relaxed(most, fl_double_bits(value)); /* relaxed: like every published value */
}

double fl_speed_add(fl_speed *speed, double work, double ns, uint64_t at)
{
    const fl_sample sample = {work, ns, at};
    double per_work = ns / work;

    speed->sampled_at = at;
    if (speed->count < UINT32_MAX)
        speed->count++;
    if (!(work > 0.0 && work < WORK_MOST) || !(ns > 0.0) || !isnormal(per_work))
        return ns;
    fl_store_relaxed(&speed->taken, fl_load_relaxed(&speed->taken) + 1); /* relaxed: as above */
    raise(&speed->most_work, work);
    if (speed->cold == 0.0) {
        speed->cold = per_work;
        return ns;
    }
    prove(speed, &sample);
    doubt(speed, work, ns, at);
    if (is_outlier(speed, work, ns)) {
        double usual = expected(speed, work);

        if (!suspect(speed, &sample))
            return usual;
    } else {
        keep(speed, &sample);
    }
    speed->quickest = speed->quickest > 0.0 ? fmin(speed->quickest, ns) : ns;
    speed->shortest = speed->shortest > 0.0 ? fmin(speed->shortest, ns) : ns;
    measure_range(speed);
    if (speed->told_to == 0.0 || speed->count % FL_SPEED_FIT_PERIOD == 0)
        fit(speed);

    double before = fl_speed_get(speed);

    publish(speed, at);
    if (fl_speed_get(speed) < before / FL_SPEED_AGREE)
        speed->probe_after = 0; /* faster again: the slow estimate was wrong */
    return ns;
}

/* --- Exploration --- */

double fl_speed_best(const fl_speed *speed)
{
    return speed->best;
}

bool fl_speed_probe_is_due(const fl_speed *speed, double ns, uint64_t now)
{
    double wait = fmax(FL_EXPLORE_LEAST_NS, FL_EXPLORE_ITEMS * ns);
    uint64_t last = speed->filled > 0 ? speed->samples[speed->filled - 1].at : 0;

    if (speed->outliers > 0) {
        /* A further slowdown is no reason to explore again. */
        const fl_sample *newest = &speed->pending[speed->outliers - 1];

        if (newest->ns < expected(speed, newest->work))
            return true;
        last = newest->at;
    }
    return now >= speed->probe_at && now > last && (double)(now - last) >= wait;
}

void fl_speed_probe(fl_speed *speed, double ns, uint64_t now)
{
    double least = fmax(FL_EXPLORE_LEAST_NS, FL_EXPLORE_ITEMS * ns);
    double wait = fmin(fmax(2.0 * (double)speed->probe_after, least), FL_EXPLORE_GROWTH * least);

    speed->probe_after = wait < 0x1p62 ? (uint64_t)wait : (uint64_t)1 << 62;
    speed->probe_at = now + speed->probe_after;
}
