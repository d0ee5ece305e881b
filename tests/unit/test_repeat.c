/* SPDX-License-Identifier: Apache-2.0 */
/* Repetitions: who stops them and when, what runs between, what the job tells, who is refused. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHAIN = 5, WIDE = 40, LIMIT = 1000 };

static filch_runtime *runtime;
static filch_codelet *step;
static filch_data *data;
static filch_graph *graph;
static filch_job *job_now;
static double value; /* of the one tile: counts tasks */
static _Atomic int ran, runs_asked, inside, completed, blocked, open_gate;
static uint64_t stop_at;
static int answer;             /* at run stop_at */
static double seen[LIMIT + 1]; /* value told about each run */

/* What task number `task` does in run number `run` (from 1). */
static struct {
    enum { GO, FINISH, FAIL, CANCEL, BLOCK, PEND } what;
    int task, run;
} special;

static filch_pending late;

static int count(const filch_call *call)
{
    int number = *(const int *)call->args;
    double *tile = call->views[0].ptr;
    int run = (int)tile[0] / CHAIN + 1;
    ++tile[0];
    ++ran;
    if (number != special.task || run != special.run) {
        return 0;
    }
    switch (special.what) {
    case FINISH:
        return filch_call_finish(call) == FILCH_OK ? 0 : 90;
    case FAIL:
        return 7;
    case CANCEL:
        return filch_job_cancel(job_now) == FILCH_OK ? 0 : 91;
    case BLOCK:
        ++blocked;
        return fixture_await(&open_gate, 1) ? 0 : 92;
    case PEND:
        if (filch_call_pend(call, &late) != FILCH_OK) {
            return 93;
        }
        ++blocked;
        return FILCH_PENDING;
    default:
        return 0;
    }
}

static int predicate(uint64_t run, const void *told, void *user)
{
    /* Never twice at a time, and in order. */
    if (inside++ != 0 || run != (uint64_t)runs_asked + 1 || user != &value) {
        return 80;
    }
    if (told != NULL) {
        memcpy(&seen[run < LIMIT ? run : LIMIT], told, sizeof *seen);
    }
    runs_asked = (int)run;
    --inside;
    return run == stop_at ? answer : FILCH_REPEAT_AGAIN;
}

static void on_complete(filch_job *job, filch_status status, void *user)
{
    (void)status;
    /* Complete but for the callback. */
    completed += filch_job_status(job) == FILCH_NOT_READY && user == &value;
}

static void begin(const char *devices, filch_drive drive)
{
    runtime = fixture_runtime(devices, drive, NULL);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "count";
    desc.host = count;
    desc.arg_size = sizeof(int);
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &step));
    data = fixture_vector(runtime, &value, sizeof value, 1, 1);
    graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < CHAIN; ++i) {
        fixture_add(graph, step, &i, &fixture_access(data, 0, FILCH_READWRITE), 1);
    }
    value = 0;
    ran = runs_asked = inside = completed = blocked = open_gate = 0;
    stop_at = 0;
    answer = FILCH_REPEAT_STOP;
    special.task = special.run = -1;
    job_now = NULL;
}

