/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says of graphs and batches beside their tiles' times: who waits for whom, and what
 * they use. With it a job can be built again elsewhere. */
#ifndef FL_GRAPH_BUILD_STRUCTURE_TRACE_H
#define FL_GRAPH_BUILD_STRUCTURE_TRACE_H

#include <stdio.h>

#include "graph/job/job_trace.h"

/* For fl_trace_write: the handles and batches that were noted; and of each closed graph that has
 * run its number, by task, in their order, a list of successors, and, where all its handles were
 * noted, what its tasks use. */
void fl_structure_trace_write(FILE *file, const fl_job_trace *logbook);

#endif
