/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/description.h"

#include "graph/build/capacity.h"
#include "graph/scheduler.h"

#define MOST_ITEMS ((uint64_t)1 << 63)

/* Checks the codelets of a reduction. A partial result is made neutral on the device that adds to
 * it: every device of the task's codelet must run the init codelet. */
static filch_status check_reduction(const filch_graph *graph, const filch_task_desc *desc,
                                    uint32_t i)
{
    const fl_core *core = graph->object.core;
    const filch_data *data = desc->accesses[i].data;
    const filch_codelet *init = data->reduction_init;
    if (init == NULL) {
        return fl_graph_refuse(
            graph, desc, FILCH_WRONG_STATE,
            "access %u: nobody said how to reduce to '%s' (filch_data_reduction)", i, data->label);
    }
    if (fl_codelet_may_pend(desc->codelet)) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: a task that may pend cannot reduce", i);
    }
    const filch_codelet *combine = data->reduction_combine;
    if (combine->device_count == 0) {
        return fl_graph_refuse(graph, desc, FILCH_NO_DEVICE,
                               "access %u: no device can run '%s', which combines '%s'", i,
                               combine->name, data->label);
    }
    for (uint32_t d = 0; d < core->scheduler->device_count; ++d) {
        if (fl_codelet_runs_on(desc->codelet, d) && !fl_codelet_runs_on(init, d)) {
            return fl_graph_refuse(graph, desc, FILCH_NO_DEVICE,
                                   "access %u: device %u can run codelet '%s', but not '%s', the "
                                   "neutral element of '%s'",
                                   i, d, desc->codelet->name, init->name, data->label);
        }
    }
    return FILCH_OK;
}

static filch_status refuse_common(const filch_graph *graph, const filch_task_desc *desc, uint32_t j,
                                  uint32_t i)
{
    const filch_access *a = &desc->accesses[j], *b = &desc->accesses[i];
    return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                           "accesses %u and %u name tile (%u, %u) of '%s', one to write it", j, i,
                           a->row > b->row ? a->row : b->row, a->col > b->col ? a->col : b->col,
                           a->data->label);
}

/* Tells whether one of two accesses writes, so that they may have no tile in common. */
static bool exclude(const filch_access *a, const filch_access *b)
{
    return a->mode != FILCH_SCRATCH && ((a->mode | b->mode) & FILCH_WRITE) != 0;
}

/* Checks an access of a task with blocks: the access's block, and the tiles in common with earlier
 * accesses. */
static __attribute__((noinline)) filch_status
check_block(const filch_graph *graph, const filch_task_desc *desc, uint32_t i, fl_kinds *kinds)
{
    const filch_access *access = &desc->accesses[i];
    const filch_data *data = access->data;
    fl_tiles tiles = fl_access_tiles(access);
    if (tiles.row1 > data->tiles_down || tiles.col1 > data->tiles_across) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: the block of %u x %u tiles from tile (%u, %u) on is not "
                               "within the %u x %u tiles of '%s'",
                               i, access->rows, access->cols, access->row, access->col,
                               data->tiles_down, data->tiles_across, data->label);
    }
    if (access->mode > FILCH_READWRITE && fl_access_is_block(access)) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: a block of %u x %u tiles of '%s' cannot %s, only a tile",
                               i, tiles.row1 - tiles.row0, tiles.col1 - tiles.col0, data->label,
                               access->mode == FILCH_COMMUTE ? "commute" : "reduce");
    }
    kinds->block_count += fl_access_is_block(access);
    for (uint32_t j = 0; j < i; ++j) {
        const filch_access *other = &desc->accesses[j];
        if (other->data == data && exclude(other, access) &&
            fl_tiles_meet(tiles, fl_access_tiles(other))) {
            return refuse_common(graph, desc, j, i);
        }
    }
    return FILCH_OK;
}

/* Checks that the tiles of a task's access are in their handle, and that no earlier access of the
 * task has some of them where one of the two writes. */
static filch_status check_tiles(const filch_graph *graph, const filch_task_desc *desc, uint32_t i,
                                fl_kinds *kinds)
{
    const filch_access *access = &desc->accesses[i];
    const filch_data *data = access->data;
    if (access->row >= data->tiles_down || access->col >= data->tiles_across) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: tile (%u, %u) is outside the %u x %u tiles of '%s'", i,
                               access->row, access->col, data->tiles_down, data->tiles_across,
                               data->label);
    }
    if (FL_UNLIKELY(kinds->most > 1)) {
        return check_block(graph, desc, i, kinds);
    }
    for (uint32_t j = 0; j < i; ++j) {
        const filch_access *other = &desc->accesses[j];
        if (other->data == data && other->row == access->row && other->col == access->col &&
            exclude(other, access)) {
            return refuse_common(graph, desc, j, i);
        }
    }
    return FILCH_OK;
}

