/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "offload/vendor_lane.h"

#include "offload/library.h"
#include "support/fail.h"
#include "support/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Loading --- */

filch_status bench_vendor_open(const bench_gpu *gpu, filch_error *error, bench_vendor **out)
{
    double begin = bench_now_s();
    int driver = bench_gpu_driver(gpu);
    void *blas = bench_library_open(bench_cublas_names, driver);
    void *solver = bench_library_open(bench_cusolver_names, driver);
    if (!blas || !solver)
        return bench_library_missing(blas ? "cuSOLVER" : "cuBLAS", driver, error);
    bench_vendor *vendor = calloc(1, sizeof *vendor);
    if (!vendor || fl_mutex_init(&vendor->lock) != FILCH_OK) {
        free(vendor);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "cuBLAS", 0, "no memory");
    }
    vendor->gpu = gpu;
    filch_status status = FILCH_OK;
#define FIND(library, member, symbol, parameters) \
    if (status == FILCH_OK)                       \
        status = bench_library_find(library, symbol, &vendor->call.member, error);
    BENCH_CALLS(FIND)
#undef FIND
    vendor->seconds = bench_now_s() - begin;
    if (status == FILCH_OK)
        *out = vendor;
    else
        bench_vendor_close(vendor);
    return status;
}

void bench_vendor_close(bench_vendor *vendor)
{
    if (!vendor)
        return;
    fl_mutex_fini(&vendor->lock);
    free(vendor);
}

double bench_vendor_seconds(const bench_vendor *vendor)
{
    return vendor->seconds;
}

const char *bench_vendor_text(const bench_vendor *vendor)
{
    return vendor->text;
}

/* --- Lanes --- */

