/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a closed graph behind runs of the same graph: order among themselves and with others,
 * ends, cancellations, repetitions, memory. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "graph/build/graph.h"

enum { LINE = 5, ROUNDS = 200 };

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *apply, *plain;
static filch_data *data;
static filch_graph *graph;
static uint64_t value; /* of the one tile */
static _Atomic int gate_open, at_gate, ran, inside, overlaps, calls;
static _Atomic int fail_in; /* run that fails, from 1 */
static filch_job *wait_for; /* by the task at the gate */
static _Atomic filch_status waited;
static filch_status told[LINE];

typedef struct args {
    uint64_t factor, term;
    bool is_gate;
} args;

/* value = factor * value + term: the order of the calls is in the value. */
static int run_apply(const filch_call *call)
{
    const args *with = call->args;
    uint64_t *tile = call->views[0].ptr;
    int number = ++ran;
    if (with->is_gate) {
        ++at_gate;
        if (!fixture_await(&gate_open, 1)) {
            return 90;
        }
        if (wait_for != NULL) {
            waited = filch_job_wait(wait_for, -1);
        }
    }
    *tile = *tile * with->factor + with->term;
    return number == fail_in ? 7 : 0;
}

/* A task without handles: counts runs at a time. */
static int run_plain(const filch_call *call)
{
    (void)call;
    overlaps += inside++ != 0;
    ++ran;
    --inside;
    return 0;
}

static filch_graph *graph_of(args with, filch_access_mode mode)
{
    filch_graph *made = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(made, apply, &with, &fixture_access(data, 0, mode), 1);
    return made;
}

static void begin(const char *devices)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, FILCH_DRIVE_THREADS, &memory);
    apply = fixture_codelet(runtime, "apply", run_apply, sizeof(args));
    plain = fixture_codelet(runtime, "plain", run_plain, 0);
    data = fixture_vector(runtime, &value, sizeof value, 1, 1);
    value = 1;
    gate_open = at_gate = ran = inside = overlaps = calls = fail_in = 0;
    wait_for = NULL;
    graph = graph_of((args){.factor = 3, .term = 1, .is_gate = true}, FILCH_READWRITE);
}

static int set_up(void **state)
{
    (void)state;
    begin("host:2");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_drain(runtime, PATIENCE));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    return 0;
}

static filch_job *submit(filch_graph *made)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(made, NULL, &job));
    return job;
}

static void finish(filch_job *job, filch_status result)
{
    assert_status(filch_job_wait(job, PATIENCE), result);
    assert_ok(filch_job_release(job));
}

/* The value after runs of the graph. */
static uint64_t after(uint64_t from, int runs)
{
    while (runs-- > 0) {
        from = 3 * from + 1;
    }
    return from;
}

static void runs_follow_each_other(void **state)
{
    (void)state;
    filch_job *jobs[LINE];
    for (int i = 0; i < LINE; ++i) {
        filch_submit_desc desc = FILCH_SUBMIT_DESC_INIT;
        char label[16];
        snprintf(label, sizeof label, "run %d", i);
        desc.label = label;
        assert_ok(filch_graph_submit(graph, &desc, &jobs[i]));
    }
    assert_true(fixture_await(&at_gate, 1));
    for (int i = 0; i < LINE; ++i) {
        assert_status(filch_job_status(jobs[i]), FILCH_NOT_READY);
        filch_job_info info = FILCH_JOB_INFO_INIT;
        assert_ok(filch_job_stats(jobs[i], &info, NULL, 0));
        assert_int_equal(info.total, 1);
        assert_int_equal(info.done, 0);
    }
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
    args more = {.factor = 1};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = apply;
    task.args = &more;
    task.accesses = &fixture_access(data, 0, FILCH_READ);
    task.access_count = 1;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_STATE);
    assert_ok(filch_graph_seal(graph)); /* nothing to do */
    assert_int_equal(ran, 1);
    gate_open = 1;
    assert_ok(filch_job_wait(jobs[LINE - 1], PATIENCE));
    assert_int_equal(value, after(1, LINE));
    for (int i = 0; i < LINE; ++i) {
        /* The end of the last run tells the ends of all. */
        assert_status(filch_job_status(jobs[i]), FILCH_OK);
        filch_job_info info = FILCH_JOB_INFO_INIT;
        assert_ok(filch_job_stats(jobs[i], &info, NULL, 0));
        assert_int_equal(info.done, 1);
        assert_ok(filch_job_release(jobs[i]));
    }
}

