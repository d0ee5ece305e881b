/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of an item: lists them, and brings them to the device. The host's own items fetch
 * operands to the host's memory by the same functions. */
#include "sched/execute/fetch.h"

#include "sched/decide/locality.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/launch.h"
#include "sched/execute/reduce.h"
#include "sched/model/next_use.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

bool fl_fetch_concerns(const fl_item *item)
{
    return item->task != NULL ? item->task->access_count != 0
                              : fl_batch_view_count(item->job->batch) != 0;
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
        operand->is_final = operand->is_final && fl_combines_last(task);
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

bool fl_fetch_list(fl_worker *w, const fl_item *item)
{
    if (item->task != NULL) {
        task_operands(w, item->task);
        return true;
    }
    return chunk_operands(w, item);
}

static fl_admission admit(const fl_worker *w, const fl_foresight *foresight, bool is_tight)
{
    return (fl_admission){
        .foresight = foresight, .is_tight = is_tight, .is_pressed = w->offload->pressed != 0};
}

/* Tells whether the item is a second run of a chunk: no tile is evicted for a second run. */
static bool is_spare(const fl_item *item)
{
    return item->task == NULL && item->run != NULL && item->run->is_second;
}

bool fl_fetch_operands(fl_worker *w, const fl_item *item)
{
    fl_offload *offload = w->offload;
    fl_outlook outlook = {w, item, false};
    const fl_foresight foresight = {fl_next_use_prepare, fl_next_use, &outlook};
    fl_admission admission = admit(w, &foresight, offload->is_tight);
    admission.is_spare = is_spare(item);
    offload->waits.count = 0;
    if (!fl_fetch_list(w, item)) {
        return false;
    }
    filch_status status =
        fl_operands_fetch(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                          offload->operand_count, &admission, &offload->waits, &w->stall.error);
    offload->is_admitted = status == FILCH_OK;
    if (w->device->place != 0) {
        fl_locality_note(w);
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
    fl_outlook outlook = {w, &item, !is_claimed};
    const fl_foresight foresight = {fl_next_use_prepare, fl_next_use, &outlook};
    const fl_admission admission = admit(w, &foresight, false);
    if (fl_task_has_extras(task)) {
        /* Partial results and the like are made at the beginning of the task only. */
        return false;
    }
    offload->waits.count = 0;
    task_operands(w, task);
    filch_status status =
        fl_operands_fetch(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                          offload->operand_count, &admission, &offload->waits, &w->stall.error);
    if (status == FILCH_OK) {
        fl_locality_note(w);
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
    if (offload->is_admitted) {
        fl_operands_release(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                            offload->operand_count, NULL);
        offload->is_admitted = false;
    }
}

void fl_fetch_release(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    flight->is_admitted = false;
    if (flight->item.is_graph) {
        fl_graph_launch_release(w, flight->item.job->graph);
    } else if (fl_fetch_list(w, &flight->item)) {
        fl_operands_release(fl_worker_places(w), fl_worker_carrier(w), offload->operands,
                            offload->operand_count,
                            flight->item.task == NULL ? &flight->staged : NULL);
    }
}

bool fl_fetch_clear(fl_worker *w)
{
    fl_offload *offload = w->offload;
    if (offload->is_tight) {
        return false;
    }
    fl_launch_drop_scratch(w);
    (void)fl_residents_clear(fl_worker_places(w), w->device);
    offload->is_tight = true;
    return true;
}
