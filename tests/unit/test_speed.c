/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>

#include "base/thread.h"
#include "random.h"
#include "sched/model/speed.h"

static void add_each(fl_speed *speed, uint32_t count, double ns_per_work)
{
    for (uint32_t i = 0; i < count; i++)
        fl_speed_add(speed, 10.0, 10.0 * ns_per_work, 0);
}

static void assert_estimate(const fl_speed *speed, double expected)
{
    assert_true(fabs(fl_speed_get(speed) - expected) <= 1e-12 * expected);
}

static void test_unknown_until_second_sample(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    assert_true(fl_speed_get(&speed) == 0.0);
    fl_speed_add(&speed, 4.0, 400.0, 0);
    assert_true(fl_speed_get(&speed) == 0.0);
    fl_speed_add(&speed, 4.0, 8.0, 0);
    assert_estimate(&speed, 2.0);
}

/* The cold start never enters the median. */
static void test_first_sample_is_dropped(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    fl_speed_add(&speed, 1.0, 1.0, 0);
    fl_speed_add(&speed, 1.0, 7.0, 0);
    fl_speed_add(&speed, 1.0, 8.0, 0);
    fl_speed_add(&speed, 1.0, 9.0, 0);
    assert_estimate(&speed, 8.0);
}

static void test_median_of_last_sixteen(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 1, 500.0);
    /* A slow drift within the deviations: 100, 101, ... 139. */
    for (int i = 0; i < 40; i++)
        add_each(&speed, 1, 100.0 + i);
    /* The last 16 are 124 to 139; of the middle two the lower. */
    assert_estimate(&speed, 131.0);
}

/* One poisoned sample at any place, however large or small, never moves the estimate out of the
 * others' range, and never makes the device look slower than they do. */
static void test_one_poisoned_sample(void **state)
{
    const double poisons[] = {1e-6, 0.01, 30.0, 1e4, 1e12};

    (void)state;
    for (size_t p = 0; p < sizeof poisons / sizeof poisons[0]; p++) {
        for (int at = 0; at < 40; at++) {
            fl_speed speed;

            fl_speed_init(&speed);
            for (int i = 0; i < 40; i++) {
                bool is_poisoned = i == at;

                add_each(&speed, 1, is_poisoned ? poisons[p] : 1.0 + 0.01 * (i % 3));
                if (i > 0 && i != at + 1)
                    assert_true(i <= 2 || fl_speed_get(&speed) >= 1.0);
                if (i > 1 || at > 1)
                    assert_true(fl_speed_get(&speed) <= 1.02);
            }
        }
    }
}

static void test_three_outliers_are_a_regime(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 20, 1.0);
    add_each(&speed, 1, 4.0);
    assert_estimate(&speed, 1.0);
    add_each(&speed, 1, 4.1);
    assert_estimate(&speed, 1.0);
    add_each(&speed, 1, 4.2);
    assert_estimate(&speed, 4.1);
    /* The old regime is forgotten, not averaged in, and one late straggler of it changes nothing.
     */
    add_each(&speed, 1, 1.0);
    add_each(&speed, 3, 4.0);
    assert_estimate(&speed, 4.0);
}

static void test_outliers_not_in_a_row(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 20, 1.0);
    for (int i = 0; i < 100; i++) {
        add_each(&speed, 2, 50.0);
        add_each(&speed, 1, 1.0);
        assert_estimate(&speed, 1.0);
    }
}

/* A device whose times do not scatter at all still follows a small change. */
static void test_equal_samples_follow_small_changes(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 20, 1.0);
    add_each(&speed, 1, 1.25);
    assert_int_equal(speed.outliers, 0);
    add_each(&speed, 8, 1.25);
    assert_estimate(&speed, 1.25);
    add_each(&speed, 1, 1.7);
    assert_int_equal(speed.outliers, 1);
}

static void test_deviations_widen_the_band(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 1, 1.0);
    /* Median 100, MAD 10. */
    add_each(&speed, 2, 100.0);
    for (int i = 0; i < 7; i++) {
        add_each(&speed, 1, 110.0);
        add_each(&speed, 1, 90.0);
    }
    add_each(&speed, 1, 149.0);
    assert_int_equal(speed.outliers, 0);
    add_each(&speed, 1, 170.0);
    assert_int_equal(speed.outliers, 1);
}

