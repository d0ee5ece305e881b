/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that go offline and come back, by the host or as their description says: what waits
 * goes to the others under every policy, what nobody else can do waits, and the time that it all
 * takes is what the devices that are there need. */
#include <math.h>

#include "sim.h"

#define UNITS UINT64_C(1000000000) /* a second's work at speed 1e9 */
enum { TASKS = 400, CHAIN = 20 };

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

/* --- As a description has it --- */

/* What is in flight as it leaves ends; what is not waits for it where there is nobody else. */
static void test_alone(void **state)
{
    (void)state;
    run("{\"devices\": [{\"speed\": 1e9, \"leaves_at\": 0.6, \"returns_at\": 2, \"window\": 1}]}",
        BENCH_POLICY_STEAL, UNITS, UNITS / 4);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, UNITS);
    assert_int_equal(elapsed_ns(), 2250000000); /* the third tile ends at 0.75 s */
    /* Longer than the work takes. */
    run("{\"devices\": [{\"speed\": 1e9, \"leaves_at\": 1.5}]}", BENCH_POLICY_STEAL, UNITS,
        UNITS / 4);
    assert_int_equal(elapsed_ns(), 1000000000);
}

#define PAIR(times)                                        \
    "{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5}," \
    "{\"speed\": 1e9, \"overhead_us\": 5" times "}]}"

static void expect_bound(const char *text, bench_policy policy, double bound, double slack)
{
    run(text, policy, UNITS / 4, 0);
    print_message("policy %d: %.4f of the bound\n", (int)policy, outcome.info.seconds / bound);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, UNITS / 4);
    assert_true(outcome.info.seconds >= bound / slack);
    assert_true(outcome.info.seconds <= slack * bound);
}

/* 0.05 s of both, then of one. Under the static policies, which move nothing else, too; others have
 * larger chunks in flight as it leaves. */
static void test_leaves(void **state)
{
    (void)state;
    double bound = 0.05 + 0.25 - 2 * 0.05;
    for (int policy = BENCH_POLICY_STEAL; policy <= BENCH_POLICY_EARLIEST; ++policy) {
        bool is_fine = policy == BENCH_POLICY_STEAL || policy == BENCH_POLICY_STATIC ||
                       policy == BENCH_POLICY_PERFECT;
        expect_bound(PAIR(", \"leaves_at\": 0.05"), (bench_policy)policy, bound,
                     is_fine ? 1.02 : 1.2);
        assert_true(outcome.devices[1].items < UNITS / 4 * 35 / 100);
        assert_true(outcome.devices[1].items > 0);
    }
}

/* Half-way, and back: it takes part again at once. */
static void test_returns(void **state)
{
    (void)state;
    double bound = 0.03 + (0.25 + 0.03) / 2;
    expect_bound(PAIR(", \"leaves_at\": 0.05, \"returns_at\": 0.08"), BENCH_POLICY_STEAL,
                 0.015 + 0.125, 1.02);
    assert_true(outcome.devices[1].items > UNITS / 4 * 40 / 100);
    assert_true((double)outcome.devices[1].items <= (bound - 0.03) * 1e9);
}

/* A batch that begins while it is offline gives it no share, and is robbed by it later. */
static void test_later_job(void **state)
{
    static const char text[] = PAIR(", \"leaves_at\": 0.01, \"returns_at\": 0.6");
    (void)state;
    for (int policy = BENCH_POLICY_STEAL; policy <= BENCH_POLICY_EARLIEST; ++policy) {
        sim_world world;
        sim_open_machine(&world, text, (bench_policy)policy);
        filch_codelet *codelet = sim_codelet(&world, NULL, NULL, NULL);
        sim_batch(&world, codelet, UNITS / 4, 0, &outcome);
        assert_true(outcome.info.seconds < 0.3); /* it is offline as this ends */
        sim_batch(&world, codelet, UNITS / 10, 0, &outcome);
        assert_int_equal(outcome.info.done, UNITS / 10);
        assert_int_equal(outcome.devices[1].tiles, 0);
        sim_close(&world);
    }
}

/* --- Graphs --- */

/* Tasks of a millisecond each: independent ones, and one chain. */
static filch_graph *make_graph(const sim_world *world, filch_codelet *codelet,
                               filch_graph_kind kind, bool is_chain, uint64_t *cell)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_access access = {.mode = FILCH_READWRITE};
    desc.kind = kind;
    sim_ok(filch_graph_create(world->runtime, &desc, &graph));
    task.codelet = codelet;
    if (is_chain) {
        filch_data_desc data = FILCH_DATA_DESC_INIT;
        data.ptr = cell;
        data.element = sizeof *cell;
        data.rows = 1;
        sim_ok(filch_data_create(world->runtime, &data, &access.data));
        task.accesses = &access;
        task.access_count = 1;
    }
    if (kind == FILCH_GRAPH_OPEN) {
        return graph;
    }
    for (int i = 0; i < (is_chain ? CHAIN : TASKS); ++i) {
        sim_ok(filch_graph_add(graph, &task, NULL));
    }
    return graph;
}

