/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches: while a trace records, short tasks that need not be timed share events. A stretch
 * lasts from the end of the event before it to the begin of the event behind it, so that no clock
 * is read for it, unless it is full or a task of a second codelet follows. Its time includes the
 * dispatches between its tasks. For the worker's thread only. */
#ifndef FL_SCHED_ACCOUNT_STRETCH_H
#define FL_SCHED_ACCOUNT_STRETCH_H

#include "sched/worker/device.h"

static inline void fl_stretch_put(fl_trace_stretch *stretch, const fl_task *task)
{
    stretch->tasks.orders[stretch->tasks.count++] = task->order;
}

/* Adds a short task without a label, which is about to run; the trace records. is_uniform: later
 * tasks of the codelet in the job are short, too, and have no label. A full stretch ends, and a new
 * one begins. False, with nothing changed: the stretch has no known begin. */
bool fl_stretch_begin(fl_worker *worker, const fl_task *task, struct fl_speed *speed,
                      bool is_uniform);
/* Ends the open stretch, if any, as the current job's. */
void fl_stretch_end(fl_worker *worker, uint64_t at);
/* Ends the open stretch, and lets the next stretch of the job begin. */
void fl_stretch_restart(fl_worker *worker, uint64_t at);

#endif
