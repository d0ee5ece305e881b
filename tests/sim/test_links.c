/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated memories: copies over links that take time, in turns, between devices and for want of
 * room. Times are exact where they can be had by hand. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

enum { TILE = 1000000 }; /* bytes: a millisecond of a link of 1e9 a second */

static sim_outcome outcome; /* too large for a stack */
static sim_world world;
static filch_data *data;
static char *buffer;
static bench_policy sim_policy = BENCH_POLICY_STEAL;

static uint64_t elapsed_us(void)
{
    return (uint64_t)llround(outcome.info.seconds * 1e6);
}

static int must_not_run(const filch_call *call)
{
    (void)call;
    fail_msg("a device with a memory of its own computes nothing");
    return 1;
}

/* 2 ms on a device of speed 1e9. */
static double two_ms(const filch_call *call)
{
    (void)call;
    return 2e6;
}

static void open_world(const char *text, uint32_t tiles, bool is_managed)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    sim_open_machine(&world, text, sim_policy);
    buffer = calloc(tiles, TILE);
    assert_non_null(buffer);
    desc.ptr = is_managed ? NULL : buffer;
    desc.flags = is_managed ? FILCH_DATA_NO_BUFFER : 0;
    desc.rows = (uint64_t)tiles * TILE;
    desc.tile_rows = TILE;
    desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
}

static void close_world(void)
{
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
    free(buffer);
}

typedef struct use {
    uint32_t tile, affinity;
    filch_access_mode mode;
} use;

static bool in_order; /* each use waits for the one before */

static void run_uses(const use *uses, uint32_t count)
{
    filch_task last = 0, made;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    filch_codelet *codelet = sim_codelet(&world, must_not_run, two_ms, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t i = 0; i < count; ++i) {
        filch_access access = {.data = data, .row = uses[i].tile, .mode = uses[i].mode};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = codelet;
        task.accesses = &access;
        task.access_count = 1;
        task.affinity = uses[i].affinity;
        sim_ok(filch_graph_add(graph, &task, &made));
        if (in_order && i != 0) {
            sim_ok(filch_graph_edge(graph, last, made));
        }
        last = made;
    }
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    sim_ok(filch_graph_destroy(graph));
}

#define LINK "\"link\": {\"bandwidth\": 1e9, \"latency_us\": 10}"

/* In 1.01 ms, 2 ms of work, out 1.01 ms. */
static void test_one_tile(void **state)
{
    (void)state;
    static const use uses[] = {{0, 1, FILCH_READWRITE}};
    open_world("{\"devices\": [{\"speed\": 1e9, " LINK "}]}", 1, false);
    run_uses(uses, 1);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(elapsed_us(), 4020);
    assert_int_equal(outcome.devices[0].bytes_in, TILE);
    assert_int_equal(outcome.devices[0].bytes_out, TILE);
    close_world();
}

/* While one tile is worked on the next comes, and the one before leaves. */
static void test_copies_beside_work(void **state)
{
    (void)state;
    static const use uses[] = {{0, 1, FILCH_READWRITE}, {1, 1, FILCH_READWRITE}};
    open_world("{\"devices\": [{\"speed\": 1e9}], " LINK "}", 2, false);
    run_uses(uses, 2);
    assert_int_equal(outcome.status, FILCH_OK);
    /* In by 1.01 and 2.02, worked on until 3.01 and 5.01, out by 4.02 and 6.02. */
    assert_int_equal(elapsed_us(), 6020);
    close_world();
    /* Out at another rate: by 3.51 and 5.51. */
    open_world("{\"link\": {\"bandwidth\": 1e9, \"latency_us\": 10, \"bandwidth_out\": 2e9,"
               " \"latency_out_us\": 0}, \"devices\": [{\"speed\": 1e9}]}",
               2, false);
    run_uses(uses, 2);
    assert_int_equal(elapsed_us(), 5510);
    close_world();
}

/* At four times the speed: in by 1.01, worked on until 1.51, out by 2.52; the second a copy later,
 * where both directions go at once, else it comes when the first has left. */
static void test_duplex(void **state)
{
    (void)state;
    static const use uses[] = {{0, 1, FILCH_READWRITE}, {1, 1, FILCH_READWRITE}};
    open_world("{\"devices\": [{\"speed\": 4e9, " LINK "}]}", 2, false);
    run_uses(uses, 2);
    assert_int_equal(elapsed_us(), 3530);
    close_world();
    open_world("{\"devices\": [{\"speed\": 4e9, \"link\": {\"bandwidth\": 1e9, \"latency_us\": 10,"
               " \"duplex\": false}}]}",
               2, false);
    run_uses(uses, 2);
    assert_int_equal(elapsed_us(), 5040);
    close_world();
}

