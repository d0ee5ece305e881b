/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients as one writes them by hand for one GPU: cuSPARSE multiplies by the matrix,
 * cuBLAS makes dot products and moves solution and residual, and two kernels make scalars and the
 * next direction. All scalars stay on the GPU, so that the host puts iteration after iteration on a
 * stream and waits for none. Of cuSPARSE's algorithms the fastest is tried out beforehand. */
#include "kernels/vendor/library.h"
#include "peers/one_call.h"
#include "problems/cg.h"
#include "support/fail.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Values of cusparseIndexType_t, cudaDataType_t and the like. */
enum { INDEX_32 = 2, BASE_0 = 0, REAL_64 = 1, NOT_TRANSPOSED = 0, POINTERS_ON_DEVICE = 1 };

#define THREADS 256

/* X(member, symbol, parameters): handles and descriptors are pointers, enumerations ints.
 * Prototypes as in cublas_api.h and cusparse.h of CUDA 12.0 to 13.0. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define BLAS_CALLS(X)                                                                    \
    X(blas_create, "cublasCreate_v2", (void **handle))                                   \
    X(blas_destroy, "cublasDestroy_v2", (void *handle))                                  \
    X(blas_stream, "cublasSetStream_v2", (void *handle, void *stream))                   \
    X(blas_pointers, "cublasSetPointerMode_v2", (void *handle, int mode))                \
    X(dot, "cublasDdot_v2",                                                              \
      (void *handle, int n, const double *x, int step_x, const double *y, int step_y,    \
       double *sum))                                                                     \
    X(axpy, "cublasDaxpy_v2",                                                            \
      (void *handle, int n, const double *alpha, const double *x, int step_x, double *y, \
       int step_y))
#define SPARSE_CALLS(X)                                                                         \
    X(sparse_create, "cusparseCreate", (void **handle))                                         \
    X(sparse_destroy, "cusparseDestroy", (void *handle))                                        \
    X(sparse_stream, "cusparseSetStream", (void *handle, void *stream))                         \
    X(matrix_create, "cusparseCreateCsr",                                                       \
      (void **matrix, int64_t rows, int64_t columns, int64_t elements, void *starts,            \
       void *indices, void *values, int start_type, int index_type, int base, int type))        \
    X(matrix_destroy, "cusparseDestroySpMat", (void *matrix))                                   \
    X(vector_create, "cusparseCreateDnVec",                                                     \
      (void **vector, int64_t elements, void *values, int type))                                \
    X(vector_destroy, "cusparseDestroyDnVec", (void *vector))                                   \
    X(work_size, "cusparseSpMV_bufferSize",                                                     \
      (void *handle, int operation, const void *alpha, void *matrix, void *x, const void *beta, \
       void *y, int type, int algorithm, size_t *bytes))                                        \
    X(multiply, "cusparseSpMV",                                                                 \
      (void *handle, int operation, const void *alpha, void *matrix, void *x, const void *beta, \
       void *y, int type, int algorithm, void *work))

enum block { STARTS, COLUMNS, VALUES, RIGHT, X, R, P, Q, SCALARS, WORK };

/* In the block of that name. Of the two sums of the residual's square one is the last iteration's
 * and one the next one's, by turns. */
enum scalar { RR, RR_NEXT, PQ, ALPHA, MINUS_ALPHA, BETA, MINUS_BETA, SCALAR_COUNT };

typedef struct state {
    bench_one_call one; /* the first member */
    void *blas, *sparse, *matrix, *p, *q;
    CUmodule module;
    CUfunction ratio, combine;
    double *right; /* side, on the host */
    size_t work_bytes;
    int algorithm;
    char setting[24];
    /* Null: this cuSPARSE has no preparation of repeated products. */
    int (*prepare)(void *handle, int operation, const void *alpha, void *matrix, void *x,
                   const void *beta, void *y, int type, int algorithm, void *work);
    struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
        BLAS_CALLS(MEMBER) SPARSE_CALLS(MEMBER)
#undef MEMBER
    } call;
} state;

#define SYMBOL(member, symbol, parameters) {symbol, offsetof(state, call.member)},
static const fl_symbol blas_symbols[] = {BLAS_CALLS(SYMBOL)};
static const fl_symbol sparse_symbols[] = {SPARSE_CALLS(SYMBOL)};
#undef SYMBOL
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct {
    const char *name;
    int value; /* of cusparseSpMVAlg_t */
} algorithms[] = {{"default", 0}, {"csr_alg1", 2}, {"csr_alg2", 3}};

