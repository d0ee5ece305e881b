/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of Matrix Market files (R. Boisvert, R. Pozo, K. Remington, "The Matrix Market Exchange
 * Formats: Initial Design", NISTIR 5935, 1996) into dense column-major doubles.
 *
 * Read: coordinate and array; real, integer and pattern; general and symmetric. Refused with
 * FILCH_UNSUPPORTED: complex, hermitian, skew-symmetric. */
#ifndef BENCH_MATRIX_MARKET_H
#define BENCH_MATRIX_MARKET_H

#include "filch/status.h"

#include <stdbool.h>

typedef struct bench_matrix {
    size_t rows;
    size_t cols;
    double *values; /* element (i, j) at values[i + j * rows]; free with bench_matrix_free */
    size_t stored;  /* entries in the file, before symmetric expansion */
} bench_matrix;

typedef enum bench_matrix_need {
    BENCH_MATRIX_ANY,
    BENCH_MATRIX_SQUARE,
    BENCH_MATRIX_SYMMETRIC /* declared so in the file, or general with a(i,j) == a(j,i) exactly */
} bench_matrix_need;

/* Reads a matrix from length bytes of text, which need not be terminated. name stands for the file
 * in messages. limit bounds the bytes of the dense matrix; 0 is the machine's physical memory.
 *
 * FILCH_PARSE: malformed, truncated or trailing text. FILCH_DATA: well-formed but unacceptable (a
 * size of 0, an index out of range, a duplicate, not finite, not square or symmetric as needed).
 * FILCH_UNSUPPORTED, FILCH_OVERFLOW, FILCH_TOO_LARGE (over the limit), FILCH_OUT_OF_MEMORY.
 * error->line is the line; *matrix is written on success only. */
filch_status bench_matrix_parse(const char *text, size_t length, const char *name,
                                bench_matrix_need need, size_t limit, filch_error *error,
                                bench_matrix *matrix);

/* The same from a file; FILCH_IO where it cannot be read. */
filch_status bench_matrix_read(const char *path, bench_matrix_need need, size_t limit,
                               filch_error *error, bench_matrix *matrix);

void bench_matrix_free(bench_matrix *matrix);

#endif
