/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVERMg: one call for the whole factorization, on all GPUs of the run. The matrix lies on
 * them in blocks of columns, dealt out in turn; neither that nor fetching the factor is timed. The
 * width of a block is tried out beforehand. */
#include "kernels/vendor/library.h"
#include "peers/one_call.h"
#include "support/fail.h"
#include "support/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILL_LOWER = 0, REAL_SINGLE = 0, REAL_DOUBLE = 1, MAPPING_COLUMNS = 0 };

/* X(member, symbol, parameters): handles, grids and descriptors are pointers, enumerations ints.
 * Prototypes as in cusolverMg.h of CUDA 12.0 to 13.0. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define CALLS(X)                                                                                   \
    X(create, "cusolverMgCreate", (void **handle))                                                 \
    X(destroy, "cusolverMgDestroy", (void *handle))                                                \
    X(select, "cusolverMgDeviceSelect", (void *handle, int count, int *devices))                   \
    X(grid_create, "cusolverMgCreateDeviceGrid",                                                   \
      (void **grid, int32_t rows, int32_t cols, const int32_t *devices, int mapping))              \
    X(grid_destroy, "cusolverMgDestroyGrid", (void *grid))                                         \
    X(desc_create, "cusolverMgCreateMatrixDesc",                                                   \
      (void **desc, int64_t rows, int64_t cols, int64_t row_block, int64_t col_block, int type,    \
       void *grid))                                                                                \
    X(desc_destroy, "cusolverMgDestroyMatrixDesc", (void *desc))                                   \
    X(potrf_size, "cusolverMgPotrf_bufferSize",                                                    \
      (void *handle, int fill, int n, void **a, int ia, int ja, void *desc, int type,              \
       int64_t *elements))                                                                         \
    X(potrf, "cusolverMgPotrf",                                                                    \
      (void *handle, int fill, int n, void **a, int ia, int ja, void *desc, int type, void **work, \
       int64_t elements, int *info))

typedef struct part {
    bench_gpu gpu;
    CUstream stream;
    CUdeviceptr columns; /* its blocks, side by side */
    CUdeviceptr work;
} part;

typedef struct state {
    bench_one_call one; /* the first member */
    size_t block;
    void *handle;
    void *grid;
    void *desc;
    int64_t elements; /* of each GPU's work memory */
    char setting[32];
    struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
        CALLS(MEMBER)
#undef MEMBER
    } call;
    CUresult (*context_wait)(void); /* the library has streams of its own, and filch no such call */
    part parts[BENCH_PEER_GPUS];
} state;

#define SYMBOL(member, symbol, parameters) {symbol, offsetof(state, call.member)},
static const fl_symbol symbols[] = {CALLS(SYMBOL)};
#undef SYMBOL
/* NOLINTEND(bugprone-macro-parentheses) */

static bool supports(bench_peer_kind kind)
{
    return kind == BENCH_PEER_CHOLESKY;
}

static size_t element(const state *s)
{
    return s->one.work->kernels->element;
}

static filch_status check(int code, const char *call, filch_error *error)
{
    return bench_one_call_check("cuSOLVERMg", code, call, error);
}

/* --- The matrix on the GPUs --- */

static void lay_down(state *s)
{
    for (unsigned k = 0; k < s->one.work->gpu_count; k++) {
        part *p = &s->parts[k];
        if (!p->gpu.context || bench_gpu_enter(&p->gpu, NULL) != FILCH_OK)
            continue;
        bench_gpu_free(&p->gpu, &p->columns);
        bench_gpu_free(&p->gpu, &p->work);
        bench_gpu_leave(&p->gpu);
    }
    if (s->desc)
        (void)s->call.desc_destroy(s->desc);
    s->desc = NULL;
}

