/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: results, failure, cancelling, callbacks, waiting inside tasks, order by shared handles. */
#define _GNU_SOURCE
#include "fixture.h"
#include "measure/policies.h"
#include "patience.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static filch_runtime *runtime;
static filch_codelet *nothing, *code, *gate;
static _Atomic int gate_open, gate_entered, ran;
static double buffer[64];

/* Counts itself and returns its argument. */
static int return_code(const filch_call *call)
{
    ++ran;
    return *(const int *)call->args;
}

/* Holds its worker until the test lets it go. */
static int wait_at_gate(const filch_call *call)
{
    (void)call;
    ++gate_entered;
    return fixture_await(&gate_open, 1) ? 0 : 99;
}

static int set_up(void **state)
{
    (void)state;
    runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    code = fixture_codelet(runtime, "code", return_code, sizeof(int));
    gate = fixture_codelet(runtime, "gate", wait_at_gate, 0);
    gate_open = gate_entered = ran = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gate_open = 1;
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

static filch_task add_code(filch_graph *graph, int value, const char *label)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = code;
    desc.args = &value;
    desc.label = label;
    assert_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

static void arguments_are_checked(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    fixture_add(graph, gate, NULL, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    filch_job_info info = {.size = sizeof info};
    filch_device_stats stats[3];
    filch_error error = FILCH_ERROR_INIT;
    size_t count;
    assert_status(filch_job_status(job), FILCH_NOT_READY);
    assert_status(filch_job_wait(job, 0), FILCH_TIMEOUT);
    assert_status(filch_job_wait(job, 0.001), FILCH_TIMEOUT);
    assert_status(filch_job_wait(job, (double)NAN), FILCH_INVALID_ARGUMENT);
    assert_status(filch_runtime_drain(runtime, (double)NAN), FILCH_INVALID_ARGUMENT);
    assert_status(filch_runtime_drain(runtime, 0.001), FILCH_TIMEOUT);
    assert_status(filch_job_error(job, &error), FILCH_NOT_FOUND);
    assert_status(filch_job_error(job, NULL), FILCH_INVALID_ARGUMENT);
    error.size = 0;
    assert_status(filch_job_error(job, &error), FILCH_INVALID_ARGUMENT);
    assert_status(filch_job_items(job, NULL, 0, &count), FILCH_NOT_READY);
    assert_status(filch_job_items(job, NULL, 0, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_job_items(job, NULL, 1, &count), FILCH_INVALID_ARGUMENT);
    assert_status(filch_job_stats(job, NULL, NULL, 0), FILCH_INVALID_ARGUMENT);
    assert_status(filch_job_stats(job, &info, NULL, 1), FILCH_INVALID_ARGUMENT);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.status, FILCH_NOT_READY);
    assert_int_equal(info.total, 1);
    assert_int_equal(info.done, 0);
    assert_int_equal(info.device_count, 2);
    info.size = 0;
    assert_status(filch_job_stats(job, &info, stats, 2), FILCH_INVALID_ARGUMENT);
    filch_usage usage = {.size = sizeof usage};
    assert_ok(filch_runtime_usage(runtime, &usage));
    assert_int_equal(usage.jobs_running, 1);
    gate_open = 1;
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_status(job));
    assert_ok(filch_job_cancel(job)); /* complete: left as it is */
    assert_ok(filch_job_wait(job, 0));
    assert_status(filch_job_items(job, NULL, 0, &count), FILCH_WRONG_STATE);
    info.size = sizeof info;
    assert_ok(filch_job_stats(job, &info, stats, 3)); /* more room than devices */
    assert_int_equal(info.status, FILCH_OK);
    assert_int_equal(info.done, 1);
    assert_int_equal(stats[0].tiles + stats[1].tiles, 1);
    assert_true(info.seconds > 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void a_failure_skips_dependants_only(void **state)
{
    (void)state;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.label = "solver";
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    filch_task bad = add_code(graph, -42, "pivot 17");
    filch_task below = add_code(graph, 0, NULL), further = add_code(graph, 0, NULL);
    filch_task good = add_code(graph, 0, NULL), both = add_code(graph, 0, NULL);
    assert_ok(filch_graph_edge(graph, bad, below));
    assert_ok(filch_graph_edge(graph, below, further));
    assert_ok(filch_graph_edge(graph, good, both));
    assert_ok(filch_graph_edge(graph, bad, both));
    for (int i = 0; i < 50; ++i) {
        add_code(graph, 0, NULL);
    }
    for (int round = 0; round < 5; ++round) {
        filch_job *job = NULL;
        filch_job_info info = {.size = sizeof info};
        filch_error error = FILCH_ERROR_INIT;
        ran = 0;
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
        assert_status(filch_job_status(job), FILCH_TASK_FAILED);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.status, FILCH_TASK_FAILED);
        assert_int_equal(info.total, 55);
        assert_int_equal(info.done, 51);
        assert_int_equal(info.failed, 1);
        assert_int_equal(info.skipped, 3);
        assert_int_equal(ran, 52);
        assert_ok(filch_job_error(job, &error));
        assert_int_equal(error.status, FILCH_TASK_FAILED);
        assert_int_equal(error.native_code, -42);
        assert_string_equal(error.label, "pivot 17");
        assert_true(strncmp(error.device, "host:", 5) == 0);
        assert_non_null(strstr(error.text, "pivot 17 #0"));
        assert_non_null(strstr(error.text, "'solver'"));
        assert_non_null(strstr(error.text, "-42"));
        assert_ok(filch_job_release(job));
    }
    assert_ok(filch_graph_destroy(graph));
}

static void a_failure_can_cancel_the_rest(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task bad = add_code(graph, 7, NULL);
    for (int i = 0; i < 20; ++i) {
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        filch_task task;
        desc.codelet = nothing;
        assert_ok(filch_graph_add(graph, &desc, &task));
        assert_ok(filch_graph_edge(graph, bad, task));
    }
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_failure = FILCH_FAILURE_CANCEL;
    filch_job *job = NULL;
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_graph_submit(graph, &submit, &job));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED); /* not CANCELLED */
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.failed, 1);
    assert_int_equal(info.skipped, 20);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));

    /* Independent work behind the failure on the only worker is left out as well. */
    filch_runtime *one = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *its = fixture_codelet(one, "code", return_code, sizeof(int));
    graph = fixture_graph(one, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 10; ++i) {
        int value = i == 4 ? 3 : 0;
        fixture_add(graph, its, &value, NULL, 0);
    }
    ran = 0;
    assert_ok(filch_graph_submit(graph, &submit, &job));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(ran, 5);
    assert_int_equal(info.done, 4);
    assert_int_equal(info.skipped, 5);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(one));
}

