/* SPDX-License-Identifier: Apache-2.0 */
/* Many devices: a simulation costs what happens in it, not the number of devices at each event.
 * What is counted is how often workers are stepped. Without an event queue that were devices
 * times events.
 *
 *     test_sim_scale [TASKS] */
#include <stdio.h>
#include <stdlib.h>

#include "runtime.h"
#include "sim.h"

enum { DEVICES = 1024, MOST_TASKS = 200000 };

/* Steps a tile: one in which it is put on its device, one in which it is over, and as many in which
 * something else was looked for. */
#define MOST_STEPS 4.0
/* And a device at most so many that find nothing, over the run. */
#define MOST_LOOKS 100.0

static sim_outcome outcome;
static uint32_t task_count = MOST_TASKS;

static double steps_of(const sim_world *world)
{
    double steps = 0;
    for (uint32_t d = 0; d < world->count; ++d) {
        steps += (double)fl_load_relaxed(&world->runtime->sched.workers[d].queues.steps);
    }
    return steps;
}

static void check_steps(const sim_world *world, const char *what)
{
    double tiles = 0, steps = steps_of(world);
    for (uint32_t d = 0; d < world->count; ++d) {
        tiles += (double)outcome.devices[d].tiles;
    }
    print_message("%s: %.0f tiles, %.2f steps each, %.4f s\n", what, tiles, steps / tiles,
                  outcome.info.seconds);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_true(tiles >= DEVICES);
    assert_true(steps <= MOST_STEPS * tiles + MOST_LOOKS * DEVICES);
}

static const sim_kind kinds[] = {{1e9, 0, 5, DEVICES / 2, 0}, {3e9, 1e9, 5, DEVICES / 2, 0}};

static void test_batch(void **state)
{
    (void)state;
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    sim_batch(&world, sim_codelet(&world, NULL, NULL, NULL), (uint64_t)(world.speed * 0.2), 0,
              &outcome);
    check_steps(&world, "batch");
    sim_close(&world);
}

/* Layers of four tasks a device, each behind one of its own and one of another. */
static void test_graph(void **state)
{
    (void)state;
    enum { WIDTH = 4 * DEVICES };
    static filch_task tasks[MOST_TASKS];
    sim_world world;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = sim_codelet(&world, NULL, NULL, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t i = 0; i < task_count; ++i) {
        sim_ok(filch_graph_add(graph, &task, &tasks[i]));
        if (i >= WIDTH) {
            uint32_t other = (i / WIDTH - 1) * WIDTH + (7 * i + 1) % WIDTH;
            sim_ok(filch_graph_edge(graph, tasks[i - WIDTH], tasks[i]));
            if (other != i - WIDTH) {
                sim_ok(filch_graph_edge(graph, tasks[other], tasks[i]));
            }
        }
    }
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.info.done, task_count);
    check_steps(&world, "graph");
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* Where one works the others look now and then, no more. */
static void test_chain(void **state)
{
    (void)state;
    enum { LINKS = 20000 };
    sim_world world;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    filch_task last = 0, made;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = sim_codelet(&world, NULL, NULL, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t i = 0; i < LINKS; ++i) {
        sim_ok(filch_graph_add(graph, &task, &made));
        if (i != 0) {
            sim_ok(filch_graph_edge(graph, last, made));
        }
        last = made;
    }
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    check_steps(&world, "chain");
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_chain),
    };
    if (argc > 1) {
        task_count = (uint32_t)strtoul(argv[1], NULL, 0);
        task_count = task_count < MOST_TASKS ? task_count : MOST_TASKS;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