/* Two devices, a tile each: at once, or in turns over a common bus. */
static void test_bus(void **state)
{
    (void)state;
    static const use uses[] = {{0, 1, FILCH_READWRITE}, {1, 2, FILCH_READWRITE}};
    open_world("{\"devices\": [{\"speed\": 1e9, \"count\": 2}], " LINK "}", 2, false);
    run_uses(uses, 2);
    assert_int_equal(elapsed_us(), 4020);
    close_world();
    open_world("{\"devices\": [{\"speed\": 1e9, \"count\": 2}],"
               " \"link\": {\"bandwidth\": 1e9, \"latency_us\": 10, \"bus\": \"switch\"}}",
               2, false);
    run_uses(uses, 2);
    /* The second one's comes by 2.02 and leaves by 5.03, after that of the first. */
    assert_int_equal(elapsed_us(), 5030);
    close_world();
}

#define PAIR "\"devices\": [{\"name\": \"a\", \"speed\": 1e9}, {\"name\": \"b\", \"speed\": 1e9}]"

/* What one has made the other reads: straight, where there is a way, else over the host. */
static void test_peers(void **state)
{
    (void)state;
    static const use uses[] = {{0, 1, FILCH_WRITE}, {0, 2, FILCH_READ}};
    filch_link link = {.size = sizeof link};
    sim_policy = BENCH_POLICY_STATIC;
    open_world("{" PAIR ", " LINK ", \"peers\": [{\"from\": \"a\", \"to\": \"b\","
               " \"bandwidth\": 4e9}, {\"from\": \"b\", \"to\": \"a\", \"bandwidth\": 5e8}]}",
               1, true);
    run_uses(uses, 2);
    assert_int_equal(elapsed_us(), 2000 + 250 + 2000);
    assert_int_equal(outcome.devices[1].bytes_peer, TILE);
    sim_ok(filch_device_measure_links(world.runtime));
    sim_ok(filch_device_link(world.runtime, 1, 0, &link));
    assert_int_equal(link.has_access, 1);
    assert_true(link.bandwidth == 5e8);
    sim_ok(filch_device_link(world.runtime, FILCH_LINK_HOST, 0, &link));
    assert_true(link.bandwidth == 1e9);
    close_world();
    open_world("{" PAIR ", " LINK "}", 1, true);
    run_uses(uses, 2);
    sim_policy = BENCH_POLICY_STEAL;
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.devices[1].bytes_peer, 0);
    /* In parts, of which the second half goes while the first has arrived already, or at once. */
    print_message("over the host: %llu us\n", (unsigned long long)elapsed_us());
    assert_true(elapsed_us() > 2000 + 1010 + 2000 && elapsed_us() <= 2000 + 2020 + 2000);
    sim_ok(filch_device_link(world.runtime, 1, 0, &link));
    assert_int_equal(link.has_access, 0);
    close_world();
}

/* Room for two tiles and a half of four, used in turn: what comes makes another leave. */
static void test_capacity(void **state)
{
    (void)state;
    use uses[24];
    for (uint32_t i = 0; i < 24; ++i) {
        uses[i] = (use){i % 4, 1, FILCH_READWRITE};
    }
    open_world("{\"devices\": [{\"speed\": 1e9, \"memory\": 2600000}], " LINK "}", 4, false);
    in_order = true;
    run_uses(uses, 24);
    in_order = false;
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, 24);
    filch_memory_stats stats = {.size = sizeof stats};
    sim_ok(filch_device_memory(world.runtime, 0, &stats));
    print_message("two and a half of four tiles: %llu evicted, %.1f ms\n",
                  (unsigned long long)outcome.info.evicted, outcome.info.seconds * 1e3);
    assert_int_equal(stats.budget, 2600000);
    assert_true(stats.mapped_peak <= 2600000);
    assert_true(outcome.info.evicted >= 8);
    assert_true(outcome.devices[0].bytes_in >= 8 * TILE);
    assert_true(elapsed_us() >= 24 * 2000);
    close_world();
    /* With room for all each comes once. */
    open_world("{\"devices\": [{\"speed\": 1e9, \"memory\": 8000000}], " LINK "}", 4, false);
    run_uses(uses, 24);
    assert_int_equal(outcome.info.evicted, 0);
    assert_int_equal(outcome.devices[0].bytes_in, 4 * TILE);
    assert_int_equal(outcome.devices[0].bytes_out, 4 * TILE);
    close_world();
}

static void test_too_large(void **state)
{
    (void)state;
    open_world("{\"devices\": [{\"speed\": 1e9, \"memory\": 500000}], " LINK "}", 1, false);
    filch_access access = {.data = data, .mode = FILCH_READWRITE};
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = sim_codelet(&world, must_not_run, two_ms, NULL);
    task.accesses = &access;
    task.access_count = 1;
    filch_status status = filch_graph_add(graph, &task, NULL);
    status = status == FILCH_OK ? filch_graph_submit(graph, NULL, &job) : status;
    assert_int_equal(status, FILCH_NO_DEVICE_MEMORY);
    sim_ok(filch_graph_destroy(graph));
    close_world();
}

