/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/through.h"

/* The rows from args->row on of one view to the other, or as many as it has. */
int fl_dense_run_move(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *to = &call->views[1];
    const filch_view from = fl_part(&call->views[0], args->row, 0, to->rows, to->cols);
    return fl_place_copy(on, &from, to);
}

filch_status fl_through_bring(const fl_dense *dense, const fl_through *through, const fl_columns *a,
                              size_t j, filch_graph *graph)
{
    const filch_access accesses[] = {FILCH_R(through->from, 0, j), FILCH_W(a->data, 0, j)};
    return fl_dense_add(dense, graph, dense->codelets[FL_DENSE_MOVE], (fl_dense_args){0}, accesses,
                        2, fl_columns_owner(a, j));
}

filch_status fl_through_deliver(const fl_dense *dense, const fl_through *through,
                                const fl_columns *a, size_t j, size_t first, size_t end,
                                filch_graph *graph, filch_task *last)
{
    filch_status status = FILCH_OK;
    for (size_t i = first; i < end && status == FILCH_OK; i++) {
        const filch_access accesses[] = {FILCH_R(a->data, 0, j), FILCH_W(through->to, i, j)};
        const fl_dense_args args = {.row = i * through->rows};
        status = fl_dense_add_named(dense, graph, dense->codelets[FL_DENSE_MOVE], args, accesses, 2,
                                    fl_columns_owner(a, j), last);
    }
    return status;
}

size_t fl_through_tiles(const fl_through *through, const fl_columns *a, size_t row)
{
    return row < a->rows ? row / through->rows : (a->rows + through->rows - 1) / through->rows;
}
