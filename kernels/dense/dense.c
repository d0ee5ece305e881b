/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/dense.h"

#include "kernels/dense/codelets.h"
#include "kernels/dense/state.h"

#include <stdlib.h>

/* The panels' kernels' threads a block, and blocks: no more than run at once on one of today's
 * large GPUs, since the first waits for them all. */
#define PANEL_THREADS 256
#define PANEL_BLOCKS 128
/* Rows of a block: many are few blocks, beside which other kernels run, and which have less to tell
 * each other; of small panels few, so that there are enough blocks. */
#define LU_ROWS 128
#define QR_ROWS 256
#define PANEL_ROWS_LEAST 64
#define PANEL_BLOCKS_LEAST 32
/* What a block of lu_panel.cu has in shared memory: a strip of 32 columns and 64 columns of 36, or
 * 32 columns of a group's triangle, beside some words and 32 columns of 33. All GPUs of compute
 * capability 8.0 or more have 99 KiB; a strip that does not fit is factored where it is. */
#define PANEL_STRIP 32
#define PANEL_BATCH (64 * (PANEL_STRIP + 4))
#define PANEL_TRIANGLE (PANEL_STRIP * (FL_PANEL_GROUP + 1))
#define PANEL_MORE 2560
#define PANEL_BYTES_MOST (99 << 10)
/* qr_panel.cu's: two lines of 256 rows, sums of 8 warps and tau of a strip, and three stages of
 * 32 + 64 columns of 32, beside some words. */
#define QR_ELEMENTS (2 * 256 + (8 + 1) * PANEL_STRIP + 3 * (32 + 64) * 32)
#define QR_MORE 64
/* The kernels number rows, and those of their last block beyond the panel, by int. */
#define PANEL_ROWS_MOST ((size_t)INT32_MAX - 4096)

extern const char fl_text_lu_panel[];
extern const char fl_text_qr_panel[];

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
SIDES(blocks)
SIDES(swap)
SIDES(step)
SIDES(parts)
SIDES(qr_panel)
SIDES(qr_rest)
SIDES(triangle)
SIDES(reflect)
SIDES(apply)
SIDES(move)

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
    [FL_DENSE_LU_PANEL] = ROW(lu_panel),
    [FL_DENSE_LU_REST] = ROW(lu_rest),
    [FL_DENSE_INVERT] = ROW(invert),
    [FL_DENSE_BLOCKS] = ROW(blocks),
    [FL_DENSE_SWAP] = ROW(swap),
    [FL_DENSE_STEP] = ROW(step),
    [FL_DENSE_PARTS] = ROW(parts),
    [FL_DENSE_QR_PANEL] = ROW(qr_panel),
    [FL_DENSE_QR_REST] = ROW(qr_rest),
    [FL_DENSE_TRIANGLE] = ROW(triangle),
    [FL_DENSE_REFLECT] = ROW(reflect),
    [FL_DENSE_APPLY] = ROW(apply),
    [FL_DENSE_MOVE] = {"move", host_move, enqueue_move, NULL},
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

static size_t panel_blocks(size_t rows, size_t each)
{
    size_t blocks = blocks_of(rows, each);
    if (blocks < PANEL_BLOCKS_LEAST)
        blocks = fl_least(blocks_of(rows, PANEL_ROWS_LEAST), PANEL_BLOCKS_LEAST);
    return fl_least(blocks, PANEL_BLOCKS);
}

/* Rows of the panel, and the launch's blocks. -1: there are too many rows. */
static int panel_grid(const filch_call *call, size_t each, size_t *rows, filch_shape *shape)
{
    size_t m = call->views[0].rows - ((const fl_dense_args *)call->args)->row;
    size_t blocks = panel_blocks(m, each);
    if (m > PANEL_ROWS_MOST)
        return -1;
    if (call->team > 0)
        blocks = fl_least(blocks, call->team);
    *rows = m;
    shape->grid[0] = (uint32_t)blocks;
    shape->block[0] = PANEL_THREADS;
    return 0;
}

int fl_dense_lu_shape(const filch_call *call, filch_shape *shape)
{
    size_t element = call->views[0].element, m;
    if (panel_grid(call, LU_ROWS, &m, shape) != 0)
        return -1;
    size_t rows = blocks_of(blocks_of(m, shape->grid[0]), 8) * 8;
    size_t strip = (rows + 1) * PANEL_STRIP + PANEL_BATCH;
    size_t more = PANEL_STRIP * (PANEL_STRIP + 1) * element + PANEL_MORE;
    if (strip * element + more > PANEL_BYTES_MOST || strip < PANEL_TRIANGLE)
        strip = PANEL_TRIANGLE;
    shape->shared_bytes = (uint32_t)(strip * element + more);
    return 0;
}

int fl_dense_qr_shape(const filch_call *call, filch_shape *shape)
{
    size_t rows;
    shape->shared_bytes = (uint32_t)(QR_ELEMENTS * call->views[0].element + QR_MORE);
    return panel_grid(call, QR_ROWS, &rows, shape);
}

/* A part of each block and their sum, for each of the group's columns. */
filch_access fl_dense_qr_room(const fl_dense *dense, size_t rows)
{
    return fl_dense_scratch(dense, PANEL_STRIP * FL_PANEL_GROUP, panel_blocks(rows, QR_ROWS) + 1);
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

filch_codelet *fl_dense_panel(fl_dense *dense, int which)
{
    static const struct {
        const char *source, *double_entry, *single_entry, *name;
        filch_shape_fn shape_of;
        filch_work_fn work;
        filch_host_fn host;
    } all[] = {[FL_DENSE_LU] = {fl_text_lu_panel, "fl_lu_panel_f64", "fl_lu_panel_f32", "panel",
                                fl_dense_lu_shape, fl_dense_work_lu_group, fl_dense_host_lu},
               [FL_DENSE_QR] = {fl_text_qr_panel, "fl_qr_panel_f64", "fl_qr_panel_f32",
                                "reflectors", fl_dense_qr_shape, fl_dense_work_qr_group,
                                fl_dense_host_qr}};
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    if (dense->has_tried_panels[which])
        return dense->panels[which];
    bool is_double = dense->desc.element == sizeof(double);
    cuda.source = all[which].source;
    cuda.entry = is_double ? all[which].double_entry : all[which].single_entry;
    cuda.options = is_double ? "-DPANEL_BITS=64" : "-DPANEL_BITS=32";
    cuda.shape_of = all[which].shape_of;
    desc.name = all[which].name;
    desc.work = all[which].work;
    dense->has_tried_panels[which] = true;
    dense->panels[which] = fl_dense_make_kernel(dense, &desc, &cuda, all[which].host);
    return dense->panels[which];
}

filch_status fl_dense_add_named(const fl_dense *dense, filch_graph *graph, filch_codelet *codelet,
                                fl_dense_args args, const filch_access *accesses, uint32_t count,
                                uint32_t affinity, filch_task *task)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    args.host = dense->desc.host;
    desc.codelet = codelet;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.affinity = affinity;
    return filch_graph_add(graph, &desc, task);
}

filch_status fl_dense_add(const fl_dense *dense, filch_graph *graph, filch_codelet *codelet,
                          fl_dense_args args, const filch_access *accesses, uint32_t count,
                          uint32_t affinity)
{
    return fl_dense_add_named(dense, graph, codelet, args, accesses, count, affinity, NULL);
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
