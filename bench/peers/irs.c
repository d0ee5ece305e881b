/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER's solver that factors in lower precision and refines: one call for the whole system, on
 * one GPU, from the host's memory and back, or resident. Of its refinements, and of the precisions
 * where none is asked for, the fastest is tried out beforehand. */
#include "kernels/vendor/blas.h"
#include "kernels/vendor/library.h"
#include "peers/one_call.h"
#include "support/fail.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Values of cusolverPrecType_t. */
enum { TYPE_64F = 1203, TYPE_32F = 1204, TYPE_16F = 1205, TYPE_16BF = 1206, TYPE_TF32 = 1207 };

/* X(member, symbol, parameters): handles and parameters are pointers, enumerations ints. Prototypes
 * as in cusolverDn.h of CUDA 12.0 to 13.0. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define CALLS(X)                                                                                \
    X(create, "cusolverDnCreate", (void **handle))                                              \
    X(destroy, "cusolverDnDestroy", (void *handle))                                             \
    X(set_stream, "cusolverDnSetStream", (void *handle, void *stream))                          \
    X(params_create, "cusolverDnIRSParamsCreate", (void **params))                              \
    X(params_destroy, "cusolverDnIRSParamsDestroy", (void *params))                             \
    X(set_main, "cusolverDnIRSParamsSetSolverMainPrecision", (void *params, int type))          \
    X(set_lowest, "cusolverDnIRSParamsSetSolverLowestPrecision", (void *params, int type))      \
    X(set_refinement, "cusolverDnIRSParamsSetRefinementSolver", (void *params, int refinement)) \
    X(infos_create, "cusolverDnIRSInfosCreate", (void **infos))                                 \
    X(infos_destroy, "cusolverDnIRSInfosDestroy", (void *infos))                                \
    X(solve_size, "cusolverDnIRSXgesv_bufferSize",                                              \
      (void *handle, void *params, int n, int count, size_t *bytes))                            \
    X(solve, "cusolverDnIRSXgesv",                                                              \
      (void *handle, void *params, void *infos, int n, int count, void *a, int lda, void *b,    \
       int ldb, void *x, int ldx, void *work, size_t bytes, int *iterations, int *info))

enum block { INPUT, MATRIX, RIGHT, SOLUTION, INFO, WORK };

typedef struct state {
    bench_one_call one; /* the first member */
    void *handle, *params, *infos;
    size_t work_bytes;
    int iterations; /* of the last call */
    char setting[48];
    struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
        CALLS(MEMBER)
#undef MEMBER
    } call;
} state;

#define SYMBOL(member, symbol, parameters) {symbol, offsetof(state, call.member)},
static const fl_symbol symbols[] = {CALLS(SYMBOL)};
#undef SYMBOL
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct {
    const char *name;
    int value; /* of cusolverIRSRefinement_t */
} refinements[] = {
    {"classical", 1102}, {"classical_gmres", 1103}, {"gmres", 1104}, {"gmres_gmres", 1105}};

static bool supports(bench_peer_kind kind)
{
    return kind == BENCH_PEER_SOLVE;
}

static filch_status check(int code, const char *call, filch_error *error)
{
    return bench_one_call_check("cuSOLVER", code, call, error);
}

static void stop(void *opaque)
{
    state *s = opaque;
    if (s->infos)
        (void)s->call.infos_destroy(s->infos);
    if (s->params)
        (void)s->call.params_destroy(s->params);
    if (s->handle)
        (void)s->call.destroy(s->handle);
}

static size_t bytes_of(const state *s, enum block which)
{
    size_t n = s->one.work->n, column = n * sizeof(double);
    switch (which) {
    case INPUT:
    case MATRIX:
        return n * column;
    case INFO:
        return sizeof(int);
    case WORK:
        return s->work_bytes;
    default:
        return column;
    }
}

