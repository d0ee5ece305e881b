/* SPDX-License-Identifier: Apache-2.0 */
/* Waits inside tasks under the static policy: what they are for may be sent to a worker that waits
 * further down the stack, where one thread drives all. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 6, LEAF = DEPTH };

static filch_runtime *runtime;
static filch_codelet *recurse;
static int most;
static int64_t cells[DEPTH][2];
static filch_data *data[DEPTH];

/* Submits a chain of two tasks, the second of which is the other device's and does the same, and
 * waits for it. */
static int descend(const filch_call *call)
{
    int depth;
    memcpy(&depth, call->args, sizeof depth);
    if (depth >= most) {
        return 0;
    }
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 2; ++i) {
        filch_access access = fixture_access(data[depth], 0, FILCH_READWRITE);
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        int next = i == 0 ? LEAF : depth + 1;
        desc.codelet = recurse;
        desc.args = &next;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.affinity = (uint32_t)(i == 0 ? call->device : 1 - call->device) + 1;
        if (filch_graph_add(graph, &desc, NULL) != FILCH_OK) {
            return 2;
        }
    }
    filch_job *job = NULL;
    if (filch_graph_submit(graph, NULL, &job) != FILCH_OK) {
        return 3;
    }
    filch_status status = filch_job_wait(job, PATIENCE);
    if (status != FILCH_OK) {
        fprintf(stderr, "depth %d: %s\n", depth, filch_status_name(status));
        _Exit(1); /* what cannot end cannot be taken down */
    }
    (void)filch_job_release(job);
    (void)filch_graph_destroy(graph);
    return 0;
}

static void run(filch_drive drive)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    int depth = 0;
    config.devices = "host:2";
    config.drive = drive;
    config.policy = FILCH_POLICY_STATIC;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    recurse = fixture_codelet(runtime, "descend", descend, sizeof(int));
    for (int i = 0; i < DEPTH; ++i) {
        data[i] = fixture_vector(runtime, cells[i], sizeof(int64_t), 2, 2);
    }
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    (void)fixture_add(graph, recurse, &depth, NULL, 0);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

static void what_is_sent_down_the_stack_is_run(void **state)
{
    (void)state;
    for (most = 1; most < DEPTH; ++most) {
        run(FILCH_DRIVE_THREADS);
        run(FILCH_DRIVE_POLL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_sent_down_the_stack_is_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
