/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/structure_trace.h"

#include <inttypes.h>

typedef struct outline {
    FILE *file;
    const char *before; /* text before the next number */
} outline;

static void put_successor(fl_task *successor, void *user)
{
    outline *out = user;
    fprintf(out->file, "%s%u", out->before, (unsigned)successor->order);
    out->before = ",";
}

/* Added to the mode of an access to a block, whose tile rows and tile columns follow. */
#define BLOCK_MODE 16u
/* Added, too, for a block with a halo, whose rows before and after, and columns before and after,
 * follow. */
#define HALO_MODE 32u

/* Writes the tiles of a block, and the elements of its halo within the handle. */
static void put_block(FILE *file, const filch_data *data, const fl_region *block)
{
    fprintf(file, ",%" PRIu32 ",%" PRIu32, block->named.rows, block->named.cols);
    if (!fl_rect_is_same(block->named, block->tiles)) {
        filch_view all = fl_data_region_view(data, block);
        filch_view named = fl_data_rect_view(data, block->named);
        fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, named.row - all.row,
                all.row + all.rows - named.row - named.rows, named.col - all.col,
                all.col + all.cols - named.col - named.cols);
    }
}

/* Writes handle, first tile (bytes / 64 for scratch memory) and mode of every access. */
static void put_accesses(FILE *file, const filch_graph *graph, uint32_t count)
{
    fprintf(file, ",\"accesses\":[");
    for (uint32_t i = 0; i < count && graph->slot_count != 0; ++i) {
        const fl_task *task = fl_graph_task_at(graph, i);
        fprintf(file, i != 0 ? ",[" : "[");
        uint32_t uses = fl_task_ends_lifetime(task) ? 0 : task->access_count;
        for (uint32_t k = 0; k < uses; ++k) {
            const fl_task_access *access = &task->accesses[k];
            bool is_scratch = access->mode == FILCH_SCRATCH;
            uint32_t number = is_scratch ? 0 : fl_graph_data(graph, access->slot)->noted - 1;
            fl_region used = fl_task_region(task, k); /* of scratch memory: one "tile" */
            bool has_halo = !fl_rect_is_same(used.named, used.tiles);
            fprintf(file, "%s%u,%u,%u", k != 0 ? "," : "", (unsigned)number,
                    (unsigned)used.named.first,
                    (unsigned)access->mode + (access->is_block ? BLOCK_MODE : 0) +
                        (has_halo ? HALO_MODE : 0));
            if (access->is_block) {
                put_block(file, fl_graph_data(graph, access->slot), &used);
            }
        }
        fprintf(file, "]");
    }
    fprintf(file, "]");
}

static void put_priorities(FILE *file, const filch_graph *graph, uint32_t count)
{
    fprintf(file, ",\"priorities\":[");
    for (uint32_t i = 0; i < count; ++i) {
        const fl_task *task = fl_graph_task_at(graph, i);
        double rank = fl_task_is_own(task) ? 0 : (double)task->rank;
        fprintf(file, "%s%.0f", i != 0 ? "," : "", rank);
    }
    fprintf(file, "]");
}

/* Writes the preferred devices of the tasks, given by the caller or by the used tiles. Writes
 * nothing if no task has a preferred device. */
static void put_homes(FILE *file, const filch_graph *graph, uint32_t count)
{
    bool has_any = false;
    for (uint32_t i = 0; i < count && !has_any; ++i) {
        has_any = fl_graph_task_at(graph, i)->home != 0;
    }
    for (uint32_t i = 0; i < count && has_any; ++i) {
        fprintf(file, "%s%u", i != 0 ? "," : ",\"homes\":[",
                (unsigned)fl_graph_task_at(graph, i)->home);
    }
    if (has_any) {
        fprintf(file, "]");
    }
}

/* Tells whether every handle of the graph is noted, and the number of tasks is within the limit. */
static bool is_known(const fl_job_trace *logbook, const filch_graph *graph, uint32_t count)
{
    bool is_noted = count <= logbook->most_tasks;
    for (size_t i = 0; i < graph->slot_count && is_noted; ++i) {
        is_noted = graph->slots[i]->use.data->noted != 0;
    }
    return is_noted;
}

static void put_graph(FILE *file, const fl_job_trace *logbook, const filch_graph *graph)
{
    uint32_t count = fl_load_relaxed(&graph->task_count); /* sealed: the count is constant */
    fprintf(file, "{\"graph\":%u,", graph->number);
    if (graph->label[0] != '\0') {
        fprintf(file, "\"label\":\"");
        fl_trace_put_text(file, graph->label);
        fprintf(file, "\",");
    }
    fprintf(file, "\"successors\":[");
    for (uint32_t i = 0; i < count; ++i) {
        outline out = {file, i != 0 ? ",[" : "["};
        const char *first = out.before;
        fl_graph_each_successor(fl_graph_task_at(graph, i), put_successor, &out);
        fprintf(file, out.before == first ? "%s]" : "]", first);
    }
    fprintf(file, "]");
    if (is_known(logbook, graph, count)) {
        put_accesses(file, graph, count);
    }
    if (graph->priorities == FILCH_PRIORITIES_CALLER && count <= logbook->most_tasks) {
        put_priorities(file, graph, count);
    }
    if (count <= logbook->most_tasks) {
        put_homes(file, graph, count);
    }
    fprintf(file, "}");
}

