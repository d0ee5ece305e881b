/* SPDX-License-Identifier: Apache-2.0 */
/* Dense column-major matrices: inputs, references and errors. Element (i, j) is a[i + j * ld]. */
#ifndef BENCH_DENSE_H
#define BENCH_DENSE_H

#include <stddef.h>
#include <stdint.h>

/* Uniform in [-1, 1); the same seed gives the same numbers everywhere. */
void bench_dense_fill(size_t rows, size_t cols, size_t ld, double *a, uint64_t seed);
/* Symmetric positive definite by diagonal dominance: off-diagonal as above, diagonal n + [0, 1). */
void bench_dense_fill_spd(size_t n, size_t ld, double *a, uint64_t seed);

/* Largest row sum of magnitudes. row_sums is scratch for rows elements. */
double bench_dense_norm_inf(size_t rows, size_t cols, size_t ld, const double *a, double *row_sums);
double bench_vector_norm_inf(size_t n, const double *x);
/* Largest |a - b| over the largest |b|; of the lower triangle only where lower is not 0. Not a
 * number where an element of either is none. */
double bench_dense_difference(size_t rows, size_t cols, size_t lda, const double *a, size_t ldb,
                              const double *b, int lower);

/* Normwise backward error ||Ax - b|| / (||A|| ||x||) in the infinity norm, of a square A: about the
 * unit roundoff for a backward stable solver (N. Higham, Accuracy and Stability of Numerical
 * Algorithms, 2nd ed., section 7.1). The residual is accumulated in long double. Negative when
 * memory is out; not a number when x has none; infinite when x is 0 and b is not. */
double bench_backward_error(size_t n, size_t ld, const double *a, const double *x, const double *b);

/* b = A x for the x of all ones. */
void bench_dense_row_sums(size_t n, size_t ld, const double *a, double *b);

/* Floating point operations (LAPACK Working Note 41, appendix C). */
double bench_flops_cholesky(double n);
double bench_flops_gemm(double m, double n, double k);
double bench_flops_trsm(double m, double n); /* X L' = B, X being m x n */
double bench_flops_syrk(double n, double k);

#endif
