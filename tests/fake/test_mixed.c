/* SPDX-License-Identifier: Apache-2.0 */
/* Systems factored in lower precision: on cores, on GPUs of the fake driver, whose products are
 * rounded as tensor cores round, and on both. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"
#include "kernels/dense/mixed.h"

#define N 200

static const place one_gpu = {"{\"devices\": [{}]}", "cuda:0", true};
static const place places[] = {
    {"{\"devices\": [{}]}", "host:2", false},
    {"{\"devices\": [{}]}", "cuda:0", true},
    {"{\"devices\": [{\"count\": 2}]}", "cuda", true},
    {"{\"devices\": [{}]}", "cuda:0/88+24", true},
    {"{\"devices\": [{}]}", "cuda:0,host:1", true},
    {"{\"devices\": [{}]}", "cuda:0,host:1", false},
};
#define PLACES (sizeof places / sizeof *places)

static void open_bed(bed *b, const place *where)
{
    begin(b, where, sizeof(double), 0);
}

/* --- Matrices --- */

static double *at(const matrix *m, size_t i, size_t j)
{
    return (double *)m->at + i + j * m->ld;
}

static void fill(const matrix *m, uint64_t seed)
{
    for (size_t j = 0; j < m->cols; j++)
        for (size_t i = 0; i < m->rows; i++)
            *at(m, i, j) = draw(&seed);
}

/* A := A H, or H A, of a random reflector. */
static void reflect(const matrix *a, bool is_left, uint64_t *seed)
{
    double *v = calloc(a->rows, sizeof *v), square = 0;
    for (size_t i = 0; i < a->rows; i++) {
        v[i] = draw(seed);
        square += v[i] * v[i];
    }
    for (size_t j = 0; j < a->rows; j++) {
        double sum = 0;
        for (size_t i = 0; i < a->rows; i++)
            sum += v[i] * *(is_left ? at(a, i, j) : at(a, j, i));
        for (size_t i = 0; i < a->rows; i++)
            *(is_left ? at(a, i, j) : at(a, j, i)) -= 2 * sum / square * v[i];
    }
    free(v);
}

/* Singular values from 1 to 1 / condition, in equal ratios. */
static matrix conditioned(const bed *b, size_t n, double condition)
{
    matrix a = take(b, n, n);
    uint64_t seed = 7;
    for (size_t k = 0; k < n; k++)
        *at(&a, k, k) = pow(condition, -(double)k / (double)(n > 1 ? n - 1 : 1));
    for (int k = 0; k < 6; k++)
        reflect(&a, k % 2 == 0, &seed);
    return a;
}

static double sum_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs(x[i]);
    return sum;
}

/* |b - A x| / (|A| |x| + |b|) of the worst column, in the 1-norm. */
static double error_of(const matrix *a, const matrix *x, const matrix *b)
{
    double worst = 0;
    double *r = calloc(a->rows, sizeof *r);
    for (size_t c = 0; c < x->cols; c++) {
        memcpy(r, at(b, 0, c), a->rows * sizeof *r);
        for (size_t j = 0; j < a->cols; j++)
            for (size_t i = 0; i < a->rows; i++)
                r[i] -= *at(a, i, j) * *at(x, j, c);
        double size = sum_of(at(b, 0, c), a->rows);
        for (size_t j = 0; j < a->cols; j++)
            size += sum_of(at(a, 0, j), a->rows) * fabs(*at(x, j, c));
        double residual = sum_of(r, a->rows);
        assert_true(!isnan(residual));
        worst = fmax(worst, residual > 0 ? residual / size : 0);
    }
    free(r);
    return worst;
}

/* --- Solutions --- */

static filch_status factor(const bed *b, fl_mixed *mixed)
{
    filch_graph *graph = NULL;
    must(filch_graph_create(b->runtime, NULL, &graph));
    must(fl_mixed_factor(mixed, graph));
    filch_status status = filch_graph_run(graph, NULL, NULL);
    must(filch_graph_destroy(graph));
    return status;
}

