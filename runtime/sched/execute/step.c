/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/step.h"

#include "sched/account/account.h"
#include "sched/account/stretch.h"
#include "sched/execute/backup.h"
#include "sched/execute/divide.h"
#include "sched/execute/fetch.h"
#include "sched/execute/host_events.h"
#include "sched/execute/pending.h"
#include "sched/execute/pipeline.h"
#include "sched/execute/publish.h"
#include "sched/execute/theft.h"
#include "sched/execute/unavailable.h"
#include "sched/model/cost.h"
#include "sched/model/speed.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

static void run_completions(fl_worker *w)
{
    while (w->now.completed != NULL) {
        filch_job *job = w->now.completed;
        w->now.completed = job->next;
        job->next = NULL;
        fl_job_retired(job, 1);
    }
}

/* Counts off before a wait: a job must not look unfinished while an item of a second job is in
 * flight here. The device then counts as busy with the second job. */
static void count_off(fl_worker *w)
{
    fl_worker_flush(w);
    const fl_item *item = fl_worker_is_stalled(w) ? &w->stall.stalled : NULL;
    item = w->pipeline.writing_back_count != 0 ? &w->pipeline.flights[w->pipeline.writing_back].item
                                               : item;
    for (uint32_t i = 0; i < w->pipeline.flight_count && w->pipeline.computing != 0; ++i) {
        if (w->pipeline.flights[i].item.state == FL_ITEM_LAUNCHED) {
            item = &w->pipeline.flights[i].item;
            break;
        }
    }
    if (item != NULL) {
        fl_worker_switch(w, item->job,
                         item->task != NULL || item->is_graph ? item->job->graph : NULL);
    }
}

static fl_act end_step(fl_worker *w, fl_act act)
{
    if (act == FL_ACT_WAIT && !w->device->is_synchronous) {
        if (fl_worker_retired(w) != 0) {
            count_off(w);
            act = w->now.completed != NULL ? FL_ACT_MORE : act;
        }
        bool waits =
            w->pipeline.computing == 0 && (w->pipeline.in_flight != 0 || fl_worker_is_stalled(w));
        fl_account_event(w, waits ? FL_EVENT_WAITS : FL_EVENT_GOES_ON, NULL);
    }
    if (w->now.completed != NULL) {
        /* Completions come first: tasks made ready are offered to idle workers, too. */
        run_completions(w);
    }
    if (w->ready.pushed) {
        fl_worker_wake_others(w);
    }
    w->ready.in_step = false;
    return act;
}

static bool is_gate(const fl_item *item)
{
    return item->task != NULL && item->task->is_gate;
}

/* Times the item, if the speed model wants a sample. */
static inline __attribute__((always_inline)) bool sample(fl_worker *w, fl_item *item,
                                                         const filch_codelet *codelet)
{
    fl_speed *speed = fl_codelet_speed(codelet, w->index);
    if (!fl_speed_wants_sample(speed) && item->task != NULL) {
        return false;
    }
    /* Chunks and divisible tasks are always timed. */
    bool is_always = item->task == NULL || item->timed;
    if (!is_always && fl_speed_is_early(speed, fl_worker_clock(w))) {
        return false;
    }
    fl_item_set_timed(item, codelet);
    item->stands = is_always ? 1 : speed->stands;
    if (FL_UNLIKELY(fl_item_may_race(item, codelet))) {
        fl_backup_offer(w, item);
    }
    return true;
}

/* Adds the item to the open stretch, if it is sure to belong there. The two flags were just
 * written, each by a store of its own: one load of both would wait for the stores. */
static inline bool goes_on(fl_trace_stretch *stretch, const fl_item *item,
                           const filch_codelet *codelet)
{
    if (stretch->uniform != codelet || item->timed || stretch->tasks.count == FL_TRACE_TASKS ||
        item->skip || !fl_speed_pass(stretch->speed)) {
        return false;
    }
    fl_stretch_put(stretch, item->task);
    return true;
}

