/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is withdrawn during a run of the bench: what is asked for, that it happens and is
 * undone, and the time that it allows. */
#define _GNU_SOURCE
#include "measure/withdraw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

static void what_is_asked_for(void **state)
{
    static const char *const wrong[] = {"",      "1",     "1@",      "@1",      "1@x",    "1@-1",
                                        "-1@0",  "1@0s",  "1@2-2",   "1@2-1",   "1@2-",   "1@2-x",
                                        "1@inf", "1@nan", "1@0-inf", "1@1-2-3", "1:4@0.5"};
    bench_withdraw how = {0};
    (void)state;
    assert_int_equal(bench_withdraw_parse("2@0.25", &how, NULL), FILCH_OK);
    assert_true(how.is_asked && how.device == 2 && how.from_s == 0.25 && isinf(how.to_s));
    assert_int_equal(bench_withdraw_parse("3@0.5-1e0", &how, NULL), FILCH_OK);
    assert_true(how.device == 3 && how.from_s == 0.5 && how.to_s == 1);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        filch_error error = FILCH_ERROR_INIT;
        if (bench_withdraw_parse(wrong[k], &how, &error) != FILCH_PARSE)
            fail_msg("%s", wrong[k]);
        assert_string_equal(error.label, "--withdraw");
        assert_int_equal(how.device, 3);
    }
}

static filch_presence presence_of(filch_runtime *runtime, uint32_t device)
{
    filch_presence presence = FILCH_PRESENCE_LOST;
    assert_int_equal(filch_device_presence(runtime, device, &presence), FILCH_OK);
    return presence;
}

static void it_is_withdrawn_and_back(void **state)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    bench_withdrawal *made = NULL;
    filch_error error = FILCH_ERROR_INIT;
    (void)state;
    config.devices = "host:2";
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_OK);
    bench_withdraw how = {.is_asked = true, .device = 1, .from_s = 0, .to_s = INFINITY};
    assert_int_equal(bench_withdraw_begin(how, runtime, &made, NULL), FILCH_OK);
    while (presence_of(runtime, 1) == FILCH_PRESENCE_THERE) {
    }
    assert_int_equal(presence_of(runtime, 0), FILCH_PRESENCE_THERE);
    assert_int_equal(bench_withdraw_end(made, NULL), FILCH_OK);
    assert_int_equal(presence_of(runtime, 1), FILCH_PRESENCE_THERE);
    /* The run ends before it is time. */
    how.from_s = 3600;
    assert_int_equal(bench_withdraw_begin(how, runtime, &made, NULL), FILCH_OK);
    assert_int_equal(bench_withdraw_end(made, NULL), FILCH_OK);
    /* Nothing is asked for. */
    assert_int_equal(bench_withdraw_begin((bench_withdraw){0}, runtime, &made, NULL), FILCH_OK);
    assert_null(made);
    assert_int_equal(bench_withdraw_end(made, NULL), FILCH_OK);
    /* What went wrong is told. */
    how.from_s = 0;
    assert_int_equal(filch_device_withdraw(runtime, 1), FILCH_OK);
    assert_int_equal(bench_withdraw_begin(how, runtime, &made, NULL), FILCH_OK);
    const struct timespec nap = {0, 200000000};
    (void)nanosleep(&nap, NULL);
    assert_int_equal(bench_withdraw_end(made, &error), FILCH_WRONG_STATE);
    assert_string_equal(error.label, "--withdraw");
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
}

static void the_time_that_it_allows(void **state)
{
    const bench_withdraw stays = {.is_asked = true, .from_s = 2, .to_s = INFINITY};
    const bench_withdraw back = {.is_asked = true, .from_s = 2, .to_s = 4};
    (void)state;
    assert_true(bench_withdraw_ideal_s((bench_withdraw){0}, 12, 4, 3) == 3);
    assert_true(bench_withdraw_ideal_s(stays, 8, 4, 3) == 2);
    assert_true(bench_withdraw_ideal_s(stays, 8 + 6, 4, 3) == 2 + 6);
    assert_true(bench_withdraw_ideal_s(back, 8 + 1, 4, 3) == 3);
    assert_true(bench_withdraw_ideal_s(back, 8 + 2 + 8, 4, 3) == 4 + 2);
    assert_true(bench_withdraw_ideal_s(back, 8 + 8, 4, 4) == 4 + 2); /* it is the only one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for),
        cmocka_unit_test(it_is_withdrawn_and_back),
        cmocka_unit_test(the_time_that_it_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
