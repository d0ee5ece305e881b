/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of LU and QR by block columns (kernels/dense/), each alone on one GPU: what a panel
 * costs, and what each block column on its right does. */
#include "kernels/vendor/blas.h"
#include "kernels/vendor/panel.h"
#include "micro/micro.h"
#include "offload/gpu.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "support/timing.h"

#include <stdlib.h>

#define ROWS ((size_t)16384)
#define LEAST ((size_t)256)
#define MOST ((size_t)1024)
/* Calls that are timed together. */
#define CALLS 4

/* Memory on the GPU: block columns, then squares. */
enum place { NUMBERS, PANEL, BLOCK, COLUMNS, IDENTITY = COLUMNS, LOWER, INVERSE, ROOM, PLACES };

enum way {
    COPIED,
    LU_PANEL,
    SWAPPED,
    SOLVED,
    INVERTED,
    MULTIPLIED,
    UPDATED,
    QR_PANEL,
    GATHERED,
    WAYS
};

static const char *const names[WAYS] = {
    [COPIED] = "copied",
    [LU_PANEL] = "copied and factored, LU",
    [SWAPPED] = "rows exchanged",
    [SOLVED] = "rows solved for",
    [INVERTED] = "triangle copied and inverted",
    [MULTIPLIED] = "rows copied and multiplied by the inverse",
    [UPDATED] = "product of a column and a square",
    [QR_PANEL] = "copied and factored, QR",
    [GATHERED] = "product of a column, transposed, and a column",
};

typedef struct bed {
    bench_gpu gpu; /* cuda:0 */
    fl_vendor *vendor;
    fl_vendor_lane *lane;
    CUstream stream;
    size_t rows, cols;
    CUdeviceptr at[PLACES];
    CUdeviceptr pivots, tau, info;
} bed;

static filch_view view_of(const bed *b, enum place which)
{
    size_t rows = which < COLUMNS ? b->rows : b->cols;
    return (filch_view){.ptr = bench_gpu_pointer(b->at[which]),
                        .rows = rows,
                        .cols = b->cols,
                        .ld = rows,
                        .element = sizeof(double)};
}

static filch_status asked(const bed *b, CUresult result, const char *call, filch_error *error)
{
    return bench_gpu_check(&b->gpu, result, call, error);
}

static filch_status wait(const bed *b, filch_error *error)
{
    return asked(b, bench_gpu_api(&b->gpu)->cuStreamSynchronize(b->stream), "cuStreamSynchronize",
                 error);
}

static filch_status explained(int code, filch_error *error)
{
    if (code == 0)
        return FILCH_OK;
    (void)fl_vendor_explain(code, error);
    return FILCH_BACKEND;
}

static int copy(const bed *b, enum place from, enum place to)
{
    const filch_view source = view_of(b, from), target = view_of(b, to);
    return fl_vendor_copy(b->lane, &source, &target);
}

/* Of the vendor's calls on a whole block column. */
static int factor(const bed *b, enum way way)
{
    const filch_view panel = view_of(b, PANEL);
    int code = copy(b, NUMBERS, PANEL);
    if (code != 0 || way == COPIED)
        return code;
    return way == LU_PANEL ? fl_vendor_getrf(b->lane, &panel, bench_gpu_pointer(b->pivots),
                                             bench_gpu_pointer(b->info))
                           : fl_vendor_geqrf(b->lane, &panel, bench_gpu_pointer(b->tau),
                                             bench_gpu_pointer(b->info));
}

static int go(const bed *b, enum way way)
{
    static const fl_vendor_form unit = {.diagonal = FL_VENDOR_UNIT, .alpha = 1};
    static const fl_vendor_form plain = {.alpha = 1}, minus = {.alpha = -1, .beta = 1};
    static const fl_vendor_form turned = {.op_a = FL_VENDOR_OP_T, .alpha = 1};
    const filch_view panel = view_of(b, PANEL), block = view_of(b, BLOCK);
    const filch_view identity = view_of(b, IDENTITY), lower = view_of(b, LOWER);
    const filch_view inverse = view_of(b, INVERSE), room = view_of(b, ROOM);
    filch_view triangle = panel, rows = block;
    triangle.rows = rows.rows = b->cols;
    int code = 0;
    switch (way) {
    case SWAPPED:
        return fl_vendor_laswp(b->lane, &block, bench_gpu_pointer(b->pivots), b->cols, false);
    case SOLVED:
        return fl_vendor_blas_trsm(b->lane, &unit, &triangle, &rows);
    case INVERTED:
        code = fl_vendor_blas_trmm(b->lane, &unit, &triangle, &identity, &lower);
        return code ? code : fl_vendor_invert(b->lane, &lower, &inverse);
    case MULTIPLIED:
        code = fl_vendor_copy(b->lane, &rows, &room);
        return code ? code : fl_vendor_blas_gemm(b->lane, &plain, &inverse, &room, &rows);
    case UPDATED:
        return fl_vendor_blas_gemm(b->lane, &minus, &panel, &room, &block);
    case GATHERED:
        return fl_vendor_blas_gemm(b->lane, &turned, &panel, &block, &room);
    default:
        return factor(b, way);
    }
}

/* The block begins with the same numbers each time. */
static filch_status time_way(const bed *b, enum way way, double *seconds, filch_error *error)
{
    filch_status status = explained(copy(b, NUMBERS, BLOCK), error);
    if (status == FILCH_OK)
        status = wait(b, error);
    double begin = bench_now_s();
    for (int k = 0; k < CALLS && status == FILCH_OK; k++)
        status = explained(go(b, way), error);
    if (status == FILCH_OK)
        status = wait(b, error);
    *seconds = (bench_now_s() - begin) / CALLS;
    return status;
}

