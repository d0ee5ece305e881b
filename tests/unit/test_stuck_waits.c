/* SPDX-License-Identifier: Apache-2.0 */
/* Many tasks that wait, deep on one stack, for what a task ends that no job names: one that ends a
 * pending task, or closes a graph. All of them end. While others work, the stack does not grow. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "fixture.h"
#include "patience.h"
#include "sched/worker/parts.h"

enum { CROWD = FL_DEEP_WAIT + 8 };

static _Thread_local int depth;
static _Atomic int deepest, failed, begun, held, released, refuses, ran_on;
static filch_job *awaited;
static filch_graph *unclosed;
static filch_pending unended;

/* --- Tasks --- */

static int begin(const filch_call *call)
{
    if (filch_call_pend(call, &unended) != FILCH_OK) {
        return 1;
    }
    begun = 1;
    return FILCH_PENDING;
}

static int end(const filch_call *call)
{
    (void)call;
    return fixture_await(&begun, 1) && filch_pending_end(unended, 0, NULL) == FILCH_OK ? 0 : 1;
}

static int close_graph(const filch_call *call)
{
    (void)call;
    return filch_graph_close(unclosed) == FILCH_OK ? 0 : 1;
}

static int wait_deep(const filch_call *call)
{
    (void)call;
    ++depth;
    for (int most = deepest;
         most < depth && !atomic_compare_exchange_weak(&deepest, &most, depth);) {
    }
    failed += filch_job_wait(awaited, PATIENCE) != FILCH_OK;
    --depth;
    return 0;
}

/* Works until it is released. */
static int hold(const filch_call *call)
{
    (void)call;
    ++held;
    return fixture_await(&released, 1) ? 0 : 1;
}

static int wait_if_let(const filch_call *call)
{
    ran_on = (int)call->device;
    return refuses ? 1 : wait_deep(call);
}

/* --- Runtimes --- */

static filch_runtime *open_runtime(const char *devices, filch_drive drive, filch_policy policy)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    config.devices = devices;
    config.drive = drive;
    config.policy = policy;
    deepest = failed = begun = held = released = refuses = 0;
    ran_on = -1;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    return runtime;
}

static filch_codelet *pending_codelet(filch_runtime *runtime)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet;
    desc.name = "begin";
    desc.host = begin;
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

static filch_job *submit_one(filch_runtime *runtime, filch_codelet *codelet, uint32_t affinity)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task;
    filch_job *job;
    desc.codelet = codelet;
    desc.affinity = affinity;
    assert_ok(filch_graph_add(graph, &desc, &task));
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

/* A first task makes many ready that wait, and at a place among them the one that ends the waits.
 */
static void submit_crowd(filch_runtime *runtime, filch_host_fn ending, int count, int place)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_codelet *waits = fixture_codelet(runtime, "wait", wait_deep, 0);
    filch_codelet *ends = fixture_codelet(runtime, "end", ending, 0);
    filch_task first = fixture_add(graph, nothing, NULL, NULL, 0);
    for (int i = 0; i < count; ++i) {
        filch_task task = fixture_add(graph, i == place ? ends : waits, NULL, NULL, 0);
        assert_ok(filch_graph_edge(graph, first, task));
    }
    assert_ok(fixture_run(graph));
    assert_int_equal(failed, 0);
    assert_ok(filch_job_wait(awaited, PATIENCE));
    assert_ok(filch_job_release(awaited));
}

/* --- Waits that end --- */

typedef struct way {
    const char *devices;
    filch_drive drive;
    filch_policy policy;
} way;

static const way ways[] = {{"host:1", FILCH_DRIVE_THREADS, FILCH_POLICY_STEAL},
                           {"host:2", FILCH_DRIVE_THREADS, FILCH_POLICY_STEAL},
                           {"host:1", FILCH_DRIVE_THREADS, FILCH_POLICY_STATIC},
                           {"host:2", FILCH_DRIVE_THREADS, FILCH_POLICY_STATIC},
                           {"host:1", FILCH_DRIVE_POLL, FILCH_POLICY_STEAL},
                           {"host:2", FILCH_DRIVE_POLL, FILCH_POLICY_STEAL},
                           {"host:2", FILCH_DRIVE_POLL, FILCH_POLICY_STATIC}};
enum { WAYS = sizeof ways / sizeof *ways };
static const int places[] = {0, FL_DEEP_WAIT, CROWD - 4, CROWD - 1};
enum { PLACES = sizeof places / sizeof *places };

static void a_pending_task_is_ended_by_a_task_that_is_ready(void **state)
{
    (void)state;
    for (size_t k = 0; k < WAYS * PLACES; ++k) {
        const way *at = &ways[k / PLACES];
        filch_runtime *runtime = open_runtime(at->devices, at->drive, at->policy);
        awaited = submit_one(runtime, pending_codelet(runtime), 0);
        submit_crowd(runtime, end, CROWD, places[k % PLACES]);
        assert_ok(filch_runtime_destroy(runtime));
    }
}

