/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the operands of an item to the device. The host's own items fetch operands to the host's
 * memory by the same functions. */
#include "sched/execute/fetch.h"

#include "sched/decide/locality.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/launch.h"
#include "sched/execute/operands.h"
#include "sched/model/next_use.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

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
    if (!fl_operands_list(w, item)) {
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
    (void)fl_operands_list(w, &item); /* true for a task */
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
    } else if (fl_operands_list(w, &flight->item)) {
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
