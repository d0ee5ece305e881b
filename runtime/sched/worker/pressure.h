/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes waits for few live tasks of an open graph (sched/execute/pressure.h).
 *
 * A wait sleeps until the turn moves, and then looks again. Workers count the ends of a graph's
 * tasks down from the number that the waits of the graph need (fl_graph_part.pressed), and only
 * while a wait exists; the end that reaches 0 moves the turn. */
#ifndef FL_SCHED_WORKER_PRESSURE_H
#define FL_SCHED_WORKER_PRESSURE_H

#include "sched/worker/graph_part.h"
#include "sched/worker/sched.h"

/* Lets every wait look again. Thread-safe. */
void fl_pressure_turn(fl_sched *sched);
/* Counts a task that has ended, or that waits itself from now on: the graph is pressed. */
void fl_pressure_count(fl_sched *sched, filch_graph *graph);
/* Lets threads look again that sleep until many tasks have ended. Called by a worker that has found
 * nothing to do, behind its fence. */
void fl_pressure_ease(fl_sched *sched);

/* A task of an open graph has ended, or waits itself from now on. The caller's change of the count
 * precedes, and a sequentially consistent read-modify-write: either the load sees the wait, or the
 * wait's look sees the count. */
static inline void fl_pressure_ended(fl_sched *sched, filch_graph *graph)
{
    if (FL_UNLIKELY(fl_load_seq_cst(&fl_part_of_graph(graph)->pressed) != 0)) {
        fl_pressure_count(sched, graph);
    }
}

/* The worker leaves a job, or goes on without work: its tasks in the job may have been the last
 * that could run. */
static inline void fl_pressure_left(fl_sched *sched)
{
    if (FL_UNLIKELY(fl_load_seq_cst(&sched->pressure.nested) != 0)) {
        fl_pressure_turn(sched);
    }
}

#endif
