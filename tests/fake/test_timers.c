/* SPDX-License-Identifier: Apache-2.0 */
/* Own shares of the times of work items that run at once, and the order in which poll reports items
 * with a time. Twins wait for each other, so that every item's place in time is certain; no test
 * asks how long an item took. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"
#include "device/pool.h"
#include "fakecuda.h"

#define MOST 8
#define IMAGE "FAKECUBIN arch=90 entry=stay(8)"
/* Times come as floats of milliseconds, and are rounded down to ns. */
#define ROUNDING_NS 2000

typedef struct taken {
    uint64_t tag, busy, own;
} taken;

static fl_memory memory;
static fl_settings settings;
static fl_pool pool;
static fl_device *device;
static fl_stay stay;
static void *module;
static fl_function function;
static _Atomic uint32_t has_begun[MOST], may_end[MOST];

/* Runs until told to end. */
static int stay_twin(void **params, const fakecuda_geometry *geometry)
{
    uint64_t item = *(uint64_t *)params[0];
    (void)geometry;
    atomic_store(&has_begun[item], 1);
    while (atomic_load(&may_end[item]) == 0)
        fl_relax();
    return 0;
}

static void must(filch_status status, const filch_error *error)
{
    if (status != FILCH_OK)
        fail_msg("%s", error->text);
}

static void open_device(uint32_t lanes)
{
    filch_error error = FILCH_ERROR_INIT;
    const fl_discovery how = {.memory = &memory, .error = &error, .settings = &settings};
    memory = fl_memory_default();
    fl_settings_defaults(&settings);
    settings.lanes = lanes;
    fakecuda_reset();
    assert_true(fakecuda_configure(NULL));
    fakecuda_register("stay", stay_twin, 0, NULL);
    must(fl_pool_open(&pool, "cuda:0", &how), &error);
    device = &pool.devices[0];
    assert_int_equal(device->lanes, lanes);
    must(device->backend->device->enter(device, &stay, &error), &error);
    const fl_module_ops *modules = device->backend->module;
    must(modules->load(device, IMAGE, sizeof IMAGE, "test", &module, &error), &error);
    must(modules->function_get(device, module, "stay", "test", &function, &error), &error);
    for (uint32_t i = 0; i < MOST; i++) {
        atomic_store(&has_begun[i], 0);
        atomic_store(&may_end[i], 0);
    }
}

static void close_device(void)
{
    device->backend->module->unload(device, module);
    device->backend->device->leave(&stay);
    fl_pool_close(&pool, &memory);
    if (fakecuda_violations() != 0)
        fail_msg("%s", fakecuda_last_violation());
}

static void put(uint64_t item, uint32_t lane, bool is_timed)
{
    void *params[] = {&item};
    const uint32_t param_bytes[] = {8};
    filch_error error = FILCH_ERROR_INIT;
    fl_launch launch = {.tag = item,
                        .lane = lane,
                        .function = &function,
                        .params = params,
                        .param_bytes = param_bytes,
                        .param_count = 1,
                        .shape = {{1, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0},
                        .timed = is_timed};
    must(device->backend->queue->launch(device, &launch, 1, &error), &error);
    must(device->backend->lane->mark(device, &error), &error);
}

static void await_begin(uint64_t item)
{
    while (atomic_load(&has_begun[item]) == 0)
        fl_relax();
}

static void let_end(uint64_t item)
{
    atomic_store(&may_end[item], 1);
}

/* Waits until the driver is past every item; poll has not looked yet. */
static void await_all(void)
{
    filch_error error = FILCH_ERROR_INIT;
    must(device->backend->lane->drain(device, &error), &error);
}

static taken take(void)
{
    for (;;) {
        filch_error error = FILCH_ERROR_INIT;
        taken one = {0};
        uint64_t next;
        filch_status status =
            device->backend->queue->poll(device, 1, &one.tag, &one.busy, &next, &error);
        if (status == FILCH_NOT_READY) {
            fl_relax();
            continue;
        }
        must(status, &error);
        one.own = one.busy != UINT64_MAX ? device->backend->queue->own(device) : 0;
        return one;
    }
}

static void expect_about(uint64_t one, uint64_t other)
{
    uint64_t apart = one > other ? one - other : other - one;
    if (apart > ROUNDING_NS)
        fail_msg("%llu ns and %llu ns", (unsigned long long)one, (unsigned long long)other);
}

static void an_item_alone_has_all_of_its_time(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        open_device(lanes);
        for (uint32_t i = 0; i < MOST; i++) {
            put(i, i % lanes, true);
            let_end(i);
            taken one = take();
            assert_int_equal(one.tag, i);
            assert_true(one.busy > 0);
            expect_about(one.own, one.busy);
        }
        close_device();
    }
}

