/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS and cuSOLVER on whole matrices, on one GPU. */
#include "kernels/vendor/blas.h"
#include "kernels/vendor/panel.h"
#include "peers/one_call.h"
#include "support/fail.h"

/* Of a factorization A and C are the input and the factor, and MORE its pivots or tau; of a solve A
 * is the triangle, B the right sides and C the solutions. */
enum block { A, B, C, INFO, MORE };

typedef struct state {
    bench_one_call one; /* the first member */
    fl_vendor *vendor;
    fl_vendor_lane *lane;
} state;

/* C is written, whatever it was. */
static bool is_product(const bench_peer_work *work)
{
    return work->kind == BENCH_PEER_GEMM || work->kind == BENCH_PEER_SYRK;
}

static bool is_solve(const bench_peer_work *work)
{
    return work->kind == BENCH_PEER_TRSM;
}

static bool is_factorization(const bench_peer_work *work)
{
    return !is_product(work) && !is_solve(work);
}

static bool has_two(const bench_peer_work *work)
{
    return work->kind == BENCH_PEER_GEMM || is_solve(work);
}

static bool supports_blas(bench_peer_kind kind)
{
    return kind == BENCH_PEER_GEMM || kind == BENCH_PEER_SYRK || kind == BENCH_PEER_TRSM;
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

static filch_view view_of(const state *s, enum block which)
{
    const bench_peer_work *w = s->one.work;
    return (filch_view){.ptr = bench_gpu_pointer(s->one.blocks[which]),
                        .rows = w->n,
                        .cols = w->n,
                        .ld = w->n,
                        .element = w->kernels->element};
}

static filch_status load(void *opaque, filch_error *error)
{
    state *s = opaque;
    return fl_vendor_open(&s->one.gpu.library, error, &s->vendor);
}

static void unload(void *opaque)
{
    fl_vendor_close(((state *)opaque)->vendor);
}

static void stop(void *opaque)
{
    state *s = opaque;
    if (s->lane)
        fl_vendor_lane_drop(s->lane);
}

static filch_status take(state *s, enum block which, size_t bytes, filch_error *error)
{
    return bench_gpu_alloc(&s->one.gpu, &s->one.blocks[which], bytes, error);
}

static filch_status copy_in(state *s, enum block to, const void *from, filch_error *error)
{
    const bench_one_call *o = &s->one;
    return bench_gpu_send(&o->gpu, o->blocks[to], from, bytes_of(o->work), o->stream, error);
}

static filch_status copy_out(state *s, void *to, enum block from, size_t bytes, filch_error *error)
{
    const bench_one_call *o = &s->one;
    return bench_gpu_fetch(&o->gpu, to, o->blocks[from], bytes, o->stream, error);
}

static filch_status start(void *opaque, filch_error *error)
{
    state *s = opaque;
    bench_one_call *o = &s->one;
    const bench_peer_work *w = o->work;
    filch_status status = bench_gpu_stream(&o->gpu, &o->stream, error);
    if (status == FILCH_OK &&
        !(s->lane = fl_vendor_lane_make(s->vendor, o->gpu.context, o->stream, 0)))
        status = bench_fail(error, FILCH_BACKEND, "cuBLAS", 0, "a handle cannot be made");
    for (int k = A; k <= C && status == FILCH_OK; k++)
        if (k != B || has_two(w))
            status = take(s, (enum block)k, bytes_of(w), error);
    if (status == FILCH_OK)
        status = take(s, INFO, sizeof(int), error);
    size_t bytes;
    if (status == FILCH_OK && more_of(w, &bytes))
        status = take(s, MORE, bytes, error);
    if (status == FILCH_OK)
        status = copy_in(s, A, w->a, error);
    if (status == FILCH_OK && has_two(w))
        status = copy_in(s, B, w->b, error);
    return status == FILCH_OK ? bench_gpu_wait(&o->gpu, o->stream, error) : status;
}

/* Operands that stay as they are need not come again where they are resident; what the call
 * overwrites is copied to C. */
static filch_status bring(void *opaque, filch_error *error)
{
    state *s = opaque;
    const bench_one_call *o = &s->one;
    const bench_peer_work *w = o->work;
    enum block from = is_solve(w) ? B : A;
    if (w->is_resident)
        return is_product(w) ? FILCH_OK
                             : bench_gpu_copy(&o->gpu, o->blocks[C], o->blocks[from], bytes_of(w),
                                              o->stream, error);
    filch_status status = copy_in(s, is_factorization(w) ? C : A, w->a, error);
    if (status == FILCH_OK && has_two(w))
        status = copy_in(s, is_solve(w) ? C : B, w->b, error);
    return status;
}

static filch_status compute(void *opaque, filch_error *error)
{
    state *s = opaque;
    const bench_peer_work *w = s->one.work;
    filch_view a = view_of(s, A), b = view_of(s, B), c = view_of(s, C);
    void *at = bench_gpu_pointer(s->one.blocks[INFO]);
    void *more = bench_gpu_pointer(s->one.blocks[MORE]);
    filch_view info = {.ptr = at, .rows = 1, .cols = 1, .ld = 1};
    const fl_vendor_form form = {.fill = FL_VENDOR_FILL_LOWER, .alpha = 1};
    int code = 0;
    if (w->kind == BENCH_PEER_SYRK)
        code = fl_vendor_blas_syrk(s->lane, &form, &a, &c);
    else if (w->kind == BENCH_PEER_TRSM)
        code = fl_vendor_blas_trsm(s->lane, &form, &a, &c);
    else if (w->kind == BENCH_PEER_GEMM)
        code = fl_vendor_gemm_nn(s->lane, &a, &b, 0, &c);
    else if (w->kind == BENCH_PEER_LU)
        code = fl_vendor_getrf(s->lane, &c, more, at);
    else if (w->kind == BENCH_PEER_QR)
        code = fl_vendor_geqrf(s->lane, &c, more, at);
    else
        code = fl_vendor_potrf(s->lane, &c, &info);
    if (code == 0)
        return FILCH_OK;
    if (!fl_vendor_explain(code, error))
        (void)bench_fail(error, FILCH_BACKEND, "--versus", 0, "code %d", code);
    return FILCH_BACKEND;
}

static filch_status fetch(void *opaque, filch_error *error)
{
    state *s = opaque;
    return copy_out(s, s->one.work->c, C, bytes_of(s->one.work), error);
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    const bench_peer_work *w = s->one.work;
    int info = 0;
    size_t bytes;
    void *more = more_of(w, &bytes);
    filch_status status = bench_one_call_time(&s->one, bring, compute, fetch, error, seconds);
    if (status == FILCH_OK && is_factorization(w))
        status = copy_out(s, &info, INFO, sizeof info, error);
    if (status == FILCH_OK && more)
        status = copy_out(s, more, MORE, bytes, error);
    if (status == FILCH_OK)
        status = bench_gpu_wait(&s->one.gpu, s->one.stream, error);
    if (status == FILCH_OK && info != 0)
        status = bench_fail(error, FILCH_DATA, "cusolver", 0, "cuSOLVER's info is %d", info);
    return status;
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    static const bench_one_call_steps steps = {.size = sizeof(state),
                                               .load = load,
                                               .unload = unload,
                                               .start = start,
                                               .stop = stop,
                                               .run = run};
    return bench_one_call_setup(&steps, work, error, out);
}

const bench_peer bench_peer_cublas = {
    .name = "cublas",
    .description = "one call of cuBLAS for the whole product or solve, on one GPU",
    .supports = supports_blas,
    .setup = setup,
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .has_single = true,
    .needs_gpu = true,
};

const bench_peer bench_peer_cusolver = {
    .name = "cusolver",
    .description = "one call of cuSOLVER for the whole factorization, on one GPU",
    .supports = supports_factorization,
    .setup = setup,
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .has_single = true,
    .needs_gpu = true,
};
