/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/job/job.h"

#include "graph/build/run_uses.h"
#include "graph/job/job_trace.h"
#include "graph/job/line.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of the structures in earlier versions of the interface. Later versions only append, to both
 * structures of a pair at once. */
#define INFO_SIZE_FIRST offsetof(filch_job_info, bytes)
#define DEVICE_SIZE_FIRST offsetof(filch_device_stats, bytes_in)
#define INFO_SIZE_BYTES offsetof(filch_job_info, evicted)
#define DEVICE_SIZE_BYTES offsetof(filch_device_stats, evicted)
#define INFO_SIZE_EVICTED offsetof(filch_job_info, moved)
#define DEVICE_SIZE_EVICTED offsetof(filch_device_stats, moved)
#define INFO_SIZE_MOVED offsetof(filch_job_info, pending)
#define DEVICE_SIZE_MOVED offsetof(filch_device_stats, pending)
#define INFO_SIZE_PENDING offsetof(filch_job_info, runs)
#define SUBMIT_SIZE_FIRST offsetof(filch_submit_desc, cuda_waits)

/* Maximum number of workers with a spare job for the worker's hazard pointer; no machine runs more
 * workers. */
#define MOST_SIGHTS 64u

filch_status fl_submit_check(fl_core *core, const filch_submit_desc *given, const char *call,
                             const char *label, filch_submit_desc *submit)
{
    filch_status status =
        fl_size_check(core, given, SUBMIT_SIZE_FIRST, sizeof *given, "the submission", call, label);
    if (status != FILCH_OK) {
        return status;
    }
    *submit = (filch_submit_desc)FILCH_SUBMIT_DESC_INIT;
    if (given != NULL) {
        memcpy(submit, given, given->size < sizeof *submit ? SUBMIT_SIZE_FIRST : sizeof *submit);
    }
    const char *wrong = (unsigned)submit->on_failure > FILCH_FAILURE_CANCEL ? "unknown on_failure"
                        : submit->reserved != 0                             ? "reserved is not 0"
                        : submit->cuda_wait_count != 0 && submit->cuda_waits == NULL
                            ? "cuda_wait_count is not 0, but cuda_waits is null"
                            : NULL;
    label = submit->label != NULL ? submit->label : label;
    return wrong == NULL
               ? FILCH_OK
               : fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label, "submission: %s", wrong);
}

/* Takes a spare job that no worker can still be reading, or returns null. */
static filch_job *pool_take(fl_core *core)
{
    fl_scheduler *scheduler = core->scheduler;
    fl_mutex_lock(&core->lock);
    filch_job **at = &core->jobs->pool;
    while (*at != NULL && !scheduler->job_is_quiet(scheduler, *at)) {
        at = &(*at)->next;
    }
    filch_job *job = *at;
    if (job != NULL) {
        *at = job->next;
    }
    fl_mutex_unlock(&core->lock);
    return job;
}

static void pool_give(fl_core *core, filch_job *job)
{
    fl_mutex_lock(&core->lock);
    fl_store_relaxed(&job->object.magic, (uint32_t)FL_MAGIC_DEAD);
    /* A discarded job is still NOT_READY. In its next life it looks like a running job, whose label
     * other threads read, only from fl_job_new's release store on. */
    fl_store_relaxed(&job->result, (int32_t)FILCH_CANCELLED);
    job->next = core->jobs->pool;
    core->jobs->pool = job;
    fl_mutex_unlock(&core->lock);
}

void fl_job_discard(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_batch_free(core, job->batch);
    job->batch = NULL;
    fl_broadcast_free(job->broadcast);
    job->broadcast = NULL;
    if (job->uses != NULL) {
        fl_mutex_lock(&core->lock);
        fl_run_uses_give(job->graph, job->uses);
        fl_mutex_unlock(&core->lock);
        job->uses = NULL;
    }
    job->graph = NULL;
    fl_job_drop_events(job);
    pool_give(core, job);
}

static filch_job *job_make(fl_core *core)
{
    size_t bytes = sizeof(filch_job) + core->scheduler->job_bytes;
    filch_job *job = fl_object_new(core, FL_MAGIC_JOB, bytes, _Alignof(filch_job));
    if (job != NULL && fl_mutex_init(&job->lock) != FILCH_OK) {
        fl_object_delete(job);
        return NULL;
    }
    return job;
}

