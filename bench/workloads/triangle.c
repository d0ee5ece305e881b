/* SPDX-License-Identifier: Apache-2.0 */
/* Routines of BLAS and LAPACK that make a triangle or solve by triangles, of a square matrix and as
 * many right sides (kernels/dense/). On GPUs tasks are calls of cuBLAS. Of systems the
 * factorization is made beforehand, and is no part of a run. */
#include "problems/dense.h"
#include "problems/factor_check.h"
#include "problems/product_check.h"
#include "support/fail.h"
#include "workloads/square.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Over the root of the order: of a product's elements, as gemm.c says; of a backward error
 * (factor_check.h), also for what the check itself rounds. In single precision one of them is the
 * input's. */
#define PRODUCT_ROUNDOFFS 8
#define SOLUTION_ROUNDOFFS 4

enum handle { LEFT, RESULT, RIGHT };
enum codelet { COPY };
/* What the left matrix is of the input. */
enum factors { NONE, CHOLESKY, LU };

typedef struct triangle triangle;

/* What the routines differ in. */
typedef struct routine {
    const char *text;
    bench_square_kind kind;
    bench_peer_kind peer;
    double (*work)(double n);
    /* Adds the graph that makes the result of what it holds and of the left matrix. */
    filch_status (*add)(triangle *t, bench_built *built);
    enum factors factors;
    bool has_right;  /* else a result is a product of the left matrix, whatever was there */
    bench_part part; /* of the matrix that the solution is one of */
} routine;

struct triangle {
    bench_square square; /* the first member */
    const routine *routine;
    void *left;      /* the input, or LAPACK's factors; of LU for peers alone, null before one */
    int32_t *pivots; /* with them */
    double *b;       /* right sides; null: there are none */
    void *right;     /* b, or in single precision its rounded copy */
    int32_t info;    /* of the last LU factorization */
};

/* Of one runtime. */
typedef struct part {
    fl_dense *dense;
    fl_lu *lu;
    fl_tile_graph tiled; /* without the graph, which is the runtime's */
    void *factors;       /* filch's, whose pivots may be others than those of another runtime */
} part;

/* --- Routines --- */

static double work_syrk(double n)
{
    return bench_flops_syrk(n, n);
}

static double work_trsm(double n)
{
    return bench_flops_trsm(n, n);
}

static double work_system(double n)
{
    return 2 * bench_flops_trsm(n, n);
}

static fl_tiled tiled(const triangle *t, const bench_built *built, enum handle which)
{
    uint32_t count = (uint32_t)((t->square.n + t->square.tile - 1) / t->square.tile);
    bool is_whole = which == LEFT && !t->routine->has_right && !t->square.offload.has_memories;
    uint64_t tile = t->square.tile;
    return (fl_tiled){built->data[which], count, is_whole ? 1 : count, tile,
                      is_whole ? t->square.n : tile};
}

/* A product's tasks run by priority, a solve's by what waits for them. */
static filch_status open_graph(const triangle *t, const bench_built *built, fl_tiles *tiles,
                               fl_tile_graph *graph)
{
    filch_status status = bench_square_routines(&t->square, built->runtime, tiles);
    if (status != FILCH_OK)
        return status;
    fl_tile_graph_open(graph, tiles, t->square.kernels == &bench_kernels_single,
                       t->routine->has_right);
    return graph->status;
}

/* What tasks were given stays until the graph has ended. */
static filch_status keep_graph(bench_built *built, const fl_tile_graph *graph)
{
    part *p = built->own;
    built->graph = graph->graph;
    p->tiled = *graph;
    p->tiled.graph = NULL;
    return graph->status;
}

