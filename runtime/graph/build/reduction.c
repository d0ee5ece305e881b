/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/reduction.h"

#include <string.h>

#include "graph/build/graph.h"
#include "graph/scheduler.h"

fl_reduction *fl_reduction_new(filch_graph *graph, uint32_t slot, uint32_t tile)
{
    filch_data *data = graph->slots[slot]->use.data;
    uint32_t parts =
        data->is_ordered ? FL_ORDERED_PARTS : graph->object.core->scheduler->device_count;
    size_t bytes = sizeof(fl_reduction) + parts * sizeof(fl_partial *);
    size_t last_bytes = data->is_ordered ? parts * sizeof(fl_pred) : 0;
    fl_reduction *made = fl_arena_alloc(&graph->arena, bytes + last_bytes);
    if (made == NULL) {
        return NULL;
    }
    memset(made, 0, bytes + last_bytes);
    made->is_ordered = data->is_ordered;
    made->last = data->is_ordered ? (fl_pred *)(void *)((char *)made + bytes) : NULL;
    made->data = data;
    made->init = data->reduction_init;
    made->combine = data->reduction_combine;
    made->slot = slot;
    made->tile = tile;
    made->parts = parts;
    made->next = graph->reductions;
    graph->reductions = made;
    return made;
}

static void partial_free(const fl_memory *memory, fl_partial *partial)
{
    if (partial->data != NULL) {
        /* No job uses the handle: only tasks' accesses used it. */
        filch_data_destroy(partial->data);
    }
    fl_free_aligned(memory, partial->buffer, partial->bytes, 64);
    fl_free_aligned(memory, partial, sizeof *partial, _Alignof(fl_partial));
}

static fl_partial *partial_new(fl_reduction *reduction, filch_graph *graph, uint32_t part)
{
    fl_core *core = graph->object.core;
    filch_view tile = fl_data_tile_view(reduction->data, reduction->tile);
    fl_partial *made = fl_alloc_aligned(&core->memory, sizeof *made, _Alignof(fl_partial));
    if (made == NULL) {
        return NULL;
    }
    memset(made, 0, sizeof *made);
    made->bytes = (size_t)(tile.rows * tile.cols * tile.element);
    made->buffer = fl_alloc_aligned(&core->memory, made->bytes, 64);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = made->buffer;
    desc.element = tile.element;
    desc.rows = tile.rows;
    desc.cols = tile.cols;
    desc.label = reduction->data->label;
    desc.flags = FILCH_DATA_MANAGED;
    if (made->buffer == NULL ||
        filch_data_create((filch_runtime *)(void *)core, &desc, &made->data) != FILCH_OK) {
        made->data = NULL;
        partial_free(&core->memory, made);
        return NULL;
    }
    made->begins.access = (fl_task_access){
        .slot = reduction->slot & FL_MOST_SLOTS, .mode = FILCH_REDUCE, .tile = reduction->tile};
    made->begins.extra = (fl_extra){.reduction = reduction, .part = part};
    made->begin.graph = graph;
    made->begin.codelet = reduction->init;
    made->begin.begins = 1;
    made->begin.access_count = 1;
    made->begin.accesses = &made->begins.access;
    made->begin.work = 1;
    return made;
}

fl_partial *fl_reduction_at(fl_reduction *reduction, filch_graph *graph, uint32_t part)
{
    if (reduction->at[part] == NULL) {
        reduction->at[part] = partial_new(reduction, graph, part);
    }
    return reduction->at[part];
}

uint32_t fl_reduction_part(const fl_task *task, uint32_t access, uint32_t device)
{
    const fl_extra *extra = &fl_task_extras(task)[access];
    return task->combines                 ? extra->reduction->current
           : extra->reduction->is_ordered ? extra->part
                                          : device;
}

uint32_t fl_reduction_next(const fl_reduction *reduction, uint32_t from)
{
    while (from < reduction->parts &&
           (reduction->at[from] == NULL || reduction->at[from]->state == FL_PARTIAL_FRESH)) {
        ++from;
    }
    return from;
}

