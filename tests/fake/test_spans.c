/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of one device while a trace records, and what recording costs: on the backend alone. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/lane.h"
#include "backend/cuda/queue/span.h"
#include "base/clock.h"
#include "device/pool.h"
#include "fakecuda.h"

#define BYTES 4096
#define ONE_DEVICE "{\"devices\": [{\"count\": 1}]}"

static fl_memory memory;
static fl_settings settings;
static fl_pool pool;
static fl_device *device;
static fl_stay stay;
static fl_trace_ring *in, *out;
static void *block;
static char host[BYTES];
static size_t idle_events;
static uint64_t base_ns; /* by which the bases that the times go by may be wrong, at most */

static void must(filch_status status, const filch_error *error)
{
    if (status != FILCH_OK)
        fail_msg("%s", error->text);
}

static void open_device(const char *fake)
{
    filch_error error = FILCH_ERROR_INIT;
    const fl_discovery how = {.memory = &memory, .error = &error, .settings = &settings};
    memory = fl_memory_default();
    fl_settings_defaults(&settings);
    fakecuda_reset();
    assert_true(fakecuda_configure(fake));
    must(fl_pool_open(&pool, "cuda:0", &how), &error);
    device = &pool.devices[0];
    must(device->backend->device->enter(device, &stay, &error), &error);
    must(device->backend->memory->take(device, BYTES, &block, &error), &error);
    in = fl_trace_ring_new(&memory, 1024);
    out = fl_trace_ring_new(&memory, 1024);
    assert_true(in != NULL && out != NULL);
    idle_events = fakecuda_live("event");
}

static void close_device(void)
{
    device->backend->memory->give(device, block);
    device->backend->device->leave(&stay);
    fl_pool_close(&pool, &memory);
    fl_trace_ring_free(&memory, in);
    fl_trace_ring_free(&memory, out);
    assert_int_equal(fakecuda_live("event"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    if (fakecuda_violations() != 0)
        fail_msg("%s", fakecuda_last_violation());
}

static void start(void)
{
    fl_trace_ring *const rings[FL_COPY_LANES] = {in, out};
    uint64_t before = fl_time_now();
    assert_int_equal(device->backend->trace->start(device, &memory, rings), FILCH_OK);
    base_ns = 1000 + (fl_time_now() - before); /* as it was read in between */
}

/* Starts a copy of the block from the host's memory, or to it. */
static fl_marker put(bool is_in)
{
    filch_error error = FILCH_ERROR_INIT;
    fl_copy copy = {.to = is_in ? block : host,
                    .from = is_in ? host : block,
                    .to_device = is_in ? device : NULL,
                    .from_device = is_in ? NULL : device,
                    .to_pitch = BYTES,
                    .from_pitch = BYTES,
                    .width = BYTES,
                    .height = 1};
    must(device->backend->copy->start(device, &copy, &error), &error);
    return copy.marker;
}

static void await(fl_marker marker)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status;
    while ((status = device->backend->lane->reached(device, marker, &error)) == FILCH_NOT_READY)
        fl_relax();
    must(status, &error);
}

/* What is known to be over is in the rings. */
static void collect(void)
{
    device->backend->trace->hold(device, true);
    device->backend->trace->hold(device, false);
}

static fl_cuda_record *record(void)
{
    return fl_cuda_of(device)->lanes->record;
}

static void renew(void)
{
    uint64_t before = fl_time_now();
    fl_store_relaxed(&record()->tried, 0);
    fl_cuda_record_renew(device, record());
    base_ns += fl_time_now() - before;
}

/* --- Tests --- */

static void copies_are_told_with_their_times(void **state)
{
    (void)state;
    open_device("{\"devices\": [{\"count\": 1}], \"copy_ns\": 2000000}");
    start();
    uint64_t before = fl_time_now();
    fl_marker first = put(true), second = put(true);
    await(first);
    await(second);
    await(put(false)); /* of the same bytes, on another lane */
    uint64_t after = fl_time_now();
    collect();
    assert_int_equal(in->next, 2);
    assert_int_equal(out->next, 1);
    const fl_trace_event *events[] = {&in->slots[0].event, &in->slots[1].event,
                                      &out->slots[0].event};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(events[i]->kind, i < 2 ? FL_TRACE_IN : FL_TRACE_OUT);
        assert_int_equal(events[i]->first, BYTES);
        assert_int_equal(events[i]->other, FL_TRACE_HOST);
        assert_true(events[i]->end - events[i]->start >= 2000000 - 1000);
    }
    assert_true(events[1]->start + 1000 >= events[0]->end);
    /* By the host's clock: as near as the base is. */
    assert_true(events[0]->start + base_ns > before && events[1]->end < after + base_ns);
    assert_int_equal(in->missed + out->missed, 0);
    close_device();
}

