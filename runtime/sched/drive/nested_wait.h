/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a wait inside a task takes. The job that the wait is for comes first. That job may
 * stand behind other jobs at a handle. A wait that is nested deep takes only work of its own job,
 * of those jobs, and work that its worker has already. */
#ifndef FL_SCHED_DRIVE_NESTED_WAIT_H
#define FL_SCHED_DRIVE_NESTED_WAIT_H

#include "sched/worker/worker.h"

/* Takes an item of the job that a nested wait is for, from any worker; or, where all devices share
 * one memory node, an item that became ready in other jobs meanwhile. The worker's driver calls
 * it. */
bool fl_nested_pick_goal(fl_worker *worker, fl_item *item);

/* Takes an item of a job that has begun and that the wait's own job stands behind, from any worker,
 * as fl_pick_goal does. The worker's driver calls it. Takes core->lock. */
bool fl_nested_pick_ahead(fl_worker *worker, fl_item *item);

#endif
