/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas/factors.h"

#include "kernels/blas/work.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void lock(fl_work *w)
{
    (void)pthread_mutex_lock(&w->works->lock);
}

static void unlock(fl_work *w)
{
    (void)pthread_mutex_unlock(&w->works->lock);
}

/* With the lock held. */
static fl_dense *dense_of(fl_work *w)
{
    fl_dense **dense = &w->works->dense[w->call->is_single];
    const fl_dense_desc desc = {.runtime = w->operands.runtime,
                                .host = w->works->tiles.host,
                                .vendor = w->works->vendor,
                                .element = w->operands.element};
    if (!*dense && w->graph.status == FILCH_OK)
        w->graph.status = fl_dense_open(&desc, dense);
    return *dense;
}

/* In block columns. */
static fl_columns columns(fl_work *w, void *ptr, int64_t rows, int64_t cols, int64_t ld)
{
    fl_tiled tiled = fl_operands_matrix(&w->operands, ptr, rows, cols, ld, rows, w->tile);
    if (w->operands.status != FILCH_OK && w->graph.status == FILCH_OK)
        w->graph.status = w->operands.status;
    return (fl_columns){.data = tiled.data,
                        .rows = (size_t)rows,
                        .cols = (size_t)cols,
                        .tile = (size_t)(w->tile < cols ? w->tile : cols)};
}

static fl_lu *add_lu(fl_work *w, const fl_columns *a, const fl_columns *b)
{
    fl_lu *lu = NULL;
    lock(w);
    fl_dense *dense = dense_of(w);
    if (w->graph.status == FILCH_OK)
        w->graph.status = fl_lu_open(dense, a, FL_PANELS_OWN, &lu);
    if (w->graph.status == FILCH_OK)
        w->graph.status = fl_lu_factor(lu, w->graph.graph);
    if (w->graph.status == FILCH_OK && b)
        w->graph.status = fl_lu_solve(lu, FL_VENDOR_OP_N, b, w->graph.graph);
    unlock(w);
    return lu;
}

/* LAPACK's pivots, of either integer. */
static void set_pivots(const fl_blas_call *c, const int32_t *pivots, int64_t count)
{
    if (c->integer == sizeof *pivots)
        memcpy(c->pivots, pivots, (size_t)count * sizeof *pivots);
    for (int64_t k = 0; k < count && c->integer != sizeof *pivots; k++)
        ((int64_t *)c->pivots)[k] = pivots[k];
}

static filch_status run_lu(fl_work *w, int64_t rows, int32_t *pivots)
{
    fl_blas_call *c = w->call;
    bool solves = c->routine == FL_BLAS_GESV;
    fl_columns a = columns(w, c->a, rows, c->n, c->lda), b = {0};
    if (solves)
        b = columns(w, c->b, c->n, c->nrhs, c->ldb);
    fl_lu *lu = add_lu(w, &a, solves ? &b : NULL);
    filch_status status = fl_work_run(w);
    lock(w);
    if (status == FILCH_OK) {
        c->info = fl_lu_result(lu, pivots);
        set_pivots(c, pivots, rows < c->n ? rows : c->n);
    }
    fl_tile_graph_close(&w->graph);
    fl_lu_close(lu);
    unlock(w);
    return status;
}

filch_status fl_factors_lu(fl_work *w)
{
    int64_t rows = w->call->routine == FL_BLAS_GESV ? w->call->n : w->call->m;
    int32_t *pivots = calloc((size_t)w->call->n, sizeof *pivots);
    filch_status status = pivots ? run_lu(w, rows, pivots) : FILCH_OUT_OF_MEMORY;
    free(pivots);
    return status;
}

/* With the lock held. */
static fl_qr *open_qr(fl_work *w, const fl_columns *a, void *tau, fl_panels panels)
{
    fl_dense *dense = dense_of(w);
    fl_qr *qr = NULL;
    if (w->graph.status == FILCH_OK)
        w->graph.status = fl_qr_open(dense, a, tau, panels, &qr);
    return qr;
}

/* Runs the work's graph, then closes it and `qr`, which the graph's tasks use. */
static filch_status run_qr(fl_work *w, fl_qr *qr)
{
    filch_status status = fl_work_run(w);
    w->call->info = 0;
    lock(w);
    fl_tile_graph_close(&w->graph);
    fl_qr_close(qr);
    unlock(w);
    return status;
}

filch_status fl_factors_qr(fl_work *w)
{
    fl_blas_call *c = w->call;
    fl_columns a = columns(w, c->a, c->m, c->n, c->lda);
    lock(w);
    fl_qr *qr = open_qr(w, &a, c->tau, FL_PANELS_OWN);
    if (w->graph.status == FILCH_OK)
        w->graph.status = fl_qr_factor(qr, w->graph.graph);
    unlock(w);
    return run_qr(w, qr);
}

static int op_of(const fl_blas_call *c)
{
    return c->transa == 'N' ? FL_VENDOR_OP_N : FL_VENDOR_OP_T;
}

filch_status fl_factors_ormqr(fl_work *w)
{
    fl_blas_call *c = w->call;
    fl_columns a = columns(w, c->a, c->m, c->k, c->lda);
    fl_columns to = columns(w, c->c, c->m, c->n, c->ldc);
    lock(w);
    fl_qr *qr = open_qr(w, &a, c->tau, FL_PANELS_VENDOR);
    if (w->graph.status == FILCH_OK)
        w->graph.status = fl_qr_apply(qr, op_of(c), &to, w->graph.graph);
    unlock(w);
    return run_qr(w, qr);
}

