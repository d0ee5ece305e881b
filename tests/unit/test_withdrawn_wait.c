/* SPDX-License-Identifier: Apache-2.0 */
/* A task waits on a device withdrawn meanwhile, for a job that stands behind another. A policy left
 * the tasks to anyone, and nobody else is there: the wait runs the other job's ready task. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

static filch_job *goal;
static _Atomic int may_end, may_wait, waits;

static uint32_t anyone(const filch_policy_view *view, void *user)
{
    (void)view;
    (void)user;
    return FILCH_POLICY_ANYONE;
}

static int held(const filch_call *call)
{
    (void)call;
    return fixture_await(&may_end, 1) ? 0 : 1;
}

static int waiting(const filch_call *call)
{
    (void)call;
    atomic_store(&waits, 1);
    return fixture_await(&may_wait, 1) && filch_job_wait(goal, PATIENCE) == FILCH_OK ? 0 : 1;
}

static filch_job *submit(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

static void the_wait_ends(void **state)
{
    static uint64_t cell;
    filch_runtime *runtime = NULL;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    (void)state;
    policy.name = "anyone";
    policy.place = anyone;
    config.devices = "host:1";
    config.custom_policy = &policy;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    const filch_access access =
        fixture_access(fixture_vector(runtime, &cell, sizeof cell, 1, 1), 0, FILCH_READWRITE);
    filch_codelet *empty = fixture_codelet(runtime, "empty", fixture_nothing, 0);
    filch_graph *before = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *behind = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *apart = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    (void)fixture_add(before, fixture_codelet(runtime, "held", held, 0), NULL, &access, 1);
    (void)fixture_add(before, empty, NULL, &access, 1);
    (void)fixture_add(behind, empty, NULL, &access, 1);
    (void)fixture_add(apart, fixture_codelet(runtime, "waiting", waiting, 0), NULL, NULL, 0);
    filch_job *first = submit(before);
    goal = submit(behind);
    filch_job *waiter = submit(apart);
    atomic_store(&may_end, 1); /* the second task of the first job is put behind the waiter */
    assert_true(fixture_await(&waits, 1));
    assert_ok(filch_device_withdraw(runtime, 0));
    atomic_store(&may_wait, 1);
    assert_int_equal(filch_job_wait(waiter, PATIENCE), FILCH_OK);
    assert_ok(filch_job_release(waiter));
    assert_ok(filch_job_release(goal));
    assert_ok(filch_job_release(first));
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_wait_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
