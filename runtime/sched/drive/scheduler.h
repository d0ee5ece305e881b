/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning and end of the scheduler, and waits of the host's threads. */
#ifndef FL_SCHED_DRIVE_SCHEDULER_H
#define FL_SCHED_DRIVE_SCHEDULER_H

#include "sched/worker/sched.h"

/* The scheduler's part of a runtime's description. */
typedef struct fl_sched_config {
    const double *scores; /* NULL: the devices' own */
    filch_policy policy;
    const filch_policy_desc *custom; /* the complete record, with FILCH_POLICY_CUSTOM; else null */
    filch_drive drive;
} fl_sched_config;

/* Makes a worker for each device of the pool. */
filch_status fl_sched_init(fl_sched *sched, fl_core *core, fl_pool *pool,
                           const fl_sched_config *config, filch_error *error);
/* Sorts the devices by what they can run; before there is any codelet. */
void fl_sched_sort_devices(fl_sched *sched);
/* Stops and joins the threads; no job runs. */
void fl_sched_fini(fl_sched *sched);

/* Waits on a thread that is no worker, by the rules of the drive. */
filch_status fl_sched_wait(fl_sched *sched, fl_goal goal, double seconds);
/* Poll mode: drives the workers until the goal is met (FILCH_OK), or the time has come
 * (FILCH_TIMEOUT), and sleeps meanwhile where there is nothing to do. worked, if not null: the wait
 * ends after the first round with work, too (FILCH_OK), and receives whether there was some. Called
 * by no worker. */
filch_status fl_sched_poll_wait(fl_sched *sched, const fl_goal *goal, uint64_t deadline,
                                bool *worked);

#endif
