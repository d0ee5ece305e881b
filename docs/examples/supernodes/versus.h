/* SPDX-License-Identifier: Apache-2.0 */
/* CHOLMOD's supernodal factorization, in the same order, for comparison. */
#ifndef VERSUS_H
#define VERSUS_H

#include <stddef.h>

#include "matrix.h"

typedef struct versus versus;

/* Analyses the matrix, which must outlive it, in an order. CHOLMOD uses a GPU if it may take bytes
 * of its memory, and a third more of page-locked memory; false, too, where it cannot. */
bool versus_make(versus **made, const matrix *a, const int *order, size_t gpu_bytes, char why[WHY]);

/* Factors the matrix with so many threads of OpenBLAS. */
bool versus_run(versus *v, int threads, char why[WHY]);

/* Solves A x = b with the factor. */
bool versus_solve(versus *v, const double *b, double *x, char why[WHY]);

void versus_free(versus *v);

#endif
