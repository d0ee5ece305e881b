/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a device's speed against a plain one, which sorts everything anew for each sample;
 * and what it makes of fixed parts, changes of speed, age, priors and trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "sched/model/speed.h"

#define SECOND UINT64_C(1000000000)

/* --- A plain model --- */

typedef struct plain_sample {
    double work, ns, at;
} plain_sample;

typedef struct plain {
    plain_sample window[16], held[5];
    int filled, held_count, taken, count, regimes, against;
    double cold, shape, prior_rate, prior_fixed, quickest;
    double told_from, told_to;
    bool has_prior;
    double rate, fixed, spread;
} plain;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double plain_median(const double *values, int count)
{
    double sorted[32];

    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return sorted[(count - 1) / 2];
}

static double plain_mad(const double *values, int count)
{
    double distances[32], middle = plain_median(values, count);

    for (int i = 0; i < count; i++)
        distances[i] = fabs(values[i] - middle);
    return plain_median(distances, count);
}

/* Least value that at least half of the weight does not exceed. */
static double plain_weighted(const double *values, const double *weights, int count)
{
    double best = INFINITY, total = 0;

    for (int i = 0; i < count; i++)
        total += weights[i];
    for (int i = 0; i < count; i++) {
        double below = 0;

        for (int j = 0; j < count; j++)
            below += values[j] <= values[i] ? weights[j] : 0;
        if (2 * below >= total * (1 - 1e-9) && values[i] < best)
            best = values[i];
    }
    return best;
}

static void plain_values(const plain *p, double *values)
{
    for (int i = 0; i < p->filled; i++)
        values[i] = p->window[i].ns / (p->window[i].work + p->shape);
}

static double work_end(const plain *p, bool is_largest)
{
    double end = p->window[0].work;

    for (int i = 1; i < p->filled; i++)
        end = is_largest ? fmax(end, p->window[i].work) : fmin(end, p->window[i].work);
    return end;
}

static double plain_expected(const plain *p, double work)
{
    double values[16];

    plain_values(p, values);
    return plain_median(values, p->filled) * (work + p->shape);
}

