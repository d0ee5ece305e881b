/* SPDX-License-Identifier: Apache-2.0 */
/* The check of products: what is right passes, any wrong element does not, and each is read once.
 */
#include "count.h"
#include "problems/dense.h"
#include "problems/product_check.h"
#include "problems/tiles.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N 311
#define BOUND (8 * 17.7 * 0x1p-53) /* as the workload has it */

static double a[N * N], b[N * N], c[N * N], kept[N * N];
static atomic_size_t reads;

static double get(const void *m, size_t index)
{
    atomic_fetch_add_explicit(&reads, 1, memory_order_relaxed); /* a count */
    return ((const double *)m)[index];
}

static bench_product_errors check(uint64_t seed)
{
    const bench_product_claim claim = {.n = N, .a = a, .b = b, .c = c, .get = get, .seed = seed};
    bench_product_errors errors;
    assert_true(bench_product_check(&claim, &errors));
    return errors;
}

static int begin(void **state)
{
    (void)state;
    bench_dense_fill(N, N, N, a, 1);
    bench_dense_fill(N, N, N, b, 2);
    bench_kernels_double.gemm_nn(N, N, N, a, N, b, N, 0, kept, N);
    memcpy(c, kept, sizeof c);
    return 0;
}

static void test_right(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < test_count(50); seed++) {
        bench_product_errors errors = check(seed);
        assert_true(errors.sampled > 0 && errors.sampled < BOUND / 4);
        assert_true(errors.rows > 0 && errors.rows < BOUND / 4);
    }
}

/* A check that reads each element of C a few times at most is no product. */
static void test_cheap(void **state)
{
    (void)state;
    atomic_store(&reads, 0);
    (void)check(1);
    assert_int_equal(atomic_load(&reads), N * N + BENCH_PRODUCT_ROWS * BENCH_PRODUCT_COLS);
}

/* Elements one at a time, off by a little more than the bound of a row. */
static void test_any_element(void **state)
{
    double largest = 0;
    (void)state;
    for (size_t k = 0; k < (size_t)N * N; k++)
        largest = fmax(largest, fabs(kept[k]));
    double wrong = 2 * BOUND * sqrt(N) * largest;
    for (size_t k = 0; k < (size_t)N * N; k += 997 * TEST_SHARE) {
        c[k] += wrong;
        assert_true(check(k).rows > BOUND);
        c[k] = kept[k];
    }
}

/* Errors of a row that cancel each other are found by most vectors. */
static void test_errors_that_cancel(void **state)
{
    size_t missed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < test_count(200); seed++) {
        size_t row = seed * 13 % N;
        c[row + 5 * N] += 1;
        c[row + 77 * N] -= 1;
        missed += !(check(seed).rows > BOUND);
        memcpy(c, kept, sizeof c);
    }
    assert_true(missed <= 6); /* 1 of 256 is expected */
}

static void test_wrong_results(void **state)
{
    (void)state;
    memset(c, 0, sizeof c);
    assert_true(check(1).sampled > BOUND && check(1).rows > BOUND);
    memcpy(c, kept, sizeof c);
    /* A tile that was not computed, between what is sampled. */
    for (size_t j = 100; j < 120; j++)
        memset(&c[150 + j * N], 0, 20 * sizeof *c);
    assert_true(check(1).rows > BOUND);
    /* Huge elements do not make the bound larger. */
    memcpy(c, kept, sizeof c);
    c[3 + 7 * N] = 1e300;
    assert_true(check(1).rows > BOUND);
    c[3 + 7 * N] = NAN;
    assert_false(check(1).rows <= BOUND);
    c[3 + 7 * N] = kept[3 + 7 * N];
    c[0] = NAN;
    assert_false(check(1).sampled <= BOUND);
    c[0] = INFINITY;
    assert_false(check(1).sampled <= BOUND);
}

/* A A', whose lower triangle alone is given: what is above is not read, what is below is. */
static void test_gram(void **state)
{
    const bench_product_claim claim = {.n = N, .a = a, .c = c, .get = get, .seed = 3};
    bench_product_errors errors;
    (void)state;
    memset(c, 0xff, sizeof c); /* not numbers */
    bench_kernels_double.gram(N, a, N, c, N);
    assert_true(isnan(c[0 + 1 * N]));
    assert_true(bench_product_check(&claim, &errors));
    assert_true(errors.sampled > 0 && errors.sampled < BOUND / 4);
    assert_true(errors.rows > 0 && errors.rows < BOUND / 4);
    for (size_t k = 0; k < N; k += 31)
        for (size_t i = k; i < N; i += 29) {
            double right = c[i + k * N];
            c[i + k * N] += 2 * BOUND * sqrt(N) * N; /* N: no element is larger */
            assert_true(bench_product_check(&claim, &errors));
            assert_true(errors.rows > BOUND);
            c[i + k * N] = right;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_gram, begin),
        cmocka_unit_test_setup(test_right, begin),
        cmocka_unit_test_setup(test_cheap, begin),
        cmocka_unit_test_setup(test_any_element, begin),
        cmocka_unit_test_setup(test_errors_that_cancel, begin),
        cmocka_unit_test_setup(test_wrong_results, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
