/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs on the virtual clock: who runs what, in which order, and when. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define OVERHEAD_US 5.0
#define MS 1e6 /* units of work that take a device of speed 1e9 a millisecond */

static sim_outcome outcome; /* too large for a stack */

typedef struct task_args {
    double work;
    uint32_t number;
} task_args;

enum { MOST_TASKS = 4096 };
static uint32_t sequence[MOST_TASKS]; /* numbers in the order of starting */
static uint32_t device_of[MOST_TASKS];
static uint32_t started;

static int run_task(const filch_call *call)
{
    const task_args *args = call->args;
    device_of[args->number] = call->device;
    sequence[started++ % MOST_TASKS] = args->number;
    return 0;
}

static double work_of(const filch_call *call)
{
    return ((const task_args *)call->args)->work;
}

static double second_of_work(const filch_call *call)
{
    (void)call;
    return 1e10;
}

static filch_codelet *make_codelet(const sim_world *world)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "task";
    desc.host = run_task;
    desc.work = work_of;
    desc.arg_size = sizeof(task_args);
    sim_ok(filch_codelet_create(world->runtime, &desc, &codelet));
    return codelet;
}

static filch_graph *make_graph(const sim_world *world, filch_priorities priorities)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.priorities = priorities;
    sim_ok(filch_graph_create(world->runtime, &desc, &graph));
    started = 0;
    return graph;
}

static filch_task add(filch_graph *graph, filch_codelet *codelet, double work, uint32_t number,
                      uint32_t affinity, int32_t priority)
{
    task_args args;
    memset(&args, 0, sizeof args);
    args.work = work;
    args.number = number;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = codelet;
    desc.args = &args;
    desc.affinity = affinity;
    desc.priority = priority;
    sim_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

static void run_graph(filch_graph *graph)
{
    filch_job *job = NULL;
    started = 0;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, outcome.info.total);
}

/* Independent tasks, all placed on the slower device: the faster one steals its part of them,
 * whether they are roots or were released by one task. */
