/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of a ready task on a device other than the releasing worker's, where devices differ. */
#ifndef FL_SCHED_DECIDE_PLACEMENT_H
#define FL_SCHED_DECIDE_PLACEMENT_H

#include "sched/worker/worker.h"

typedef enum fl_placement_kind {
    FL_PLACEMENT_HERE,
    FL_PLACEMENT_EXPLORE, /* here, to measure whether the device is as slow as before */
    FL_PLACEMENT_GIVE,    /* into the receiver's inbox */
    FL_PLACEMENT_HINT,    /* here, and a hint into the receiver's mailbox */
    FL_PLACEMENT_ROUTE    /* to any device that can run the task */
} fl_placement_kind;

typedef struct fl_placement {
    fl_placement_kind kind;
    fl_worker *receiver;
} fl_placement;

/* Returns the time that the copies of the worker's device take beyond those of `other`, ns. 0: no
 * longer than the task takes on the worker's device (a short task: than the hand-over to `other`),
 * or `other` is no device to leave the task to. */
double fl_placement_way_ns(const fl_worker *worker, const fl_worker *other, const fl_task *task);
/* Tells whether a task belongs to its home, another device: there is such a time. */
bool fl_placement_is_dear(const fl_worker *worker, const fl_task *task);
fl_placement fl_placement_of(const fl_worker *worker, const fl_task *task);
/* Whether by prediction the task is better left to `other`, a device that computes by itself. */
bool fl_worker_is_outdone(const fl_worker *worker, const fl_worker *other, const fl_task *task);

#endif
