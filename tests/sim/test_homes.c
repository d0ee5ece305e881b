/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations over blocks on two simulated GPUs: every block is updated, and a sum over all blocks
 * releases the next updates, which one GPU sees first. Each block stays where it is, as its copy
 * takes longer than its update, and the other GPU takes part. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

enum { BLOCKS = 8, STEPS = 20 };

#define BLOCK ((size_t)64 << 20)
/* 64 MiB take 30 us, and 450 us from GPU to GPU. */
#define MACHINE                                                                                   \
    "{\"link\": {\"bandwidth\": 50e9, \"latency_us\": 8},"                                        \
    " \"devices\": [{\"name\": \"gpu\", \"speed\": 2.2e12, \"overhead_us\": 3, \"memory\": 80e9," \
    " \"lanes\": 2, \"count\": 2}],"                                                              \
    " \"peers\": [{\"from\": \"gpu\", \"to\": \"gpu\", \"bandwidth\": 150e9, \"latency_us\": 3}]}"

static sim_outcome outcome; /* too large for a stack */
static sim_world world;

static int must_not_run(const filch_call *call)
{
    (void)call;
    fail_msg("a device with a memory of its own computes nothing");
    return 1;
}

static double bytes_of_block(const filch_call *call)
{
    (void)call;
    return (double)BLOCK;
}

static double bytes_of_sum(const filch_call *call)
{
    (void)call;
    return 1;
}

/* Nothing of the buffer is touched. */
static filch_data *make_data(size_t bytes, size_t tile, void **buffer)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    *buffer = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(*buffer, MAP_FAILED);
    desc.ptr = *buffer;
    desc.element = 1;
    desc.rows = bytes;
    desc.tile_rows = tile;
    desc.flags = FILCH_DATA_MANAGED;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    return data;
}

static void add(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses,
                uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    sim_ok(filch_graph_add(graph, &desc, NULL));
}

static filch_graph *make_iterations(filch_data *blocks, filch_data *parts, filch_data *sum)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_codelet *update = sim_codelet(&world, must_not_run, bytes_of_block, NULL);
    filch_codelet *add_up = sim_codelet(&world, must_not_run, bytes_of_sum, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t step = 0; step < STEPS; ++step) {
        filch_access all[BLOCKS + 1] = {{.data = sum, .mode = FILCH_WRITE}};
        for (uint32_t b = 0; b < BLOCKS; ++b) {
            const filch_access accesses[] = {
                {.data = sum, .mode = FILCH_READ},
                {.data = blocks, .row = b, .mode = FILCH_READWRITE},
                {.data = parts, .row = b, .mode = FILCH_WRITE},
            };
            add(graph, update, accesses, 3);
            all[b + 1] = (filch_access){.data = parts, .row = b, .mode = FILCH_READ};
        }
        add(graph, add_up, all, BLOCKS + 1);
    }
    return graph;
}

/* Both GPUs take part in the first updates. Then one task at a time runs: they take turns on blocks
 * of both. */
static filch_graph *make_turns(filch_data *blocks, filch_data *token)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_codelet *update = sim_codelet(&world, must_not_run, bytes_of_block, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t b = 0; b < BLOCKS; ++b) {
        const filch_access block = {.data = blocks, .row = b, .mode = FILCH_READWRITE};
        add(graph, update, &block, 1);
    }
    for (uint32_t step = 0; step < STEPS * 2; ++step) {
        const filch_access accesses[] = {
            {.data = blocks, .row = step % 2 * (BLOCKS - 1), .mode = FILCH_READWRITE},
            {.data = token, .mode = FILCH_READWRITE},
        };
        add(graph, update, accesses, 2);
    }
    return graph;
}