static void cancelling_leaves_out_what_has_not_started(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task first = fixture_add(graph, gate, NULL, NULL, 0);
    for (int i = 0; i < 30; ++i) {
        filch_task task = add_code(graph, 0, NULL);
        assert_ok(filch_graph_edge(graph, first, task));
    }
    filch_job *job = NULL;
    filch_job_info info = {.size = sizeof info};
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&gate_entered, 1));
    assert_ok(filch_job_cancel(job));
    assert_ok(filch_job_cancel(job));
    assert_status(filch_job_status(job), FILCH_NOT_READY); /* the tile in flight finishes */
    gate_open = 1;
    assert_status(filch_job_wait(job, -1), FILCH_CANCELLED);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(ran, 0);
    assert_int_equal(info.done, 1);
    assert_int_equal(info.skipped, 30);
    assert_ok(filch_job_error(job, &error));
    assert_string_equal(error.text, "the job was cancelled");
    assert_ok(filch_job_release(job));
    assert_ok(fixture_run(graph)); /* and then runs as ever */
    assert_int_equal(ran, 30);
    assert_ok(filch_graph_destroy(graph));
}

static void cancelling_too_late_is_success(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    fixture_add(graph, gate, NULL, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&gate_entered, 1));
    assert_ok(filch_job_cancel(job));
    gate_open = 1;
    assert_ok(filch_job_wait(job, -1)); /* nothing was left out */
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* --- Callbacks --- */

