/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients on the host, by blocks of rows: in each iteration a task a block multiplies
 * by the matrix, one adds up the blocks' dot products, a task a block moves solution and residual,
 * one adds up again, and a task a block makes the next direction. An iteration is a graph, or some
 * are, which is submitted again when it is over. The vectors are made by tasks, so that each page
 * is first touched by a device. */
#include "problems/cg.h"
#include "support/fail.h"
#include "workloads/marks.h"
#include "workloads/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 64
#define N_MAX 500
#define ITERATIONS 50
#define ITERATIONS_MAX 100000
#define BLOCKS_A_DEVICE 3
#define BLOCKS_MAX 240 /* a task that adds up has as many accesses, and one more */

/* The vectors first. */
enum handle { X, R, P, Q, PARTS, SCALARS, VALUES, COLUMNS, HANDLES };
#define VECTORS PARTS
enum codelet { INIT, MULTIPLY, SUM, UPDATE, DIRECTION, CODELETS };
enum sum { SUM_BEGIN, SUM_ALPHA, SUM_BETA };

typedef struct cg {
    bench_cg_system system; /* its blocks: 0 until a runtime says how many devices there are */
    size_t steps_a_graph;
    bool is_idle;
    double *vectors[VECTORS];
    bench_cg_part *parts; /* of p q for each block, then of r r */
    bench_cg_scalars *scalars;
    double *theirs;   /* a peer's result; null without a peer */
    double *expected; /* null until a check needs it */
    bench_mark *marks;
    bench_peer_work work;
} cg;

/* By value in each task. */
typedef struct arguments {
    const bench_cg_system *system;
    bench_mark *mark; /* null: a sum's */
    size_t block;
    enum sum sum;
} arguments;

/* --- Bodies --- */

/* Views: x, r, p, part. */
static int run_init(const filch_call *call)
{
    const arguments *args = call->args;
    const filch_view *v = call->views;
    bench_cg_part *part = v[3].ptr;
    part->value = bench_cg_init(args->system, args->block, v[0].ptr, v[1].ptr, v[2].ptr);
    return 0;
}

/* Views: q, part, values, columns, p of the block, and p of its neighbours. On the host all blocks
 * of a vector are one piece of memory. */
static int run_multiply(const filch_call *call)
{
    const arguments *args = call->args;
    const filch_view *v = call->views;
    const double *p = (const double *)v[4].ptr - v[4].row;
    bench_cg_part *part = v[1].ptr;
    for (uint32_t times = bench_slow_times(call->device); times > 0; times--)
        part->value = bench_cg_multiply(args->system, args->block, p, v[0].ptr);
    bench_mark_visit(args->mark, call->device);
    return 0;
}

/* Views: scalars, and parts. */
static int run_sum(const filch_call *call)
{
    const arguments *args = call->args;
    bench_cg_scalars *scalars = call->views[0].ptr;
    double sum = 0;
    for (uint32_t k = 1; k < call->view_count; k++)
        sum += ((const bench_cg_part *)call->views[k].ptr)->value;
    if (args->sum == SUM_BEGIN)
        bench_cg_begin(scalars, sum);
    else if (args->sum == SUM_ALPHA)
        bench_cg_alpha(scalars, sum);
    else
        bench_cg_beta(scalars, sum);
    return 0;
}

/* Views: x, r, p, q, part, scalars. Done again with 0 for alpha it changes nothing. */
static int run_update(const filch_call *call)
{
    const arguments *args = call->args;
    const filch_view *v = call->views;
    double alpha = ((const bench_cg_scalars *)v[5].ptr)->alpha;
    bench_cg_part *part = v[4].ptr;
    for (uint32_t times = bench_slow_times(call->device); times > 0; times--, alpha = 0)
        part->value = bench_cg_update(v[0].rows, alpha, v[2].ptr, v[3].ptr, v[0].ptr, v[1].ptr);
    bench_mark_visit(args->mark, call->device);
    return 0;
}

/* Views: p, r, scalars. Done again as p = 0 r + p it changes nothing. */
static int run_direction(const filch_call *call)
{
    const arguments *args = call->args;
    const filch_view *v = call->views;
    uint32_t times = bench_slow_times(call->device);
    bench_cg_direction(v[0].rows, 1, v[1].ptr, ((const bench_cg_scalars *)v[2].ptr)->beta,
                       v[0].ptr);
    while (--times > 0)
        bench_cg_direction(v[0].rows, 0, v[1].ptr, 1, v[0].ptr);
    bench_mark_visit(args->mark, call->device);
    return 0;
}

/* --- The problem --- */

