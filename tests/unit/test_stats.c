/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(const double *values, size_t count, double median, double mad, double min,
                   double max)
{
    bench_stats stats;
    assert_true(bench_stats_of(values, count, &stats));
    assert_int_equal(stats.count, count);
    assert_float_equal(stats.median, median, 1e-12);
    assert_float_equal(stats.mad, mad, 1e-12);
    assert_float_equal(stats.min, min, 0);
    assert_float_equal(stats.max, max, 0);
}

static void test_figures(void **state)
{
    (void)state;
    expect((const double[]){3}, 1, 3, 0, 3, 3);
    expect((const double[]){4, 1}, 2, 2.5, 1.5, 1, 4);
    expect((const double[]){9, 1, 2, 4, 3}, 5, 3, 1, 1, 9);
    expect((const double[]){-1, 1, 2, 8}, 4, 1.5, 1.5, -1, 8);
    /* One wild repeat moves neither figure. */
    expect((const double[]){10, 11, 12, 13, 14, 15, 1e9}, 7, 13, 2, 10, 1e9);
}

static void test_order_is_kept(void **state)
{
    (void)state;
    double values[] = {3, 1, 2};
    bench_stats stats;
    assert_true(bench_stats_of(values, 3, &stats));
    assert_float_equal(values[0], 3, 0);
    assert_float_equal(values[1], 1, 0);
    assert_float_equal(values[2], 2, 0);
}

static void test_refused(void **state)
{
    (void)state;
    bench_stats stats = {.median = 7};
    assert_false(bench_stats_of(NULL, 0, &stats));
    assert_false(bench_stats_of((const double[]){1, NAN}, 2, &stats));
    assert_false(bench_stats_of((const double[]){INFINITY}, 1, &stats));
    assert_float_equal(stats.median, 7, 0);
}

/* Of normal samples the noise is their standard deviation: quantiles of the unit normal, sorted. */
static void test_noise_is_sigma(void **state)
{
    (void)state;
    const double quantiles[] = {-1.5341, -0.8871, -0.4888, -0.1573, 0.1573, 0.4888, 0.8871, 1.5341};
    bench_stats stats;
    assert_true(bench_stats_of(quantiles, 8, &stats));
    assert_float_equal(bench_stats_noise(&stats), 1.0, 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_order_is_kept),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_noise_is_sigma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
