/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that wait for the host's events, and the worker that polls the events. */
#ifndef FL_SCHED_EXECUTE_HOST_EVENTS_H
#define FL_SCHED_EXECUTE_HOST_EVENTS_H

#include "sched/worker/sched.h"

/* Before there is any job. */
void fl_host_events_init(fl_sched *sched);
/* Function of fl_scheduler: adds a job that waits. Any thread. */
void fl_host_events_add(fl_scheduler *self, filch_job *job);
/* Polls the events, in the step of the worker that has this duty; may change the step's result,
 * `act`. */
fl_act fl_host_events_step(fl_worker *worker, fl_act act);
/* Whether the worker has this duty, and an event to poll; in or after its step. */
bool fl_host_events_is_on(const fl_worker *worker);

#endif
