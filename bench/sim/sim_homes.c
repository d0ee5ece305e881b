/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_homes.h"

#include <stdlib.h>

/* By handle and tile: a device and 1, of who used it first. */
typedef struct used {
    uint32_t **by;
    size_t count;
} used;

static bool used_init(used *u, const bench_sim_record *record)
{
    u->by = calloc(record->handle_count + 1, sizeof *u->by);
    u->count = record->handle_count;
    bool fits = u->by != NULL;
    for (size_t k = 0; fits && k < u->count; k++) {
        u->by[k] = calloc((size_t)record->handles[k].tiles + 1, sizeof **u->by);
        fits = u->by[k] != NULL;
    }
    return fits;
}

static void used_free(used *u)
{
    for (size_t k = 0; u->by && k < u->count; k++)
        free(u->by[k]);
    free(u->by);
}

static void note_tiles(const bench_sim_record *record, const bench_sim_use *use, uint32_t *by,
                       uint32_t device)
{
    uint32_t down = record->handles[use->handle].tiles_down;
    for (uint32_t col = 0; col < use->cols; col++)
        for (uint32_t row = 0; row < use->rows; row++) {
            uint32_t *first = &by[use->tile + col * down + row];
            *first = *first != 0 ? *first : device + 1;
        }
}

static void note(used *u, const bench_sim_record *record, const bench_sim_graph *graph, size_t task,
                 uint32_t device)
{
    for (size_t k = graph->use_begin[task]; k < graph->use_begin[task + 1]; k++) {
        const bench_sim_use *use = &graph->uses[k];
        if (use->mode != FILCH_SCRATCH)
            note_tiles(record, use, u->by[use->handle], device);
    }
}

static uint32_t home_of(const used *u, const bench_sim_graph *graph, size_t task)
{
    for (size_t k = graph->use_begin[task]; k < graph->use_begin[task + 1]; k++) {
        const bench_sim_use *use = &graph->uses[k];
        if ((use->mode == FILCH_WRITE || use->mode == FILCH_READWRITE) &&
            u->by[use->handle][use->tile] != 0)
            return u->by[use->handle][use->tile];
    }
    return 0; /* any */
}

/* By the first job of the graph; later ones find what they use where that left it. */
static bool graph_fill(const bench_sim_record *record, const bench_sim_job *job,
                       bench_sim_graph *graph, used *u)
{
    bool *waits = calloc(graph->count + 1, sizeof *waits);
    graph->homes = calloc(graph->count + 1, sizeof *graph->homes);
    bool fits = waits && graph->homes;
    for (size_t e = 0; fits && e < graph->all_begin[graph->count]; e++)
        waits[graph->all_successors[e]] = true;
    for (size_t k = job->first; fits && k < job->first + job->count; k++) {
        const bench_sim_tile *tile = &record->tiles[k];
        if (waits[tile->first])
            continue;
        graph->homes[tile->first] = tile->device + 1;
        if (graph->use_begin)
            note(u, record, graph, tile->first, tile->device);
    }
    for (size_t i = 0; fits && graph->use_begin && i < graph->count; i++)
        if (graph->homes[i] == 0)
            graph->homes[i] = home_of(u, graph, i);
    free(waits);
    return fits;
}

bool bench_sim_homes_find(bench_sim_record *record)
{
    used u = {0};
    bool fits = used_init(&u, record);
    for (size_t j = 0; fits && j < record->job_count; j++) {
        const bench_sim_job *job = &record->jobs[j];
        for (size_t g = 0; fits && g < record->graph_count; g++) {
            bench_sim_graph *graph = &record->graphs[g];
            if (graph == job->graph && !graph->homes)
                fits = graph_fill(record, job, graph, &u);
        }
    }
    used_free(&u);
    return fits;
}
