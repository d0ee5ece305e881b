/* SPDX-License-Identifier: Apache-2.0 */
/* View of a policy's functions: devices, and predictions for the task or chunk in question. */
#include <string.h>

#include "sched/decide/policy.h"
#include "sched/model/cost.h"
#include "sched/model/missing.h"
#include "sched/model/predict.h"
#include "sched/model/transfer.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

static const fl_worker *worker_of(const filch_policy_view *view, uint32_t device)
{
    return view != NULL && device < view->sched->count ? &view->sched->workers[device] : NULL;
}

static bool has_item(const filch_policy_view *view)
{
    return view->task != NULL || view->job != NULL;
}

static const filch_codelet *codelet_of(const filch_policy_view *view)
{
    return view->task != NULL ? view->task->codelet : fl_batch_codelet(view->job->batch);
}

static double work_on(const filch_policy_view *view, const fl_worker *w)
{
    return view->task != NULL    ? (double)view->task->work
           : view->lo < view->hi ? fl_batch_work(w, view->job, view->lo, view->hi)
                                 : 0;
}

/* Returns the cost of the item as told to a simulated device. */
static double cost_on(const filch_policy_view *view, const fl_worker *w)
{
    const filch_codelet *codelet = codelet_of(view);
    if (codelet->cost == NULL || codelet->cost == codelet->work || view->lo > view->hi) {
        return work_on(view, w);
    }
    filch_view views[FL_MOST_VIEWS];
    filch_call call = {.views = views, .team = 1, .device = w->index, .user = codelet->user};
    if (view->task != NULL) {
        fl_task_views(view->task, views, NULL);
        call.view_count = view->task->access_count;
        call.args = view->task->args;
    } else {
        const fl_batch *batch = view->job->batch;
        uint32_t reach = fl_batch_reach(batch, view->lo);
        fl_batch_range(batch, view->lo, view->hi < reach ? view->hi : reach, &call.lo, &call.hi);
        call.args = fl_batch_args(batch);
    }
    double cost = codelet->cost(&call);
    return cost >= 0 ? cost : 0;
}

/* Predicts the time of the view's item on a device, ns, if begun at `from`. */
static double item_ns(const filch_policy_view *view, uint32_t device, uint64_t from)
{
    const fl_sched *sched = view->sched;
    const fl_worker *w = &sched->workers[device];
    const fl_backend *backend = w->device->backend;
    if (sched->rules.is_true && backend->device->item_ns != NULL) {
        return backend->device->item_ns(w->device, cost_on(view, w), from);
    }
    return fl_cost_of_work(w, codelet_of(view), work_on(view, w), FL_GUESS_SCORES | FL_GUESS_USUAL);
}

/* Returns the predicted end of the work placed on the device; no earlier than t, the present time.
 */
static uint64_t free_at(const filch_policy_view *view, uint32_t device, uint64_t t)
{
    const fl_sched *sched = view->sched;
    uint64_t at = sched->rules.free_at != NULL ? fl_load_relaxed(&sched->rules.free_at[device]) : 0;
    return at > t ? at : t;
}

static uint64_t missing_on(const filch_policy_view *view, const fl_worker *w)
{
    return w->sched->core->places->count < 2 ? 0
           : view->task != NULL              ? fl_missing_of_task(w, view->task).bytes
           : view->lo < view->hi ? fl_missing_of_grains(w, view->job, view->lo, view->hi)
                                 : 0;
}

/* Predicts the copies over the link with the host's memory. */
static double transfer_ns(const filch_policy_view *view, const fl_worker *w)
{
    return (double)missing_on(view, w) *
           fl_transfer_link_ns(w->sched->core->places, 0, w->device->place, FL_LINK_USUAL);
}

void fl_view_charge(const filch_policy_view *view, uint32_t device)
{
    const fl_sched *sched = view->sched;
    _Atomic uint64_t *slot = &sched->rules.free_at[device];
    uint64_t t = fl_clock_now(&sched->core->clock);
    uint64_t at = fl_load_relaxed(slot), from, until;
    /* Relaxed: a prediction. */
    do {
        from = at > t ? at : t;
        double ns = fl_cost_finish(0, 0, item_ns(view, device, from),
                                   transfer_ns(view, &sched->workers[device]));
        until = ns < (double)(FL_TIME_NEVER / 2) ? from + (uint64_t)(ns + 0.5) : FL_TIME_NEVER / 2;
    } while (!fl_cas_relaxed(slot, &at, until));
}

