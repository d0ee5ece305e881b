/* SPDX-License-Identifier: Apache-2.0 */
/* Structure of graphs and batches in a trace, in addition to times of work items: dependencies and
 * used tiles. The structure is sufficient to rebuild a job elsewhere. */
#ifndef FL_GRAPH_BUILD_STRUCTURE_TRACE_H
#define FL_GRAPH_BUILD_STRUCTURE_TRACE_H

#include <stdio.h>

#include "graph/job/job_trace.h"

/* Writes the structure for fl_trace_write: the noted handles and batches, and every sealed closed
 * graph. A graph's record has its number and, for each task in order, a list of successors. If
 * every handle of the graph is noted, the record also has the tasks' accesses. */
void fl_structure_trace_write(FILE *file, const fl_job_trace *logbook);

#endif
