/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that end after their functions have returned: who may end them and when, what stays valid,
 * failures and reasons, cancelling, and what else runs meanwhile. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 1000, TILE = 16 };

static filch_runtime *runtime;
static filch_codelet *late, *now, *code;
static double buffer[MANY * TILE];

/* Handles of the tasks that became pending, in order. */
static filch_pending taken[2 * MANY];
static const filch_call *calls[2 * MANY];
static _Atomic int taken_count, ran;

typedef struct late_args {
    int mode; /* of the function below */
    int value;
} late_args;

enum {
    LATE,        /* returns FILCH_PENDING */
    EARLY,       /* ends its task, then returns FILCH_PENDING */
    EARLY_FAILS, /* likewise, with a code */
    CODE,        /* takes the handle, and returns a code */
    EARLY_CODE,  /* ends its task with a code, and returns another one */
    NO_HANDLE,   /* returns FILCH_PENDING without a handle */
    TWICE,       /* takes the handle twice */
    SCRATCH      /* fills its scratch, and returns FILCH_PENDING */
};

static int pend(const filch_call *call)
{
    const late_args *args = call->args;
    filch_pending pending = {0}, again = {0};
    if (args->mode == NO_HANDLE) {
        return FILCH_PENDING;
    }
    if (filch_call_pend(call, &pending) != FILCH_OK ||
        filch_pending_status(pending) != FILCH_NOT_READY) {
        return 90;
    }
    if (args->mode == TWICE && (filch_call_pend(call, &again) != FILCH_OK ||
                                memcmp(&again, &pending, sizeof again) != 0)) {
        return 91;
    }
    if (args->mode == SCRATCH) {
        memset(call->views[call->view_count - 1].ptr, args->value,
               call->views[call->view_count - 1].rows);
    }
    if ((args->mode == EARLY && filch_pending_end(pending, 0, NULL) != FILCH_OK) ||
        ((args->mode == EARLY_FAILS || args->mode == EARLY_CODE) &&
         filch_pending_end(pending, args->value, "an early reason") != FILCH_OK)) {
        return 92;
    }
    int at = taken_count;
    calls[at] = call;
    taken[at] = pending;
    ++taken_count;
    return args->mode == CODE ? args->value : args->mode == EARLY_CODE ? 93 : FILCH_PENDING;
}

/* Adds its argument to the first element of the last view. */
static int add_to_tile(const filch_call *call)
{
    ++ran;
    if (call->view_count != 0) {
        double *tile = call->views[call->view_count - 1].ptr;
        tile[0] += *(const int *)call->args;
    }
    return 0;
}

static int fail_with_text(const filch_call *call)
{
    int value = *(const int *)call->args;
    /* A function that succeeds may give a reason, too. */
    if (value < 100) {
        char text[32];
        snprintf(text, sizeof text, "reason %d", value);
        if (filch_call_set_text(call, "replaced") != FILCH_OK ||
            filch_call_set_text(call, text) != FILCH_OK) {
            return 94;
        }
    }
    return value;
}

static filch_codelet *late_codelet(filch_runtime *rt)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    desc.name = "late";
    desc.host = pend;
    desc.arg_size = sizeof(late_args);
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(rt, &desc, &made));
    return made;
}

static void begin(const char *devices, filch_drive drive)
{
    runtime = fixture_runtime(devices, drive, NULL);
    late = late_codelet(runtime);
    now = fixture_codelet(runtime, "now", add_to_tile, sizeof(int));
    code = fixture_codelet(runtime, "code", fail_with_text, sizeof(int));
    taken_count = ran = 0;
    memset(buffer, 0, sizeof buffer);
}

