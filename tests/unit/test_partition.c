/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "sched/model/partition.h"

#define MAX_DEVICES 5000
#define SEED 20240607

__extension__ typedef unsigned __int128 u128;

static const fl_partition_policy policies[] = {FL_PARTITION_MAKESPAN, FL_PARTITION_BALANCED};

/* Cuts, checks that the parts are a partition in device order, and returns each device's width. */
static void widths_get(fl_partition_policy policy, uint64_t n, const double *scores, uint32_t count,
                       uint64_t *widths)
{
    fl_memory memory = fl_memory_system();
    fl_device_part *parts = calloc(count + 1, sizeof *parts);
    uint32_t part_count = UINT32_MAX;
    uint64_t at = 0;

    assert_non_null(parts);
    memset(&parts[count], 0x5a, sizeof *parts);
    assert_int_equal(fl_partition(&memory, policy, n, scores, count, parts, &part_count), FILCH_OK);
    assert_true(part_count <= count);
    for (uint32_t i = 0; i < count; i++)
        widths[i] = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        assert_true(parts[i].lo == at);
        assert_true(parts[i].hi > parts[i].lo);
        assert_true(parts[i].device < count);
        assert_true(i == 0 || parts[i].device > parts[i - 1].device);
        widths[parts[i].device] = parts[i].hi - parts[i].lo;
        at = parts[i].hi;
    }
    assert_true(at == (count > 0 ? n : 0));
    for (size_t i = 0; i < sizeof *parts; i++)
        assert_int_equal(((unsigned char *)&parts[count])[i], 0x5a);
    free(parts);
}

static void assert_widths(fl_partition_policy policy, uint64_t n, const double *scores,
                          uint32_t count, const uint64_t *expected)
{
    uint64_t widths[8];

    widths_get(policy, n, scores, count, widths);
    for (uint32_t i = 0; i < count; i++)
        assert_true(widths[i] == expected[i]);
}

#define CHECK(policy, n, scores, ...)                                                \
    assert_widths(policy, n, scores, (uint32_t)(sizeof(scores) / sizeof(scores)[0]), \
                  (const uint64_t[]){__VA_ARGS__})
#define CHECK_BOTH(n, scores, ...)                            \
    do {                                                      \
        CHECK(FL_PARTITION_BALANCED, n, scores, __VA_ARGS__); \
        CHECK(FL_PARTITION_MAKESPAN, n, scores, __VA_ARGS__); \
    } while (0)

static void test_design_examples(void **state)
{
    const double three[] = {1, 1, 1};
    const double five[] = {2, 2, 2, 2, 2};
    const double ten[] = {10, 1};
    const double one[] = {0.25};

    (void)state;
    CHECK_BOTH(100, three, 34, 33, 33);
    CHECK_BOTH(99, three, 33, 33, 33);
    CHECK_BOTH(2, five, 1, 1, 0, 0, 0);
    CHECK(FL_PARTITION_BALANCED, 6, ten, 5, 1);
    CHECK(FL_PARTITION_MAKESPAN, 6, ten, 6, 0);
    CHECK_BOTH(7, one, 7);
    CHECK_BOTH(0, three, 0, 0, 0);
}

static void test_nothing_to_cut(void **state)
{
    fl_memory memory = fl_memory_system();
    uint32_t part_count = 7;
    fl_device_part part;
    double score = 1;

    (void)state;
    for (size_t p = 0; p < 2; p++) {
        part_count = 7;
        assert_int_equal(fl_partition(&memory, policies[p], 5, NULL, 0, NULL, &part_count),
                         FILCH_OK);
        assert_int_equal(part_count, 0);
        part_count = 7;
        assert_int_equal(fl_partition(&memory, policies[p], 0, &score, 1, &part, &part_count),
                         FILCH_OK);
        assert_int_equal(part_count, 0);
    }
}