typedef struct answer {
    filch_graph *next;
    filch_job *job;
    _Atomic int calls;
    filch_status status, wait, destroy, drain, abort, submit, resubmit;
    filch_graph *own;
    pthread_t thread;
} answer;

static void on_complete(filch_job *job, filch_status status, void *user)
{
    answer *a = user;
    a->status = status;
    a->thread = pthread_self();
    a->wait = filch_job_wait(job, -1);
    a->destroy = filch_runtime_destroy(runtime);
    a->drain = filch_runtime_drain(runtime, 0);
    a->abort = filch_runtime_abort(runtime);
    if (a->next != NULL) {
        a->submit = filch_graph_submit(a->next, NULL, &a->job);
    }
    if (a->own != NULL) {
        a->resubmit = filch_graph_submit(a->own, NULL, NULL);
    }
    ++a->calls;
}

static void callbacks_come_before_waits_return_and_may_submit(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *next = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *empty = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_code(graph, 0, NULL);
    add_code(next, 0, NULL);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_complete = on_complete;
    for (int kind = 0; kind < 2; ++kind) {
        filch_job *job = NULL;
        answer a = {.next = next, .own = kind == 0 ? graph : NULL};
        submit.user = &a;
        ran = 0;
        assert_ok(filch_graph_submit(kind == 0 ? graph : empty, &submit, &job));
        assert_ok(filch_job_wait(job, -1));
        assert_int_equal(a.calls, 1);
        assert_int_equal(a.status, FILCH_OK);
        assert_int_equal(a.wait, FILCH_WRONG_STATE);
        assert_int_equal(a.destroy, FILCH_WRONG_STATE);
        assert_int_equal(a.drain, FILCH_WRONG_STATE);
        assert_int_equal(a.abort, FILCH_WRONG_STATE);
        assert_int_equal(a.submit, FILCH_OK);
        assert_int_equal(a.resubmit, FILCH_OK);
        /* A job with work completes on a worker; an empty one inside its submission. */
        assert_int_equal(pthread_equal(a.thread, pthread_self()) != 0, kind == 1);
        assert_ok(filch_job_wait(a.job, -1));
        assert_ok(filch_job_release(a.job));
        assert_ok(filch_runtime_drain(runtime, -1));
        assert_int_equal(ran, kind == 0 ? 3 : 1);
        assert_ok(filch_job_release(job));
    }
}

static void a_refused_submission_calls_nobody(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task a = add_code(graph, 0, NULL), b = add_code(graph, 0, NULL);
    assert_ok(filch_graph_edge(graph, b, a));
    assert_ok(filch_graph_edge(graph, a, b));
    answer got = {0};
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_complete = on_complete;
    submit.user = &got;
    assert_status(filch_graph_submit(graph, &submit, NULL), FILCH_CYCLE);
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_int_equal(got.calls, 0);
}

static void a_released_job_goes_on(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    answer a = {0};
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_complete = on_complete;
    submit.user = &a;
    filch_task first = fixture_add(graph, gate, NULL, NULL, 0);
    assert_ok(filch_graph_edge(graph, first, add_code(graph, 0, NULL)));
    assert_ok(filch_graph_submit(graph, &submit, &job));
    assert_ok(filch_job_release(job));
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    gate_open = 1;
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_int_equal(a.calls, 1);
    assert_int_equal(ran, 1);
    assert_ok(filch_graph_destroy(graph));
}

/* --- Waiting inside tasks --- */

typedef struct nest {
    uint32_t depth, width;
    filch_job **own; /* the job that the task is in */
} nest;

static filch_codelet *nested;
static _Atomic int leaves;