static filch_status add_syrk(triangle *t, bench_built *built)
{
    const fl_vendor_form form = {.fill = FL_VENDOR_FILL_LOWER, .op_a = FL_VENDOR_OP_N, .alpha = 1};
    const fl_tiled a = tiled(t, built, LEFT), c = tiled(t, built, RESULT);
    fl_tiles tiles;
    fl_tile_graph graph;
    filch_status status = open_graph(t, built, &tiles, &graph);
    if (status != FILCH_OK)
        return status;
    fl_tiles_syrk(&graph, &form, &a, &c);
    return keep_graph(built, &graph);
}

static filch_status add_trsm(triangle *t, bench_built *built)
{
    const fl_vendor_form form = {.side = FL_VENDOR_SIDE_LEFT,
                                 .fill = FL_VENDOR_FILL_LOWER,
                                 .op_a = FL_VENDOR_OP_N,
                                 .diagonal = FL_VENDOR_NON_UNIT,
                                 .alpha = 1};
    const fl_tiled a = tiled(t, built, LEFT), b = tiled(t, built, RESULT);
    fl_tiles tiles;
    fl_tile_graph graph;
    filch_status status = open_graph(t, built, &tiles, &graph);
    if (status != FILCH_OK)
        return status;
    fl_tiles_trsm(&graph, &form, &a, &b);
    return keep_graph(built, &graph);
}

static filch_status add_potrs(triangle *t, bench_built *built)
{
    const fl_tiled a = tiled(t, built, LEFT), b = tiled(t, built, RESULT);
    fl_tiles tiles;
    fl_tile_graph graph;
    filch_status status = open_graph(t, built, &tiles, &graph);
    if (status != FILCH_OK)
        return status;
    fl_tiles_potrs(&graph, FL_VENDOR_FILL_LOWER, &a, &b);
    return keep_graph(built, &graph);
}

/* Not timed. */
static filch_status factor(triangle *t, part *p, filch_runtime *runtime)
{
    filch_graph *graph = NULL;
    filch_status status = filch_graph_create(runtime, NULL, &graph);
    if (status != FILCH_OK)
        return status;
    status = fl_lu_factor(p->lu, graph);
    if (status == FILCH_OK)
        status = filch_graph_run(graph, NULL, NULL);
    if (status == FILCH_OK)
        t->info = t->square.is_idle ? 0 : fl_lu_result(p->lu, NULL);
    filch_status destroyed = filch_graph_destroy(graph);
    return status == FILCH_OK ? destroyed : status;
}

static filch_status add_getrs(triangle *t, bench_built *built)
{
    part *p = built->own;
    const fl_columns a = bench_square_columns(&t->square, built->data[LEFT]);
    const fl_columns b = bench_square_columns(&t->square, built->data[RESULT]);
    filch_status status =
        bench_square_dense(&t->square, built->runtime, t->square.kernels->element, &p->dense);
    if (status == FILCH_OK)
        status = fl_lu_open(p->dense, &a, t->square.panels, &p->lu);
    if (status == FILCH_OK)
        status = factor(t, p, built->runtime);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    return status == FILCH_OK ? fl_lu_solve(p->lu, FL_VENDOR_OP_N, &b, built->graph) : status;
}

static const routine syrk = {.text = "Lower triangle of A A'",
                             .kind = BENCH_SQUARE_FACTOR,
                             .peer = BENCH_PEER_SYRK,
                             .work = work_syrk,
                             .add = add_syrk};
static const routine trsm = {.text = "Solution of a lower triangular system",
                             .kind = BENCH_SQUARE_TRIANGLE,
                             .peer = BENCH_PEER_TRSM,
                             .work = work_trsm,
                             .add = add_trsm,
                             .has_right = true,
                             .part = BENCH_PART_LOWER};
static const routine potrs = {.text = "Solution, by a Cholesky factor, of a system",
                              .kind = BENCH_SQUARE_TRIANGLE,
                              .peer = BENCH_PEER_POTRS,
                              .work = work_system,
                              .add = add_potrs,
                              .factors = CHOLESKY,
                              .has_right = true,
                              .part = BENCH_PART_FULL};
