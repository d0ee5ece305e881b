/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says of graphs beside their tasks' times: who waits for whom. With it a job can be
 * built again elsewhere. */
#ifndef FL_GRAPH_OUTLINE_H
#define FL_GRAPH_OUTLINE_H

#include <stdio.h>

#include "base/core.h"

/* For fl_trace_write: of each closed graph that has run its number, and by task, in their order, a
 * list of successors. */
void fl_graphs_outline(FILE *file, fl_core *core);

#endif
