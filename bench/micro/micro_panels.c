/* SPDX-License-Identifier: Apache-2.0 */
/* What a factorization does with a diagonal tile and with a tile below it, each in two ways by
 * turns: a triangle is inverted by a solution for an identity and by blocks, and a tile is
 * multiplied by it as by a full matrix and as by a triangle. Inverses are looked at once. */
#include "kernels/vendor/vendor.h"
#include "micro/micro.h"
#include "offload/gpu.h"
#include "problems/dense.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "support/timing.h"

#include <math.h>
#include <stdlib.h>

#define LEAST ((size_t)256)
#define MOST ((size_t)4096)
/* Calls that are timed together. */
#define CALLS 4

/* Tiles on the GPU: L was factored from the input; the panel is solved from the identity, or
 * multiplied from any numbers. */
enum tile { INPUT, FACTOR, INVERSE, IDENTITY, NUMBERS, PANEL, ROOM, TILES };

enum way { FACTORED, SOLVED, INVERTED, AS_FULL, AS_TRIANGLE, WAYS };

static const char *const names[WAYS] = {
    [FACTORED] = "copied and factored",
    [SOLVED] = "inverted by a solution for an identity",
    [INVERTED] = "inverted by blocks",
    [AS_FULL] = "multiplied as by a full matrix",
    [AS_TRIANGLE] = "multiplied as by a triangle",
};

typedef struct bed {
    bench_gpu gpu; /* cuda:0 */
    fl_vendor *vendor;
    fl_vendor_lane *lane;
    CUstream stream;
    size_t n;
    double *host; /* two matrices and two vectors */
    CUdeviceptr tiles[TILES];
    CUdeviceptr info;
} bed;

