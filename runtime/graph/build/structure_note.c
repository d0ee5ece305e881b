/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/structure_note.h"

#include <string.h>

#include "graph/build/path.h"

static size_t block_bytes(uint32_t tasks, size_t edges)
{
    return sizeof(fl_log_graph) + ((size_t)tasks + 1 + edges) * sizeof(uint32_t);
}

size_t fl_structure_bytes(const fl_log_graph *made)
{
    return block_bytes(made->tasks, made->edges);
}

static void count_edge(fl_task *successor, void *user)
{
    (void)successor;
    ++*(size_t *)user;
}

static void put_edge(fl_task *successor, void *user)
{
    fl_log_graph *made = user;
    made->list[made->edges++] = successor->order;
}

/* Fills the arrays, which have the right sizes. */
static void fill(const filch_graph *graph, fl_log_graph *made)
{
    for (uint32_t i = 0; i < made->tasks; ++i) {
        made->begin[i] = (uint32_t)made->edges;
        fl_graph_each_successor(fl_graph_task_at(graph, i), put_edge, made);
    }
    made->begin[made->tasks] = (uint32_t)made->edges;
}

fl_log_graph *fl_structure_note(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    /* Relaxed: a sealed graph's count is constant. */
    uint32_t tasks = fl_load_relaxed(&graph->task_count);
    size_t edges = 0;
    double path_ns = 0;
    fl_log_graph *made = NULL;
    fl_latch_lock(&graph->lock);
    for (uint32_t i = 0; i < tasks; ++i) {
        fl_graph_each_successor(fl_graph_task_at(graph, i), count_edge, &edges);
    }
    if (edges < UINT32_MAX && fl_graph_path(graph, &path_ns) == FILCH_OK) {
        made = fl_alloc(memory, block_bytes(tasks, edges));
    }
    if (made != NULL) {
        uint32_t *arrays = (uint32_t *)(void *)(made + 1);
        *made = (fl_log_graph){.number = graph->number,
                               .tasks = tasks,
                               .begin = arrays,
                               .list = arrays + tasks + 1,
                               .path_ns = path_ns};
        memcpy(made->label, graph->label, sizeof made->label);
        fill(graph, made);
    }
    fl_latch_unlock(&graph->lock);
    return made;
}

void fl_structure_free(const fl_memory *memory, fl_log_graph *made)
{
    fl_free(memory, made, fl_structure_bytes(made));
}
