/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVERMg: one call for the whole factorization, on all GPUs of the run. The matrix lies on
 * them in blocks of columns, dealt out in turn, and the pivots of LU as a row of such a matrix;
 * neither that nor fetching the factor is timed. The width of a block is tried out beforehand. */
#include "kernels/vendor/library.h"
#include "peers/one_call.h"
#include "support/fail.h"
#include "support/timing.h"

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
       int64_t elements, int *info))                                                               \
    X(getrf_size, "cusolverMgGetrf_bufferSize",                                                    \
      (void *handle, int m, int n, void **a, int ia, int ja, void *desc, int **pivots, int type,   \
       int64_t *elements))                                                                         \
    X(getrf, "cusolverMgGetrf",                                                                    \
      (void *handle, int m, int n, void **a, int ia, int ja, void *desc, int **pivots, int type,   \
       void **work, int64_t elements, int *info))

typedef struct part {
    bench_gpu gpu;
    CUstream stream;
    CUdeviceptr columns; /* its blocks, side by side */
    CUdeviceptr pivots;  /* of these columns; 0: none */
    CUdeviceptr work;
} part;

/* Of all GPUs, as the calls take them. */
typedef struct places {
    void *columns[BENCH_PEER_GPUS];
    int *pivots[BENCH_PEER_GPUS];
    void *work[BENCH_PEER_GPUS];
} places;

typedef struct state {
    bench_one_call one; /* the first member */
    size_t block;
    void *handle;
    void *grid;
    void *desc;
    int64_t elements; /* of each GPU's work memory */
    char setting[BENCH_ONE_CALL_SETTING];
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
    return kind == BENCH_PEER_CHOLESKY || kind == BENCH_PEER_LU;
}

static bool is_lu(const state *s)
{
    return s->one.work->kind == BENCH_PEER_LU;
}

static size_t element(const state *s)
{
    return s->one.work->kernels->element;
}

static int type_of(const state *s)
{
    return element(s) == sizeof(double) ? REAL_DOUBLE : REAL_SINGLE;
}

static filch_status check(int code, const char *call, filch_error *error)
{
    return bench_one_call_check("cuSOLVERMg", code, call, error);
}

typedef filch_status (*part_step)(state *s, part *p, filch_error *error);

/* A step for each GPU, with its context current, up to the first that fails. */
static filch_status each(state *s, part_step step, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (unsigned k = 0; k < s->one.work->gpu_count && status == FILCH_OK; k++) {
        part *p = &s->parts[k];
        status = bench_gpu_enter(&p->gpu, error);
        if (status != FILCH_OK)
            break;
        status = step(s, p, error);
        bench_gpu_leave(&p->gpu);
    }
    return status;
}

/* --- The matrix on the GPUs --- */

static void lay_down(state *s)
{
    for (unsigned k = 0; k < s->one.work->gpu_count; k++) {
        part *p = &s->parts[k];
        if (!p->gpu.context || bench_gpu_enter(&p->gpu, NULL) != FILCH_OK)
            continue;
        bench_gpu_free(&p->gpu, &p->columns);
        bench_gpu_free(&p->gpu, &p->pivots);
        bench_gpu_free(&p->gpu, &p->work);
        bench_gpu_leave(&p->gpu);
    }
    if (s->desc)
        (void)s->call.desc_destroy(s->desc);
    s->desc = NULL;
}

static places places_of(const state *s)
{
    places all = {0};
    for (unsigned k = 0; k < s->one.work->gpu_count; k++) {
        all.columns[k] = bench_gpu_pointer(s->parts[k].columns);
        all.pivots[k] = bench_gpu_pointer(s->parts[k].pivots);
        all.work[k] = bench_gpu_pointer(s->parts[k].work);
    }
    return all;
}

/* Every GPU has room for as many blocks as the one with the most. */
static filch_status take_columns(state *s, part *p, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    size_t blocks = (w->n + s->block - 1) / s->block;
    size_t columns = (blocks + w->gpu_count - 1) / w->gpu_count * s->block;
    filch_status status = bench_gpu_alloc(&p->gpu, &p->columns, columns * w->n * element(s), error);
    return status == FILCH_OK && is_lu(s)
               ? bench_gpu_alloc(&p->gpu, &p->pivots, columns * sizeof *w->pivots, error)
               : status;
}

static filch_status take_work(state *s, part *p, filch_error *error)
{
    return s->elements == 0
               ? FILCH_OK
               : bench_gpu_alloc(&p->gpu, &p->work, (size_t)s->elements * element(s), error);
}

static filch_status ask_elements(state *s, filch_error *error)
{
    places at = places_of(s);
    int n = (int)s->one.work->n, type = type_of(s);
    if (is_lu(s))
        return check(s->call.getrf_size(s->handle, n, n, at.columns, 1, 1, s->desc, at.pivots, type,
                                        &s->elements),
                     "cusolverMgGetrf_bufferSize", error);
    return check(
        s->call.potrf_size(s->handle, FILL_LOWER, n, at.columns, 1, 1, s->desc, type, &s->elements),
        "cusolverMgPotrf_bufferSize", error);
}

