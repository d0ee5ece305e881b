/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ahead: marks tasks in flight, and claims tasks to be put behind the marks. */
#ifndef FL_SCHED_EXECUTE_AHEAD_H
#define FL_SCHED_EXECUTE_AHEAD_H

#include "sched/worker/graph_part.h"
#include "sched/worker/worker.h"

/* Makes the marks of a sealed graph's tasks; every task has a common epoch. False: no memory. */
bool fl_ahead_prepare(filch_graph *graph);
/* Frees the marks; the graph is being destroyed. */
void fl_ahead_drop(filch_graph *graph);
/* The task of the item in flight was put on a lane: its successors may follow. */
void fl_ahead_launched(fl_worker *worker, fl_in_flight *flight, fl_marker marker);
/* Sets the task's mark of the present run: a point on a lane, 0 once the task has retired, or
 * FL_MARK_UNFOLLOWABLE where the task failed or was skipped. Every run marks every task: a mark
 * left 256 runs ago would pass for the present run's mark. */
void fl_ahead_mark(const fl_task *task, fl_marker marker);
/* Claims a task whose predecessors are over or on a lane, to be put behind them. Null: none. */
fl_task *fl_ahead_next(fl_worker *worker);
/* Claims the first task found that continues a lane's newest item and is more urgent than every
 * ready task of the worker, where one or a root is ready. Null: none. */
fl_task *fl_ahead_continuation(fl_worker *worker);
/* Adds the markers of the task's predecessors on lanes to worker->offload->waits. */
bool fl_ahead_waits(fl_worker *worker, const fl_task *task);
/* One predecessor of a closed graph's task, in the run before epoch `run`, is over. True: the task
 * is ready, and the caller's to offer. */
bool fl_ahead_release(fl_task *task, uint32_t run, bool poisoned);

#endif
