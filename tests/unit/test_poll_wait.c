/* SPDX-License-Identifier: Apache-2.0 */
/* Waits in poll mode: what ends them, and that threads that wait do all work. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "runtime.h"

enum { TASKS = 400, WAITERS = 3, ROUNDS = 40 };

static filch_runtime *runtime;
static filch_codelet *counts, *pends, *waits;
static _Atomic int ran, pended;
static filch_pending pending;
static filch_job *submitted;
static filch_graph *graph;
static filch_policy policy; /* of the present group of tests */

static int count(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&ran, 1);
    return 0;
}

static int pend(const filch_call *call)
{
    if (filch_call_pend(call, &pending) != FILCH_OK) {
        return 1;
    }
    atomic_fetch_add(&pended, 1);
    return FILCH_PENDING;
}

static _Atomic int status_inside;

static int wait_inside(const filch_call *call)
{
    (void)call;
    atomic_store(&status_inside, (int)filch_runtime_poll_wait(runtime, NULL, 0, NULL));
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = "host:2@any";
    config.drive = FILCH_DRIVE_POLL;
    config.policy = policy;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    counts = fixture_codelet(runtime, "count", count, 0);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "pend";
    desc.host = pend;
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &pends));
    waits = fixture_codelet(runtime, "wait", wait_inside, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

/* Returns when so many threads sleep in waits. */
static void await_sleepers(uint32_t wanted)
{
    uint64_t until = fl_time_now() + (uint64_t)(PATIENCE * 1e9);
    const struct timespec nap = {0, 200000};
    while (atomic_load(&runtime->sched.waiters) < wanted && fl_time_now() < until) {
        (void)nanosleep(&nap, NULL);
    }
}

/* A wait of the main thread, and what a second thread does once the main thread sleeps. */
static void wait_while(int (*act)(void *), filch_job *job, bool expected)
{
    fl_thread thread;
    bool worked = !expected;
    assert_ok(fl_thread_start(&thread, act, NULL));
    assert_ok(filch_runtime_poll_wait(runtime, job, PATIENCE, &worked));
    fl_thread_join(thread);
    assert_int_equal(worked, expected);
}

static void finish_job(void)
{
    assert_ok(filch_job_wait(submitted, PATIENCE));
    assert_ok(filch_job_release(submitted));
}

static void the_time_ends_a_wait(void **state)
{
    (void)state;
    bool worked = true;
    uint64_t begun = fl_time_now();
    assert_status(filch_runtime_poll_wait(runtime, NULL, 0.02, &worked), FILCH_TIMEOUT);
    assert_true(fl_time_now() - begun >= 19000000);
    assert_false(worked);
    assert_status(filch_runtime_poll_wait(runtime, NULL, 0, NULL), FILCH_TIMEOUT);
}

static int submit_later(void *unused)
{
    (void)unused;
    await_sleepers(1);
    return filch_graph_submit(graph, NULL, &submitted) != FILCH_OK;
}

static void a_submission_ends_a_wait(void **state)
{
    (void)state;
    atomic_store(&ran, 0);
    graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    (void)fixture_add(graph, counts, NULL, NULL, 0);
    wait_while(submit_later, NULL, true);
    finish_job();
    assert_int_equal(ran, 1);
    assert_ok(filch_graph_destroy(graph));
}

static int add_later(void *unused)
{
    (void)unused;
    await_sleepers(1);
    (void)fixture_add(graph, counts, NULL, NULL, 0);
    return 0;
}

static void a_task_of_an_open_graph_ends_a_wait(void **state)
{
    (void)state;
    bool worked = true;
    atomic_store(&ran, 0);
    graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    assert_ok(filch_graph_submit(graph, NULL, &submitted));
    while (worked) { /* what the start of the job leaves to do */
        assert_ok(filch_runtime_poll(runtime, 0, &worked));
    }
    wait_while(add_later, NULL, true);
    assert_ok(filch_graph_close(graph));
    finish_job();
    assert_int_equal(ran, 1);
    assert_ok(filch_graph_destroy(graph));
}

static int end_later(void *unused)
{
    (void)unused;
    await_sleepers(1);
    return filch_pending_end(pending, 0, NULL) != FILCH_OK;
}

static void the_end_of_a_pending_task_ends_a_wait(void **state)
{
    (void)state;
    bool worked = true;
    atomic_store(&pended, 0);
    graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    (void)fixture_add(graph, pends, NULL, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, &submitted));
    while (worked || pended == 0) {
        assert_ok(filch_runtime_poll(runtime, 0, &worked));
    }
    wait_while(end_later, NULL, true);
    finish_job();
    /* The same inside a wait for the job, which sleeps as long. */
    atomic_store(&pended, 0);
    assert_ok(filch_graph_submit(graph, NULL, &submitted));
    while (pended == 0) {
        assert_ok(filch_runtime_poll(runtime, 0, NULL));
    }
    fl_thread thread;
    assert_ok(fl_thread_start(&thread, end_later, NULL));
    finish_job();
    fl_thread_join(thread);
    assert_ok(filch_graph_destroy(graph));
}