static void end(void)
{
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

static int set_up(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    end();
    return 0;
}

static filch_repeat_desc with(uint32_t lag, uint64_t most)
{
    filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
    desc.predicate = predicate;
    desc.user = &value;
    desc.value = &value;
    desc.value_bytes = sizeof value;
    desc.lag = lag;
    desc.max_runs = most;
    return desc;
}

static void start(filch_repeat_desc desc)
{
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_complete = on_complete;
    submit.user = &value;
    submit.label = "until";
    assert_ok(filch_graph_repeat(graph, &desc, &submit, &job_now));
}

/* Waits, checks the result, the runs and the tasks, and gives the job back. */
static void expect(filch_status status, uint64_t runs, uint64_t tasks)
{
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_status(filch_job_wait(job_now, -1), status);
    assert_status(filch_job_status(job_now), status);
    assert_ok(filch_job_stats(job_now, &info, NULL, 0));
    assert_int_equal(info.runs, runs);
    assert_int_equal(info.total, runs * CHAIN);
    assert_int_equal(info.done + info.failed, tasks);
    assert_int_equal(info.skipped, runs * CHAIN - tasks);
    assert_int_equal(ran, tasks);
    assert_true(value == (double)tasks);
    assert_int_equal(completed, 1);
    assert_ok(filch_job_release(job_now));
    job_now = NULL;
}

static void the_predicate_stops(void **state)
{
    (void)state;
    stop_at = 20;
    start(with(0, 0));
    expect(FILCH_OK, 20, 20 * CHAIN);
    for (int run = 1; run <= 20; ++run) {
        assert_true(seen[run] == run * CHAIN);
    }
    /* The graph runs as before. */
    assert_ok(fixture_run(graph));
}

static void with_a_lag_one_run_more(void **state)
{
    (void)state;
    stop_at = 20;
    start(with(1, 0));
    expect(FILCH_OK, 21, 21 * CHAIN);
    assert_int_equal(runs_asked, 20);
    for (int run = 1; run <= 20; ++run) {
        assert_true(seen[run] == run * CHAIN); /* as at the end of that run */
    }
}

static void a_limit_stops(void **state)
{
    (void)state;
    for (uint32_t lag = 0; lag < 2; ++lag) {
        value = ran = runs_asked = completed = 0;
        start(with(lag, 9));
        expect(FILCH_OK, 9, 9 * CHAIN);
        assert_int_equal(runs_asked, 9);
    }
    value = ran = completed = 0;
    filch_repeat_desc alone = FILCH_REPEAT_DESC_INIT;
    alone.max_runs = 1;
    start(alone);
    expect(FILCH_OK, 1, CHAIN);
}

static void a_task_finishes(void **state)
{
    (void)state;
    special.what = FINISH;
    special.run = 6;
    for (int i = 0; i < 3; ++i) {
        special.task = i == 2 ? CHAIN - 1 : 1;
        value = ran = runs_asked = completed = 0;
        filch_repeat_desc alone = FILCH_REPEAT_DESC_INIT;
        start(i == 0 ? alone : with(i == 1, 0));
        expect(FILCH_OK, 6, 5 * CHAIN + (uint64_t)special.task + 1);
        assert_int_equal(runs_asked, i == 0 ? 0 : 5); /* not about the finished run */
    }
}

static void a_failure_ends_all(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    special.what = FAIL;
    special.task = 2;
    special.run = 4;
    for (uint32_t lag = 0; lag < 2; ++lag) {
        value = ran = runs_asked = completed = 0;
        start(with(lag, 0));
        assert_status(filch_job_wait(job_now, -1), FILCH_TASK_FAILED);
        assert_ok(filch_job_error(job_now, &error));
        assert_int_equal(error.native_code, 7);
        assert_non_null(strstr(error.text, "'until'"));
        expect(FILCH_TASK_FAILED, 4, 3 * CHAIN + 3);
        assert_int_equal(runs_asked, 3);
    }
}

static void the_predicate_fails(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    stop_at = 3;
    answer = 55;
    for (uint32_t lag = 0; lag < 2; ++lag) {
        value = ran = runs_asked = completed = 0;
        start(with(lag, 0));
        assert_status(filch_job_wait(job_now, -1), FILCH_TASK_FAILED);
        assert_ok(filch_job_error(job_now, &error));
        assert_int_equal(error.native_code, 55);
        assert_non_null(strstr(error.text, "predicate of job 'until' returned 55 about run 3"));
        expect(FILCH_TASK_FAILED, 3 + lag, (3 + lag) * CHAIN);
    }
}

static void a_cancellation_ends_all(void **state)
{
    (void)state;
    special.what = BLOCK; /* so that job_now is known */
    special.task = 0;
    special.run = 1;
    start(with(0, 0));
    assert_true(fixture_await(&blocked, 1));
    assert_ok(filch_job_cancel(job_now));
    open_gate = 1;
    assert_status(filch_job_wait(job_now, -1), FILCH_CANCELLED);
    expect(FILCH_CANCELLED, 1, 1);
    /* From a task of a later run; and at an unknown time. */
    for (int i = 0; i < 20; ++i) {
        value = ran = runs_asked = completed = 0;
        start(with((uint32_t)i % 2, 0));
        assert_true(fixture_await(&ran, i * 10));
        assert_ok(filch_job_cancel(job_now));
        assert_status(filch_job_wait(job_now, -1), FILCH_CANCELLED);
        assert_ok(filch_job_release(job_now));
    }
}

static void an_abort_ends_all(void **state)
{
    (void)state;
    for (uint32_t lag = 0; lag < 2; ++lag) {
        start(with(lag, 0));
        assert_true(fixture_await(&ran, 20));
        assert_ok(filch_job_release(job_now));
        assert_ok(filch_runtime_abort(runtime));
        assert_int_equal(completed, 1);
        begin("host:2", FILCH_DRIVE_THREADS);
    }
}

/* --- What is between the runs --- */

static _Atomic int stop_now;

static int until_told(uint64_t run, const void *told, void *user)
{
    (void)run;
    (void)told;
    (void)user;
    return stop_now != 0 ? FILCH_REPEAT_STOP : FILCH_REPEAT_AGAIN;
}

static void *acquire(void *argument)
{
    filch_hold *hold = NULL;
    (void)argument;
    if (filch_data_acquire_tiles(data, NULL, FILCH_READWRITE, -1, &hold) != FILCH_OK) {
        return &value;
    }
    /* No run is in progress, and none follows. */
    value += 0.5;
    bool is_over = stop_now != 0;
    return filch_hold_release(hold) == FILCH_OK && is_over ? NULL : &value;
}

static void nobody_comes_between(void **state)
{
    (void)state;
    filch_graph *other = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_repeat_desc desc = with(1, 0);
    filch_job *behind = NULL;
    pthread_t thread;
    void *wrong = NULL;
    int number = 0;
    fixture_add(other, step, &number, &fixture_access(data, 0, FILCH_READWRITE), 1);
    desc.predicate = until_told;
    stop_now = 0;
    start(desc);
    assert_true(fixture_await(&ran, 20));
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    assert_status(filch_data_acquire(data, FILCH_READ), FILCH_BUSY);
    assert_ok(filch_graph_submit(other, NULL, &behind));
    assert_int_equal(pthread_create(&thread, NULL, acquire, NULL), 0);
    int then = ran;
    assert_true(fixture_await(&ran, then + 20 * CHAIN));
    assert_status(filch_job_status(behind), FILCH_NOT_READY);
    stop_now = 1;
    assert_ok(filch_job_wait(job_now, -1));
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_stats(job_now, &info, NULL, 0));
    assert_int_equal(info.done, info.runs * CHAIN);
    assert_ok(filch_job_wait(behind, -1));
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(ran, info.done + 1);
    assert_true(value == (double)info.done + 1.5);
    assert_ok(filch_job_release(behind));
    assert_ok(filch_job_release(job_now));
    assert_ok(filch_graph_destroy(other));
}

