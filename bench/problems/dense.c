/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/dense.h"

#include "support/parallel.h"

#include <math.h>
#include <stdlib.h>

/* SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators",
 * OOPSLA 2014. Element k of a stream needs no element before it. */
static uint64_t mix(uint64_t seed, uint64_t k)
{
    uint64_t z = seed + (k + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double unit(uint64_t seed, size_t i, size_t j, size_t rows)
{
    return (double)(mix(seed, (uint64_t)j * rows + i) >> 11) * 0x1p-53;
}

/* Elements that are worth a thread's while. */
#define FILL_GRAIN ((size_t)1 << 18)

typedef struct filling {
    size_t rows, ld;
    double *a;
    uint64_t seed;
} filling;

static void fill_columns(void *context, size_t lo, size_t hi)
{
    const filling *f = context;
    for (size_t j = lo; j < hi; j++)
        for (size_t i = 0; i < f->rows; i++)
            f->a[i + j * f->ld] = 2 * unit(f->seed, i, j, f->rows) - 1;
}

static void fill_spd_columns(void *context, size_t lo, size_t hi)
{
    const filling *f = context;
    for (size_t j = lo; j < hi; j++)
        for (size_t i = 0; i < f->rows; i++) {
            size_t low = i > j ? i : j;
            size_t high = i > j ? j : i;
            double u = unit(f->seed, low, high, f->rows);
            f->a[i + j * f->ld] = i == j ? (double)f->rows + u : 2 * u - 1;
        }
}

void bench_dense_fill(size_t rows, size_t cols, size_t ld, double *a, uint64_t seed)
{
    filling f = {rows, ld, a, seed};
    bench_parallel(cols, 1 + FILL_GRAIN / (rows + 1), fill_columns, &f);
}

void bench_dense_fill_spd(size_t n, size_t ld, double *a, uint64_t seed)
{
    filling f = {n, ld, a, seed};
    bench_parallel(n, 1 + FILL_GRAIN / (n + 1), fill_spd_columns, &f);
}

double bench_dense_norm_inf(size_t rows, size_t cols, size_t ld, const double *a, double *row_sums)
{
    for (size_t i = 0; i < rows; i++)
        row_sums[i] = 0;
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            row_sums[i] += fabs(a[i + j * ld]);
    return bench_vector_norm_inf(rows, row_sums);
}

double bench_vector_norm_inf(size_t n, const double *x)
{
    double norm = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return NAN;
        norm = fmax(norm, fabs(x[i]));
    }
    return norm;
}

double bench_dense_difference(size_t rows, size_t cols, size_t lda, const double *a, size_t ldb,
                              const double *b, int lower)
{
    double difference = 0;
    double scale = 0;
    for (size_t j = 0; j < cols; j++)
        for (size_t i = lower ? j : 0; i < rows; i++) {
            double delta = fabs(a[i + j * lda] - b[i + j * ldb]);
            if (isnan(delta))
                return NAN;
            difference = fmax(difference, delta);
            scale = fmax(scale, fabs(b[i + j * ldb]));
        }
    return scale > 0 ? difference / scale : difference;
}

double bench_backward_error(size_t n, size_t ld, const double *a, const double *x, const double *b)
{
    long double *residual = calloc(n ? n : 1, sizeof *residual);
    double *row_sums = calloc(n ? n : 1, sizeof *row_sums);
    double error = -1;
    if (residual && row_sums) {
        for (size_t j = 0; j < n; j++)
            for (size_t i = 0; i < n; i++)
                residual[i] += (long double)a[i + j * ld] * x[j];
        double norm_a = bench_dense_norm_inf(n, n, ld, a, row_sums);
        double norm_x = bench_vector_norm_inf(n, x);
        for (size_t i = 0; i < n; i++)
            row_sums[i] = (double)(residual[i] - b[i]);
        double norm_r = bench_vector_norm_inf(n, row_sums);
        error = norm_r > 0 || isnan(norm_r) ? norm_r / (norm_a * norm_x) : 0;
    }
    free(residual);
    free(row_sums);
    return error;
}

void bench_dense_row_sums(size_t n, size_t ld, const double *a, double *b)
{
    for (size_t i = 0; i < n; i++)
        b[i] = 0;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++)
            b[i] += a[i + j * ld];
}

double bench_flops_cholesky(double n)
{
    return n * n * n / 3 + n * n / 2 + n / 6;
}

double bench_flops_gemm(double m, double n, double k)
{
    return 2 * m * n * k;
}

double bench_flops_trsm(double m, double n)
{
    return m * n * n;
}

double bench_flops_syrk(double n, double k)
{
    return k * n * (n + 1);
}
