/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that a graph has promised only to read (filch_graph_read_only). */
#ifndef FL_GRAPH_BUILD_READ_ONLY_H
#define FL_GRAPH_BUILD_READ_ONLY_H

#include "graph/build/graph.h"

/* Returns FILCH_OK, or refuses the task: it writes a handle that the graph only reads. The caller
 * holds graph->lock. */
filch_status fl_read_only_check(const filch_graph *graph, const filch_task_desc *desc);
/* Tells whether the graph only reads the handle. The caller holds graph->lock. */
bool fl_read_only_is(const filch_graph *graph, const filch_data *data);

#endif
