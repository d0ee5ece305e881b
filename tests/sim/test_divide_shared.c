/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks on simulated devices that share one memory, as slices of a GPU do, with links and
 * workers that take time: one that everything waits for takes the time of all of them together,
 * whoever begins it; who has another memory has no part in it; and its tiles are held until it is
 * over, and no longer. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "sim.h"

#define MS 1e6 /* units of work that take a device of speed 1e9 a millisecond */
#define HOST "\"host\": {\"launch_us\": 6, \"see_us\": 3}"
#define DEVICE(name, speed, more) "{\"name\": \"" name "\", \"speed\": " speed ", " HOST more "}"
#define SLICES(a, b, c)                                                        \
    DEVICE("a", "8.8e8", ", \"memory\": 8000000" a)                            \
    ", " DEVICE("b", "2.4e8", ", \"shares\": \"a\"" b) ", " DEVICE("c", "8e7", \
                                                                   ", \"shares\": \"a\"" c)
#define MACHINE(devices) "{\"link\": {\"bandwidth\": 1e10}, \"devices\": [" devices "]}"

enum { ITEMS = 10000, BYTES = 1000000, MOST_LOSSES = 16, LEAST = 2 };

static sim_world world;
static sim_outcome outcome; /* too large for a stack */
static filch_losses losses[MOST_LOSSES];
static filch_report report;
static filch_codelet *divisible, *plain;

static int must_not_run(const filch_call *call)
{
    (void)call;
    fail_msg("a device with a memory of its own computes nothing");
    return 1;
}

/* Of one without items, of which the argument tells. */
static double work_of(const filch_call *call)
{
    const double *ms = call->args;
    return *ms * MS * (call->hi > call->lo ? (double)(call->hi - call->lo) / ITEMS : 1);
}

static filch_codelet *make_codelet(const char *name)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = must_not_run;
    desc.work = work_of;
    desc.arg_size = sizeof(double);
    sim_ok(filch_codelet_create(world.runtime, &desc, &codelet));
    return codelet;
}

static void open_machine(const char *text)
{
    sim_open_machine(&world, text, BENCH_POLICY_STEAL);
    world.speed = 12e8;
    divisible = make_codelet("divisible");
    plain = make_codelet("plain");
}

static filch_data *make_large(uint64_t bytes, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.flags = flags | FILCH_DATA_NO_BUFFER;
    desc.rows = desc.tile_rows = bytes;
    desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    return data;
}

static filch_data *make_data(uint32_t flags)
{
    return make_large(BYTES, flags);
}

static void add(filch_graph *graph, bool is_divisible, double ms, filch_data *data,
                filch_access_mode mode, uint32_t affinity)
{
    const filch_access access = {.data = data, .mode = mode};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = is_divisible ? divisible : plain;
    desc.args = &ms;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.items = is_divisible ? ITEMS : 0;
    desc.affinity = affinity;
    sim_ok(filch_graph_add(graph, &desc, NULL));
}

/* All of what is declared is done, once. */
static void run(filch_graph *graph, double ms)
{
    filch_job *job = NULL;
    double work = 0;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    (void)filch_job_wait(job, -1);
    report = (filch_report)FILCH_REPORT_INIT;
    sim_ok(filch_job_report(job, NULL, &report, losses, MOST_LOSSES));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.info.done + outcome.info.failed + outcome.info.skipped,
                     outcome.info.total);
    for (uint32_t d = 0; d < world.count; ++d) {
        const filch_losses *l = &losses[d];
        assert_int_equal(l->busy_ns + l->slow_ns + l->unshared_ns + l->dispatch_ns + l->data_ns +
                             l->spoiled_ns + l->starved_ns + l->held_ns + l->tail_ns + l->other_ns,
                         l->wall_ns);
        work += outcome.devices[d].work;
    }
    if (outcome.status == FILCH_OK) {
        assert_int_equal(outcome.info.done, outcome.info.total);
        assert_true(fabs(work - ms * MS) <= 1e-6 * ms * MS);
    }
}

static double excess(double ms)
{
    double found = outcome.info.seconds / (ms * MS / world.speed);
    print_message("%.4f of the area bound, %u pieces\n", found, (unsigned)report.total.pieces);
    return found;
}

/* One task by itself, wherever it begins, from the first time on, and then as it is known. */
static void test_alone(void **state)
{
    (void)state;
    for (uint32_t from = 0; from <= LEAST; ++from) {
        open_machine(MACHINE(SLICES("", "", "")));
        filch_data *data = make_data(0);
        filch_graph *graph = NULL;
        sim_ok(filch_graph_create(world.runtime, NULL, &graph));
        add(graph, true, 200, data, FILCH_WRITE, from + 1);
        for (int i = 0; i < 4; ++i) {
            run(graph, 200);
            assert_true(excess(200) <= 1.05);
            assert_int_equal(report.total.divided, 1);
            for (uint32_t d = 0; d < world.count; ++d) {
                assert_true(losses[d].pieces > 0);
            }
        }
        sim_ok(filch_graph_destroy(graph));
        sim_ok(filch_data_destroy(data));
        sim_close(&world);
    }
}

