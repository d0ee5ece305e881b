/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/profiler.h"

#include "observe/nvtx.h"
#include "sched/worker/item.h"

/* Returns the name of an item's range: a label, or the codelet's name. */
static const char *name_of(const fl_item *item)
{
    if (item->is_graph) {
        const char *label = item->job->graph->label;
        return label[0] != '\0' ? label : "graph";
    }
    const char *label = item->task != NULL ? item->task->label : NULL;
    return label != NULL && label[0] != '\0' ? label : fl_item_codelet(item)->name;
}

/* Stands before the host function of every codelet. */
static int call_in_range(const filch_call *call)
{
    const fl_worker *w = call->opaque;
    const fl_nvtx *nvtx = w->sched->core->nvtx;
    filch_host_fn function = fl_item_codelet(&w->now.item)->host_within;
    fl_nvtx_push(nvtx, name_of(&w->now.item));
    int code = function(call);
    fl_nvtx_pop(nvtx);
    return code;
}

void fl_profiler_codelet_init(filch_codelet *codelet)
{
    if (codelet->object.core->nvtx != NULL && codelet->host != NULL) {
        codelet->host_within = codelet->host;
        codelet->host = call_in_range;
    }
}

filch_status fl_profiler_launch(fl_worker *w, const fl_item *item, fl_launch *launch)
{
    const fl_nvtx *nvtx = w->sched->core->nvtx;
    fl_nvtx_push(nvtx, name_of(item));
    filch_status status =
        w->device->backend->queue->launch(w->device, launch, item->start, &w->stall.error);
    fl_nvtx_pop(nvtx);
    return status;
}
