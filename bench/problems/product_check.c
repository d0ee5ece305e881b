/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/product_check.h"

#include "problems/signs.h"

#include <math.h>
#include <stdlib.h>

/* Elements (k, j) of B and (i, j) of C. */
static double get_b(const bench_product_claim *p, size_t k, size_t j)
{
    return p->b ? p->b[k + j * p->n] : p->a[j + k * p->n];
}

static double get_c(const bench_product_claim *p, size_t i, size_t j)
{
    return p->get(p->c, p->b || i >= j ? i + j * p->n : j + i * p->n);
}

static bool compare_rows(const bench_product_claim *p, double *worst)
{
    double(*x)[BENCH_SIGNS] = calloc(4 * p->n, sizeof *x), (*bx)[BENCH_SIGNS], (*abx)[BENCH_SIGNS],
    (*cx)[BENCH_SIGNS];
    if (!x)
        return false;
    bx = x + p->n;
    abx = bx + p->n;
    cx = abx + p->n;
    bench_signs_fill(p->n, p->seed, x);
    const double(*signs)[BENCH_SIGNS] = (const double(*)[BENCH_SIGNS])x;
    const bench_signs_product steps[] = {
        {p->n, p->b ? p->b : p->a, bench_signs_get_double,
         p->b ? BENCH_PART_FULL : BENCH_PART_TRANSPOSED, signs, bx},
        {p->n, p->a, bench_signs_get_double, BENCH_PART_FULL, (const double(*)[BENCH_SIGNS])bx,
         abx},
        {p->n, p->c, p->get, p->b ? BENCH_PART_FULL : BENCH_PART_SYMMETRIC, signs, cx}};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        bench_signs_multiply(&steps[k]);
    *worst = bench_signs_difference(p->n, (const double(*)[BENCH_SIGNS])cx,
                                    (const double(*)[BENCH_SIGNS])abx);
    free(x);
    return true;
}

/* `count` of n, the first and the last among them. */
static size_t sample(size_t k, size_t count, size_t n)
{
    return count > 1 ? (size_t)((double)k / (double)(count - 1) * (double)(n - 1)) : 0;
}

static bool compare_samples(const bench_product_claim *p, double *worst, double *largest)
{
    size_t rows = p->n < BENCH_PRODUCT_ROWS ? p->n : BENCH_PRODUCT_ROWS;
    size_t cols = p->n < BENCH_PRODUCT_COLS ? p->n : BENCH_PRODUCT_COLS;
    double *row = calloc(p->n, sizeof *row);
    for (size_t r = 0; row && r < rows; r++) {
        size_t i = sample(r, rows, p->n);
        for (size_t k = 0; k < p->n; k++)
            row[k] = p->a[i + k * p->n];
        for (size_t c = 0; c < cols; c++) {
            size_t j = sample(c, cols, p->n);
            long double sum = 0;
            for (size_t k = 0; k < p->n; k++)
                sum += (long double)row[k] * (long double)get_b(p, k, j);
            *worst = bench_signs_larger(*worst, fabs(get_c(p, i, j) - (double)sum));
            *largest = bench_signs_larger(*largest, fabs((double)sum));
        }
    }
    free(row);
    return row != NULL;
}

bool bench_product_check(const bench_product_claim *claim, bench_product_errors *errors)
{
    double largest = 0;
    *errors = (bench_product_errors){0, 0};
    if (!compare_samples(claim, &errors->sampled, &largest) || !compare_rows(claim, &errors->rows))
        return false;
    errors->sampled /= largest;
    errors->rows /= largest * sqrt((double)claim->n);
    return true;
}