static const routine getrs = {.text = "Solution, by LU factors, of a system",
                              .kind = BENCH_SQUARE_SYSTEM,
                              .peer = BENCH_PEER_GETRS,
                              .work = work_system,
                              .add = add_getrs,
                              .factors = LU,
                              .has_right = true,
                              .part = BENCH_PART_FULL};

/* --- Input --- */

static void teardown(void *state)
{
    triangle *t = state;
    const void *input = t->square.input;
    bench_square_close(&t->square);
    if (t->left != input)
        free(t->left);
    free(t->pivots);
    if (t->right != t->b)
        free(t->right);
    free(t->b);
    free(t);
}

static filch_status make_right(triangle *t, uint64_t seed, filch_error *error)
{
    bench_square *s = &t->square;
    void *b = NULL;
    filch_status status = bench_squares_alloc(s->n, 1, sizeof *t->b, "--n", error, &b);
    t->right = t->b = b;
    if (status != FILCH_OK)
        return status;
    bench_dense_fill(s->n, s->n, s->n, t->b, (seed ? seed : 1) + 1);
    if (s->kernels == &bench_kernels_double)
        return FILCH_OK;
    t->right = NULL;
    status = bench_squares_alloc(s->n, 1, s->kernels->element, "--n", error, &t->right);
    if (status == FILCH_OK)
        (void)s->kernels->round(s->n * s->n, t->b, t->right); /* all below 1 */
    return status;
}

/* LAPACK's factors, by all cores. */
static filch_status make_factors(triangle *t, const char *option, filch_error *error)
{
    bench_square *s = &t->square;
    const bench_kernels *kernels = s->kernels;
    void *left = NULL;
    filch_status status = bench_squares_alloc(s->n, 1, kernels->element, option, error, &left);
    t->left = left;
    if (status != FILCH_OK)
        return status;
    t->pivots = calloc(s->n, sizeof *t->pivots);
    if (!t->pivots)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, option, 0, "no memory");
    memcpy(left, s->input, s->n * s->n * kernels->element);
    if (s->is_idle)
        return FILCH_OK;
    bool is_lu = t->routine->factors == LU;
    int before = bench_blas_threads_set(0);
    int info =
        is_lu ? kernels->getrf(s->n, left, s->n, t->pivots) : kernels->potrf(s->n, left, s->n);
    bench_blas_threads_set(before);
    if (info > 0 && is_lu)
        return bench_square_singular(info, error);
    if (info > 0)
        return bench_fail(error, FILCH_DATA, "matrix", 0,
                          "it is not positive definite: the pivot in row %d is not positive", info);
    return FILCH_OK;
}

static filch_status setup(const routine *of, const bench_options *options, filch_error *error,
                          void **state)
{
    triangle *t = calloc(1, sizeof *t);
    if (!t)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory");
    t->routine = of;
    filch_status status = bench_square_open(&t->square, of->kind, options, error);
    if (status == FILCH_OK)
        status = bench_square_add_result(&t->square, error);
    if (status == FILCH_OK && of->has_right)
        status = make_right(t, options->seed, error);
    if (of->factors == NONE)
        t->left = t->square.input;
    else if (status == FILCH_OK && of->factors == CHOLESKY)
        status = make_factors(t, "--n", error);
    if (status != FILCH_OK) {
        teardown(t);
        return status;
    }
    *state = t;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const triangle *t = state;
    const bench_square *s = &t->square;
    bool is_tiled = bench_square_is_tiled(s);
    char by[48];
    bench_square_describe(s, t->routine->work((double)s->n), problem);
    snprintf(problem->text, sizeof problem->text, "%s of order %zu%s%s, %s of %zu%s%s",
             t->routine->text, s->n, t->routine->has_right ? " with as many right sides" : "",
             s->kernels == &bench_kernels_single ? " in single precision" : "",
             is_tiled ? "tiles" : "blocks", s->tile, is_tiled ? "" : " columns",
             bench_offload_text(&s->offload, by, sizeof by));
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t on_host[] = {64, 96, 128, 192, 256, 384, 512, 1024};
    const triangle *t = state;
    return bench_square_tiles(&t->square, on_host, sizeof on_host / sizeof *on_host, tiles_out,
                              capacity);
}

