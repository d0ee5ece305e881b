/* SPDX-License-Identifier: Apache-2.0 */
/* LU with partial pivoting and QR of a dense square matrix, by block columns (kernels/dense/). On
 * GPUs panels and updates are calls of cuBLAS and cuSOLVER. */
#include "kernels/dense/dense.h"
#include "offload/offload.h"
#include "problems/dense.h"
#include "problems/factor_check.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 4096
#define HOST_TILE 128
#define GPU_TILE 512
/* LAPACK's 32-bit integers, and the tasks that fit in a usual memory. */
#define N_MAX 1000000
#define TASKS_MAX 2e7
/* Roundoffs of an error (factor_check.h), over the root of the order where that is larger than 1.
 * In single precision one of them is the input's. Rows of signs find the largest of many elements.
 */
#define ERROR_ROUNDOFFS 16

enum kind { LU, QR };
enum handle { MATRIX, INPUT };
enum codelet { COPY };

typedef struct factor {
    enum kind kind;
    size_t n;
    size_t tile; /* columns of a block */
    const bench_kernels *kernels;
    double *a;
    void *input; /* what is factored: a, or in single precision its rounded copy */
    void *result;
    int32_t *pivots;
    void *tau;
    void *theirs; /* the peer's; null: there is none */
    int32_t *their_pivots;
    void *their_tau;
    bool is_idle; /* simulated: bodies compute nothing */
    bool is_resident;
    bool has_tile; /* given or chosen */
    fl_lu_panels panels;
    bench_peer_work work;
    bench_offload offload;
} factor;

/* Of one runtime. */
typedef struct part {
    fl_dense *dense;
    fl_lu *lu;
    fl_qr *qr;
} part;

FL_DENSE_DECLARE
static const fl_dense_host host = FL_DENSE_LINKED;

static filch_status check_size(size_t n, size_t tile, filch_error *error)
{
    if (n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", n, N_MAX);
    if (tile > n)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--tile", 0,
                          "%zu is larger than the matrix, whose order is %zu", tile, n);
    if (tile == 0)
        return FILCH_OK;
    double blocks = ceil((double)n / (double)tile);
    if (blocks * (blocks + 1) / 2 > TASKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--tile", 0,
                          "%zu is too small: order %zu makes %.3g tasks of it, above %.3g", tile, n,
                          blocks * (blocks + 1) / 2, TASKS_MAX);
    return FILCH_OK;
}

static void teardown(void *state)
{
    factor *f = state;
    bench_offload_close(&f->offload);
    if (f->input != f->a)
        free(f->input);
    free(f->a);
    free(f->result);
    free(f->pivots);
    free(f->tau);
    free(f->theirs);
    free(f->their_pivots);
    free(f->their_tau);
    free(f);
}

static filch_status make_input(factor *f, uint64_t seed, filch_error *error)
{
    void *memory = NULL;
    filch_status status = bench_squares_alloc(f->n, 1, sizeof *f->a, "--n", error, &memory);
    f->input = f->a = memory;
    if (status != FILCH_OK)
        return status;
    bench_dense_fill(f->n, f->n, f->n, f->a, seed ? seed : 1);
    if (f->kernels == &bench_kernels_double)
        return FILCH_OK;
    f->input = NULL;
    status = bench_squares_alloc(f->n, 1, f->kernels->element, "--n", error, &f->input);
    if (status == FILCH_OK)
        (void)f->kernels->round(f->n * f->n, f->a, f->input);
    return status;
}

/* Pivots and tau, of which one is used. */
static filch_status make_vectors(const factor *f, int32_t **pivots, void **tau, filch_error *error)
{
    *pivots = calloc(f->n, sizeof **pivots);
    *tau = calloc(f->n, f->kernels->element);
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
    f->n = options->n ? options->n : DEFAULT_N;
    f->kernels = options->precision == BENCH_SINGLE ? &bench_kernels_single : &bench_kernels_double;
    filch_status status = check_size(f->n, options->tile, error);
    if (status == FILCH_OK)
        status = make_input(f, options->seed, error);
    if (status == FILCH_OK)
        status = bench_squares_alloc(f->n, 1, f->kernels->element, "--n", error, &f->result);
    if (status == FILCH_OK)
        status = make_vectors(f, &f->pivots, &f->tau, error);
    if (status != FILCH_OK) {
        teardown(f);
        return status;
    }
    f->tile = options->tile ? options->tile : f->n < HOST_TILE ? f->n : HOST_TILE;
    f->has_tile = options->tile != 0;
    f->is_resident = options->resident;
    f->offload.has_no_vendor = options->own_kernels;
    f->is_idle = bench_is_simulated(options) && !options->check;
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
    double n = (double)f->n;
    char by[48];
    problem->n = f->n;
    problem->tile = f->tile;
    problem->vendor_s = bench_offload_vendor_s(&f->offload);
    problem->work = f->kind == LU ? fl_flops_lu(n, n) : fl_flops_qr(n, n);
    snprintf(problem->text, sizeof problem->text,
             "%s factorization of a random matrix of order %zu%s, blocks of %zu columns%s",
             f->kind == LU ? "LU" : "QR", f->n,
             f->kernels == &bench_kernels_single ? " in single precision" : "", f->tile,
             bench_offload_text(&f->offload, by, sizeof by));
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t on_host[] = {48, 64, 96, 128, 192, 256, 384, 512};
    static const size_t on_gpus[] = {256, 512, 1024};
    const factor *f = state;
    const size_t *candidates = f->offload.has_gpus ? on_gpus : on_host;
    size_t most =
        f->offload.has_gpus ? sizeof on_gpus / sizeof *on_gpus : sizeof on_host / sizeof *on_host;
    size_t count = 0;
    for (size_t k = 0; k < most && count < capacity; k++)
        if (candidates[k] * 2 <= f->n && check_size(f->n, candidates[k], NULL) == FILCH_OK)
            tiles_out[count++] = candidates[k];
    return count;
}

