/* SPDX-License-Identifier: Apache-2.0 */
/* Where time goes on the virtual clock, to the nanosecond: each kind of loss in a schedule that is
 * known by hand, and parts that add up whatever the schedule is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "sim.h"

/* Devices of speed 1e9 take a nanosecond a unit of work. */
#define MS 1000000u
#define OVERHEAD_US 5.0
#define OVERHEAD_NS 5000u

static filch_losses losses[SIM_MOST_DEVICES]; /* too large for a stack, as is … */
static sim_outcome outcome;

typedef struct task_args {
    double work;
    int code;
    double times; /* as long as work says */
} task_args;

static int run_task(const filch_call *call)
{
    return ((const task_args *)call->args)->code;
}

static double work_of(const filch_call *call)
{
    return ((const task_args *)call->args)->work;
}

static double cost_of(const filch_call *call)
{
    const task_args *args = call->args;
    return args->work * args->times;
}

static filch_codelet *make_codelet_of(const sim_world *world, filch_work_fn work)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "task";
    desc.host = run_task;
    desc.work = work;
    desc.cost = cost_of;
    desc.arg_size = sizeof(task_args);
    sim_ok(filch_codelet_create(world->runtime, &desc, &codelet));
    return codelet;
}

static filch_codelet *make_codelet(const sim_world *world)
{
    return make_codelet_of(world, work_of);
}

static filch_graph *make_graph(const sim_world *world)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world->runtime, &desc, &graph));
    return graph;
}

/* affinity: device + 1. */
static filch_task add_args(filch_graph *graph, filch_codelet *codelet, const task_args *args,
                           uint32_t affinity)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = codelet;
    desc.args = args;
    desc.affinity = affinity;
    sim_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

static filch_task add(filch_graph *graph, filch_codelet *codelet, double work, int code,
                      uint32_t affinity)
{
    task_args args;
    memset(&args, 0, sizeof args);
    args.work = work;
    args.code = code;
    args.times = 1;
    return add_args(graph, codelet, &args, affinity);
}

static uint64_t parts_of(const filch_losses *l)
{
    return l->busy_ns + l->dispatch_ns + l->data_ns + l->spoiled_ns + l->starved_ns + l->held_ns +
           l->tail_ns + l->other_ns + l->slow_ns + l->preempted_ns + l->unshared_ns;
}

/* What must hold of any report. */
static void check(const sim_world *world, const filch_report *report)
{
    filch_losses sum = {0};
    assert_int_equal(report->device_count, world->count);
    for (uint32_t d = 0; d < world->count; ++d) {
        assert_int_equal(losses[d].wall_ns, report->wall_ns);
        assert_int_equal(parts_of(&losses[d]), losses[d].wall_ns);
        sum.wall_ns += losses[d].wall_ns;
        sum.busy_ns += losses[d].busy_ns;
        sum.dispatch_ns += losses[d].dispatch_ns;
        sum.spoiled_ns += losses[d].spoiled_ns;
        sum.starved_ns += losses[d].starved_ns;
        sum.held_ns += losses[d].held_ns;
        sum.tail_ns += losses[d].tail_ns;
        sum.other_ns += losses[d].other_ns;
        sum.slow_ns += losses[d].slow_ns;
        sum.unshared_ns += losses[d].unshared_ns;
        sum.unrated_ns += losses[d].unrated_ns;
        assert_true(losses[d].unrated_ns <= losses[d].busy_ns);
        assert_int_equal(losses[d].preempted_ns, 0); /* nor is there a thread of it */
        sum.refused_held += losses[d].refused_held;
        sum.refused_empty += losses[d].refused_empty;
        sum.refused_unable += losses[d].refused_unable;
        sum.refused_raced += losses[d].refused_raced;
        sum.refused_dear += losses[d].refused_dear;
        assert_int_equal(losses[d].estimated_ns, 0); /* every tile is timed here, … */
        assert_int_equal(losses[d].data_ns, 0);      /* … and nothing is copied */
    }
    assert_memory_equal(&sum, &report->total, sizeof sum);
    assert_true(report->area_ns <= report->wall_ns);
    assert_true(report->measured_count <= report->known_count);
    assert_true(report->known_count <= world->count);
    assert_int_equal(report->bound_ns,
                     report->area_ns > report->path_ns ? report->area_ns : report->path_ns);
}

