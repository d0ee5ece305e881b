/* SPDX-License-Identifier: Apache-2.0 */
/* What data in another core's caches cost, by the caches that two cores share. */
#include "sched/model/transfer.h"

#include "fixture.h"

#define KIB 1024.0

static fl_device core(uint32_t l2, uint32_t l3, uint32_t node)
{
    return (fl_device){.node = node, .caches = {{l2, 2048 * 1024}, {l3, 32768 * 1024}}};
}

static void a_nearer_cache_costs_less(void **state)
{
    (void)state;
    const fl_device self = core(1, 1, 0), twin = core(1, 1, 0), near = core(2, 1, 0);
    const fl_device apart = core(3, 2, 0), far = core(4, 3, 1);
    double bytes = 256 * KIB;
    assert_true(fl_transfer_ns(&self, &twin, bytes) > 0);
    assert_true(fl_transfer_ns(&self, &twin, bytes) < fl_transfer_ns(&self, &near, bytes));
    assert_true(fl_transfer_ns(&self, &near, bytes) < fl_transfer_ns(&self, &apart, bytes));
    assert_true(fl_transfer_ns(&self, &apart, bytes) < fl_transfer_ns(&self, &far, bytes));
    assert_true(fl_transfer_ns(&self, &far, 0) == 0);
}

static void no_more_counts_than_the_caches_hold(void **state)
{
    (void)state;
    const fl_device self = core(1, 1, 0), near = core(2, 1, 0), apart = core(3, 2, 0);
    /* Cores with a common L3: what the L2 holds. */
    assert_true(fl_transfer_ns(&self, &near, 2048 * KIB) ==
                fl_transfer_ns(&self, &near, 65536 * KIB));
    assert_true(fl_transfer_ns(&self, &near, 1024 * KIB) <
                fl_transfer_ns(&self, &near, 2048 * KIB));
    /* Without one: what the L3 holds. */
    assert_true(fl_transfer_ns(&self, &apart, 4096 * KIB) <
                fl_transfer_ns(&self, &apart, 65536 * KIB));
    assert_true(fl_transfer_ns(&self, &apart, 32768 * KIB) ==
                fl_transfer_ns(&self, &apart, 65536 * KIB));
}

static void unknown_caches_are_not_shared(void **state)
{
    (void)state;
    const fl_device a = {.node = 0}, b = {.node = 0}, known = core(1, 1, 0), other = core(2, 2, 0);
    assert_true(fl_transfer_ns(&a, &b, 64 * KIB) == fl_transfer_ns(&known, &other, 64 * KIB));
    assert_true(fl_transfer_ns(&a, &b, 65536 * KIB) < 65536 * KIB); /* bounded all the same */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nearer_cache_costs_less),
        cmocka_unit_test(no_more_counts_than_the_caches_hold),
        cmocka_unit_test(unknown_caches_are_not_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
