/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the heat equation: a task a step and a strip, which reads the strip with a halo of a
 * column on each side in one of two grids and writes the strip in the other. Some steps make a
 * graph, which is submitted again when it is over, as a solver does that looks at the result now
 * and then. The strips are made by tasks, so that each page is first touched by a device. */
#include "offload/offload.h"
#include "support/fail.h"
#include "workloads/heat_tasks.h"
#include "workloads/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 512
#define N_MAX 1000000
#define STRIPS 8 /* on the host alone */
#define STRIPS_A_DEVICE 3
#define STRIPS_MAX 10000
#define STEPS 100
#define STEPS_MAX 1000000
#define STEPS_A_GRAPH 10
#define STEPS_A_GRAPH_MOST 50 /* where nothing else is asked for and there are GPUs */

typedef struct heat {
    bench_heat_grid grid; /* its strips: 0 until a runtime says how many devices there are */
    size_t steps_a_graph;
    size_t job; /* the next one of this run */
    bool is_idle;
    bool is_resident;
    uint32_t dealt;   /* among so many GPUs the strips are dealt out; 0: filch places them */
    double *u[2];     /* step k reads u[k % 2] and writes the other one */
    double *theirs;   /* a peer's result; null without a peer */
    double *expected; /* null until a check needs it */
    bench_mark *marks;
    bench_peer_work work;
    bench_offload offload;
} heat;

static double work_of(const filch_call *call)
{
    const bench_heat_arguments *args = call->args;
    size_t columns =
        bench_heat_column(args->grid, args->strip + 1) - bench_heat_column(args->grid, args->strip);
    return (double)(columns * args->grid->n);
}

static void teardown(void *state)
{
    heat *s = state;
    bench_offload_close(&s->offload);
    free(s->u[0]);
    free(s->u[1]);
    free(s->theirs);
    free(s->expected);
    free(s->marks);
    free(s);
}

static filch_status check_options(const bench_options *o, const heat *s, filch_error *error)
{
    const bench_heat_grid *h = &s->grid;
    const char *option = o->matrix                      ? "--matrix"
                         : o->tile                      ? "--tile"
                         : o->precision != BENCH_DOUBLE ? "--precision"
                                                        : NULL;
    if (option)
        return bench_fail(error, FILCH_UNSUPPORTED, option, 0,
                          "heat generates its grid, in double precision, and cuts it in --strips");
    if (h->n < 3)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--n", 0,
                          "a grid of %zu x %zu has no inside", h->n, h->n);
    if (h->n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", h->n, N_MAX);
    if (h->strips > h->n || h->strips > STRIPS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--strips", 0,
                          "%zu strips are more than the %zu columns, or than %d", h->strips, h->n,
                          STRIPS_MAX);
    if (h->steps > STEPS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--steps", 0, "%zu is above %d", h->steps,
                          STEPS_MAX);
    if (o->slow.factor != 0 && s->offload.has_gpus)
        return bench_fail(error, FILCH_UNSUPPORTED, "--slow", 0,
                          "heat's kernels are not done again on a GPU");
    return bench_steps_check(h->steps, s->steps_a_graph, error);
}

/* Marks for as many strips as there can be. */
static filch_status allocate(heat *s, filch_error *error)
{
    const bench_heat_grid *h = &s->grid;
    size_t most = h->n < STRIPS_MAX ? h->n : STRIPS_MAX;
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < 2 && status == FILCH_OK; k++)
        status =
            bench_squares_alloc(h->n, 1, sizeof(double), "--n", error, (void **)(void *)&s->u[k]);
    if (status == FILCH_OK && !(s->marks = bench_marks_create(h->strips ? h->strips : most)))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--strips", 0, "no memory");
    return status;
}

static size_t steps_a_graph_for(size_t steps, bool has_gpus)
{
    if (has_gpus)
        return bench_steps_share(steps, STEPS_A_GRAPH_MOST);
    return steps % STEPS_A_GRAPH ? steps : STEPS_A_GRAPH;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    heat *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "heat", 0, "no memory");
    bench_heat_grid *h = &s->grid;
    h->n = options->n ? options->n : DEFAULT_N;
    h->steps = options->steps ? options->steps : STEPS;
    bool has_gpus = s->offload.has_gpus = bench_gpu_is_among(options->devices);
    if (options->strips || !has_gpus)
        h->strips = options->strips ? options->strips : h->n < STRIPS ? h->n : STRIPS;
    s->steps_a_graph =
        options->steps_a_graph ? options->steps_a_graph : steps_a_graph_for(h->steps, has_gpus);
    s->is_idle = bench_is_simulated(options) && !options->check;
    s->is_resident = options->resident;
    s->offload.has_no_vendor = true;
    filch_status status = check_options(options, s, error);
    if (status == FILCH_OK)
        status = allocate(s, error);
    if (status != FILCH_OK) {
        teardown(s);
        return status;
    }
    *state = s;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const heat *s = state;
    const bench_heat_grid *h = &s->grid;
    problem->n = h->n;
    problem->work = (double)h->steps * (double)h->n * (double)h->n;
    problem->steps = h->steps;
    problem->step = "step";
    snprintf(problem->variant, sizeof problem->variant, "%zu strips, %zu steps, %zu a graph",
             h->strips, h->steps, s->steps_a_graph);
    snprintf(problem->text, sizeof problem->text,
             "%zu steps of the heat equation on a grid of %zu x %zu in %zu strips, %zu a graph",
             h->steps, h->n, h->n, h->strips, s->steps_a_graph);
}

