/* SPDX-License-Identifier: Apache-2.0 */
/* Independent tasks that each keep a device busy for a given time, created and run: what is left of
 * the time, and of the host's processors, is what the runtime takes. A kernel fills its device, so
 * that two of them take turns; on the host a task spins. Each leaves a mark in memory that the host
 * and every GPU reach. */
#include "offload/offload.h"
#include "support/fail.h"
#include "support/timing.h"
#include "workloads/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS 1000
#define TASKS_MAX 10000000
#define MICROSECONDS 1000
#define MICROSECONDS_MAX 10000000
/* Two such blocks fill a multiprocessor of an architecture that holds 2,048 threads, as those of
 * data centres do; where fewer fit they follow each other, which is seen in the time. */
#define BLOCK 1024
#define BLOCKS_OF_ONE 2

typedef struct busy {
    size_t n;
    size_t microseconds;
    unsigned *marks; /* one a task */
    bench_offload offload;
} busy;

/* By value in each task. */
typedef struct arguments {
    unsigned *mark;
    unsigned long long ns;
} arguments;

static const char source[] =
    "struct arguments { volatile unsigned *mark; unsigned long long ns; };\n"
    "static __device__ unsigned long long now()\n"
    "{\n"
    "    unsigned long long t;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(t));\n"
    "    return t;\n"
    "}\n"
    "extern \"C\" __global__ void busy(arguments a)\n"
    "{\n"
    "    unsigned long long begin = now();\n"
    "    while (now() - begin < a.ns) {\n"
    "    }\n"
    "    if (blockIdx.x == 0 && threadIdx.x == 0)\n"
    "        *a.mark += 1;\n"
    "}\n";

static int run_busy(const filch_call *call)
{
    const arguments *a = call->args;
    double end = bench_now_s() + (double)a->ns * 1e-9;
    while (bench_now_s() < end) {
    }
    *a->mark += 1;
    return 0;
}

static int shape_busy(const filch_call *call, filch_shape *shape)
{
    shape->grid[0] = BLOCKS_OF_ONE * call->team;
    shape->block[0] = BLOCK;
    return 0;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    size_t n = options->n ? options->n : TASKS;
    size_t microseconds = options->tile ? options->tile : MICROSECONDS;
    if (options->matrix || options->precision != BENCH_DOUBLE)
        return bench_fail(error, FILCH_UNSUPPORTED, options->matrix ? "--matrix" : "--precision", 0,
                          "tasks that only take time have no matrix and no precision");
    if (n > TASKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu tasks are more than %d", n,
                          TASKS_MAX);
    if (microseconds > MICROSECONDS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--tile", 0, "%zu microseconds are more than %d",
                          microseconds, MICROSECONDS_MAX);
    busy *b = calloc(1, sizeof *b);
    if (!b)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "busy", 0, "no memory");
    b->n = n;
    b->microseconds = microseconds;
    *state = b;
    return FILCH_OK;
}

static void teardown(void *state)
{
    busy *b = state;
    if (b->offload.gpu.context)
        bench_gpu_shared_free(&b->offload.gpu, b->marks);
    else
        free(b->marks);
    bench_offload_close(&b->offload);
    free(b);
}

static void describe(const void *state, bench_problem *problem)
{
    const busy *b = state;
    problem->n = b->n;
    problem->tile = b->microseconds;
    problem->work = (double)b->n;
    snprintf(problem->text, sizeof problem->text,
             "%zu independent tasks of %zu us, created and run", b->n, b->microseconds);
}

static filch_status build(void *state, bench_built *built)
{
    busy *b = state;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    b->offload.has_no_vendor = true;
    bench_offload_meet(&b->offload, built->runtime);
    if (!b->marks)
        b->marks = b->offload.gpu.context
                       ? bench_gpu_shared_alloc(&b->offload.gpu, b->n * sizeof *b->marks)
                       : calloc(b->n, sizeof *b->marks);
    if (!b->marks)
        return FILCH_OUT_OF_MEMORY;
    desc.name = "busy";
    desc.host = run_busy;
    desc.arg_size = sizeof(arguments);
    cuda.source = source;
    cuda.entry = "busy";
    cuda.shape_of = shape_busy;
    desc.cuda = b->offload.has_gpus ? &cuda : NULL;
    return filch_codelet_create(built->runtime, &desc, &built->codelets[0]);
}

static void reset(void *state)
{
    const busy *b = state;
    memset(b->marks, 0, b->n * sizeof *b->marks);
}

static filch_status start(void *state, bench_built *built, filch_job **job)
{
    const busy *b = state;
    filch_status status = filch_graph_create(built->runtime, NULL, &built->graph);
    for (size_t k = 0; k < b->n && status == FILCH_OK; k++) {
        const arguments args = {&b->marks[k], 1000 * (unsigned long long)b->microseconds};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = built->codelets[0];
        desc.args = &args;
        status = filch_graph_add(built->graph, &desc, NULL);
    }
    return status == FILCH_OK ? filch_graph_submit(built->graph, NULL, job) : status;
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    (void)state;
    (void)error;
    (void)filch_graph_destroy(built->graph);
    built->graph = NULL;
    return FILCH_OK;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    const busy *b = state;
    (void)residual;
    for (size_t k = 0; k < b->n; k++)
        if (b->marks[k] != 1)
            return bench_fail(error, FILCH_DATA, "check", 0, "task %zu ran %u times", k,
                              b->marks[k]);
    return FILCH_OK;
}

const bench_workload bench_busy = {
    .name = "busy",
    .help = "independent tasks of --tile microseconds (default 1000), created and run",
    .unit = "task",
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .start = start,
    .finish = finish,
    .check = check,
};
