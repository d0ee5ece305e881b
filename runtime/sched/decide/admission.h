/* SPDX-License-Identifier: Apache-2.0 */
/* Which graphs use the shared ready queue (execute/shared_queue.h), and which waiting worker is
 * told of a task. Relaxed loads of measurements: estimates. */
#ifndef FL_SCHED_DECIDE_ADMISSION_H
#define FL_SCHED_DECIDE_ADMISSION_H

#include "sched/worker/sched.h"

/* Whether the devices may be unlike in one memory, and the policy calls for a queue. */
bool fl_admission_may_share(const fl_sched *sched);
/* Compares devices by their scores, known before the first measurement. */
bool fl_admission_has_unlike_scores(const fl_sched *sched);
/* Whether devices compute beside the worker. */
bool fl_admission_runs_beside(const fl_sched *sched);
/* Mean task length on the fastest device, divided by the length required for the lock. Infinity
 * when no mean is known. */
double fl_admission_length(const fl_sched *sched);
/* Tells whether tasks are long enough to be weighed. */
bool fl_admission_is_weighed(const fl_sched *sched, bool is_unlike);
/* Tells whether the graph's work per device is more than `width` times the longest path. */
bool fl_admission_is_wide(const fl_sched *sched, const filch_graph *graph, double width);
/* Tells whether the graph's tasks belong in the shared ready queue. */
bool fl_admission_is_shared(const fl_sched *sched, const filch_graph *graph, bool is_unlike);
/* Tells whether devices differ in speed for the task. *is_known: at least two devices have a
 * measurement. */
bool fl_admission_is_unlike_at(const fl_sched *sched, const fl_task *task, bool *is_known);
/* Chooses the waiting worker that is fastest at the task, a free worker first. Under the queue's
 * lock. A worker that left the present tasks is told once the queue holds more. Returns UINT32_MAX
 * for no worker. */
uint32_t fl_admission_called(const fl_sched *sched, const fl_task *task);

#endif
