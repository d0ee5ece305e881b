/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients without a preconditioner (M. Hestenes, E. Stiefel, 1952) on the 7-point
 * Laplacian of a cube of points, kept as a sparse matrix by rows (CSR). Rows are cut into blocks of
 * whole planes; a block needs the planes next to it of its neighbours alone. filch and its peers
 * call the functions below for each block, and add up blocks in their order, so that all get the
 * same bits. */
#ifndef BENCH_CG_H
#define BENCH_CG_H

#include "filch/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bench_cg_system {
    size_t g;      /* points a side */
    size_t rows;   /* g^3 */
    size_t blocks; /* at most g */
    size_t iterations;
    uint32_t *starts; /* rows + 1: of each row's elements */
    uint32_t *columns;
    double *values;
} bench_cg_system;

/* What an iteration hands to the next one. */
typedef struct bench_cg_scalars {
    double rr; /* the residual's square */
    double alpha, beta;
    char unused[40];
} bench_cg_scalars;

/* A block's part of a dot product: a cache line. */
typedef struct bench_cg_part {
    double value;
    char unused[56];
} bench_cg_part;

/* Fills the matrix of a system whose g is set, on several threads. FILCH_OUT_OF_MEMORY. */
filch_status bench_cg_assemble(bench_cg_system *s, filch_error *error);
void bench_cg_free(bench_cg_system *s);

/* First row of a block; of block `blocks`: rows. */
size_t bench_cg_row(const bench_cg_system *s, size_t block);

/* A block's start: x = 0, r = p = right side. Returns the block's part of r r. All pointers are to
 * the block's first row. */
double bench_cg_init(const bench_cg_system *s, size_t block, double *x, double *r, double *p);
/* q = A p of a block's rows. p: of all rows; q: the block's. Returns the block's part of p q. */
double bench_cg_multiply(const bench_cg_system *s, size_t block, const double *p, double *q);
/* The same of a block that has its part of the matrix alone, and of its neighbours the planes next
 * to it: columns below `lo` are of the plane before, those from lo + count on of the one after. */
typedef struct bench_cg_rows {
    size_t lo, count; /* rows of the block */
    size_t plane;     /* rows of a plane */
    size_t elements;
    const uint32_t *starts; /* count: of each row's elements, counted from anywhere */
    const uint32_t *columns;
    const double *values;
    const double *p, *before, *after;
} bench_cg_rows;
double bench_cg_multiply_rows(const bench_cg_rows *rows, double *q);
/* x += alpha p, r -= alpha q. Returns r r. */
double bench_cg_update(size_t count, double alpha, const double *p, const double *q, double *x,
                       double *r);
/* p = scale r + beta p. */
void bench_cg_direction(size_t count, double scale, const double *r, double beta, double *p);

double bench_cg_sum(const bench_cg_part *parts, size_t blocks);
/* The sums' meaning; the first sets rr alone. */
void bench_cg_begin(bench_cg_scalars *scalars, double rr);
void bench_cg_alpha(bench_cg_scalars *scalars, double pq);
void bench_cg_beta(bench_cg_scalars *scalars, double rr);

/* max |b - A x| over (max of the rows' sums of |A| times max |x|, plus max |b|). */
double bench_cg_backward_error(const bench_cg_system *s, const double *x);
/* All iterations, block by block; x receives the solution. FILCH_OUT_OF_MEMORY. */
filch_status bench_cg_solve(const bench_cg_system *s, double *x, filch_error *error);

#endif