/* Adds a task to the open stretch or a new one. False: the task needs an event of its own. */
static bool join_stretch(fl_worker *w, const fl_task *task)
{
    double ns = fl_cost_of_task(w, task);
    if (task->label != NULL || !(ns > 0 && ns <= FL_SHORT_NS)) {
        return false;
    }
    /* Tasks of an open graph may be getting labels now. */
    bool is_uniform = task->codelet->work == NULL && task->graph->kind == FILCH_GRAPH_CLOSED &&
                      !task->graph->has_labels;
    return fl_stretch_begin(w, task, fl_codelet_speed(task->codelet, w->index), is_uniform);
}

/* Prepares the item while a trace records: what the speed model does not want timed is timed for an
 * event of its own, or shares one. */
static __attribute__((noinline)) void prepare_traced(fl_worker *w, fl_item *item,
                                                     const filch_codelet *codelet)
{
    if (!sample(w, item, codelet) && !item->timed && !item->skip && !join_stretch(w, item->task)) {
        fl_item_set_timed(item, codelet);
        item->only_traced = true;
        fl_speed_leave_out(fl_codelet_speed(codelet, w->index));
    }
}

/* Prepares the item to be run by the driver. */
static inline __attribute__((always_inline)) void prepare(fl_worker *w, fl_item *item)
{
    if (is_gate(item)) {
        fl_item_pass(item);
        return;
    }
    const filch_codelet *codelet = fl_item_codelet(item);
    if (fl_trace_of(w) == NULL) {
        (void)sample(w, item, codelet);
    } else if (FL_UNLIKELY(!goes_on(&w->call.stretch, item, codelet))) {
        prepare_traced(w, item, codelet);
    }
}

/* Waits until the item's operands have arrived; without operands the item is not run. */
static fl_act await_operands(fl_worker *w)
{
    filch_status status =
        fl_waits_check(w->sched->core->places, &w->offload->waits, &w->stall.error);
    fl_account_event(w, status == FILCH_NOT_READY ? FL_EVENT_WAITS : FL_EVENT_GOES_ON, NULL);
    if (status == FILCH_NOT_READY) {
        w->idle.wake_at = fl_worker_clock(w) + FL_NAP_FETCH_NS;
        return FL_ACT_WAIT;
    }
    w->now.item.state = FL_ITEM_LAUNCHED;
    if (status != FILCH_OK) {
        fl_item_refuse(&w->now.item);
        fl_fetch_abandon(w);
        return FL_ACT_MORE;
    }
    if (FL_UNLIKELY(fl_pending_has_ended(w))) {
        fl_sched_wake(w->sched, 1); /* the ender may have chosen us, and we are about to be busy */
    }
    return FL_ACT_RUN;
}

/* Copies the picked item's operands to the host's memory, if the data may be elsewhere. */
static fl_act fetch(fl_worker *w)
{
    if (!fl_fetch_operands(w, &w->now.item)) {
        fl_item_refuse(&w->now.item);
        fl_fetch_abandon(w);
        return FL_ACT_MORE;
    }
    w->now.item.state = FL_ITEM_FETCHING;
    w->now.has_worked = true;
    return await_operands(w);
}

static inline __attribute__((always_inline)) void retire_run(fl_worker *w)
{
    w->now.item.state = FL_ITEM_DONE;
    /* A racing item is committed after the decision only. */
    bool may_race = w->now.item.task == NULL && w->now.item.run != NULL;
    if (w->offload != NULL && !w->now.item.skip && w->now.item.code == 0 && !may_race &&
        fl_operands_matter(&w->now.item) &&
        !(w->now.item.task != NULL &&
          /* A divided task is committed after the last piece only. */
          fl_task_is_divided(w->now.item.task))) {
        fl_publish_on_host(w, &w->now.item);
    }
    fl_worker_retire(w, &w->now.item);
}

