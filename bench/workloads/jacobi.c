/* SPDX-License-Identifier: Apache-2.0 */
/* Jacobi sweeps for Poisson's equation on a square grid, a batch over the grid's columns each. The
 * grids are managed: between sweeps, and between runs, they stay on the devices. The first sweep
 * reads the initial grid, which nothing writes, so a run needs no preparation.
 *
 * The kernel promises the same bits everywhere, and the check holds it to that. */
#include "offload/offload.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include "filch/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 2048
#define N_MAX 1000000
#define SWEEPS 20
/* Columns of a tile: what moves between devices at once. */
#define DEFAULT_TILE 16

enum handle { INITIAL, FORCE, EVEN, ODD, HANDLES };

typedef struct jacobi {
    size_t n;
    size_t tile;
    size_t element;
    const filch_kernel *kernel;
    bool is_idle;
    size_t sweep;        /* the next one of this run */
    void *grid[HANDLES]; /* sweep k writes EVEN or ODD */
    void *theirs[2];     /* the check's; null until it is needed */
    bench_offload offload;
} jacobi;

static void teardown(void *state)
{
    jacobi *j = state;
    bench_offload_close(&j->offload);
    for (size_t k = 0; k < HANDLES; k++)
        free(j->grid[k]);
    free(j->theirs[0]);
    free(j->theirs[1]);
    free(j);
}

static void store(const jacobi *j, enum handle which, size_t at, double value)
{
    if (j->element == sizeof(double))
        ((double *)j->grid[which])[at] = value;
    else
        ((float *)j->grid[which])[at] = (float)value;
}

static filch_status make_grids(jacobi *j, uint64_t seed, filch_error *error)
{
    filch_status status = FILCH_OK;
    void *values = NULL;
    for (size_t k = 0; k < HANDLES && status == FILCH_OK; k++)
        status = bench_squares_alloc(j->n, 1, j->element, "--n", error, &j->grid[k]);
    if (status == FILCH_OK)
        status = bench_squares_alloc(j->n, 1, sizeof(double), "--n", error, &values);
    for (size_t k = INITIAL; k <= FORCE && status == FILCH_OK; k++) {
        bench_dense_fill(j->n, j->n, j->n, values, seed + k);
        for (size_t at = 0; at < j->n * j->n; at++)
            store(j, (enum handle)k, at, ((const double *)values)[at]);
    }
    free(values);
    return status;
}

static filch_status check_size(const bench_options *options, size_t n, filch_error *error)
{
    if (options->matrix)
        return bench_fail(error, FILCH_UNSUPPORTED, "--matrix", 0, "jacobi generates its grid");
    if (n < 3)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--n", 0,
                          "a grid of %zu x %zu has no inside", n, n);
    if (n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", n, N_MAX);
    if (options->tile > n)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--tile", 0,
                          "%zu columns are more than the %zu of the grid", options->tile, n);
    return FILCH_OK;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    bool is_single = options->precision == BENCH_SINGLE;
    size_t n = options->n ? options->n : DEFAULT_N;
    filch_status status = check_size(options, n, error);
    if (status != FILCH_OK)
        return status;
    jacobi *j = calloc(1, sizeof *j);
    if (!j)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "jacobi", 0, "no memory");
    j->n = n;
    j->tile = options->tile ? options->tile : n < DEFAULT_TILE ? n : DEFAULT_TILE;
    j->element = is_single ? sizeof(float) : sizeof(double);
    j->kernel = filch_kernel_find(is_single ? "jacobi_f32" : "jacobi_f64");
    j->is_idle = bench_is_simulated(options) && !options->check;
    status = make_grids(j, options->seed ? options->seed : 1, error);
    if (status != FILCH_OK) {
        teardown(j);
        return status;
    }
    *state = j;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const jacobi *j = state;
    problem->n = j->n;
    problem->tile = j->tile;
    problem->work = SWEEPS * (double)(j->n - 2) * (double)(j->n - 2);
    snprintf(problem->text, sizeof problem->text,
             "%d Jacobi sweeps over a grid of %zu x %zu%s, batches over columns", SWEEPS, j->n,
             j->n, j->element == sizeof(float) ? " in single precision" : "");
}

