/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: tasks of a factorization by way of a matrix (fl_through). */
#ifndef FL_KERNELS_DENSE_THROUGH_H
#define FL_KERNELS_DENSE_THROUGH_H

#include "kernels/dense/codelets.h"

/* A's block column j := the input's. */
filch_status fl_through_bring(const fl_dense *dense, const fl_through *through, const fl_columns *a,
                              size_t j, filch_graph *graph);
/* Tiles [first, end) of the factors down block column j := A's. *last: the last task, where there
 * is one. */
filch_status fl_through_deliver(const fl_dense *dense, const fl_through *through,
                                const fl_columns *a, size_t j, size_t first, size_t end,
                                filch_graph *graph, filch_task *last);
/* Tiles of the factors down a block column whose rows are above A's row `row`; with all the rows,
 * all of them. */
size_t fl_through_tiles(const fl_through *through, const fl_columns *a, size_t row);

#endif