static int compare_works(const void *a, const void *b)
{
    const plain_sample *x = a, *y = b;

    if (x->work != y->work)
        return x->work > y->work ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static void plain_fit(plain *p)
{
    plain_sample sorted[16];
    plain_sample ends[2];
    int third = p->filled / 3;

    if (third < 3 || work_end(p, true) < 2 * work_end(p, false))
        return;
    memcpy(sorted, p->window, sizeof sorted);
    qsort(sorted, (size_t)p->filled, sizeof *sorted, compare_works);
    for (int end = 0; end < 2; end++) {
        const plain_sample *from = &sorted[end == 0 ? 0 : p->filled - third];
        double rates[16];

        for (int i = 0; i < third; i++)
            rates[i] = from[i].ns / from[i].work;
        for (int i = third; i-- > 0;) {
            if (rates[i] == plain_median(rates, third))
                ends[end] = from[i];
        }
    }
    if (ends[1].work < 2 * ends[0].work)
        return;

    double slope = (ends[1].ns - ends[0].ns) / (ends[1].work - ends[0].work);
    double least = ends[1].ns / ends[1].work / 16;
    double shape = fmax(0, (ends[0].ns - fmax(slope, least) * ends[0].work) / fmax(slope, least));

    if (ends[0].ns - fmax(slope, least) * ends[0].work > p->quickest)
        shape = p->quickest / fmax((ends[1].ns - p->quickest) / ends[1].work, least);

    p->told_from = ends[0].work / 2;
    p->told_to = ends[1].work * 2;
    p->shape = ends[0].ns / ends[0].work > 1.25 * (ends[1].ns / ends[1].work) ? shape : 0;
}

static bool plain_is_outlier(const plain *p, double work, double ns)
{
    double values[16];

    if (p->filled < 5)
        return false;
    plain_values(p, values);
    double relative = plain_mad(values, p->filled) / plain_median(values, p->filled);
    double band = 1 + 5 * fmax(relative, 1.0 / 16);
    plain_sample small = p->window[0], large = p->window[0];
    double low = plain_expected(p, work), high = low;

    for (int i = 1; i < p->filled; i++) {
        small = p->window[i].work <= small.work ? p->window[i] : small;
        large = p->window[i].work >= large.work ? p->window[i] : large;
    }
    bool is_told = work >= p->told_from && work <= p->told_to;
    bool is_inside = work >= small.work && work <= large.work;

    if (!is_told && !(is_inside && large.work < 2 * small.work)) {
        double at_small[] = {small.ns, plain_expected(p, small.work)};
        double at_large[] = {large.ns, plain_expected(p, large.work)};

        qsort(at_small, 2, sizeof *at_small, compare_doubles);
        qsort(at_large, 2, sizeof *at_large, compare_doubles);
        low = fmin(low, work > large.work   ? at_large[0]
                        : work < small.work ? at_small[0] * work / small.work
                                            : at_small[0]);
        high = fmax(high, work > large.work   ? at_large[1] * work / large.work
                          : work < small.work ? at_small[1]
                                              : at_large[1]);
    }
    return ns > high * band || ns < low / band;
}

static bool plain_suspect(plain *p, plain_sample sample)
{
    double values[5];
    int need = sample.at - p->window[p->filled - 1].at > 10e9 ? 2 : 3, made = 0;

    p->held[p->held_count++] = sample;
    for (int i = 0; i < p->held_count; i++)
        values[i] = p->held[i].ns / plain_expected(p, p->held[i].work);
    /* The lowest that agree. */
    double sorted[5], low = 0, high = INFINITY;

    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, (size_t)p->held_count, sizeof *sorted, compare_doubles);
    bool agree = false;

    for (int i = 0; i + need <= p->held_count && !agree; i++) {
        agree = sorted[i + need - 1] <= 1.5 * sorted[i];
        if (agree) {
            low = sorted[i];
            high = sorted[i + need - 1];
        }
    }
    if (!agree && p->held_count < 5)
        return false;
    plain_sample kept[5];

    for (int i = 0; i < p->held_count; i++) {
        if (values[i] >= low && values[i] <= high)
            kept[made++] = p->held[i];
    }
    p->quickest *= fmax(1, fmin(high, sorted[p->held_count - 1]));
    memcpy(p->window, kept, sizeof kept);
    p->filled = p->count = made;
    p->held_count = 0;
    p->told_from = p->told_to = 0;
    p->regimes++;
    return true;
}

static void plain_publish(plain *p, double now)
{
    double values[17], weights[17];
    int count = p->filled;

    plain_values(p, values);
    p->spread = count > 0 ? plain_mad(values, count) / plain_median(values, count) : 0;
    for (int i = 0; i < count; i++) {
        double age = fmax(0, now - p->window[i].at);
        double least = fmin(1, 2.25 / (count > 1 ? count - 1 : 1));

        weights[i] = age < 10e9 / 64 ? 1 : fmax(least, pow(0.5, age / 10e9));
    }
    if (p->has_prior) {
        double work = count > 0 ? work_end(p, true) : 1;

        values[count] = (p->prior_rate * work + p->prior_fixed) / (work + p->shape);
        weights[count++] = 3;
    }
    p->rate = plain_weighted(values, weights, count);
    if (count == 1 && p->filled == 1)
        p->rate = fmin(p->rate, p->cold);
    p->fixed = p->rate * p->shape;
}

