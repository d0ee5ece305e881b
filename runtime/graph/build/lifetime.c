/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/lifetime.h"

#include "graph/job/job.h"

#define DISCARD "filch_graph_discard"

/* --- Tasks being added --- */

static bool is_alive(const filch_graph *graph, const filch_data *data, uint32_t tile)
{
    uint32_t slot;
    return fl_graph_find_slot(graph, data, &slot) &&
           (graph->slots[slot]->needs[tile] & FL_WRITTEN) != 0;
}

filch_status fl_lifetimes_check(const filch_graph *graph, const filch_task_desc *desc)
{
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *access = &desc->accesses[i];
        const filch_data *data = access->data;
        if (access->mode == FILCH_SCRATCH || !fl_data_is_temporary(data)) {
            continue;
        }
        if (fl_access_is_block(access)) {
            return fl_graph_refuse(graph, desc, FILCH_UNSUPPORTED,
                                   "access %u: a %s of several tiles of %s%s%s, a temporary, "
                                   "whose tiles lie apart",
                                   i, access->halo != NULL ? "halo" : "block",
                                   FL_NAME("", data->label, "the handle"));
        }
        if (access->mode != FILCH_WRITE &&
            !is_alive(graph, data, fl_data_tile(data, access->row, access->col))) {
            return fl_graph_refuse(graph, desc, FILCH_WRONG_STATE,
                                   "access %u: tile (%u, %u) of %s%s%s, a temporary, is read, but "
                                   "no task of the graph has written it before, or since its "
                                   "contents were discarded",
                                   i, access->row, access->col,
                                   FL_NAME("", data->label, "the handle"));
        }
    }
    return FILCH_OK;
}

/* --- Ends --- */

/* Adds the gate behind the users of a tile. */
static filch_status end_lifetime(filch_graph *graph, uint32_t index, uint32_t tile)
{
    fl_slot *slot = graph->slots[index];
    fl_tile_state *state = &slot->tiles[tile];
    if ((slot->needs[tile] & FL_WRITTEN) == 0) {
        return FILCH_OK;
    }
    const char *label = slot->use.data->label;
    const fl_task_access access = {
        .slot = index & FL_MOST_SLOTS, .mode = FL_MODE_ENDS, .tile = tile};
    bool fits = fl_group_end(graph, state) == FILCH_OK && fl_infer_note_users(graph, state);
    fl_task *gate =
        fits ? fl_own_add(graph, NULL, &access, label[0] != '\0' ? label : "temporary") : NULL;
    if (gate == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    fl_infer_note_written(graph, state);
    fl_infer_stand_in(graph, state, gate);
    slot->needs[tile] = 0;
    fl_own_let_run(graph, gate);
    return FILCH_OK;
}

static filch_status end_tiles(filch_graph *graph, uint32_t index)
{
    filch_status status = FILCH_OK;
    for (uint32_t tile = 0; tile < graph->slots[index]->tile_count && status == FILCH_OK; ++tile) {
        status = end_lifetime(graph, index, tile);
    }
    return status;
}

filch_status fl_lifetimes_end(filch_graph *graph)
{
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; graph->has_temporaries && i < graph->slot_count && status == FILCH_OK;
         ++i) {
        if (fl_data_is_temporary(graph->slots[i]->use.data)) {
            status = end_tiles(graph, i);
        }
    }
    return status;
}

static filch_status check_handle(const filch_graph *graph, const filch_data *data)
{
    fl_core *core = graph->object.core;
    const fl_argument argument = fl_data_argument(data, "the data handle");
    filch_status status = fl_argument_check(core, &argument, DISCARD, graph->label);
    if (status != FILCH_OK) {
        return status;
    }
    return fl_data_is_temporary(data)
               ? FILCH_OK
               : fl_core_fail(core, FILCH_INVALID_ARGUMENT, DISCARD, data->label,
                              "%s%s%s is not a temporary (FILCH_DATA_TEMPORARY)",
                              FL_NAME("", data->label, "the handle"));
}

filch_status filch_graph_discard(filch_graph *graph, filch_data *data)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    status = status == FILCH_OK ? check_handle(graph, data) : status;
    if (status != FILCH_OK) {
        return status;
    }
    uint32_t index;
    fl_latch_lock(&graph->lock);
    status = fl_graph_check_grows(graph, DISCARD);
    if (status == FILCH_OK && fl_graph_find_slot(graph, data, &index) &&
        end_tiles(graph, index) != FILCH_OK) {
        status =
            fl_core_fail(graph->object.core, FILCH_OUT_OF_MEMORY, DISCARD, data->label,
                         "no memory to discard %s%s%s", FL_NAME("", data->label, "the handle"));
    }
    fl_latch_unlock(&graph->lock);
    return status;
}
