/* SPDX-License-Identifier: Apache-2.0 */
/* A call that may return FILCH_PENDING has a record (worker/pending.h) of its own, with the call's
 * views: the worker's views serve the next call. After FILCH_PENDING the worker counts the function
 * as run, leaves the job, and lets the task go; the task keeps the job from being over.
 *
 * The ending (sync/ending.h) decides who has the task next. Where the end is given first, the
 * worker retires the task in the step after the call. Otherwise the ender puts the record into the
 * scheduler's inbox, and wakes the worker that ran the function, or any idle worker. Every worker's
 * step looks at the inbox, so the task does not wait behind a long item of one worker. */
#include "sched/execute/pending.h"

#include <stdio.h>
#include <string.h>

#include "sched/account/account.h"
#include "sched/execute/fetch.h"
#include "sched/execute/host_call.h"
#include "sched/execute/idle.h"
#include "sched/execute/profiler.h"
#include "sched/execute/publish.h"
#include "sched/execute/retire.h"
#include "sched/model/predict.h"
#include "sched/worker/device.h"
#include "sched/worker/wake.h"

/* --- Records --- */

filch_status fl_pendings_init(fl_sched *sched)
{
    fl_pendings *pendings = &sched->pendings;
    fl_inbox_init(&pendings->ended);
    pendings->free = pendings->all = NULL;
    fl_store_relaxed(&pendings->enders, 0); /* no second thread is running yet */
    return fl_mutex_init(&pendings->lock);
}

void fl_pendings_quiesce(fl_sched *sched)
{
    /* Acquire: the ender's last access to the scheduler. The ender of a task of an ended job was
     * counted before the job's end, so a zero stays. */
    while (fl_load_acquire(&sched->pendings.enders) != 0) {
        fl_thread_yield();
    }
}

void fl_pendings_fini(fl_sched *sched)
{
    const fl_memory *memory = &sched->core->memory;
    fl_pending_task *pending = sched->pendings.all;
    while (pending != NULL) {
        fl_pending_task *next = pending->all;
        fl_free(memory, pending->views, pending->view_room * sizeof *pending->views);
        fl_free_aligned(memory, pending, sizeof *pending, _Alignof(fl_pending_task));
        pending = next;
    }
    sched->pendings.free = sched->pendings.all = NULL;
    fl_mutex_fini(&sched->pendings.lock);
}

static fl_pending_task *make(fl_sched *sched)
{
    fl_pending_task *made =
        fl_alloc_aligned(&sched->core->memory, sizeof *made, _Alignof(fl_pending_task));
    if (made == NULL) {
        return NULL;
    }
    fl_ending_init(&made->ending);
    made->sched = sched;
    made->next = NULL;
    /* Relaxed: nobody else knows the record. */
    fl_store_relaxed(&made->job, NULL);
    fl_store_relaxed(&made->codelet, NULL);
    fl_store_relaxed(&made->order, 0);
    made->views = NULL;
    made->view_room = 0;
    made->scratch = NULL;
    made->scratch_bytes = 0;
    fl_mutex_lock(&sched->pendings.lock);
    made->all = sched->pendings.all;
    sched->pendings.all = made;
    fl_mutex_unlock(&sched->pendings.lock);
    return made;
}

static void give_back(fl_sched *sched, fl_pending_task *pending)
{
    fl_mutex_lock(&sched->pendings.lock);
    pending->next = sched->pendings.free;
    sched->pendings.free = pending;
    fl_mutex_unlock(&sched->pendings.lock);
}

/* Takes a record with room for the views. Null: no memory. */
static fl_pending_task *take(fl_sched *sched, uint32_t view_count)
{
    const fl_memory *memory = &sched->core->memory;
    fl_mutex_lock(&sched->pendings.lock);
    fl_pending_task *pending = sched->pendings.free;
    if (pending != NULL) {
        sched->pendings.free = pending->next;
    }
    fl_mutex_unlock(&sched->pendings.lock);
    pending = pending != NULL ? pending : make(sched);
    if (pending == NULL || view_count <= pending->view_room) {
        return pending;
    }
    filch_view *views = fl_alloc(memory, view_count * sizeof *views);
    if (views == NULL) {
        give_back(sched, pending);
        return NULL;
    }
    fl_free(memory, pending->views, pending->view_room * sizeof *views);
    pending->views = views;
    pending->view_room = view_count;
    return pending;
}

bool fl_pending_describe(fl_sched *sched, char *text, size_t bytes)
{
    bool any = false;
    fl_mutex_lock(&sched->pendings.lock);
    for (fl_pending_task *pending = sched->pendings.all; pending != NULL && !any;
         pending = pending->all) {
        any = fl_ending_is_pending(&pending->ending);
        if (any) {
            /* Relaxed: a message. The task may end meanwhile, and another be pending. */
            const filch_codelet *codelet = fl_load_relaxed(&pending->codelet);
            snprintf(text, bytes, "a task of codelet '%s', #%u of its graph, is pending",
                     codelet->name, fl_load_relaxed(&pending->order));
        }
    }
    fl_mutex_unlock(&sched->pendings.lock);
    return any;
}

