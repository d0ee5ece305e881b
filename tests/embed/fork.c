/* SPDX-License-Identifier: Apache-2.0 */
/* After fork, every call of the child on what the parent made is FILCH_FORKED; a runtime of the
 * child's own works; the parent goes on. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behave.h"

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static filch_pending taken;
static _Atomic int is_taken;

static int pend(const filch_call *call)
{
    filch_status status = filch_call_pend(call, &taken);
    is_taken = 1;
    return status == FILCH_OK ? FILCH_PENDING : 1;
}

typedef struct objects {
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_graph *closed, *open;
    filch_job *job;
    filch_data *data;
} objects;

static void check_refused(const objects *o)
{
    filch_runtime *runtime = o->runtime;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_device_info device = {.size = sizeof device};
    filch_usage usage = {.size = sizeof usage};
    filch_job_info info = {.size = sizeof info};
    filch_codelet *made_codelet = NULL;
    filch_graph *made_graph = NULL;
    filch_data *made_data = NULL;
    filch_job *made_job = NULL;
    uint32_t index;
    size_t count;
    double cell;
    codelet.name = "late";
    codelet.host = nothing;
    task.codelet = batch.codelet = o->codelet;
    data.ptr = &cell;
    data.element = sizeof cell;
    data.rows = 1;
    CHECK(filch_codelet_create(runtime, &codelet, &made_codelet) == FILCH_FORKED);
    CHECK(filch_graph_create(runtime, NULL, &made_graph) == FILCH_FORKED);
    CHECK(filch_data_create(runtime, &data, &made_data) == FILCH_FORKED);
    CHECK(filch_batch_submit(runtime, &batch, NULL, &made_job) == FILCH_FORKED);
    CHECK(filch_job_resume(o->job, NULL, NULL, &made_job) == FILCH_FORKED);
    CHECK(filch_graph_add(o->open, &task, NULL) == FILCH_FORKED);
    CHECK(filch_graph_edge(o->closed, 1, 2) == FILCH_FORKED);
    CHECK(filch_graph_seal(o->closed) == FILCH_FORKED);
    CHECK(filch_graph_submit(o->closed, NULL, &made_job) == FILCH_FORKED);
    CHECK(filch_graph_close(o->open) == FILCH_FORKED);
    CHECK(filch_graph_destroy(o->closed) == FILCH_FORKED);
    CHECK(filch_job_wait(o->job, -1) == FILCH_FORKED);
    CHECK(filch_job_status(o->job) == FILCH_FORKED);
    CHECK(filch_job_cancel(o->job) == FILCH_FORKED);
    CHECK(filch_job_stats(o->job, &info, NULL, 0) == FILCH_FORKED);
    CHECK(filch_job_items(o->job, NULL, 0, &count) == FILCH_FORKED);
    CHECK(filch_job_release(o->job) == FILCH_FORKED);
    CHECK(filch_pending_status(taken) == FILCH_FORKED);
    CHECK(filch_pending_end(taken, 0, NULL) == FILCH_FORKED);
    CHECK(filch_data_destroy(o->data) == FILCH_FORKED);
    CHECK(filch_device_at(runtime, 0, &device) == FILCH_FORKED);
    CHECK(filch_device_next(runtime, &index) == FILCH_FORKED);
    CHECK(filch_runtime_usage(runtime, &usage) == FILCH_FORKED);
    CHECK(filch_runtime_drain(runtime, -1) == FILCH_FORKED);
    CHECK(filch_trace_start(runtime) == FILCH_FORKED);
    CHECK(filch_runtime_destroy(runtime) == FILCH_FORKED);
    CHECK(filch_runtime_abort(runtime) == FILCH_FORKED);
}

static void make(objects *o)
{
    static double cells[4];
    filch_graph_desc graph = FILCH_GRAPH_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    o->runtime = behave_create("host:2", FILCH_DRIVE_THREADS);
    o->codelet = behave_codelet(o->runtime, nothing);
    behave_run(o->runtime, o->codelet, 1000); /* in use, not merely made */
    CHECK(filch_graph_create(o->runtime, &graph, &o->closed) == FILCH_OK);
    graph.kind = FILCH_GRAPH_OPEN;
    CHECK(filch_graph_create(o->runtime, &graph, &o->open) == FILCH_OK);
    CHECK(filch_graph_submit(o->open, NULL, &o->job) == FILCH_OK);
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    codelet.name = "pend";
    codelet.host = pend;
    codelet.flags = FILCH_CODELET_MAY_PEND;
    CHECK(filch_codelet_create(o->runtime, &codelet, &task.codelet) == FILCH_OK);
    CHECK(filch_graph_add(o->open, &task, NULL) == FILCH_OK);
    while (is_taken == 0) {
        sched_yield();
    }
    data.ptr = cells;
    data.element = sizeof cells[0];
    data.rows = 4;
    CHECK(filch_data_create(o->runtime, &data, &o->data) == FILCH_OK);
}

int main(void)
{
    objects o;
    int state = 0;
    make(&o);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(30); /* a child that hangs fails */
        check_refused(&o);
        filch_runtime *own = behave_create("host:2", FILCH_DRIVE_THREADS);
        behave_run(own, behave_codelet(own, nothing), 1000);
        CHECK(filch_runtime_destroy(own) == FILCH_OK);
        _exit(0);
    }
    CHECK(waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = o.codelet;
    CHECK(filch_graph_add(o.open, &task, NULL) == FILCH_OK);
    CHECK(filch_graph_close(o.open) == FILCH_OK);
    CHECK(filch_job_status(o.job) == FILCH_NOT_READY);
    CHECK(filch_pending_end(taken, 0, NULL) == FILCH_OK);
    CHECK(filch_job_wait(o.job, 300) == FILCH_OK);
    behave_run(o.runtime, o.codelet, 1000);
    CHECK(filch_runtime_destroy(o.runtime) == FILCH_OK);
    printf("forked: refused in the child, well in the parent\n");
    return 0;
}