/* --- Public --- */

filch_status filch_policy_item_get(const filch_policy_view *view, filch_policy_item *item)
{
    if (view == NULL || item == NULL || item->size < sizeof *item) {
        return FILCH_INVALID_ARGUMENT;
    }
    filch_policy_item found = {
        .size = item->size,
        .device = view->worker != NULL ? view->worker->index : FILCH_POLICY_NOBODY,
        .owner = FILCH_POLICY_NOBODY,
    };
    if (view->task != NULL) {
        found.kind = FILCH_POLICY_TASK;
        found.owner = view->task->home != 0 ? view->task->home - 1u : FILCH_POLICY_NOBODY;
        found.level = view->task->level;
        found.name = fl_task_name(view->task);
        found.work = (double)view->task->work;
        found.first = view->task->order;
        found.last = found.first + 1;
    } else if (view->job != NULL) {
        const fl_batch *batch = view->job->batch;
        const fl_worker *any = view->worker != NULL ? view->worker : view->sched->workers;
        uint32_t reach = view->lo < view->hi ? fl_batch_reach(batch, view->lo) : view->lo;
        found.kind = FILCH_POLICY_CHUNK;
        found.name = fl_batch_codelet(batch)->name;
        found.work = work_on(view, any);
        found.grains = fl_batch_grains(batch);
        found.rest = view->rest;
        if (view->lo < view->hi) {
            fl_batch_range(batch, view->lo, view->hi < reach ? view->hi : reach, &found.first,
                           &found.last);
        }
    }
    memcpy(item, &found, sizeof found);
    return FILCH_OK;
}

uint32_t filch_policy_devices(const filch_policy_view *view)
{
    return view != NULL ? view->sched->count : 0;
}

bool filch_policy_can_run(const filch_policy_view *view, uint32_t device)
{
    const fl_worker *w = worker_of(view, device);
    return w != NULL && !fl_worker_is_unavailable(w) &&
           (view->task != NULL  ? fl_worker_can_run(w, view->task)
            : view->job != NULL ? fl_devices_have(fl_batch_devices(view->job->batch), device)
                                : true);
}

uint64_t filch_policy_queued(const filch_policy_view *view, uint32_t device)
{
    const fl_worker *w = worker_of(view, device);
    if (w == NULL) {
        return 0;
    }
    uint64_t queued = 0;
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        queued += (uint64_t)fl_deque_size(&w->queues.levels[level]);
    }
    if (has_item(view) || view->worker == NULL) {
        return queued;
    }
    for (uint32_t slot = 0; slot < FL_ACTIVE_SLOTS; ++slot) {
        uint32_t lo, hi;
        /* Relaxed: a first check; the visit repeats the check. */
        uint64_t bits = fl_load_relaxed(&view->sched->active[slot / 64]) >> slot % 64;
        filch_job *job = (bits & 1) != 0 ? fl_jobs_peek(view->worker, slot) : NULL;
        if (job != NULL && fl_part_of_job(job)->cut != FL_CUT_COMMON) {
            queued += fl_range_peek(&fl_job_share(job, device)->range, &lo, &hi);
        }
    }
    return queued;
}

double filch_policy_load(const filch_policy_view *view, uint32_t device)
{
    if (worker_of(view, device) == NULL) {
        return 0;
    }
    uint64_t t = fl_clock_now(&view->sched->core->clock);
    return (double)(free_at(view, device, t) - t) / 1e9;
}

double filch_policy_seconds(const filch_policy_view *view, uint32_t device)
{
    if (worker_of(view, device) == NULL || !has_item(view)) {
        return 0;
    }
    uint64_t t = fl_clock_now(&view->sched->core->clock);
    return item_ns(view, device, free_at(view, device, t)) / 1e9;
}

uint64_t filch_policy_missing(const filch_policy_view *view, uint32_t device)
{
    const fl_worker *w = worker_of(view, device);
    return w != NULL && has_item(view) ? missing_on(view, w) : 0;
}

double filch_policy_transfer(const filch_policy_view *view, uint32_t device)
{
    const fl_worker *w = worker_of(view, device);
    return w != NULL && has_item(view) ? transfer_ns(view, w) / 1e9 : 0;
}