static int set_up(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_THREADS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

static filch_task add_late(filch_graph *graph, int mode, int value, const filch_access *accesses,
                           uint32_t count)
{
    late_args args = {mode, value};
    return fixture_add(graph, late, &args, accesses, count);
}

static filch_task add_now(filch_graph *graph, int value, const filch_access *accesses,
                          uint32_t count)
{
    return fixture_add(graph, now, &value, accesses, count);
}

/* The rest of a test that ends one task from the outside: the task waits until then, and its
 * successor runs after. */
static void end_one(filch_graph *graph, double *tile)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, 1));
    assert_status(filch_job_wait(job, 0.001), FILCH_TIMEOUT);
    assert_int_equal(ran, 0);
    tile[0] = 5;
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    assert_ok(filch_job_wait(job, -1));
    assert_int_equal(ran, 1);
    assert_true(tile[0] == 7);
    assert_ok(filch_job_release(job));
}

static void another_thread_ends_a_task(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_late(graph, TWICE, 0, &fixture_access(data, 0, FILCH_READWRITE), 1);
    add_now(graph, 2, &fixture_access(data, 0, FILCH_READWRITE), 1);
    end_one(graph, buffer);
    /* The same graph again: the old handle names no task, and the new one does. */
    filch_pending old = taken[0];
    taken_count = ran = 0;
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, 1));
    assert_status(filch_pending_end(old, 0, NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_pending_status(old), FILCH_INVALID_HANDLE);
    assert_status(filch_pending_status(taken[0]), FILCH_NOT_READY);
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    const filch_pending none = {0};
    filch_pending pending = {0};
    const filch_call empty = {0};
    assert_status(filch_pending_end(none, 0, NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_pending_status(none), FILCH_INVALID_HANDLE);
    assert_status(filch_call_pend(NULL, &pending), FILCH_INVALID_ARGUMENT);
    assert_status(filch_call_pend(&empty, &pending), FILCH_WRONG_STATE);
    assert_status(filch_call_set_text(NULL, "text"), FILCH_INVALID_ARGUMENT);
    assert_status(filch_call_set_text(&empty, "text"), FILCH_WRONG_STATE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    add_late(graph, LATE, 0, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, 1));
    /* The call's structure is still there, but its function does not run. */
    assert_status(filch_call_pend(calls[0], &pending), FILCH_WRONG_STATE);
    assert_non_null(strstr(fixture_error(runtime).text, "runs no host function"));
    assert_status(filch_call_set_text(calls[0], "text"), FILCH_WRONG_STATE);
    assert_status(filch_pending_end(taken[0], FILCH_PENDING, NULL), FILCH_INVALID_ARGUMENT);
    pending = taken[0];
    ++pending.serial;
    assert_status(filch_pending_end(pending, 0, NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_job_status(job), FILCH_NOT_READY);
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    assert_status(filch_pending_end(taken[0], 0, NULL), FILCH_INVALID_HANDLE);
    assert_ok(filch_job_wait(job, -1));
    assert_status(filch_pending_end(taken[0], 0, NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_pending_status(taken[0]), FILCH_INVALID_HANDLE);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static int pend_unasked(const filch_call *call)
{
    filch_pending pending;
    return filch_call_pend(call, &pending) == FILCH_WRONG_STATE &&
                   filch_call_pend(call, NULL) == FILCH_INVALID_ARGUMENT &&
                   filch_call_set_text(call, NULL) == FILCH_INVALID_ARGUMENT
               ? FILCH_PENDING
               : 95;
}

static void work_that_cannot_pend_is_refused(void **state)
{
    (void)state;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "both";
    desc.host = pend;
    desc.flags = FILCH_CODELET_MAY_PEND | FILCH_CODELET_RESTARTABLE;
    assert_status(filch_codelet_create(runtime, &desc, &codelet), FILCH_INVALID_ARGUMENT);
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    late_args args = {LATE, 0};
    batch.codelet = late;
    batch.args = &args;
    batch.n = 8;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "cannot pend"));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = late;
    task.args = &args;
    task.items = 8;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "not divisible"));
    filch_codelet *plain = fixture_codelet(runtime, "plain", fixture_nothing, 0);
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    assert_ok(filch_data_reduction(data, plain, plain));
    task.items = 0;
    task.accesses = &fixture_access(data, 0, FILCH_REDUCE);
    task.access_count = 1;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "cannot reduce"));
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    assert_status(filch_data_reduction(data, plain, codelet), FILCH_INVALID_ARGUMENT);
    /* Where a task may not pend, FILCH_PENDING is an own code as any other. */
    filch_codelet *unasked = fixture_codelet(runtime, "unasked", pend_unasked, 0);
    filch_error error = FILCH_ERROR_INIT;
    fixture_add(graph, unasked, NULL, NULL, 0);
    assert_status(filch_graph_run(graph, NULL, &error), FILCH_TASK_FAILED);
    assert_int_equal(error.native_code, FILCH_PENDING);
    assert_int_equal(error.status, FILCH_TASK_FAILED);
    assert_ok(filch_graph_destroy(graph));
}