/* Begins the picked item. In line: runs for each item. */
static inline __attribute__((always_inline)) fl_act begin(fl_worker *w)
{
    prepare(w, &w->now.item);
    w->now.item.state = FL_ITEM_LAUNCHED;
    w->theft.waited_at = 0;
    fl_worker_end_idle(w);
    if (fl_load_relaxed(&w->signals.hazard) != w->now.item.job) {
        fl_jobs_end_peek(w);
    }
    return w->offload != NULL && !w->now.item.skip && fl_operands_matter(&w->now.item) ? fetch(w)
                                                                                       : FL_ACT_RUN;
}

static __attribute__((noinline)) fl_act begin_rare(fl_worker *w)
{
    return begin(w);
}

/* Lets a task go whose function returned FILCH_PENDING. */
static __attribute__((noinline)) void let_go(fl_worker *w)
{
    w->now.item.state = FL_ITEM_DONE;
    fl_pending_let_go(w, &w->now.item, w->call.returned);
}

static fl_act step_synchronous(fl_worker *w)
{
    if (FL_LIKELY(w->now.item.state == FL_ITEM_LAUNCHED)) {
        retire_run(w);
    } else if (FL_UNLIKELY(w->now.item.state != FL_ITEM_DONE)) {
        if (w->now.item.state == FL_ITEM_FETCHING) {
            return await_operands(w);
        }
        let_go(w);
    }
    if (FL_UNLIKELY(fl_pending_has_ended(w))) {
        fl_pending_retire_ended(w);
    }
    for (;;) {
        if (fl_worker_pick(w, &w->now.item)) {
            return begin(w);
        }
        fl_worker_flush(w);
        fl_jobs_end_peek(w);
        if (w->now.completed != NULL) {
            /* Completions may let further jobs start. */
            return FL_ACT_MORE;
        }
        if (!fl_worker_is_deep(w) &&
            (fl_worker_steal(w) || (fl_worker_may_join(w) && fl_divide_join(w)))) {
            continue;
        }
        if (fl_backup_pick(w, &w->now.item)) {
            return begin_rare(w);
        }
        fl_jobs_end_peek(w);
        fl_worker_begin_idle(w);
        return FL_ACT_WAIT;
    }
}

/* Ends the item that the driver has run, if any. */
static void end_run(fl_worker *w)
{
    if (w->now.item.state == FL_ITEM_LAUNCHED) {
        retire_run(w);
    } else if (w->now.item.state == FL_ITEM_PENDING) {
        let_go(w);
    }
}

/* Steps a synchronous device offline: the present item ends. */
static fl_act rest_synchronous(fl_worker *w)
{
    if (w->now.item.state == FL_ITEM_FETCHING) {
        return await_operands(w);
    }
    end_run(w);
    if (fl_pending_has_ended(w)) {
        fl_pending_retire_ended(w);
    }
    fl_offline_settle(w);
    if (fl_offline_pick(w, &w->now.item)) {
        return begin_rare(w);
    }
    fl_worker_flush(w);
    return fl_offline_rest(w);
}

static __attribute__((noinline)) fl_act step_away(fl_worker *w)
{
    return w->device->is_synchronous ? rest_synchronous(w) : fl_pipeline_rest(w);
}

fl_act fl_worker_step(fl_worker *w)
{
    fl_act act;
    w->ready.in_step = true;
    fl_count(&w->queues.steps, 1);
    /* Relaxed: a thread changing the duties wakes the worker. */
    uint32_t duties = fl_load_relaxed(&w->signals.duties);
    if (FL_UNLIKELY((duties & FL_DUTY_OFFLINE) != 0)) {
        act = step_away(w);
    } else {
        act = w->device->is_synchronous ? step_synchronous(w) : fl_pipeline_step(w);
    }
    if (FL_UNLIKELY((duties & FL_DUTY_POLL_EVENTS) != 0)) {
        act = fl_host_events_step(w, act);
    }
    return end_step(w, act);
}

void fl_worker_settle(fl_worker *w)
{
    w->ready.in_step = true;
    end_run(w);
    fl_ready_unslot(w);
    fl_worker_flush(w);
    fl_jobs_end_peek(w);
    end_step(w, FL_ACT_MORE);
}