/* ratio(above, below, value, minus): *value = *above / *below, 0 where that is not above 0, and
 * *minus = -*value. combine(p, r, beta, count): p = r + *beta p, an element a thread. */
static const char kernels[] = ".version 6.3\n"
                              ".target sm_75\n"
                              ".address_size 64\n"
                              ".visible .entry ratio(.param .u64 above, .param .u64 below,\n"
                              "                      .param .u64 value, .param .u64 minus)\n"
                              "{\n"
                              "    .reg .u64 %a<4>;\n"
                              "    .reg .f64 %v<4>;\n"
                              "    .reg .pred %is_above;\n"
                              "    ld.param.u64 %a0, [above];\n"
                              "    ld.param.u64 %a1, [below];\n"
                              "    ld.param.u64 %a2, [value];\n"
                              "    ld.param.u64 %a3, [minus];\n"
                              "    ld.global.f64 %v0, [%a0];\n"
                              "    ld.global.f64 %v1, [%a1];\n"
                              "    mov.f64 %v2, 0d0000000000000000;\n"
                              "    setp.gt.f64 %is_above, %v1, %v2;\n"
                              "    @%is_above div.rn.f64 %v2, %v0, %v1;\n"
                              "    neg.f64 %v3, %v2;\n"
                              "    st.global.f64 [%a2], %v2;\n"
                              "    st.global.f64 [%a3], %v3;\n"
                              "    ret;\n"
                              "}\n"
                              ".visible .entry combine(.param .u64 p, .param .u64 r,\n"
                              "                        .param .u64 beta, .param .u64 count)\n"
                              "{\n"
                              "    .reg .u64 %a<5>;\n"
                              "    .reg .u32 %i<3>;\n"
                              "    .reg .f64 %v<3>;\n"
                              "    .reg .pred %is_beyond;\n"
                              "    ld.param.u64 %a0, [p];\n"
                              "    ld.param.u64 %a1, [r];\n"
                              "    ld.param.u64 %a2, [beta];\n"
                              "    ld.param.u64 %a3, [count];\n"
                              "    mov.u32 %i0, %ctaid.x;\n"
                              "    mov.u32 %i1, %ntid.x;\n"
                              "    mov.u32 %i2, %tid.x;\n"
                              "    cvt.u64.u32 %a4, %i2;\n"
                              "    mad.wide.u32 %a4, %i0, %i1, %a4;\n"
                              "    setp.ge.u64 %is_beyond, %a4, %a3;\n"
                              "    @%is_beyond ret;\n"
                              "    shl.b64 %a4, %a4, 3;\n"
                              "    add.u64 %a0, %a0, %a4;\n"
                              "    add.u64 %a1, %a1, %a4;\n"
                              "    ld.global.f64 %v0, [%a2];\n"
                              "    ld.global.f64 %v1, [%a0];\n"
                              "    ld.global.f64 %v2, [%a1];\n"
                              "    fma.rn.f64 %v1, %v0, %v1, %v2;\n"
                              "    st.global.f64 [%a0], %v1;\n"
                              "    ret;\n"
                              "}\n";

static bool supports(bench_peer_kind kind)
{
    return kind == BENCH_PEER_CG;
}

static const bench_cg_system *system_of(const state *s)
{
    return s->one.work->problem;
}

static filch_status blas(int code, const char *call, filch_error *error)
{
    return bench_one_call_check("cuBLAS", code, call, error);
}

static filch_status sparse(int code, const char *call, filch_error *error)
{
    return bench_one_call_check("cuSPARSE", code, call, error);
}

static filch_status check(const state *s, CUresult result, const char *call, filch_error *error)
{
    return bench_gpu_check(&s->one.gpu, result, call, error);
}

static double *vector_of(const state *s, enum block which)
{
    return bench_gpu_pointer(s->one.blocks[which]);
}

static double *scalar_of(const state *s, enum scalar which)
{
    return vector_of(s, SCALARS) + which;
}

/* --- The loop --- */

static filch_status launch(const state *s, CUfunction kernel, unsigned blocks, unsigned threads,
                           void **params, filch_error *error)
{
    return check(
        s,
        bench_gpu_api(&s->one.gpu)
            ->cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, s->one.stream, params, NULL),
        "cuLaunchKernel", error);
}

