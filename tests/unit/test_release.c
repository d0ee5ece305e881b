/* SPDX-License-Identifier: Apache-2.0 */
/* Releases of jobs: a handle is released once, and a job without a handle never. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <pthread.h>
#include <string.h>

enum { LINE = 5, ROUNDS = 50, RELEASERS = 2 };

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *apply;
static filch_data *data;
static filch_graph *graph;
static double value; /* of the one tile: counts tasks */
static _Atomic int gate_open, at_gate, has_gate;

/* What the callbacks of a test did. */
static struct {
    filch_job *job; /* of the last one */
    int calls;
    int releases; /* that each callback tries */
    filch_status answers[LINE * 2];
    int count;
    char text[256];
} told;

static int run_apply(const filch_call *call)
{
    if (has_gate != 0) {
        ++at_gate;
        if (!fixture_await(&gate_open, 1)) {
            return 90;
        }
    }
    if (call->view_count != 0) {
        ++*(double *)call->views[0].ptr;
    }
    return 0;
}

static void release_inside(filch_job *job, filch_status status, void *user)
{
    (void)status, (void)user;
    told.job = job;
    ++told.calls;
    for (int i = 0; i < told.releases && told.count < LINE * 2; ++i) {
        filch_status answer = filch_job_release(job);
        told.answers[told.count++] = answer;
        if (answer != FILCH_OK) {
            filch_error error = FILCH_ERROR_INIT;
            (void)filch_runtime_error(runtime, &error);
            memcpy(told.text, error.text, sizeof told.text);
        }
    }
}

static void begin(const char *devices, filch_drive drive)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, drive, &memory);
    apply = fixture_codelet(runtime, "apply", run_apply, 0);
    data = fixture_vector(runtime, &value, sizeof value, 1, 1);
    graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, apply, NULL, &fixture_access(data, 0, FILCH_READWRITE), 1);
    value = 0;
    gate_open = at_gate = has_gate = 0;
    memset(&told, 0, sizeof told);
    told.releases = 1;
}

static int set_up(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_POLL);
    return 0;
}

static int set_up_threads(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (runtime != NULL) {
        assert_ok(filch_runtime_drain(runtime, PATIENCE));
        assert_ok(filch_graph_destroy(graph));
        assert_ok(filch_data_destroy(data));
        assert_ok(filch_runtime_destroy(runtime));
    }
    assert_int_equal(memory.bytes, 0);
    return 0;
}

static filch_submit_desc releasing(void)
{
    filch_submit_desc desc = FILCH_SUBMIT_DESC_INIT;
    desc.on_complete = release_inside;
    desc.label = "mine";
    return desc;
}

/* Every callback so far was refused; jobs with a handle still work afterwards. */
static void assert_refused(int calls)
{
    assert_ok(filch_runtime_drain(runtime, PATIENCE));
    assert_int_equal(told.calls, calls);
    assert_int_equal(told.count, calls * told.releases);
    for (int i = 0; i < told.count; ++i) {
        assert_int_equal(told.answers[i], FILCH_WRONG_STATE);
    }
    assert_string_equal(told.text, "job 'mine' has no handle to release: the submission kept none, "
                                   "or it was released before");
    for (int i = 0; i < LINE; ++i) {
        filch_job *job = NULL;
        double before = value;
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_ok(filch_job_wait(job, PATIENCE));
        assert_true(value == before + 1);
        assert_ok(filch_job_release(job));
    }
}

static void a_graphs_job_without_a_handle_is_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    told.releases = 2;
    assert_ok(filch_graph_submit(graph, &desc, NULL));
    assert_refused(1);
}

static void runs_in_line_without_handles_are_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    for (int i = 0; i < LINE; ++i) {
        assert_ok(filch_graph_submit(graph, &desc, NULL));
    }
    assert_refused(LINE);
}