static void plain_add(plain *p, double work, double ns, double at)
{
    plain_sample sample = {work, ns, at};

    p->count++;
    p->taken++;
    if (p->cold == 0) {
        p->cold = ns / work;
        return;
    }
    if (p->has_prior) {
        double ratio = ns / (p->prior_rate * work + p->prior_fixed);
        int sign = ratio > 2 ? 1 : ratio < 0.5 ? -1 : 0;

        p->against = sign == 0 ? 0 : p->against * sign > 0 ? p->against + sign : sign;
        if (abs(p->against) == 2) {
            p->has_prior = false;
            p->shape = p->told_to > 0 ? p->shape : 0;
            plain_publish(p, at);
        }
    }
    if (plain_is_outlier(p, work, ns)) {
        if (!plain_suspect(p, sample))
            return;
    } else {
        if (p->filled == 16)
            memmove(p->window, p->window + 1, (size_t)--p->filled * sizeof *p->window);
        p->window[p->filled++] = sample;
        p->held_count = 0;
    }
    p->quickest = p->quickest > 0 ? fmin(p->quickest, ns) : ns;
    if (p->told_to == 0 || p->count % 4 == 0)
        plain_fit(p);
    plain_publish(p, at);
}

static uint64_t seed_now;

static void assert_close(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted) + 1e-300))
        fail_msg("seed %llu: %.17g instead of %.17g", (unsigned long long)seed_now, got, wanted);
}

/* --- Random sequences --- */

typedef struct machine {
    double fixed, rate, noise; /* as they are now */
} machine;

static double draw_time(fl_random *random, const machine *device, double work)
{
    double ns = device->fixed + work * device->rate;

    ns *= 1 + device->noise * (2 * fl_random_unit(random) - 1);
    if (fl_random_below(random, 40) == 0)
        ns *= fl_random_below(random, 2) == 0 ? 500.0 : 1.0 / 500;
    return ns;
}

static double draw_work(fl_random *random, uint64_t kind)
{
    double octaves = kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? 3 : 8;

    return 1000 * exp2(octaves * fl_random_unit(random));
}

static void run_sequence(uint64_t seed)
{
    fl_random random;
    fl_speed speed;
    plain reference = {0};
    machine device;
    uint64_t now = 1000 * SECOND;

    seed_now = seed;
    fl_random_init(&random, seed, 0);
    fl_speed_init(&speed);
    device.rate = exp2(20 * fl_random_unit(&random) - 10);
    device.fixed = fl_random_below(&random, 2) == 0 ? 0 : device.rate * 5000;
    device.noise = 0.2 * fl_random_unit(&random);
    if (fl_random_below(&random, 2) == 0) {
        double off = exp2(4 * fl_random_unit(&random) - 2);
        const fl_prior prior = {device.rate * off, device.fixed * off, 1, 0};

        fl_speed_set_prior(&speed, &prior);
        reference.has_prior = true;
        reference.prior_rate = prior.rate;
        reference.prior_fixed = prior.fixed;
        reference.shape = prior.fixed / prior.rate;
        plain_publish(&reference, 0);
    }
    uint64_t kind = fl_random_below(&random, 4);
    for (int i = 0; i < 300; i++) {
        double work = draw_work(&random, kind);
        double ns = draw_time(&random, &device, work);

        now += fl_random_below(&random, 30) == 0 ? SECOND * fl_random_below(&random, 40)
                                                 : fl_random_below(&random, 1000000);
        fl_speed_add(&speed, work, ns, now);
        plain_add(&reference, work, ns, (double)now);
        fl_speed_view view = fl_speed_look(&speed);
        assert_close(view.rate, reference.rate);
        assert_close(view.fixed, reference.fixed);
        assert_true(view.fixed >= 0 && isfinite(view.fixed) && isfinite(view.rate));
        assert_true(reference.taken < 2 || view.rate > 0);
        assert_true(fabs(view.spread - reference.spread) <= 1e-9);
        assert_int_equal(view.samples, reference.filled);
        assert_int_equal(view.regimes, reference.regimes);
        assert_int_equal(view.taken, reference.taken);
        assert_int_equal(view.prior == FL_PRIOR_HELD, reference.has_prior);
        if (fl_random_below(&random, 60) == 0)
            device.rate *= exp2(6 * fl_random_unit(&random) - 3);
        if (fl_random_below(&random, 60) == 0)
            kind = fl_random_below(&random, 4);
    }
}

static void test_against_plain_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++)
        run_sequence(seed);
}

/* --- What it is for --- */

