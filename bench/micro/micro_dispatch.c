/* SPDX-License-Identifier: Apache-2.0 */
/* What a task costs: to build, to hold, and to run. */
#include "micro/micro.h"
#include "support/timing.h"

#include "filch/filch.h"

#include <stdlib.h>

enum { TASKS = 100000, SIDE = 256 };

enum shape {
    INDEPENDENT,
    CHAIN,
    WAVEFRONT_EDGES,
    WAVEFRONT_DATA, /* three accesses a task */
    ONE_ACCESS,
    FOUR_ACCESSES,
    SHAPES
};

/* Figures of one shape under one number of workers, a round an element. */
typedef struct figures {
    double build[MICRO_ROUNDS]; /* ns a task */
    double seal[MICRO_ROUNDS];
    double rerun[MICRO_ROUNDS];
    double bytes; /* a task; tasks' memory stays the runtime's, so against its beginning */
} figures;

typedef struct bed {
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_data *data; /* of SIDE x SIDE tiles */
    filch_task *names;
    char *cells;
    uint64_t bytes; /* live before the first graph */
} bed;

static int run_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static size_t tasks_of(enum shape shape)
{
    return shape < WAVEFRONT_EDGES ? TASKS : (size_t)SIDE * SIDE;
}

/* A tile of its own and, by the shape, those of the upper, the left and the upper left neighbour:
 * one, three or four accesses inside. */
static uint32_t take_accesses(const bed *b, enum shape shape, size_t task, filch_access *accesses)
{
    uint32_t row = (uint32_t)(task / SIDE);
    uint32_t col = (uint32_t)(task % SIDE);
    uint32_t count = 0;
    accesses[count++] = (filch_access)FILCH_RW(b->data, row, col);
    if (shape == ONE_ACCESS)
        return count;
    if (row > 0)
        accesses[count++] = (filch_access)FILCH_R(b->data, row - 1, col);
    if (col > 0)
        accesses[count++] = (filch_access)FILCH_R(b->data, row, col - 1);
    if (shape == FOUR_ACCESSES && row > 0 && col > 0)
        accesses[count++] = (filch_access)FILCH_R(b->data, row - 1, col - 1);
    return count;
}

static filch_status add(const bed *b, filch_graph *graph, enum shape shape, size_t task)
{
    filch_access accesses[4];
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = b->codelet;
    if (shape >= WAVEFRONT_DATA) {
        desc.access_count = take_accesses(b, shape, task, accesses);
        desc.accesses = accesses;
    }
    filch_status status = filch_graph_add(graph, &desc, &b->names[task]);
    if (status == FILCH_OK && shape == WAVEFRONT_EDGES && task >= SIDE)
        status = filch_graph_edge(graph, b->names[task - SIDE], b->names[task]);
    if (status == FILCH_OK &&
        ((shape == WAVEFRONT_EDGES && task % SIDE > 0) || (shape == CHAIN && task > 0)))
        status = filch_graph_edge(graph, b->names[task - 1], b->names[task]);
    return status;
}

static filch_status run_once(filch_graph *graph)
{
    filch_job *job = NULL;
    filch_status status = filch_graph_submit(graph, NULL, &job);
    if (status != FILCH_OK)
        return status;
    status = filch_job_wait(job, -1);
    (void)filch_job_release(job);
    return status;
}

static uint64_t live_bytes(const bed *b)
{
    filch_usage usage = {.size = sizeof usage};
    return filch_runtime_usage(b->runtime, &usage) == FILCH_OK ? usage.host_bytes : 0;
}

