/* SPDX-License-Identifier: Apache-2.0 */
/* Host call: runs a codelet's host function on the driver's thread, with views and scratch. */
#include "sched/execute/host_call.h"

#include <stdio.h>

#include "sched/account/stretch.h"
#include "sched/execute/divide.h"
#include "sched/execute/private_output.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"

static bool reserve_scratch(fl_worker *w, size_t bytes)
{
    if (bytes <= w->call.scratch_bytes) {
        return true;
    }
    const fl_memory *memory = &w->sched->core->memory;
    char *scratch = fl_alloc_aligned(memory, bytes, 64);
    if (scratch == NULL) {
        return false;
    }
    fl_free_aligned(memory, w->call.scratch, w->call.scratch_bytes, 64);
    w->call.scratch = scratch;
    w->call.scratch_bytes = bytes;
    return true;
}

/* Makes the memory of temporaries that the task uses. */
static bool reserve_temporaries(fl_worker *w, const fl_task *task)
{
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < task->access_count && status == FILCH_OK; ++i) {
        fl_task_access access = task->accesses[i];
        filch_data *data =
            access.mode != FILCH_SCRATCH ? fl_graph_data(task->graph, access.slot) : NULL;
        if (data != NULL && fl_data_is_temporary(data)) {
            status = fl_data_need_host_tile(data, access.tile, &w->stall.error);
        }
    }
    return status == FILCH_OK;
}

/* Has the item retire with the reason in worker->stall.error why it cannot be called. No function
 * of the caller failed, so the job reports no caller's code. */
static void refuse(const fl_worker *w, fl_item *item)
{
    item->code = (int)w->stall.error.status;
    item->is_refused = true;
    item->timed = false;
}

/* Sets worker->stall.error: a batch's mapping is wrong. */
static void tell_mapping(fl_worker *w, const filch_job *job, const filch_call *call)
{
    filch_error why = FILCH_ERROR_INIT;
    /* An inconsistent callback, asked again, may report no error. */
    filch_status status = fl_batch_check(job->batch, call->lo, call->hi, &why);
    fl_error_fill(&w->stall.error,
                  (fl_fault){.status = FILCH_ALIAS, .device = w->device->info.name}, "%s",
                  status != FILCH_OK ? why.text : "a mapping answers differently each time");
}

/* Makes the memory that a task's function needs. False: *w->stall.error tells why not. */
static bool reserve(fl_worker *w, const fl_task *task)
{
    const char *device = w->device->info.name;
    size_t scratch = fl_task_scratch(task);
    if (scratch != 0 && !reserve_scratch(w, scratch)) {
        fl_error_fill(&w->stall.error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device},
                      "no memory for %zu bytes of scratch on %s", scratch, device);
        return false;
    }
    return !task->has_temporaries || reserve_temporaries(w, task);
}

/* Fills the call. False: *w->stall.error tells why the item cannot be called. */
static bool fill_call(fl_worker *w, fl_item *item, filch_call *call)
{
    fl_task *task = item->task;
    if (task != NULL) {
        call->args = task->args;
        if (task->access_count != 0) {
            if (FL_UNLIKELY(!reserve(w, task))) {
                return false;
            }
            fl_task_views(task, w->call.views, w->call.scratch);
            if (FL_UNLIKELY(fl_task_has_partials(task))) {
                fl_reduction_views(task, w->index, w->call.views);
                fl_reduction_place_views(task, w->call.views);
            }
            call->view_count = task->access_count;
        }
        return true;
    }
    const fl_batch *batch = item->job->batch;
    fl_batch_range(batch, item->lo, item->hi, &call->lo, &call->hi);
    call->args = fl_batch_args(batch);
    call->view_count = fl_batch_view_count(batch);
    if (!fl_batch_views(batch, call->lo, call->hi, w->call.views)) {
        tell_mapping(w, item->job, call);
        return false;
    }
    if (FL_UNLIKELY(item->run != NULL)) {
        fl_private_views(item, w->call.views);
    }
    return true;
}

void fl_worker_run(fl_worker *w)
{
    fl_item *item = &w->now.item;
    const filch_codelet *codelet = fl_item_codelet(item);
    if (FL_UNLIKELY(item->skip || codelet == NULL)) {
        return;
    }
    filch_call call = {.views = w->call.views,
                       .device = w->index,
                       .team = w->device->info.team,
                       .runtime = (filch_runtime *)(void *)w->sched->core,
                       .opaque = w,
                       .user = codelet->user,
                       .state = fl_host_states_at(codelet->states, w->index)};
    if (FL_UNLIKELY(!fill_call(w, item, &call))) {
        refuse(w, item);
        return;
    }
    if (!item->timed) {
        item->code = codelet->host(&call);
        return;
    }
    if (FL_UNLIKELY(item->task != NULL && item->task->has_items)) {
        /* Items with a range are always timed. */
        fl_item_range(item, &call.lo, &call.hi);
    }
    const fl_clock *clock = &w->sched->core->clock;
    /* The host function may wait for nested work, and nested work uses w->now.item. The driver
     * restores the item; `code` and the times are local. */
    uint64_t nested = w->ledger.nested_ns;
    uint64_t start = fl_clock_now(clock);
    fl_stretch_end(w, start);
    int code = codelet->host(&call);
    uint64_t end = fl_clock_now(clock);
    w->now.item.code = code;
    w->now.item.start = start;
    w->now.item.ns = w->now.item.own = w->now.item.fair = end - start;
    w->ledger.own_ns = w->now.item.ns - (w->ledger.nested_ns - nested);
}

