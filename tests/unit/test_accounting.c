/* SPDX-License-Identifier: Apache-2.0 */
/* Where time goes on the host's devices: misuse, and what must hold whatever the machine does
 * meanwhile. How long things take is known only from below. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "random.h"

enum { MOST_DEVICES = 8 };

static filch_runtime *runtime;
static filch_codelet *nothing;
static filch_losses losses[MOST_DEVICES];
static _Atomic int gate_open, gate_entered;

static uint64_t now_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int wait_at_gate(const filch_call *call)
{
    (void)call;
    ++gate_entered;
    return fixture_await(&gate_open, 1) ? 0 : 99;
}

/* Works for so many microseconds. */
static void spin(uint32_t us)
{
    for (uint64_t end = now_ns() + us * 1000u; now_ns() < end;) {
    }
}

static int spin_task(const filch_call *call)
{
    spin(*(const uint32_t *)call->args);
    return 0;
}

static void begin(const char *devices, filch_drive drive, fixture_memory *memory)
{
    runtime = fixture_runtime(devices, drive, memory);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    gate_open = gate_entered = 0;
}

static void end(void)
{
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_runtime_destroy(runtime));
}

static uint64_t parts_of(const filch_losses *l)
{
    return l->busy_ns + l->dispatch_ns + l->data_ns + l->spoiled_ns + l->starved_ns + l->held_ns +
           l->tail_ns + l->other_ns + l->slow_ns + l->preempted_ns + l->unshared_ns;
}

/* In tiles that are no failures, whether or not the core was there. */
static uint64_t tiles_of(const filch_losses *l)
{
    return l->busy_ns + l->slow_ns + l->preempted_ns;
}

static uint64_t idle_of(const filch_losses *l)
{
    return l->starved_ns + l->unshared_ns + l->held_ns + l->tail_ns;
}

/* What must hold of any report; any thread. */
static bool holds(const filch_report *report, const filch_losses *of)
{
    uint64_t walls = 0;
    bool good = report->area_ns <= report->wall_ns;
    for (uint32_t d = 0; d < report->device_count; ++d) {
        good = good && of[d].wall_ns == report->wall_ns && parts_of(&of[d]) == of[d].wall_ns &&
               of[d].estimated_ns <= of[d].busy_ns + of[d].slow_ns &&
               of[d].unrated_ns <= of[d].busy_ns;
        walls += of[d].wall_ns;
    }
    return good && report->total.wall_ns == walls && parts_of(&report->total) == walls;
}

static filch_report read_report(filch_job *job, filch_graph *graph)
{
    filch_report report = FILCH_REPORT_INIT;
    assert_ok(filch_job_report(job, graph, &report, losses, MOST_DEVICES));
    assert_true(holds(&report, losses));
    return report;
}