static int run_nested(const filch_call *call)
{
    nest n = *(const nest *)call->args;
    if (n.own != NULL) {
        return filch_job_wait(*n.own, -1) == FILCH_WRONG_STATE ? 0 : 1;
    }
    if (n.depth == 0) {
        ++leaves;
        return 0;
    }
    filch_graph *graph;
    filch_job *job;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    nest inner = {n.depth - 1, n.width, NULL};
    desc.codelet = nested;
    desc.args = &inner;
    int failed = filch_graph_create(call->runtime, NULL, &graph) != FILCH_OK;
    for (uint32_t i = 0; i < n.width && failed == 0; ++i) {
        failed = filch_graph_add(graph, &desc, NULL) != FILCH_OK;
    }
    if (failed != 0 || filch_graph_submit(graph, NULL, &job) != FILCH_OK) {
        return 2;
    }
    /* A limit that has passed is reported, whatever there is to do. */
    filch_status early = filch_job_wait(job, 0);
    if (early != FILCH_TIMEOUT && early != FILCH_OK) {
        return 3;
    }
    if (filch_job_wait(job, -1) != FILCH_OK || filch_job_release(job) != FILCH_OK ||
        filch_graph_destroy(graph) != FILCH_OK) {
        return 4;
    }
    return filch_runtime_destroy(call->runtime) == FILCH_WRONG_STATE ? 0 : 5;
}

static void run_nest(const char *devices, filch_drive drive, bench_policy policy, nest n, int tasks)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    static bench_policy_room room; /* outlives the runtime */
    filch_runtime *rt = NULL;
    config.devices = devices;
    config.drive = drive;
    bench_policy_choose(policy, &room, &config);
    assert_ok(filch_runtime_create(&config, NULL, &rt));
    nested = fixture_codelet(rt, "nested", run_nested, sizeof(nest));
    filch_graph *graph = fixture_graph(rt, FILCH_GRAPH_CLOSED);
    int expected = tasks;
    for (uint32_t d = 0; d < n.depth; ++d) {
        expected *= (int)n.width;
    }
    for (int i = 0; i < tasks; ++i) {
        fixture_add(graph, nested, &n, NULL, 0);
    }
    leaves = 0;
    assert_ok(fixture_run(graph));
    assert_int_equal(leaves, expected);
    assert_ok(filch_runtime_destroy(rt));
}

static void tasks_wait_for_other_work_in_every_drive(void **state)
{
    (void)state;
    static const char *const devices[] = {"host:1", "host:2", "host:4"};
    for (size_t d = 0; d < 3; ++d) {
        for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
            for (int policy = BENCH_POLICY_STEAL; policy <= BENCH_POLICY_EARLIEST; ++policy) {
                if (policy == BENCH_POLICY_PERFECT) {
                    continue; /* static, with what was measured */
                }
                run_nest(devices[d], (filch_drive)drive, (bench_policy)policy, (nest){4, 3, NULL},
                         2);
            }
        }
    }
}

static void many_waiting_tasks_do_not_pile_up_on_the_stack(void **state)
{
    (void)state;
    run_nest("host:1", FILCH_DRIVE_THREADS, BENCH_POLICY_STEAL, (nest){1, 4, NULL}, 3000);
    run_nest("host:3", FILCH_DRIVE_THREADS, BENCH_POLICY_STEAL, (nest){1, 4, NULL}, 3000);
    run_nest("host:2", FILCH_DRIVE_POLL, BENCH_POLICY_STEAL, (nest){1, 4, NULL}, 3000);
    for (int policy = BENCH_POLICY_CENTRAL; policy <= BENCH_POLICY_EARLIEST; ++policy) {
        run_nest("host:3", FILCH_DRIVE_THREADS, (bench_policy)policy, (nest){1, 4, NULL}, 1000);
        run_nest("host:2", FILCH_DRIVE_POLL, (bench_policy)policy, (nest){1, 4, NULL}, 1000);
    }
}

static void a_task_cannot_wait_for_its_own_job(void **state)
{
    (void)state;
    nested = fixture_codelet(runtime, "nested", run_nested, sizeof(nest));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    static filch_job *job;
    nest n = {.own = &job};
    fixture_add(graph, nested, &n, NULL, 0);
    filch_task first = fixture_add(graph, gate, NULL, NULL, 0);
    (void)first;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    gate_open = 1;
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* --- Jobs that share handles --- */

static _Atomic int readers_inside, sequence;
static int stamps[8];

static int stamp(const filch_call *call)
{
    stamps[*(const int *)call->args] = ++sequence;
    return 0;
}

/* Two of them must be inside at once. */
static int meet(const filch_call *call)
{
    (void)call;
    ++readers_inside;
    return fixture_await(&readers_inside, 2) ? 0 : 1;
}

static filch_graph *one_task(filch_codelet *codelet, const void *args, filch_data *data,
                             filch_access_mode mode)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access access = fixture_access(data, 0, mode);
    fixture_add(graph, codelet, args, &access, 1);
    return graph;
}