void fl_reduction_reset(fl_reduction *reduction)
{
    for (uint32_t p = 0; p < reduction->parts; ++p) {
        if (reduction->at[p] != NULL) {
            reduction->at[p]->state = FL_PARTIAL_FRESH;
        }
    }
    reduction->current = 0;
}

void fl_reduction_restart(fl_reduction *reduction)
{
    reduction->members = 0;
    if (reduction->is_ordered) {
        memset(reduction->last, 0, reduction->parts * sizeof *reduction->last);
    }
}

void fl_reductions_fini(filch_graph *graph)
{
    for (fl_reduction *r = graph->reductions; r != NULL; r = r->next) {
        for (uint32_t p = 0; p < r->parts; ++p) {
            if (r->at[p] != NULL) {
                partial_free(&graph->object.core->memory, r->at[p]);
            }
        }
    }
    graph->reductions = NULL;
}

filch_data *fl_reduction_stand_in(const fl_task *task, uint32_t access, uint32_t device)
{
    if (task->accesses[access].mode != FILCH_REDUCE) {
        return NULL;
    }
    const fl_reduction *reduction = fl_task_extras(task)[access].reduction;
    return reduction->at[fl_reduction_part(task, access, device)]->data;
}

uint32_t fl_reduction_mode(const fl_task *task)
{
    return task->combines ? FILCH_READ : task->begins ? FILCH_WRITE : FILCH_READWRITE;
}

void fl_reduction_views(const fl_task *task, uint32_t device, filch_view *views)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        const filch_data *data = fl_reduction_stand_in(task, i, device);
        if (data != NULL) {
            views[i] = fl_data_tile_view(data, 0);
        }
    }
}

void fl_reduction_place_views(const fl_task *task, filch_view *views)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode == FILCH_REDUCE) {
            filch_view tile =
                fl_data_tile_view(fl_graph_data(task->graph, access.slot), access.tile);
            views[i].row = tile.row;
            views[i].col = tile.col;
        }
    }
}

/* --- Attaching --- */

#define REDUCTION "filch_data_reduction"

static filch_status check_codelets(const filch_data *data, const filch_codelet *init,
                                   const filch_codelet *combine)
{
    fl_core *core = data->object.core;
    if (init == NULL && combine == NULL) {
        return FILCH_OK;
    }
    if (init == NULL || combine == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, REDUCTION, data->label,
                            "the %s codelet is null", init == NULL ? "neutral" : "combining");
    }
    for (int i = 0; i < 2; ++i) {
        const filch_codelet *codelet = i == 0 ? init : combine;
        const fl_argument argument =
            fl_codelet_argument(codelet, i == 0 ? "the neutral codelet" : "the combining codelet");
        filch_status status = fl_argument_check(core, &argument, REDUCTION, data->label);
        if (status != FILCH_OK) {
            return status;
        }
        if (codelet->arg_size != 0 || fl_codelet_may_pend(codelet)) {
            return fl_core_fail(core, FILCH_INVALID_ARGUMENT, REDUCTION, data->label,
                                "codelet '%s' %s", codelet->name,
                                codelet->arg_size != 0
                                    ? "has arguments, of which there are none here"
                                    : "may pend, which a reduction cannot");
        }
    }
    return FILCH_OK;
}

filch_status filch_data_reduction(filch_data *data, filch_codelet *init, filch_codelet *combine)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status == FILCH_OK) {
        status = fl_data_refuse_csr(data, REDUCTION);
    }
    if (status == FILCH_OK) {
        status = check_codelets(data, init, combine);
    }
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = data->object.core;
    fl_mutex_lock(&core->lock);
    bool is_busy = data->first != NULL || fl_load_relaxed(&data->graphs) != 0;
    if (!is_busy) {
        data->reduction_init = init;
        data->reduction_combine = combine;
    }
    fl_mutex_unlock(&core->lock);
    return is_busy ? fl_core_fail(core, FILCH_BUSY, REDUCTION, data->label,
                                  "%s%s%s is used by a graph or a running job",
                                  FL_NAME("handle ", data->label, "the handle"))
                   : FILCH_OK;
}
