/* SPDX-License-Identifier: Apache-2.0 */
/* A cuSOLVERMg for the fake driver: libcusolverMg.so.12. Matrices lie in blocks of columns, dealt
 * to the devices of a grid of one row in turn. Work is done on a stream of its own, in no order
 * with the caller's, and before the call returns. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fakeblas.h"

#define HANDLE_MAGIC 0x501e0a91u
#define GRID_MAGIC 0x501e0a92u
#define DESC_MAGIC 0x501e0a93u
#define DEVICES 16

enum { REAL_SINGLE = 0, REAL_DOUBLE = 1 }; /* cudaDataType */

typedef struct fake_grid {
    uint32_t magic;
    int count;
    int devices[DEVICES];
} fake_grid;

typedef struct fake_desc {
    uint32_t magic;
    int64_t rows, cols, block;
    int type;
    const fake_grid *grid;
} fake_desc;

typedef struct fake_mg {
    uint32_t magic;
    int count; /* of devices; 0: none selected yet */
    int devices[DEVICES];
} fake_mg;

/* A factorization as it waits on the stream. */
typedef struct factoring {
    const fake_desc *desc;
    void *const *blocks;
    bool is_lu;            /* else Cholesky */
    void *pivots[DEVICES]; /* of LU: a row of ints, dealt out as the columns */
    void *const *work;
    int n;
    int64_t elements;
    int *info;
} factoring;

void dpotrf_(const char *fill, const int *n, double *a, const int *lda, int *info, size_t length);
void spotrf_(const char *fill, const int *n, float *a, const int *lda, int *info, size_t length);
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
void sgetrf_(const int *m, const int *n, float *a, const int *lda, int *pivots, int *info);
/* The driver's. */
int cuDeviceGetCount(int *count);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);
int cuStreamDestroy_v2(void *stream);

static _Atomic int objects;

__attribute__((destructor)) static void finish(void)
{
    if (objects > 0)
        fakecuda_report("cuSOLVERMg handles, grids or descriptors left behind");
}

static void *object_make(size_t bytes, uint32_t magic)
{
    uint32_t *object = calloc(1, bytes);

    if (object == NULL)
        return NULL;
    *object = magic;
    objects++;
    return object;
}

/* Every object begins with its magic. */
static bool lives(const void *object, uint32_t magic)
{
    if (object != NULL && *(const uint32_t *)object == magic)
        return true;
    fakecuda_report("no living cuSOLVERMg handle, grid or descriptor");
    return false;
}

static int object_end(void *object, uint32_t magic)
{
    if (!lives(object, magic))
        return FAKE_BLAS_NOT_INITIALIZED;
    *(uint32_t *)object = 0;
    objects--;
    free(object);
    return FAKE_BLAS_SUCCESS;
}

FAKECUDA_API int cusolverMgCreate(void **handle);
FAKECUDA_API int cusolverMgDestroy(void *handle);
FAKECUDA_API int cusolverMgDeviceSelect(void *handle, int count, int *devices);
FAKECUDA_API int cusolverMgCreateDeviceGrid(void **grid, int32_t rows, int32_t cols,
                                            const int32_t *devices, int mapping);
FAKECUDA_API int cusolverMgDestroyGrid(void *grid);
FAKECUDA_API int cusolverMgCreateMatrixDesc(void **desc, int64_t rows, int64_t cols,
                                            int64_t row_block, int64_t col_block, int type,
                                            void *grid);
FAKECUDA_API int cusolverMgDestroyMatrixDesc(void *desc);
FAKECUDA_API int cusolverMgPotrf_bufferSize(void *handle, int fill, int n, void **a, int ia, int ja,
                                            void *desc, int type, int64_t *elements);
FAKECUDA_API int cusolverMgPotrf(void *handle, int fill, int n, void **a, int ia, int ja,
                                 void *desc, int type, void **work, int64_t elements, int *info);
FAKECUDA_API int cusolverMgGetrf_bufferSize(void *handle, int m, int n, void **a, int ia, int ja,
                                            void *desc, int **pivots, int type, int64_t *elements);
FAKECUDA_API int cusolverMgGetrf(void *handle, int m, int n, void **a, int ia, int ja, void *desc,
                                 int **pivots, int type, void **work, int64_t elements, int *info);