static filch_status measure_round(const bed *b, enum shape shape, size_t round, figures *f)
{
    double tasks = (double)tasks_of(shape);
    filch_graph *graph = NULL;
    double start = bench_now_s();
    filch_status status = filch_graph_create(b->runtime, NULL, &graph);
    if (status != FILCH_OK)
        return status;
    for (size_t k = 0; k < tasks_of(shape) && status == FILCH_OK; k++)
        status = add(b, graph, shape, k);
    double built = bench_now_s();
    status = status == FILCH_OK ? filch_graph_seal(graph) : status;
    double sealed = bench_now_s();
    f->bytes = (double)(live_bytes(b) - b->bytes) / tasks;
    status = status == FILCH_OK ? run_once(graph) : status;
    double warm = bench_now_s();
    status = status == FILCH_OK ? run_once(graph) : status;
    f->rerun[round] = (bench_now_s() - warm) / tasks * 1e9;
    f->build[round] = (built - start) / tasks * 1e9;
    f->seal[round] = (sealed - built) / tasks * 1e9;
    (void)filch_graph_destroy(graph);
    return status;
}

static filch_status open_bed(bed *b, const char *devices)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = devices;
    filch_status status = b->names && b->cells ? filch_runtime_create(&config, NULL, &b->runtime)
                                               : FILCH_OUT_OF_MEMORY;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    codelet.name = "nothing";
    codelet.host = run_nothing;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    data.ptr = b->cells;
    data.element = 1;
    data.rows = data.cols = SIDE;
    data.tile_rows = data.tile_cols = 1;
    if (status == FILCH_OK)
        status = filch_codelet_create(b->runtime, &codelet, &b->codelet);
    if (status == FILCH_OK)
        status = filch_data_create(b->runtime, &data, &b->data);
    return status;
}

/* The names must be static texts: one for each shape and number of workers. */
static void report(FILE *out, micro_list *list, size_t workers, enum shape shape, figures *f)
{
    static const char *const rerun[2][SHAPES] = {
        {"rerun, independent, 1 worker", "rerun, chain, 1 worker",
         "rerun, wavefront by edges, 1 worker", "rerun, wavefront by accesses, 1 worker",
         "rerun, one access, 1 worker", "rerun, four accesses, 1 worker"},
        {"rerun, independent, 2 workers", "rerun, chain, 2 workers",
         "rerun, wavefront by edges, 2 workers", "rerun, wavefront by accesses, 2 workers",
         "rerun, one access, 2 workers", "rerun, four accesses, 2 workers"},
    };
    static const char *const build[SHAPES] = {
        "build, independent",        "build, chain",
        "build, wavefront by edges", "build, three inferred accesses",
        "build, one access",         "build, four accesses"};
    static const char *const seal[SHAPES] = {
        "seal, independent",        "seal, chain",
        "seal, wavefront by edges", "seal, three inferred accesses",
        "seal, one access",         "seal, four accesses"};
    static const char *const bytes[SHAPES] = {
        "live memory, independent",        "live memory, chain",
        "live memory, wavefront by edges", "live memory, three inferred accesses",
        "live memory, one access",         "live memory, four accesses"};
    if (workers == 1) {
        micro_report(out, list, build[shape], micro_median(f->build), "ns/task");
        micro_report(out, list, seal[shape], micro_median(f->seal), "ns/task");
        micro_report(out, list, bytes[shape], f->bytes, "B/task");
    }
    micro_report(out, list, rerun[workers - 1][shape], micro_median(f->rerun), "ns/task");
}

static void close_bed(bed *b)
{
    if (b->runtime)
        (void)filch_runtime_abort(b->runtime);
    free(b->names);
    free(b->cells);
}

int micro_dispatch(FILE *out, micro_list *list)
{
    static const char *const devices[] = {"host:1", "host:2"};
    filch_status status = FILCH_OK;
    for (int k = 0; k < 2 * SHAPES && status == FILCH_OK; k++) {
        enum shape shape = (enum shape)(k % SHAPES);
        size_t workers = (size_t)k / SHAPES + 1;
        bed b = {.names = calloc(TASKS, sizeof *b.names), .cells = calloc(SIDE, SIDE)};
        figures f;
        status = open_bed(&b, devices[workers - 1]);
        b.bytes = status == FILCH_OK ? live_bytes(&b) : 0;
        /* One round more than is kept: the first warms up. */
        for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++)
            status = measure_round(&b, shape, r < 0 ? 0 : (size_t)r, &f);
        if (status == FILCH_OK)
            report(out, list, workers, shape, &f);
        close_bed(&b);
    }
    return status != FILCH_OK;
}