static void others_come_between(void **state)
{
    (void)state;
    filch_graph *other = graph_of((args){.factor = 10, .term = 5}, FILCH_READWRITE);
    filch_job *first = submit(graph), *between = submit(other), *second = submit(graph);
    filch_job *last = submit(other), *third = submit(graph);
    gate_open = 1;
    finish(third, FILCH_OK);
    assert_int_equal(value, after(after(after(1, 1) * 10 + 5, 1) * 10 + 5, 1));
    finish(first, FILCH_OK);
    finish(between, FILCH_OK);
    finish(second, FILCH_OK);
    finish(last, FILCH_OK);
    assert_ok(filch_graph_destroy(other));
}

/* An open graph goes before what was submitted after it and has not begun. */
static void an_open_graph_comes_between(void **state)
{
    (void)state;
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *first = submit(graph);
    assert_true(fixture_await(&at_gate, 1));
    filch_job *between = submit(open), *second = submit(graph);
    args with = {.factor = 10, .term = 5};
    fixture_add(open, apply, &with, &fixture_access(data, 0, FILCH_READWRITE), 1);
    gate_open = 1;
    assert_ok(filch_job_wait(first, PATIENCE));
    assert_status(filch_job_status(second), FILCH_NOT_READY);
    assert_ok(filch_graph_close(open));
    finish(second, FILCH_OK);
    assert_int_equal(value, after(after(1, 1) * 10 + 5, 1));
    finish(first, FILCH_OK);
    finish(between, FILCH_OK);
    assert_ok(filch_graph_destroy(open));
}

static void *acquire(void *expected)
{
    filch_hold *hold = NULL;
    if (filch_data_acquire_tiles(data, NULL, FILCH_READWRITE, -1, &hold) != FILCH_OK) {
        return &value;
    }
    bool is_right = value == *(const uint64_t *)expected;
    value += 100;
    return filch_hold_release(hold) == FILCH_OK && is_right ? NULL : &value;
}

static void *open_gate(void *unused)
{
    (void)unused;
    gate_open = fixture_await(&at_gate, 1);
    return NULL;
}

static void the_host_comes_between_and_behind(void **state)
{
    (void)state;
    pthread_t thread;
    void *wrong = &value;
    uint64_t once = after(1, 1);
    filch_job *first = submit(graph);
    assert_int_equal(pthread_create(&thread, NULL, acquire, &once), 0);
    for (uint32_t holds = 0; holds == 0;) { /* the host stands behind the first run */
        fl_mutex_lock(&data->object.core->lock);
        holds = data->holds;
        fl_mutex_unlock(&data->object.core->lock);
    }
    filch_job *second = submit(graph);
    gate_open = 1;
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    finish(second, FILCH_OK);
    assert_int_equal(value, after(once + 100, 1));
    finish(first, FILCH_OK);
    /* An acquisition behind two runs sees the second. */
    value = 1;
    gate_open = at_gate = 0;
    first = submit(graph);
    second = submit(graph);
    filch_hold *hold = NULL;
    assert_int_equal(pthread_create(&thread, NULL, open_gate, NULL), 0);
    assert_ok(filch_data_acquire_tiles(data, NULL, FILCH_READ, -1, &hold));
    assert_int_equal(value, after(1, 2));
    assert_ok(filch_hold_release(hold));
    assert_int_equal(pthread_join(thread, &wrong), 0);
    finish(first, FILCH_OK);
    finish(second, FILCH_OK);
}

