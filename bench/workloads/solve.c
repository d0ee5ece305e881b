/* SPDX-License-Identifier: Apache-2.0 */
/* A system with one right side, solved to double precision by LU in lower precision, refinement
 * and, where that does not converge, LU in double precision (kernels/dense/mixed.h). The graph is
 * the factorization; what follows depends on its results, and is part of the timed run, too. */
#include "kernels/dense/mixed.h"
#include "offload/offload.h"
#include "problems/dense.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 4096
#define HOST_TILE 128
#define GPU_TILE 512
/* LAPACK's 32-bit integers, and the tasks that fit in a usual memory. */
#define N_MAX 1000000
#define TASKS_MAX 2e7

enum handle { MATRIX, RIGHT, SOLUTION };
enum codelet { FETCH };

typedef struct solve {
    size_t n;
    size_t tile; /* columns of a block */
    bench_factor factor;
    double *a, *b, *x;
    double *theirs; /* the peer's; null: there is none */
    bool is_resident;
    bool has_tile; /* given or chosen */
    fl_lu_panels panels;
    bool is_solved;
    fl_mixed_result result;
    bench_peer_work work;
    bench_offload offload;
} solve;

/* Of one runtime. */
typedef struct part {
    fl_dense *dense;
    fl_mixed *mixed;
    fl_columns b, x;
} part;

FL_DENSE_DECLARE
static const fl_dense_host host = FL_DENSE_LINKED;

static filch_status check_size(size_t n, size_t tile, filch_error *error)
{
    if (n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", n, N_MAX);
    if (tile > n)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--tile", 0,
                          "%zu is larger than the matrix, whose order is %zu", tile, n);
    if (tile == 0)
        return FILCH_OK;
    double blocks = ceil((double)n / (double)tile);
    if (blocks * (blocks + 1) / 2 > TASKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--tile", 0,
                          "%zu is too small: order %zu makes %.3g tasks of it, above %.3g", tile, n,
                          blocks * (blocks + 1) / 2, TASKS_MAX);
    return FILCH_OK;
}

static void teardown(void *state)
{
    solve *s = state;
    bench_offload_close(&s->offload);
    free(s->a);
    free(s->b);
    free(s->x);
    free(s->theirs);
    free(s);
}

static filch_status make_input(solve *s, uint64_t seed, filch_error *error)
{
    void *memory = NULL;
    filch_status status = bench_squares_alloc(s->n, 1, sizeof *s->a, "--n", error, &memory);
    s->a = memory;
    if (status != FILCH_OK)
        return status;
    s->b = calloc(s->n, sizeof *s->b);
    s->x = calloc(s->n, sizeof *s->x);
    if (!s->b || !s->x)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory");
    bench_dense_fill(s->n, s->n, s->n, s->a, seed ? seed : 1);
    bench_dense_fill(s->n, 1, s->n, s->b, (seed ? seed : 1) + 1);
    return FILCH_OK;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    if (options->precision == BENCH_SINGLE)
        return bench_fail(error, FILCH_UNSUPPORTED, "--precision", 0,
                          "solve solves to double precision; see --factor");
    if (bench_is_simulated(options))
        return bench_fail(error, FILCH_UNSUPPORTED, "--devices", 0,
                          "solve depends on its numbers: simulated devices have no times for it");
    solve *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "solve", 0, "no memory");
    s->n = options->n ? options->n : DEFAULT_N;
    s->factor = options->factor ? options->factor : BENCH_FACTOR_TF32;
    filch_status status = check_size(s->n, options->tile, error);
    if (status == FILCH_OK)
        status = make_input(s, options->seed, error);
    if (status != FILCH_OK) {
        teardown(s);
        return status;
    }
    s->tile = options->tile ? options->tile : s->n < HOST_TILE ? s->n : HOST_TILE;
    s->has_tile = options->tile != 0;
    s->is_resident = options->resident;
    s->offload.has_no_vendor = options->own_kernels;
    *state = s;
    return FILCH_OK;
}

static int product_of(const solve *s)
{
    static const int products[] = {[BENCH_FACTOR_TF32] = FL_VENDOR_COMPUTE_TF32,
                                   [BENCH_FACTOR_BF16] = FL_VENDOR_COMPUTE_BF16,
                                   [BENCH_FACTOR_FP16] = FL_VENDOR_COMPUTE_FP16,
                                   [BENCH_FACTOR_SINGLE] = FL_VENDOR_COMPUTE_SINGLE};
    return products[s->factor];
}

static void describe_result(const fl_mixed_result *r, char *text, size_t size)
{
    if (r->way == FL_MIXED_REFINED)
        snprintf(text, size, "refined in %u steps", r->refinements);
    else if (r->way == FL_MIXED_GMRES)
        snprintf(text, size, "refined in %u steps, GMRES %u", r->refinements, r->iterations);
    else
        snprintf(text, size, "refined in %u steps, GMRES %u, then in double", r->refinements,
                 r->iterations);
}

