/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/dense.h"

#include "kernels/dense/codelets.h"
#include "kernels/dense/state.h"

#include <stdlib.h>

/* lu_panel.cu's threads a block, and blocks: no more than run at once on one of today's large GPUs,
 * since the first waits for them all. */
#define PANEL_THREADS 256
#define PANEL_BLOCKS 128
/* Rows of a block: many are few blocks, beside which other kernels run; of small panels few, so
 * that there are enough blocks. */
#define PANEL_ROWS 128
#define PANEL_ROWS_LEAST 64
#define PANEL_BLOCKS_LEAST 32
/* What a block has in shared memory: a strip of 32 columns and 64 columns of 36, or 32 columns of a
 * group's triangle, beside some words and 32 columns of 33. All GPUs of compute capability 8.0 or
 * more have 99 KiB; a strip that does not fit is factored where it is. */
#define PANEL_STRIP 32
#define PANEL_BATCH (64 * (PANEL_STRIP + 4))
#define PANEL_TRIANGLE (PANEL_STRIP * (FL_LU_GROUP + 1))
#define PANEL_MORE 2560
#define PANEL_BYTES_MOST (99 << 10)
/* The kernel numbers rows, and those of its last block beyond the panel, by int. */
#define PANEL_ROWS_MOST ((size_t)INT32_MAX - 4096)

extern const char fl_text_lu_panel[];

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
SIDES(lu_rest)
SIDES(invert)
SIDES(swap)
SIDES(step)
SIDES(parts)
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
    [FL_DENSE_LU_PANEL] = ROW(lu_panel), [FL_DENSE_LU_REST] = ROW(lu_rest),
    [FL_DENSE_INVERT] = ROW(invert),     [FL_DENSE_SWAP] = ROW(swap),
    [FL_DENSE_STEP] = ROW(step),         [FL_DENSE_PARTS] = ROW(parts),
    [FL_DENSE_QR_PANEL] = ROW(qr_panel), [FL_DENSE_REFLECT] = ROW(reflect),
    [FL_DENSE_APPLY] = ROW(apply),
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

static size_t blocks_of(size_t rows, size_t each)
{
    return (rows + each - 1) / each;
}

int fl_dense_panel_shape(const filch_call *call, filch_shape *shape)
{
    const filch_view *a = &call->views[0];
    size_t m = a->rows - ((const fl_dense_args *)call->args)->row;
    size_t blocks = blocks_of(m, PANEL_ROWS);
    if (m > PANEL_ROWS_MOST)
        return -1;
    if (blocks < PANEL_BLOCKS_LEAST)
        blocks = fl_least(blocks_of(m, PANEL_ROWS_LEAST), PANEL_BLOCKS_LEAST);
    blocks = fl_least(blocks, PANEL_BLOCKS);
    if (call->team > 0)
        blocks = fl_least(blocks, call->team);
    size_t rows = blocks_of(blocks_of(m, blocks), 8) * 8;
    size_t strip = (rows + 1) * PANEL_STRIP + PANEL_BATCH;
    size_t more = PANEL_STRIP * (PANEL_STRIP + 1) * a->element + PANEL_MORE;
    if (strip * a->element + more > PANEL_BYTES_MOST || strip < PANEL_TRIANGLE)
        strip = PANEL_TRIANGLE;
    shape->grid[0] = (uint32_t)blocks;
    shape->block[0] = PANEL_THREADS;
    shape->shared_bytes = (uint32_t)(strip * a->element + more);
    return 0;
}

filch_codelet *fl_dense_make_kernel(const fl_dense *dense, filch_codelet_desc *desc,
                                    filch_cuda_desc *cuda, filch_host_fn host)
{
    filch_codelet *codelet = NULL;
    if (!dense->desc.vendor)
        return NULL;
    desc->cuda = cuda;
    desc->arg_size = sizeof(fl_dense_args);
    /* Alone at first: with a function on the host a kernel that cannot be had is no failure. */
    if (filch_codelet_create(dense->desc.runtime, desc, &codelet) != FILCH_OK)
        return NULL;
    desc->host = dense->desc.is_idle ? run_nothing : host;
    if (filch_codelet_create(dense->desc.runtime, desc, &codelet) != FILCH_OK)
        return NULL;
    return codelet;
}

filch_codelet *fl_dense_panel(fl_dense *dense)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    if (dense->has_tried_panel)
        return dense->panel;
    cuda.source = fl_text_lu_panel;
    cuda.entry = dense->desc.element == sizeof(double) ? "fl_lu_panel_f64" : "fl_lu_panel_f32";
    cuda.shape_of = fl_dense_panel_shape;
    desc.name = "panel";
    desc.work = fl_dense_work_group;
    dense->has_tried_panel = true;
    return dense->panel = fl_dense_make_kernel(dense, &desc, &cuda, fl_dense_host_group);
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
