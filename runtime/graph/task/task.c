/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/task/task.h"

#include <stdio.h>

#include "graph/build/graph.h"

size_t fl_task_scratch(const fl_task *task)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (task->accesses[i].mode == FILCH_SCRATCH) {
            bytes += (size_t)task->accesses[i].tile * 64;
        }
    }
    return bytes;
}

void fl_task_views(const fl_task *task, filch_view *views, char *scratch)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode == FILCH_SCRATCH) {
            size_t bytes = (size_t)access.tile * 64;
            views[i] =
                (filch_view){.ptr = scratch, .rows = bytes, .cols = 1, .ld = bytes, .element = 1};
            scratch = scratch != NULL ? scratch + bytes : NULL;
        } else {
            const filch_data *data = fl_graph_data(task->graph, access.slot);
            views[i] = FL_UNLIKELY(access.is_block)
                           ? fl_data_region_view(data, &fl_task_blocks(task)[access.tile])
                           : fl_data_tile_view(data, access.tile);
        }
    }
}

const char *fl_task_name(const fl_task *task)
{
    return task->label != NULL ? task->label : task->codelet != NULL ? task->codelet->name : "gate";
}

void fl_task_describe(const fl_task *task, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s #%u", fl_task_name(task), task->order);
}
