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

/* The rows of one diagonal block, by its inverse where that is there and on a GPU. */
static int solve_rows(const fl_place *on, const fl_pass_args *args, const filch_view *block,
                      const filch_view *inverse, const filch_view *scratch, const filch_view *x)
{
    bool is_lower = args->fill == FL_VENDOR_FILL_LOWER;
    const fl_vendor_form triangle = {
        .fill = args->fill, .diagonal = is_lower ? FL_VENDOR_UNIT : FL_VENDOR_NON_UNIT, .alpha = 1};
    const fl_vendor_form product = {.op_a = is_lower ? FL_VENDOR_OP_N : FL_VENDOR_OP_T, .alpha = 1};
    if (!on->lane || !inverse)
        return fl_place_trsm_few(on, &triangle, block, x);
    const filch_view by = fl_part(inverse, 0, 0, x->rows, x->rows);
    const filch_view room = fl_dense_room(scratch, x->rows, x->cols, x->element);
    int code = fl_place_copy(on, x, &room);
    return code ? code : fl_place_gemm_few(on, &product, &by, &room, x);
}

/* A diagonal block, and the products of its rows that leave the rest. */
static int solve_block(const fl_place *on, const filch_call *call, uint32_t k)
{
    static const fl_vendor_form minus = {.alpha = -1, .beta = 1};
    const fl_pass_args *args = call->args;
    const filch_view *x = &call->views[0], *a = &call->views[2 + k];
    uint32_t inverse = 2 + args->blocks + k;
    bool is_lower = args->fill == FL_VENDOR_FILL_LOWER;
    uint64_t first = is_lower ? a->col + a->cols : 0;
    uint64_t count = is_lower ? a->rows - first : a->col;
    const filch_view block = fl_part(a, a->col, 0, a->cols, a->cols);
    const filch_view solved = fl_part(x, a->col, 0, a->cols, args->count);
    int code =
        solve_rows(on, args, &block, inverse < call->view_count ? &call->views[inverse] : NULL,
                   &call->views[1], &solved);
    if (code != 0 || count == 0)
        return code;
    const filch_view beside = fl_part(a, first, 0, count, a->cols);
    const filch_view rest = fl_part(x, first, 0, count, args->count);
    return fl_place_gemm_few(on, &minus, &beside, &solved, &rest);
}

static int run_solve(const fl_place *on, const filch_call *call)
{
    int code = 0;
    for (uint32_t k = 0; k < ((const fl_pass_args *)call->args)->blocks && code == 0; k++)
        code = solve_block(on, call, k);
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

static size_t columns_a_task(const fl_columns *a)
{
    return a->dealt ? 1 : fl_least(COLUMNS_A_TASK, fl_columns_count(a));
}

filch_status fl_pass_times(const fl_dense *dense, filch_graph *graph, fl_pass_args args,
                           const fl_columns *a, filch_data *x, filch_data *y)
{
    size_t blocks = fl_columns_count(a), most = columns_a_task(a);
    filch_status status = FILCH_OK;
    for (size_t at = 0; at < blocks && status == FILCH_OK; at += most) {
        filch_access accesses[2 + COLUMNS_A_TASK] = {FILCH_RW(y, 0, 0), FILCH_R(x, 0, 0)};
        uint32_t count = 2;
        for (size_t k = at; k < blocks && k < at + most; k++)
            accesses[count++] = (filch_access)FILCH_R(a->data, 0, k);
        status = fl_pass_add(dense, graph, FL_PASS_TIMES, args, accesses, count,
                             fl_columns_owner(a, at));
        args.adds = 1;
    }
    return status;
}

/* Steps of block columns from `at` on, in the order of the triangle. */
static filch_status add_solve(const fl_dense *dense, filch_graph *graph, fl_pass_args args,
                              const fl_lu *lu, const fl_columns *a, filch_data *x, size_t at)
{
    size_t blocks = fl_columns_count(a), end = fl_least(at + columns_a_task(a), blocks);
    bool is_lower = args.fill == FL_VENDOR_FILL_LOWER;
    filch_data *inverses = fl_lu_inverses(lu, args.fill);
    filch_access accesses[2 + 2 * COLUMNS_A_TASK] = {FILCH_RW(x, 0, 0),
                                                     fl_dense_scratch(dense, a->tile, args.count)};
    uint32_t count = 2;
    for (size_t k = at; k < end; k++)
        accesses[count++] = (filch_access)FILCH_R(a->data, 0, is_lower ? k : blocks - 1 - k);
    for (size_t k = at; inverses && k < end && (!is_lower || k + 1 < blocks); k++)
        accesses[count++] = (filch_access)FILCH_R(inverses, 0, is_lower ? k : blocks - 1 - k);
    args.blocks = (uint32_t)(end - at);
    return fl_pass_add(dense, graph, FL_PASS_SOLVE, args, accesses, count,
                       fl_columns_owner(a, is_lower ? at : blocks - 1 - at));
}

filch_status fl_pass_solve(const fl_dense *dense, filch_graph *graph, fl_pass_args args,
                           const fl_lu *lu, const fl_columns *a, filch_data *x)
{
    static const int fills[] = {FL_VENDOR_FILL_LOWER, FL_VENDOR_FILL_UPPER};
    filch_status status = FILCH_OK;
    for (size_t f = 0; f < 2; f++)
        for (size_t at = 0; at < fl_columns_count(a) && status == FILCH_OK;
             at += columns_a_task(a)) {
            args.fill = fills[f];
            status = add_solve(dense, graph, args, lu, a, x, at);
        }
    return status;
}
