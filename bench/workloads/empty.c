/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks with empty bodies, which cost what the runtime costs: independent ones, a chain, and a
 * wavefront, built once and submitted again; and independent ones created and run each time. The
 * body is the one that the peers run; on GPUs it is an empty kernel, and in a run that is checked
 * one that leaves a mark in memory that the host and every GPU reach. */
#include "offload/offload.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS 100000
#define WAVEFRONT_SIDE 256
#define TASKS_MAX 200000000

/* What tasks are made of. */
typedef enum form {
    FORM_HOST,   /* the peers' body, with arguments; on a GPU of a mixed runtime an empty kernel */
    FORM_KERNEL, /* an empty kernel without arguments: every device is a GPU */
    FORM_MARK    /* a marking body: there are GPUs, and the run is checked */
} form;

typedef struct empty {
    bench_peer_work work;
    bench_offload offload;
    form form; /* of the tasks built last */
} empty;

/* By value in each task, by form. */
typedef struct arguments {
    const bench_peer_work *work;
    size_t task;
} arguments;

/* *own becomes the length of the longest chain that ends here; null predecessors are none. */
typedef struct mark {
    unsigned *own;
    const unsigned *first;
    const unsigned *second;
} mark;

/* The structures above as kernels see them. Marks are the host's memory: not to be cached. */
static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "struct arguments { const void *work; unsigned long long task; };\n"
    "struct mark { volatile unsigned *own; const volatile unsigned *first, *second; };\n"
    "extern \"C\" __global__ void nothing() { filch_wait(); }\n"
    "extern \"C\" __global__ void nothing_given(arguments) { filch_wait(); }\n"
    "extern \"C\" __global__ void leave_mark(mark m)\n"
    "{\n"
    "    filch_wait();\n"
    "    unsigned first = m.first ? *m.first : 0;\n"
    "    unsigned second = m.second ? *m.second : 0;\n"
    "    *m.own += 1 + (first > second ? first : second);\n"
    "}\n";

static int run_empty(const filch_call *call)
{
    const arguments *args = call->args;
    bench_peer_body(args->work, args->task);
    return 0;
}

static int run_mark(const filch_call *call)
{
    const mark *m = call->args;
    unsigned first = m->first ? *m->first : 0;
    unsigned second = m->second ? *m->second : 0;
    *m->own += 1 + (first > second ? first : second);
    return 0;
}

static filch_status setup(bench_peer_kind kind, const bench_options *options, size_t otherwise,
                          filch_error *error, void **state)
{
    size_t n = options->n ? options->n : otherwise;
    const char *option = options->matrix                      ? "--matrix"
                         : options->tile                      ? "--tile"
                         : options->precision != BENCH_DOUBLE ? "--precision"
                                                              : NULL;
    if (option)
        return bench_fail(error, FILCH_UNSUPPORTED, option, 0,
                          "tasks with empty bodies have no matrix, tiles or precision");
    empty *e = calloc(1, sizeof *e);
    if (!e)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "empty", 0, "no memory");
    e->work.kind = kind;
    e->work.n = n;
    if (n > TASKS_MAX || bench_peer_tasks(&e->work) > TASKS_MAX) {
        free(e);
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu makes more than %d tasks", n,
                          TASKS_MAX);
    }
    *state = e;
    return FILCH_OK;
}

static filch_status setup_empty(const bench_options *options, filch_error *error, void **state)
{
    return setup(BENCH_PEER_RERUN, options, TASKS, error, state);
}

static filch_status setup_create(const bench_options *options, filch_error *error, void **state)
{
    return setup(BENCH_PEER_EMPTY, options, TASKS, error, state);
}

static filch_status setup_chain(const bench_options *options, filch_error *error, void **state)
{
    return setup(BENCH_PEER_CHAIN, options, TASKS, error, state);
}

static filch_status setup_wavefront(const bench_options *options, filch_error *error, void **state)
{
    return setup(BENCH_PEER_WAVEFRONT, options, WAVEFRONT_SIDE, error, state);
}

