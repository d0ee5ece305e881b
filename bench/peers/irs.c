/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER's solver that factors in lower precision and refines: one call for the whole system, on
 * one GPU, from the host's memory and back, or resident. Of its refinements the fastest is tried
 * out beforehand. */
#include "kernels/vendor/blas.h"
#include "kernels/vendor/library.h"
#include "offload/gpu.h"
#include "peers/peer.h"
#include "support/fail.h"
#include "support/timing.h"

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

enum memory { INPUT, MATRIX, RIGHT, SOLUTION, INFO, WORK, MEMORIES };

typedef struct state {
    const bench_peer_work *work;
    bench_gpu gpu;
    CUstream stream;
    void *handle, *params, *infos;
    CUdeviceptr memory[MEMORIES];
    size_t work_bytes;
    void *pinned;
    char setting[48];
    struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
        CALLS(MEMBER)
#undef MEMBER
    } call;
} state;
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
    return code == 0 ? FILCH_OK
                     : bench_fail(error, FILCH_BACKEND, "cuSOLVER", 0, "%s returned status %d",
                                  call, code);
}

static filch_status check_driver(const state *s, CUresult result, const char *call,
                                 filch_error *error)
{
    return bench_gpu_check(&s->gpu, result, call, error);
}

static void teardown(void *opaque)
{
    state *s = opaque;
    if (s->gpu.context && bench_gpu_enter(&s->gpu, NULL) == FILCH_OK) {
        if (s->infos)
            (void)s->call.infos_destroy(s->infos);
        if (s->params)
            (void)s->call.params_destroy(s->params);
        if (s->handle)
            (void)s->call.destroy(s->handle);
        for (size_t k = 0; k < MEMORIES; k++)
            if (s->memory[k])
                (void)bench_gpu_api(&s->gpu)->cuMemFree(s->memory[k]);
        if (s->stream)
            (void)bench_gpu_api(&s->gpu)->cuStreamDestroy(s->stream);
        bench_gpu_leave(&s->gpu);
    }
    if (s->pinned)
        bench_gpu_unpin(&s->gpu, s->pinned);
    bench_gpu_close(&s->gpu);
    free(s);
}

static size_t bytes_of(const state *s, enum memory which)
{
    size_t n = s->work->n, column = n * sizeof(double);
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

static filch_status copy_in(const state *s, enum memory to, const void *from, filch_error *error)
{
    return check_driver(
        s,
        bench_gpu_api(&s->gpu)->cuMemcpyHtoDAsync(s->memory[to], from, bytes_of(s, to), s->stream),
        "cuMemcpyHtoDAsync", error);
}

static filch_status copy_out(const state *s, void *to, enum memory from, filch_error *error)
{
    return check_driver(s,
                        bench_gpu_api(&s->gpu)->cuMemcpyDtoHAsync(to, s->memory[from],
                                                                  bytes_of(s, from), s->stream),
                        "cuMemcpyDtoHAsync", error);
}

static filch_status wait(const state *s, filch_error *error)
{
    return check_driver(s, bench_gpu_api(&s->gpu)->cuStreamSynchronize(s->stream),
                        "cuStreamSynchronize", error);
}

/* The matrix may be factored where it lies. */
static filch_status restore(const state *s, filch_error *error)
{
    return check_driver(s,
                        bench_gpu_api(&s->gpu)->cuMemcpyDtoDAsync(
                            s->memory[MATRIX], s->memory[INPUT], bytes_of(s, INPUT), s->stream),
                        "cuMemcpyDtoDAsync", error);
}

static filch_status compute(const state *s, int *iterations, filch_error *error)
{
    int n = (int)s->work->n;
    void *at[MEMORIES];
    for (size_t k = 0; k < MEMORIES; k++)
        at[k] = bench_gpu_pointer(s->memory[k]);
    return check(s->call.solve(s->handle, s->params, s->infos, n, 1, at[MATRIX], n, at[RIGHT], n,
                               at[SOLUTION], n, at[WORK], s->work_bytes, iterations, at[INFO]),
                 "cusolverDnIRSXgesv", error);
}

static filch_status run_timed(const state *s, int *iterations, filch_error *error, double *seconds)
{
    const bench_peer_work *w = s->work;
    filch_status status = restore(s, error);
    if (status == FILCH_OK)
        status = wait(s, error);
    double start = bench_now_s();
    if (status == FILCH_OK && !w->is_resident)
        status = copy_in(s, MATRIX, w->a, error);
    if (status == FILCH_OK && !w->is_resident)
        status = copy_in(s, RIGHT, w->b, error);
    if (status == FILCH_OK)
        status = compute(s, iterations, error);
    if (status == FILCH_OK && !w->is_resident)
        status = copy_out(s, w->c, SOLUTION, error);
    if (status == FILCH_OK)
        status = wait(s, error);
    *seconds = bench_now_s() - start;
    return status;
}

static filch_status solve(const state *s, int *iterations, filch_error *error, double *seconds)
{
    int info = 0;
    filch_status status = run_timed(s, iterations, error, seconds);
    if (status == FILCH_OK)
        status = copy_out(s, &info, INFO, error);
    if (status == FILCH_OK && s->work->is_resident)
        status = copy_out(s, s->work->c, SOLUTION, error);
    if (status == FILCH_OK)
        status = wait(s, error);
    if (status == FILCH_OK && info != 0)
        status = bench_fail(error, FILCH_DATA, "cusolverirs", 0, "cuSOLVER's info is %d", info);
    return status;
}

static filch_status fit_work(state *s, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&s->gpu);
    size_t bytes = 0;
    filch_status status =
        check(s->call.solve_size(s->handle, s->params, (int)s->work->n, 1, &bytes),
              "cusolverDnIRSXgesv_bufferSize", error);
    if (status != FILCH_OK || bytes <= s->work_bytes)
        return status;
    if (s->memory[WORK])
        (void)api->cuMemFree(s->memory[WORK]);
    s->memory[WORK] = 0;
    s->work_bytes = 0;
    status = check_driver(s, api->cuMemAlloc(&s->memory[WORK], bytes), "cuMemAlloc", error);
    if (status == FILCH_OK)
        s->work_bytes = bytes;
    return status;
}