/* --- The call --- */

/* Fills the record for a call of the running item. */
static void fill(const fl_worker *w, fl_pending_task *pending, const filch_call *given)
{
    const fl_item *item = &w->now.item;
    /* Release: who reads the job of a later run sees that the serial is not its own any more. */
    fl_store_release(&pending->job, item->job);
    /* Relaxed: values for messages. */
    fl_store_relaxed(&pending->codelet, item->task->codelet);
    fl_store_relaxed(&pending->order, item->task->order);
    pending->worker = w->index;
    pending->is_taken = pending->is_published = false;
    pending->call = *given;
    if (given->view_count != 0) {
        memcpy(pending->views, given->views, given->view_count * sizeof *pending->views);
    }
    pending->call.views = pending->views;
}

/* Fails the running item, which has no code of the caller's. The name of the device stands between
 * the parts of the text. */
static int refuse(fl_worker *w, filch_status status, const char *begin, const char *end)
{
    fl_item *item = &w->now.item;
    const char *device = w->device->info.name;
    w->stall.error = (filch_error)FILCH_ERROR_INIT;
    fl_error_fill(&w->stall.error, (fl_fault){.status = status, .device = device}, "%s %s%s", begin,
                  device, end);
    item->is_refused = true;
    item->timed = false;
    return (int)status;
}

/* Decides how a call ends whose function took the handle and returned a code. True: by the code
 * alone, and the handle names no task any more. False: an ender was quicker. */
static bool ends_by_itself(fl_pending_task *pending)
{
    if (!fl_ending_claim(&pending->ending, fl_ending_serial(&pending->ending))) {
        return false;
    }
    fl_ending_close(&pending->ending);
    return true;
}

/* The scratch is the task's until the end: the next call, which a simulated device makes before the
 * task is let go, gets another. */
static void keep_scratch(fl_worker *w, fl_pending_task *pending)
{
    if (fl_task_scratch(w->now.item.task) != 0) {
        pending->scratch = w->call.scratch;
        pending->scratch_bytes = w->call.scratch_bytes;
        w->call.scratch = NULL;
        w->call.scratch_bytes = 0;
    }
}

/* Stands before the host function of a codelet whose tasks may pend. */
static int call_host(const filch_call *given)
{
    fl_worker *w = given->opaque;
    filch_host_fn function = w->now.item.task->codelet->host_given;
    fl_pending_task *outer = w->call.running, *pending = take(w->sched, given->view_count);
    if (pending == NULL) {
        return refuse(w, FILCH_OUT_OF_MEMORY, "no memory for the handle of a pending task on", "");
    }
    fill(w, pending, given);
    w->call.running = pending;
    int code = function(&pending->call);
    w->call.running = outer;
    bool is_pending = code == FILCH_PENDING;
    if (pending->is_taken && (is_pending || !ends_by_itself(pending))) {
        keep_scratch(w, pending);
        w->call.returned = pending;
        w->now.item.state = FL_ITEM_PENDING;
        return 0;
    }
    give_back(w->sched, pending);
    return is_pending ? refuse(w, FILCH_WRONG_STATE, "the function on",
                               " returned FILCH_PENDING without a handle: call filch_call_pend "
                               "first, or return 0 or a code of your own")
                      : code;
}

void fl_pending_codelet_init(fl_scheduler *self, filch_codelet *codelet)
{
    fl_predict_init(self, codelet);
    if (fl_codelet_may_pend(codelet)) {
        codelet->host = call_host;
    }
    fl_profiler_codelet_init(codelet);
}

/* --- Letting go, and the end --- */

static void retire(fl_worker *w, fl_pending_task *pending)
{
    fl_sched *sched = w->sched;
    fl_item *item = &pending->item;
    item->code = pending->code;
    if (pending->is_published && item->code == 0) {
        fl_publish_on_host(w, item);
    }
    fl_worker_end_idle(w);
    fl_account_pending(w, pending);
    fl_worker_retire_pending(w, pending);
    fl_free_aligned(&sched->core->memory, pending->scratch, pending->scratch_bytes, 64);
    pending->scratch = NULL;
    pending->scratch_bytes = 0;
    fl_ending_close(&pending->ending);
    give_back(sched, pending);
}

