/* SPDX-License-Identifier: Apache-2.0 */
/* Explicit edges; sealing, submitting, closing and destroying graphs. */
#include <string.h>

#include "graph/build/lifetime.h"
#include "graph/build/run_uses.h"
#include "graph/job/job.h"
#include "graph/job/job_trace.h"
#include "graph/job/line.h"

/* Returns a task of the graph by its public name, or null. */
static fl_task *find_task(const filch_graph *graph, filch_task name)
{
    if (name == 0 || name > graph->task_count) {
        return NULL;
    }
    fl_task *task = fl_graph_task_at(graph, (uint32_t)(name - 1));
    return fl_task_is_own(task) ? NULL : task; /* the name of a task of filch is not public */
}

static filch_status edge_locked(filch_graph *graph, filch_task before, filch_task after)
{
    fl_core *core = graph->object.core;
    if (graph->kind != FILCH_GRAPH_CLOSED || graph->state != FL_GRAPH_BUILDING) {
        return fl_core_fail(core, FILCH_WRONG_STATE, "filch_graph_edge", graph->label, "%s",
                            graph->kind != FILCH_GRAPH_CLOSED ? "the graph is open"
                                                              : "the graph is sealed");
    }
    fl_task *from = find_task(graph, before);
    fl_task *to = find_task(graph, after);
    if (from == NULL || to == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_graph_edge", graph->label,
                            "'%s' is %llu, which is no task of %s%s%s",
                            from == NULL ? "before" : "after",
                            (unsigned long long)(from == NULL ? before : after),
                            FL_NAME("graph ", graph->label, "this graph"));
    }
    if (from == to) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_graph_edge", graph->label,
                            "task %llu cannot wait for itself", (unsigned long long)before);
    }
    if (fl_edge_needs_block(from) && !fl_arena_reserve(&graph->arena, 1, sizeof(fl_more))) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, "filch_graph_edge", graph->label,
                            "no memory for an edge");
    }
    fl_edge_add(graph, (fl_pred){from, 0}, to);
    graph->has_edges_back = graph->has_edges_back || from->order > to->order;
    return FILCH_OK;
}

filch_status filch_graph_edge(filch_graph *graph, filch_task before, filch_task after)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_latch_lock(&graph->lock);
    status = edge_locked(graph, before, after);
    fl_latch_unlock(&graph->lock);
    return status;
}

filch_status fl_graph_seal_for(filch_graph *graph, const char *call)
{
    fl_core *core = graph->object.core;
    if (graph->kind == FILCH_GRAPH_OPEN) {
        return fl_core_fail(core, FILCH_WRONG_STATE, call, graph->label, "the graph is open");
    }
    if (graph->state == FL_GRAPH_CYCLIC) {
        return fl_core_fail(core, FILCH_CYCLE, call, graph->label,
                            "sealing found a cycle earlier; the graph can only be destroyed");
    }
    return graph->state == FL_GRAPH_SEALED ? FILCH_OK : fl_graph_seal_locked(graph, call);
}

filch_status fl_graph_seal_to_run(filch_graph *graph, const filch_submit_desc *submit,
                                  const char *call)
{
    fl_core *core = graph->object.core;
    if (graph->kind == FILCH_GRAPH_CLOSED && graph->state == FL_GRAPH_BUILDING) {
        filch_error error = FILCH_ERROR_INIT;
        const char *label = submit->label != NULL ? submit->label : graph->label;
        fl_mutex_lock(&core->lock);
        filch_status status = fl_graph_check_handles(graph, label, &error);
        fl_mutex_unlock(&core->lock);
        if (status != FILCH_OK) {
            return fl_core_fail(core, status, call, error.label, "%s", error.text);
        }
    }
    return fl_graph_seal_for(graph, call);
}

filch_status filch_graph_seal(filch_graph *graph)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_latch_lock(&graph->lock);
    status = fl_graph_seal_for(graph, "filch_graph_seal");
    fl_latch_unlock(&graph->lock);
    return status;
}

/* Looks at the ranks of a graph that had a job when it was submitted. No run is in progress. */
void fl_graph_rank_between(filch_graph *graph)
{
    /* A submission may hold the lock for long. */
    if (fl_graph_ranks_are_old(graph)) {
        fl_latch_lock(&graph->lock);
        fl_graph_rank_anew(graph);
        fl_latch_unlock(&graph->lock);
    }
}

