/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices with vectors of random signs, by which checks tell whether a large result is
 * right in O(n^2) operations (R. Freivalds, "Probabilistic machines can use less running time",
 * IFIP 1977). All matrices are n x n, column-major. */
#ifndef BENCH_SIGNS_H
#define BENCH_SIGNS_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_SIGNS 8

/* What a matrix is, of the elements that are stored. */
typedef enum bench_part {
    BENCH_PART_FULL,
    BENCH_PART_TRANSPOSED, /* its transpose */
    BENCH_PART_LOWER,      /* zero above the diagonal */
    BENCH_PART_UNIT_LOWER, /* likewise, and ones on it */
    BENCH_PART_UPPER,
    BENCH_PART_SYMMETRIC /* by its lower triangle */
} bench_part;

/* out = part of m, times x, for all vectors at once: each element that counts is read once, or, of
 * a symmetric matrix beside the diagonal, twice. */
typedef struct bench_signs_product {
    size_t n;
    const void *m;
    double (*get)(const void *m, size_t index); /* m[index]; any thread */
    bench_part part;
    const double (*x)[BENCH_SIGNS];
    double (*out)[BENCH_SIGNS]; /* not x */
} bench_signs_product;

/* On all cores of the process. */
void bench_signs_multiply(const bench_signs_product *product);
/* Signs of n elements; the same seed gives the same ones. */
void bench_signs_fill(size_t n, uint64_t seed, double (*x)[BENCH_SIGNS]);
/* The largest difference, or what is not a number. */
double bench_signs_difference(size_t n, const double (*a)[BENCH_SIGNS],
                              const double (*b)[BENCH_SIGNS]);
/* A get, of doubles. */
double bench_signs_get_double(const void *m, size_t index);
/* The larger one, or what is not a number. */
double bench_signs_larger(double worst, double value);

#endif