static filch_status check_access(const filch_graph *graph, const filch_task_desc *desc, uint32_t i,
                                 fl_kinds *kinds)
{
    fl_core *core = graph->object.core;
    const filch_access *access = &desc->accesses[i];
    filch_access_mode mode = access->mode;
    if (mode == FILCH_SCRATCH) {
        bool fits = access->data == NULL && access->bytes != 0 &&
                    access->bytes <= (uint64_t)UINT32_MAX * 64 && access->rows == 0 &&
                    access->cols == 0;
        return fits ? FILCH_OK
                    : fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                                      "access %u: scratch needs bytes (below 2^38), no handle and "
                                      "no rows or cols",
                                      i);
    }
    bool is_known = (mode >= FILCH_READ && mode <= FILCH_READWRITE) || mode == FILCH_COMMUTE ||
                    mode == FILCH_REDUCE;
    if (!is_known || access->bytes != 0 || access->reserved != 0) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT, "access %u: %s (mode %d)", i,
                               access->reserved != 0 ? "reserved is not 0"
                               : access->bytes != 0  ? "only scratch has bytes"
                                                     : "unknown mode",
                               (int)mode);
    }
    if (fl_object_check(access->data, FL_MAGIC_DATA) != FILCH_OK) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_HANDLE,
                               "access %u: the data handle is null or destroyed", i);
    }
    const filch_data *data = access->data;
    if (data->object.core != core) {
        return fl_graph_refuse(graph, desc, FILCH_WRONG_RUNTIME,
                               "access %u: handle '%s' belongs to another runtime", i, data->label);
    }
    filch_status status = check_tiles(graph, desc, i, kinds);
    kinds->modes |= 1u << mode;
    return status == FILCH_OK && mode == FILCH_REDUCE ? check_reduction(graph, desc, i) : status;
}

filch_status fl_description_check(const filch_graph *graph, const filch_task_desc *desc,
                                  fl_kinds *kinds)
{
    fl_core *core = graph->object.core;
    const filch_codelet *codelet = desc->codelet;
    if (fl_object_check(codelet, FL_MAGIC_CODELET) != FILCH_OK) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_HANDLE,
                               "the codelet is null or destroyed");
    }
    if (codelet->object.core != core) {
        return fl_graph_refuse(graph, desc, FILCH_WRONG_RUNTIME,
                               "codelet '%s' belongs to another runtime", codelet->name);
    }
    if (codelet->device_count == 0) {
        return fl_graph_refuse(graph, desc, FILCH_NO_DEVICE,
                               "no device of this runtime can run codelet '%s'%s", codelet->name,
                               codelet->host == NULL ? ", which has no host function"
                               : codelet->kernel == NULL &&
                                       (codelet->implementations & FL_IMPL_CUDA) == 0
                                   ? ", which has a host function alone"
                                   : "");
    }
    const char *wrong = codelet->arg_size != 0 && desc->args == NULL ? "arguments are missing"
                        : codelet->arg_size == 0 && desc->args != NULL
                            ? "the codelet's arg_size is 0, but there are arguments"
                        : desc->reserved != 0 ? "reserved is not 0"
                        : desc->items == 0
                            ? desc->grain != 0 ? "there is a grain, but no items" : NULL
                        : fl_codelet_may_pend(codelet) ? "a task that may pend is not divisible"
                                                       : NULL;
    if (wrong != NULL) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT, "%s", wrong);
    }
    if (FL_UNLIKELY(desc->items >= MOST_ITEMS || desc->grain >= MOST_ITEMS)) {
        return fl_graph_refuse(graph, desc, FILCH_OVERFLOW, "items or grain is 2^63 or more");
    }
    if (desc->access_count > FL_MOST_ACCESSES ||
        (desc->access_count != 0 && desc->accesses == NULL)) {
        return fl_graph_refuse(
            graph, desc, FILCH_INVALID_ARGUMENT, "%u accesses, %s", desc->access_count,
            desc->access_count > FL_MOST_ACCESSES ? "of at most 255" : "but the list is null");
    }
    if (desc->affinity > core->scheduler->device_count) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "affinity %u is above the device count, %u", desc->affinity,
                               core->scheduler->device_count);
    }
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        kinds->most |= desc->accesses[i].rows | desc->accesses[i].cols;
        filch_status status = check_access(graph, desc, i, kinds);
        if (status == FILCH_OK && desc->accesses[i].mode == FILCH_REDUCE) {
            status = fl_capacity_combination(graph, desc, i);
        }
        if (status != FILCH_OK) {
            return status;
        }
    }
    return fl_capacity_task(graph, desc);
}
