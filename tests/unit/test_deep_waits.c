/* SPDX-License-Identifier: Apache-2.0 */
/* Many tasks that wait for the same job: whatever it stands behind, they do not keep each other
 * from it. */
#define _GNU_SOURCE
#include "fixture.h"
#include "measure/policies.h"
#include "patience.h"
#include "sched/worker/parts.h"

#include <time.h>

static _Atomic(filch_job *) awaited;
static _Atomic int done;

static int wait_for_it(const filch_call *call)
{
    (void)call;
    filch_status status = filch_job_wait(awaited, PATIENCE);
    ++done;
    return status == FILCH_OK ? 0 : 1;
}

static filch_runtime *begin(const char *devices, filch_drive drive, bench_policy policy)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    static bench_policy_room room; /* outlives the runtime */
    filch_runtime *runtime = NULL;
    config.devices = devices;
    config.drive = drive;
    bench_policy_choose(policy, &room, &config);
    done = 0;
    awaited = NULL;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    return runtime;
}

static int slow_on_one(const filch_call *call)
{
    struct timespec nap = {.tv_nsec = call->device == 0 ? 400000 : 100000};
    nanosleep(&nap, NULL);
    return 0;
}

/* From here on tasks that are ready are in the shared queue, until many were found to be alike. */
static void learn_that_devices_are_unlike(filch_runtime *runtime)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_codelet *slow = fixture_codelet(runtime, "slow", slow_on_one, 0);
    for (int i = 0; i < 60; ++i) {
        fixture_add(graph, slow, NULL, NULL, 0);
    }
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

/* One task, and so many that follow it and wait. */
static filch_graph *crowd(filch_runtime *runtime, filch_codelet *first, const void *args,
                          const filch_access *access, int count)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_codelet *waits = fixture_codelet(runtime, "wait", wait_for_it, 0);
    filch_task before = fixture_add(graph, first, args, access, access != NULL);
    for (int i = 0; i < count; ++i) {
        assert_ok(filch_graph_edge(graph, before, fixture_add(graph, waits, NULL, NULL, 0)));
    }
    return graph;
}

static filch_job *submit(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

static void end(filch_runtime *runtime, filch_job *job, int count)
{
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(awaited));
    assert_int_equal(done, count);
    assert_ok(filch_runtime_drain(runtime, PATIENCE)); /* the job before may still be ending */
    assert_ok(filch_runtime_destroy(runtime));
}

typedef struct pair {
    filch_graph *before, *after; /* share a handle */
} pair;

static int submit_both(const filch_call *call)
{
    const pair *both = call->args;
    filch_job *before, *after;
    if (filch_graph_submit(both->before, NULL, &before) != FILCH_OK ||
        filch_job_release(before) != FILCH_OK ||
        filch_graph_submit(both->after, NULL, &after) != FILCH_OK) {
        return 1;
    }
    awaited = after;
    return 0;
}

/* What the waits are for stands behind a job that nobody has begun. */
static void waits_go_on_to_what_comes_before(const char *devices, filch_drive drive,
                                             bench_policy policy)
{
    enum { CROWD = 1000 };
    double cell = 0;
    filch_runtime *runtime = begin(devices, drive, policy);
    filch_data *data = fixture_vector(runtime, &cell, sizeof cell, 1, 1);
    const filch_access access = fixture_access(data, 0, FILCH_READWRITE);
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    if (drive == FILCH_DRIVE_THREADS) {
        learn_that_devices_are_unlike(runtime);
    }
    pair both = {fixture_graph(runtime, FILCH_GRAPH_CLOSED),
                 fixture_graph(runtime, FILCH_GRAPH_CLOSED)};
    fixture_add(both.before, nothing, NULL, &access, 1);
    fixture_add(both.after, nothing, NULL, &access, 1);
    filch_codelet *both_of = fixture_codelet(runtime, "both", submit_both, sizeof both);
    filch_job *job = submit(crowd(runtime, both_of, &both, NULL, CROWD));
    end(runtime, job, CROWD);
}

