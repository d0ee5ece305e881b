/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/account/current_job.h"

#include "sched/account/account.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"

/* Subtracts the grains and tasks retired for the current job. The last subtraction completes the
 * job, at the end of the step. */
void fl_worker_flush(fl_worker *w)
{
    filch_job *job = w->now.job;
    if (job == NULL) {
        return;
    }
    fl_account_event(w, FL_EVENT_JOB_LEFT, NULL);
    int64_t retired = w->now.retired;
    w->now.job = NULL;
    w->now.share = NULL;
    w->now.graph = NULL;
    w->now.retired = 0;
    if (retired != 0) {
        fl_jobs_count_off(w, job, retired);
    }
}

/* Marks the lane before a second job's items follow. The end of items in flight is then seen early,
 * not together with the later items, which may take long. */
static void mark_off(fl_worker *w)
{
    if (w->pipeline.computing != 0 && fl_worker_computes(w)) {
        /* A later wait marks again, and reports an error. */
        (void)w->device->backend->lane->mark(w->device, NULL);
    }
}

void fl_worker_switch(fl_worker *w, filch_job *job, const filch_graph *graph)
{
    if (w->now.job != job) {
        mark_off(w);
        fl_worker_flush(w);
        w->now.job = job;
        w->now.share = fl_job_share(job, w->index);
        fl_account_event(w, FL_EVENT_JOB_TAKEN, NULL);
    }
    w->now.graph = graph;
}

void fl_worker_turn(fl_worker *w, filch_job *job)
{
    fl_worker_switch(w, job, NULL);
}

void fl_worker_resume(fl_worker *w, uint64_t since)
{
    const fl_task *task = w->now.item.task;
    fl_worker_switch(w, w->now.item.job, task != NULL ? task->graph : NULL);
    w->ledger.nested_ns += fl_clock_now(&w->sched->core->clock) - since;
}

bool fl_worker_is_inside(const fl_worker *w, const filch_job *job)
{
    if (w->now.item.state != FL_ITEM_DONE && w->now.item.job == job) {
        return true;
    }
    for (const fl_frame *frame = w->now.frames; frame != NULL; frame = frame->outer) {
        if (frame->item.job == job) {
            return true;
        }
    }
    return false;
}
