/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated workers that take time, as GPUs' do: to launch, to look for the ends of tiles, and
 * where a launch keeps them until its tile is over; and memories that several devices share. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define LINK "\"link\": {\"bandwidth\": 1e9}"
#define ALONE(host) "{" LINK ", \"devices\": [{\"speed\": 1e9, \"host\": " host "}]}"

enum { MOST_TASKS = 8 };

static sim_outcome outcome; /* too large for a stack */
static sim_world world;

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

/* Independent tasks, or each behind the one before; a tile's worth of data for all, or null. */
static uint64_t run_us(uint32_t count, bool in_order, filch_data *data)
{
    filch_task tasks[MOST_TASKS];
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    filch_codelet *codelet = sim_codelet(&world, must_not_run, two_ms, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t i = 0; i < count; ++i) {
        filch_access access = {.data = data, .mode = i == 0 ? FILCH_WRITE : FILCH_READ};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = codelet;
        task.accesses = data != NULL ? &access : NULL;
        task.access_count = data != NULL;
        task.affinity = i % filch_device_count(world.runtime) + 1;
        sim_ok(filch_graph_add(graph, &task, &tasks[i]));
        if (in_order && i != 0) {
            sim_ok(filch_graph_edge(graph, tasks[i - 1], tasks[i]));
        }
    }
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    sim_ok(filch_graph_destroy(graph));
    assert_int_equal(outcome.status, FILCH_OK);
    return (uint64_t)llround(outcome.info.seconds * 1e6);
}

static uint64_t run_on(const char *machine, uint32_t count, bool in_order)
{
    sim_open_machine(&world, machine, BENCH_POLICY_STEAL);
    uint64_t us = run_us(count, in_order, NULL);
    assert_int_equal(outcome.devices[0].tiles, count);
    sim_close(&world);
    return us;
}

/* The first tile begins when its launch is over; the second one's is while that runs. The end is
 * seen when the worker looks: as nothing is known of how long they take, after an eighth of the
 * time at the latest. */
static void test_launches(void **state)
{
    (void)state;
    assert_int_equal(run_on("{" LINK ", \"devices\": [{\"speed\": 1e9}]}", 2, false), 4000);
    uint64_t us = run_on(ALONE("{\"launch_us\": 10}"), 2, false);
    assert_in_range(us, 4010, 4010 + 4010 / 8);
    /* In a chain likewise: the second is put behind the first before that is over. */
    assert_in_range(run_on(ALONE("{\"launch_us\": 10}"), 2, true), 4010, 4010 + 4010 / 8);
    /* And so is it always: the clock is virtual. */
    assert_int_equal(run_on(ALONE("{\"launch_us\": 10}"), 2, false), us);
}

/* What was put on a lane in one go is seen to be over together: two pairs of tiles, and one look
 * between them. While the worker sees to the first pair the device has nothing to do. */
static void test_polling(void **state)
{
    (void)state;
    uint64_t us = run_on(ALONE("{}"), 4, false);
    uint64_t slow_us = run_on(ALONE("{\"see_us\": 300}"), 4, false);
    print_message("%llu and %llu us\n", (unsigned long long)us, (unsigned long long)slow_us);
    assert_in_range(us, 8000, 9000);
    assert_in_range(slow_us, us + 290, us + 310);
}

/* Nothing is put behind a tile whose launch keeps the worker. */
static void test_keeps(void **state)
{
    (void)state;
    assert_in_range(run_on(ALONE("{\"keeps\": {\"tile\": 100}}"), 2, false), 4200, 4250);
    assert_in_range(run_on(ALONE("{\"keeps\": {\"other\": 100}}"), 2, false), 4000, 4100);
}

#define SHARED                                                                                \
    "{" LINK ", \"devices\": [{\"name\": \"a\", \"speed\": 1e9, \"memory\": 8000000},"        \
    "{\"name\": \"b\", \"speed\": 1e9, \"shares\": \"a\"}, {\"name\": \"c\", \"speed\": 1e9," \
    "\"shares\": \"b\"}]}"

/* What one device of a memory has made is there for the others. */
static void test_shared(void **state)
{
    (void)state;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    sim_open_machine(&world, SHARED, BENCH_POLICY_STATIC);
    desc.flags = FILCH_DATA_NO_BUFFER;
    desc.rows = desc.tile_rows = 1000000;
    desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    assert_int_equal(run_us(3, true, data), 6000);
    for (uint32_t d = 0; d < 3; ++d) {
        filch_device_info info = {.size = sizeof info};
        sim_ok(filch_device_at(world.runtime, d, &info));
        assert_int_equal(info.place, 1);
        assert_int_equal(info.memory_total, 8000000);
        assert_int_equal(outcome.devices[d].tiles, 1);
        assert_int_equal(outcome.devices[d].bytes_in, 0);
        assert_int_equal(outcome.devices[d].bytes_peer, 0);
    }
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_keeps),
        cmocka_unit_test(test_polling),
        cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