static filch_status divide(const state *s, enum scalar above, enum scalar below, enum scalar value,
                           enum scalar minus, filch_error *error)
{
    double *at[4] = {scalar_of(s, above), scalar_of(s, below), scalar_of(s, value),
                     scalar_of(s, minus)};
    void *params[4] = {&at[0], &at[1], &at[2], &at[3]};
    return launch(s, s->ratio, 1, 1, params, error);
}

static filch_status combine(const state *s, filch_error *error)
{
    double *p = vector_of(s, P), *r = vector_of(s, R), *beta = scalar_of(s, BETA);
    uint64_t count = system_of(s)->rows;
    void *params[4] = {&p, &r, &beta, &count};
    return launch(s, s->combine, (unsigned)((count + THREADS - 1) / THREADS), THREADS, params,
                  error);
}

static filch_status dot(const state *s, enum block x, enum block y, enum scalar sum,
                        filch_error *error)
{
    return blas(s->call.dot(s->blas, (int)system_of(s)->rows, vector_of(s, x), 1, vector_of(s, y),
                            1, scalar_of(s, sum)),
                "cublasDdot", error);
}

static filch_status axpy(const state *s, enum scalar alpha, enum block x, enum block y,
                         filch_error *error)
{
    return blas(s->call.axpy(s->blas, (int)system_of(s)->rows, scalar_of(s, alpha), vector_of(s, x),
                             1, vector_of(s, y), 1),
                "cublasDaxpy", error);
}

static filch_status multiply(const state *s, filch_error *error)
{
    const double one = 1, zero = 0;
    return sparse(s->call.multiply(s->sparse, NOT_TRANSPOSED, &one, s->matrix, s->p, &zero, s->q,
                                   REAL_64, s->algorithm, vector_of(s, WORK)),
                  "cusparseSpMV", error);
}

static filch_status iterate(const state *s, enum scalar rr, enum scalar rr_next, filch_error *error)
{
    filch_status status = multiply(s, error);
    if (status == FILCH_OK)
        status = dot(s, P, Q, PQ, error);
    if (status == FILCH_OK)
        status = divide(s, rr, PQ, ALPHA, MINUS_ALPHA, error);
    if (status == FILCH_OK)
        status = axpy(s, ALPHA, P, X, error);
    if (status == FILCH_OK)
        status = axpy(s, MINUS_ALPHA, Q, R, error);
    if (status == FILCH_OK)
        status = dot(s, R, R, rr_next, error);
    if (status == FILCH_OK)
        status = divide(s, rr_next, rr, BETA, MINUS_BETA, error);
    return status == FILCH_OK ? combine(s, error) : status;
}

static filch_status compute(void *opaque, filch_error *error)
{
    const state *s = opaque;
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < system_of(s)->iterations && status == FILCH_OK; k++)
        status = iterate(s, k % 2 ? RR_NEXT : RR, k % 2 ? RR : RR_NEXT, error);
    return status;
}

/* --- Around it --- */

static size_t bytes_of(const state *s, enum block which)
{
    const bench_cg_system *a = system_of(s);
    size_t elements = a->starts[a->rows];
    switch (which) {
    case STARTS:
        return (a->rows + 1) * sizeof *a->starts;
    case COLUMNS:
        return elements * sizeof *a->columns;
    case VALUES:
        return elements * sizeof *a->values;
    case SCALARS:
        return SCALAR_COUNT * sizeof(double);
    case WORK:
        return s->work_bytes;
    default:
        return a->rows * sizeof(double);
    }
}

static filch_status send(const state *s, enum block to, const void *from, filch_error *error)
{
    const bench_one_call *o = &s->one;
    return bench_gpu_send(&o->gpu, o->blocks[to], from, bytes_of(s, to), o->stream, error);
}

static filch_status send_system(const state *s, filch_error *error)
{
    const bench_cg_system *a = system_of(s);
    filch_status status = send(s, STARTS, a->starts, error);
    if (status == FILCH_OK)
        status = send(s, COLUMNS, a->columns, error);
    if (status == FILCH_OK)
        status = send(s, VALUES, a->values, error);
    return status == FILCH_OK ? send(s, RIGHT, s->right, error) : status;
}