#define TRIO(times) "{\"devices\": [{\"speed\": 1000, \"count\": 2}, {\"speed\": 1000" times "}]}"

/* Tasks of a millisecond on two devices, of which one may end with the last that was in flight. */
static void expect_even(uint64_t tasks)
{
    assert_true(elapsed_ns() >= tasks / 2 * 1000000 && elapsed_ns() <= (tasks / 2 + 1) * 1000000);
}

/* Each policy, each task once; 200 tasks are done as the third leaves, the rest takes the others as
 * long as it must. */
static void test_graph(void **state)
{
    (void)state;
    for (int policy = BENCH_POLICY_STEAL; policy <= BENCH_POLICY_EARLIEST; ++policy) {
        sim_world world;
        filch_job *job = NULL;
        sim_open_machine(&world, TRIO(", \"leaves_at\": 0.0505"), (bench_policy)policy);
        filch_graph *graph = make_graph(&world, sim_codelet(&world, NULL, NULL, NULL),
                                        FILCH_GRAPH_CLOSED, false, NULL);
        sim_ok(filch_graph_submit(graph, NULL, &job));
        sim_finish(job, &outcome);
        print_message("policy %d: %.4f s\n", policy, outcome.info.seconds);
        assert_int_equal(outcome.status, FILCH_OK);
        assert_int_equal(outcome.info.done, TASKS);
        assert_true(outcome.devices[2].tiles <= 53);
        /* 51 to 53 there, the others in pairs; nobody may be idle for more than two tasks. */
        assert_true(outcome.info.seconds >= 0.1735 && outcome.info.seconds <= 0.178);
        /* Once more, without it, whosever homes they are. */
        sim_ok(filch_graph_submit(graph, NULL, &job));
        sim_finish(job, &outcome);
        assert_int_equal(outcome.info.done, TASKS);
        assert_int_equal(outcome.devices[2].tiles, 0);
        expect_even(TASKS);
        sim_ok(filch_graph_destroy(graph));
        sim_close(&world);
    }
}

/* --- By the host --- */

static void expect_presence(const sim_world *world, uint32_t device, filch_presence expected)
{
    filch_presence presence = FILCH_PRESENCE_LOST;
    sim_ok(filch_device_presence(world->runtime, device, &presence));
    assert_int_equal(presence, expected);
}

static void test_withdrawn_between_jobs(void **state)
{
    (void)state;
    sim_world world;
    sim_open_machine(&world, PAIR(""), BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, NULL);
    sim_ok(filch_device_withdraw(world.runtime, 1));
    assert_int_equal(filch_device_withdraw(world.runtime, 1), FILCH_WRONG_STATE);
    sim_batch(&world, codelet, UNITS / 10, 0, &outcome);
    assert_int_equal(outcome.devices[1].tiles, 0);
    expect_presence(&world, 1, FILCH_PRESENCE_WITHDRAWN);
    expect_presence(&world, 0, FILCH_PRESENCE_THERE);
    sim_ok(filch_device_readmit(world.runtime, 1));
    assert_int_equal(filch_device_readmit(world.runtime, 1), FILCH_WRONG_STATE);
    expect_presence(&world, 1, FILCH_PRESENCE_THERE);
    sim_batch(&world, codelet, UNITS / 10, 0, &outcome);
    assert_true(outcome.devices[1].items > UNITS / 10 * 48 / 100);
    assert_true(outcome.info.seconds < 0.051);
    sim_close(&world);
}

/* Nobody is there: the wait says so; a readmission, or a cancellation, ends it. */
static void test_all_withdrawn(void **state)
{
    (void)state;
    for (int policy = BENCH_POLICY_STEAL; policy <= BENCH_POLICY_EARLIEST; ++policy) {
        sim_world world;
        filch_job *jobs[3];
        filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
        uint64_t cell = 0;
        sim_open_machine(&world, PAIR(""), (bench_policy)policy);
        desc.codelet = sim_codelet(&world, NULL, NULL, NULL);
        desc.n = 1000;
        filch_graph *free_graph = make_graph(&world, desc.codelet, FILCH_GRAPH_CLOSED, false, NULL);
        filch_graph *chain = make_graph(&world, desc.codelet, FILCH_GRAPH_CLOSED, true, &cell);
        for (int cancels = 0; cancels < 2; ++cancels) {
            sim_ok(filch_device_withdraw(world.runtime, 0));
            sim_ok(filch_device_withdraw(world.runtime, 1));
            sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &jobs[0]));
            sim_ok(filch_graph_submit(free_graph, NULL, &jobs[1]));
            sim_ok(filch_graph_submit(chain, NULL, &jobs[2]));
            for (int i = 0; i < 3; ++i) {
                assert_int_equal(filch_job_wait(jobs[i], -1), FILCH_TIMEOUT);
            }
            assert_int_equal(filch_runtime_destroy(world.runtime), FILCH_BUSY);
            for (int i = 0; cancels != 0 && i < 3; ++i) {
                sim_ok(filch_job_cancel(jobs[i]));
                assert_int_equal(filch_job_wait(jobs[i], -1), FILCH_CANCELLED);
            }
            sim_ok(filch_device_readmit(world.runtime, 1));
            for (int i = 0; i < 3; ++i) {
                sim_finish(jobs[i], &outcome);
                assert_int_equal(outcome.status, cancels ? FILCH_CANCELLED : FILCH_OK);
                assert_int_equal(outcome.devices[0].tiles, 0);
                assert_int_equal(outcome.info.done + outcome.info.skipped, outcome.info.total);
            }
            sim_ok(filch_device_readmit(world.runtime, 0));
        }
        sim_ok(filch_graph_destroy(free_graph));
        sim_ok(filch_graph_destroy(chain));
        sim_close(&world);
    }
}

