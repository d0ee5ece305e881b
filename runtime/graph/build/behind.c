/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of predecessors, for workers that put a task on a device behind its predecessors. */
#include "graph/build/graph.h"
#include "graph/scheduler.h"

/* Position of the next predecessor in every task's list, and the task with its successors being
 * listed. */
typedef struct fl_listing {
    filch_graph *graph;
    uint32_t *next;
    uint32_t from;
} fl_listing;

static void list_one(fl_task *successor, void *user)
{
    const fl_listing *listing = user;
    listing->graph->pred_list[listing->next[successor->order]++] = listing->from;
}

/* Moves every task to a common epoch, later than every earlier epoch. Epochs then tell which tasks
 * of a run are claimed. Stale hints have earlier epochs and stay stale. */
static void align_epochs(filch_graph *graph)
{
    uint64_t latest = 0;
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        /* Relaxed: no worker runs the task. */
        uint64_t word = fl_load_relaxed(&fl_graph_task_at(graph, i)->word);
        latest = word > latest ? word : latest;
    }
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        fl_store_relaxed(&fl_graph_task_at(graph, i)->word, fl_word_next_epoch(latest));
    }
}

bool fl_graph_list_predecessors(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    uint32_t count = graph->task_count;
    uint32_t *begin = fl_alloc_zeroed(memory, ((size_t)count + 1) * sizeof *begin);
    uint32_t *next = fl_alloc(memory, ((size_t)count + 1) * sizeof *next);
    size_t total = 0;
    for (uint32_t i = 0; begin != NULL && next != NULL && i < count; ++i) {
        begin[i] = next[i] = (uint32_t)total;
        total += fl_graph_task_at(graph, i)->predecessors;
    }
    uint32_t *list = begin != NULL && next != NULL && total < UINT32_MAX
                         ? fl_alloc(memory, total * sizeof *list)
                         : NULL;
    if (list == NULL) {
        fl_free(memory, begin, ((size_t)count + 1) * sizeof *begin);
        fl_free(memory, next, ((size_t)count + 1) * sizeof *next);
        return false;
    }
    begin[count] = (uint32_t)total;
    graph->pred_begin = begin;
    graph->pred_list = list;
    graph->pred_total = total;
    fl_listing listing = {graph, next, 0};
    for (; listing.from < count; ++listing.from) {
        fl_graph_each_successor(fl_graph_task_at(graph, listing.from), list_one, &listing);
    }
    fl_free(memory, next, ((size_t)count + 1) * sizeof *next);
    align_epochs(graph);
    return true;
}

void fl_graph_drop_predecessors(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    if (graph->pred_begin != NULL) {
        fl_free(memory, graph->pred_begin,
                ((size_t)graph->task_count + 1) * sizeof *graph->pred_begin);
        fl_free(memory, graph->pred_list, graph->pred_total * sizeof *graph->pred_list);
        graph->pred_begin = graph->pred_list = NULL;
    }
}
