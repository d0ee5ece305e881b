/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: a system that is solved by refinement; see mixed.h. */
#ifndef FL_KERNELS_DENSE_REFINE_H
#define FL_KERNELS_DENSE_REFINE_H

#include "kernels/dense/mixed.h"
#include "kernels/dense/narrow.h"
#include "kernels/dense/passes.h"

struct fl_mixed {
    fl_dense *dense;
    fl_dense *single;
    fl_mixed_form form;
    bool has_narrow; /* else everything is in double precision */
    fl_columns a;
    fl_columns low; /* its factors, in single precision */
    fl_lu *lu;
    double *norms; /* of A's columns, FL_NARROW_NORMS each, by block columns; from the last run */
    filch_data *norms_data;
    double *scales; /* a copy in one tile */
    filch_data *scales_data;
    int32_t *rows; /* the rows of A in the order of the factors, from 0 */
    filch_data *rows_data;
    double norm; /* |A| */
};

/* Norms of columns, in the host's memory between graphs. */
typedef struct fl_norms {
    double *values;
    filch_data *data;
} fl_norms;

static inline double fl_norms_sum(const fl_norms *norms, size_t col)
{
    return norms->values[col * FL_NARROW_NORMS + FL_NARROW_SUM];
}

/* A solve as it runs. Handles without a buffer are wherever they were used last. */
typedef struct fl_system {
    fl_mixed *mixed;
    const fl_columns *b;
    filch_data *y; /* the solution */
    filch_data *r; /* B - A Y */
    filch_data *d; /* rows of a residual, then a correction, in single precision */
    fl_norms of_b, of_y, of_r;
    filch_error *error;
    fl_mixed_result *result;
} fl_system;

/* Runs a graph where the adding of its tasks went well, and destroys it. */
filch_status fl_system_run(const fl_system *system, filch_graph *graph, filch_status status);
/* R := B - A Y for columns from col on. */
filch_status fl_system_residual(const fl_system *system, filch_graph *graph, uint64_t col,
                                uint64_t count);
/* D := columns of a handle, in single precision and in the order of the factors' rows; norms. */
filch_status fl_system_narrow(const fl_system *system, filch_graph *graph, filch_data *from,
                              uint64_t col, uint64_t count, const fl_norms *norms);
/* Columns `to`, or added to them: A^-1 by the factors of the columns that D was made of, with the
 * norms that came of it. */
filch_status fl_system_correct(const fl_system *system, filch_graph *graph,
                               const fl_norms *narrowed, filch_access to, fl_narrow_args args,
                               const fl_norms *norms);
/* |r| that is small enough. */
double fl_system_goal(const fl_system *system, size_t col);
/* |r| / (sum of |a_j| |x_j| + |b|), a_j being the columns of A. */
double fl_system_error(const fl_system *system, size_t col);
/* Whether B, once its norms are there, has nothing but numbers. */
bool fl_system_is_finite(const fl_system *system);

/* The whole of B by refinement. *is_done: all columns reached their goals. FILCH_DATA: B has
 * elements that are no numbers. */
filch_status fl_refine(fl_system *system, bool *is_done);

filch_status fl_norms_open(const fl_dense *dense, size_t cols, const char *label, fl_norms *norms);
void fl_norms_close(fl_norms *norms);

#endif
