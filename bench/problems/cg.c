/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/cg.h"

#include "support/fail.h"
#include "support/parallel.h"

#include <math.h>
#include <stdlib.h>

/* Sums that are kept apart, so that additions need not wait for each other. */
#define LANES 4
#define NEIGHBOURS 6

size_t bench_cg_row(const bench_cg_system *s, size_t block)
{
    return s->g * block / s->blocks * s->g * s->g;
}

static double right_side(size_t row)
{
    return 1.0 + (double)(row * 2654435761u % 1000) * 1e-3;
}

/* Columns of a row, in ascending order; how many. An empty grid has no rows. */
static uint32_t row_columns(size_t side, size_t row, uint32_t columns[NEIGHBOURS + 1])
{
    const size_t g = side > 0 ? side : 1;
    const size_t at[3] = {row % g, row / g % g, row / (g * g)}, stride[3] = {1, g, g * g};
    uint32_t count = 0;
    for (int k = 2; k >= 0; k--)
        if (at[k] > 0)
            columns[count++] = (uint32_t)(row - stride[k]);
    columns[count++] = (uint32_t)row;
    for (int k = 0; k < 3; k++)
        if (at[k] + 1 < g)
            columns[count++] = (uint32_t)(row + stride[k]);
    return count;
}

static void fill_rows(void *context, size_t lo, size_t hi)
{
    bench_cg_system *s = context;
    for (size_t row = lo; row < hi; row++) {
        uint32_t columns[NEIGHBOURS + 1];
        uint32_t count = row_columns(s->g, row, columns);
        for (uint32_t k = 0; k < count; k++) {
            s->columns[s->starts[row] + k] = columns[k];
            s->values[s->starts[row] + k] = columns[k] == row ? NEIGHBOURS : -1.0;
        }
    }
}

filch_status bench_cg_assemble(bench_cg_system *s, filch_error *error)
{
    s->rows = s->g * s->g * s->g;
    s->starts = malloc((s->rows + 1) * sizeof *s->starts);
    if (!s->starts)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for %zu rows", s->rows);
    s->starts[0] = 0;
    for (size_t row = 0; row < s->rows; row++) {
        uint32_t columns[NEIGHBOURS + 1];
        s->starts[row + 1] = s->starts[row] + row_columns(s->g, row, columns);
    }
    s->columns = malloc(s->starts[s->rows] * sizeof *s->columns);
    s->values = malloc(s->starts[s->rows] * sizeof *s->values);
    if (!s->columns || !s->values)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for %u elements",
                          s->starts[s->rows]);
    /* Whole planes, so that pages are first touched on several cores. */
    bench_parallel(s->rows, s->g * s->g, fill_rows, s);
    return FILCH_OK;
}

void bench_cg_free(bench_cg_system *s)
{
    free(s->starts);
    free(s->columns);
    free(s->values);
}

double bench_cg_init(const bench_cg_system *s, size_t block, double *x, double *r, double *p)
{
    size_t lo = bench_cg_row(s, block), count = bench_cg_row(s, block + 1) - lo;
    double sum = 0;
    for (size_t k = 0; k < count; k++) {
        x[k] = 0;
        r[k] = p[k] = right_side(lo + k);
        sum += r[k] * r[k];
    }
    return sum;
}

double bench_cg_multiply(const bench_cg_system *s, size_t block, const double *restrict p,
                         double *restrict q)
{
    size_t lo = bench_cg_row(s, block), hi = bench_cg_row(s, block + 1);
    const uint32_t *restrict starts = s->starts, *restrict columns = s->columns;
    const double *restrict values = s->values;
    double sum = 0;
    for (size_t row = lo; row < hi; row++) {
        double value = 0;
        for (uint32_t k = starts[row]; k < starts[row + 1]; k++)
            value += values[k] * p[columns[k]];
        q[row - lo] = value;
        sum += value * p[row];
    }
    return sum;
}

static double element_of(const bench_cg_rows *b, size_t column)
{
    if (column < b->lo)
        return b->before[column + b->plane - b->lo];
    return column - b->lo < b->count ? b->p[column - b->lo] : b->after[column - b->lo - b->count];
}

double bench_cg_multiply_rows(const bench_cg_rows *rows, double *q)
{
    double sum = 0;
    for (size_t row = 0; row < rows->count; row++) {
        size_t end =
            row + 1 < rows->count ? rows->starts[row + 1] - rows->starts[0] : rows->elements;
        double value = 0;
        for (size_t k = rows->starts[row] - rows->starts[0]; k < end; k++)
            value += rows->values[k] * element_of(rows, rows->columns[k]);
        q[row] = value;
        sum += value * rows->p[row];
    }
    return sum;
}

