/* SPDX-License-Identifier: Apache-2.0 */
#include "tiles.h"

#include <cblas.h>
#include <lapack.h>

int bench_blas_threads_set(int count)
{
    int before = openblas_get_num_threads();
    openblas_set_num_threads(count > 0 ? count : openblas_get_num_procs());
    return before;
}

/* LAPACK's Fortran entry, which libopenblas brings in its own fast version; LAPACKE would scan the
 * tile for not-a-number first. */
int bench_tile_potrf(size_t n, double *a, size_t lda)
{
    lapack_int order = (lapack_int)n;
    lapack_int ld = (lapack_int)lda;
    lapack_int info = 0;
    LAPACK_dpotrf("L", &order, a, &ld, &info);
    return (int)info;
}

void bench_tile_trsm(size_t m, size_t n, const double *l, size_t ldl, double *a, size_t lda)
{
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (blasint)m,
                (blasint)n, 1.0, l, (blasint)ldl, a, (blasint)lda);
}

void bench_tile_syrk(size_t n, size_t k, const double *a, size_t lda, double *c, size_t ldc)
{
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (blasint)n, (blasint)k, -1.0, a,
                (blasint)lda, 1.0, c, (blasint)ldc);
}

void bench_tile_gemm_nt(size_t m, size_t n, size_t k, const double *a, size_t lda, const double *b,
                        size_t ldb, double *c, size_t ldc)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)n, (blasint)k, -1.0,
                a, (blasint)lda, b, (blasint)ldb, 1.0, c, (blasint)ldc);
}

void bench_tile_gemm_nn(size_t m, size_t n, size_t k, const double *a, size_t lda, const double *b,
                        size_t ldb, double beta, double *c, size_t ldc)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, 1.0,
                a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

void bench_cholesky_solve(size_t n, const double *l, size_t ldl, double *b)
{
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, (blasint)n, l, (blasint)ldl,
                b, 1);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, (blasint)n, l, (blasint)ldl, b,
                1);
}

bench_grid bench_grid_make(size_t n, size_t tile, const double *a, const double *b, double *c)
{
    return (bench_grid){n, tile, (n + tile - 1) / tile, c, a, b};
}

size_t bench_grid_extent(const bench_grid *grid, size_t index)
{
    size_t left = grid->n - index * grid->tile;
    return left < grid->tile ? left : grid->tile;
}

static size_t offset(const bench_grid *grid, size_t i, size_t j)
{
    return i * grid->tile + j * grid->tile * grid->n;
}

double *bench_grid_at(const bench_grid *grid, size_t i, size_t j)
{
    return grid->c + offset(grid, i, j);
}

int bench_grid_factor(const bench_grid *grid, size_t k)
{
    int info = bench_tile_potrf(bench_grid_extent(grid, k), bench_grid_at(grid, k, k), grid->n);
    return info > 0 ? info + (int)(k * grid->tile) : info;
}

void bench_grid_solve(const bench_grid *grid, size_t i, size_t k)
{
    bench_tile_trsm(bench_grid_extent(grid, i), bench_grid_extent(grid, k),
                    bench_grid_at(grid, k, k), grid->n, bench_grid_at(grid, i, k), grid->n);
}

void bench_grid_update(const bench_grid *grid, size_t i, size_t j, size_t k)
{
    size_t rows = bench_grid_extent(grid, i);
    size_t cols = bench_grid_extent(grid, j);
    size_t inner = bench_grid_extent(grid, k);
    if (i == j)
        bench_tile_syrk(rows, inner, bench_grid_at(grid, i, k), grid->n, bench_grid_at(grid, i, i),
                        grid->n);
    else
        bench_tile_gemm_nt(rows, cols, inner, bench_grid_at(grid, i, k), grid->n,
                           bench_grid_at(grid, j, k), grid->n, bench_grid_at(grid, i, j), grid->n);
}

void bench_grid_multiply(const bench_grid *grid, size_t i, size_t j)
{
    bench_tile_gemm_nn(bench_grid_extent(grid, i), bench_grid_extent(grid, j), grid->n,
                       grid->a + offset(grid, i, 0), grid->n, grid->b + offset(grid, 0, j), grid->n,
                       0.0, bench_grid_at(grid, i, j), grid->n);
}
