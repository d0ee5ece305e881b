/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the jobs that ended while a trace recorded, for reports. Guarded by core->lock. */
#ifndef FL_GRAPH_JOB_JOB_FIGURES_H
#define FL_GRAPH_JOB_JOB_FIGURES_H

#include <stdio.h>

#include "graph/job/job_trace.h"

/* Makes room for as many jobs as fit a few megabytes, at most 1,024. False: no memory; nothing is
 * left. */
bool fl_job_figures_init(fl_job_figures *figures, const fl_core *core);
void fl_job_figures_fini(fl_job_figures *figures, const fl_core *core);
/* Notes a job that is over: *made, with number, times and names filled in by the caller. */
void fl_job_figures_note(fl_job_figures *figures, filch_job *job, const fl_log_job *made,
                         filch_status result);

/* Writes members of a JSON object, each after a comma: "loss_fields", "parts" and "stat_fields" say
 * what the columns of "losses" and "stats" are; "jobs" has the newest jobs, "total" the sums over
 * every job, "graphs" the structure of closed graphs, "handles" the handles. Times count from
 * origin. No thread builds, seals or destroys a graph meanwhile. Takes core->lock. */
void fl_job_figures_write(FILE *file, fl_job_trace *logbook, uint64_t origin);

#endif