static void tile_set(void *state, size_t tile)
{
    factor *f = state;
    f->tile = tile;
    f->has_tile = true;
}

/* Of LU's panels, where there are GPUs. */
static const char *way(const void *state, size_t index)
{
    static const char *const names[] = {[FL_LU_PANELS_VENDOR] = "with cuSOLVER's panels",
                                        [FL_LU_PANELS_OWN] = "with filch's panels"};
    const factor *f = state;
    return f->offload.vendor && index < sizeof names / sizeof *names ? names[index] : NULL;
}

static void way_set(void *state, size_t index)
{
    factor *f = state;
    f->panels = (fl_lu_panels)index;
}

/* --- In a runtime --- */

static filch_status make_matrix(const factor *f, bench_built *built, enum handle which)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = which == INPUT ? f->input : f->result;
    desc.element = f->kernels->element;
    desc.rows = desc.cols = desc.ld = f->n;
    desc.tile_cols = f->tile;
    desc.label = which == INPUT ? "input" : "matrix";
    desc.flags = f->is_resident ? FILCH_DATA_MANAGED : 0;
    return filch_data_create(built->runtime, &desc, &built->data[which]);
}

/* What copies the input into the matrix, where the devices keep both. */
static filch_status add_restore(factor *f, bench_built *built, uint32_t dealt)
{
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    codelet.name = "copy";
    codelet.host = bench_offload_copy_on_host;
    bench_offload_copy(&f->offload, &cuda);
    codelet.cuda = f->offload.has_gpus ? &cuda : NULL;
    filch_status status = filch_codelet_create(built->runtime, &codelet, &built->codelets[COPY]);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->restore);
    for (size_t j = 0; j * f->tile < f->n && status == FILCH_OK; j++) {
        const filch_access accesses[] = {FILCH_R(built->data[INPUT], 0, j),
                                         FILCH_W(built->data[MATRIX], 0, j)};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = built->codelets[COPY];
        desc.accesses = accesses;
        desc.access_count = 2;
        desc.affinity = dealt ? (uint32_t)(j % dealt) + 1 : FILCH_ANY_DEVICE;
        status = filch_graph_add(built->restore, &desc, NULL);
    }
    return status;
}

static filch_status add_factorization(const factor *f, bench_built *built, uint32_t dealt)
{
    const fl_columns a = {
        .data = built->data[MATRIX], .rows = f->n, .cols = f->n, .tile = f->tile, .dealt = dealt};
    part *p = built->own;
    filch_status status = f->kind == LU ? fl_lu_open(p->dense, &a, f->panels, &p->lu)
                                        : fl_qr_open(p->dense, &a, f->tau, &p->qr);
    if (status != FILCH_OK)
        return status;
    return f->kind == LU ? fl_lu_factor(p->lu, built->graph) : fl_qr_factor(p->qr, built->graph);
}

static filch_status open_dense(const factor *f, bench_built *built)
{
    const fl_dense_desc desc = {.runtime = built->runtime,
                                .host = &host,
                                .vendor = f->offload.vendor,
                                .element = f->kernels->element,
                                .is_idle = f->is_idle};
    part *p = built->own = calloc(1, sizeof *p);
    if (!p)
        return FILCH_OUT_OF_MEMORY;
    if (f->offload.vendor)
        fl_vendor_expect_panel(f->offload.vendor, f->kernels->element, f->n, f->tile);
    return fl_dense_open(&desc, &p->dense);
}