/* --- Reasons of failures --- */

const fl_item *fl_host_call_item(const fl_worker *w)
{
    return fl_sched_self(w->sched) == w && w->now.item.state != FL_ITEM_DONE ? &w->now.item : NULL;
}

static bool is_same(fl_item_name a, fl_item_name b)
{
    return a.of == b.of && a.sequence == b.sequence && a.number == b.number;
}

const char *fl_host_call_text(const fl_worker *w, const fl_item *item)
{
    const fl_call_text *text = w->call.text;
    /* The text may be an earlier item's, whose function returned 0. */
    return text != NULL && is_same(text->item, fl_item_name_of(item)) ? text->text : NULL;
}

/* Tells whether the call is the item's, not that of an item that waits for the item. */
static bool is_innermost(const fl_worker *w, const fl_item *item, const filch_call *call)
{
    bool may_pend = item->task != NULL && fl_codelet_may_pend(item->task->codelet);
    return may_pend ? w->call.running != NULL && call == &w->call.running->call
                    : call->views == w->call.views;
}

/* Finds the item of a call whose function runs on the calling thread; name is the public call. On
 * failure *item is null. */
static filch_status find_item(const filch_call *call, const char *name, const fl_item **item)
{
    const fl_worker *w = call != NULL ? call->opaque : NULL;
    *item = NULL;
    if (w == NULL) {
        /* Work and cost functions get no runtime to record details in. */
        return call == NULL ? FILCH_INVALID_ARGUMENT : FILCH_WRONG_STATE;
    }
    if (FL_UNLIKELY(*w->sched->core->alive != 1)) {
        return FILCH_FORKED;
    }
    const fl_item *found = fl_host_call_item(w);
    if (found == NULL || !is_innermost(w, found, call)) {
        return fl_core_fail(w->sched->core, FILCH_WRONG_STATE, name, NULL, "%s",
                            found == NULL ? "the calling thread runs no host function of the device"
                                          : "the call's function waits for other work, or is over");
    }
    *item = found;
    return FILCH_OK;
}

filch_status filch_call_set_text(const filch_call *call, const char *text)
{
    const fl_item *item;
    if (text == NULL && call != NULL && call->opaque != NULL) {
        const fl_worker *of = call->opaque;
        return fl_core_fail(of->sched->core, FILCH_INVALID_ARGUMENT, "filch_call_set_text", NULL,
                            "the text is null");
    }
    filch_status status = find_item(call, "filch_call_set_text", &item);
    if (status != FILCH_OK) {
        return status;
    }
    fl_worker *w = call->opaque;
    fl_core *core = w->sched->core;
    if (w->call.text == NULL &&
        (w->call.text = fl_alloc(&core->memory, sizeof *w->call.text)) == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, "filch_call_set_text", NULL,
                            "no memory for the text");
    }
    w->call.text->item = fl_item_name_of(item);
    snprintf(w->call.text->text, sizeof w->call.text->text, "%s", text);
    return FILCH_OK;
}

/* --- The rest of a job --- */

filch_status filch_call_finish(const filch_call *call)
{
    static const char name[] = "filch_call_finish";
    const fl_item *item;
    filch_status status = find_item(call, name, &item);
    if (status != FILCH_OK) {
        return status;
    }
    if ((fl_item_codelet(item)->flags & FILCH_CODELET_RESTARTABLE) != 0) {
        const fl_worker *w = call->opaque;
        return fl_core_fail(w->sched->core, FILCH_WRONG_STATE, name, fl_item_codelet(item)->name,
                            "the codelet has FILCH_CODELET_RESTARTABLE: its functions have no "
                            "effect except through their views");
    }
    fl_job_stop(item->job, FL_STOP_FINISHED);
    return FILCH_OK;
}

/* --- Costs --- */

double fl_item_cost(const fl_worker *w, const fl_item *item)
{
    const filch_codelet *codelet = fl_item_codelet(item);
    if (codelet->cost == NULL || codelet->cost == codelet->work) {
        return item->work;
    }
    filch_call call = {
        .views = w->call.views, .team = 1, .device = w->index, .user = codelet->user};
    if (item->task != NULL) {
        fl_task_views(item->task, w->call.views, NULL);
        call.view_count = item->task->access_count;
        call.args = item->task->args;
        if (item->task->has_items) {
            fl_item_range(item, &call.lo, &call.hi);
        }
    } else {
        const fl_batch *batch = item->job->batch;
        fl_batch_range(batch, item->lo, item->hi, &call.lo, &call.hi);
        call.args = fl_batch_args(batch);
    }
    double cost = codelet->cost(&call);
    return cost >= 0 ? cost : 0;
}
