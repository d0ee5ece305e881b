/* SPDX-License-Identifier: Apache-2.0 */
/* LU with partial pivoting and QR of a dense square matrix, by block columns (kernels/dense/). On
 * GPUs panels and updates are calls of cuBLAS and cuSOLVER. */
#include "problems/factor_check.h"
#include "support/fail.h"
#include "workloads/square.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Roundoffs of an error (factor_check.h), over the root of the order where that is larger than 1.
 * In single precision one of them is the input's. Rows of signs find the largest of many elements.
 */
#define ERROR_ROUNDOFFS 16

enum kind { LU, QR };
enum handle { MATRIX, INPUT, RESULT, BETWEEN }; /* between: a temporary */
enum codelet { COPY };

typedef struct factor {
    bench_square square; /* the first member */
    enum kind kind;
    int32_t *pivots;
    void *tau;
    int32_t *their_pivots;
    void *their_tau;
} factor;

/* Of one runtime. */
typedef struct part {
    fl_dense *dense;
    fl_lu *lu;
    fl_qr *qr;
} part;

static void teardown(void *state)
{
    factor *f = state;
    bench_square_close(&f->square);
    free(f->pivots);
    free(f->tau);
    free(f->their_pivots);
    free(f->their_tau);
    free(f);
}

/* Pivots and tau, of which one is used. */
static filch_status make_vectors(const factor *f, int32_t **pivots, void **tau, filch_error *error)
{
    *pivots = calloc(f->square.n, sizeof **pivots);
    *tau = calloc(f->square.n, f->square.kernels->element);
    return *pivots && *tau ? FILCH_OK
                           : bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory");
}

static filch_status setup(enum kind kind, const bench_options *options, filch_error *error,
                          void **state)
{
    factor *f = calloc(1, sizeof *f);
    if (!f)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "factor", 0, "no memory");
    f->kind = kind;
    filch_status status = bench_square_open(&f->square, BENCH_SQUARE_COLUMNS, options, error);
    if (status == FILCH_OK)
        status = bench_square_add_result(&f->square, error);
    if (status == FILCH_OK)
        status = make_vectors(f, &f->pivots, &f->tau, error);
    if (status != FILCH_OK) {
        teardown(f);
        return status;
    }
    *state = f;
    return FILCH_OK;
}

static filch_status setup_lu(const bench_options *options, filch_error *error, void **state)
{
    return setup(LU, options, error, state);
}

static filch_status setup_qr(const bench_options *options, filch_error *error, void **state)
{
    return setup(QR, options, error, state);
}

static void describe(const void *state, bench_problem *problem)
{
    const factor *f = state;
    double n = (double)f->square.n;
    char by[48];
    bench_square_describe(&f->square, f->kind == LU ? fl_flops_lu(n, n) : fl_flops_qr(n, n),
                          problem);
    snprintf(problem->text, sizeof problem->text,
             "%s factorization of a random matrix of order %zu%s, blocks of %zu columns%s",
             f->kind == LU ? "LU" : "QR", f->square.n,
             f->square.kernels == &bench_kernels_single ? " in single precision" : "",
             f->square.tile, bench_offload_text(&f->square.offload, by, sizeof by));
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t on_host[] = {48, 64, 96, 128, 192, 256, 384, 512};
    const factor *f = state;
    return bench_square_tiles(&f->square, on_host, sizeof on_host / sizeof *on_host, tiles_out,
                              capacity);
}

/* --- In a runtime --- */

static filch_status add_staged(const factor *f, bench_built *built)
{
    const part *p = built->own;
    fl_staging staging = {.rows = 0};
    filch_status status =
        bench_square_staging(&f->square, built, INPUT, RESULT, f->kind == LU, &staging);
    if (status != FILCH_OK)
        return status;
    return f->kind == LU ? fl_lu_factor_staged(p->lu, &staging, built->graph)
                         : fl_qr_factor_staged(p->qr, &staging, built->graph);
}

static filch_status add_factorization(const factor *f, bench_built *built)
{
    const fl_columns a = bench_square_columns(&f->square, built->data[MATRIX]);
    part *p = built->own;
    filch_status status = f->kind == LU
                              ? fl_lu_open(p->dense, &a, f->square.panels, &p->lu)
                              : fl_qr_open(p->dense, &a, f->tau, f->square.panels, &p->qr);
    if (status != FILCH_OK)
        return status;
    if (f->square.is_staged)
        return add_staged(f, built);
    return f->kind == LU ? fl_lu_factor(p->lu, built->graph) : fl_qr_factor(p->qr, built->graph);
}