static void on_complete(filch_job *job, filch_status status, void *user)
{
    (void)job;
    *(filch_status *)user = status;
    ++calls;
}

static void a_cancelled_run_leaves_the_line_at_once(void **state)
{
    (void)state;
    filch_submit_desc desc = FILCH_SUBMIT_DESC_INIT;
    filch_job *jobs[LINE];
    desc.on_complete = on_complete;
    for (int i = 0; i < LINE; ++i) {
        desc.user = &told[i];
        told[i] = FILCH_NOT_READY;
        assert_ok(filch_graph_submit(graph, &desc, &jobs[i]));
    }
    assert_true(fixture_await(&at_gate, 1));
    assert_ok(filch_job_cancel(jobs[1]));
    assert_ok(filch_job_cancel(jobs[1]));
    assert_ok(filch_job_cancel(jobs[LINE - 1]));
    assert_status(filch_job_status(jobs[1]), FILCH_CANCELLED); /* while the first still runs */
    assert_status(filch_job_status(jobs[LINE - 1]), FILCH_CANCELLED);
    assert_int_equal(calls, 2);
    assert_int_equal(told[1], FILCH_CANCELLED);
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_stats(jobs[1], &info, NULL, 0));
    assert_int_equal(info.total, 1);
    assert_int_equal(info.skipped, 1);
    filch_report report = FILCH_REPORT_INIT;
    assert_ok(filch_job_report(jobs[1], graph, &report, NULL, 0));
    assert_int_equal(report.wall_ns, 0);
    filch_job *late = submit(graph); /* behind the last that is left */
    for (int i = 0; i < LINE; ++i) {
        assert_int_equal(filch_job_status(jobs[i]) == FILCH_NOT_READY, i != 1 && i != LINE - 1);
    }
    gate_open = 1;
    finish(late, FILCH_OK);
    assert_int_equal(value, after(1, LINE - 1));
    assert_int_equal(ran, LINE - 1);
    for (int i = 0; i < LINE; ++i) {
        finish(jobs[i], i != 1 && i != LINE - 1 ? FILCH_OK : FILCH_CANCELLED);
    }
    assert_int_equal(calls, LINE);
}

static void a_run_that_fails_or_is_cancelled_harms_no_other(void **state)
{
    (void)state;
    fail_in = 1;
    filch_job *jobs[3] = {submit(graph), submit(graph), submit(graph)};
    assert_true(fixture_await(&at_gate, 1));
    gate_open = 1;
    finish(jobs[2], FILCH_OK);
    finish(jobs[0], FILCH_TASK_FAILED);
    finish(jobs[1], FILCH_OK);
    assert_int_equal(value, after(1, 3));
    /* The first run waits for the host, and is cancelled: the second waits on. */
    filch_hold *hold = NULL;
    assert_ok(filch_data_acquire_tiles(data, NULL, FILCH_READWRITE, 0, &hold));
    jobs[0] = submit(graph);
    jobs[1] = submit(graph);
    assert_ok(filch_job_cancel(jobs[0]));
    finish(jobs[0], FILCH_CANCELLED);
    assert_status(filch_job_status(jobs[1]), FILCH_NOT_READY);
    assert_int_equal(ran, 3);
    assert_ok(filch_hold_release(hold));
    finish(jobs[1], FILCH_OK);
    assert_int_equal(value, after(1, 4));
}

static void the_end_of_the_runtime_ends_the_line(void **state)
{
    for (int i = 0; i < 20; ++i) {
        filch_job *jobs[LINE];
        for (int k = 0; k < LINE; ++k) {
            jobs[k] = submit(graph);
        }
        if (i % 2 == 0) {
            assert_true(fixture_await(&at_gate, 1));
        }
        gate_open = 1;
        for (int k = 0; k < LINE; ++k) {
            assert_ok(filch_job_release(jobs[k]));
        }
        assert_ok(filch_runtime_abort(runtime));
        assert_int_equal(memory.bytes, 0);
        (void)set_up(state);
    }
}

