/* SPDX-License-Identifier: Apache-2.0 */
/* Factorizations and solves by tasks, beside LAPACK: on cores, on GPUs of the fake driver, on
 * slices of one, and on both. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cblas.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"

#define COLS 40
#define PANEL_ROWS 200

typedef enum shape { RANDOM, PERMUTED, ZERO_COLUMN, ZERO, UPPER, DOMINANT, KINDS } shape;

/* --- Matrices --- */

static double get(const matrix *m, size_t i, size_t j)
{
    size_t at = i + j * m->ld;
    return m->element == sizeof(double) ? ((const double *)m->at)[at] : ((const float *)m->at)[at];
}

static void set(const matrix *m, size_t i, size_t j, double value)
{
    size_t at = i + j * m->ld;
    if (m->element == sizeof(double))
        ((double *)m->at)[at] = value;
    else
        ((float *)m->at)[at] = (float)value;
}

static double value_of(shape kind, const matrix *m, size_t i, size_t j, double random)
{
    switch (kind) {
    case PERMUTED:
        return random + ((i + j + 1) % m->rows == 0 ? (double)m->rows : 0);
    case ZERO_COLUMN:
        return j == m->cols / 2 ? 0 : random;
    case ZERO:
        return 0;
    case UPPER:
        return i > j ? 0 : random;
    case DOMINANT: /* and symmetric */
        return i == j ? (double)m->rows : cos((double)((i + 1) * (j + 1)));
    default:
        return random;
    }
}

static void fill(const matrix *m, shape kind)
{
    uint64_t seed = 1;
    for (size_t j = 0; j < m->cols; j++)
        for (size_t i = 0; i < m->rows; i++)
            set(m, i, j, value_of(kind, m, i, j, draw(&seed)));
}

static void are_equal(const bed *b, const matrix *x, const matrix *y, double factor)
{
    double most = 0, size = 1;
    for (size_t j = 0; j < x->cols; j++)
        for (size_t i = 0; i < x->rows; i++) {
            double difference = get(x, i, j) - get(y, i, j);
            assert_true(!isnan(difference));
            most = fmax(most, fabs(difference));
            size = fmax(size, fabs(get(y, i, j)));
        }
    double unit = b->element == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;
    assert_true(most <= factor * unit * size);
}

static double *doubles_of(const matrix *m)
{
    double *values = malloc(m->rows * m->cols * sizeof *values);
    assert_non_null(values);
    for (size_t j = 0; j < m->cols; j++)
        for (size_t i = 0; i < m->rows; i++)
            values[i + j * m->rows] = get(m, i, j);
    return values;
}

/* C := A B or A' B, in doubles whatever the element. The host's BLAS multiplies: a sanitizer would
 * make loops of three the longest part of the test. */
static matrix product(const bed *b, const matrix *x, bool is_turned, const matrix *y)
{
    size_t rows = is_turned ? x->cols : x->rows;
    matrix c = take(b, rows, y->cols);
    double *left = doubles_of(x), *right = doubles_of(y);
    double *sums = calloc(rows * y->cols, sizeof *sums);
    assert_non_null(sums);
    cblas_dgemm(CblasColMajor, is_turned ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)rows,
                (int)y->cols, (int)y->rows, 1, left, (int)x->rows, right, (int)y->rows, 0, sums,
                (int)rows);
    for (size_t j = 0; j < y->cols; j++)
        for (size_t i = 0; i < rows; i++)
            set(&c, i, j, sums[i + j * rows]);
    free(sums);
    free(right);
    free(left);
    return c;
}

static filch_graph *graph_of(const bed *b)
{
    filch_graph *graph = NULL;
    must(filch_graph_create(b->runtime, NULL, &graph));
    return graph;
}

