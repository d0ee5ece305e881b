/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: tasks that take columns from double to single precision and back. A
 * column is divided by a power of two so that its largest element lies between 1/2 and 1: so the
 * narrow formats of tensor cores neither overflow nor lose small columns. */
#ifndef FL_KERNELS_DENSE_NARROW_H
#define FL_KERNELS_DENSE_NARROW_H

#include "kernels/dense/codelets.h"

/* Of a column: norms are 2 x columns, in double precision. Of a solution the sum is that of its
 * elements' sizes times the sums of A's columns, which no scaling of columns changes. */
enum { FL_NARROW_MOST, FL_NARROW_SUM, FL_NARROW_NORMS };

typedef struct fl_narrow_args {
    uint64_t col;   /* first column of what is in double precision; the others begin with 0 */
    uint64_t count; /* columns */
    int32_t adds;   /* FL_WIDEN: to what is there */
    int32_t weighs; /* FL_NARROW_ROWS: sums are those of FL_WIDEN */
} fl_narrow_args;

typedef enum fl_narrow_kernel {
    FL_NARROW,      /* from, to, norms */
    FL_NARROW_ROWS, /* from, to, norms, rows, norms of A's columns: row i of `to` is row rows[i] of
                       `from` */
    FL_WIDEN,       /* from, to, norms of the sum, norms of A's columns, norms of the right sides:
                       the solution for A and b of the solution for their narrow forms */
    FL_NARROW_KERNELS
} fl_narrow_kernel;

/* On the host. */
int fl_narrow_host(const filch_call *call);
int fl_narrow_rows_host(const filch_call *call);
int fl_widen_host(const filch_call *call);

/* Makes the codelets, once. FILCH_UNSUPPORTED: nothing in the runtime runs them, for want of a
 * compiler on GPUs. */
filch_status fl_narrow_open(fl_dense *dense);
filch_status fl_narrow_add(const fl_dense *dense, filch_graph *graph, fl_narrow_kernel which,
                           fl_narrow_args args, const filch_access *accesses, uint32_t affinity);

#endif
