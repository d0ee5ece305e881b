/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime as a whole: creation, poll mode, the end in three verbs, and memory that runs out. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int gate_open, gate_entered, ran;
static double buffer[64];

static int wait_at_gate(const filch_call *call)
{
    (void)call;
    ++gate_entered;
    return fixture_await(&gate_open, 1) ? 0 : 99;
}

static int count(const filch_call *call)
{
    (void)call;
    ++ran;
    return 0;
}

static void bad_configurations_are_refused(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = (filch_runtime *)(void *)buffer;
    static const filch_allocator half = {0};
    static const double scores[3] = {1, 2, 3};
    config.devices = "host:1";
    assert_status(filch_runtime_create(&config, &error, NULL), FILCH_INVALID_ARGUMENT);
#define REFUSE(member, value, expected)                                           \
    do {                                                                          \
        config = (filch_runtime_desc)FILCH_RUNTIME_DESC_INIT;                     \
        config.devices = "host:1";                                                \
        config.member = (value);                                                  \
        error = (filch_error)FILCH_ERROR_INIT;                                    \
        assert_status(filch_runtime_create(&config, &error, &runtime), expected); \
        assert_int_equal(error.status, expected);                                 \
        assert_true(error.text[0] != '\0');                                       \
        assert_status(filch_runtime_create(&config, NULL, &runtime), expected);   \
        assert_ptr_equal(runtime, buffer);                                        \
    } while (0)
    REFUSE(size, 0, FILCH_INVALID_ARGUMENT);
    REFUSE(size, offsetof(filch_runtime_desc, cuda_context) - 1, FILCH_INVALID_ARGUMENT);
    REFUSE(cuda_context, (filch_cuda_context)3, FILCH_INVALID_ARGUMENT);
    REFUSE(bind, (filch_bind)3, FILCH_INVALID_ARGUMENT);
    REFUSE(memory_limit, (uint64_t)INT64_MAX + 1, FILCH_INVALID_ARGUMENT);
    REFUSE(cuda_schedule, (filch_cuda_schedule)5, FILCH_INVALID_ARGUMENT);
    REFUSE(reserved, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(policy, (filch_policy)4, FILCH_INVALID_ARGUMENT);
    REFUSE(policy, FILCH_POLICY_CUSTOM, FILCH_INVALID_ARGUMENT);
    REFUSE(drive, (filch_drive)3, FILCH_INVALID_ARGUMENT);
    REFUSE(score, (filch_score)7, FILCH_INVALID_ARGUMENT);
    REFUSE(log_level, (filch_log_level)5, FILCH_INVALID_ARGUMENT);
    REFUSE(allocator_kind, (filch_allocator_kind)3, FILCH_INVALID_ARGUMENT);
    REFUSE(allocator, &half, FILCH_INVALID_ARGUMENT);
    REFUSE(scores, scores, FILCH_INVALID_ARGUMENT);
    REFUSE(score_count, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(devices, "host:1,", FILCH_PARSE);
    assert_string_equal(error.label, "");
    assert_int_equal(setenv("FILCH_DEVICES", "host:q", 1), 0);
    REFUSE(devices, NULL, FILCH_PARSE);
    assert_string_equal(error.label, "FILCH_DEVICES");
    assert_int_equal(unsetenv("FILCH_DEVICES"), 0);
    config = (filch_runtime_desc)FILCH_RUNTIME_DESC_INIT;
    config.devices = "host:1";
    error = (filch_error){0};
    assert_status(filch_runtime_create(&config, &error, &runtime), FILCH_INVALID_ARGUMENT);
    assert_int_equal(error.status, FILCH_OK); /* nobody knows where it ends */
    assert_ptr_equal(runtime, buffer);
    REFUSE(devices, "sim:/nonexistent/file", FILCH_IO);
    REFUSE(devices, "host:1,host:1", FILCH_DUPLICATE_DEVICE);
    config = (filch_runtime_desc)FILCH_RUNTIME_DESC_INIT;
    config.devices = "host:2";
    config.scores = scores;
    config.score_count = 3;
    assert_status(filch_runtime_create(&config, &error, &runtime), FILCH_INVALID_ARGUMENT);
}

static void errors_are_kept_by_thread(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_error error = FILCH_ERROR_INIT;
    filch_usage usage = {.size = sizeof usage};
    assert_int_equal(filch_version(), 100);
    assert_status(filch_runtime_error(runtime, &error), FILCH_NOT_FOUND);
    assert_status(filch_runtime_error(runtime, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_runtime_usage(runtime, NULL), FILCH_INVALID_ARGUMENT);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_string_equal(error.call, "filch_runtime_usage");
    error.size = 0;
    assert_status(filch_runtime_error(runtime, &error), FILCH_INVALID_ARGUMENT);
    usage.size = 0;
    assert_status(filch_runtime_usage(runtime, &usage), FILCH_INVALID_ARGUMENT);
    assert_ok(filch_runtime_destroy(runtime));
}

static void usage_is_what_the_allocator_saw(void **state)
{
    (void)state;
    fixture_memory memory;
    fixture_memory_init(&memory);
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_POLL, &memory);
    int64_t outside = memory.bytes;
    filch_usage usage = {.size = sizeof usage};
    assert_ok(filch_runtime_usage(runtime, &usage));
    outside -= (int64_t)usage.host_bytes; /* the runtime's own object */
    filch_codelet *counting = fixture_codelet(runtime, "count", count, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 1000; ++i) {
        fixture_add(graph, counting, NULL, NULL, 0);
    }
    assert_ok(fixture_run(graph));
    assert_ok(filch_runtime_usage(runtime, &usage));
    assert_int_equal(usage.host_bytes, memory.bytes - outside);
    assert_int_equal(usage.tasks_live, 1000);
    assert_true(usage.task_bytes >= 1000 * 128);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    assert_int_equal(memory.pieces, 0);
}

/* --- Poll mode --- */

static void threads_are_made_by_one_drive_only(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:4", FILCH_DRIVE_THREADS, NULL);
    bool worked;
    for (int i = 0; i < 10000 && fixture_threads("host:") < 4; ++i) {
        usleep(1000); /* a thread names itself when it gets to run */
    }
    assert_int_equal(fixture_threads("host:"), 4);
    assert_status(filch_runtime_poll(runtime, 0, &worked), FILCH_WRONG_STATE);
    assert_ok(filch_runtime_destroy(runtime));
    int threads = fixture_threads(""); /* maybe with some that are just ending */
    runtime = fixture_runtime("host:4", FILCH_DRIVE_POLL, NULL);
    filch_codelet *counting = fixture_codelet(runtime, "count", count, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 100; ++i) {
        fixture_add(graph, counting, NULL, NULL, 0);
    }
    ran = 0;
    worked = true;
    assert_ok(filch_runtime_poll(runtime, -1, &worked));
    assert_false(worked);
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_int_equal(ran, 0); /* nobody runs anything by itself */
    assert_ok(filch_runtime_poll(runtime, 0, &worked));
    assert_true(worked);
    assert_in_range(ran, 1, 4); /* one round */
    assert_ok(filch_runtime_poll(runtime, -1, NULL));
    assert_int_equal(ran, 100);
    assert_ok(filch_job_status(job));
    assert_ok(filch_job_release(job));
    assert_ok(fixture_run(graph)); /* the wait polls */
    assert_int_equal(ran, 200);
    assert_ok(filch_graph_submit(graph, NULL, NULL));
    assert_ok(filch_runtime_drain(runtime, -1)); /* the drain polls */
    assert_int_equal(ran, 300);
    assert_true(fixture_threads("") <= threads);
    assert_ok(filch_runtime_destroy(runtime));
}

static _Atomic int stop_polling;

static void *keep_polling(void *user)
{
    while (stop_polling == 0) {
        bool worked;
        if (filch_runtime_poll(user, 0.001, &worked) != FILCH_OK) {
            return user;
        }
    }
    return NULL;
}

static void pollers_share_the_workers(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_POLL, NULL);
    filch_codelet *counting = fixture_codelet(runtime, "count", count, 0);
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    pthread_t threads[3];
    for (uint32_t i = 0; i < 500; ++i) {
        filch_access accesses[2] = {fixture_access(data, i % 64, FILCH_READWRITE),
                                    fixture_access(data, (i + 1) % 64, FILCH_READ)};
        fixture_add(graph, counting, NULL, accesses, 2);
    }
    stop_polling = ran = 0;
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, keep_polling, runtime), 0);
    }
    for (int round = 0; round < 30; ++round) {
        assert_ok(fixture_run(graph));
    }
    stop_polling = 1;
    for (int i = 0; i < 3; ++i) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(ran, 30 * 500);
    assert_ok(filch_runtime_destroy(runtime));
}