void fl_pending_let_go(fl_worker *w, const fl_item *item, fl_pending_task *pending)
{
    pending->item = *item;
    pending->item.state = FL_ITEM_DONE;
    pending->is_published =
        w->offload != NULL && w->device->is_synchronous && fl_operands_matter(item);
    /* Counts the function as run, and leaves the job: the job may be over, and its memory used
     * again, as soon as the task is let go. */
    fl_worker_let_go(w, item);
    pending->since = fl_worker_clock(w);
    if (fl_ending_return(&pending->ending)) {
        retire(w, pending);
    }
}

void fl_pending_retire_ended(fl_worker *w)
{
    for (fl_link *link = fl_inbox_drain(&w->sched->pendings.ended); link != NULL;) {
        /* Read first: the record may be used again. */
        fl_link *next = link->next;
        w->now.has_worked = true;
        retire(w, fl_pending_of_link(link));
        link = next;
    }
}

/* --- Public calls --- */

filch_status filch_call_pend(const filch_call *call, filch_pending *pending)
{
    fl_worker *w = call != NULL ? call->opaque : NULL;
    if (w == NULL) {
        /* Work and cost functions get no runtime to record details in. */
        return call == NULL ? FILCH_INVALID_ARGUMENT : FILCH_WRONG_STATE;
    }
    fl_core *core = w->sched->core;
    if (pending == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_call_pend", NULL,
                            "no place for the handle");
    }
    const fl_item *item = fl_host_call_item(w);
    const char *wrong = item == NULL ? "the calling thread runs no host function of the device"
                        : item->task == NULL || !fl_codelet_may_pend(item->task->codelet)
                            ? "the codelet lacks FILCH_CODELET_MAY_PEND"
                        : w->call.running == NULL || call != &w->call.running->call
                            ? "the call's function waits for other work"
                            : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_WRONG_STATE, "filch_call_pend", NULL, "%s", wrong);
    }
    w->call.running->is_taken = true;
    *pending = (filch_pending){.opaque = w->call.running,
                               .serial = fl_ending_serial(&w->call.running->ending)};
    return FILCH_OK;
}

/* Hands a task that its worker has let go to the workers. */
static void hand_over(fl_pending_task *pending)
{
    fl_sched *sched = pending->sched;
    uint32_t home = pending->worker; /* the record is not ours behind the push */
    fl_inbox_push(&sched->pendings.ended, &pending->link);
    /* The worker that ran the function may be offline, and asleep to all other wake-ups. Both calls
     * make the fence between the push and the look at the idle bits. */
    if (!fl_sched_wake_worker(sched, home)) {
        fl_sched_wake(sched, 1);
    }
}

/* Ends the task of the handle, of an existing scheduler. */
static bool end(fl_pending_task *pending, uint64_t serial, int code, const char *text)
{
    if (!fl_ending_claim(&pending->ending, serial)) {
        return false;
    }
    pending->code = code;
    snprintf(pending->text, sizeof pending->text, "%s", text != NULL ? text : "");
    pending->ended = fl_clock_now(&pending->sched->core->clock);
    if (fl_ending_give(&pending->ending)) {
        hand_over(pending);
    }
    return true;
}

/* FILCH_OK, FILCH_INVALID_HANDLE or FILCH_FORKED. */
static filch_status check(const fl_pending_task *pending)
{
    return pending == NULL                     ? FILCH_INVALID_HANDLE
           : *pending->sched->core->alive == 1 ? FILCH_OK
                                               : FILCH_FORKED;
}

filch_status filch_pending_end(filch_pending pending, int code, const char *text)
{
    fl_pending_task *record = pending.opaque;
    filch_status status = check(record);
    if (status != FILCH_OK) {
        return status;
    }
    fl_sched *sched = record->sched;
    if (code == FILCH_PENDING) {
        return fl_core_fail(sched->core, FILCH_INVALID_ARGUMENT, "filch_pending_end", NULL,
                            "the code is FILCH_PENDING");
    }
    /* Relaxed: the task's job runs until our claim's end, so the count is up before the job's end
     * can be seen. */
    fl_add_relaxed(&sched->pendings.enders, 1);
    bool is_first = end(record, pending.serial, code, text);
    /* Release: our last access to the scheduler. */
    fl_sub_acq_rel(&sched->pendings.enders, 1);
    return is_first ? FILCH_OK : FILCH_INVALID_HANDLE;
}

filch_status filch_pending_status(filch_pending pending)
{
    const fl_pending_task *record = pending.opaque;
    filch_status status = check(record);
    if (status != FILCH_OK) {
        return status;
    }
    /* Acquire, twice: the reads precede the look at the serial. Jobs are used again, but live as
     * long as the runtime. */
    const filch_job *job = fl_load_acquire(&record->job);
    bool is_cancelled = job != NULL && fl_load_acquire(&job->cancelled) != 0;
    return !fl_ending_is_open(&record->ending, pending.serial) ? FILCH_INVALID_HANDLE
           : is_cancelled                                      ? FILCH_CANCELLED
                                                               : FILCH_NOT_READY;
}
