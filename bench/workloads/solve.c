/* SPDX-License-Identifier: Apache-2.0 */
/* A system with one right side, solved to double precision by LU in lower precision, refinement
 * and, where that does not converge, LU in double precision (kernels/dense/mixed.h). The graph is
 * the factorization; what follows depends on its results, and is part of the timed run, too. */
#include "kernels/dense/mixed.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "workloads/square.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum handle { MATRIX, RIGHT, SOLUTION };
enum codelet { FETCH };

typedef struct solve {
    bench_square square; /* the first member */
    bench_factor factor;
    bool is_chosen; /* the factor, by the user */
    double *b, *x;
    double *theirs; /* the peer's solution; null: there is none */
    bool is_solved;
    fl_mixed_result result;
} solve;

/* Of one runtime. */
typedef struct part {
    fl_dense *dense;
    fl_mixed *mixed;
    fl_columns b, x;
} part;

static void teardown(void *state)
{
    solve *s = state;
    bench_square_close(&s->square);
    free(s->b);
    free(s->x);
    free(s->theirs);
    free(s);
}

static filch_status make_vectors(solve *s, uint64_t seed, filch_error *error)
{
    s->b = calloc(s->square.n, sizeof *s->b);
    s->x = calloc(s->square.n, sizeof *s->x);
    if (!s->b || !s->x)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory");
    bench_dense_fill(s->square.n, 1, s->square.n, s->b, (seed ? seed : 1) + 1);
    return FILCH_OK;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    if (options->precision == BENCH_SINGLE)
        return bench_fail(error, FILCH_UNSUPPORTED, "--precision", 0,
                          "solve solves to double precision; see --factor");
    if (bench_is_simulated(options))
        return bench_fail(error, FILCH_UNSUPPORTED, "--devices", 0,
                          "solve depends on its numbers: simulated devices have no times for it");
    solve *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "solve", 0, "no memory");
    s->is_chosen = options->factor != BENCH_FACTOR_NONE;
    s->factor = s->is_chosen ? options->factor : BENCH_FACTOR_SINGLE;
    /* Each step of the refinement reads the matrix. A managed handle keeps it on the devices
     * between steps. */
    s->square.is_managed = true;
    filch_status status = bench_square_open(&s->square, BENCH_SQUARE_COLUMNS, options, error);
    if (status == FILCH_OK)
        status = make_vectors(s, options->seed, error);
    if (status != FILCH_OK) {
        teardown(s);
        return status;
    }
    *state = s;
    return FILCH_OK;
}

static int product_of(const solve *s)
{
    static const int products[] = {[BENCH_FACTOR_TF32] = FL_VENDOR_COMPUTE_TF32,
                                   [BENCH_FACTOR_BF16] = FL_VENDOR_COMPUTE_BF16,
                                   [BENCH_FACTOR_FP16] = FL_VENDOR_COMPUTE_FP16,
                                   [BENCH_FACTOR_TF32X3] = FL_DENSE_TF32X3,
                                   [BENCH_FACTOR_SINGLE] = FL_VENDOR_COMPUTE_SINGLE};
    return products[s->factor];
}

/* Where no factor is asked for the harness chooses one on GPUs; cores have only single precision.
 */
static const struct {
    bench_factor factor;
    fl_panels panels;
    const char *text;
} ways[] = {{BENCH_FACTOR_SINGLE, FL_PANELS_VENDOR, "single, cuSOLVER's panels"},
            {BENCH_FACTOR_SINGLE, FL_PANELS_OWN, "single, filch's panels"},
            {BENCH_FACTOR_TF32X3, FL_PANELS_VENDOR, "tf32x3, cuSOLVER's panels"},
            {BENCH_FACTOR_TF32X3, FL_PANELS_OWN, "tf32x3, filch's panels"},
            {BENCH_FACTOR_TF32, FL_PANELS_VENDOR, "tf32, cuSOLVER's panels"},
            {BENCH_FACTOR_TF32, FL_PANELS_OWN, "tf32, filch's panels"}};

static const char *way(const void *state, size_t index)
{
    const solve *s = state;
    if (s->is_chosen || !s->square.offload.vendor)
        return bench_square_way(state, index);
    return index < sizeof ways / sizeof *ways ? ways[index].text : NULL;
}