filch_status fl_job_reserve(fl_core *core)
{
    /* Reserve a job for the graph, and a job per worker for the runtime: the hazard pointer of each
     * worker may still name a spare job at the next submission. */
    fl_mutex_lock(&core->lock);
    uint32_t workers = core->scheduler->device_count;
    uint32_t sights = workers < MOST_SIGHTS ? workers : MOST_SIGHTS;
    uint32_t made = core->jobs->reserved;
    uint32_t wanted = ++core->jobs->sealed + sights;
    fl_mutex_unlock(&core->lock);
    for (; made < wanted; ++made) {
        filch_job *job = job_make(core);
        if (job == NULL) {
            fl_job_unreserve(core);
            return FILCH_OUT_OF_MEMORY;
        }
        pool_give(core, job);
        fl_mutex_lock(&core->lock);
        ++core->jobs->reserved;
        fl_mutex_unlock(&core->lock);
    }
    return FILCH_OK;
}

void fl_job_unreserve(fl_core *core)
{
    fl_mutex_lock(&core->lock);
    --core->jobs->sealed;
    fl_mutex_unlock(&core->lock);
}

filch_job *fl_job_new(fl_core *core, const filch_submit_desc *submit, const char *label)
{
    filch_job *job = pool_take(core);
    if (job == NULL) {
        job = job_make(core);
        if (job == NULL) {
            return NULL;
        }
    }
    fl_store_relaxed(&job->refs, 2);
    fl_store_relaxed(&job->is_lent, 0);
    job->graph = NULL;
    job->uses = NULL;
    job->before = job->behind = NULL;
    job->outer = job->after = NULL;
    job->after_end = &job->after;
    job->is_vacant = job->is_withdrawn = false;
    job->prepare = NULL;
    /* Free the batch of the object's former life: the pool has checked for readers. */
    fl_batch_free(core, job->batch);
    job->batch = NULL;
    job->broadcast = NULL;
    job->present = job->whole = NULL;
    job->is_repetition = false;
    job->repeat = NULL;
    job->ended = NULL;
    job->is_spreading = false;
    job->is_open = false;
    job->ran = NULL;
    job->has_begun = false;
    job->on_failure = submit->on_failure;
    job->on_complete = submit->on_complete;
    job->user = submit->user;
    job->signal = NULL;
    bool has_label = submit->label != NULL && submit->label[0] != '\0';
    snprintf(job->label, sizeof job->label, "%s", has_label ? submit->label : label);
    job->next = NULL;
    job->late = NULL;
    fl_store_relaxed(&job->runs, 0);
    fl_store_relaxed(&job->run_once, 0);
    job->kept = 0;
    job->is_past = false;
    fl_store_relaxed(&job->completer, 0);
    fl_store_relaxed(&job->started, 0);
    job->finished = 0;
    fl_store_relaxed(&job->total, 0);
    fl_store_relaxed(&job->remaining, 0);
    fl_store_relaxed(&job->cancelled, 0);
    fl_store_relaxed(&job->failed, 0);
    fl_store_relaxed(&job->left_out, 0);
    fl_store_relaxed(&job->suspended, 0);
    job->note_count = 0;
    job->notes_lost = false;
    job->is_resumed = false;
    fl_store_relaxed(&job->object.magic, (uint32_t)FL_MAGIC_JOB);
    core->scheduler->job_reset(core->scheduler, job);
    /* Release: a thread that finds the job running (filch_runtime_destroy) reads its label. */
    fl_store_release(&job->result, (int32_t)FILCH_NOT_READY);
    return job;
}

void fl_job_drop(filch_job *job)
{
    /* Acquire-release: the thread dropping the last reference sees every effect on the job. */
    if (fl_sub_acq_rel(&job->refs, 1) == 1) {
        /* The batch is freed later, when no thief can look any more. */
        pool_give(job->object.core, job);
    }
}

void fl_jobs_fini(fl_core *core)
{
    /* Pooled jobs are dead to callers, like released jobs, but still in the list of objects. */
    for (filch_job *job = core->jobs->pool; job != NULL; job = job->next) {
        fl_store_relaxed(&job->object.magic, (uint32_t)FL_MAGIC_JOB);
    }
    core->jobs->pool = NULL;
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        if (fl_load_relaxed(&object->magic) == (uint32_t)FL_MAGIC_JOB) {
            filch_job *job = (filch_job *)(void *)object;
            fl_batch_free(core, job->batch);
            core->scheduler->job_drop(core->scheduler, job);
            fl_free(&core->memory, job->notes, job->note_capacity * sizeof *job->notes);
            fl_mutex_fini(&job->lock);
        }
    }
}