static void read_report(const sim_world *world, filch_job *job, filch_graph *graph,
                        filch_report *report)
{
    *report = (filch_report)FILCH_REPORT_INIT;
    sim_ok(filch_job_report(job, graph, report, losses, SIM_MOST_DEVICES));
    check(world, report);
}

/* For a caller whose header has not all parts these add up, too. */
static void check_old_header(filch_job *job, const filch_report *report)
{
    const size_t own = sizeof *report - sizeof report->total;
    const size_t last[] = {offsetof(filch_losses, slow_ns), offsetof(filch_losses, unrated_ns),
                           offsetof(filch_losses, unshared_ns)};
    for (size_t i = 0; i < sizeof last / sizeof *last; ++i) {
        filch_report old = FILCH_REPORT_INIT;
        old.size = own + last[i];
        sim_ok(filch_job_report(job, NULL, &old, NULL, 0));
        assert_int_equal(parts_of(&old.total), old.total.wall_ns);
        assert_int_equal(old.total.busy_ns + old.total.slow_ns,
                         report->total.busy_ns + report->total.slow_ns);
        assert_int_equal(old.total.starved_ns + old.total.unshared_ns,
                         report->total.starved_ns + report->total.unshared_ns);
    }
}

static void run_graph(const sim_world *world, filch_graph *graph, filch_status result,
                      filch_report *report)
{
    filch_job *job = NULL;
    filch_report again = FILCH_REPORT_INIT;
    filch_losses first;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    assert_int_equal(filch_job_wait(job, -1), result);
    read_report(world, job, graph, report);
    assert_int_equal(report->status, result);
    /* It stays what it is; fewer elements than devices may be asked for. */
    sim_ok(filch_job_report(job, graph, &again, &first, 1));
    assert_memory_equal(&again, report, sizeof again);
    assert_memory_equal(&first, losses, sizeof first);
    check_old_header(job, report);
    sim_ok(filch_job_release(job));
}

/* Every device measures its speed twice, since the first sample does not count. */
static void learn(const sim_world *world, filch_codelet *codelet)
{
    filch_report report;
    filch_graph *graph = make_graph(world);
    for (uint32_t d = 0; d < world->count; ++d) {
        filch_task before = add(graph, codelet, MS, 0, d + 1);
        for (int i = 0; i < 3; ++i) {
            filch_task task = add(graph, codelet, MS, 0, d + 1);
            sim_ok(filch_graph_edge(graph, before, task));
            before = task;
        }
    }
    run_graph(world, graph, FILCH_OK, &report);
    sim_ok(filch_graph_destroy(graph));
}

/* Independent tasks of a unit each, so many times as long as they declare, on one device. */
static void run_many(const sim_world *world, filch_codelet *codelet, uint32_t count, double times,
                     uint32_t device, filch_report *report)
{
    filch_graph *graph = make_graph(world);
    task_args args;
    memset(&args, 0, sizeof args);
    args.work = MS;
    args.times = times;
    for (uint32_t i = 0; i < count; ++i) {
        add_args(graph, codelet, &args, device + 1);
    }
    run_graph(world, graph, FILCH_OK, report);
    sim_ok(filch_graph_destroy(graph));
}

/* A job whose tasks take three times as long as they once did is lost by two thirds, on whichever
 * run of it; one that is as fast as ever is not. */
static void test_slow(void **state)
{
    (void)state;
    enum { TASKS = 40 };
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 1, 1};
    sim_world world;
    filch_report report;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_codelet *codelet = make_codelet(&world);
    run_many(&world, codelet, TASKS, 1, 0, &report);
    assert_int_equal(report.total.slow_ns, 0);
    assert_int_equal(report.total.unrated_ns, 0);
    assert_int_equal(report.area_ns, TASKS * MS);
    for (int run = 0; run < 3; ++run) {
        run_many(&world, codelet, TASKS, 3, 0, &report);
        assert_int_equal(report.wall_ns, TASKS * (3 * MS + OVERHEAD_NS));
        assert_int_equal(report.total.busy_ns, TASKS * MS);
        assert_int_equal(report.total.slow_ns, TASKS * 2 * MS);
        assert_int_equal(report.total.dispatch_ns, TASKS * OVERHEAD_NS);
        assert_int_equal(report.total.unrated_ns, 0);
        assert_int_equal(report.area_ns, TASKS * MS);
        assert_true(fabs(report.efficiency - 1.0 / 3) < 2e-3);
    }
    run_many(&world, codelet, TASKS, 1, 0, &report);
    assert_int_equal(report.total.slow_ns, 0);
    sim_close(&world);
}