static void way_set(void *state, size_t index)
{
    solve *s = state;
    if (s->is_chosen) {
        bench_square_way_set(state, index);
        return;
    }
    s->factor = ways[index].factor;
    s->square.panels = ways[index].panels;
}

static void describe_result(const fl_mixed_result *r, char *text, size_t size)
{
    if (r->way == FL_MIXED_REFINED)
        snprintf(text, size, "refined in %u steps", r->refinements);
    else if (r->way == FL_MIXED_GMRES)
        snprintf(text, size, "refined in %u steps, GMRES %u", r->refinements, r->iterations);
    else
        snprintf(text, size, "refined in %u steps, GMRES %u, then in double", r->refinements,
                 r->iterations);
}

static void describe(const void *state, bench_problem *problem)
{
    const solve *s = state;
    double n = (double)s->square.n;
    char by[48];
    bench_square_describe(&s->square, fl_flops_lu(n, n) + 2 * n * n, problem);
    snprintf(problem->variant, sizeof problem->variant, "%s", bench_factor_name(s->factor));
    if (s->is_solved)
        describe_result(&s->result, problem->how, sizeof problem->how);
    snprintf(problem->text, sizeof problem->text,
             "solution of a random system of order %zu by LU in %s, blocks of %zu columns%s",
             s->square.n, bench_factor_name(s->factor), s->square.tile,
             bench_offload_text(&s->square.offload, by, sizeof by));
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t on_host[] = {64, 128, 256, 512};
    const solve *s = state;
    return bench_square_tiles(&s->square, on_host, sizeof on_host / sizeof *on_host, tiles_out,
                              capacity);
}

/* --- In a runtime --- */

static filch_status make_vector(const solve *s, bench_built *built, enum handle which)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = which == RIGHT ? s->b : s->x;
    desc.element = sizeof *s->x;
    desc.rows = desc.ld = s->square.n;
    desc.cols = desc.tile_cols = 1;
    desc.label = which == RIGHT ? "right side" : "solution";
    desc.flags = s->square.is_resident ? FILCH_DATA_MANAGED : 0;
    return filch_data_create(built->runtime, &desc, &built->data[which]);
}

static int enqueue_nothing(const filch_call *call, const filch_lane *lane, void *own)
{
    (void)call;
    (void)lane;
    (void)own;
    return 0;
}

static filch_status add_fetch(bench_built *built, filch_data *data, size_t block, uint32_t affinity)
{
    const filch_access accesses[] = {FILCH_R(data, 0, block)};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[FETCH];
    desc.accesses = accesses;
    desc.access_count = 1;
    desc.affinity = affinity;
    return filch_graph_add(built->restore, &desc, NULL);
}

/* Reads the input, so that it is on the devices before the clock starts. */
static filch_status add_restore(const solve *s, bench_built *built, const fl_columns *a)
{
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.enqueue = enqueue_nothing;
    codelet.name = "fetch";
    codelet.host = bench_run_nothing;
    codelet.cuda = s->square.offload.has_gpus ? &cuda : NULL;
    filch_status status = filch_codelet_create(built->runtime, &codelet, &built->codelets[FETCH]);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->restore);
    for (size_t j = 0; j < fl_columns_count(a) && status == FILCH_OK; j++)
        status = add_fetch(built, a->data, j, bench_square_owner(&s->square, 0, j));
    return status == FILCH_OK ? add_fetch(built, built->data[RIGHT], 0, FILCH_ANY_DEVICE) : status;
}

static filch_status add_factorization(const solve *s, bench_built *built, const fl_columns *a)
{
    part *p = built->own;
    p->b = (fl_columns){.data = built->data[RIGHT], .rows = s->square.n, .cols = 1, .tile = 1};
    p->x = (fl_columns){.data = built->data[SOLUTION], .rows = s->square.n, .cols = 1, .tile = 1};
    const fl_mixed_form form = {.compute = product_of(s), .panels = s->square.panels};
    filch_status status = fl_mixed_open(p->dense, a, form, &p->mixed);
    return status == FILCH_OK ? fl_mixed_factor(p->mixed, built->graph) : status;
}