/* --- Order --- */

fl_queued_access *fl_job_use(filch_job *job, size_t i)
{
    if (job->batch != NULL) {
        size_t count;
        return fl_batch_uses(job->batch, &count) + i;
    }
    if (job->broadcast != NULL) {
        return fl_broadcast_use(job->broadcast);
    }
    return job->is_open ? &job->graph->slots[i]->use : &job->uses->at[i];
}

size_t fl_job_use_count(const filch_job *job)
{
    size_t count = 0;
    if (job->batch != NULL) {
        fl_batch_uses(job->batch, &count);
    } else if (job->broadcast != NULL) {
        count = 1;
    } else if (job->graph != NULL) {
        count = job->graph->slot_count;
    }
    return count;
}

/* Lets a job begin whose uses are granted. A vacant job still counts 1. */
static void enter(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_job_trace *logbook = fl_job_trace_of(core);
    if (FL_UNLIKELY(job->prepare != NULL && !job->is_withdrawn)) {
        job->prepare(job->graph);
    }
    if (FL_UNLIKELY(logbook != NULL)) {
        fl_job_trace_begins(logbook, job);
    }
    fl_store_relaxed(&job->started, fl_clock_now(&core->clock));
    job->has_begun = true;
    /* Relaxed: runs begin one after another. */
    if (FL_UNLIKELY(job->whole != NULL) && fl_load_relaxed(&job->whole->started) == 0) {
        fl_store_relaxed(&job->whole->started, fl_load_relaxed(&job->started));
    }
    if (job->broadcast != NULL) {
        fl_job_spread(job);
    } else if (FL_UNLIKELY(job->is_withdrawn)) {
        core->scheduler->job_skip(core->scheduler, job, fl_load_relaxed(&job->total));
    } else {
        core->scheduler->job_start(core->scheduler, job);
    }
}

static void retire(filch_job *job, int64_t n, filch_job **ready);

/* Starts a job. Collects in *ready the jobs that may start if the job was vacant. */
static void begin(filch_job *job, filch_job **ready)
{
    bool is_vacant = job->is_vacant; /* read first: another job may be over on return */
    enter(job);
    if (is_vacant) {
        retire(job, 1, ready);
    }
}

void fl_jobs_begin(filch_job *ready)
{
    /* A loop, since a line of vacant jobs may be long. */
    while (ready != NULL) {
        filch_job *job = ready;
        ready = job->next;
        job->next = NULL;
        begin(job, &ready);
    }
}

void fl_jobs_begin_busy(filch_job **ready)
{
    filch_job *busy = NULL, **end = &busy, **at = ready;
    while (*at != NULL) {
        filch_job *job = *at;
        if (job->is_vacant) {
            at = &job->next;
        } else {
            *at = job->next;
            job->next = NULL;
            *end = job;
            end = &job->next;
        }
    }
    fl_jobs_begin(busy);
}

void fl_jobs_append(filch_job **list, filch_job *jobs)
{
    if (jobs == NULL) {
        return; /* without a walk along a long line */
    }
    while (*list != NULL) {
        list = &(*list)->next;
    }
    *list = jobs;
}

void fl_job_begin(filch_job *job)
{
    job->next = NULL;
    fl_jobs_begin(job);
}

filch_status fl_job_enqueue(filch_job *job, filch_error *error)
{
    fl_core *core = job->object.core;
    size_t count = fl_job_use_count(job);
    for (size_t i = 0; i < count; ++i) {
        if (fl_job_use(job, i)->data->is_acquired) {
            return fl_data_fail_acquired(fl_job_use(job, i)->data, job->label, error);
        }
    }
    filch_status status = fl_job_check_contents(job, error);
    if (status != FILCH_OK) {
        return status;
    }
    fl_job_note_contents(job);
    job->blocked = 1 + (job->event_count != 0);
    job->sequence = ++core->jobs->submissions;
    for (size_t i = 0; i < count; ++i) {
        fl_queued_access *use = fl_job_use(job, i);
        fl_data_note_host(use->data);
        use->job = job;
        job->blocked += !fl_access_queue_enqueue(use);
    }
    return FILCH_OK;
}

/* Takes one off the blocked count. True: the caller lets the job begin. Otherwise the job may be
 * complete, and its object reused, on return. */
static bool unblock(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_mutex_lock(&core->lock);
    bool is_free = --job->blocked == 0;
    fl_mutex_unlock(&core->lock);
    return is_free;
}

