/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_edges.h"

#include <stdlib.h>

/* A task's use of a tile. */
typedef struct touch {
    uint32_t handle, tile, task;
    filch_access_mode mode;
} touch;

/* An edge that follows from uses. */
typedef struct edge {
    uint32_t from, to;
} edge;

static int by_tile(const void *a, const void *b)
{
    const touch *x = a, *y = b;
    if (x->handle != y->handle)
        return x->handle < y->handle ? -1 : 1;
    if (x->tile != y->tile)
        return x->tile < y->tile ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

static int by_source(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static size_t touches_of(const bench_sim_graph *graph, touch *touches)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->count; i++)
        for (size_t k = graph->use_begin[i]; k < graph->use_begin[i + 1]; k++) {
            const bench_sim_use *use = &graph->uses[k];
            /* Of blocks none: there may be gates between their readers and other tasks. */
            if (use->mode != FILCH_SCRATCH && use->rows == 1 && use->cols == 1 && !use->has_halo)
                touches[count++] = (touch){use->handle, use->tile, (uint32_t)i, use->mode};
        }
    qsort(touches, count, sizeof *touches, by_tile);
    return count;
}

/* Of one tile, whose touches are in the order of the tasks: a reader waits for the last writer, a
 * writer for that and the readers since. Of a tile that tasks commute on, or reduce to, none: there
 * are tasks of filch's own between them. */
static size_t edges_of(const touch *touches, size_t count, edge *edges)
{
    size_t made = 0, writer = SIZE_MAX;
    for (size_t k = 0; k < count; k++)
        if (touches[k].mode == FILCH_COMMUTE || touches[k].mode == FILCH_REDUCE)
            return 0;
    for (size_t k = 0; k < count; k++) {
        bool writes = touches[k].mode != FILCH_READ;
        for (size_t reader = writer + 1; writes && reader < k; reader++)
            edges[made++] = (edge){touches[reader].task, touches[k].task};
        if (writer != SIZE_MAX)
            edges[made++] = (edge){touches[writer].task, touches[k].task};
        writer = writes ? k : writer;
    }
    return made;
}

/* stamps: one a task, all 0; edges: by their sources. */
static void trim(bench_sim_graph *graph, const edge *edges, size_t count, uint32_t *stamps)
{
    size_t next = 0, kept = 0;
    for (size_t i = 0; i < graph->count; i++) {
        size_t first = graph->begin[i];
        graph->begin[i] = kept;
        for (; next < count && edges[next].from == i; next++)
            stamps[edges[next].to] = (uint32_t)i + 1;
        for (size_t k = first; k < graph->begin[i + 1]; k++)
            if (stamps[graph->successors[k]] != (uint32_t)i + 1)
                graph->successors[kept++] = graph->successors[k];
    }
    graph->begin[graph->count] = kept;
}

bool bench_sim_edges_trim(bench_sim_graph *graph)
{
    size_t uses = graph->use_begin ? graph->use_begin[graph->count] : 0, count, made = 0;
    if (uses == 0)
        return true;
    touch *touches = calloc(uses, sizeof *touches);
    edge *edges = calloc(2 * uses, sizeof *edges);
    uint32_t *stamps = calloc(graph->count, sizeof *stamps);
    bool fits = touches && edges && stamps;
    if (fits) {
        count = touches_of(graph, touches);
        for (size_t from = 0, to; from < count; from = to) {
            for (to = from + 1; to < count && touches[to].handle == touches[from].handle &&
                                touches[to].tile == touches[from].tile;)
                to++;
            made += edges_of(touches + from, to - from, edges + made);
        }
        qsort(edges, made, sizeof *edges, by_source);
        trim(graph, edges, made, stamps);
    }
    free(touches);
    free(edges);
    free(stamps);
    return fits;
}
