/* SPDX-License-Identifier: Apache-2.0 */
/* Vector copies with large steps: NumPy and others make one for each row of a matrix that LAPACK
 * gets by columns. Each element then has a cache line, and often a page, of its own, and one core
 * waits for memory nearly all the time. Threads of helpers.h share such a copy where that was
 * measured to be faster; the next BLAS makes all others. */
#ifndef FILCH_BLAS_COPIES_H
#define FILCH_BLAS_COPIES_H

#include "kernels/blas/routines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shorter copies end before a helper begins. In bytes: with smaller steps one cache line has
 * several elements, and is fetched ahead; they were not measured. */
#define FL_COPIES_LEAST 2048
#define FL_COPIES_STEP 512

typedef struct fl_blas_copy {
    fl_blas_precision precision;
    int64_t n;
    const void *x;
    int64_t incx; /* elements; below 0: from the last element on, as BLAS has it */
    void *y;
    int64_t incy;
} fl_blas_copy;

/* When the next BLAS began, for fl_copies_passed(). */
typedef struct fl_copies_pass {
    bool is_timed; /* and the thread's calls are suspended: the next BLAS may call copy itself */
    double begin_s;
} fl_copies_pass;

static inline bool fl_copies_is_short(int64_t n, int64_t incx, int64_t incy, size_t element)
{
    int64_t least = FL_COPIES_STEP / (int64_t)element;
    return n < FL_COPIES_LEAST ||
           (incx < least && incx > -least && incy < least && incy > -least) || incx == 0 ||
           incy == 0;
}

/* True: the copy is made. False: it is the next BLAS's, and fl_copies_passed() follows. Thread
 * safety of all: any thread. */
bool fl_copies_take(const fl_blas_copy *copy, fl_copies_pass *pass);
void fl_copies_passed(const fl_blas_copy *copy, const fl_copies_pass *pass);
/* Makes any copy on the calling thread. */
void fl_copies_make(const fl_blas_copy *copy);

#endif