/* --- Least squares --- */

static fl_qr *add_gels(fl_work *w, const fl_columns *a, const fl_columns *b, void *tau)
{
    bool is_plain = w->call->transa == 'N';
    lock(w);
    filch_graph *graph = w->graph.graph;
    fl_qr *qr = open_qr(w, a, tau, FL_PANELS_OWN);
    if (w->graph.status == FILCH_OK)
        w->graph.status = fl_qr_factor(qr, graph);
    if (w->graph.status == FILCH_OK && is_plain)
        w->graph.status = fl_qr_apply(qr, FL_VENDOR_OP_T, b, graph);
    if (w->graph.status == FILCH_OK)
        w->graph.status = fl_qr_solve(qr, op_of(w->call), b, graph);
    if (w->graph.status == FILCH_OK && !is_plain)
        w->graph.status = fl_qr_apply(qr, FL_VENDOR_OP_N, b, graph);
    unlock(w);
    return qr;
}

static double on_diagonal(const fl_blas_call *c, int64_t k)
{
    size_t at = (size_t)(k * (c->lda + 1));
    return fabs(c->is_single ? (double)((const float *)c->a)[at] : ((const double *)c->a)[at]);
}

/* LAPACK's info, of R's diagonal; false where that is not a number, or its largest element is out
 * of the range within which LAPACK scales no matrix. B is not looked at. */
static bool tell_rank(fl_blas_call *c)
{
    double least = c->is_single ? (double)FLT_MIN / (double)FLT_EPSILON : DBL_MIN / DBL_EPSILON;
    double most = 0;
    c->info = 0;
    for (int64_t k = 0; k < c->n; k++) {
        double size = on_diagonal(c, k);
        if (isnan(size))
            return false;
        if (size == 0 && c->info == 0)
            c->info = k + 1;
        most = size > most ? size : most;
    }
    return most >= least && most <= 1 / least;
}

/* The solution of least norm has no part in the rows beyond the triangle's before Q is applied. */
static void clear_rest(const fl_blas_call *c)
{
    size_t bytes = fl_call_element(c);
    for (int64_t j = 0; j < c->nrhs; j++)
        memset((char *)c->b + (size_t)(j * c->ldb + c->n) * bytes, 0,
               (size_t)(c->m - c->n) * bytes);
}

filch_status fl_factors_gels(fl_work *w)
{
    fl_blas_call *c = w->call;
    void *tau = calloc((size_t)c->n, fl_call_element(c));
    if (!tau)
        return FILCH_OUT_OF_MEMORY;
    if (fl_call_prepares(c))
        clear_rest(c);
    fl_columns a = columns(w, c->a, c->m, c->n, c->lda);
    fl_columns b = columns(w, c->b, c->m, c->nrhs, c->ldb);
    filch_status status = run_qr(w, add_gels(w, &a, &b, tau));
    free(tau);
    return status == FILCH_OK && !tell_rank(c) ? FILCH_INVALID_ARGUMENT : status;
}

/* --- Solves by a factor of the caller's --- */

static int64_t pivot_at(const fl_blas_call *c, int64_t k)
{
    return c->integer == sizeof(int32_t) ? ((const int32_t *)c->pivots)[k]
                                         : ((const int64_t *)c->pivots)[k];
}

static void swap(char *x, char *y, size_t bytes)
{
    char z[sizeof(double)];
    memcpy(z, x, bytes);
    memcpy(x, y, bytes);
    memcpy(y, z, bytes);
}

/* Rows of B as the pivots exchanged those of A, or back. */
static void exchange(const fl_blas_call *c, bool is_back)
{
    size_t bytes = fl_call_element(c);
    for (int64_t j = 0; j < c->nrhs; j++) {
        char *column = (char *)c->b + (size_t)(j * c->ldb) * bytes;
        for (int64_t k = 0; k < c->n; k++) {
            int64_t row = is_back ? c->n - 1 - k : k, with = pivot_at(c, row) - 1;
            if (with != row)
                swap(column + (size_t)row * bytes, column + (size_t)with * bytes, bytes);
        }
    }
}

static bool has_good_pivots(const fl_blas_call *c)
{
    for (int64_t k = 0; k < c->n; k++)
        if (pivot_at(c, k) < 1 || pivot_at(c, k) > c->n)
            return false;
    return true;
}

filch_status fl_factors_getrs(fl_work *w)
{
    fl_blas_call *c = w->call;
    bool is_plain = c->transa == 'N';
    if (!has_good_pivots(c))
        return FILCH_INVALID_ARGUMENT;
    fl_tiled a = fl_work_matrix(w, c->a, c->n, c->n, c->lda);
    fl_tiled b = fl_work_matrix(w, c->b, c->n, c->nrhs, c->ldb);
    fl_vendor_form form = fl_work_form(c);
    form.alpha = 1;
    for (int k = 0; k < 2; k++) {
        bool is_lower = (k == 0) == is_plain;
        form.fill = is_lower ? FL_VENDOR_FILL_LOWER : FL_VENDOR_FILL_UPPER;
        form.diagonal = is_lower ? FL_VENDOR_UNIT : FL_VENDOR_NON_UNIT;
        fl_tiles_trsm(&w->graph, &form, &a, &b);
    }
    if (is_plain)
        exchange(c, false);
    filch_status status = fl_work_run(w);
    if (!is_plain && status == FILCH_OK)
        exchange(c, true);
    c->info = 0;
    return status;
}