static double noisy(fl_random *random, double part)
{
    return 1 + part * (2 * fl_random_unit(random) - 1);
}

static void assert_within(double got, double wanted, double part)
{
    if (!(fabs(got - wanted) <= part * wanted))
        fail_msg("%.6g instead of %.6g", got, wanted);
}

/* a + w/s is found from tiles of unlike work, whatever the order and one in ten spoilt. */
static void test_fixed_part_is_told_apart(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        fl_random random;
        fl_speed speed;

        fl_random_init(&random, seed, 1);
        fl_speed_init(&speed);
        for (int i = 0; i < 40; i++) {
            double work = i % 3 == 0 ? 1e3 : i % 3 == 1 ? 1e4 : 1e5;
            double ns = (2e4 + 2 * work) * noisy(&random, 0.02);

            fl_speed_add(&speed, work, i % 10 == 9 ? ns * 500 : ns, (uint64_t)i);
        }
        assert_within(fl_speed_get(&speed), 2, 0.15);
        assert_within(fl_speed_fixed(&speed), 2e4, 0.15);
        /* Far outside what was seen, too. */
        assert_within(fl_speed_time(&speed, 10), 2e4, 0.15);
        assert_within(fl_speed_time(&speed, 1e7), 2e7, 0.15);
    }
}

/* A wrong time among the small tiles, of which there are hardly enough, does not make what the next
 * larger ones take the time of the small ones. */
static void test_thirds_of_two_kinds(void **state)
{
    (void)state;
    for (int small = 2; small < 8; small++) {
        for (int wrong = 0; wrong <= small; wrong++) {
            fl_speed speed;

            fl_speed_init(&speed);
            for (int i = 0; i < 30; i++) {
                double work = i <= small ? 1e6 : 3e6;

                fl_speed_add(&speed, work, (i == wrong ? 500 : 1) * work * 1.02, 0);
                assert_true(i < 5 || fl_speed_fixed(&speed) == 0);
            }
            assert_within(fl_speed_get(&speed), 1.02, 1e-9);
        }
    }
}

/* Tiles of one size say nothing of a fixed part, nor do tiles that have none, nor noise. */
static void test_no_fixed_part_out_of_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        fl_random random;
        fl_speed same, unlike;

        fl_random_init(&random, seed, 2);
        fl_speed_init(&same);
        fl_speed_init(&unlike);
        for (int i = 0; i < 60; i++) {
            double work = exp2(6 * fl_random_unit(&random));

            fl_speed_add(&same, 100, 300 * noisy(&random, 0.1), (uint64_t)i);
            fl_speed_add(&unlike, work, 3 * work * noisy(&random, 0.1), (uint64_t)i);
        }
        assert_true(fl_speed_fixed(&same) == 0);
        assert_within(fl_speed_get(&same), 3, 0.1);
        assert_within(fl_speed_time(&unlike, 1), 3, 0.3);
        assert_within(fl_speed_time(&unlike, 64), 3 * 64, 0.1);
    }
}

/* Tiles that take the same whatever their work leave something to the work: larger ones are not
 * thought to cost nothing. And less time for more work makes nothing negative. */
static void test_flat_times(void **state)
{
    const double slopes[] = {0, -0.4};

    (void)state;
    for (int s = 0; s < 2; s++) {
        fl_speed speed;

        fl_speed_init(&speed);
        for (int i = 0; i < 40; i++) {
            double work = i % 2 == 0 ? 1 : 100;

            fl_speed_add(&speed, work, 1000 + slopes[s] * work, (uint64_t)i);
        }
        assert_within(fl_speed_time(&speed, 1), 1000, 0.1);
        assert_within(fl_speed_time(&speed, 100), 1000, 0.1);
        assert_true(fl_speed_get(&speed) > 0);
        assert_true(fl_speed_time(&speed, 1e6) > 1000 * 1e4 / 32);
        assert_true(fl_speed_fixed(&speed) > 0);
    }
}