/* A task without declared work may have had more to do. Of works that are none of those that showed
 * the speed, part of the time may be fixed. */
static void test_not_called_slow(void **state)
{
    (void)state;
    enum { TASKS = 40 };
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 1, 1};
    sim_world world;
    filch_report report;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_codelet *codelet = make_codelet_of(&world, NULL);
    run_many(&world, codelet, TASKS, 1, 0, &report);
    run_many(&world, codelet, TASKS, 3, 0, &report);
    assert_int_equal(report.total.slow_ns, 0);
    assert_int_equal(report.total.busy_ns, TASKS * 3 * MS);
    assert_int_equal(report.total.unrated_ns, report.total.busy_ns);
    assert_true(report.efficiency > 0.99);
    codelet = make_codelet(&world);
    run_many(&world, codelet, TASKS, 1, 0, &report);
    /* Few tell nothing of their own; many tell the fixed part. */
    static const uint32_t counts[] = {3, TASKS};
    for (int i = 0; i < 2; ++i) {
        filch_graph *graph = make_graph(&world);
        task_args args;
        memset(&args, 0, sizeof args);
        args.work = MS / 100;
        args.times = 3;
        for (uint32_t task = 0; task < counts[i]; ++task) {
            add_args(graph, codelet, &args, 1);
        }
        run_graph(&world, graph, FILCH_OK, &report);
        assert_int_equal(report.total.slow_ns, 0);
        assert_int_equal(report.total.unrated_ns, i == 0 ? report.total.busy_ns : 0);
        sim_ok(filch_graph_destroy(graph));
    }
    sim_close(&world);
}

/* A device that does nothing, three times as fast as the one that does it all: where its speed is
 * known the job could have been done in a quarter of the time. */
static void test_idle_device(void **state)
{
    (void)state;
    enum { TASKS = 40 };
    static const sim_kind kinds[] = {{1e9, 1, 0, 1, 1}, {3e9, 1.5, 0, 1, 1}};
    sim_world world;
    filch_report report;
    sim_open(&world, kinds, 2, BENCH_POLICY_STATIC);
    filch_codelet *codelet = make_codelet(&world);
    run_many(&world, codelet, TASKS, 1, 0, &report);
    assert_int_equal(report.known_count, 1);
    assert_int_equal(report.area_ns, TASKS * MS);
    run_many(&world, codelet, TASKS, 1, 1, &report);
    assert_int_equal(report.known_count, 2);
    run_many(&world, codelet, TASKS, 1, 0, &report);
    assert_int_equal(report.measured_count, 1);
    assert_int_equal(report.known_count, 2);
    assert_int_equal(losses[1].busy_ns, 0);
    assert_true(llabs((long long)report.area_ns - TASKS * MS / 4) <= 100);
    /* Withdrawn it could have done nothing. */
    sim_ok(filch_device_withdraw(world.runtime, 1));
    run_many(&world, codelet, TASKS, 1, 0, &report);
    assert_int_equal(report.known_count, 1);
    assert_int_equal(report.area_ns, TASKS * MS);
    sim_close(&world);
}

/* One device releases tasks that another could run, too, but by the policy may not take: that was
 * not for want of work. While the first task runs there is none, and none is left in the queue when
 * the last one is taken. */
