/* SPDX-License-Identifier: Apache-2.0 */
/* A cuSPARSE for the fake driver: libcusparse.so.12. Products of a CSR matrix by a vector, put on a
 * stream of the fake driver and worked on by the host. Statuses and values are those of cusparse.h;
 * scalars are the host's. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fakecuda.h"

#define API FAKECUDA_API
/* What a product wants beside. */
#define WORK_BYTES 512

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 2,
    INVALID_VALUE = 3,
    EXECUTION_FAILED = 6
};
enum { INDEX_32 = 2, REAL_64 = 1 };
enum kind { HANDLE = 0x5aa50001, MATRIX, VECTOR };

typedef struct object {
    enum kind kind; /* 0: it lives no more */
    void *stream;
    int64_t rows, columns, elements;
    int *starts, *indices;
    double *values;
} object;

/* A product as it waits on the stream. */
typedef struct product {
    object matrix, x, y;
    double alpha, beta;
    void *work;
} product;

static _Atomic int objects;

__attribute__((destructor)) static void finish(void)
{
    if (objects > 0)
        fakecuda_report("cuSPARSE handles, matrices or vectors left behind at the process's end");
}

static object *get(void *handle, enum kind kind)
{
    object *o = handle;

    if (o != NULL && o->kind == kind)
        return o;
    fakecuda_report("no living cuSPARSE object of that kind");
    return NULL;
}

static int make(const char *call, object content, void **out)
{
    object *o;

    if (fakecuda_visit(call, content.kind == HANDLE) != 0)
        return NOT_INITIALIZED;
    if ((o = malloc(sizeof *o)) == NULL)
        return ALLOC_FAILED;
    *o = content;
    objects++;
    *out = o;
    return SUCCESS;
}

static int drop(void *handle, enum kind kind)
{
    object *o = get(handle, kind);

    if (o == NULL)
        return NOT_INITIALIZED;
    o->kind = 0;
    objects--;
    free(o);
    return SUCCESS;
}

API int cusparseCreate(void **handle);
API int cusparseDestroy(void *handle);
API int cusparseSetStream(void *handle, void *stream);
API int cusparseCreateCsr(void **matrix, int64_t rows, int64_t columns, int64_t elements,
                          void *starts, void *indices, void *values, int start_type, int index_type,
                          int base, int type);
API int cusparseDestroySpMat(void *matrix);
API int cusparseCreateDnVec(void **vector, int64_t elements, void *values, int type);
API int cusparseDestroyDnVec(void *vector);
API int cusparseSpMV_bufferSize(void *handle, int operation, const void *alpha, void *matrix,
                                void *x, const void *beta, void *y, int type, int algorithm,
                                size_t *bytes);
API int cusparseSpMV_preprocess(void *handle, int operation, const void *alpha, void *matrix,
                                void *x, const void *beta, void *y, int type, int algorithm,
                                void *work);
API int cusparseSpMV(void *handle, int operation, const void *alpha, void *matrix, void *x,
                     const void *beta, void *y, int type, int algorithm, void *work);

int cusparseCreate(void **handle)
{
    return make("cusparseCreate", (object){.kind = HANDLE}, handle);
}

int cusparseDestroy(void *handle)
{
    return drop(handle, HANDLE);
}

int cusparseSetStream(void *handle, void *stream)
{
    object *o = get(handle, HANDLE);

    if (o == NULL)
        return NOT_INITIALIZED;
    o->stream = stream;
    return SUCCESS;
}

int cusparseCreateCsr(void **matrix, int64_t rows, int64_t columns, int64_t elements, void *starts,
                      void *indices, void *values, int start_type, int index_type, int base,
                      int type)
{
    const object content = {.kind = MATRIX,
                            .rows = rows,
                            .columns = columns,
                            .elements = elements,
                            .starts = starts,
                            .indices = indices,
                            .values = values};

    if (rows < 0 || columns < 0 || elements < 0 || start_type != INDEX_32 ||
        index_type != INDEX_32 || base != 0 || type != REAL_64)
        return INVALID_VALUE;
    return make("cusparseCreateCsr", content, matrix);
}