static void teardown(void *state)
{
    empty *e = state;
    bench_offload_close(&e->offload);
    free(e);
}

static void describe(const void *state, bench_problem *problem)
{
    static const char *const texts[BENCH_PEER_KINDS] = {
        [BENCH_PEER_EMPTY] = "independent empty tasks, created and run",
        [BENCH_PEER_RERUN] = "independent empty tasks, built once",
        [BENCH_PEER_CHAIN] = "empty tasks, each after the last, built once",
        [BENCH_PEER_WAVEFRONT] =
            "empty tasks, each after its upper and left neighbours, built once",
    };
    const empty *e = state;
    size_t tasks = bench_peer_tasks(&e->work);
    problem->n = e->work.n;
    problem->work = (double)tasks;
    snprintf(problem->text, sizeof problem->text, "%zu %s%s", tasks, texts[e->work.kind],
             e->work.kind == BENCH_PEER_EMPTY ? "" : " and submitted again and again");
}

static filch_status make_codelet(empty *e, bench_built *built)
{
    static const struct {
        filch_host_fn host;
        uint32_t arg_size;
        const char *entry;
    } forms[] = {
        [FORM_HOST] = {run_empty, sizeof(arguments), "nothing_given"},
        [FORM_KERNEL] = {NULL, 0, "nothing"},
        [FORM_MARK] = {run_mark, sizeof(mark), "leave_mark"},
    };
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    bench_offload_meet(&e->offload, built->runtime);
    e->form = !e->offload.has_gpus    ? FORM_HOST
              : e->work.marks         ? FORM_MARK
              : e->offload.has_others ? FORM_HOST
                                      : FORM_KERNEL;
    desc.name = "empty";
    desc.host = forms[e->form].host;
    desc.arg_size = forms[e->form].arg_size;
    cuda.source = source;
    cuda.entry = forms[e->form].entry;
    cuda.waits = true;
    desc.cuda = e->offload.has_gpus ? &cuda : NULL;
    return filch_codelet_create(built->runtime, &desc, &built->codelets[0]);
}

static mark mark_of(const bench_peer_work *work, size_t task)
{
    size_t before[2];
    bench_peer_predecessors(work, task, before);
    return (mark){work->marks + task, before[0] == task ? NULL : work->marks + before[0],
                  before[1] == task ? NULL : work->marks + before[1]};
}

static filch_status add(const empty *e, const bench_built *built, size_t task, filch_task *name)
{
    const arguments args = {&e->work, task};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    mark marked;
    desc.codelet = built->codelets[0];
    if (e->form == FORM_HOST)
        desc.args = &args;
    if (e->form == FORM_MARK) {
        marked = mark_of(&e->work, task);
        desc.args = &marked;
    }
    return filch_graph_add(built->graph, &desc, name);
}

/* The edges of the kind that end in a task. */
static filch_status add_edges(const empty *e, const bench_built *built, const filch_task *names,
                              size_t task)
{
    size_t n = e->work.n > 0 ? e->work.n : 1;
    bool is_wavefront = e->work.kind == BENCH_PEER_WAVEFRONT;
    filch_status status = FILCH_OK;
    if (is_wavefront && task >= n)
        status = filch_graph_edge(built->graph, names[task - n], names[task]);
    if (status == FILCH_OK &&
        (is_wavefront ? task % n > 0 : e->work.kind == BENCH_PEER_CHAIN && task > 0))
        status = filch_graph_edge(built->graph, names[task - 1], names[task]);
    return status;
}

static filch_status build(void *state, bench_built *built)
{
    empty *e = state;
    size_t tasks = bench_peer_tasks(&e->work);
    filch_task *names = calloc(tasks, sizeof *names);
    filch_status status = names ? make_codelet(e, built) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    for (size_t k = 0; k < tasks && status == FILCH_OK; k++) {
        status = add(e, built, k, &names[k]);
        if (status == FILCH_OK)
            status = add_edges(e, built, names, k);
    }
    free(names);
    return status;
}

