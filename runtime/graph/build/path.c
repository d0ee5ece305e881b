/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/path.h"

#include "graph/scheduler.h"

/* State of the search; arrays are indexed by a task's order. */
typedef struct fl_path_walk {
    const filch_graph *graph;
    double *ready;  /* ns from the start until the task can begin */
    double end;     /* end of the current task, ns */
    double longest; /* longest path so far, ns */
    /* Number of predecessors not yet visited. Null: the order of tasks puts predecessors first. */
    uint32_t *pending;
    uint32_t *queue; /* tasks with every predecessor visited */
    uint32_t count;  /* tasks in the queue */
} fl_path_walk;

static void count_predecessor(fl_task *successor, void *user)
{
    fl_path_walk *walk = user;
    ++walk->pending[successor->order];
}

static void pass(fl_task *successor, void *user)
{
    fl_path_walk *walk = user;
    double *ready = &walk->ready[successor->order];
    *ready = walk->end > *ready ? walk->end : *ready;
    if (walk->pending != NULL && --walk->pending[successor->order] == 0) {
        walk->queue[walk->count++] = successor->order;
    }
}

/* Visits a task. Remembers the last codelet and its speed: consecutive tasks often have the same
 * codelet. */
static void look(fl_path_walk *walk, uint32_t order, const filch_codelet **codelet,
                 double *per_unit)
{
    fl_scheduler *scheduler = walk->graph->object.core->scheduler;
    const fl_task *task = fl_graph_task_at(walk->graph, order);
    if (task->codelet != *codelet) {
        *codelet = task->codelet;
        *per_unit = *codelet != NULL ? scheduler->least_ns(scheduler, *codelet) : 0;
    }
    walk->end = walk->ready[order] + *per_unit * (double)task->work;
    walk->longest = walk->end > walk->longest ? walk->end : walk->longest;
    fl_graph_each_successor(task, pass, walk);
}

static void walk_all(fl_path_walk *walk)
{
    uint32_t count = walk->graph->task_count;
    const filch_codelet *codelet = NULL;
    double per_unit = 0;
    if (walk->pending == NULL) {
        for (uint32_t i = 0; i < count; ++i) {
            look(walk, i, &codelet, &per_unit);
        }
        return;
    }
    for (uint32_t i = 0; i < count; ++i) {
        fl_graph_each_successor(fl_graph_task_at(walk->graph, i), count_predecessor, walk);
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (walk->pending[i] == 0) {
            walk->queue[walk->count++] = i;
        }
    }
    for (uint32_t done = 0; done < walk->count; ++done) {
        look(walk, walk->queue[done], &codelet, &per_unit);
    }
}

filch_status fl_graph_path(const filch_graph *graph, double *ns)
{
    const fl_memory *memory = &graph->object.core->memory;
    size_t count = (size_t)graph->task_count + 1, bytes = count * sizeof(uint32_t);
    bool is_ordered = !graph->has_edges_back;
    fl_path_walk walk = {.graph = graph, .ready = fl_alloc_zeroed(memory, count * sizeof(double))};
    if (!is_ordered) {
        walk.pending = fl_alloc_zeroed(memory, bytes);
        walk.queue = fl_alloc(memory, bytes);
    }
    filch_status status = FILCH_OUT_OF_MEMORY;
    if (walk.ready != NULL && (is_ordered || (walk.pending != NULL && walk.queue != NULL))) {
        walk_all(&walk);
        *ns = walk.longest;
        status = FILCH_OK;
    }
    fl_free(memory, walk.queue, bytes);
    fl_free(memory, walk.pending, bytes);
    fl_free(memory, walk.ready, count * sizeof(double));
    return status;
}