/* The callbacks of the runs run in the call, which ends the runtime. */
static void withdrawn_runs_without_handles_are_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    assert_ok(filch_graph_submit(graph, NULL, NULL));
    assert_ok(filch_graph_submit(graph, &desc, NULL));
    assert_ok(filch_graph_submit(graph, &desc, NULL));
    assert_ok(filch_runtime_abort(runtime));
    runtime = NULL;
    assert_int_equal(told.calls, 2);
    assert_int_equal(told.answers[0], FILCH_WRONG_STATE);
    assert_int_equal(told.answers[1], FILCH_WRONG_STATE);
}

static void an_open_graphs_job_without_a_handle_is_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    assert_ok(filch_graph_submit(open, &desc, NULL));
    fixture_add(open, apply, NULL, NULL, 0);
    assert_ok(filch_graph_close(open));
    assert_refused(1);
    assert_ok(filch_graph_destroy(open));
}

static void an_empty_graphs_job_without_a_handle_is_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    filch_graph *empty = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_ok(filch_graph_submit(empty, &desc, NULL));
    assert_refused(1);
    assert_ok(filch_graph_destroy(empty));
}

static void a_repetition_without_a_handle_is_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    filch_repeat_desc repeat = FILCH_REPEAT_DESC_INIT;
    repeat.max_runs = 3;
    assert_ok(filch_graph_repeat(graph, &repeat, &desc, NULL));
    assert_refused(1);
    assert_true(value == 3 + LINE);
}

static void a_batch_and_a_broadcast_without_handles_are_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_job *whole = NULL;
    double here = 0;
    filch_data_desc managed = FILCH_DATA_DESC_INIT;
    filch_data *own = NULL;
    managed.ptr = &here;
    managed.element = sizeof here;
    managed.rows = 1;
    managed.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_create(runtime, &managed, &own));
    batch.codelet = apply;
    batch.n = 10;
    assert_ok(filch_batch_submit(runtime, &batch, &desc, NULL));
    assert_refused(1);
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &whole));
    assert_ok(filch_job_cancel(whole));
    assert_status(filch_job_wait(whole, PATIENCE), FILCH_CANCELLED);
    assert_ok(filch_job_resume(whole, NULL, &desc, NULL));
    assert_refused(2);
    assert_ok(filch_job_release(whole));
    assert_ok(filch_data_broadcast(own, NULL, &desc, NULL));
    assert_refused(3);
    assert_ok(filch_data_destroy(own));
}

/* The calls keep their jobs until they return. */
static void the_job_of_a_run_is_not_released(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = apply;
    assert_ok(filch_graph_run(graph, &desc, NULL));
    assert_refused(1);
    batch.n = 10;
    assert_ok(filch_batch_run(runtime, &batch, &desc, NULL));
    assert_refused(2);
    batch.n = 0; /* is complete within the submission */
    assert_ok(filch_batch_run(runtime, &batch, &desc, NULL));
    assert_refused(3);
}

static void a_handle_is_released_once_in_a_callback(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    filch_repeat_desc repeat = FILCH_REPEAT_DESC_INIT;
    filch_job *job = NULL;
    told.releases = 2;
    assert_ok(filch_graph_submit(graph, &desc, &job));
    assert_ok(filch_runtime_drain(runtime, PATIENCE));
    assert_ptr_equal(told.job, job);
    assert_int_equal(told.answers[0], FILCH_OK);
    assert_int_equal(told.answers[1], FILCH_WRONG_STATE);
    repeat.max_runs = 2;
    assert_ok(filch_graph_repeat(graph, &repeat, &desc, &job));
    assert_ok(filch_runtime_drain(runtime, PATIENCE));
    assert_int_equal(told.answers[2], FILCH_OK);
    assert_int_equal(told.answers[3], FILCH_WRONG_STATE);
    assert_true(value == 3);
}

