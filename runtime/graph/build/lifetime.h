/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes of temporaries' tiles. A temporary (FILCH_DATA_TEMPORARY) has contents within a graph
 * only. The lifetime of a tile begins with a task that overwrites the tile, and ends behind the
 * last task that uses the tile before filch_graph_discard, or before the end of the graph. At the
 * end filch adds a gate, which waits for the tile's users as a writer does, and stands for a writer
 * to later tasks. The gate has no function and needs no device: the worker that releases the gate
 * frees the tile's memory at once (sched/execute/retire.c). A failed or cancelled job's gates do
 * the same. A task that needs contents outside of a lifetime is refused when added; FL_WRITTEN in
 * fl_slot.needs tells whether the tile is in a lifetime. */
#ifndef FL_GRAPH_BUILD_LIFETIME_H
#define FL_GRAPH_BUILD_LIFETIME_H

#include "graph/build/graph.h"

/* Checks a task with accesses to temporaries; records an error otherwise. The caller holds
 * graph->lock. */
filch_status fl_lifetimes_check(const filch_graph *graph, const struct filch_task_desc *desc);
/* Ends the lifetimes of every temporary's tiles: no more tasks will be added. After
 * FILCH_OUT_OF_MEMORY some lifetimes may have ended, and the function may be called again. The
 * caller holds graph->lock. */
filch_status fl_lifetimes_end(filch_graph *graph);

#endif