static filch_status copy_right(const state *s, enum block to, filch_error *error)
{
    const bench_one_call *o = &s->one;
    return bench_gpu_copy(&o->gpu, o->blocks[to], o->blocks[RIGHT], bytes_of(s, to), o->stream,
                          error);
}

/* x = 0, r = p = the right side, and its square. */
static filch_status bring(void *opaque, filch_error *error)
{
    const state *s = opaque;
    const bench_one_call *o = &s->one;
    filch_status status = o->work->is_resident ? FILCH_OK : send_system(s, error);
    if (status == FILCH_OK)
        status = check(
            s, bench_gpu_api(&o->gpu)->cuMemsetD8Async(o->blocks[X], 0, bytes_of(s, X), o->stream),
            "cuMemsetD8Async", error);
    if (status == FILCH_OK)
        status = copy_right(s, R, error);
    if (status == FILCH_OK)
        status = copy_right(s, P, error);
    return status == FILCH_OK ? dot(s, R, R, RR, error) : status;
}

static filch_status fetch(void *opaque, filch_error *error)
{
    const state *s = opaque;
    const bench_one_call *o = &s->one;
    return bench_gpu_fetch(&o->gpu, o->work->c, o->blocks[X], bytes_of(s, X), o->stream, error);
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    return bench_one_call_time(opaque, bring, compute, fetch, error, seconds);
}

/* --- The best algorithm --- */

static filch_status fit_work(state *s, size_t bytes, filch_error *error)
{
    if (bytes <= s->work_bytes)
        return FILCH_OK;
    bench_gpu_free(&s->one.gpu, &s->one.blocks[WORK]);
    s->work_bytes = 0;
    filch_status status = bench_gpu_alloc(&s->one.gpu, &s->one.blocks[WORK], bytes, error);
    s->work_bytes = status == FILCH_OK ? bytes : 0;
    return status;
}

static filch_status choose(state *s, size_t k, filch_error *error)
{
    const double one = 1, zero = 0;
    size_t bytes = 0;
    s->algorithm = algorithms[k].value;
    snprintf(s->setting, sizeof s->setting, "%s", algorithms[k].name);
    filch_status status = sparse(s->call.work_size(s->sparse, NOT_TRANSPOSED, &one, s->matrix, s->p,
                                                   &zero, s->q, REAL_64, s->algorithm, &bytes),
                                 "cusparseSpMV_bufferSize", error);
    if (status == FILCH_OK)
        status = fit_work(s, bytes, error);
    return status == FILCH_OK && s->prepare
               ? sparse(s->prepare(s->sparse, NOT_TRANSPOSED, &one, s->matrix, s->p, &zero, s->q,
                                   REAL_64, s->algorithm, vector_of(s, WORK)),
                        "cusparseSpMV_preprocess", error)
               : status;
}

/* The better of two runs. One that fails is passed over. */
static filch_status tune(state *s, filch_error *error)
{
    double least = INFINITY;
    size_t best = 0;
    filch_status any = FILCH_BACKEND;
    for (size_t k = 0; k < sizeof algorithms / sizeof *algorithms; k++) {
        double first = INFINITY, second = INFINITY;
        if (choose(s, k, error) != FILCH_OK || run(s, error, &first) != FILCH_OK ||
            run(s, error, &second) != FILCH_OK || fmin(first, second) >= least)
            continue;
        any = FILCH_OK;
        least = fmin(first, second);
        best = k;
    }
    return any == FILCH_OK ? choose(s, best, error) : any;
}

/* --- Begin and end --- */

static filch_status make_right(state *s, filch_error *error)
{
    const bench_cg_system *a = system_of(s);
    double *x = s->one.work->c;
    s->right = malloc(a->rows * sizeof *s->right);
    if (!s->right)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    for (size_t b = 0; b < a->blocks; b++) {
        size_t lo = bench_cg_row(a, b);
        (void)bench_cg_init(a, b, x + lo, s->right + lo, s->right + lo);
    }
    return FILCH_OK;
}

static filch_status make_kernels(state *s, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&s->one.gpu);
    filch_status status = check(s, api->cuModuleLoadDataEx(&s->module, kernels, 0, NULL, NULL),
                                "cuModuleLoadDataEx", error);
    if (status == FILCH_OK)
        status = check(s, api->cuModuleGetFunction(&s->ratio, s->module, "ratio"),
                       "cuModuleGetFunction", error);
    return status == FILCH_OK
               ? check(s, api->cuModuleGetFunction(&s->combine, s->module, "combine"),
                       "cuModuleGetFunction", error)
               : status;
}