bench_vendor_lane *bench_vendor_lane_make(bench_vendor *vendor, void *context, void *stream,
                                          uint32_t multiprocessors)
{
    const bench_vendor_calls *call = &vendor->call;
    bench_vendor_lane *lane = calloc(1, sizeof *lane);
    int version = 0;
    if (!lane)
        return NULL;
    *lane = (bench_vendor_lane){.vendor = vendor, .context = context, .stream = stream};
    if (call->blas_create(&lane->blas) != 0 || call->blas_stream(lane->blas, stream) != 0 ||
        call->solver_create(&lane->solver) != 0 || call->solver_stream(lane->solver, stream) != 0 ||
        call->blas_version(lane->blas, &version) != 0) {
        bench_vendor_lane_drop(lane);
        return NULL;
    }
    /* A slice has fewer than the device says: kernels are to be chosen for the slice. What cannot
     * be limited is still right, only slower. */
    if (multiprocessors > 0)
        (void)call->blas_limit(lane->blas, (int)multiprocessors);
    snprintf(vendor->text, sizeof vendor->text, "cuBLAS %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    return lane;
}

void bench_vendor_lane_drop(bench_vendor_lane *lane)
{
    const bench_vendor_calls *call = &lane->vendor->call;
    if (lane->blas)
        (void)call->blas_destroy(lane->blas);
    if (lane->solver)
        (void)call->solver_destroy(lane->solver);
    if (lane->work.block)
        (void)bench_gpu_api(lane->vendor->gpu)->cuMemFree(lane->work.block);
    if (lane->inverse.block)
        (void)bench_gpu_api(lane->vendor->gpu)->cuMemFree(lane->inverse.block);
    free(lane);
}

/* --- Operations --- */

static int solver_code(int status)
{
    return status ? -(BENCH_CODE_SOLVER + status) : 0;
}

int bench_vendor_room_grow(const bench_vendor_lane *lane, bench_vendor_room *room, size_t bytes)
{
    const fl_cuda_api *api = bench_gpu_api(lane->vendor->gpu);
    CUdeviceptr block = 0;
    if (bytes <= room->bytes)
        return 0;
    int code = bench_memory_code(api->cuMemAlloc(&block, bytes));
    if (code != 0)
        return code;
    if (room->block)
        (void)api->cuMemFree(room->block);
    *room = (bench_vendor_room){block, bytes};
    return 0;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATIONS(p, real)                                                                        \
    static int p##_reserve(bench_vendor_lane *lane, int n, int ld, int *elements)                  \
    {                                                                                              \
        int code = solver_code(lane->vendor->call.p##potrf_size(lane->solver, BENCH_FILL_LOWER, n, \
                                                                NULL, ld, elements));              \
        return code ? code                                                                         \
                    : bench_vendor_room_grow(lane, &lane->work, (size_t)*elements * sizeof(real)); \
    }                                                                                              \
    static int p##_potrf(bench_vendor_lane *lane, const filch_view *a, int *info)                  \
    {                                                                                              \
        int elements = 0;                                                                          \
        int n = (int)a->rows;                                                                      \
        int code = p##_reserve(lane, n, (int)a->ld, &elements);                                    \
        real *work = bench_gpu_pointer(lane->work.block);                                          \
        return code ? code                                                                         \
                    : solver_code(lane->vendor->call.p##potrf(lane->solver, BENCH_FILL_LOWER, n,   \
                                                              a->ptr, (int)a->ld, work, elements,  \
                                                              info));                              \
    }                                                                                              \
    static int p##_trsm(const bench_vendor_lane *lane, const filch_view *l, const filch_view *a)   \
    {                                                                                              \
        const real one = 1;                                                                        \
        return lane->vendor->call.p##trsm(lane->blas, BENCH_SIDE_RIGHT, BENCH_FILL_LOWER,          \
                                          BENCH_OP_T, BENCH_NON_UNIT, (int)a->rows, (int)a->cols,  \
                                          &one, l->ptr, (int)l->ld, a->ptr, (int)a->ld);           \
    }                                                                                              \
    static int p##_trmm(const bench_vendor_lane *lane, const filch_view *l, const filch_view *b,   \
                        const filch_view *c)                                                       \
    {                                                                                              \
        const real one = 1;                                                                        \
        return lane->vendor->call.p##trmm(lane->blas, BENCH_SIDE_RIGHT, BENCH_FILL_LOWER,          \
                                          BENCH_OP_T, BENCH_NON_UNIT, (int)c->rows, (int)c->cols,  \
                                          &one, l->ptr, (int)l->ld, b->ptr, (int)b->ld, c->ptr,    \
                                          (int)c->ld);                                             \
    }                                                                                              \
    static int p##_syrk(const bench_vendor_lane *lane, const filch_view *a, const filch_view *c)   \
    {                                                                                              \
        const real minus = -1, one = 1;                                                            \
        return lane->vendor->call.p##syrk(lane->blas, BENCH_FILL_LOWER, BENCH_OP_N, (int)c->rows,  \
                                          (int)a->cols, &minus, a->ptr, (int)a->ld, &one, c->ptr,  \
                                          (int)c->ld);                                             \
    }                                                                                              \
    static int p##_gemm(const bench_vendor_lane *lane, int op_b, double factor, double keep,       \
                        const filch_view *a, const filch_view *b, const filch_view *c)             \
    {                                                                                              \
        const real alpha = (real)factor, beta = (real)keep;                                        \
        return lane->vendor->call.p##gemm(lane->blas, BENCH_OP_N, op_b, (int)c->rows,              \
                                          (int)c->cols, (int)a->cols, &alpha, a->ptr, (int)a->ld,  \
                                          b->ptr, (int)b->ld, &beta, c->ptr, (int)c->ld);          \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATIONS(d, double)
OPERATIONS(s, float)

void bench_vendor_expect(bench_vendor *vendor, size_t element, size_t n, bool inverts)
{
    vendor->element = element;
    vendor->expected = n;
    vendor->inverts = inverts;
}

static int reserve(bench_vendor_lane *lane)
{
    const bench_vendor *vendor = lane->vendor;
    int n = (int)vendor->expected;
    int elements = 0;
    if (n == 0)
        return 0;
    int code = vendor->element == sizeof(double) ? d_reserve(lane, n, n, &elements)
                                                 : s_reserve(lane, n, n, &elements);
    return code != 0 || !vendor->inverts
               ? code
               : bench_vendor_inverse_reserve(lane, vendor->element, vendor->expected);
}

/* The first codelet makes what all share. */
static bench_vendor_lane *find_lane(bench_vendor *vendor, const filch_lane *lane)
{
    bench_vendor_lane *found = vendor->lanes;
    while (found && (found->stream != lane->stream || found->context != lane->context))
        found = found->next;
    if (found)
        return found;
    found = bench_vendor_lane_make(vendor, lane->context, lane->stream, lane->multiprocessors);
    if (found) {
        found->next = vendor->lanes;
        vendor->lanes = found;
    }
    return found;
}

/* Takes a lane off the list once nobody uses it. */
static void leave_lane(bench_vendor *vendor, bench_vendor_lane *lane)
{
    bench_vendor_lane **at = &vendor->lanes;
    if (lane->users > 0)
        return;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    bench_vendor_lane_drop(lane);
}

