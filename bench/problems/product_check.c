/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/product_check.h"

#include "support/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGNS BENCH_PRODUCT_SIGNS
/* Rows at once, of which a column is some lines of the cache; and columns whose products are summed
 * by themselves, so that rounding errors grow with the root of their number and not of n. */
#define BLOCK_ROWS 256
#define BLOCK_COLS 128

/* out = m x, for all vectors at once: each element is read once. */
typedef struct times {
    size_t n;
    const void *m;
    double (*get)(const void *m, size_t index);
    const double (*x)[SIGNS];
    double (*out)[SIGNS];
} times;

static double get_double(const void *m, size_t index)
{
    return ((const double *)m)[index];
}

static void add_columns(const times *t, size_t lo, size_t hi, size_t from, size_t to,
                        double (*sums)[SIGNS])
{
    for (size_t j = from; j < to; j++)
        for (size_t i = lo; i < hi; i++) {
            double value = t->get(t->m, i + j * t->n);
            for (int v = 0; v < SIGNS; v++)
                sums[i - lo][v] += value * t->x[j][v];
        }
}

static void times_rows(void *context, size_t lo, size_t hi)
{
    const times *t = context;
    double part[BLOCK_ROWS][SIGNS];
    memset(t->out + lo, 0, (hi - lo) * sizeof *t->out);
    for (size_t j = 0; j < t->n; j += BLOCK_COLS) {
        memset(part, 0, sizeof part);
        add_columns(t, lo, hi, j, t->n - j < BLOCK_COLS ? t->n : j + BLOCK_COLS, part);
        for (size_t i = lo; i < hi; i++)
            for (int v = 0; v < SIGNS; v++)
                t->out[i][v] += part[i - lo][v];
    }
}

/* SplitMix64, as dense.c has it. */
static uint64_t mix(uint64_t seed, uint64_t k)
{
    uint64_t z = seed + (k + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The larger one, or what is not a number. */
static double larger(double worst, double value)
{
    return isnan(worst) || value <= worst ? worst : value;
}

static bool compare_rows(const bench_product_claim *p, double *worst)
{
    double(*x)[SIGNS] = calloc(4 * p->n, sizeof *x), (*bx)[SIGNS], (*abx)[SIGNS], (*cx)[SIGNS];
    if (!x)
        return false;
    bx = x + p->n;
    abx = bx + p->n;
    cx = abx + p->n;
    for (size_t j = 0; j < p->n; j++) {
        uint64_t bits = mix(p->seed, j);
        for (int v = 0; v < SIGNS; v++)
            x[j][v] = (bits >> (v + 32) & 1) != 0 ? 1 : -1;
    }
    times steps[] = {{p->n, p->b, get_double, (const double(*)[SIGNS])x, bx},
                     {p->n, p->a, get_double, (const double(*)[SIGNS])bx, abx},
                     {p->n, p->c, p->get, (const double(*)[SIGNS])x, cx}};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        bench_parallel(p->n, BLOCK_ROWS, times_rows, &steps[k]);
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < SIGNS; v++)
            *worst = larger(*worst, fabs(cx[i][v] - abx[i][v]));
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
                sum += (long double)row[k] * (long double)p->b[k + j * p->n];
            *worst = larger(*worst, fabs(p->get(p->c, i + j * p->n) - (double)sum));
            *largest = larger(*largest, fabs((double)sum));
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