/* A GPU that has nothing else to do leaves to the other one what it has just given to it. */
static void test_turns(void **state)
{
    void *buffers[2];
    (void)state;
    sim_open_machine(&world, MACHINE, BENCH_POLICY_STEAL);
    filch_data *blocks = make_data(BLOCKS * BLOCK, BLOCK, &buffers[0]);
    filch_data *token = make_data(64, 64, &buffers[1]);
    filch_graph *graph = make_turns(blocks, token);
    for (int run = 0; run < 3; ++run) {
        filch_job *job = NULL;
        sim_ok(filch_graph_submit(graph, NULL, &job));
        sim_finish(job, &outcome);
        assert_int_equal(outcome.status, FILCH_OK);
        uint64_t moved = outcome.devices[0].bytes_peer + outcome.devices[1].bytes_peer;
        print_message("run %d: %llu and %llu tasks, %.1f blocks moved\n", run,
                      (unsigned long long)outcome.devices[0].tiles,
                      (unsigned long long)outcome.devices[1].tiles, (double)moved / (double)BLOCK);
        assert_true(moved < 2 * BLOCK);
        for (int d = 0; d < 2 && run > 0; ++d)
            assert_int_equal(outcome.devices[d].stolen_in, 0);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(blocks));
    sim_ok(filch_data_destroy(token));
    sim_close(&world);
    (void)munmap(buffers[0], BLOCKS * BLOCK);
    (void)munmap(buffers[1], 64);
}

static void test_blocks_stay(void **state)
{
    void *buffers[3];
    (void)state;
    sim_open_machine(&world, MACHINE, BENCH_POLICY_STEAL);
    filch_data *blocks = make_data(BLOCKS * BLOCK, BLOCK, &buffers[0]);
    filch_data *parts = make_data((size_t)BLOCKS * 64, 64, &buffers[1]);
    filch_data *sum = make_data(64, 64, &buffers[2]);
    filch_graph *graph = make_iterations(blocks, parts, sum);
    for (int run = 0; run < 3; ++run) {
        filch_job *job = NULL;
        sim_ok(filch_graph_submit(graph, NULL, &job));
        sim_finish(job, &outcome);
        assert_int_equal(outcome.status, FILCH_OK);
        uint64_t tasks = outcome.devices[0].tiles + outcome.devices[1].tiles;
        uint64_t moved = outcome.devices[0].bytes_peer + outcome.devices[1].bytes_peer;
        print_message("run %d: %llu and %llu tasks, %.1f blocks moved\n", run,
                      (unsigned long long)outcome.devices[0].tiles,
                      (unsigned long long)outcome.devices[1].tiles, (double)moved / (double)BLOCK);
        assert_int_equal(tasks, STEPS * (BLOCKS + 1));
        for (int d = 0; d < 2; ++d)
            assert_true(outcome.devices[d].tiles >= tasks / 3);
        assert_true(moved < 2 * BLOCK);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(blocks));
    sim_ok(filch_data_destroy(parts));
    sim_ok(filch_data_destroy(sum));
    sim_close(&world);
    (void)munmap(buffers[0], BLOCKS * BLOCK);
    (void)munmap(buffers[1], (size_t)BLOCKS * 64);
    (void)munmap(buffers[2], 64);
}

static uint32_t on_second(const filch_policy_view *view, void *user)
{
    (void)view;
    (void)user;
    return 1;
}

static void add_rows(filch_graph *graph, filch_data *data, filch_codelet *codelet, uint32_t rows,
                     uint32_t mode, uint32_t device)
{
    for (uint32_t row = 0; row < rows; ++row) {
        const filch_access access = {.data = data, .row = row, .mode = mode};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.affinity = device;
        sim_ok(filch_graph_add(graph, &desc, NULL));
    }
}

static filch_graph *make_graph(filch_data *data, filch_codelet *codelet, uint32_t rows,
                               uint32_t mode, uint32_t device)
{
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    add_rows(graph, data, codelet, rows, mode, device);
    return graph;
}

/* Tasks that commute begin behind a task of the library's own, which has no codelet. It waits in
 * the inbox of the GPU that the policy chose, and the other one, without work, looks at it. */
static void test_a_group_begins_in_an_inbox(void **state)
{
    void *buffers[2];
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    (void)state;
    policy.place = on_second;
    config.custom_policy = &policy;
    sim_open_text(&world, MACHINE, &config);
    filch_data *blocks = make_data(BLOCKS * BLOCK, BLOCK, &buffers[0]);
    filch_data *token = make_data(64, 64, &buffers[1]);
    filch_codelet *update = sim_codelet(&world, must_not_run, bytes_of_block, NULL);
    filch_graph *busy = make_graph(blocks, update, BLOCKS, FILCH_READWRITE, 0);
    filch_graph *group = make_graph(token, update, 1, FILCH_COMMUTE, 0);
    for (int run = 0; run < 3; ++run) {
        filch_job *first = NULL, *second = NULL;
        sim_ok(filch_graph_submit(busy, NULL, &first));
        sim_ok(filch_graph_submit(group, NULL, &second));
        sim_finish(first, &outcome);
        assert_int_equal(outcome.status, FILCH_OK);
        sim_finish(second, &outcome);
        assert_int_equal(outcome.status, FILCH_OK);
        assert_int_equal(outcome.devices[0].tiles + outcome.devices[1].tiles, 1);
    }
    sim_ok(filch_graph_destroy(busy));
    sim_ok(filch_graph_destroy(group));
    sim_ok(filch_data_destroy(blocks));
    sim_ok(filch_data_destroy(token));
    sim_close(&world);
    (void)munmap(buffers[0], BLOCKS * BLOCK);
    (void)munmap(buffers[1], 64);
}

