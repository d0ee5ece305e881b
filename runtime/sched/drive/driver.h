/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls a worker's step: pinned threads, the host's threads, waits inside tasks, the virtual
 * clock. */
#ifndef FL_SCHED_DRIVE_DRIVER_H
#define FL_SCHED_DRIVE_DRIVER_H

#include "sched/worker/sched.h"

/* Body of a worker's pinned thread. */
int fl_drive_thread(void *arg);

/* --- Poll mode --- */

/* What rounds over the workers found. */
typedef struct fl_polled {
    bool worked; /* something was launched, run, ended or given away, in any of the rounds */
    /* Of the last round: */
    bool goes_on;     /* some worker has more to do now */
    bool has_missed;  /* some worker could not be stepped: a second thread holds it */
    uint64_t wake_at; /* when the next worker has something to do, if nothing comes before */
} fl_polled;

/* The calling thread of the host begins to drive workers. */
void fl_drive_enter(fl_sched *sched);
/* Advances once each worker that no second thread holds. */
void fl_drive_round(fl_sched *sched, fl_polled *polled);
/* The thread drives no more. True: other threads do. */
bool fl_drive_leave(fl_sched *sched, const fl_polled *polled);
/* Rounds while there is something to do, at most until `deadline`, and at least one. True: there
 * was something to do. */
bool fl_drive_poll(fl_sched *sched, uint64_t deadline);

/* --- Other drives --- */

/* Runs the simulation until the goal is met. */
filch_status fl_drive_virtual(fl_sched *sched, fl_goal goal, uint64_t deadline);
/* A worker waits inside an item: runs further items meanwhile, first those of goal.job. `call` is
 * for errors. */
filch_status fl_drive_nested(fl_worker *worker, fl_goal goal, uint64_t deadline, const char *call);

#endif
