/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/heat_tasks.h"

#define THREADS 256    /* of a thread block; as in heat.cu */
#define COLUMNS 8      /* of a thread at a time */
#define BLOCKS_Y 65535 /* that a launch may have */

extern const char bench_text_heat[]; /* heat.cu */

/* --- On the host --- */

static int run_init(const filch_call *call)
{
    const bench_heat_arguments *args = call->args;
    bench_heat_init(args->grid, args->strip, call->views[0].ptr);
    return 0;
}

static int run_step(const filch_call *call)
{
    const bench_heat_arguments *args = call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1];
    const double *own = (const double *)from->ptr + (to->col - from->col) * from->ld;
    const double *before = from->col < to->col ? from->ptr : NULL;
    const double *after = NULL;
    if (from->col + from->cols > to->col + to->cols)
        after = own + to->cols * from->ld;
    for (uint32_t times = bench_slow_times(call->device); times > 0; times--)
        bench_heat_step(args->grid, args->strip, before, own, after, to->ptr);
    bench_mark_visit(args->mark, call->device);
    return 0;
}

/* --- On GPUs --- */

/* The last view is the one that is written. */
static int shape_of(const filch_call *call, filch_shape *shape)
{
    const filch_view *to = &call->views[call->view_count - 1];
    uint64_t turns = (to->cols + COLUMNS - 1) / COLUMNS;
    shape->grid[0] = (uint32_t)((to->rows + THREADS - 1) / THREADS);
    shape->grid[1] = (uint32_t)(turns < BLOCKS_Y ? turns : BLOCKS_Y);
    shape->block[0] = THREADS;
    return 0;
}

/* As on the host, each product is rounded before it is added. */
#define CODE(task, host_fn, view_count)                                            \
    {                                                                              \
        .name = "heat_" #task, .host = (host_fn), .views = (view_count), .cuda = { \
            .size = sizeof(filch_cuda_desc),                                       \
            .source = bench_text_heat,                                             \
            .entry = "heat_" #task,                                                \
            .options = "--fmad=false",                                             \
            .waits = true,                                                         \
            .shape_of = shape_of                                                   \
        }                                                                          \
    }

const bench_heat_code bench_heat_codes[BENCH_HEAT_TASKS] = {
    [BENCH_HEAT_INIT] = CODE(init, run_init, 1),
    [BENCH_HEAT_STEP] = CODE(step, run_step, 2),
};