static void pending_tasks_hold_a_run(void **state)
{
    (void)state;
    special.what = PEND;
    special.task = 3;
    special.run = 2;
    stop_at = 4;
    start(with(0, 0));
    assert_true(fixture_await(&blocked, 1));
    assert_status(filch_job_wait(job_now, 0.001), FILCH_TIMEOUT);
    assert_int_equal(runs_asked, 1);
    assert_ok(filch_pending_end(late, 0, NULL));
    expect(FILCH_OK, 4, 4 * CHAIN);
}

/* --- Waiting inside tasks --- */

static filch_status from_inside;

static int wait_for_own(const filch_call *call)
{
    (void)call;
    from_inside = filch_job_wait(job_now, -1);
    return 0;
}

static int repeat_inside(const filch_call *call)
{
    (void)call;
    filch_repeat_desc desc = with(0, 0);
    filch_job *job = NULL;
    if (filch_graph_repeat(graph, &desc, NULL, &job) != FILCH_OK) {
        return 94;
    }
    filch_status status = filch_job_wait(job, -1);
    return filch_job_release(job) == FILCH_OK && status == FILCH_OK ? 0 : 95;
}

static void tasks_may_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 2; ++i) {
        end();
        begin("host:1", i == 0 ? FILCH_DRIVE_THREADS : FILCH_DRIVE_POLL);
        filch_graph *outer = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        fixture_add(outer, fixture_codelet(runtime, "outer", repeat_inside, 0), NULL, NULL, 0);
        stop_at = 30;
        assert_ok(fixture_run(outer));
        assert_int_equal(ran, 30 * CHAIN);
        assert_ok(filch_graph_destroy(outer));
        /* A task cannot wait for its own repetition. */
        filch_graph *own = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        fixture_add(own, fixture_codelet(runtime, "own", wait_for_own, 0), NULL, NULL, 0);
        filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
        desc.max_runs = 3;
        from_inside = FILCH_OK;
        assert_ok(filch_graph_repeat(own, &desc, NULL, &job_now));
        assert_ok(filch_job_wait(job_now, -1));
        assert_status(from_inside, FILCH_WRONG_STATE);
        assert_ok(filch_job_release(job_now));
        assert_ok(filch_graph_destroy(own));
    }
}