filch_status fl_graph_make_job(filch_graph *graph, const filch_submit_desc *submit,
                               const char *call, filch_job **made)
{
    fl_core *core = graph->object.core;
    fl_mutex_lock(&core->lock);
    bool is_idle = graph->job == NULL;
    fl_mutex_unlock(&core->lock);
    if (graph->kind == FILCH_GRAPH_CLOSED && is_idle) {
        fl_graph_rank_anew(graph); /* we hold graph->lock: no run begins */
    }
    filch_job *job = fl_job_new(core, submit, graph->label);
    if (job == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, graph->label, "no memory for a job");
    }
    job->graph = graph;
    job->ran = graph;
    job->ran_number = graph->number;
    job->is_open = graph->kind == FILCH_GRAPH_OPEN;
    job->prepare = is_idle ? NULL : fl_graph_rank_between;
    filch_status status = FILCH_OK;
    if (!job->is_open && (job->uses = fl_run_uses_take(graph)) == NULL) {
        status = fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, graph->label, "no memory for a job");
    }
    status = status == FILCH_OK ? fl_job_take_events(job, submit, call) : status;
    if (status != FILCH_OK) {
        fl_job_discard(job);
        return status;
    }
    uint32_t tasks = job->is_open ? 0 : graph->task_count;
    job->is_vacant = !job->is_open && tasks == 0;
    fl_store_relaxed(&job->total, job->is_open ? 0 : tasks - graph->own_count);
    fl_store_relaxed(&job->run_once, job->is_open ? 0 : graph->restartable_count);
    /* An empty closed graph counts one, taken back when its job begins. An open graph counts down
     * from a bias; closing replaces the bias by the number of tasks. Adding a task therefore
     * touches no memory that workers write. */
    fl_store_relaxed(&job->remaining, job->is_open ? FL_OPEN_BIAS
                                      : tasks != 0 ? (int64_t)tasks
                                                   : 1);
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_lock(&core->lock);
    /* Queue an open graph's job before the first task is added. */
    status = fl_job_enqueue(job, &error);
    if (status == FILCH_OK && job->is_open) {
        graph->job = job;
    } else if (status == FILCH_OK) {
        fl_line_join(job);
    }
    fl_mutex_unlock(&core->lock);
    if (status != FILCH_OK) {
        fl_job_discard(job);
        return fl_core_fail(core, status, call, error.label, "%s", error.text);
    }
    *made = job;
    return FILCH_OK;
}

filch_status fl_graph_submit(filch_graph *graph, const filch_submit_desc *submit, bool is_lent,
                             filch_job **job)
{
    fl_core *core = graph->object.core;
    filch_submit_desc full;
    filch_status status = fl_submit_check(core, submit, "filch_graph_submit", graph->label, &full);
    if (status != FILCH_OK) {
        return status;
    }
    filch_job *made = NULL;
    fl_latch_lock(&graph->lock);
    if (graph->kind == FILCH_GRAPH_CLOSED) {
        status = fl_graph_seal_to_run(graph, &full, "filch_graph_submit");
    } else if (graph->state != FL_GRAPH_BUILDING) {
        status = fl_core_fail(core, FILCH_WRONG_STATE, "filch_graph_submit", graph->label,
                              "an open graph is submitted once");
    }
    if (status == FILCH_OK) {
        status = fl_graph_make_job(graph, &full, "filch_graph_submit", &made);
    }
    bool is_open = graph->kind == FILCH_GRAPH_OPEN;
    if (status == FILCH_OK) {
        fl_job_lend(made, is_lent, job);
    }
    if (status == FILCH_OK && is_open) {
        graph->state = FL_GRAPH_RUNNING;
        fl_job_submit(made); /* called under the lock: no task is added earlier */
    }
    fl_latch_unlock(&graph->lock);
    if (status == FILCH_OK && !is_open) {
        /* On return the graph may be destroyed, and the job's object reused. */
        fl_job_submit(made);
    }
    return status;
}

filch_status filch_graph_submit(filch_graph *graph, const filch_submit_desc *submit,
                                filch_job **job)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    return status == FILCH_OK ? fl_graph_submit(graph, submit, true, job) : status;
}

