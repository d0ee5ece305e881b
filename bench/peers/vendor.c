/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS and cuSOLVER on whole matrices, on one GPU: from the host's memory and back, copies
 * included, or resident: then the input is on the device before the clock starts and the result
 * stays there until it has stopped. */
#include "kernels/vendor/panel.h"
#include "offload/gpu.h"
#include "peers/peer.h"
#include "support/fail.h"
#include "support/timing.h"

#include <stdlib.h>

enum matrix { A, B, C, MATRICES };

typedef struct state {
    const bench_peer_work *work;
    bench_gpu gpu;
    fl_vendor *vendor;
    fl_vendor_lane *lane;
    CUstream stream;
    CUdeviceptr matrix[MATRICES]; /* of a factorization: the input and the factor */
    CUdeviceptr info;
    CUdeviceptr more; /* pivots or tau */
    void *pinned[MATRICES];
} state;

static bool is_product(const bench_peer_work *work)
{
    return work->kind == BENCH_PEER_GEMM;
}

static bool supports_product(bench_peer_kind kind)
{
    return kind == BENCH_PEER_GEMM;
}

static bool supports_factorization(bench_peer_kind kind)
{
    return kind == BENCH_PEER_CHOLESKY || kind == BENCH_PEER_LU || kind == BENCH_PEER_QR;
}

static size_t bytes_of(const bench_peer_work *work)
{
    return work->n * work->n * work->kernels->element;
}

/* What the factorization gives beside the matrix, and its bytes. */
static void *more_of(const bench_peer_work *work, size_t *bytes)
{
    bool is_lu = work->kind == BENCH_PEER_LU;
    *bytes = work->n * (is_lu ? sizeof *work->pivots : work->kernels->element);
    return is_lu ? work->pivots : work->tau;
}

static filch_view view_of(const state *s, enum matrix which)
{
    return (filch_view){.ptr = bench_gpu_pointer(s->matrix[which]),
                        .rows = s->work->n,
                        .cols = s->work->n,
                        .ld = s->work->n,
                        .element = s->work->kernels->element};
}

static void teardown(void *opaque)
{
    state *s = opaque;
    const fl_cuda_api *api = bench_gpu_api(&s->gpu);
    if (s->gpu.context && bench_gpu_enter(&s->gpu, NULL) == FILCH_OK) {
        if (s->lane)
            fl_vendor_lane_drop(s->lane);
        for (size_t k = 0; k < MATRICES; k++)
            if (s->matrix[k])
                (void)api->cuMemFree(s->matrix[k]);
        if (s->more)
            (void)api->cuMemFree(s->more);
        if (s->info)
            (void)api->cuMemFree(s->info);
        if (s->stream)
            (void)api->cuStreamDestroy(s->stream);
        bench_gpu_leave(&s->gpu);
    }
    for (size_t k = 0; k < MATRICES; k++)
        if (s->pinned[k])
            bench_gpu_unpin(&s->gpu, s->pinned[k]);
    fl_vendor_close(s->vendor);
    bench_gpu_close(&s->gpu);
    free(s);
}

/* What the workload has not locked already. */
static void pin(state *s, enum matrix which, const void *memory)
{
    /* Locking pages changes nothing of what is const. */
    void *block = (void *)(uintptr_t)memory;
    if (block && !s->work->keeps_memory && bench_gpu_pin(&s->gpu, block, bytes_of(s->work)))
        s->pinned[which] = block;
}

static filch_status take(state *s, CUdeviceptr *block, size_t bytes, filch_error *error)
{
    return bench_gpu_check(&s->gpu, bench_gpu_api(&s->gpu)->cuMemAlloc(block, bytes), "cuMemAlloc",
                           error);
}

static filch_status copy_in(state *s, enum matrix to, const void *from, filch_error *error)
{
    return bench_gpu_check(&s->gpu,
                           bench_gpu_api(&s->gpu)->cuMemcpyHtoDAsync(s->matrix[to], from,
                                                                     bytes_of(s->work), s->stream),
                           "cuMemcpyHtoDAsync", error);
}

static filch_status copy_out(state *s, void *to, CUdeviceptr from, size_t bytes, filch_error *error)
{
    return bench_gpu_check(&s->gpu,
                           bench_gpu_api(&s->gpu)->cuMemcpyDtoHAsync(to, from, bytes, s->stream),
                           "cuMemcpyDtoHAsync", error);
}

static filch_status wait(state *s, filch_error *error)
{
    return bench_gpu_check(&s->gpu, bench_gpu_api(&s->gpu)->cuStreamSynchronize(s->stream),
                           "cuStreamSynchronize", error);
}

