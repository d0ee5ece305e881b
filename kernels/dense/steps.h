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
    bool has_blocks;      /* the inverses are those of inverses.h */
    bool only_solves;     /* without the products */
} fl_step;

/* Whether blocks of A's diagonal pay for B's columns (fl_inverses_pay()). */
bool fl_dense_blocks_pay(const fl_columns *a, const fl_columns *b);
/* A handle for the blocks of inverses.h, of A. */
filch_status fl_dense_blocks(const fl_dense *dense, const fl_columns *a, filch_data **out);
/* B := op(A)^-1 B for the triangle `fill` of the square A; form->op_a, fill and diagonal count. On
 * GPUs by blocks that the tasks make, in a handle for them; null: by none. */
filch_status fl_dense_solve(const fl_dense *dense, const fl_vendor_form *form, const fl_columns *a,
                            const fl_columns *b, filch_data *blocks, filch_graph *graph);
filch_status fl_dense_add_step(const fl_dense *dense, const fl_step *step, filch_graph *graph);

#endif