int bench_vendor_lane_open(const filch_lane *lane, void *user, void **state)
{
    bench_vendor *vendor = user;
    fl_mutex_lock(&vendor->lock);
    double begin = bench_now_s();
    bench_vendor_lane *found = find_lane(vendor, lane);
    int code = found ? reserve(found) : -BENCH_CODE_BLAS;
    if (code == 0) {
        found->users++;
        *state = found;
    } else if (found) {
        leave_lane(vendor, found);
    }
    vendor->seconds += bench_now_s() - begin;
    fl_mutex_unlock(&vendor->lock);
    return code;
}

void bench_vendor_lane_close(const filch_lane *lane, void *user, void *state)
{
    (void)lane;
    bench_vendor *vendor = user;
    bench_vendor_lane *closed = state;
    fl_mutex_lock(&vendor->lock);
    closed->users--;
    leave_lane(vendor, closed);
    fl_mutex_unlock(&vendor->lock);
}

static bool is_double(const filch_view *view)
{
    return view->element == sizeof(double);
}

int bench_vendor_potrf(bench_vendor_lane *lane, const filch_view *a, const filch_view *info)
{
    return is_double(a) ? d_potrf(lane, a, info->ptr) : s_potrf(lane, a, info->ptr);
}

int bench_vendor_trsm(bench_vendor_lane *lane, const filch_view *l, const filch_view *a)
{
    return bench_blas_code(is_double(a) ? d_trsm(lane, l, a) : s_trsm(lane, l, a));
}

int bench_vendor_copy(const bench_vendor_lane *lane, const filch_view *from, const filch_view *to)
{
    const CUDA_MEMCPY2D copy = {.srcMemoryType = FL_CU_MEMORYTYPE_DEVICE,
                                .srcDevice = (CUdeviceptr)(uintptr_t)from->ptr,
                                .srcPitch = from->ld * from->element,
                                .dstMemoryType = FL_CU_MEMORYTYPE_DEVICE,
                                .dstDevice = (CUdeviceptr)(uintptr_t)to->ptr,
                                .dstPitch = to->ld * to->element,
                                .WidthInBytes = to->rows * to->element,
                                .Height = to->cols};
    return bench_memory_code(
        bench_gpu_api(lane->vendor->gpu)->cuMemcpy2DAsync(&copy, lane->stream));
}

int bench_vendor_syrk(bench_vendor_lane *lane, const filch_view *a, const filch_view *c)
{
    return bench_blas_code(is_double(c) ? d_syrk(lane, a, c) : s_syrk(lane, a, c));
}

static int gemm(const bench_vendor_lane *lane, int op_b, double factor, double keep,
                const filch_view *a, const filch_view *b, const filch_view *c)
{
    return bench_blas_code(is_double(c) ? d_gemm(lane, op_b, factor, keep, a, b, c)
                                        : s_gemm(lane, op_b, factor, keep, a, b, c));
}

int bench_vendor_multiply(bench_vendor_lane *lane, const filch_view *l, const filch_view *a,
                          void *room)
{
    filch_view copy = *a;
    copy.ptr = room;
    copy.ld = a->rows;
    int code = bench_vendor_copy(lane, a, &copy);
    return code ? code
                : bench_blas_code(is_double(a) ? d_trmm(lane, l, &copy, a)
                                               : s_trmm(lane, l, &copy, a));
}

int bench_vendor_gemm_nt(bench_vendor_lane *lane, const filch_view *a, const filch_view *b,
                         const filch_view *c)
{
    return gemm(lane, BENCH_OP_T, -1, 1, a, b, c);
}

int bench_vendor_gemm_nn(bench_vendor_lane *lane, const filch_view *a, const filch_view *b,
                         int keep, const filch_view *c)
{
    return gemm(lane, BENCH_OP_N, 1, keep, a, b, c);
}

bool bench_vendor_explain(int code, filch_error *error)
{
    int status = -code % 1000;
    if (code > -BENCH_CODE_BLAS || code <= -(BENCH_CODE_MEMORY + 1000))
        return false;
    if (code > -BENCH_CODE_SOLVER)
        (void)bench_fail(error, FILCH_BACKEND, "cuBLAS", 0, "a call returned status %d", status);
    else if (code > -BENCH_CODE_MEMORY)
        (void)bench_fail(error, FILCH_BACKEND, "cuSOLVER", 0, "a call returned status %d", status);
    else
        (void)bench_fail(error, FILCH_NO_DEVICE_MEMORY, "cuSOLVER", 0,
                         "no device memory to factor a tile in (code %d)", status);
    return true;
}