/* --- Other drives and devices --- */

static void polling_and_simulated_devices_repeat(void **state)
{
    (void)state;
    for (int i = 0; i < 4; ++i) {
        end();
        begin(i < 2 ? "host:2" : "sim:bench/data/sim/two.json",
              i < 2 ? FILCH_DRIVE_POLL : FILCH_DRIVE_DEFAULT);
        stop_at = 50;
        start(with((uint32_t)i % 2, 0));
        expect(FILCH_OK, 50u + (unsigned)i % 2, (50 + (uint64_t)i % 2) * CHAIN);
    }
}

static void devices_come_and_go(void **state)
{
    (void)state;
    for (uint32_t lag = 0; lag < 2; ++lag) {
        value = ran = runs_asked = completed = 0;
        stop_at = 400;
        start(with(lag, 0));
        for (int i = 0; i < 10; ++i) {
            assert_true(fixture_await(&ran, i * 20 * CHAIN));
            assert_ok(filch_device_withdraw(runtime, (uint32_t)i % 2));
            assert_ok(filch_device_readmit(runtime, (uint32_t)i % 2));
        }
        expect(FILCH_OK, 400 + lag, (400 + lag) * CHAIN);
    }
}

static void a_trace_shows_each_run(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-repeat-XXXXXX", text[65536] = "";
    int descriptor = mkstemp(path), jobs = 0;
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_ok(filch_trace_start(runtime));
    start(with(1, 6));
    expect(FILCH_OK, 6, 6 * CHAIN);
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_trace_write(runtime, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    for (const char *at = text; (at = strstr(at, "\"cat\":\"job\"")) != NULL; ++at) {
        ++jobs;
    }
    assert_int_equal(jobs, 6);
    unlink(path);
}

/* --- Refusals --- */

/* Workers take used jobs for the runs while a thread reads the labels of what is running. */
static void a_busy_runtime_tells_its_runs(void **state)
{
    (void)state;
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.label = "open";
    assert_ok(filch_graph_submit(open, &submit, NULL));
    start(with(0, LIMIT));
    do {
        assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
        const char *text = fixture_error(runtime).text;
        assert_non_null(strstr(text, "'open'"));
    } while (filch_job_status(job_now) == FILCH_NOT_READY);
    assert_ok(filch_job_wait(job_now, -1));
    assert_ok(filch_job_release(job_now));
    assert_ok(filch_graph_close(open));
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_graph_destroy(open));
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    filch_job *job = NULL;
    filch_repeat_desc desc = with(2, 0);
    assert_status(filch_graph_repeat(NULL, NULL, NULL, &job), FILCH_INVALID_HANDLE);
    assert_status(filch_graph_repeat(graph, &desc, NULL, &job), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "lag"));
    desc = with(0, 0);
    desc.size = 1;
    assert_status(filch_graph_repeat(graph, &desc, NULL, &job), FILCH_INVALID_ARGUMENT);
    desc = with(0, 0);
    desc.value_bytes = 0;
    assert_status(filch_graph_repeat(graph, &desc, NULL, &job), FILCH_INVALID_ARGUMENT);
    desc.value_bytes = FILCH_REPEAT_VALUE_BYTES + 1;
    assert_status(filch_graph_repeat(graph, &desc, NULL, &job), FILCH_INVALID_ARGUMENT);
    desc = with(0, 0);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.reserved = 1;
    assert_status(filch_graph_repeat(graph, &desc, &submit, &job), FILCH_INVALID_ARGUMENT);
    submit.reserved = 0;
    submit.cuda_signal = &submit;
    assert_status(filch_graph_repeat(graph, &desc, &submit, &job), FILCH_UNSUPPORTED);
    filch_graph *empty = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_status(filch_graph_repeat(empty, &desc, NULL, &job), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "no tasks"));
    assert_ok(filch_graph_destroy(empty));
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    assert_status(filch_graph_repeat(open, &desc, NULL, &job), FILCH_WRONG_STATE);
    assert_ok(filch_graph_destroy(open));
    assert_ok(filch_data_acquire(data, FILCH_READ));
    assert_status(filch_graph_repeat(graph, &desc, NULL, &job), FILCH_BUSY);
    assert_ok(filch_data_release(data));
    assert_null(job);
    assert_int_equal(ran, 0);
    /* No handle is kept; and what the handle does not tell. */
    desc.max_runs = 3;
    assert_ok(filch_graph_repeat(graph, &desc, NULL, NULL));
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_int_equal(ran, 3 * CHAIN);
    runs_asked = 0;
    assert_ok(filch_graph_repeat(graph, &desc, NULL, &job));
    filch_report report = FILCH_REPORT_INIT;
    assert_status(filch_job_report(job, NULL, &report, NULL, 0), FILCH_WRONG_STATE);
    assert_ok(filch_job_wait(job, -1));
    assert_status(filch_job_resume(job, NULL, NULL, &job_now), FILCH_WRONG_STATE);
    assert_ok(filch_job_release(job));
}