static filch_status take(part *p, CUdeviceptr *block, size_t bytes, filch_error *error)
{
    filch_status status = bench_gpu_enter(&p->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = bench_gpu_alloc(&p->gpu, block, bytes, error);
    bench_gpu_leave(&p->gpu);
    return status;
}

static void addresses(state *s, void **columns, void **work)
{
    for (unsigned k = 0; k < s->one.work->gpu_count; k++) {
        columns[k] = bench_gpu_pointer(s->parts[k].columns);
        work[k] = bench_gpu_pointer(s->parts[k].work);
    }
}

static int type_of(const state *s)
{
    return element(s) == sizeof(double) ? REAL_DOUBLE : REAL_SINGLE;
}

/* Room for blocks of this width, and what the library needs to work in. */
static filch_status lay_out(state *s, size_t block, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    size_t blocks = (w->n + block - 1) / block;
    size_t each = (blocks + w->gpu_count - 1) / w->gpu_count;
    void *columns[BENCH_PEER_GPUS], *work[BENCH_PEER_GPUS];
    int64_t n = (int64_t)w->n;
    lay_down(s);
    s->block = block;
    filch_status status = FILCH_OK;
    for (unsigned k = 0; k < w->gpu_count && status == FILCH_OK; k++)
        status = take(&s->parts[k], &s->parts[k].columns, each * block * w->n * element(s), error);
    if (status == FILCH_OK)
        status = check(s->call.desc_create(&s->desc, n, n, n, (int64_t)block, type_of(s), s->grid),
                       "cusolverMgCreateMatrixDesc", error);
    addresses(s, columns, work);
    if (status == FILCH_OK)
        status = check(s->call.potrf_size(s->handle, FILL_LOWER, (int)n, columns, 1, 1, s->desc,
                                          type_of(s), &s->elements),
                       "cusolverMgPotrf_bufferSize", error);
    for (unsigned k = 0; k < w->gpu_count && status == FILCH_OK; k++)
        status = take(&s->parts[k], &s->parts[k].work, (size_t)s->elements * element(s), error);
    return status;
}

/* The columns of one GPU, one way or the other; waits for them. */
static filch_status move_part(state *s, unsigned which, bool in, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    part *p = &s->parts[which];
    size_t column = w->n * element(s);
    filch_status status = bench_gpu_enter(&p->gpu, error);
    if (status != FILCH_OK)
        return status;
    for (size_t at = which * s->block, local = 0; at < w->n && status == FILCH_OK;
         at += w->gpu_count * s->block, local += s->block) {
        size_t width = w->n - at < s->block ? w->n - at : s->block;
        CUdeviceptr there = p->columns + local * column;
        const char *from = (const char *)w->a + at * column;
        char *to = (char *)w->c + at * column;
        status = in ? bench_gpu_send(&p->gpu, there, from, width * column, p->stream, error)
                    : bench_gpu_fetch(&p->gpu, to, there, width * column, p->stream, error);
    }
    if (status == FILCH_OK)
        status = bench_gpu_wait(&p->gpu, p->stream, error);
    bench_gpu_leave(&p->gpu);
    return status;
}

static filch_status move(state *s, bool in, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (unsigned k = 0; k < s->one.work->gpu_count && status == FILCH_OK; k++)
        status = move_part(s, k, in, error);
    return status;
}

static filch_status wait(state *s, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (unsigned k = 0; k < s->one.work->gpu_count && status == FILCH_OK; k++) {
        const bench_gpu *gpu = &s->parts[k].gpu;
        status = bench_gpu_enter(gpu, error);
        if (status != FILCH_OK)
            break;
        status = bench_gpu_check(gpu, s->context_wait(), "cuCtxSynchronize", error);
        bench_gpu_leave(gpu);
    }
    return status;
}

/* --- Running --- */

static filch_status factor(state *s, double *seconds, filch_error *error)
{
    void *columns[BENCH_PEER_GPUS], *work[BENCH_PEER_GPUS];
    int info = 0;
    addresses(s, columns, work);
    filch_status status = move(s, true, error);
    if (status != FILCH_OK)
        return status;
    double begin = bench_now_s();
    status = check(s->call.potrf(s->handle, FILL_LOWER, (int)s->one.work->n, columns, 1, 1, s->desc,
                                 type_of(s), work, s->elements, &info),
                   "cusolverMgPotrf", error);
    if (status == FILCH_OK)
        status = wait(s, error);
    *seconds = bench_now_s() - begin;
    if (status == FILCH_OK && info != 0)
        status = bench_fail(error, FILCH_DATA, "cusolvermg", 0, "minor %d is not positive", info);
    return status;
}

static filch_status tune(state *s, filch_error *error)
{
    static const size_t blocks[] = {2048, 1024, 512, 256};
    double least = INFINITY;
    size_t best = s->one.work->n < 256 ? s->one.work->n : 256;
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks && status == FILCH_OK; k++) {
        double first = 0, second = 0;
        if (blocks[k] > s->one.work->n)
            continue;
        status = lay_out(s, blocks[k], error);
        if (status == FILCH_OK)
            status = factor(s, &first, error);
        if (status == FILCH_OK)
            status = factor(s, &second, error);
        if (fmin(first, second) < least) {
            least = fmin(first, second);
            best = blocks[k];
        }
    }
    snprintf(s->setting, sizeof s->setting, "block %zu", best);
    return status == FILCH_OK ? lay_out(s, best, error) : status;
}

