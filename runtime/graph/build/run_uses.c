/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/run_uses.h"

static fl_run_uses *make(filch_graph *graph)
{
    size_t bytes = sizeof(fl_run_uses) + graph->slot_count * sizeof(fl_queued_access);
    fl_run_uses *uses = fl_arena_alloc(&graph->arena, bytes);
    if (uses == NULL) {
        return NULL;
    }
    uses->next = NULL;
    for (size_t i = 0; i < graph->slot_count; ++i) {
        uses->at[i] = graph->slots[i]->use;
    }
    return uses;
}

bool fl_run_uses_reserve(filch_graph *graph)
{
    /* No job takes uses yet. What an earlier try to seal has left may have too few. */
    graph->spare_uses = make(graph);
    return graph->spare_uses != NULL;
}

fl_run_uses *fl_run_uses_take(filch_graph *graph)
{
    fl_core *core = graph->object.core;
    fl_mutex_lock(&core->lock);
    fl_run_uses *uses = graph->spare_uses;
    graph->spare_uses = uses != NULL ? uses->next : NULL;
    fl_mutex_unlock(&core->lock);
    return uses != NULL ? uses : make(graph);
}

void fl_run_uses_give(filch_graph *graph, fl_run_uses *uses)
{
    uses->next = graph->spare_uses;
    graph->spare_uses = uses;
}
