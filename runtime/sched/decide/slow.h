/* SPDX-License-Identifier: Apache-2.0 */
/* Slow and weakly linked devices, among devices with memories of their own. A slow device takes
 * longer than other devices for the same task. A weakly linked device has no link to a second
 * device's memory, although other devices have. Either device lags. On a lagging device a ready
 * task may be better left alone, because the successors would wait. (Devices of one memory use the
 * shared ready queue instead.)
 *
 * A lagging device takes a task in two cases. The predictions use the measured speeds and links,
 * the items in flight, the missing bytes and the write-back.
 *
 * - The device ends the task before the other devices would, after all work of equal urgency: the
 *   earliest finish time of list schedulers (model/cost.h).
 * - The device ends the task early enough: the successors, on the fastest device, are over before
 *   all devices together complete the rest of the graph.
 *
 * A refused task goes to the device with the earliest finish time. Devices without a lag skip the
 * test. */
#ifndef FL_SCHED_DECIDE_SLOW_H
#define FL_SCHED_DECIDE_SLOW_H

#include "sched/worker/worker.h"

/* Tells whether the calling worker should leave a ready task to other devices. The task is the
 * worker's, or belongs to a job kept alive. */
bool fl_slow_holds_up(const fl_worker *worker, const fl_task *task);
/* Returns the device to which the worker leaves the task: of the better devices the one with the
 * earliest finish time; among equals the home, or the devices in turn. Null: no device is better.
 */
fl_worker *fl_slow_receiver(const fl_worker *worker, const fl_task *task, uint64_t turn);

/* Tells whether the worker's device keeps up: it is not slow; or it is linked to another device's
 * memory, and takes no longer for one item than the fastest device for FL_DEPTH_OF_LANE items on
 * each lane. Missing bytes of tasks stolen over unmeasured links count only for a device that keeps
 * up (execute/theft.c). Other devices leave tasks to such a device while it is hungry. */
bool fl_slow_keeps_up(const fl_worker *worker);

#endif
