/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake cuBLAS and the fake cuSOLVER share: handles, and calls that are put on a stream of
 * the fake driver and worked on by the host's BLAS. Enumerations are ints, handles and streams
 * pointers; statuses and values are those of cublas_api.h and cusolverDn.h. */
#ifndef FAKECUDA_FAKEBLAS_H
#define FAKECUDA_FAKEBLAS_H

#include <cblas.h>
#include <stdbool.h>
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
    int pointers; /* 1: scalars are the device's */
} fake_blas;

/* A column-major operand; its place is the device's while the call waits on the stream, and the
 * host's while it is worked on. */
typedef struct fake_blas_matrix {
    void *at;
    int rows, cols, ld;
} fake_blas_matrix;

/* A call as it waits on the stream. Members that a routine has not are 0. */
typedef struct fake_blas_call {
    const char *name;
    int (*run)(const struct fake_blas_call *call); /* 0, or 1: a place may not be touched */
    size_t element;
    int side, fill, op_a, op_b, diagonal;
    int m, n, k;
    double alpha, beta;
    fake_blas_matrix a, b, c, work;
    int *ints; /* the device's */
    int int_count;
    int *info;                        /* the device's */
    int count;                        /* of a batch of equal strides; 0: one */
    long long step_a, step_b, step_c; /* from one matrix of a batch to the next */
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

static inline bool fake_blas_sound(const fake_blas_matrix *x)
{
    return x->rows >= 0 && x->cols >= 0 && (x->at == NULL || x->ld >= (x->rows > 1 ? x->rows : 1));
}

/* The argument check of every routine. */
static inline bool fake_blas_is_bad(const fake_blas_call *call)
{
    return call->m < 0 || call->n < 0 || call->k < 0 || call->count < 0 ||
           !fake_blas_sound(&call->a) || !fake_blas_sound(&call->b) || !fake_blas_sound(&call->c);
}

/* False: the operand may not be touched. */
static inline bool fake_blas_place(fake_blas_matrix *x, size_t element)
{
    void *at = fake_blas_find(x->at, x->rows, x->cols, x->ld, element);
    bool is_there = at != NULL || x->at == NULL;

    x->at = at;
    return is_there;
}

static inline bool fake_blas_place_ints(int **ints, int count)
{
    fake_blas_matrix x = {*ints, count, 1, count};
    bool is_there = fake_blas_place(&x, sizeof **ints);

    *ints = x.at;
    return is_there;
}

static inline void fake_blas_step(fake_blas_matrix *x, long long elements, size_t element)
{
    if (x->at != NULL)
        x->at = (char *)x->at + elements * (long long)element;
}

/* Works on a call, one matrix of a batch after the other. */
static inline int fake_blas_work(void *data)
{
    const fake_blas_call *all = data;
    int failed = 0;

    for (int i = 0; i == 0 || (i < all->count && !failed); i++) {
        fake_blas_call one = *all;
        fake_blas_step(&one.a, i * all->step_a, all->element);
        fake_blas_step(&one.b, i * all->step_b, all->element);
        fake_blas_step(&one.c, i * all->step_c, all->element);
        failed = !fake_blas_place(&one.a, all->element) || !fake_blas_place(&one.b, all->element) ||
                 !fake_blas_place(&one.c, all->element) ||
                 !fake_blas_place(&one.work, all->element) ||
                 !fake_blas_place_ints(&one.ints, all->int_count) ||
                 !fake_blas_place_ints(&one.info, all->info != NULL) || all->run(&one) != 0;
    }
    return failed;
}

/* Checks a call and puts it on the handle's stream; is_bad: the routine's own check. */
static inline int fake_blas_submit(const fake_blas *handle, const fake_blas_call *call, bool is_bad,
                                   int invalid, int failed)
{
    if (handle == NULL)
        return FAKE_BLAS_NOT_INITIALIZED;
    if (is_bad || fake_blas_is_bad(call))
        return invalid;
    if (fakecuda_visit(call->name, false) != 0 ||
        fakecuda_enqueue_copy(handle->stream, fake_blas_work, call, sizeof *call) != 0)
        return failed;
    return FAKE_BLAS_SUCCESS;
}

static inline fake_blas_matrix fake_blas_operand(const void *at, int rows, int cols, int ld)
{
    return (fake_blas_matrix){(void *)(uintptr_t)at, rows, cols, ld};
}

/* An operand of rows x cols once the operation is applied. */
static inline fake_blas_matrix fake_blas_operated(const void *at, int op, int rows, int cols,
                                                  int ld)
{
    return op == 0 ? fake_blas_operand(at, rows, cols, ld) : fake_blas_operand(at, cols, rows, ld);
}

static inline CBLAS_SIDE fake_blas_side(int side)
{
    return side == 0 ? CblasLeft : CblasRight;
}

static inline CBLAS_DIAG fake_blas_diagonal(int diagonal)
{
    return diagonal == 0 ? CblasNonUnit : CblasUnit;
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
