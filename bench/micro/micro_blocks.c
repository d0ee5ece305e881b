/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of LU and QR by block columns (kernels/dense/), each alone on one GPU: what a panel
 * costs, and what each block column on its right does. */
#include "kernels/vendor/blas.h"
#include "kernels/vendor/panel.h"
#include "micro/bed.h"
#include "micro/micro.h"
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

enum vector { PIVOTS, TAU, INFO, VECTORS };

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

typedef struct blocks {
    micro_bed *bed;
    FILE *out;
    micro_list *list;
    size_t most;
    size_t rows, cols;
    CUdeviceptr at[PLACES];
    CUdeviceptr vectors[VECTORS];
} blocks;

static filch_view view_of(const blocks *b, enum place which)
{
    size_t rows = which < COLUMNS ? b->rows : b->cols;
    return (filch_view){.ptr = bench_gpu_pointer(b->at[which]),
                        .rows = rows,
                        .cols = b->cols,
                        .ld = rows,
                        .element = sizeof(double)};
}

static void *vector(const blocks *b, enum vector which)
{
    return bench_gpu_pointer(b->vectors[which]);
}

static int copy(const blocks *b, enum place from, enum place to)
{
    const filch_view source = view_of(b, from), target = view_of(b, to);
    return fl_vendor_copy(b->bed->lane, &source, &target);
}

/* Of the vendor's calls on a whole block column. */
static int factor(const blocks *b, enum way way)
{
    const filch_view panel = view_of(b, PANEL);
    int code = copy(b, NUMBERS, PANEL);
    if (code != 0 || way == COPIED)
        return code;
    return way == LU_PANEL
               ? fl_vendor_getrf(b->bed->lane, &panel, vector(b, PIVOTS), vector(b, INFO))
               : fl_vendor_geqrf(b->bed->lane, &panel, vector(b, TAU), vector(b, INFO));
}

static int go(const blocks *b, enum way way)
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
        return fl_vendor_laswp(b->bed->lane, &block, vector(b, PIVOTS), b->cols, false);
    case SOLVED:
        return fl_vendor_blas_trsm(b->bed->lane, &unit, &triangle, &rows);
    case INVERTED:
        code = fl_vendor_blas_trmm(b->bed->lane, &unit, &triangle, &identity, &lower);
        return code ? code : fl_vendor_invert(b->bed->lane, &lower, &inverse);
    case MULTIPLIED:
        code = fl_vendor_copy(b->bed->lane, &rows, &room);
        return code ? code : fl_vendor_blas_gemm(b->bed->lane, &plain, &inverse, &room, &rows);
    case UPDATED:
        return fl_vendor_blas_gemm(b->bed->lane, &minus, &panel, &room, &block);
    case GATHERED:
        return fl_vendor_blas_gemm(b->bed->lane, &turned, &panel, &block, &room);
    default:
        return factor(b, way);
    }
}

/* The block begins with the same numbers each time. */
static filch_status time_way(const blocks *b, enum way way, double *seconds, filch_error *error)
{
    filch_status status = micro_bed_explain(copy(b, NUMBERS, BLOCK), error);
    if (status == FILCH_OK)
        status = micro_bed_wait(b->bed, error);
    double begin = bench_now_s();
    for (int k = 0; k < CALLS && status == FILCH_OK; k++)
        status = micro_bed_explain(go(b, way), error);
    if (status == FILCH_OK)
        status = micro_bed_wait(b->bed, error);
    *seconds = (bench_now_s() - begin) / CALLS;
    return status;
}

static filch_status measure_ways(const blocks *b, filch_error *error)
{
    double rounds[WAYS][MICRO_ROUNDS];
    filch_status status = FILCH_OK;
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) /* the first warms up */
        for (int w = 0; w < WAYS && status == FILCH_OK; w++)
            status = time_way(b, (enum way)w, &rounds[w][r < 0 ? 0 : r], error);
    for (int w = 0; w < WAYS && status == FILCH_OK; w++) {
        char name[MICRO_NAME];
        snprintf(name, sizeof name, "%zu x %zu: %s", b->rows, b->cols, names[w]);
        micro_report(b->out, b->list, name, micro_median(rounds[w]) * 1e6, "us");
    }
    return status;
}

static filch_status send(const blocks *b, enum place which, const double *from, filch_error *error)
{
    const filch_view to = view_of(b, which);
    return micro_bed_send(b->bed, b->at[which], from, to.rows * to.cols * to.element, error);
}

static filch_status fill(const blocks *b, filch_error *error)
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
static filch_status measure_width(blocks *b, size_t cols, filch_error *error)
{
    filch_status status = FILCH_OK;
    b->cols = cols;
    for (int k = 0; k < PLACES && status == FILCH_OK; k++) {
        const filch_view view = view_of(b, (enum place)k);
        status = micro_bed_alloc(b->bed, &b->at[k], view.rows * view.cols * view.element, error);
    }
    if (status == FILCH_OK)
        status = fill(b, error);
    if (status == FILCH_OK)
        status = measure_ways(b, error);
    micro_bed_free(b->bed, b->at, PLACES);
    return status;
}

static filch_status measure_all(micro_bed *bed, void *argument, filch_error *error)
{
    blocks *b = argument;
    filch_status status = FILCH_OK;
    b->bed = bed;
    for (int k = 0; k < VECTORS && status == FILCH_OK; k++)
        status = micro_bed_alloc(bed, &b->vectors[k], MOST * sizeof(double), error);
    for (size_t n = LEAST; n <= b->most && status == FILCH_OK; n *= 2)
        status = measure_width(b, n, error);
    micro_bed_free(bed, b->vectors, VECTORS);
    return status;
}

int micro_blocks_upto(FILE *out, micro_list *list, size_t rows, size_t most)
{
    blocks b = {.out = out, .list = list, .rows = rows, .most = most};
    return micro_bed_use("blocks", true, measure_all, &b);
}

int micro_blocks(FILE *out, micro_list *list)
{
    return micro_blocks_upto(out, list, ROWS, MOST);
}
