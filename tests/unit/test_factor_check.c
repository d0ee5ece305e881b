/* SPDX-License-Identifier: Apache-2.0 */
/* Right factors pass, and factors with one thing changed do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "problems/dense.h"
#include "problems/factor_check.h"
#include "problems/tiles.h"

#define N 70

static double a[N * N], factor[N * N], tau[N];
static int32_t pivots[N];
static const bench_factor_claim claim = {
    .n = N, .a = a, .factor = factor, .get = NULL, .pivots = pivots, .tau = tau, .seed = 7};

static void begin(void)
{
    bench_dense_fill(N, N, N, a, 3);
    memcpy(factor, a, sizeof a);
}

static double of_lu(void)
{
    bench_factor_claim c = claim;
    double error = -1;
    c.get = bench_kernels_double.get;
    assert_true(bench_lu_check(&c, &error));
    return error;
}

static double of_qr(double *orthogonality)
{
    bench_factor_claim c = claim;
    double error = -1;
    c.get = bench_kernels_double.get;
    assert_true(bench_qr_check(&c, &error, orthogonality));
    return error;
}

static void lu_is_looked_at(void **state)
{
    static const size_t places[] = {0, 1, N - 1, N * N - 1, 5 + 40 * N, 40 + 5 * N};
    (void)state;
    begin();
    assert_int_equal(bench_kernels_double.getrf(N, factor, N, pivots), 0);
    assert_true(of_lu() < 1e-14);
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        double kept = factor[places[k]];
        factor[places[k]] = kept + 1e-6;
        assert_true(of_lu() > 1e-9);
        factor[places[k]] = NAN;
        assert_true(isnan(of_lu()));
        factor[places[k]] = kept;
    }
    pivots[3] = pivots[3] == N ? N - 1 : pivots[3] + 1;
    assert_true(of_lu() > 1e-3);
    pivots[3] = 0; /* no row */
    assert_true(isinf(of_lu()));
}

static void qr_is_looked_at(void **state)
{
    static const size_t places[] = {0, 1, N - 1, 5 + 40 * N, 40 + 5 * N};
    double orthogonality = 1;
    (void)state;
    begin();
    assert_int_equal(bench_kernels_double.geqrf(N, factor, N, tau), 0);
    assert_true(of_qr(&orthogonality) < 1e-14);
    assert_true(orthogonality < 1e-13);
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        double kept = factor[places[k]];
        factor[places[k]] = kept + 1e-6;
        assert_true(of_qr(&orthogonality) > 1e-10);
        factor[places[k]] = NAN;
        assert_true(isnan(of_qr(&orthogonality)));
        factor[places[k]] = kept;
    }
    tau[2] *= 1 + 1e-6;
    (void)of_qr(&orthogonality);
    assert_true(orthogonality > 1e-9);
}

static double of_solution(bench_part part, const double *x, const double *b)
{
    const bench_solution_claim c = {
        .n = N, .a = a, .part = part, .x = x, .get = bench_kernels_double.get, .b = b, .seed = 5};
    double error = -1;
    assert_true(bench_solution_check(&c, &error));
    return error;
}

/* Of a triangle, what is above it is not read. */
static void solutions_are_looked_at(void **state)
{
    static const size_t places[] = {0, 1, N - 1, N * N - 1, 5 + 40 * N, 40 + 5 * N};
    static double x[N * N], b[N * N];
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench_part part = k == 0 ? BENCH_PART_FULL : BENCH_PART_LOWER;
        begin();
        bench_dense_fill_spd(N, N, a, 3);
        bench_dense_fill(N, N, N, b, 4);
        memcpy(x, b, sizeof x);
        memcpy(factor, a, sizeof a);
        if (part == BENCH_PART_FULL)
            assert_int_equal(bench_kernels_double.potrf(N, factor, N), 0);
        for (size_t j = 0; part == BENCH_PART_FULL && j < N; j++)
            bench_kernels_double.solve(N, factor, N, x + j * N);
        if (part == BENCH_PART_LOWER) {
            bench_kernels_double.trsm_left(N, a, N, x, N);
            a[0 + 1 * N] = NAN;
        }
        assert_true(of_solution(part, x, b) < 1e-14);
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            double kept = x[places[p]];
            x[places[p]] = kept + 1e-9;
            assert_true(of_solution(part, x, b) > 1e-11);
            x[places[p]] = NAN;
            assert_true(isnan(of_solution(part, x, b)));
            x[places[p]] = kept;
        }
        memset(x, 0, sizeof x);
        assert_true(isinf(of_solution(part, x, b)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solutions_are_looked_at),
        cmocka_unit_test(lu_is_looked_at),
        cmocka_unit_test(qr_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