static void runs_without_handles_do_not_overlap(void **state)
{
    (void)state;
    filch_graph *free_graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(free_graph, plain, NULL, NULL, 0);
    filch_job *last = NULL;
    for (int i = 0; i < 2000; ++i) {
        last = submit(free_graph);
        if (i != 1999) {
            assert_ok(filch_job_release(last));
        }
    }
    finish(last, FILCH_OK);
    assert_int_equal(ran, 2000);
    assert_int_equal(overlaps, 0);
    assert_ok(filch_graph_destroy(free_graph));
}

/* Runs that only read go beside other readers, but not beside each other. */
static void readers_stand_in_line_too(void **state)
{
    (void)state;
    filch_graph *reader = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(reader, plain, NULL, &fixture_access(data, 0, FILCH_READ), 1);
    filch_job *jobs[100];
    for (int i = 0; i < 100; ++i) {
        jobs[i] = submit(reader);
    }
    for (int i = 1; i < 99; i += 2) {
        assert_ok(filch_job_cancel(jobs[i]));
    }
    assert_ok(filch_job_wait(jobs[99], PATIENCE));
    int done = 0;
    for (int i = 0; i < 100; ++i) {
        done += filch_job_wait(jobs[i], PATIENCE) == FILCH_OK;
        assert_ok(filch_job_release(jobs[i]));
    }
    assert_int_equal(ran, done);
    assert_int_equal(overlaps, 0);
    assert_true(done >= 51);
    assert_ok(filch_graph_destroy(reader));
}

enum { LONG = 3000 };
static filch_job *line[LONG + 1];
static uint32_t ended, in_order;

static void cancel_next(filch_job *job, filch_status status, void *user)
{
    uint32_t at = (uint32_t)((filch_job **)user - line);
    (void)job;
    in_order += status == FILCH_CANCELLED && at == ended;
    ++ended;
    if (line[at + 1] != NULL)
        (void)filch_job_cancel(line[at + 1]);
}

static void cancel_second(filch_job *job, filch_status status, void *user)
{
    (void)job, (void)status, (void)user;
    if (fixture_await(&calls, 1))
        (void)filch_job_cancel(line[1]);
}

static void *cancel_first(void *unused)
{
    (void)unused;
    (void)filch_job_cancel(line[0]);
    return NULL;
}

/* On a stack that has no room for callbacks within callbacks. */
static void cancel_one_by_one(bool repeats)
{
    filch_repeat_desc until = FILCH_REPEAT_DESC_INIT;
    pthread_attr_t small;
    pthread_t thread;
    filch_job *first = submit(graph);
    ended = in_order = 0;
    until.max_runs = 2;
    for (uint32_t i = 0; i < LONG; ++i) {
        filch_submit_desc with = FILCH_SUBMIT_DESC_INIT;
        with.on_complete = cancel_next;
        with.user = &line[i];
        assert_ok(repeats ? filch_graph_repeat(graph, &until, &with, &line[i])
                          : filch_graph_submit(graph, &with, &line[i]));
    }
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 256 << 10), 0);
    assert_int_equal(pthread_create(&thread, &small, cancel_first, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&small), 0);
    assert_int_equal(ended, LONG);
    assert_int_equal(in_order, LONG);
    gate_open = 1;
    finish(first, FILCH_OK);
    for (uint32_t i = 0; i < LONG; ++i) {
        finish(line[i], FILCH_CANCELLED);
        line[i] = NULL;
    }
    assert_int_equal(ran, 1);
}

static void each_callback_may_cancel_the_next_run(void **state)
{
    (void)state;
    cancel_one_by_one(false);
}

static void each_callback_may_cancel_the_next_repetition(void **state)
{
    (void)state;
    cancel_one_by_one(true);
}

/* On this thread, which is no worker: a wait would have no end. */
static void cancel_and_wait(filch_job *job, filch_status status, void *user)
{
    (void)job, (void)status, (void)user;
    (void)filch_job_cancel(line[1]);
    waited = filch_job_wait(line[1], -1);
}

