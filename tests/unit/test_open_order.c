/* SPDX-License-Identifier: Apache-2.0 */
/* Open graphs that run at once, with handles in common: none waits for one that waits for it. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SOON PATIENCE

enum { ROUNDS = 5000 };

static filch_runtime *runtime;
static filch_codelet *nothing;
static int64_t cells[4][8];
static filch_data *data[4], *halves;

static int set_up(void **state)
{
    (void)state;
    runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    for (int i = 0; i < 4; ++i) {
        data[i] = fixture_vector(runtime, cells[i], sizeof(int64_t), 8, 8);
    }
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.tile_rows = 4;
    assert_ok(filch_data_partition(data[0], &desc, &halves));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

/* A wait that does not end leaves what cannot be taken down. */
static void finish(filch_graph *graph, filch_job *job)
{
    filch_status status = filch_job_wait(job, SOON);
    if (status != FILCH_OK) {
        fprintf(stderr, "a job never ended: %s\n", filch_status_name(status));
        _Exit(1);
    }
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* Their first tasks, of two threads, read all that they use. */
static pthread_barrier_t barrier;

static void *run_one(void *arg)
{
    const int *order = arg;
    for (int round = 0; round < ROUNDS; ++round) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        filch_job *job = NULL;
        filch_access accesses[4];
        for (int i = 0; i < 4; ++i) {
            accesses[i] = fixture_access(data[order[i]], 0, FILCH_READ);
        }
        assert_ok(filch_graph_submit(graph, NULL, &job));
        (void)pthread_barrier_wait(&barrier);
        (void)fixture_add(graph, nothing, NULL, accesses, 4);
        assert_ok(filch_graph_close(graph));
        finish(graph, job);
    }
    return NULL;
}

static void run_both(int *first, int *second)
{
    pthread_t threads[2];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&threads[0], NULL, run_one, first), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, run_one, second), 0);
    (void)pthread_join(threads[0], NULL);
    (void)pthread_join(threads[1], NULL);
    (void)pthread_barrier_destroy(&barrier);
}

static void first_tasks_that_name_all_do_not_cross(void **state)
{
    static int up[] = {0, 1, 2, 3}, down[] = {3, 2, 1, 0};
    (void)state;
    run_both(up, up);
    run_both(up, down);
}

/* Who is behind another at a handle is behind it at its partitions, too. */
static void partitions_stand_behind_their_handle(void **state)
{
    (void)state;
    filch_graph *graphs[2];
    filch_job *jobs[2] = {NULL, NULL};
    filch_access all = fixture_access(data[0], 0, FILCH_READWRITE);
    filch_access half = fixture_access(halves, 0, FILCH_READWRITE);
    for (int g = 0; g < 2; ++g) {
        graphs[g] = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        assert_ok(filch_graph_submit(graphs[g], NULL, &jobs[g]));
        (void)fixture_add(graphs[g], nothing, NULL, &all, 1);
    }
    for (int g = 2; g-- > 0;) { /* the one behind first */
        assert_ok(filch_graph_partition(graphs[g], data[0], halves));
        (void)fixture_add(graphs[g], nothing, NULL, &half, 1);
        assert_ok(filch_graph_close(graphs[g]));
    }
    finish(graphs[0], jobs[0]);
    finish(graphs[1], jobs[1]);
}

/* The first waits for the second, which may not wait for the first. */
static void cross(filch_graph **graphs, filch_job **jobs)
{
    filch_access accesses[] = {fixture_access(data[0], 0, FILCH_READWRITE),
                               fixture_access(data[1], 0, FILCH_READWRITE)};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = nothing;
    desc.accesses = &accesses[0];
    desc.access_count = 1;
    for (int g = 0; g < 2; ++g) {
        graphs[g] = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        assert_ok(filch_graph_submit(graphs[g], NULL, &jobs[g]));
        (void)fixture_add(graphs[g], nothing, NULL, &accesses[g], 1);
    }
    (void)fixture_add(graphs[0], nothing, NULL, &accesses[1], 1);
    assert_status(filch_graph_add(graphs[1], &desc, NULL), FILCH_DEADLOCK);
}