void fl_job_submit(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_job_begin_range(job);
    /* Relaxed: only threads waiting for the job anyway compare the count with zero. */
    fl_add_relaxed(&core->jobs->running, 1);
    if (job->event_count != 0) {
        /* The blocked count still keeps the job from starting. */
        core->scheduler->job_await(core->scheduler, job);
    }
    if (unblock(job)) {
        fl_job_begin(job);
    }
}

bool fl_job_awaited(filch_job *job)
{
    if (job->is_spreading) {
        return true; /* the broadcast is over */
    }
    fl_job_drop_events(job);
    if (!unblock(job)) {
        return false;
    }
    bool is_vacant = job->is_vacant; /* read first: another job may be over on return */
    enter(job);
    return is_vacant;
}

void fl_job_granted(fl_queued_access *use, void *user)
{
    filch_job **ready = user;
    filch_job *job = use->job;
    if (use->is_hold) {
        fl_hold_granted(use);
    } else if (job->is_open) {
        fl_order_begin(job, NULL);
    } else if (--job->blocked == 0) {
        job->next = *ready;
        *ready = job;
    }
}

void fl_job_let_go(fl_queued_access *use)
{
    fl_core *core = use->data->object.core;
    filch_job *ready = NULL;
    fl_mutex_lock(&core->lock);
    fl_access_queue_leave(use, fl_job_granted, &ready);
    fl_mutex_unlock(&core->lock);
    fl_jobs_begin(ready);
    core->scheduler->job_done(core->scheduler, NULL); /* further waiting threads may look */
}

/* --- Completion --- */

/* Tells whether the job may have written the handle. A job cancelled before its use was granted has
 * not. */
static bool has_written(const fl_queued_access *use)
{
    return (use->writes && use->queued) || (use->upgrade != NULL && use->upgrade->queued);
}

/* Takes a use of a finished job out of its queue. The caller holds core->lock. */
static void leave(fl_queued_access *use, bool is_kept, filch_job **ready)
{
    use->data->kept -= use->is_forgone;
    use->is_forgone = false;
    /* A run that outlasts the job writes only to its private output. */
    if (use->queued && (use->writes || !is_kept)) {
        fl_access_queue_leave(use, fl_job_granted, ready);
    }
}

/* Cleans up after a job that left work out or failed. A new version makes the job's replicas
 * worthless: evictions need not keep them. Waits for evicted tiles on the way to the host's buffer.
 */
static void quiesce(filch_job *job)
{
    fl_core *core = job->object.core;
    size_t count = fl_job_use_count(job);
    fl_mutex_lock(&core->lock);
    for (size_t i = 0; i < count; ++i) {
        if (has_written(fl_job_use(job, i))) {
            fl_data_begin_version(fl_job_use(job, i)->data);
        }
    }
    fl_mutex_unlock(&core->lock);
    for (size_t i = 0; i < count; ++i) {
        if (has_written(fl_job_use(job, i))) {
            fl_data_quiesce(core->places, fl_job_use(job, i)->data);
        }
    }
}

/* Ends lifetimes of temporaries that no gate has ended: the job was left out in part, or memory for
 * a gate was missing. */
static void end_lifetimes(filch_job *job)
{
    for (size_t i = 0; i < fl_job_use_count(job); ++i) {
        const fl_queued_access *use = fl_job_use(job, i);
        if (fl_data_is_temporary(use->data) && has_written(use)) {
            fl_data_end_lifetimes(job->object.core->places, use->data);
        }
    }
}

void fl_job_end_uses(filch_job *job, filch_status result)
{
    fl_job_trace *logbook = fl_job_trace_of(job->object.core);
    if (FL_UNLIKELY(logbook != NULL)) {
        fl_job_trace_ended(logbook, job, result);
    }
    size_t count = fl_job_use_count(job);
    job->is_past = true;
    /* Begin a new version of every handle before leaving the first: a waiter for a handle may use
     * the handle's partitions at once. */
    for (size_t i = 0; i < count; ++i) {
        if (has_written(fl_job_use(job, i))) {
            /* Results are written back. Remaining replicas belong to chunks, with their own
             * write-backs, or to a job that failed before its last writers. */
            fl_data_begin_version(fl_job_use(job, i)->data);
        }
    }
}