static filch_status add(const heat *s, const bench_built *built, filch_graph *graph,
                        bench_heat_task task, size_t strip, const filch_access *accesses,
                        uint32_t count)
{
    const bench_heat_arguments args = {&s->grid, &s->marks[strip], strip};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[task];
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = count;
    if (s->dealt)
        desc.affinity = (uint32_t)(strip * s->dealt / s->grid.strips) + 1;
    return filch_graph_add(graph, &desc, NULL);
}

static filch_status add_strip(const heat *s, const bench_built *built, filch_graph *graph,
                              size_t step, size_t strip)
{
    static const filch_halo beside = {.cols_before = 1, .cols_after = 1};
    const filch_access accesses[] = {FILCH_R_HALO(built->data[step % 2], 0, strip, &beside),
                                     FILCH_W(built->data[1 - step % 2], 0, strip)};
    return add(s, built, graph, BENCH_HEAT_STEP, strip, accesses, 2);
}

/* A graph of steps_a_graph steps. first: 0 or 1, the grid that its first step reads. */
static filch_status add_steps(const heat *s, const bench_built *built, size_t first,
                              filch_graph **graph)
{
    filch_status status = filch_graph_create(built->runtime, NULL, graph);
    for (size_t step = first; step < first + s->steps_a_graph; step++)
        for (size_t strip = 0; strip < s->grid.strips && status == FILCH_OK; strip++)
            status = add_strip(s, built, *graph, step, strip);
    return status;
}

static filch_status add_init(const heat *s, bench_built *built)
{
    filch_status status = filch_graph_create(built->runtime, NULL, &built->restore);
    for (size_t strip = 0; strip < s->grid.strips && status == FILCH_OK; strip++) {
        const filch_access access = FILCH_W(built->data[0], 0, strip);
        status = add(s, built, built->restore, BENCH_HEAT_INIT, strip, &access, 1);
    }
    return status;
}

/* On GPUs a grid that is neither input nor result stays there, and with --resident both do. */
static uint32_t flags_of(const heat *s, size_t grid)
{
    bool is_given = grid == 0 || grid == s->grid.steps % 2;
    return s->offload.has_gpus && (s->is_resident || !is_given) ? FILCH_DATA_MANAGED : 0;
}

static filch_status make_handles(heat *s, bench_built *built)
{
    const bench_heat_grid *h = &s->grid;
    uint64_t *widths = calloc(h->strips, sizeof *widths);
    filch_status status = widths ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    for (size_t k = 0; k < h->strips && widths; k++)
        widths[k] = bench_heat_column(h, k + 1) - bench_heat_column(h, k);
    for (size_t k = 0; k < 2 && status == FILCH_OK; k++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = s->u[k];
        desc.element = sizeof(double);
        desc.rows = desc.cols = h->n;
        desc.col_cuts = widths;
        desc.col_cut_count = (uint32_t)h->strips;
        desc.label = k == 0 ? "even" : "odd";
        desc.flags = flags_of(s, k);
        bench_offload_pin(&s->offload, s->u[k], h->n * h->n * sizeof *s->u[k]);
        status = filch_data_create(built->runtime, &desc, &built->data[k]);
    }
    free(widths);
    return status;
}

static filch_status make_codelets(const heat *s, bench_built *built)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < BENCH_HEAT_TASKS && status == FILCH_OK; k++) {
        const bench_heat_code *code = &bench_heat_codes[k];
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = code->name;
        desc.host = s->is_idle ? bench_run_nothing : code->host;
        desc.cuda = s->offload.has_gpus ? &code->cuda : NULL;
        desc.work = work_of;
        desc.arg_size = sizeof(bench_heat_arguments);
        status = filch_codelet_create(built->runtime, &desc, &built->codelets[k]);
    }
    return status;
}

/* One GPU has one strip. Several devices have some each: columns go to a neighbour while the strips
 * between are done. */
static size_t strips_for(const heat *s, uint32_t devices)
{
    size_t wanted = !s->offload.has_gpus ? STRIPS
                    : devices == 1       ? 1
                                         : (size_t)STRIPS_A_DEVICE * devices;
    return wanted < s->grid.n ? wanted : s->grid.n;
}

