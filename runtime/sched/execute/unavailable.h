/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that cannot run work of theirs: offline, failed, or without capacity. The work goes to
 * other devices (worker/others.h), waits, or fails. */
#ifndef FL_SCHED_EXECUTE_UNAVAILABLE_H
#define FL_SCHED_EXECUTE_UNAVAILABLE_H

#include "sched/worker/worker.h"

/* Parts of a step while the device is offline. Gives away tasks that other devices can run and that
 * only the worker knows, and ends tasks of cancelled jobs. */
void fl_offline_settle(fl_worker *worker);
/* Picks an item that has to end here all the same. False: none. */
bool fl_offline_pick(fl_worker *worker, fl_item *item);
/* Gives a task that the caller has claimed to a device online. False: no device can run it. */
bool fl_offline_give(fl_worker *worker, fl_task *task);
/* Nothing is in flight, and there is nothing to do until the worker is woken. */
fl_act fl_offline_rest(fl_worker *worker);

/* The step of a worker whose device failed: worker->stall.failure says how, and nothing is in
 * flight. */
fl_act fl_failed_step(fl_worker *worker);

/* Gives a task that the caller has claimed to another device with capacity for it. False: none. */
bool fl_full_move(fl_worker *worker, fl_task *task);
/* The device has no capacity for a grain of the chunk that the caller took last from its range:
 * leaves the chunk and the rest of the range to other devices. False: none can take them. */
bool fl_full_leave(fl_worker *worker, const fl_item *item);
/* Takes over tasks sent to workers that nobody can drive: they wait in tasks further down the stack
 * of the thread that drives this worker. False: none. */
bool fl_full_relieve(fl_worker *worker);

#endif