/* Result of a graph of one task of the mode. */
static filch_status run_one(int mode, int value, filch_error *error)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    taken_count = 0;
    add_late(graph, mode, value, NULL, 0);
    filch_status status = filch_graph_run(graph, NULL, error);
    assert_ok(filch_graph_destroy(graph));
    return status;
}

static void the_first_end_counts(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(run_one(EARLY, 0, &error));
    assert_status(filch_pending_end(taken[0], 0, NULL), FILCH_INVALID_HANDLE);
    assert_status(run_one(EARLY_FAILS, 7, &error), FILCH_TASK_FAILED);
    assert_int_equal(error.native_code, 7);
    assert_non_null(strstr(error.text, "was ended with 7 on host:0"));
    assert_non_null(strstr(error.text, ": an early reason"));
    assert_status(run_one(CODE, 8, &error), FILCH_TASK_FAILED);
    assert_int_equal(error.native_code, 8);
    assert_non_null(strstr(error.text, "returned 8 on host:0"));
    assert_null(strstr(error.text, "reason"));
    assert_status(filch_pending_end(taken[0], 0, NULL), FILCH_INVALID_HANDLE);
    assert_ok(run_one(CODE, 0, &error));
    assert_status(filch_pending_status(taken[0]), FILCH_INVALID_HANDLE);
    assert_status(run_one(EARLY_CODE, 9, &error), FILCH_TASK_FAILED);
    assert_int_equal(error.native_code, 9);
    assert_status(run_one(NO_HANDLE, 0, &error), FILCH_TASK_FAILED);
    assert_int_equal(error.status, FILCH_WRONG_STATE);
    assert_non_null(strstr(error.text,
                           "the function on host:0 returned FILCH_PENDING without a handle: "
                           "call filch_call_pend first"));
    assert_ok(run_one(EARLY, 0, &error));
}

static void a_late_failure_skips_successors(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, 2 * TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    add_late(graph, LATE, 0, &fixture_access(data, 0, FILCH_WRITE), 1);
    add_now(graph, 1, &fixture_access(data, 0, FILCH_READWRITE), 1);
    add_now(graph, 1, &fixture_access(data, 1, FILCH_READWRITE), 1);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, 1));
    char text[400];
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "no route to host ", 17);
    text[sizeof text - 1] = '\0';
    assert_ok(filch_pending_end(taken[0], -113, text));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    filch_error error = FILCH_ERROR_INIT;
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_error(job, &error));
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(error.native_code, -113);
    assert_string_equal(error.label, "late");
    assert_non_null(strstr(error.text, ": no route to host x"));
    assert_true(error.device[0] != '\0');
    assert_int_equal(info.done, 1);
    assert_int_equal(info.failed, 1);
    assert_int_equal(info.skipped, 1);
    assert_int_equal(ran, 1);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* Text of the error of a job with a task for each value. */
