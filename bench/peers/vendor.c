/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS and cuSOLVER on whole matrices, on one GPU. */
#include "kernels/vendor/blas.h"
#include "kernels/vendor/library.h"
#include "kernels/vendor/panel.h"
#include "peers/one_call.h"
#include "support/fail.h"

/* What kernels/vendor/ has no use for. X(member, symbol, parameters): handles are pointers,
 * enumerations ints. Prototypes as in cusolverDn.h of CUDA 12.0 to 13.0. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define SOLVES(X, p, P, real)                                                                      \
    X(p##potrs, "cusolverDn" #P "potrs",                                                           \
      (void *handle, int fill, int n, int count, const real *a, int lda, real *b, int ldb,         \
       int *info))                                                                                 \
    X(p##getrs, "cusolverDn" #P "getrs",                                                           \
      (void *handle, int op, int n, int count, const real *a, int lda, const int *pivots, real *b, \
       int ldb, int *info))
#define CALLS(X)                                                       \
    X(create, "cusolverDnCreate", (void **handle))                     \
    X(destroy, "cusolverDnDestroy", (void *handle))                    \
    X(set_stream, "cusolverDnSetStream", (void *handle, void *stream)) \
    SOLVES(X, d, D, double)                                            \
    SOLVES(X, s, S, float)

/* Of a factorization A and C are the input and the factor, and MORE its pivots or tau; of a solve A
 * is the triangle or the factors, B the right sides, C the solutions, and MORE LU's pivots. */
enum block { A, B, C, INFO, MORE };

typedef struct state {
    bench_one_call one; /* the first member */
    fl_vendor *vendor;
    fl_vendor_lane *lane;
    void *solver; /* cuSOLVER's handle, for systems */
    struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
        CALLS(MEMBER)
#undef MEMBER
    } call; /* likewise */
} state;

#define SYMBOL(member, symbol, parameters) {symbol, offsetof(state, call.member)},
static const fl_symbol symbols[] = {CALLS(SYMBOL)};
#undef SYMBOL
/* NOLINTEND(bugprone-macro-parentheses) */

/* C is written, whatever it was. */
static bool is_product(const bench_peer_work *work)
{
    return work->kind == BENCH_PEER_GEMM || work->kind == BENCH_PEER_SYRK;
}

/* By factors. */
static bool is_system(const bench_peer_work *work)
{
    return work->kind == BENCH_PEER_POTRS || work->kind == BENCH_PEER_GETRS;
}

static bool is_solve(const bench_peer_work *work)
{
    return work->kind == BENCH_PEER_TRSM || is_system(work);
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

static bool supports_lapack(bench_peer_kind kind)
{
    return kind == BENCH_PEER_CHOLESKY || kind == BENCH_PEER_LU || kind == BENCH_PEER_QR ||
           kind == BENCH_PEER_POTRS || kind == BENCH_PEER_GETRS;
}

static size_t bytes_of(const bench_peer_work *work)
{
    return work->n * work->n * work->kernels->element;
}

/* What the factorization gives beside the matrix, or gave, and its bytes. */
static void *more_of(const bench_peer_work *work, size_t *bytes)
{
    bool is_lu = work->kind == BENCH_PEER_LU || work->kind == BENCH_PEER_GETRS;
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
    filch_status status = fl_vendor_open(&s->one.gpu.library, error, &s->vendor);
    if (status != FILCH_OK || !is_system(s->one.work))
        return status;
    return fl_library_load(fl_cusolver_names, "cuSOLVER", bench_gpu_driver(&s->one.gpu), symbols,
                           sizeof symbols / sizeof *symbols, s, error);
}

static void unload(void *opaque)
{
    fl_vendor_close(((state *)opaque)->vendor);
}

static void stop(void *opaque)
{
    state *s = opaque;
    if (s->solver)
        (void)s->call.destroy(s->solver);
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

static filch_status copy_more_in(state *s, filch_error *error)
{
    const bench_one_call *o = &s->one;
    size_t bytes;
    const void *more = more_of(o->work, &bytes);
    return more ? bench_gpu_send(&o->gpu, o->blocks[MORE], more, bytes, o->stream, error)
                : FILCH_OK;
}

static filch_status start_solver(state *s, filch_error *error)
{
    filch_status status =
        bench_one_call_check("cuSOLVER", s->call.create(&s->solver), "cusolverDnCreate", error);
    return status == FILCH_OK
               ? bench_one_call_check("cuSOLVER", s->call.set_stream(s->solver, s->one.stream),
                                      "cusolverDnSetStream", error)
               : status;
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
    if (status == FILCH_OK && is_system(w))
        status = start_solver(s, error);
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
    if (status == FILCH_OK && is_system(w))
        status = copy_more_in(s, error);
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
    return status == FILCH_OK && is_system(w) ? copy_more_in(s, error) : status;
}

static filch_status solve(state *s, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    void *at[BENCH_ONE_CALL_BLOCKS];
    int n = (int)w->n;
    bool is_double = w->kernels->element == sizeof(double), is_lu = w->kind == BENCH_PEER_GETRS;
    for (size_t k = 0; k < BENCH_ONE_CALL_BLOCKS; k++)
        at[k] = bench_gpu_pointer(s->one.blocks[k]);
    int code;
    if (is_lu && is_double)
        code =
            s->call.dgetrs(s->solver, FL_VENDOR_OP_N, n, n, at[A], n, at[MORE], at[C], n, at[INFO]);
    else if (is_lu)
        code =
            s->call.sgetrs(s->solver, FL_VENDOR_OP_N, n, n, at[A], n, at[MORE], at[C], n, at[INFO]);
    else if (is_double)
        code = s->call.dpotrs(s->solver, FL_VENDOR_FILL_LOWER, n, n, at[A], n, at[C], n, at[INFO]);
    else
        code = s->call.spotrs(s->solver, FL_VENDOR_FILL_LOWER, n, n, at[A], n, at[C], n, at[INFO]);
    return bench_one_call_check("cuSOLVER", code, is_lu ? "getrs" : "potrs", error);
}

static filch_status compute(void *opaque, filch_error *error)
{
    state *s = opaque;
    const bench_peer_work *w = s->one.work;
    if (is_system(w))
        return solve(s, error);
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
    if (status == FILCH_OK && (is_factorization(w) || is_system(w)))
        status = copy_out(s, &info, INFO, sizeof info, error);
    if (status == FILCH_OK && more && is_factorization(w))
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
    .description = "one call of cuSOLVER for the whole factorization or solve, on one GPU",
    .supports = supports_lapack,
    .setup = setup,
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .has_single = true,
    .needs_gpu = true,
};