static void a_graph_is_closed_by_a_task_that_is_ready(void **state)
{
    (void)state;
    for (size_t k = 0; k < WAYS * PLACES; ++k) {
        const way *at = &ways[k / PLACES];
        filch_runtime *runtime = open_runtime(at->devices, at->drive, at->policy);
        unclosed = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        assert_ok(filch_graph_submit(unclosed, NULL, &awaited));
        submit_crowd(runtime, close_graph, CROWD, places[k % PLACES]);
        assert_ok(filch_runtime_destroy(runtime));
    }
}

/* Workers that search for a second before they sleep. */
static void waits_of_workers_that_search_end(void **state)
{
    (void)state;
    assert_int_equal(setenv("FILCH_SPIN_US", "1000000", 1), 0);
    for (size_t k = 0; k < PLACES; ++k) {
        filch_runtime *runtime = open_runtime("host:2", FILCH_DRIVE_THREADS, FILCH_POLICY_STEAL);
        awaited = submit_one(runtime, pending_codelet(runtime), 0);
        submit_crowd(runtime, end, CROWD, places[k]);
        assert_ok(filch_runtime_destroy(runtime));
    }
    assert_int_equal(unsetenv("FILCH_SPIN_US"), 0);
}

static int end_and_release(const filch_call *call)
{
    released = 1;
    return end(call);
}

/* One task works until one that stands aside lets it end. */
static void a_task_that_works_holds_up_no_wait(void **state)
{
    enum { FEW = FL_DEEP_WAIT + 3 };
    static const int behind[] = {0, FL_DEEP_WAIT, FEW - 1};
    (void)state;
    for (size_t k = 0; k < sizeof behind / sizeof *behind; ++k) {
        filch_runtime *runtime = open_runtime("host:2", FILCH_DRIVE_THREADS, FILCH_POLICY_STEAL);
        filch_job *holding = submit_one(runtime, fixture_codelet(runtime, "hold", hold, 0), 0);
        assert_true(fixture_await(&held, 1));
        awaited = submit_one(runtime, pending_codelet(runtime), 0);
        submit_crowd(runtime, end_and_release, FEW, behind[k]);
        assert_ok(filch_job_wait(holding, PATIENCE));
        assert_ok(filch_job_release(holding));
        assert_ok(filch_runtime_destroy(runtime));
    }
}

/* --- Batches that one device may run --- */

enum { BATCHES = 3 * FL_DEEP_WAIT };

/* A batch of one item that has failed. */
static filch_job *failed_batch(filch_runtime *runtime, filch_codelet *codelet)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job;
    desc.codelet = codelet;
    desc.n = 1;
    refuses = 1;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    assert_status(filch_job_wait(job, PATIENCE), FILCH_TASK_FAILED);
    refuses = 0;
    ran_on = -1;
    return job;
}

/* Its rest, for one device. */
static filch_job *resume_on(filch_job *job, uint32_t device)
{
    filch_resume_desc desc = FILCH_RESUME_DESC_INIT;
    filch_job *rest;
    desc.devices = &device;
    desc.device_count = 1;
    assert_ok(filch_job_resume(job, &desc, NULL, &rest));
    assert_ok(filch_job_release(job));
    return rest;
}

static void release(filch_job *job)
{
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
}

/* They wait one in the other, no deeper than other tasks, while the other device works: one more
 * for each second without anything to do. */
static void bound_batches_stay_shallow_while_others_work(void **state)
{
    const struct timespec nap = {0, 100000000};
    time_t start = time(NULL);
    filch_runtime *runtime = open_runtime("host:2", FILCH_DRIVE_THREADS, FILCH_POLICY_STATIC);
    filch_codelet *waits = fixture_codelet(runtime, "wait if let", wait_if_let, 0);
    filch_job *holding, *rests[BATCHES];
    (void)state;
    for (int i = 0; i < BATCHES; ++i) {
        rests[i] = failed_batch(runtime, waits);
    }
    awaited = submit_one(runtime, pending_codelet(runtime), 1);
    assert_true(fixture_await(&begun, 1));
    holding = submit_one(runtime, fixture_codelet(runtime, "hold", hold, 0), 2);
    assert_true(fixture_await(&held, 1));
    for (int i = 0; i < BATCHES; ++i) {
        rests[i] = resume_on(rests[i], 0);
    }
    assert_true(fixture_await(&deepest, FL_DEEP_WAIT + 1));
    (void)nanosleep(&nap, NULL); /* several times as long as a wait needs to be taken for stuck */
    assert_in_range(deepest, FL_DEEP_WAIT + 1, FL_DEEP_WAIT + 2 + time(NULL) - start);
    released = 1;
    assert_ok(filch_pending_end(unended, 0, NULL));
    release(holding);
    for (int i = 0; i < BATCHES; ++i) {
        release(rests[i]);
    }
    release(awaited);
    assert_int_equal(failed, 0);
    assert_ok(filch_runtime_destroy(runtime));
}