static filch_error run_codes(const int *values, int count)
{
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_error error = FILCH_ERROR_INIT;
    for (int i = 0; i < count; ++i) {
        fixture_add(graph, code, &values[i], &fixture_access(data, 0, FILCH_READWRITE), 1);
    }
    assert_status(filch_graph_run(graph, NULL, &error), FILCH_TASK_FAILED);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    return error;
}

static void a_failing_function_gives_its_reason(void **state)
{
    (void)state;
    filch_error error = run_codes((const int[]){3}, 1);
    assert_int_equal(error.native_code, 3);
    assert_non_null(strstr(error.text, "returned 3"));
    assert_non_null(strstr(error.text, ": reason 3"));
    assert_null(strstr(error.text, "replaced"));
    /* The reason of a function that succeeded is nobody's. */
    error = run_codes((const int[]){0, 100}, 2);
    assert_int_equal(error.native_code, 100);
    assert_null(strstr(error.text, "reason"));
}

/* Gives a reason, waits for a job whose task fails for a reason of its own, and fails. */
static int fail_around(const filch_call *call)
{
    filch_graph *graph = NULL;
    filch_error error = FILCH_ERROR_INIT;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    int value = 4;
    desc.codelet = code;
    desc.args = &value;
    return filch_call_set_text(call, "outer reason") == FILCH_OK &&
                   filch_graph_create(call->runtime, NULL, &graph) == FILCH_OK &&
                   filch_graph_add(graph, &desc, NULL) == FILCH_OK &&
                   filch_graph_run(graph, NULL, &error) == FILCH_TASK_FAILED &&
                   strstr(error.text, ": reason 4") != NULL &&
                   filch_graph_destroy(graph) == FILCH_OK
               ? 5
               : 96;
}

static void a_reason_outlives_nested_work(void **state)
{
    (void)state;
    filch_codelet *around = fixture_codelet(runtime, "around", fail_around, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_error error = FILCH_ERROR_INIT;
    fixture_add(graph, around, NULL, NULL, 0);
    assert_status(filch_graph_run(graph, NULL, &error), FILCH_TASK_FAILED);
    assert_int_equal(error.native_code, 5);
    assert_non_null(strstr(error.text, ": outer reason"));
    assert_ok(filch_graph_destroy(graph));
}

/* One worker, many pending tasks: every other task runs, and no pending task holds the worker. */
static void pending_tasks_hold_no_worker(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, MANY * TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *others = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    filch_job_info info = FILCH_JOB_INFO_INIT;
    filch_device_stats stats = {0};
    for (uint32_t i = 0; i < MANY; ++i) {
        add_late(graph, LATE, 0, &fixture_access(data, i, FILCH_WRITE), 1);
        add_now(graph, 2, &fixture_access(data, i, FILCH_READWRITE), 1);
        add_now(others, 0, NULL, 0);
    }
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, MANY));
    assert_ok(fixture_run(others));
    assert_int_equal(ran, MANY);
    assert_ok(filch_job_stats(job, &info, &stats, 1));
    assert_int_equal(info.pending, MANY);
    assert_int_equal(info.done, 0);
    assert_int_equal(info.status, FILCH_NOT_READY);
    for (int i = MANY; i-- > 0;) {
        *(double *)calls[i]->views[0].ptr = 3;
        assert_ok(filch_pending_end(taken[i], 0, NULL));
    }
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_stats(job, &info, &stats, 1));
    assert_int_equal(info.pending, 0);
    assert_int_equal(info.done, 2 * MANY);
    assert_int_equal(stats.pending, MANY);
    assert_int_equal(stats.tiles, 2 * MANY);
    for (int i = 0; i < MANY; ++i) {
        assert_true(buffer[i * TILE] == 5);
    }
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_graph_destroy(others));
}