filch_status filch_graph_close(filch_graph *graph)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = graph->object.core;
    fl_latch_lock(&graph->lock);
    const char *wrong = graph->kind == FILCH_GRAPH_CLOSED   ? "the graph is not open"
                        : graph->state == FL_GRAPH_BUILDING ? "the graph was not submitted"
                        : graph->state != FL_GRAPH_RUNNING  ? "the graph is closed already"
                                                            : NULL;
    filch_job *job = NULL;
    int64_t added = 0;
    if (wrong == NULL && (fl_splits_end(graph) != FILCH_OK || fl_groups_end(graph) != FILCH_OK ||
                          fl_lifetimes_end(graph) != FILCH_OK)) {
        if (fl_load_relaxed(&graph->job->cancelled) == 0) {
            fl_latch_unlock(&graph->lock);
            return fl_core_fail(core, FILCH_OUT_OF_MEMORY, "filch_graph_close", graph->label,
                                "no memory for the tasks that combine what was reduced, give back "
                                "what is partitioned, or end temporaries");
        }
        /* Store left_out before the count that completes the job. */
        fl_store_relaxed(&graph->job->left_out, 1);
    }
    if (wrong == NULL) {
        graph->state = FL_GRAPH_ENDED;
        job = graph->job; /* set, and constant while the bias below is held */
        added = (int64_t)graph->task_count + fl_load_relaxed(&graph->gate_count);
    }
    fl_latch_unlock(&graph->lock);
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_WRONG_STATE, "filch_graph_close", graph->label, "%s",
                            wrong);
    }
    fl_job_retired(job, FL_OPEN_BIAS - added);
    core->scheduler->open_closed(core->scheduler);
    return FILCH_OK;
}

void fl_jobs_cancel(fl_core *core)
{
    /* Closing completes jobs and takes core->lock: each round handles one graph. */
    filch_graph *open;
    while ((open = fl_jobs_cancel_all(core)) != NULL && filch_graph_close(open) == FILCH_OK) {
    }
    core->scheduler->job_cancelled(core->scheduler);
}

void fl_graph_free(filch_graph *graph)
{
    fl_core *core = graph->object.core;
    const fl_memory *memory = &core->memory;
    fl_job_trace *logbook = fl_job_trace_of(core);
    if (FL_UNLIKELY(logbook != NULL)) {
        fl_job_trace_graph(logbook, graph);
    }
    fl_infer_drop(graph);
    core->scheduler->graph_drop(core->scheduler, graph);
    if (graph->has_reserved) {
        fl_job_unreserve(core);
    }
    for (size_t i = 0; i < graph->slot_count; ++i) {
        fl_slot *slot = graph->slots[i];
        fl_free(memory, slot->needs, slot->tile_count);
        fl_final_drop(graph, slot);
        fl_sub_relaxed(&slot->use.data->graphs, 1);
    }
    fl_free(memory, graph->slab_table, graph->slab_capacity * sizeof(fl_slab *));
    fl_graph_free_slots(graph);
    fl_free(memory, graph->slot_table, graph->table_capacity * sizeof *graph->slot_table);
    if (graph->roots != NULL) {
        size_t room = graph->root_count != 0 ? graph->root_count : 1;
        fl_free(memory, graph->roots, room * sizeof *graph->roots);
        fl_free(memory, graph->root_begin,
                FL_ROOT_POSITIONS(core->scheduler->device_count) * sizeof *graph->root_begin);
    }
    fl_graph_drop_predecessors(graph);
    fl_free(memory, graph->failed.keys, graph->failed.capacity * sizeof(uint64_t));
    fl_reductions_fini(graph);
    fl_run_uses_free(graph);
    fl_arena_fini(&graph->arena);
    fl_store_give(core->store, graph->slabs);
    fl_mutex_fini(&graph->turn_lock);
    fl_latch_fini(&graph->lock);
    fl_object_delete(graph);
}

filch_status filch_graph_destroy(filch_graph *graph)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = graph->object.core;
    fl_mutex_lock(&core->lock);
    bool is_busy = graph->job != NULL;
    char label[sizeof graph->job->label] = "";
    if (is_busy) {
        memcpy(label, graph->job->label, sizeof label);
    }
    fl_mutex_unlock(&core->lock);
    if (is_busy) {
        return fl_core_fail(core, FILCH_BUSY, "filch_graph_destroy", graph->label,
                            "%s%s%s is in use: %s%s%s waits or runs",
                            FL_NAME("graph ", graph->label, "the graph"),
                            FL_NAME("job ", label, "its job"));
    }
    fl_graph_free(graph);
    return FILCH_OK;
}