static void test_unshared(void **state)
{
    (void)state;
    enum { TASKS = 9 };
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 2, 1};
    const uint64_t each = MS + OVERHEAD_NS;
    sim_world world;
    filch_report report;
    sim_open(&world, &kind, 1, BENCH_POLICY_STATIC);
    filch_codelet *codelet = make_codelet(&world);
    filch_graph *graph = make_graph(&world);
    filch_task first = add(graph, codelet, MS, 0, 1);
    for (int i = 0; i < TASKS; ++i) {
        sim_ok(filch_graph_edge(graph, first, add(graph, codelet, MS, 0, 1)));
    }
    run_graph(&world, graph, FILCH_OK, &report);
    assert_int_equal(report.wall_ns, (TASKS + 1) * each);
    assert_int_equal(losses[0].unshared_ns, 0);
    assert_int_equal(losses[1].starved_ns, each);
    assert_int_equal(losses[1].unshared_ns, (TASKS - 1) * each);
    assert_int_equal(losses[1].tail_ns, each);
    assert_int_equal(report.area_ns, (TASKS + 1) * MS / 2);
    /* A withdrawn device has no part in it. */
    sim_ok(filch_device_withdraw(world.runtime, 1));
    run_graph(&world, graph, FILCH_OK, &report);
    assert_int_equal(losses[1].unshared_ns, 0);
    assert_int_equal(losses[1].starved_ns, TASKS * each);
    assert_int_equal(report.area_ns, (TASKS + 1) * MS);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* A chain on two devices: one runs it, the other has nothing, and once the last task is taken that
 * is the tail. */
static void test_chain(void **state)
{
    (void)state;
    enum { TASKS = 10 };
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 2, 0};
    const uint64_t each = MS + OVERHEAD_NS;
    sim_world world;
    filch_report report;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_codelet *codelet = make_codelet(&world);
    filch_graph *graph = make_graph(&world);
    filch_task before = add(graph, codelet, MS, 0, 1);
    for (int i = 1; i < TASKS; ++i) {
        filch_task task = add(graph, codelet, MS, 0, 1);
        sim_ok(filch_graph_edge(graph, before, task));
        before = task;
    }
    run_graph(&world, graph, FILCH_OK, &report);
    assert_int_equal(report.wall_ns, TASKS * each);
    assert_int_equal(losses[0].busy_ns, TASKS * MS);
    assert_int_equal(losses[0].dispatch_ns, TASKS * OVERHEAD_NS);
    assert_int_equal(losses[1].starved_ns, (TASKS - 1) * each);
    assert_int_equal(losses[1].tail_ns, each);
    assert_true(losses[1].refused_empty > 0);
    assert_int_equal(losses[1].refused_held, 0);
    assert_int_equal(report.measured_count, 1);
    assert_int_equal(report.known_count, 2); /* the idle one is of the same kind */
    assert_int_equal(report.area_ns, TASKS * MS / 2);
    /* Speeds are measured with the dispatch. */
    assert_true(llabs((long long)report.path_ns - (long long)(TASKS * each)) <= 1);
    assert_true(fabs(report.efficiency - 1) < 1e-6);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* An edge that leads to an earlier task makes the path one of three all the same. */
static void test_path(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 1, 0, 1, 0}, {2e9, 1, 0, 1, 0}};
    sim_world world;
    filch_report report;
    sim_open(&world, kinds, 2, BENCH_POLICY_STATIC);
    filch_codelet *codelet = make_codelet(&world);
    learn(&world, codelet);
    filch_graph *graph = make_graph(&world);
    filch_task last = add(graph, codelet, 3.0 * MS, 0, 1);
    filch_task first = add(graph, codelet, 1.0 * MS, 0, 2);
    filch_task middle = add(graph, codelet, 2.0 * MS, 0, 1);
    add(graph, codelet, 4.0 * MS, 0, 1);
    sim_ok(filch_graph_edge(graph, first, middle));
    sim_ok(filch_graph_edge(graph, middle, last));
    run_graph(&world, graph, FILCH_OK, &report);
    /* On the faster device each unit takes half a nanosecond. */
    assert_int_equal(report.path_ns, 3 * MS);
    /* Device 0: nine milliseconds; device 1 half a one. */
    assert_int_equal(losses[0].busy_ns, 9 * MS);
    assert_int_equal(losses[1].busy_ns, MS / 2);
    assert_int_equal(report.area_ns, 10 * MS / 3);
    assert_int_equal(report.bound_ns, report.area_ns);
    assert_int_equal(report.measured_count, 2);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* A fast and a slow device, and a long last tile on the slow one. */
