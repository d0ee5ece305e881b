/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASXt, which is part of cuBLAS: one call for the whole product, from the host's page-locked
 * memory and back, on all GPUs of the run. Its one setting, the side of the blocks that it cuts
 * matrices into, is tried out beforehand. */
#include "kernels/vendor/library.h"
#include "peers/one_call.h"
#include "support/fail.h"
#include "support/timing.h"

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
    bench_one_call one; /* the first member; GPUs beside its own are the library's matter */
    void *handle;
    char setting[BENCH_ONE_CALL_SETTING];
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

static bool supports(bench_peer_kind kind)
{
    return kind == BENCH_PEER_GEMM;
}

static void stop(void *opaque)
{
    state *s = opaque;
    if (s->handle)
        (void)s->call.destroy(s->handle);
}

static filch_status check(int code, const char *call, filch_error *error)
{
    return bench_one_call_check("cuBLASXt", code, call, error);
}

static filch_status load(void *opaque, filch_error *error)
{
    state *s = opaque;
    return fl_library_load(fl_cublas_names, "cuBLAS", bench_gpu_driver(&s->one.gpu), symbols,
                           sizeof symbols / sizeof *symbols, s, error);
}

static filch_status set_block(void *opaque, size_t block, filch_error *error)
{
    state *s = opaque;
    return check(s->call.block_set(s->handle, (int)block), "a block", error);
}

/* The call returns when the product is in the host's memory. */
static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    const bench_peer_work *w = s->one.work;
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

static filch_status start(void *opaque, filch_error *error)
{
    static const bench_one_call_tuning tuning = {
        .blocks = {1024, 2048, 4096, 8192, 16384}, .set = set_block, .once = run};
    state *s = opaque;
    const bench_peer_work *w = s->one.work;
    int devices[BENCH_PEER_GPUS];
    for (unsigned k = 0; k < w->gpu_count; k++)
        devices[k] = (int)w->gpus[k];
    filch_status status = check(s->call.create(&s->handle), "cublasXtCreate", error);
    if (status == FILCH_OK)
        status = check(s->call.select(s->handle, (int)w->gpu_count, devices),
                       "cublasXtDeviceSelect", error);
    return status == FILCH_OK ? bench_one_call_tune(&s->one, &tuning, s->setting, error) : status;
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    static const bench_one_call_steps steps = {
        .size = sizeof(state), .load = load, .start = start, .stop = stop, .run = run};
    if (work->is_resident)
        return bench_fail(error, FILCH_UNSUPPORTED, "--versus", 0,
                          "cublasxt works from the host's memory, not with --resident");
    return bench_one_call_setup(&steps, work, error, out);
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
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .setting = setting,
    .has_single = true,
    .needs_gpu = true,
};
