/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas/works.h"

#include "kernels/blas/work.h"

#include <stdlib.h>

/* Tiles of 512 keep a GPU busy, of 1024 nearly at its best; larger ones need fewer copies. Of the
 * largest, B's and C's of a product are narrow, so that the first product can begin, and the last
 * result is home, the sooner (bench/workloads/gemm.c, docs/performance.md). */
#define TILE_SMALL 512
#define TILE_USUAL 1024
#define TILE_LARGE 2048
#define TILE_WIDE 4096
#define NARROW_COLS 1024
/* Orders from which the next larger tile is taken; Cholesky's as of the runs on an
 * H200 in docs/performance.md. */
#define ORDER_USUAL 3072
#define ORDER_CHOLESKY 6144
#define TILE_CHOLESKY 1536
#define ORDER_WIDE 16384
#define ORDER_LARGE 24576
/* Panels of as many rows find their work memory on the GPU from the start on; for longer ones it
 * grows. */
#define PANEL_ROWS 16384

static int64_t greatest(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* LU and QR go by block columns, whose width is that of their panels. */
static int64_t choose_tile(const fl_blas_call *c, uint64_t given)
{
    int64_t order = greatest(greatest(c->m, c->n), c->k);
    bool is_product = c->routine == FL_BLAS_GEMM || c->routine == FL_BLAS_SYMM;
    bool is_by_columns =
        c->routine == FL_BLAS_GETRF || c->routine == FL_BLAS_GESV || c->routine >= FL_BLAS_GEQRF;
    bool is_cholesky = c->routine == FL_BLAS_POTRF || c->routine == FL_BLAS_POSV;
    if (given > 0)
        return (int64_t)given;
    if (order < ORDER_USUAL || is_by_columns)
        return TILE_SMALL;
    if (is_product && order >= ORDER_WIDE)
        return TILE_WIDE;
    if (is_cholesky && order >= ORDER_CHOLESKY)
        return order >= ORDER_WIDE ? TILE_LARGE : TILE_CHOLESKY;
    return order >= ORDER_LARGE ? TILE_LARGE : TILE_USUAL;
}

fl_vendor_form fl_work_form(const fl_blas_call *c)
{
    return (fl_vendor_form){.side = c->side == 'R' ? FL_VENDOR_SIDE_RIGHT : FL_VENDOR_SIDE_LEFT,
                            .fill = c->uplo == 'U' ? FL_VENDOR_FILL_UPPER : FL_VENDOR_FILL_LOWER,
                            .op_a = c->transa && c->transa != 'N' ? FL_VENDOR_OP_T : FL_VENDOR_OP_N,
                            .op_b = c->transb && c->transb != 'N' ? FL_VENDOR_OP_T : FL_VENDOR_OP_N,
                            .diagonal = c->diag == 'U' ? FL_VENDOR_UNIT : FL_VENDOR_NON_UNIT,
                            .alpha = c->alpha,
                            .beta = c->beta};
}

fl_tiled fl_work_matrix(fl_work *w, void *ptr, int64_t rows, int64_t cols, int64_t ld)
{
    return fl_operands_matrix(&w->operands, ptr, rows, cols, ld, w->tile, w->tile);
}

/* Runs what was added. */
filch_status fl_work_run(fl_work *w)
{
    filch_status status = w->operands.status != FILCH_OK ? w->operands.status : w->graph.status;
    if (status == FILCH_OK &&
        (status = filch_graph_run(w->graph.graph, NULL, w->error)) != FILCH_OK)
        return status;
    if (status == FILCH_OK && w->hold) {
        w->hold->settle(w->hold->user);
        status = fl_operands_bring(&w->operands);
    }
    if (status != FILCH_OK)
        (void)filch_runtime_error(w->operands.runtime, w->error);
    return status;
}

static filch_status run_gemm(fl_work *w)
{
    fl_blas_call *c = w->call;
    fl_vendor_form form = fl_work_form(c);
    int64_t arows = c->transa == 'N' ? c->m : c->k, acols = c->transa == 'N' ? c->k : c->m;
    int64_t brows = c->transb == 'N' ? c->k : c->n, bcols = c->transb == 'N' ? c->n : c->k;
    int64_t cols = w->tile == TILE_WIDE ? NARROW_COLS : w->tile;
    bool is_one = c->a == c->b && arows == brows && acols == bcols && c->lda == c->ldb;
    fl_operands *o = &w->operands;
    if (is_one) /* one handle, cut one way */
        cols = w->tile;
    fl_tiled a = fl_work_matrix(w, c->a, arows, acols, c->lda);
    fl_tiled b = is_one ? a
                        : fl_operands_matrix(o, c->b, brows, bcols, c->ldb,
                                             c->transb == 'N' ? w->tile : cols,
                                             c->transb == 'N' ? cols : w->tile);
    fl_tiled to = fl_operands_matrix(o, c->c, c->m, c->n, c->ldc, w->tile, cols);
    fl_tiles_gemm(&w->graph, &form, &a, &b, &to);
    return fl_work_run(w);
}

static filch_status run_symm(fl_work *w)
{
    fl_blas_call *c = w->call;
    fl_vendor_form form = fl_work_form(c);
    fl_tiled a = fl_work_matrix(w, c->a, fl_call_order(c), fl_call_order(c), c->lda);
    fl_tiled b = fl_work_matrix(w, c->b, c->m, c->n, c->ldb);
    fl_tiled to = fl_work_matrix(w, c->c, c->m, c->n, c->ldc);
    fl_tiles_symm(&w->graph, &form, &a, &b, &to);
    return fl_work_run(w);
}

static filch_status run_syrk(fl_work *w)
{
    fl_blas_call *c = w->call;
    fl_vendor_form form = fl_work_form(c);
    bool is_plain = c->transa == 'N';
    fl_tiled a = fl_work_matrix(w, c->a, is_plain ? c->n : c->k, is_plain ? c->k : c->n, c->lda);
    fl_tiled to = fl_work_matrix(w, c->c, c->n, c->n, c->ldc);
    fl_tiles_syrk(&w->graph, &form, &a, &to);
    return fl_work_run(w);
}

static filch_status run_triangle(fl_work *w)
{
    fl_blas_call *c = w->call;
    fl_vendor_form form = fl_work_form(c);
    fl_tiled a = fl_work_matrix(w, c->a, fl_call_order(c), fl_call_order(c), c->lda);
    fl_tiled b = fl_work_matrix(w, c->b, c->m, c->n, c->ldb);
    if (c->routine == FL_BLAS_TRMM)
        fl_tiles_trmm(&w->graph, &form, &a, &b);
    else
        fl_tiles_trsm(&w->graph, &form, &a, &b);
    return fl_work_run(w);
}

/* The first minor that is not positive, by the tiles of the diagonal. */
static int64_t minor_of(const fl_work *w, const int32_t *infos, uint32_t count, uint32_t words)
{
    for (uint32_t k = 0; k < count; k++) {
        int32_t info = infos[(size_t)k * words];
        if (info != 0)
            return info < 0 || words > 1 ? info : k * w->tile + info;
    }
    return 0;
}

static void add_potrs(fl_work *w, const fl_tiled *a)
{
    fl_blas_call *c = w->call;
    fl_tiled b = fl_work_matrix(w, c->b, c->n, c->nrhs, c->ldb);
    fl_tiles_potrs(&w->graph, fl_work_form(c).fill, a, &b);
}

/* Without a factor, what posv's B becomes is for the caller to bring back. */
static filch_status run_definite(fl_work *w)
{
    fl_blas_call *c = w->call;
    int fill = fl_work_form(c).fill;
    fl_tiled a = fl_work_matrix(w, c->a, c->n, c->n, c->lda);
    (void)pthread_mutex_lock(&w->works->lock);
    fl_tiles_open_panels(&w->works->tiles, c->is_single);
    (void)pthread_mutex_unlock(&w->works->lock);
    uint32_t words = fl_tiles_potrf_words(&w->graph, fill, &a);
    int32_t *infos = calloc((size_t)a.rows * words, sizeof *infos);
    if (!infos)
        return FILCH_OUT_OF_MEMORY;
    filch_data *told = fl_operands_infos(&w->operands, infos, a.rows, words);
    fl_tiles_potrf(&w->graph, fill, &a, told);
    if (c->routine == FL_BLAS_POSV)
        add_potrs(w, &a);
    filch_status status = fl_work_run(w);
    c->info = minor_of(w, infos, a.rows, words);
    fl_work_end(w); /* the handle before the memory */
    free(infos);
    return status;
}

static filch_status run_potrs(fl_work *w)
{
    fl_blas_call *c = w->call;
    fl_tiled a = fl_work_matrix(w, c->a, c->n, c->n, c->lda);
    c->info = 0;
    add_potrs(w, &a);
    return fl_work_run(w);
}

static filch_status (*const runs[FL_BLAS_ROUTINES])(fl_work *w) = {
    [FL_BLAS_GEMM] = run_gemm,          [FL_BLAS_SYMM] = run_symm,
    [FL_BLAS_SYRK] = run_syrk,          [FL_BLAS_TRMM] = run_triangle,
    [FL_BLAS_TRSM] = run_triangle,      [FL_BLAS_POTRF] = run_definite,
    [FL_BLAS_POSV] = run_definite,      [FL_BLAS_POTRS] = run_potrs,
    [FL_BLAS_GETRF] = fl_factors_lu,    [FL_BLAS_GESV] = fl_factors_lu,
    [FL_BLAS_GETRS] = fl_factors_getrs, [FL_BLAS_GEQRF] = fl_factors_qr,
    [FL_BLAS_ORMQR] = fl_factors_ormqr, [FL_BLAS_GELS] = fl_factors_gels};

void fl_work_end(fl_work *w)
{
    fl_tile_graph_close(&w->graph);
    fl_operands_close(&w->operands);
}

filch_status fl_works_open(fl_works *works, filch_runtime *runtime, fl_vendor *vendor,
                           const fl_dense_host *host)
{
    *works = (fl_works){.vendor = vendor, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (vendor) {
        fl_vendor_expect(vendor, sizeof(double), TILE_LARGE, false);
        fl_vendor_expect_panel(vendor, sizeof(double), PANEL_ROWS, TILE_SMALL);
    }
    return fl_tiles_open(&works->tiles, runtime, vendor, host, false);
}

void fl_works_close(fl_works *works)
{
    fl_dense_close(works->dense[0]);
    fl_dense_close(works->dense[1]);
}

filch_status fl_works_run(fl_works *works, uint64_t tile, const fl_works_hold *hold,
                          fl_blas_call *call, filch_error *error)
{
    fl_work w = {.works = works,
                 .hold = hold,
                 .call = call,
                 .tile = choose_tile(call, tile),
                 .error = error};
    fl_operands_open(&w.operands, works->tiles.runtime, call, hold != NULL);
    fl_tile_graph_open(&w.graph, &works->tiles, call->is_single, call->routine > FL_BLAS_SYRK);
    filch_status status = runs[call->routine](&w);
    fl_work_end(&w);
    return status;
}