static filch_status solve(const bed *b, matrix *a, matrix *right, matrix *x, int compute,
                          fl_mixed_result *result)
{
    fl_mixed *mixed = NULL;
    join(b, a, TILE);
    join(b, right, right->cols);
    if (x != right)
        join(b, x, x->cols);
    must(fl_mixed_open(b->dense, &a->columns, (fl_mixed_form){.compute = compute}, &mixed));
    must(factor(b, mixed));
    filch_status status = fl_mixed_solve(mixed, &right->columns, &x->columns, result, NULL);
    fl_mixed_close(mixed);
    return status;
}

/* A is given. */
static fl_mixed_result solved(const bed *b, matrix a, size_t cols, int compute)
{
    fl_mixed_result result;
    size_t n = a.rows;
    matrix right = take(b, n, cols), x = take(b, n, cols), kept = take(b, n, n);
    fill(&right, 3);
    memcpy(kept.at, a.at, a.ld * n * a.element);
    must(solve(b, &a, &right, &x, compute, &result));
    assert_memory_equal(kept.at, a.at, a.ld * n * a.element);
    double error = error_of(&a, &x, &right);
    assert_true(error <= sqrt((double)n) * DBL_EPSILON);
    assert_true(isnan(result.error) || fabs(result.error - error) <= 4 * DBL_EPSILON);
    give(&kept);
    give(&x);
    give(&right);
    give(&a);
    return result;
}

static matrix random_matrix(const bed *b, size_t n)
{
    matrix a = take(b, n, n);
    fill(&a, 1);
    return a;
}

static const int computes[] = {FL_VENDOR_COMPUTE_SINGLE, FL_VENDOR_COMPUTE_TF32,
                               FL_VENDOR_COMPUTE_BF16, FL_VENDOR_COMPUTE_FP16, FL_DENSE_TF32X3};
#define COMPUTES (sizeof computes / sizeof *computes)

static void systems_are_solved(void **state)
{
    static const size_t orders[] = {1, 5, 32, 33, 100, N};
    (void)state;
    for (size_t p = 0; p < PLACES; p++) {
        bed b;
        open_bed(&b, &places[p]);
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
            for (size_t cols = 1; cols <= 5; cols += 4) {
                fl_mixed_result r =
                    solved(&b, random_matrix(&b, orders[k]), cols, computes[k % COMPUTES]);
                assert_true(r.way != FL_MIXED_DOUBLE);
                assert_int_equal(r.info, 0);
            }
        end(&b);
    }
}

/* The fewer bits a product keeps, the more steps it takes. */
static void a_good_matrix_is_refined(void **state)
{
    static const uint32_t least[COMPUTES] = {2, 3, 4, 3, 2}, most[COMPUTES] = {3, 7, 12, 7, 3};
    uint32_t steps[COMPUTES];
    bed b;
    (void)state;
    open_bed(&b, &one_gpu);
    for (size_t k = 0; k < COMPUTES; k++) {
        uint64_t rounded = fakecuda_count("cublasGemmEx");
        fl_mixed_result r = solved(&b, conditioned(&b, N, 10), 2, computes[k]);
        assert_int_equal(r.way, FL_MIXED_REFINED);
        assert_int_equal(r.iterations, 0);
        assert_in_range(r.refinements, least[k], most[k]);
        assert_true((fakecuda_count("cublasGemmEx") > rounded) == (k > 0));
        steps[k] = r.refinements;
    }
    /* TF32 three times is as good as single precision, and better than once. */
    assert_int_equal(computes[4], FL_DENSE_TF32X3);
    assert_int_equal(steps[4], steps[0]);
    assert_true(steps[4] < steps[1]);
    end(&b);
}

static void a_worse_matrix_needs_gmres(void **state)
{
    static const struct {
        double condition;
        int compute;
        uint32_t most;
    } cases[] = {
        {1e6, FL_VENDOR_COMPUTE_TF32, 100},
        {1e6, FL_VENDOR_COMPUTE_FP16, 100},
        {1e5, FL_VENDOR_COMPUTE_BF16, 150},
        {1e9, FL_VENDOR_COMPUTE_SINGLE, 100},
    };
    bed b;
    (void)state;
    open_bed(&b, &one_gpu);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fl_mixed_result r = solved(&b, conditioned(&b, N, cases[k].condition), 2, cases[k].compute);
        assert_int_equal(r.way, FL_MIXED_GMRES);
        assert_in_range(r.iterations, 2, cases[k].most);
    }
    end(&b);
}