static void a_callback_does_not_wait_for_what_it_cancelled(void **state)
{
    filch_submit_desc with = FILCH_SUBMIT_DESC_INIT;
    (void)state;
    filch_job *first = submit(graph);
    with.on_complete = cancel_and_wait;
    waited = FILCH_OK;
    assert_ok(filch_graph_submit(graph, &with, &line[0]));
    line[1] = submit(graph);
    assert_ok(filch_job_cancel(line[0]));
    assert_int_equal(waited, FILCH_WRONG_STATE);
    finish(line[0], FILCH_CANCELLED);
    finish(line[1], FILCH_CANCELLED);
    line[0] = line[1] = NULL;
    gate_open = 1;
    finish(first, FILCH_OK);
}

static int stop_at_once(uint64_t run, const void *of, void *user)
{
    (void)run, (void)of, (void)user;
    return FILCH_REPEAT_STOP;
}

/* The end of a repetition is concluded elsewhere. A run of the graph at the gate stands between the
 * repetition and the two runs. */
static void a_repetitions_callback_may_cancel_the_next_run(void **state)
{
    filch_repeat_desc until = FILCH_REPEAT_DESC_INIT;
    filch_submit_desc with = FILCH_SUBMIT_DESC_INIT;
    filch_job *repetition = NULL;
    (void)state;
    filch_graph *second = graph_of((args){.factor = 1}, FILCH_READWRITE);
    until.predicate = stop_at_once;
    with.on_complete = cancel_second;
    assert_ok(filch_graph_repeat(second, &until, &with, &repetition));
    filch_job *between = submit(graph);
    line[0] = submit(second);
    line[1] = submit(second);
    calls = 1;
    finish(line[1], FILCH_CANCELLED);
    finish(repetition, FILCH_OK);
    gate_open = 1;
    finish(between, FILCH_OK);
    finish(line[0], FILCH_OK);
    line[0] = line[1] = NULL;
    assert_ok(filch_graph_destroy(second));
}

/* Each run has a place at every handle. */
static void a_graph_may_use_thousands_of_handles(void **state)
{
    enum { MANY = 3000 };
    static uint64_t values[MANY];
    static filch_data *handles[MANY];
    (void)state;
    filch_graph *wide = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < MANY; ++i) {
        values[i] = 1;
        handles[i] = fixture_vector(runtime, &values[i], sizeof values[i], 1, 1);
        fixture_add(wide, apply, &(args){.factor = 2},
                    &fixture_access(handles[i], 0, FILCH_READWRITE), 1);
    }
    filch_job *first = submit(wide), *second = submit(wide);
    finish(second, FILCH_OK);
    finish(first, FILCH_OK);
    assert_ok(filch_graph_destroy(wide));
    for (int i = 0; i < MANY; ++i) {
        assert_int_equal(values[i], 4);
        assert_ok(filch_data_destroy(handles[i]));
    }
}

static void an_empty_graph_may_be_queued_too(void **state)
{
    (void)state;
    filch_graph *empty = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *first = submit(empty), *second = submit(empty);
    assert_status(filch_job_status(first), FILCH_OK);
    assert_status(filch_job_status(second), FILCH_OK);
    finish(first, FILCH_OK);
    finish(second, FILCH_OK);
    assert_ok(filch_graph_destroy(empty));
}

