/* SPDX-License-Identifier: Apache-2.0 */
/* Theft from workers that sit at a tile which takes far longer than the tiles measured before: what
 * waits behind them is predicted to be over in no time, so the hold-off refuses it until it is seen
 * that they do not move. Two such victims at once. */
#define _GNU_SOURCE
#include "fixture.h"

#include <time.h>

static _Atomic int held, passed, gave_up;
static _Atomic uint32_t busy_devices; /* bits */

static int brief(const filch_call *call)
{
    for (volatile int i = 0; i < 300; ++i) {
    }
    (void)call;
    return 0;
}

/* Sits there until two others have passed elsewhere, or gives up as fixture_await does. */
static int hold(const filch_call *call)
{
    atomic_fetch_or(&busy_devices, UINT32_C(1) << call->device);
    atomic_fetch_add(&held, 1);
    if (!fixture_await(&passed, 2)) {
        atomic_fetch_add(&gave_up, 1);
    }
    return 0;
}

static int pass(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&passed, 1);
    return 0;
}

static filch_job *submit(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

static void finish(filch_job *job)
{
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
}

/* Tasks that are measured as brief on every device. */
static void warm_up(filch_runtime *runtime, filch_codelet *codelet)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 3000; ++i) {
        fixture_add(graph, codelet, NULL, NULL, 0);
    }
    for (int i = 0; i < 5; ++i) {
        assert_ok(fixture_run(graph));
    }
    assert_ok(filch_graph_destroy(graph));
}

static filch_job *hold_two(filch_runtime *runtime)
{
    filch_codelet *codelet = fixture_codelet(runtime, "hold", hold, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    atomic_store(&held, 0);
    atomic_store(&passed, 0);
    atomic_store(&gave_up, 0);
    atomic_store(&busy_devices, 0);
    fixture_add(graph, codelet, NULL, NULL, 0);
    fixture_add(graph, codelet, NULL, NULL, 0);
    filch_job *job = submit(graph);
    assert_true(fixture_await(&held, 2));
    return job;
}

static void add_at(filch_graph *graph, filch_codelet *codelet, uint32_t device)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.affinity = device + 1;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static void test_tasks_behind_two_busy_workers(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:3", FILCH_DRIVE_THREADS, NULL);
    warm_up(runtime, fixture_codelet(runtime, "brief", brief, 0));
    filch_job *holders = hold_two(runtime);
    filch_codelet *codelet = fixture_codelet(runtime, "pass", pass, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t device = 0; device < 3; ++device) {
        if ((atomic_load(&busy_devices) >> device & 1) != 0) {
            add_at(graph, codelet, device);
        }
    }
    filch_job *job = submit(graph);
    finish(holders);
    finish(job);
    assert_int_equal(atomic_load(&gave_up), 0);
    assert_ok(filch_runtime_destroy(runtime));
}

static void test_chunks_behind_two_busy_workers(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:3", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *codelet = fixture_codelet(runtime, "pass", pass, 0);
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = codelet;
    desc.n = 30000;
    for (int i = 0; i < 5; ++i) { /* measure it as brief */
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
        finish(job);
    }
    filch_job *holders = hold_two(runtime);
    desc.n = 3; /* one for each device */
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    finish(holders);
    finish(job);
    assert_int_equal(atomic_load(&gave_up), 0);
    assert_ok(filch_runtime_destroy(runtime));
}

/* Runs until two such run at once. */
static int meet(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&passed, 1);
    return fixture_await(&passed, 2) ? 0 : 1;
}

static int lead(const filch_call *call)
{
    (void)call;
    return fixture_await(&held, 1) ? 0 : 1;
}

/* The other worker fell asleep before the graph was submitted, and no task comes from outside that
 * would wake it. */
static void test_successors_in_an_open_graph(void **state)
{
    (void)state;
    double cell = 0;
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    warm_up(runtime, fixture_codelet(runtime, "brief", brief, 0));
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    filch_data *data = fixture_vector(runtime, &cell, sizeof cell, 1, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_access write = fixture_access(data, 0, FILCH_WRITE);
    filch_access read = fixture_access(data, 0, FILCH_READ);
    filch_codelet *meets = fixture_codelet(runtime, "meet", meet, 0);
    filch_job *job = submit(graph);
    atomic_store(&held, 0);
    atomic_store(&passed, 0);
    fixture_add(graph, fixture_codelet(runtime, "lead", lead, 0), NULL, &write, 1);
    fixture_add(graph, meets, NULL, &read, 1);
    fixture_add(graph, meets, NULL, &read, 1);
    atomic_store(&held, 1);
    assert_ok(filch_graph_close(graph));
    finish(job);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_behind_two_busy_workers),
        cmocka_unit_test(test_chunks_behind_two_busy_workers),
        cmocka_unit_test(test_successors_in_an_open_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
