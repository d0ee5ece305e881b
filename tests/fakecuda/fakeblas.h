/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake cuBLAS and the fake cuSOLVER share: handles, and calls that are put on a stream of
 * the fake driver and worked on by the host's BLAS. Enumerations are ints, handles and streams
 * pointers; statuses and values are those of cublas_api.h and cusolverDn.h. */
#ifndef FAKECUDA_FAKEBLAS_H
#define FAKECUDA_FAKEBLAS_H

#include <cblas.h>
#include <stddef.h>
#include <stdint.h>

#include "fakecuda.h"

enum {
    FAKE_BLAS_SUCCESS = 0,
    FAKE_BLAS_NOT_INITIALIZED = 1,
    FAKE_BLAS_ALLOC_FAILED = 3,
    FAKE_BLAS_INVALID_VALUE = 7,
    FAKE_BLAS_EXECUTION_FAILED = 13,
    FAKE_SOLVER_INVALID_VALUE = 3,
    FAKE_SOLVER_EXECUTION_FAILED = 6
};

typedef struct fake_blas {
    uint32_t magic; /* the library's, while the handle lives */
    void *stream;
} fake_blas;

/* A call as it waits on the stream. Pointers are the device's. */
typedef struct fake_blas_call {
    const char *name;
    int side, fill, op_a, op_b, diagonal;
    int m, n, k, lda, ldb, ldc;
    int count;                        /* of a batch */
    long long step_a, step_b, step_c; /* from one matrix of a strided one to the next */
    double alpha, beta;
    const void *a, *b;
    void *c;
    int *info;
} fake_blas_call;

/* Bytes from a matrix's first element to its last one's end. */
static inline size_t fake_blas_bytes(int rows, int columns, int ld, size_t element)
{
    if (rows == 0 || columns == 0)
        return 0;
    return ((size_t)(columns - 1) * (size_t)ld + (size_t)rows) * element;
}

/* Where the host finds a matrix; an empty one is anywhere. Null: it may not be touched. */
static inline void *fake_blas_find(const void *at, int rows, int columns, int ld, size_t element)
{
    size_t bytes = fake_blas_bytes(rows, columns, ld, element);

    return bytes == 0 ? (void *)(uintptr_t)at : fakecuda_map(at, bytes);
}

static inline CBLAS_TRANSPOSE fake_blas_op(int op)
{
    return op == 0 ? CblasNoTrans : CblasTrans;
}

static inline CBLAS_UPLO fake_blas_fill(int fill)
{
    return fill == 0 ? CblasLower : CblasUpper;
}

#endif
