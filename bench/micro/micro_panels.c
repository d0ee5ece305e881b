/* SPDX-License-Identifier: Apache-2.0 */
/* What a factorization does with a diagonal tile and with a tile below it, each in two ways by
 * turns: a triangle is inverted by a solution for an identity and by blocks, and a tile is
 * multiplied by it as by a full matrix and as by a triangle. Inverses are looked at once. */
#include "micro/bed.h"
#include "micro/micro.h"
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

typedef struct panels {
    micro_bed *bed;
    FILE *out;
    micro_list *list;
    size_t largest;
    size_t n;
    double *host; /* two matrices and two vectors */
    CUdeviceptr tiles[TILES];
    CUdeviceptr info;
} panels;

static filch_view view_of(const panels *p, enum tile which)
{
    return (filch_view){.ptr = bench_gpu_pointer(p->tiles[which]),
                        .rows = p->n,
                        .cols = p->n,
                        .ld = p->n,
                        .element = sizeof(double)};
}

/* --- The ways --- */

static int copy(const panels *p, enum tile from, enum tile to)
{
    const filch_view source = view_of(p, from), target = view_of(p, to);
    return fl_vendor_copy(p->bed->lane, &source, &target);
}

static int go(const panels *p, enum way way)
{
    const filch_view factor = view_of(p, FACTOR), inverse = view_of(p, INVERSE);
    const filch_view panel = view_of(p, PANEL), room = view_of(p, ROOM);
    const filch_view info = {.ptr = bench_gpu_pointer(p->info), .rows = 1, .cols = 1, .ld = 1};
    int code = 0;
    switch (way) {
    case FACTORED:
        code = copy(p, INPUT, FACTOR);
        return code ? code : fl_vendor_potrf(p->bed->lane, &factor, &info);
    case SOLVED:
        code = copy(p, IDENTITY, PANEL);
        return code ? code : fl_vendor_trsm(p->bed->lane, &factor, &panel);
    case INVERTED:
        return fl_vendor_invert(p->bed->lane, &factor, &inverse);
    case AS_FULL:
        code = copy(p, PANEL, ROOM);
        return code ? code : fl_vendor_gemm_nt(p->bed->lane, &room, &inverse, &panel);
    default:
        return fl_vendor_multiply(p->bed->lane, &inverse, &panel, room.ptr);
    }
}

/* Tiles that are multiplied begin with the same numbers each time. */
static filch_status time_way(const panels *p, enum way way, double *seconds, filch_error *error)
{
    filch_status status = micro_bed_explain(way >= AS_FULL ? copy(p, NUMBERS, PANEL) : 0, error);
    if (status == FILCH_OK)
        status = micro_bed_wait(p->bed, error);
    double begin = bench_now_s();
    for (int k = 0; k < CALLS && status == FILCH_OK; k++)
        status = micro_bed_explain(go(p, way), error);
    if (status == FILCH_OK)
        status = micro_bed_wait(p->bed, error);
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

/* Brings a tile home. */
static filch_status fetch(const panels *p, enum tile which, double *to, filch_error *error)
{
    filch_status status = bench_gpu_fetch(&p->bed->gpu, to, p->tiles[which],
                                          p->n * p->n * sizeof(double), p->bed->stream, error);
    return status == FILCH_OK ? micro_bed_wait(p->bed, error) : status;
}

/* L^-1 (L x) against x of ones. */
static filch_status check(const panels *p, filch_error *error)
{
    size_t n = p->n;
    double *factor = p->host, *inverse = factor + n * n, *x = inverse + n * n, *y = x + n;
    double most = 0;
    filch_status status = fetch(p, FACTOR, factor, error);
    if (status == FILCH_OK)
        status = fetch(p, INVERSE, inverse, error);
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

static filch_status measure_ways(const panels *p, filch_error *error)
{
    double rounds[WAYS][MICRO_ROUNDS];
    filch_status status = FILCH_OK;
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) /* the first warms up */
        for (int w = 0; w < WAYS && status == FILCH_OK; w++)
            status = time_way(p, (enum way)w, &rounds[w][r < 0 ? 0 : r], error);
    if (status == FILCH_OK)
        status = check(p, error);
    for (int w = 0; w < WAYS && status == FILCH_OK; w++) {
        char name[MICRO_NAME];
        snprintf(name, sizeof name, "%zu: %s", p->n, names[w]);
        micro_report(p->out, p->list, name, micro_median(rounds[w]) * 1e6, "us");
    }
    return status;
}

static filch_status send(const panels *p, enum tile which, filch_error *error)
{
    return micro_bed_send(p->bed, p->tiles[which], p->host, p->n * p->n * sizeof(double), error);
}

static filch_status fill(const panels *p, filch_error *error)
{
    size_t n = p->n;
    bench_dense_fill_spd(n, n, p->host, 1);
    filch_status status = send(p, INPUT, error);
    bench_dense_fill(n, n, n, p->host, 2);
    if (status == FILCH_OK)
        status = send(p, NUMBERS, error);
    for (size_t k = 0; k < n * n; k++)
        p->host[k] = k % (n + 1) == 0;
    return status == FILCH_OK ? send(p, IDENTITY, error) : status;
}

/* Tiles of one order, on the GPU and back. */
static filch_status measure_order(panels *p, size_t n, filch_error *error)
{
    filch_status status = FILCH_OK;
    p->n = n;
    p->host = calloc(2 * n * (n + 1), sizeof(double));
    if (!p->host)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "panels", 0, "no memory for tiles");
    for (int k = 0; k < TILES && status == FILCH_OK; k++)
        status = micro_bed_alloc(p->bed, &p->tiles[k], n * n * sizeof(double), error);
    if (status == FILCH_OK)
        status = fill(p, error);
    if (status == FILCH_OK)
        status = measure_ways(p, error);
    micro_bed_free(p->bed, p->tiles, TILES);
    free(p->host);
    return status;
}

static filch_status measure_all(micro_bed *bed, void *argument, filch_error *error)
{
    panels *p = argument;
    p->bed = bed;
    filch_status status = micro_bed_alloc(bed, &p->info, sizeof(int), error);
    for (size_t n = LEAST; n <= p->largest && status == FILCH_OK; n *= 2)
        status = measure_order(p, n, error);
    micro_bed_free(bed, &p->info, 1);
    return status;
}

int micro_panels_upto(FILE *out, micro_list *list, size_t largest)
{
    panels p = {.out = out, .list = list, .largest = largest};
    return micro_bed_use("panels", true, measure_all, &p);
}

int micro_panels(FILE *out, micro_list *list)
{
    return micro_panels_upto(out, list, MOST);
}