static _Atomic int poll_status, drain_status, abort_status, destroy_status;

static int call_what_a_task_must_not(const filch_call *call)
{
    poll_status = (int)filch_runtime_poll(call->runtime, 0, NULL);
    drain_status = (int)filch_runtime_drain(call->runtime, -1);
    abort_status = (int)filch_runtime_abort(call->runtime);
    destroy_status = (int)filch_runtime_destroy(call->runtime);
    return 0;
}

static void tasks_cannot_end_the_runtime(void **state)
{
    (void)state;
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        filch_runtime *runtime = fixture_runtime("host:1", (filch_drive)drive, NULL);
        filch_codelet *calls = fixture_codelet(runtime, "calls", call_what_a_task_must_not, 0);
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        fixture_add(graph, calls, NULL, NULL, 0);
        assert_ok(fixture_run(graph));
        assert_int_equal(poll_status, FILCH_WRONG_STATE);
        assert_int_equal(drain_status, FILCH_WRONG_STATE);
        assert_int_equal(abort_status, FILCH_WRONG_STATE);
        assert_int_equal(destroy_status, FILCH_WRONG_STATE);
        assert_ok(filch_runtime_destroy(runtime));
    }
}

/* --- The end --- */

static filch_status aborted;

static void note_abort(filch_job *job, filch_status status, void *user)
{
    (void)job;
    (void)user;
    aborted = status;
}

