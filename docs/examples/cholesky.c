/* SPDX-License-Identifier: Apache-2.0 */
/* Tile Cholesky, A = L L^T, as a task graph. Tasks are added in program order; who waits for whom
 * follows from the tiles they read and write. */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <filch/filch.h>

/* The views of a call are its task's tiles, in the order of its accesses. */
static int potrf(const filch_call *call)
{
    const filch_view *a = &call->views[0];
    return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (int)a->rows, a->ptr, (int)a->ld);
}

static int trsm(const filch_call *call)
{
    const filch_view *l = &call->views[0], *a = &call->views[1];
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)a->rows,
                (int)a->cols, 1, l->ptr, (int)l->ld, a->ptr, (int)a->ld);
    return 0;
}

static int gemm(const filch_call *call)
{
    const filch_view *a = &call->views[0], *b = &call->views[1], *c = &call->views[2];
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, (int)c->rows, (int)c->cols, (int)a->cols,
                -1, a->ptr, (int)a->ld, b->ptr, (int)b->ld, 1, c->ptr, (int)c->ld);
    return 0;
}

static int syrk(const filch_call *call)
{
    const filch_view *a = &call->views[0], *c = &call->views[1];
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)c->rows, (int)a->cols, -1, a->ptr,
                (int)a->ld, 1, c->ptr, (int)c->ld);
    return 0;
}

static filch_codelet *codelet(filch_runtime *runtime, const char *name, filch_host_fn host)
{
    filch_codelet_desc desc = {.size = sizeof desc, .name = name, .host = host};
    filch_codelet *made = NULL;
    filch_codelet_create(runtime, &desc, &made);
    return made; /* null is refused by filch_graph_add */
}

static int add(filch_graph *graph, filch_codelet *code, uint32_t count, const filch_access *tiles)
{
    filch_task_desc task = {
        .size = sizeof task, .codelet = code, .accesses = tiles, .access_count = count};
    return filch_graph_add(graph, &task, NULL) != FILCH_OK;
}

/* README begins here. */
static int factor(filch_runtime *rt, double *a, uint64_t n, uint64_t tile, filch_error *error)
{
    filch_data_desc matrix = {.size = sizeof matrix, .ptr = a, .element = sizeof *a, .rows = n,
                              .cols = n, .ld = n, .tile_rows = tile, .tile_cols = tile};
    filch_codelet *diagonal = codelet(rt, "potrf", potrf), *panel = codelet(rt, "trsm", trsm);
    filch_codelet *outer = codelet(rt, "syrk", syrk), *inner = codelet(rt, "gemm", gemm);
    filch_data *A = NULL;
    filch_graph *graph = NULL;
    int bad = filch_data_create(rt, &matrix, &A) || filch_graph_create(rt, NULL, &graph);
    for (uint32_t k = 0, tiles = (uint32_t)((n + tile - 1) / tile); !bad && k < tiles; k++) {
        bad |= add(graph, diagonal, 1, (filch_access[]){FILCH_RW(A, k, k)});
        for (uint32_t i = k + 1; i < tiles; i++)
            bad |= add(graph, panel, 2, (filch_access[]){FILCH_R(A, k, k), FILCH_RW(A, i, k)});
        for (uint32_t i = k + 1; i < tiles; i++) {
            for (uint32_t j = k + 1; j < i; j++)
                bad |= add(graph, inner, 3, (filch_access[]){FILCH_R(A, i, k), FILCH_R(A, j, k),
                                                             FILCH_RW(A, i, j)});
            bad |= add(graph, outer, 2, (filch_access[]){FILCH_R(A, i, k), FILCH_RW(A, i, i)});
        }
    }
    if (bad)
        return filch_runtime_error(rt, error), 1; /* which call, and why */
    /* The error tells which task failed, with its own code: here the failing pivot. */
    return filch_graph_run(graph, NULL, error) != FILCH_OK;
}
/* README ends here. */

int main(void)
{
    enum { N = 500, TILE = 96 }; /* the last tiles are ragged */
    static double a[N * N], l[N * N];
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < N; i++)
            l[j * N + i] = a[j * N + i] = 1.0 / (1 + abs(i - j)) + (i == j ? N : 0);
    }

    openblas_set_num_threads(1); /* a task is one thread: the runtime spreads the tasks */
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = "host"; /* the tasks are host functions; the default is GPUs where there are any */
    filch_runtime *runtime = NULL;
    int bad = filch_runtime_create(&config, &error, &runtime) != FILCH_OK;
    if (!bad) {
        bad = factor(runtime, l, N, TILE, &error);
        filch_runtime_abort(runtime); /* and all that was made from it */
    }
    if (bad) {
        fprintf(stderr, "%s: %s\n", filch_status_message(error.status), error.text);
        return 1;
    }

    double worst = 0; /* max |A - L L^T| over the lower triangle */
    for (int j = 0; j < N; j++) {
        for (int i = j; i < N; i++) {
            double sum = cblas_ddot(j + 1, l + i, N, l + j, N);
            worst = fmax(worst, fabs(sum - a[j * N + i]));
        }
    }
    printf("n = %d, largest |A - L L^T| = %.1e\n", N, worst);
    return worst < 1e-10 ? 0 : 1;
}
