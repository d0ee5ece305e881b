/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the operands of an item, the tiles that a task or a chunk uses, and brings them to the
 * device. The host's own items fetch operands to the host's memory by the same functions. */
#include "sched/execute/fetch.h"

#include "sched/execute/window.h"
#include "sched/model/next_use.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

/* --- List --- */

/* Whether the combining task, which is running, runs for the last time. */
static bool combines_last(const fl_task *task)
{
    const fl_reduction *reduction = fl_task_extras(task)[0].reduction;
    return fl_reduction_next(reduction, reduction->current + 1) == reduction->parts;
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
        operand->tiles = fl_rect_of_tile(0);
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
            .tiles = fl_task_tiles(task, i),
            .region = fl_task_parts(task, i),
            .traffic = fl_job_traffic(task->graph->job, w->sched->count),
        };
        if (FL_UNLIKELY(access.is_block)) {
            operand->last_writers = fl_graph_last_writers(task->graph, access.slot);
            operand->writer = task->order;
        }
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

/* --- Fetch --- */

/* Starts to bring the operands listed last. is_ahead: the item is neither launched nor claimed. */
static filch_status bring(fl_worker *w, const fl_item *item, bool is_ahead, fl_admission admission)
{
    fl_offload *offload = w->offload;
    fl_outlook outlook = {w, item, is_ahead};
    const fl_foresight foresight = {fl_next_use_prepare, fl_next_use, &outlook};
    admission.foresight = &foresight;
    admission.is_pressed = offload->pressed != 0;
    return fl_operands_fetch(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                             offload->operand_count, &admission, &offload->waits, &w->stall.error);
}

bool fl_fetch_listed(fl_worker *w, const fl_item *item)
{
    fl_offload *offload = w->offload;
    /* No tile is evicted for a second run of a chunk. */
    bool is_spare = item->task == NULL && item->run != NULL && item->run->is_second;
    if (!fl_operands_list(w, item)) {
        return false;
    }
    filch_status status =
        bring(w, item, false, (fl_admission){.is_tight = offload->is_tight, .is_spare = is_spare});
    offload->is_admitted = status == FILCH_OK;
    if (w->device->place != 0) {
        fl_window_note(w);
    }
    if (status == FILCH_NOT_READY) {
        /* The wait needs no message. */
        w->stall.error.status = status;
    }
    if (FL_UNLIKELY(item->task != NULL && fl_task_has_extras(item->task))) {
        fl_reduction_place_views(item->task, w->call.views);
    }
    return status == FILCH_OK;
}

/* Notes the newest inbound copies. Every copy started is on an inbound lane, or precedes a copy on
 * an inbound lane. */
static void note_fetched(fl_worker *w)
{
    fl_offload *offload = w->offload;
    for (uint32_t i = 0; i < offload->waits.count; ++i) {
        fl_marker marker = offload->waits.at[i];
        uint32_t lane = fl_marker_lane(marker);
        if (fl_marker_device(marker) == w->index && (lane == FL_LANE_IN || lane == FL_LANE_PEER)) {
            fl_marker *newest = &offload->fetched[lane == FL_LANE_PEER];
            *newest = marker > *newest ? marker : *newest;
        }
    }
}

bool fl_fetch_is_coming(const fl_worker *w)
{
    const fl_offload *offload = w->offload;
    const fl_lane_ops *lane = w->device->backend->lane;
    return offload != NULL && (!lane->is_past(w->device, offload->fetched[0]) ||
                               !lane->is_past(w->device, offload->fetched[1]));
}

fl_marker fl_fetch_arriving(const fl_worker *w)
{
    const fl_waits *waits = &w->offload->waits;
    fl_marker found = 0;
    for (uint32_t i = 0; i < waits->count; ++i) {
        fl_marker marker = waits->at[i];
        uint32_t lane = fl_marker_lane(marker);
        if (fl_marker_device(marker) == w->index && lane >= FL_LANE_IN && lane != FL_LANE_OUT &&
            marker > found && !w->device->backend->lane->is_past(w->device, marker)) {
            found = marker;
        }
    }
    return found;
}

bool fl_fetch_ahead(fl_worker *w, fl_task *task, bool is_claimed)
{
    fl_offload *offload = w->offload;
    const fl_item item = {.job = task->graph->job, .task = task};
    if (fl_task_has_extras(task) || task->has_blocks) {
        /* Partial results and private copies of blocks are made at the beginning of the task
         * only. */
        return false;
    }
    offload->waits.count = 0;
    (void)fl_operands_list(w, &item); /* true for a task */
    filch_status status = bring(w, &item, !is_claimed, (fl_admission){.is_tight = false});
    if (status == FILCH_OK) {
        fl_window_note(w);
        note_fetched(w);
        /* Tiles in transfer stay in place until arrival. */
        fl_operands_release(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                            offload->operand_count, NULL);
    }
    offload->waits.count = 0;
    return status == FILCH_OK;
}

void fl_fetch_abandon(fl_worker *w)
{
    fl_offload *offload = w->offload;
    fl_waits_abandon(fl_worker_places(w), &offload->waits);
    if (offload->is_admitted && offload->is_counted) {
        fl_operands_release(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                            offload->operand_count, NULL);
    }
    offload->is_admitted = false;
}

void fl_fetch_release(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    if (fl_operands_list(w, &flight->item)) {
        fl_operands_release(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                            offload->operand_count,
                            fl_item_may_stage(&flight->item) ? &flight->staged : NULL);
    }
}
