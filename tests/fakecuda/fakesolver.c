/* SPDX-License-Identifier: Apache-2.0 */
/* A cuSOLVER for the fake driver: libcusolver.so.12. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fakeblas.h"

#define MAGIC 0x501e501eu

/* LAPACK's own, with the hidden length of the character argument. */
void dpotrf_(const char *fill, const int *n, double *a, const int *lda, int *info, size_t length);
void spotrf_(const char *fill, const int *n, float *a, const int *lda, int *info, size_t length);

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

static int submit(void *handle, const fake_blas_call *call, int (*run)(void *data))
{
    const fake_blas *solver = handle_get(handle);

    if (solver == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (call->n < 0 || call->lda < (call->n > 1 ? call->n : 1) || call->k < work_elements(call->n))
        return FAKE_SOLVER_INVALID_VALUE;
    if (fakecuda_visit(call->name, false) != 0 ||
        fakecuda_enqueue_copy(solver->stream, run, call, sizeof *call) != 0)
        return FAKE_SOLVER_EXECUTION_FAILED;
    return FAKE_BLAS_SUCCESS;
}

/* k and b hold the work memory's elements and place. */
#define PRECISION(P, p, real)                                                                \
    FAKECUDA_API int cusolverDn##P##potrf_bufferSize(void *handle, int fill, int n, real *a, \
                                                     int lda, int *elements);                \
    FAKECUDA_API int cusolverDn##P##potrf(void *handle, int fill, int n, real *a, int lda,   \
                                          real *work, int elements, int *info);              \
                                                                                             \
    int cusolverDn##P##potrf_bufferSize(void *handle, int fill, int n, real *a, int lda,     \
                                        int *elements)                                       \
    {                                                                                        \
        (void)fill;                                                                          \
        (void)a;                                                                             \
        if (handle_get(handle) == NULL)                                                      \
            return FAKE_BLAS_NOT_INITIALIZED;                                                \
        if (n < 0 || lda < (n > 1 ? n : 1))                                                  \
            return FAKE_SOLVER_INVALID_VALUE;                                                \
        *elements = work_elements(n);                                                        \
        return FAKE_BLAS_SUCCESS;                                                            \
    }                                                                                        \
                                                                                             \
    static int p##_potrf(void *data)                                                         \
    {                                                                                        \
        const fake_blas_call *d = data;                                                      \
        real *a = fake_blas_find(d->c, d->n, d->n, d->lda, sizeof(real));                    \
        real *work = fakecuda_map(d->b, (size_t)d->k * sizeof(real));                        \
        int *info = fakecuda_map(d->info, sizeof *info);                                     \
        if (a == NULL || work == NULL || info == NULL)                                       \
            return 1;                                                                        \
        for (int i = 0; i < d->k; i++)                                                       \
            work[i] = (real)i; /* whatever else is in there is lost */                       \
        p##potrf_(d->fill == 0 ? "L" : "U", &d->n, a, &d->lda, info, 1);                     \
        return 0;                                                                            \
    }                                                                                        \
                                                                                             \
    int cusolverDn##P##potrf(void *handle, int fill, int n, real *a, int lda, real *work,    \
                             int elements, int *info)                                        \
    {                                                                                        \
        const fake_blas_call d = {.name = "cusolverDn" #P "potrf",                           \
                                  .fill = fill,                                              \
                                  .n = n,                                                    \
                                  .k = elements,                                             \
                                  .lda = lda,                                                \
                                  .b = work,                                                 \
                                  .c = a,                                                    \
                                  .info = info};                                             \
        return submit(handle, &d, p##_potrf);                                                \
    }

PRECISION(D, d, double)
PRECISION(S, s, float)