/* Small tiles among large ones, whose fixed part is not known yet, are no change of speed. */
static void test_unlike_tiles_are_no_regime(void **state)
{
    (void)state;
    fl_speed speed;

    fl_speed_init(&speed);
    for (int i = 0; i < 20; i++)
        fl_speed_add(&speed, 1e6, 1e6 + 1e5, 0);
    for (int i = 0; i < 12; i++)
        fl_speed_add(&speed, 1e3, 1e3 + 1e5, 0);
    fl_speed_add(&speed, 1e6, 1e6 + 1e5, 0);
    assert_int_equal(fl_speed_look(&speed).regimes, 0);
    assert_within(fl_speed_get(&speed), 1, 0.02);
    assert_within(fl_speed_fixed(&speed), 1e5, 0.02);
}

/* Nor are tiles of a growing size, of which the first are all fixed part. */
static void test_growing_tiles_are_no_regime(void **state)
{
    (void)state;
    fl_speed speed;

    fl_speed_init(&speed);
    for (int i = 0; i < 40; i++) {
        double work = i < 20 ? exp2(i) : 1e6;

        assert_true(fl_speed_add(&speed, work, 5e3 + work, 0) == 5e3 + work);
    }
    assert_int_equal(fl_speed_look(&speed).regimes, 0);
    assert_within(fl_speed_get(&speed), 1, 0.01);
}

/* Nor are tiny ones behind many that told there is no fixed part worth the name. */
static void test_tiny_tiles_are_no_regime(void **state)
{
    (void)state;
    fl_speed speed;

    fl_speed_init(&speed);
    for (int i = 0; i < 40; i++)
        fl_speed_add(&speed, i % 2 == 0 ? 1e5 : 1e6, 5e3 + (i % 2 == 0 ? 1e5 : 1e6), 0);
    for (int i = 0; i < 5; i++) {
        fl_speed_add(&speed, 1, 5e3 + 1, 0);
        assert_within(fl_speed_get(&speed), 1, 0.06);
    }
    assert_int_equal(fl_speed_look(&speed).regimes, 0);
}

/* A device that gets slower, by 4 or by 500, and recovers: three samples each time, whatever the
 * sizes of the tiles, and none for one stray. */
static void check_change(double factor, bool is_unlike)
{
    fl_speed speed;
    uint32_t k = 0;

    fl_speed_init(&speed);
    for (int phase = 0; phase < 4; phase++) {
        double rate = phase % 2 == 0 ? 1 : factor;

        for (int i = 0; i < 30; i++) {
            double work = is_unlike && k++ % 2 == 0 ? 1e5 : 1e3;

            fl_speed_add(&speed, work, rate * (5e3 + work), 0);
            assert_int_equal(fl_speed_look(&speed).regimes, phase - (phase > 0 && i < 2));
        }
        assert_within(fl_speed_time(&speed, 1e3), rate * 6e3, 0.001);
    }
}

static void test_changes_in_both_directions(void **state)
{
    (void)state;
    const double factors[] = {4, 500, 1.0 / 4, 1.0 / 500, 1.4};

    for (int f = 0; f < 5; f++) {
        check_change(factors[f], false);
        check_change(factors[f], true);
    }
}

/* Three wild times in a row that have nothing in common are no change, five are. */
static void test_outliers_must_agree(void **state)
{
    const double wild[] = {500, 4, 50, 0.01, 9};
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    for (int i = 0; i < 20; i++)
        fl_speed_add(&speed, 1, 1, 0);
    for (int i = 0; i < 5; i++) {
        /* What is not believed counts as what was expected, in means of other kinds, too. */
        assert_true(fl_speed_add(&speed, 1, wild[i], 0) == (i < 4 ? 1 : 9));
        assert_int_equal(fl_speed_look(&speed).regimes, i == 4);
    }
    assert_true(fl_speed_get(&speed) == 9);
    /* A wrong time amid a change does not hold it up. */
    for (int i = 0; i < 20; i++)
        fl_speed_add(&speed, 1, 1, 0);
    const double change[] = {4, 4.1, 500, 3.9};
    for (int i = 0; i < 4; i++)
        fl_speed_add(&speed, 1, change[i], 0);
    assert_within(fl_speed_get(&speed), 4, 0.01);
}