static void run(filch_graph *graph)
{
    must(filch_graph_run(graph, NULL, NULL));
    must(filch_graph_destroy(graph));
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- LU --- */

static int32_t lapack_getrf(const matrix *m, int32_t *pivots)
{
    int rows = (int)m->rows, cols = (int)m->cols, ld = (int)m->ld, info = 0;
    if (m->element == sizeof(double))
        host.d.getrf(&rows, &cols, m->at, &ld, pivots, &info);
    else
        host.s.getrf(&rows, &cols, m->at, &ld, pivots, &info);
    return info;
}

/* P L U. */
static matrix of_factors(const bed *b, const matrix *lu, const int32_t *pivots)
{
    size_t order = least(lu->rows, lu->cols);
    matrix l = take(b, lu->rows, order), u = take(b, order, lu->cols);
    for (size_t j = 0; j < lu->cols; j++)
        for (size_t i = 0; i < lu->rows; i++) {
            if (i > j && j < order)
                set(&l, i, j, get(lu, i, j));
            if (i == j)
                set(&l, i, j, 1);
            if (i <= j)
                set(&u, i, j, get(lu, i, j));
        }
    matrix a = product(b, &l, false, &u);
    for (size_t k = order; k-- > 0;)
        for (size_t j = 0; j < a.cols; j++) {
            double kept = get(&a, k, j);
            set(&a, k, j, get(&a, (size_t)pivots[k] - 1, j));
            set(&a, (size_t)pivots[k] - 1, j, kept);
        }
    give(&l);
    give(&u);
    return a;
}

/* A factorization in a matrix's own place, or by way of another matrix: then from a copy of it. */
typedef struct course {
    bool is_staged, is_by_temporary;
    matrix from, way;
    filch_data *to, *between;
    fl_staging staging;
} course;

/* Returns the columns that are factored. */
static fl_columns set_out(const bed *b, course *c, matrix *a, size_t tile)
{
    filch_data_desc none = FILCH_DATA_DESC_INIT, to = FILCH_DATA_DESC_INIT;
    join(b, a, tile);
    if (!c->is_staged)
        return a->columns;
    c->from = copy_of(b, a);
    join(b, &c->from, tile);
    for (size_t j = 0; j < a->cols; j++)
        for (size_t i = 0; i < a->rows; i++)
            set(a, i, j, NAN);
    none.element = to.element = a->element;
    none.rows = to.rows = a->rows;
    none.cols = to.cols = a->cols;
    none.tile_cols = to.tile_cols = a->columns.tile;
    none.flags = FILCH_DATA_NO_BUFFER;
    c->way.columns = a->columns;
    must(filch_data_create(b->runtime, &none, &c->way.columns.data));
    c->staging.rows = 2 * a->columns.tile;
    to.ptr = a->at;
    to.ld = a->ld;
    to.tile_rows = least(c->staging.rows, a->rows);
    must(filch_data_create(b->runtime, &to, &c->to));
    to.ptr = NULL;
    to.ld = 0;
    to.flags = FILCH_DATA_TEMPORARY;
    if (c->is_by_temporary)
        must(filch_data_create(b->runtime, &to, &c->between));
    c->staging.from = c->from.columns.data;
    c->staging.to = c->to;
    c->staging.between = c->between;
    return c->way.columns;
}

static void arrive(course *c)
{
    if (c->is_staged) {
        if (c->between)
            must(filch_data_destroy(c->between));
        must(filch_data_destroy(c->to));
        give(&c->way);
        give(&c->from);
    }
}

static void factor_lu_on(const bed *b, course way, fl_panels panels, size_t tile, size_t rows,
                         size_t cols, shape kind)
{
    int32_t pivots[256], theirs[256];
    matrix a = take(b, rows, cols);
    fill(&a, kind);
    matrix input = copy_of(b, &a), reference = copy_of(b, &a);
    fl_lu *lu = NULL;
    filch_graph *graph = graph_of(b);
    const fl_columns columns = set_out(b, &way, &a, tile);
    must(fl_lu_open(b->dense, &columns, panels, &lu));
    if (way.is_staged)
        must(fl_lu_factor_staged(lu, &way.staging, graph));
    else
        must(fl_lu_factor(lu, graph));
    run(graph);
    int32_t info = fl_lu_result(lu, pivots);
    assert_int_equal(info, lapack_getrf(&reference, theirs));
    if (kind == RANDOM || kind == PERMUTED) {
        assert_memory_equal(pivots, theirs, least(rows, cols) * sizeof *pivots);
        are_equal(b, &a, &reference, 1e4);
    }
    matrix again = of_factors(b, &a, pivots);
    are_equal(b, &again, &input, 400);
    fl_lu_close(lu);
    arrive(&way);
    give(&again);
    give(&reference);
    give(&input);
    give(&a);
}

static void factor_lu_by(const bed *b, fl_panels panels, size_t tile, size_t rows, size_t cols,
                         shape kind)
{
    factor_lu_on(b, (course){.is_staged = false}, panels, tile, rows, cols, kind);
}

static void factor_lu(const bed *b, size_t rows, size_t cols, shape kind)
{
    factor_lu_by(b, FL_PANELS_VENDOR, TILE, rows, cols, kind);
}

static void solve_lu(const bed *b, size_t n, int op)
{
    matrix a = take(b, n, n), x = take(b, n, COLS);
    fill(&a, PERMUTED);
    fill(&x, RANDOM);
    matrix right = product(b, &a, op == FL_VENDOR_OP_T, &x);
    filch_graph *graph = graph_of(b);
    fl_lu *lu = NULL;
    join(b, &a, TILE);
    join(b, &right, TILE - 1);
    must(fl_lu_open(b->dense, &a.columns, FL_PANELS_VENDOR, &lu));
    must(fl_lu_factor(lu, graph));
    must(fl_lu_solve(lu, op, &right.columns, graph));
    run(graph);
    are_equal(b, &right, &x, 1e4);
    fl_lu_close(lu);
    give(&right);
    give(&x);
    give(&a);
}

/* --- QR --- */

static void lapack_geqrf(const bed *b, const matrix *m, const matrix *tau)
{
    int rows = (int)m->rows, cols = (int)m->cols, ld = (int)m->ld, info = 0, elements = 64 * cols;
    matrix work = take(b, (size_t)elements, 1);
    if (m->element == sizeof(double))
        host.d.geqrf(&rows, &cols, m->at, &ld, tau->at, work.at, &elements, &info);
    else
        host.s.geqrf(&rows, &cols, m->at, &ld, tau->at, work.at, &elements, &info);
    must(info);
    give(&work);
}

/* Q R, and Q Q' of something. */
static void reflectors_hold(const bed *b, fl_qr *qr, const matrix *a, const matrix *input)
{
    matrix r = take(b, a->rows, a->cols), any = take(b, a->rows, COLS);
    for (size_t j = 0; j < a->cols; j++)
        for (size_t i = 0; i <= j && i < a->rows; i++)
            set(&r, i, j, get(a, i, j));
    fill(&any, RANDOM);
    matrix kept = copy_of(b, &any);
    filch_graph *graph = graph_of(b);
    join(b, &r, TILE + 1);
    join(b, &any, TILE - 1);
    must(fl_qr_apply(qr, FL_VENDOR_OP_N, &r.columns, graph));
    must(fl_qr_apply(qr, FL_VENDOR_OP_T, &any.columns, graph));
    must(fl_qr_apply(qr, FL_VENDOR_OP_N, &any.columns, graph));
    run(graph);
    are_equal(b, &r, input, 400);
    are_equal(b, &any, &kept, 400);
    give(&kept);
    give(&any);
    give(&r);
}

static void factor_qr_on(const bed *b, course way, fl_panels panels, size_t tile, size_t rows,
                         size_t cols, shape kind)
{
    size_t order = least(rows, cols);
    matrix a = take(b, rows, cols), tau = take(b, order, 1), theirs = take(b, order, 1);
    fill(&a, kind);
    matrix input = copy_of(b, &a), reference = copy_of(b, &a);
    fl_qr *qr = NULL;
    filch_graph *graph = graph_of(b);
    const fl_columns columns = set_out(b, &way, &a, tile);
    must(fl_qr_open(b->dense, &columns, tau.at, panels, &qr));
    if (way.is_staged)
        must(fl_qr_factor_staged(qr, &way.staging, graph));
    else
        must(fl_qr_factor(qr, graph));
    run(graph);
    if (kind != ZERO_COLUMN) {
        lapack_geqrf(b, &reference, &theirs);
        are_equal(b, &a, &reference, 1e4);
        are_equal(b, &tau, &theirs, 1e4);
    }
    reflectors_hold(b, qr, &a, &input);
    fl_qr_close(qr);
    arrive(&way);
    give(&reference);
    give(&input);
    give(&theirs);
    give(&tau);
    give(&a);
}

static void factor_qr_by(const bed *b, fl_panels panels, size_t tile, size_t rows, size_t cols,
                         shape kind)
{
    factor_qr_on(b, (course){.is_staged = false}, panels, tile, rows, cols, kind);
}

static void factor_qr(const bed *b, size_t rows, size_t cols, shape kind)
{
    factor_qr_by(b, FL_PANELS_VENDOR, TILE, rows, cols, kind);
}

/* --- Cases --- */

static const place places[] = {
    {"{\"devices\": [{}]}", "host:2", false},
    {"{\"devices\": [{}]}", "cuda:0", false},
    {"{\"devices\": [{}]}", "cuda:0", true},
    {"{\"devices\": [{\"count\": 2}]}", "cuda", true},
    {"{\"devices\": [{}]}", "cuda:0/88+24", true},
    {"{\"devices\": [{}]}", "cuda:0,host:1", true},
    {"{\"devices\": [{}]}", "cuda:0,host:1", false},
};
#define PLACES (sizeof places / sizeof *places)
/* A GPU without a compiler, and with one. */
static const place *const one_gpu = &places[1];

static const size_t shapes[][2] = {{1, 1},    {5, 5},  {32, 32}, {64, 64},   {97, 97},  {130, 70},
                                   {70, 130}, {33, 1}, {1, 33},  {129, 128}, {40, 100}, {100, 33}};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* Every place, and every shape on the first two. */
static void factor_all(void (*factor)(const bed *b, size_t rows, size_t cols, shape kind))
{
    for (size_t p = 0; p < PLACES; p++)
        for (size_t element = sizeof(float); element <= sizeof(double); element *= 2) {
            bed b;
            begin(&b, &places[p], element, PANEL_ROWS);
            for (size_t s = 0; s < SHAPES; s++)
                if (p < 2 || s >= SHAPES / 2)
                    factor(&b, shapes[s][0], shapes[s][1], RANDOM);
            for (unsigned k = PERMUTED; k <= UPPER; k++)
                factor(&b, 100, 100, (shape)k);
            end(&b);
        }
}

static void lu_is_as_lapack_s(void **state)
{
    (void)state;
    factor_all(factor_lu);
}

static void factor_lu_by_own_panels(const bed *b, size_t rows, size_t cols, shape kind)
{
    factor_lu_by(b, FL_PANELS_OWN, TILE, rows, cols, kind);
}

static void factor_qr_by_own_panels(const bed *b, size_t rows, size_t cols, shape kind)
{
    factor_qr_by(b, FL_PANELS_OWN, TILE, rows, cols, kind);
}

static void own_panels_are_as_lapack_s(void **state)
{
    (void)state;
    factor_all(factor_lu_by_own_panels);
    factor_all(factor_qr_by_own_panels);
}

/* Panels of more columns than a launch of filch's kernel factors. */
static void wide_panels_are_as_lapack_s(void **state)
{
    static const size_t wide[][2] = {{190, 190}, {150, 240}, {200, 140}, {170, 129}};
    (void)state;
    for (size_t p = 0; p < PLACES; p++)
        for (size_t element = sizeof(float); element <= sizeof(double); element *= 2) {
            bed b;
            begin(&b, &places[p], element, PANEL_ROWS);
            for (size_t s = 0; s < sizeof wide / sizeof *wide; s++) {
                factor_lu_by(&b, FL_PANELS_OWN, 150, wide[s][0], wide[s][1], RANDOM);
                factor_qr_by(&b, FL_PANELS_OWN, 150, wide[s][0], wide[s][1], RANDOM);
            }
            for (unsigned k = PERMUTED; k <= UPPER; k++) {
                factor_lu_by(&b, FL_PANELS_OWN, 150, 180, 180, (shape)k);
                factor_qr_by(&b, FL_PANELS_OWN, 150, 180, 180, (shape)k);
            }
            end(&b);
        }
}

static void factor_lu_staged(const bed *b, size_t rows, size_t cols, shape kind)
{
    course direct = {.is_staged = true}, by = {.is_staged = true, .is_by_temporary = true};
    factor_lu_on(b, direct, FL_PANELS_VENDOR, 16, rows, cols, kind);
    factor_lu_on(b, by, FL_PANELS_VENDOR, 16, rows, cols, kind);
}

static void factor_qr_staged(const bed *b, size_t rows, size_t cols, shape kind)
{
    factor_qr_on(b, (course){.is_staged = true}, FL_PANELS_VENDOR, 16, rows, cols, kind);
}

/* In eight panels and more, so that some wait for what earlier ones left on the left. */
static void factors_by_way_of_a_matrix_are_as_lapack_s(void **state)
{
    (void)state;
    factor_all(factor_lu_staged);
    factor_all(factor_qr_staged);
    for (size_t p = 0; p < PLACES; p++) {
        bed b;
        begin(&b, &places[p], sizeof(double), PANEL_ROWS);
        factor_lu_on(&b, (course){.is_staged = true}, FL_PANELS_OWN, 150, 190, 190, RANDOM);
        factor_lu_on(&b, (course){.is_staged = true, .is_by_temporary = true}, FL_PANELS_OWN, 150,
                     190, 190, RANDOM);
        factor_qr_on(&b, (course){.is_staged = true}, FL_PANELS_OWN, 150, 190, 190, RANDOM);
        end(&b);
    }
}

static void qr_is_as_lapack_s(void **state)
{
    (void)state;
    factor_all(factor_qr);
}

static void systems_are_solved(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACES; p++)
        for (size_t element = sizeof(float); element <= sizeof(double); element *= 2) {
            bed b;
            begin(&b, &places[p], element, PANEL_ROWS);
            for (size_t n = 1; n < 150; n += 48) {
                solve_lu(&b, n, FL_VENDOR_OP_N);
                solve_lu(&b, n, FL_VENDOR_OP_T);
            }
            end(&b);
        }
}

