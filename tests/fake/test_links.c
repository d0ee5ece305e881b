/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime says of how its memories are joined, and lanes that cannot be made, on the fake
 * driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "fakecuda.h"
#include "filch/filch.h"

#define HOST FILCH_LINK_HOST
#define THREE                                                                             \
    "{\"devices\": [{\"count\": 3}], \"links\": ["                                        \
    "{\"from\": 0, \"to\": 1, \"atomics\": true}, {\"from\": 1, \"to\": 2, \"rank\": 3}," \
    "{\"from\": 0, \"to\": 2, \"peer\": false, \"rank\": 5}]}"

static filch_runtime *runtime;

#define assert_ok(call) assert_int_equal((call), FILCH_OK)

static void start(const char *devices, const char *fake)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(fake));
    config.devices = devices;
    config.drive = FILCH_DRIVE_POLL;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK)
        fail_msg("%s", error.text);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_live("pinned"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_link between(uint32_t from, uint32_t to)
{
    filch_link link = {.size = sizeof link};
    assert_ok(filch_device_link(runtime, from, to, &link));
    assert_int_equal(link.size, sizeof link);
    return link;
}

static void expect(uint32_t from, uint32_t to, uint32_t access, uint32_t atomics, int32_t rank)
{
    filch_link link = between(from, to);
    assert_int_equal(link.is_same, 0);
    assert_int_equal(link.has_access, access);
    assert_int_equal(link.has_atomics, atomics);
    assert_int_equal(link.rank, rank);
}

/* Devices: two slices of one GPU, two more GPUs, a core of the host's. */
static void links_are_described(void **state)
{
    (void)state;
    start("cuda:0/88+24,cuda:1,cuda:2,host:1", THREE);
    assert_int_equal(between(0, 1).is_same, 1);
    assert_int_equal(between(2, 2).is_same, 1);
    assert_int_equal(between(4, HOST).is_same, 1);
    assert_int_equal(between(HOST, HOST).is_same, 1);
    for (uint32_t slice = 0; slice < 2; slice++) {
        expect(slice, 2, 1, 1, 0);
        expect(2, slice, 1, 1, 0);
        expect(slice, 3, 0, 0, 5);
    }
    expect(2, 3, 1, 0, 3);
    expect(HOST, 3, 1, 0, 0);
    expect(3, 4, 1, 0, 0);
    stop();
}

static void bandwidth_is_there_once_measured(void **state)
{
    (void)state;
    start("cuda:0/88+24,cuda:1,host:1", THREE);
    for (int round = 0; round < 2; round++) {
        static const uint32_t memories[] = {0, 2, HOST};
        for (size_t i = 0; i < 9; i++) {
            filch_link link = between(memories[i / 3], memories[i % 3]);
            assert_true((link.bandwidth > 0) == (round == 1 && i / 3 != i % 3));
        }
        size_t live = fakecuda_live("memory");
        assert_ok(filch_device_measure_links(runtime));
        assert_int_equal(fakecuda_live("memory"), live);
    }
    /* Of slices and cores, too; six links, twice. */
    assert_true(between(1, 3).bandwidth == between(0, HOST).bandwidth);
    assert_int_equal(fakecuda_count("copy"), 2 * (6 * 5 + 2));
    stop();
}

/* One GPU has no memory for it: the others are measured, and what was known stays. */
static void a_link_that_fails_spares_the_others(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    (void)state;
    start("cuda:0,cuda:1", "{\"devices\": [{\"memory\": 33554432}, {}]}");
    assert_int_equal(filch_device_measure_links(runtime), FILCH_NO_DEVICE_MEMORY);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_string_equal(error.device, "cuda:0");
    assert_string_equal(error.call, "cuMemAlloc");
    assert_true(between(0, HOST).bandwidth == 0);
    assert_true(between(0, 1).bandwidth == 0);
    assert_true(between(1, 0).bandwidth == 0);
    double known = between(1, HOST).bandwidth;
    assert_true(known > 0);
    fakecuda_fail("cuMemcpyDtoHAsync", 1, 0, 1, 1, false);
    assert_int_equal(filch_device_measure_links(runtime), FILCH_NO_DEVICE_MEMORY);
    assert_true(between(1, HOST).bandwidth == known);
    fakecuda_reset();
    assert_int_equal(fakecuda_live("memory"), 0);
    stop();
}

/* Creates a runtime on two GPUs while the nth call of an entry point fails. FILCH_OK: it is the
 * test's to destroy. */
static filch_status start_failing(const char *call, uint64_t nth, int result, filch_error *error)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 2}]}"));
    fakecuda_fail(call, nth, 1, result, -1, false);
    config.devices = "cuda:0,cuda:1";
    config.drive = FILCH_DRIVE_POLL;
    config.policy = FILCH_POLICY_STATIC;
    return filch_runtime_create(&config, error, &runtime);
}

static int copy(const filch_call *call)
{
    *(uint64_t *)call->views[1].ptr = *(const uint64_t *)call->views[0].ptr + 1;
    return 0;
}

