/* SPDX-License-Identifier: Apache-2.0 */
/* A cuBLAS for the fake driver: libcublas.so.13. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fakeblas.h"

#define MAGIC 0xb1a5b1a5u

static _Atomic int handles;

__attribute__((destructor)) static void finish(void)
{
    if (handles > 0)
        fakecuda_report("cuBLAS handles left behind at the process's end");
}

static fake_blas *handle_get(void *handle)
{
    fake_blas *blas = handle;

    if (blas != NULL && blas->magic == MAGIC)
        return blas;
    fakecuda_report("no living cuBLAS handle");
    return NULL;
}

FAKECUDA_API int cublasCreate_v2(void **handle);
FAKECUDA_API int cublasDestroy_v2(void *handle);
FAKECUDA_API int cublasSetStream_v2(void *handle, void *stream);
FAKECUDA_API int cublasGetVersion_v2(void *handle, int *version);
FAKECUDA_API int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes);
FAKECUDA_API int cublasSetMathMode(void *handle, int mode);
FAKECUDA_API int cublasSetSmCountTarget(void *handle, int count);

int cublasCreate_v2(void **handle)
{
    fake_blas *blas;

    if (fakecuda_visit("cublasCreate", true) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    blas = calloc(1, sizeof *blas);
    if (blas == NULL)
        return FAKE_BLAS_ALLOC_FAILED;
    blas->magic = MAGIC;
    handles++;
    *handle = blas;
    return FAKE_BLAS_SUCCESS;
}

int cublasDestroy_v2(void *handle)
{
    fake_blas *blas = handle_get(handle);

    if (blas == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    (void)fakecuda_visit("cublasDestroy", true);
    blas->magic = 0;
    handles--;
    free(blas);
    return FAKE_BLAS_SUCCESS;
}

int cublasSetStream_v2(void *handle, void *stream)
{
    fake_blas *blas = handle_get(handle);

    if (blas == NULL || fakecuda_visit("cublasSetStream", false) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    blas->stream = stream;
    return FAKE_BLAS_SUCCESS;
}

int cublasGetVersion_v2(void *handle, int *version)
{
    if (handle_get(handle) == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    *version = 130000;
    return FAKE_BLAS_SUCCESS;
}

int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes)
{
    if (handle_get(handle) == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (bytes > 0 && fakecuda_peek(workspace, bytes) == NULL)
        return FAKE_BLAS_INVALID_VALUE;
    return FAKE_BLAS_SUCCESS;
}

int cublasSetMathMode(void *handle, int mode)
{
    (void)mode;
    return handle_get(handle) == NULL ? FAKE_BLAS_NOT_INITIALIZED : FAKE_BLAS_SUCCESS;
}

int cublasSetSmCountTarget(void *handle, int count)
{
    if (handle_get(handle) == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    return count < 0 ? FAKE_BLAS_INVALID_VALUE : FAKE_BLAS_SUCCESS;
}

static int submit(void *handle, const fake_blas_call *call, int (*run)(void *data))
{
    const fake_blas *blas = handle_get(handle);

    if (blas == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (call->m < 0 || call->n < 0 || call->k < 0 || call->count < 0)
        return FAKE_BLAS_INVALID_VALUE;
    if (fakecuda_visit(call->name, false) != 0 ||
        fakecuda_enqueue_copy(blas->stream, run, call, sizeof *call) != 0)
        return FAKE_BLAS_EXECUTION_FAILED;
    return FAKE_BLAS_SUCCESS;
}

/* The table of a batch, which is the device's memory, too. */
static void *const *table_find(const void *at, int count)
{
    return fake_blas_find(at, count, 1, count, sizeof(void *));
}