static void test_tail(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 1, OVERHEAD_US, 1, 0}, {1e8, 1, OVERHEAD_US, 1, 0}};
    sim_world world;
    filch_report report;
    sim_open(&world, kinds, 2, BENCH_POLICY_STATIC);
    filch_codelet *codelet = make_codelet(&world);
    filch_graph *graph = make_graph(&world);
    add(graph, codelet, MS, 0, 1);
    add(graph, codelet, MS, 0, 2);
    run_graph(&world, graph, FILCH_OK, &report);
    assert_int_equal(report.wall_ns, 10 * MS + OVERHEAD_NS);
    assert_int_equal(losses[0].busy_ns, MS);
    assert_int_equal(losses[0].tail_ns, 9 * MS);
    assert_int_equal(losses[0].starved_ns, 0);
    assert_int_equal(losses[1].busy_ns, 10 * MS);
    assert_int_equal(losses[1].dispatch_ns, OVERHEAD_NS);
    assert_int_equal(losses[1].tail_ns, 0);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* Three tasks of a fast device's, one in flight at a time: a device ten times slower leaves them to
 * it until the last is taken. */
static void test_hold_off(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 1e9, OVERHEAD_US, 1, 1}, {1e8, 1e8, OVERHEAD_US, 1, 1}};
    const uint64_t each = MS + OVERHEAD_NS;
    sim_world world;
    filch_report report;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_codelet *codelet = make_codelet(&world);
    learn(&world, codelet);
    filch_graph *graph = make_graph(&world);
    for (int i = 0; i < 3; ++i) {
        add(graph, codelet, MS, 0, 1);
    }
    run_graph(&world, graph, FILCH_OK, &report);
    assert_int_equal(report.wall_ns, 3 * each);
    assert_int_equal(losses[0].busy_ns, 3 * MS);
    assert_int_equal(losses[1].held_ns, 2 * each);
    assert_int_equal(losses[1].tail_ns, each);
    assert_int_equal(losses[1].starved_ns, 0);
    assert_true(losses[1].refused_held > 0);
    assert_int_equal(losses[0].refused_held, 0);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* The second of three tasks in a row fails. */
static void test_spoiled(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 1, 0};
    sim_world world;
    filch_report report;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_codelet *codelet = make_codelet(&world);
    filch_graph *graph = make_graph(&world);
    filch_task first = add(graph, codelet, MS, 0, 1), second = add(graph, codelet, 2.0 * MS, 7, 1);
    sim_ok(filch_graph_edge(graph, first, second));
    sim_ok(filch_graph_edge(graph, second, add(graph, codelet, 4.0 * MS, 0, 1)));
    run_graph(&world, graph, FILCH_TASK_FAILED, &report);
    assert_int_equal(report.wall_ns, 3 * MS + 2 * OVERHEAD_NS);
    assert_int_equal(losses[0].busy_ns, MS);
    assert_int_equal(losses[0].dispatch_ns, OVERHEAD_NS);
    assert_int_equal(losses[0].spoiled_ns, 2 * MS + OVERHEAD_NS);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* Two jobs at a time on one device, which has one tile in flight. */
static void test_two_jobs(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 1, 1};
    sim_world world;
    filch_report report;
    filch_graph *graphs[2];
    filch_job *jobs[2];
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_codelet *codelet = make_codelet(&world);
    for (int i = 0; i < 2; ++i) {
        graphs[i] = make_graph(&world);
        add(graphs[i], codelet, (1.0 + i) * MS, 0, 1);
        sim_ok(filch_graph_submit(graphs[i], NULL, &jobs[i]));
    }
    sim_ok(filch_job_wait(jobs[0], -1));
    read_report(&world, jobs[0], NULL, &report);
    assert_int_equal(report.wall_ns, MS + OVERHEAD_NS);
    assert_int_equal(losses[0].busy_ns, MS);
    assert_int_equal(losses[0].other_ns, 0);
    assert_int_equal(report.path_ns, 0); /* the graph was not named */
    /* The other one, a millisecond after it began to run. */
    assert_int_equal(filch_job_wait(jobs[1], 1e-3), FILCH_TIMEOUT);
    read_report(&world, jobs[1], NULL, &report);
    assert_int_equal(report.status, FILCH_NOT_READY);
    assert_int_equal(report.wall_ns, 2 * MS + OVERHEAD_NS);
    assert_int_equal(losses[0].other_ns, MS + OVERHEAD_NS);
    assert_int_equal(losses[0].dispatch_ns, MS); /* no tile of it has ended */
    sim_ok(filch_job_wait(jobs[1], -1));
    read_report(&world, jobs[1], NULL, &report);
    assert_int_equal(losses[0].other_ns, MS + OVERHEAD_NS);
    assert_int_equal(losses[0].busy_ns, 2 * MS);
    assert_int_equal(losses[0].dispatch_ns, OVERHEAD_NS);
    for (int i = 0; i < 2; ++i) {
        sim_ok(filch_job_release(jobs[i]));
        sim_ok(filch_graph_destroy(graphs[i]));
    }
    sim_close(&world);
}