static void waits_go_on_to_what_comes_before_in_every_drive(void **state)
{
    static const bench_policy policies[] = {BENCH_POLICY_STEAL, BENCH_POLICY_CENTRAL,
                                            BENCH_POLICY_ROUND_ROBIN, BENCH_POLICY_EARLIEST};
    (void)state;
    for (int round = 0; round < 24; ++round) {
        bench_policy policy = policies[round % 4];
        waits_go_on_to_what_comes_before("host:1", FILCH_DRIVE_THREADS, policy);
        waits_go_on_to_what_comes_before("host:3", FILCH_DRIVE_THREADS, policy);
        waits_go_on_to_what_comes_before("host:1", FILCH_DRIVE_POLL, policy);
        waits_go_on_to_what_comes_before("host:3", FILCH_DRIVE_POLL, policy);
    }
}

/* --- Depth --- */

static _Thread_local int depth;
static _Atomic int deepest;

/* Runs a graph of two tasks, one behind the other, and waits for it. */
static int nest(const filch_call *call)
{
    filch_codelet *nothing = *(filch_codelet *const *)call->args;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_task one, two;
    desc.codelet = nothing;
    ++depth;
    for (int most = deepest;
         most < depth && !atomic_compare_exchange_weak(&deepest, &most, depth);) {
    }
    bool failed = filch_graph_create(call->runtime, NULL, &graph) != FILCH_OK ||
                  filch_graph_add(graph, &desc, &one) != FILCH_OK ||
                  filch_graph_add(graph, &desc, &two) != FILCH_OK ||
                  filch_graph_edge(graph, one, two) != FILCH_OK ||
                  filch_graph_run(graph, NULL, NULL) != FILCH_OK ||
                  filch_graph_destroy(graph) != FILCH_OK;
    --depth;
    ++done;
    return failed;
}

/* All tasks of the crowd become ready at once, and each waits for a graph of its own. */
static void crowd_stays_shallow(const char *devices, filch_drive drive, bench_policy policy,
                                filch_host_fn innermost, int count)
{
    filch_runtime *runtime = begin(devices, drive, policy);
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", innermost, 0);
    filch_codelet *nests = fixture_codelet(runtime, "nest", nest, sizeof nothing);
    learn_that_devices_are_unlike(runtime);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task first = fixture_add(graph, nothing, NULL, NULL, 0);
    for (int i = 0; i < count; ++i) {
        filch_task task = fixture_add(graph, nests, &nothing, NULL, 0);
        assert_ok(filch_graph_edge(graph, first, task));
    }
    deepest = 0;
    assert_ok(fixture_run(graph));
    assert_int_equal(done, count);
    assert_in_range(deepest, 1, FL_DEEP_WAIT + 1);
    assert_ok(filch_runtime_destroy(runtime));
}

static void waits_behind_one_list_stay_shallow(void **state)
{
    static const char *const devices[] = {"host:1", "host:2", "host:4"};
    (void)state;
    for (int i = 0; i < 3; ++i) {
        for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
            crowd_stays_shallow(devices[i], (filch_drive)drive, BENCH_POLICY_CENTRAL,
                                fixture_nothing, 1000);
            crowd_stays_shallow(devices[i], (filch_drive)drive, BENCH_POLICY_GUIDED,
                                fixture_nothing, 1000);
        }
    }
}

static void waits_behind_the_shared_queue_stay_shallow(void **state)
{
    (void)state;
    crowd_stays_shallow("host:2", FILCH_DRIVE_THREADS, BENCH_POLICY_STEAL, slow_on_one, 1000);
    crowd_stays_shallow("host:4", FILCH_DRIVE_THREADS, BENCH_POLICY_STEAL, slow_on_one, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_go_on_to_what_comes_before_in_every_drive),
        cmocka_unit_test(waits_behind_one_list_stay_shallow),
        cmocka_unit_test(waits_behind_the_shared_queue_stay_shallow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
