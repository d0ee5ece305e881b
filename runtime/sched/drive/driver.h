/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls a worker's step: pinned threads, the host's threads, waits inside tasks, the virtual
 * clock. */
#ifndef FL_SCHED_DRIVE_DRIVER_H
#define FL_SCHED_DRIVE_DRIVER_H

#include "sched/worker/sched.h"

/* Body of a worker's pinned thread. */
int fl_drive_thread(void *arg);
/* Polls workers at most until `deadline`; *worked: whether an item ran. */
void fl_drive_poll(fl_sched *sched, uint64_t deadline, bool *worked);
/* Runs the simulation until the goal is met. */
filch_status fl_drive_virtual(fl_sched *sched, fl_goal goal, uint64_t deadline);
/* A worker waits inside an item: runs further items meanwhile, first those of goal.job. `call` is
 * for errors. */
filch_status fl_drive_nested(fl_worker *worker, fl_goal goal, uint64_t deadline, const char *call);

#endif
