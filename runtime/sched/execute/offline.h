/* SPDX-License-Identifier: Apache-2.0 */
/* Devices offline: withdrawn by the host, or gone by their description. */
#ifndef FL_SCHED_EXECUTE_OFFLINE_H
#define FL_SCHED_EXECUTE_OFFLINE_H

#include "sched/worker/sched.h"

/* Sets or clears a duty of FL_DUTY_OFFLINE; false: no change. Any thread. */
bool fl_offline_set(fl_sched *sched, uint32_t index, uint32_t duty, bool is_set);
/* Function of fl_scheduler: a job was cancelled, and nothing of it waits for a device any more. Any
 * thread. */
void fl_offline_cancelled(fl_scheduler *self);
filch_presence fl_offline_presence(const fl_sched *sched, uint32_t index);

/* Parts of a step while the device is offline. Gives away tasks that other devices can run and that
 * only the worker knows, and ends tasks of cancelled jobs. */
void fl_offline_settle(fl_worker *worker);
/* Picks an item that has to end here all the same. False: none. */
bool fl_offline_pick(fl_worker *worker, fl_item *item);
/* Gives a ready task that the caller has claimed to a device online. False: no device online can
 * run it. */
bool fl_offline_give(fl_worker *worker, fl_task *task);
/* Nothing is in flight, and there is nothing to do until the worker is woken. */
fl_act fl_offline_rest(fl_worker *worker);
/* A device that leaves and returns by its description: sets or clears FL_DUTY_LEFT; returns the
 * time of the next change. */
uint64_t fl_offline_turn(fl_worker *worker);

#endif
