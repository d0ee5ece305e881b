/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/dense.h"

#include "kernels/dense/codelets.h"

#include <stdlib.h>

/* exchange.cu's threads a block, and columns that a block does one after the other. */
#define EXCHANGE_THREADS 256
#define EXCHANGE_COLS 4

extern const char fl_text_exchange[];

/* Implementations on both sides of each codelet. */
#define SIDES(name)                                                                      \
    static int host_##name(const filch_call *call)                                       \
    {                                                                                    \
        const fl_place on = {.host = ((const fl_dense_args *)call->args)->host};         \
        return fl_dense_run_##name(&on, call);                                           \
    }                                                                                    \
    static int enqueue_##name(const filch_call *call, const filch_lane *lane, void *own) \
    {                                                                                    \
        const fl_place on = {.lane = own};                                               \
        (void)lane;                                                                      \
        return fl_dense_run_##name(&on, call);                                           \
    }

SIDES(lu_panel)
SIDES(swap)
SIDES(step)
SIDES(qr_panel)
SIDES(reflect)
SIDES(apply)

#define ROW(name)                                                \
    {                                                            \
#name, host_##name, enqueue_##name, fl_dense_work_##name \
    }

static const struct {
    const char *name;
    filch_host_fn host;
    filch_enqueue_fn enqueue;
    filch_work_fn work;
} kernels[FL_DENSE_KERNELS] = {
    [FL_DENSE_LU_PANEL] = ROW(lu_panel), [FL_DENSE_SWAP] = ROW(swap),
    [FL_DENSE_STEP] = ROW(step),         [FL_DENSE_QR_PANEL] = ROW(qr_panel),
    [FL_DENSE_REFLECT] = ROW(reflect),   [FL_DENSE_APPLY] = ROW(apply),
};

static int run_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static filch_status make_codelet(fl_dense *dense, fl_dense_kernel which)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.enqueue = kernels[which].enqueue;
    cuda.open = fl_vendor_lane_open;
    cuda.close = fl_vendor_lane_close;
    cuda.user = dense->desc.vendor;
    desc.name = kernels[which].name;
    desc.host = dense->desc.is_idle ? run_nothing : kernels[which].host;
    desc.cuda = dense->desc.vendor ? &cuda : NULL;
    desc.work = kernels[which].work;
    desc.arg_size = sizeof(fl_dense_args);
    return filch_codelet_create(dense->desc.runtime, &desc, &dense->codelets[which]);
}

filch_status fl_dense_open(const fl_dense_desc *desc, fl_dense **out)
{
    fl_dense *dense = calloc(1, sizeof *dense);
    if (!dense)
        return FILCH_OUT_OF_MEMORY;
    dense->desc = *desc;
    filch_status status = FILCH_OK;
    for (int k = 0; k < FL_DENSE_KERNELS && status == FILCH_OK; k++)
        status = make_codelet(dense, (fl_dense_kernel)k);
    if (status == FILCH_OK)
        *out = dense;
    else
        free(dense);
    return status;
}

void fl_dense_close(fl_dense *dense)
{
    if (dense)
        fl_dense_close(dense->single);
    free(dense);
}

static int exchange_shape(const filch_call *call, filch_shape *shape)
{
    if (call->views[1].rows > FL_EXCHANGE_MOST)
        return FL_EXCHANGE_MOST;
    shape->grid[0] = (uint32_t)((call->views[0].cols + EXCHANGE_COLS - 1) / EXCHANGE_COLS);
    shape->block[0] = EXCHANGE_THREADS;
    return 0;
}

filch_codelet *fl_dense_exchange(fl_dense *dense)
{
    bool is_double = dense->desc.element == sizeof(double);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    if (dense->has_tried || !dense->desc.vendor)
        return dense->exchange;
    cuda.source = fl_text_exchange;
    cuda.entry = is_double ? "fl_exchange_f64" : "fl_exchange_f32";
    cuda.shape_of = exchange_shape;
    desc.name = "exchange";
    desc.cuda = &cuda;
    desc.work = fl_dense_work_swap;
    desc.arg_size = sizeof(fl_dense_args);
    dense->has_tried = true;
    /* Alone at first: with a function on the host a kernel that cannot be had is no failure. */
    if (filch_codelet_create(dense->desc.runtime, &desc, &dense->exchange) != FILCH_OK)
        return dense->exchange = NULL;
    desc.host = dense->desc.is_idle ? run_nothing : host_swap;
    if (filch_codelet_create(dense->desc.runtime, &desc, &dense->exchange) != FILCH_OK)
        dense->exchange = NULL;
    return dense->exchange;
}

filch_status fl_dense_add(const fl_dense *dense, filch_graph *graph, filch_codelet *codelet,
                          fl_dense_args args, const filch_access *accesses, uint32_t count,
                          uint32_t affinity)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    args.host = dense->desc.host;
    desc.codelet = codelet;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.affinity = affinity;
    return filch_graph_add(graph, &desc, NULL);
}

void *fl_dense_identity(size_t order, size_t element)
{
    char *unit = calloc(order * order, element);
    for (size_t k = 0; unit && k < order; k++) {
        char *at = unit + k * (order + 1) * element;
        if (element == sizeof(double))
            *(double *)(void *)at = 1;
        else
            *(float *)(void *)at = 1;
    }
    return unit;
}

filch_access fl_dense_scratch(const fl_dense *dense, size_t rows, size_t cols)
{
    return (filch_access){.mode = FILCH_SCRATCH, .bytes = rows * cols * dense->desc.element};
}

filch_status fl_dense_data(const fl_dense *dense, filch_data_desc desc, const char *label,
                           filch_data **out)
{
    desc.size = sizeof desc;
    desc.label = label;
    return filch_data_create(dense->desc.runtime, &desc, out);
}