static filch_status make_blas(state *s, filch_error *error)
{
    filch_status status = blas(s->call.blas_create(&s->blas), "cublasCreate", error);
    if (status == FILCH_OK)
        status = blas(s->call.blas_stream(s->blas, s->one.stream), "cublasSetStream", error);
    return status == FILCH_OK ? blas(s->call.blas_pointers(s->blas, POINTERS_ON_DEVICE),
                                     "cublasSetPointerMode", error)
                              : status;
}

static filch_status make_sparse(state *s, filch_error *error)
{
    const bench_cg_system *a = system_of(s);
    int64_t rows = (int64_t)a->rows;
    filch_status status = sparse(s->call.sparse_create(&s->sparse), "cusparseCreate", error);
    if (status == FILCH_OK)
        status =
            sparse(s->call.sparse_stream(s->sparse, s->one.stream), "cusparseSetStream", error);
    if (status == FILCH_OK)
        status =
            sparse(s->call.matrix_create(&s->matrix, rows, rows, a->starts[a->rows],
                                         vector_of(s, STARTS), vector_of(s, COLUMNS),
                                         vector_of(s, VALUES), INDEX_32, INDEX_32, BASE_0, REAL_64),
                   "cusparseCreateCsr", error);
    if (status == FILCH_OK)
        status = sparse(s->call.vector_create(&s->p, rows, vector_of(s, P), REAL_64),
                        "cusparseCreateDnVec", error);
    return status == FILCH_OK ? sparse(s->call.vector_create(&s->q, rows, vector_of(s, Q), REAL_64),
                                       "cusparseCreateDnVec", error)
                              : status;
}

static filch_status start(void *opaque, filch_error *error)
{
    state *s = opaque;
    filch_status status = bench_gpu_stream(&s->one.gpu, &s->one.stream, error);
    for (size_t k = STARTS; k < WORK && status == FILCH_OK; k++)
        status = bench_gpu_alloc(&s->one.gpu, &s->one.blocks[k], bytes_of(s, (enum block)k), error);
    if (status == FILCH_OK)
        status = make_right(s, error);
    if (status == FILCH_OK)
        status = make_kernels(s, error);
    if (status == FILCH_OK)
        status = make_blas(s, error);
    if (status == FILCH_OK)
        status = make_sparse(s, error);
    if (status == FILCH_OK)
        status = send_system(s, error);
    return status == FILCH_OK ? tune(s, error) : status;
}

static void stop(void *opaque)
{
    state *s = opaque;
    if (s->q)
        (void)s->call.vector_destroy(s->q);
    if (s->p)
        (void)s->call.vector_destroy(s->p);
    if (s->matrix)
        (void)s->call.matrix_destroy(s->matrix);
    if (s->sparse)
        (void)s->call.sparse_destroy(s->sparse);
    if (s->blas)
        (void)s->call.blas_destroy(s->blas);
    if (s->module)
        (void)bench_gpu_api(&s->one.gpu)->cuModuleUnload(s->module);
}

static void unload(void *opaque)
{
    free(((state *)opaque)->right);
}

static filch_status load(void *opaque, filch_error *error)
{
    state *s = opaque;
    int driver = bench_gpu_driver(&s->one.gpu);
    filch_status status = fl_library_load(fl_cublas_names, "cuBLAS", driver, blas_symbols,
                                          sizeof blas_symbols / sizeof *blas_symbols, s, error);
    if (status == FILCH_OK)
        status = fl_library_load(fl_cusparse_names, "cuSPARSE", driver, sparse_symbols,
                                 sizeof sparse_symbols / sizeof *sparse_symbols, s, error);
    if (status == FILCH_OK)
        (void)fl_library_find(fl_library_open(fl_cusparse_names, driver), "cusparseSpMV_preprocess",
                              (void *)&s->prepare, NULL);
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

static const char *setting(const void *opaque)
{
    return ((const state *)opaque)->setting;
}

const bench_peer bench_peer_cusparse = {
    .name = "cusparse",
    .description = "a loop over cuSPARSE and cuBLAS, on one GPU, best algorithm",
    .supports = supports,
    .setup = setup,
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .setting = setting,
    .needs_gpu = true,
};
