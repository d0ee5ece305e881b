/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that failed: their work goes to other devices, or fails. */
#ifndef FL_SCHED_EXECUTE_FAILED_H
#define FL_SCHED_EXECUTE_FAILED_H

#include "sched/worker/worker.h"

/* The step of a worker whose device failed: worker->stall.failure says how, and nothing is in
 * flight.
 */
fl_act fl_failed_step(fl_worker *worker);
/* Whether a second device that has not failed (now: nor is offline) can run the task of a live
 * hint. Only the set of devices of the task may be read. */
bool fl_hint_is_for_others(const fl_worker *worker, uint64_t hint, bool now);
typedef bool (*fl_hint_fn)(const fl_worker *worker, uint64_t hint);
typedef void (*fl_settle_fn)(fl_worker *worker, fl_task *task, bool poisoned);
/* Goes through the worker's deques: a hint for which `stays` is false is claimed and settled. True:
 * a hint stays. */
bool fl_deques_settle(fl_worker *worker, fl_hint_fn stays, fl_settle_fn settle);

#endif