static filch_status build(void *state, bench_built *built)
{
    factor *f = state;
    size_t bytes = f->n * f->n * f->kernels->element;
    bench_offload_meet(&f->offload, built->runtime);
    uint32_t dealt = f->is_resident ? bench_offload_alike(built->runtime) : 0;
    bench_offload_pin(&f->offload, f->result, bytes);
    if (f->is_resident)
        bench_offload_pin(&f->offload, f->input, bytes);
    if (f->offload.has_gpus && !f->has_tile)
        f->tile = f->n < GPU_TILE ? f->n : GPU_TILE;
    filch_status status = open_dense(f, built);
    if (status == FILCH_OK)
        status = make_matrix(f, built, MATRIX);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    if (status == FILCH_OK)
        status = add_factorization(f, built, dealt);
    if (status != FILCH_OK || !f->is_resident)
        return status;
    built->result = built->data[MATRIX];
    status = make_matrix(f, built, INPUT);
    return status == FILCH_OK ? add_restore(f, built, dealt) : status;
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

static void reset(void *state)
{
    factor *f = state;
    if (!f->is_idle && !f->is_resident)
        memcpy(f->result, f->input, f->n * f->n * f->kernels->element);
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    factor *f = state;
    const part *p = built->own;
    int32_t info = f->kind == LU && !f->is_idle ? fl_lu_result(p->lu, f->pivots) : 0;
    return info == 0 ? FILCH_OK
                     : bench_fail(error, FILCH_DATA, "matrix", 0,
                                  "it is singular: the pivot in row %d is 0", info);
}

static void explain(const void *state, filch_error *error)
{
    (void)state;
    (void)fl_vendor_explain(error->native_code, error);
}

/* --- Results --- */

static filch_status check_result(const factor *f, const void *result, const int32_t *pivots,
                                 const void *tau, double *residual, filch_error *error)
{
    const bench_factor_claim claim = {.n = f->n,
                                      .a = f->a,
                                      .factor = result,
                                      .get = f->kernels->get,
                                      .pivots = pivots,
                                      .tau = tau,
                                      .seed = 1};
    double most = ERROR_ROUNDOFFS * f->kernels->unit * sqrt((double)f->n), orthogonality = 0;
    bool is_done = f->kind == LU ? bench_lu_check(&claim, residual)
                                 : bench_qr_check(&claim, residual, &orthogonality);
    if (!is_done)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for some vectors");
    if (!(*residual <= most))
        return bench_fail(error, FILCH_DATA, "check", 0, "backward error %.3g is above %.3g",
                          *residual, most);
    if (!(orthogonality <= most))
        return bench_fail(error, FILCH_DATA, "check", 0,
                          "the reflectors are not orthogonal: %.3g is above %.3g", orthogonality,
                          most);
    return FILCH_OK;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    const factor *f = state;
    return check_result(f, f->result, f->pivots, f->tau, residual, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    factor *f = state;
    filch_status status = FILCH_OK;
    if (!f->theirs)
        status = bench_squares_alloc(f->n, 1, f->kernels->element, "--versus", error, &f->theirs);
    if (status == FILCH_OK && !f->their_tau)
        status = make_vectors(f, &f->their_pivots, &f->their_tau, error);
    f->work = (bench_peer_work){.kind = f->kind == LU ? BENCH_PEER_LU : BENCH_PEER_QR,
                                .workers = workers,
                                .n = f->n,
                                .tile = f->tile,
                                .kernels = f->kernels,
                                .a = f->input,
                                .c = f->theirs,
                                .pivots = f->kind == LU ? f->their_pivots : NULL,
                                .tau = f->kind == QR ? f->their_tau : NULL,
                                .is_resident = f->is_resident};
    *work = &f->work;
    return status;
}

/* Pivots may differ where elements are as large: what must agree is that both are factors. */
static filch_status agree(void *state, filch_error *error)
{
    const factor *f = state;
    double residual;
    filch_status status = check_result(f, f->result, f->pivots, f->tau, &residual, error);
    return status == FILCH_OK
               ? check_result(f, f->theirs, f->their_pivots, f->their_tau, &residual, error)
               : status;
}

const bench_workload bench_lu = {
    .name = "lu",
    .help = "factors a matrix with partial pivoting, by block columns",
    .unit = "flop",
    .setup = setup_lu,
    .teardown = teardown,
    .describe = describe,
    .tiles = tiles,
    .tile_set = tile_set,
    .way = way,
    .way_set = way_set,
    .build = build,
    .unbuild = unbuild,
    .reset = reset,
    .finish = finish,
    .explain = explain,
    .check = check,
    .peer = peer,
    .agree = agree,
};

const bench_workload bench_qr = {
    .name = "qr",
    .help = "factors a matrix by Householder reflectors, by block columns",
    .unit = "flop",
    .setup = setup_qr,
    .teardown = teardown,
    .describe = describe,
    .tiles = tiles,
    .tile_set = tile_set,
    .build = build,
    .unbuild = unbuild,
    .reset = reset,
    .finish = finish,
    .explain = explain,
    .check = check,
    .peer = peer,
    .agree = agree,
};