static filch_status copy_in(const state *s, enum block to, const void *from, filch_error *error)
{
    const bench_one_call *o = &s->one;
    return bench_gpu_send(&o->gpu, o->blocks[to], from, bytes_of(s, to), o->stream, error);
}

static filch_status copy_out(const state *s, void *to, enum block from, filch_error *error)
{
    const bench_one_call *o = &s->one;
    return bench_gpu_fetch(&o->gpu, to, o->blocks[from], bytes_of(s, from), o->stream, error);
}

/* The matrix may be factored where it lies. */
static filch_status bring(void *opaque, filch_error *error)
{
    const state *s = opaque;
    const bench_one_call *o = &s->one;
    if (o->work->is_resident)
        return bench_gpu_copy(&o->gpu, o->blocks[MATRIX], o->blocks[INPUT], bytes_of(s, INPUT),
                              o->stream, error);
    filch_status status = copy_in(s, MATRIX, o->work->a, error);
    return status == FILCH_OK ? copy_in(s, RIGHT, o->work->b, error) : status;
}

static filch_status compute(void *opaque, filch_error *error)
{
    state *s = opaque;
    int n = (int)s->one.work->n;
    void *at[BENCH_ONE_CALL_BLOCKS];
    for (size_t k = 0; k < BENCH_ONE_CALL_BLOCKS; k++)
        at[k] = bench_gpu_pointer(s->one.blocks[k]);
    return check(s->call.solve(s->handle, s->params, s->infos, n, 1, at[MATRIX], n, at[RIGHT], n,
                               at[SOLUTION], n, at[WORK], s->work_bytes, &s->iterations, at[INFO]),
                 "cusolverDnIRSXgesv", error);
}

static filch_status fetch(void *opaque, filch_error *error)
{
    const state *s = opaque;
    return copy_out(s, s->one.work->c, SOLUTION, error);
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    int info = 0;
    filch_status status = bench_one_call_time(&s->one, bring, compute, fetch, error, seconds);
    if (status == FILCH_OK)
        status = copy_out(s, &info, INFO, error);
    if (status == FILCH_OK)
        status = bench_gpu_wait(&s->one.gpu, s->one.stream, error);
    if (status == FILCH_OK && info != 0)
        status = bench_fail(error, FILCH_DATA, "cusolverirs", 0, "cuSOLVER's info is %d", info);
    return status;
}

static filch_status fit_work(state *s, filch_error *error)
{
    CUdeviceptr *block = &s->one.blocks[WORK];
    size_t bytes = 0;
    filch_status status =
        check(s->call.solve_size(s->handle, s->params, (int)s->one.work->n, 1, &bytes),
              "cusolverDnIRSXgesv_bufferSize", error);
    if (status != FILCH_OK || bytes <= s->work_bytes)
        return status;
    bench_gpu_free(&s->one.gpu, block);
    s->work_bytes = 0;
    status = bench_gpu_alloc(&s->one.gpu, block, bytes, error);
    if (status == FILCH_OK)
        s->work_bytes = bytes;
    return status;
}

/* Precisions of the factorization. */
static const struct {
    const char *name;
    int value; /* of cusolverPrecType_t */
    int product;
} lowest[] = {{"tf32", TYPE_TF32, FL_VENDOR_COMPUTE_TF32},
              {"fp16", TYPE_16F, FL_VENDOR_COMPUTE_FP16},
              {"bf16", TYPE_16BF, FL_VENDOR_COMPUTE_BF16},
              {"single", TYPE_32F, FL_VENDOR_COMPUTE_SINGLE}};

typedef struct choice {
    size_t lowest, refinement;
} choice;

static filch_status choose(state *s, choice c, filch_error *error)
{
    filch_status status = check(s->call.set_lowest(s->params, lowest[c.lowest].value),
                                "cusolverDnIRSParamsSetSolverLowestPrecision", error);
    if (status == FILCH_OK)
        status = check(s->call.set_refinement(s->params, refinements[c.refinement].value),
                       "cusolverDnIRSParamsSetRefinementSolver", error);
    return status == FILCH_OK ? fit_work(s, error) : status;
}