static filch_status build_create(void *state, bench_built *built)
{
    return make_codelet(state, built);
}

static filch_status add_all(const empty *e, const bench_built *built)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < e->work.n && status == FILCH_OK; k++)
        status = add(e, built, k, NULL);
    return status;
}

/* A closed graph: made, filled, run once. */
static filch_status start_create(void *state, bench_built *built, filch_job **job)
{
    filch_status status = filch_graph_create(built->runtime, NULL, &built->graph);
    if (status == FILCH_OK)
        status = add_all(state, built);
    return status == FILCH_OK ? filch_graph_submit(built->graph, NULL, job) : status;
}

/* An open graph: its tasks run while more are added. */
static filch_status start_open(void *state, bench_built *built, filch_job **job)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.kind = FILCH_GRAPH_OPEN;
    filch_status status = filch_graph_create(built->runtime, &desc, &built->graph);
    if (status == FILCH_OK)
        status = filch_graph_submit(built->graph, NULL, job);
    if (status == FILCH_OK)
        status = add_all(state, built);
    filch_status closed = *job ? filch_graph_close(built->graph) : FILCH_OK;
    return status == FILCH_OK ? closed : status;
}

static filch_status finish_create(void *state, bench_built *built, filch_error *error)
{
    (void)state;
    (void)error;
    (void)filch_graph_destroy(built->graph);
    built->graph = NULL;
    return FILCH_OK;
}

static filch_status check_begin(void *state, bool *rebuild, filch_error *error)
{
    empty *e = state;
    size_t tasks = bench_peer_tasks(&e->work);
    *rebuild = e->offload.has_gpus;
    e->work.marks = e->offload.has_gpus
                        ? bench_gpu_shared_alloc(&e->offload.gpu, tasks * sizeof *e->work.marks)
                        : calloc(tasks, sizeof *e->work.marks);
    if (!e->work.marks)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory");
    return FILCH_OK;
}

static void check_end(void *state)
{
    empty *e = state;
    if (e->offload.has_gpus)
        bench_gpu_shared_free(&e->offload.gpu, e->work.marks);
    else
        free(e->work.marks);
    e->work.marks = NULL;
}

static filch_status holds(void *state, filch_error *error)
{
    const empty *e = state;
    if (!bench_peer_marks_hold(&e->work))
        return bench_fail(error, FILCH_DATA, "check", 0,
                          "a task did not run, ran twice, or ran before one that it waits for");
    return FILCH_OK;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    (void)residual;
    return holds(state, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    (void)error;
    empty *e = state;
    e->work.workers = workers;
    *work = &e->work;
    return FILCH_OK;
}

#define SHARED                                                                              \
    .unit = "task", .teardown = teardown, .describe = describe, .check_begin = check_begin, \
    .check_end = check_end, .check = check, .peer = peer, .agree = holds

const bench_workload bench_empty = {
    .name = "empty",
    .help = "independent empty tasks, built once and submitted again",
    .setup = setup_empty,
    .build = build,
    SHARED,
};

const bench_workload bench_create = {
    .name = "create",
    .help = "independent empty tasks, created and run",
    .setup = setup_create,
    .build = build_create,
    .start = start_create,
    .finish = finish_create,
    SHARED,
};

const bench_workload bench_open = {
    .name = "open",
    .help = "independent empty tasks that run while more are added",
    .setup = setup_create,
    .build = build_create,
    .start = start_open,
    .finish = finish_create,
    SHARED,
};

const bench_workload bench_chain = {
    .name = "chain",
    .help = "empty tasks one after the other",
    .setup = setup_chain,
    .build = build,
    SHARED,
};

const bench_workload bench_wavefront = {
    .name = "wavefront",
    .help = "n x n empty tasks, each after its upper and its left neighbour",
    .setup = setup_wavefront,
    .build = build,
    SHARED,
};