/* Where GPUs cannot reach each other the library goes through the host's memory. */
static filch_status join(state *s, unsigned from, unsigned to, filch_error *error)
{
    const bench_gpu *gpu = &s->parts[from].gpu, *other = &s->parts[to].gpu;
    const fl_cuda_api *api = bench_gpu_api(gpu);
    int reaches = 0;
    filch_status status =
        bench_gpu_check(gpu, api->cuDeviceCanAccessPeer(&reaches, gpu->device, other->device),
                        "cuDeviceCanAccessPeer", error);
    if (status != FILCH_OK || !reaches)
        return status;
    status = bench_gpu_enter(gpu, error);
    if (status != FILCH_OK)
        return status;
    CUresult result = api->cuCtxEnablePeerAccess(other->context, 0);
    if (result != FL_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        status = bench_gpu_check(gpu, result, "cuCtxEnablePeerAccess", error);
    bench_gpu_leave(gpu);
    return status;
}

static filch_status open_parts(state *s, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    filch_status status = FILCH_OK;
    for (unsigned k = 0; k < w->gpu_count && status == FILCH_OK; k++) {
        part *p = &s->parts[k];
        status = bench_gpu_open(&p->gpu, w->gpus[k], error);
        if (status == FILCH_OK)
            status = bench_gpu_enter(&p->gpu, error);
        if (status != FILCH_OK)
            break;
        status = bench_gpu_stream(&p->gpu, &p->stream, error);
        bench_gpu_leave(&p->gpu);
    }
    for (unsigned k = 0; k < w->gpu_count * w->gpu_count && status == FILCH_OK; k++)
        if (k / w->gpu_count != k % w->gpu_count)
            status = join(s, k / w->gpu_count, k % w->gpu_count, error);
    return status;
}

static filch_status load(void *opaque, filch_error *error)
{
    state *s = opaque;
    int driver = bench_gpu_driver(&s->one.gpu);
    const fl_symbol wait_symbol = {"cuCtxSynchronize", offsetof(state, context_wait)};
    filch_status status = open_parts(s, error);
    if (status == FILCH_OK)
        status = fl_library_load(fl_cusolvermg_names, "cuSOLVERMg", driver, symbols,
                                 sizeof symbols / sizeof *symbols, s, error);
    return status == FILCH_OK
               ? fl_library_load(fl_cuda_names, "libcuda", driver, &wait_symbol, 1, s, error)
               : status;
}

static void unload(void *opaque)
{
    state *s = opaque;
    for (unsigned k = 0; k < s->one.work->gpu_count; k++) {
        part *p = &s->parts[k];
        if (p->stream && bench_gpu_enter(&p->gpu, NULL) == FILCH_OK) {
            bench_gpu_stream_free(&p->gpu, &p->stream);
            bench_gpu_leave(&p->gpu);
        }
        bench_gpu_close(&p->gpu);
    }
}

static filch_status start(void *opaque, filch_error *error)
{
    state *s = opaque;
    const bench_peer_work *w = s->one.work;
    int devices[BENCH_PEER_GPUS];
    int32_t grid[BENCH_PEER_GPUS];
    for (unsigned k = 0; k < w->gpu_count; k++)
        grid[k] = devices[k] = (int)w->gpus[k];
    filch_status status = check(s->call.create(&s->handle), "cusolverMgCreate", error);
    if (status == FILCH_OK)
        status = check(s->call.select(s->handle, (int)w->gpu_count, devices),
                       "cusolverMgDeviceSelect", error);
    if (status == FILCH_OK)
        status =
            check(s->call.grid_create(&s->grid, 1, (int32_t)w->gpu_count, grid, MAPPING_COLUMNS),
                  "cusolverMgCreateDeviceGrid", error);
    return status == FILCH_OK ? tune(s, error) : status;
}

static void stop(void *opaque)
{
    state *s = opaque;
    lay_down(s);
    if (s->grid)
        (void)s->call.grid_destroy(s->grid);
    if (s->handle)
        (void)s->call.destroy(s->handle);
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    filch_status status = factor(opaque, seconds, error);
    return status == FILCH_OK ? move(opaque, false, error) : status;
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    static const bench_one_call_steps steps = {.size = sizeof(state),
                                               .load = load,
                                               .unload = unload,
                                               .start = start,
                                               .stop = stop,
                                               .run = run};
    if (!work->is_resident)
        return bench_fail(error, FILCH_UNSUPPORTED, "--versus", 0,
                          "cusolvermg begins with the matrix on the GPUs: with --resident only");
    return bench_one_call_setup(&steps, work, error, out);
}

static const char *setting(const void *opaque)
{
    return ((const state *)opaque)->setting;
}

const bench_peer bench_peer_cusolvermg = {
    .name = "cusolvermg",
    .description = "one call of cuSOLVERMg for the whole factorization, on the same GPUs, best "
                   "block",
    .supports = supports,
    .setup = setup,
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .setting = setting,
    .has_single = true,
    .needs_gpu = true,
};