static filch_status choose(state *s, size_t which, filch_error *error)
{
    filch_status status = check(s->call.set_refinement(s->params, refinements[which].value),
                                "cusolverDnIRSParamsSetRefinementSolver", error);
    return status == FILCH_OK ? fit_work(s, error) : status;
}

/* The better of two runs of each. One that fails is passed over; one that gave up and factored in
 * double precision tells less than 0 iterations. */
static filch_status tune(state *s, filch_error *error)
{
    double least = INFINITY;
    size_t best = 0;
    int steps = 0;
    filch_status status = FILCH_OK, any = FILCH_BACKEND;
    for (size_t k = 0; k < sizeof refinements / sizeof *refinements; k++) {
        double first = 0, second = 0;
        int iterations = 0;
        status = choose(s, k, error);
        if (status == FILCH_OK)
            status = solve(s, &iterations, error, &first);
        if (status == FILCH_OK)
            status = solve(s, &iterations, error, &second);
        if (status == FILCH_OK && fmin(first, second) < least) {
            any = FILCH_OK;
            least = fmin(first, second);
            best = k;
            steps = iterations;
        }
    }
    snprintf(s->setting, sizeof s->setting, "%s, %d iterations", refinements[best].name, steps);
    return any == FILCH_OK ? choose(s, best, error) : any;
}

static int type_of(int product)
{
    switch (product) {
    case FL_VENDOR_COMPUTE_TF32:
        return TYPE_TF32;
    case FL_VENDOR_COMPUTE_BF16:
        return TYPE_16BF;
    case FL_VENDOR_COMPUTE_FP16:
        return TYPE_16F;
    default:
        return TYPE_32F;
    }
}

static filch_status make_solver(state *s, filch_error *error)
{
    filch_status status = check(s->call.create(&s->handle), "cusolverDnCreate", error);
    if (status == FILCH_OK)
        status = check(s->call.set_stream(s->handle, s->stream), "cusolverDnSetStream", error);
    if (status == FILCH_OK)
        status = check(s->call.params_create(&s->params), "cusolverDnIRSParamsCreate", error);
    if (status == FILCH_OK)
        status = check(s->call.set_main(s->params, TYPE_64F),
                       "cusolverDnIRSParamsSetSolverMainPrecision", error);
    if (status == FILCH_OK)
        status = check(s->call.set_lowest(s->params, type_of(s->work->product)),
                       "cusolverDnIRSParamsSetSolverLowestPrecision", error);
    return status == FILCH_OK
               ? check(s->call.infos_create(&s->infos), "cusolverDnIRSInfosCreate", error)
               : status;
}

static filch_status make(state *s, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&s->gpu);
    filch_status status = check_driver(
        s, api->cuStreamCreate(&s->stream, FL_CU_STREAM_NON_BLOCKING), "cuStreamCreate", error);
    for (size_t k = 0; k < WORK && status == FILCH_OK; k++)
        status = check_driver(s, api->cuMemAlloc(&s->memory[k], bytes_of(s, (enum memory)k)),
                              "cuMemAlloc", error);
    if (status == FILCH_OK)
        status = make_solver(s, error);
    if (status == FILCH_OK)
        status = copy_in(s, INPUT, s->work->a, error);
    if (status == FILCH_OK)
        status = copy_in(s, RIGHT, s->work->b, error);
    return status == FILCH_OK ? tune(s, error) : status;
}

static filch_status load(state *s, filch_error *error)
{
    int driver = bench_gpu_driver(&s->gpu);
    void *library = fl_library_open(fl_cusolver_names, driver);
    filch_status status = FILCH_OK;
    if (!library)
        return fl_library_missing("cuSOLVER", driver, error);
#define FIND(member, symbol, parameters) \
    if (status == FILCH_OK)              \
        status = fl_library_find(library, symbol, &s->call.member, error);
    CALLS(FIND)
#undef FIND
    return status;
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    s->work = work;
    filch_status status = bench_gpu_open(&s->gpu, work->gpus[0], error);
    if (status == FILCH_OK)
        status = load(s, error);
    if (status == FILCH_OK) {
        /* Locking pages changes nothing of what is const. */
        void *block = (void *)(uintptr_t)work->a;
        if (!work->keeps_memory && bench_gpu_pin(&s->gpu, block, bytes_of(s, INPUT)))
            s->pinned = block;
        status = bench_gpu_enter(&s->gpu, error);
    }
    if (status == FILCH_OK) {
        status = make(s, error);
        bench_gpu_leave(&s->gpu);
    }
    if (status == FILCH_OK)
        *out = s;
    else
        teardown(s);
    return status;
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    const state *s = opaque;
    int iterations = 0;
    filch_status status = bench_gpu_enter(&s->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = solve(s, &iterations, error, seconds);
    bench_gpu_leave(&s->gpu);
    return status;
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
    .run = run,
    .teardown = teardown,
    .setting = setting,
    .needs_gpu = true,
};
