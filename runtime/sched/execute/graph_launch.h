/* SPDX-License-Identifier: Apache-2.0 */
/* Graph launch: a whole closed graph, known well enough, is put on a device by one call. */
#ifndef FL_SCHED_EXECUTE_GRAPH_LAUNCH_H
#define FL_SCHED_EXECUTE_GRAPH_LAUNCH_H

#include "sched/worker/sched.h"
#include "sched/worker/worker.h"

/* Tells whether a run may be launched whole: on a lone device, before any of its roots was taken;
 * rest: roots left. */
static inline bool fl_graph_launch_may_begin(const fl_worker *w, const filch_job *job,
                                             uint32_t rest)
{
    /* With further devices, another worker may have ended the run: the job has no graph then. */
    return w->sched->count == 1 && rest == job->graph->root_count;
}

/* Takes the whole graph of a job that is about to begin, with its operands. False: not known well
 * enough. Precondition: fl_graph_launch_may_begin. */
bool fl_graph_launch_pick(fl_worker *worker, filch_job *job, fl_item *item);
/* Puts the graph on the device. False: worker->stall.error says why not. */
bool fl_graph_launch_launch(fl_worker *worker, fl_in_flight *flight);
/* The graph has retired: its operands may be evicted. */
void fl_graph_launch_release(fl_worker *worker, const filch_graph *graph);
/* The graph is destroyed. */
void fl_graph_launch_drop(filch_graph *graph);
/* The run of a closed graph is over: notes its duration, to choose whether to launch it whole. */
void fl_graph_launch_note(const filch_job *job);

#endif