/* Room for blocks of this width, and what the library needs to work in. */
static filch_status lay_out(void *opaque, size_t block, filch_error *error)
{
    state *s = opaque;
    int64_t n = (int64_t)s->one.work->n;
    lay_down(s);
    s->block = block;
    filch_status status = each(s, take_columns, error);
    if (status == FILCH_OK)
        status = check(s->call.desc_create(&s->desc, n, n, n, (int64_t)block, type_of(s), s->grid),
                       "cusolverMgCreateMatrixDesc", error);
    if (status == FILCH_OK)
        status = ask_elements(s, error);
    return status == FILCH_OK ? each(s, take_work, error) : status;
}

/* Copies one GPU's share of columns of so many bytes, from the host or, where `from` is null, to
 * it. */
static filch_status deal(const state *s, const part *p, CUdeviceptr base, size_t column,
                         const char *from, char *to, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    filch_status status = FILCH_OK;
    for (size_t at = (size_t)(p - s->parts) * s->block, local = 0; at < w->n && status == FILCH_OK;
         at += w->gpu_count * s->block, local += s->block) {
        size_t bytes = (w->n - at < s->block ? w->n - at : s->block) * column;
        CUdeviceptr there = base + local * column;
        status = from ? bench_gpu_send(&p->gpu, there, from + at * column, bytes, p->stream, error)
                      : bench_gpu_fetch(&p->gpu, to + at * column, there, bytes, p->stream, error);
    }
    return status;
}

static filch_status bring_part(state *s, part *p, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    filch_status status = deal(s, p, p->columns, w->n * element(s), w->a, NULL, error);
    return status == FILCH_OK ? bench_gpu_wait(&p->gpu, p->stream, error) : status;
}

static filch_status fetch_part(state *s, part *p, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    filch_status status = deal(s, p, p->columns, w->n * element(s), NULL, w->c, error);
    if (status == FILCH_OK && is_lu(s))
        status = deal(s, p, p->pivots, sizeof *w->pivots, NULL, (char *)w->pivots, error);
    return status == FILCH_OK ? bench_gpu_wait(&p->gpu, p->stream, error) : status;
}

static filch_status wait_part(state *s, part *p, filch_error *error)
{
    return bench_gpu_check(&p->gpu, s->context_wait(), "cuCtxSynchronize", error);
}

/* --- Running --- */

static filch_status call(state *s, int *info, filch_error *error)
{
    places at = places_of(s);
    int n = (int)s->one.work->n, type = type_of(s);
    if (is_lu(s))
        return check(s->call.getrf(s->handle, n, n, at.columns, 1, 1, s->desc, at.pivots, type,
                                   at.work, s->elements, info),
                     "cusolverMgGetrf", error);
    return check(s->call.potrf(s->handle, FILL_LOWER, n, at.columns, 1, 1, s->desc, type, at.work,
                               s->elements, info),
                 "cusolverMgPotrf", error);
}

static filch_status factor(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    int info = 0;
    filch_status status = each(s, bring_part, error);
    if (status != FILCH_OK)
        return status;
    double begin = bench_now_s();
    status = call(s, &info, error);
    if (status == FILCH_OK)
        status = each(s, wait_part, error);
    *seconds = bench_now_s() - begin;
    if (status == FILCH_OK && info != 0)
        status = bench_fail(error, FILCH_DATA, "cusolvermg", 0, "cuSOLVERMg's info is %d", info);
    return status;
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

static filch_status make_stream(state *s, part *p, filch_error *error)
{
    (void)s;
    return bench_gpu_stream(&p->gpu, &p->stream, error);
}

static filch_status open_parts(state *s, filch_error *error)
{
    const bench_peer_work *w = s->one.work;
    filch_status status = FILCH_OK;
    for (unsigned k = 0; k < w->gpu_count && status == FILCH_OK; k++)
        status = bench_gpu_open(&s->parts[k].gpu, w->gpus[k], error);
    if (status == FILCH_OK)
        status = each(s, make_stream, error);
    for (unsigned k = 0; k < w->gpu_count * w->gpu_count && status == FILCH_OK; k++)
        if (k / w->gpu_count != k % w->gpu_count)
            status = join(s, k / w->gpu_count, k % w->gpu_count, error);
    return status;
}

/* The library does not tell the loader where cuBLAS and its other needs are; cuSOLVER, which needs
 * them too, finds them beside itself. */
static filch_status load(void *opaque, filch_error *error)
{
    state *s = opaque;
    int driver = bench_gpu_driver(&s->one.gpu);
    const fl_symbol wait_symbol = {"cuCtxSynchronize", offsetof(state, context_wait)};
    filch_status status = open_parts(s, error);
    (void)fl_library_open(fl_cusolver_names, driver);
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
    static const bench_one_call_tuning tuning = {
        .blocks = {256, 512, 1024, 2048}, .set = lay_out, .once = factor};
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
    return status == FILCH_OK ? bench_one_call_tune(&s->one, &tuning, s->setting, error) : status;
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
    filch_status status = factor(opaque, error, seconds);
    return status == FILCH_OK ? each(opaque, fetch_part, error) : status;
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
    .lacks = "of factorizations cuSOLVERMg declares cusolverMgPotrf and cusolverMgGetrf, none by "
             "QR",
    .setup = setup,
    .run = bench_one_call_run,
    .teardown = bench_one_call_teardown,
    .setting = setting,
    .has_single = true,
    .needs_gpu = true,
};
