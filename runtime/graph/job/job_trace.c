/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/job/job_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/build/structure_note.h"
#include "graph/job/batch.h"
#include "graph/job/job_figures.h"
#include "memory/tiles/tiles.h"
#include "observe/nvtx.h"

fl_job_trace *fl_job_trace_new(fl_core *core, uint64_t capacity)
{
    fl_job_trace *logbook = fl_alloc_zeroed(&core->memory, sizeof *logbook);
    if (logbook == NULL) {
        return NULL;
    }
    logbook->core = core;
    logbook->most = capacity;
    logbook->most_tasks = capacity * core->scheduler->device_count;
    logbook->jobs = fl_trace_ring_new(&core->memory, capacity);
    if (logbook->jobs == NULL || !fl_job_figures_init(&logbook->figures, core)) {
        fl_job_trace_free(logbook);
        return NULL;
    }
    return logbook;
}

static size_t start_bytes(uint32_t tiles)
{
    return ((size_t)tiles + 1) * sizeof(uint64_t);
}

void fl_job_trace_free(fl_job_trace *logbook)
{
    if (logbook == NULL) {
        return;
    }
    const fl_memory *memory = &logbook->core->memory;
    for (size_t i = 0; i < logbook->data_count; ++i) {
        fl_log_data *at = &logbook->data[i];
        fl_free(memory, at->row_starts, start_bytes(at->tiles_down));
        fl_free(memory, at->col_starts, start_bytes(at->tiles_across));
    }
    for (size_t i = 0; i < logbook->batch_count; ++i) {
        fl_log_batch *at = &logbook->batches[i];
        fl_free(memory, at->accesses, at->access_count * sizeof *at->accesses);
    }
    for (size_t i = 0; i < logbook->graph_count; ++i) {
        fl_structure_free(memory, *fl_job_trace_graph_at(logbook, i));
    }
    fl_free(memory, logbook->graphs, logbook->graph_capacity * sizeof *logbook->graphs);
    fl_job_figures_fini(&logbook->figures, logbook->core);
    fl_free(memory, logbook->data, logbook->data_capacity * sizeof *logbook->data);
    fl_free(memory, logbook->batches, logbook->batch_capacity * sizeof *logbook->batches);
    fl_trace_ring_free(memory, logbook->jobs);
    fl_free(memory, logbook, sizeof *logbook);
}

/* --- Handles --- */

static uint32_t count_resident(const fl_core *core, const filch_data *data)
{
    const fl_places *places = core->places;
    uint32_t count = 0;
    for (uint32_t tile = 0; places->count > 1 && tile < fl_data_tile_count(data); ++tile) {
        bool is_there = false;
        for (size_t d = 0; d < places->device_count && !is_there; ++d) {
            const fl_device *device = &places->devices[d];
            is_there = device->place != 0 && fl_tile_is_at(data, tile, device->place);
        }
        count += is_there;
    }
    return count;
}

/* Copies an array of starts; null stays null. False: no memory. */
static bool copy_starts(const fl_memory *memory, const uint64_t *from, uint32_t tiles,
                        uint64_t **copy)
{
    *copy = from != NULL ? fl_alloc(memory, start_bytes(tiles)) : NULL;
    if (*copy != NULL) {
        memcpy(*copy, from, start_bytes(tiles));
    }
    return (*copy != NULL) == (from != NULL);
}

/* Notes a handle. Traces omit handles that are not noted. Handles sharing a buffer are not noted:
 * contents move between the handles without a task. */
static void note_data(fl_job_trace *logbook, filch_data *data)
{
    const fl_memory *memory = &logbook->core->memory;
    if (data->noted != 0 || data->parent != NULL || data->children != 0 ||
        logbook->data_count == logbook->most ||
        fl_array_reserve(memory, &logbook->data, &logbook->data_capacity, logbook->data_count + 1,
                         sizeof *logbook->data) != FILCH_OK) {
        return;
    }
    fl_log_data *made = &logbook->data[logbook->data_count];
    *made = (fl_log_data){
        .element = data->element,
        .rows = data->rows,
        .cols = data->cols,
        .tile_rows = data->tile_rows,
        .tile_cols = data->tile_cols,
        .tiles_down = data->tiles_down,
        .tiles_across = data->tiles_across,
        .resident = data->is_managed ? count_resident(logbook->core, data) : 0,
        .is_managed = data->is_managed,
        .is_on_device = data->home != 0,
    };
    memcpy(made->label, data->label, sizeof made->label);
    if (!copy_starts(memory, data->row_starts, data->tiles_down, &made->row_starts)) {
        return;
    }
    if (!copy_starts(memory, data->col_starts, data->tiles_across, &made->col_starts)) {
        fl_free(memory, made->row_starts, start_bytes(made->tiles_down));
        return;
    }
    data->noted = (uint32_t)++logbook->data_count;
}