static void a_second_release_is_refused_while_the_job_runs(void **state)
{
    (void)state;
    filch_submit_desc desc = releasing();
    filch_job *job = NULL;
    told.releases = 0;
    assert_ok(filch_graph_submit(graph, &desc, &job));
    assert_ok(filch_job_release(job));
    assert_status(filch_job_release(job), FILCH_WRONG_STATE);
    filch_error error = fixture_error(runtime);
    assert_string_equal(error.call, "filch_job_release");
    assert_string_equal(error.label, "mine");
    assert_int_equal(told.calls, 0);
    assert_ok(filch_runtime_drain(runtime, PATIENCE));
    assert_int_equal(told.calls, 1);
    assert_true(value == 1);
}

static void a_release_behind_the_end_is_found_unless_a_job_has_the_memory(void **state)
{
    (void)state;
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    assert_status(filch_job_release(job), FILCH_INVALID_HANDLE);
    /* A job that nobody may release may have the memory now. */
    assert_ok(filch_graph_submit(graph, NULL, NULL));
    assert_int_not_equal(filch_job_release(job), FILCH_OK);
    assert_ok(filch_runtime_drain(runtime, PATIENCE));
    assert_true(value == 2);
}

static void *fetch_of_another_thread(void *user)
{
    filch_error error = FILCH_ERROR_INIT;
    *(filch_status *)user = filch_runtime_error(runtime, &error);
    return NULL;
}

static void a_wrong_handle_is_the_failure_of_its_thread(void **state)
{
    (void)state;
    pthread_t thread;
    filch_status status = FILCH_OK;
    assert_status(filch_job_release(NULL), FILCH_INVALID_HANDLE);
    assert_int_equal(pthread_create(&thread, NULL, fetch_of_another_thread, &status), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, FILCH_NOT_FOUND);
    filch_error error = fixture_error(runtime);
    assert_int_equal(error.status, FILCH_INVALID_HANDLE);
    assert_string_equal(error.call, "filch_job_release");
    assert_string_equal(error.text, "the job is null");
}

static filch_job *contested;
static _Atomic int go, released;

static void *release_at_once(void *user)
{
    (void)user;
    if (fixture_await(&go, 1)) {
        released += filch_job_release(contested) == FILCH_OK;
    }
    return NULL;
}

/* The job waits at its gate meanwhile, so that it cannot end. */
static void of_two_releases_at_once_one_is_refused(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; ++round) {
        pthread_t threads[RELEASERS];
        gate_open = at_gate = go = released = 0;
        has_gate = 1;
        assert_ok(filch_graph_submit(graph, NULL, &contested));
        assert_true(fixture_await(&at_gate, 1));
        for (int i = 0; i < RELEASERS; ++i) {
            assert_int_equal(pthread_create(&threads[i], NULL, release_at_once, NULL), 0);
        }
        go = 1;
        for (int i = 0; i < RELEASERS; ++i) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_int_equal(released, 1);
        gate_open = 1;
        assert_ok(filch_runtime_drain(runtime, PATIENCE));
    }
    assert_true(value == ROUNDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_graphs_job_without_a_handle_is_not_released),
        TEST(runs_in_line_without_handles_are_not_released),
        TEST(withdrawn_runs_without_handles_are_not_released),
        TEST(an_open_graphs_job_without_a_handle_is_not_released),
        TEST(an_empty_graphs_job_without_a_handle_is_not_released),
        TEST(a_repetition_without_a_handle_is_not_released),
        TEST(a_batch_and_a_broadcast_without_handles_are_not_released),
        TEST(the_job_of_a_run_is_not_released),
        TEST(a_handle_is_released_once_in_a_callback),
        TEST(a_second_release_is_refused_while_the_job_runs),
        TEST(a_release_behind_the_end_is_found_unless_a_job_has_the_memory),
        TEST(a_wrong_handle_is_the_failure_of_its_thread),
        cmocka_unit_test_setup_teardown(of_two_releases_at_once_one_is_refused, set_up_threads,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