/* The better of two runs, or the first, if that is hopeless beside `least`. */
static filch_status try_choice(state *s, choice c, double least, double *seconds,
                               filch_error *error)
{
    double second = INFINITY;
    filch_status status = choose(s, c, error);
    if (status == FILCH_OK)
        status = run(s, error, seconds);
    if (status == FILCH_OK && *seconds < 2 * least)
        status = run(s, error, &second);
    *seconds = fmin(*seconds, second);
    return status;
}

/* One that fails is passed over; one that gave up and factored in double precision tells less than
 * 0 iterations. */
static filch_status tune(state *s, filch_error *error)
{
    double least = INFINITY;
    choice best = {0, 0};
    filch_status any = FILCH_BACKEND;
    for (choice c = {0, 0}; c.lowest < sizeof lowest / sizeof *lowest; c.lowest++) {
        int product = s->one.work->product;
        if (product != BENCH_ANY_PRODUCT && product != lowest[c.lowest].product)
            continue;
        for (c.refinement = 0; c.refinement < sizeof refinements / sizeof *refinements;
             c.refinement++) {
            double seconds = INFINITY;
            if (try_choice(s, c, least, &seconds, error) != FILCH_OK || seconds >= least)
                continue;
            any = FILCH_OK;
            least = seconds;
            best = c;
            snprintf(s->setting, sizeof s->setting, "%s, %s, %d iterations", lowest[c.lowest].name,
                     refinements[c.refinement].name, s->iterations);
        }
    }
    return any == FILCH_OK ? choose(s, best, error) : any;
}

static filch_status make_solver(state *s, filch_error *error)
{
    filch_status status = check(s->call.create(&s->handle), "cusolverDnCreate", error);
    if (status == FILCH_OK)
        status = check(s->call.set_stream(s->handle, s->one.stream), "cusolverDnSetStream", error);
    if (status == FILCH_OK)
        status = check(s->call.params_create(&s->params), "cusolverDnIRSParamsCreate", error);
    if (status == FILCH_OK)
        status = check(s->call.set_main(s->params, TYPE_64F),
                       "cusolverDnIRSParamsSetSolverMainPrecision", error);
    return status == FILCH_OK
               ? check(s->call.infos_create(&s->infos), "cusolverDnIRSInfosCreate", error)
               : status;
}

static filch_status start(void *opaque, filch_error *error)
{
    state *s = opaque;
    filch_status status = bench_gpu_stream(&s->one.gpu, &s->one.stream, error);
    for (size_t k = INPUT; k < WORK && status == FILCH_OK; k++)
        status = bench_gpu_alloc(&s->one.gpu, &s->one.blocks[k], bytes_of(s, (enum block)k), error);
    if (status == FILCH_OK)
        status = make_solver(s, error);
    if (status == FILCH_OK)
        status = copy_in(s, INPUT, s->one.work->a, error);
    if (status == FILCH_OK)
        status = copy_in(s, RIGHT, s->one.work->b, error);
    return status == FILCH_OK ? tune(s, error) : status;
}

static filch_status load(void *opaque, filch_error *error)
{
    state *s = opaque;
    return fl_library_load(fl_cusolver_names, "cuSOLVER", bench_gpu_driver(&s->one.gpu), symbols,
                           sizeof symbols / sizeof *symbols, s, error);
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    static const bench_one_call_steps steps = {
        .size = sizeof(state), .load = load, .start = start, .stop = stop, .run = run};
    return bench_one_call_setup(&steps, work, error, out);
}

static const char *setting(const void *opaque)
{
    return ((const state *)opaque)->setting;
}

const bench_peer bench_peer_cusolverirs = {
    .name = "cusolverirs",
    .description = "one call of cuSOLVER's mixed-precision solver, on one GPU, best refinement",
    .supports = supports,
    .setup = setup,
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .setting = setting,
    .needs_gpu = true,
};