/* A mark each, and nothing more than that. */
static void nothing_is_paid_while_none_records(void **state)
{
    (void)state;
    open_device(ONE_DEVICE);
    for (int round = 0; round < 3; round++) {
        uint64_t recorded = fakecuda_count("cuEventRecord");
        uint64_t asked = fakecuda_count("cuEventElapsedTime"),
                 made = fakecuda_count("cuEventCreate");
        for (int i = 0; i < 10; i++)
            await(put(i % 2 == 0));
        assert_int_equal(fakecuda_count("cuEventRecord") - recorded, 10);
        assert_int_equal(fakecuda_count("cuEventElapsedTime") - asked, 0);
        assert_int_equal(fakecuda_count("cuEventCreate") - made, 0);
        if (round == 0)
            assert_int_equal(fakecuda_live("event"), idle_events);
        collect();
        assert_int_equal(in->next + out->next, (uint64_t)round * 10);
        start();
        recorded = fakecuda_count("cuEventRecord");
        for (int i = 0; i < 10; i++)
            await(put(i % 2 == 0));
        assert_int_equal(fakecuda_count("cuEventRecord") - recorded, 30);
        collect();
        device->backend->trace->stop(device);
    }
    close_device();
}

/* As many are under way as a lane lets be; and with fewer events than copies, what has none is
 * counted. */
static void what_has_no_events_is_counted(void **state)
{
    enum { PAIRS = 3, COPIES = 8 };
    (void)state;
    open_device(ONE_DEVICE);
    /* Two bases, then pairs: the one that fails is the second of a pair. */
    fakecuda_fail("cuEventCreate", 2 + 2 * PAIRS + 2, 1, 2, 0, false);
    start();
    assert_int_equal(record()->spans[0].made, PAIRS);
    assert_int_equal(record()->spans[FL_LANE_OUT - FL_LANE_IN].made, FL_CUDA_SPANS);
    fakecuda_hold();
    fl_marker last = 0;
    for (int i = 0; i < COPIES; i++)
        last = put(true);
    fakecuda_release();
    await(last);
    collect();
    assert_int_equal(in->next, PAIRS);
    assert_int_equal(in->missed, COPIES - PAIRS);
    await(put(true)); /* they are used again */
    collect();
    assert_int_equal(in->next, PAIRS + 1);
    close_device();
}

static void as_many_as_can_be_under_way_are_recorded(void **state)
{
    (void)state;
    open_device(ONE_DEVICE);
    start();
    fakecuda_hold();
    fl_marker last = 0;
    for (int i = 0; i < FL_CUDA_EVENTS; i++)
        last = put(true);
    fakecuda_release();
    for (int i = 0; i < 3 * FL_CUDA_EVENTS; i++)
        last = put(true);
    await(last);
    collect();
    assert_int_equal(in->next, 4 * FL_CUDA_EVENTS);
    assert_int_equal(in->missed, 0);
    close_device();
}