void fl_job_leave(filch_job *job, filch_status result, filch_job **ready)
{
    fl_core *core = job->object.core;
    fl_broadcast *broadcast = job->broadcast;
    fl_mutex_lock(&core->lock);
    bool is_kept = job->kept != 0; /* read before the run that ended the job can drop its keep */
    fl_job_end_uses(job, result);
    size_t count = fl_job_use_count(job);
    for (size_t i = 0; i < count; ++i) {
        fl_queued_access *use = fl_job_use(job, i);
        if (use->upgrade != NULL) {
            leave(use->upgrade, false, ready);
        }
        leave(use, is_kept, ready);
    }
    if (job->is_open) {
        fl_store_relaxed(&job->graph->task_count, 0); /* every task has retired for good */
        job->graph->job = NULL;                       /* from now on the graph may be destroyed */
    } else if (job->graph != NULL) {
        fl_line_leave(job, ready); /* without a job behind the graph may be destroyed */
    }
    job->graph = NULL;
    job->broadcast = NULL;
    fl_mutex_unlock(&core->lock);
    fl_broadcast_free(broadcast);
}

static void call_back(filch_job *job, filch_status result)
{
    fl_core *core = job->object.core;
    fl_store_relaxed(&job->completer, fl_thread_id());
    job->outer = fl_job_in_callback(core);
    /* Without memory for the thread's slot, runs that the callback cancels end inside it. */
    bool is_known = fl_tss_set(core->callback, job) == FILCH_OK;
    job->on_complete(job, result, job->user);
    if (is_known) {
        (void)fl_tss_set(core->callback, job->outer); /* the slot exists */
    }
}

void fl_job_conclude(filch_job *job, filch_status result)
{
    if (job->signal != NULL) {
        fl_job_signal(job);
    }
    if (job->on_complete != NULL) {
        call_back(job, result);
    }
    /* Release: a thread that sees the result sees every effect of the job. */
    fl_store_release(&job->result, (int32_t)result);
}

void fl_job_close(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_add_relaxed(&core->jobs->done, 1); /* a statistic */
    /* Sequentially consistent: before the look at the waiters in job_done. */
    fl_sub_seq_cst(&core->jobs->running, 1);
    core->scheduler->job_done(core->scheduler, job);
    fl_job_drop(job);
}

/* Completes a job. Collects in *ready the jobs that may start; null: starts them. */
static void complete(filch_job *job, filch_job **ready)
{
    fl_core *core = job->object.core;
    /* Relaxed: a task that stopped the job has retired. */
    bool is_whole = fl_load_relaxed(&job->failed) == 0 && fl_load_relaxed(&job->left_out) == 0;
    bool is_finished = fl_load_relaxed(&job->cancelled) == FL_STOP_FINISHED;
    filch_status result = fl_load_relaxed(&job->failed) != 0 ? FILCH_TASK_FAILED
                          : is_whole || is_finished          ? FILCH_OK
                                                             : FILCH_CANCELLED;
    job->finished = fl_clock_now(&core->clock);
    fl_job_end_range(job);
    if (job->broadcast == NULL && !job->is_withdrawn) {
        core->scheduler->job_retire(core->scheduler, job);
    }
    if (!is_whole && job->broadcast == NULL && core->places->count > 1) {
        quiesce(job);
    }
    if (FL_UNLIKELY(job->graph != NULL && job->graph->has_temporaries)) {
        end_lifetimes(job);
    }
    if (FL_UNLIKELY(job->ended != NULL)) {
        job->ended(job, result, ready);
        return;
    }
    filch_job *waiting = NULL, **later = ready != NULL ? ready : &waiting;
    fl_job_leave(job, result, later);
    if (fl_job_has_end(job)) {
        fl_jobs_begin_busy(&waiting); /* first: devices do not wait for a callback */
    }
    fl_job_conclude(job, result);
    fl_jobs_append(later, job->after);
    fl_jobs_begin(waiting);
    fl_job_close(job);
}

bool fl_job_keep(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_mutex_lock(&core->lock);
    bool is_there = !job->is_past; /* then the job's handles exist, too */
    for (size_t i = 0; is_there && i < fl_job_use_count(job); ++i) {
        ++fl_job_use(job, i)->data->kept;
    }
    if (is_there) {
        /* Relaxed: counts only. Later atomics order the decision about the run that counts. */
        fl_add_relaxed(&job->refs, 1);
        /* Increment running first: running is never below kept. */
        fl_add_relaxed(&core->jobs->running, 1);
        fl_add_relaxed(&core->jobs->kept, 1);
        ++job->kept;
    }
    fl_mutex_unlock(&core->lock);
    return is_there;
}

