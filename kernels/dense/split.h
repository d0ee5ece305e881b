/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: LU's products in single precision as products of TF32 whose operands
 * are cut in two (split.cu). */
#ifndef FL_KERNELS_DENSE_SPLIT_H
#define FL_KERNELS_DENSE_SPLIT_H

#include "kernels/dense/steps.h"

typedef struct fl_split fl_split;

/* What the kernels do, on the host. */
int fl_split_left_host(const filch_call *call);
int fl_split_right_host(const filch_call *call);

/* For block columns as A's. *out is null where no device can cut operands in two. */
filch_status fl_split_open(fl_dense *dense, const fl_columns *a, fl_split **out);
/* After the graph is destroyed; null is allowed. */
void fl_split_close(fl_split *split);
/* Cuts what is below the diagonal block of the step's block column of A. */
filch_status fl_split_add_left(fl_split *split, const fl_step *step, filch_graph *graph);
/* In place of fl_dense_add_step(), after that. */
filch_status fl_split_add_step(fl_split *split, const fl_step *step, filch_graph *graph);

#endif
