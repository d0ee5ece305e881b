/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/vendor/lane.h"

#include "base/clock.h"
#include "kernels/vendor/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Loading --- */

static double seconds_since(uint64_t begin)
{
    return (double)(fl_time_now() - begin) / (double)FL_NS_PER_S;
}

filch_status fl_vendor_open(const fl_cuda_library *driver, filch_error *error, fl_vendor **out)
{
    uint64_t begin = fl_time_now();
    void *blas = fl_library_open(fl_cublas_names, driver->version);
    void *solver = fl_library_open(fl_cusolver_names, driver->version);
    if (!blas || !solver)
        return fl_library_missing(blas ? "cuSOLVER" : "cuBLAS", driver->version, error);
    fl_vendor *vendor = calloc(1, sizeof *vendor);
    if (!vendor || fl_mutex_init(&vendor->lock) != FILCH_OK) {
        free(vendor);
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = "cuBLAS"},
                             "no memory");
    }
    vendor->driver = &driver->api;
    filch_status status = FILCH_OK;
#define FIND(library, member, symbol, parameters) \
    if (status == FILCH_OK)                       \
        status = fl_library_find(library, symbol, &vendor->call.member, error);
    FL_VENDOR_CALLS(FIND)
#undef FIND
    vendor->seconds = seconds_since(begin);
    if (status == FILCH_OK)
        *out = vendor;
    else
        fl_vendor_close(vendor);
    return status;
}

void fl_vendor_close(fl_vendor *vendor)
{
    if (!vendor)
        return;
    fl_mutex_fini(&vendor->lock);
    free(vendor);
}

double fl_vendor_seconds(const fl_vendor *vendor)
{
    return vendor->seconds;
}

const char *fl_vendor_text(const fl_vendor *vendor)
{
    return vendor->text;
}

/* --- Lanes --- */

fl_vendor_lane *fl_vendor_lane_make(fl_vendor *vendor, void *context, void *stream,
                                    uint32_t multiprocessors)
{
    const fl_vendor_calls *call = &vendor->call;
    fl_vendor_lane *lane = calloc(1, sizeof *lane);
    int version = 0;
    if (!lane)
        return NULL;
    *lane = (fl_vendor_lane){.vendor = vendor, .context = context, .stream = stream};
    if (call->blas_create(&lane->blas) != 0 || call->blas_stream(lane->blas, stream) != 0 ||
        call->solver_create(&lane->solver) != 0 || call->solver_stream(lane->solver, stream) != 0 ||
        call->blas_version(lane->blas, &version) != 0) {
        fl_vendor_lane_drop(lane);
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

void fl_vendor_lane_drop(fl_vendor_lane *lane)
{
    const fl_vendor_calls *call = &lane->vendor->call;
    if (lane->blas)
        (void)call->blas_destroy(lane->blas);
    if (lane->solver)
        (void)call->solver_destroy(lane->solver);
    if (lane->work.block)
        (void)lane->vendor->driver->cuMemFree(lane->work.block);
    if (lane->inverse.block)
        (void)lane->vendor->driver->cuMemFree(lane->inverse.block);
    free(lane);
}

/* --- Operations --- */

int fl_vendor_room_grow(const fl_vendor_lane *lane, fl_vendor_room *room, size_t bytes)
{
    const fl_cuda_api *api = lane->vendor->driver;
    CUdeviceptr block = 0;
    if (bytes <= room->bytes)
        return 0;
    int code = fl_vendor_memory_code(api->cuMemAlloc(&block, bytes));
    if (code != 0)
        return code;
    if (room->block) {
        /* What the lane has queued may use it. */
        (void)api->cuStreamSynchronize(lane->stream);
        (void)api->cuMemFree(room->block);
    }
    *room = (fl_vendor_room){block, bytes};
    return 0;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATIONS(p, real)                                                                       \
    static int p##_reserve(fl_vendor_lane *lane, int n, int ld, int *elements)                    \
    {                                                                                             \
        int code = fl_vendor_solver_code(lane->vendor->call.p##potrf_size(                        \
            lane->solver, FL_VENDOR_FILL_LOWER, n, NULL, ld, elements));                          \
        return code ? code                                                                        \
                    : fl_vendor_room_grow(lane, &lane->work, (size_t)*elements * sizeof(real));   \
    }                                                                                             \
    static int p##_potrf(fl_vendor_lane *lane, const filch_view *a, int *info)                    \
    {                                                                                             \
        int elements = 0;                                                                         \
        int n = (int)a->rows;                                                                     \
        int code = p##_reserve(lane, n, (int)a->ld, &elements);                                   \
        real *work = fl_vendor_pointer(lane->work.block);                                         \
        return code ? code                                                                        \
                    : fl_vendor_solver_code(                                                      \
                          lane->vendor->call.p##potrf(lane->solver, FL_VENDOR_FILL_LOWER, n,      \
                                                      a->ptr, (int)a->ld, work, elements, info)); \
    }                                                                                             \
    static int p##_trsm(const fl_vendor_lane *lane, const filch_view *l, const filch_view *a)     \
    {                                                                                             \
        const real one = 1;                                                                       \
        return lane->vendor->call.p##trsm(lane->blas, FL_VENDOR_SIDE_RIGHT, FL_VENDOR_FILL_LOWER, \
                                          FL_VENDOR_OP_T, FL_VENDOR_NON_UNIT, (int)a->rows,       \
                                          (int)a->cols, &one, l->ptr, (int)l->ld, a->ptr,         \
                                          (int)a->ld);                                            \
    }                                                                                             \
    static int p##_trmm(const fl_vendor_lane *lane, const filch_view *l, const filch_view *b,     \
                        const filch_view *c)                                                      \
    {                                                                                             \
        const real one = 1;                                                                       \
        return lane->vendor->call.p##trmm(lane->blas, FL_VENDOR_SIDE_RIGHT, FL_VENDOR_FILL_LOWER, \
                                          FL_VENDOR_OP_T, FL_VENDOR_NON_UNIT, (int)c->rows,       \
                                          (int)c->cols, &one, l->ptr, (int)l->ld, b->ptr,         \
                                          (int)b->ld, c->ptr, (int)c->ld);                        \
    }                                                                                             \
    static int p##_syrk(const fl_vendor_lane *lane, const filch_view *a, const filch_view *c)     \
    {                                                                                             \
        const real minus = -1, one = 1;                                                           \
        return lane->vendor->call.p##syrk(lane->blas, FL_VENDOR_FILL_LOWER, FL_VENDOR_OP_N,       \
                                          (int)c->rows, (int)a->cols, &minus, a->ptr, (int)a->ld, \
                                          &one, c->ptr, (int)c->ld);                              \
    }                                                                                             \
    static int p##_gemm(const fl_vendor_lane *lane, int op_b, double factor, double keep,         \
                        const filch_view *a, const filch_view *b, const filch_view *c)            \
    {                                                                                             \
        const real alpha = (real)factor, beta = (real)keep;                                       \
        return lane->vendor->call.p##gemm(lane->blas, FL_VENDOR_OP_N, op_b, (int)c->rows,         \
                                          (int)c->cols, (int)a->cols, &alpha, a->ptr, (int)a->ld, \
                                          b->ptr, (int)b->ld, &beta, c->ptr, (int)c->ld);         \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATIONS(d, double)