/* A batch that only one of two devices may run: the other is told so. */
static void test_unable(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 1, OVERHEAD_US, 2, 0};
    sim_world world;
    filch_report report;
    filch_job *job = NULL, *rest = NULL;
    const uint32_t first = 0;
    sim_open(&world, &kind, 1, BENCH_POLICY_STEAL);
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = sim_codelet(&world, NULL, NULL, NULL);
    desc.n = 100u * MS;
    filch_resume_desc resume = FILCH_RESUME_DESC_INIT;
    resume.devices = &first;
    resume.device_count = 1;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    assert_int_equal(filch_job_wait(job, 1e-3), FILCH_TIMEOUT);
    sim_ok(filch_job_cancel(job));
    assert_int_equal(filch_job_wait(job, -1), FILCH_CANCELLED);
    sim_ok(filch_job_resume(job, &resume, NULL, &rest));
    sim_ok(filch_job_release(job));
    sim_ok(filch_job_wait(rest, -1));
    read_report(&world, rest, NULL, &report);
    assert_true(losses[1].refused_unable > 0);
    assert_int_equal(losses[1].refused_held, 0);
    assert_int_equal(losses[1].busy_ns, 0);
    assert_int_equal(losses[1].starved_ns + losses[1].tail_ns, report.wall_ns);
    assert_true(losses[1].starved_ns > report.wall_ns / 2);
    sim_ok(filch_job_release(rest));
    sim_close(&world);
}

/* --- Batches --- */

/* The bound is that of the true speeds, though the scores are wrong; what is lost is dispatch and
 * little else. */
static void test_batch(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 10, OVERHEAD_US, 2, 0}, {3e9, 1, OVERHEAD_US, 1, 0}};
    sim_world world;
    filch_report report;
    filch_job *job = NULL;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    desc.codelet = sim_codelet(&world, NULL, NULL, NULL);
    desc.n = 500u * MS;
    desc.grain = 1000;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    outcome.status = filch_job_wait(job, -1);
    read_report(&world, job, NULL, &report);
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    for (uint32_t d = 0; d < world.count; ++d) {
        double exact = (double)outcome.devices[d].items * (d == 2 ? 1.0 / 3 : 1);
        assert_true(fabs((double)losses[d].busy_ns - exact) <= 1 + 1e-9 * exact);
        assert_int_equal(losses[d].dispatch_ns, outcome.devices[d].tiles * OVERHEAD_NS);
    }
    assert_true(fabs((double)report.area_ns - 100.0 * MS) <= 10);
    /* A grain on the fastest. */
    assert_true(report.path_ns >= 333 && report.path_ns <= 334);
    assert_true(fabs(report.efficiency - (double)report.area_ns / (double)report.wall_ns) < 1e-12);
    assert_true(report.efficiency > 0.98);
    print_message("batch: efficiency %.4f, dispatch %.4f, idle %.4f of the devices' time\n",
                  report.efficiency,
                  (double)report.total.dispatch_ns / (double)report.total.wall_ns,
                  (double)(report.total.starved_ns + report.total.held_ns + report.total.tail_ns) /
                      (double)report.total.wall_ns);
    sim_close(&world);
}

/* --- Whatever the schedule --- */

static void random_kinds(fl_random *random, sim_kind *kinds, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        kinds[i] = (sim_kind){.speed = 1e8 * (double)(1 + fl_random_below(random, 50)),
                              .score = (double)(1 + fl_random_below(random, 10)),
                              .overhead_us = (double)fl_random_below(random, 10),
                              .count = 1 + (uint32_t)fl_random_below(random, 4),
                              .window = (uint32_t)fl_random_below(random, 4)};
    }
}

