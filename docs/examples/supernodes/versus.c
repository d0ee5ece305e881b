/* SPDX-License-Identifier: Apache-2.0 */
#include "versus.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* OpenBLAS's header has included <complex.h>, whose I is a name in CHOLMOD's. */
#undef I
#include "view.h"

struct versus {
    cholmod_common common;
    cholmod_sparse a;
    cholmod_factor *factor;
};

bool versus_make(versus **made, const matrix *a, const int *order, char why[WHY])
{
    versus *v = calloc(1, sizeof *v);
    *made = v;
    if (!v) {
        snprintf(why, WHY, "no memory for CHOLMOD");
        return false;
    }
    cholmod_start(&v->common);
    v->common.print = 0;
    v->common.supernodal = CHOLMOD_SUPERNODAL;
    v->common.nmethods = 1;
    v->common.method[0].ordering = CHOLMOD_GIVEN;
    v->a = view_make(a);
    v->factor = cholmod_analyze_p(&v->a, (int *)order, NULL, 0, &v->common);
    if (v->factor)
        return true;
    snprintf(why, WHY, "CHOLMOD's analysis: its status is %d", v->common.status);
    versus_free(v);
    *made = NULL;
    return false;
}

bool versus_run(versus *v, int threads, char why[WHY])
{
    openblas_set_num_threads(threads);
    cholmod_factorize(&v->a, v->factor, &v->common);
    openblas_set_num_threads(1);
    if (v->common.status == CHOLMOD_OK)
        return true;
    snprintf(why, WHY, "CHOLMOD: its status is %d, in column %zu of its order", v->common.status,
             v->factor->minor);
    return false;
}

bool versus_solve(versus *v, const double *b, double *x, char why[WHY])
{
    const size_t n = v->a.nrow;
    cholmod_dense right = {.nrow = n,
                           .ncol = 1,
                           .nzmax = n,
                           .d = n,
                           .x = (double *)b,
                           .xtype = CHOLMOD_REAL,
                           .dtype = CHOLMOD_DOUBLE};
    cholmod_dense *solution = cholmod_solve(CHOLMOD_A, v->factor, &right, &v->common);
    if (!solution) {
        snprintf(why, WHY, "CHOLMOD's solve: its status is %d", v->common.status);
        return false;
    }
    memcpy(x, solution->x, n * sizeof *x);
    cholmod_free_dense(&solution, &v->common);
    return true;
}

void versus_free(versus *v)
{
    if (!v)
        return;
    cholmod_free_factor(&v->factor, &v->common);
    cholmod_finish(&v->common);
    free(v);
}
