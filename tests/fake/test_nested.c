/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of the host's that wait for others, where one thread drives all workers: what a GPU has no
 * room for is run although the worker that it goes to waits further down the stack. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#define N (1024 * 1024) /* elements of a vector, of 8 MiB in all */
#include "jobs.h"

#define MIB ((uint64_t)1 << 20)
#define FAKE "{\"fill\":false,\"devices\":[{\"memory\":603979776}]}"

static uint64_t x_large[N], y_large[N], large[N];
static filch_data *first, *second, *third;
static filch_graph *inner[2];
static filch_status results[2];

static void add_to(filch_graph *to, filch_codelet *codelet, uint32_t affinity, filch_data *data)
{
    const filch_access access = {.data = data, .mode = FILCH_READ};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.affinity = affinity;
    desc.accesses = &access;
    desc.access_count = data != NULL;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

static _Atomic uint32_t ran_on[2];

static int wait_for(const filch_graph *made, filch_status *result)
{
    filch_job *job = NULL;
    if (filch_graph_submit((filch_graph *)(uintptr_t)made, NULL, &job) != FILCH_OK)
        return 1;
    *result = filch_job_wait(job, SOON);
    return *result == FILCH_OK && filch_job_release(job) == FILCH_OK ? 0 : 1;
}

static int waits_first(const filch_call *call)
{
    atomic_store(&ran_on[0], call->device);
    return wait_for(inner[0], &results[0]);
}

static int waits_second(const filch_call *call)
{
    atomic_store(&ran_on[1], call->device);
    return wait_for(inner[1], &results[1]);
}

/* A task of the host's, which waits for one on the other device of the host's, which waits for a
 * task that a GPU has and has no room for. */
static void what_has_no_room_is_run_by_who_waits(void **state)
{
    (void)state;
    (void)setenv("FILCH_ARENA", "plain", 1);
    start_driven("cuda:0,host:2", "1", FAKE, FILCH_DRIVE_POLL);
    (void)unsetenv("FILCH_ARENA");
    first = handle(x_large);
    second = handle(large);
    filch_codelet *bumps = on_gpu("bump"), *sums = codelet_of(runtime, IMAGE, "copy", copy, 0);
    (void)fakecuda_occupy(0, 576 * MIB - 10 * MIB);
    for (int i = 0; i < 2; i++)
        inner[i] = graph();
    add(inner[1], bumps, FILCH_READWRITE, first, NULL, NULL);
    add(inner[1], sums, FILCH_WRITE, first, second, NULL);
    /* Which the GPU makes ready, so that it goes there. */
    third = handle(y_large);
    add(inner[0], bumps, FILCH_READWRITE, third, NULL, NULL);
    add_to(inner[0], on_host("second", waits_second), 3, third);
    filch_graph *outer = graph();
    add_to(outer, on_host("first", waits_first), 2, NULL);
    finish(submit(outer), FILCH_OK);
    assert_int_not_equal(atomic_load(&ran_on[0]), atomic_load(&ran_on[1]));
    assert_int_equal(results[0], FILCH_OK);
    assert_int_equal(results[1], FILCH_OK);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_has_no_room_is_run_by_who_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