OPERATIONS(s, float)

void fl_vendor_expect(fl_vendor *vendor, size_t element, size_t n, bool inverts)
{
    vendor->element = element;
    vendor->expected = n;
    vendor->inverts = inverts;
}

void fl_vendor_expect_panel(fl_vendor *vendor, size_t element, size_t m, size_t n)
{
    vendor->panel_element = element;
    vendor->panel_rows = m;
    vendor->panel_cols = n;
}

static int reserve(fl_vendor_lane *lane)
{
    const fl_vendor *vendor = lane->vendor;
    int n = (int)vendor->expected;
    int elements = 0;
    if (vendor->panel_cols > 0) {
        int failed = fl_vendor_panel_reserve(lane);
        if (failed != 0)
            return failed;
    }
    if (n == 0)
        return 0;
    int code = vendor->element == sizeof(double) ? d_reserve(lane, n, n, &elements)
                                                 : s_reserve(lane, n, n, &elements);
    return code != 0 || !vendor->inverts
               ? code
               : fl_vendor_inverse_reserve(lane, vendor->element, vendor->expected);
}

/* The first codelet makes what all share. */
static fl_vendor_lane *find_lane(fl_vendor *vendor, const filch_lane *lane)
{
    fl_vendor_lane *found = vendor->lanes;
    while (found && (found->stream != lane->stream || found->context != lane->context))
        found = found->next;
    if (found)
        return found;
    found = fl_vendor_lane_make(vendor, lane->context, lane->stream, lane->multiprocessors);
    if (found) {
        found->next = vendor->lanes;
        vendor->lanes = found;
    }
    return found;
}

/* Takes a lane off the list once nobody uses it. */
static void leave_lane(fl_vendor *vendor, fl_vendor_lane *lane)
{
    fl_vendor_lane **at = &vendor->lanes;
    if (lane->users > 0)
        return;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    fl_vendor_lane_drop(lane);
}

