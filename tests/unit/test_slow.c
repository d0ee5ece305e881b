/* SPDX-License-Identifier: Apache-2.0 */
/* A device that becomes slower: what is asked for, when it counts, and the time that it allows. */
#include "measure/slow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void what_is_asked_for(void **state)
{
    static const char *const wrong[] = {"",       "1",      "1:4",    "1:4@",   "1:4@x",  "1:1@0",
                                        "1:65@0", ":4@0",   "-1:4@0", "1:-4@0", "1:4@-1", "1:4@inf",
                                        "1:4@0s", "1:@0.5", "a:4@0",  "1 4@0",  "1:4@nan"};
    bench_slow slow = {0};
    (void)state;
    assert_int_equal(bench_slow_parse("2:4@0.25", &slow, NULL), FILCH_OK);
    assert_int_equal(slow.device, 2);
    assert_int_equal(slow.factor, 4);
    assert_true(slow.after_s == 0.25);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        filch_error error = FILCH_ERROR_INIT;
        assert_int_equal(bench_slow_parse(wrong[k], &slow, &error), FILCH_PARSE);
        assert_string_equal(error.label, "--slow");
        assert_int_equal(slow.device, 2);
    }
}

static void one_device_becomes_slower(void **state)
{
    (void)state;
    assert_int_equal(bench_slow_times(0), 1);
    bench_slow_begin((bench_slow){.device = 1, .factor = 4, .after_s = 0});
    assert_int_equal(bench_slow_times(0), 1);
    assert_int_equal(bench_slow_times(1), 4);
    bench_slow_begin((bench_slow){.device = 1, .factor = 4, .after_s = 3600});
    assert_int_equal(bench_slow_times(1), 1);
    bench_slow_begin((bench_slow){0});
    assert_int_equal(bench_slow_times(0), 1);
}

/* Speeds 3 and 1; the fast one falls to 1. */
static void what_time_that_allows(void **state)
{
    const bench_slow slow = {.device = 0, .factor = 3, .after_s = 2};
    (void)state;
    assert_true(bench_slow_ideal_s((bench_slow){0}, 12, 4, 3) == 3);
    assert_true(bench_slow_ideal_s(slow, 8, 4, 3) == 2);
    assert_true(bench_slow_ideal_s(slow, 4, 4, 3) == 1);
    assert_true(bench_slow_ideal_s(slow, 8 + 6, 4, 3) == 2 + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for),
        cmocka_unit_test(one_device_becomes_slower),
        cmocka_unit_test(what_time_that_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