static void no_memory_is_needed_once_the_line_was_as_long(void **state)
{
    (void)state;
    int64_t before = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        filch_job *jobs[LINE];
        gate_open = at_gate = 0;
        for (int i = 0; i < LINE; ++i) {
            jobs[i] = submit(graph);
        }
        assert_true(fixture_await(&at_gate, 1));
        gate_open = 1;
        for (int i = LINE; i-- > 0;) {
            finish(jobs[i], FILCH_OK);
        }
        before = round < 2 ? memory.calls : before;
    }
    /* A worker and the thread that ends a job may still have a job object at the next submission,
     * but there are only so many of them. */
    assert_in_range(memory.calls, before, before + 3);
    /* Without memory a submission is refused, and the line goes on. */
    filch_job *jobs[2 * LINE];
    gate_open = at_gate = 0;
    int count = 0;
    fixture_memory_fail_after(&memory, 1);
    while (count < 2 * LINE && filch_graph_submit(graph, NULL, &jobs[count]) == FILCH_OK) {
        ++count;
    }
    fixture_memory_fail_after(&memory, 0);
    assert_true(count >= LINE && count < 2 * LINE);
    gate_open = 1;
    uint64_t from = after(1, ROUNDS * LINE);
    for (int i = count; i-- > 0;) {
        finish(jobs[i], FILCH_OK);
    }
    assert_int_equal(value, after(from, count));
}

static void a_task_must_not_wait_for_a_run_behind_its_own(void **state)
{
    (void)state;
    filch_job *first = submit(graph);
    assert_true(fixture_await(&at_gate, 1));
    filch_job *second = submit(graph), *third = submit(graph);
    wait_for = third;
    waited = FILCH_OK;
    gate_open = 1;
    assert_ok(filch_job_wait(first, PATIENCE));
    assert_ok(filch_job_wait(second, PATIENCE));
    assert_ok(filch_job_wait(third, PATIENCE));
    /* Of the third run, too: a task of it waits for its own job. */
    assert_int_equal(waited, FILCH_WRONG_STATE);
    assert_ok(filch_job_release(first));
    assert_ok(filch_job_release(second));
    assert_ok(filch_job_release(third));
}

static void again(filch_job *job, filch_status status, void *user)
{
    (void)job;
    filch_submit_desc desc = FILCH_SUBMIT_DESC_INIT;
    desc.on_complete = again;
    desc.user = user;
    if (status == FILCH_OK && ++calls < 50 && filch_graph_submit(graph, &desc, NULL) != FILCH_OK) {
        *(bool *)user = true;
    }
}

static void a_callback_may_submit_the_graph_again(void **state)
{
    (void)state;
    bool is_wrong = false;
    filch_submit_desc desc = FILCH_SUBMIT_DESC_INIT;
    desc.on_complete = again;
    desc.user = &is_wrong;
    assert_ok(filch_graph_submit(graph, &desc, NULL));
    filch_job *behind = submit(graph);
    gate_open = 1;
    finish(behind, FILCH_OK);
    assert_ok(filch_runtime_drain(runtime, PATIENCE));
    assert_false(is_wrong);
    assert_int_equal(ran, 51);
    assert_int_equal(value, after(1, 51));
}

static int run_copy(const filch_call *call)
{
    *(uint64_t *)call->views[1].ptr = *(uint64_t *)call->views[0].ptr + 1;
    return 0;
}

/* Each run has contents of its own in a temporary. A run cancelled while it waits for the host
 * skips its tasks, and leaves the temporary to the run behind it. */
static void temporaries_are_each_runs_own(void **state)
{
    (void)state;
    enum { ROUNDS_HERE = 50 };
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *temporary = NULL;
    desc.element = sizeof value;
    desc.rows = 1;
    desc.flags = FILCH_DATA_TEMPORARY;
    assert_ok(filch_data_create(runtime, &desc, &temporary));
    filch_codelet *copy = fixture_codelet(runtime, "copy", run_copy, 0);
    filch_graph *through = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access there[2] = {fixture_access(data, 0, FILCH_READ),
                             fixture_access(temporary, 0, FILCH_WRITE)};
    filch_access back[2] = {fixture_access(temporary, 0, FILCH_READ),
                            fixture_access(data, 0, FILCH_READWRITE)};
    fixture_add(through, copy, NULL, there, 2);
    fixture_add(through, copy, NULL, back, 2);
    for (int round = 0; round < ROUNDS_HERE; ++round) {
        filch_job *jobs[LINE];
        filch_hold *hold = NULL;
        assert_ok(filch_data_acquire_tiles(data, NULL, FILCH_READWRITE, -1, &hold));
        value = 0;
        for (int i = 0; i < LINE; ++i) {
            jobs[i] = submit(through);
        }
        assert_ok(filch_job_cancel(jobs[0]));
        assert_ok(filch_job_cancel(jobs[round % LINE]));
        assert_ok(filch_hold_release(hold));
        assert_int_equal(filch_data_destroy(temporary), FILCH_BUSY);
        for (int i = LINE; i-- > 0;) {
            finish(jobs[i], i == 0 || i == round % LINE ? FILCH_CANCELLED : FILCH_OK);
        }
        assert_int_equal(value, 2 * (LINE - (round % LINE == 0 ? 1 : 2)));
    }
    assert_ok(filch_graph_destroy(through));
    assert_ok(filch_data_destroy(temporary));
}