static filch_status build(void *state, bench_built *built)
{
    solve *s = state;
    part *p = built->own = calloc(1, sizeof *p);
    if (!p)
        return FILCH_OUT_OF_MEMORY;
    bench_square_meet(&s->square, built->runtime);
    filch_status status = bench_square_dense(&s->square, built->runtime, sizeof(float), &p->dense);
    if (status == FILCH_OK)
        status = bench_square_data(&s->square, built, s->square.a, MATRIX);
    for (int k = RIGHT; k <= SOLUTION && status == FILCH_OK; k++)
        status = make_vector(s, built, (enum handle)k);
    const fl_columns a = bench_square_columns(&s->square, built->data[MATRIX]);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    if (status == FILCH_OK)
        status = add_factorization(s, built, &a);
    if (status != FILCH_OK || !s->square.is_resident)
        return status;
    built->result = built->data[SOLUTION];
    return add_restore(s, built, &a);
}

static void unbuild(void *state, bench_built *built)
{
    part *p = built->own;
    (void)state;
    if (!p)
        return;
    fl_mixed_close(p->mixed);
    fl_dense_close(p->dense);
    free(p);
}

/* As if the host had written another matrix: the next run brings it again. */
static filch_status discard_copies(const solve *s, const bench_built *built)
{
    if (s->square.is_resident)
        return FILCH_OK;
    filch_status status = filch_data_acquire(built->data[MATRIX], FILCH_WRITE);
    return status == FILCH_OK ? filch_data_release(built->data[MATRIX]) : status;
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    solve *s = state;
    part *p = built->own;
    filch_error inner = FILCH_ERROR_INIT;
    filch_status status = fl_mixed_solve(p->mixed, &p->b, &p->x, &s->result, &inner);
    s->is_solved = status == FILCH_OK;
    if (status == FILCH_OK)
        status = discard_copies(s, built);
    if (status == FILCH_OK)
        return FILCH_OK;
    if (status == FILCH_DATA && s->result.info == 0)
        return bench_fail(error, status, "matrix", 0, "an element is no number");
    if (status == FILCH_DATA)
        return bench_square_singular(s->result.info, error);
    if (status != FILCH_TASK_FAILED)
        return bench_runtime_failed(built->runtime, status, "solve", error);
    if (!fl_vendor_explain(inner.native_code, &inner))
        return bench_fail(error, status, "solve", 0, "%s", inner.text);
    return bench_fail(error, status, inner.label, 0, "%s", inner.text);
}

/* --- Results --- */

/* The tolerance of LAPACK's dsgesv, which filch keeps with each column of A by itself; another norm
 * needs some more. cuSOLVER's GMRES stops earlier: order 16384 with 1.8e-13 where it factored in
 * TF32, with 7.1e-13 in FP16. */
#define TOLERANCES 4
#define THEIR_TOLERANCES 100

static filch_status check_solution(const solve *s, const double *x, double tolerances,
                                   double *residual, filch_error *error)
{
    double most = tolerances * sqrt((double)s->square.n) * DBL_EPSILON;
    return bench_square_solves(&s->square, x, s->b, most, residual, error);
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    const solve *s = state;
    return check_solution(s, s->x, TOLERANCES, residual, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    solve *s = state;
    if (!s->theirs)
        s->theirs = calloc(s->square.n, sizeof *s->theirs);
    if (!s->theirs)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    *work = bench_square_work(&s->square, BENCH_PEER_SOLVE, workers);
    (*work)->b = s->b;
    (*work)->c = s->theirs;
    /* cuSOLVER has no tf32x3. */
    (*work)->product =
        s->is_chosen && s->factor != BENCH_FACTOR_TF32X3 ? product_of(s) : BENCH_ANY_PRODUCT;
    return FILCH_OK;
}

static filch_status agree(void *state, filch_error *error)
{
    const solve *s = state;
    double residual;
    filch_status status = check_solution(s, s->x, TOLERANCES, &residual, error);
    return status == FILCH_OK ? check_solution(s, s->theirs, THEIR_TOLERANCES, &residual, error)
                              : status;
}

const bench_workload bench_solve = {
    .name = "solve",
    .help = "solves a system to double precision by LU in lower precision and refinement",
    .unit = "flop",
    .takes = BENCH_TAKES_FACTOR,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .tiles = tiles,
    .tile_set = bench_square_tile_set,
    .way = way,
    .way_set = way_set,
    .build = build,
    .unbuild = unbuild,
    .finish = finish,
    .explain = bench_offload_explain,
    .check = check,
    .peer = peer,
    .agree = agree,
};
