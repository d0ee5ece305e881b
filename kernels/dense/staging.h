/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: tasks of a factorization by way of a matrix (fl_staging). */
#ifndef FL_KERNELS_DENSE_STAGING_H
#define FL_KERNELS_DENSE_STAGING_H

#include "kernels/dense/codelets.h"

/* Tasks of the last steps, one a block column, that a later step waits for. No data demands it:
 * without it they would come last of all. */
typedef struct fl_throttle {
    filch_task *tasks; /* 0: none */
    size_t steps;      /* between a task's step and the one that waits */
    size_t columns;
} fl_throttle;

filch_status fl_throttle_open(fl_throttle *throttle, size_t steps, size_t columns);
void fl_throttle_close(fl_throttle *throttle);
/* `begins`, the first task of a step, waits for the tasks of throttle->steps steps before. Returns
 * the tasks of the step itself, which are none yet. */
filch_task *fl_throttle_step(fl_throttle *throttle, size_t step, filch_task begins,
                             filch_graph *graph, filch_status *status);

/* A's block column j := the input's. */
filch_status fl_staging_load(const fl_dense *dense, const fl_staging *staging, const fl_columns *a,
                             size_t j, filch_graph *graph);
/* Tiles [first, end) of the factors down block column j := A's, by way of the temporary where there
 * is one. *left: the last task that reads A; *sent: the last one that reads the temporary. Either
 * may be null, and is set where there is such a task. */
filch_status fl_staging_store(const fl_dense *dense, const fl_staging *staging, const fl_columns *a,
                              size_t j, size_t first, size_t end, filch_graph *graph,
                              filch_task *left, filch_task *sent);
/* Tiles of the factors down a block column whose rows are above A's row `row`; with all the rows,
 * all of them. */
size_t fl_staging_tiles(const fl_staging *staging, const fl_columns *a, size_t row);

#endif
