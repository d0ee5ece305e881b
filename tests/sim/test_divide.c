/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks of graphs on the virtual clock: one that everything waits for, or that is the
 * last, takes the time of all devices together, whatever these do meanwhile; each item runs once,
 * and the same graph runs the same way each time. */
#include <math.h>
#include <string.h>

#include "sim.h"

#define OVERHEAD_US 5.0
#define MS 1e6 /* units of work that take a device of speed 1e9 a millisecond */

enum { MOST_ITEMS = 1 << 16, MOST_LOSSES = 16 };

static sim_world world;
static sim_outcome outcome; /* too large for a stack */
static filch_losses losses[MOST_LOSSES];
static filch_report report;
static uint32_t runs[MOST_ITEMS]; /* of each item */
static uint32_t calls, bad_cuts;
static uint64_t bad_item;     /* fails, if below MOST_ITEMS */
static filch_job *cancel_job; /* by the item */
static uint64_t cancel_item;

/* A task is so many items of so much work; one without items is one of them. */
typedef struct job_args {
    double work; /* of an item */
    uint64_t items, grain;
} job_args;

static int run_task(const filch_call *call)
{
    const job_args *args = call->args;
    int code = 0;
    ++calls;
    if (args->items == 0) {
        return call->lo == 0 && call->hi == 0 ? 0 : 99;
    }
    bad_cuts += call->lo % args->grain != 0 || call->hi > args->items || call->lo >= call->hi ||
                (call->hi % args->grain != 0 && call->hi != args->items);
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        ++runs[i];
        code = i == bad_item ? 7 : code;
        if (cancel_job != NULL && i == cancel_item) {
            (void)filch_job_cancel(cancel_job);
        }
    }
    return code;
}

static double work_of(const filch_call *call)
{
    const job_args *args = call->args;
    return args->work * (double)(call->hi > call->lo ? call->hi - call->lo : 1);
}

static filch_codelet *make_codelet(void)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "items";
    desc.host = run_task;
    desc.work = work_of;
    desc.arg_size = sizeof(job_args);
    sim_ok(filch_codelet_create(world.runtime, &desc, &codelet));
    return codelet;
}

static filch_task add(filch_graph *graph, filch_codelet *codelet, double work, uint64_t items,
                      uint64_t grain, bool is_divisible)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    job_args args;
    memset(&args, 0, sizeof args);
    args = (job_args){.work = work, .items = is_divisible ? items : 0, .grain = grain};
    if (!is_divisible) {
        args.work *= (double)items;
    }
    desc.codelet = codelet;
    desc.args = &args;
    desc.items = args.items;
    desc.grain = is_divisible ? grain : 0;
    sim_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

enum { BEFORE = 40, ITEMS = 10000, AFTER = 40 };

/* Many tasks of half a millisecond, then one of `ms`, then many again if has_after. */
static filch_graph *make_fan(filch_codelet *codelet, double ms, bool is_divisible, bool has_after,
                             double *work)
{
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    filch_task middle = add(graph, codelet, ms * MS / ITEMS, ITEMS, 1, is_divisible);
    *work = ms * MS;
    for (uint32_t i = 0; i < BEFORE + (has_after ? AFTER : 0); ++i) {
        filch_task task = add(graph, codelet, MS / 2, 1, 1, false);
        *work += MS / 2;
        if (i < BEFORE) {
            sim_ok(filch_graph_edge(graph, task, middle));
        } else {
            sim_ok(filch_graph_edge(graph, middle, task));
        }
    }
    return graph;
}

static void run_graph(filch_graph *graph)
{
    filch_job *job = NULL;
    memset(runs, 0, sizeof runs);
    calls = bad_cuts = 0;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    (void)filch_job_wait(job, -1);
    report = (filch_report)FILCH_REPORT_INIT;
    sim_ok(filch_job_report(job, NULL, &report, losses, MOST_LOSSES));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.info.done + outcome.info.failed + outcome.info.skipped,
                     outcome.info.total);
    assert_int_equal(bad_cuts, 0);
    for (uint32_t d = 0; d < world.count; ++d) {
        const filch_losses *l = &losses[d];
        assert_int_equal(l->busy_ns + l->slow_ns + l->unshared_ns + l->dispatch_ns + l->data_ns +
                             l->spoiled_ns + l->starved_ns + l->held_ns + l->tail_ns + l->other_ns,
                         l->wall_ns);
    }
    assert_true(report.area_ns <= report.wall_ns);
}