/* --- Handles and batches --- */

static void put_cuts(FILE *file, const char *name, const uint64_t *starts, uint32_t tiles)
{
    fprintf(file, ",\"%s\":[", name);
    for (uint32_t i = 0; i < tiles; ++i) {
        fprintf(file, "%s%" PRIu64, i != 0 ? "," : "", starts[i + 1] - starts[i]);
    }
    fprintf(file, "]");
}

static void put_data(FILE *file, const fl_log_data *data)
{
    fprintf(file, "{\"element\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"cols\":%" PRIu64, data->element,
            data->rows, data->cols);
    if (data->row_starts != NULL) {
        put_cuts(file, "row_cuts", data->row_starts, data->tiles_down);
    } else {
        fprintf(file, ",\"tile_rows\":%" PRIu64, data->tile_rows);
    }
    if (data->col_starts != NULL) {
        put_cuts(file, "col_cuts", data->col_starts, data->tiles_across);
    } else {
        fprintf(file, ",\"tile_cols\":%" PRIu64, data->tile_cols);
    }
    if (data->label[0] != '\0') {
        fprintf(file, ",\"label\":\"");
        fl_trace_put_text(file, data->label);
        fprintf(file, "\"");
    }
    fprintf(file, ",\"managed\":%s,\"on_device\":%s,\"resident\":%u}",
            data->is_managed ? "true" : "false", data->is_on_device ? "true" : "false",
            (unsigned)data->resident);
}

/* Limits a halo: it may reach as far as there are elements, but readers of JSON know at most 63
 * bits. */
static uint64_t least(uint64_t halo)
{
    return halo < INT64_MAX ? halo : INT64_MAX;
}

static void put_batch(FILE *file, const fl_log_batch *batch)
{
    static const char *const maps[] = {[FILCH_MAP_WHOLE] = "whole",
                                       [FILCH_MAP_AFFINE] = "affine",
                                       [FILCH_MAP_CALLBACK] = "callback"};
    fprintf(file, "{\"job\":%u,\"items\":%" PRIu64 ",\"grain\":%" PRIu64, (unsigned)batch->job,
            batch->n, batch->grain);
    bool is_noted = true;
    for (uint32_t i = 0; i < batch->access_count; ++i) {
        is_noted = is_noted && batch->accesses[i].data != 0;
    }
    for (uint32_t i = 0; i < batch->access_count && is_noted; ++i) {
        const fl_log_access *access = &batch->accesses[i];
        fprintf(file, "%s{\"handle\":%u,\"mode\":%d,\"map\":\"%s\"",
                i != 0 ? "," : ",\"accesses\":[", (unsigned)access->data - 1, (int)access->mode,
                maps[access->map]);
        if (access->map == FILCH_MAP_AFFINE) {
            fprintf(file,
                    ",\"offset\":%" PRIu64 ",\"scale\":%" PRIu64 ",\"before\":%" PRIu64
                    ",\"after\":%" PRIu64,
                    access->offset, access->scale, least(access->before), least(access->after));
        }
        fprintf(file, "}");
    }
    fprintf(file, !is_noted ? "}" : batch->access_count != 0 ? "]}" : ",\"accesses\":[]}");
}

static void put_notes(FILE *file, const fl_job_trace *logbook)
{
    for (size_t i = 0; i < logbook->data_count; ++i) {
        fprintf(file, i != 0 ? ",\n" : ",\"handles\":[\n");
        put_data(file, &logbook->data[i]);
    }
    fprintf(file, logbook->data_count != 0 ? "]" : "");
    for (size_t i = 0; i < logbook->batch_count; ++i) {
        fprintf(file, i != 0 ? ",\n" : ",\"batches\":[\n");
        put_batch(file, &logbook->batches[i]);
    }
    fprintf(file, logbook->batch_count != 0 ? "]" : "");
}

/* --- All of it --- */

/* Writes the trace. No thread builds, seals or destroys a graph meanwhile, as filch/trace.h
 * demands. */
void fl_structure_trace_write(FILE *file, const fl_job_trace *logbook)
{
    fl_core *core = logbook->core;
    const char *before = ",\"graphs\":[\n";
    fl_mutex_lock(&core->lock);
    put_notes(file, logbook);
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        filch_graph *graph = (filch_graph *)(void *)object;
        if (fl_load_relaxed(&object->magic) != FL_MAGIC_GRAPH ||
            graph->kind != FILCH_GRAPH_CLOSED) {
            continue;
        }
        if (graph->state == FL_GRAPH_SEALED) {
            fprintf(file, "%s", before);
            put_graph(file, logbook, graph);
            before = ",\n";
        }
    }
    if (before[1] != '"') {
        fprintf(file, "]");
    }
    fl_mutex_unlock(&core->lock);
}
