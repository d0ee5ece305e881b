/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/factor_check.h"

#include "support/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGNS 8
#define BLOCK_ROWS 256

/* The part of a matrix that counts. */
typedef enum part { FULL, UNIT_LOWER, UPPER } part;

/* out = part of m, times x, for all vectors at once. */
typedef struct times {
    size_t n;
    const void *m;
    double (*get)(const void *m, size_t index);
    part part;
    const double (*x)[SIGNS];
    double (*out)[SIGNS];
} times;

static double get_double(const void *m, size_t index)
{
    return ((const double *)m)[index];
}

static void times_rows(void *context, size_t lo, size_t hi)
{
    const times *t = context;
    if (t->part == UNIT_LOWER)
        memcpy(t->out + lo, t->x + lo, (hi - lo) * sizeof *t->out);
    else
        memset(t->out + lo, 0, (hi - lo) * sizeof *t->out);
    for (size_t j = t->part == UPPER ? lo : 0; j < (t->part == UNIT_LOWER ? hi : t->n); j++) {
        size_t from = t->part == UNIT_LOWER && j >= lo ? j + 1 : lo;
        size_t to = t->part == UPPER && j < hi ? j + 1 : hi;
        for (size_t i = from; i < to; i++) {
            double value = t->get(t->m, i + j * t->n);
            for (int v = 0; v < SIGNS; v++)
                t->out[i][v] += value * t->x[j][v];
        }
    }
}

static void multiply(times job)
{
    bench_parallel(job.n, BLOCK_ROWS, times_rows, &job);
}

/* SplitMix64, as dense.c has it. */
static uint64_t mix(uint64_t seed, uint64_t k)
{
    uint64_t z = seed + (k + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill_signs(size_t n, uint64_t seed, double (*x)[SIGNS])
{
    for (size_t j = 0; j < n; j++) {
        uint64_t bits = mix(seed, j);
        for (int v = 0; v < SIGNS; v++)
            x[j][v] = (bits >> (v + 32) & 1) != 0 ? 1 : -1;
    }
}

/* The largest difference, or what is not a number. */
static double difference(size_t n, const double (*a)[SIGNS], const double (*b)[SIGNS])
{
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < SIGNS; v++) {
            double value = fabs(a[i][v] - b[i][v]);
            worst = isnan(worst) || value <= worst ? worst : value;
        }
    return worst;
}

static double largest_row(size_t n, const double *a)
{
    double *sums = calloc(n, sizeof *sums), most = NAN;
    for (size_t j = 0; sums && j < n; j++)
        for (size_t i = 0; i < n; i++)
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
    double norm = largest_row(p->n, p->a);
    if (!x || isnan(norm)) {
        free(x);
        return false;
    }
    double(*ax)[SIGNS] = x + p->n, (*ux)[SIGNS] = ax + p->n, (*lux)[SIGNS] = ux + p->n;
    *error = INFINITY;
    if (pivots_are_rows(p)) {
        fill_signs(p->n, p->seed, x);
        multiply((times){p->n, p->a, get_double, FULL, (const double(*)[SIGNS])x, ax});
        multiply((times){p->n, p->factor, p->get, UPPER, (const double(*)[SIGNS])x, ux});
        multiply((times){p->n, p->factor, p->get, UNIT_LOWER, (const double(*)[SIGNS])ux, lux});
        exchange(p, ax);
        *error = difference(p->n, (const double(*)[SIGNS])ax, (const double(*)[SIGNS])lux) / norm;
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
    double norm = largest_row(p->n, p->a);
    if (!x || isnan(norm)) {
        free(x);
        return false;
    }
    double(*ax)[SIGNS] = x + p->n, (*qx)[SIGNS] = ax + p->n;
    fill_signs(p->n, p->seed, x);
    multiply((times){p->n, p->a, get_double, FULL, (const double(*)[SIGNS])x, ax});
    multiply((times){p->n, p->factor, p->get, UPPER, (const double(*)[SIGNS])x, qx});
    reflect(p, false, qx);
    *error = difference(p->n, (const double(*)[SIGNS])ax, (const double(*)[SIGNS])qx) / norm;
    memcpy(qx, x, p->n * sizeof *x);
    reflect(p, false, qx);
    reflect(p, true, qx);
    *orthogonality = difference(p->n, (const double(*)[SIGNS])x, (const double(*)[SIGNS])qx);
    free(x);
    return true;
}