static void check_once(void)
{
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, outcome.info.total);
    for (uint32_t i = 0; i < ITEMS; ++i) {
        assert_int_equal(runs[i], 1);
    }
}

static void open_kinds(const sim_kind *kinds, size_t count)
{
    sim_open(&world, kinds, count, BENCH_POLICY_STEAL);
    bad_item = cancel_item = MOST_ITEMS;
    cancel_job = NULL;
}

/* Against the area bound; without items against the fastest device's time. */
static void check_machine(const sim_kind *kinds, size_t count, double ms, bool has_after,
                          double slack)
{
    double work, fastest = 0;
    open_kinds(kinds, count);
    filch_codelet *codelet = make_codelet();
    for (size_t i = 0; i < count; ++i) {
        fastest = fmax(fastest, kinds[i].speed);
    }
    filch_graph *whole = make_fan(codelet, ms, false, has_after, &work);
    for (int run = 0; run < 3; ++run) {
        run_graph(whole);
    }
    assert_true(outcome.info.seconds >= ms * MS / fastest);
    assert_int_equal(report.total.pieces, 0);
    filch_graph *graph = make_fan(codelet, ms, true, has_after, &work);
    for (int run = 0; run < 4; ++run) {
        run_graph(graph);
        check_once();
        assert_int_equal(report.total.divided, 1);
        print_message("%zu devices, %s, run %d: %.4f of the area bound, %u pieces\n", count,
                      has_after ? "within" : "last", run + 1, sim_excess(&world, work, &outcome),
                      (unsigned)report.total.pieces);
        assert_true(sim_excess(&world, work, &outcome) <= slack);
    }
    for (uint32_t d = 0; d < world.count; ++d) {
        assert_true(losses[d].pieces > 0);
    }
    sim_ok(filch_graph_destroy(whole));
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

static const sim_kind unlike[] = {
    {11e8, 0, OVERHEAD_US, 1, 0}, {3e8, 0, OVERHEAD_US, 1, 0}, {1e8, 0, OVERHEAD_US, 1, 0}};
static const sim_kind alike[] = {{1e9, 0, OVERHEAD_US, 1, 0},
                                 {1e9, 0, OVERHEAD_US, 1, 0},
                                 {1e9, 0, OVERHEAD_US, 1, 0},
                                 {1e9, 0, OVERHEAD_US, 1, 0}};
static const sim_kind single[] = {
    {11e8, 0, OVERHEAD_US, 1, 1}, {3e8, 0, OVERHEAD_US, 1, 1}, {1e8, 0, OVERHEAD_US, 1, 1}};

static void test_unlike(void **state)
{
    (void)state;
    check_machine(unlike, 3, 300, true, 1.06);
    check_machine(unlike, 3, 300, false, 1.04);
    check_machine(single, 3, 300, true, 1.06);
    check_machine(single, 3, 300, false, 1.04);
}

static void test_alike(void **state)
{
    (void)state;
    check_machine(alike, 4, 300, true, 1.04);
    check_machine(alike, 4, 300, false, 1.04);
}

/* One that is too short to be divided, and one alone, the first that is ever measured. */
static void test_sizes(void **state)
{
    double work;
    (void)state;
    open_kinds(alike, 4);
    filch_codelet *codelet = make_codelet();
    filch_graph *graph = make_fan(codelet, 0.2, true, true, &work);
    run_graph(graph);
    run_graph(graph);
    check_once();
    assert_int_equal(report.total.pieces, 0);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
    open_kinds(unlike, 3);
    codelet = make_codelet();
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    (void)add(graph, codelet, 300 * MS / ITEMS, ITEMS, 1, true);
    for (int run = 0; run < 3; ++run) {
        run_graph(graph);
        check_once();
        print_message("alone, run %d: %.4f of the area bound\n", run + 1,
                      sim_excess(&world, 300 * MS, &outcome));
        assert_true(sim_excess(&world, 300 * MS, &outcome) <= 1.03);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* Large grains, of which the last is short: the slow device begins none that it would end last. */
static void test_grains(void **state)
{
    enum { GRAIN = 999 };
    filch_graph *graph;
    (void)state;
    open_kinds(unlike, 3);
    filch_codelet *codelet = make_codelet();
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    (void)add(graph, codelet, 300 * MS / ITEMS, ITEMS, GRAIN, true);
    for (int run = 0; run < 3; ++run) {
        run_graph(graph);
        check_once();
        assert_true(calls <= 11);
        /* A grain takes the fastest 27 ms, all together 20 ms. */
        print_message("grains, run %d: %.1f ms\n", run + 1, outcome.info.seconds * 1e3);
        assert_true(outcome.info.seconds <= 0.3);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* --- Devices that change --- */

static void check_text(const char *text, double ms, double bound, double slack)
{
    double work;
    sim_open_machine(&world, text, BENCH_POLICY_STEAL);
    bad_item = cancel_item = MOST_ITEMS;
    filch_codelet *codelet = make_codelet();
    filch_graph *graph = make_fan(codelet, ms, true, false, &work);
    run_graph(graph);
    check_once();
    print_message("%.4f of the bound, %u pieces\n", outcome.info.seconds / bound,
                  (unsigned)report.total.pieces);
    assert_true(outcome.info.seconds >= bound * 0.99);
    assert_true(outcome.info.seconds <= bound * slack);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

#define ONE "{\"speed\": 1e9, \"overhead_us\": 5}"

/* 20 ms of work before. What is withdrawn ends the piece that it is at. */
static void test_withdrawn(void **state)
{
    (void)state;
    check_text("{\"devices\": [" ONE ", {\"speed\": 1e9, \"overhead_us\": 5, \"leaves_at\": 0.1}]}",
               380, 0.3, 1.03);
    /* The one that began it, as the other is not there yet. */
    check_text("{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5, \"leaves_at\": 0.2},"
               "{\"speed\": 1e9, \"overhead_us\": 5, \"joins_at\": 0.1}]}",
               380, 0.3, 1.03);
    /* All but one for a while; and for a while nobody is there. */
    check_text("{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5, \"leaves_at\": 0.1,"
               " \"returns_at\": 0.2}, " ONE "]}",
               380, 0.25, 1.03);
    check_text("{\"devices\": [{\"speed\": 1e9, \"overhead_us\": 5, \"leaves_at\": 0.1,"
               " \"returns_at\": 0.2}, {\"speed\": 1e9, \"overhead_us\": 5, \"leaves_at\": 0.11,"
               " \"returns_at\": 0.3}]}",
               380, 0.34, 1.1);
}

/* By a factor of four, half-way. */
static void test_slowed(void **state)
{
    (void)state;
    /* 0.1 s of 2e9, then 1.25e9. */
    check_text("{\"devices\": [" ONE ", {\"speed\": 1e9, \"overhead_us\": 5,"
               " \"speeds\": [[0.1, 2.5e8]]}]}",
               380, 0.1 + 0.2 / 1.25, 1.05);
}

/* What is at a piece as it is lost fails the task, as it does any; the other one goes on alone. */
static void test_lost(void **state)
{
    double work;
    (void)state;
    sim_open_machine(&world,
                     "{\"devices\": [" ONE ", {\"speed\": 1e9, \"overhead_us\": 5,"
                     " \"lost_at\": 0.1}]}",
                     BENCH_POLICY_STEAL);
    bad_item = cancel_item = MOST_ITEMS;
    filch_codelet *codelet = make_codelet();
    filch_graph *graph = make_fan(codelet, 380, true, true, &work);
    run_graph(graph);
    assert_int_not_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, BEFORE);
    assert_int_equal(outcome.info.failed, 1);
    assert_int_equal(outcome.info.skipped, AFTER);
    assert_int_equal(report.total.divided, 1);
    for (uint32_t i = 0; i < ITEMS; ++i) {
        assert_true(runs[i] <= 1);
    }
    run_graph(graph);
    check_once();
    assert_int_equal(report.total.pieces, 0);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* --- Failure, cancellation --- */

static void test_failure(void **state)
{
    double work;
    (void)state;
    open_kinds(unlike, 3);
    filch_codelet *codelet = make_codelet();
    filch_graph *graph = make_fan(codelet, 300, true, true, &work);
    run_graph(graph);
    check_once();
    bad_item = ITEMS / 2;
    run_graph(graph);
    assert_int_equal(outcome.status, FILCH_TASK_FAILED);
    assert_int_equal(outcome.info.done, BEFORE);
    assert_int_equal(outcome.info.failed, 1);
    assert_int_equal(outcome.info.skipped, AFTER);
    uint32_t ran = 0;
    for (uint32_t i = 0; i < ITEMS; ++i) {
        assert_true(runs[i] <= 1);
        ran += runs[i];
    }
    assert_int_equal(runs[bad_item], 1);
    assert_true(ran > ITEMS / 2 && ran < ITEMS * 3 / 4);
    bad_item = MOST_ITEMS;
    run_graph(graph);
    check_once();
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

static void test_cancelled(void **state)
{
    double work;
    (void)state;
    open_kinds(unlike, 3);
    filch_codelet *codelet = make_codelet();
    filch_graph *graph = make_fan(codelet, 300, true, true, &work);
    run_graph(graph);
    memset(runs, 0, sizeof runs);
    cancel_item = ITEMS / 2;
    sim_ok(filch_graph_submit(graph, NULL, &cancel_job));
    sim_finish(cancel_job, &outcome);
    cancel_job = NULL;
    assert_int_equal(outcome.status, FILCH_CANCELLED);
    assert_int_equal(outcome.info.done, BEFORE);
    assert_int_equal(outcome.info.skipped, AFTER + 1);
    uint32_t ran = 0;
    for (uint32_t i = 0; i < ITEMS; ++i) {
        assert_true(runs[i] <= 1);
        ran += runs[i];
    }
    assert_true(ran > ITEMS / 2 && ran < ITEMS * 3 / 4);
    run_graph(graph);
    check_once();
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* --- Others --- */

static void test_deterministic(void **state)
{
    static sim_outcome first;
    (void)state;
    for (int turn = 0; turn < 2; ++turn) {
        double work;
        open_kinds(unlike, 3);
        filch_codelet *codelet = make_codelet();
        filch_graph *graph = make_fan(codelet, 100, true, true, &work);
        run_graph(graph);
        run_graph(graph);
        check_once();
        if (turn == 0) {
            first = outcome;
        } else {
            assert_true(first.info.seconds == outcome.info.seconds);
            for (uint32_t d = 0; d < world.count; ++d) {
                assert_int_equal(first.devices[d].tiles, outcome.devices[d].tiles);
            }
        }
        sim_ok(filch_graph_destroy(graph));
        sim_close(&world);
    }
}

/* Under other policies, and where devices have links, and thus memories: in one call. */
static void check_whole(bool has_calls)
{
    double work;
    filch_codelet *codelet = make_codelet();
    filch_graph *graph = make_fan(codelet, 100, true, true, &work);
    run_graph(graph);
    if (has_calls) {
        check_once();
        assert_int_equal(calls, BEFORE + AFTER + 1);
    }
    assert_int_equal(outcome.info.done, BEFORE + AFTER + 1);
    assert_int_equal(report.total.pieces, 0);
    assert_int_equal(report.total.divided, 0);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

static void test_whole(void **state)
{
    (void)state;
    for (int policy = BENCH_POLICY_STATIC; policy <= BENCH_POLICY_EARLIEST; ++policy) {
        sim_open(&world, unlike, 3, (bench_policy)policy);
        check_whole(true);
    }
    sim_open(&world, alike, 1, BENCH_POLICY_STEAL);
    check_whole(true);
    sim_open_machine(&world,
                     "{\"devices\": [{\"speed\": 1e9, \"count\": 2, \"link\": {\"bandwidth\": "
                     "1e10, \"latency_us\": 1}}]}",
                     BENCH_POLICY_STEAL);
    check_whole(false);
}

/* Many at a time: more than a device divides at once, beside each other and in chains. */
static void test_many(void **state)
{
    enum { CHAINS = 3, LENGTH = 20 };
    filch_graph *graph;
    (void)state;
    open_kinds(unlike, 3);
    filch_codelet *codelet = make_codelet();
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    for (int chain = 0; chain < CHAINS; ++chain) {
        filch_task last = 0;
        for (int i = 0; i < LENGTH; ++i) {
            filch_task task = add(graph, codelet, 10 * MS / 1000, 1000, 1, true);
            if (last != 0) {
                sim_ok(filch_graph_edge(graph, last, task));
            }
            last = task;
        }
    }
    for (int run = 0; run < 3; ++run) {
        run_graph(graph);
        assert_int_equal(outcome.info.done, CHAINS * LENGTH);
        for (uint32_t i = 0; i < 1000; ++i) {
            assert_int_equal(runs[i], CHAINS * LENGTH);
        }
        double excess = sim_excess(&world, CHAINS * LENGTH * 10 * MS, &outcome);
        print_message("chains, run %d: %.4f of the area bound, %u pieces\n", run + 1, excess,
                      (unsigned)report.total.pieces);
        assert_true(run == 0 || excess <= 1.1);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unlike),    cmocka_unit_test(test_alike),
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_grains),
        cmocka_unit_test(test_withdrawn), cmocka_unit_test(test_slowed),
        cmocka_unit_test(test_lost),      cmocka_unit_test(test_failure),
        cmocka_unit_test(test_cancelled), cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests_name("divide", tests, NULL, NULL);
}
