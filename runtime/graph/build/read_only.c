/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/read_only.h"

#include "graph/job/job.h"

#define CALL "filch_graph_read_only"

bool fl_read_only_is(const filch_graph *graph, const filch_data *data)
{
    uint32_t slot;
    return graph->has_read_only && fl_graph_find_slot(graph, data, &slot) &&
           graph->slots[slot]->is_read_only;
}

filch_status fl_read_only_check(const filch_graph *graph, const filch_task_desc *desc)
{
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *access = &desc->accesses[i];
        if (access->mode != FILCH_READ && access->mode != FILCH_SCRATCH &&
            fl_read_only_is(graph, access->data)) {
            return fl_graph_refuse(graph, desc, FILCH_WRONG_STATE,
                                   "access %u: %s%s%s only reads %s%s%s (filch_graph_read_only)", i,
                                   FL_NAME("graph ", graph->label, "the graph"),
                                   FL_NAME("", access->data->label, "the handle"));
        }
    }
    return FILCH_OK;
}

/* Checks whether the graph may promise. The caller holds graph->lock. */
static filch_status check_state(const filch_graph *graph, const filch_data *data)
{
    const char *wrong = fl_graph_why_over(graph);
    uint32_t slot;
    if (wrong == NULL && fl_graph_find_slot(graph, data, &slot)) {
        const fl_queued_access *use = &graph->slots[slot]->use;
        wrong = use->writes || use->upgrade != NULL
                    ? "the graph writes it, or uses it as partitioned"
                    : NULL;
    }
    return wrong == NULL ? FILCH_OK
                         : fl_core_fail(graph->object.core, FILCH_WRONG_STATE, CALL, data->label,
                                        "%s%s%s cannot promise to only read %s%s%s: %s",
                                        FL_NAME("graph ", graph->label, "the graph"),
                                        FL_NAME("", data->label, "the handle"), wrong);
}

/* Finds the handle's slot; an open graph takes its place as a reader. */
static filch_status join(filch_graph *graph, filch_data *data, uint32_t *slot)
{
    char text[sizeof((filch_error *)NULL)->text];
    size_t known = graph->slot_count;
    filch_status status = fl_graph_slot(graph, data, slot);
    if (graph->kind == FILCH_GRAPH_OPEN) {
        const fl_task_access access = {.slot = *slot & FL_MOST_SLOTS, .mode = FILCH_READ};
        status = status == FILCH_OK ? fl_open_enter(graph, &access, 1, text, sizeof text) : status;
        if (status != FILCH_OK) {
            fl_graph_drop_slots(graph, known);
        }
    }
    return status == FILCH_OK ? status
           : status == FILCH_DEADLOCK || status == FILCH_BUSY
               ? fl_core_fail(graph->object.core, status, CALL, data->label, "%s", text)
               : fl_core_fail(graph->object.core, status, CALL, data->label,
                              "no memory for a handle of the graph");
}

filch_status filch_graph_read_only(filch_graph *graph, filch_data *data)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = graph->object.core;
    const fl_argument argument = fl_data_argument(data, "the data handle");
    status = fl_argument_check(core, &argument, CALL, graph->label);
    status = status == FILCH_OK ? fl_data_refuse_inner(data, CALL) : status;
    if (status != FILCH_OK) {
        return status;
    }
    uint32_t slot;
    fl_latch_lock(&graph->lock);
    status = check_state(graph, data);
    status = status == FILCH_OK ? join(graph, data, &slot) : status;
    if (status == FILCH_OK) {
        graph->slots[slot]->is_read_only = graph->has_read_only = true;
    }
    fl_latch_unlock(&graph->lock);
    return status;
}