static void describe(const void *state, bench_problem *problem)
{
    const solve *s = state;
    double n = (double)s->n;
    char by[48];
    problem->n = s->n;
    problem->tile = s->tile;
    problem->vendor_s = bench_offload_vendor_s(&s->offload);
    problem->work = fl_flops_lu(n, n) + 2 * n * n;
    snprintf(problem->variant, sizeof problem->variant, "%s", bench_factor_name(s->factor));
    if (s->is_solved)
        describe_result(&s->result, problem->how, sizeof problem->how);
    snprintf(problem->text, sizeof problem->text,
             "solution of a random system of order %zu by LU in %s, blocks of %zu columns%s", s->n,
             bench_factor_name(s->factor), s->tile, bench_offload_text(&s->offload, by, sizeof by));
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t on_host[] = {64, 128, 256, 512};
    static const size_t on_gpus[] = {256, 512, 1024};
    const solve *s = state;
    const size_t *candidates = s->offload.has_gpus ? on_gpus : on_host;
    size_t most =
        s->offload.has_gpus ? sizeof on_gpus / sizeof *on_gpus : sizeof on_host / sizeof *on_host;
    size_t count = 0;
    for (size_t k = 0; k < most && count < capacity; k++)
        if (candidates[k] * 2 <= s->n && check_size(s->n, candidates[k], NULL) == FILCH_OK)
            tiles_out[count++] = candidates[k];
    return count;
}

static void tile_set(void *state, size_t tile)
{
    solve *s = state;
    s->tile = tile;
    s->has_tile = true;
}

/* Of LU's panels, where there are GPUs. */
static const char *way(const void *state, size_t index)
{
    static const char *const names[] = {[FL_LU_PANELS_VENDOR] = "with cuSOLVER's panels",
                                        [FL_LU_PANELS_OWN] = "with filch's panels"};
    const solve *s = state;
    return s->offload.vendor && index < sizeof names / sizeof *names ? names[index] : NULL;
}

static void way_set(void *state, size_t index)
{
    solve *s = state;
    s->panels = (fl_lu_panels)index;
}

/* --- In a runtime --- */

static filch_status make_data(const solve *s, bench_built *built, enum handle which)
{
    static const char *const labels[] = {"matrix", "right side", "solution"};
    double *const memory[] = {s->a, s->b, s->x};
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = memory[which];
    desc.element = sizeof *s->a;
    desc.rows = desc.ld = s->n;
    desc.cols = which == MATRIX ? s->n : 1;
    desc.tile_cols = which == MATRIX ? s->tile : 1;
    desc.label = labels[which];
    desc.flags = s->is_resident ? FILCH_DATA_MANAGED : 0;
    return filch_data_create(built->runtime, &desc, &built->data[which]);
}

static int enqueue_nothing(const filch_call *call, const filch_lane *lane, void *own)
{
    (void)call;
    (void)lane;
    (void)own;
    return 0;
}

static filch_status add_fetch(bench_built *built, filch_data *data, size_t block, uint32_t affinity)
{
    const filch_access accesses[] = {FILCH_R(data, 0, block)};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[FETCH];
    desc.accesses = accesses;
    desc.access_count = 1;
    desc.affinity = affinity;
    return filch_graph_add(built->restore, &desc, NULL);
}

/* Reads the input, so that it is on the devices before the clock starts. */
static filch_status add_restore(const solve *s, bench_built *built, const fl_columns *a)
{
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.enqueue = enqueue_nothing;
    codelet.name = "fetch";
    codelet.host = bench_run_nothing;
    codelet.cuda = s->offload.has_gpus ? &cuda : NULL;
    filch_status status = filch_codelet_create(built->runtime, &codelet, &built->codelets[FETCH]);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->restore);
    for (size_t j = 0; j < fl_columns_count(a) && status == FILCH_OK; j++)
        status = add_fetch(built, a->data, j,
                           a->dealt ? (uint32_t)(j % a->dealt) + 1 : FILCH_ANY_DEVICE);
    return status == FILCH_OK ? add_fetch(built, built->data[RIGHT], 0, FILCH_ANY_DEVICE) : status;
}

static filch_status open_dense(const solve *s, bench_built *built)
{
    const fl_dense_desc desc = {.runtime = built->runtime,
                                .host = &host,
                                .vendor = s->offload.vendor,
                                .element = sizeof *s->a};
    part *p = built->own = calloc(1, sizeof *p);
    if (!p)
        return FILCH_OUT_OF_MEMORY;
    if (s->offload.vendor)
        fl_vendor_expect_panel(s->offload.vendor, sizeof(float), s->n, s->tile);
    return fl_dense_open(&desc, &p->dense);
}

