/* SPDX-License-Identifier: Apache-2.0 */
/* Whether factors are those of a matrix, and solutions those of a system, without multiplying them:
 * O(n^2) operations, on all cores. Both sides are applied to vectors of random signs (signs.h), as
 * in product_check.h. An error of factors is the largest
 * element of the difference over the largest row sum of |A|, so about a small multiple of the unit
 * roundoff times the root of the order for a backward stable factorization of a random matrix
 * (N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 9 and 19). */
#ifndef BENCH_FACTOR_CHECK_H
#define BENCH_FACTOR_CHECK_H

#include "problems/signs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Column-major n x n matrices; the factors are in LAPACK's layout. */
typedef struct bench_factor_claim {
    size_t n;
    const double *a; /* as it was before any rounding */
    const void *factor;
    double (*get)(const void *c, size_t index); /* an element of the factor or of tau; any thread */
    const int32_t *pivots;                      /* of LU: rows from 1 */
    const void *tau;                            /* of QR */
    uint64_t seed;                              /* of the signs */
} bench_factor_claim;

/* P A against L U. False: no memory. Not a number where an element that counts is none. */
bool bench_lu_check(const bench_factor_claim *claim, double *error);
/* A against Q R, and Q' Q against the identity. */
bool bench_qr_check(const bench_factor_claim *claim, double *error, double *orthogonality);

/* A X = B, all n x n. */
typedef struct bench_solution_claim {
    size_t n;
    const double *a; /* as it was before any rounding or factorization */
    bench_part part; /* of a: BENCH_PART_FULL or BENCH_PART_LOWER */
    const void *x;
    double (*get)(const void *x, size_t index); /* any thread */
    const double *b;                            /* likewise */
    uint64_t seed;                              /* of the signs */
} bench_solution_claim;

/* The normwise backward error ||A x - b|| / (||A|| ||x||) in the infinity norm (Higham, section
 * 7.1) of sums of columns: the largest residual over the largest solution of BENCH_SIGNS pairs
 * x = X s, b = B s for vectors s of random signs. False: no memory. Not a number where X has none;
 * infinite where X is 0 and B is not. */
bool bench_solution_check(const bench_solution_claim *claim, double *error);

#endif