static void a_driver_that_refuses_stays_usable(void **state)
{
    static const struct {
        const char *call;
        uint64_t nth;
    } refusals[] = {
        {"cuStreamCreate", 1}, {"cuEventCreate", 1}, {"cuEventCreate", 2}, {"cuEventRecord", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        open_device(ONE_DEVICE);
        fakecuda_fail(refusals[i].call, refusals[i].nth, 1, 2, 0, false);
        start();
        await(put(true));
        await(put(false));
        collect();
        assert_int_equal(in->next + out->next, 0);
        assert_int_equal(in->missed + out->missed, 2);
        close_device();
    }
}

static _Atomic int is_gate_open;

static int pass_gate(void *data)
{
    (void)data;
    while (atomic_load(&is_gate_open) == 0)
        fl_relax();
    return 0;
}

/* As put(true), but the copy is under way until the gate is opened. */
static fl_marker put_behind_gate(void)
{
    void *stream = fl_cuda_of(device)->lanes->lane[FL_LANE_IN].stream;
    atomic_store(&is_gate_open, 0);
    assert_int_equal(fakecuda_enqueue(stream, pass_gate, NULL), 0);
    return put(true);
}

static void open_gate_and_await(fl_marker marker)
{
    atomic_store(&is_gate_open, 1);
    await(marker);
}

/* What is under way keeps the base that it began with, for as long as that is kept. */
static void bases_are_renewed(void **state)
{
    (void)state;
    open_device("{\"devices\": [{\"count\": 1}], \"copy_ns\": 2000000}");
    start();
    assert_int_equal(fl_load_relaxed(&record()->epoch), 1);
    fl_marker old = put_behind_gate();
    renew();
    assert_int_equal(fl_load_relaxed(&record()->epoch), 2);
    open_gate_and_await(old);
    await(put(true));
    collect();
    assert_int_equal(in->next, 2);
    assert_true(in->slots[1].event.start + base_ns >= in->slots[0].event.end);
    old = put_behind_gate();
    renew();
    renew();
    open_gate_and_await(old);
    await(put(true));
    collect();
    assert_int_equal(in->missed, 1);
    assert_int_equal(in->next, 3);
    assert_true(in->slots[2].event.start + base_ns >= in->slots[1].event.end + 2000000);
    /* One that cannot be made leaves the last. */
    fakecuda_fail("cuEventRecord", 1, 1, 2, 0, false);
    renew();
    await(put(true));
    collect();
    assert_int_equal(in->next, 4);
    assert_int_equal(in->missed, 1);
    close_device();
}

/* While somebody reads the rings nothing is added, and nothing is forgotten. */
static void rings_may_be_read_while_copies_end(void **state)
{
    (void)state;
    open_device(ONE_DEVICE);
    start();
    await(put(true));
    device->backend->trace->hold(device, true);
    assert_int_equal(in->next, 1);
    for (int i = 0; i < 5; i++)
        await(put(true));
    assert_int_equal(in->next, 1);
    device->backend->trace->hold(device, false);
    collect();
    assert_int_equal(in->next, 6);
    close_device();
}

static void a_copy_that_is_refused_is_none(void **state)
{
    (void)state;
    open_device(ONE_DEVICE);
    start();
    filch_error error = FILCH_ERROR_INIT;
    fl_copy copy = {.to = block,
                    .from = host,
                    .to_device = device,
                    .to_pitch = BYTES,
                    .from_pitch = BYTES,
                    .width = BYTES,
                    .height = 1};
    fakecuda_fail("cuMemcpyHtoDAsync", 1, 1, 1, 0, false);
    assert_int_not_equal(device->backend->copy->start(device, &copy, &error), FILCH_OK);
    await(put(true));
    collect();
    assert_int_equal(in->next, 1);
    assert_int_equal(in->missed, 0);
    close_device();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_told_with_their_times),
        cmocka_unit_test(nothing_is_paid_while_none_records),
        cmocka_unit_test(what_has_no_events_is_counted),
        cmocka_unit_test(as_many_as_can_be_under_way_are_recorded),
        cmocka_unit_test(a_driver_that_refuses_stays_usable),
        cmocka_unit_test(bases_are_renewed),
        cmocka_unit_test(rings_may_be_read_while_copies_end),
        cmocka_unit_test(a_copy_that_is_refused_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