static void test_sampling(void **state)
{
    fl_speed speed;
    int timed = 0;

    (void)state;
    fl_speed_init(&speed);
    for (int i = 0; i < FL_SPEED_SAMPLES; i++) {
        assert_true(fl_speed_wants_sample(&speed));
        add_each(&speed, 1, 1e4);
    }
    for (int i = 0; i < 6400; i++) {
        if (fl_speed_wants_sample(&speed)) {
            timed++;
            add_each(&speed, 1, 1e4);
        }
    }
    assert_int_equal(timed, 100);
    /* While a change is suspected every tile is timed, until it is confirmed or not. */
    add_each(&speed, 1, 9e4);
    assert_true(fl_speed_wants_sample(&speed));
    assert_true(fl_speed_wants_sample(&speed));
    add_each(&speed, 1, 1e4);
    assert_false(fl_speed_wants_sample(&speed));
    add_each(&speed, 2, 9e4);
    assert_true(fl_speed_wants_sample(&speed));
    add_each(&speed, 1, 9e4);
    /* A new regime is measured like a new codelet; three samples of it are there. */
    for (int i = 3; i < FL_SPEED_SAMPLES; i++) {
        assert_true(fl_speed_wants_sample(&speed));
        add_each(&speed, 1, 9e4);
    }
    assert_false(fl_speed_wants_sample(&speed));
    /* Put off: the next one comes after 512 tiles, and then again after 64. */
    static const int waits[] = {511, 63};
    fl_speed_put_off(&speed);
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < waits[w]; i++)
            assert_false(fl_speed_wants_sample(&speed));
        assert_true(fl_speed_wants_sample(&speed));
    }
}

/* Returns how many of so many items of ns each, one behind the other, are timed. */
static int timed_of(fl_speed *speed, uint32_t items, uint64_t ns, uint64_t *now)
{
    int timed = 0;

    for (uint32_t i = 0; i < items; i++) {
        bool wants = fl_speed_wants_sample(speed) && !fl_speed_is_early(speed, *now);

        *now += ns;
        if (wants) {
            timed++;
            fl_speed_add(speed, 10.0, (double)ns, *now);
        }
    }
    return timed;
}

static void test_brief_items_are_timed_less_often(void **state)
{
    fl_speed speed;
    uint64_t now = 0;

    (void)state;
    fl_speed_init(&speed);
    assert_int_equal(timed_of(&speed, FL_SPEED_SAMPLES, 10, &now), FL_SPEED_SAMPLES);
    assert_int_equal(timed_of(&speed, 10 * FL_SPEED_PERIOD_LONG, 10, &now), 10);
    /* As many as take FL_SPEED_BETWEEN_NS, in groups of 64. */
    fl_speed_init(&speed);
    (void)timed_of(&speed, FL_SPEED_SAMPLES, 100, &now);
    assert_int_equal(timed_of(&speed, 2560, 100, &now), 10);
    fl_speed_init(&speed);
    (void)timed_of(&speed, FL_SPEED_SAMPLES, 400, &now);
    assert_int_equal(timed_of(&speed, 6400, 400, &now), 100);
    /* Longer ones are noticed after 64 items. The change is suspected, confirmed, and measured
     * anew, then one in 64. */
    fl_speed_init(&speed);
    assert_int_equal(timed_of(&speed, FL_SPEED_SAMPLES + 3, 10, &now), FL_SPEED_SAMPLES);
    assert_int_equal(timed_of(&speed, FL_SPEED_PERIOD - 4, 5000, &now), 0);
    assert_int_equal(timed_of(&speed, FL_SPEED_SAMPLES, 5000, &now), FL_SPEED_SAMPLES);
    (void)timed_of(&speed, FL_SPEED_PERIOD, 5000, &now);
    assert_int_equal(timed_of(&speed, 6400, 5000, &now), 100);
    /* What is asked for is not early. */
    fl_speed_init(&speed);
    (void)timed_of(&speed, FL_SPEED_SAMPLES, 10, &now);
    fl_speed_ask(&speed);
    assert_int_equal(timed_of(&speed, 1, 10, &now), 1);
    assert_int_equal(timed_of(&speed, 1, 10, &now), 0);
}

/* Whatever is asked for, put off, left out, too early or taken back: every item is timed, or a
 * later sample stands for it. */
