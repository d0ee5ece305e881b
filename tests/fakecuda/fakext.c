/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASXt for the fake driver, part of its libcublas: products of matrices in the host's memory,
 * done before the call returns, as by the real one. Devices are selected once for a handle. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fakeblas.h"

#define MAGIC 0xb1a50007u

typedef struct fake_xt {
    uint32_t magic;
    int devices; /* selected; 0: none yet */
    int block;
} fake_xt;

/* The driver's. */
int cuDeviceGetCount(int *count);

static _Atomic int handles;

__attribute__((destructor)) static void finish(void)
{
    if (handles > 0)
        fakecuda_report("cuBLASXt handles left behind at the process's end");
}

static fake_xt *handle_get(void *handle)
{
    fake_xt *xt = handle;

    if (xt != NULL && xt->magic == MAGIC)
        return xt;
    fakecuda_report("no living cuBLASXt handle");
    return NULL;
}

FAKECUDA_API int cublasXtCreate(void **handle);
FAKECUDA_API int cublasXtDestroy(void *handle);
FAKECUDA_API int cublasXtDeviceSelect(void *handle, int count, int *devices);
FAKECUDA_API int cublasXtSetBlockDim(void *handle, int block);
FAKECUDA_API int cublasXtSetPinningMemMode(void *handle, int mode);

int cublasXtCreate(void **handle)
{
    fake_xt *xt;

    if (fakecuda_visit("cublasXtCreate", true) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    xt = calloc(1, sizeof *xt);
    if (xt == NULL)
        return FAKE_BLAS_ALLOC_FAILED;
    xt->magic = MAGIC;
    xt->block = 2048;
    handles++;
    *handle = xt;
    return FAKE_BLAS_SUCCESS;
}

int cublasXtDestroy(void *handle)
{
    fake_xt *xt = handle_get(handle);

    if (xt == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    (void)fakecuda_visit("cublasXtDestroy", true);
    xt->magic = 0;
    handles--;
    free(xt);
    return FAKE_BLAS_SUCCESS;
}

int cublasXtDeviceSelect(void *handle, int count, int *devices)
{
    fake_xt *xt = handle_get(handle);
    int there = 0;

    if (xt == NULL || fakecuda_visit("cublasXtDeviceSelect", true) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (xt->devices > 0) {
        fakecuda_report("cuBLASXt's devices are selected once for a handle");
        return FAKE_BLAS_INVALID_VALUE;
    }
    if (count < 1 || cuDeviceGetCount(&there) != 0)
        return FAKE_BLAS_INVALID_VALUE;
    for (int k = 0; k < count; k++)
        if (devices[k] < 0 || devices[k] >= there)
            return FAKE_BLAS_INVALID_VALUE;
    xt->devices = count;
    return FAKE_BLAS_SUCCESS;
}

int cublasXtSetBlockDim(void *handle, int block)
{
    fake_xt *xt = handle_get(handle);

    if (xt == NULL || fakecuda_visit("cublasXtSetBlockDim", false) != 0)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (block <= 0)
        return FAKE_BLAS_INVALID_VALUE;
    xt->block = block;
    return FAKE_BLAS_SUCCESS;
}

int cublasXtSetPinningMemMode(void *handle, int mode)
{
    if (handle_get(handle) == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    return mode == 0 || mode == 1 ? FAKE_BLAS_SUCCESS : FAKE_BLAS_INVALID_VALUE;
}

static int begin(void *handle, const char *call)
{
    const fake_xt *xt = handle_get(handle);

    if (xt == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (xt->devices == 0) {
        fakecuda_report("a cuBLASXt product before devices are selected");
        return FAKE_BLAS_NOT_INITIALIZED;
    }
    return fakecuda_visit(call, false) == 0 ? FAKE_BLAS_SUCCESS : FAKE_BLAS_EXECUTION_FAILED;
}

#define PRECISION(P, p, real)                                                                      \
    FAKECUDA_API int cublasXt##P##gemm(void *handle, int op_a, int op_b, size_t m, size_t n,       \
                                       size_t k, const real *alpha, const real *a, size_t lda,     \
                                       const real *b, size_t ldb, const real *beta, real *c,       \
                                       size_t ldc);                                                \
                                                                                                   \
    int cublasXt##P##gemm(void *handle, int op_a, int op_b, size_t m, size_t n, size_t k,          \
                          const real *alpha, const real *a, size_t lda, const real *b, size_t ldb, \
                          const real *beta, real *c, size_t ldc)                                   \
    {                                                                                              \
        int status = begin(handle, "cublasXt" #P "gemm");                                          \
        if (status == FAKE_BLAS_SUCCESS)                                                           \
            cblas_##p##gemm(CblasColMajor, fake_blas_op(op_a), fake_blas_op(op_b), (int)m, (int)n, \
                            (int)k, *alpha, a, (int)lda, b, (int)ldb, *beta, c, (int)ldc);         \
        return status;                                                                             \
    }

PRECISION(D, d, double)
PRECISION(S, s, float)
