/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/tiles.h"

#include "kernels/dense/inverses.h"
#include "kernels/dense/place.h"

#include "filch/kernels.h"

#include <stdlib.h>

typedef struct tile_args {
    fl_vendor_form form;
    const fl_dense_host *host;
} tile_args;

static int multiply(const fl_place *on, const filch_view *v)
{
    static const fl_vendor_form form = {.side = FL_VENDOR_SIDE_RIGHT,
                                        .fill = FL_VENDOR_FILL_LOWER,
                                        .op_a = FL_VENDOR_OP_T,
                                        .alpha = 1};
    return on->lane ? fl_vendor_multiply(on->lane, &v[0], &v[1], v[2].ptr)
                    : fl_place_trmm(on, &form, &v[0], &v[1]);
}

static int run(fl_tile_op op, const fl_place *on, const filch_call *call)
{
    const fl_vendor_form *form = &((const tile_args *)call->args)->form;
    const filch_view *v = call->views;
    switch (op) {
    case FL_TILE_GEMM:
        return fl_place_gemm(on, form, &v[0], &v[1], &v[2]);
    case FL_TILE_SYMM:
        return fl_place_symm(on, form, &v[0], &v[1], &v[2]);
    case FL_TILE_SYRK:
        return fl_place_syrk(on, form, &v[0], &v[1]);
    case FL_TILE_TRMM:
        return fl_place_trmm(on, form, &v[0], &v[1]);
    case FL_TILE_TRSM:
        return fl_place_trsm(on, form, &v[0], &v[1]);
    case FL_TILE_INVERT:
        return fl_inverses_make(on, form, v);
    case FL_TILE_SOLVE:
        return fl_inverses_solve(on, form, v);
    case FL_TILE_MULTIPLY:
        return multiply(on, v);
    default:
        return fl_place_potrf(on, form->fill, &v[0], v[1].ptr);
    }
}

static double volume(const filch_view *view)
{
    return (double)view->rows * (double)view->cols;
}

static double inner(const filch_call *call)
{
    const filch_view *a = &call->views[0];
    int op = ((const tile_args *)call->args)->form.op_a;
    return (double)(op == FL_VENDOR_OP_N ? a->cols : a->rows);
}

static double work_gemm(const filch_call *call)
{
    return 2 * volume(&call->views[2]) * inner(call);
}

static double work_syrk(const filch_call *call)
{
    return volume(&call->views[1]) * inner(call);
}

static double work_potrf(const filch_call *call)
{
    return volume(&call->views[0]) * (double)call->views[0].rows / 3;
}

static double work_invert(const filch_call *call)
{
    double order = (double)call->views[1].rows / 2; /* of each block */
    return (double)call->views[0].rows * order * order / 3;
}

static double work_solve(const filch_call *call)
{
    return volume(&call->views[2]) * (double)call->views[0].rows;
}

#define FUNCTIONS(name, OP)                                                                \
    static int host_##name(const filch_call *call)                                         \
    {                                                                                      \
        const fl_place on = {.host = ((const tile_args *)call->args)->host};               \
        return run(OP, &on, call);                                                         \
    }                                                                                      \
    static int enqueue_##name(const filch_call *call, const filch_lane *lane, void *state) \
    {                                                                                      \
        const fl_place on = {.lane = state};                                               \
        (void)lane;                                                                        \
        return run(OP, &on, call);                                                         \
    }

FUNCTIONS(gemm, FL_TILE_GEMM)
FUNCTIONS(symm, FL_TILE_SYMM)
FUNCTIONS(syrk, FL_TILE_SYRK)
FUNCTIONS(trmm, FL_TILE_TRMM)
FUNCTIONS(trsm, FL_TILE_TRSM)
FUNCTIONS(potrf, FL_TILE_POTRF)
FUNCTIONS(invert, FL_TILE_INVERT)
FUNCTIONS(solve, FL_TILE_SOLVE)
FUNCTIONS(multiply, FL_TILE_MULTIPLY)

#define ROW(OP, name, work) [OP] = {#name, host_##name, enqueue_##name, work}

static const struct {
    const char *name;
    filch_host_fn host;
    filch_enqueue_fn enqueue;
    filch_work_fn work;
} ops[FL_TILE_OPS] = {
    ROW(FL_TILE_GEMM, gemm, work_gemm),        ROW(FL_TILE_SYMM, symm, work_gemm),
    ROW(FL_TILE_SYRK, syrk, work_syrk),        ROW(FL_TILE_TRMM, trmm, work_syrk),
    ROW(FL_TILE_TRSM, trsm, work_syrk),        ROW(FL_TILE_POTRF, potrf, work_potrf),
    ROW(FL_TILE_INVERT, invert, work_invert),  ROW(FL_TILE_SOLVE, solve, work_solve),
    ROW(FL_TILE_MULTIPLY, multiply, work_syrk)};