static void readers_run_together(void **state)
{
    (void)state;
    filch_codelet *meeting = fixture_codelet(runtime, "meet", meet, 0);
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 8);
    filch_graph *a = one_task(meeting, NULL, data, FILCH_READ);
    filch_graph *b = one_task(meeting, NULL, data, FILCH_READ);
    filch_job *jobs[2];
    readers_inside = 0;
    assert_ok(filch_graph_submit(a, NULL, &jobs[0]));
    assert_ok(filch_graph_submit(b, NULL, &jobs[1]));
    assert_ok(filch_job_wait(jobs[0], -1));
    assert_ok(filch_job_wait(jobs[1], -1));
    assert_ok(filch_job_release(jobs[0]));
    assert_ok(filch_job_release(jobs[1]));
}

static void conflicting_jobs_run_in_the_order_of_submission(void **state)
{
    (void)state;
    filch_codelet *stamper = fixture_codelet(runtime, "stamp", stamp, sizeof(int));
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 8);
    filch_graph *holder = one_task(gate, NULL, data, FILCH_READWRITE);
    filch_graph *graphs[8];
    filch_job *jobs[9];
    /* Another tile of the same handle counts as well: the order is by handle. */
    for (int i = 0; i < 8; ++i) {
        graphs[i] = one_task(stamper, &i, data, i % 2 == 0 ? FILCH_WRITE : FILCH_READ);
    }
    sequence = 0;
    assert_ok(filch_graph_submit(holder, NULL, &jobs[8]));
    for (int i = 0; i < 8; ++i) {
        assert_ok(filch_graph_submit(graphs[i], NULL, &jobs[i]));
    }
    assert_true(fixture_await(&gate_entered, 1));
    assert_status(filch_job_wait(jobs[0], 0.005), FILCH_TIMEOUT);
    assert_int_equal(sequence, 0);
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_job_stats(jobs[7], &info, NULL, 0));
    assert_true(info.seconds == 0); /* not started */
    assert_ok(filch_job_cancel(jobs[3]));
    gate_open = 1;
    for (int i = 0; i < 8; ++i) {
        assert_status(filch_job_wait(jobs[i], -1), i == 3 ? FILCH_CANCELLED : FILCH_OK);
    }
    int last = 0;
    for (int i = 0; i < 8; ++i) {
        if (i != 3) {
            assert_true(stamps[i] > last);
            last = stamps[i];
        }
    }
    assert_ok(filch_job_wait(jobs[8], -1));
    for (int i = 0; i < 9; ++i) {
        assert_ok(filch_job_release(jobs[i]));
    }
}

static void more_jobs_than_slots_all_run(void **state)
{
    (void)state;
    enum { JOBS = 600 };
    static filch_job *jobs[JOBS];
    static filch_graph *graphs[JOBS];
    filch_graph *holders = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *held = NULL;
    fixture_add(holders, gate, NULL, NULL, 0);
    fixture_add(holders, gate, NULL, NULL, 0);
    assert_ok(filch_graph_submit(holders, NULL, &held));
    for (int i = 0; i < JOBS; ++i) {
        graphs[i] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        add_code(graphs[i], 0, NULL);
        add_code(graphs[i], 0, NULL);
        assert_ok(filch_graph_submit(graphs[i], NULL, &jobs[i]));
    }
    gate_open = 1;
    for (int i = JOBS; i-- > 0;) {
        assert_ok(filch_job_wait(jobs[i], -1));
        assert_ok(filch_job_release(jobs[i]));
        assert_ok(filch_graph_destroy(graphs[i]));
    }
    assert_int_equal(ran, 2 * JOBS);
    assert_ok(filch_job_wait(held, -1));
    assert_ok(filch_job_release(held));
}