/* P and p: the precision's letter in cuBLAS's and in the host's names. */
#define PRECISION(P, p, real)                                                                      \
    FAKECUDA_API int cublas##P##gemm_v2(void *handle, int op_a, int op_b, int m, int n, int k,     \
                                        const real *alpha, const real *a, int lda, const real *b,  \
                                        int ldb, const real *beta, real *c, int ldc);              \
    FAKECUDA_API int cublas##P##trsm_v2(void *handle, int side, int fill, int op, int diagonal,    \
                                        int m, int n, const real *alpha, const real *a, int lda,   \
                                        real *b, int ldb);                                         \
    FAKECUDA_API int cublas##P##syrk_v2(void *handle, int fill, int op, int n, int k,              \
                                        const real *alpha, const real *a, int lda,                 \
                                        const real *beta, real *c, int ldc);                       \
                                                                                                   \
    static int p##_gemm(void *data)                                                                \
    {                                                                                              \
        const fake_blas_call *d = data;                                                            \
        const real *a = fake_blas_find(d->a, d->op_a == 0 ? d->m : d->k,                           \
                                       d->op_a == 0 ? d->k : d->m, d->lda, sizeof(real));          \
        const real *b = fake_blas_find(d->b, d->op_b == 0 ? d->k : d->n,                           \
                                       d->op_b == 0 ? d->n : d->k, d->ldb, sizeof(real));          \
        real *c = fake_blas_find(d->c, d->m, d->n, d->ldc, sizeof(real));                          \
        if (a == NULL || b == NULL || c == NULL)                                                   \
            return 1;                                                                              \
        cblas_##p##gemm(CblasColMajor, fake_blas_op(d->op_a), fake_blas_op(d->op_b), d->m, d->n,   \
                        d->k, (real)d->alpha, a, d->lda, b, d->ldb, (real)d->beta, c, d->ldc);     \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_trsm(void *data)                                                                \
    {                                                                                              \
        const fake_blas_call *d = data;                                                            \
        int order = d->side == 0 ? d->m : d->n;                                                    \
        const real *a = fake_blas_find(d->a, order, order, d->lda, sizeof(real));                  \
        real *c = fake_blas_find(d->c, d->m, d->n, d->ldc, sizeof(real));                          \
        if (a == NULL || c == NULL)                                                                \
            return 1;                                                                              \
        cblas_##p##trsm(CblasColMajor, d->side == 0 ? CblasLeft : CblasRight,                      \
                        fake_blas_fill(d->fill), fake_blas_op(d->op_a),                            \
                        d->diagonal == 0 ? CblasNonUnit : CblasUnit, d->m, d->n, (real)d->alpha,   \
                        a, d->lda, c, d->ldc);                                                     \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_syrk(void *data)                                                                \
    {                                                                                              \
        const fake_blas_call *d = data;                                                            \
        const real *a = fake_blas_find(d->a, d->op_a == 0 ? d->n : d->k,                           \
                                       d->op_a == 0 ? d->k : d->n, d->lda, sizeof(real));          \
        real *c = fake_blas_find(d->c, d->n, d->n, d->ldc, sizeof(real));                          \
        if (a == NULL || c == NULL)                                                                \
            return 1;                                                                              \
        cblas_##p##syrk(CblasColMajor, fake_blas_fill(d->fill), fake_blas_op(d->op_a), d->n, d->k, \
                        (real)d->alpha, a, d->lda, (real)d->beta, c, d->ldc);                      \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    int cublas##P##gemm_v2(void *handle, int op_a, int op_b, int m, int n, int k,                  \
                           const real *alpha, const real *a, int lda, const real *b, int ldb,      \
                           const real *beta, real *c, int ldc)                                     \
    {                                                                                              \
        const fake_blas_call d = {.name = "cublas" #P "gemm",                                      \
                                  .op_a = op_a,                                                    \
                                  .op_b = op_b,                                                    \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .k = k,                                                          \
                                  .lda = lda,                                                      \
                                  .ldb = ldb,                                                      \
                                  .ldc = ldc,                                                      \
                                  .alpha = *alpha,                                                 \
                                  .beta = *beta,                                                   \
                                  .a = a,                                                          \
                                  .b = b,                                                          \
                                  .c = c};                                                         \
        return submit(handle, &d, p##_gemm);                                                       \
    }                                                                                              \
                                                                                                   \
    int cublas##P##trsm_v2(void *handle, int side, int fill, int op, int diagonal, int m, int n,   \
                           const real *alpha, const real *a, int lda, real *b, int ldb)            \
    {                                                                                              \
        const fake_blas_call d = {.name = "cublas" #P "trsm",                                      \
                                  .side = side,                                                    \
                                  .fill = fill,                                                    \
                                  .op_a = op,                                                      \
                                  .diagonal = diagonal,                                            \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .lda = lda,                                                      \
                                  .ldc = ldb,                                                      \
                                  .alpha = *alpha,                                                 \
                                  .a = a,                                                          \
                                  .c = b};                                                         \
        return submit(handle, &d, p##_trsm);                                                       \
    }                                                                                              \
                                                                                                   \
    int cublas##P##syrk_v2(void *handle, int fill, int op, int n, int k, const real *alpha,        \
                           const real *a, int lda, const real *beta, real *c, int ldc)             \
    {                                                                                              \
        const fake_blas_call d = {.name = "cublas" #P "syrk",                                      \
                                  .fill = fill,                                                    \
                                  .op_a = op,                                                      \
                                  .n = n,                                                          \
                                  .k = k,                                                          \
                                  .lda = lda,                                                      \
                                  .ldc = ldc,                                                      \
                                  .alpha = *alpha,                                                 \
                                  .beta = *beta,                                                   \
                                  .a = a,                                                          \
                                  .c = c};                                                         \
        return submit(handle, &d, p##_syrk);                                                       \
    }

PRECISION(D, d, double)
PRECISION(S, s, float)

/* The rest: C is another matrix than B, or many matrices are meant. */
#define EXTENSIONS(P, p, real)                                                                     \
    FAKECUDA_API int cublas##P##trmm_v2(void *handle, int side, int fill, int op, int diagonal,    \
                                        int m, int n, const real *alpha, const real *a, int lda,   \
                                        const real *b, int ldb, real *c, int ldc);                 \
    FAKECUDA_API int cublas##P##geam(void *handle, int op_a, int op_b, int m, int n,               \
                                     const real *alpha, const real *a, int lda, const real *beta,  \
                                     const real *b, int ldb, real *c, int ldc);                    \
    FAKECUDA_API int cublas##P##gemmStridedBatched(                                                \
        void *handle, int op_a, int op_b, int m, int n, int k, const real *alpha, const real *a,   \
        int lda, long long step_a, const real *b, int ldb, long long step_b, const real *beta,     \
        real *c, int ldc, long long step_c, int count);                                            \
    FAKECUDA_API int cublas##P##trsmBatched(                                                       \
        void *handle, int side, int fill, int op, int diagonal, int m, int n, const real *alpha,   \
        const real *const *a, int lda, real *const *b, int ldb, int count);                        \
                                                                                                   \
    static int p##_trmm(void *data)                                                                \
    {                                                                                              \
        const fake_blas_call *d = data;                                                            \
        int order = d->side == 0 ? d->m : d->n;                                                    \
        const real *a = fake_blas_find(d->a, order, order, d->lda, sizeof(real));                  \
        const real *b = fake_blas_find(d->b, d->m, d->n, d->ldb, sizeof(real));                    \
        real *c = fake_blas_find(d->c, d->m, d->n, d->ldc, sizeof(real));                          \
        if (a == NULL || b == NULL || c == NULL)                                                   \
            return 1;                                                                              \
        for (int j = 0; j < d->n && b != c; j++)                                                   \
            memcpy(c + (size_t)j * (size_t)d->ldc, b + (size_t)j * (size_t)d->ldb,                 \
                   (size_t)d->m * sizeof(real));                                                   \
        cblas_##p##trmm(CblasColMajor, d->side == 0 ? CblasLeft : CblasRight,                      \
                        fake_blas_fill(d->fill), fake_blas_op(d->op_a),                            \
                        d->diagonal == 0 ? CblasNonUnit : CblasUnit, d->m, d->n, (real)d->alpha,   \
                        a, d->lda, c, d->ldc);                                                     \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static real p##_term(double factor, const real *a, int op, int ld, int i, int j)               \
    {                                                                                              \
        size_t at =                                                                                \
            op == 0 ? (size_t)i + (size_t)j * (size_t)ld : (size_t)j + (size_t)i * (size_t)ld;     \
        return factor == 0 ? 0 : (real)factor * a[at];                                             \
    }                                                                                              \
                                                                                                   \
    static int p##_geam(void *data)                                                                \
    {                                                                                              \
        const fake_blas_call *d = data;                                                            \
        const real *a = fake_blas_find(d->a, d->op_a == 0 ? d->m : d->n,                           \
                                       d->op_a == 0 ? d->n : d->m, d->lda, sizeof(real));          \
        const real *b = fake_blas_find(d->b, d->op_b == 0 ? d->m : d->n,                           \
                                       d->op_b == 0 ? d->n : d->m, d->ldb, sizeof(real));          \
        real *c = fake_blas_find(d->c, d->m, d->n, d->ldc, sizeof(real));                          \
        if (a == NULL || b == NULL || c == NULL)                                                   \
            return 1;                                                                              \
        for (int j = 0; j < d->n; j++)                                                             \
            for (int i = 0; i < d->m; i++)                                                         \
                c[(size_t)i + (size_t)j * (size_t)d->ldc] =                                        \
                    p##_term(d->alpha, a, d->op_a, d->lda, i, j) +                                 \
                    p##_term(d->beta, b, d->op_b, d->ldb, i, j);                                   \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_gemm_strided(void *data)                                                        \
    {                                                                                              \
        const fake_blas_call *d = data;                                                            \
        int failed = 0;                                                                            \
        for (long long k = 0; k < d->count && !failed; k++) {                                      \
            fake_blas_call one = *d;                                                               \
            one.a = (const real *)d->a + k * d->step_a;                                            \
            one.b = (const real *)d->b + k * d->step_b;                                            \
            one.c = (real *)d->c + k * d->step_c;                                                  \
            failed = p##_gemm(&one);                                                               \
        }                                                                                          \
        return failed;                                                                             \
    }                                                                                              \
                                                                                                   \
    static int p##_trsm_batched(void *data)                                                        \
    {                                                                                              \
        const fake_blas_call *d = data;                                                            \
        void *const *a = table_find(d->a, d->count);                                               \
        void *const *c = table_find(d->c, d->count);                                               \
        int failed = a == NULL || c == NULL;                                                       \
        for (int k = 0; k < d->count && !failed; k++) {                                            \
            fake_blas_call one = *d;                                                               \
            one.a = a[k];                                                                          \
            one.c = c[k];                                                                          \
            failed = p##_trsm(&one);                                                               \
        }                                                                                          \
        return failed;                                                                             \
    }                                                                                              \
                                                                                                   \
    int cublas##P##trmm_v2(void *handle, int side, int fill, int op, int diagonal, int m, int n,   \
                           const real *alpha, const real *a, int lda, const real *b, int ldb,      \
                           real *c, int ldc)                                                       \
    {                                                                                              \
        const fake_blas_call d = {.name = "cublas" #P "trmm",                                      \
                                  .side = side,                                                    \
                                  .fill = fill,                                                    \
                                  .op_a = op,                                                      \
                                  .diagonal = diagonal,                                            \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .lda = lda,                                                      \
                                  .ldb = ldb,                                                      \
                                  .ldc = ldc,                                                      \
                                  .alpha = *alpha,                                                 \
                                  .a = a,                                                          \
                                  .b = b,                                                          \
                                  .c = c};                                                         \
        return b == c && ldb != ldc ? FAKE_BLAS_INVALID_VALUE : submit(handle, &d, p##_trmm);      \
    }                                                                                              \
                                                                                                   \
    int cublas##P##geam(void *handle, int op_a, int op_b, int m, int n, const real *alpha,         \
                        const real *a, int lda, const real *beta, const real *b, int ldb, real *c, \
                        int ldc)                                                                   \
    {                                                                                              \
        const fake_blas_call d = {.name = "cublas" #P "geam",                                      \
                                  .op_a = op_a,                                                    \
                                  .op_b = op_b,                                                    \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .lda = lda,                                                      \
                                  .ldb = ldb,                                                      \
                                  .ldc = ldc,                                                      \
                                  .alpha = *alpha,                                                 \
                                  .beta = *beta,                                                   \
                                  .a = a,                                                          \
                                  .b = b,                                                          \
                                  .c = c};                                                         \
        bool is_bad =                                                                              \
            (a == c && (op_a != 0 || lda != ldc)) || (b == c && (op_b != 0 || ldb != ldc));        \
        return is_bad ? FAKE_BLAS_INVALID_VALUE : submit(handle, &d, p##_geam);                    \
    }                                                                                              \
                                                                                                   \
    int cublas##P##gemmStridedBatched(void *handle, int op_a, int op_b, int m, int n, int k,       \
                                      const real *alpha, const real *a, int lda, long long step_a, \
                                      const real *b, int ldb, long long step_b, const real *beta,  \
                                      real *c, int ldc, long long step_c, int count)               \
    {                                                                                              \
        const fake_blas_call d = {.name = "cublas" #P "gemmStridedBatched",                        \
                                  .op_a = op_a,                                                    \
                                  .op_b = op_b,                                                    \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .k = k,                                                          \
                                  .lda = lda,                                                      \
                                  .ldb = ldb,                                                      \
                                  .ldc = ldc,                                                      \
                                  .count = count,                                                  \
                                  .step_a = step_a,                                                \
                                  .step_b = step_b,                                                \
                                  .step_c = step_c,                                                \
                                  .alpha = *alpha,                                                 \
                                  .beta = *beta,                                                   \
                                  .a = a,                                                          \
                                  .b = b,                                                          \
                                  .c = c};                                                         \
        return submit(handle, &d, p##_gemm_strided);                                               \
    }                                                                                              \
                                                                                                   \
    int cublas##P##trsmBatched(void *handle, int side, int fill, int op, int diagonal, int m,      \
                               int n, const real *alpha, const real *const *a, int lda,            \
                               real *const *b, int ldb, int count)                                 \
    {                                                                                              \
        const fake_blas_call d = {.name = "cublas" #P "trsmBatched",                               \
                                  .side = side,                                                    \
                                  .fill = fill,                                                    \
                                  .op_a = op,                                                      \
                                  .diagonal = diagonal,                                            \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .lda = lda,                                                      \
                                  .ldc = ldb,                                                      \
                                  .count = count,                                                  \
                                  .alpha = *alpha,                                                 \
                                  .a = a,                                                          \
                                  .c = (void *)(uintptr_t)b};                                      \
        return submit(handle, &d, p##_trsm_batched);                                               \
    }

EXTENSIONS(D, d, double)
EXTENSIONS(S, s, float)