static int run_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

filch_status fl_tiles_open(fl_tiles *tiles, filch_runtime *runtime, fl_vendor *vendor,
                           const fl_dense_host *host, bool is_idle)
{
    filch_status status = FILCH_OK;
    *tiles = (fl_tiles){.runtime = runtime, .host = host, .inverted = vendor ? FL_INVERTED : 0};
    for (int op = 0; op < FL_TILE_OPS; op++)
        for (int single = 0; single < 2 && status == FILCH_OK; single++) {
            filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
            filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
            cuda.enqueue = ops[op].enqueue;
            cuda.open = fl_vendor_lane_open;
            cuda.close = fl_vendor_lane_close;
            cuda.user = vendor;
            desc.name = ops[op].name;
            desc.host = !host ? NULL : is_idle ? run_nothing : ops[op].host;
            desc.cuda = vendor ? &cuda : NULL;
            desc.work = ops[op].work;
            desc.arg_size = sizeof(tile_args);
            status = filch_codelet_create(runtime, &desc, &tiles->codelets[op][single]);
        }
    return status;
}

/* Whether every GPU gives a thread block so many bytes of shared memory. */
static bool has_shared(filch_runtime *runtime, uint64_t bytes)
{
    for (uint32_t d = 0; d < filch_device_count(runtime); d++) {
        filch_device_info info = {.size = sizeof info};
        if (filch_device_at(runtime, d, &info) != FILCH_OK ||
            (info.backend == FILCH_BACKEND_CUDA && info.block_shared < bytes))
            return false;
    }
    return true;
}

filch_codelet *fl_tiles_make_panels(filch_runtime *runtime, bool is_single)
{
    const filch_kernel *kernel =
        filch_kernel_find(is_single ? "potrf_trtri_f32" : "potrf_trtri_f64");
    size_t element = is_single ? sizeof(float) : sizeof(double);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "potrf_trtri";
    desc.cuda = kernel->cuda;
    desc.work = kernel->work;
    desc.arg_size = kernel->arg_size;
    if (!has_shared(runtime, FILCH_POTRF_TRTRI_SHARED(element)) ||
        filch_codelet_create(runtime, &desc, &codelet) != FILCH_OK)
        return NULL;
    return codelet;
}

void fl_tiles_open_panels(fl_tiles *tiles, bool is_single)
{
    if (tiles->has_tried_panels[is_single])
        return;
    tiles->has_tried_panels[is_single] = true;
    if (!tiles->host && tiles->inverted != 0)
        tiles->panels[is_single] = fl_tiles_make_panels(tiles->runtime, is_single);
}

void fl_tile_graph_open(fl_tile_graph *g, const fl_tiles *tiles, bool is_single, bool is_ranked)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.priorities = is_ranked ? FILCH_PRIORITIES_RANK : FILCH_PRIORITIES_CALLER;
    *g = (fl_tile_graph){.tiles = tiles, .is_single = is_single};
    g->status = filch_graph_create(tiles->runtime, &desc, &g->graph);
}

void fl_tile_graph_close(fl_tile_graph *g)
{
    if (g->graph)
        (void)filch_graph_destroy(g->graph);
    g->graph = NULL;
    for (size_t k = 0; k < g->kept_count; k++)
        (void)filch_data_destroy(g->kept[k]);
    free(g->kept);
    g->kept = NULL;
    g->kept_count = 0;
}

filch_data *fl_tile_keep(fl_tile_graph *g, const filch_data_desc *desc)
{
    filch_data **kept = NULL, *data = NULL;
    if (g->status != FILCH_OK)
        return NULL;
    kept = realloc(g->kept, (g->kept_count + 1) * sizeof *kept);
    if (!kept) {
        g->status = FILCH_OUT_OF_MEMORY;
        return NULL;
    }
    g->kept = kept;
    g->status = filch_data_create(g->tiles->runtime, desc, &data);
    if (g->status != FILCH_OK)
        return NULL;
    g->kept[g->kept_count++] = data;
    return data;
}

static void add(fl_tile_graph *g, filch_codelet *codelet, const void *args,
                const filch_access *accesses, uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    if (g->status != FILCH_OK)
        return;
    desc.codelet = codelet;
    desc.args = args;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.priority = g->priority;
    g->status = filch_graph_add(g->graph, &desc, NULL);
}

void fl_tile_add(fl_tile_graph *g, fl_tile_op op, const fl_vendor_form *form,
                 const filch_access *accesses, uint32_t count)
{
    const tile_args args = {*form, g->tiles->host};
    add(g, g->tiles->codelets[op][g->is_single], &args, accesses, count);
}

void fl_tile_add_panel(fl_tile_graph *g, bool inverts, const filch_access accesses[3])
{
    const filch_potrf_trtri_args args = {inverts, 0};
    add(g, g->tiles->panels[g->is_single], &args, accesses, 3);
}