static filch_status measure_ways(const bed *b, FILE *out, micro_list *list, filch_error *error)
{
    double rounds[WAYS][MICRO_ROUNDS];
    filch_status status = FILCH_OK;
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) /* the first warms up */
        for (int w = 0; w < WAYS && status == FILCH_OK; w++)
            status = time_way(b, (enum way)w, &rounds[w][r < 0 ? 0 : r], error);
    for (int w = 0; w < WAYS && status == FILCH_OK; w++) {
        char name[MICRO_NAME];
        snprintf(name, sizeof name, "%zu x %zu: %s", b->rows, b->cols, names[w]);
        micro_report(out, list, name, micro_median(rounds[w]) * 1e6, "us");
    }
    return status;
}

static filch_status send(const bed *b, enum place which, const double *from, filch_error *error)
{
    const filch_view to = view_of(b, which);
    filch_status status = asked(b,
                                bench_gpu_api(&b->gpu)->cuMemcpyHtoDAsync(
                                    b->at[which], from, to.rows * to.cols * to.element, b->stream),
                                "cuMemcpyHtoDAsync", error);
    return status == FILCH_OK ? wait(b, error) : status;
}

static filch_status fill(const bed *b, filch_error *error)
{
    double *host = calloc(b->rows * b->cols, sizeof *host);
    if (!host)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "blocks", 0, "no memory for a block");
    for (size_t k = 0; k < b->cols; k++)
        host[k * (b->cols + 1)] = 1;
    filch_status status = send(b, IDENTITY, host, error);
    bench_dense_fill(b->rows, b->cols, b->rows, host, 1);
    if (status == FILCH_OK)
        status = send(b, NUMBERS, host, error);
    free(host);
    return status;
}

/* Block columns of one width, on the GPU. */
static filch_status measure_width(bed *b, size_t cols, FILE *out, micro_list *list,
                                  filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    filch_status status = FILCH_OK;
    b->cols = cols;
    for (int k = 0; k < PLACES && status == FILCH_OK; k++) {
        const filch_view view = view_of(b, (enum place)k);
        status = asked(b, api->cuMemAlloc(&b->at[k], view.rows * view.cols * view.element),
                       "cuMemAlloc", error);
    }
    if (status == FILCH_OK)
        status = fill(b, error);
    if (status == FILCH_OK)
        status = measure_ways(b, out, list, error);
    (void)api->cuStreamSynchronize(b->stream); /* after a failure, work may still use the blocks */
    for (int k = 0; k < PLACES; k++) {
        if (b->at[k])
            (void)api->cuMemFree(b->at[k]);
        b->at[k] = 0;
    }
    return status;
}

static filch_status open_bed(bed *b, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    CUdeviceptr *const vectors[] = {&b->pivots, &b->tau, &b->info};
    filch_status status = fl_vendor_open(&b->gpu.library, error, &b->vendor);
    if (status == FILCH_OK)
        status = asked(b, api->cuStreamCreate(&b->stream, FL_CU_STREAM_NON_BLOCKING),
                       "cuStreamCreate", error);
    for (size_t k = 0; k < sizeof vectors / sizeof *vectors && status == FILCH_OK; k++)
        status = asked(b, api->cuMemAlloc(vectors[k], MOST * sizeof(double)), "cuMemAlloc", error);
    if (status != FILCH_OK)
        return status;
    b->lane = fl_vendor_lane_make(b->vendor, b->gpu.context, b->stream, 0);
    return b->lane ? FILCH_OK
                   : bench_fail(error, FILCH_BACKEND, "cuBLAS", 0, "a handle cannot be made");
}

static void close_bed(bed *b)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    const CUdeviceptr vectors[] = {b->pivots, b->tau, b->info};
    if (b->lane)
        fl_vendor_lane_drop(b->lane);
    for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++)
        if (vectors[k])
            (void)api->cuMemFree(vectors[k]);
    if (b->stream)
        (void)api->cuStreamDestroy(b->stream);
    fl_vendor_close(b->vendor);
}

int micro_blocks_upto(FILE *out, micro_list *list, size_t rows, size_t most)
{
    filch_error error = FILCH_ERROR_INIT;
    bed b = {.rows = rows};
    if (bench_gpu_count(&error) == 0) {
        fprintf(stderr, "filch-bench micro: blocks: %s\n", error.text);
        return MICRO_ABSENT;
    }
    filch_status status = bench_gpu_open(&b.gpu, 0, &error);
    if (status == FILCH_OK)
        status = bench_gpu_enter(&b.gpu, &error);
    if (status == FILCH_OK) {
        status = open_bed(&b, &error);
        for (size_t n = LEAST; n <= most && status == FILCH_OK; n *= 2)
            status = measure_width(&b, n, out, list, &error);
        close_bed(&b);
        bench_gpu_leave(&b.gpu);
    }
    bench_gpu_close(&b.gpu);
    if (status == FILCH_OK)
        return 0;
    fprintf(stderr, "filch-bench micro: blocks: %s\n", error.text);
    return status == FILCH_NOT_FOUND ? MICRO_ABSENT : 1;
}

int micro_blocks(FILE *out, micro_list *list)
{
    return micro_blocks_upto(out, list, ROWS, MOST);
}
