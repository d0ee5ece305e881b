/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/tiles.h"

#include <cblas.h>
#include <lapack.h>
#include <math.h>
#include <stdlib.h>

int bench_blas_threads_set(int count)
{
    int before = openblas_get_num_threads();
    openblas_set_num_threads(count > 0 ? count : openblas_get_num_procs());
    return before;
}

/* A triangle is solved for by halves down to this order, as in kernels/dense/place.c, where the
 * reason is. Halves are multiples of a cache line. */
#define SOLVED_AT_ONCE 32
#define SOLVED_MULTIPLE 8

static size_t half_of(size_t n)
{
    return (n / 2 + SOLVED_MULTIPLE - 1) / SOLVED_MULTIPLE * SOLVED_MULTIPLE;
}

typedef double d_real;
typedef float s_real;

/* The kernels of a precision whose letter in BLAS is p, and their table.
 *
 * potrf is LAPACK's Fortran entry, which libopenblas brings in its own fast version; LAPACKE would
 * scan the tile for not-a-number first. */
#define KERNELS(p, name, unit_roundoff)                                                           \
    static int p##_potrf(size_t n, void *a, size_t lda)                                           \
    {                                                                                             \
        lapack_int order = (lapack_int)n;                                                         \
        lapack_int ld = (lapack_int)lda;                                                          \
        lapack_int info = 0;                                                                      \
        LAPACK_##p##potrf("L", &order, a, &ld, &info);                                            \
        return (int)info;                                                                         \
    }                                                                                             \
    static int p##_getrf(size_t n, void *a, size_t lda, int *pivots)                              \
    {                                                                                             \
        lapack_int order = (lapack_int)n, ld = (lapack_int)lda, info = 0;                         \
        LAPACK_##p##getrf(&order, &order, a, &ld, pivots, &info);                                 \
        return (int)info;                                                                         \
    }                                                                                             \
    static int p##_geqrf(size_t n, void *a, size_t lda, void *tau)                                \
    {                                                                                             \
        lapack_int order = (lapack_int)n, ld = (lapack_int)lda, elements = -1, info = 0;          \
        p##_real best = 0;                                                                        \
        LAPACK_##p##geqrf(&order, &order, a, &ld, tau, &best, &elements, &info);                  \
        p##_real *work = malloc((size_t)best * sizeof best);                                      \
        if (!work)                                                                                \
            return 1;                                                                             \
        elements = (lapack_int)best;                                                              \
        LAPACK_##p##geqrf(&order, &order, a, &ld, tau, work, &elements, &info);                   \
        free(work);                                                                               \
        return (int)info;                                                                         \
    }                                                                                             \
    static void p##_gemm_nt(size_t m, size_t n, size_t k, const void *a, size_t lda,              \
                            const void *b, size_t ldb, void *c, size_t ldc)                       \
    {                                                                                             \
        cblas_##p##gemm(CblasColMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)n,          \
                        (blasint)k, -1, a, (blasint)lda, b, (blasint)ldb, 1, c, (blasint)ldc);    \
    }                                                                                             \
    static void p##_trsm(size_t m, size_t n, const void *l, size_t ldl, void *a, size_t lda)      \
    {                                                                                             \
        if (n <= SOLVED_AT_ONCE) {                                                                \
            cblas_##p##trsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,      \
                            (blasint)m, (blasint)n, 1, l, (blasint)ldl, a, (blasint)lda);         \
            return;                                                                               \
        }                                                                                         \
        size_t half = half_of(n);                                                                 \
        const p##_real *below = (const p##_real *)l + half;                                       \
        p##_real *right = (p##_real *)a + half * lda;                                             \
        p##_trsm(m, half, l, ldl, a, lda);                                                        \
        p##_gemm_nt(m, n - half, half, a, lda, below, ldl, right, lda);                           \
        p##_trsm(m, n - half, below + half * ldl, ldl, right, lda);                               \
    }                                                                                             \
    static void p##_trsm_left(size_t n, const void *l, size_t ldl, void *b, size_t ldb)           \
    {                                                                                             \
        cblas_##p##trsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit,         \
                        (blasint)n, (blasint)n, 1, l, (blasint)ldl, b, (blasint)ldb);             \
    }                                                                                             \
    static void p##_trmm(size_t m, size_t n, const void *l, size_t ldl, void *a, size_t lda)      \
    {                                                                                             \
        cblas_##p##trmm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,          \
                        (blasint)m, (blasint)n, 1, l, (blasint)ldl, a, (blasint)lda);             \
    }                                                                                             \
    static void p##_syrk(size_t n, size_t k, const void *a, size_t lda, void *c, size_t ldc)      \
    {                                                                                             \
        cblas_##p##syrk(CblasColMajor, CblasLower, CblasNoTrans, (blasint)n, (blasint)k, -1, a,   \
                        (blasint)lda, 1, c, (blasint)ldc);                                        \
    }                                                                                             \
    static void p##_gram(size_t n, const void *a, size_t lda, void *c, size_t ldc)                \
    {                                                                                             \
        cblas_##p##syrk(CblasColMajor, CblasLower, CblasNoTrans, (blasint)n, (blasint)n, 1, a,    \
                        (blasint)lda, 0, c, (blasint)ldc);                                        \
    }                                                                                             \
    static void p##_gemm_nn(size_t m, size_t n, size_t k, const void *a, size_t lda,              \
                            const void *b, size_t ldb, int keep, void *c, size_t ldc)             \
    {                                                                                             \
        cblas_##p##gemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (blasint)m, (blasint)n,        \
                        (blasint)k, 1, a, (blasint)lda, b, (blasint)ldb, (p##_real)keep, c,       \
                        (blasint)ldc);                                                            \
    }                                                                                             \
    static void p##_potrs(size_t n, const void *l, size_t ldl, void *b, size_t ldb)               \
    {                                                                                             \
        lapack_int order = (lapack_int)n, lda = (lapack_int)ldl, ld = (lapack_int)ldb, info = 0;  \
        LAPACK_##p##potrs("L", &order, &order, l, &lda, b, &ld, &info);                           \
    }                                                                                             \
    static void p##_getrs(size_t n, const void *lu, size_t ldlu, const int *pivots, void *b,      \
                          size_t ldb)                                                             \
    {                                                                                             \
        lapack_int order = (lapack_int)n, lda = (lapack_int)ldlu, ld = (lapack_int)ldb, info = 0; \
        LAPACK_##p##getrs("N", &order, &order, lu, &lda, pivots, b, &ld, &info);                  \
    }                                                                                             \
    static void p##_solve(size_t n, const void *l, size_t ldl, void *b)                           \
    {                                                                                             \
        cblas_##p##trsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, (blasint)n, l,     \
                        (blasint)ldl, b, 1);                                                      \
        cblas_##p##trsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, (blasint)n, l,       \
                        (blasint)ldl, b, 1);                                                      \
    }                                                                                             \
    static bool p##_round(size_t count, const double *from, void *to)                             \
    {                                                                                             \
        bool fits = true;                                                                         \
        p##_real *rounded = to;                                                                   \
        for (size_t k = 0; k < count; k++) {                                                      \
            rounded[k] = (p##_real)from[k];                                                       \
            fits &= isfinite(rounded[k]) != 0;                                                    \
        }                                                                                         \
        return fits;                                                                              \
    }                                                                                             \
    static void p##_set(void *a, size_t index, double value)                                      \
    {                                                                                             \
        ((p##_real *)a)[index] = (p##_real)value;                                                 \
    }                                                                                             \
    static double p##_get(const void *a, size_t index)                                            \
    {                                                                                             \
        return ((const p##_real *)a)[index];                                                      \
    }                                                                                             \
    const bench_kernels name = {.element = sizeof(p##_real),                                      \
                                .unit = (unit_roundoff),                                          \
                                .potrf = p##_potrf,                                               \
                                .getrf = p##_getrf,                                               \
                                .geqrf = p##_geqrf,                                               \
                                .trsm = p##_trsm,                                                 \
                                .trsm_left = p##_trsm_left,                                       \
                                .trmm = p##_trmm,                                                 \
                                .syrk = p##_syrk,                                                 \
                                .gram = p##_gram,                                                 \
                                .gemm_nt = p##_gemm_nt,                                           \
                                .gemm_nn = p##_gemm_nn,                                           \
                                .potrs = p##_potrs,                                               \
                                .getrs = p##_getrs,                                               \
                                .solve = p##_solve,                                               \
                                .round = p##_round,                                               \
                                .set = p##_set,                                                   \
                                .get = p##_get};

KERNELS(d, bench_kernels_double, 0x1p-53)
KERNELS(s, bench_kernels_single, 0x1p-24)

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
    int info =
        bench_kernels_double.potrf(bench_grid_extent(grid, k), bench_grid_at(grid, k, k), grid->n);
    return info > 0 ? info + (int)(k * grid->tile) : info;
}

void bench_grid_solve(const bench_grid *grid, size_t i, size_t k)
{
    bench_kernels_double.trsm(bench_grid_extent(grid, i), bench_grid_extent(grid, k),
                              bench_grid_at(grid, k, k), grid->n, bench_grid_at(grid, i, k),
                              grid->n);
}

void bench_grid_update(const bench_grid *grid, size_t i, size_t j, size_t k)
{
    size_t rows = bench_grid_extent(grid, i);
    size_t cols = bench_grid_extent(grid, j);
    size_t inner = bench_grid_extent(grid, k);
    if (i == j)
        bench_kernels_double.syrk(rows, inner, bench_grid_at(grid, i, k), grid->n,
                                  bench_grid_at(grid, i, i), grid->n);
    else
        bench_kernels_double.gemm_nt(rows, cols, inner, bench_grid_at(grid, i, k), grid->n,
                                     bench_grid_at(grid, j, k), grid->n, bench_grid_at(grid, i, j),
                                     grid->n);
}

void bench_grid_multiply(const bench_grid *grid, size_t i, size_t j)
{
    bench_kernels_double.gemm_nn(bench_grid_extent(grid, i), bench_grid_extent(grid, j), grid->n,
                                 grid->a + offset(grid, i, 0), grid->n,
                                 grid->b + offset(grid, 0, j), grid->n, 0,
                                 bench_grid_at(grid, i, j), grid->n);
}
