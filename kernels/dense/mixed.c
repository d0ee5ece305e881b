/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/mixed.h"

#include "kernels/dense/gmres.h"
#include "kernels/dense/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Right sides for which GMRES is always tried; more of them where there are so many rows each. */
#define GMRES_COLS_ANY 4
#define GMRES_ROWS_A_COL 256

/* --- The factors --- */

static filch_status make_single(fl_dense *dense)
{
    fl_dense_desc desc = dense->desc;
    desc.element = sizeof(float);
    return dense->single ? FILCH_OK : fl_dense_open(&desc, &dense->single);
}

static filch_status make_low(fl_mixed *m)
{
    const filch_data_desc desc = {.element = sizeof(float),
                                  .rows = m->a.rows,
                                  .cols = m->a.cols,
                                  .tile_cols = m->a.tile,
                                  .flags = FILCH_DATA_NO_BUFFER};
    m->low = m->a;
    return fl_dense_data(m->dense, desc, "rounded matrix", &m->low.data);
}

static filch_status make_vectors(fl_mixed *m)
{
    size_t n = m->a.rows;
    const filch_data_desc norms = {.ptr = m->norms,
                                   .element = sizeof *m->norms,
                                   .rows = FL_NARROW_NORMS,
                                   .cols = n,
                                   .tile_cols = m->a.tile};
    const filch_data_desc scales = {.ptr = m->scales,
                                    .element = sizeof *m->scales,
                                    .rows = FL_NARROW_NORMS,
                                    .cols = n,
                                    .flags = FILCH_DATA_MANAGED};
    const filch_data_desc rows = {
        .ptr = m->rows, .element = sizeof *m->rows, .rows = n, .flags = FILCH_DATA_MANAGED};
    filch_status status = fl_dense_data(m->dense, norms, "norms", &m->norms_data);
    if (status == FILCH_OK)
        status = fl_dense_data(m->dense, scales, "scales", &m->scales_data);
    return status == FILCH_OK ? fl_dense_data(m->dense, rows, "rows", &m->rows_data) : status;
}

static filch_status make_factors(fl_mixed *m)
{
    size_t n = m->a.rows;
    m->norms = calloc(n * FL_NARROW_NORMS, sizeof *m->norms);
    m->scales = calloc(n * FL_NARROW_NORMS, sizeof *m->scales);
    m->rows = calloc(n, sizeof *m->rows);
    if (!m->norms || !m->scales || !m->rows)
        return FILCH_OUT_OF_MEMORY;
    filch_status status = make_single(m->dense);
    m->single = m->dense->single;
    if (status == FILCH_OK) {
        m->single->desc.compute = m->form.compute;
        status = make_low(m);
    }
    if (status == FILCH_OK)
        status = make_vectors(m);
    if (status == FILCH_OK)
        status = fl_lu_open(m->single, &m->low, m->form.panels, &m->lu);
    return status == FILCH_OK ? fl_lu_keep_inverses(m->lu) : status;
}

filch_status fl_mixed_open(fl_dense *dense, const fl_columns *a, fl_mixed_form form, fl_mixed **out)
{
    if (dense->desc.element != sizeof(double) || !a->data || a->rows != a->cols || a->rows == 0 ||
        a->tile == 0)
        return FILCH_INVALID_ARGUMENT;
    fl_mixed *m = calloc(1, sizeof *m);
    if (!m)
        return FILCH_OUT_OF_MEMORY;
    m->dense = dense;
    m->a = *a;
    m->form = form;
    filch_status status = fl_pass_open(dense);
    if (status == FILCH_OK) {
        filch_status narrow = fl_narrow_open(dense);
        m->has_narrow = narrow == FILCH_OK;
        status = narrow == FILCH_UNSUPPORTED ? FILCH_OK : narrow;
    }
    if (status == FILCH_OK && m->has_narrow)
        status = make_factors(m);
    if (status == FILCH_OK)
        *out = m;
    else
        fl_mixed_close(m);
    return status;
}

void fl_mixed_close(fl_mixed *m)
{
    if (!m)
        return;
    filch_data *const handles[] = {m->low.data, m->norms_data, m->scales_data, m->rows_data};
    fl_lu_close(m->lu);
    for (size_t k = 0; k < sizeof handles / sizeof *handles; k++)
        if (handles[k])
            (void)filch_data_destroy(handles[k]);
    free(m->norms);
    free(m->scales);
    free(m->rows);
    free(m);
}

filch_status fl_mixed_factor(fl_mixed *m, filch_graph *graph)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; m->has_narrow && k < fl_columns_count(&m->a) && status == FILCH_OK; k++) {
        const filch_access accesses[] = {FILCH_R(m->a.data, 0, k), FILCH_W(m->low.data, 0, k),
                                         FILCH_W(m->norms_data, 0, k)};
        const fl_narrow_args args = {.count = fl_columns_width(&m->a, k)};
        status =
            fl_narrow_add(m->dense, graph, FL_NARROW, args, accesses, fl_columns_owner(&m->a, k));
    }
    if (status != FILCH_OK || !m->has_narrow)
        return status;
    m->single->desc.compute = m->form.compute;
    return fl_lu_factor(m->lu, graph);
}

