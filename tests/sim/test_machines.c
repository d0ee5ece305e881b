/* SPDX-License-Identifier: Apache-2.0 */
/* What a description says of a machine beside speeds: how they change, devices that are lost, and
 * devices that come later. Times are exact where they can be had by hand. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

#define UNITS UINT64_C(1000000000) /* a second's work at speed 1e9 */

static sim_outcome outcome; /* too large for a stack */

static uint64_t elapsed_ns(void)
{
    return (uint64_t)llround(outcome.info.seconds * 1e9);
}

static void run(const char *text, bench_policy policy, uint64_t n, uint64_t grain)
{
    sim_world world;
    sim_open_machine(&world, text, policy);
    sim_batch(&world, sim_codelet(&world, NULL, NULL, NULL), n, grain, &outcome);
    sim_close(&world);
}

/* --- Speed over time --- */

#define CHANGING \
    "{\"devices\": [{\"speed\": 1e9, \"speeds\": [[0.25, 5e8], [0.5, 0], [0.75, 2e9]]}]}"

/* 0.25 s at 1e9, 0.25 s at half of it, a pause, and the rest at 2e9: 1e9 units end at 1.0625 s,
 * whether as one tile, which goes at the speed of the moment, or as many. */
static void test_tile_in_flight(void **state)
{
    (void)state;
    run(CHANGING, BENCH_POLICY_STEAL, UNITS, UNITS);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.devices[0].tiles, 1);
    assert_int_equal(elapsed_ns(), 1062500000);
}

static void test_many_tiles(void **state)
{
    (void)state;
    run(CHANGING, BENCH_POLICY_STEAL, UNITS, 1000);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_true(outcome.devices[0].tiles > 100);
    assert_int_equal(elapsed_ns(), 1062500000);
}

/* The dispatch of a tile takes as long at any speed: 2 ms of it are within the pause. */
static void test_overhead_is_no_work(void **state)
{
    (void)state;
    run("{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5000, \"speeds\": [[0.003, 0], [0.1, "
        "1e8]]}]}",
        BENCH_POLICY_STEAL, 1000000, 1000000);
    assert_int_equal(elapsed_ns(), 110000000);
    /* A change at time 0 is the speed from the start; what ends at a change is not touched by it */
    run("{\"devices\": [{\"speed\": 1, \"speeds\": [[0, 1e9], [1, 1e-6]]}]}", BENCH_POLICY_STEAL,
        UNITS, UNITS);
    assert_int_equal(elapsed_ns(), 1000000000);
}

/* Four times slower half-way, and back again: theft keeps up. The bound has all speeds. */
static void test_throttled(void **state)
{
    (void)state;
    run("{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5, \"count\": 3},"
        "{\"name\": \"hot\", \"speed\": 1e9, \"overhead_us\": 5,"
        " \"speeds\": [[0.02, 2.5e8], [0.04, 1e9]]}]}",
        BENCH_POLICY_STEAL, 4 * UNITS / 20, 0);
    /* 0.02 s at 4e9, 0.02 s at 3.25e9, and what is left of 2e8 at 4e9. */
    double bound = 0.04 + (2e8 - 0.02 * 4e9 - 0.02 * 3.25e9) / 4e9;
    print_message("throttled: %.4f of the bound\n", outcome.info.seconds / bound);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_true(outcome.info.seconds >= bound && outcome.info.seconds <= 1.02 * bound);
}

/* --- Lost devices --- */

#define LOST                                                                 \
    "{\"devices\": [{\"name\": \"weak\", \"speed\": 1e9, \"lost_at\": 0.3}," \
    "{\"speed\": 1e9}]}"

