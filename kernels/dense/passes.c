/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/passes.h"

/* Block columns of a task: few tasks, and no more in one memory at once than needs to be. Of
 * matrices that are dealt to devices a task has one, where that lies. */
#define COLUMNS_A_TASK 16

static int run_copy(const fl_place *on, const filch_call *call)
{
    const fl_pass_args *args = call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1];
    const filch_view source = fl_part(from, 0, args->from, from->rows, args->count);
    const filch_view target = fl_part(to, 0, args->to, from->rows, args->count);
    return fl_place_copy(on, &source, &target);
}

static int run_times(const fl_place *on, const filch_call *call)
{
    const fl_pass_args *args = call->args;
    const filch_view *y = &call->views[0], *x = &call->views[1];
    const filch_view to = fl_part(y, 0, args->to, y->rows, args->count);
    fl_vendor_form form = {.alpha = args->factor, .beta = args->adds};
    int code = 0;
    for (uint32_t k = 2; k < call->view_count && code == 0; k++) {
        const filch_view *a = &call->views[k];
        const filch_view from = fl_part(x, a->col, args->from, a->cols, args->count);
        code = fl_place_gemm_few(on, &form, a, &from, &to);
        form.beta = 1;
    }
    return code;
}

/* The rows of one diagonal block, and their products that leave the rest. */
static int solve_block(const fl_place *on, const fl_pass_args *args, const filch_view *a,
                       const filch_view *x)
{
    bool is_lower = args->fill == FL_VENDOR_FILL_LOWER;
    const fl_vendor_form triangle = {
        .fill = args->fill, .diagonal = is_lower ? FL_VENDOR_UNIT : FL_VENDOR_NON_UNIT, .alpha = 1};
    const fl_vendor_form minus = {.alpha = -1, .beta = 1};
    uint64_t first = is_lower ? a->col + a->cols : 0;
    uint64_t count = is_lower ? a->rows - first : a->col;
    const filch_view block = fl_part(a, a->col, 0, a->cols, a->cols);
    const filch_view solved = fl_part(x, a->col, 0, a->cols, args->count);
    int code = fl_place_trsm_few(on, &triangle, &block, &solved);
    if (code != 0 || count == 0)
        return code;
    const filch_view beside = fl_part(a, first, 0, count, a->cols);
    const filch_view rest = fl_part(x, first, 0, count, args->count);
    return fl_place_gemm_few(on, &minus, &beside, &solved, &rest);
}

static int run_solve(const fl_place *on, const filch_call *call)
{
    int code = 0;
    for (uint32_t k = 1; k < call->view_count && code == 0; k++)
        code = solve_block(on, call->args, &call->views[k], &call->views[0]);
    return code;
}

static int run_scale(const fl_place *on, const filch_call *call)
{
    const fl_pass_args *args = call->args;
    const filch_view *x = &call->views[0];
    const filch_view columns = fl_part(x, 0, args->to, x->rows, args->count);
    return fl_place_scale(on, args->factor, &columns);
}

static int run_basis(const fl_place *on, const filch_call *call)
{
    static const fl_vendor_form dot = {.op_a = FL_VENDOR_OP_T, .alpha = 1};
    static const fl_vendor_form minus = {.alpha = -1, .beta = 1};
    const fl_pass_args *args = call->args;
    const filch_view *v = &call->views[0], *products = &call->views[1];
    uint64_t count = args->to, half = (products->rows - 1) / 2;
    const filch_view before = fl_part(v, 0, 0, v->rows, count);
    const filch_view own = fl_part(v, 0, count, v->rows, 1);
    const filch_view square = fl_part(products, 2 * half, 0, 1, 1);
    int code = 0;
    for (uint64_t pass = 0; pass < 2 && count > 0 && code == 0; pass++) {
        const filch_view some = fl_part(products, pass * half, 0, count, 1);
        code = fl_place_gemm_few(on, &dot, &before, &own, &some);
        if (code == 0)
            code = fl_place_gemm_few(on, &minus, &before, &some, &own);
    }
    return code ? code : fl_place_gemm_few(on, &dot, &own, &own, &square);
}

static int run_combine(const fl_place *on, const filch_call *call)
{
    static const fl_vendor_form plus = {.alpha = 1, .beta = 1};
    const fl_pass_args *args = call->args;
    const filch_view *x = &call->views[0], *z = &call->views[1], *factors = &call->views[2];
    const filch_view to = fl_part(x, 0, args->to, x->rows, 1);
    const filch_view from = fl_part(z, 0, 0, z->rows, args->count);
    const filch_view some = fl_part(factors, 0, 0, args->count, 1);
    return fl_place_gemm_few(on, &plus, &from, &some, &to);
}

/* Elements that are read. */
static double work_of(const filch_call *call)
{
    double elements = 0;
    for (uint32_t k = 0; k < call->view_count; k++)
        elements += (double)call->views[k].rows * (double)call->views[k].cols;
    return elements;
}