static filch_status put(filch_data *data, void *to, const void *from, size_t bytes)
{
    filch_status status = filch_data_acquire(data, FILCH_WRITE);
    if (status != FILCH_OK)
        return status;
    memcpy(to, from, bytes);
    return filch_data_release(data);
}

/* The order of the factors' rows, from LAPACK's pivots. */
static filch_status put_rows(fl_mixed *m, const int32_t *pivots)
{
    size_t n = m->a.rows;
    filch_status status = filch_data_acquire(m->rows_data, FILCH_WRITE);
    if (status != FILCH_OK)
        return status;
    for (size_t k = 0; k < n; k++)
        m->rows[k] = (int32_t)k;
    for (size_t k = 0; k < n; k++) {
        size_t with = (size_t)pivots[k] - 1;
        int32_t kept = m->rows[k];
        if (with >= n) /* pivots of what is no number */
            continue;
        m->rows[k] = m->rows[with];
        m->rows[with] = kept;
    }
    return filch_data_release(m->rows_data);
}

/* What the last factorization left, made ready for solutions. *is_usable: it went well. */
static filch_status settle(fl_mixed *m, bool *is_usable)
{
    size_t n = m->a.rows;
    int32_t *pivots = calloc(n, sizeof *pivots);
    if (!pivots)
        return FILCH_OUT_OF_MEMORY;
    *is_usable = fl_lu_result(m->lu, pivots) == 0;
    m->norm = 0;
    for (size_t j = 0; j < n; j++) {
        double sum = m->norms[j * FL_NARROW_NORMS + FL_NARROW_SUM];
        m->norm = isnan(m->norm) || sum <= m->norm ? m->norm : sum;
    }
    filch_status status = isfinite(m->norm) ? FILCH_OK : FILCH_DATA;
    if (status == FILCH_OK)
        status = put(m->scales_data, m->scales, m->norms, n * FL_NARROW_NORMS * sizeof *m->norms);
    if (status == FILCH_OK)
        status = put_rows(m, pivots);
    free(pivots);
    return status;
}

/* --- In double precision --- */

static filch_status make_copy(const fl_mixed *m, fl_columns *copy)
{
    const filch_data_desc desc = {.element = sizeof(double),
                                  .rows = m->a.rows,
                                  .cols = m->a.cols,
                                  .tile_cols = m->a.tile,
                                  .flags = FILCH_DATA_NO_BUFFER};
    *copy = m->a;
    return fl_dense_data(m->dense, desc, "copied matrix", &copy->data);
}

static filch_status add_copy(const fl_dense *dense, filch_graph *graph, const fl_columns *from,
                             const fl_columns *to)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < fl_columns_count(from) && status == FILCH_OK; k++) {
        const filch_access accesses[] = {FILCH_R(from->data, 0, k), FILCH_W(to->data, 0, k)};
        const fl_pass_args args = {.count = fl_columns_width(from, k)};
        status =
            fl_pass_add(dense, graph, FL_PASS_COPY, args, accesses, 2, fl_columns_owner(from, k));
    }
    return status;
}

/* Y := A^-1 B by LU of a copy, and its residual where that can be measured. */
static filch_status add_double(const fl_system *s, fl_lu *lu, const fl_columns *copy,
                               filch_graph *graph)
{
    const fl_mixed *m = s->mixed;
    fl_columns y = *s->b;
    y.data = s->y;
    y.dealt = 0;
    filch_status status = add_copy(m->dense, graph, &m->a, copy);
    if (status == FILCH_OK)
        status = fl_lu_factor(lu, graph);
    if (status == FILCH_OK)
        status = add_copy(m->dense, graph, s->b, &y);
    if (status == FILCH_OK)
        status = fl_lu_solve(lu, FL_VENDOR_OP_N, &y, graph);
    if (status != FILCH_OK || !m->has_narrow)
        return status;
    status = fl_system_narrow(s, graph, s->b->data, 0, y.cols, &s->of_b);
    if (status == FILCH_OK)
        status = fl_system_narrow(s, graph, s->y, 0, y.cols, &s->of_y);
    if (status == FILCH_OK)
        status = fl_system_residual(s, graph, 0, y.cols);
    return status == FILCH_OK ? fl_system_narrow(s, graph, s->r, 0, y.cols, &s->of_r) : status;
}

static filch_status run_double(const fl_system *s, fl_lu *lu, const fl_columns *copy)
{
    filch_graph *graph = NULL;
    filch_status status = filch_graph_create(s->mixed->dense->desc.runtime, NULL, &graph);
    if (status != FILCH_OK)
        return status;
    status = fl_system_run(s, graph, add_double(s, lu, copy, graph));
    if (status != FILCH_OK)
        return status;
    s->result->info = fl_lu_result(lu, NULL);
    return s->result->info == 0 && fl_system_is_finite(s) ? FILCH_OK : FILCH_DATA;
}