int cusparseDestroySpMat(void *matrix)
{
    return drop(matrix, MATRIX);
}

int cusparseCreateDnVec(void **vector, int64_t elements, void *values, int type)
{
    const object content = {.kind = VECTOR, .elements = elements, .values = values};

    if (elements < 0 || type != REAL_64)
        return INVALID_VALUE;
    return make("cusparseCreateDnVec", content, vector);
}

int cusparseDestroyDnVec(void *vector)
{
    return drop(vector, VECTOR);
}

/* What a product's calls share; the objects are copied to *p. */
static int check(const char *call, void *handle, int operation, void *matrix, void *x, void *y,
                 int type, int algorithm, product *p)
{
    const object *a = get(matrix, MATRIX), *from = get(x, VECTOR), *to = get(y, VECTOR);

    if (get(handle, HANDLE) == NULL || a == NULL || from == NULL || to == NULL)
        return NOT_INITIALIZED;
    if (operation != 0 || type != REAL_64 || (algorithm != 0 && algorithm != 2 && algorithm != 3) ||
        a->columns != from->elements || a->rows != to->elements)
        return INVALID_VALUE;
    p->matrix = *a;
    p->x = *from;
    p->y = *to;
    return fakecuda_visit(call, false) == 0 ? SUCCESS : EXECUTION_FAILED;
}

int cusparseSpMV_bufferSize(void *handle, int operation, const void *alpha, void *matrix, void *x,
                            const void *beta, void *y, int type, int algorithm, size_t *bytes)
{
    product p;

    (void)alpha;
    (void)beta;
    *bytes = WORK_BYTES;
    return check("cusparseSpMV_bufferSize", handle, operation, matrix, x, y, type, algorithm, &p);
}

static int prepare(void *data)
{
    const product *p = data;

    return fakecuda_map(p->work, WORK_BYTES) == NULL;
}

int cusparseSpMV_preprocess(void *handle, int operation, const void *alpha, void *matrix, void *x,
                            const void *beta, void *y, int type, int algorithm, void *work)
{
    product p = {.work = work};
    int status =
        check("cusparseSpMV_preprocess", handle, operation, matrix, x, y, type, algorithm, &p);

    (void)alpha;
    (void)beta;
    if (status != SUCCESS)
        return status;
    return fakecuda_enqueue_copy(get(handle, HANDLE)->stream, prepare, &p, sizeof p) == 0
               ? SUCCESS
               : EXECUTION_FAILED;
}

static int multiply(void *data)
{
    const product *p = data;
    const object *a = &p->matrix;
    const int *starts = fakecuda_map(a->starts, ((size_t)a->rows + 1) * sizeof *starts);
    const int *indices = fakecuda_map(a->indices, (size_t)a->elements * sizeof *indices);
    const double *values = fakecuda_map(a->values, (size_t)a->elements * sizeof *values);
    const double *x = fakecuda_map(p->x.values, (size_t)p->x.elements * sizeof *x);
    double *y = fakecuda_map(p->y.values, (size_t)p->y.elements * sizeof *y);

    if (!starts || !indices || !values || !x || !y || fakecuda_map(p->work, WORK_BYTES) == NULL)
        return 1;
    for (int64_t row = 0; row < a->rows; row++) {
        double sum = 0;
        for (int k = starts[row]; k < starts[row + 1]; k++)
            sum += values[k] * x[indices[k]];
        y[row] = p->alpha * sum + (p->beta != 0 ? p->beta * y[row] : 0);
    }
    return 0;
}

int cusparseSpMV(void *handle, int operation, const void *alpha, void *matrix, void *x,
                 const void *beta, void *y, int type, int algorithm, void *work)
{
    product p = {.alpha = *(const double *)alpha, .beta = *(const double *)beta, .work = work};
    int status = check("cusparseSpMV", handle, operation, matrix, x, y, type, algorithm, &p);

    if (status != SUCCESS)
        return status;
    return fakecuda_enqueue_copy(get(handle, HANDLE)->stream, multiply, &p, sizeof p) == 0
               ? SUCCESS
               : EXECUTION_FAILED;
}
