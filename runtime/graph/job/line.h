/* SPDX-License-Identifier: Apache-2.0 */
/* Line of the jobs of a closed graph.
 *
 * A closed graph may be submitted while a job of it waits or runs. Tasks and scheduler know one run
 * of a graph at a time, so each job stands behind the job before it, in the order of submission.
 * filch_graph.job is the first: the job that waits for its handles, or runs. Each job has a place
 * of its own in every access queue, taken at submission (fl_run_uses): what another job or the host
 * asks for between two submissions stands between the two runs.
 *
 * No circle of waits can arise: like every job of a closed graph, a job takes its place in the line
 * and in the queues in one step, behind all that is there. Searches follow the line (order.c).
 *
 * One event takes the first job out: its end. The thread that ends the job gives the graph to the
 * job behind, and starts it if its handles are free. Other jobs leave by a cancellation. A
 * cancelled job in line is withdrawn: it leaves the line and the queues at once, touches no task,
 * which a run before may be using, and ends as soon as its submission and its events are over. Both
 * steps are made under core->lock, so a job is either withdrawn or gets the graph. */
#ifndef FL_GRAPH_JOB_LINE_H
#define FL_GRAPH_JOB_LINE_H

#include "graph/job/job.h"

/* Lets a job whose uses are queued stand behind the graph's last job. The caller holds core->lock.
 */
void fl_line_join(filch_job *job);
/* Takes the first job, whose uses have left the queues, out of the line: the graph belongs to the
 * job behind. Collects in *ready a job that may start. The caller holds core->lock. */
void fl_line_leave(filch_job *job, filch_job **ready);
/* Puts a job without uses in the place of the first job, in line and queues. The caller holds
 * core->lock. */
void fl_line_replace(filch_job *first, filch_job *job);
/* Takes a cancelled job that is not the first out of line and queues. Collects in *ready the jobs
 * that may start, the job itself included. The caller holds core->lock. */
void fl_line_withdraw(filch_job *job, filch_job **ready);
/* Withdraws every job of the graph but the first. The caller holds core->lock. */
void fl_line_withdraw_all(filch_graph *graph, filch_job **ready);

#endif
