/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a routine, in whichever form it came: column-major once fl_call_settle() has seen it.
 */
#ifndef FILCH_BLAS_CALL_H
#define FILCH_BLAS_CALL_H

#include "kernels/blas/routines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code of a LAPACK routine that could not run: no routine of LAPACK's has so many arguments,
 * and LAPACKE's own codes end at -1011. */
#define FL_BLAS_NOT_RUN (-1020)

/* Of CBLAS and LAPACKE. */
enum { FL_BLAS_ROW_MAJOR = 101, FL_BLAS_COL_MAJOR = 102 };

typedef struct fl_blas_call {
    fl_blas_routine routine;
    bool is_single;
    bool is_left; /* to the next BLAS: asks for the size of work space, or has too little */
    int layout;   /* Fortran, or settled: 0; else FL_BLAS_ROW_MAJOR or FL_BLAS_COL_MAJOR */
    char side, uplo, transa, transb, diag; /* capitals; 0: the routine has no such option */
    uint8_t integer;                       /* bytes of a pivot */
    int64_t m, n, k, nrhs;
    int64_t lda, ldb, ldc;
    double alpha, beta;
    void *a, *b, *c, *tau, *pivots; /* what a routine only reads stays as it is */
    int64_t info;                   /* LAPACK: the result */
} fl_blas_call;

/* A letter, or a number of CBLAS's enumerations; each has a value of its own. 'X': neither. */
char fl_call_letter(int option);

static inline size_t fl_call_element(const fl_blas_call *call)
{
    return call->is_single ? sizeof(float) : sizeof(double);
}

static inline bool fl_call_is_lapack(const fl_blas_call *call)
{
    return call->routine >= FL_BLAS_POTRF;
}

/* Order of the symmetric or triangular matrix of symm, trmm and trsm. */
static inline int64_t fl_call_order(const fl_blas_call *call)
{
    return call->side == 'L' ? call->m : call->n;
}

/* Rewrites a row-major call as the column-major call on the same memory. False where there is none,
 * or an argument is wrong, or nothing is left to compute: the next BLAS then has the call. */
bool fl_call_settle(fl_blas_call *call);
double fl_call_flops(const fl_blas_call *call);
/* Whether filch changes an operand in the host's memory before tasks run: getrs exchanges rows, and
 * gels of a transposed matrix clears some. */
static inline bool fl_call_prepares(const fl_blas_call *call)
{
    return call->routine == FL_BLAS_GETRS || (call->routine == FL_BLAS_GELS && call->transa != 'N');
}

/* Bytes of the operands that go to a GPU, and that come back. */
double fl_call_bytes(const fl_blas_call *call);
/* Whether LAPACKE would find a not-a-number in the matrices read. */
bool fl_call_has_nan(const fl_blas_call *call);

/* A matrix that a call writes. */
typedef struct fl_blas_output {
    void *ptr;
    int64_t rows, cols, ld;
    bool is_read; /* its contents count */
} fl_blas_output;

/* At most two; returns how many. */
int fl_call_outputs(const fl_blas_call *call, fl_blas_output outputs[2]);

#endif