static void a_chain_runs_through_pending_tasks(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < MANY; ++i) {
        add_late(graph, i % 4 == 3 ? EARLY : LATE, 0, &fixture_access(data, 0, FILCH_READWRITE), 1);
        add_now(graph, 1, &fixture_access(data, 0, FILCH_READWRITE), 1);
    }
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (int i = 0; i < MANY; ++i) {
        assert_true(fixture_await(&taken_count, i + 1));
        assert_status(filch_pending_end(taken[i], 0, NULL),
                      i % 4 == 3 ? FILCH_INVALID_HANDLE : FILCH_OK);
    }
    assert_ok(filch_job_wait(job, -1));
    assert_true(buffer[0] == MANY);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* Ends the task whose number is its argument. */
static int end_other(const filch_call *call)
{
    int i = *(const int *)call->args;
    return i < taken_count && filch_pending_end(taken[i], 0, NULL) == FILCH_OK ? 0 : 97;
}

static void a_task_ends_another(void **state)
{
    (void)state;
    filch_codelet *ender = fixture_codelet(runtime, "ender", end_other, sizeof(int));
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *enders = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    for (int i = 0; i < 8; ++i) {
        add_late(graph, LATE, 0, NULL, 0);
        fixture_add(enders, ender, &i, &fixture_access(data, 0, FILCH_READWRITE), 1);
    }
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, 8));
    assert_ok(fixture_run(enders));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_graph_destroy(enders));
}