static filch_status make(state *s, filch_error *error)
{
    const bench_peer_work *w = s->work;
    filch_status status = bench_gpu_check(
        &s->gpu, bench_gpu_api(&s->gpu)->cuStreamCreate(&s->stream, FL_CU_STREAM_NON_BLOCKING),
        "cuStreamCreate", error);
    if (status == FILCH_OK &&
        !(s->lane = fl_vendor_lane_make(s->vendor, s->gpu.context, s->stream, 0)))
        status = bench_fail(error, FILCH_BACKEND, "cuBLAS", 0, "a handle cannot be made");
    for (size_t k = A; k < MATRICES && status == FILCH_OK; k++)
        if (k != B || is_product(w))
            status = take(s, &s->matrix[k], bytes_of(w), error);
    if (status == FILCH_OK)
        status = take(s, &s->info, sizeof(int), error);
    size_t bytes;
    if (status == FILCH_OK && more_of(w, &bytes))
        status = take(s, &s->more, bytes, error);
    if (status == FILCH_OK)
        status = copy_in(s, A, w->a, error);
    if (status == FILCH_OK && is_product(w))
        status = copy_in(s, B, w->b, error);
    return status == FILCH_OK ? wait(s, error) : status;
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    s->work = work;
    filch_status status = bench_gpu_open(&s->gpu, work->gpus[0], error);
    if (status == FILCH_OK)
        status = fl_vendor_open(&s->gpu.library, error, &s->vendor);
    if (status == FILCH_OK) {
        pin(s, A, work->a);
        pin(s, B, work->b);
        pin(s, C, work->c);
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

/* The part before and after the clock of a resident run, within it otherwise. */
static filch_status fetch_input(state *s, filch_error *error)
{
    const bench_peer_work *w = s->work;
    if (!is_product(w))
        return w->is_resident
                   ? bench_gpu_check(&s->gpu,
                                     bench_gpu_api(&s->gpu)->cuMemcpyDtoDAsync(
                                         s->matrix[C], s->matrix[A], bytes_of(w), s->stream),
                                     "cuMemcpyDtoDAsync", error)
                   : copy_in(s, C, w->a, error);
    if (w->is_resident)
        return FILCH_OK;
    filch_status status = copy_in(s, A, w->a, error);
    return status == FILCH_OK ? copy_in(s, B, w->b, error) : status;
}

static filch_status compute(state *s, filch_error *error)
{
    filch_view a = view_of(s, A), b = view_of(s, B), c = view_of(s, C);
    void *at = bench_gpu_pointer(s->info), *more = bench_gpu_pointer(s->more);
    filch_view info = {.ptr = at, .rows = 1, .cols = 1, .ld = 1};
    int code = 0;
    if (is_product(s->work))
        code = fl_vendor_gemm_nn(s->lane, &a, &b, 0, &c);
    else if (s->work->kind == BENCH_PEER_LU)
        code = fl_vendor_getrf(s->lane, &c, more, at);
    else if (s->work->kind == BENCH_PEER_QR)
        code = fl_vendor_geqrf(s->lane, &c, more, at);
    else
        code = fl_vendor_potrf(s->lane, &c, &info);
    if (code == 0)
        return FILCH_OK;
    if (!fl_vendor_explain(code, error))
        (void)bench_fail(error, FILCH_BACKEND, "--versus", 0, "code %d", code);
    return FILCH_BACKEND;
}

static filch_status fetch_result(state *s, filch_error *error)
{
    return copy_out(s, s->work->c, s->matrix[C], bytes_of(s->work), error);
}

static filch_status run_timed(state *s, filch_error *error, double *seconds)
{
    bool is_resident = s->work->is_resident;
    filch_status status = is_resident ? fetch_input(s, error) : FILCH_OK;
    if (status == FILCH_OK && is_resident)
        status = wait(s, error);
    double start = bench_now_s();
    if (status == FILCH_OK && !is_resident)
        status = fetch_input(s, error);
    if (status == FILCH_OK)
        status = compute(s, error);
    if (status == FILCH_OK && !is_resident)
        status = fetch_result(s, error);
    if (status == FILCH_OK)
        status = wait(s, error);
    *seconds = bench_now_s() - start;
    if (status == FILCH_OK && is_resident)
        status = fetch_result(s, error);
    return status;
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    int info = 0;
    filch_status status = bench_gpu_enter(&s->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = run_timed(s, error, seconds);
    if (status == FILCH_OK && !is_product(s->work))
        status = copy_out(s, &info, s->info, sizeof info, error);
    size_t bytes;
    void *more = more_of(s->work, &bytes);
    if (status == FILCH_OK && more)
        status = copy_out(s, more, s->more, bytes, error);
    if (status == FILCH_OK)
        status = wait(s, error);
    bench_gpu_leave(&s->gpu);
    if (status == FILCH_OK && info != 0)
        status = bench_fail(error, FILCH_DATA, "cusolver", 0, "cuSOLVER's info is %d", info);
    return status;
}

const bench_peer bench_peer_cublas = {
    .name = "cublas",
    .description = "one call of cuBLAS for the whole product, on one GPU",
    .supports = supports_product,
    .setup = setup,
    .run = run,
    .teardown = teardown,
    .has_single = true,
    .needs_gpu = true,
};

const bench_peer bench_peer_cusolver = {
    .name = "cusolver",
    .description = "one call of cuSOLVER for the whole factorization, on one GPU",
    .supports = supports_factorization,
    .setup = setup,
    .run = run,
    .teardown = teardown,
    .has_single = true,
    .needs_gpu = true,
};