/* Eight grains of 0.25 s: the first device ends one, and what it then has in flight fails. */
static void test_lost(void **state)
{
    (void)state;
    run(LOST, BENCH_POLICY_STEAL, 2 * UNITS, UNITS / 4);
    assert_int_equal(outcome.status, FILCH_TASK_FAILED);
    assert_int_equal(outcome.info.done + outcome.info.failed, 2 * UNITS);
    assert_int_equal(outcome.info.skipped, 0);
    assert_int_equal(outcome.devices[0].items, UNITS / 4 + outcome.info.failed);
    uint64_t failed = outcome.info.failed / (UNITS / 4);
    assert_true(failed >= 1 && failed <= 2); /* the window */
    assert_int_equal(elapsed_ns(), (7 - failed) * 250000000);
}

/* A tile that was launched at time 0 is lost like any. */
static void test_lost_from_start(void **state)
{
    (void)state;
    run(LOST, BENCH_POLICY_STEAL, 2 * UNITS, UNITS);
    assert_int_equal(outcome.status, FILCH_TASK_FAILED);
    assert_int_equal(outcome.info.done, UNITS);
    assert_int_equal(outcome.info.failed, UNITS);
    assert_int_equal(elapsed_ns(), 1000000000);
}

/* Its share is its own where nothing is stolen, and ends with it. */
static void test_lost_static(void **state)
{
    (void)state;
    run(LOST, BENCH_POLICY_STATIC, 2 * UNITS, UNITS / 4);
    assert_int_equal(outcome.status, FILCH_TASK_FAILED);
    assert_int_equal(outcome.info.done, 5 * (UNITS / 4));
    assert_int_equal(elapsed_ns(), 1000000000);
}

static void test_lost_is_told(void **state)
{
    (void)state;
    sim_world world;
    filch_job *job = NULL, *rest = NULL;
    filch_error error = FILCH_ERROR_INIT;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    sim_open_machine(&world, LOST, BENCH_POLICY_STEAL);
    desc.codelet = sim_codelet(&world, NULL, NULL, NULL);
    desc.n = 2 * UNITS;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    assert_int_equal(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    sim_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_DEVICE_LOST);
    assert_string_equal(error.device, "weak");
    assert_non_null(strstr(error.text, "lost from 0.3 s on"));
    /* The other one does what failed. */
    filch_job_info info = {.size = sizeof info};
    sim_ok(filch_job_stats(job, &info, NULL, 0));
    sim_ok(filch_job_resume(job, NULL, NULL, &rest));
    sim_ok(filch_job_release(job));
    sim_finish(rest, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, info.failed);
    assert_int_equal(outcome.devices[0].items, 0);
    sim_close(&world);
}

/* Long before the end nothing is noticed of it. */
static void test_lost_later(void **state)
{
    (void)state;
    run("{\"devices\": [{\"speed\": 1e9, \"lost_at\": 1.000000001}]}", BENCH_POLICY_STEAL, UNITS,
        UNITS / 4);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(elapsed_ns(), 1000000000);
    /* What would end at that very time does not. */
    run("{\"devices\": [{\"speed\": 1e9, \"lost_at\": 1}]}", BENCH_POLICY_STEAL, UNITS, UNITS / 4);
    assert_int_equal(outcome.status, FILCH_TASK_FAILED);
    assert_int_equal(outcome.info.done, 3 * (UNITS / 4));
}

/* --- Late joiners --- */

static void test_late(void **state)
{
    (void)state;
    run("{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5},"
        "{\"speed\": 1e9, \"overhead_us\": 5, \"joins_at\": 0.05}]}",
        BENCH_POLICY_STEAL, UNITS / 4, 0);
    /* 0.05 s of one, then of both. */
    double bound = 0.05 + 0.2 / 2;
    print_message("late: %.4f of the bound\n", outcome.info.seconds / bound);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_true(outcome.info.seconds >= bound && outcome.info.seconds <= 1.02 * bound);
    assert_true(outcome.devices[1].items > UNITS / 4 * 3 / 10);
    assert_true((double)outcome.devices[1].items <= (outcome.info.seconds - 0.05) * 1e9);
}

