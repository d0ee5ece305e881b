/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/through.h"

#include <stdlib.h>
#include <string.h>

filch_status fl_laps_open(fl_laps *laps, size_t steps, size_t columns)
{
    *laps = (fl_laps){calloc(steps * columns, sizeof *laps->tasks), steps, columns};
    return laps->tasks ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

void fl_laps_close(fl_laps *laps)
{
    free(laps->tasks);
}

filch_task *fl_laps_next(fl_laps *laps, size_t step, filch_task begins, filch_graph *graph,
                         filch_status *status)
{
    filch_task *tasks = laps->tasks + step % laps->steps * laps->columns;
    for (size_t j = 0; j < laps->columns && *status == FILCH_OK; j++)
        if (tasks[j] != 0)
            *status = filch_graph_edge(graph, tasks[j], begins);
    memset(tasks, 0, laps->columns * sizeof *tasks);
    return tasks;
}

/* views: from, to. Copies `to`'s shape from row args->row on. */
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
                                filch_graph *graph, filch_task *left, filch_task *sent)
{
    filch_codelet *move = dense->codelets[FL_DENSE_MOVE];
    filch_data *between = through->between ? through->between : through->to;
    uint32_t owner = fl_columns_owner(a, j);
    filch_status status = FILCH_OK;
    for (size_t i = first; i < end && status == FILCH_OK; i++) {
        const filch_access leave[] = {FILCH_R(a->data, 0, j), FILCH_W(between, i, j)};
        const filch_access send[] = {FILCH_R(between, i, j), FILCH_W(through->to, i, j)};
        const fl_dense_args from = {.row = i * through->rows}, whole = {.row = 0};
        status = fl_dense_add_named(dense, graph, move, from, leave, 2, owner, left);
        if (status == FILCH_OK && through->between)
            status = fl_dense_add_named(dense, graph, move, whole, send, 2, owner, sent);
    }
    return status;
}

size_t fl_through_tiles(const fl_through *through, const fl_columns *a, size_t row)
{
    return row < a->rows ? row / through->rows : (a->rows + through->rows - 1) / through->rows;
}
