/* SPDX-License-Identifier: Apache-2.0 */
/* Critical path of a closed graph by ranks: a task's rank is its own part, and the longest chain of
 * its successors. A unit of rank lasts as long as the fastest device needs. */
#ifndef FL_SCHED_MODEL_CRITICAL_H
#define FL_SCHED_MODEL_CRITICAL_H

#include "graph/build/graph.h"
#include "graph/job/job.h"

typedef struct fl_critical {
    double own;   /* the task's part of the rank; 0: unknown */
    double after; /* rank of the longest chain of successors */
} fl_critical;

fl_critical fl_critical_of(const fl_task *task);

/* Ranks of the graph's tasks that no device has taken from the shared ready queue; under the
 * queue's lock. */
double fl_critical_left(const filch_graph *graph);
/* The estimate without a shared ready queue, by the number of tasks done. */
double fl_critical_left_by_count(const filch_graph *graph, uint32_t device_count);

#endif
