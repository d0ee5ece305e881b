/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/cg_tasks.h"

#include <string.h>

#define THREADS 256 /* of a thread block; as in cg.cu */
#define STRIDE 4    /* rows of a thread at a time, of vectors */

extern const char bench_text_cg[]; /* cg.cu */

/* --- On the host --- */

static void copy_edges(const filch_view *p, const filch_view *first, const filch_view *last)
{
    const double *own = p->ptr;
    memcpy(first->ptr, own, first->rows * sizeof *own);
    memcpy(last->ptr, own + p->rows - last->rows, last->rows * sizeof *own);
}

static int run_init(const filch_call *call)
{
    const bench_cg_arguments *args = call->args;
    const filch_view *v = call->views;
    bench_cg_part *part = v[3].ptr;
    part->value = bench_cg_init(args->system, args->block, v[0].ptr, v[1].ptr, v[2].ptr);
    if (call->view_count > 4)
        copy_edges(&v[2], &v[4], &v[5]);
    return 0;
}

static double multiply_rows(const filch_view *v)
{
    const bench_cg_rows rows = {.lo = v[4].row,
                                .count = v[0].rows,
                                .plane = v[6].rows,
                                .elements = v[2].rows,
                                .starts = v[5].ptr,
                                .columns = v[3].ptr,
                                .values = v[2].ptr,
                                .p = v[4].ptr,
                                .before = v[6].ptr,
                                .after = v[7].ptr};
    return bench_cg_multiply_rows(&rows, v[0].ptr);
}

/* On the host alone all blocks of a vector are one piece of memory. */
static int run_multiply(const filch_call *call)
{
    const bench_cg_arguments *args = call->args;
    const filch_view *v = call->views;
    bench_cg_part *part = v[1].ptr;
    for (uint32_t times = bench_slow_times(call->device); times > 0; times--)
        part->value = call->view_count > 7
                          ? multiply_rows(v)
                          : bench_cg_multiply(args->system, args->block,
                                              (const double *)v[4].ptr - v[4].row, v[0].ptr);
    bench_mark_visit(args->mark, call->device);
    return 0;
}

static int run_sum(const filch_call *call)
{
    const bench_cg_arguments *args = call->args;
    bench_cg_scalars *scalars = call->views[0].ptr;
    double sum = 0;
    for (uint32_t k = 1; k <= args->parts; k++)
        sum += ((const bench_cg_part *)call->views[k].ptr)->value;
    if (args->meaning == BENCH_CG_BEGIN)
        bench_cg_begin(scalars, sum);
    else if (args->meaning == BENCH_CG_ALPHA)
        bench_cg_alpha(scalars, sum);
    else
        bench_cg_beta(scalars, sum);
    return 0;
}

/* Done again with 0 for alpha it changes nothing. */
static int run_update(const filch_call *call)
{
    const bench_cg_arguments *args = call->args;
    const filch_view *v = call->views;
    double alpha = ((const bench_cg_scalars *)v[5].ptr)->alpha;
    bench_cg_part *part = v[4].ptr;
    for (uint32_t times = bench_slow_times(call->device); times > 0; times--, alpha = 0)
        part->value = bench_cg_update(v[0].rows, alpha, v[2].ptr, v[3].ptr, v[0].ptr, v[1].ptr);
    bench_mark_visit(args->mark, call->device);
    return 0;
}

/* Done again as p = 0 r + p it changes nothing. */
static int run_direction(const filch_call *call)
{
    const bench_cg_arguments *args = call->args;
    const filch_view *v = call->views;
    uint32_t times = bench_slow_times(call->device);
    bench_cg_direction(v[0].rows, 1, v[1].ptr, ((const bench_cg_scalars *)v[2].ptr)->beta,
                       v[0].ptr);
    while (--times > 0)
        bench_cg_direction(v[0].rows, 0, v[1].ptr, 1, v[0].ptr);
    if (call->view_count > 3)
        copy_edges(&v[0], &v[3], &v[4]);
    bench_mark_visit(args->mark, call->device);
    return 0;
}

/* --- On GPUs --- */

static int shape_of(const filch_call *call, uint64_t rows_a_thread, filch_shape *shape)
{
    uint64_t each = THREADS * rows_a_thread, blocks = (call->views[0].rows + each - 1) / each;
    shape->grid[0] = (uint32_t)(blocks < BENCH_CG_THREAD_BLOCKS ? blocks : BENCH_CG_THREAD_BLOCKS);
    shape->block[0] = THREADS;
    return 0;
}

static int shape_rows(const filch_call *call, filch_shape *shape)
{
    return shape_of(call, 1, shape);
}

static int shape_vectors(const filch_call *call, filch_shape *shape)
{
    return shape_of(call, STRIDE, shape);
}

/* As on the host, each product is rounded before it is added. */
#define CODE(task, host_fn, view_count, ...)                                     \
    {                                                                            \
        .name = "cg_" #task, .host = (host_fn), .views = (view_count), .cuda = { \
            .size = sizeof(filch_cuda_desc),                                     \
            .source = bench_text_cg,                                             \
            .entry = "cg_" #task,                                                \
            .options = "--fmad=false",                                           \
            .waits = true,                                                       \
            __VA_ARGS__                                                          \
        }                                                                        \
    }

const bench_cg_code bench_cg_codes[BENCH_CG_TASKS] = {
    [BENCH_CG_INIT] = CODE(init, run_init, 7, .shape_of = shape_rows),
    [BENCH_CG_MULTIPLY] = CODE(multiply, run_multiply, 9, .shape_of = shape_rows),
    [BENCH_CG_SUM] = CODE(sum, run_sum, 1 + BENCH_CG_PARTS, .shape = {.grid = {1}, .block = {32}}),
    [BENCH_CG_UPDATE] = CODE(update, run_update, 7, .shape_of = shape_vectors),
    [BENCH_CG_DIRECTION] = CODE(direction, run_direction, 5, .shape_of = shape_vectors),
};
