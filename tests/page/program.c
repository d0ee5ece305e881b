/* SPDX-License-Identifier: Apache-2.0 */
/* program DEVICES TASKS: a program whose report is looked at: two jobs of a graph of as many tasks,
 * a batch, and a job that fails. It has no code for the report: FILCH_REPORT asks for it. */
#include <stdio.h>
#include <stdlib.h>

#include "filch/filch.h"

#define COLUMNS 64
#define SIDE 16 /* elements of a tile */

typedef struct program {
    filch_runtime *runtime;
    filch_codelet *codelets[3];
    filch_codelet *batch, *failing;
    filch_data *data;
} program;

static int work(const filch_call *call)
{
    volatile double *x = call->views[0].ptr;
    for (int i = 0; i < 50; ++i) {
        x[0] += 1e-3;
    }
    return 0;
}

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static int fail(const filch_call *call)
{
    (void)call;
    return 7;
}

static double units(const filch_call *call)
{
    return call->args != NULL ? *(const double *)call->args : (double)(call->hi - call->lo);
}

static int give_up(const program *p, const char *what)
{
    filch_error error = FILCH_ERROR_INIT;
    (void)filch_runtime_error(p->runtime, &error);
    fprintf(stderr, "%s: %s\n", what, error.text);
    return 1;
}

static filch_status make_codelet(program *p, const char *name, filch_host_fn host, size_t args,
                                 filch_codelet **codelet)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = name;
    desc.host = host;
    desc.work = units;
    desc.cost = units;
    desc.arg_size = (uint32_t)args;
    return filch_codelet_create(p->runtime, &desc, codelet);
}

static filch_status make(program *p, const char *devices)
{
    static const char *const names[] = {"update <&>", "sweep", "norm"};
    static double values[SIDE * COLUMNS];
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_status status;
    desc.devices = devices;
    status = filch_runtime_create(&desc, NULL, &p->runtime);
    for (int i = 0; i < 3 && status == FILCH_OK; ++i) {
        status = make_codelet(p, names[i], work, sizeof(double), &p->codelets[i]);
    }
    if (status == FILCH_OK) {
        status = make_codelet(p, "items", nothing, 0, &p->batch);
    }
    if (status == FILCH_OK) {
        status = make_codelet(p, "broken", fail, sizeof(double), &p->failing);
    }
    data.ptr = values;
    data.element = sizeof *values;
    data.rows = SIDE * COLUMNS;
    data.cols = 1;
    data.tile_rows = SIDE;
    data.label = "vector";
    return status == FILCH_OK ? filch_data_create(p->runtime, &data, &p->data) : status;
}

/* Chains over the tiles, which meet now and then. */
static filch_status run_graph(program *p, unsigned tasks)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.label = "sweeps";
    filch_status status = filch_graph_create(p->runtime, &desc, &graph);
    for (unsigned i = 0; i < tasks && status == FILCH_OK; ++i) {
        double cost = 1 + i % 5;
        filch_access accesses[2] = {
            {.data = p->data, .row = i % COLUMNS, .mode = FILCH_READWRITE},
            {.data = p->data, .row = (i * 7 + 1) % COLUMNS, .mode = FILCH_READ}};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = p->codelets[i / (8 * COLUMNS) % 3];
        task.args = &cost;
        task.accesses = accesses;
        task.access_count = i % 16 == 0 && i % COLUMNS != (i * 7 + 1) % COLUMNS ? 2 : 1;
        task.label = i % 100 == 0 ? "every hundredth" : NULL;
        status = filch_graph_add(graph, &task, NULL);
    }
    for (int run = 0; run < 2 && status == FILCH_OK; ++run) {
        filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
        filch_job *job = NULL;
        submit.label = run == 0 ? "first" : "second";
        status = filch_graph_submit(graph, &submit, &job);
        if (status == FILCH_OK) {
            status = filch_job_wait(job, -1);
            (void)filch_job_release(job);
        }
    }
    filch_status ended = graph != NULL ? filch_graph_destroy(graph) : FILCH_OK;
    return status == FILCH_OK ? ended : status;
}

static filch_status run_batch(program *p)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = p->batch;
    desc.n = 1000;
    desc.grain = 10;
    filch_status status = filch_batch_submit(p->runtime, &desc, NULL, &job);
    if (status == FILCH_OK) {
        status = filch_job_wait(job, -1);
        (void)filch_job_release(job);
    }
    return status;
}

static filch_status run_failing(program *p)
{
    filch_graph *graph = NULL;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    double cost = 1;
    task.codelet = p->failing;
    task.args = &cost;
    filch_status status = filch_graph_create(p->runtime, NULL, &graph);
    status = status == FILCH_OK ? filch_graph_add(graph, &task, NULL) : status;
    status = status == FILCH_OK ? filch_graph_run(graph, NULL, NULL) : status;
    /* Simulated devices with memories of their own call no function: nothing fails there. */
    return status == FILCH_TASK_FAILED ? FILCH_OK : status;
}

int main(int argc, char **argv)
{
    program p = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: program DEVICES TASKS\n");
        return 2;
    }
    if (make(&p, argv[1]) != FILCH_OK) {
        return give_up(&p, "making");
    }
    if (run_graph(&p, (unsigned)strtoul(argv[2], NULL, 10)) != FILCH_OK) {
        return give_up(&p, "graph");
    }
    if (run_batch(&p) != FILCH_OK) {
        return give_up(&p, "batch");
    }
    if (run_failing(&p) != FILCH_OK) {
        return give_up(&p, "failing");
    }
    return filch_runtime_destroy(p.runtime) != FILCH_OK;
}
