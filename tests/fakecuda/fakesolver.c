/* SPDX-License-Identifier: Apache-2.0 */
/* A cuSOLVER for the fake driver: libcusolver.so.12. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fakeblas.h"

#define MAGIC 0x501e501eu

/* LAPACK's own, with the hidden lengths of character arguments. */
#define HOST(p, real)                                                                             \
    void p##potrf_(const char *fill, const int *n, real *a, const int *lda, int *info, size_t);   \
    void p##getrf_(const int *m, const int *n, real *a, const int *lda, int *pivots, int *info);  \
    void p##potrs_(const char *fill, const int *n, const int *count, const real *a,               \
                   const int *lda, real *b, const int *ldb, int *info, size_t);                   \
    void p##getrs_(const char *op, const int *n, const int *count, const real *a, const int *lda, \
                   const int *pivots, real *b, const int *ldb, int *info, size_t);                \
    void p##laswp_(const int *n, real *a, const int *lda, const int *first, const int *last,      \
                   const int *pivots, const int *step);                                           \
    void p##geqrf_(const int *m, const int *n, real *a, const int *lda, real *tau, real *work,    \
                   const int *elements, int *info);                                               \
    void p##ormqr_(const char *side, const char *op, const int *m, const int *n, const int *k,    \
                   const real *a, const int *lda, const real *tau, real *c, const int *ldc,       \
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
    static int p##_potrs(const fake_blas_call *d)                                                  \
    {                                                                                              \
        p##potrs_(d->fill == 0 ? "L" : "U", &d->n, &d->c.cols, d->a.at, &d->a.ld, d->c.at,         \
                  &d->c.ld, d->info, 1);                                                           \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    /* Pivots that are no rows would write anywhere. */                                            \
    static int p##_getrs(const fake_blas_call *d)                                                  \
    {                                                                                              \
        for (int i = 0; i < d->n; i++)                                                             \
            if (d->ints[i] <= i || d->ints[i] > d->n)                                              \
                return 1;                                                                          \
        p##getrs_(d->op_a == 0 ? "N" : "T", &d->n, &d->c.cols, d->a.at, &d->a.ld, d->ints,         \
                  d->c.at, &d->c.ld, d->info, 1);                                                  \
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
    FAKECUDA_API int cusolverDn##P##potrs(void *handle, int fill, int n, int count, const real *a, \
                                          int lda, real *b, int ldb, int *info);                   \
    int cusolverDn##P##potrs(void *handle, int fill, int n, int count, const real *a, int lda,     \
                             real *b, int ldb, int *info)                                          \
    {                                                                                              \
        const fake_blas_call d = {.name = "cusolverDn" #P "potrs",                                 \
                                  .run = p##_potrs,                                                \
                                  .element = sizeof(real),                                         \
                                  .fill = fill,                                                    \
                                  .n = n,                                                          \
                                  .a = fake_blas_operand(a, n, n, lda),                            \
                                  .c = fake_blas_operand(b, n, count, ldb),                        \
                                  .info = info};                                                   \
        return submit(handle, &d);                                                                 \
    }                                                                                              \
                                                                                                   \
    FAKECUDA_API int cusolverDn##P##getrs(void *handle, int op, int n, int count, const real *a,   \
                                          int lda, const int *pivots, real *b, int ldb,            \
                                          int *info);                                              \
    int cusolverDn##P##getrs(void *handle, int op, int n, int count, const real *a, int lda,       \
                             const int *pivots, real *b, int ldb, int *info)                       \
    {                                                                                              \
        const fake_blas_call d = {.name = "cusolverDn" #P "getrs",                                 \
                                  .run = p##_getrs,                                                \
                                  .element = sizeof(real),                                         \
                                  .op_a = op,                                                      \
                                  .n = n,                                                          \
                                  .a = fake_blas_operand(a, n, n, lda),                            \
                                  .c = fake_blas_operand(b, n, count, ldb),                        \
                                  .ints = (int *)(uintptr_t)pivots,                                \
                                  .int_count = n,                                                  \
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

/* --- cusolverDnIRSXgesv: the host's dgesv, whatever the lowest precision is --- */

#define PARAMS_MAGIC 0x1252a2a2u
#define INFOS_MAGIC 0x1252f0f0u

/* cusolverPrecType_t and cusolverIRSRefinement_t. */
enum { TYPE_64F = 1203, TYPE_TF32 = 1207, REFINE_NONE = 1101, REFINE_GMRES_GMRES = 1105 };

typedef struct irs {
    uint32_t magic;
    int main, lowest, refinement;
} irs;

static int irs_make(void **out, const char *name, uint32_t magic)
{
    irs *made;

    if (fakecuda_visit(name, true) != 0)
        return FAKE_SOLVER_EXECUTION_FAILED;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return FAKE_SOLVER_EXECUTION_FAILED;
    made->magic = magic;
    handles++;
    *out = made;
    return FAKE_BLAS_SUCCESS;
}

static int irs_drop(void *what, uint32_t magic)
{
    irs *dropped = what;

    if (dropped == NULL || dropped->magic != magic) {
        fakecuda_report("no living parameters or results of cusolverDnIRSXgesv");
        return FAKE_SOLVER_INVALID_VALUE;
    }
    dropped->magic = 0;
    handles--;
    free(dropped);
    return FAKE_BLAS_SUCCESS;
}

FAKECUDA_API int cusolverDnIRSParamsCreate(void **params);
FAKECUDA_API int cusolverDnIRSParamsDestroy(void *params);
FAKECUDA_API int cusolverDnIRSParamsSetSolverMainPrecision(void *params, int type);
FAKECUDA_API int cusolverDnIRSParamsSetSolverLowestPrecision(void *params, int type);
FAKECUDA_API int cusolverDnIRSParamsSetRefinementSolver(void *params, int refinement);
FAKECUDA_API int cusolverDnIRSInfosCreate(void **infos);
FAKECUDA_API int cusolverDnIRSInfosDestroy(void *infos);
FAKECUDA_API int cusolverDnIRSXgesv_bufferSize(void *handle, void *params, int n, int count,
                                               size_t *bytes);
FAKECUDA_API int cusolverDnIRSXgesv(void *handle, void *params, void *infos, int n, int count,
                                    void *a, int lda, void *b, int ldb, void *x, int ldx,
                                    void *work, size_t bytes, int *iterations, int *info);

int cusolverDnIRSParamsCreate(void **params)
{
    return irs_make(params, "cusolverDnIRSParamsCreate", PARAMS_MAGIC);
}

int cusolverDnIRSParamsDestroy(void *params)
{
    return irs_drop(params, PARAMS_MAGIC);
}

int cusolverDnIRSInfosCreate(void **infos)
{
    return irs_make(infos, "cusolverDnIRSInfosCreate", INFOS_MAGIC);
}

int cusolverDnIRSInfosDestroy(void *infos)
{
    return irs_drop(infos, INFOS_MAGIC);
}

int cusolverDnIRSParamsSetSolverMainPrecision(void *params, int type)
{
    ((irs *)params)->main = type;
    return type == TYPE_64F ? FAKE_BLAS_SUCCESS : FAKE_SOLVER_INVALID_VALUE;
}

int cusolverDnIRSParamsSetSolverLowestPrecision(void *params, int type)
{
    ((irs *)params)->lowest = type;
    return type >= TYPE_64F && type <= TYPE_TF32 ? FAKE_BLAS_SUCCESS : FAKE_SOLVER_INVALID_VALUE;
}

int cusolverDnIRSParamsSetRefinementSolver(void *params, int refinement)
{
    ((irs *)params)->refinement = refinement;
    return refinement >= REFINE_NONE && refinement <= REFINE_GMRES_GMRES
               ? FAKE_BLAS_SUCCESS
               : FAKE_SOLVER_INVALID_VALUE;
}

static bool irs_is_bad(const irs *params)
{
    return params == NULL || params->magic != PARAMS_MAGIC || params->main == 0 ||
           params->lowest == 0 || params->refinement == 0;
}

int cusolverDnIRSXgesv_bufferSize(void *handle, void *params, int n, int count, size_t *bytes)
{
    if (handle_get(handle) == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (irs_is_bad(params) || n < 0 || count < 0)
        return FAKE_SOLVER_INVALID_VALUE;
    *bytes = (size_t)work_elements(n) * sizeof(double);
    return FAKE_BLAS_SUCCESS;
}

void dgesv_(const int *n, const int *count, double *a, const int *lda, int *pivots, double *b,
            const int *ldb, int *info);

static int irs_solve(const fake_blas_call *d)
{
    size_t n = (size_t)d->n, lda = (size_t)d->a.ld;
    double *copy = malloc((n * n + 1) * sizeof *copy);
    int *pivots = malloc((n + 1) * sizeof *pivots);
    bool is_there = copy != NULL && pivots != NULL;

    d_use(d);
    for (size_t k = 0; is_there && k < n * n; k++)
        copy[k] = ((const double *)d->a.at)[k % n + k / n * lda];
    for (size_t k = 0; is_there && k < n * (size_t)d->k; k++)
        ((double *)d->c.at)[k % n + k / n * (size_t)d->c.ld] =
            ((const double *)d->b.at)[k % n + k / n * (size_t)d->b.ld];
    if (is_there)
        dgesv_(&d->n, &d->k, copy, &d->n, pivots, d->c.at, &d->c.ld, d->info);
    free(copy);
    free(pivots);
    return is_there ? 0 : 1;
}

int cusolverDnIRSXgesv(void *handle, void *params, void *infos, int n, int count, void *a, int lda,
                       void *b, int ldb, void *x, int ldx, void *work, size_t bytes,
                       int *iterations, int *info)
{
    const fake_blas_call d = {
        .name = "cusolverDnIRSXgesv",
        .run = irs_solve,
        .element = sizeof(double),
        .n = n,
        .k = count,
        .a = fake_blas_operand(a, n, n, lda),
        .b = fake_blas_operand(b, n, count, ldb),
        .c = fake_blas_operand(x, n, count, ldx),
        .work = work_memory(work, (int)(bytes / sizeof(double)), work_elements(n)),
        .info = info};

    if (irs_is_bad(params) || infos == NULL || ((irs *)infos)->magic != INFOS_MAGIC)
        return FAKE_SOLVER_INVALID_VALUE;
    *iterations = 1;
    return submit(handle, &d);
}