int fl_vendor_lane_open(const filch_lane *lane, void *user, void **state)
{
    fl_vendor *vendor = user;
    fl_mutex_lock(&vendor->lock);
    uint64_t begin = fl_time_now();
    fl_vendor_lane *found = find_lane(vendor, lane);
    int code = found ? reserve(found) : -FL_VENDOR_CODE_BLAS;
    if (code == 0) {
        found->users++;
        *state = found;
    } else if (found) {
        leave_lane(vendor, found);
    }
    vendor->seconds += seconds_since(begin);
    fl_mutex_unlock(&vendor->lock);
    return code;
}

void fl_vendor_lane_close(const filch_lane *lane, void *user, void *state)
{
    (void)lane;
    fl_vendor *vendor = user;
    fl_vendor_lane *closed = state;
    fl_mutex_lock(&vendor->lock);
    closed->users--;
    leave_lane(vendor, closed);
    fl_mutex_unlock(&vendor->lock);
}

static bool is_double(const filch_view *view)
{
    return view->element == sizeof(double);
}

int fl_vendor_potrf(fl_vendor_lane *lane, const filch_view *a, const filch_view *info)
{
    return is_double(a) ? d_potrf(lane, a, info->ptr) : s_potrf(lane, a, info->ptr);
}

int fl_vendor_trsm(fl_vendor_lane *lane, const filch_view *l, const filch_view *a)
{
    return fl_vendor_blas_code(is_double(a) ? d_trsm(lane, l, a) : s_trsm(lane, l, a));
}

int fl_vendor_copy(const fl_vendor_lane *lane, const filch_view *from, const filch_view *to)
{
    const CUDA_MEMCPY2D copy = {.srcMemoryType = FL_CU_MEMORYTYPE_DEVICE,
                                .srcDevice = (CUdeviceptr)(uintptr_t)from->ptr,
                                .srcPitch = from->ld * from->element,
                                .dstMemoryType = FL_CU_MEMORYTYPE_DEVICE,
                                .dstDevice = (CUdeviceptr)(uintptr_t)to->ptr,
                                .dstPitch = to->ld * to->element,
                                .WidthInBytes = to->rows * to->element,
                                .Height = to->cols};
    return fl_vendor_memory_code(lane->vendor->driver->cuMemcpy2DAsync(&copy, lane->stream));
}

int fl_vendor_syrk(fl_vendor_lane *lane, const filch_view *a, const filch_view *c)
{
    return fl_vendor_blas_code(is_double(c) ? d_syrk(lane, a, c) : s_syrk(lane, a, c));
}

static int gemm(const fl_vendor_lane *lane, int op_b, double factor, double keep,
                const filch_view *a, const filch_view *b, const filch_view *c)
{
    return fl_vendor_blas_code(is_double(c) ? d_gemm(lane, op_b, factor, keep, a, b, c)
                                            : s_gemm(lane, op_b, factor, keep, a, b, c));
}

int fl_vendor_multiply(fl_vendor_lane *lane, const filch_view *l, const filch_view *a, void *room)
{
    filch_view copy = *a;
    copy.ptr = room;
    copy.ld = a->rows;
    int code = fl_vendor_copy(lane, a, &copy);
    return code ? code
                : fl_vendor_blas_code(is_double(a) ? d_trmm(lane, l, &copy, a)
                                                   : s_trmm(lane, l, &copy, a));
}

int fl_vendor_gemm_nt(fl_vendor_lane *lane, const filch_view *a, const filch_view *b,
                      const filch_view *c)
{
    return gemm(lane, FL_VENDOR_OP_T, -1, 1, a, b, c);
}

int fl_vendor_gemm_nn(fl_vendor_lane *lane, const filch_view *a, const filch_view *b, int keep,
                      const filch_view *c)
{
    return gemm(lane, FL_VENDOR_OP_N, 1, keep, a, b, c);
}

bool fl_vendor_explain(int code, filch_error *error)
{
    int status = -code % 1000;
    if (code > -FL_VENDOR_CODE_BLAS || code <= -(FL_VENDOR_CODE_MEMORY + 1000))
        return false;
    fl_fault fault = {.status = FILCH_BACKEND,
                      .label = code > -FL_VENDOR_CODE_SOLVER ? "cuBLAS" : "cuSOLVER"};
    if (code > -FL_VENDOR_CODE_MEMORY) {
        (void)fl_error_fill(error, fault, "a call returned status %d", status);
    } else {
        fault.status = FILCH_NO_DEVICE_MEMORY;
        (void)fl_error_fill(error, fault, "no device memory to factor a tile in (code %d)", status);
    }
    return true;
}