/* Of two items, each lacks half of the time that both ran. */
static void items_at_once_share_their_common_time(void **state)
{
    (void)state;
    open_device(2);
    put(0, 0, true);
    await_begin(0);
    put(1, 1, true);
    await_begin(1);
    let_end(0);
    taken first = take();
    assert_int_equal(first.tag, 0);
    assert_true(first.own < first.busy);
    let_end(1);
    taken second = take();
    assert_int_equal(second.tag, 1);
    assert_true(second.own < second.busy);
    expect_about(first.busy - first.own, second.busy - second.own);
    close_device();
}

/* Items behind each other on each of three lanes: their shares add up to the time from the first
 * start to the last stop, which one long item on a fourth lane has seen. Poll looks at the lanes
 * one by one, and may see a later end first; the share of the earlier item is then too small. Poll
 * is therefore asked only when no item can end. */
static void shares_add_up_to_the_busy_time(void **state)
{
    const uint32_t last_of_lanes = MOST - 3;
    uint64_t sum = 0;
    (void)state;
    open_device(4);
    put(0, 3, true);
    await_begin(0);
    for (uint32_t i = 1; i < MOST; i++)
        put(i, i % 3, true);
    for (uint32_t i = 1; i < last_of_lanes; i++)
        let_end(i);
    for (uint32_t i = last_of_lanes; i < MOST; i++)
        await_begin(i);
    for (uint64_t i = 1; i < MOST; i++) {
        if (i >= last_of_lanes)
            let_end(i);
        taken one = take();
        assert_true(one.tag != 0);
        sum += one.own;
    }
    let_end(0);
    taken last = take();
    assert_int_equal(last.tag, 0);
    sum += last.own;
    expect_about(sum, last.busy);
    close_device();
}

static void an_item_without_a_time_hides_the_shares_beside_it(void **state)
{
    (void)state;
    open_device(2);
    put(0, 0, false);
    await_begin(0);
    put(1, 1, true);
    await_begin(1);
    let_end(1);
    taken timed = take();
    assert_int_equal(timed.tag, 1);
    assert_true(timed.busy > 0 && timed.busy != UINT64_MAX);
    assert_int_equal(timed.own, 0);
    let_end(0);
    taken untimed = take();
    assert_int_equal(untimed.tag, 0);
    assert_true(untimed.busy == UINT64_MAX);
    /* The next item knows its own. */
    put(2, 1, true);
    let_end(2);
    timed = take();
    expect_about(timed.own, timed.busy);
    close_device();
}

static void items_come_in_the_order_of_their_ends(void **state)
{
    (void)state;
    open_device(2);
    put(0, 0, true);
    put(1, 1, true);
    await_begin(0);
    await_begin(1);
    let_end(1);
    /* The lane's next item begins after the first one's end. */
    put(2, 1, true);
    await_begin(2);
    let_end(0);
    let_end(2);
    await_all();
    assert_int_equal(take().tag, 1);
    taken second = take(), third = take();
    assert_true(second.tag + third.tag == 2 && second.tag != third.tag);
    close_device();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_alone_has_all_of_its_time),
        cmocka_unit_test(items_at_once_share_their_common_time),
        cmocka_unit_test(shares_add_up_to_the_busy_time),
        cmocka_unit_test(an_item_without_a_time_hides_the_shares_beside_it),
        cmocka_unit_test(items_come_in_the_order_of_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