/* Three panels at least, so that a second run begins with tiles of the first one's. */
static void a_graph_runs_again(void **state)
{
    bed b;
    (void)state;
    begin(&b, one_gpu, sizeof(double), PANEL_ROWS);
    matrix a = take(&b, 150, 150), tau = take(&b, 150, 1);
    fill(&a, RANDOM);
    matrix input = copy_of(&b, &a), first = copy_of(&b, &a);
    fl_qr *qr = NULL;
    filch_graph *graph = graph_of(&b);
    join(&b, &a, TILE);
    must(fl_qr_open(b.dense, &a.columns, tau.at, FL_PANELS_VENDOR, &qr));
    must(fl_qr_factor(qr, graph));
    for (int k = 0; k < 3; k++) {
        memcpy(a.at, input.at, a.ld * a.cols * a.element);
        must(filch_graph_run(graph, NULL, NULL));
        if (k == 0)
            memcpy(first.at, a.at, a.ld * a.cols * a.element);
        are_equal(&b, &a, &first, 0);
    }
    must(filch_graph_destroy(graph));
    fl_qr_close(qr);
    give(&first);
    give(&input);
    give(&tau);
    give(&a);
    end(&b);
}

/* One kernel exchanges the rows of a block column, where there is a compiler. */
static void rows_are_exchanged_at_once(void **state)
{
    (void)state;
    for (int has_compiler = 0; has_compiler < 2; has_compiler++) {
        bed b;
        begin(&b, &one_gpu[has_compiler], sizeof(double), PANEL_ROWS);
        factor_lu(&b, 100, 100, PERMUTED);
        assert_true((fakecuda_count("cuLaunchKernel") > 0) == (has_compiler != 0));
        assert_true((fakecuda_count("cusolverDnDlaswp") > 0) == (has_compiler == 0));
        end(&b);
    }
}