static filch_status build(void *state, bench_built *built)
{
    static const char *const labels[HANDLES] = {"initial", "force", "even", "odd"};
    jacobi *j = state;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    bench_offload_meet(&j->offload, built->runtime);
    codelet.name = j->kernel->name;
    codelet.host = j->is_idle ? bench_run_nothing : j->kernel->host;
    codelet.cuda = j->offload.has_gpus ? j->kernel->cuda : NULL;
    filch_status status = filch_codelet_create(built->runtime, &codelet, &built->codelets[0]);
    for (size_t k = 0; k < HANDLES && status == FILCH_OK; k++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        bench_offload_pin(&j->offload, j->grid[k], j->n * j->n * j->element);
        desc.ptr = j->grid[k];
        desc.element = j->element;
        desc.rows = desc.cols = j->n;
        desc.tile_cols = j->tile;
        desc.label = labels[k];
        desc.flags = FILCH_DATA_MANAGED;
        status = filch_data_create(built->runtime, &desc, &built->data[k]);
    }
    built->result = built->data[SWEEPS % 2 ? EVEN : ODD];
    return status;
}

static void reset(void *state)
{
    ((jacobi *)state)->sweep = 0;
}

static size_t jobs(const void *state)
{
    (void)state;
    return SWEEPS;
}

static filch_status start(void *state, bench_built *built, filch_job **job)
{
    jacobi *j = state;
    enum handle to = j->sweep % 2 ? ODD : EVEN;
    enum handle from = j->sweep == 0 ? INITIAL : to == EVEN ? ODD : EVEN;
    const filch_batch_access accesses[] = {
        {.data = built->data[from],
         .mode = FILCH_READ,
         .map = FILCH_MAP_AFFINE,
         .scale = 1,
         .before = 1,
         .after = 1},
        {.data = built->data[FORCE], .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = built->data[to], .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
    };
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = built->codelets[0];
    desc.n = j->n;
    desc.accesses = accesses;
    desc.access_count = 3;
    j->sweep++;
    return filch_batch_submit(built->runtime, &desc, NULL, job);
}

/* A sweep by one thread, as filch/kernels.h defines it. */
#define SWEEP(T, name)                                                                   \
    static void name(size_t n, const T u[], const T f[], T v[])                          \
    {                                                                                    \
        memcpy(v, u, n *n * sizeof *v);                                                  \
        for (size_t j = 1; j + 1 < n; j++)                                               \
            for (size_t k = j * n + 1; k < j * n + n - 1; k++)                           \
                v[k] = ((u[k - 1] + u[k + 1]) + (u[k - n] + u[k + n]) + f[k]) * (T)0.25; \
    }

SWEEP(double, sweep_double)
SWEEP(float, sweep_single)

static filch_status make_reference(jacobi *j, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < 2 && status == FILCH_OK; k++)
        if (!j->theirs[k])
            status = bench_squares_alloc(j->n, 1, j->element, "--check", error, &j->theirs[k]);
    for (size_t k = 0; k < SWEEPS && status == FILCH_OK; k++) {
        const void *from = k == 0 ? j->grid[INITIAL] : j->theirs[(k - 1) % 2];
        if (j->element == sizeof(double))
            sweep_double(j->n, from, j->grid[FORCE], j->theirs[k % 2]);
        else
            sweep_single(j->n, from, j->grid[FORCE], j->theirs[k % 2]);
    }
    return status;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    (void)residual;
    jacobi *j = state;
    filch_status status = make_reference(j, error);
    if (status != FILCH_OK)
        return status;
    const char *ours = j->grid[SWEEPS % 2 ? EVEN : ODD];
    const char *theirs = j->theirs[(SWEEPS - 1) % 2];
    size_t bytes = j->n * j->element;
    for (size_t column = 0; column < j->n; column++)
        if (memcmp(ours + column * bytes, theirs + column * bytes, bytes) != 0)
            return bench_fail(error, FILCH_DATA, "check", 0,
                              "column %zu differs from what one thread computes", column);
    return FILCH_OK;
}

const bench_workload bench_jacobi = {
    .name = "jacobi",
    .help = "sweeps over a grid, each point the mean of its neighbours",
    .unit = "update",
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .jobs = jobs,
    .start = start,
    .check = check,
};