/* A device that is lost takes with it what was there alone; what is at home others do. */
static void test_lost(void **state)
{
    (void)state;
    use uses[16];
    for (uint32_t i = 0; i < 16; ++i) {
        uses[i] = (use){i, 1 + i % 2, FILCH_READWRITE};
    }
    open_world("{\"devices\": [{\"speed\": 1e9, \"lost_at\": 0.0072}, {\"speed\": 1e9}], " LINK "}",
               16, false);
    run_uses(uses, 16);
    assert_int_equal(outcome.status, FILCH_TASK_FAILED);
    assert_int_equal(outcome.info.done + outcome.info.failed, 16);
    /* One is home by 4.02, the next by 6.02, a third is worked on until 7.01 and on the way. */
    print_message("lost: %llu done there, %llu failed\n",
                  (unsigned long long)(outcome.devices[0].tiles - outcome.info.failed),
                  (unsigned long long)outcome.info.failed);
    assert_int_equal(outcome.devices[0].tiles - outcome.info.failed, 2);
    assert_true(outcome.info.failed >= 1);
    close_world();
}

/* A chunk of a batch waits for its part of the buffer, too. */
static void test_batch(void **state)
{
    (void)state;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    open_world("{\"devices\": [{\"speed\": 1e9, \"count\": 2}, {\"name\": \"late\", \"speed\": 1e9,"
               " \"joins_at\": 0.01}], \"link\": {\"bandwidth\": 1e10}}",
               64, false);
    filch_batch_access access = {
        .data = data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    desc.codelet = sim_codelet(&world, must_not_run, NULL, NULL);
    desc.accesses = &access;
    desc.access_count = 1;
    desc.n = UINT64_C(64) * TILE;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, desc.n);
    double bound = 0.01 + (64e6 - 0.01 * 2e9) / 3e9;
    print_message("batch: %.4f of the area bound\n", outcome.info.seconds / bound);
    /* No device is idle but for its first tiles in and its last out, 0.1 ms each. */
    assert_true(outcome.info.seconds >= bound && outcome.info.seconds <= 1.25 * bound);
    assert_true(outcome.devices[2].items > 0);
    close_world();
}

/* A device whose first chunks are on their way home, and which may begin no more before they are
 * measured, has no reason to steal. It once tried for ever, and time stood still. */
static void test_stream(void **state)
{
    enum { ITEMS = 512, ITEM = 4000000 };
    (void)state;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_data_desc shape = FILCH_DATA_DESC_INIT;
    filch_batch_access accesses[] = {{.mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
                                     {.mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    void *buffers[2];
    filch_job *job = NULL;
    sim_open_machine(
        &world,
        "{\"devices\": [{\"speed\": 1e4, \"overhead_us\": 3, \"count\": 2}],"
        " \"link\": {\"bandwidth\": 48e9, \"bandwidth_out\": 44e9, \"latency_us\": 8}}",
        sim_policy);
    shape.element = 1;
    shape.rows = ITEM;
    shape.cols = ITEMS;
    shape.tile_cols = 1;
    for (int i = 0; i < 2; ++i) {
        buffers[i] = mmap(NULL, (size_t)ITEM * ITEMS, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(buffers[i], MAP_FAILED);
        shape.ptr = buffers[i];
        sim_ok(filch_data_create(world.runtime, &shape, &accesses[i].data));
    }
    desc.codelet = sim_codelet(&world, must_not_run, NULL, NULL);
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.n = ITEMS;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    double bound = ITEMS / 2 / 1e4;
    print_message("stream: %.4f of the kernels' time\n", outcome.info.seconds / bound);
    assert_true(outcome.info.seconds >= bound && outcome.info.seconds <= 1.1 * bound);
    sim_close(&world);
    for (int i = 0; i < 2; ++i)
        (void)munmap(buffers[i], (size_t)ITEM * ITEMS);
}

/* Both receive it at once, each over its own link. */
static void test_broadcast(void **state)
{
    (void)state;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *managed = NULL;
    filch_job *job = NULL;
    open_world("{\"devices\": [{\"speed\": 1e9, " LINK "}, {\"speed\": 1e9, " LINK "}]}", 1, false);
    desc.ptr = buffer;
    desc.flags = FILCH_DATA_MANAGED;
    desc.rows = TILE;
    desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &desc, &managed));
    sim_ok(filch_data_broadcast(managed, NULL, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.devices[0].bytes_in, TILE);
    assert_int_equal(outcome.devices[1].bytes_in, TILE);
    sim_ok(filch_data_destroy(managed));
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_tile),  cmocka_unit_test(test_copies_beside_work),
        cmocka_unit_test(test_duplex),    cmocka_unit_test(test_bus),
        cmocka_unit_test(test_peers),     cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_lost),
        cmocka_unit_test(test_batch),     cmocka_unit_test(test_stream),
        cmocka_unit_test(test_broadcast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