/* Of an open graph without tasks: an abort ends its job once all jobs are cancelled. The abort thus
 * waits for the tile in flight. */
static void open_the_gate(filch_job *job, filch_status status, void *user)
{
    (void)job;
    (void)status;
    (void)user;
    gate_open = 1;
}

static void destroy_refuses_drain_waits_abort_cancels(void **state)
{
    (void)state;
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        fixture_memory memory;
        fixture_memory_init(&memory);
        filch_runtime *runtime = fixture_runtime("host:2", (filch_drive)drive, &memory);
        filch_codelet *gate = fixture_codelet(runtime, "gate", wait_at_gate, 0);
        filch_codelet *counting = fixture_codelet(runtime, "count", count, 0);
        filch_data *data = fixture_vector(runtime, buffer, 8, 64, 64);
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_graph *queued = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        filch_graph *empty = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        filch_access access = fixture_access(data, 0, FILCH_READWRITE);
        filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
        filch_job *job = NULL;
        filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
        gate_open = gate_entered = ran = 0;
        aborted = FILCH_OK;
        fixture_add(graph, gate, NULL, &access, 1);
        fixture_add(graph, counting, NULL, &access, 1);
        fixture_add(queued, counting, NULL, &access, 1);
        submit.on_complete = note_abort;
        assert_ok(filch_graph_submit(graph, &submit, &job)); /* its handle is never given back */
        assert_ok(filch_graph_submit(queued, NULL, NULL));
        assert_ok(filch_graph_submit(open, NULL, NULL)); /* and never closed */
        fixture_add(open, counting, NULL, &access, 1);
        submit.on_complete = open_the_gate;
        assert_ok(filch_graph_submit(empty, &submit, NULL));
        batch.codelet = counting;
        batch.n = 1000;
        assert_ok(filch_batch_submit(runtime, &batch, NULL, NULL));
        assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
        if (drive == FILCH_DRIVE_THREADS) { /* in poll mode it would run the gate here */
            assert_status(filch_runtime_drain(runtime, 0.005), FILCH_TIMEOUT);
        }
        assert_true(drive == FILCH_DRIVE_POLL || fixture_await(&gate_entered, 1));
        assert_ok(filch_runtime_abort(runtime));
        assert_int_equal(memory.bytes, 0);
        assert_int_equal(memory.pieces, 0);
        assert_true(aborted == FILCH_CANCELLED);
    }
}

