/* SPDX-License-Identifier: Apache-2.0 */
/* Work taken by a wait inside a task. The goal job of the wait comes first. The goal job may stand
 * behind preceding jobs at a handle. A deeply nested wait takes only work of the goal job, work of
 * the preceding jobs, and work already held by the worker. */
#ifndef FL_SCHED_EXECUTE_NESTED_WAIT_H
#define FL_SCHED_EXECUTE_NESTED_WAIT_H

#include "sched/worker/worker.h"

/* Takes an item of a nested wait's goal job from any worker. Where every device shares one memory
 * node, may also take an item made ready meanwhile in a different job. Called by the worker's
 * driver. */
bool fl_nested_pick_goal(fl_worker *worker, fl_item *item);

/* Takes an item of a started job preceding the goal job, from any worker, as fl_pick_goal does.
 * Called by the worker's driver. Takes core->lock. */
bool fl_nested_pick_ahead(fl_worker *worker, fl_item *item);

#endif