/* GMRES solves column by column: many cost more than LU in double precision. */
static void many_right_sides_are_not_for_gmres(void **state)
{
    bed b;
    (void)state;
    open_bed(&b, &one_gpu);
    fl_mixed_result r = solved(&b, conditioned(&b, N, 1e6), 40, FL_VENDOR_COMPUTE_TF32);
    assert_int_equal(r.way, FL_MIXED_DOUBLE);
    assert_int_equal(r.iterations, 0);
    end(&b);
}

static void a_bad_matrix_is_factored_in_double_precision(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACES; p++) {
        bed b;
        open_bed(&b, &places[p]);
        fl_mixed_result r = solved(&b, conditioned(&b, N, 1e15), 2, FL_VENDOR_COMPUTE_FP16);
        assert_int_equal(r.way, FL_MIXED_DOUBLE);
        assert_true(r.error < 1e-15);
        end(&b);
    }
}

/* Elements beyond what single precision holds. */
static void columns_of_any_size_are_taken(void **state)
{
    bed b;
    (void)state;
    open_bed(&b, &one_gpu);
    matrix a = random_matrix(&b, 100);
    for (size_t j = 0; j < a.cols; j++)
        for (size_t i = 0; i < a.rows; i++)
            *at(&a, i, j) *= j % 3 == 0 ? 1e150 : j % 3 == 1 ? 1 : 1e-150;
    fl_mixed_result r = solved(&b, a, 1, FL_VENDOR_COMPUTE_FP16);
    assert_int_equal(r.way, FL_MIXED_REFINED);
    end(&b);
}

static void without_a_compiler_all_is_in_double_precision(void **state)
{
    const place where = {"{\"devices\": [{}]}", "cuda:0", false};
    bed b;
    (void)state;
    open_bed(&b, &where);
    fl_mixed_result r = solved(&b, random_matrix(&b, 100), 3, FL_VENDOR_COMPUTE_FP16);
    assert_int_equal(r.way, FL_MIXED_DOUBLE);
    assert_true(isnan(r.error));
    end(&b);
}

static void the_right_side_may_be_overwritten(void **state)
{
    bed b;
    fl_mixed_result r;
    (void)state;
    open_bed(&b, &one_gpu);
    matrix a = random_matrix(&b, 100), x = take(&b, 100, 4), right = take(&b, 100, 4);
    fill(&x, 5);
    memcpy(right.at, x.at, x.ld * 4 * x.element);
    must(solve(&b, &a, &x, &x, FL_VENDOR_COMPUTE_TF32, &r));
    assert_true(error_of(&a, &x, &right) <= 10 * DBL_EPSILON);
    give(&right);
    give(&x);
    give(&a);
    end(&b);
}

static void a_right_side_of_zeros_gives_zeros(void **state)
{
    bed b;
    fl_mixed_result r;
    (void)state;
    open_bed(&b, &one_gpu);
    matrix a = random_matrix(&b, 50), right = take(&b, 50, 2), x = take(&b, 50, 2);
    fill(&x, 5);
    must(solve(&b, &a, &right, &x, FL_VENDOR_COMPUTE_TF32, &r));
    for (size_t i = 0; i < 50; i++)
        assert_true(*at(&x, i, 0) == 0 && *at(&x, i, 1) == 0);
    assert_true(r.error == 0);
    give(&x);
    give(&right);
    give(&a);
    end(&b);
}

/* --- What cannot be solved --- */

typedef enum flaw { ZERO_COLUMN, NAN_IN_A, INFINITY_IN_A, NAN_IN_B, INFINITY_IN_B, FLAWS } flaw;

static void spoil(flaw kind, const matrix *a, const matrix *right)
{
    if (kind == ZERO_COLUMN)
        memset(at(a, 0, 40), 0, a->rows * a->element);
    else if (kind == NAN_IN_A || kind == INFINITY_IN_A)
        *at(a, 70, 50) = kind == NAN_IN_A ? NAN : INFINITY;
    else
        *at(right, 70, 1) = kind == NAN_IN_B ? NAN : -INFINITY;
}

