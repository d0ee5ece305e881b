/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/clock.h"

static void virtual_clock_moves_only_when_told_and_never_back(void **state)
{
    fl_clock clock;

    (void)state;
    fl_clock_init(&clock, true);
    assert_int_equal(fl_clock_now(&clock), 0);
    fl_clock_advance(&clock, 500);
    assert_int_equal(fl_clock_now(&clock), 500);
    fl_clock_advance(&clock, 499);
    assert_int_equal(fl_clock_now(&clock), 500);
    fl_clock_advance(&clock, FL_TIME_NEVER - 1);
    assert_true(fl_clock_now(&clock) == FL_TIME_NEVER - 1);
}

static void real_clock_follows_the_machine_and_ignores_advances(void **state)
{
    fl_clock clock;
    uint64_t before = fl_time_now();
    uint64_t read;

    (void)state;
    fl_clock_init(&clock, false);
    fl_clock_advance(&clock, FL_TIME_NEVER - 1);
    read = fl_clock_now(&clock);
    assert_true(before > 0);
    assert_true(read >= before);
    assert_true(read <= fl_time_now());
}

static void machine_time_never_goes_back_and_goes_on(void **state)
{
    uint64_t first = fl_time_now();
    uint64_t last = first;

    (void)state;
    while (last == first)
        last = fl_time_now();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = fl_time_now();

        assert_true(now >= last);
        last = now;
    }
}

static void seconds_convert_exactly_where_they_can(void **state)
{
    static const struct {
        double seconds;
        uint64_t ns;
    } cases[] = {
        {0.0, 0},
        {1.0, FL_NS_PER_S},
        {0.5, FL_NS_PER_S / 2},
        {1e-9, 1},
        {3e-9, 3},
        {1.5e-8, 15},
        {4e-10, 0},
        {0.1, 100000000},
        {0.3, 300000000},
        {86400.0, 86400 * FL_NS_PER_S},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(fl_time_from_seconds(cases[i].seconds), cases[i].ns);
}

static void seconds_saturate(void **state)
{
    (void)state;
    assert_int_equal(fl_time_from_seconds(-1.0), 0);
    assert_int_equal(fl_time_from_seconds(-0.0), 0);
    assert_int_equal(fl_time_from_seconds(-(double)INFINITY), 0);
    assert_int_equal(fl_time_from_seconds((double)NAN), 0);
    assert_true(fl_time_from_seconds((double)INFINITY) == FL_TIME_NEVER);
    assert_true(fl_time_from_seconds(1e300) == FL_TIME_NEVER);
    assert_true(fl_time_from_seconds(18446744073.709551616) == FL_TIME_NEVER);
    /* Beyond INT64_MAX and below 2^64 ns is still a time. */
    assert_true(fl_time_from_seconds(1e10) == 10000000000000000000ull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(virtual_clock_moves_only_when_told_and_never_back),
        cmocka_unit_test(real_clock_follows_the_machine_and_ignores_advances),
        cmocka_unit_test(machine_time_never_goes_back_and_goes_on),
        cmocka_unit_test(seconds_convert_exactly_where_they_can),
        cmocka_unit_test(seconds_saturate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
