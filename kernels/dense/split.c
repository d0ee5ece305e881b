/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/split.h"

#include <stdlib.h>
#include <string.h>

/* Parts of an operand, side by side or below each other. */
#define PARTS 3
/* Block columns whose parts are kept: so many steps may be under way at once. */
#define KEPT 4
/* split.cu's threads a block, and rows that a thread cuts. */
#define THREADS 256
#define ROWS_A_THREAD 4
/* Bits of a significand that TF32 has not. */
#define LOWER UINT32_C(0x1fff)
#define INFINITE UINT32_C(0x7f800000)

struct fl_split {
    fl_dense *dense;
    filch_data *lefts;  /* by block column of A, in turn */
    filch_data *rights; /* by block column */
};

extern const char fl_text_split[];

/* To the nearest; where that would be beyond the largest number, towards 0. */
static float upper_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t up = bits + (LOWER / 2 + 1);
    bits = ((up & INFINITE) == INFINITE ? bits : up) & ~LOWER;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static float lower_of(float x)
{
    float upper = upper_of(x);
    return x == upper ? 0 : x - upper;
}

int fl_split_left_host(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1];
    for (uint64_t j = 0; j < args->order; j++) {
        const float *x = (const float *)from->ptr + j * from->ld;
        float *y = (float *)to->ptr + j * to->ld;
        for (uint64_t i = args->row + args->order; i < from->rows; i++) {
            y[i] = y[i + 2 * args->order * to->ld] = upper_of(x[i]);
            y[i + args->order * to->ld] = lower_of(x[i]);
        }
    }
    return 0;
}

int fl_split_right_host(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1];
    for (uint64_t j = 0; j < from->cols; j++) {
        const float *x = (const float *)from->ptr + args->row + j * from->ld;
        float *y = (float *)to->ptr + j * to->ld;
        for (uint64_t i = 0; i < args->order; i++) {
            y[i] = y[i + args->order] = upper_of(x[i]);
            y[i + 2 * args->order] = lower_of(x[i]);
        }
    }
    return 0;
}

static int left_shape(const filch_call *call, filch_shape *shape)
{
    const fl_dense_args *args = call->args;
    uint64_t rows = call->views[0].rows - args->row - args->order;
    shape->grid[0] = (uint32_t)(rows / (THREADS * ROWS_A_THREAD) + 1);
    shape->grid[1] = (uint32_t)args->order;
    shape->block[0] = THREADS;
    return 0;
}

static int right_shape(const filch_call *call, filch_shape *shape)
{
    shape->grid[0] = (uint32_t)call->views[0].cols;
    shape->block[0] = THREADS;
    return 0;
}

/* Bytes move, and little is computed. */
static double split_work(const filch_call *call)
{
    return (double)call->views[1].rows * (double)call->views[1].cols;
}

static filch_codelet *make(const fl_dense *dense, const char *name, const char *entry,
                           filch_host_fn host, filch_shape_fn shape)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.source = fl_text_split;
    cuda.entry = entry;
    cuda.shape_of = shape;
    desc.name = name;
    desc.work = split_work;
    return fl_dense_make_kernel(dense, &desc, &cuda, host);
}

static bool has_split(fl_dense *dense)
{
    if (!dense->has_tried_split) {
        dense->split[0] =
            make(dense, "split_left", "fl_split_left", fl_split_left_host, left_shape);
        dense->split[1] =
            make(dense, "split_right", "fl_split_right", fl_split_right_host, right_shape);
        dense->has_tried_split = true;
    }
    return dense->split[0] && dense->split[1];
}

filch_status fl_split_open(fl_dense *dense, const fl_columns *a, fl_split **out)
{
    *out = NULL;
    if (!has_split(dense))
        return FILCH_OK;
    fl_split *split = calloc(1, sizeof *split);
    if (!split)
        return FILCH_OUT_OF_MEMORY;
    size_t width = PARTS * a->tile;
    const filch_data_desc lefts = {.element = dense->desc.element,
                                   .rows = a->rows,
                                   .cols = width * fl_least(KEPT, fl_columns_count(a)),
                                   .tile_cols = width,
                                   .flags = FILCH_DATA_NO_BUFFER};
    const filch_data_desc rights = {.element = dense->desc.element,
                                    .rows = width,
                                    .cols = a->cols,
                                    .tile_cols = a->tile,
                                    .flags = FILCH_DATA_NO_BUFFER};
    split->dense = dense;
    filch_status status = fl_dense_data(dense, lefts, "left parts", &split->lefts);
    if (status == FILCH_OK)
        status = fl_dense_data(dense, rights, "right parts", &split->rights);
    if (status == FILCH_OK)
        *out = split;
    else
        fl_split_close(split);
    return status;
}

void fl_split_close(fl_split *split)
{
    if (!split)
        return;
    if (split->lefts)
        (void)filch_data_destroy(split->lefts);
    if (split->rights)
        (void)filch_data_destroy(split->rights);
    free(split);
}

static fl_dense_args args_of(const fl_step *step)
{
    return (fl_dense_args){.row = step->at * step->a->tile, .order = step->order};
}

filch_status fl_split_add_left(fl_split *split, const fl_step *step, filch_graph *graph)
{
    const filch_access accesses[] = {FILCH_R(step->a->data, 0, step->at),
                                     FILCH_W(split->lefts, 0, step->at % KEPT)};
    return fl_dense_add(split->dense, graph, split->dense->split[0], args_of(step), accesses, 2,
                        fl_columns_owner(step->a, step->at));
}

filch_status fl_split_add_step(fl_split *split, const fl_step *step, filch_graph *graph)
{
    const fl_dense *dense = split->dense;
    uint32_t owner = fl_columns_owner(step->b, step->to);
    const filch_access cut[] = {FILCH_R(step->b->data, 0, step->to),
                                FILCH_W(split->rights, 0, step->to)};
    const filch_access product[] = {FILCH_R(split->lefts, 0, step->at % KEPT),
                                    FILCH_R(split->rights, 0, step->to),
                                    FILCH_RW(step->b->data, 0, step->to)};
    fl_step solution = *step;
    solution.only_solves = true;
    filch_status status = fl_dense_add_step(dense, &solution, graph);
    if (status == FILCH_OK)
        status = fl_dense_add(dense, graph, dense->split[1], args_of(step), cut, 2, owner);
    return status != FILCH_OK ? status
                              : fl_dense_add(dense, graph, dense->codelets[FL_DENSE_PARTS],
                                             args_of(step), product, 3, owner);
}

/* --- The product --- */

int fl_dense_run_parts(const fl_place *on, const filch_call *call)
{
    static const fl_vendor_form form = {.alpha = -1, .beta = 1, .compute = FL_VENDOR_COMPUTE_TF32};
    const fl_dense_args *args = call->args;
    const filch_view *b = &call->views[2];
    uint64_t first = args->row + args->order, count = b->rows - first, inner = PARTS * args->order;
    if (count == 0)
        return 0;
    const filch_view left = fl_part(&call->views[0], first, 0, count, inner);
    const filch_view right = fl_part(&call->views[1], 0, 0, inner, b->cols);
    const filch_view rest = fl_part(b, first, 0, count, b->cols);
    return fl_place_gemm(on, &form, &left, &right, &rest);
}

double fl_dense_work_parts(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *b = &call->views[2];
    return 2.0 * PARTS * (double)args->order * (double)b->cols *
           (double)(b->rows - args->row - args->order);
}