/* --- In a runtime --- */

static filch_status make_data(const triangle *t, bench_built *built, enum handle which)
{
    static const char *const labels[] = {
        [LEFT] = "left", [RESULT] = "result", [RIGHT] = "right sides"};
    const bench_square *s = &t->square;
    const part *p = built->own;
    void *const values[] = {
        [LEFT] = p->factors ? p->factors : t->left, [RESULT] = s->result, [RIGHT] = t->right};
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = values[which];
    desc.element = s->kernels->element;
    desc.rows = desc.cols = desc.ld = s->n;
    desc.tile_rows = bench_square_is_tiled(s) ? s->tile : 0;
    desc.tile_cols = bench_square_is_tiled(s) && tiled(t, built, which).cols == 1 ? 0 : s->tile;
    desc.label = labels[which];
    desc.flags = s->is_resident ? FILCH_DATA_MANAGED : 0;
    return filch_data_create(built->runtime, &desc, &built->data[which]);
}

/* What will be the LU factors is the input at first. */
static filch_status make_part(triangle *t, bench_built *built)
{
    const bench_square *s = &t->square;
    part *p = built->own = calloc(1, sizeof *p);
    if (!p)
        return FILCH_OUT_OF_MEMORY;
    if (t->routine->factors != LU)
        return FILCH_OK;
    size_t bytes = s->n * s->n * s->kernels->element;
    filch_status status =
        bench_squares_alloc(s->n, 1, s->kernels->element, "--n", NULL, &p->factors);
    if (status == FILCH_OK)
        memcpy(p->factors, s->input, bytes);
    return status;
}

/* Locks pages; deals blocks, and no tiles, which filch places. */
static void meet(triangle *t, const part *p, filch_runtime *runtime)
{
    bench_square *s = &t->square;
    size_t bytes = s->n * s->n * s->kernels->element;
    bench_square_meet(s, runtime);
    bench_offload_pin(&s->offload, p->factors ? p->factors : t->left, bytes);
    if (s->is_resident && t->right)
        bench_offload_pin(&s->offload, t->right, bytes);
    if (bench_square_is_tiled(s))
        s->dealt = 0;
}

static filch_status build(void *state, bench_built *built)
{
    triangle *t = state;
    bool is_resident = t->square.is_resident;
    filch_status status = make_part(t, built);
    if (status != FILCH_OK)
        return status;
    meet(t, built->own, built->runtime);
    status = make_data(t, built, LEFT);
    if (status == FILCH_OK)
        status = make_data(t, built, RESULT);
    if (status == FILCH_OK)
        status = t->routine->add(t, built);
    built->result = is_resident ? built->data[RESULT] : NULL;
    if (status != FILCH_OK || !is_resident || !t->right)
        return status;
    status = make_data(t, built, RIGHT);
    return status == FILCH_OK ? bench_square_restore(&t->square, built, RIGHT, RESULT, COPY)
                              : status;
}

/* The handle of the factors goes before their memory. */
static void unbuild(void *state, bench_built *built)
{
    triangle *t = state;
    part *p = built->own;
    if (!p)
        return;
    fl_tile_graph_close(&p->tiled);
    fl_lu_close(p->lu);
    fl_dense_close(p->dense);
    if (p->factors) {
        if (built->data[LEFT])
            (void)filch_data_destroy(built->data[LEFT]);
        built->data[LEFT] = NULL;
        bench_offload_unpin(&t->square.offload, p->factors);
        free(p->factors);
    }
    free(p);
}

static void reset(void *state)
{
    triangle *t = state;
    const bench_square *s = &t->square;
    if (t->right && !s->is_idle && !s->is_resident)
        memcpy(s->result, t->right, s->n * s->n * s->kernels->element);
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    const triangle *t = state;
    (void)built;
    return t->info == 0 ? FILCH_OK : bench_square_singular(t->info, error);
}