/* --- Jobs --- */

static void note_batch(fl_job_trace *logbook, const filch_job *job)
{
    const fl_memory *memory = &logbook->core->memory;
    const fl_batch *batch = job->batch;
    if (batch->stretch_count != 0 || logbook->batch_count == logbook->most ||
        fl_array_reserve(memory, &logbook->batches, &logbook->batch_capacity,
                         logbook->batch_count + 1, sizeof *logbook->batches) != FILCH_OK) {
        return;
    }
    fl_log_batch *made = &logbook->batches[logbook->batch_count];
    *made = (fl_log_batch){.job = job->sequence,
                           .n = batch->n,
                           .grain = batch->grain,
                           .access_count = batch->access_count};
    if (made->access_count != 0) {
        made->accesses = fl_alloc(memory, made->access_count * sizeof *made->accesses);
        if (made->accesses == NULL) {
            return;
        }
    }
    for (uint32_t i = 0; i < made->access_count; ++i) {
        const filch_batch_access *access = fl_batch_access(batch, i);
        made->accesses[i] = (fl_log_access){.data = access->data->noted,
                                            .mode = access->mode,
                                            .map = access->map,
                                            .offset = access->offset,
                                            .scale = access->scale,
                                            .before = access->before,
                                            .after = access->after};
    }
    ++logbook->batch_count;
}

void fl_job_trace_begins(fl_job_trace *logbook, filch_job *job)
{
    fl_core *core = logbook->core;
    fl_mutex_lock(&core->lock);
    if (job->batch != NULL) {
        for (uint32_t i = 0; i < fl_batch_view_count(job->batch); ++i) {
            note_data(logbook, fl_batch_access(job->batch, i)->data);
        }
        note_batch(logbook, job);
    } else if (job->graph != NULL && !job->is_open) {
        for (size_t i = 0; i < job->graph->slot_count; ++i) {
            note_data(logbook, job->graph->slots[i]->use.data);
        }
    }
    fl_mutex_unlock(&core->lock);
}

/* --- Graphs --- */

/* Bytes that a structure takes: its block, the allocator's header of the block, and its place in
 * the ring, whose array may be twice as long as the ring was. */
static uint64_t charge_of(const fl_log_graph *graph)
{
    return fl_structure_bytes(graph) + 16 + 2 * sizeof graph;
}

static void drop_oldest(fl_job_trace *logbook)
{
    fl_log_graph *oldest = *fl_job_trace_graph_at(logbook, 0);
    logbook->graph_bytes -= charge_of(oldest);
    logbook->graph_first = (logbook->graph_first + 1) % logbook->graph_capacity;
    --logbook->graph_count;
    ++logbook->graphs_dropped;
    fl_structure_free(&logbook->core->memory, oldest);
}

/* Makes room for another structure. False: no memory. */
static bool reserve_graph(fl_job_trace *logbook)
{
    size_t old = logbook->graph_capacity;
    if (logbook->graph_count < old) {
        return true;
    }
    if (fl_array_reserve(&logbook->core->memory, &logbook->graphs, &logbook->graph_capacity,
                         old + 1, sizeof *logbook->graphs) != FILCH_OK) {
        return false;
    }
    /* The ring was full: its front part, up to the oldest, follows what was the end. */
    size_t room = logbook->graph_capacity - old, first = logbook->graph_first;
    size_t moved = first < room ? first : room;
    fl_log_graph **all = logbook->graphs;
    memcpy(all + old, all, moved * sizeof *all);
    memmove(all, all + moved, (first - moved) * sizeof *all);
    return true;
}

/* Keeps a structure. False: no memory for its place. The caller holds core->lock. */
static bool keep_graph(fl_job_trace *logbook, filch_graph *graph, fl_log_graph *made)
{
    if (graph->noted > logbook->graphs_dropped) {
        fl_log_graph **place =
            fl_job_trace_graph_at(logbook, graph->noted - 1 - logbook->graphs_dropped);
        logbook->graph_bytes -= charge_of(*place);
        fl_structure_free(&logbook->core->memory, *place);
        *place = made;
    } else if (reserve_graph(logbook)) {
        *fl_job_trace_graph_at(logbook, logbook->graph_count++) = made;
        graph->noted = logbook->graphs_dropped + logbook->graph_count;
    } else {
        return false;
    }
    logbook->graph_bytes += charge_of(made);
    return true;
}

