/* SPDX-License-Identifier: Apache-2.0 */
#include "peers/openmp_loops.h"

#include "problems/cg.h"
#include "problems/heat.h"
#include "support/timing.h"

#include <stdlib.h>
#include <string.h>

#define VECTORS 4

typedef struct loops {
    const bench_peer_work *work;
    double *u[VECTORS];     /* heat: both grids; cg: x, r, p, q */
    bench_cg_part *pq, *rr; /* cg: one a block */
} loops;

bool openmp_loops_do(bench_peer_kind kind)
{
    return kind == BENCH_PEER_HEAT || kind == BENCH_PEER_CG;
}

void openmp_loops_destroy(void *opaque)
{
    loops *l = opaque;
    if (!l)
        return;
    for (size_t k = 0; k < VECTORS; k++)
        free(l->u[k]);
    free(l->pq);
    free(l->rr);
    free(l);
}

static bool allocate_cg(loops *l)
{
    const bench_cg_system *a = l->work->problem;
    bool is_complete = true;
    for (size_t k = 0; k < VECTORS; k++) {
        l->u[k] = malloc(a->rows * sizeof(double));
        is_complete = is_complete && l->u[k];
    }
    l->pq = aligned_alloc(sizeof *l->pq, a->blocks * sizeof *l->pq);
    l->rr = aligned_alloc(sizeof *l->rr, a->blocks * sizeof *l->rr);
    return is_complete && l->pq && l->rr;
}

static bool allocate_heat(loops *l)
{
    for (size_t k = 0; k < 2; k++)
        l->u[k] = malloc(l->work->n * l->work->n * sizeof(double));
    return l->u[0] && l->u[1];
}

/* Vectors and grids are not touched here. */
void *openmp_loops_create(const bench_peer_work *work)
{
    loops *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->work = work;
    if (work->kind == BENCH_PEER_CG ? allocate_cg(l) : allocate_heat(l))
        return l;
    openmp_loops_destroy(l);
    return NULL;
}

static double run_heat(const loops *l)
{
    const bench_peer_work *w = l->work;
    const bench_heat_grid *h = w->problem;
#pragma omp parallel for num_threads((int)w->workers) schedule(static)
    for (size_t strip = 0; strip < h->strips; strip++)
        bench_heat_init(h, strip, l->u[0] + bench_heat_column(h, strip) * h->n);
    double begin = bench_now_s();
#pragma omp parallel num_threads((int)w->workers)
    for (size_t step = 0; step < h->steps; step++) {
#pragma omp for schedule(static)
        for (size_t strip = 0; strip < h->strips; strip++)
            bench_heat_step_whole(h, strip, l->u[step % 2], l->u[1 - step % 2]);
    }
    double seconds = bench_now_s() - begin;
    memcpy(w->c, l->u[h->steps % 2], w->n * w->n * sizeof(double));
    return seconds;
}

/* By each thread of a parallel region. The scalars are each thread's own, and alike. */
static void iterate_cg(const loops *l, bench_cg_scalars *scalars)
{
    const bench_cg_system *a = l->work->problem;
    double *x = l->u[0], *r = l->u[1], *p = l->u[2], *q = l->u[3];
#pragma omp for schedule(static)
    for (size_t b = 0; b < a->blocks; b++)
        l->pq[b].value = bench_cg_multiply(a, b, p, q + bench_cg_row(a, b));
    bench_cg_alpha(scalars, bench_cg_sum(l->pq, a->blocks));
#pragma omp for schedule(static)
    for (size_t b = 0; b < a->blocks; b++) {
        size_t lo = bench_cg_row(a, b), count = bench_cg_row(a, b + 1) - lo;
        l->rr[b].value = bench_cg_update(count, scalars->alpha, p + lo, q + lo, x + lo, r + lo);
    }
    bench_cg_beta(scalars, bench_cg_sum(l->rr, a->blocks));
#pragma omp for schedule(static)
    for (size_t b = 0; b < a->blocks; b++) {
        size_t lo = bench_cg_row(a, b), count = bench_cg_row(a, b + 1) - lo;
        bench_cg_direction(count, 1, r + lo, scalars->beta, p + lo);
    }
}

static double run_cg(const loops *l)
{
    const bench_peer_work *w = l->work;
    const bench_cg_system *a = w->problem;
#pragma omp parallel for num_threads((int)w->workers) schedule(static)
    for (size_t b = 0; b < a->blocks; b++) {
        size_t lo = bench_cg_row(a, b);
        l->rr[b].value = bench_cg_init(a, b, l->u[0] + lo, l->u[1] + lo, l->u[2] + lo);
    }
    double begin = bench_now_s();
#pragma omp parallel num_threads((int)w->workers)
    {
        bench_cg_scalars scalars;
        bench_cg_begin(&scalars, bench_cg_sum(l->rr, a->blocks));
        for (size_t k = 0; k < a->iterations; k++)
            iterate_cg(l, &scalars);
    }
    double seconds = bench_now_s() - begin;
    memcpy(w->c, l->u[0], a->rows * sizeof(double));
    return seconds;
}

double openmp_loops_run(void *opaque)
{
    const loops *l = opaque;
    return l->work->kind == BENCH_PEER_CG ? run_cg(l) : run_heat(l);
}
