/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP tasks with depend clauses; loops (openmp_loops.c) where the work is steps over a grid.
 * OpenMP has no graph to keep, so each run creates its tasks. GCC's runtime runs a task at once, on
 * its creator, while more than 64 a thread wait: independent tasks on several threads are then
 * partly plain calls. */
#include "peers/openmp_loops.h"
#include "peers/peer.h"
#include "problems/narrow.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "support/timing.h"

#include <stdlib.h>
#include <string.h>

typedef struct state {
    const bench_peer_work *work;
    char *cells;    /* one address a task, for depend */
    size_t *points; /* the points that a task of a narrow graph comes after */
    int info;       /* of the first factorization that failed */
    void *loops;    /* of openmp_loops.c; null: tasks do the work */
} state;

static bool supports(bench_peer_kind kind)
{
    return kind < BENCH_PEER_LU && kind != BENCH_PEER_RERUN && kind != BENCH_PEER_NARROW;
}

static void teardown(void *opaque)
{
    state *s = opaque;
    openmp_loops_destroy(s->loops);
    free(s->cells);
    free(s->points);
    free(s);
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    state *s = calloc(1, sizeof *s);
    size_t cells = work->kind == BENCH_PEER_WAVEFRONT     ? work->n * work->n
                   : work->kind == BENCH_PEER_NARROW_OPEN ? work->n
                                                          : 1;
    if (s) {
        s->cells = calloc(cells, 1);
        s->points =
            calloc(work->kind == BENCH_PEER_NARROW_OPEN ? bench_narrow_most(work->problem) : 1,
                   sizeof *s->points);
    }
    if (!s || !s->cells || !s->points) {
        if (s)
            teardown(s);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "openmp", 0, "no memory");
    }
    s->work = work;
    if (openmp_loops_do(work->kind) && !(s->loops = openmp_loops_create(work))) {
        teardown(s);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "openmp", 0, "no memory");
    }
    *out = s;
    return FILCH_OK;
}

static void create_empty(const bench_peer_work *w)
{
    for (size_t k = 0; k < w->n; k++) {
#pragma omp task firstprivate(w, k)
        bench_peer_body(w, k);
    }
}

static void create_chain(const state *s)
{
    const bench_peer_work *w = s->work;
    for (size_t k = 0; k < w->n; k++) {
#pragma omp task firstprivate(w, k) depend(inout : s->cells[0])
        bench_peer_body(w, k);
    }
}

/* The one neighbour that a task on the border comes after. */
static char *border_neighbour(const state *s, size_t task)
{
    return &s->cells[task >= s->work->n ? task - s->work->n : task - 1];
}

static void create_wavefront(const state *s)
{
    const bench_peer_work *w = s->work;
    size_t n = w->n;
    for (size_t task = 0; task < n * n; task++) {
        if (task >= n && task % n > 0) {
#pragma omp task firstprivate(w, task) depend(in                                        \
                                              : s->cells[task - n], s->cells[task - 1]) \
    depend(out                                                                          \
           : s->cells[task])
            bench_peer_body(w, task);
        } else if (task > 0) {
#pragma omp task firstprivate(w, task) depend(in                              \
                                              : border_neighbour(s, task)[0]) \
    depend(out                                                                \
           : s->cells[task])
            bench_peer_body(w, task);
        } else {
#pragma omp task firstprivate(w, task) depend(out : s->cells[task])
            bench_peer_body(w, task);
        }
    }
}

static void factor(state *s, bench_grid g, size_t k)
{
    int info = bench_grid_factor(&g, k);
    /* Any failing minor will do: later ones follow from it. */
    if (info != 0) {
#pragma omp atomic write
        s->info = info;
    }
}

/* What stands for tile (i, j) in a depend clause. GCC takes a variable that only a clause uses for
 * unused, so the clauses spell it out. */
#define TILE(i, j) bench_grid_at(&g, i, j)[0]

static void create_cholesky(state *s, bench_grid g)
{
    for (size_t k = 0; k < g.count; k++) {
#pragma omp task firstprivate(s, g, k) depend(inout : TILE(k, k))
        factor(s, g, k);
        for (size_t i = k + 1; i < g.count; i++) {
#pragma omp task firstprivate(g, i, k) depend(in : TILE(k, k)) depend(inout : TILE(i, k))
            bench_grid_solve(&g, i, k);
        }
        for (size_t j = k + 1; j < g.count; j++)
            for (size_t i = j; i < g.count; i++) {
#pragma omp task firstprivate(g, i, j, k) depend(in                                     \
                                                 : TILE(i, k), TILE(j, k)) depend(inout \
                                                                                  : TILE(i, j))
                bench_grid_update(&g, i, j, k);
            }
    }
}

static void create_gemm(bench_grid g)
{
    for (size_t j = 0; j < g.count; j++)
        for (size_t i = 0; i < g.count; i++) {
#pragma omp task firstprivate(g, i, j)
            bench_grid_multiply(&g, i, j);
        }
}

/* Addresses that stand for a point's results of a step; step 0 has no step before. */
static char *results(const state *s, const bench_narrow_graph *g, size_t step)
{
    return &s->cells[step * g->width];
}

static void create_narrow(const state *s)
{
    const bench_narrow_graph *g = s->work->problem;
    size_t *points = s->points;
    for (size_t step = 0; step < g->steps; step++)
        for (size_t point = 0; point < g->width; point++) {
            size_t count = bench_narrow_before(g, step, point, points);
            (void)count; /* GCC takes what only a clause uses for unused */
#pragma omp task firstprivate(g, step, point) depend(iterator(size_t k = 0                 \
                                                              : count),                    \
                                                     in                                    \
                                                     : results(s, g, step - 1)[points[k]]) \
    depend(out                                                                             \
           : results(s, g, step)[point])
            bench_narrow_task(g, step, point);
        }
}

static void create(state *s)
{
    const bench_peer_work *w = s->work;
    switch (w->kind) {
    case BENCH_PEER_EMPTY:
        create_empty(w);
        break;
    case BENCH_PEER_WAVEFRONT:
        create_wavefront(s);
        break;
    case BENCH_PEER_CHAIN:
        create_chain(s);
        break;
    case BENCH_PEER_CHOLESKY:
        create_cholesky(s, bench_grid_make(w->n, w->tile, NULL, NULL, w->c));
        break;
    case BENCH_PEER_NARROW_OPEN:
        create_narrow(s);
        break;
    default:
        create_gemm(bench_grid_make(w->n, w->tile, w->a, w->b, w->c));
        break;
    }
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    const bench_peer_work *w = s->work;
    if (s->loops) {
        *seconds = openmp_loops_run(s->loops);
        return FILCH_OK;
    }
    if (w->kind == BENCH_PEER_CHOLESKY)
        memcpy(w->c, w->a, w->n * w->n * sizeof(double));
    if (w->kind == BENCH_PEER_NARROW_OPEN)
        bench_narrow_reset(w->problem);
    s->info = 0;
    int before = bench_blas_threads_set(1);
    double start = bench_now_s();
#pragma omp parallel num_threads((int)w->workers)
    {
#pragma omp single
        create(s);
    }
    double end = bench_now_s();
    bench_blas_threads_set(before);
    if (s->info != 0)
        return bench_fail(error, FILCH_DATA, "openmp", 0, "minor %d is not positive", s->info);
    *seconds = end - start;
    return FILCH_OK;
}

const bench_peer bench_peer_openmp = {
    .name = "openmp",
    .description = "OpenMP tasks with depend, created in each run; loops over grids",
    .supports = supports,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
