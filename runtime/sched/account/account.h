/* SPDX-License-Identifier: Apache-2.0 */
/* Breakdown of a device's time within a job. account.c keeps the account; report.c fills the
 * report. */
#ifndef FL_SCHED_ACCOUNT_ACCOUNT_H
#define FL_SCHED_ACCOUNT_ACCOUNT_H

#include "sched/account/ledger.h"
#include "sched/account/preempt.h"
#include "sched/worker/sched.h"

/* Values of fl_job_part.accounted. */
enum { FL_ACCOUNT_NONE, FL_ACCOUNT_BEGUN, FL_ACCOUNT_ENDED };

/* Parts of a job's time on a device, ns. starved, held, unshared, tail, own and other add up to the
 * job's time. */
typedef struct fl_time_parts {
    uint64_t starved, held, unshared, tail;
    uint64_t own;   /* time on the job */
    uint64_t other; /* time on other jobs */
    uint64_t gap;   /* cost of a dispatch; not a part of the sum */
    uint64_t refused[FL_REFUSALS];
} fl_time_parts;

/* Measures the parts of a job's time from the beginning up to `end`; the job has begun. last: time
 * at which the job's last item was taken. */
void fl_account_measure(const fl_sched *sched, const filch_job *job, uint32_t device, uint64_t end,
                        uint64_t last, fl_time_parts *parts);

/* The job begins, or has ended: notes what the workers are at. */
void fl_account_begin(fl_sched *sched, filch_job *job);
void fl_account_end(fl_sched *sched, filch_job *job);

/* Event that a worker reports. */
typedef enum fl_event {
    FL_EVENT_JOB_TAKEN,  /* worker->now.job becomes the current job */
    FL_EVENT_JOB_LEFT,   /* the worker leaves the current job; now.retired items are not counted off
                          */
    FL_EVENT_IDLE,       /* nothing to do: worker->idle.ready_at says why */
    FL_EVENT_DISPATCHED, /* the dispatch that was being measured is over */
    FL_EVENT_WAITS,      /* the current job waits for data or memory */
    FL_EVENT_GOES_ON,    /* it does not, or not any more */
    FL_EVENT_LAUNCHED,   /* item: put on the device at item->start */
    FL_EVENT_LANDED,     /* item: about to leave the pipeline; not timed: item->ns is a guess */
    FL_EVENT_SPOILED,    /* item: its results are lost; item->ns is a guess where not timed */
    FL_EVENT_TIMED,      /* item: timed, of the current job, about to retire */
    FL_EVENT_DEFEATED,   /* item: timed, a run of a chunk whose backup run counts */
    FL_EVENT_DEVICE_LOST /* all items in flight are lost with their device */
} fl_event;

/* Records in the trace how long a task was pending, which is about to retire. */
void fl_account_pending(const fl_worker *worker, const fl_pending_task *pending);

/* Part of fl_account_event, for this room alone: notes when the worker last took an item of a job:
 * t + 1, since 0 means none, and a virtual clock begins at 0. */
static inline void fl_account_note_taken(fl_account *account, uint64_t t)
{
    fl_store_relaxed(&account->taken, t + 1); /* relaxed throughout: the owner's statistics */
}

/* As fl_account_event, but for FL_EVENT_LAUNCHED and FL_EVENT_LANDED, which it leaves out. */
void fl_account_note(fl_worker *worker, fl_event event, const fl_item *item);

/* The worker's only call into the accounting of time; item: null where no item is named above. For
 * the worker's driver. In line: two events are of every item. */
static inline __attribute__((always_inline)) void fl_account_event(fl_worker *w, fl_event event,
                                                                   const fl_item *item)
{
    if (event == FL_EVENT_LANDED) {
        /* 0 for an item with nothing to run. */
        fl_count(&fl_job_share(item->job, w->index)->account.guessed_ns,
                 item->timed ? 0 : item->ns);
    } else if (event == FL_EVENT_LAUNCHED) {
        fl_account_note_taken(&fl_job_share(item->job, w->index)->account, item->start);
        if (FL_UNLIKELY(w->ledger.waits)) {
            fl_account_note(w, FL_EVENT_GOES_ON, item);
        }
    } else {
        fl_account_note(w, event, item);
    }
}

/* --- The current job: its retired items are counted in the worker, and its time counts as busy ---
 */

/* Counts the retired items of the current job off the job, and leaves the job. */
void fl_worker_flush(fl_worker *worker);
/* The job becomes the current job, with a graph or null. */
void fl_worker_switch(fl_worker *worker, filch_job *job, const filch_graph *graph);
/* The worker is at a chunk of the job from now on. */
void fl_worker_turn(fl_worker *worker, filch_job *job);
/* Whether the job, or a job it waits for, is the job of the calling task. */
bool fl_worker_is_inside(const fl_worker *worker, const filch_job *job);
/* The item that has waited for nested work since `since` goes on. */
void fl_worker_resume(fl_worker *worker, uint64_t since);

/* The worker is at a task from now on. */
static inline void fl_worker_enter(fl_worker *w, const fl_task *task)
{
    if (FL_UNLIKELY(w->now.graph != task->graph)) {
        fl_worker_switch(w, task->graph->job, task->graph);
    }
}

/* --- Items and jobs --- */

/* As fl_account_divide, for a timed item. */
void fl_account_divide_timed(fl_worker *worker, fl_item *item);

/* Sets own and fair of an item that a poll has just found past. Both are the whole duration where
 * no share is known. */
static inline void fl_account_divide(fl_worker *w, fl_item *item)
{
    item->own = item->fair = item->ns;
    if (item->timed) {
        fl_account_divide_timed(w, item);
    }
}

/* fl_scheduler's job_report (report.c). */
void fl_account_report(fl_scheduler *self, const filch_job *job, filch_report *report,
                       filch_losses *devices, size_t device_bytes, uint32_t count);
/* Function of fl_scheduler: adds a run's counts to the counts of the repetition's job. */
void fl_account_add(fl_scheduler *self, filch_job *job, const filch_job *run);
/* Function of fl_scheduler: counts skipped tasks of a job that never starts. */
void fl_account_skip(fl_scheduler *self, filch_job *job, uint64_t tasks);
/* fl_scheduler's job_stats (report.c). */
void fl_account_stats(fl_scheduler *self, const filch_job *job, filch_job_info *info, void *devices,
                      size_t device_bytes, uint32_t count);

#endif