static void test_samples_stand_for_every_item(void **state)
{
    static const uint64_t ns[] = {10, 10, 150, 10000};
    fl_speed speed;
    uint64_t stood = 0, now = 0;
    uint32_t random = 1;

    (void)state;
    fl_speed_init(&speed);
    for (uint64_t i = 1; i <= 200000; i++) {
        uint64_t took = ns[i * 4 / 200001];

        random = random * 1664525u + 1013904223u;
        if (random >> 22 == 0)
            fl_speed_ask(&speed);
        if (random >> 23 == 1)
            fl_speed_put_off(&speed);
        bool is_passed = (random >> 20 & 1) != 0 && speed.count >= FL_SPEED_SAMPLES &&
                         speed.outliers == 0 && fl_speed_pass(&speed);
        now += took;
        if (is_passed) {
            assert_int_equal(stood + speed.period - 1 - speed.countdown, i);
            continue;
        }
        bool wants = fl_speed_wants_sample(&speed);

        if (wants && random >> 28 == 1) {
            fl_speed_take_back(&speed, speed.stands);
            wants = fl_speed_wants_sample(&speed);
        } else if (!wants && random >> 28 == 2) {
            fl_speed_take_back(&speed, 0);
            fl_speed_put_in(&speed);
        } else if (!wants && random >> 28 == 3) {
            fl_speed_leave_out(&speed);
            stood++;
        }
        if (wants && !fl_speed_is_early(&speed, now - took)) {
            stood += speed.stands;
            fl_speed_add(&speed, 10.0, (double)took, now);
        }
        assert_int_equal(stood + speed.period - 1 - speed.countdown, i);
    }
    assert_true(speed.regimes != 0);
}

static void test_unusable_samples(void **state)
{
    const double bad[][2] = {
        {0.0, 1.0},   {-1.0, 1.0},       {1.0, 0.0},        {1.0, -1.0},
        {NAN, 1.0},   {1.0, NAN},        {1.0, INFINITY},   {INFINITY, 1.0},
        {-1.0, -1.0}, {DBL_MAX, 1e-300}, {1e-300, DBL_MAX}, {0.0, 0.0},
    };
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 3, 2.0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fl_speed_add(&speed, bad[i][0], bad[i][1], 0);
        assert_estimate(&speed, 2.0);
        assert_int_equal(speed.outliers, 0);
    }
    /* They count as taken: a clock that always says zero is not asked for ever. */
    fl_speed_init(&speed);
    for (int i = 0; i < FL_SPEED_SAMPLES; i++) {
        assert_true(fl_speed_wants_sample(&speed));
        fl_speed_add(&speed, 1.0, 0.0, 0);
    }
    assert_false(fl_speed_wants_sample(&speed));
    assert_true(fl_speed_get(&speed) == 0.0);
}

/* Random noise of 20 % with one sample in ten spoilt, two in a row at most: the estimate stays
 * within the noise. */
static void test_noise(void **state)
{
    fl_random random;
    fl_speed speed;
    int spoilt = 0;

    (void)state;
    fl_random_init(&random, 11, 0);
    fl_speed_init(&speed);
    for (int i = 0; i < 20000; i++) {
        double ns = 100.0 * (0.9 + 0.2 * fl_random_unit(&random));

        spoilt = spoilt < 2 && fl_random_below(&random, 10) == 0 ? spoilt + 1 : 0;
        if (spoilt > 0)
            ns *= 1.0 + 100.0 * fl_random_unit(&random);
        add_each(&speed, 1, ns);
        if (i > 40)
            assert_true(fl_speed_get(&speed) > 90.0 && fl_speed_get(&speed) < 110.0);
    }
}

typedef struct speed_watch {
    fl_speed speed;
    _Atomic int stop;
    int wrong;
} speed_watch;

static int watch_run(void *arg)
{
    speed_watch *watch = arg;

    /* Only the value matters, nothing is read because of it. */
    while (!fl_load_relaxed(&watch->stop)) {
        double seen = fl_speed_get(&watch->speed);

        if (seen != 0.0 && seen != 1.0 && seen != 1000.0)
            watch->wrong++;
    }
    return 0;
}

/* Readers see whole estimates only, while the owner changes regimes. */
/* --- The proven speed --- */

static void assert_proven(const fl_speed *speed, double rate, double from, double to)
{
    fl_proven proven = fl_speed_proven(speed);

    assert_true(fabs(proven.rate - rate) <= 1e-12 * rate);
    assert_true(proven.fixed == 0.0);
    assert_true(proven.from == from && proven.to == to);
}

/* A device that becomes slower is measured by what it once did; too few samples prove nothing. */
static void test_proven_speed_stays(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 5, 2.0);
    assert_true(fl_speed_proven(&speed).rate == 0.0);
    add_each(&speed, 1, 2.0); /* the first was dropped */
    assert_proven(&speed, 2.0, 10.0, 10.0);
    add_each(&speed, 11, 2.0);
    add_each(&speed, 100, 6.0);
    assert_estimate(&speed, 6.0);
    assert_proven(&speed, 2.0, 10.0, 10.0);
    add_each(&speed, 40, 1.0);
    assert_proven(&speed, 1.0, 10.0, 10.0);
}

/* Tiles that were too short to be true: one now and then, or three in a row, which make a regime;
 * and three of the first five, which make the median until more come. */