static void flaws_are_told_and_nothing_is_written(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACES; p++) {
        bed b;
        open_bed(&b, &places[p]);
        for (flaw k = 0; k < FLAWS; k++) {
            fl_mixed_result r;
            matrix a = random_matrix(&b, 100), right = take(&b, 100, 3), x = take(&b, 100, 3);
            fill(&right, 2);
            spoil(k, &a, &right);
            assert_int_equal(solve(&b, &a, &right, &x, FL_VENDOR_COMPUTE_TF32, &r), FILCH_DATA);
            assert_int_equal(r.info, k == ZERO_COLUMN ? 41 : 0);
            for (size_t i = 0; i < 100; i++)
                assert_true(*at(&x, i, 0) == 0);
            give(&x);
            give(&right);
            give(&a);
        }
        end(&b);
    }
}

static void shapes_are_checked(void **state)
{
    bed b;
    fl_mixed *mixed = NULL;
    fl_mixed_result r;
    (void)state;
    open_bed(&b, &one_gpu);
    matrix a = random_matrix(&b, 50), wide = take(&b, 50, 60), right = take(&b, 50, 40),
           low = take(&b, 40, 40);
    const fl_mixed_form form = {.compute = FL_VENDOR_COMPUTE_TF32};
    join(&b, &a, TILE);
    join(&b, &wide, TILE);
    join(&b, &right, TILE);
    join(&b, &low, 40);
    assert_int_equal(fl_mixed_open(b.dense, &wide.columns, form, &mixed), FILCH_INVALID_ARGUMENT);
    const fl_columns nothing = {0};
    assert_int_equal(fl_mixed_open(b.dense, &nothing, form, &mixed), FILCH_INVALID_ARGUMENT);
    must(fl_mixed_open(b.dense, &a.columns, form, &mixed));
    must(factor(&b, mixed));
    must(fl_mixed_solve(mixed, &nothing, &nothing, &r, NULL));
    const fl_columns *const wrong[][2] = {{&right.columns, &right.columns},
                                          {&low.columns, &low.columns},
                                          {&low.columns, &right.columns},
                                          {&nothing, &low.columns}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(fl_mixed_solve(mixed, wrong[k][0], wrong[k][1], &r, NULL),
                         FILCH_INVALID_ARGUMENT);
    fl_mixed_close(mixed);
    fl_mixed_close(NULL);
    give(&a);
    give(&wide);
    give(&right);
    give(&low);
    end(&b);
}

static void failures_are_told(void **state)
{
    static const struct {
        const char *call, *label;
        bool is_in_factor;
    } cases[] = {
        {"cublasGemmEx", "cuBLAS", true}, {"cusolverDnSgetrf", "cuSOLVER", true},
        {"cublasStrsv", "cuBLAS", false}, {"cublasDgemv", "cuBLAS", false},
        {"cublasDgeam", "cuBLAS", false}, {"cusolverDnDgetrf", "cuSOLVER", false},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bed b;
        fl_mixed *mixed = NULL;
        fl_mixed_result r;
        filch_error error = FILCH_ERROR_INIT;
        open_bed(&b, &one_gpu);
        matrix a = conditioned(&b, 100, 1e15), right = take(&b, 100, 1), x = take(&b, 100, 1);
        fill(&right, 2);
        join(&b, &a, TILE);
        join(&b, &right, 1);
        join(&b, &x, 1);
        must(fl_mixed_open(b.dense, &a.columns, (fl_mixed_form){.compute = FL_VENDOR_COMPUTE_FP16},
                           &mixed));
        fakecuda_fail(cases[k].call, 1, 1, FL_CUDA_ERROR_UNKNOWN, -1, false);
        assert_int_equal(factor(&b, mixed), cases[k].is_in_factor ? FILCH_TASK_FAILED : FILCH_OK);
        if (!cases[k].is_in_factor) {
            assert_int_equal(fl_mixed_solve(mixed, &right.columns, &x.columns, &r, &error),
                             FILCH_TASK_FAILED);
            assert_true(fl_vendor_explain(error.native_code, &error));
            assert_string_equal(error.label, cases[k].label);
        }
        for (size_t i = 0; i < 100; i++)
            assert_true(*at(&x, i, 0) == 0);
        fl_mixed_close(mixed);
        give(&x);
        give(&right);
        give(&a);
        end(&b);
    }
}

static void panels_may_be_filch_s(void **state)
{
    const fl_mixed_form form = {FL_VENDOR_COMPUTE_TF32, FL_PANELS_OWN};
    bed b;
    (void)state;
    open_bed(&b, &one_gpu);
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        fl_mixed *mixed = NULL;
        fl_mixed_result r;
        matrix a = is_bad ? conditioned(&b, 100, 1e15) : random_matrix(&b, 100),
               x = take(&b, 100, 1);
        matrix right = take(&b, 100, 1);
        fill(&right, 2);
        join(&b, &a, TILE);
        join(&b, &right, 1);
        join(&b, &x, 1);
        must(fl_mixed_open(b.dense, &a.columns, form, &mixed));
        must(factor(&b, mixed));
        must(fl_mixed_solve(mixed, &right.columns, &x.columns, &r, NULL));
        assert_true((r.way == FL_MIXED_DOUBLE) == (is_bad != 0));
        assert_true(error_of(&a, &x, &right) <= 10 * DBL_EPSILON);
        if (!is_bad) /* inverses of all blocks but one do the rest */
            assert_int_equal(fakecuda_count("cublasStrsv"), r.refinements + r.iterations);
        assert_int_equal(fakecuda_count("cusolverDnSgetrf"), 0);
        assert_int_equal(fakecuda_count("cusolverDnDgetrf"), 0);
        fl_mixed_close(mixed);
        give(&x);
        give(&right);
        give(&a);
    }
    end(&b);
}