static filch_view view_of(const bed *b, enum tile which)
{
    return (filch_view){.ptr = bench_gpu_pointer(b->tiles[which]),
                        .rows = b->n,
                        .cols = b->n,
                        .ld = b->n,
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

/* --- The ways --- */

static int copy(const bed *b, enum tile from, enum tile to)
{
    const filch_view source = view_of(b, from), target = view_of(b, to);
    return fl_vendor_copy(b->lane, &source, &target);
}

static int go(const bed *b, enum way way)
{
    const filch_view factor = view_of(b, FACTOR), inverse = view_of(b, INVERSE);
    const filch_view panel = view_of(b, PANEL), room = view_of(b, ROOM);
    const filch_view info = {.ptr = bench_gpu_pointer(b->info), .rows = 1, .cols = 1, .ld = 1};
    int code = 0;
    switch (way) {
    case FACTORED:
        code = copy(b, INPUT, FACTOR);
        return code ? code : fl_vendor_potrf(b->lane, &factor, &info);
    case SOLVED:
        code = copy(b, IDENTITY, PANEL);
        return code ? code : fl_vendor_trsm(b->lane, &factor, &panel);
    case INVERTED:
        return fl_vendor_invert(b->lane, &factor, &inverse);
    case AS_FULL:
        code = copy(b, PANEL, ROOM);
        return code ? code : fl_vendor_gemm_nt(b->lane, &room, &inverse, &panel);
    default:
        return fl_vendor_multiply(b->lane, &inverse, &panel, room.ptr);
    }
}

/* Tiles that are multiplied begin with the same numbers each time. */
static filch_status time_way(const bed *b, enum way way, double *seconds, filch_error *error)
{
    filch_status status = explained(way >= AS_FULL ? copy(b, NUMBERS, PANEL) : 0, error);
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

/* --- Whether an inverse is one --- */

/* y := T x, T being a lower triangle. */
static void multiply(size_t n, const double *t, const double *x, double *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = 0;
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++)
            y[i] += t[i + j * n] * x[j];
}

/* L^-1 (L x) against x of ones. */
static filch_status check(const bed *b, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    size_t n = b->n, bytes = n * n * sizeof(double);
    double *factor = b->host, *inverse = factor + n * n, *x = inverse + n * n, *y = x + n;
    double most = 0;
    filch_status status =
        asked(b, api->cuMemcpyDtoHAsync(factor, b->tiles[FACTOR], bytes, b->stream),
              "cuMemcpyDtoHAsync", error);
    if (status == FILCH_OK)
        status = asked(b, api->cuMemcpyDtoHAsync(inverse, b->tiles[INVERSE], bytes, b->stream),
                       "cuMemcpyDtoHAsync", error);
    if (status == FILCH_OK)
        status = wait(b, error);
    if (status != FILCH_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        x[i] = 1;
    multiply(n, factor, x, y);
    multiply(n, inverse, y, x);
    for (size_t i = 0; i < n; i++)
        most = isnan(x[i]) ? INFINITY : fmax(most, fabs(x[i] - 1));
    return most <= (double)n * 0x1p-52
               ? FILCH_OK
               : bench_fail(error, FILCH_DATA, "panels", 0,
                            "the inverse of a tile of %zu is off by %.3g", n, most);
}

/* --- Measuring --- */

static filch_status measure_ways(const bed *b, FILE *out, micro_list *list, filch_error *error)
{
    double rounds[WAYS][MICRO_ROUNDS];
    filch_status status = FILCH_OK;
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) /* the first warms up */
        for (int w = 0; w < WAYS && status == FILCH_OK; w++)
            status = time_way(b, (enum way)w, &rounds[w][r < 0 ? 0 : r], error);
    if (status == FILCH_OK)
        status = check(b, error);
    for (int w = 0; w < WAYS && status == FILCH_OK; w++) {
        char name[MICRO_NAME];
        snprintf(name, sizeof name, "%zu: %s", b->n, names[w]);
        micro_report(out, list, name, micro_median(rounds[w]) * 1e6, "us");
    }
    return status;
}

static filch_status send(const bed *b, enum tile which, filch_error *error)
{
    filch_status status =
        asked(b,
              bench_gpu_api(&b->gpu)->cuMemcpyHtoDAsync(b->tiles[which], b->host,
                                                        b->n * b->n * sizeof(double), b->stream),
              "cuMemcpyHtoDAsync", error);
    return status == FILCH_OK ? wait(b, error) : status;
}

static filch_status fill(const bed *b, filch_error *error)
{
    size_t n = b->n;
    bench_dense_fill_spd(n, n, b->host, 1);
    filch_status status = send(b, INPUT, error);
    bench_dense_fill(n, n, n, b->host, 2);
    if (status == FILCH_OK)
        status = send(b, NUMBERS, error);
    for (size_t k = 0; k < n * n; k++)
        b->host[k] = k % (n + 1) == 0;
    return status == FILCH_OK ? send(b, IDENTITY, error) : status;
}

/* Tiles of one order, on the GPU and back. */
static filch_status measure_order(bed *b, size_t n, FILE *out, micro_list *list, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    filch_status status = FILCH_OK;
    b->n = n;
    b->host = calloc(2 * n * (n + 1), sizeof(double));
    if (!b->host)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "panels", 0, "no memory for tiles");
    for (int k = 0; k < TILES && status == FILCH_OK; k++)
        status =
            asked(b, api->cuMemAlloc(&b->tiles[k], n * n * sizeof(double)), "cuMemAlloc", error);
    if (status == FILCH_OK)
        status = fill(b, error);
    if (status == FILCH_OK)
        status = measure_ways(b, out, list, error);
    (void)api->cuStreamSynchronize(b->stream); /* after a failure, work may still use the tiles */
    for (int k = 0; k < TILES; k++) {
        if (b->tiles[k])
            (void)api->cuMemFree(b->tiles[k]);
        b->tiles[k] = 0;
    }
    free(b->host);
    return status;
}

static filch_status open_bed(bed *b, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    filch_status status = fl_vendor_open(&b->gpu.library, error, &b->vendor);
    if (status == FILCH_OK)
        status = asked(b, api->cuStreamCreate(&b->stream, FL_CU_STREAM_NON_BLOCKING),
                       "cuStreamCreate", error);
    if (status == FILCH_OK)
        status = asked(b, api->cuMemAlloc(&b->info, sizeof(int)), "cuMemAlloc", error);
    if (status != FILCH_OK)
        return status;
    b->lane = fl_vendor_lane_make(b->vendor, b->gpu.context, b->stream, 0);
    return b->lane ? FILCH_OK
                   : bench_fail(error, FILCH_BACKEND, "cuBLAS", 0, "a handle cannot be made");
}

static void close_bed(bed *b)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    if (b->lane)
        fl_vendor_lane_drop(b->lane);
    if (b->info)
        (void)api->cuMemFree(b->info);
    if (b->stream)
        (void)api->cuStreamDestroy(b->stream);
    fl_vendor_close(b->vendor);
}

int micro_panels_upto(FILE *out, micro_list *list, size_t largest)
{
    filch_error error = FILCH_ERROR_INIT;
    bed b = {0};
    if (bench_gpu_count(&error) == 0) {
        fprintf(stderr, "filch-bench micro: panels: %s\n", error.text);
        return MICRO_ABSENT;
    }
    filch_status status = bench_gpu_open(&b.gpu, 0, &error);
    if (status == FILCH_OK)
        status = bench_gpu_enter(&b.gpu, &error);
    if (status == FILCH_OK) {
        status = open_bed(&b, &error);
        for (size_t n = LEAST; n <= largest && status == FILCH_OK; n *= 2)
            status = measure_order(&b, n, out, list, &error);
        close_bed(&b);
        bench_gpu_leave(&b.gpu);
    }
    bench_gpu_close(&b.gpu);
    if (status == FILCH_OK)
        return 0;
    fprintf(stderr, "filch-bench micro: panels: %s\n", error.text);
    return status == FILCH_NOT_FOUND ? MICRO_ABSENT : 1;
}

int micro_panels(FILE *out, micro_list *list)
{
    return micro_panels_upto(out, list, MOST);
}