static void teardown(void *state)
{
    cg *s = state;
    bench_cg_free(&s->system);
    for (size_t k = 0; k < VECTORS; k++)
        free(s->vectors[k]);
    free(s->parts);
    free(s->scalars);
    free(s->theirs);
    free(s->expected);
    free(s->marks);
    free(s);
}

static filch_status check_options(const bench_options *o, const cg *s, filch_error *error)
{
    const bench_cg_system *a = &s->system;
    const char *option = o->matrix                      ? "--matrix"
                         : o->tile                      ? "--tile"
                         : o->precision != BENCH_DOUBLE ? "--precision"
                                                        : NULL;
    if (option)
        return bench_fail(error, FILCH_UNSUPPORTED, option, 0,
                          "cg makes its matrix, in double precision, and cuts it in --strips");
    if (a->g > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", a->g, N_MAX);
    if (a->blocks > a->g || a->blocks > BLOCKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--strips", 0,
                          "%zu blocks are more than the %zu planes, or than %d", a->blocks, a->g,
                          BLOCKS_MAX);
    if (a->iterations > ITERATIONS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--steps", 0, "%zu is above %d", a->iterations,
                          ITERATIONS_MAX);
    return bench_steps_check(a->iterations, s->steps_a_graph, error);
}

static filch_status allocate(cg *s, filch_error *error)
{
    filch_status status = bench_cg_assemble(&s->system, error);
    bool is_complete = status == FILCH_OK;
    size_t line = sizeof(bench_cg_part);
    for (size_t k = 0; k < VECTORS && is_complete; k++) {
        size_t bytes = (s->system.rows * sizeof(double) + line - 1) / line * line;
        is_complete = (s->vectors[k] = aligned_alloc(line, bytes)) != NULL;
    }
    if (is_complete) {
        s->parts = aligned_alloc(line, 2 * BLOCKS_MAX * line);
        s->scalars = aligned_alloc(line, line);
        s->marks = bench_marks_create(BLOCKS_MAX);
    }
    if (status == FILCH_OK && (!s->parts || !s->scalars || !s->marks))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for the vectors");
    return status;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    cg *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "cg", 0, "no memory");
    s->system.g = options->n ? options->n : DEFAULT_N;
    s->system.blocks = options->strips;
    s->system.iterations = options->steps ? options->steps : ITERATIONS;
    s->steps_a_graph = options->steps_a_graph ? options->steps_a_graph : 1;
    s->is_idle = bench_is_simulated(options) && !options->check;
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
    const cg *s = state;
    const bench_cg_system *a = &s->system;
    problem->n = a->g;
    problem->work = (double)a->rows * (double)a->iterations;
    problem->steps = a->iterations;
    problem->step = "iteration";
    snprintf(problem->variant, sizeof problem->variant, "%zu blocks, %zu iterations, %zu a graph",
             a->blocks, a->iterations, s->steps_a_graph);
    snprintf(problem->text, sizeof problem->text,
             "%zu iterations of conjugate gradients on a grid of %zu^3 in %zu blocks, %zu a graph",
             a->iterations, a->g, a->blocks, s->steps_a_graph);
}

/* --- Handles --- */

/* One tile a block; the elements up to a block: its rows, or those of the matrix. */
static filch_status make_blocks(const cg *s, bench_built *built, enum handle handle, void *memory,
                                size_t element, bool is_matrix)
{
    static const char *const labels[HANDLES] = {
        [X] = "x", [R] = "r", [P] = "p", [Q] = "q", [VALUES] = "values", [COLUMNS] = "columns"};
    const bench_cg_system *a = &s->system;
    uint64_t cuts[BLOCKS_MAX];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    for (size_t b = 0; b < a->blocks; b++) {
        size_t lo = bench_cg_row(a, b), hi = bench_cg_row(a, b + 1);
        cuts[b] = is_matrix ? a->starts[hi] - a->starts[lo] : hi - lo;
    }
    desc.ptr = memory;
    desc.element = element;
    desc.rows = is_matrix ? a->starts[a->rows] : a->rows;
    desc.row_cuts = cuts;
    desc.row_cut_count = (uint32_t)a->blocks;
    desc.label = labels[handle];
    return filch_data_create(built->runtime, &desc, &built->data[handle]);
}

static filch_status make_lines(bench_built *built, enum handle handle, void *memory, size_t count,
                               const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = memory;
    desc.element = sizeof(bench_cg_part);
    desc.rows = count;
    desc.tile_rows = 1;
    desc.label = label;
    return filch_data_create(built->runtime, &desc, &built->data[handle]);
}