static int close_later(void *unused)
{
    (void)unused;
    await_sleepers(1);
    return filch_graph_close(graph) != FILCH_OK;
}

static void the_end_of_the_job_ends_a_wait(void **state)
{
    (void)state;
    fl_thread thread;
    graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    assert_ok(filch_graph_submit(graph, NULL, &submitted));
    assert_ok(fl_thread_start(&thread, close_later, NULL));
    while (filch_job_status(submitted) == FILCH_NOT_READY) {
        assert_ok(filch_runtime_poll_wait(runtime, submitted, PATIENCE, NULL));
    }
    fl_thread_join(thread);
    /* A job that is over ends a wait at once, before work of others. */
    filch_graph *other = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    bool worked = true;
    atomic_store(&ran, 0);
    (void)fixture_add(other, counts, NULL, NULL, 0);
    assert_ok(filch_graph_submit(other, NULL, &job));
    assert_ok(filch_runtime_poll_wait(runtime, submitted, -1, &worked));
    assert_false(worked);
    assert_int_equal(ran, 0);
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_int_equal(ran, 1);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(other));
    assert_ok(filch_job_release(submitted));
    assert_ok(filch_graph_destroy(graph));
}

/* --- Several threads --- */

static filch_job *end; /* completes when the waiters are to leave */
static _Atomic int work_done, mistakes;

static int wait_and_work(void *unused)
{
    (void)unused;
    while (filch_job_status(end) == FILCH_NOT_READY) {
        bool worked;
        if (filch_runtime_poll_wait(runtime, end, -1, &worked) != FILCH_OK) {
            atomic_fetch_add(&mistakes, 1);
            return 1;
        }
        atomic_fetch_add(&work_done, worked);
    }
    return 0;
}

static void await_job(filch_job *job)
{
    const struct timespec nap = {0, 100000};
    uint64_t until = fl_time_now() + (uint64_t)(PATIENCE * 1e9);
    while (filch_job_status(job) == FILCH_NOT_READY && fl_time_now() < until) {
        (void)nanosleep(&nap, NULL);
    }
    assert_status(filch_job_status(job), FILCH_OK);
}

static filch_graph *chains_of_three(void)
{
    filch_graph *made = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task before = 0;
    for (int i = 0; i < TASKS; ++i) {
        filch_task task = fixture_add(made, counts, NULL, NULL, 0);
        if (i % 3 != 0) {
            assert_ok(filch_graph_edge(made, before, task));
        }
        before = task;
    }
    return made;
}

/* The main thread submits and sleeps; the waiters alone do the work. */
static void waiters_do_all_work(void **state)
{
    (void)state;
    fl_thread threads[WAITERS];
    filch_graph *ending = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    atomic_store(&ran, 0);
    graph = chains_of_three();
    assert_ok(filch_graph_submit(ending, NULL, &end));
    for (int i = 0; i < WAITERS; ++i) {
        assert_ok(fl_thread_start(&threads[i], wait_and_work, NULL));
    }
    for (int round = 1; round <= ROUNDS; ++round) {
        assert_ok(filch_graph_submit(graph, NULL, &submitted));
        await_job(submitted);
        assert_ok(filch_job_release(submitted));
        assert_int_equal(ran, round * TASKS);
    }
    assert_ok(filch_graph_close(ending));
    await_job(end);
    for (int i = 0; i < WAITERS; ++i) {
        fl_thread_join(threads[i]);
    }
    assert_int_equal(mistakes, 0);
    assert_true(atomic_load(&work_done) > 0);
    assert_ok(filch_job_release(end));
    assert_ok(filch_graph_destroy(ending));
    assert_ok(filch_graph_destroy(graph));
}

/* Submits the graph, and has a second thread wait for the job; await_waiter() joins it. */
static fl_thread waiter;

static int wait_for_job(void *unused)
{
    (void)unused;
    return filch_job_wait(submitted, PATIENCE) == FILCH_OK ? 0 : 1;
}

static void start_waiter(void)
{
    assert_ok(filch_graph_submit(graph, NULL, &submitted));
    assert_ok(fl_thread_start(&waiter, wait_for_job, NULL));
}

static void await_waiter(void)
{
    fl_thread_join(waiter);
    assert_ok(filch_job_status(submitted));
    assert_ok(filch_job_release(submitted));
    assert_ok(filch_graph_destroy(graph));
}

