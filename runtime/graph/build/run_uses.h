/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of the runs of a closed graph (fl_run_uses). They are used again by later runs: sealing
 * makes those of one run, and a graph has as many as it ever had jobs at a time. */
#ifndef FL_GRAPH_BUILD_RUN_USES_H
#define FL_GRAPH_BUILD_RUN_USES_H

#include "graph/build/graph.h"

/* Makes the uses of the first run of a graph that is being sealed. The caller holds graph->lock.
 * False: no memory. */
bool fl_run_uses_reserve(filch_graph *graph);
/* Frees all uses of a graph without a job. */
void fl_run_uses_free(filch_graph *graph);
/* Returns uses for a run; null: no memory. The caller holds graph->lock, not core->lock. */
fl_run_uses *fl_run_uses_take(filch_graph *graph);
/* Gives uses back that are in no queue. The caller holds core->lock. */
void fl_run_uses_give(filch_graph *graph, fl_run_uses *uses);

#endif
