/* SPDX-License-Identifier: Apache-2.0 */
/* Dense references and the tile kernels under them. */
#include "problems/dense.h"
#include "problems/matrix_market.h"
#include "problems/tiles.h"
#include "support/parallel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void count_up(void *context, size_t lo, size_t hi)
{
    unsigned char *times = context;
    for (size_t i = lo; i < hi; i++)
        times[i]++;
}

static void test_each_once_in_parallel(void **state)
{
    (void)state;
    enum { MOST = 10000 };
    static unsigned char times[MOST + 1];
    for (size_t count = 0; count <= MOST; count = count * 3 + 1) {
        for (size_t grain = 0; grain <= MOST; grain = grain * 7 + 1) {
            memset(times, 0, sizeof times);
            bench_parallel(count, grain, count_up, times);
            for (size_t i = 0; i <= MOST; i++)
                assert_int_equal(times[i], i < count);
        }
    }
}

/* What a range of columns holds does not depend on the range. */
static void test_fills(void **state)
{
    (void)state;
    enum { ROWS = 1000, COLS = 1200 };
    double *a = malloc(sizeof *a * ROWS * COLS), *b = malloc(sizeof *b * ROWS);
    assert_true(a && b);
    bench_dense_fill(ROWS, COLS, ROWS, a, 7);
    bench_dense_fill(ROWS, 1, ROWS, b, 7);
    assert_memory_equal(a, b, sizeof *b * ROWS);
    assert_true(a[ROWS * (COLS - 1)] != a[0] && fabs(a[ROWS * COLS - 1]) <= 1);
    bench_dense_fill_spd(ROWS, ROWS, a, 7);
    for (size_t j = 0; j < ROWS; j += 37)
        for (size_t i = 0; i < ROWS; i++)
            assert_float_equal(a[i + j * ROWS], a[j + i * ROWS], 0);
    free(a);
    free(b);
}

static void test_backward_error(void **state)
{
    (void)state;
    /* [1 -3; 2 4] x for x = (2, -1) is (5, 0); ||A|| = 6, ||x|| = 2. ld 3. */
    const double a[] = {1, 2, NAN, -3, 4, NAN};
    const double x[] = {2, -1};
    assert_float_equal(bench_backward_error(2, 3, a, x, (const double[]){5, 0}), 0, 0);
    assert_float_equal(bench_backward_error(2, 3, a, x, (const double[]){5, 0.6}), 0.05, 1e-15);
    assert_float_equal(bench_backward_error(2, 3, a, x, (const double[]){3.8, 0}), 0.1, 1e-15);
    assert_true(isnan(bench_backward_error(2, 3, a, (const double[]){NAN, 1}, x)));
    assert_true(isinf(bench_backward_error(2, 3, a, (const double[]){0, 0}, x)));
}

static void test_difference(void **state)
{
    (void)state;
    const double a[] = {1, 2, 50, 4};
    const double b[] = {1, 2.5, 3, 5};
    assert_float_equal(bench_dense_difference(2, 2, 2, a, 2, b, 1), 0.2, 1e-15);
    assert_float_equal(bench_dense_difference(2, 2, 2, a, 2, b, 0), 47.0 / 5, 1e-14);
    const double bad[] = {1, NAN, 3, 5};
    assert_true(isnan(bench_dense_difference(2, 2, 2, bad, 2, b, 1)));
    assert_true(isnan(bench_dense_difference(2, 2, 2, b, 2, bad, 1)));
}

static void test_flops(void **state)
{
    (void)state;
    assert_float_equal(bench_flops_cholesky(1), 1, 1e-12);
    assert_float_equal(bench_flops_cholesky(3), 14, 1e-12);
    assert_float_equal(bench_flops_gemm(2, 3, 4), 48, 0);
    assert_float_equal(bench_flops_trsm(5, 2), 20, 0);
    assert_float_equal(bench_flops_syrk(3, 2), 24, 0);
    /* The tasks of a tiled factorization do the work of the whole one. */
    double n = 12, t = 4, sum = 0;
    for (int k = 0; k < 3; k++) {
        int below = 2 - k;
        sum += bench_flops_cholesky(t) + below * bench_flops_trsm(t, t);
        sum += below * bench_flops_syrk(t, t);
        sum += below * (below - 1) / 2.0 * bench_flops_gemm(t, t, t);
    }
    assert_float_equal(sum, bench_flops_cholesky(n), 1e-9);
}

static void test_fill(void **state)
{
    (void)state;
    double a[20], b[20];
    for (int k = 0; k < 20; k++)
        a[k] = b[k] = 77;
    bench_dense_fill_spd(4, 5, a, 3);
    bench_dense_fill_spd(4, 5, b, 3);
    assert_memory_equal(a, b, sizeof a);
    bench_dense_fill_spd(4, 5, b, 4);
    assert_memory_not_equal(a, b, sizeof a);
    for (size_t j = 0; j < 4; j++) {
        assert_float_equal(a[4 + j * 5], 77, 0);
        for (size_t i = 0; i < 4; i++) {
            assert_float_equal(a[i + j * 5], a[j + i * 5], 0);
            assert_true(i == j ? a[i + j * 5] >= 4 : fabs(a[i + j * 5]) <= 1);
        }
    }
}

