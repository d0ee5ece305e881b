/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix as CHOLMOD sees it. */
#ifndef VIEW_H
#define VIEW_H

#include <suitesparse/cholmod.h>

#include "matrix.h"

/* The matrix itself, not a copy. */
static inline cholmod_sparse view_make(const matrix *a)
{
    const size_t n = (size_t)a->n;
    cholmod_sparse v = {.nrow = n, .ncol = n, .nzmax = (size_t)a->start[n]};
    v.p = a->start, v.i = a->row, v.x = a->value;
    v.stype = -1; /* the lower triangle */
    v.itype = CHOLMOD_INT, v.xtype = CHOLMOD_REAL, v.dtype = CHOLMOD_DOUBLE;
    v.sorted = 1, v.packed = 1;
    return v;
}

#endif
