/* SPDX-License-Identifier: Apache-2.0 */
/* C = A B by tiles of C: a task for each, over the whole inner dimension. A is cut into panels of
 * rows, B into panels of columns. */
#include "dense.h"
#include "fail.h"
#include "tiles.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_N 2048
#define DEFAULT_TILE 256
#define N_MAX 1000000
#define TASKS_MAX 2e7
#define CHECKED_ROWS 16
/* Sums of n products in another order differ by about sqrt(n) roundings of the largest. */
#define AGREEMENT 1e-11

enum matrix { A, B, C };

typedef struct gemm {
    size_t n;
    size_t tile;
    double *a; /* all matrices in one allocation, which starts here */
    double *b;
    double *c;
    double *theirs; /* the peer's c; null: there is none */
    bool is_idle;
    bench_peer_work work;
} gemm;

typedef struct arguments {
    bool is_idle;
} arguments;

static int run_gemm(const filch_call *call)
{
    const filch_view *a = &call->views[A];
    const filch_view *b = &call->views[B];
    const filch_view *c = &call->views[C];
    if (!((const arguments *)call->args)->is_idle)
        bench_tile_gemm_nn(c->rows, c->cols, a->cols, a->ptr, a->ld, b->ptr, b->ld, 0.0, c->ptr,
                           c->ld);
    return 0;
}

static double work_gemm(const filch_call *call)
{
    const filch_view *c = &call->views[C];
    return bench_flops_gemm((double)c->rows, (double)c->cols, (double)call->views[A].cols);
}

static filch_status check_size(size_t n, size_t tile, filch_error *error)
{
    if (n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", n, N_MAX);
    if (tile > n)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--tile", 0,
                          "%zu is larger than the matrix, whose order is %zu", tile, n);
    if (tile == 0)
        return FILCH_OK;
    double tiles = ceil((double)n / (double)tile);
    if (tiles * tiles > TASKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--tile", 0,
                          "%zu is too small: order %zu makes %.3g tasks of it, above %.3g", tile, n,
                          tiles * tiles, TASKS_MAX);
    return FILCH_OK;
}

static void teardown(void *state)
{
    gemm *g = state;
    free(g->a);
    free(g->theirs);
    free(g);
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    if (options->precision != BENCH_DOUBLE)
        return bench_fail(error, FILCH_UNSUPPORTED, "--precision", 0, "gemm is double only");
    if (options->matrix)
        return bench_fail(error, FILCH_UNSUPPORTED, "--matrix", 0, "gemm generates its matrices");
    size_t n = options->n ? options->n : DEFAULT_N;
    filch_status status = check_size(n, options->tile, error);
    if (status != FILCH_OK)
        return status;
    gemm *g = calloc(1, sizeof *g);
    if (!g)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "gemm", 0, "no memory");
    g->n = n;
    g->tile = options->tile ? options->tile : n < DEFAULT_TILE ? n : DEFAULT_TILE;
    g->is_idle = bench_is_simulated(options) && !options->check;
    status = bench_squares_alloc(n, 3, "--n", error, &g->a);
    if (status != FILCH_OK) {
        teardown(g);
        return status;
    }
    g->b = g->a + n * n;
    g->c = g->b + n * n;
    bench_dense_fill(n, n, n, g->a, options->seed ? options->seed : 1);
    bench_dense_fill(n, n, n, g->b, (options->seed ? options->seed : 1) + 1);
    *state = g;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const gemm *g = state;
    double n = (double)g->n;
    problem->n = g->n;
    problem->tile = g->tile;
    problem->work = bench_flops_gemm(n, n, n);
    snprintf(problem->text, sizeof problem->text,
             "Product of two random matrices of order %zu, %zu x %zu tiles", g->n, g->tile,
             g->tile);
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t candidates[] = {128, 192, 256, 384, 512};
    const gemm *g = state;
    size_t count = 0;
    for (size_t k = 0; k < sizeof candidates / sizeof *candidates && count < capacity; k++)
        if (candidates[k] * 2 <= g->n && check_size(g->n, candidates[k], NULL) == FILCH_OK)
            tiles_out[count++] = candidates[k];
    return count;
}

static void tile_set(void *state, size_t tile)
{
    ((gemm *)state)->tile = tile;
}