static filch_status build(void *state, bench_built *built)
{
    heat *s = state;
    bench_offload_meet(&s->offload, built->runtime);
    s->dealt = s->offload.has_gpus ? bench_offload_alike(built->runtime) : 0;
    if (s->grid.strips == 0)
        s->grid.strips = strips_for(s, filch_device_count(built->runtime));
    filch_status status = make_handles(s, built);
    if (status == FILCH_OK)
        status = make_codelets(s, built);
    if (status == FILCH_OK)
        status = add_init(s, built);
    if (status == FILCH_OK)
        status = add_steps(s, built, 0, &built->graph);
    if (status == FILCH_OK && s->steps_a_graph % 2 == 1)
        status = add_steps(s, built, 1, &built->other);
    size_t result = s->grid.steps % 2;
    if (status == FILCH_OK && (flags_of(s, result) & FILCH_DATA_MANAGED) != 0)
        built->result = built->data[result];
    return status;
}

static void reset(void *state)
{
    heat *s = state;
    s->job = 0;
    bench_marks_reset(s->marks, s->grid.strips);
}

static size_t jobs(const void *state)
{
    const heat *s = state;
    return s->grid.steps / s->steps_a_graph;
}

static filch_status start(void *state, bench_built *built, filch_job **job)
{
    heat *s = state;
    bool is_odd = s->job++ % 2 == 1;
    return filch_graph_submit(is_odd && built->other ? built->other : built->graph, NULL, job);
}

static bool moves(const void *state, bench_moves *of)
{
    const heat *s = state;
    *of = bench_marks_sum(s->marks, s->grid.strips);
    return !s->is_idle && !s->offload.has_gpus;
}

/* By one thread, into a grid of the check's own. */
static filch_status expect(heat *s, filch_error *error)
{
    const bench_heat_grid *h = &s->grid;
    void *grids[2] = {NULL, NULL};
    filch_status status = FILCH_OK;
    if (s->expected)
        return FILCH_OK;
    for (size_t k = 0; k < 2 && status == FILCH_OK; k++)
        status = bench_squares_alloc(h->n, 1, sizeof(double), "--check", error, &grids[k]);
    for (size_t strip = 0; strip < h->strips && status == FILCH_OK; strip++)
        bench_heat_init(h, strip, (double *)grids[0] + bench_heat_column(h, strip) * h->n);
    for (size_t step = 0; step < h->steps && status == FILCH_OK; step++)
        for (size_t strip = 0; strip < h->strips; strip++)
            bench_heat_step_whole(h, strip, grids[step % 2], grids[1 - step % 2]);
    if (status == FILCH_OK) {
        s->expected = grids[h->steps % 2];
        grids[h->steps % 2] = NULL;
    }
    free(grids[0]);
    free(grids[1]);
    return status;
}

static filch_status compare(heat *s, const double *result, filch_error *error)
{
    size_t n = s->grid.n;
    filch_status status = expect(s, error);
    for (size_t column = 0; column < n && status == FILCH_OK; column++)
        if (memcmp(result + column * n, s->expected + column * n, n * sizeof *result) != 0)
            status = bench_fail(error, FILCH_DATA, "check", 0,
                                "column %zu differs from what one thread computes", column);
    return status;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    heat *s = state;
    (void)residual;
    return compare(s, s->u[s->grid.steps % 2], error);
}

/* A result that nobody has computed since is none. One that stays on GPUs is filch's meanwhile. */
static filch_status check_begin(void *state, bool *rebuild, filch_error *error)
{
    heat *s = state;
    size_t result = s->grid.steps % 2, points = s->grid.n * s->grid.n;
    (void)rebuild;
    (void)error;
    for (size_t k = 0; k < points && (flags_of(s, result) & FILCH_DATA_MANAGED) == 0; k++)
        s->u[result][k] = NAN;
    return FILCH_OK;
}

static void check_end(void *state)
{
    (void)state;
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    heat *s = state;
    filch_status status = FILCH_OK;
    if (!s->theirs)
        status = bench_squares_alloc(s->grid.n, 1, sizeof(double), "--versus", error,
                                     (void **)(void *)&s->theirs);
    s->work = (bench_peer_work){.kind = BENCH_PEER_HEAT,
                                .workers = workers,
                                .n = s->grid.n,
                                .problem = &s->grid,
                                .c = s->theirs};
    *work = &s->work;
    return status;
}

static filch_status agree(void *state, filch_error *error)
{
    heat *s = state;
    return compare(s, s->theirs, error);
}

const bench_workload bench_heat = {
    .name = "heat",
    .help = "steps of the heat equation, a task a strip of the grid",
    .unit = "update",
    .takes_slow = true,
    .takes = BENCH_TAKES_STEPS | BENCH_TAKES_STRIPS | BENCH_TAKES_STEPS_A_GRAPH,
    .waits = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .jobs = jobs,
    .start = start,
    .moves = moves,
    .check = check,
    .check_begin = check_begin,
    .check_end = check_end,
    .peer = peer,
    .agree = agree,
};
