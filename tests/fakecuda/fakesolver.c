/* SPDX-License-Identifier: Apache-2.0 */
/* A cuSOLVER for the fake driver: libcusolver.so.12. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fakeblas.h"

#define MAGIC 0x501e501eu

/* LAPACK's own, with the hidden lengths of character arguments. */
#define HOST(p, real)                                                                            \
    void p##potrf_(const char *fill, const int *n, real *a, const int *lda, int *info, size_t);  \
    void p##getrf_(const int *m, const int *n, real *a, const int *lda, int *pivots, int *info); \
    void p##laswp_(const int *n, real *a, const int *lda, const int *first, const int *last,     \
                   const int *pivots, const int *step);                                          \
    void p##geqrf_(const int *m, const int *n, real *a, const int *lda, real *tau, real *work,   \
                   const int *elements, int *info);                                              \
    void p##ormqr_(const char *side, const char *op, const int *m, const int *n, const int *k,   \
                   const real *a, const int *lda, const real *tau, real *c, const int *ldc,      \
                   real *work, const int *elements, int *info, size_t, size_t);
HOST(d, double)
HOST(s, float)

static _Atomic int handles;

__attribute__((destructor)) static void finish(void)
{
    if (handles > 0)
        fakecuda_report("cuSOLVER handles left behind at the process's end");
}

static fake_blas *handle_get(void *handle)
{
    fake_blas *solver = handle;

    if (solver != NULL && solver->magic == MAGIC)
        return solver;
    fakecuda_report("no living cuSOLVER handle");
    return NULL;
}

FAKECUDA_API int cusolverDnCreate(void **handle);
FAKECUDA_API int cusolverDnDestroy(void *handle);
FAKECUDA_API int cusolverDnSetStream(void *handle, void *stream);

