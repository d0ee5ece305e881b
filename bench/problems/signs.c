/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/signs.h"

#include "support/parallel.h"

#include <math.h>
#include <string.h>

/* Rows at once, of which a column is some lines of the cache; and columns whose products are summed
 * by themselves, so that rounding errors grow with the root of their number and not of n. */
#define BLOCK_ROWS 256
#define BLOCK_COLS 128

typedef struct range {
    size_t lo, hi;
} range;

double bench_signs_get_double(const void *m, size_t index)
{
    return ((const double *)m)[index];
}

double bench_signs_larger(double worst, double value)
{
    return isnan(worst) || value <= worst ? worst : value;
}

static size_t clip(size_t value, range to)
{
    return value < to.lo ? to.lo : value > to.hi ? to.hi : value;
}

/* Of column j, the rows that count as they are stored. */
static range stored_rows(bench_part part, range rows, size_t j)
{
    switch (part) {
    case BENCH_PART_FULL:
        return rows;
    case BENCH_PART_LOWER:
    case BENCH_PART_SYMMETRIC:
        return (range){clip(j, rows), rows.hi};
    case BENCH_PART_UNIT_LOWER:
        return (range){clip(j + 1, rows), rows.hi};
    case BENCH_PART_UPPER:
        return (range){rows.lo, clip(j + 1, rows)};
    default:
        return (range){0, 0};
    }
}

/* Of row i, the columns whose elements are those stored at (column, i). */
static range turned_cols(bench_part part, range cols, size_t i)
{
    if (part == BENCH_PART_TRANSPOSED)
        return cols;
    return part == BENCH_PART_SYMMETRIC ? (range){clip(i + 1, cols), cols.hi} : (range){0, 0};
}

static void add_block(const bench_signs_product *p, range rows, range cols,
                      double (*sums)[BENCH_SIGNS])
{
    for (size_t j = cols.lo; j < cols.hi; j++) {
        range at = stored_rows(p->part, rows, j);
        for (size_t i = at.lo; i < at.hi; i++) {
            double value = p->get(p->m, i + j * p->n);
            for (int v = 0; v < BENCH_SIGNS; v++)
                sums[i - rows.lo][v] += value * p->x[j][v];
        }
    }
    for (size_t i = rows.lo; i < rows.hi; i++) {
        range at = turned_cols(p->part, cols, i);
        for (size_t j = at.lo; j < at.hi; j++) {
            double value = p->get(p->m, j + i * p->n);
            for (int v = 0; v < BENCH_SIGNS; v++)
                sums[i - rows.lo][v] += value * p->x[j][v];
        }
    }
}

static void multiply_rows(void *context, size_t lo, size_t hi)
{
    const bench_signs_product *p = context;
    double part[BLOCK_ROWS][BENCH_SIGNS];
    if (p->part == BENCH_PART_UNIT_LOWER)
        memcpy(p->out + lo, p->x + lo, (hi - lo) * sizeof *p->out);
    else
        memset(p->out + lo, 0, (hi - lo) * sizeof *p->out);
    for (size_t j = 0; j < p->n; j += BLOCK_COLS) {
        range cols = {j, p->n - j < BLOCK_COLS ? p->n : j + BLOCK_COLS};
        memset(part, 0, sizeof part);
        add_block(p, (range){lo, hi}, cols, part);
        for (size_t i = lo; i < hi; i++)
            for (int v = 0; v < BENCH_SIGNS; v++)
                p->out[i][v] += part[i - lo][v];
    }
}

void bench_signs_multiply(const bench_signs_product *product)
{
    bench_signs_product job = *product;
    bench_parallel(job.n, BLOCK_ROWS, multiply_rows, &job);
}

/* SplitMix64, as dense.c has it. */
static uint64_t mix(uint64_t seed, uint64_t k)
{
    uint64_t z = seed + (k + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void bench_signs_fill(size_t n, uint64_t seed, double (*x)[BENCH_SIGNS])
{
    for (size_t j = 0; j < n; j++) {
        uint64_t bits = mix(seed, j);
        for (int v = 0; v < BENCH_SIGNS; v++)
            x[j][v] = (bits >> (v + 32) & 1) != 0 ? 1 : -1;
    }
}

double bench_signs_difference(size_t n, const double (*a)[BENCH_SIGNS],
                              const double (*b)[BENCH_SIGNS])
{
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < BENCH_SIGNS; v++)
            worst = bench_signs_larger(worst, fabs(a[i][v] - b[i][v]));
    return worst;
}