static void *submit_and_wait(void *user)
{
    filch_graph *graph = user;
    for (int i = 0; i < 300; ++i) {
        filch_job *job = NULL;
        filch_job_info info = {.size = sizeof info};
        if (filch_graph_submit(graph, NULL, &job) != FILCH_OK ||
            filch_job_stats(job, &info, NULL, 0) != FILCH_OK ||
            filch_job_wait(job, -1) != FILCH_OK || filch_job_release(job) != FILCH_OK) {
            return user;
        }
    }
    return NULL;
}

static void threads_submit_side_by_side(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 8);
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) {
        filch_graph *graph = one_task(nothing, NULL, data, i % 2 ? FILCH_READ : FILCH_READWRITE);
        fixture_add(graph, nothing, NULL, NULL, 0);
        assert_int_equal(pthread_create(&threads[i], NULL, submit_and_wait, graph), 0);
    }
    for (int i = 0; i < 4; ++i) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* Behind the caller's job stand: one that shares its handle, and one that shares another handle
 * with that one. A third job stands beside them. */
static filch_job *behind[3];
static filch_status verdicts[3];

static int wait_for_those_behind(const filch_call *call)
{
    (void)call;
    if (!fixture_await(&gate_open, 1)) {
        return 1;
    }
    for (int i = 0; i < 3; ++i) {
        verdicts[i] = filch_job_wait(behind[i], PATIENCE);
    }
    return 0;
}

static void a_task_cannot_wait_for_what_its_job_holds_up(void **state)
{
    (void)state;
    filch_data *shared = fixture_vector(runtime, buffer, 8, 32, 32);
    filch_data *further = fixture_vector(runtime, buffer + 32, 8, 32, 32);
    filch_codelet *waits = fixture_codelet(runtime, "waits", wait_for_those_behind, 0);
    filch_access both[] = {fixture_access(shared, 0, FILCH_READ),
                           fixture_access(further, 0, FILCH_WRITE)};
    filch_graph *middle = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(middle, nothing, NULL, both, 2);
    filch_graph *beside = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(beside, nothing, NULL, NULL, 0);
    filch_job *first = NULL;
    assert_ok(filch_graph_submit(one_task(waits, NULL, shared, FILCH_READWRITE), NULL, &first));
    assert_ok(filch_graph_submit(middle, NULL, &behind[0]));
    assert_ok(filch_graph_submit(one_task(nothing, NULL, further, FILCH_READ), NULL, &behind[1]));
    assert_ok(filch_graph_submit(beside, NULL, &behind[2]));
    gate_open = 1;
    assert_ok(filch_job_wait(first, -1));
    assert_int_equal(verdicts[0], FILCH_WRONG_STATE);
    assert_int_equal(verdicts[1], FILCH_WRONG_STATE);
    assert_int_equal(verdicts[2], FILCH_OK);
    assert_ok(filch_job_release(first));
    for (int i = 0; i < 3; ++i) {
        assert_ok(filch_job_wait(behind[i], -1)); /* they ran in the end */
        assert_ok(filch_job_release(behind[i]));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arguments_are_checked),
        TEST(a_failure_skips_dependants_only),
        TEST(a_failure_can_cancel_the_rest),
        TEST(cancelling_leaves_out_what_has_not_started),
        TEST(cancelling_too_late_is_success),
        TEST(callbacks_come_before_waits_return_and_may_submit),
        TEST(a_refused_submission_calls_nobody),
        TEST(a_released_job_goes_on),
        TEST(tasks_wait_for_other_work_in_every_drive),
        TEST(many_waiting_tasks_do_not_pile_up_on_the_stack),
        TEST(a_task_cannot_wait_for_its_own_job),
        TEST(readers_run_together),
        TEST(conflicting_jobs_run_in_the_order_of_submission),
        TEST(a_task_cannot_wait_for_what_its_job_holds_up),
        TEST(more_jobs_than_slots_all_run),
        TEST(threads_submit_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