int cusolverDnCreate(void **handle)
{
    fake_blas *solver;

    if (fakecuda_visit("cusolverDnCreate", true) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    solver = calloc(1, sizeof *solver);
    if (solver == NULL)
        return FAKE_SOLVER_EXECUTION_FAILED;
    solver->magic = MAGIC;
    handles++;
    *handle = solver;
    return FAKE_BLAS_SUCCESS;
}

int cusolverDnDestroy(void *handle)
{
    fake_blas *solver = handle_get(handle);

    if (solver == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    (void)fakecuda_visit("cusolverDnDestroy", true);
    solver->magic = 0;
    handles--;
    free(solver);
    return FAKE_BLAS_SUCCESS;
}

int cusolverDnSetStream(void *handle, void *stream)
{
    fake_blas *solver = handle_get(handle);

    if (solver == NULL || fakecuda_visit("cusolverDnSetStream", false) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    solver->stream = stream;
    return FAKE_BLAS_SUCCESS;
}

/* Elements of work memory: the fake needs none, but wants as much as it asked for. */
static int work_elements(int n)
{
    return 32 * n + 1;
}

static int submit(void *handle, const fake_blas_call *call)
{
    bool is_bad = call->info == NULL || (call->work.at != NULL && call->work.rows < call->work.ld);

    return fake_blas_submit(handle_get(handle), call, is_bad, FAKE_SOLVER_INVALID_VALUE,
                            FAKE_SOLVER_EXECUTION_FAILED);
}

/* Work memory of so many elements where a routine asks for `least`. */
static fake_blas_matrix work_memory(void *at, int elements, int least)
{
    return (fake_blas_matrix){at, elements, 1, least};
}

static int work_size(void *handle, int m, int n, int lda, int *elements)
{
    if (handle_get(handle) == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || lda < (m > 1 ? m : 1))
        return FAKE_SOLVER_INVALID_VALUE;
    *elements = work_elements(n);
    return FAKE_BLAS_SUCCESS;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

#define ROUTINES(P, p, real)                                                                       \
    /* Whatever is in the work memory is lost. */                                                  \
    static void p##_use(const fake_blas_call *d)                                                   \
    {                                                                                              \
        for (int i = 0; i < d->work.rows; i++)                                                     \
            ((real *)d->work.at)[i] = (real)i;                                                     \
    }                                                                                              \
                                                                                                   \
    static int p##_potrf(const fake_blas_call *d)                                                  \
    {                                                                                              \
        p##_use(d);                                                                                \
        p##potrf_(d->fill == 0 ? "L" : "U", &d->n, d->c.at, &d->c.ld, d->info, 1);                 \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_getrf(const fake_blas_call *d)                                                  \
    {                                                                                              \
        p##_use(d);                                                                                \
        p##getrf_(&d->m, &d->n, d->c.at, &d->c.ld, d->ints, d->info);                              \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    /* Rows as far as the pivots reach. */                                                         \
    static int p##_laswp(const fake_blas_call *d)                                                  \
    {                                                                                              \
        int rows = d->k, first = d->m, step = d->side;                                             \
        for (int i = first - 1; i < d->k; i++)                                                     \
            rows = d->ints[i] > rows ? d->ints[i] : rows;                                          \
        real *a = fake_blas_find(d->work.at, rows, d->n, d->work.ld, sizeof(real));                \
        if (a == NULL)                                                                             \
            return 1;                                                                              \
        p##laswp_(&d->n, a, &d->work.ld, &first, &d->k, d->ints, &step);                           \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_geqrf(const fake_blas_call *d)                                                  \
    {                                                                                              \
        int elements = d->work.rows;                                                               \
        p##geqrf_(&d->m, &d->n, d->c.at, &d->c.ld, d->b.at, d->work.at, &elements, d->info);       \
        p##_use(d);                                                                                \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int p##_ormqr(const fake_blas_call *d)                                                  \
    {                                                                                              \
        int elements = d->work.rows;                                                               \
        p##ormqr_(d->side == 0 ? "L" : "R", d->op_a == 0 ? "N" : "T", &d->m, &d->n, &d->k,         \
                  d->a.at, &d->a.ld, d->b.at, d->c.at, &d->c.ld, d->work.at, &elements, d->info,   \
                  1, 1);                                                                           \
        p##_use(d);                                                                                \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##potrf_bufferSize(void *handle, int fill, int n, real *a,       \
                                                     int lda, int *elements);                      \
    int cusolverDn##P##potrf_bufferSize(void *handle, int fill, int n, real *a, int lda,           \
                                        int *elements)                                             \
    {                                                                                              \
        (void)fill;                                                                                \
        (void)a;                                                                                   \
        return work_size(handle, n, n, lda, elements);                                             \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##potrf(void *handle, int fill, int n, real *a, int lda,         \
                                          real *work, int elements, int *info);                    \
    int cusolverDn##P##potrf(void *handle, int fill, int n, real *a, int lda, real *work,          \
                             int elements, int *info)                                              \
    {                                                                                              \
        const fake_blas_call d = {.name = "cusolverDn" #P "potrf",                                 \
                                  .run = p##_potrf,                                                \
                                  .element = sizeof(real),                                         \
                                  .fill = fill,                                                    \
                                  .n = n,                                                          \
                                  .c = fake_blas_operand(a, n, n, lda),                            \
                                  .work = work_memory(work, elements, work_elements(n)),           \
                                  .info = info};                                                   \
        return submit(handle, &d);                                                                 \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##getrf_bufferSize(void *handle, int m, int n, real *a, int lda, \
                                                     int *elements);                               \
    int cusolverDn##P##getrf_bufferSize(void *handle, int m, int n, real *a, int lda,              \
                                        int *elements)                                             \
    {                                                                                              \
        (void)a;                                                                                   \
        return work_size(handle, m, n, lda, elements);                                             \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##getrf(void *handle, int m, int n, real *a, int lda,            \
                                          real *work, int *pivots, int *info);                     \
    int cusolverDn##P##getrf(void *handle, int m, int n, real *a, int lda, real *work,             \
                             int *pivots, int *info)                                               \
    {                                                                                              \
        const fake_blas_call d = {.name = "cusolverDn" #P "getrf",                                 \
                                  .run = p##_getrf,                                                \
                                  .element = sizeof(real),                                         \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .c = fake_blas_operand(a, m, n, lda),                            \
                                  .work = work_memory(work, work_elements(n), work_elements(n)),   \
                                  .ints = pivots,                                                  \
                                  .int_count = least(m, n),                                        \
                                  .info = info};                                                   \
        return submit(handle, &d);                                                                 \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##laswp(void *handle, int n, real *a, int lda, int first,        \
                                          int last, const int *pivots, int step);                  \
    int cusolverDn##P##laswp(void *handle, int n, real *a, int lda, int first, int last,           \
                             const int *pivots, int step)                                          \
    {                                                                                              \
        const fake_blas_call d = {                                                                 \
            .name = "cusolverDn" #P "laswp",                                                       \
            .run = p##_laswp,                                                                      \
            .element = sizeof(real),                                                               \
            .m = first,                                                                            \
            .n = n,                                                                                \
            .k = last,                                                                             \
            .side = step, /* No operand with a shape before the pivots are seen. */                \
            .work = fake_blas_operand(a, 0, n, lda),                                               \
            .ints = (int *)(uintptr_t)pivots,                                                      \
            .int_count = last};                                                                    \
        bool is_bad = first < 1 || last < first || (step != 1 && step != -1);                      \
        return is_bad ? FAKE_SOLVER_INVALID_VALUE                                                  \
                      : fake_blas_submit(handle_get(handle), &d, false, FAKE_SOLVER_INVALID_VALUE, \
                                         FAKE_SOLVER_EXECUTION_FAILED);                            \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##geqrf_bufferSize(void *handle, int m, int n, real *a, int lda, \
                                                     int *elements);                               \
    int cusolverDn##P##geqrf_bufferSize(void *handle, int m, int n, real *a, int lda,              \
                                        int *elements)                                             \
    {                                                                                              \
        (void)a;                                                                                   \
        return work_size(handle, m, n, lda, elements);                                             \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##geqrf(void *handle, int m, int n, real *a, int lda, real *tau, \
                                          real *work, int elements, int *info);                    \
    int cusolverDn##P##geqrf(void *handle, int m, int n, real *a, int lda, real *tau, real *work,  \
                             int elements, int *info)                                              \
    {                                                                                              \
        const fake_blas_call d = {                                                                 \
            .name = "cusolverDn" #P "geqrf",                                                       \
            .run = p##_geqrf,                                                                      \
            .element = sizeof(real),                                                               \
            .m = m,                                                                                \
            .n = n,                                                                                \
            .b = fake_blas_operand(tau, least(m, n), 1, least(m, n) > 1 ? least(m, n) : 1),        \
            .c = fake_blas_operand(a, m, n, lda),                                                  \
            .work = work_memory(work, elements, work_elements(n)),                                 \
            .info = info};                                                                         \
        return submit(handle, &d);                                                                 \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##ormqr_bufferSize(                                              \
        void *handle, int side, int op, int m, int n, int k, const real *a, int lda,               \
        const real *tau, const real *c, int ldc, int *elements);                                   \
    int cusolverDn##P##ormqr_bufferSize(void *handle, int side, int op, int m, int n, int k,       \
                                        const real *a, int lda, const real *tau, const real *c,    \
                                        int ldc, int *elements)                                    \
    {                                                                                              \
        (void)op;                                                                                  \
        (void)a;                                                                                   \
        (void)lda;                                                                                 \
        (void)tau;                                                                                 \
        (void)c;                                                                                   \
        return k > (side == 0 ? m : n) ? FAKE_SOLVER_INVALID_VALUE                                 \
                                       : work_size(handle, m, side == 0 ? n : m, ldc, elements);   \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##ormqr(void *handle, int side, int op, int m, int n, int k,     \
                                          const real *a, int lda, const real *tau, real *c,        \
                                          int ldc, real *work, int elements, int *info);           \
    int cusolverDn##P##ormqr(void *handle, int side, int op, int m, int n, int k, const real *a,   \
                             int lda, const real *tau, real *c, int ldc, real *work, int elements, \
                             int *info)                                                            \
    {                                                                                              \
        const fake_blas_call d = {                                                                 \
            .name = "cusolverDn" #P "ormqr",                                                       \
            .run = p##_ormqr,                                                                      \
            .element = sizeof(real),                                                               \
            .side = side,                                                                          \
            .op_a = op,                                                                            \
            .m = m,                                                                                \
            .n = n,                                                                                \
            .k = k,                                                                                \
            .a = fake_blas_operand(a, side == 0 ? m : n, k, lda),                                  \
            .b = fake_blas_operand(tau, k, 1, k > 1 ? k : 1),                                      \
            .c = fake_blas_operand(c, m, n, ldc),                                                  \
            .work = work_memory(work, elements, work_elements(side == 0 ? n : m)),                 \
            .info = info};                                                                         \
        return submit(handle, &d);                                                                 \
    }

ROUTINES(D, d, double)
ROUTINES(S, s, float)