static filch_task add_at(filch_codelet *codelet, uint32_t device, const filch_task *before)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task;
    desc.codelet = codelet;
    desc.affinity = device + 1;
    assert_ok(filch_graph_add(graph, &desc, &task));
    if (before != NULL) {
        assert_ok(filch_graph_edge(graph, *before, task));
    }
    return task;
}

static _Atomic int begun, may_end;

/* The second one to begin ends when it may. */
static int hold_second(const filch_call *call)
{
    (void)call;
    return atomic_fetch_add(&begun, 1) == 0 || fixture_await(&may_end, 1) ? 0 : 1;
}

static int poll_once(void *unused)
{
    (void)unused;
    return filch_runtime_poll(runtime, 0, NULL) != FILCH_OK;
}

/* A device that is withdrawn ends its item, and hands what follows to a worker that the thread has
 * stepped before in the same round. */
static void what_an_offline_worker_hands_on_is_run(void **state)
{
    (void)state;
    fl_thread thread;
    const struct timespec nap = {0,
                                 20000000}; /* the waiter's naps get long: it is likely to listen */
    filch_codelet *holds = fixture_codelet(runtime, "hold", hold_second, 0);
    atomic_store(&begun, 0);
    atomic_store(&may_end, 0);
    graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t device = 0; device < 2; ++device) {
        filch_task task = add_at(holds, device, NULL);
        (void)add_at(counts, 0, &task);
    }
    assert_ok(filch_graph_submit(graph, NULL, &submitted));
    assert_ok(fl_thread_start(&thread, poll_once, NULL));
    assert_true(fixture_await(&begun, 2));
    assert_ok(fl_thread_start(&waiter, wait_for_job, NULL));
    await_sleepers(1);
    assert_ok(filch_device_withdraw(runtime, 1));
    (void)nanosleep(&nap, NULL);
    atomic_store(&may_end, 1);
    fl_thread_join(thread);
    await_waiter();
    assert_ok(filch_device_readmit(runtime, 1));
}

static int await_counts(const filch_call *call)
{
    (void)call;
    return fixture_await(&ran, TASKS) ? 0 : 1;
}

/* One thread is in a long task of worker 1; the short ones are worker 0's, and for the other. */
static void short_tasks_run_beside_a_long_one(void **state)
{
    (void)state;
    filch_codelet *lasts = fixture_codelet(runtime, "last", await_counts, 0);
    for (int round = 0; round < ROUNDS; ++round) {
        atomic_store(&ran, 0);
        graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_task task = add_at(counts, 0, NULL);
        (void)add_at(lasts, 1, &task);
        for (int i = 1; i < TASKS; ++i) {
            (void)add_at(counts, 0, &task);
        }
        start_waiter();
        assert_ok(filch_job_wait(submitted, PATIENCE));
        await_waiter();
    }
}

/* --- What is refused --- */

static void mistakes_are_refused(void **state)
{
    (void)state;
    filch_runtime *other = fixture_runtime("host:1", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *nothing = fixture_codelet(other, "nothing", fixture_nothing, 0);
    filch_graph *theirs = fixture_graph(other, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    (void)fixture_add(theirs, nothing, NULL, NULL, 0);
    assert_ok(filch_graph_submit(theirs, NULL, &job));
    assert_status(filch_runtime_poll_wait(other, NULL, 0, NULL), FILCH_WRONG_STATE);
    assert_string_equal(fixture_error(other).call, "filch_runtime_poll_wait");
    assert_status(filch_runtime_poll_wait(runtime, job, 0, NULL), FILCH_WRONG_RUNTIME);
    assert_status(filch_runtime_poll_wait(runtime, NULL, NAN, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_runtime_poll_wait(NULL, NULL, 0, NULL), FILCH_INVALID_HANDLE);
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(other));
    graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    (void)fixture_add(graph, waits, NULL, NULL, 0);
    assert_ok(fixture_run(graph));
    assert_int_equal(status_inside, FILCH_WRONG_STATE);
    assert_ok(filch_graph_destroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_ends_a_wait),
        cmocka_unit_test(a_submission_ends_a_wait),
        cmocka_unit_test(a_task_of_an_open_graph_ends_a_wait),
        cmocka_unit_test(the_end_of_a_pending_task_ends_a_wait),
        cmocka_unit_test(the_end_of_the_job_ends_a_wait),
        cmocka_unit_test(waiters_do_all_work),
        cmocka_unit_test(what_an_offline_worker_hands_on_is_run),
        cmocka_unit_test(short_tasks_run_beside_a_long_one),
        cmocka_unit_test(mistakes_are_refused),
    };
    const filch_policy policies[] = {FILCH_POLICY_STEAL, FILCH_POLICY_STATIC};
    int failed = 0;
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; ++i) {
        policy = policies[i];
        failed += cmocka_run_group_tests(tests, set_up, tear_down);
    }
    return failed;
}
