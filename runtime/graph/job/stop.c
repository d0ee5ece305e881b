/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that start nothing more: cancelled, or finished early. */
#include "graph/job/job.h"
#include "graph/job/line.h"

/* Leaves the queues of the handle's partitions, for a job whose use of the parent was never
 * granted. An open graph's uses of partitions are granted at once and do not wait (enter_part in
 * join.c). The partitions belong to the job with the granted use of the parent. The caller holds
 * core->lock. */
static void forgo_parts(const fl_queued_access *of, filch_job **ready)
{
    fl_core *core = of->data->object.core;
    for (fl_object *object = core->objects; object != NULL && of->data->children != 0;
         object = object->next) {
        filch_data *data = (filch_data *)(void *)object;
        if (fl_load_relaxed(&object->magic) != (uint32_t)FL_MAGIC_DATA ||
            data->parent != of->data) {
            continue;
        }
        for (fl_queued_access *use = data->first, *next; use != NULL; use = next) {
            next = use->next;
            if (!use->is_hold && use->granted && use->job == of->job) {
                fl_access_queue_leave(use, fl_job_granted, ready);
            }
        }
    }
}

/* Takes a cancelled job, or every job if job is null, out of the queues it waits in. The job's
 * remaining work is skipped and needs no handles. Waiting might never end: two open graphs may wait
 * for each other. Collects in *ready the jobs that may start. The caller holds core->lock. */
static void forgo(fl_core *core, const filch_job *job, filch_job **ready)
{
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        if (fl_load_relaxed(&object->magic) != (uint32_t)FL_MAGIC_DATA) {
            continue;
        }
        for (fl_queued_access *use = ((filch_data *)(void *)object)->first, *next; use != NULL;
             use = next) {
            next = use->next;
            if (use->is_hold || use->granted || (job != NULL && use->job != job)) {
                continue;
            }
            forgo_parts(use, ready);
            fl_access_queue_leave(use, fl_job_granted, ready);
            use->is_forgone = true; /* thieves may look at the job until it is over */
            ++use->data->kept;
            use->granted = true; /* the use waits for no job, and is in no queue */
            fl_job_granted(use, ready);
        }
    }
}

filch_graph *fl_jobs_cancel_all(fl_core *core)
{
    filch_graph *open = NULL;
    filch_job *ready = NULL;
    fl_mutex_lock(&core->lock);
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        uint32_t magic = fl_load_relaxed(&object->magic);
        if (magic == (uint32_t)FL_MAGIC_JOB) {
            fl_job_note_stop((filch_job *)(void *)object, FL_STOP_CANCELLED);
        } else if (magic == (uint32_t)FL_MAGIC_GRAPH) {
            filch_graph *graph = (filch_graph *)(void *)object;
            /* The graph's state is guarded by its own lock; the bias has the needed information.
             * Relaxed: if a second thread closes the graph meanwhile, closing fails. */
            bool is_open = graph->job != NULL && graph->job->is_open &&
                           fl_load_relaxed(&graph->job->remaining) > FL_OPEN_BIAS / 2;
            open = is_open ? graph : open;
            fl_line_withdraw_all(graph, &ready);
        }
    }
    forgo(core, NULL, &ready);
    fl_mutex_unlock(&core->lock);
    fl_jobs_begin(ready);
    return open;
}

/* Where a callback has withdrawn the job, lets the job begin, and end, after the callback.
 * Otherwise callbacks that each cancel the next run of a long line would be nested without a bound.
 * The caller holds core->lock. */
static void put_off(filch_job *run, filch_job **ready)
{
    filch_job *inside = *ready == run ? fl_job_in_callback(run->object.core) : NULL;
    if (inside != NULL) {
        *ready = run->next;
        run->next = NULL;
        *inside->after_end = run;
        inside->after_end = &run->next;
    }
}

void fl_job_stop(filch_job *job, uint32_t why)
{
    fl_core *core = job->object.core;
    filch_job *ready = NULL;
    /* Relaxed: the job is the caller's own. Whoever finished it before has done or does the rest.
     */
    if (why == FL_STOP_FINISHED && fl_load_relaxed(&job->cancelled) == FL_STOP_FINISHED) {
        return;
    }
    /* Jobs started below run no task: their start is published after the store. */
    fl_job_note_stop(job, why);
    fl_mutex_lock(&core->lock);
    /* Of a repetition: the run in progress ends, and the next run is not started, since its start
     * takes the lock. */
    filch_job *run = job->present != NULL ? job->present : job;
    fl_job_note_stop(run, why);
    if (run->before != NULL) {
        fl_line_withdraw(run, &ready);
        put_off(run, &ready);
    } else {
        forgo(core, run, &ready);
    }
    fl_mutex_unlock(&core->lock);
    fl_jobs_begin(ready);
    core->scheduler->job_cancelled(core->scheduler);
}

filch_status filch_job_cancel(filch_job *job)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status == FILCH_OK) {
        fl_job_stop(job, FL_STOP_CANCELLED);
    }
    return status;
}
