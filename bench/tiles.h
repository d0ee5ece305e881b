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

/* A := L with A = L L', lower triangle. 0, or the order of the minor that is not positive. */
int bench_tile_potrf(size_t n, double *a, size_t lda);
/* A := A L^-T, A being m x n. */
void bench_tile_trsm(size_t m, size_t n, const double *l, size_t ldl, double *a, size_t lda);
/* C := C - A A', lower triangle; A is n x k. */
void bench_tile_syrk(size_t n, size_t k, const double *a, size_t lda, double *c, size_t ldc);
/* C := C - A B', C being m x n, A m x k, B n x k. */
void bench_tile_gemm_nt(size_t m, size_t n, size_t k, const double *a, size_t lda, const double *b,
                        size_t ldb, double *c, size_t ldc);
/* C := beta C + A B, C being m x n, A m x k, B k x n. */
void bench_tile_gemm_nn(size_t m, size_t n, size_t k, const double *a, size_t lda, const double *b,
                        size_t ldb, double beta, double *c, size_t ldc);
/* Solves L L' x = b in place of b, after a factorization. */
void bench_cholesky_solve(size_t n, const double *l, size_t ldl, double *b);

/* An n x n matrix in square tiles, the last row and column of tiles being smaller where tile does
 * not divide n. */
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