/* Old samples give way to two that agree, instead of to three; one never decides. */
static void test_old_samples_weigh_less(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    for (int i = 0; i < 17; i++)
        fl_speed_add(&speed, 1, 100, SECOND);
    fl_speed_add(&speed, 1, 400, 2 * SECOND);
    fl_speed_add(&speed, 1, 400, 2 * SECOND);
    assert_true(fl_speed_get(&speed) == 100);
    fl_speed_add(&speed, 1, 100, 2 * SECOND);
    fl_speed_add(&speed, 1, 400, 100 * SECOND);
    assert_true(fl_speed_get(&speed) == 100);
    fl_speed_add(&speed, 1, 400, 100 * SECOND);
    assert_true(fl_speed_get(&speed) == 400);

    /* A drift within the deviations: eight of sixteen decide among new ones, three among old. */
    for (int is_old = 0; is_old < 2; is_old++) {
        uint64_t later = is_old ? 1000 * SECOND : SECOND;
        int steps = 0;

        fl_speed_init(&speed);
        for (int i = 0; i < 17; i++)
            fl_speed_add(&speed, 1, 100, SECOND);
        while (fl_speed_get(&speed) == 100) {
            fl_speed_add(&speed, 1, 120, later);
            steps++;
        }
        assert_int_equal(steps, is_old ? 3 : 9);
    }
}

/* --- Priors --- */

static void test_prior_weighs_as_three(void **state)
{
    const fl_prior prior = {100, 50, 7, 0};
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    fl_speed_set_prior(&speed, &prior);
    assert_within(fl_speed_time(&speed, 1), 150, 1e-9);
    assert_within(fl_speed_time(&speed, 10), 1050, 1e-9);
    assert_true(fl_speed_most_work(&speed) == 7);
    assert_int_equal(fl_speed_look(&speed).prior, FL_PRIOR_HELD);
    /* Within a factor of two it holds against as many samples as it weighs. */
    fl_speed_add(&speed, 10, 9999999, 0); /* the cold one */
    for (int i = 0; i < 3; i++) {
        fl_speed_add(&speed, 10, 1200, 0);
        assert_within(fl_speed_time(&speed, 10), 1050, 1e-9);
    }
    fl_speed_add(&speed, 10, 1200, 0);
    assert_within(fl_speed_time(&speed, 10), 1200, 1e-9);
    assert_int_equal(fl_speed_look(&speed).prior, FL_PRIOR_HELD);
}

/* A prior that is far off, either way, is gone with the second measurement that says so. */
static void test_prior_is_forgotten(void **state)
{
    const double offs[] = {500, 3, 1.0 / 3, 1.0 / 500};

    (void)state;
    for (int k = 0; k < 4; k++) {
        const fl_prior prior = {offs[k], 0, 1, 0};
        fl_speed speed;

        fl_speed_init(&speed);
        fl_speed_set_prior(&speed, &prior);
        fl_speed_add(&speed, 10, 10, 0);
        fl_speed_add(&speed, 10, 10, 0);
        assert_within(fl_speed_get(&speed), offs[k], 1e-9);
        fl_speed_add(&speed, 10, 10, 0);
        assert_within(fl_speed_get(&speed), 1, 1e-9);
        assert_int_equal(fl_speed_look(&speed).prior, FL_PRIOR_FORGOTTEN);
        /* One poisoned sample does not do that. */
        fl_speed_init(&speed);
        fl_speed_set_prior(&speed, &prior);
        for (int i = 0; i < 20; i++) {
            fl_speed_add(&speed, 10, 10 * offs[k] * (i == 5 ? 500 : i == 9 ? 0.002 : 1), 0);
            assert_within(fl_speed_get(&speed), offs[k], 1e-9);
        }
        assert_int_equal(fl_speed_look(&speed).prior, FL_PRIOR_HELD);
    }
}