/* A tile size that does not divide n, so that the last tiles are smaller. */
static void test_tiled_cholesky(void **state)
{
    (void)state;
    size_t n = 53;
    double *a = malloc(n * n * sizeof *a), *c = malloc(n * n * sizeof *c);
    double *b = malloc(n * sizeof *b), *x = malloc(n * sizeof *x);
    assert_true(a && b && c && x);
    bench_dense_fill_spd(n, n, a, 5);
    memcpy(c, a, n * n * sizeof *c);
    int threads = bench_blas_threads_set(1);
    bench_grid g = bench_grid_make(n, 10, NULL, NULL, c);
    assert_int_equal(g.count, 6);
    assert_int_equal(bench_grid_extent(&g, 5), 3);
    for (size_t k = 0; k < g.count; k++) {
        assert_int_equal(bench_grid_factor(&g, k), 0);
        for (size_t i = k + 1; i < g.count; i++)
            bench_grid_solve(&g, i, k);
        for (size_t j = k + 1; j < g.count; j++)
            for (size_t i = j; i < g.count; i++)
                bench_grid_update(&g, i, j, k);
    }
    bench_dense_row_sums(n, n, a, b);
    memcpy(x, b, n * sizeof *x);
    bench_kernels_double.solve(n, c, n, x);
    assert_true(bench_backward_error(n, n, a, x, b) < 1e-15);
    for (size_t i = 0; i < n; i++)
        assert_float_equal(x[i], 1, 1e-12);
    /* A minor that is not positive is named by its order in the whole matrix. */
    memcpy(c, a, n * n * sizeof *c);
    c[24 + 24 * n] = -1;
    assert_int_equal(bench_grid_factor(&g, 2), 25);
    assert_int_equal(bench_blas_threads_set(threads), 1);
    free(a);
    free(b);
    free(c);
    free(x);
}

static void test_tiled_product(void **state)
{
    (void)state;
    enum { N = 7 };
    double a[N * N], b[N * N], c[N * N], expected[N * N] = {0};
    bench_dense_fill(N, N, N, a, 1);
    bench_dense_fill(N, N, N, b, 2);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                expected[i + j * N] += a[i + k * N] * b[k + j * N];
    for (int k = 0; k < N * N; k++)
        c[k] = NAN; /* what was in c must not matter */
    bench_grid g = bench_grid_make(N, 3, a, b, c);
    for (size_t j = 0; j < g.count; j++)
        for (size_t i = 0; i < g.count; i++)
            bench_grid_multiply(&g, i, j);
    assert_true(bench_dense_difference(N, N, N, c, N, expected, 0) < 1e-14);
}

/* The real stiffness matrix: read, factored by tiles, solved. */
static void test_real_matrix(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    bench_matrix m;
    if (bench_matrix_read("tests/data/lund_a.mtx", BENCH_MATRIX_SYMMETRIC, 0, &error, &m) !=
        FILCH_OK)
        fail_msg("%s:%ld: %s", error.label, (long)error.line, error.text);
    assert_int_equal(m.rows, 147);
    assert_int_equal(m.stored, 1298);
    double *b = malloc(m.rows * sizeof *b), *x = malloc(m.rows * sizeof *x);
    double *l = malloc(m.rows * m.rows * sizeof *l);
    assert_true(b && x && l);
    bench_dense_row_sums(m.rows, m.rows, m.values, b);
    memcpy(x, b, m.rows * sizeof *x);
    memcpy(l, m.values, m.rows * m.rows * sizeof *l);
    assert_int_equal(bench_kernels_double.potrf(m.rows, l, m.rows), 0);
    bench_kernels_double.solve(m.rows, l, m.rows, x);
    assert_true(bench_backward_error(m.rows, m.rows, m.values, x, b) < 1e-15);
    free(l);
    free(b);
    free(x);
    bench_matrix_free(&m);
}

static void test_rounding(void **state)
{
    (void)state;
    const double numbers[] = {1, 1 + 0x1p-40, -3.5e38};
    double same[3];
    float rounded[3];
    assert_true(bench_kernels_double.round(3, numbers, same));
    assert_memory_equal(same, numbers, sizeof same);
    assert_true(bench_kernels_single.round(2, numbers, rounded));
    assert_true(bench_kernels_single.get(rounded, 1) == 1);
    assert_false(bench_kernels_single.round(3, numbers, rounded));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once_in_parallel),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_backward_error),
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_tiled_cholesky),
        cmocka_unit_test(test_tiled_product),
        cmocka_unit_test(test_real_matrix),
        cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
