/* SPDX-License-Identifier: Apache-2.0 */
/* Many tasks that wait for the same job: however long it takes, and whatever it stands behind, they
 * neither pile up on a stack nor keep each other from it. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <time.h>

/* As the runtime has it, and the wait that is begun there. */
enum { DEEP = 16 + 1, MOST = 256 + 1 };

static _Atomic(filch_job *) awaited;
static _Atomic int done, deepest, ends, begun;
static _Thread_local int depth;

static int wait_for_it(const filch_call *call)
{
    (void)call;
    int most = deepest;
    ++depth;
    while (depth > most && !atomic_compare_exchange_weak(&deepest, &most, depth)) {
    }
    filch_status status = filch_job_wait(awaited, 20);
    --depth;
    ++done;
    return status == FILCH_OK ? 0 : 1;
}

static int until_told(const filch_call *call)
{
    (void)call;
    begun = 1;
    return fixture_await(&ends, 1) ? 0 : 1;
}

/* Until there is no deeper wait for a while. */
static void let_them_pile_up(void)
{
    struct timespec nap = {.tv_nsec = 20000000};
    for (int still = 0, seen = -1; still < 5;) {
        nanosleep(&nap, NULL);
        still = seen == deepest && seen > 0 ? still + 1 : 0;
        seen = deepest;
    }
}

static filch_runtime *begin(const char *devices, filch_drive drive, filch_policy policy)
{
    filch_config config = FILCH_CONFIG_INIT;
    filch_runtime *runtime = NULL;
    config.devices = devices;
    config.drive = drive;
    config.policy = policy;
    depth = 0;
    done = deepest = ends = begun = 0;
    awaited = NULL;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    return runtime;
}

static int slow_on_one(const filch_call *call)
{
    struct timespec nap = {.tv_nsec = call->device == 0 ? 300000 : 1000};
    nanosleep(&nap, NULL);
    return 0;
}

/* From here on tasks that are ready are on the board, until many were found to be alike. */
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
    assert_ok(filch_job_wait(job, 30));
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(awaited));
    assert_int_equal(done, count);
    assert_ok(filch_runtime_destroy(runtime));
}

/* One of two workers is at it, so there is no reason to take anything else. */
static void waits_for_what_runs_stay_shallow(void **state)
{
    enum { CROWD = 2000 };
    (void)state;
    filch_runtime *runtime = begin("host:2", FILCH_DRIVE_THREADS, FILCH_POLICY_STEAL);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, fixture_codelet(runtime, "long", until_told, 0), NULL, NULL, 0);
    awaited = submit(graph);
    while (begun == 0) {
    }
    filch_job *job = submit(
        crowd(runtime, fixture_codelet(runtime, "first", fixture_nothing, 0), NULL, NULL, CROWD));
    let_them_pile_up();
    ends = 1;
    int most = deepest;
    end(runtime, job, CROWD);
    assert_in_range(most, 1, DEEP);
}

static void *let_go(void *graph)
{
    let_them_pile_up();
    return filch_graph_close(graph) == FILCH_OK ? NULL : graph;
}

/* Nobody knows what the host still adds to the open graph, so some more are tried; not all. */
static void waits_for_the_host_end_somewhere(const char *devices, filch_drive drive,
                                             filch_policy policy)
{
    enum { CROWD = 3000 };
    pthread_t other;
    void *failed;
    filch_runtime *runtime = begin(devices, drive, policy);
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    awaited = submit(open);
    filch_job *job = submit(crowd(runtime, nothing, NULL, NULL, CROWD));
    assert_int_equal(pthread_create(&other, NULL, let_go, open), 0);
    filch_status status = filch_job_wait(job, 30);
    assert_int_equal(pthread_join(other, &failed), 0);
    assert_null(failed);
    assert_ok(status);
    int most = deepest;
    end(runtime, job, CROWD);
    assert_in_range(most, 1, MOST);
}

static void waits_for_the_host_end_somewhere_in_every_drive(void **state)
{
    (void)state;
    for (int p = 0; p < 2; ++p) {
        filch_policy policy = p == 0 ? FILCH_POLICY_STEAL : FILCH_POLICY_CENTRAL;
        waits_for_the_host_end_somewhere("host:1", FILCH_DRIVE_THREADS, policy);
        waits_for_the_host_end_somewhere("host:3", FILCH_DRIVE_THREADS, policy);
        waits_for_the_host_end_somewhere("host:1", FILCH_DRIVE_POLL, policy);
        waits_for_the_host_end_somewhere("host:3", FILCH_DRIVE_POLL, policy);
    }
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
                                             filch_policy policy)
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
    static const filch_policy policies[] = {FILCH_POLICY_STEAL, FILCH_POLICY_CENTRAL,
                                            FILCH_POLICY_ROUND_ROBIN, FILCH_POLICY_EARLIEST};
    (void)state;
    for (int round = 0; round < 24; ++round) {
        filch_policy policy = policies[round % 4];
        waits_go_on_to_what_comes_before("host:1", FILCH_DRIVE_THREADS, policy);
        waits_go_on_to_what_comes_before("host:3", FILCH_DRIVE_THREADS, policy);
        waits_go_on_to_what_comes_before("host:1", FILCH_DRIVE_POLL, policy);
        waits_go_on_to_what_comes_before("host:3", FILCH_DRIVE_POLL, policy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_what_runs_stay_shallow),
        cmocka_unit_test(waits_for_the_host_end_somewhere_in_every_drive),
        cmocka_unit_test(waits_go_on_to_what_comes_before_in_every_drive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