/* A withdrawn device whose task waits begins nothing that the wait does not need. */
static void a_withdrawn_device_leaves_a_bound_batch(void **state)
{
    filch_runtime *runtime = open_runtime("host:2", FILCH_DRIVE_THREADS, FILCH_POLICY_STATIC);
    filch_codelet *waits = fixture_codelet(runtime, "wait if let", wait_if_let, 0);
    filch_job *waiting, *rest = failed_batch(runtime, waits);
    (void)state;
    awaited = submit_one(runtime, pending_codelet(runtime), 1);
    assert_true(fixture_await(&begun, 1));
    waiting = submit_one(runtime, fixture_codelet(runtime, "wait", wait_deep, 0), 2);
    assert_true(fixture_await(&deepest, 1));
    assert_ok(filch_device_withdraw(runtime, 1));
    rest = resume_on(rest, 1);
    assert_status(filch_job_wait(rest, 0.1), FILCH_TIMEOUT);
    assert_int_equal(ran_on, -1);
    assert_ok(filch_device_readmit(runtime, 1));
    assert_ok(filch_pending_end(unended, 0, NULL));
    release(rest);
    release(waiting);
    release(awaited);
    assert_int_equal(ran_on, 1);
    assert_int_equal(failed, 0);
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- The stack --- */

enum { STEP = 16384 };

/* Calls itself while more than half of the stack is free; returns how often. */
static __attribute__((noinline)) int descend(int calls)
{
    volatile char room[STEP];
    memset((char *)(uintptr_t)room, calls, sizeof room);
    int deeper = fl_thread_has_stack() ? descend(calls + 1) : calls;
    return deeper + (room[STEP / 2] != (char)calls);
}

static int descend_on_a_thread(void *calls)
{
    *(int *)calls = descend(0);
    return 0;
}

static void half_of_a_stack_is_left(void **state)
{
    fl_thread thread;
    int calls = 0;
    (void)state;
    assert_ok(fl_thread_start(&thread, descend_on_a_thread, &calls));
    fl_thread_join(thread);
    assert_in_range(calls, 4, 1 << 16);
    assert_true(fl_thread_has_stack());
}

/* --- Waits on a stack that is half used --- */

/* FL_DEEP_WAIT frames fit below half of the stack; SOME do not fit on it. */
enum { FRAME = 98304, SMALL_STACK = 1 << 22, SOME = 3 * FL_DEEP_WAIT };

static _Atomic int warnings;

static void count_warning(filch_log_level level, const char *message, void *user)
{
    (void)user;
    warnings += level == FILCH_LOG_WARNING && strstr(message, "half of the stack") != NULL;
}

static int wait_on_a_large_frame(const filch_call *call)
{
    volatile char room[FRAME];
    memset((char *)(uintptr_t)room, 1, sizeof room);
    return wait_deep(call) + (room[FRAME / 2] != 1);
}

/* Each task waits on the stack of the one before, up to half of the stack and a frame more. */
static void *run_tasks(void *graph)
{
    assert_ok(fixture_run(graph));
    return NULL;
}

/* The wait that finds it goes on with its job alone, says so once, and ends with what it waits for.
 */
static void a_stack_that_is_half_used_is_told_once(void **state)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    pthread_attr_t small;
    pthread_t thread;
    (void)state;
    config.devices = "host:1";
    config.drive = FILCH_DRIVE_POLL;
    config.log = count_warning;
    deepest = failed = begun = warnings = 0;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    awaited = submit_one(runtime, pending_codelet(runtime), 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_codelet *waits = fixture_codelet(runtime, "wait", wait_on_a_large_frame, 0);
    for (int i = 0; i < SOME; ++i) {
        (void)fixture_add(graph, waits, NULL, NULL, 0);
    }
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &small, run_tasks, graph), 0);
    (void)pthread_attr_destroy(&small);
    assert_true(fixture_await(&warnings, 1));
    assert_int_equal(begun, 1);
    int most = deepest;
    assert_in_range(most, FL_DEEP_WAIT, SOME - 1);
    assert_ok(filch_pending_end(unended, 0, NULL));
    assert_int_equal(pthread_join(thread, NULL), 0);
    release(awaited);
    assert_int_equal(warnings, 1);
    assert_int_equal(deepest, most);
    assert_int_equal(failed, 0);
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pending_task_is_ended_by_a_task_that_is_ready),
        cmocka_unit_test(a_graph_is_closed_by_a_task_that_is_ready),
        cmocka_unit_test(waits_of_workers_that_search_end),
        cmocka_unit_test(a_task_that_works_holds_up_no_wait),
        cmocka_unit_test(bound_batches_stay_shallow_while_others_work),
        cmocka_unit_test(a_withdrawn_device_leaves_a_bound_batch),
        cmocka_unit_test(half_of_a_stack_is_left),
        cmocka_unit_test(a_stack_that_is_half_used_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
