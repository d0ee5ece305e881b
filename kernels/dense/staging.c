/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/staging.h"

#include <stdlib.h>
#include <string.h>

filch_status fl_throttle_open(fl_throttle *throttle, size_t steps, size_t columns)
{
    *throttle = (fl_throttle){calloc(steps * columns, sizeof *throttle->tasks), steps, columns};
    return throttle->tasks ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

void fl_throttle_close(fl_throttle *throttle)
{
    free(throttle->tasks);
}

filch_task *fl_throttle_step(fl_throttle *throttle, size_t step, filch_task begins,
                             filch_graph *graph, filch_status *status)
{
    filch_task *tasks = throttle->tasks + step % throttle->steps * throttle->columns;
    for (size_t j = 0; j < throttle->columns && *status == FILCH_OK; j++)
        if (tasks[j] != 0)
            *status = filch_graph_edge(graph, tasks[j], begins);
    memset(tasks, 0, throttle->columns * sizeof *tasks);
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

filch_status fl_staging_load(const fl_dense *dense, const fl_staging *staging, const fl_columns *a,
                             size_t j, filch_graph *graph)
{
    const filch_access accesses[] = {FILCH_R(staging->from, 0, j), FILCH_W(a->data, 0, j)};
    return fl_dense_add(dense, graph, dense->codelets[FL_DENSE_MOVE], (fl_dense_args){0}, accesses,
                        2, fl_columns_owner(a, j));
}

filch_status fl_staging_store(const fl_dense *dense, const fl_staging *staging, const fl_columns *a,
                              size_t j, size_t first, size_t end, filch_graph *graph,
                              filch_task *left, filch_task *sent)
{
    filch_codelet *move = dense->codelets[FL_DENSE_MOVE];
    filch_data *between = staging->between ? staging->between : staging->to;
    uint32_t owner = fl_columns_owner(a, j);
    filch_status status = FILCH_OK;
    for (size_t i = first; i < end && status == FILCH_OK; i++) {
        const filch_access leave[] = {FILCH_R(a->data, 0, j), FILCH_W(between, i, j)};
        const filch_access send[] = {FILCH_R(between, i, j), FILCH_W(staging->to, i, j)};
        const fl_dense_args from = {.row = i * staging->rows}, whole = {.row = 0};
        status = fl_dense_add_named(dense, graph, move, from, leave, 2, owner, left);
        if (status == FILCH_OK && staging->between)
            status = fl_dense_add_named(dense, graph, move, whole, send, 2, owner, sent);
    }
    return status;
}

size_t fl_staging_tiles(const fl_staging *staging, const fl_columns *a, size_t row)
{
    return row < a->rows ? row / staging->rows : (a->rows + staging->rows - 1) / staging->rows;
}
