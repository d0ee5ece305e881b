/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a ready task is left to another device, where devices differ or a policy places tasks. */
#ifndef FL_SCHED_DECIDE_PLACEMENT_H
#define FL_SCHED_DECIDE_PLACEMENT_H

#include "sched/worker/worker.h"

/* True: the ready task was given to another device, or put where it finds it. */
bool fl_worker_sends(fl_worker *worker, fl_task *task);
/* Whether by prediction the task is better left to `other`, a device that computes by itself. */
bool fl_worker_is_outdone(const fl_worker *worker, const fl_worker *other, const fl_task *task);

#endif