static filch_status build(void *state, bench_built *built)
{
    factor *f = state;
    bench_square *square = &f->square;
    part *p = built->own = calloc(1, sizeof *p);
    if (!p)
        return FILCH_OUT_OF_MEMORY;
    bench_square_meet(square, built->runtime);
    filch_status status =
        bench_square_dense(square, built->runtime, square->kernels->element, &p->dense);
    if (status == FILCH_OK)
        status =
            bench_square_data(square, built, square->is_staged ? NULL : square->result, MATRIX);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    if (status == FILCH_OK)
        status = add_factorization(f, built);
    if (status != FILCH_OK || !square->is_resident)
        return status;
    built->result = built->data[MATRIX];
    status = bench_square_data(square, built, square->input, INPUT);
    return status == FILCH_OK ? bench_square_restore(square, built, INPUT, MATRIX, COPY) : status;
}

static void unbuild(void *state, bench_built *built)
{
    part *p = built->own;
    (void)state;
    if (!p)
        return;
    fl_lu_close(p->lu);
    fl_qr_close(p->qr);
    fl_dense_close(p->dense);
    free(p);
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    factor *f = state;
    const part *p = built->own;
    int32_t info = f->kind == LU && !f->square.is_idle ? fl_lu_result(p->lu, f->pivots) : 0;
    return info == 0 ? FILCH_OK : bench_square_singular(info, error);
}

/* --- Results --- */

static filch_status check_result(const factor *f, const void *result, const int32_t *pivots,
                                 const void *tau, double *residual, filch_error *error)
{
    const bench_factor_claim claim = {.n = f->square.n,
                                      .a = f->square.a,
                                      .factor = result,
                                      .get = f->square.kernels->get,
                                      .pivots = pivots,
                                      .tau = tau,
                                      .seed = 1};
    double most = ERROR_ROUNDOFFS * f->square.kernels->unit * sqrt((double)f->square.n),
           orthogonality = 0;
    bool is_done = f->kind == LU ? bench_lu_check(&claim, residual)
                                 : bench_qr_check(&claim, residual, &orthogonality);
    if (!is_done)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for some vectors");
    filch_status status = bench_square_accept(*residual, most, error);
    if (status != FILCH_OK)
        return status;
    if (!(orthogonality <= most))
        return bench_fail(error, FILCH_DATA, "check", 0,
                          "the reflectors are not orthogonal: %.3g is above %.3g", orthogonality,
                          most);
    return FILCH_OK;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    const factor *f = state;
    return check_result(f, f->square.result, f->pivots, f->tau, residual, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    factor *f = state;
    filch_status status = bench_square_add_theirs(&f->square, error);
    if (status == FILCH_OK && !f->their_tau)
        status = make_vectors(f, &f->their_pivots, &f->their_tau, error);
    bool is_lu = f->kind == LU;
    *work = bench_square_work(&f->square, is_lu ? BENCH_PEER_LU : BENCH_PEER_QR, workers);
    (*work)->pivots = is_lu ? f->their_pivots : NULL;
    (*work)->tau = is_lu ? NULL : f->their_tau;
    return status;
}

/* Pivots may differ where elements are as large: what must agree is that both are factors. */
static filch_status agree(void *state, filch_error *error)
{
    const factor *f = state;
    double residual;
    filch_status status = check_result(f, f->square.result, f->pivots, f->tau, &residual, error);
    return status == FILCH_OK
               ? check_result(f, f->square.theirs, f->their_pivots, f->their_tau, &residual, error)
               : status;
}

#define SHARED                                                                        \
    .unit = "flop", .takes_memory = true, .teardown = teardown, .describe = describe, \
    .tiles = tiles, .tile_set = bench_square_tile_set, .way = bench_square_way,       \
    .way_set = bench_square_way_set, .build = build, .unbuild = unbuild,              \
    .reset = bench_square_reset, .finish = finish, .explain = bench_offload_explain,  \
    .check = check, .peer = peer, .agree = agree

const bench_workload bench_lu = {
    .name = "lu",
    .help = "factors a matrix with partial pivoting, by block columns",
    .setup = setup_lu,
    SHARED,
};

const bench_workload bench_qr = {
    .name = "qr",
    .help = "factors a matrix by Householder reflectors, by block columns",
    .setup = setup_qr,
    SHARED,
};
