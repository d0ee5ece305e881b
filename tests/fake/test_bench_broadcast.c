/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench micro broadcast` on fake GPUs: what it moves, and that it is said where there are
 * too few. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "fakecuda.h"
#include "micro/micro.h"

#define SMALL ((size_t)64 << 10)
#define ROUNDS (MICRO_ROUNDS + 1)

static void nothing_is_left(void)
{
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static uint64_t received(int device, int devices)
{
    uint64_t bytes = 0;
    for (int from = -1; from < devices; from++)
        bytes += fakecuda_bytes(from, device);
    return bytes;
}

static void every_way_is_measured(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"fill\": false, \"devices\": [{\"count\": 4}]}"));
    assert_int_equal(micro_broadcast_upto(NULL, &list, SMALL), 0);
    assert_int_equal(list.count, 6);
    for (size_t k = 0; k < list.count; k++)
        assert_true(list.figures[k].value > 0);
    assert_string_equal(list.figures[0].name, "64 KiB to 3 GPUs, driver's copies from one");
    assert_string_equal(list.figures[5].name, "64 KiB to 3 GPUs, filch over the driver's");
    for (int d = 1; d < 4; d++) /* by the driver and in four ways, each round once */
        assert_int_equal(received(d, 4), 5 * ROUNDS * SMALL);
    assert_int_equal(received(0, 4), 0);
    nothing_is_left();
}

static void it_is_measured_through_the_host(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, "
                                   "\"to\": 1, \"peer\": false}]}"));
    assert_int_equal(micro_broadcast_upto(NULL, &list, SMALL), 0);
    assert_int_equal(fakecuda_bytes(-1, 1), 4 * ROUNDS * SMALL);
    nothing_is_left();
}

static void what_cannot_be_measured_is_said(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": []}"));
    assert_int_equal(micro_broadcast_upto(NULL, &list, SMALL), MICRO_ABSENT);
    assert_true(fakecuda_configure("{\"devices\": [{}]}"));
    assert_int_equal(micro_broadcast_upto(NULL, &list, SMALL), MICRO_ABSENT);
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 9}]}"));
    assert_int_equal(micro_broadcast_upto(NULL, &list, SMALL), MICRO_ABSENT);
    assert_true(fakecuda_configure("{\"devices\": [{}, {\"memory\": 4096}]}"));
    assert_int_equal(micro_broadcast_upto(NULL, &list, SMALL), 1);
    assert_int_equal(list.count, 0);
    nothing_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_is_measured),
        cmocka_unit_test(it_is_measured_through_the_host),
        cmocka_unit_test(what_cannot_be_measured_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
