/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients by blocks: the matrix, convergence, and what a slowed device does again. */
#include "problems/cg.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define G 7
#define ROWS (G * G * G)

static bench_cg_system system_of(size_t blocks, size_t iterations)
{
    bench_cg_system s = {.g = G, .blocks = blocks, .iterations = iterations};
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(bench_cg_assemble(&s, &error), FILCH_OK);
    return s;
}

static double element(const bench_cg_system *s, size_t row, size_t column)
{
    double value = 0;
    for (uint32_t k = s->starts[row]; k < s->starts[row + 1]; k++)
        value += s->columns[k] == column ? s->values[k] : 0;
    return value;
}

/* 6 on the diagonal, -1 for points at distance 1, nothing else; columns ascend. */
static void the_matrix(void **state)
{
    (void)state;
    bench_cg_system s = system_of(3, 1);
    assert_int_equal(s.rows, ROWS);
    for (size_t row = 0; row < ROWS; row++) {
        for (uint32_t k = s.starts[row] + 1; k < s.starts[row + 1]; k++)
            assert_true(s.columns[k - 1] < s.columns[k]);
        for (size_t column = 0; column < ROWS; column++) {
            long dx = (long)(row % G) - (long)(column % G);
            long dy = (long)(row / G % G) - (long)(column / G % G);
            long dz = (long)(row / (G * G)) - (long)(column / (G * G));
            long distance = labs(dx) + labs(dy) + labs(dz);
            double expected = distance == 0 ? 6 : distance == 1 ? -1 : 0;
            assert_true(element(&s, row, column) == expected);
        }
    }
    bench_cg_free(&s);
}

/* Blocks are whole planes that cover the rows; so a block needs its neighbours' planes alone. */
static void the_blocks(void **state)
{
    (void)state;
    for (size_t blocks = 1; blocks <= G; blocks++) {
        const bench_cg_system s = {.g = G, .rows = ROWS, .blocks = blocks};
        assert_int_equal(bench_cg_row(&s, 0), 0);
        assert_int_equal(bench_cg_row(&s, blocks), ROWS);
        for (size_t b = 0; b < blocks; b++) {
            assert_true(bench_cg_row(&s, b) < bench_cg_row(&s, b + 1));
            assert_int_equal(bench_cg_row(&s, b) % (G * G), 0);
        }
    }
}

/* Exact arithmetic would end after as many iterations as there are rows; this ends long before, and
 * then stays. */
static void it_converges(void **state)
{
    (void)state;
    double before = 1, x[ROWS], other[ROWS];
    filch_error error = FILCH_ERROR_INIT;
    for (size_t iterations = 4; iterations <= 1024; iterations *= 4) {
        bench_cg_system s = system_of(3, iterations);
        assert_int_equal(bench_cg_solve(&s, x, &error), FILCH_OK);
        double now = bench_cg_backward_error(&s, x);
        assert_true(now < before || now < 1e-15);
        before = now;
        bench_cg_free(&s);
    }
    assert_true(before < 1e-15);
    bench_cg_system s = system_of(7, 1024);
    assert_int_equal(bench_cg_solve(&s, other, &error), FILCH_OK);
    for (size_t row = 0; row < ROWS; row++)
        assert_true(fabs(x[row] - other[row]) <= 1e-12 * fabs(x[row]));
    x[ROWS / 2] *= 1.001;
    assert_true(bench_cg_backward_error(&s, x) > 1e-6);
    bench_cg_free(&s);
}

/* What a slowed device does again changes no bit, and gives the same part. */
static void done_again(void **state)
{
    (void)state;
    double p[11], q[11], x[11], r[11], x_kept[11], r_kept[11], p_kept[11];
    for (int k = 0; k < 11; k++) {
        p[k] = 0.1 * k;
        q[k] = 1.0 / (k + 1);
        x[k] = 3 - k;
        r[k] = 0.7 * k - 2;
    }
    double sum = bench_cg_update(11, 0.3, p, q, x, r), expected = 0;
    assert_true(x[10] == 3 - 10 + 0.3 * (0.1 * 10));
    for (int k = 0; k < 11; k++)
        expected += r[k] * r[k];
    assert_true(fabs(sum - expected) < 1e-14 * expected);
    memcpy(x_kept, x, sizeof x);
    memcpy(r_kept, r, sizeof r);
    assert_true(bench_cg_update(11, 0, p, q, x, r) == sum);
    assert_memory_equal(x, x_kept, sizeof x);
    assert_memory_equal(r, r_kept, sizeof r);
    bench_cg_direction(11, 1, r, 0.25, p);
    assert_true(p[10] == r[10] + 0.25 * (0.1 * 10));
    memcpy(p_kept, p, sizeof p);
    bench_cg_direction(11, 0, r, 1, p);
    assert_memory_equal(p, p_kept, sizeof p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_matrix),
        cmocka_unit_test(the_blocks),
        cmocka_unit_test(it_converges),
        cmocka_unit_test(done_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