int cusolverMgCreate(void **handle)
{
    if (fakecuda_visit("cusolverMgCreate", true) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    *handle = object_make(sizeof(fake_mg), HANDLE_MAGIC);
    return *handle != NULL ? FAKE_BLAS_SUCCESS : FAKE_SOLVER_EXECUTION_FAILED;
}

int cusolverMgDestroy(void *handle)
{
    (void)fakecuda_visit("cusolverMgDestroy", true);
    return object_end(handle, HANDLE_MAGIC);
}

int cusolverMgDeviceSelect(void *handle, int count, int *devices)
{
    fake_mg *mg = handle;
    int there = 0;

    if (!lives(handle, HANDLE_MAGIC) || fakecuda_visit("cusolverMgDeviceSelect", true) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (mg->count > 0) {
        fakecuda_report("cuSOLVERMg's devices are selected once for a handle");
        return FAKE_SOLVER_INVALID_VALUE;
    }
    if (count < 1 || count > DEVICES || cuDeviceGetCount(&there) != 0)
        return FAKE_SOLVER_INVALID_VALUE;
    for (int k = 0; k < count; k++)
        if (devices[k] < 0 || devices[k] >= there)
            return FAKE_SOLVER_INVALID_VALUE;
    mg->count = count;
    memcpy(mg->devices, devices, (size_t)count * sizeof *devices);
    return FAKE_BLAS_SUCCESS;
}

int cusolverMgCreateDeviceGrid(void **grid, int32_t rows, int32_t cols, const int32_t *devices,
                               int mapping)
{
    fake_grid *made;

    if (rows != 1 || cols < 1 || cols > DEVICES || (mapping != 0 && mapping != 1))
        return FAKE_SOLVER_INVALID_VALUE;
    made = object_make(sizeof *made, GRID_MAGIC);
    if (made == NULL)
        return FAKE_SOLVER_EXECUTION_FAILED;
    made->count = cols;
    memcpy(made->devices, devices, (size_t)cols * sizeof *devices);
    *grid = made;
    return FAKE_BLAS_SUCCESS;
}

int cusolverMgDestroyGrid(void *grid)
{
    return object_end(grid, GRID_MAGIC);
}

int cusolverMgCreateMatrixDesc(void **desc, int64_t rows, int64_t cols, int64_t row_block,
                               int64_t col_block, int type, void *grid)
{
    fake_desc *made;

    if (!lives(grid, GRID_MAGIC))
        return FAKE_BLAS_NOT_INITIALIZED;
    if (rows < 1 || cols < 1 || row_block != rows || col_block < 1 ||
        (type != REAL_SINGLE && type != REAL_DOUBLE))
        return FAKE_SOLVER_INVALID_VALUE;
    made = object_make(sizeof *made, DESC_MAGIC);
    if (made == NULL)
        return FAKE_SOLVER_EXECUTION_FAILED;
    made->rows = rows;
    made->cols = cols;
    made->block = col_block;
    made->type = type;
    made->grid = grid;
    *desc = made;
    return FAKE_BLAS_SUCCESS;
}

int cusolverMgDestroyMatrixDesc(void *desc)
{
    return object_end(desc, DESC_MAGIC);
}

/* All of a square matrix, on the devices that were selected, in their order. */
static int check(void *handle, int n, int ia, int ja, void *desc, int type)
{
    const fake_mg *mg = handle;
    const fake_desc *d = desc;

    if (!lives(handle, HANDLE_MAGIC) || !lives(desc, DESC_MAGIC) || !lives(d->grid, GRID_MAGIC))
        return FAKE_BLAS_NOT_INITIALIZED;
    if (mg->count == 0) {
        fakecuda_report("a cuSOLVERMg call before devices are selected");
        return FAKE_BLAS_NOT_INITIALIZED;
    }
    bool is_right =
        ia == 1 && ja == 1 && n >= 1 && n == d->rows && n == d->cols && type == d->type &&
        mg->count == d->grid->count &&
        memcmp(mg->devices, d->grid->devices, (size_t)mg->count * sizeof *mg->devices) == 0;
    return is_right ? FAKE_BLAS_SUCCESS : FAKE_SOLVER_INVALID_VALUE;
}

/* The fake needs none, but wants as much as it asked for. */
static int64_t work_elements(const fake_desc *desc)
{
    return desc->block * 2 + 1;
}

static int tell_elements(int status, bool is_right, const void *desc, int64_t *elements)
{
    if (status == FAKE_BLAS_SUCCESS && !is_right)
        status = FAKE_SOLVER_INVALID_VALUE;
    if (status == FAKE_BLAS_SUCCESS)
        *elements = work_elements(desc);
    return status;
}

/* The lower triangle alone. */
int cusolverMgPotrf_bufferSize(void *handle, int fill, int n, void **a, int ia, int ja, void *desc,
                               int type, int64_t *elements)
{
    return tell_elements(check(handle, n, ia, ja, desc, type), a != NULL && fill == 0, desc,
                         elements);
}

int cusolverMgGetrf_bufferSize(void *handle, int m, int n, void **a, int ia, int ja, void *desc,
                               int **pivots, int type, int64_t *elements)
{
    return tell_elements(check(handle, n, ia, ja, desc, type),
                         a != NULL && pivots != NULL && m == n, desc, elements);
}

static size_t element_of(const fake_desc *desc)
{
    return desc->type == REAL_DOUBLE ? sizeof(double) : sizeof(float);
}

/* Columns of so many bytes, one by one, so that a block too short is found out; false: it may not
 * be touched. */
static bool columns_copy(const fake_desc *d, void *const *blocks, size_t column, char *whole,
                         bool in)
{
    for (int64_t j = 0; j < d->cols; j++) {
        int64_t block = j / d->block;
        int64_t local = block / d->grid->count * d->block + j % d->block;
        char *at =
            fakecuda_map((char *)blocks[block % d->grid->count] + (size_t)local * column, column);
        if (at == NULL)
            return false;
        memcpy(in ? whole + (size_t)j * column : at, in ? at : whole + (size_t)j * column, column);
    }
    return true;
}

static bool work_fill(const factoring *f)
{
    size_t bytes = (size_t)f->elements * element_of(f->desc);

    for (int k = 0; k < f->desc->grid->count; k++) {
        void *work = fakecuda_map(f->work[k], bytes);
        if (work == NULL)
            return false;
        memset(work, 0xa5, bytes); /* whatever else is in there is lost */
    }
    return true;
}

static void factor_whole(const factoring *f, void *whole, int *pivots)
{
    bool is_double = f->desc->type == REAL_DOUBLE;

    if (f->is_lu && is_double)
        dgetrf_(&f->n, &f->n, whole, &f->n, pivots, f->info);
    else if (f->is_lu)
        sgetrf_(&f->n, &f->n, whole, &f->n, pivots, f->info);
    else if (is_double)
        dpotrf_("L", &f->n, whole, &f->n, f->info, 1);
    else
        spotrf_("L", &f->n, whole, &f->n, f->info, 1);
}

static int factor(void *data)
{
    const factoring *f = data;
    size_t column = (size_t)f->n * element_of(f->desc);
    char *whole = malloc((size_t)f->n * column);
    int *pivots = malloc((size_t)f->n * sizeof *pivots);
    bool is_done = whole != NULL && pivots != NULL && work_fill(f) &&
                   columns_copy(f->desc, f->blocks, column, whole, true);

    if (is_done) {
        factor_whole(f, whole, pivots);
        is_done =
            columns_copy(f->desc, f->blocks, column, whole, false) &&
            (!f->is_lu || columns_copy(f->desc, f->pivots, sizeof *pivots, (char *)pivots, false));
    }
    free(pivots);
    free(whole);
    return !is_done;
}

static int run(const char *name, const factoring *f)
{
    void *stream = NULL;

    if (f->blocks == NULL || f->work == NULL || f->info == NULL ||
        f->elements < work_elements(f->desc))
        return FAKE_SOLVER_INVALID_VALUE;
    if (fakecuda_visit(name, false) != 0 || cuStreamCreate(&stream, 1) != 0)
        return FAKE_SOLVER_EXECUTION_FAILED;
    int failed = fakecuda_enqueue_copy(stream, factor, f, sizeof *f);
    failed |= cuStreamSynchronize(stream);
    failed |= cuStreamDestroy_v2(stream);
    return failed ? FAKE_SOLVER_EXECUTION_FAILED : FAKE_BLAS_SUCCESS;
}

int cusolverMgPotrf(void *handle, int fill, int n, void **a, int ia, int ja, void *desc, int type,
                    void **work, int64_t elements, int *info)
{
    factoring f = {
        .desc = desc, .blocks = a, .work = work, .n = n, .elements = elements, .info = info};
    int status = check(handle, n, ia, ja, desc, type);

    if (status == FAKE_BLAS_SUCCESS && fill != 0)
        status = FAKE_SOLVER_INVALID_VALUE;
    return status == FAKE_BLAS_SUCCESS ? run("cusolverMgPotrf", &f) : status;
}

int cusolverMgGetrf(void *handle, int m, int n, void **a, int ia, int ja, void *desc, int **pivots,
                    int type, void **work, int64_t elements, int *info)
{
    factoring f = {.desc = desc,
                   .blocks = a,
                   .is_lu = true,
                   .work = work,
                   .n = n,
                   .elements = elements,
                   .info = info};
    int status = check(handle, n, ia, ja, desc, type);

    if (status == FAKE_BLAS_SUCCESS && (m != n || pivots == NULL))
        status = FAKE_SOLVER_INVALID_VALUE;
    if (status != FAKE_BLAS_SUCCESS)
        return status;
    for (int k = 0; k < f.desc->grid->count; k++)
        f.pivots[k] = pivots[k];
    return run("cusolverMgGetrf", &f);
}
