/* SPDX-License-Identifier: Apache-2.0 */
/* A cuBLAS for the fake driver: libcublas.so.13. */
#define _GNU_SOURCE
#include <math.h>
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

/* --- Vectors; scalars are the device's alone --- */

FAKECUDA_API int cublasSetPointerMode_v2(void *handle, int mode);
FAKECUDA_API int cublasDdot_v2(void *handle, int n, const double *x, int step_x, const double *y,
                               int step_y, double *sum);
FAKECUDA_API int cublasDaxpy_v2(void *handle, int n, const double *alpha, const double *x,
                                int step_x, double *y, int step_y);

typedef struct vectors {
    int n;
    const double *x;
    double *y, *scalar;
} vectors;

int cublasSetPointerMode_v2(void *handle, int mode)
{
    fake_blas *blas = handle_get(handle);

    if (blas == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (mode != 0 && mode != 1)
        return FAKE_BLAS_INVALID_VALUE;
    blas->pointers = mode;
    return FAKE_BLAS_SUCCESS;
}

static bool place(vectors *v)
{
    size_t bytes = (size_t)v->n * sizeof *v->x;

    v->x = fakecuda_map(v->x, bytes);
    v->y = fakecuda_map(v->y, bytes);
    v->scalar = fakecuda_map(v->scalar, sizeof *v->scalar);
    return v->x != NULL && v->y != NULL && v->scalar != NULL;
}

static int work_dot(void *data)
{
    vectors v = *(const vectors *)data;

    if (!place(&v))
        return 1;
    *v.scalar = cblas_ddot(v.n, v.x, 1, v.y, 1);
    return 0;
}

static int work_axpy(void *data)
{
    vectors v = *(const vectors *)data;

    if (!place(&v))
        return 1;
    cblas_daxpy(v.n, *v.scalar, v.x, 1, v.y, 1);
    return 0;
}

static int submit_vectors(const char *call, void *handle, int (*work)(void *data), bool is_dense,
                          vectors v)
{
    const fake_blas *blas = handle_get(handle);

    if (blas == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (blas->pointers != 1)
        fakecuda_report("a scalar of the host's, which the fake cuBLAS has not for vectors");
    if (!is_dense || v.n < 1 || blas->pointers != 1)
        return FAKE_BLAS_INVALID_VALUE;
    return fakecuda_visit(call, false) == 0 &&
                   fakecuda_enqueue_copy(blas->stream, work, &v, sizeof v) == 0
               ? FAKE_BLAS_SUCCESS
               : FAKE_BLAS_EXECUTION_FAILED;
}

int cublasDdot_v2(void *handle, int n, const double *x, int step_x, const double *y, int step_y,
                  double *sum)
{
    return submit_vectors("cublasDdot", handle, work_dot, step_x == 1 && step_y == 1,
                          (vectors){n, x, (double *)(uintptr_t)y, sum});
}

int cublasDaxpy_v2(void *handle, int n, const double *alpha, const double *x, int step_x, double *y,
                   int step_y)
{
    return submit_vectors("cublasDaxpy", handle, work_axpy, step_x == 1 && step_y == 1,
                          (vectors){n, x, y, (double *)(uintptr_t)alpha});
}

/* --- Matrices --- */

static int submit(void *handle, const fake_blas_call *call, bool is_bad)
{
    return fake_blas_submit(handle_get(handle), call, is_bad, FAKE_BLAS_INVALID_VALUE,
                            FAKE_BLAS_EXECUTION_FAILED);
}

/* A routine's prototype, and its head. */
#define ENTRY(name, parameters)       \
    FAKECUDA_API int name parameters; \
    int name parameters

/* A call of what `run_it` does, on elements of a type; further members follow. */
#define CALL(name_of, run_it, type, ...)                                         \
    (fake_blas_call)                                                             \
    {                                                                            \
        .name = (name_of), .run = (run_it), .element = sizeof(type), __VA_ARGS__ \
    }

/* C, of m x n, is made of op(A) op(B) over k. */
static int submit_product(void *handle, fake_blas_call d, int op_a, const void *a, int lda,
                          int op_b, const void *b, int ldb, void *c, int ldc, bool is_bad)
{
    d.op_a = op_a;
    d.op_b = op_b;
    d.a = fake_blas_operated(a, op_a, d.m, d.k, lda);
    d.b = fake_blas_operated(b, op_b, d.k, d.n, ldb);
    d.c = fake_blas_operand(c, d.m, d.n, ldc);
    return submit(handle, &d, is_bad);
}

/* C is m x n. A is square, and stands on a side of C or of what becomes C. */
static int submit_square(void *handle, fake_blas_call d, int side, const void *a, int lda, void *c,
                         int ldc, bool is_bad)
{
    int order = side == 0 ? d.m : d.n;
    d.side = side;
    d.a = fake_blas_operand(a, order, order, lda);
    d.c = fake_blas_operand(c, d.m, d.n, ldc);
    return submit(handle, &d, is_bad);
}

static fake_blas_matrix vector_of(const void *at, int elements)
{
    return fake_blas_operand(at, elements, 1, elements > 1 ? elements : 1);
}

/* P and p: the precision's letter in cuBLAS's and in the host's names. */
#define ROUTINES(P, p, real)                                                                       \
    static int p##_gemm(const fake_blas_call *d)                                                   \
    {                                                                                              \
        cblas_##p##gemm(CblasColMajor, fake_blas_op(d->op_a), fake_blas_op(d->op_b), d->m, d->n,   \
                        d->k, (real)d->alpha, d->a.at, d->a.ld, d->b.at, d->b.ld, (real)d->beta,   \
                        d->c.at, d->c.ld);                                                         \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_gemv(const fake_blas_call *d)                                                   \
    {                                                                                              \
        cblas_##p##gemv(CblasColMajor, fake_blas_op(d->op_a), d->m, d->n, (real)d->alpha, d->a.at, \
                        d->a.ld, d->b.at, 1, (real)d->beta, d->c.at, 1);                           \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_trsv(const fake_blas_call *d)                                                   \
    {                                                                                              \
        cblas_##p##trsv(CblasColMajor, fake_blas_fill(d->fill), fake_blas_op(d->op_a),             \
                        fake_blas_diagonal(d->diagonal), d->n, d->a.at, d->a.ld, d->c.at, 1);      \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_trsm(const fake_blas_call *d)                                                   \
    {                                                                                              \
        cblas_##p##trsm(CblasColMajor, fake_blas_side(d->side), fake_blas_fill(d->fill),           \
                        fake_blas_op(d->op_a), fake_blas_diagonal(d->diagonal), d->m, d->n,        \
                        (real)d->alpha, d->a.at, d->a.ld, d->c.at, d->c.ld);                       \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_syrk(const fake_blas_call *d)                                                   \
    {                                                                                              \
        cblas_##p##syrk(CblasColMajor, fake_blas_fill(d->fill), fake_blas_op(d->op_a), d->n, d->k, \
                        (real)d->alpha, d->a.at, d->a.ld, (real)d->beta, d->c.at, d->c.ld);        \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_symm(const fake_blas_call *d)                                                   \
    {                                                                                              \
        cblas_##p##symm(CblasColMajor, fake_blas_side(d->side), fake_blas_fill(d->fill), d->m,     \
                        d->n, (real)d->alpha, d->a.at, d->a.ld, d->b.at, d->b.ld, (real)d->beta,   \
                        d->c.at, d->c.ld);                                                         \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_trmm(const fake_blas_call *d)                                                   \
    {                                                                                              \
        for (int j = 0; j < d->n && d->b.at != d->c.at; j++)                                       \
            memcpy((real *)d->c.at + (size_t)j * (size_t)d->c.ld,                                  \
                   (const real *)d->b.at + (size_t)j * (size_t)d->b.ld,                            \
                   (size_t)d->m * sizeof(real));                                                   \
        cblas_##p##trmm(CblasColMajor, fake_blas_side(d->side), fake_blas_fill(d->fill),           \
                        fake_blas_op(d->op_a), fake_blas_diagonal(d->diagonal), d->m, d->n,        \
                        (real)d->alpha, d->a.at, d->a.ld, d->c.at, d->c.ld);                       \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static real p##_term(double factor, const fake_blas_matrix *a, int op, int i, int j)           \
    {                                                                                              \
        size_t row = (size_t)(op == 0 ? i : j), col = (size_t)(op == 0 ? j : i);                   \
        return factor == 0 ? 0 : (real)factor * ((const real *)a->at)[row + col * (size_t)a->ld];  \
    }                                                                                              \
                                                                                                   \
    static int p##_geam(const fake_blas_call *d)                                                   \
    {                                                                                              \
        for (int j = 0; j < d->n; j++)                                                             \
            for (int i = 0; i < d->m; i++)                                                         \
                ((real *)d->c.at)[(size_t)i + (size_t)j * (size_t)d->c.ld] =                       \
                    p##_term(d->alpha, &d->a, d->op_a, i, j) +                                     \
                    p##_term(d->beta, &d->b, d->op_b, i, j);                                       \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_dgmm(const fake_blas_call *d)                                                   \
    {                                                                                              \
        for (int j = 0; j < d->n; j++)                                                             \
            for (int i = 0; i < d->m; i++)                                                         \
                ((real *)d->c.at)[(size_t)i + (size_t)j * (size_t)d->c.ld] =                       \
                    ((const real *)d->a.at)[(size_t)i + (size_t)j * (size_t)d->a.ld] *             \
                    ((const real *)d->b.at)[d->side == 0 ? i : j];                                 \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    /* One call on the tables of a batch, in the device's memory. */                               \
    static int p##_trsm_batched(const fake_blas_call *d)                                           \
    {                                                                                              \
        int failed = 0;                                                                            \
        for (int i = 0; i < d->k && !failed; i++) {                                                \
            fake_blas_call one = *d;                                                               \
            int order = d->side == 0 ? d->m : d->n;                                                \
            one.run = p##_trsm;                                                                    \
            one.a = fake_blas_operand(((void *const *)d->a.at)[i], order, order, d->b.ld);         \
            one.b.at = NULL;                                                                       \
            one.c = fake_blas_operand(((void *const *)d->c.at)[i], d->m, d->n, d->work.ld);        \
            one.element = sizeof(real);                                                            \
            failed = fake_blas_work(&one);                                                         \
        }                                                                                          \
        return failed;                                                                             \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##gemm_v2,                                                                      \
          (void *handle, int op_a, int op_b, int m, int n, int k, const real *alpha,               \
           const real *a, int lda, const real *b, int ldb, const real *beta, real *c, int ldc))    \
    {                                                                                              \
        const fake_blas_call d = CALL("cublas" #P "gemm", p##_gemm, real, .m = m, .n = n, .k = k,  \
                                      .alpha = *alpha, .beta = *beta);                             \
        return submit_product(handle, d, op_a, a, lda, op_b, b, ldb, c, ldc, false);               \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##gemmStridedBatched,                                                           \
          (void *handle, int op_a, int op_b, int m, int n, int k, const real *alpha,               \
           const real *a, int lda, long long step_a, const real *b, int ldb, long long step_b,     \
           const real *beta, real *c, int ldc, long long step_c, int count))                       \
    {                                                                                              \
        const fake_blas_call d =                                                                   \
            CALL("cublas" #P "gemmStridedBatched", p##_gemm, real, .m = m, .n = n, .k = k,         \
                 .alpha = *alpha, .beta = *beta, .count = count, .step_a = step_a,                 \
                 .step_b = step_b, .step_c = step_c);                                              \
        return count == 0 ? FAKE_BLAS_SUCCESS                                                      \
                          : submit_product(handle, d, op_a, a, lda, op_b, b, ldb, c, ldc, false);  \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##gemv_v2,                                                                      \
          (void *handle, int op, int m, int n, const real *alpha, const real *a, int lda,          \
           const real *x, int step_x, const real *beta, real *y, int step_y))                      \
    {                                                                                              \
        const fake_blas_call d =                                                                   \
            CALL("cublas" #P "gemv", p##_gemv, real, .op_a = op, .m = m, .n = n, .alpha = *alpha,  \
                 .beta = *beta, .a = fake_blas_operand(a, m, n, lda),                              \
                 .b = vector_of(x, op == 0 ? n : m), .c = vector_of(y, op == 0 ? m : n));          \
        return submit(handle, &d, step_x != 1 || step_y != 1);                                     \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##trsv_v2, (void *handle, int fill, int op, int diagonal, int n, const real *a, \
                               int lda, real *x, int step))                                        \
    {                                                                                              \
        const fake_blas_call d = CALL("cublas" #P "trsv", p##_trsv, real, .fill = fill,            \
                                      .op_a = op, .diagonal = diagonal, .n = n,                    \
                                      .a = fake_blas_operand(a, n, n, lda), .c = vector_of(x, n)); \
        return submit(handle, &d, step != 1);                                                      \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##trsm_v2,                                                                      \
          (void *handle, int side, int fill, int op, int diagonal, int m, int n,                   \
           const real *alpha, const real *a, int lda, real *b, int ldb))                           \
    {                                                                                              \
        const fake_blas_call d =                                                                   \
            CALL("cublas" #P "trsm", p##_trsm, real, .fill = fill, .op_a = op,                     \
                 .diagonal = diagonal, .m = m, .n = n, .alpha = *alpha);                           \
        return submit_square(handle, d, side, a, lda, b, ldb, false);                              \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##trsmBatched,                                                                  \
          (void *handle, int side, int fill, int op, int diagonal, int m, int n,                   \
           const real *alpha, const real *const *a, int lda, real *const *b, int ldb, int count))  \
    {                                                                                              \
        const fake_blas_call d = CALL(                                                             \
            "cublas" #P "trsmBatched", p##_trsm_batched, void *, .side = side, .fill = fill,       \
            .op_a = op, .diagonal = diagonal, .m = m, .n = n, .k = count, .alpha = *alpha,         \
            .a = fake_blas_operand(a, count, 1, count), .b = fake_blas_operand(NULL, 0, 0, lda),   \
            .c = fake_blas_operand(b, count, 1, count),                                            \
            .work = fake_blas_operand(NULL, 0, 0, ldb));                                           \
        return submit(handle, &d, false);                                                          \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##syrk_v2, (void *handle, int fill, int op, int n, int k, const real *alpha,    \
                               const real *a, int lda, const real *beta, real *c, int ldc))        \
    {                                                                                              \
        const fake_blas_call d =                                                                   \
            CALL("cublas" #P "syrk", p##_syrk, real, .fill = fill, .op_a = op, .n = n, .k = k,     \
                 .alpha = *alpha, .beta = *beta, .a = fake_blas_operated(a, op, n, k, lda),        \
                 .c = fake_blas_operand(c, n, n, ldc));                                            \
        return submit(handle, &d, false);                                                          \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##symm_v2,                                                                      \
          (void *handle, int side, int fill, int m, int n, const real *alpha, const real *a,       \
           int lda, const real *b, int ldb, const real *beta, real *c, int ldc))                   \
    {                                                                                              \
        const fake_blas_call d =                                                                   \
            CALL("cublas" #P "symm", p##_symm, real, .fill = fill, .m = m, .n = n,                 \
                 .alpha = *alpha, .beta = *beta, .b = fake_blas_operand(b, m, n, ldb));            \
        return submit_square(handle, d, side, a, lda, c, ldc, false);                              \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##trmm_v2,                                                                      \
          (void *handle, int side, int fill, int op, int diagonal, int m, int n,                   \
           const real *alpha, const real *a, int lda, const real *b, int ldb, real *c, int ldc))   \
    {                                                                                              \
        const fake_blas_call d = CALL("cublas" #P "trmm", p##_trmm, real, .fill = fill,            \
                                      .op_a = op, .diagonal = diagonal, .m = m, .n = n,            \
                                      .alpha = *alpha, .b = fake_blas_operand(b, m, n, ldb));      \
        return submit_square(handle, d, side, a, lda, c, ldc, b == c && ldb != ldc);               \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##geam,                                                                         \
          (void *handle, int op_a, int op_b, int m, int n, const real *alpha, const real *a,       \
           int lda, const real *beta, const real *b, int ldb, real *c, int ldc))                   \
    {                                                                                              \
        const fake_blas_call d = CALL(                                                             \
            "cublas" #P "geam", p##_geam, real, .op_a = op_a, .op_b = op_b, .m = m, .n = n,        \
            .alpha = *alpha, .beta = *beta, .a = fake_blas_operated(a, op_a, m, n, lda),           \
            .b = fake_blas_operated(b, op_b, m, n, ldb), .c = fake_blas_operand(c, m, n, ldc));    \
        bool is_bad =                                                                              \
            (a == c && (op_a != 0 || lda != ldc)) || (b == c && (op_b != 0 || ldb != ldc));        \
        return submit(handle, &d, is_bad);                                                         \
    }                                                                                              \
                                                                                                   \
    ENTRY(cublas##P##dgmm, (void *handle, int side, int m, int n, const real *a, int lda,          \
                            const real *x, int step, real *c, int ldc))                            \
    {                                                                                              \
        const fake_blas_call d =                                                                   \
            CALL("cublas" #P "dgmm", p##_dgmm, real, .side = side, .m = m, .n = n,                 \
                 .a = fake_blas_operand(a, m, n, lda), .b = vector_of(x, side == 0 ? m : n),       \
                 .c = fake_blas_operand(c, m, n, ldc));                                            \
        return submit(handle, &d, step != 1 || (a == c && lda != ldc));                            \
    }

ROUTINES(D, d, double)
ROUTINES(S, s, float)

/* --- cublasGemmEx: floats rounded to what tensor cores take --- */

/* cudaDataType, and the cublasComputeType_t with bits that a significand and an exponent keep. */
enum { TYPE_FLOAT = 0, COMPUTE_FP16 = 74, COMPUTE_BF16 = 75, COMPUTE_TF32 = 77 };

/* To so many bits behind the point, half to even; of an exponent of 8 bits. */
static float round_bits(float x, int bits)
{
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    uint32_t drop = 23 - (uint32_t)bits, odd = word >> drop & 1;
    if (isfinite(x))
        word = (word + (1u << (drop - 1)) - 1 + odd) & ~((1u << drop) - 1);
    memcpy(&x, &word, sizeof x);
    return x;
}

/* What is too large becomes infinite; below the least normal number the step stays. */
static float round_half(float x)
{
    const float least = 0x1p-14f, step = 0x1p-24f;
    float rounded = fabsf(x) < least ? rintf(x / step) * step : round_bits(x, 10);
    return fabsf(rounded) > 65504 ? copysignf(INFINITY, x) : rounded;
}

static float round_to(int compute, float x)
{
    return compute == COMPUTE_FP16 ? round_half(x)
                                   : round_bits(x, compute == COMPUTE_BF16 ? 7 : 10);
}

static float *rounded_copy(int compute, const fake_blas_matrix *from)
{
    float *copy = malloc(((size_t)from->rows * (size_t)from->cols + 1) * sizeof *copy);
    for (int j = 0; copy != NULL && j < from->cols; j++)
        for (int i = 0; i < from->rows; i++)
            copy[(size_t)i + (size_t)j * (size_t)from->rows] = round_to(
                compute, ((const float *)from->at)[(size_t)i + (size_t)j * (size_t)from->ld]);
    return copy;
}

/* side: the compute type. */
static int gemm_rounded(const fake_blas_call *d)
{
    float *a = rounded_copy(d->side, &d->a), *b = rounded_copy(d->side, &d->b);
    bool is_there = a != NULL && b != NULL;
    if (is_there)
        cblas_sgemm(CblasColMajor, fake_blas_op(d->op_a), fake_blas_op(d->op_b), d->m, d->n, d->k,
                    (float)d->alpha, a, d->a.rows > 1 ? d->a.rows : 1, b,
                    d->b.rows > 1 ? d->b.rows : 1, (float)d->beta, d->c.at, d->c.ld);
    free(a);
    free(b);
    return is_there ? 0 : 1;
}

ENTRY(cublasGemmEx, (void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                     const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                     const void *beta, void *c, int type_c, int ldc, int compute, int algorithm))
{
    const fake_blas_call d =
        CALL("cublasGemmEx", gemm_rounded, float, .side = compute, .m = m, .n = n, .k = k,
             .alpha = *(const float *)alpha, .beta = *(const float *)beta);
    bool is_known = compute == COMPUTE_FP16 || compute == COMPUTE_BF16 || compute == COMPUTE_TF32;
    return submit_product(handle, d, op_a, a, lda, op_b, b, ldb, c, ldc,
                          type_a != TYPE_FLOAT || type_b != TYPE_FLOAT || type_c != TYPE_FLOAT ||
                              !is_known || algorithm != -1);
}
