/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ahead: puts a task on a lane behind predecessors that are not over. */
#ifndef FL_SCHED_DECIDE_LOOKAHEAD_H
#define FL_SCHED_DECIDE_LOOKAHEAD_H

#include "sched/worker/worker.h"

/* Makes the marks of a sealed graph's tasks; every task has a common epoch. False: no memory. */
bool fl_lookahead_prepare(filch_graph *graph);
/* Frees the marks; the graph is being destroyed. */
void fl_lookahead_drop(filch_graph *graph);
/* The task of the item in flight was put on a lane: its successors may follow. */
void fl_lookahead_launched(fl_worker *worker, uint32_t index, fl_marker marker);
/* The task has retired; a skipped task counts as failed. */
void fl_lookahead_retired(fl_task *task, bool failed);
/* Claims a task whose predecessors are over or on a lane, to be put behind them. Null: none. */
fl_task *fl_lookahead_next(fl_worker *worker);
/* Adds the markers of the task's predecessors on lanes to worker->offload->waits. */
bool fl_lookahead_waits(fl_worker *worker, const fl_task *task);
/* One predecessor of a closed graph's task, in the run before epoch `run`, is over. True: the task
 * is ready, and the caller's to offer. */
bool fl_lookahead_release(fl_task *task, uint32_t run, bool poisoned);

/* State of the predecessors of a task that was claimed ahead. */
typedef enum fl_lookahead_state {
    FL_LOOKAHEAD_WAITS,
    FL_LOOKAHEAD_OVER,
    FL_LOOKAHEAD_FAILED
} fl_lookahead_state;
fl_lookahead_state fl_lookahead_look(const fl_task *task);

#endif
