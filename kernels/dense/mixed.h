/* SPDX-License-Identifier: Apache-2.0 */
/* Linear systems in double precision, factored in lower precision: LU of a rounded copy of A, then
 * refinement until the solution is as good as one in double precision.
 *
 * Refinement is the classical one first (A. Haidar et al., "Harnessing GPU tensor cores for fast
 * FP16 arithmetic to speed up mixed-precision iterative refinement solvers", SC 2018). A right side
 * on which it is slow or fails is solved by GMRES with the factors for a preconditioner (E. Carson
 * and N. Higham, "Accelerating the solution of linear systems by iterative refinement in three
 * precisions", SIAM J. Sci. Comput. 40, 2018), in Saad's flexible form, which allows for a
 * preconditioner that is applied in single precision (SIAM J. Sci. Comput. 14, 1993). Where that
 * fails, too, A is factored in double precision.
 *
 * On GPUs the conversions are kernels of filch's. Where there is no compiler for them, cores make
 * them; where there are no cores, everything is in double precision. */
#ifndef FL_KERNELS_DENSE_MIXED_H
#define FL_KERNELS_DENSE_MIXED_H

#include "kernels/dense/dense.h"

typedef struct fl_mixed fl_mixed;

/* How a solution was found; several right sides: by the last of these that one of them took. */
typedef enum fl_mixed_way { FL_MIXED_REFINED, FL_MIXED_GMRES, FL_MIXED_DOUBLE } fl_mixed_way;

typedef struct fl_mixed_result {
    fl_mixed_way way;
    uint32_t refinements; /* of all right sides at once; the first one makes the solution */
    uint32_t iterations;  /* of GMRES, over all right sides */
    int32_t info;         /* LAPACK's: the first pivot of 0 in double precision, from 1 */
    /* Of the worst right side: |b - A x| / (sum of |a_j| |x_j| + |b|), in the 1-norm, with the
     * columns a_j of A, whose scales do not count then. Not a number where nothing can measure it,
     * for want of a compiler. */
    double error;
} fl_mixed_result;

/* How the rounded copy is factored. */
typedef struct fl_mixed_form {
    int compute; /* FL_VENDOR_COMPUTE_* or FL_DENSE_TF32X3, of products on GPUs; cores compute in
                    single precision */
    fl_panels panels;
} fl_mixed_form;

/* Handles beside the matrix, of half its bytes, and for FL_DENSE_TF32X3 of eight block columns'
 * more: A is square, in double precision, and is never changed. FILCH_INVALID_ARGUMENT: A is not
 * square, or of no rows. */
filch_status fl_mixed_open(fl_dense *dense, const fl_columns *a, fl_mixed_form form,
                           fl_mixed **out);
/* After the graph is destroyed; null is allowed. */
void fl_mixed_close(fl_mixed *mixed);
/* Adds tasks that round A and factor it, which run before each fl_mixed_solve() whose A is new. */
filch_status fl_mixed_factor(fl_mixed *mixed, filch_graph *graph);
/* X := A^-1 B to an error of sqrt(n) roundoffs; where A was factored in double precision, to what
 * that leaves, as the result's error tells. Many right sides that refinement does not solve are
 * solved by a factorization in double precision, not by GMRES. Runs graphs and waits for them. B
 * and X have one tile each and may be one handle; without columns nothing is done.
 *
 * FILCH_DATA: A or B has elements that are no numbers, or columns whose sums overflow, or A is
 * singular, as info tells. Where nothing measures the error, elements that are no numbers are not
 * found, and X has some, too. FILCH_INVALID_ARGUMENT: the shapes do not fit. FILCH_TASK_FAILED,
 * with error as of filch_graph_run(); error may be null. X is written on success only. */
filch_status fl_mixed_solve(fl_mixed *mixed, const fl_columns *b, const fl_columns *x,
                            fl_mixed_result *result, filch_error *error);

#endif