static void no_memory_is_refused(void **state)
{
    (void)state;
    end();
    fixture_memory memory;
    fixture_memory_init(&memory);
    filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
    desc.max_runs = 10;
    bool was_refused = false, was_done = false;
    for (int64_t n = 1; n < 200 && !was_done; ++n) {
        filch_runtime *small = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
        filch_graph *one = fixture_graph(small, FILCH_GRAPH_CLOSED);
        filch_job *job = NULL;
        fixture_add(one, fixture_codelet(small, "nothing", fixture_nothing, 0), NULL, NULL, 0);
        fixture_memory_fail_after(&memory, n);
        filch_status status = filch_graph_repeat(one, &desc, NULL, &job);
        if (status == FILCH_OK) {
            /* Runs need no memory any more. */
            memory.fail_all = 1;
            assert_ok(filch_job_wait(job, -1));
            memory.fail_all = 0;
            assert_ok(filch_job_release(job));
            was_done = true;
        } else {
            assert_status(status, FILCH_OUT_OF_MEMORY);
            was_refused = true;
        }
        fixture_memory_fail_after(&memory, 0);
        assert_ok(filch_graph_destroy(one));
        assert_ok(filch_runtime_destroy(small));
        assert_int_equal(memory.pieces, 0);
    }
    assert_true(was_refused && was_done);
    begin("host:2", FILCH_DRIVE_THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_predicate_stops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_a_lag_one_run_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_limit_stops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_task_finishes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_ends_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_predicate_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancellation_ends_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_abort_ends_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_comes_between, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pending_tasks_hold_a_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tasks_may_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(polling_and_simulated_devices_repeat, set_up, tear_down),
        cmocka_unit_test_setup_teardown(devices_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trace_shows_each_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_busy_runtime_tells_its_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_arguments_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_memory_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
