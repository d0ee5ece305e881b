/* SPDX-License-Identifier: Apache-2.0 */
/* The longest path through a closed graph. */
#ifndef FL_GRAPH_BUILD_PATH_H
#define FL_GRAPH_BUILD_PATH_H

#include "graph/build/graph.h"

/* Computes the longest path in ns. Every task counts with the last measured time of its codelet on
 * the fastest device; a task never measured counts 0. May return FILCH_OUT_OF_MEMORY. The caller
 * holds graph->lock; the graph is sealed, and may be running. */
filch_status fl_graph_path(const filch_graph *graph, double *ns);

#endif