/* Filch's kernel factors panels where that is asked for and there is a compiler. */
static void panels_are_whose_they_are_asked_to_be(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        bed b;
        bool has_compiler = k % 2 != 0, is_own = k >= 2 && has_compiler;
        begin(&b, &one_gpu[has_compiler], sizeof(double), PANEL_ROWS);
        fl_panels panels = k >= 2 ? FL_PANELS_OWN : FL_PANELS_VENDOR;
        factor_lu_by(&b, panels, TILE, 100, 100, RANDOM);
        factor_qr_by(&b, panels, TILE, 100, 100, RANDOM);
        assert_int_equal(fakecuda_count("cusolverDnDgetrf"), is_own ? 0 : 4);
        assert_int_equal(fakecuda_count("cusolverDnDgeqrf"), is_own ? 0 : 4);
        end(&b);
    }
}

static void failures_are_told(void **state)
{
    static const struct {
        const char *call;
        const char *label;
        bool is_qr;
    } cases[] = {
        {"cusolverDnDgetrf", "cuSOLVER", false}, {"cusolverDnDlaswp", "cuSOLVER", false},
        {"cublasDtrsm", "cuBLAS", false},        {"cublasDgemm", "cuBLAS", false},
        {"cusolverDnDgeqrf", "cuSOLVER", true},  {"cublasDtrmm", "cuBLAS", true},
        {"cublasDsyrk", "cuBLAS", true},         {"cublasDdgmm", "cuBLAS", true},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bed b;
        filch_error error = FILCH_ERROR_INIT;
        begin(&b, one_gpu, sizeof(double), PANEL_ROWS);
        matrix a = take(&b, 100, 100), tau = take(&b, 100, 1);
        fl_lu *lu = NULL;
        fl_qr *qr = NULL;
        filch_graph *graph = graph_of(&b);
        fill(&a, RANDOM);
        join(&b, &a, TILE);
        must(fl_lu_open(b.dense, &a.columns, FL_PANELS_VENDOR, &lu));
        must(fl_qr_open(b.dense, &a.columns, tau.at, FL_PANELS_VENDOR, &qr));
        filch_status status = cases[k].is_qr ? fl_qr_factor(qr, graph) : fl_lu_factor(lu, graph);
        assert_int_equal(status, FILCH_OK);
        fakecuda_fail(cases[k].call, 2, 1, FL_CUDA_ERROR_UNKNOWN, -1, false);
        assert_int_equal(filch_graph_run(graph, NULL, &error), FILCH_TASK_FAILED);
        assert_true(fl_vendor_explain(error.native_code, &error));
        assert_string_equal(error.label, cases[k].label);
        must(filch_graph_destroy(graph));
        fl_lu_close(lu);
        fl_qr_close(qr);
        give(&tau);
        give(&a);
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lu_is_as_lapack_s),
        cmocka_unit_test(qr_is_as_lapack_s),
        cmocka_unit_test(factors_by_way_of_a_matrix_are_as_lapack_s),
        cmocka_unit_test(systems_are_solved),
        cmocka_unit_test(a_graph_runs_again),
        cmocka_unit_test(rows_are_exchanged_at_once),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(own_panels_are_as_lapack_s),
        cmocka_unit_test(wide_panels_are_as_lapack_s),
        cmocka_unit_test(panels_are_whose_they_are_asked_to_be),
    };
    if (dlopen("libcublas.so.13", RTLD_NOW) == NULL)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