void fl_job_unkeep(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_scheduler *scheduler = core->scheduler;
    filch_job *ready = NULL;
    fl_mutex_lock(&core->lock);
    bool is_over = --job->kept == 0 && job->is_past;
    for (size_t i = 0; i < fl_job_use_count(job); ++i) {
        fl_queued_access *use = fl_job_use(job, i);
        --use->data->kept;
        if (is_over && use->queued) {
            fl_access_queue_leave(use, fl_job_granted, &ready);
        }
    }
    fl_mutex_unlock(&core->lock);
    fl_jobs_begin(ready);
    fl_sub_relaxed(&core->jobs->kept, 1);
    /* Sequentially consistent: before the look at the waiters in job_done. */
    fl_sub_seq_cst(&core->jobs->running, 1);
    scheduler->job_done(scheduler, NULL);
    fl_job_drop(job);
}

static void retire(filch_job *job, int64_t n, filch_job **ready)
{
    /* Release: effects of the retired tasks. Acquire: the last thread sees every effect before
     * completing. */
    if (n != 0 && fl_sub_acq_rel(&job->remaining, n) == n) {
        complete(job, ready);
    }
}

void fl_job_retired(filch_job *job, int64_t n)
{
    retire(job, n, NULL);
}

static void note(filch_job *job, filch_item_range range)
{
    fl_core *core = job->object.core;
    if (fl_array_reserve(&core->memory, &job->notes, &job->note_capacity, job->note_count + 1,
                         sizeof *job->notes) != FILCH_OK) {
        job->notes_lost = true;
        return;
    }
    job->notes[job->note_count++] = range;
}

/* Notes the items of a failed chunk, and writes the name of the task or items to what. The caller
 * holds job->lock. */
static void describe_failed(filch_job *job, const fl_task *task, filch_item_range range, char *what,
                            size_t bytes)
{
    if (task == NULL) {
        note(job, range);
        snprintf(what, bytes, "items %llu to %llu", (unsigned long long)range.lo,
                 (unsigned long long)range.hi - 1);
    } else {
        fl_task_describe(task, what, bytes);
    }
}

static const char *failed_label(const filch_job *job, const fl_task *task)
{
    return task != NULL ? fl_task_name(task) : fl_batch_codelet(job->batch)->name;
}

void fl_job_note_stop(filch_job *job, uint32_t why)
{
    uint32_t none = FL_STOP_NONE;
    /* Relaxed: workers look before every work item, and a few more items may run. */
    (void)fl_cas_relaxed(&job->cancelled, &none, why);
}

static void cancel_rest(filch_job *job)
{
    if (job->on_failure == FILCH_FAILURE_CANCEL) {
        fl_scheduler *scheduler = job->object.core->scheduler;
        fl_job_note_stop(job, FL_STOP_CANCELLED);
        scheduler->job_cancelled(scheduler);
    }
}

void fl_job_fail(filch_job *job, const fl_task *task, const fl_failure *why, uint64_t lo,
                 uint64_t hi)
{
    char what[96] = "";
    fl_mutex_lock(&job->lock);
    describe_failed(job, task, (filch_item_range){lo, hi, FILCH_TASK_FAILED, why->code}, what,
                    sizeof what);
    if (fl_load_relaxed(&job->failed) == 0) {
        job->error = (filch_error)FILCH_ERROR_INIT;
        fl_error_fill(&job->error,
                      (fl_fault){.status = FILCH_TASK_FAILED,
                                 .native_code = why->code,
                                 .device = why->device,
                                 .label = failed_label(job, task)},
                      "%s of %s%s%s %s %d on %s%s%s", what, FL_NAME("job ", job->label, "the job"),
                      why->was_told ? "was ended with" : "returned", why->code, why->device,
                      why->text != NULL ? ": " : "", why->text != NULL ? why->text : "");
        fl_store_release(&job->failed, 1); /* release: error is written first */
    }
    fl_mutex_unlock(&job->lock);
    cancel_rest(job);
}

void fl_job_fail_device(filch_job *job, const fl_task *task, const filch_error *error, uint64_t lo,
                        uint64_t hi)
{
    char what[96] = "";
    fl_mutex_lock(&job->lock);
    describe_failed(job, task, (filch_item_range){lo, hi, error->status, error->native_code}, what,
                    sizeof what);
    if (fl_load_relaxed(&job->failed) == 0) {
        job->error = (filch_error)FILCH_ERROR_INIT;
        fl_error_fill(&job->error,
                      (fl_fault){.status = error->status,
                                 .native_code = error->native_code,
                                 .native_name = error->native_name,
                                 .line = error->line,
                                 .call = error->call,
                                 .device = error->device,
                                 .label = failed_label(job, task)},
                      "%s of %s%s%s: %s", what, FL_NAME("job ", job->label, "the job"),
                      error->text);
        fl_store_release(&job->failed, 1); /* release: error is written first */
    }
    fl_mutex_unlock(&job->lock);
    cancel_rest(job);
}