/* What was not measured for long gives way to the prior. */
static void test_prior_outlives_old_samples(void **state)
{
    const fl_prior prior = {100, 0, 1, 0};
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    fl_speed_set_prior(&speed, &prior);
    for (int i = 0; i < 17; i++)
        fl_speed_add(&speed, 1, 130, SECOND);
    assert_true(fl_speed_get(&speed) == 130);
    fl_speed_rest(&speed, 2 * SECOND);
    assert_true(fl_speed_get(&speed) == 130);
    fl_speed_rest(&speed, 1000 * SECOND);
    assert_true(fl_speed_get(&speed) == 100);
    fl_speed_add(&speed, 1, 130, 1000 * SECOND);
    fl_speed_add(&speed, 1, 130, 1000 * SECOND);
    assert_true(fl_speed_get(&speed) == 130);
}

/* --- Trials --- */

static void test_trials_grow_rarer(void **state)
{
    const double tile = 1e6;
    fl_speed speed;
    uint64_t now = SECOND, last = now;

    (void)state;
    fl_speed_init(&speed);
    for (int i = 0; i < 20; i++)
        fl_speed_add(&speed, 1, tile, now);
    for (int trial = 0; trial < 12; trial++) {
        double wait = 64 * tile * fmin(trial > 0 ? exp2(trial - 1) : 1, 64);

        while (!fl_speed_probe_is_due(&speed, tile, now))
            now += (uint64_t)tile / 16;
        assert_within((double)(now - last), wait, 0.01);
        fl_speed_probe(&speed, tile, now);
        last = now;
        assert_false(fl_speed_probe_is_due(&speed, tile, now));
        fl_speed_add(&speed, 1, tile, now);
    }
}

/* A trial that says the device is fast again is followed by others at once, until that is known;
 * one that says it is slower still is not. */
static void test_good_news_are_followed_up(void **state)
{
    const double tile = 1e6;
    fl_speed speed;
    uint64_t now = SECOND;

    (void)state;
    fl_speed_init(&speed);
    for (int i = 0; i < 20; i++)
        fl_speed_add(&speed, 1, tile / 4, now);
    for (int i = 0; i < 3; i++)
        fl_speed_add(&speed, 1, tile, now);
    assert_true(fl_speed_get(&speed) == tile);
    for (int i = 0; i < 20; i++)
        fl_speed_add(&speed, 1, tile, now);
    assert_true(fl_speed_best(&speed) == tile / 4);
    fl_speed_add(&speed, 1, 9 * tile, now);
    assert_false(fl_speed_probe_is_due(&speed, tile, now + 1));
    fl_speed_add(&speed, 1, tile, now);
    now += 64 * (uint64_t)tile;
    assert_true(fl_speed_probe_is_due(&speed, tile, now));
    for (int i = 0; i < 3; i++) {
        assert_true(fl_speed_probe_is_due(&speed, tile, now));
        fl_speed_probe(&speed, tile, now);
        fl_speed_add(&speed, 1, tile / 4, now++);
    }
    assert_true(fl_speed_get(&speed) == tile / 4);
    assert_false(fl_speed_probe_is_due(&speed, tile / 4, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain_model),
        cmocka_unit_test(test_fixed_part_is_told_apart),
        cmocka_unit_test(test_thirds_of_two_kinds),
        cmocka_unit_test(test_no_fixed_part_out_of_nothing),
        cmocka_unit_test(test_flat_times),
        cmocka_unit_test(test_unlike_tiles_are_no_regime),
        cmocka_unit_test(test_growing_tiles_are_no_regime),
        cmocka_unit_test(test_tiny_tiles_are_no_regime),
        cmocka_unit_test(test_changes_in_both_directions),
        cmocka_unit_test(test_outliers_must_agree),
        cmocka_unit_test(test_old_samples_weigh_less),
        cmocka_unit_test(test_prior_weighs_as_three),
        cmocka_unit_test(test_prior_is_forgotten),
        cmocka_unit_test(test_prior_outlives_old_samples),
        cmocka_unit_test(test_trials_grow_rarer),
        cmocka_unit_test(test_good_news_are_followed_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