static filch_job *submit(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

static void misuse_is_told(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *another = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_report report = FILCH_REPORT_INIT;
    fixture_add(graph, nothing, NULL, NULL, 0);
    filch_job *job = submit(graph), *opened = submit(open);
    assert_ok(filch_job_wait(job, -1));
    assert_status(filch_job_report(NULL, NULL, &report, NULL, 0), FILCH_INVALID_HANDLE);
    assert_status(filch_job_report((filch_job *)(void *)graph, NULL, &report, NULL, 0),
                  FILCH_INVALID_HANDLE);
    assert_status(filch_job_report(job, (filch_graph *)(void *)job, &report, NULL, 0),
                  FILCH_INVALID_HANDLE);
    assert_status(filch_job_report(job, NULL, NULL, NULL, 0), FILCH_INVALID_ARGUMENT);
    assert_status(filch_job_report(job, NULL, &report, NULL, 1), FILCH_INVALID_ARGUMENT);
    size_t first = offsetof(filch_report, total) + offsetof(filch_losses, refused_dear);
    report.size = first - 1;
    report.wall_ns = 17;
    assert_status(filch_job_report(job, NULL, &report, NULL, 0), FILCH_INVALID_ARGUMENT);
    assert_string_equal(fixture_error(runtime).call, "filch_job_report");
    report.size = sizeof report;
    assert_status(filch_job_report(job, another, &report, NULL, 0), FILCH_INVALID_ARGUMENT);
    assert_status(filch_job_report(opened, open, &report, NULL, 0), FILCH_WRONG_STATE);
    assert_status(filch_job_report(opened, graph, &report, NULL, 0), FILCH_INVALID_ARGUMENT);
    assert_int_equal(report.wall_ns, 17); /* as it was */
    assert_ok(filch_job_report(opened, NULL, &report, NULL, 0));
    assert_ok(filch_graph_close(open));
    /* A size from a later header: the rest is not ours. */
    struct {
        filch_report known;
        uint64_t more;
    } later = {.known = FILCH_REPORT_INIT, .more = 23};
    later.known.size = sizeof later;
    assert_ok(filch_job_report(job, graph, &later.known, NULL, 0));
    assert_int_equal(later.known.size, sizeof later);
    assert_int_equal(later.more, 23);
    /* One from the first: nothing that came later is touched, of any device. */
    unsigned char bytes[2 * sizeof(filch_losses)];
    memset(bytes, 0x5a, sizeof bytes);
    report.size = first;
    report.total.restarts = 29;
    assert_ok(filch_job_report(job, NULL, &report, (filch_losses *)(void *)bytes, 2));
    assert_int_equal(report.size, first);
    assert_int_equal(report.total.restarts, 29);
    assert_int_not_equal(bytes[2 * offsetof(filch_losses, refused_dear) - 1], 0x5a);
    assert_int_equal(bytes[2 * offsetof(filch_losses, refused_dear)], 0x5a);
    assert_ok(filch_job_wait(opened, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(opened));
    end();
}

static void a_broadcast_has_none(void **state)
{
    (void)state;
    static double buffer[64];
    begin("host:1", FILCH_DRIVE_THREADS, NULL);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    filch_job *job = NULL;
    filch_report report = FILCH_REPORT_INIT;
    desc.ptr = buffer;
    desc.element = sizeof *buffer;
    desc.rows = 64;
    desc.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_create(runtime, &desc, &data));
    assert_ok(filch_data_broadcast(data, NULL, NULL, &job));
    assert_status(filch_job_report(job, NULL, &report, NULL, 0), FILCH_WRONG_STATE);
    assert_ok(filch_job_wait(job, -1));
    assert_status(filch_job_report(job, NULL, &report, NULL, 0), FILCH_WRONG_STATE);
    assert_ok(filch_job_release(job));
    end();
}

/* Which path takes memory is told where there is none. */
static void without_memory_it_fails(void **state)
{
    (void)state;
    fixture_memory memory;
    fixture_memory_init(&memory);
    begin("host:1", FILCH_DRIVE_THREADS, &memory);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task last = fixture_add(graph, nothing, NULL, NULL, 0);
    assert_ok(filch_graph_edge(graph, fixture_add(graph, nothing, NULL, NULL, 0), last));
    filch_job *job = submit(graph);
    assert_ok(filch_job_wait(job, -1));
    for (int64_t n = 1; n <= 3; ++n) {
        filch_report report = FILCH_REPORT_INIT;
        int64_t bytes = memory.bytes;
        fixture_memory_fail_after(&memory, n);
        assert_status(filch_job_report(job, graph, &report, NULL, 0), FILCH_OUT_OF_MEMORY);
        assert_int_equal(memory.bytes, bytes);
    }
    fixture_memory_fail_after(&memory, 0);
    (void)read_report(job, graph);
    assert_ok(filch_job_release(job));
    end();
}

/* Before a job starts there is nothing to tell; one that runs nothing has no losses. */
static void jobs_that_do_nothing(void **state)
{
    (void)state;
    static double buffer[64];
    begin("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *gate = fixture_codelet(runtime, "gate", wait_at_gate, 0);
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, 64, 64);
    filch_access access = fixture_access(data, 0, FILCH_WRITE);
    filch_graph *first = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *second = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *empty = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(first, gate, NULL, &access, 1);
    fixture_add(second, nothing, NULL, &access, 1);
    filch_job *running = submit(first), *waiting = submit(second), *over = submit(empty);
    assert_true(fixture_await(&gate_entered, 1));
    filch_report report = read_report(waiting, second);
    assert_int_equal(report.status, FILCH_NOT_READY);
    assert_int_equal(report.wall_ns, 0);
    assert_true(report.efficiency == 0);
    assert_ok(filch_job_wait(over, -1));
    report = read_report(over, empty);
    assert_int_equal(report.path_ns, 0);
    assert_int_equal(report.area_ns, 0);
    assert_int_equal(report.measured_count, 0);
    assert_int_equal(report.total.tail_ns, 0); /* nothing was taken */
    gate_open = 1;
    assert_ok(filch_job_wait(waiting, -1));
    report = read_report(waiting, second);
    assert_true(report.wall_ns > 0);
    assert_ok(filch_job_release(running));
    assert_ok(filch_job_release(waiting));
    assert_ok(filch_job_release(over));
    end();
}

/* One task on two devices: while it is at the gate the other one is idle. False: the system took
 * the core away from the task, whose time is no measure of the device then. */
static bool idle_is_seen_once(void)
{
    begin("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *gate = fixture_codelet(runtime, "gate", wait_at_gate, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, gate, NULL, NULL, 0);
    filch_job *job = submit(graph);
    assert_true(fixture_await(&gate_entered, 1));
    uint64_t since = now_ns();
    spin(3000);
    filch_report report = read_report(job, graph);
    uint64_t idle = idle_of(&report.total);
    assert_int_equal(report.status, FILCH_NOT_READY);
    assert_int_equal(report.total.tail_ns, 0);
    assert_true(idle >= 3000000);
    uint64_t until = now_ns();
    gate_open = 1;
    assert_ok(filch_job_wait(job, -1));
    report = read_report(job, graph);
    uint32_t ran = tiles_of(&losses[0]) != 0 ? 0 : 1;
    /* The task was timed, so the tail begins with it. */
    assert_true(tiles_of(&losses[ran]) >= until - since);
    assert_int_equal(losses[ran].estimated_ns, 0);
    assert_int_equal(losses[1 - ran].busy_ns, 0);
    assert_true(losses[1 - ran].tail_ns >= until - since);
    bool is_measured = losses[ran].busy_ns != 0;
    if (is_measured) {
        assert_int_equal(report.measured_count, 1);
        assert_int_equal(report.known_count, 2); /* the other one is alike */
        assert_true(report.area_ns >= losses[ran].busy_ns / 2);
    }
    assert_ok(filch_job_release(job));
    end();
    return is_measured;
}

static void idle_is_seen(void **state)
{
    bool is_measured = false;
    (void)state;
    for (int round = 0; round < 1000 && !is_measured; ++round) {
        is_measured = idle_is_seen_once();
    }
    assert_true(is_measured);
}

/* --- Nested work --- */

enum { PART_US = 2000 };

static uint64_t outer_ns, inner_ns; /* at least */

static int spin_inside(const filch_call *call)
{
    uint64_t t = now_ns();
    spin(*(const uint32_t *)call->args);
    inner_ns = now_ns() - t;
    return 0;
}

static int wait_inside(const filch_call *call)
{
    filch_graph *graph = *(filch_graph *const *)call->args;
    uint64_t t = now_ns();
    spin(PART_US);
    outer_ns = now_ns() - t;
    int failed = fixture_run(graph) != FILCH_OK;
    t = now_ns();
    spin(2 * PART_US);
    outer_ns += now_ns() - t;
    return failed;
}

/* A task that waits for a job of its own on the only device: what it does itself, before and after
 * the wait, is its job's, what the other job does is not. */
static void nested_work_is_anothers(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *waits = fixture_codelet(runtime, "waits", wait_inside, sizeof(filch_graph *));
    filch_codelet *spins = fixture_codelet(runtime, "spins", spin_inside, sizeof(uint32_t));
    filch_graph *inner = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *outer = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    uint32_t us = PART_US;
    fixture_add(inner, spins, &us, NULL, 0);
    fixture_add(outer, waits, &inner, NULL, 0);
    for (int run = 0; run < 3; ++run) {
        filch_job *job = submit(outer);
        assert_ok(filch_job_wait(job, -1));
        filch_report report = read_report(job, outer);
        assert_true(tiles_of(&losses[0]) >= outer_ns);
        assert_int_equal(losses[0].estimated_ns, 0);
        assert_true(losses[0].other_ns >= inner_ns);
        assert_true(tiles_of(&losses[0]) + losses[0].other_ns <= report.wall_ns);
        filch_job_info info = {.size = sizeof info};
        filch_device_stats stats;
        assert_ok(filch_job_stats(job, &info, &stats, 1));
        assert_true(stats.busy_s * 1e9 >= (double)outer_ns);
        assert_ok(filch_job_release(job));
    }
    end();
}

/* --- Failures, estimates --- */

static int fail_after(const filch_call *call)
{
    spin(*(const uint32_t *)call->args);
    return 5;
}

static void what_fails_is_spoiled(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *fails = fixture_codelet(runtime, "fails", fail_after, sizeof(uint32_t));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    uint32_t us = 50;
    enum { TASKS = 200 }; /* most of them not timed */
    for (int i = 0; i < TASKS; ++i) {
        fixture_add(graph, fails, &us, NULL, 0);
    }
    filch_job *job = submit(graph);
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    (void)read_report(job, graph);
    /* Each takes 50 us and more, of which the typical time is learned from the first ones. */
    assert_true(losses[0].spoiled_ns + losses[0].preempted_ns >= (uint64_t)TASKS * 50000 * 9 / 10);
    assert_ok(filch_job_release(job));
    end();
}

/* Of many tasks one in 64 is timed. */
static void estimates_are_bounded(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *spins = fixture_codelet(runtime, "spins", spin_task, sizeof(uint32_t));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    uint32_t us = 20;
    enum { TASKS = 1000 };
    for (int i = 0; i < TASKS; ++i) {
        fixture_add(graph, spins, &us, NULL, 0);
    }
    for (int run = 0; run < 2; ++run) {
        filch_job *job = submit(graph);
        assert_ok(filch_job_wait(job, -1));
        filch_report report = read_report(job, graph);
        uint64_t least = (uint64_t)TASKS * us * 1000;
        /* The truth lies between busy less estimated, and busy with what is beside it. */
        assert_true(losses[0].estimated_ns > 0);
        assert_true(tiles_of(&losses[0]) + losses[0].dispatch_ns + losses[0].data_ns >= least);
        assert_true(losses[0].busy_ns - losses[0].estimated_ns <=
                    losses[0].wall_ns - idle_of(&losses[0]));
        assert_true(report.path_ns >= us * 1000);
        assert_ok(filch_job_release(job));
    }
    end();
}

/* --- Whoever looks when --- */

typedef struct watcher {
    filch_job *job;
    filch_graph *graph;
    _Atomic int stop, bad, looks;
} watcher;

static void *watch(void *arg)
{
    watcher *w = arg;
    filch_losses of[MOST_DEVICES];
    while (!w->stop) {
        filch_report report = FILCH_REPORT_INIT;
        if (filch_job_report(w->job, w->graph, &report, of, MOST_DEVICES) != FILCH_OK ||
            !holds(&report, of)) {
            ++w->bad;
        }
        ++w->looks;
    }
    return NULL;
}

static filch_graph *random_graph(fl_random *random, filch_codelet *spins)
{
    enum { MOST = 300 };
    filch_task tasks[MOST];
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    uint32_t count = 1 + fl_random_below(random, MOST - 1);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t us = fl_random_below(random, 4) == 0 ? fl_random_below(random, 30) : 0;
        tasks[i] = fixture_add(graph, us != 0 ? spins : nothing, us != 0 ? &us : NULL, NULL, 0);
        if (i != 0 && fl_random_below(random, 2) == 0) {
            assert_ok(filch_graph_edge(graph, tasks[fl_random_below(random, i)], tasks[i]));
        }
    }
    return graph;
}

static _Atomic int told;

/* In the callback the figures are final already. */
static void on_complete(filch_job *job, filch_status status, void *user)
{
    filch_report *report = user;
    (void)status;
    *report = (filch_report)FILCH_REPORT_INIT;
    told += filch_job_report(job, NULL, report, NULL, 0) == FILCH_OK;
}

static void check_random(const char *devices, filch_drive drive, uint64_t seed)
{
    fl_random random;
    fl_random_init(&random, seed, 0);
    begin(devices, drive, NULL);
    filch_codelet *spins = fixture_codelet(runtime, "spins", spin_task, sizeof(uint32_t));
    for (int round = 0; round < 6; ++round) {
        filch_graph *graph = random_graph(&random, spins);
        filch_report inside;
        filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
        filch_job *job = NULL, *batch = NULL;
        filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
        pthread_t thread;
        told = 0;
        how.on_complete = on_complete;
        how.user = &inside;
        desc.codelet = nothing;
        desc.n = fl_random_below(&random, 100000);
        assert_ok(filch_graph_submit(graph, &how, &job));
        watcher looks = {.job = job, .graph = graph};
        assert_int_equal(pthread_create(&thread, NULL, watch, &looks), 0);
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &batch));
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_wait(batch, -1));
        assert_true(fixture_await(&looks.looks, 1));
        looks.stop = 1;
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(looks.bad, 0);
        filch_report report = read_report(job, NULL);
        assert_int_equal(told, 1);
        assert_int_equal(inside.status, FILCH_NOT_READY);
        inside.status = report.status;
        assert_memory_equal(&inside, &report, sizeof report);
        (void)read_report(batch, NULL);
        assert_ok(filch_job_release(job));
        assert_ok(filch_job_release(batch));
        assert_ok(filch_graph_destroy(graph));
    }
    end();
}

static void parts_add_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        check_random("host:1", FILCH_DRIVE_THREADS, seed);
        check_random("host:4", FILCH_DRIVE_THREADS, seed);
        check_random("host:2", FILCH_DRIVE_POLL, seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_told),
        cmocka_unit_test(a_broadcast_has_none),
        cmocka_unit_test(without_memory_it_fails),
        cmocka_unit_test(jobs_that_do_nothing),
        cmocka_unit_test(idle_is_seen),
        cmocka_unit_test(nested_work_is_anothers),
        cmocka_unit_test(what_fails_is_spoiled),
        cmocka_unit_test(estimates_are_bounded),
        cmocka_unit_test(parts_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
