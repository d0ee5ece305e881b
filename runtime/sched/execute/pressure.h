/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for few live tasks of an open graph, outside of tasks and inside. */
#ifndef FL_SCHED_EXECUTE_PRESSURE_H
#define FL_SCHED_EXECUTE_PRESSURE_H

#include "sched/worker/sched.h"

typedef enum fl_pressure_end {
    FL_PRESSURE_ON,      /* the wait goes on */
    FL_PRESSURE_BELOW,   /* fewer tasks are live */
    FL_PRESSURE_STOPPED, /* the job was cancelled or finished early, or takes no more tasks */
    FL_PRESSURE_VAIN     /* waiting on may never help */
} fl_pressure_end;

/* A wait; on the stack of the waiting thread. */
typedef struct fl_pressure_wait {
    fl_sched *sched;
    const fl_open_wait *what;
    bool is_nested; /* inside a task */
    bool is_eased;  /* a sleeping thread: woken at what->low, not at each end */
    uint64_t seen;  /* value of the turn at the last look */
    fl_pressure_end end;
} fl_pressure_wait;

/* Number of the job's live tasks. */
uint64_t fl_pressure_live(const fl_sched *sched, const filch_job *job);
/* Of `live` tasks those that count for the task that runs on the worker: without itself, and
 * without tasks that wait. */
uint64_t fl_pressure_others(const fl_worker *worker, const filch_job *job, uint64_t live);

/* Begins and ends a wait. */
void fl_pressure_begin(fl_pressure_wait *wait, fl_sched *sched, const fl_open_wait *what,
                       bool is_nested);
void fl_pressure_end_wait(fl_pressure_wait *wait);
/* Tells whether the wait is over, as wait->end explains: fl_goal.is_over. */
bool fl_pressure_is_over(void *wait);

#endif
