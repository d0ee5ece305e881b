/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse Cholesky, A = L L^T, as a task graph of filch that is built once and run again and again.
 */
#ifndef FACTOR_H
#define FACTOR_H

#include <filch/filch.h>

#include "cut.h"

typedef struct factor factor;

/* Builds the graph. Everything that is given must outlive the factor; the matrix's values may
 * change between runs. cores_help: cores take tasks of large supernodes, too, where there are GPUs.
 * Even where it fails, the factor must be freed, after the runtime has ended. */
bool factor_make(factor **made, filch_runtime *runtime, const symbolic *s, const cut *c,
                 const matrix *a, bool cores_help, char why[WHY]);

/* Factors the matrix. False: the text tells which pivot is not positive, or what else failed. */
bool factor_run(factor *f, char why[WHY]);

/* Solves A x = b with the factor, on the calling thread. */
bool factor_solve(const factor *f, const double *b, double *x, char why[WHY]);

/* How many tasks the graph has. */
int factor_tasks(const factor *f);

/* Frees all but what the runtime owns, which must have ended. */
void factor_free(factor *f);

#endif
