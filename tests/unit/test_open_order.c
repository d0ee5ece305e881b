/* SPDX-License-Identifier: Apache-2.0 */
/* Open graphs that run at once, with handles in common: none waits for one that waits for it. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SOON 10.0

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
    for (int round = 0; round < 20000; ++round) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(partitions_stand_behind_their_handle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(first_tasks_that_name_all_do_not_cross, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
