/* SPDX-License-Identifier: Apache-2.0 */
/* The table of active jobs, and the references of workers to its jobs (sched.h). */
#ifndef FL_SCHED_WORKER_JOBS_H
#define FL_SCHED_WORKER_JOBS_H

#include "sched/worker/sched.h"

/* Gives a job with filled ranges a slot, or lets the job wait for one. True: the job was cancelled
 * before. */
bool fl_jobs_add(fl_sched *sched, filch_job *job);
/* Takes a complete job out. Returns the waiting job that got its slot, or null; *is_cancelled: that
 * job was cancelled before. */
filch_job *fl_jobs_remove(fl_sched *sched, const filch_job *job, bool *is_cancelled);
/* Sets the worker's hazard pointer to the job in a slot. Null: the slot is empty. */
filch_job *fl_worker_visit(fl_worker *worker, uint32_t slot);
/* Clears the hazard pointer. */
void fl_worker_leave(fl_worker *worker);
/* Function of fl_scheduler: whether no hazard pointer names the job. */
bool fl_jobs_is_quiet(fl_scheduler *self, const filch_job *job);

#endif