void fl_job_fail_start(filch_job *job, const filch_error *error)
{
    fl_mutex_lock(&job->lock);
    job->error = (filch_error)FILCH_ERROR_INIT;
    fl_error_fill(&job->error,
                  (fl_fault){.status = error->status,
                             .native_code = error->native_code,
                             .native_name = error->native_name,
                             .call = error->call,
                             .device = error->device,
                             .label = job->label},
                  "%s%s%s waits for an event: %s", FL_NAME("job ", job->label, "the job"),
                  error->text);
    fl_store_release(&job->failed, 1); /* release: error is written first */
    fl_mutex_unlock(&job->lock);
    fl_job_note_stop(job, FL_STOP_CANCELLED);
}

void fl_job_note_skipped(filch_job *job, uint64_t lo, uint64_t hi)
{
    fl_mutex_lock(&job->lock);
    note(job, (filch_item_range){lo, hi, FILCH_SKIPPED, 0});
    fl_mutex_unlock(&job->lock);
}

/* Relaxed: only the thread itself can find its own number. */
bool fl_job_is_in_callback(const filch_job *job)
{
    uint64_t thread = fl_load_relaxed(&job->completer);
    return thread != 0 && fl_load_relaxed(&job->result) == (int32_t)FILCH_NOT_READY &&
           thread == fl_thread_id();
}

bool fl_job_is_over(const filch_job *job)
{
    /* Acquire: the final state of the job's items is visible with the result. */
    return fl_load_acquire(&job->result) != (int32_t)FILCH_NOT_READY || fl_job_is_in_callback(job);
}

bool fl_job_is_put_off(const filch_job *job)
{
    bool is_put_off = false;
    for (const filch_job *in = fl_job_in_callback(job->object.core); in != NULL; in = in->outer) {
        for (const filch_job *later = in->after; later != NULL; later = later->next) {
            is_put_off = is_put_off || later == job || later->whole == job;
        }
    }
    return is_put_off;
}

bool fl_jobs_in_callback(fl_core *core)
{
    bool is_inside = false;
    fl_mutex_lock(&core->lock);
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        if (fl_load_relaxed(&object->magic) == (uint32_t)FL_MAGIC_JOB) {
            is_inside = is_inside || fl_job_is_in_callback((const filch_job *)(const void *)object);
        }
    }
    fl_mutex_unlock(&core->lock);
    return is_inside;
}

uint64_t fl_jobs_tasks(fl_core *core)
{
    uint64_t live = 0;
    fl_mutex_lock(&core->lock);
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        if (fl_load_relaxed(&object->magic) != (uint32_t)FL_MAGIC_GRAPH) {
            continue;
        }
        const filch_graph *graph = (const filch_graph *)(const void *)object;
        filch_job_info info = {.size = sizeof info};
        if (graph->job != NULL && graph->job->is_open) {
            core->scheduler->job_stats(core->scheduler, graph->job, &info, NULL, 0, 0);
        }
        /* Memory of retired tasks is reused. */
        uint64_t retired = info.done + info.failed + info.skipped;
        uint64_t added = fl_load_relaxed(&graph->task_count);
        live += added > retired ? added - retired : 0;
    }
    fl_mutex_unlock(&core->lock);
    return live;
}

/* --- Public calls --- */

filch_status filch_job_wait(filch_job *job, double seconds)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = job->object.core;
    if (isnan(seconds)) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_job_wait", job->label,
                            "seconds is not a number");
    }
    if (fl_job_is_in_callback(job)) {
        return fl_core_fail(core, FILCH_WRONG_STATE, "filch_job_wait", job->label,
                            "the job's callback cannot wait for it");
    }
    if (fl_job_is_put_off(job)) {
        return fl_core_fail(core, FILCH_WRONG_STATE, "filch_job_wait", job->label,
                            "a callback cannot wait for a run that it has cancelled");
    }
    status = core->scheduler->job_wait(core->scheduler, job, seconds);
    /* Acquire, here and below: the job's effects are visible. */
    return status != FILCH_OK ? status : (filch_status)fl_load_acquire(&job->result);
}