static void everything_left_goes_with_the_runtime(void **state)
{
    (void)state;
    fixture_memory memory;
    fixture_memory_init(&memory);
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, &memory);
    filch_codelet *counting = fixture_codelet(runtime, "count", count, 4);
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 1);
    int value = 0;
    for (int i = 0; i < 10; ++i) {
        filch_graph *graph = fixture_graph(runtime, i % 3 ? FILCH_GRAPH_CLOSED : FILCH_GRAPH_OPEN);
        filch_access access = fixture_access(data, (uint32_t)i, FILCH_READWRITE);
        filch_job *job = NULL;
        if (i % 3 == 0) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        fixture_add(graph, counting, &value, &access, 1);
        if (i % 3 == 0) {
            assert_ok(filch_graph_close(graph));
            assert_ok(filch_job_wait(job, -1));
        } else if (i % 3 == 1) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
            assert_ok(filch_job_wait(job, -1));
        }
        if (i % 2 == 0 && job != NULL) {
            assert_ok(filch_job_release(job));
        }
    }
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    assert_int_equal(memory.pieces, 0);
}

static void waiting_is_enough_to_destroy(void **state)
{
    (void)state;
    for (int i = 0; i < 100; ++i) {
        filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
        filch_codelet *counting = fixture_codelet(runtime, "count", count, 0);
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_job *job = NULL;
        fixture_add(graph, counting, NULL, NULL, 0);
        assert_ok(filch_graph_submit(graph, NULL, &job));
        while (filch_job_status(job) == FILCH_NOT_READY) {
        }
        assert_ok(filch_runtime_destroy(runtime)); /* never BUSY once the result is out */
    }
}

static void runtimes_live_side_by_side(void **state)
{
    (void)state;
    filch_runtime *runtimes[3];
    filch_job *jobs[3];
    ran = 0;
    for (int i = 0; i < 3; ++i) {
        runtimes[i] = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
        filch_codelet *counting = fixture_codelet(runtimes[i], "count", count, 0);
        filch_graph *graph = fixture_graph(runtimes[i], FILCH_GRAPH_CLOSED);
        for (int t = 0; t < 100; ++t) {
            fixture_add(graph, counting, NULL, NULL, 0);
        }
        assert_ok(filch_graph_submit(graph, NULL, &jobs[i]));
    }
    for (int i = 0; i < 3; ++i) {
        assert_ok(filch_job_wait(jobs[i], -1));
        assert_ok(filch_runtime_destroy(runtimes[i]));
    }
    assert_int_equal(ran, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_configurations_are_refused),
        cmocka_unit_test(errors_are_kept_by_thread),
        cmocka_unit_test(usage_is_what_the_allocator_saw),
        cmocka_unit_test(threads_are_made_by_one_drive_only),
        cmocka_unit_test(pollers_share_the_workers),
        cmocka_unit_test(tasks_cannot_end_the_runtime),
        cmocka_unit_test(destroy_refuses_drain_waits_abort_cancels),
        cmocka_unit_test(everything_left_goes_with_the_runtime),
        cmocka_unit_test(waiting_is_enough_to_destroy),
        cmocka_unit_test(runtimes_live_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
