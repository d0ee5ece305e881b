/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/operands.h"

#include "sched/worker/sched.h"

bool fl_operands_matter(const fl_item *item)
{
    return item->task != NULL ? item->task->access_count != 0
                              : fl_batch_view_count(item->job->batch) != 0;
}

/* Whether the combining task, which is running, runs for the last time. */
static bool combines_last(const fl_task *task)
{
    const fl_reduction *reduction = fl_task_extras(task)[0].reduction;
    return fl_reduction_next(reduction, reduction->current + 1) == reduction->devices;
}

/* Adapts the operand of a special access: partial results, commuting accesses and combining
 * tasks. */
static void adapt_operand(const fl_worker *w, const fl_task *task, uint32_t access,
                          fl_operand *operand)
{
    filch_data *partial = fl_reduction_stand_in(task, access, w->index);
    if (partial != NULL) {
        operand->data = partial;
        operand->mode = fl_reduction_mode(task);
        operand->is_final = false;
        operand->tile = 0;
        operand->tile_end = 1;
    } else if (operand->mode == FILCH_COMMUTE) {
        const fl_commute_lock *turn = fl_task_extras(task)[access].turn;
        operand->mode = FILCH_READWRITE;
        if (task->graph->kind == FILCH_GRAPH_CLOSED) {
            operand->is_final =
                turn->is_final && fl_commute_lock_is_last(turn) && !operand->data->is_managed;
        }
    } else if (task->combines) {
        operand->is_final = operand->is_final && combines_last(task);
    }
}

static void task_operands(fl_worker *w, const fl_task *task)
{
    fl_offload *offload = w->offload;
    bool has_extras = fl_task_has_extras(task);
    fl_task_views(task, w->call.views, NULL);
    if (FL_UNLIKELY(has_extras)) {
        fl_reduction_views(task, w->index, w->call.views);
    }
    offload->operand_count = 0;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode == FILCH_SCRATCH) {
            continue;
        }
        filch_data *data = fl_graph_data(task->graph, access.slot);
        fl_operand *operand = &offload->operands[offload->operand_count++];
        *operand = (fl_operand){
            .data = data,
            .view = &w->call.views[i],
            .mode = access.mode,
            .is_final = access.is_final && !data->is_managed,
            .tile = access.tile,
            .tile_end = access.tile + 1,
            .traffic = fl_job_traffic(task->graph->job, w->sched->count),
        };
        if (FL_UNLIKELY(has_extras)) {
            adapt_operand(w, task, i, operand);
        }
    }
}

static bool chunk_operands(fl_worker *w, const fl_item *item)
{
    const fl_batch *batch = item->job->batch;
    uint64_t lo, hi;
    fl_batch_range(batch, item->lo, item->hi, &lo, &hi);
    if (!fl_batch_views(batch, lo, hi, w->call.views)) {
        filch_error why = FILCH_ERROR_INIT;
        filch_status status = fl_batch_check(batch, lo, hi, &why);
        fl_error_fill(&w->stall.error,
                      (fl_fault){.status = FILCH_ALIAS, .label = fl_batch_codelet(batch)->name},
                      "%s",
                      status != FILCH_OK ? why.text : "a mapping answers differently each time");
        return false;
    }
    w->offload->operand_count = fl_batch_view_count(batch);
    fl_batch_operands(batch, lo, hi, w->call.views, w->offload->operands);
    for (uint32_t i = 0; i < w->offload->operand_count; ++i) {
        fl_operand *operand = &w->offload->operands[i];
        fl_operand_resolve(operand);
        operand->traffic = fl_job_traffic(item->job, w->sched->count);
        operand->is_shadowed = item->run != NULL && (operand->mode & FILCH_WRITE) != 0;
    }
    return true;
}

bool fl_operands_list(fl_worker *w, const fl_item *item)
{
    if (item->task != NULL) {
        task_operands(w, item->task);
        return true;
    }
    return chunk_operands(w, item);
}
