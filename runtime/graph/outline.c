/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/outline.h"

#include "graph/graph.h"

typedef struct outline {
    FILE *file;
    const char *before; /* what stands before the next number */
} outline;

static void put_successor(fl_task *successor, void *user)
{
    outline *out = user;
    fprintf(out->file, "%s%u", out->before, (unsigned)successor->order);
    out->before = ",";
}

static void put_graph(FILE *file, const filch_graph *graph)
{
    uint32_t count = fl_load_relaxed(&graph->task_count); /* sealed: it changes no more */
    fprintf(file, "{\"graph\":%u,\"successors\":[", graph->number);
    for (uint32_t i = 0; i < count; ++i) {
        outline out = {file, i != 0 ? ",[" : "["};
        const char *first = out.before;
        fl_graph_each_successor(fl_graph_task_at(graph, i), put_successor, &out);
        fprintf(file, out.before == first ? "%s]" : "]", first);
    }
    fprintf(file, "]}");
}

/* Nobody builds, seals or destroys one meanwhile, as filch/trace.h demands. */
void fl_graphs_outline(FILE *file, fl_core *core)
{
    const char *before = ",\"graphs\":[\n";
    fl_mutex_lock(&core->lock);
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        filch_graph *graph = (filch_graph *)(void *)object;
        if (fl_load_relaxed(&object->magic) != FL_MAGIC_GRAPH ||
            graph->kind != FILCH_GRAPH_CLOSED) {
            continue;
        }
        if (graph->state == FL_GRAPH_SEALED) {
            fprintf(file, "%s", before);
            put_graph(file, graph);
            before = ",\n";
        }
    }
    if (before[1] != '"') {
        fprintf(file, "]");
    }
    fl_mutex_unlock(&core->lock);
}
