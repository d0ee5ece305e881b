/* SPDX-License-Identifier: Apache-2.0 */
/* Triangular solves by block columns. A step solves for the rows of one diagonal block; the block
 * column of the triangle holds all that the step takes: of A itself, products that leave the solved
 * rows for the rest (right-looking), of A', products of the rest that enter them (left-looking). */
#include "kernels/dense/codelets.h"
#include "kernels/dense/inverses.h"
#include "kernels/dense/steps.h"

/* Rows of the block column on the side of the diagonal block where the triangle is. */
static void rest_of(const filch_call *call, uint64_t *first, uint64_t *count)
{
    const fl_dense_args *args = call->args;
    uint64_t end = args->row + args->order;
    bool is_lower = args->fill == FL_VENDOR_FILL_LOWER;
    *first = is_lower ? end : 0;
    *count = is_lower ? call->views[0].rows - end : args->row;
}

static int swap_rows(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *b = &call->views[1];
    const filch_view below = fl_part(b, args->row, 0, b->rows - args->row, b->cols);
    return args->swap ? fl_place_laswp(on, &below, call->views[2].ptr, args->order, false) : 0;
}

static int multiply(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *b = &call->views[1];
    uint64_t first, count;
    rest_of(call, &first, &count);
    const fl_vendor_form form = {
        .op_a = args->op, .alpha = -1, .beta = 1, .compute = args->compute};
    const filch_view a = fl_part(&call->views[0], first, 0, count, args->order);
    const filch_view solved = fl_part(b, args->row, 0, args->order, b->cols);
    const filch_view rest = fl_part(b, first, 0, count, b->cols);
    if (count == 0)
        return 0;
    return args->op == FL_VENDOR_OP_N ? fl_place_gemm(on, &form, &a, &solved, &rest)
                                      : fl_place_gemm(on, &form, &a, &rest, &solved);
}

/* The diagonal block's rows, by its inverse where that is there and pays. */
static int solve(const fl_place *on, const filch_call *call, const filch_view *solved)
{
    const fl_dense_args *args = call->args;
    const filch_view *more = &call->views[args->swap ? 3 : 2];
    uint64_t order = args->order;
    const fl_vendor_form form = {
        .fill = args->fill, .op_a = args->op, .diagonal = args->diagonal, .alpha = 1};
    const filch_view a = fl_part(&call->views[0], args->row, 0, order, order);
    if (args->inverts == FL_DENSE_BY_BLOCKS)
        return fl_inverses_solve(on, &form, (const filch_view[]){a, more[0], *solved, more[1]});
    if (!args->inverts || !on->lane)
        return fl_place_trsm(on, &form, &a, solved);
    const filch_view inverse = fl_part(&more[0], 0, 0, order, order);
    const filch_view room = fl_dense_room(&more[1], order, solved->cols, solved->element);
    return fl_place_multiply(on, &form, &inverse, solved, &room);
}

int fl_dense_run_blocks(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const fl_vendor_form form = {.fill = args->fill, .diagonal = args->diagonal};
    const filch_view a = fl_part(&call->views[0], args->row, 0, args->order, args->order);
    return fl_inverses_make(on, &form, (const filch_view[]){a, call->views[1]});
}

double fl_dense_work_blocks(const filch_call *call)
{
    double order = (double)call->views[1].rows / 2; /* of each block */
    return (double)((const fl_dense_args *)call->args)->order * order * order / 3;
}

int fl_dense_run_step(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *b = &call->views[1];
    const filch_view solved = fl_part(b, args->row, 0, args->order, b->cols);
    int code = swap_rows(on, call);
    if (code == 0 && args->op == FL_VENDOR_OP_T)
        code = multiply(on, call);
    if (code == 0)
        code = solve(on, call, &solved);
    return code != 0 || args->op == FL_VENDOR_OP_T || args->only_solves ? code : multiply(on, call);
}

double fl_dense_work_step(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    double order = (double)args->order, cols = (double)call->views[1].cols;
    uint64_t first, count;
    rest_of(call, &first, &count);
    return order * cols * (order + (args->only_solves ? 0 : 2 * (double)count));
}

filch_status fl_dense_add_step(const fl_dense *dense, const fl_step *step, filch_graph *graph)
{
    const fl_columns *a = step->a, *b = step->b;
    int compute = dense->desc.compute;
    fl_dense_args args = {.row = step->at * a->tile,
                          .order = step->order,
                          .fill = step->form.fill,
                          .op = step->form.op_a,
                          .diagonal = step->form.diagonal,
                          .swap = step->pivots != NULL,
                          .inverts = step->has_blocks ? FL_DENSE_BY_BLOCKS : step->inverses != NULL,
                          .compute = compute == FL_DENSE_TF32X3 ? FL_VENDOR_COMPUTE_SINGLE
                                                                : (uint8_t)compute,
                          .only_solves = step->only_solves};
    filch_access accesses[5] = {FILCH_R(a->data, 0, step->at), FILCH_RW(b->data, 0, step->to)};
    uint32_t count = 2;
    if (step->pivots)
        accesses[count++] = (filch_access)FILCH_R(step->pivots, step->at, 0);
    if (step->inverses) {
        accesses[count++] = (filch_access)FILCH_R(step->inverses, 0, step->at);
        accesses[count++] = fl_dense_scratch(dense, step->order, fl_columns_width(b, step->to));
    }
    return fl_dense_add(dense, graph, dense->codelets[FL_DENSE_STEP], args, accesses, count,
                        fl_columns_owner(b, step->to));
}

static filch_status add_blocks(const fl_dense *dense, const fl_step *step, filch_graph *graph)
{
    const fl_dense_args args = {.row = step->at * step->a->tile,
                                .order = step->order,
                                .fill = step->form.fill,
                                .diagonal = step->form.diagonal};
    const filch_access accesses[] = {FILCH_R(step->a->data, 0, step->at),
                                     FILCH_W(step->inverses, 0, step->at)};
    return fl_dense_add(dense, graph, dense->codelets[FL_DENSE_BLOCKS], args, accesses, 2,
                        fl_columns_owner(step->a, step->at));
}

bool fl_dense_blocks_pay(const fl_columns *a, const fl_columns *b)
{
    return fl_inverses_pay(fl_least(FL_INVERTED, a->tile), b->cols);
}

filch_status fl_dense_blocks(const fl_dense *dense, const fl_columns *a, filch_data **out)
{
    const filch_data_desc desc = {.element = dense->desc.element,
                                  .rows = 2 * fl_least(FL_INVERTED, a->tile),
                                  .cols = fl_columns_count(a) * a->tile,
                                  .tile_cols = a->tile,
                                  .flags = FILCH_DATA_NO_BUFFER};
    return fl_dense_data(dense, desc, "inverses", out);
}

filch_status fl_dense_solve(const fl_dense *dense, const fl_vendor_form *form, const fl_columns *a,
                            const fl_columns *b, filch_data *blocks, filch_graph *graph)
{
    bool is_forward = (form->fill == FL_VENDOR_FILL_LOWER) == (form->op_a == FL_VENDOR_OP_N);
    size_t count = fl_columns_count(a);
    fl_step step = {.form = *form, .a = a, .b = b, .inverses = blocks, .has_blocks = blocks};
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < count && status == FILCH_OK; k++) {
        step.at = is_forward ? k : count - 1 - k;
        step.order = fl_columns_width(a, step.at);
        if (blocks)
            status = add_blocks(dense, &step, graph);
        for (step.to = 0; step.to < fl_columns_count(b) && status == FILCH_OK; step.to++)
            status = fl_dense_add_step(dense, &step, graph);
    }
    return status;
}