/* Other tasks with views and scratch of their own run on the worker meanwhile. */
/* Tasks with scratch of unlike sizes pend at once. */
static void keep_views_and_scratch(void)
{
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, 4 * TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    for (uint32_t i = 0; i < 4; ++i) {
        filch_access accesses[] = {fixture_access(data, i, FILCH_WRITE),
                                   {.mode = FILCH_SCRATCH, .bytes = 4096 * (i + 1)}};
        add_late(graph, SCRATCH, 10 + (int)i, accesses, 2);
    }
    assert_ok(filch_graph_submit(graph, NULL, &job));
    /* The wait moves a virtual clock. */
    assert_status(filch_job_wait(job, 0.001), FILCH_TIMEOUT);
    assert_true(fixture_await(&taken_count, 4));
    for (int i = 0; i < 4; ++i) {
        const filch_call *call = calls[i];
        int value = ((const late_args *)call->args)->value, tile = value - 10;
        const unsigned char *scratch = call->views[1].ptr;
        assert_int_equal(call->view_count, 2);
        assert_ptr_equal(call->views[0].ptr, &buffer[tile * TILE]);
        assert_int_equal(call->views[1].rows, 4096 * (tile + 1));
        for (int at = 0; at < 4096 * (tile + 1); ++at) {
            assert_int_equal(scratch[at], value);
        }
    }
    for (int i = 0; i < 4; ++i) {
        assert_ok(filch_pending_end(taken[i], 0, NULL));
    }
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void views_and_scratch_stay(void **state)
{
    (void)state;
    keep_views_and_scratch();
}

/* They call the next function before the task is let go. */
static void views_and_scratch_stay_on_simulated_devices(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    begin("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT);
    keep_views_and_scratch();
}

static void a_cancelled_job_waits_for_its_pending_tasks(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    add_late(graph, LATE, 0, &fixture_access(data, 0, FILCH_READWRITE), 1);
    add_now(graph, 1, &fixture_access(data, 0, FILCH_READWRITE), 1);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, 1));
    assert_ok(filch_job_cancel(job));
    assert_status(filch_pending_status(taken[0]), FILCH_CANCELLED);
    assert_status(filch_job_wait(job, 0.001), FILCH_TIMEOUT);
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    assert_status(filch_job_wait(job, -1), FILCH_CANCELLED);
    assert_int_equal(ran, 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void *end_once_cancelled(void *unused)
{
    while (filch_pending_status(taken[0]) == FILCH_NOT_READY) {
        usleep(1000);
    }
    return filch_pending_end(taken[0], 0, NULL) == FILCH_OK ? taken : unused;
}

static void a_runtime_with_pending_tasks_is_not_destroyed(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    pthread_t thread;
    void *result = NULL;
    add_now(graph, 0, NULL, 0);
    add_late(graph, LATE, 0, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, NULL));
    assert_true(fixture_await(&taken_count, 1));
    assert_true(fixture_await(&ran, 1));
    assert_status(filch_runtime_drain(runtime, 0.001), FILCH_TIMEOUT);
    /* The function has returned at the latest when the worker does other work. */
    filch_graph *other = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_now(other, 0, NULL, 0);
    assert_ok(fixture_run(other));
    assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
    assert_non_null(strstr(fixture_error(runtime).text, "a task of codelet 'late', #1"));
    /* Abort cancels, and waits for the thread that ends the task. */
    assert_int_equal(pthread_create(&thread, NULL, end_once_cancelled, NULL), 0);
    assert_ok(filch_runtime_abort(runtime));
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_non_null(result);
    begin("host:1", FILCH_DRIVE_THREADS);
}

static void commuting_tasks_take_turns_over_the_end(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    for (int i = 0; i < 8; ++i) {
        add_late(graph, LATE, 0, &fixture_access(data, 0, FILCH_COMMUTE), 1);
    }
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (int i = 0; i < 8; ++i) {
        assert_true(fixture_await(&taken_count, i + 1));
        assert_status(filch_job_wait(job, 0.0005), FILCH_TIMEOUT);
        assert_int_equal(taken_count, i + 1); /* the others wait */
        assert_ok(filch_pending_end(taken[i], 0, NULL));
    }
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void open_graphs_take_pending_tasks(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (int i = 0; i < 100; ++i) {
        add_late(graph, LATE, 0, &fixture_access(data, 0, FILCH_READWRITE), 1);
        assert_true(fixture_await(&taken_count, i + 1));
        add_now(graph, 1, &fixture_access(data, 0, FILCH_READWRITE), 1);
        if (i == 99) {
            assert_ok(filch_graph_close(graph));
        }
        assert_ok(filch_pending_end(taken[i], 0, NULL));
    }
    assert_ok(filch_job_wait(job, -1));
    assert_true(buffer[0] == 100);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* In poll mode nothing happens between two polls. */
static void polling_retires_pending_tasks(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    begin("host:2", FILCH_DRIVE_POLL);
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    bool worked = false;
    add_late(graph, LATE, 0, &fixture_access(data, 0, FILCH_READWRITE), 1);
    add_now(graph, 1, &fixture_access(data, 0, FILCH_READWRITE), 1);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_runtime_poll(runtime, 0, &worked));
    assert_int_equal(taken_count, 1);
    assert_ok(filch_runtime_poll(runtime, 0, &worked));
    assert_int_equal(ran, 0);
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    assert_int_equal(ran, 0);
    assert_ok(filch_runtime_poll(runtime, 0, &worked));
    assert_true(worked);
    assert_int_equal(ran, 1);
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* Gives a reason that there is no memory for. */
static int fail_without_memory(const filch_call *call)
{
    return filch_call_set_text(call, "reason") == FILCH_OUT_OF_MEMORY ? 6 : 98;
}

/* Runs a graph of one task, whose n-th allocation fails. */
static filch_error run_without_memory(fixture_memory *memory, filch_graph *graph, int64_t n)
{
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_graph_seal(graph));
    fixture_memory_fail_after(memory, n);
    assert_status(filch_graph_run(graph, NULL, &error), FILCH_TASK_FAILED);
    fixture_memory_fail_after(memory, 0);
    assert_ok(filch_graph_destroy(graph));
    return error;
}

static void want_of_memory_fails_the_task(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    fixture_memory memory;
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    late = late_codelet(runtime);
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    for (int64_t n = 1; n <= 2; ++n) { /* of the record, and of its views */
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        add_late(graph, LATE, 0, &fixture_access(data, 0, FILCH_READ), 1);
        filch_error error = run_without_memory(&memory, graph, n);
        assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
        assert_non_null(strstr(error.text, "handle of a pending task"));
    }
    filch_codelet *fails = fixture_codelet(runtime, "fails", fail_without_memory, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, fails, NULL, NULL, 0);
    filch_error error = run_without_memory(&memory, graph, 1);
    assert_int_equal(error.native_code, 6);
    assert_null(strstr(error.text, "reason"));
    assert_int_equal(taken_count, 0);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.pieces, 0);
    begin("host:1", FILCH_DRIVE_THREADS);
}

/* On a virtual clock a wait comes back where only the host's call can go on. */
static void simulated_devices_let_tasks_pend(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    begin("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT);
    filch_data *data = fixture_vector(runtime, buffer, sizeof *buffer, TILE, TILE);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    filch_job_info info = FILCH_JOB_INFO_INIT;
    add_late(graph, LATE, 0, &fixture_access(data, 0, FILCH_READWRITE), 1);
    add_late(graph, EARLY, 0, &fixture_access(data, 0, FILCH_READWRITE), 1);
    add_now(graph, 1, &fixture_access(data, 0, FILCH_READWRITE), 1);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_job_wait(job, -1), FILCH_TIMEOUT);
    assert_int_equal(taken_count, 1);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.pending, 1);
    double seconds = info.seconds;
    assert_true(seconds > 0);
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.done, 3);
    assert_true(buffer[0] == 1);
    /* The time between the two waits is no time of the virtual clock. */
    assert_true(info.seconds > 2.5 * seconds && info.seconds < 3.5 * seconds);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* Times that a text stands in a file. */