double bench_cg_update(size_t count, double alpha, const double *restrict p,
                       const double *restrict q, double *restrict x, double *restrict r)
{
    double sums[LANES] = {0};
    size_t k = 0;
    for (; k + LANES <= count; k += LANES)
        for (size_t lane = 0; lane < LANES; lane++) {
            x[k + lane] += alpha * p[k + lane];
            r[k + lane] -= alpha * q[k + lane];
            sums[lane] += r[k + lane] * r[k + lane];
        }
    for (; k < count; k++) {
        x[k] += alpha * p[k];
        r[k] -= alpha * q[k];
        sums[0] += r[k] * r[k];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void bench_cg_direction(size_t count, double scale, const double *restrict r, double beta,
                        double *restrict p)
{
    for (size_t k = 0; k < count; k++)
        p[k] = scale * r[k] + beta * p[k];
}

double bench_cg_sum(const bench_cg_part *parts, size_t blocks)
{
    double sum = 0;
    for (size_t b = 0; b < blocks; b++)
        sum += parts[b].value;
    return sum;
}

/* Once the residual is 0 nothing changes any more. */
static double ratio(double above, double below)
{
    return below > 0 ? above / below : 0;
}

void bench_cg_begin(bench_cg_scalars *scalars, double rr)
{
    *scalars = (bench_cg_scalars){.rr = rr};
}

void bench_cg_alpha(bench_cg_scalars *scalars, double pq)
{
    scalars->alpha = ratio(scalars->rr, pq);
}

void bench_cg_beta(bench_cg_scalars *scalars, double rr)
{
    scalars->beta = ratio(rr, scalars->rr);
    scalars->rr = rr;
}

double bench_cg_backward_error(const bench_cg_system *s, const double *x)
{
    double rest = 0, norm = 0, x_most = 0, b_most = 0;
    for (size_t row = 0; row < s->rows; row++) {
        double value = right_side(row), sum = 0;
        b_most = fmax(b_most, fabs(value));
        x_most = fmax(x_most, fabs(x[row]));
        for (uint32_t k = s->starts[row]; k < s->starts[row + 1]; k++) {
            value -= s->values[k] * x[s->columns[k]];
            sum += fabs(s->values[k]);
        }
        rest = fmax(rest, fabs(value));
        norm = fmax(norm, sum);
    }
    return rest / (norm * x_most + b_most);
}

static void iterate(const bench_cg_system *s, double *const v[4], bench_cg_part *parts,
                    bench_cg_scalars *scalars)
{
    for (size_t b = 0; b < s->blocks; b++)
        parts[b].value = bench_cg_multiply(s, b, v[2], v[3] + bench_cg_row(s, b));
    bench_cg_alpha(scalars, bench_cg_sum(parts, s->blocks));
    for (size_t b = 0; b < s->blocks; b++) {
        size_t lo = bench_cg_row(s, b), count = bench_cg_row(s, b + 1) - lo;
        parts[b].value =
            bench_cg_update(count, scalars->alpha, v[2] + lo, v[3] + lo, v[0] + lo, v[1] + lo);
    }
    bench_cg_beta(scalars, bench_cg_sum(parts, s->blocks));
    for (size_t b = 0; b < s->blocks; b++) {
        size_t lo = bench_cg_row(s, b), count = bench_cg_row(s, b + 1) - lo;
        bench_cg_direction(count, 1, v[1] + lo, scalars->beta, v[2] + lo);
    }
}

filch_status bench_cg_solve(const bench_cg_system *s, double *x, filch_error *error)
{
    double *rest = malloc(3 * s->rows * sizeof *rest);
    bench_cg_part *parts = calloc(s->blocks, sizeof *parts);
    bench_cg_scalars scalars;
    if (!rest || !parts) {
        free(rest);
        free(parts);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory");
    }
    double *const v[4] = {x, rest, rest + s->rows, rest + 2 * s->rows};
    for (size_t b = 0; b < s->blocks; b++) {
        size_t lo = bench_cg_row(s, b);
        parts[b].value = bench_cg_init(s, b, v[0] + lo, v[1] + lo, v[2] + lo);
    }
    bench_cg_begin(&scalars, bench_cg_sum(parts, s->blocks));
    for (size_t k = 0; k < s->iterations; k++)
        iterate(s, v, parts, &scalars);
    free(rest);
    free(parts);
    return FILCH_OK;
}
