/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASXt, which is part of cuBLAS: one call for the whole product, from the host's page-locked
 * memory and back, on all GPUs of the run. Its one setting, the side of the blocks that it cuts
 * matrices into, is tried out beforehand. */
#include "kernels/vendor/library.h"
#include "offload/gpu.h"
#include "peers/peer.h"
#include "support/fail.h"
#include "support/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MATRICES 3
/* A block that takes this much longer than the best so far is not tried again. */
#define HOPELESS 4.0

enum { OP_N = 0 };

/* X(member, symbol, parameters): handles are pointers, enumerations ints. Prototypes as in
 * cublasXt.h of CUDA 12.0 to 13.0. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define PRODUCT(X, p, P, real)                                                            \
    X(p##gemm, "cublasXt" #P "gemm",                                                      \
      (void *handle, int op_a, int op_b, size_t m, size_t n, size_t k, const real *alpha, \
       const real *a, size_t lda, const real *b, size_t ldb, const real *beta, real *c,   \
       size_t ldc))
#define CALLS(X)                                                               \
    X(create, "cublasXtCreate", (void **handle))                               \
    X(destroy, "cublasXtDestroy", (void *handle))                              \
    X(select, "cublasXtDeviceSelect", (void *handle, int count, int *devices)) \
    X(block_set, "cublasXtSetBlockDim", (void *handle, int block))             \
    PRODUCT(X, d, D, double)                                                   \
    PRODUCT(X, s, S, float)

typedef struct state {
    const bench_peer_work *work;
    bench_gpu gpu; /* the first of the run; all are the library's own matter */
    void *handle;
    void *pinned[MATRICES];
    char setting[32];
    struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
        CALLS(MEMBER)
#undef MEMBER
    } call;
} state;
/* NOLINTEND(bugprone-macro-parentheses) */

static bool supports(bench_peer_kind kind)
{
    return kind == BENCH_PEER_GEMM;
}

static void teardown(void *opaque)
{
    state *s = opaque;
    if (s->handle && bench_gpu_enter(&s->gpu, NULL) == FILCH_OK) {
        (void)s->call.destroy(s->handle);
        bench_gpu_leave(&s->gpu);
    }
    for (size_t k = 0; k < MATRICES; k++)
        if (s->pinned[k])
            bench_gpu_unpin(&s->gpu, s->pinned[k]);
    bench_gpu_close(&s->gpu);
    free(s);
}

/* What the workload has not locked already. */
static void pin(state *s, size_t which, const void *memory)
{
    /* Locking pages changes nothing of what is const. */
    void *block = (void *)(uintptr_t)memory;
    size_t bytes = s->work->n * s->work->n * s->work->kernels->element;
    if (!s->work->keeps_memory && bench_gpu_pin(&s->gpu, block, bytes))
        s->pinned[which] = block;
}

static filch_status check(int code, const char *call, filch_error *error)
{
    return code == 0 ? FILCH_OK
                     : bench_fail(error, FILCH_BACKEND, "cuBLASXt", 0, "%s returned status %d",
                                  call, code);
}

static filch_status load(state *s, filch_error *error)
{
    int driver = bench_gpu_driver(&s->gpu);
    void *library = fl_library_open(fl_cublas_names, driver);
    filch_status status = FILCH_OK;
    if (!library)
        return fl_library_missing("cuBLAS", driver, error);
#define FIND(member, symbol, parameters) \
    if (status == FILCH_OK)              \
        status = fl_library_find(library, symbol, &s->call.member, error);
    CALLS(FIND)
#undef FIND
    return status;
}

/* The call returns when the product is in the host's memory. */
static filch_status multiply(state *s, double *seconds, filch_error *error)
{
    const bench_peer_work *w = s->work;
    const double one_d = 1, zero_d = 0;
    const float one_s = 1, zero_s = 0;
    size_t n = w->n;
    double begin = bench_now_s();
    int code = w->kernels->element == sizeof(double)
                   ? s->call.dgemm(s->handle, OP_N, OP_N, n, n, n, &one_d, w->a, n, w->b, n,
                                   &zero_d, w->c, n)
                   : s->call.sgemm(s->handle, OP_N, OP_N, n, n, n, &one_s, w->a, n, w->b, n,
                                   &zero_s, w->c, n);
    *seconds = bench_now_s() - begin;
    return check(code, "a product", error);
}

/* Twice with this block, the first of which may still make room for it; infinite where it fails. */
static double try_block(state *s, size_t block, double least, filch_error *error)
{
    double first = INFINITY, second = INFINITY;
    filch_status status = check(s->call.block_set(s->handle, (int)block), "a block", error);
    if (status == FILCH_OK)
        status = multiply(s, &first, error);
    if (status == FILCH_OK && first < HOPELESS * least)
        status = multiply(s, &second, error);
    return status == FILCH_OK ? fmin(first, second) : INFINITY;
}

/* Blocks for which a GPU has no memory are none of the choices; error keeps why no block works. */
static filch_status tune(state *s, filch_error *error)
{
    static const size_t blocks[] = {1024, 2048, 4096, 8192, 16384};
    size_t n = s->work->n, best = n < blocks[0] ? n : blocks[0];
    double least = try_block(s, best, INFINITY, error);
    for (size_t k = 1; k < sizeof blocks / sizeof *blocks && blocks[k] <= n; k++) {
        double seconds = try_block(s, blocks[k], least, error);
        if (seconds < least) {
            least = seconds;
            best = blocks[k];
        }
    }
    if (isinf(least))
        return FILCH_BACKEND;
    snprintf(s->setting, sizeof s->setting, "block %zu", best);
    return check(s->call.block_set(s->handle, (int)best), "a block", error);
}

static filch_status start(state *s, filch_error *error)
{
    const bench_peer_work *w = s->work;
    int devices[BENCH_PEER_GPUS];
    for (unsigned k = 0; k < w->gpu_count; k++)
        devices[k] = (int)w->gpus[k];
    filch_status status = check(s->call.create(&s->handle), "cublasXtCreate", error);
    if (status == FILCH_OK)
        status = check(s->call.select(s->handle, (int)w->gpu_count, devices),
                       "cublasXtDeviceSelect", error);
    return status == FILCH_OK ? tune(s, error) : status;
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    if (work->is_resident)
        return bench_fail(error, FILCH_UNSUPPORTED, "--versus", 0,
                          "cublasxt works from the host's memory, not with --resident");
    state *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    s->work = work;
    filch_status status = bench_gpu_open(&s->gpu, work->gpus[0], error);
    if (status == FILCH_OK)
        status = load(s, error);
    if (status == FILCH_OK) {
        pin(s, 0, work->a);
        pin(s, 1, work->b);
        pin(s, 2, work->c);
        status = bench_gpu_enter(&s->gpu, error);
    }
    if (status == FILCH_OK) {
        status = start(s, error);
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
    state *s = opaque;
    filch_status status = bench_gpu_enter(&s->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = multiply(s, seconds, error);
    bench_gpu_leave(&s->gpu);
    return status;
}

static const char *setting(const void *opaque)
{
    return ((const state *)opaque)->setting;
}

const bench_peer bench_peer_cublasxt = {
    .name = "cublasxt",
    .description = "one call of cuBLASXt for the whole product, on the same GPUs, best block",
    .supports = supports,
    .setup = setup,
    .run = run,
    .teardown = teardown,
    .setting = setting,
    .has_single = true,
    .needs_gpu = true,
};