static void test_bad_samples_prove_nothing(void **state)
{
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    add_each(&speed, 17, 2.0);
    for (int i = 0; i < 50; i++) {
        add_each(&speed, 7, 2.0);
        add_each(&speed, 1, 0.01);
    }
    assert_proven(&speed, 2.0, 10.0, 10.0);
    add_each(&speed, 4, 0.01);
    assert_estimate(&speed, 0.01);
    assert_proven(&speed, 2.0, 10.0, 10.0);
    fl_speed_init(&speed);
    add_each(&speed, 1, 2.0);
    add_each(&speed, 3, 0.01);
    add_each(&speed, 2, 2.0);
    assert_proven(&speed, 0.01, 10.0, 10.0);
    add_each(&speed, 30, 2.0);
    assert_proven(&speed, 2.0, 10.0, 10.0);
}

/* Of a thousand windows of noisy tiles the least median is the luckiest one's, not the device's. */
static void test_luck_proves_little(void **state)
{
    fl_random random;
    fl_speed speed;

    (void)state;
    fl_random_init(&random, 15, 0);
    fl_speed_init(&speed);
    for (int i = 0; i < 16000; i++) {
        double part = (double)fl_random_below(&random, 1000000) / 1e6;

        fl_speed_add(&speed, 10.0, 10.0 * (1.0 + part), 0);
    }
    /* Uniform in 1 to 2: the median is 1.5, and the least one of the windows about 1.1. */
    assert_true(fl_speed_proven(&speed).rate > 1.3);
    assert_true(fl_speed_proven(&speed).rate < 2.0);
}

/* The speed of large tiles says nothing of small ones, part of whose time may be fixed. Once there
 * were both, the line through them is known, and holds between them. */
static void test_proven_of_works_that_were_seen(void **state)
{
    fl_proven proven;
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    for (int i = 0; i < 40; i++)
        fl_speed_add(&speed, 1000.0, 1020.0, 0);
    assert_proven(&speed, 1.02, 1000.0, 1000.0);
    for (int i = 0; i < 100; i++)
        fl_speed_add(&speed, i % 2 == 0 ? 10.0 : 1000.0, i % 2 == 0 ? 30.0 : 1020.0, 0);
    proven = fl_speed_proven(&speed);
    assert_true(proven.from == 10.0 && proven.to == 1000.0);
    assert_true(fabs(proven.fixed + proven.rate * 10.0 - 30.0) < 1.0);
    assert_true(fabs(proven.fixed + proven.rate * 1000.0 - 1020.0) < 10.0);
}

static void test_proven_by_an_earlier_run(void **state)
{
    const fl_prior few = {2.0, 0.0, 10.0, 3}, many = {2.0, 0.0, 10.0, 100};
    fl_speed speed;

    (void)state;
    fl_speed_init(&speed);
    fl_speed_set_prior(&speed, &few);
    assert_true(fl_speed_proven(&speed).rate == 0.0);
    fl_speed_init(&speed);
    fl_speed_set_prior(&speed, &many);
    add_each(&speed, 100, 6.0);
    assert_estimate(&speed, 6.0);
    assert_proven(&speed, 2.0, 10.0, 10.0);
}

static void test_concurrent_readers(void **state)
{
    speed_watch watch = {.wrong = 0};
    fl_thread thread;

    (void)state;
    fl_speed_init(&watch.speed);
    assert_int_equal(fl_thread_start(&thread, watch_run, &watch), FILCH_OK);
    for (int i = 0; i < 20000; i++)
        add_each(&watch.speed, 4, i % 2 == 0 ? 1.0 : 1000.0);
    fl_store_relaxed(&watch.stop, 1);
    fl_thread_join(thread);
    assert_int_equal(watch.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_until_second_sample),
        cmocka_unit_test(test_first_sample_is_dropped),
        cmocka_unit_test(test_median_of_last_sixteen),
        cmocka_unit_test(test_one_poisoned_sample),
        cmocka_unit_test(test_three_outliers_are_a_regime),
        cmocka_unit_test(test_outliers_not_in_a_row),
        cmocka_unit_test(test_equal_samples_follow_small_changes),
        cmocka_unit_test(test_deviations_widen_the_band),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_brief_items_are_timed_less_often),
        cmocka_unit_test(test_samples_stand_for_every_item),
        cmocka_unit_test(test_unusable_samples),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_proven_speed_stays),
        cmocka_unit_test(test_bad_samples_prove_nothing),
        cmocka_unit_test(test_luck_proves_little),
        cmocka_unit_test(test_proven_of_works_that_were_seen),
        cmocka_unit_test(test_proven_by_an_earlier_run),
        cmocka_unit_test(test_concurrent_readers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