/* --- Repetitions --- */

static void repetitions_stand_in_line(void **state)
{
    (void)state;
    filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
    filch_job *repetition = NULL, *second = NULL, *cancelled = NULL;
    desc.max_runs = 4;
    filch_job *first = submit(graph);
    assert_ok(filch_graph_repeat(graph, &desc, NULL, &repetition));
    filch_job *between = submit(graph);
    assert_ok(filch_graph_repeat(graph, &desc, NULL, &cancelled));
    assert_ok(filch_graph_repeat(graph, &desc, NULL, &second));
    filch_job *last = submit(graph);
    assert_ok(filch_job_cancel(cancelled));
    assert_status(filch_job_status(cancelled), FILCH_CANCELLED); /* at once */
    gate_open = 1;
    assert_ok(filch_job_wait(last, PATIENCE));
    assert_status(filch_job_status(second), FILCH_OK);
    assert_status(filch_job_status(repetition), FILCH_OK);
    assert_int_equal(ran, 11);
    assert_int_equal(value, after(1, 11));
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_stats(second, &info, NULL, 0));
    assert_int_equal(info.runs, 4);
    assert_int_equal(info.done, 4);
    finish(first, FILCH_OK);
    finish(repetition, FILCH_OK);
    finish(between, FILCH_OK);
    finish(second, FILCH_OK);
    finish(cancelled, FILCH_CANCELLED);
    finish(last, FILCH_OK);
}

static void a_cancelled_repetition_lets_the_run_behind_begin(void **state)
{
    (void)state;
    filch_job *repetition = NULL;
    gate_open = 1;
    assert_ok(filch_graph_repeat(graph, NULL, NULL, &repetition)); /* without a limit */
    assert_true(fixture_await(&ran, 10));
    filch_job *behind = submit(graph), *last = submit(graph);
    int then = ran;
    assert_true(fixture_await(&ran, then + 10));
    assert_status(filch_job_status(behind), FILCH_NOT_READY);
    assert_ok(filch_job_cancel(repetition));
    finish(last, FILCH_OK);
    finish(behind, FILCH_OK);
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_stats(repetition, &info, NULL, 0));
    assert_int_equal(ran, info.done + 2);
    assert_ok(filch_job_release(repetition));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_follow_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_come_between, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_open_graph_comes_between, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_host_comes_between_and_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_run_leaves_the_line_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_fails_or_is_cancelled_harms_no_other, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_the_runtime_ends_the_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_without_handles_do_not_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(readers_stand_in_line_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_callback_may_cancel_the_next_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_callback_may_cancel_the_next_repetition, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_callback_does_not_wait_for_what_it_cancelled, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_repetitions_callback_may_cancel_the_next_run, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_graph_may_use_thousands_of_handles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_graph_may_be_queued_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_memory_is_needed_once_the_line_was_as_long, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_task_must_not_wait_for_a_run_behind_its_own, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_callback_may_submit_the_graph_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(temporaries_are_each_runs_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(repetitions_stand_in_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_repetition_lets_the_run_behind_begin, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