/* The same where what is written comes home, and is read by the next: the way home is no piece's.
 */
static void test_chain(void **state)
{
    (void)state;
    open_machine(MACHINE(SLICES("", "", "")));
    filch_data *data = make_data(FILCH_DATA_MANAGED), *other = make_data(0);
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    add(graph, false, 1, data, FILCH_WRITE, 1);
    add(graph, true, 100, data, FILCH_READWRITE, LEAST + 1);
    add(graph, false, 1, data, FILCH_READWRITE, 2);
    add(graph, true, 100, data, FILCH_READWRITE, 2);
    add(graph, false, 1, other, FILCH_WRITE, 1);
    add(graph, true, 100, other, FILCH_READWRITE, LEAST + 1);
    for (int i = 0; i < 4; ++i) {
        run(graph, 303);
        assert_true(excess(303) <= 1.1);
        assert_int_equal(report.total.divided, 3);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(data));
    sim_ok(filch_data_destroy(other));
    sim_close(&world);
}

/* Another GPU beside them takes no part, though it has nothing to do. */
static void test_memories(void **state)
{
    (void)state;
    open_machine(MACHINE(SLICES("", "", "") ", " DEVICE("d", "1e9", ", \"memory\": 8000000")));
    filch_data *data = make_data(0);
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    sim_ok(filch_device_withdraw(world.runtime, 3));
    add(graph, true, 200, data, FILCH_WRITE, LEAST + 1);
    for (int i = 0; i < 3; ++i) {
        run(graph, 200);
    }
    assert_true(excess(200) <= 1.05);
    sim_ok(filch_device_readmit(world.runtime, 3));
    for (int i = 0; i < 3; ++i) {
        run(graph, 200);
        assert_true(losses[3].pieces == 0);
        assert_true(report.total.pieces == 0 || outcome.devices[3].tiles == 0);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

/* --- Devices that change --- */

static void check_text(const char *text, double ms, double bound, double slack)
{
    open_machine(text);
    filch_data *data = make_data(0);
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    add(graph, true, ms, data, FILCH_WRITE, LEAST + 1);
    run(graph, ms);
    assert_int_equal(outcome.status, FILCH_OK);
    print_message("%.4f of the bound, %u pieces\n", outcome.info.seconds / bound,
                  (unsigned)report.total.pieces);
    /* A withdrawn slice ends the piece that it is at, which is more than the bound lets it do. */
    assert_true(outcome.info.seconds >= 0.94 * bound);
    assert_true(outcome.info.seconds <= slack * bound);
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

/* What is withdrawn ends the piece that it is at, the others go on; where nobody is left, the task
 * waits, with all that it holds. */
static void test_withdrawn(void **state)
{
    (void)state;
    /* 120 units of work in 100 ms, and then 112, or 32, a 100 ms. */
    check_text(MACHINE(SLICES("", "", ", \"leaves_at\": 0.1")), 232, 0.2, 1.06);
    check_text(MACHINE(SLICES(", \"leaves_at\": 0.1", "", "")), 152, 0.2, 1.08);
    /* All for a while. */
    check_text(MACHINE(SLICES(", \"leaves_at\": 0.1, \"returns_at\": 0.2",
                              ", \"leaves_at\": 0.1, \"returns_at\": 0.2",
                              ", \"leaves_at\": 0.1, \"returns_at\": 0.2")),
               240, 0.3, 1.06);
}

/* A lane alone fails, in the middle of a piece: so does the task, and what it held is free for the
 * next one. */
static void test_lost(void **state)
{
    (void)state;
    open_machine(MACHINE(SLICES("", "", ", \"lost_at\": 0.1")));
    filch_data *data = make_data(0);
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    add(graph, true, 240, data, FILCH_WRITE, LEAST + 1);
    add(graph, false, 1, data, FILCH_READ, 1);
    run(graph, 241);
    assert_int_not_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.failed, 1);
    assert_int_equal(outcome.info.skipped, 1);
    assert_true(outcome.info.seconds <= 0.14);
    sim_ok(filch_graph_destroy(graph));
    filch_data *large = make_large(7900000, 0);
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    add(graph, false, 1, large, FILCH_WRITE, 1);
    run(graph, 1);
    assert_int_equal(outcome.status, FILCH_OK);
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(large));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),    cmocka_unit_test(test_chain),
        cmocka_unit_test(test_memories), cmocka_unit_test(test_withdrawn),
        cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