static void test_open_graph(void **state)
{
    (void)state;
    sim_world world;
    filch_job *job = NULL;
    sim_open_machine(&world, TRIO(""), BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, NULL);
    filch_graph *graph = make_graph(&world, codelet, FILCH_GRAPH_OPEN, false, NULL);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = codelet;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    for (int i = 0; i < 100; ++i) {
        sim_ok(filch_graph_add(graph, &task, NULL));
    }
    sim_ok(filch_device_withdraw(world.runtime, 2));
    for (int i = 0; i < 100; ++i) {
        sim_ok(filch_graph_add(graph, &task, NULL));
    }
    sim_ok(filch_graph_close(graph));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.info.done, 200);
    assert_int_equal(outcome.devices[2].tiles, 0);
    expect_even(200);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* It waits, though another device is there, which cannot run it. */
static void test_only_it_can(void **state)
{
    (void)state;
    for (int policy = BENCH_POLICY_STEAL; policy <= BENCH_POLICY_EARLIEST; ++policy) {
        run("{\"devices\": [{\"speed\": 1e9, \"implements\": [\"cuda\"]}, {\"speed\": 1e9, "
            "\"leaves_at\": 0.1, \"returns_at\": 5, \"window\": 1}]}",
            (bench_policy)policy, UNITS, UNITS);
        assert_int_equal(outcome.status, FILCH_OK);
        assert_int_equal(elapsed_ns(), 1000000000);
        run("{\"devices\": [{\"speed\": 1e9, \"implements\": [\"cuda\"]}, {\"speed\": 1e9, "
            "\"leaves_at\": 0.1, \"returns_at\": 5, \"window\": 1}]}",
            (bench_policy)policy, UNITS, UNITS / 4);
        assert_int_equal(outcome.status, FILCH_OK);
        assert_int_equal(outcome.devices[0].tiles, 0);
        assert_int_equal(outcome.info.done, UNITS);
        assert_true(outcome.info.seconds > 5.49);
    }
}

static void test_bad_calls(void **state)
{
    (void)state;
    sim_world world;
    filch_presence presence;
    sim_open_machine(&world, "{\"devices\": [{\"speed\": 1}, {\"speed\": 1, \"lost_at\": 1}]}",
                     BENCH_POLICY_STEAL);
    assert_int_equal(filch_device_withdraw(NULL, 0), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_device_readmit(NULL, 0), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_device_presence(NULL, 0, &presence), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_device_withdraw(world.runtime, 2), FILCH_BAD_INDEX);
    assert_int_equal(filch_device_readmit(world.runtime, 2), FILCH_BAD_INDEX);
    assert_int_equal(filch_device_presence(world.runtime, 2, &presence), FILCH_BAD_INDEX);
    assert_int_equal(filch_device_presence(world.runtime, 0, NULL), FILCH_INVALID_ARGUMENT);
    /* Withdrawn, then lost: it is lost. */
    sim_ok(filch_device_withdraw(world.runtime, 1));
    sim_batch(&world, sim_codelet(&world, NULL, NULL, NULL), 2, 1, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    expect_presence(&world, 1, FILCH_PRESENCE_LOST);
    assert_int_equal(filch_device_readmit(world.runtime, 1), FILCH_DEVICE_LOST);
    assert_int_equal(filch_device_withdraw(world.runtime, 1), FILCH_DEVICE_LOST);
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),         cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_returns),       cmocka_unit_test(test_later_job),
        cmocka_unit_test(test_graph),         cmocka_unit_test(test_withdrawn_between_jobs),
        cmocka_unit_test(test_all_withdrawn), cmocka_unit_test(test_open_graph),
        cmocka_unit_test(test_only_it_can),   cmocka_unit_test(test_bad_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