static filch_status add_factorization(const solve *s, bench_built *built, const fl_columns *a)
{
    part *p = built->own;
    p->b = (fl_columns){.data = built->data[RIGHT], .rows = s->n, .cols = 1, .tile = 1};
    p->x = (fl_columns){.data = built->data[SOLUTION], .rows = s->n, .cols = 1, .tile = 1};
    const fl_mixed_form form = {.compute = product_of(s), .panels = s->panels};
    filch_status status = fl_mixed_open(p->dense, a, form, &p->mixed);
    return status == FILCH_OK ? fl_mixed_factor(p->mixed, built->graph) : status;
}

static filch_status build(void *state, bench_built *built)
{
    solve *s = state;
    bench_offload_meet(&s->offload, built->runtime);
    bench_offload_pin(&s->offload, s->a, s->n * s->n * sizeof *s->a);
    if (s->offload.has_gpus && !s->has_tile)
        s->tile = s->n < GPU_TILE ? s->n : GPU_TILE;
    fl_columns a = {.rows = s->n, .cols = s->n, .tile = s->tile};
    a.dealt = s->is_resident ? bench_offload_alike(built->runtime) : 0;
    filch_status status = open_dense(s, built);
    for (int k = MATRIX; k <= SOLUTION && status == FILCH_OK; k++)
        status = make_data(s, built, (enum handle)k);
    a.data = built->data[MATRIX];
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    if (status == FILCH_OK)
        status = add_factorization(s, built, &a);
    if (status != FILCH_OK || !s->is_resident)
        return status;
    built->result = built->data[SOLUTION];
    return add_restore(s, built, &a);
}

static void unbuild(void *state, bench_built *built)
{
    part *p = built->own;
    (void)state;
    if (!p)
        return;
    fl_mixed_close(p->mixed);
    fl_dense_close(p->dense);
    free(p);
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    solve *s = state;
    part *p = built->own;
    filch_error inner = FILCH_ERROR_INIT;
    filch_status status = fl_mixed_solve(p->mixed, &p->b, &p->x, &s->result, &inner);
    s->is_solved = status == FILCH_OK;
    if (status == FILCH_OK)
        return FILCH_OK;
    if (status == FILCH_DATA && s->result.info == 0)
        return bench_fail(error, status, "matrix", 0, "an element is no number");
    if (status == FILCH_DATA)
        return bench_fail(error, status, "matrix", 0, "it is singular: the pivot in row %d is 0",
                          s->result.info);
    if (status != FILCH_TASK_FAILED)
        return bench_runtime_failed(built->runtime, status, "solve", error);
    if (!fl_vendor_explain(inner.native_code, &inner))
        return bench_fail(error, status, "solve", 0, "%s", inner.text);
    return bench_fail(error, status, inner.label, 0, "%s", inner.text);
}

static void explain(const void *state, filch_error *error)
{
    (void)state;
    (void)fl_vendor_explain(error->native_code, error);
}

/* --- Results --- */

/* The tolerance of LAPACK's dsgesv, which cuSOLVER keeps, and filch with each column of A by
 * itself; another norm needs some more. */
static filch_status check_solution(const solve *s, const double *x, double *residual,
                                   filch_error *error)
{
    double most = 4 * sqrt((double)s->n) * DBL_EPSILON;
    *residual = bench_backward_error(s->n, s->n, s->a, x, s->b);
    if (*residual < 0)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for some vectors");
    if (!(*residual <= most))
        return bench_fail(error, FILCH_DATA, "check", 0, "backward error %.3g is above %.3g",
                          *residual, most);
    return FILCH_OK;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    const solve *s = state;
    return check_solution(s, s->x, residual, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    solve *s = state;
    if (!s->theirs)
        s->theirs = calloc(s->n, sizeof *s->theirs);
    if (!s->theirs)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    s->work = (bench_peer_work){.kind = BENCH_PEER_SOLVE,
                                .workers = workers,
                                .n = s->n,
                                .tile = s->tile,
                                .kernels = &bench_kernels_double,
                                .a = s->a,
                                .b = s->b,
                                .c = s->theirs,
                                .product = product_of(s),
                                .is_resident = s->is_resident};
    *work = &s->work;
    return FILCH_OK;
}

static filch_status agree(void *state, filch_error *error)
{
    const solve *s = state;
    double residual;
    filch_status status = check_solution(s, s->x, &residual, error);
    return status == FILCH_OK ? check_solution(s, s->theirs, &residual, error) : status;
}

const bench_workload bench_solve = {
    .name = "solve",
    .help = "solves a system to double precision by LU in lower precision and refinement",
    .unit = "flop",
    .takes = BENCH_TAKES_FACTOR,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .tiles = tiles,
    .tile_set = tile_set,
    .way = way,
    .way_set = way_set,
    .build = build,
    .unbuild = unbuild,
    .finish = finish,
    .explain = explain,
    .check = check,
    .peer = peer,
    .agree = agree,
};
