/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: steps of triangular solves, of which LU's updates are some. */
#ifndef FL_KERNELS_DENSE_STEPS_H
#define FL_KERNELS_DENSE_STEPS_H

#include "kernels/dense/codelets.h"

typedef struct fl_step {
    fl_vendor_form form;
    const fl_columns *a;
    const fl_columns *b;
    filch_data *pivots;   /* rows of B are exchanged by them first; null: by none */
    filch_data *inverses; /* of the diagonal blocks, for GPUs; null: there are none */
    size_t at;            /* block column of A */
    size_t order;         /* of its diagonal block */
    size_t to;            /* block column of B */
    bool only_solves;     /* without the products */
} fl_step;

/* Inverses of the first so many diagonal blocks; of an upper triangle's, transposed. */
typedef struct fl_inverses {
    filch_data *data; /* null: there are none */
    size_t count;
} fl_inverses;

/* B := op(A)^-1 B for the triangle `fill` of the square A, on GPUs by those inverses; form->op_a,
 * fill and diagonal count. */
filch_status fl_dense_solve(const fl_dense *dense, const fl_vendor_form *form, const fl_columns *a,
                            const fl_columns *b, fl_inverses inverses, filch_graph *graph);
filch_status fl_dense_add_step(const fl_dense *dense, const fl_step *step, filch_graph *graph);

#endif
