/* SPDX-License-Identifier: Apache-2.0 */
/* Copy of a graph's structure: the dependencies and the longest path. */
#ifndef FL_GRAPH_BUILD_STRUCTURE_NOTE_H
#define FL_GRAPH_BUILD_STRUCTURE_NOTE_H

#include "graph/job/job_trace.h"

/* Copies the structure of a sealed closed graph, as one block. Takes graph->lock. Null: no memory,
 * or more than 2^32 - 1 dependencies. */
fl_log_graph *fl_structure_note(filch_graph *graph);
/* Returns the bytes of the copy's block. */
size_t fl_structure_bytes(const fl_log_graph *made);
void fl_structure_free(const fl_memory *memory, fl_log_graph *made);

#endif
