/* SPDX-License-Identifier: Apache-2.0 */
/* Codelets of exchange.cu. On the host LAPACK's laswp exchanges rows, by the pivots alone. */
#include "kernels/dense/codelets.h"

/* exchange.cu's threads a block, and columns that a block does one after the other. */
#define THREADS 256
#define COLS 4

extern const char fl_text_exchange[];

static int list_on_host(const filch_call *call)
{
    const filch_view *pivots = &call->views[0];
    const int32_t *pivot = pivots->ptr;
    int32_t *list = call->views[1].ptr, count = (int32_t)pivots->rows;
    for (int32_t i = 0; i < FL_EXCHANGE_LIST * count; i++) {
        int32_t at = i < count ? i : pivot[i - count] - 1;
        for (int32_t k = count; k-- > 0;)
            at = at == k ? pivot[k] - 1 : at == pivot[k] - 1 ? k : at;
        list[i] = at;
    }
    return 0;
}

static int list_shape(const filch_call *call, filch_shape *shape)
{
    uint64_t count = call->views[0].rows;
    if (count > FL_EXCHANGE_MOST)
        return FL_EXCHANGE_MOST;
    shape->grid[0] = (uint32_t)((FL_EXCHANGE_LIST * count + THREADS - 1) / THREADS);
    shape->block[0] = THREADS;
    return 0;
}

static double list_work(const filch_call *call)
{
    double count = (double)call->views[0].rows;
    return FL_EXCHANGE_LIST * count * count;
}

static int exchange_on_host(const filch_call *call)
{
    const filch_view *a = &call->views[0], *pivots = &call->views[1];
    const fl_place on = {.host = ((const fl_dense_args *)call->args)->host};
    const filch_view rows = fl_part(a, pivots->row, 0, a->rows - pivots->row, a->cols);
    return fl_place_laswp(&on, &rows, pivots->ptr, pivots->rows, false);
}

static int exchange_shape(const filch_call *call, filch_shape *shape)
{
    if (call->views[1].rows > FL_EXCHANGE_MOST)
        return FL_EXCHANGE_MOST;
    shape->grid[0] = (uint32_t)((call->views[0].cols + COLS - 1) / COLS);
    shape->block[0] = THREADS;
    return 0;
}

/* Exchanges are no operations, but take time like some. */
static double exchange_work(const filch_call *call)
{
    return 2 * (double)call->views[1].rows * (double)call->views[0].cols;
}

static filch_codelet *make_list(const fl_dense *dense)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.source = fl_text_exchange;
    cuda.entry = "fl_exchange_list";
    cuda.shape_of = list_shape;
    desc.name = "list";
    desc.work = list_work;
    return fl_dense_make_kernel(dense, &desc, &cuda, list_on_host);
}

static filch_codelet *make_exchange(const fl_dense *dense)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.source = fl_text_exchange;
    cuda.entry = dense->desc.element == sizeof(double) ? "fl_exchange_f64" : "fl_exchange_f32";
    cuda.shape_of = exchange_shape;
    desc.name = "exchange";
    desc.work = exchange_work;
    return fl_dense_make_kernel(dense, &desc, &cuda, exchange_on_host);
}

bool fl_dense_has_exchange(fl_dense *dense)
{
    if (!dense->has_tried_exchange) {
        dense->list = make_list(dense);
        dense->exchange = dense->list ? make_exchange(dense) : NULL;
        dense->has_tried_exchange = true;
    }
    return dense->exchange != NULL;
}