static int times_in(const char *path, const char *text)
{
    static char all[1 << 20];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t bytes = fread(all, 1, sizeof all - 1, file);
    fclose(file);
    all[bytes] = '\0';
    int count = 0;
    for (const char *at = all; (at = strstr(at, text)) != NULL; ++at) {
        ++count;
    }
    return count;
}

static void a_trace_shows_how_long_tasks_were_pending(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-pending-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    add_late(graph, LATE, 0, NULL, 0);
    add_late(graph, LATE, 0, NULL, 0);
    add_late(graph, EARLY, 0, NULL, 0);
    assert_ok(filch_trace_start(runtime));
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&taken_count, 3));
    /* The worker has let the tasks go at the latest when it does other work. */
    filch_graph *other = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_now(other, 0, NULL, 0);
    assert_ok(fixture_run(other));
    for (int i = 0; i < 3; ++i) {
        (void)filch_pending_end(taken[i], 0, NULL);
    }
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_trace_write(runtime, path));
    assert_int_equal(times_in(path, "\"cat\":\"tile\",\"name\":\"late\""), 3);
    assert_int_equal(times_in(path, "\"cat\":\"pending\""), 4);
    assert_int_equal(times_in(path, "{\"ph\":\"b\""), 2);
    assert_int_equal(times_in(path, "{\"ph\":\"e\""), 2);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_graph_destroy(other));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_thread_ends_a_task, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_calls_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(work_that_cannot_pend_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_end_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_failure_skips_successors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failing_function_gives_its_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reason_outlives_nested_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pending_tasks_hold_no_worker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_chain_runs_through_pending_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_task_ends_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(views_and_scratch_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(views_and_scratch_stay_on_simulated_devices, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_job_waits_for_its_pending_tasks, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_runtime_with_pending_tasks_is_not_destroyed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(commuting_tasks_take_turns_over_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(open_graphs_take_pending_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(polling_retires_pending_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(want_of_memory_fails_the_task, set_up, tear_down),
        cmocka_unit_test_setup_teardown(simulated_devices_let_tasks_pend, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trace_shows_how_long_tasks_were_pending, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