static void test_bad_arguments(void **state)
{
    fl_memory memory = fl_memory_system();
    uint32_t part_count = 7;
    fl_device_part part = {1, 2, 3};
    double score = 1;

    (void)state;
    assert_int_equal(fl_partition(NULL, FL_PARTITION_BALANCED, 1, &score, 1, &part, &part_count),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_partition(&memory, FL_PARTITION_BALANCED, 1, NULL, 1, &part, &part_count),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_partition(&memory, FL_PARTITION_BALANCED, 1, &score, 1, NULL, &part_count),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_partition(&memory, FL_PARTITION_BALANCED, 1, &score, 1, &part, NULL),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(
        fl_partition(&memory, (fl_partition_policy)2, 1, &score, 1, &part, &part_count),
        FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_partition(&memory, FL_PARTITION_BALANCED, UINT64_C(1) << 63, &score, 1,
                                  &part, &part_count),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(part_count, 7);
    assert_true(part.lo == 1 && part.hi == 2 && part.device == 3);
}

static void test_odd_scores(void **state)
{
    const double zeros[] = {0, 0, 0};
    const double bad[] = {NAN, -1, -INFINITY, -0.0};
    const double infinite[] = {1, INFINITY, NAN};
    const double nan_and_negative[] = {NAN, 1, -5, 3};
    const double huge[] = {DBL_MAX, DBL_MAX, DBL_MAX / 2};
    const double denormal[] = {DBL_TRUE_MIN, 3 * DBL_TRUE_MIN};
    const double far_apart[] = {1e300, 1, 1e-300};
    const double far_middle[] = {DBL_TRUE_MIN, DBL_MAX, DBL_TRUE_MIN, DBL_MAX};

    (void)state;
    CHECK_BOTH(7, zeros, 3, 2, 2);
    CHECK_BOTH(7, bad, 2, 2, 2, 1);
    CHECK_BOTH(7, infinite, 3, 2, 2);
    CHECK_BOTH(8, nan_and_negative, 0, 2, 0, 6);
    /* Only the sum overflows: the total of the scores is finite. */
    CHECK_BOTH(10, huge, 4, 4, 2);
    CHECK_BOTH(12, denormal, 3, 9);
    CHECK_BOTH(INT64_MAX, far_apart, INT64_MAX, 0, 0);
    CHECK_BOTH(5, far_middle, 0, 3, 0, 2);
}

static void test_near_the_limit(void **state)
{
    const double halves[] = {1, 1};
    const double ratio[] = {1, 2, 4};
    const double millionth[] = {1e6, 1};
    const uint64_t limit = INT64_MAX;

    (void)state;
    CHECK_BOTH(limit, halves, limit / 2 + 1, limit / 2);
    /* 2^63 - 1 is a multiple of seven. */
    CHECK_BOTH(limit, ratio, limit / 7, limit / 7 * 2, limit / 7 * 4);
    /* The ideals are ...314.04 and ...491.96; the fast device would end a unit more at ...491.96.
     */
    CHECK(FL_PARTITION_BALANCED, limit - 1, millionth, 9223362813491962314u, 9223362813492u);
    CHECK(FL_PARTITION_MAKESPAN, limit - 1, millionth, 9223362813491962315u, 9223362813491u);
}

/* Reference for integer scores below 2^40: largest remainder by exhaustive selection. */
static void balanced_reference(uint64_t n, const uint64_t *scores, uint32_t count, uint64_t *widths)
{
    static u128 fractions[MAX_DEVICES];
    u128 total = 0;
    uint64_t left = n;

    for (uint32_t i = 0; i < count; i++)
        total += scores[i];
    for (uint32_t i = 0; i < count; i++) {
        widths[i] = (uint64_t)((u128)n * scores[i] / total);
        fractions[i] = (u128)n * scores[i] - widths[i] * total;
        left -= widths[i];
    }
    for (; left > 0; left--) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < count; i++) {
            if (fractions[i] > fractions[best])
                best = i;
        }
        widths[best]++;
        fractions[best] = 0;
    }
}

/* Reference: one by one to the device that would finish it first, from nothing. */
static void makespan_reference(uint64_t n, const uint64_t *scores, uint32_t count, uint64_t *widths)
{
    memset(widths, 0, count * sizeof *widths);
    for (; n > 0; n--) {
        uint32_t best = count;

        for (uint32_t i = 0; i < count; i++) {
            if (scores[i] > 0 && (best == count || (u128)(widths[i] + 1) * scores[best] <
                                                       (u128)(widths[best] + 1) * scores[i]))
                best = i;
        }
        widths[best]++;
    }
}