static void add_copy(filch_graph *graph, filch_codelet *codelet, filch_data *data, uint32_t from,
                     uint32_t to, uint32_t affinity)
{
    const filch_access accesses[] = {FILCH_R(data, from, 0), FILCH_W(data, to, 0)};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.affinity = affinity;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

/* A value goes from the host over GPU 0 to GPU 1 and back. Returns bytes copied from GPU to GPU. */
static uint64_t pass_on(void)
{
    static const char image[] = "FAKECUBIN arch=90 entry=copy";
    uint64_t values[4] = {7};
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc how = FILCH_CODELET_DESC_INIT;
    filch_data_desc what = FILCH_DATA_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_data *data = NULL;
    filch_graph *graph = NULL;
    fakecuda_register_filch("copy", copy, 2, false, 0);
    cuda.image = image;
    cuda.image_bytes = sizeof image;
    cuda.entry = "copy";
    how.name = "copy";
    how.cuda = &cuda;
    what.ptr = values;
    what.element = sizeof *values;
    what.rows = 4;
    what.tile_rows = 1;
    assert_ok(filch_codelet_create(runtime, &how, &codelet));
    assert_ok(filch_data_create(runtime, &what, &data));
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    uint64_t before = fakecuda_bytes(0, 1) + fakecuda_bytes(1, 0);
    add_copy(graph, codelet, data, 0, 1, 1);
    add_copy(graph, codelet, data, 1, 2, 2);
    add_copy(graph, codelet, data, 2, 3, 1);
    assert_ok(filch_graph_run(graph, NULL, NULL));
    assert_int_equal(values[3], 10);
    assert_ok(filch_graph_destroy(graph));
    return fakecuda_bytes(0, 1) + fakecuda_bytes(1, 0) - before;
}

/* Streams and events of a GPU's lanes: without them there is no runtime, and the error names call
 * and GPU; without those of the lane between GPUs copies take the way over the host. */
static void lanes_that_cannot_be_made_are_told_or_done_without(void **state)
{
    static const char *const calls[] = {"cuStreamCreate", "cuEventCreate"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint32_t refused = 0, apart = 0;
        bool is_met = true;
        for (uint64_t nth = 1; is_met; nth += i == 0 ? 1 : 127) { /* a lane has 128 events */
            filch_error error = FILCH_ERROR_INIT;
            filch_status status = start_failing(calls[i], nth, 2, &error);
            is_met = status != FILCH_OK || fakecuda_count(calls[i]) >= nth;
            if (status != FILCH_OK) {
                assert_int_equal(status, FILCH_NO_DEVICE_MEMORY);
                assert_int_equal(error.status, status);
                assert_string_equal(error.call, calls[i]);
                assert_true(strcmp(error.device, "cuda:0") == 0 ||
                            strcmp(error.device, "cuda:1") == 0);
                refused++;
            } else {
                fakecuda_reset(); /* the failure was the creation's */
                uint64_t between_gpus = pass_on();
                apart += between_gpus < 2 * sizeof(uint64_t);
                assert_true(is_met || between_gpus == 2 * sizeof(uint64_t));
                stop();
            }
            assert_int_equal(fakecuda_live("stream"), 0);
            assert_int_equal(fakecuda_live("event"), 0);
            assert_int_equal(fakecuda_live("context"), 0);
            assert_int_equal(fakecuda_violations(), 0);
        }
        assert_true(refused >= 2);
        assert_true(apart >= 2);
    }
}

static void bad_arguments_are_refused(void **state)
{
    filch_link link = {.size = sizeof link}, before = link;
    (void)state;
    start("cuda:0,cuda:1", THREE);
    assert_int_equal(filch_device_link(runtime, 2, 0, &link), FILCH_BAD_INDEX);
    assert_int_equal(filch_device_link(runtime, 0, 2, &link), FILCH_BAD_INDEX);
    assert_int_equal(filch_device_link(runtime, 0, 1, NULL), FILCH_INVALID_ARGUMENT);
    link.size--;
    assert_int_equal(filch_device_link(runtime, 0, 1, &link), FILCH_INVALID_ARGUMENT);
    link.size++;
    assert_int_equal(filch_device_link(NULL, 0, 1, &link), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_device_measure_links(NULL), FILCH_INVALID_HANDLE);
    fakecuda_fail("cuDeviceGetP2PAttribute", 2, 1, 999, -1, false);
    assert_int_equal(filch_device_link(runtime, 0, 1, &link), FILCH_DEVICE_LOST);
    assert_memory_equal(&link, &before, sizeof link);
    stop();
    start("host:2", NULL); /* nothing to measure */
    assert_ok(filch_device_measure_links(runtime));
    assert_int_equal(between(0, 1).is_same, 1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_described),
        cmocka_unit_test(bandwidth_is_there_once_measured),
        cmocka_unit_test(a_link_that_fails_spares_the_others),
        cmocka_unit_test(lanes_that_cannot_be_made_are_told_or_done_without),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
