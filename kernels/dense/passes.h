/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: tasks on vectors and on all block columns of a matrix, of which an
 * iterative solution consists. Vectors are columns of handles with one tile. */
#ifndef FL_KERNELS_DENSE_PASSES_H
#define FL_KERNELS_DENSE_PASSES_H

#include "kernels/dense/codelets.h"

typedef enum fl_pass {
    FL_PASS_COPY,  /* from, to */
    FL_PASS_TIMES, /* Y, X, A ...: Y := factor A X, or added to Y */
    FL_PASS_SOLVE, /* X, scratch, A ..., inverses of the first diagonal blocks of these ...: steps
                      of X := T^-1 X for a triangle of A */
    FL_PASS_SCALE, /* X: X := factor X */
    FL_PASS_BASIS, /* V, products: column `to` made orthogonal to those before it, twice (classical
                      Gram-Schmidt); products receives both passes' and the column's with itself */
    FL_PASS_COMBINE, /* X, Z, factors: X := X + Z factors */
    FL_PASSES
} fl_pass;

typedef struct fl_pass_args {
    const fl_dense_host *host;
    uint64_t from, to; /* first columns of what is read and of what is written */
    uint64_t count;    /* columns; FL_PASS_COMBINE: of Z */
    double factor;
    int32_t adds;    /* FL_PASS_TIMES */
    int32_t fill;    /* FL_PASS_SOLVE: the triangle; ones are on the diagonal of a lower one */
    uint32_t blocks; /* FL_PASS_SOLVE: of A */
} fl_pass_args;

/* Makes the codelets, once. */
filch_status fl_pass_open(fl_dense *dense);
filch_status fl_pass_add(const fl_dense *dense, filch_graph *graph, fl_pass which,
                         fl_pass_args args, const filch_access *accesses, uint32_t count,
                         uint32_t affinity);
/* Y := factor A X, or added to Y. */
filch_status fl_pass_times(const fl_dense *dense, filch_graph *graph, fl_pass_args args,
                           const fl_columns *a, filch_data *x, filch_data *y);
/* X := U^-1 L^-1 X by the factors of A, where A was, and what inverses there are of their blocks.
 */
filch_status fl_pass_solve(const fl_dense *dense, filch_graph *graph, fl_pass_args args,
                           const fl_lu *lu, const fl_columns *a, filch_data *x);
/* Products that FL_PASS_BASIS makes at most, for a basis of so many columns. */
static inline size_t fl_pass_products(size_t columns)
{
    return 2 * columns + 1;
}

#endif
