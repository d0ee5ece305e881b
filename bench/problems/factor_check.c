/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/factor_check.h"

#include "problems/signs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGNS BENCH_SIGNS

static void multiply(bench_signs_product product)
{
    bench_signs_multiply(&product);
}

/* The largest row sum of magnitudes; of a lower triangle, of that. */
static double largest_row(size_t n, const double *a, bench_part part)
{
    double *sums = calloc(n, sizeof *sums), most = NAN;
    for (size_t j = 0; sums && j < n; j++)
        for (size_t i = part == BENCH_PART_LOWER ? j : 0; i < n; i++)
            sums[i] += fabs(a[i + j * n]);
    for (size_t i = 0; sums && i < n; i++)
        most = fmax(most, sums[i]);
    free(sums);
    return most;
}

static void exchange(const bench_factor_claim *p, double (*x)[SIGNS])
{
    for (size_t k = 0; k < p->n; k++) {
        double kept[SIGNS];
        size_t with = (size_t)p->pivots[k] - 1;
        memcpy(kept, x[k], sizeof kept);
        memcpy(x[k], x[with], sizeof kept);
        memcpy(x[with], kept, sizeof kept);
    }
}

static bool pivots_are_rows(const bench_factor_claim *p)
{
    for (size_t k = 0; k < p->n; k++)
        if (p->pivots[k] <= (int32_t)k || (size_t)p->pivots[k] > p->n)
            return false;
    return true;
}

bool bench_lu_check(const bench_factor_claim *p, double *error)
{
    double(*x)[SIGNS] = calloc(4 * p->n, sizeof *x);
    double norm = largest_row(p->n, p->a, BENCH_PART_FULL);
    if (!x || isnan(norm)) {
        free(x);
        return false;
    }
    double(*ax)[SIGNS] = x + p->n, (*ux)[SIGNS] = ax + p->n, (*lux)[SIGNS] = ux + p->n;
    *error = INFINITY;
    if (pivots_are_rows(p)) {
        bench_signs_fill(p->n, p->seed, x);
        multiply((bench_signs_product){p->n, p->a, bench_signs_get_double, BENCH_PART_FULL,
                                       (const double(*)[SIGNS])x, ax});
        multiply((bench_signs_product){p->n, p->factor, p->get, BENCH_PART_UPPER,
                                       (const double(*)[SIGNS])x, ux});
        multiply((bench_signs_product){p->n, p->factor, p->get, BENCH_PART_UNIT_LOWER,
                                       (const double(*)[SIGNS])ux, lux});
        exchange(p, ax);
        *error =
            bench_signs_difference(p->n, (const double(*)[SIGNS])ax, (const double(*)[SIGNS])lux) /
            norm;
    }
    free(x);
    return true;
}

/* --- QR --- */

/* Of all vectors at once, so that the factor is read twice a reflector and no more. */
static void reflect_one(const bench_factor_claim *p, size_t k, double (*x)[SIGNS])
{
    double sum[SIGNS], tau = p->get(p->tau, k);
    memcpy(sum, x[k], sizeof sum);
    for (size_t i = k + 1; i < p->n; i++) {
        double value = p->get(p->factor, i + k * p->n);
        for (int v = 0; v < SIGNS; v++)
            sum[v] += value * x[i][v];
    }
    for (int v = 0; v < SIGNS; v++) {
        sum[v] *= tau;
        x[k][v] -= sum[v];
    }
    for (size_t i = k + 1; i < p->n; i++) {
        double value = p->get(p->factor, i + k * p->n);
        for (int v = 0; v < SIGNS; v++)
            x[i][v] -= sum[v] * value;
    }
}

/* Q x, or Q' x. */
static void reflect(const bench_factor_claim *p, bool is_turned, double (*x)[SIGNS])
{
    for (size_t k = 0; k < p->n; k++)
        reflect_one(p, is_turned ? k : p->n - 1 - k, x);
}

bool bench_qr_check(const bench_factor_claim *p, double *error, double *orthogonality)
{
    double(*x)[SIGNS] = calloc(3 * p->n, sizeof *x);
    double norm = largest_row(p->n, p->a, BENCH_PART_FULL);
    if (!x || isnan(norm)) {
        free(x);
        return false;
    }
    double(*ax)[SIGNS] = x + p->n, (*qx)[SIGNS] = ax + p->n;
    bench_signs_fill(p->n, p->seed, x);
    multiply((bench_signs_product){p->n, p->a, bench_signs_get_double, BENCH_PART_FULL,
                                   (const double(*)[SIGNS])x, ax});
    multiply((bench_signs_product){p->n, p->factor, p->get, BENCH_PART_UPPER,
                                   (const double(*)[SIGNS])x, qx});
    reflect(p, false, qx);
    *error =
        bench_signs_difference(p->n, (const double(*)[SIGNS])ax, (const double(*)[SIGNS])qx) / norm;
    memcpy(qx, x, p->n * sizeof *x);
    reflect(p, false, qx);
    reflect(p, true, qx);
    *orthogonality =
        bench_signs_difference(p->n, (const double(*)[SIGNS])x, (const double(*)[SIGNS])qx);
    free(x);
    return true;
}

/* --- Solutions --- */

static double backward_error(size_t n, double norm, const double (*ax)[SIGNS],
                             const double (*b)[SIGNS], const double (*x)[SIGNS])
{
    double off = bench_signs_difference(n, ax, b), size = 0;
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < SIGNS; v++)
            size = bench_signs_larger(size, fabs(x[i][v]));
    return off == 0 ? 0 : off / (norm * size);
}

bool bench_solution_check(const bench_solution_claim *p, double *error)
{
    double(*signs)[SIGNS] = calloc(4 * p->n, sizeof *signs);
    double norm = largest_row(p->n, p->a, p->part);
    if (!signs || isnan(norm)) {
        free(signs);
        return false;
    }
    double(*x)[SIGNS] = signs + p->n, (*b)[SIGNS] = x + p->n, (*ax)[SIGNS] = b + p->n;
    const double(*all)[SIGNS] = (const double(*)[SIGNS])signs;
    bench_signs_fill(p->n, p->seed, signs);
    multiply((bench_signs_product){p->n, p->x, p->get, BENCH_PART_FULL, all, x});
    multiply((bench_signs_product){p->n, p->b, bench_signs_get_double, BENCH_PART_FULL, all, b});
    multiply((bench_signs_product){p->n, p->a, bench_signs_get_double, p->part,
                                   (const double(*)[SIGNS])x, ax});
    *error = backward_error(p->n, norm, (const double(*)[SIGNS])ax, (const double(*)[SIGNS])b,
                            (const double(*)[SIGNS])x);
    free(signs);
    return true;
}
