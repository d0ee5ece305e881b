/* SPDX-License-Identifier: Apache-2.0 */
/* The longest path through a closed graph. */
#ifndef FL_GRAPH_BUILD_PATH_H
#define FL_GRAPH_BUILD_PATH_H

#include "graph/build/graph.h"

/* By what tasks were last measured to take on the device that is best at each; of what was never
 * measured 0. FILCH_OUT_OF_MEMORY. Under graph->lock; the graph is sealed, and may be running. */
filch_status fl_graph_path(const filch_graph *graph, double *ns);

#endif