static double ten_seconds(const filch_call *call)
{
    (void)call;
    return 2.2e13;
}

static double ten_ms(const filch_call *call)
{
    (void)call;
    return 2.2e10;
}

/* A GPU is at long tasks, and short ones whose data it has wait in its inbox. The other GPU, which
 * has never run such a task, takes them once it has been idle for as long as the copies take. */
static void take_what_waits(const filch_policy_desc *policy)
{
    void *buffers[2];
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.custom_policy = policy;
    sim_open_text(&world, MACHINE, &config);
    filch_data *tiles = make_data(BLOCKS * BLOCK, BLOCK, &buffers[0]);
    filch_data *others = make_data((size_t)BLOCKS * 64, 64, &buffers[1]);
    filch_codelet *lengthy = sim_codelet(&world, must_not_run, ten_seconds, NULL);
    filch_codelet *brief = sim_codelet(&world, must_not_run, ten_ms, NULL);
    filch_graph *first = make_graph(tiles, brief, BLOCKS, FILCH_WRITE, 1);
    filch_graph *second = make_graph(others, lengthy, 4, FILCH_WRITE, 1);
    filch_graph_desc open = FILCH_GRAPH_DESC_INIT;
    filch_graph *third = NULL;
    open.kind = FILCH_GRAPH_OPEN;
    sim_ok(filch_graph_create(world.runtime, &open, &third));
    filch_job *jobs[3] = {NULL, NULL, NULL};
    sim_ok(filch_device_withdraw(world.runtime, 1));
    sim_ok(filch_graph_submit(first, NULL, &jobs[0]));
    sim_finish(jobs[0], &outcome);
    assert_int_equal(outcome.devices[0].tiles, BLOCKS);
    sim_ok(filch_graph_submit(second, NULL, &jobs[1]));
    assert_int_equal(filch_job_wait(jobs[1], 0.5), FILCH_TIMEOUT);
    sim_ok(filch_device_readmit(world.runtime, 1));
    sim_ok(filch_graph_submit(third, NULL, &jobs[2]));
    add_rows(third, tiles, brief, BLOCKS, FILCH_READWRITE, 1);
    sim_ok(filch_graph_close(third));
    sim_finish(jobs[2], &outcome);
    print_message("%llu of %d tasks on the idle GPU, after %.3f s\n",
                  (unsigned long long)outcome.devices[1].tiles, BLOCKS, outcome.info.seconds);
    assert_int_equal(outcome.devices[1].tiles, BLOCKS);
    assert_true(outcome.info.seconds < 1);
    sim_finish(jobs[1], &outcome);
    sim_ok(filch_graph_destroy(first));
    sim_ok(filch_graph_destroy(second));
    sim_ok(filch_graph_destroy(third));
    sim_ok(filch_data_destroy(tiles));
    sim_ok(filch_data_destroy(others));
    sim_close(&world);
    (void)munmap(buffers[0], BLOCKS * BLOCK);
    (void)munmap(buffers[1], (size_t)BLOCKS * 64);
}

static void test_an_idle_gpu_takes_what_waits(void **state)
{
    (void)state;
    take_what_waits(NULL);
}

static uint32_t by_the_rules(const filch_policy_view *view, uint32_t *amount, void *user)
{
    (void)view;
    (void)user;
    (void)amount;
    return FILCH_POLICY_AUTO;
}

/* The same where a policy leaves thefts to the rules. */
static void test_a_policy_may_leave_it_to_the_rules(void **state)
{
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    (void)state;
    policy.steal = by_the_rules;
    take_what_waits(&policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_stay),
                                       cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_a_group_begins_in_an_inbox),
                                       cmocka_unit_test(test_an_idle_gpu_takes_what_waits),
                                       cmocka_unit_test(test_a_policy_may_leave_it_to_the_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