/* Integer scores, some zero, at least one not; of very different sizes. */
static void scores_draw(fl_random *random, uint32_t count, uint64_t *exact, double *scores)
{
    uint32_t bits = 1 + fl_random_below(random, 40);

    for (uint32_t i = 0; i < count; i++)
        exact[i] = fl_random_next(random) >> (64 - bits);
    exact[fl_random_below(random, count)] |= 1;
    for (uint32_t i = 0; i < count; i++)
        scores[i] = (double)exact[i];
}

static void widths_compare(const uint64_t *found, const uint64_t *expected, uint32_t count,
                           int round)
{
    for (uint32_t i = 0; i < count; i++) {
        if (found[i] != expected[i])
            fail_msg("seed %d round %d device %u: %llu instead of %llu", SEED, round, i,
                     (unsigned long long)found[i], (unsigned long long)expected[i]);
    }
}

static void test_against_reference(void **state)
{
    static uint64_t exact[MAX_DEVICES], expected[MAX_DEVICES], found[MAX_DEVICES];
    static double scores[MAX_DEVICES];
    fl_random random;

    (void)state;
    fl_random_init(&random, SEED, 0);
    for (int round = 0; round < 3000; round++) {
        uint32_t count = 1 + fl_random_below(&random, 12);
        uint64_t n = fl_random_next(&random) >> (1 + fl_random_below(&random, 63));

        scores_draw(&random, count, exact, scores);
        balanced_reference(n, exact, count, expected);
        widths_get(FL_PARTITION_BALANCED, n, scores, count, found);
        widths_compare(found, expected, count, round);

        n = fl_random_below(&random, 300);
        makespan_reference(n, exact, count, expected);
        widths_get(FL_PARTITION_MAKESPAN, n, scores, count, found);
        widths_compare(found, expected, count, round);
    }
}

static void test_thousands_of_devices(void **state)
{
    static uint64_t exact[MAX_DEVICES], expected[MAX_DEVICES], found[MAX_DEVICES];
    static double scores[MAX_DEVICES];
    fl_random random;

    (void)state;
    fl_random_init(&random, SEED, 1);
    scores_draw(&random, MAX_DEVICES, exact, scores);
    balanced_reference(INT64_MAX, exact, MAX_DEVICES, expected);
    widths_get(FL_PARTITION_BALANCED, INT64_MAX, scores, MAX_DEVICES, found);
    widths_compare(found, expected, MAX_DEVICES, 0);
    makespan_reference(7777, exact, MAX_DEVICES, expected);
    widths_get(FL_PARTITION_MAKESPAN, 7777, scores, MAX_DEVICES, found);
    widths_compare(found, expected, MAX_DEVICES, 1);
}

/* Does width a / score a exceed width b / score b? */
static bool later(uint64_t width_a, uint64_t score_a, uint64_t width_b, uint64_t score_b)
{
    return (u128)width_a * score_b > (u128)width_b * score_a;
}

/* The device that ends last; one with work and no score never ends. */
static uint32_t last_of(const uint64_t *widths, const uint64_t *scores, uint32_t count)
{
    uint32_t last = 0;

    for (uint32_t i = 1; i < count; i++) {
        if (later(widths[i], scores[i], widths[last], scores[last]))
            last = i;
    }
    return last;
}

/* Fails if any way to give the rest of n to devices from first on ends before found does. */
static void splits_try(uint64_t rest, uint32_t first, uint32_t count, const uint64_t *scores,
                       uint64_t *widths, const uint64_t *found)
{
    if (first == count - 1) {
        uint32_t a, b;

        widths[first] = rest;
        a = last_of(found, scores, count);
        b = last_of(widths, scores, count);
        assert_false(later(found[a], scores[a], widths[b], scores[b]));
        return;
    }
    for (uint64_t width = 0; width <= rest; width++) {
        widths[first] = width;
        splits_try(rest - width, first + 1, count, scores, widths, found);
    }
}