static filch_status solve_double(const fl_system *s)
{
    fl_columns copy = {0};
    fl_lu *lu = NULL;
    s->result->way = FL_MIXED_DOUBLE;
    filch_status status = make_copy(s->mixed, &copy);
    if (status == FILCH_OK)
        status = fl_lu_open(s->mixed->dense, &copy, s->mixed->form.panels, &lu);
    if (status == FILCH_OK)
        status = run_double(s, lu, &copy);
    fl_lu_close(lu);
    if (copy.data)
        (void)filch_data_destroy(copy.data);
    return status;
}

/* --- The solution --- */

static filch_status make_system(fl_system *s)
{
    const fl_dense *dense = s->mixed->dense;
    filch_data_desc desc = {.element = sizeof(double),
                            .rows = s->b->rows,
                            .cols = s->b->cols,
                            .flags = FILCH_DATA_NO_BUFFER};
    filch_status status = fl_dense_data(dense, desc, "solution", &s->y);
    if (status == FILCH_OK)
        status = fl_dense_data(dense, desc, "residual", &s->r);
    desc.element = sizeof(float);
    if (status == FILCH_OK)
        status = fl_dense_data(dense, desc, "correction", &s->d);
    if (status == FILCH_OK)
        status = fl_norms_open(dense, s->b->cols, "norms", &s->of_b);
    if (status == FILCH_OK)
        status = fl_norms_open(dense, s->b->cols, "norms", &s->of_y);
    return status == FILCH_OK ? fl_norms_open(dense, s->b->cols, "norms", &s->of_r) : status;
}

static void drop_system(fl_system *s)
{
    filch_data *const handles[] = {s->y, s->r, s->d};
    for (size_t k = 0; k < sizeof handles / sizeof *handles; k++)
        if (handles[k])
            (void)filch_data_destroy(handles[k]);
    fl_norms_close(&s->of_b);
    fl_norms_close(&s->of_y);
    fl_norms_close(&s->of_r);
}

/* The columns that refinement left unsolved. */
static filch_status solve_rest(fl_system *s, bool *is_done)
{
    fl_gmres *gmres = NULL;
    filch_status status = fl_gmres_open(s, &gmres);
    s->result->way = FL_MIXED_GMRES;
    *is_done = true;
    for (size_t j = 0; j < s->b->cols && status == FILCH_OK && *is_done; j++)
        if (!(fl_norms_sum(&s->of_r, j) <= fl_system_goal(s, j)))
            status = fl_gmres_solve(gmres, j, is_done);
    fl_gmres_close(gmres);
    return status;
}

/* Tells whether GMRES, column by column, is to be tried: an estimate. A step uses A and its factors
 * once, about 4 n^2 operations that memory bounds, and a column takes about 10; LU in double
 * precision takes 2/3 n^3. */
static bool gmres_pays(const fl_system *s)
{
    size_t left = 0;
    for (size_t j = 0; j < s->b->cols; j++)
        left += !(fl_norms_sum(&s->of_r, j) <= fl_system_goal(s, j));
    return left <= GMRES_COLS_ANY || left * GMRES_ROWS_A_COL < s->mixed->a.rows;
}

static filch_status solve(fl_system *s)
{
    bool is_done = false;
    filch_status status = s->mixed->has_narrow ? settle(s->mixed, &is_done) : FILCH_OK;
    if (status == FILCH_OK && is_done) {
        status = fl_refine(s, &is_done);
        if (status == FILCH_OK && !is_done && gmres_pays(s))
            status = solve_rest(s, &is_done);
    }
    return status == FILCH_OK && !is_done ? solve_double(s) : status;
}

static filch_status finish(const fl_system *s, const fl_columns *x)
{
    const fl_dense *dense = s->mixed->dense;
    fl_columns y = *x;
    y.data = s->y;
    y.dealt = 0;
    s->result->error = s->mixed->has_narrow ? 0 : NAN;
    for (size_t j = 0; s->mixed->has_narrow && j < x->cols; j++) {
        double error = fl_system_error(s, j), worst = s->result->error;
        s->result->error = isnan(worst) || error <= worst ? worst : error;
    }
    filch_graph *graph = NULL;
    filch_status status = filch_graph_create(dense->desc.runtime, NULL, &graph);
    return status == FILCH_OK ? fl_system_run(s, graph, add_copy(dense, graph, &y, x)) : status;
}

filch_status fl_mixed_solve(fl_mixed *m, const fl_columns *b, const fl_columns *x,
                            fl_mixed_result *result, filch_error *error)
{
    fl_system s = {.mixed = m, .b = b, .error = error, .result = result};
    *result = (fl_mixed_result){.way = FL_MIXED_REFINED};
    if (b->cols == 0)
        return x->cols == 0 ? FILCH_OK : FILCH_INVALID_ARGUMENT;
    if (!b->data || !x->data || b->rows != m->a.rows || x->rows != m->a.rows ||
        x->cols != b->cols || b->tile < b->cols || x->tile < x->cols)
        return FILCH_INVALID_ARGUMENT;
    filch_status status = make_system(&s);
    if (status == FILCH_OK)
        status = solve(&s);
    if (status == FILCH_OK)
        status = finish(&s, x);
    drop_system(&s);
    return status;
}