/* It takes nothing before, even where that means to wait; nor is it waited for without need. */
static void test_late_and_alone(void **state)
{
    (void)state;
    run("{\"devices\": [{\"speed\": 1e9, \"joins_at\": 2}]}", BENCH_POLICY_STEAL, UNITS, UNITS / 4);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(elapsed_ns(), 3000000000);
    run("{\"devices\": [{\"speed\": 1e9}, {\"speed\": 1e9, \"joins_at\": 2}]}", BENCH_POLICY_STATIC,
        UNITS, UNITS / 4);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(elapsed_ns(), 1000000000);
}

/* A graph's tasks have their homes where they are sealed, whoever is there by then. */
static void test_late_home(void **state)
{
    (void)state;
    for (int policy = BENCH_POLICY_STEAL; policy <= BENCH_POLICY_STATIC; ++policy) {
        sim_world world;
        filch_graph *graph = NULL;
        filch_job *job = NULL;
        filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
        sim_open_machine(&world,
                         "{\"devices\": [{\"speed\": 1}, {\"speed\": 10, \"joins_at\": 2}]}",
                         (bench_policy)policy);
        sim_ok(filch_graph_create(world.runtime, &desc, &graph));
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = sim_codelet(&world, NULL, NULL, NULL);
        task.affinity = 2;
        sim_ok(filch_graph_add(graph, &task, NULL));
        sim_ok(filch_graph_submit(graph, NULL, &job));
        sim_finish(job, &outcome);
        assert_int_equal(outcome.status, FILCH_OK);
        /* One unit: 1 s on the device that is there, 0.1 s on the other, once it is. */
        assert_int_equal(elapsed_ns(), policy == BENCH_POLICY_STATIC ? 2100000000 : 1000000000);
        sim_ok(filch_graph_destroy(graph));
        sim_close(&world);
    }
}

/* --- Determinism --- */

static char *record_trace(const char *text, size_t *size)
{
    char path[] = "/tmp/filch-trace-XXXXXX";
    int file = mkstemp(path);
    sim_world world;
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    sim_open_machine(&world, text, BENCH_POLICY_STEAL);
    sim_ok(filch_trace_start(world.runtime));
    sim_batch(&world, sim_codelet(&world, NULL, NULL, NULL), UNITS / 2, 0, &outcome);
    sim_ok(filch_trace_write(world.runtime, path));
    sim_close(&world);
    file = open(path, O_RDONLY); /* another file than before: it was renamed over that */
    assert_true(file >= 0);
    off_t end = lseek(file, 0, SEEK_END);
    char *bytes = malloc((size_t)end);
    assert_non_null(bytes);
    assert_int_equal(pread(file, bytes, (size_t)end, 0), end);
    *size = (size_t)end;
    assert_int_equal(close(file), 0);
    assert_int_equal(unlink(path), 0);
    return bytes;
}

/* The same input gives the same trace, byte by byte. */
static void test_same_trace(void **state)
{
    (void)state;
    static const char text[] =
        "{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5, \"count\": 13},"
        "{\"name\": \"hot\", \"speed\": 2e9, \"overhead_us\": 3, \"count\": 2,"
        " \"speeds\": [[0.003, 2.5e8], [0.0123, 3e9]]},"
        "{\"name\": \"weak\", \"speed\": 1e9, \"overhead_us\": 3, \"lost_at\": 0.007},"
        "{\"name\": \"late\", \"speed\": 3e9, \"score\": 1, \"joins_at\": 0.011}]}";
    size_t first_size, second_size;
    char *first = record_trace(text, &first_size), *second = record_trace(text, &second_size);
    assert_true(first_size > 10000);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(first, second, first_size);
    free(first);
    free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tile_in_flight),
        cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_overhead_is_no_work),
        cmocka_unit_test(test_throttled),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_lost_static),
        cmocka_unit_test(test_lost_from_start),
        cmocka_unit_test(test_lost_is_told),
        cmocka_unit_test(test_lost_later),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_late_and_alone),
        cmocka_unit_test(test_late_home),
        cmocka_unit_test(test_same_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
