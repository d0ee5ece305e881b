/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/structure_note.h"

#include <string.h>

#include "graph/build/path.h"

static size_t begin_bytes(const fl_log_graph *made)
{
    return ((size_t)made->tasks + 1) * sizeof *made->begin;
}

static size_t list_bytes(const fl_log_graph *made)
{
    return (made->edges + 1) * sizeof *made->list;
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

/* Fills the arrays, of the right sizes. */
static void fill(const filch_graph *graph, fl_log_graph *made)
{
    made->edges = 0;
    for (uint32_t i = 0; i < made->tasks; ++i) {
        made->begin[i] = (uint32_t)made->edges;
        fl_graph_each_successor(fl_graph_task_at(graph, i), put_edge, made);
    }
    made->begin[made->tasks] = (uint32_t)made->edges;
}

bool fl_structure_note(filch_graph *graph, fl_log_graph *made)
{
    const fl_memory *memory = &graph->object.core->memory;
    /* Relaxed: a sealed graph's count is constant. */
    *made = (fl_log_graph){.number = graph->number, .tasks = fl_load_relaxed(&graph->task_count)};
    memcpy(made->label, graph->label, sizeof made->label);
    fl_mutex_lock(&graph->lock);
    for (uint32_t i = 0; i < made->tasks; ++i) {
        fl_graph_each_successor(fl_graph_task_at(graph, i), count_edge, &made->edges);
    }
    bool is_done = made->edges < UINT32_MAX;
    if (is_done) {
        made->begin = fl_alloc(memory, begin_bytes(made));
        made->list = fl_alloc(memory, list_bytes(made));
        is_done = made->begin != NULL && made->list != NULL &&
                  fl_graph_path(graph, &made->path_ns) == FILCH_OK;
    }
    if (is_done) {
        fill(graph, made);
    } else {
        fl_structure_free(memory, made);
    }
    fl_mutex_unlock(&graph->lock);
    return is_done;
}

void fl_structure_free(const fl_memory *memory, fl_log_graph *made)
{
    fl_free(memory, made->begin, begin_bytes(made));
    fl_free(memory, made->list, list_bytes(made));
}