static filch_status make_handles(const cg *s, bench_built *built)
{
    const bench_cg_system *a = &s->system;
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < VECTORS && status == FILCH_OK; k++)
        status = make_blocks(s, built, (enum handle)k, s->vectors[k], sizeof(double), false);
    if (status == FILCH_OK)
        status = make_blocks(s, built, VALUES, a->values, sizeof *a->values, true);
    if (status == FILCH_OK)
        status = make_blocks(s, built, COLUMNS, a->columns, sizeof *a->columns, true);
    if (status == FILCH_OK)
        status = make_lines(built, PARTS, s->parts, 2 * a->blocks, "parts");
    return status == FILCH_OK ? make_lines(built, SCALARS, s->scalars, 1, "scalars") : status;
}

/* --- Graphs --- */

static filch_access use(const bench_built *built, enum handle handle, size_t tile,
                        filch_access_mode mode)
{
    return (filch_access){.data = built->data[handle], .row = (uint32_t)tile, .mode = mode};
}

static filch_status add(const cg *s, const bench_built *built, filch_graph *graph,
                        enum codelet codelet, size_t block, const filch_access *accesses,
                        uint32_t count, enum sum sum)
{
    const arguments args = {&s->system, codelet == SUM ? NULL : &s->marks[block], block, sum};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[codelet];
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = count;
    return filch_graph_add(graph, &desc, NULL);
}

/* first: of the parts that are added up. */
static filch_status add_sum(const cg *s, const bench_built *built, filch_graph *graph, size_t first,
                            enum sum sum)
{
    filch_access accesses[BLOCKS_MAX + 1];
    uint32_t count = 0;
    accesses[count++] = use(built, SCALARS, 0, sum == SUM_BEGIN ? FILCH_WRITE : FILCH_READWRITE);
    for (size_t b = 0; b < s->system.blocks; b++)
        accesses[count++] = use(built, PARTS, first + b, FILCH_READ);
    return add(s, built, graph, SUM, 0, accesses, count, sum);
}

static filch_status add_multiply(const cg *s, const bench_built *built, filch_graph *graph,
                                 size_t b)
{
    filch_access accesses[7] = {use(built, Q, b, FILCH_WRITE), use(built, PARTS, b, FILCH_WRITE),
                                use(built, VALUES, b, FILCH_READ),
                                use(built, COLUMNS, b, FILCH_READ), use(built, P, b, FILCH_READ)};
    uint32_t count = 5;
    if (b > 0)
        accesses[count++] = use(built, P, b - 1, FILCH_READ);
    if (b + 1 < s->system.blocks)
        accesses[count++] = use(built, P, b + 1, FILCH_READ);
    return add(s, built, graph, MULTIPLY, b, accesses, count, SUM_BEGIN);
}

static filch_status add_iteration(const cg *s, const bench_built *built, filch_graph *graph)
{
    size_t blocks = s->system.blocks;
    filch_status status = FILCH_OK;
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++)
        status = add_multiply(s, built, graph, b);
    if (status == FILCH_OK)
        status = add_sum(s, built, graph, 0, SUM_ALPHA);
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++) {
        const filch_access accesses[] = {use(built, X, b, FILCH_READWRITE),
                                         use(built, R, b, FILCH_READWRITE),
                                         use(built, P, b, FILCH_READ),
                                         use(built, Q, b, FILCH_READ),
                                         use(built, PARTS, blocks + b, FILCH_WRITE),
                                         use(built, SCALARS, 0, FILCH_READ)};
        status = add(s, built, graph, UPDATE, b, accesses, 6, SUM_BEGIN);
    }
    if (status == FILCH_OK)
        status = add_sum(s, built, graph, blocks, SUM_BETA);
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++) {
        const filch_access accesses[] = {use(built, P, b, FILCH_READWRITE),
                                         use(built, R, b, FILCH_READ),
                                         use(built, SCALARS, 0, FILCH_READ)};
        status = add(s, built, graph, DIRECTION, b, accesses, 3, SUM_BEGIN);
    }
    return status;
}

static filch_status add_init(const cg *s, bench_built *built)
{
    size_t blocks = s->system.blocks;
    filch_status status = filch_graph_create(built->runtime, NULL, &built->restore);
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++) {
        const filch_access accesses[] = {
            use(built, X, b, FILCH_WRITE), use(built, R, b, FILCH_WRITE),
            use(built, P, b, FILCH_WRITE), use(built, PARTS, blocks + b, FILCH_WRITE)};
        status = add(s, built, built->restore, INIT, b, accesses, 4, SUM_BEGIN);
    }
    return status == FILCH_OK ? add_sum(s, built, built->restore, blocks, SUM_BEGIN) : status;
}

