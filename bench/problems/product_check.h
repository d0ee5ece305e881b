/* SPDX-License-Identifier: Apache-2.0 */
/* Whether C is the product of A and B, without computing it again: O(n^2) operations.
 *
 * All elements: C x is compared with A (B x) for BENCH_SIGNS vectors x of random signs (signs.h).
 * Let d be the largest error of a row's elements. Whatever the other errors, one of the two signs
 * of that element's x makes the row of C x - A (B x) at least d; so a row with an error above the
 * bound passes one vector with a probability of at most 1/2, and all of them with 2^-BENCH_SIGNS.
 * One wrong element in a row is always found. The rounding errors of a right row add up like a
 * random walk, so the bound for a row is sqrt(n) times that of an element; an error between the
 * two, in an element that is not sampled, may pass.
 *
 * Some elements: those where 16 rows and 256 columns meet, first and last ones among them, are
 * compared with sums in long double. They also tell how large elements are, by which all errors are
 * divided: a wrong C does not widen its own bound. */
#ifndef BENCH_PRODUCT_CHECK_H
#define BENCH_PRODUCT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_PRODUCT_ROWS 16
#define BENCH_PRODUCT_COLS 256

/* Column-major n x n matrices. b null: B is A', and C's lower triangle tells all of it. */
typedef struct bench_product_claim {
    size_t n;
    const double *a, *b; /* as they were before any rounding */
    const void *c;
    double (*get)(const void *c, size_t index); /* c[index]; any thread */
    uint64_t seed;                              /* of the signs */
} bench_product_claim;

/* Errors over the largest sampled element; not a number where something that was looked at is
 * none. */
typedef struct bench_product_errors {
    double sampled; /* the largest of a sampled element */
    double rows;    /* the largest of a row's combination with random signs, over sqrt(n) */
} bench_product_errors;

/* On all cores of the process. False: no memory. */
bool bench_product_check(const bench_product_claim *claim, bench_product_errors *errors);

#endif
