/* SPDX-License-Identifier: Apache-2.0 */
/* Handles without a home buffer. A job may read only tiles written by the job itself, by the host,
 * or by a job submitted earlier. The outcome of the earlier job is not known yet. */
#include "graph/job/job.h"

/* Checks the contents read through a slot of a graph's job. */
static filch_status check_slot(const fl_slot *slot, filch_error *error)
{
    const filch_data *data = slot->use.data;
    bool is_new = slot->needs != NULL && !slot->has_contents;
    for (uint32_t tile = 0; is_new && tile < slot->tile_count; ++tile) {
        if ((slot->needs[tile] & FL_NEEDED) != 0 && !fl_data_is_written(data, tile)) {
            return fl_data_fail_unwritten(data, tile, NULL, error);
        }
    }
    return FILCH_OK;
}

static void note_slot(fl_slot *slot)
{
    bool is_new = slot->needs != NULL && !slot->has_contents;
    for (uint32_t tile = 0; is_new && tile < slot->tile_count; ++tile) {
        if ((slot->needs[tile] & FL_WRITTEN) != 0) {
            fl_data_note_written(slot->use.data, tile);
        }
    }
    slot->has_contents = true;
}

/* --- Batches --- */

/* Finds the tiles used by an access of a batch. */
static void tiles_of(const fl_batch *batch, uint32_t i, uint32_t *tile, uint32_t *end)
{
    uint64_t first, last;
    fl_batch_reach_of(batch, i, &first, &last);
    fl_data_tiles_of(fl_batch_access(batch, i)->data, first, last, tile, end);
}

static filch_status check_access(const fl_batch *batch, uint32_t i, filch_error *error)
{
    const filch_batch_access *access = fl_batch_access(batch, i);
    uint32_t tile, end;
    if (access->data->written == NULL || (access->mode & FILCH_READ) == 0) {
        return FILCH_OK;
    }
    for (tiles_of(batch, i, &tile, &end); tile < end; ++tile) {
        if (!fl_data_is_written(access->data, tile)) {
            return fl_data_fail_unwritten(access->data, tile, NULL, error);
        }
    }
    return FILCH_OK;
}

static void note_access(const fl_batch *batch, uint32_t i)
{
    const filch_batch_access *access = fl_batch_access(batch, i);
    uint32_t tile, end;
    if (access->data->written == NULL || (access->mode & FILCH_WRITE) == 0) {
        return;
    }
    for (tiles_of(batch, i, &tile, &end); tile < end; ++tile) {
        fl_data_note_written(access->data, tile);
    }
}

/* --- Broadcasts --- */

static filch_status check_broadcast(fl_broadcast *broadcast, filch_error *error)
{
    const filch_data *data = fl_broadcast_use(broadcast)->data;
    uint32_t tile, end;
    for (fl_broadcast_tiles(broadcast, &tile, &end); tile < end; ++tile) {
        if (!fl_data_is_written(data, tile)) {
            return fl_data_fail_unwritten(data, tile, NULL, error);
        }
    }
    return FILCH_OK;
}

/* --- Jobs --- */

/* Returns the number of accesses. A batch without items uses no handle. */
static uint32_t access_count(const fl_batch *batch)
{
    return fl_batch_grains(batch) != 0 ? fl_batch_view_count(batch) : 0;
}

filch_status fl_job_check_contents(const filch_job *job, filch_error *error)
{
    filch_status status = FILCH_OK;
    if (job->broadcast != NULL) {
        return check_broadcast(job->broadcast, error);
    }
    if (job->batch != NULL) {
        for (uint32_t i = 0; i < access_count(job->batch) && status == FILCH_OK; ++i) {
            status = check_access(job->batch, i, error);
        }
        return status;
    }
    for (size_t i = 0; i < job->graph->slot_count && status == FILCH_OK; ++i) {
        status = check_slot(job->graph->slots[i], error);
    }
    return status;
}

filch_status fl_graph_check_handles(const filch_graph *graph, const char *label, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (size_t i = 0; i < graph->slot_count && status == FILCH_OK; ++i) {
        const filch_data *data = graph->slots[i]->use.data;
        status = data->is_acquired ? fl_data_fail_acquired(data, label, error) : FILCH_OK;
    }
    for (size_t i = 0; i < graph->slot_count && status == FILCH_OK; ++i) {
        status = check_slot(graph->slots[i], error);
    }
    return status;
}

void fl_job_note_contents(const filch_job *job)
{
    if (job->batch != NULL) {
        for (uint32_t i = 0; i < access_count(job->batch); ++i) {
            note_access(job->batch, i);
        }
        return;
    }
    for (size_t i = 0; job->graph != NULL && i < job->graph->slot_count; ++i) {
        note_slot(job->graph->slots[i]);
    }
}

/* --- Open graphs --- */

static bool is_watched(const filch_access *access)
{
    return access->mode != FILCH_SCRATCH && access->data->written != NULL;
}

/* Records that the task reads a tile never written. */
static filch_status refuse_unwritten(const filch_graph *graph, const filch_task_desc *desc,
                                     uint32_t i, uint32_t tile)
{
    const filch_access *access = &desc->accesses[i];
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = fl_data_fail_unwritten(access->data, tile, "filch_graph_add", &error);
    /* The error names the handle, if the handle has a label. */
    return error.label[0] == '\0'
               ? fl_graph_refuse(graph, desc, status, "%s", error.text)
               : fl_core_fail(graph->object.core, status, "filch_graph_add", error.label,
                              "task #%u '%.63s': %s", fl_load_relaxed(&graph->task_count),
                              fl_graph_name_of(graph, desc), error.text);
}

filch_status fl_open_check_contents(const filch_graph *graph, const filch_task_desc *desc,
                                    bool *watches)
{
    fl_core *core = graph->object.core;
    *watches = false;
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *access = &desc->accesses[i];
        if (!is_watched(access)) {
            continue;
        }
        *watches = true;
        if (access->mode == FILCH_WRITE) {
            continue;
        }
        uint32_t tile;
        fl_mutex_lock(&core->lock);
        bool is_unwritten = fl_data_find_unwritten(access->data, fl_access_tiles(access), &tile);
        fl_mutex_unlock(&core->lock);
        if (is_unwritten) {
            return refuse_unwritten(graph, desc, i, tile);
        }
    }
    return FILCH_OK;
}

void fl_open_note_contents(filch_graph *graph, const filch_task_desc *desc)
{
    fl_core *core = graph->object.core;
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *access = &desc->accesses[i];
        if (is_watched(access) && access->mode != FILCH_READ) {
            fl_rect tiles = fl_access_rect(access);
            fl_mutex_lock(&core->lock);
            for (uint32_t t = 0; t < fl_rect_count(tiles); ++t) {
                fl_data_note_written(access->data, fl_rect_at(tiles, t));
            }
            fl_mutex_unlock(&core->lock);
        }
    }
}