static double work_of(const filch_call *call)
{
    const arguments *args = call->args;
    const bench_cg_system *a = args->system;
    return (double)(bench_cg_row(a, args->block + 1) - bench_cg_row(a, args->block));
}

static filch_status make_codelets(const cg *s, bench_built *built)
{
    static const struct {
        const char *name;
        filch_host_fn host;
    } codelets[CODELETS] = {[INIT] = {"cg_init", run_init},
                            [MULTIPLY] = {"cg_multiply", run_multiply},
                            [SUM] = {"cg_sum", run_sum},
                            [UPDATE] = {"cg_update", run_update},
                            [DIRECTION] = {"cg_direction", run_direction}};
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < CODELETS && status == FILCH_OK; k++) {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = codelets[k].name;
        desc.host = s->is_idle ? bench_run_nothing : codelets[k].host;
        desc.work = k == SUM ? NULL : work_of;
        desc.arg_size = sizeof(arguments);
        status = filch_codelet_create(built->runtime, &desc, &built->codelets[k]);
    }
    return status;
}

static filch_status build(void *state, bench_built *built)
{
    cg *s = state;
    bench_cg_system *a = &s->system;
    if (a->blocks == 0) {
        size_t wanted = BLOCKS_A_DEVICE * (size_t)filch_device_count(built->runtime);
        size_t most = a->g < BLOCKS_MAX ? a->g : BLOCKS_MAX;
        a->blocks = wanted < most ? wanted : most;
    }
    filch_status status = make_handles(s, built);
    if (status == FILCH_OK)
        status = make_codelets(s, built);
    if (status == FILCH_OK)
        status = add_init(s, built);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    for (size_t k = 0; k < s->steps_a_graph && status == FILCH_OK; k++)
        status = add_iteration(s, built, built->graph);
    return status;
}

/* --- Runs --- */

static void reset(void *state)
{
    cg *s = state;
    bench_marks_reset(s->marks, s->system.blocks);
}

static size_t jobs(const void *state)
{
    const cg *s = state;
    return s->system.iterations / s->steps_a_graph;
}

static bool moves(const void *state, bench_moves *of)
{
    const cg *s = state;
    *of = bench_marks_sum(s->marks, s->system.blocks);
    return !s->is_idle;
}

static filch_status compare(cg *s, const double *x, filch_error *error)
{
    const bench_cg_system *a = &s->system;
    filch_status status = FILCH_OK;
    if (!s->expected) {
        s->expected = malloc(a->rows * sizeof *s->expected);
        status = s->expected ? bench_cg_solve(a, s->expected, error)
                             : bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory");
    }
    for (size_t row = 0; row < a->rows && status == FILCH_OK; row++)
        if (x[row] != s->expected[row])
            status = bench_fail(error, FILCH_DATA, "check", 0,
                                "row %zu is %.17g in place of %.17g, which one thread computes",
                                row, x[row], s->expected[row]);
    return status;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    cg *s = state;
    *residual = bench_cg_backward_error(&s->system, s->vectors[X]);
    return compare(s, s->vectors[X], error);
}

/* A solution that nobody has computed since is none. */
static filch_status check_begin(void *state, bool *rebuild, filch_error *error)
{
    cg *s = state;
    (void)rebuild;
    (void)error;
    for (size_t row = 0; row < s->system.rows; row++)
        s->vectors[X][row] = NAN;
    return FILCH_OK;
}

static void check_end(void *state)
{
    (void)state;
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    cg *s = state;
    if (!s->theirs && !(s->theirs = calloc(s->system.rows, sizeof *s->theirs)))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    s->work = (bench_peer_work){.kind = BENCH_PEER_CG,
                                .workers = workers,
                                .n = s->system.g,
                                .problem = &s->system,
                                .c = s->theirs};
    *work = &s->work;
    return FILCH_OK;
}

static filch_status agree(void *state, filch_error *error)
{
    cg *s = state;
    return compare(s, s->theirs, error);
}

const bench_workload bench_cg = {
    .name = "cg",
    .help = "conjugate gradients on the host, on a grid of n^3 points by blocks",
    .unit = "row",
    .takes_slow = true,
    .takes = BENCH_TAKES_STEPS | BENCH_TAKES_STRIPS | BENCH_TAKES_STEPS_A_GRAPH,
    .waits = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .jobs = jobs,
    .moves = moves,
    .check = check,
    .check_begin = check_begin,
    .check_end = check_end,
    .peer = peer,
    .agree = agree,
};
