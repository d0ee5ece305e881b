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
    int64_t *wide; /* with a GPU: the matrix's integers, then the order's */
};

static void start(versus *v, size_t gpu_bytes)
{
    v->wide ? cholmod_l_start(&v->common) : cholmod_start(&v->common);
    v->common.print = 0;
    v->common.supernodal = CHOLMOD_SUPERNODAL;
    v->common.nmethods = 1;
    v->common.method[0].ordering = CHOLMOD_GIVEN;
    v->common.useGPU = gpu_bytes > 0;
    v->common.maxGpuMemBytes = gpu_bytes;
}

/* Analyses with integers of 64 bits. */
static void analyse_wide(versus *v, const matrix *a, const int *order)
{
    const int n = a->n, entries = a->start[n];
    int64_t *start = v->wide, *row = start + n + 1, *wide = row + entries;
    for (int j = 0; j <= n; j++)
        start[j] = a->start[j];
    for (int p = 0; p < entries; p++)
        row[p] = a->row[p];
    for (int i = 0; i < n; i++)
        wide[i] = order[i];
    v->a.p = start, v->a.i = row, v->a.itype = CHOLMOD_LONG;
    v->factor = cholmod_l_analyze_p(&v->a, (void *)wide, NULL, 0, &v->common);
}

bool versus_make(versus **made, const matrix *a, const int *order, size_t gpu_bytes, char why[WHY])
{
    const bool gpu = gpu_bytes > 0; /* needs integers of 64 bits */
    const size_t integers = 2 * (size_t)a->n + 1 + (size_t)a->start[a->n];
    versus *v = calloc(1, sizeof *v);
    *made = v;
    if (v && gpu)
        v->wide = malloc(integers * sizeof *v->wide);
    if (!v || (gpu && !v->wide)) {
        free(v);
        *made = NULL;
        snprintf(why, WHY, "no memory for CHOLMOD");
        return false;
    }
    start(v, gpu_bytes);
    v->a = view_make(a);
    if (gpu)
        analyse_wide(v, a, order);
    else
        v->factor = cholmod_analyze_p(&v->a, (int *)order, NULL, 0, &v->common);
    if (v->factor && (!gpu || v->factor->useGPU))
        return true;
    snprintf(why, WHY, "CHOLMOD's analysis: its status is %d", v->common.status);
    if (v->factor)
        snprintf(why, WHY, "CHOLMOD uses no GPU: it is built without CUDA, or finds none");
    versus_free(v);
    *made = NULL;
    return false;
}

bool versus_run(versus *v, int threads, char why[WHY])
{
    openblas_set_num_threads(threads);
    if (v->wide)
        cholmod_l_factorize(&v->a, v->factor, &v->common);
    else
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
    cholmod_dense *solution = v->wide ? cholmod_l_solve(CHOLMOD_A, v->factor, &right, &v->common)
                                      : cholmod_solve(CHOLMOD_A, v->factor, &right, &v->common);
    if (!solution) {
        snprintf(why, WHY, "CHOLMOD's solve: its status is %d", v->common.status);
        return false;
    }
    memcpy(x, solution->x, n * sizeof *x);
    v->wide ? cholmod_l_free_dense(&solution, &v->common)
            : cholmod_free_dense(&solution, &v->common);
    return true;
}

void versus_free(versus *v)
{
    if (!v)
        return;
    if (v->wide) {
        cholmod_l_free_factor(&v->factor, &v->common);
        cholmod_l_finish(&v->common);
    } else {
        cholmod_free_factor(&v->factor, &v->common);
        cholmod_finish(&v->common);
    }
    free(v->wide);
    free(v);
}
