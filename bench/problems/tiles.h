/* SPDX-License-Identifier: Apache-2.0 */
/* Tile kernels on one core over OpenBLAS, shared by filch's workloads and the peers, so that a
 * comparison is one of runtimes. Tiles lie in place in a column-major matrix.
 *
 * OpenBLAS's thread count is one setting for the whole process: set it to one before the tasks run,
 * restore it after; never inside a task. */
#ifndef BENCH_TILES_H
#define BENCH_TILES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* OpenBLAS's thread count becomes count (0: one for each core); returns what it was. */
int bench_blas_threads_set(int count);

/* The kernels of one precision. A pointer is to the first of a column-major matrix's elements. */
typedef struct bench_kernels {
    size_t element; /* bytes */
    double unit;    /* roundoff */
    /* A := L with A = L L', lower triangle. 0, or the order of the minor that is not positive. */
    int (*potrf)(size_t n, void *a, size_t lda);
    /* A := L and U of its factorization with partial pivoting, A being n x n; pivots as LAPACK's.
     * 0, or LAPACK's info. */
    int (*getrf)(size_t n, void *a, size_t lda, int *pivots);
    /* A := R and the reflectors of its factorization, of which tau receives the scalars. 0, or
     * LAPACK's info; 1 also where memory is out. */
    int (*geqrf)(size_t n, void *a, size_t lda, void *tau);
    /* A := A L^-T, A being m x n. */
    void (*trsm)(size_t m, size_t n, const void *l, size_t ldl, void *a, size_t lda);
    /* B := L^-1 B, B being n x n. */
    void (*trsm_left)(size_t n, const void *l, size_t ldl, void *b, size_t ldb);
    /* A := A L', A being m x n. */
    void (*trmm)(size_t m, size_t n, const void *l, size_t ldl, void *a, size_t lda);
    /* C := C - A A', lower triangle; A is n x k. */
    void (*syrk)(size_t n, size_t k, const void *a, size_t lda, void *c, size_t ldc);
    /* C := A A', lower triangle; all are n x n. */
    void (*gram)(size_t n, const void *a, size_t lda, void *c, size_t ldc);
    /* C := C - A B', C being m x n, A m x k, B n x k. */
    void (*gemm_nt)(size_t m, size_t n, size_t k, const void *a, size_t lda, const void *b,
                    size_t ldb, void *c, size_t ldc);
    /* C := A B + keep C, C being m x n, A m x k, B k x n; keep is 0 or 1. */
    void (*gemm_nn)(size_t m, size_t n, size_t k, const void *a, size_t lda, const void *b,
                    size_t ldb, int keep, void *c, size_t ldc);
    /* B := A^-1 B by L of A = L L', or by L, U and pivots of getrf; B is n x n. */
    void (*potrs)(size_t n, const void *l, size_t ldl, void *b, size_t ldb);
    void (*getrs)(size_t n, const void *lu, size_t ld, const int *pivots, void *b, size_t ldb);
    /* Solves L L' x = b in place of b, after a factorization. */
    void (*solve)(size_t n, const void *l, size_t ldl, void *b);
    /* Rounds count numbers to this precision; false where one is beyond its range. */
    bool (*round)(size_t count, const double *from, void *to);
    /* a[index] := value */
    void (*set)(void *a, size_t index, double value);
    /* a[index] */
    double (*get)(const void *a, size_t index);
} bench_kernels;

extern const bench_kernels bench_kernels_double;
extern const bench_kernels bench_kernels_single;

/* An n x n matrix of doubles in square tiles, the last row and column of tiles being smaller where
 * tile does not divide n. */
typedef struct bench_grid {
    size_t n;
    size_t tile;
    size_t count; /* of tiles along a side */
    double *c;
    const double *a; /* of a product c = a b; else null */
    const double *b;
} bench_grid;

bench_grid bench_grid_make(size_t n, size_t tile, const double *a, const double *b, double *c);
size_t bench_grid_extent(const bench_grid *grid, size_t index);
/* First element of tile (i, j) of c. */
double *bench_grid_at(const bench_grid *grid, size_t i, size_t j);

/* The tasks of the right-looking Cholesky factorization of c by tiles (A. Buttari et al., "A class
 * of parallel tiled linear algebra algorithms for multicore architectures", Parallel Computing 35,
 * 2009), and of the product. factor(k) gives 0, or the order of the minor of the whole matrix that
 * is not positive. update(i, j, k) is a syrk where i == j. */
int bench_grid_factor(const bench_grid *grid, size_t k);
void bench_grid_solve(const bench_grid *grid, size_t i, size_t k);
void bench_grid_update(const bench_grid *grid, size_t i, size_t j, size_t k);
/* Tile (i, j) of c = a b, over all of the inner dimension. */
void bench_grid_multiply(const bench_grid *grid, size_t i, size_t j);

#ifdef __cplusplus
}
#endif

#endif