static void one_that_waits_for_another_is_aborted(void **state)
{
    filch_graph *graphs[2];
    filch_job *jobs[2];
    (void)set_up(state);
    cross(graphs, jobs);
    assert_ok(filch_graph_close(graphs[0]));
    assert_ok(filch_runtime_abort(runtime));
}

/* The one that waits ends; the other goes on. */
static void one_that_waits_for_another_is_cancelled(void **state)
{
    filch_graph *graphs[2];
    filch_job *jobs[2];
    filch_job_info info = {.size = sizeof info};
    (void)state;
    cross(graphs, jobs);
    assert_ok(filch_graph_close(graphs[0]));
    assert_ok(filch_job_cancel(jobs[0]));
    assert_status(filch_job_wait(jobs[0], SOON), FILCH_CANCELLED);
    assert_ok(filch_job_stats(jobs[0], &info, NULL, 0));
    assert_true(info.skipped >= 1);
    assert_int_equal(filch_job_status(jobs[1]), FILCH_NOT_READY);
    filch_access access = fixture_access(data[0], 0, FILCH_READWRITE);
    (void)fixture_add(graphs[1], nothing, NULL, &access, 1);
    assert_ok(filch_graph_close(graphs[1]));
    assert_status(filch_job_wait(jobs[1], SOON), FILCH_OK);
    for (int g = 0; g < 2; ++g) {
        assert_ok(filch_job_release(jobs[g]));
        assert_ok(filch_graph_destroy(graphs[g]));
    }
}

/* A job in a queue that is cancelled waits for nobody, and nobody for it; what it would have
 * changed stays as it is. */
static void a_cancelled_job_leaves_its_queues(void **state)
{
    enum { JOBS = 3 };
    filch_graph *graphs[JOBS];
    filch_job *jobs[JOBS];
    filch_hold *hold = NULL;
    (void)state;
    assert_ok(filch_data_acquire_tiles(data[1], NULL, FILCH_READWRITE, SOON, &hold));
    for (int g = 0; g < JOBS; ++g) {
        filch_access accesses[] = {fixture_access(data[1], 0, g == 2 ? FILCH_READ : FILCH_WRITE),
                                   fixture_access(data[2], 0, g == 2 ? FILCH_READ : FILCH_WRITE)};
        graphs[g] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        (void)fixture_add(graphs[g], nothing, NULL, accesses, 2);
        assert_ok(filch_graph_submit(graphs[g], NULL, &jobs[g]));
    }
    assert_ok(filch_job_cancel(jobs[0]));
    assert_status(filch_job_wait(jobs[0], SOON), FILCH_CANCELLED);
    assert_ok(filch_graph_submit(graphs[0], NULL, NULL)); /* behind the others, anew */
    assert_ok(filch_job_cancel(jobs[2]));
    assert_status(filch_job_wait(jobs[2], SOON), FILCH_CANCELLED);
    assert_status(filch_job_wait(jobs[1], 0.02), FILCH_TIMEOUT);
    assert_ok(filch_hold_release(hold));
    assert_status(filch_job_wait(jobs[1], SOON), FILCH_OK);
    assert_ok(filch_runtime_drain(runtime, SOON));
    for (int g = 0; g < JOBS; ++g) {
        assert_ok(filch_job_release(jobs[g]));
        assert_ok(filch_graph_destroy(graphs[g]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(partitions_stand_behind_their_handle, set_up, tear_down),
        cmocka_unit_test(one_that_waits_for_another_is_aborted),
        cmocka_unit_test_setup_teardown(one_that_waits_for_another_is_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_job_leaves_its_queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(first_tasks_that_name_all_do_not_cross, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