/* Both sides of each codelet. */
#define SIDES(name)                                                                      \
    static int host_##name(const filch_call *call)                                       \
    {                                                                                    \
        const fl_place on = {.host = ((const fl_pass_args *)call->args)->host};          \
        return run_##name(&on, call);                                                    \
    }                                                                                    \
    static int enqueue_##name(const filch_call *call, const filch_lane *lane, void *own) \
    {                                                                                    \
        const fl_place on = {.lane = own};                                               \
        (void)lane;                                                                      \
        return run_##name(&on, call);                                                    \
    }

SIDES(copy)
SIDES(times)
SIDES(solve)
SIDES(scale)
SIDES(basis)
SIDES(combine)

#define ROW(name)                                  \
    {                                              \
        "pass_" #name, host_##name, enqueue_##name \
    }

static const struct {
    const char *name;
    filch_host_fn host;
    filch_enqueue_fn enqueue;
} kernels[FL_PASSES] = {
    [FL_PASS_COPY] = ROW(copy),   [FL_PASS_TIMES] = ROW(times), [FL_PASS_SOLVE] = ROW(solve),
    [FL_PASS_SCALE] = ROW(scale), [FL_PASS_BASIS] = ROW(basis), [FL_PASS_COMBINE] = ROW(combine),
};

static filch_status make(fl_dense *dense, fl_pass which)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.enqueue = kernels[which].enqueue;
    cuda.open = fl_vendor_lane_open;
    cuda.close = fl_vendor_lane_close;
    cuda.user = dense->desc.vendor;
    desc.name = kernels[which].name;
    desc.host = kernels[which].host;
    desc.cuda = dense->desc.vendor ? &cuda : NULL;
    desc.work = work_of;
    desc.arg_size = sizeof(fl_pass_args);
    return filch_codelet_create(dense->desc.runtime, &desc, &dense->passes[which]);
}

filch_status fl_pass_open(fl_dense *dense)
{
    filch_status status = FILCH_OK;
    for (int k = 0; k < FL_PASSES && status == FILCH_OK; k++)
        if (!dense->passes[k])
            status = make(dense, (fl_pass)k);
    return status;
}

filch_status fl_pass_add(const fl_dense *dense, filch_graph *graph, fl_pass which,
                         fl_pass_args args, const filch_access *accesses, uint32_t count,
                         uint32_t affinity)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    args.host = dense->desc.host;
    desc.codelet = dense->passes[which];
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.affinity = affinity;
    return filch_graph_add(graph, &desc, NULL);
}

/* A task on block columns after the accesses that are there already; at: the first of them, in the
 * order of the pass. */
static filch_status add_columns(const fl_dense *dense, filch_graph *graph, fl_pass which,
                                fl_pass_args args, filch_access *accesses, uint32_t count,
                                const fl_columns *a, size_t at)
{
    size_t blocks = fl_columns_count(a), most = a->dealt ? 1 : COLUMNS_A_TASK;
    bool is_backwards = which == FL_PASS_SOLVE && args.fill == FL_VENDOR_FILL_UPPER;
    uint32_t affinity = fl_columns_owner(a, is_backwards ? blocks - 1 - at : at);
    for (size_t k = at; k < blocks && k < at + most; k++)
        accesses[count++] = (filch_access)FILCH_R(a->data, 0, is_backwards ? blocks - 1 - k : k);
    return fl_pass_add(dense, graph, which, args, accesses, count, affinity);
}

filch_status fl_pass_times(const fl_dense *dense, filch_graph *graph, fl_pass_args args,
                           const fl_columns *a, filch_data *x, filch_data *y)
{
    size_t step = a->dealt ? 1 : COLUMNS_A_TASK;
    filch_status status = FILCH_OK;
    for (size_t at = 0; at < fl_columns_count(a) && status == FILCH_OK; at += step) {
        filch_access accesses[2 + COLUMNS_A_TASK] = {FILCH_RW(y, 0, 0), FILCH_R(x, 0, 0)};
        status = add_columns(dense, graph, FL_PASS_TIMES, args, accesses, 2, a, at);
        args.adds = 1;
    }
    return status;
}

filch_status fl_pass_solve(const fl_dense *dense, filch_graph *graph, fl_pass_args args,
                           const fl_columns *lu, filch_data *x)
{
    static const int fills[] = {FL_VENDOR_FILL_LOWER, FL_VENDOR_FILL_UPPER};
    size_t step = lu->dealt ? 1 : COLUMNS_A_TASK;
    filch_status status = FILCH_OK;
    for (size_t f = 0; f < 2; f++)
        for (size_t at = 0; at < fl_columns_count(lu) && status == FILCH_OK; at += step) {
            filch_access accesses[1 + COLUMNS_A_TASK] = {FILCH_RW(x, 0, 0)};
            args.fill = fills[f];
            status = add_columns(dense, graph, FL_PASS_SOLVE, args, accesses, 1, lu, at);
        }
    return status;
}