static void check_theft(bool has_root)
{
    enum { TASKS = 1000 };
    static const sim_kind kinds[] = {{1e9, 1, OVERHEAD_US, 1, 0}, {1e8, 1, OVERHEAD_US, 1, 0}};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    filch_task root = has_root ? add(graph, codelet, 0, TASKS, 2, 0) : 0;
    for (uint32_t i = 0; i < TASKS; ++i) {
        filch_task task = add(graph, codelet, MS, i, 2, 0);
        if (has_root) {
            sim_ok(filch_graph_edge(graph, root, task));
        }
    }
    for (int run = 0; run < 2; ++run) {
        run_graph(graph);
        /* Area bound, and the tiles that the slow device holds at the end. */
        double bound = TASKS * MS / world.speed;
        print_message("theft, %s, run %d: %.4f of the area bound, %u of %d tasks on the slow one\n",
                      has_root ? "released" : "roots", run + 1, outcome.info.seconds / bound,
                      (unsigned)outcome.devices[1].tiles, TASKS);
        assert_true(outcome.info.seconds <= bound * 1.01 + 2 * 0.010);
        assert_true(outcome.devices[0].tiles >= TASKS * 8 / 10);
        if (!has_root) { /* else whoever ran the root has them all at first */
            assert_true(outcome.devices[0].stolen_in >= TASKS / 2);
        }
        assert_int_equal(outcome.devices[0].stolen_in + outcome.devices[1].stolen_in,
                         outcome.devices[0].stolen_out + outcome.devices[1].stolen_out);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

static void test_theft_of_roots(void **state)
{
    (void)state;
    check_theft(false);
}

static void test_theft_of_released(void **state)
{
    (void)state;
    check_theft(true);
}

/* Under the static policy everything stays where affinity put it. */
static void test_static_policy(void **state)
{
    (void)state;
    enum { TASKS = 60 };
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 3, 0};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STATIC);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    filch_task before = 0;
    for (uint32_t i = 0; i < TASKS; ++i) {
        filch_task task = add(graph, codelet, MS, i, 1 + i % 3, 0);
        if (i % 7 != 0) {
            sim_ok(filch_graph_edge(graph, before, task));
        }
        before = task;
    }
    run_graph(graph);
    for (uint32_t i = 0; i < TASKS; ++i) {
        assert_int_equal(device_of[i], i % 3);
    }
    for (uint32_t d = 0; d < 3; ++d) {
        assert_int_equal(outcome.devices[d].stolen_in, 0);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* The slow device, 100 times slower, takes no task once it knows: the fast one would be done with
 * all it has before. */
static void test_hold_off(void **state)
{
    (void)state;
    enum { TASKS = 50 };
    static const sim_kind kinds[] = {{1e9, 0, OVERHEAD_US, 1, 0}, {1e7, 0, OVERHEAD_US, 1, 0}};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    for (uint32_t i = 0; i < TASKS; ++i) {
        add(graph, codelet, MS, i, 1, 0);
    }
    run_graph(graph); /* speeds are known afterwards */
    for (int run = 0; run < 3; ++run) {
        run_graph(graph);
        assert_int_equal(outcome.devices[0].tiles, TASKS);
        assert_int_equal(outcome.devices[1].tiles, 0);
        assert_true(outcome.info.seconds < TASKS * 0.001 * 1.01);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* A device that is at something else for long is not waited for, however fast it is. */
static void test_board_beside_a_batch(void **state)
{
    (void)state;
    enum { TASKS = 10 };
    static const sim_kind kinds[] = {{1e10, 0, 0, 1, 1}, {1e9, 0, 0, 1, 1}};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    for (uint32_t i = 0; i < TASKS; ++i) {
        add(graph, codelet, 10 * MS, i, 0, 0);
    }
    for (int run = 0; run < 3; ++run) {
        run_graph(graph); /* both know how fast they are */
    }
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = sim_codelet(&world, NULL, second_of_work, NULL);
    desc.n = 1;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    assert_int_equal(filch_job_wait(job, 0.001), FILCH_TIMEOUT);
    run_graph(graph);
    print_message("graph beside a batch: %.4f s\n", outcome.info.seconds);
    assert_true(outcome.info.seconds < 0.2); /* of one second */
    assert_int_equal(outcome.devices[1].tiles, TASKS);
    sim_ok(filch_job_wait(job, -1));
    sim_ok(filch_job_release(job));
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* Of tasks as urgent, a device runs those that prefer it. */
static void test_affinity(void **state)
{
    (void)state;
    enum { TASKS = 16 };
    static const sim_kind kind = {1e9, 0, OVERHEAD_US, 2, 1};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    for (uint32_t i = 0; i < TASKS; ++i) {
        add(graph, codelet, MS, i, 2 - i % 2, 0);
    }
    for (int run = 0; run < 2; ++run) {
        run_graph(graph);
        for (uint32_t i = 0; i < TASKS; ++i) {
            assert_int_equal(device_of[i], 1 - i % 2);
        }
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* In deques, where a policy leaves all to the default rules: the one task that waits for a device
 * which is at another is for the other device, as fast, that has nothing to do. */
static void test_theft_of_one(void **state)
{
    (void)state;
    const filch_policy_desc nothing = FILCH_POLICY_DESC_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    sim_world world;
    config.custom_policy = &nothing;
    sim_open_text(&world, "{\"devices\": [{\"speed\": 1e9, \"window\": 1, \"count\": 2}]}",
                  &config);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    filch_task root = add(graph, codelet, MS, 0, 0, 0);
    for (uint32_t i = 1; i <= 2; ++i) {
        sim_ok(filch_graph_edge(graph, root, add(graph, codelet, MS, i, 0, 0)));
    }
    for (int run = 0; run < 3; ++run) {
        run_graph(graph); /* from the second on, both know how long tasks take */
    }
    assert_true(outcome.info.seconds < 0.00201);
    assert_int_equal(outcome.devices[0].stolen_in + outcome.devices[1].stolen_in, 1);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* One device, caller's priorities: ready tasks run from the highest level down. */
static void test_priorities(void **state)
{
    (void)state;
    enum { TASKS = 33 };
    static const sim_kind kind = {1e9, 0, OVERHEAD_US, 1, 1};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_CALLER);
    filch_codelet *codelet = make_codelet(&world);
    filch_task root = add(graph, codelet, MS, TASKS, 0, 0);
    int32_t priorities[TASKS];
    for (uint32_t i = 0; i < TASKS; ++i) {
        priorities[i] = (int32_t)(i * 7 % 8);
        sim_ok(filch_graph_edge(graph, root, add(graph, codelet, MS, i, 0, priorities[i])));
    }
    run_graph(graph);
    assert_int_equal(sequence[0], TASKS);
    for (uint32_t i = 2; i <= TASKS; ++i) {
        assert_true(priorities[sequence[i]] <= priorities[sequence[i - 1]]);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* By rank the long chain goes first, so that it hides the short tasks. */
static void test_critical_path(void **state)
{
    (void)state;
    enum { CHAIN = 20, SHORT = 20 };
    static const sim_kind kind = {1e9, 0, 0, 2, 1};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    filch_task root = add(graph, codelet, MS, CHAIN + SHORT, 0, 0), before = root;
    for (uint32_t i = 0; i < SHORT; ++i) {
        sim_ok(filch_graph_edge(graph, root, add(graph, codelet, MS, CHAIN + i, 0, 0)));
    }
    for (uint32_t i = 0; i < CHAIN; ++i) {
        filch_task task = add(graph, codelet, MS, i, 0, 0);
        sim_ok(filch_graph_edge(graph, before, task));
        before = task;
    }
    run_graph(graph);
    print_message("critical path: %.4f of its length\n", outcome.info.seconds / (0.001 * 21));
    assert_true(outcome.info.seconds >= 0.001 * (CHAIN + 1));
    assert_true(outcome.info.seconds <= 0.001 * (CHAIN + 2));
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* Waiting no longer than the deadline moves the clock no further than the deadline. */
static void test_timeouts(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 0, 0, 1, 0};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    add(graph, make_codelet(&world), 1000 * MS, 0, 0, 0);
    filch_job *job = NULL;
    filch_job_info info = {.size = sizeof info};
    sim_ok(filch_graph_submit(graph, NULL, &job));
    assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
    for (int i = 0; i <= 4; ++i) {
        assert_int_equal(filch_job_wait(job, i == 0 ? 0 : 0.2), FILCH_TIMEOUT);
        sim_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.status, FILCH_NOT_READY);
        assert_true(fabs(info.seconds - 0.2 * i) < 1e-8);
    }
    assert_int_equal(filch_runtime_drain(world.runtime, 0.1), FILCH_TIMEOUT);
    sim_ok(filch_job_wait(job, 10)); /* returns when the job ends, not at the deadline */
    sim_ok(filch_job_stats(job, &info, NULL, 0));
    assert_true(fabs(info.seconds - 1) < 1e-8);
    sim_ok(filch_job_release(job));

    /* The next job starts where the clock stood, also after a wait that found nothing to do. */
    sim_ok(filch_runtime_drain(world.runtime, 5));
    run_graph(graph);
    assert_true(fabs(outcome.info.seconds - 1) < 1e-8);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* A wait for an open graph that nobody closes ends at its deadline. */
static void test_open_graph_timeout(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 0, 0, 2, 0};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    desc.kind = FILCH_GRAPH_OPEN;
    started = 0;
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    sim_ok(filch_graph_submit(graph, NULL, &job));
    filch_codelet *codelet = make_codelet(&world);
    add(graph, codelet, MS, 0, 0, 0);
    assert_int_equal(filch_job_wait(job, 1), FILCH_TIMEOUT);
    assert_int_equal(started, 1);
    add(graph, codelet, MS, 1, 0, 0);
    sim_ok(filch_graph_close(graph));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, 2);
    assert_true(fabs(outcome.info.seconds - 1.001) < 1e-8);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* A job that was submitted after an open graph and waits for it is no obstacle to the graph's next
 * handle, which the job wants too. */
static void test_open_graph_overtakes(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 0, 0, 2, 0};
    static double cells[2];
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_codelet *codelet = make_codelet(&world);
    filch_access accesses[2] = {{.mode = FILCH_READWRITE}, {.mode = FILCH_READWRITE}};
    for (int i = 0; i < 2; ++i) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = &cells[i];
        desc.element = sizeof cells[i];
        desc.rows = 1;
        sim_ok(filch_data_create(world.runtime, &desc, &accesses[i].data));
    }
    filch_graph_desc open = FILCH_GRAPH_DESC_INIT;
    filch_graph *graphs[2];
    filch_job *jobs[2];
    open.kind = FILCH_GRAPH_OPEN;
    started = 0;
    sim_ok(filch_graph_create(world.runtime, &open, &graphs[0]));
    sim_ok(filch_graph_create(world.runtime, NULL, &graphs[1]));
    sim_ok(filch_graph_submit(graphs[0], NULL, &jobs[0]));
    task_args args;
    memset(&args, 0, sizeof args);
    args.work = MS;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.args = &args;
    desc.accesses = &accesses[0];
    desc.access_count = 1;
    sim_ok(filch_graph_add(graphs[0], &desc, NULL));
    args.number = 2;
    desc.access_count = 2;
    sim_ok(filch_graph_add(graphs[1], &desc, NULL));
    sim_ok(filch_graph_submit(graphs[1], NULL, &jobs[1]));
    args.number = 1;
    desc.accesses = &accesses[1];
    desc.access_count = 1;
    sim_ok(filch_graph_add(graphs[0], &desc, NULL));
    assert_int_equal(filch_job_wait(jobs[1], 1), FILCH_TIMEOUT); /* the open graph may use both */
    sim_ok(filch_graph_close(graphs[0]));
    for (int i = 0; i < 2; ++i) {
        sim_ok(filch_job_wait(jobs[i], 1));
        sim_ok(filch_job_release(jobs[i]));
        sim_ok(filch_graph_destroy(graphs[i]));
    }
    assert_int_equal(started, 3);
    assert_int_equal(sequence[2], 2); /* last, as it was submitted */
    sim_close(&world);
}

/* The same graph: the same schedule, to the last task. */
static void record_wavefront(uint32_t *order, uint32_t *where, double *seconds)
{
    enum { SIDE = 24 };
    static const sim_kind kinds[] = {{1e9, 1e9, OVERHEAD_US, 3, 0},
                                     {3e9, 1e9, OVERHEAD_US, 2, 0},
                                     {2e8, 3e9, OVERHEAD_US, 1, 0}};
    sim_world world;
    sim_open(&world, kinds, 3, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    static filch_task names[SIDE][SIDE];
    for (uint32_t i = 0; i < SIDE; ++i) {
        for (uint32_t k = 0; k < SIDE; ++k) {
            names[i][k] = add(graph, codelet, MS * (1 + (i * 31 + k * 17) % 5), i * SIDE + k, 0, 0);
            if (i != 0) {
                sim_ok(filch_graph_edge(graph, names[i - 1][k], names[i][k]));
            }
            if (k != 0) {
                sim_ok(filch_graph_edge(graph, names[i][k - 1], names[i][k]));
            }
        }
    }
    run_graph(graph);
    assert_int_equal(started, SIDE * SIDE);
    memcpy(order, sequence, SIDE * SIDE * sizeof *order);
    memcpy(where, device_of, SIDE * SIDE * sizeof *where);
    *seconds = outcome.info.seconds;
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

static void test_determinism(void **state)
{
    (void)state;
    static uint32_t order[2][MOST_TASKS], where[2][MOST_TASKS];
    double seconds[2];
    for (int i = 0; i < 2; ++i) {
        record_wavefront(order[i], where[i], &seconds[i]);
    }
    assert_memory_equal(order[0], order[1], sizeof order[0]);
    assert_memory_equal(where[0], where[1], sizeof where[0]);
    assert_memory_equal(&seconds[0], &seconds[1], sizeof seconds[0]);
}

/* A graph queued behind itself: devices do not stand idle between the runs, which take as long as
 * runs after waits. */
static void test_queue_of_runs(void **state)
{
    (void)state;
    enum { TASKS = 8, RUNS = 20 };
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 2, 0};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_graph *graph = make_graph(&world, FILCH_PRIORITIES_RANK);
    filch_codelet *codelet = make_codelet(&world);
    for (uint32_t i = 0; i < TASKS; ++i) {
        add(graph, codelet, MS, i, 1 + i % 2, 0);
    }
    run_graph(graph);
    run_graph(graph);
    double alone = outcome.info.seconds;
    filch_job *jobs[RUNS], *cancelled = NULL;
    started = 0;
    for (int i = 0; i < RUNS; ++i) {
        sim_ok(filch_graph_submit(graph, NULL, &jobs[i]));
        if (i == RUNS / 2) {
            sim_ok(filch_graph_submit(graph, NULL, &cancelled));
        }
    }
    sim_ok(filch_job_cancel(cancelled));
    assert_int_equal(filch_job_status(cancelled), FILCH_CANCELLED);
    sim_finish(cancelled, &outcome);
    assert_int_equal(outcome.info.skipped, TASKS);
    assert_true(outcome.info.seconds == 0);
    assert_int_equal(filch_job_wait(jobs[RUNS - 1], (RUNS - 0.5) * alone), FILCH_TIMEOUT);
    assert_int_equal(filch_job_status(jobs[RUNS - 2]), FILCH_OK);
    sim_ok(filch_job_wait(jobs[RUNS - 1], 0.5001 * alone));
    assert_int_equal(started, RUNS * TASKS);
    for (int i = 0; i < RUNS; ++i) {
        sim_finish(jobs[i], &outcome);
        assert_int_equal(outcome.status, FILCH_OK);
        assert_int_equal(outcome.info.done, TASKS);
        assert_true(fabs(outcome.info.seconds - alone) < 1e-4 * alone);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theft_of_roots),       cmocka_unit_test(test_theft_of_released),
        cmocka_unit_test(test_static_policy),        cmocka_unit_test(test_hold_off),
        cmocka_unit_test(test_theft_of_one),         cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_board_beside_a_batch), cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_critical_path),        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_open_graph_timeout),   cmocka_unit_test(test_open_graph_overtakes),
        cmocka_unit_test(test_determinism),          cmocka_unit_test(test_queue_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