static filch_graph *random_graph(const sim_world *world, fl_random *random, filch_codelet *codelet)
{
    enum { MOST = 120 };
    filch_task tasks[MOST];
    filch_graph *graph = make_graph(world);
    uint32_t count = 1 + (uint32_t)fl_random_below(random, MOST - 1);
    for (uint32_t i = 0; i < count; ++i) {
        double work = 1e4 * (double)fl_random_below(random, 100);
        int code = fl_random_below(random, 60) == 0;
        tasks[i] =
            add(graph, codelet, work, code, (uint32_t)fl_random_below(random, world->count + 1));
        for (uint32_t k = 0; k < 3 && i != 0; ++k) {
            if (fl_random_below(random, 3) == 0) {
                sim_ok(filch_graph_edge(graph, tasks[fl_random_below(random, i)], tasks[i]));
            }
        }
    }
    return graph;
}

static filch_job *random_job(const sim_world *world, fl_random *random, filch_graph *graph,
                             filch_codelet *codelet)
{
    filch_job *job = NULL;
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_failure = fl_random_below(random, 2) != 0 ? FILCH_FAILURE_CANCEL : FILCH_FAILURE_SKIP;
    if (graph != NULL) {
        sim_ok(filch_graph_submit(graph, &submit, &job));
        return job;
    }
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = codelet;
    desc.n = fl_random_below(random, 50 * MS);
    desc.grain = fl_random_below(random, MS);
    sim_ok(filch_batch_submit(world->runtime, &desc, &submit, &job));
    return job;
}

/* A few jobs at a time, looked at while they run, and when they are over. */
static void test_random(void **state)
{
    (void)state;
    enum { CASES = 1000, JOBS = 3 };
    for (uint64_t seed = 1; seed <= CASES; ++seed) {
        fl_random random;
        sim_kind kinds[3];
        sim_world world;
        filch_graph *graphs[JOBS];
        filch_job *jobs[JOBS];
        filch_report report;
        fl_random_init(&random, seed, 0);
        uint32_t count = 1 + (uint32_t)fl_random_below(&random, 3);
        random_kinds(&random, kinds, count);
        sim_open(&world, kinds, count,
                 fl_random_below(&random, 4) == 0 ? BENCH_POLICY_STATIC : BENCH_POLICY_STEAL);
        filch_codelet *tasks = make_codelet(&world),
                      *chunks = sim_codelet(&world, NULL, NULL, NULL);
        for (int i = 0; i < JOBS; ++i) {
            bool is_graph = fl_random_below(&random, 2) != 0;
            graphs[i] = is_graph ? random_graph(&world, &random, tasks) : NULL;
            jobs[i] = random_job(&world, &random, graphs[i], chunks);
            (void)filch_job_wait(jobs[i], 1e-3 * (double)fl_random_below(&random, 5));
            for (int k = 0; k <= i; ++k) {
                read_report(&world, jobs[k], graphs[k], &report);
                assert_int_equal(report.total.tail_ns != 0 && report.status == FILCH_NOT_READY, 0);
            }
        }
        for (int i = 0; i < JOBS; ++i) {
            (void)filch_job_wait(jobs[i], -1);
            read_report(&world, jobs[i], graphs[i], &report);
            sim_finish(jobs[i], &outcome);
            assert_true(fabs((double)report.wall_ns - outcome.info.seconds * 1e9) < 1);
            if (graphs[i] != NULL) {
                sim_ok(filch_graph_destroy(graphs[i]));
            }
        }
        sim_close(&world);
    }
    print_message("seeds 1 to %d\n", CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow),        cmocka_unit_test(test_not_called_slow),
        cmocka_unit_test(test_idle_device), cmocka_unit_test(test_unshared),
        cmocka_unit_test(test_chain),       cmocka_unit_test(test_path),
        cmocka_unit_test(test_tail),        cmocka_unit_test(test_hold_off),
        cmocka_unit_test(test_spoiled),     cmocka_unit_test(test_two_jobs),
        cmocka_unit_test(test_unable),      cmocka_unit_test(test_batch),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
