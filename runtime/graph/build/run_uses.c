/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/run_uses.h"

/* The caller holds graph->lock. */
static fl_run_uses *make(filch_graph *graph)
{
    size_t bytes = sizeof(fl_run_uses) + graph->slot_count * sizeof(fl_queued_access);
    fl_run_uses *uses = fl_alloc(&graph->object.core->memory, bytes);
    if (uses == NULL) {
        return NULL;
    }
    uses->next = NULL;
    uses->bytes = bytes;
    uses->made_before = graph->made_uses;
    graph->made_uses = uses;
    for (size_t i = 0; i < graph->slot_count; ++i) {
        uses->at[i] = graph->slots[i]->use;
    }
    return uses;
}

bool fl_run_uses_reserve(filch_graph *graph)
{
    /* No job takes uses yet. What an earlier try to seal has left may have too few. */
    fl_run_uses_free(graph);
    graph->spare_uses = make(graph);
    return graph->spare_uses != NULL;
}

void fl_run_uses_free(filch_graph *graph)
{
    while (graph->made_uses != NULL) {
        fl_run_uses *uses = graph->made_uses;
        graph->made_uses = uses->made_before;
        fl_free(&graph->object.core->memory, uses, uses->bytes);
    }
    graph->spare_uses = NULL;
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