static void test_makespan_is_optimal(void **state)
{
    fl_random random;

    (void)state;
    fl_random_init(&random, SEED, 2);
    for (int round = 0; round < 400; round++) {
        uint32_t count = 1 + fl_random_below(&random, 4);
        uint64_t n = fl_random_below(&random, 13);
        uint64_t exact[4], widths[4], found[4];
        double scores[4];

        for (uint32_t i = 0; i < count; i++) {
            exact[i] = 1 + fl_random_below(&random, round % 2 ? 12 : 1000);
            scores[i] = (double)exact[i];
        }
        widths_get(FL_PARTITION_MAKESPAN, n, scores, count, found);
        splits_try(n, 0, count, exact, widths, found);
    }
}

/* Whatever the doubles: a partition (widths_get), no work without a score, at least the floor and,
 * if balanced, less than one above the ideal; the same for scores in other units and rounding
 * modes. */
static void test_any_double(void **state)
{
    fl_random random;

    (void)state;
    fl_random_init(&random, SEED, 3);
    for (int round = 0; round < 20000; round++) {
        uint32_t count = 1 + fl_random_below(&random, 7);
        uint64_t n = fl_random_next(&random) >> (1 + fl_random_below(&random, 63));
        fl_partition_policy policy = policies[round & 1];
        uint64_t widths[8], again[8];
        double scores[8], scaled[8];
        long double total = 0;

        for (uint32_t i = 0; i < count; i++) {
            uint64_t bits = fl_random_next(&random);

            memcpy(&scores[i], &bits, sizeof bits);
            if (round % 3 == 0) /* near each other, where leftovers matter */
                scores[i] = 1.0 + fl_random_unit(&random);
            if (scores[i] > 0)
                total += (long double)scores[i];
        }
        widths_get(policy, n, scores, count, widths);
        for (uint32_t i = 0; i < count && total > 0 && !isinf(total); i++) {
            long double ideal = (long double)n * (long double)scores[i] / total;

            if (!(scores[i] > 0)) {
                assert_true(widths[i] == 0);
                continue;
            }
            /* The slack covers the reference's rounding, and nothing while n is below 2^53. */
            assert_true((long double)widths[i] > ideal - 1 - (long double)n * 0x1p-60L);
            if (policy == FL_PARTITION_BALANCED)
                assert_true((long double)widths[i] < ideal + 1 + (long double)n * 0x1p-60L);
        }

        for (uint32_t i = 0; i < count; i++)
            scaled[i] = ldexp(scores[i], round % 3 == 0 ? -900 : 0);
        assert_int_equal(fesetround(FE_UPWARD), 0);
        widths_get(policy, n, scaled, count, again);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        widths_compare(again, widths, count, round);
    }
}

typedef struct failing_memory {
    int countdown;
    int live;
} failing_memory;

static void *failing_alloc(size_t size, size_t align, void *user)
{
    failing_memory *failing = user;

    if (failing->countdown-- == 0)
        return NULL;
    failing->live++;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void failing_free(void *pointer, size_t size, size_t align, void *user)
{
    (void)size;
    (void)align;
    ((failing_memory *)user)->live--;
    free(pointer);
}

static void test_out_of_memory(void **state)
{
    const double scores[] = {3, 1};
    bool succeeded = false;

    (void)state;
    for (int n = 0; !succeeded; n++) {
        failing_memory failing = {n, 0};
        fl_memory memory = {failing_alloc, failing_free, &failing, "caller"};
        fl_device_part parts[2] = {{7, 7, 7}, {7, 7, 7}};
        uint32_t count = 7;
        filch_status status =
            fl_partition(&memory, FL_PARTITION_MAKESPAN, 8, scores, 2, parts, &count);

        assert_int_equal(failing.live, 0);
        succeeded = status == FILCH_OK;
        if (!succeeded) {
            assert_int_equal(status, FILCH_OUT_OF_MEMORY);
            assert_int_equal(count, 7);
            assert_true(parts[0].hi == 7);
        } else {
            assert_true(n > 0);
            assert_int_equal(count, 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_design_examples),      cmocka_unit_test(test_nothing_to_cut),
        cmocka_unit_test(test_bad_arguments),        cmocka_unit_test(test_odd_scores),
        cmocka_unit_test(test_near_the_limit),       cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_thousands_of_devices), cmocka_unit_test(test_makespan_is_optimal),
        cmocka_unit_test(test_any_double),           cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