static filch_status make_data(const gemm *g, bench_built *built, enum matrix which, double *values,
                              size_t tile_rows, size_t tile_cols)
{
    static const char *const labels[] = {[A] = "A", [B] = "B", [C] = "C"};
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = values;
    desc.element = sizeof(double);
    desc.rows = desc.cols = desc.ld = g->n;
    desc.tile_rows = tile_rows;
    desc.tile_cols = tile_cols;
    desc.label = labels[which];
    return filch_data_create(built->runtime, &desc, &built->data[which]);
}

static filch_status add(const gemm *g, const bench_built *built, size_t i, size_t j)
{
    const arguments args = {g->is_idle};
    const filch_access accesses[] = {
        [A] = {.data = built->data[A], .row = (uint32_t)i, .mode = FILCH_READ},
        [B] = {.data = built->data[B], .col = (uint32_t)j, .mode = FILCH_READ},
        [C] = {.data = built->data[C], .row = (uint32_t)i, .col = (uint32_t)j, .mode = FILCH_WRITE},
    };
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[0];
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = 3;
    return filch_graph_add(built->graph, &desc, NULL);
}

static filch_status build(void *state, bench_built *built)
{
    gemm *g = state;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "gemm";
    desc.host = run_gemm;
    desc.work = work_gemm;
    desc.arg_size = sizeof(arguments);
    filch_status status = filch_codelet_create(built->runtime, &desc, &built->codelets[0]);
    if (status == FILCH_OK)
        status = make_data(g, built, A, g->a, g->tile, 0);
    if (status == FILCH_OK)
        status = make_data(g, built, B, g->b, 0, g->tile);
    if (status == FILCH_OK)
        status = make_data(g, built, C, g->c, g->tile, g->tile);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    size_t count = (g->n + g->tile - 1) / g->tile;
    for (size_t j = 0; j < count && status == FILCH_OK; j++)
        for (size_t i = 0; i < count && status == FILCH_OK; i++)
            status = add(g, built, i, j);
    return status;
}

/* Sampled rows against sums in long double. The residual is the largest difference over the
 * largest element. */
static filch_status check(void *state, double *residual, filch_error *error)
{
    const gemm *g = state;
    double worst = 0;
    double largest = 0;
    size_t step = g->n > CHECKED_ROWS ? g->n / CHECKED_ROWS : 1;
    for (size_t i = 0; i < g->n; i += step)
        for (size_t j = 0; j < g->n; j++) {
            long double sum = 0;
            for (size_t k = 0; k < g->n; k++)
                sum += (long double)g->a[i + k * g->n] * (long double)g->b[k + j * g->n];
            double difference = fabs((double)(sum - (long double)g->c[i + j * g->n]));
            /* Not fmax, which would lose a not-a-number. */
            worst = difference <= worst ? worst : difference;
            largest = fmax(largest, fabs((double)sum));
        }
    *residual = worst / largest;
    if (!(*residual <= AGREEMENT))
        return bench_fail(error, FILCH_DATA, "check", 0,
                          "the largest difference from exact sums is %.3g of the largest element",
                          *residual);
    return FILCH_OK;
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    gemm *g = state;
    filch_status status =
        g->theirs ? FILCH_OK : bench_squares_alloc(g->n, 1, "--versus", error, &g->theirs);
    g->work = (bench_peer_work){.kind = BENCH_PEER_GEMM,
                                .workers = workers,
                                .n = g->n,
                                .tile = g->tile,
                                .a = g->a,
                                .b = g->b,
                                .c = g->theirs};
    *work = &g->work;
    return status;
}

static filch_status agree(void *state, filch_error *error)
{
    const gemm *g = state;
    double difference = bench_dense_difference(g->n, g->n, g->n, g->c, g->n, g->theirs, 0);
    if (!(difference <= AGREEMENT))
        return bench_fail(error, FILCH_DATA, "--versus", 0, "the results differ by %.3g",
                          difference);
    return FILCH_OK;
}

const bench_workload bench_gemm = {
    .name = "gemm",
    .help = "multiplies two dense matrices by tiles",
    .unit = "flop",
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .tiles = tiles,
    .tile_set = tile_set,
    .build = build,
    .check = check,
    .peer = peer,
    .agree = agree,
};