/* The factors serve many right sides, and a new matrix in the old one's place. */
static void factors_are_used_again(void **state)
{
    bed b;
    fl_mixed *mixed = NULL;
    fl_mixed_result r;
    filch_graph *graph = NULL;
    (void)state;
    open_bed(&b, &one_gpu);
    matrix a = random_matrix(&b, 100), right = take(&b, 100, 2), x = take(&b, 100, 2);
    join(&b, &a, TILE);
    join(&b, &right, 2);
    join(&b, &x, 2);
    must(fl_mixed_open(b.dense, &a.columns, (fl_mixed_form){.compute = FL_VENDOR_COMPUTE_FP16},
                       &mixed));
    must(filch_graph_create(b.runtime, NULL, &graph));
    must(fl_mixed_factor(mixed, graph));
    for (uint64_t k = 0; k < 4; k++) {
        if (k % 2 == 0) {
            fill(&a, k + 1);
            must(filch_graph_run(graph, NULL, NULL));
        }
        fill(&right, k + 10);
        must(fl_mixed_solve(mixed, &right.columns, &x.columns, &r, NULL));
        assert_true(error_of(&a, &x, &right) <= 10 * DBL_EPSILON);
    }
    must(filch_graph_destroy(graph));
    fl_mixed_close(mixed);
    give(&x);
    give(&right);
    give(&a);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systems_are_solved),
        cmocka_unit_test(a_good_matrix_is_refined),
        cmocka_unit_test(a_worse_matrix_needs_gmres),
        cmocka_unit_test(many_right_sides_are_not_for_gmres),
        cmocka_unit_test(a_bad_matrix_is_factored_in_double_precision),
        cmocka_unit_test(columns_of_any_size_are_taken),
        cmocka_unit_test(without_a_compiler_all_is_in_double_precision),
        cmocka_unit_test(the_right_side_may_be_overwritten),
        cmocka_unit_test(a_right_side_of_zeros_gives_zeros),
        cmocka_unit_test(flaws_are_told_and_nothing_is_written),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(panels_may_be_filch_s),
        cmocka_unit_test(factors_are_used_again),
    };
    if (dlopen("libcublas.so.13", RTLD_NOW) == NULL)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