filch_status filch_job_status(filch_job *job)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    return status != FILCH_OK ? status : (filch_status)fl_load_acquire(&job->result);
}

filch_status filch_job_stats(filch_job *job, filch_job_info *info, filch_device_stats *devices,
                             uint32_t count)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = job->object.core;
    status =
        fl_size_check(core, info, INFO_SIZE_FIRST, 0, "the result", "filch_job_stats", job->label);
    if (status != FILCH_OK) {
        return status;
    }
    if (devices == NULL && count != 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_job_stats", job->label,
                            "count is %u, but devices is null", count);
    }
    size_t size = info->size < sizeof *info ? info->size : sizeof *info;
    filch_job_info now = {.size = info->size};
    /* Acquire: the counts of a complete job are final. */
    now.status = (filch_status)fl_load_acquire(&job->result);
    now.device_count = core->scheduler->device_count;
    now.total = fl_load_relaxed(&job->total);
    now.runs = fl_load_relaxed(&job->runs);
    size_t device_size = size < INFO_SIZE_BYTES     ? DEVICE_SIZE_FIRST
                         : size < INFO_SIZE_EVICTED ? DEVICE_SIZE_BYTES
                         : size < INFO_SIZE_MOVED   ? DEVICE_SIZE_EVICTED
                         : size < INFO_SIZE_PENDING ? DEVICE_SIZE_MOVED
                                                    : sizeof *devices;
    core->scheduler->job_stats(core->scheduler, job, &now, devices, device_size, count);
    memcpy(info, &now, size);
    return FILCH_OK;
}

filch_status filch_job_error(filch_job *job, filch_error *error)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    if (error == NULL || error->size == 0) {
        return fl_core_fail(job->object.core, FILCH_INVALID_ARGUMENT, "filch_job_error", job->label,
                            "the error is null or its size is not set");
    }
    if (fl_load_acquire(&job->failed) != 0) { /* acquire: error is written first */
        fl_error_copy(error, &job->error);
        return FILCH_OK;
    }
    if (fl_load_acquire(&job->result) != (int32_t)FILCH_CANCELLED) {
        return FILCH_NOT_FOUND;
    }
    (void)fl_error_fill(error, (fl_fault){.status = FILCH_CANCELLED, .label = job->label},
                        "%s%s%s was cancelled", FL_NAME("job ", job->label, "the job"));
    return FILCH_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const filch_item_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

const filch_item_range *fl_job_notes(filch_job *job, size_t *count)
{
    if (job->note_count > 1) {
        qsort(job->notes, job->note_count, sizeof *job->notes, compare_ranges);
    }
    *count = job->note_count;
    return job->notes;
}

/* Writes range if there is room, and counts the range. */
static void emit(filch_item_range *ranges, size_t capacity, size_t *count, filch_item_range range)
{
    if (*count < capacity) {
        ranges[*count] = range;
    }
    ++*count;
}

filch_status filch_job_items(filch_job *job, filch_item_range *ranges, size_t capacity,
                             size_t *count)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = job->object.core;
    if (count == NULL || (ranges == NULL && capacity != 0)) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_job_items", job->label,
                            "a result is null");
    }
    if (fl_load_acquire(&job->result) == (int32_t)FILCH_NOT_READY) {
        return FILCH_NOT_READY;
    }
    if (job->batch == NULL || job->notes_lost) {
        return fl_core_fail(core, job->batch == NULL ? FILCH_WRONG_STATE : FILCH_OUT_OF_MEMORY,
                            "filch_job_items", job->label, "%s",
                            job->batch == NULL ? "the job is not a batch"
                                               : "there was no memory to note failed items");
    }
    fl_mutex_lock(&job->lock);
    size_t note_count;
    const filch_item_range *notes = fl_job_notes(job, &note_count);
    uint64_t n = fl_batch_items(job->batch), at = 0;
    *count = 0;
    for (size_t i = 0; i < note_count; ++i) {
        if (notes[i].lo > at) {
            emit(ranges, capacity, count, (filch_item_range){at, notes[i].lo, FILCH_OK, 0});
        }
        emit(ranges, capacity, count, notes[i]);
        at = notes[i].hi;
    }
    if (at < n) {
        emit(ranges, capacity, count, (filch_item_range){at, n, FILCH_OK, 0});
    }
    fl_mutex_unlock(&job->lock);
    return FILCH_OK;
}