/* --- Results --- */

static filch_status check_product(const triangle *t, const void *result, double *residual,
                                  filch_error *error)
{
    const bench_square *s = &t->square;
    const bench_product_claim claim = {
        .n = s->n, .a = s->a, .c = result, .get = s->kernels->get, .seed = 1};
    bench_product_errors errors;
    if (!bench_product_check(&claim, &errors))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for the check");
    /* Not fmax, which would lose a not-a-number. */
    *residual = bench_signs_larger(errors.sampled, errors.rows);
    double most = PRODUCT_ROUNDOFFS * sqrt((double)s->n) * s->kernels->unit;
    return *residual <= most
               ? FILCH_OK
               : bench_fail(error, FILCH_DATA, "check", 0,
                            "elements, or sums of them, differ by %.3g of the largest, above %.3g",
                            *residual, most);
}

static filch_status check_result(const triangle *t, const void *result, double *residual,
                                 filch_error *error)
{
    const bench_square *s = &t->square;
    if (!t->routine->has_right)
        return check_product(t, result, residual, error);
    const bench_solution_claim claim = {.n = s->n,
                                        .a = s->a,
                                        .part = t->routine->part,
                                        .x = result,
                                        .get = s->kernels->get,
                                        .b = t->b,
                                        .seed = 1};
    if (!bench_solution_check(&claim, residual))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for the check");
    return bench_square_accept(*residual,
                               SOLUTION_ROUNDOFFS * sqrt((double)s->n) * s->kernels->unit, error);
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    const triangle *t = state;
    return check_result(t, t->square.result, residual, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    triangle *t = state;
    filch_status status = bench_square_add_theirs(&t->square, error);
    if (status == FILCH_OK && !t->left)
        status = make_factors(t, "--versus", error);
    *work = bench_square_work(&t->square, t->routine->peer, workers);
    (*work)->a = t->left;
    (*work)->b = t->right;
    (*work)->pivots = t->routine->factors == LU ? t->pivots : NULL;
    return status;
}

static filch_status agree(void *state, filch_error *error)
{
    const triangle *t = state;
    double residual;
    filch_status status = check_result(t, t->square.result, &residual, error);
    return status == FILCH_OK ? check_result(t, t->square.theirs, &residual, error) : status;
}

/* A workload of that name. */
/* NOLINTBEGIN(bugprone-macro-parentheses): names take none */
#define WORKLOAD(routine_name, help_text)                                                      \
    static filch_status setup_##routine_name(const bench_options *options, filch_error *error, \
                                             void **state)                                     \
    {                                                                                          \
        return setup(&routine_name, options, error, state);                                    \
    }                                                                                          \
    const bench_workload bench_##routine_name = {.name = #routine_name,                        \
                                                 .help = help_text,                            \
                                                 .unit = "flop",                               \
                                                 .setup = setup_##routine_name,                \
                                                 .teardown = teardown,                         \
                                                 .describe = describe,                         \
                                                 .tiles = tiles,                               \
                                                 .tile_set = bench_square_tile_set,            \
                                                 .build = build,                               \
                                                 .unbuild = unbuild,                           \
                                                 .reset = reset,                               \
                                                 .finish = finish,                             \
                                                 .explain = bench_offload_explain,             \
                                                 .check = check,                               \
                                                 .peer = peer,                                 \
                                                 .agree = agree};
/* NOLINTEND(bugprone-macro-parentheses) */

WORKLOAD(syrk, "multiplies a matrix by its transpose, by tiles of a triangle")
WORKLOAD(trsm, "solves a triangular system for many right sides, by tiles")
WORKLOAD(potrs, "solves a system for many right sides by a Cholesky factor, by tiles")
WORKLOAD(getrs, "solves a system for many right sides by LU factors")