void fl_job_trace_graph(fl_job_trace *logbook, filch_graph *graph)
{
    fl_core *core = logbook->core;
    if (graph->kind != FILCH_GRAPH_CLOSED || graph->state != FL_GRAPH_SEALED) {
        return;
    }
    fl_log_graph *made = fl_structure_note(graph);
    if (made == NULL) {
        return;
    }
    uint64_t most = 32 * logbook->most_tasks;
    fl_mutex_lock(&core->lock);
    if (charge_of(made) > most || !keep_graph(logbook, graph, made)) {
        fl_structure_free(&core->memory, made);
    }
    while (logbook->graph_bytes > most) {
        drop_oldest(logbook);
    }
    fl_mutex_unlock(&core->lock);
}

void fl_job_trace_graphs(fl_job_trace *logbook)
{
    fl_core *core = logbook->core;
    filch_graph **all = NULL;
    size_t count = 0, capacity = 0;
    fl_mutex_lock(&core->lock);
    for (fl_object *object = core->objects; object != NULL; object = object->next) {
        if (fl_load_relaxed(&object->magic) == (uint32_t)FL_MAGIC_GRAPH &&
            fl_array_reserve(&core->memory, &all, &capacity, count + 1, sizeof *all) == FILCH_OK) {
            all[count++] = (filch_graph *)(void *)object;
        }
    }
    fl_mutex_unlock(&core->lock);
    while (count > 0) { /* the newest graphs are first in the list of objects */
        fl_job_trace_graph(logbook, all[--count]);
    }
    fl_free(&core->memory, all, capacity * sizeof *all);
}

/* Returns the number of tasks or items left out, limited to 32 bits. */
static uint32_t count_skipped(const fl_job_trace *logbook, const filch_job *job)
{
    fl_scheduler *scheduler = logbook->core->scheduler;
    filch_job_info info = {.size = sizeof info};
    if (job->broadcast == NULL) {
        scheduler->job_stats(scheduler, job, &info, NULL, 0, 0);
    }
    return info.skipped < UINT32_MAX ? (uint32_t)info.skipped : UINT32_MAX;
}

/* Returns the codelet's name for a batch, else the kind of job. */
static const char *name_of(const filch_job *job)
{
    return job->batch != NULL       ? fl_batch_codelet(job->batch)->name
           : job->broadcast != NULL ? "broadcast"
                                    : "graph";
}

void fl_job_trace_ended(fl_job_trace *logbook, filch_job *job, filch_status result)
{
    /* Relaxed, both loads: the thread ending the job has seen the job's beginning. */
    uint64_t start = fl_load_relaxed(&job->started);
    if (job->broadcast == NULL && !job->has_begun) {
        return;
    }
    fl_log_job made = {.number = job->sequence,
                       .start = start < job->finished ? start : job->finished,
                       .end = job->finished,
                       .name = name_of(job)};
    fl_trace_event event = {.start = made.start,
                            .end = made.end,
                            .first = job->sequence,
                            .other = count_skipped(logbook, job),
                            .kind = FL_TRACE_JOB,
                            .tasks = 1,
                            .label = fl_trace_label(logbook->jobs, job->label)};
    if (job->batch != NULL) {
        event.last = fl_batch_items(job->batch);
        event.tasks = 0;
    } else if (job->ran != NULL) {
        made.graph = event.last = job->ran_number;
    }
    event.name = made.name;
    fl_trace_add(logbook->jobs, event);
    memcpy(made.label, job->label, sizeof made.label);
    fl_job_figures_note(&logbook->figures, job, &made, result);
}

/* --- Ranges --- */

void fl_job_begin_range(filch_job *job)
{
    const fl_nvtx *nvtx = job->object.core->nvtx;
    char name[32 + sizeof job->label];
    if (nvtx != NULL) {
        snprintf(name, sizeof name, "job %" PRIu64 ": %s", job->sequence,
                 job->label[0] != '\0' ? job->label : name_of(job));
        job->range = fl_nvtx_start(nvtx, name);
    }
}

void fl_job_end_range(const filch_job *job)
{
    const fl_nvtx *nvtx = job->object.core->nvtx;
    if (nvtx != NULL) {
        fl_nvtx_end(nvtx, job->range);
    }
}
