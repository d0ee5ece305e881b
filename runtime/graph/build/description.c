/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/description.h"

#include "graph/build/capacity.h"
#include "graph/scheduler.h"

#define MOST_ITEMS ((uint64_t)1 << 63)
/* A bit for each mode of an access to a handle. */
#define MODES                                                                             \
    (1u << FILCH_READ | 1u << FILCH_WRITE | 1u << FILCH_READWRITE | 1u << FILCH_COMMUTE | \
     1u << FILCH_REDUCE)

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
            "access %u: nobody said how to reduce to %s%s%s (filch_data_reduction)", i,
            FL_NAME("", data->label, "the handle"));
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
        /* A lost device runs neither, and codelets made since do not name it. */
        if (fl_codelet_runs_on(desc->codelet, d) && !fl_codelet_runs_on(init, d) &&
            !core->scheduler->device_is_lost(core->scheduler, d)) {
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
    const filch_data *data = desc->accesses[j].data;
    fl_tiles a = fl_access_tiles(&desc->accesses[j]), b = fl_access_tiles(&desc->accesses[i]);
    return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                           "accesses %u and %u name tile (%u, %u) of %s%s%s, one to write it", j, i,
                           a.row0 > b.row0 ? a.row0 : b.row0, a.col0 > b.col0 ? a.col0 : b.col0,
                           FL_NAME("", data->label, "the handle"));
}

/* Tells whether one of two accesses writes, so that they may have no tile in common. */
static bool exclude(const filch_access *a, const filch_access *b)
{
    return a->mode != FILCH_SCRATCH && ((a->mode | b->mode) & FILCH_WRITE) != 0;
}

/* Checks an access of a task with blocks: the access's block, and the tiles in common with earlier
 * accesses. */
static filch_status check_block(const filch_graph *graph, const filch_task_desc *desc, uint32_t i)
{
    const filch_access *access = &desc->accesses[i];
    const filch_data *data = access->data;
    fl_tiles named = fl_access_named(access);
    if (named.row1 > data->tiles_down || named.col1 > data->tiles_across) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: the block of %u x %u tiles%s from tile (%u, %u) on is "
                               "not within the %u x %u tiles of %s%s%s",
                               i, named.row1 - named.row0, named.col1 - named.col0,
                               access->rows == 0   ? " (rows is 0, which means 1)"
                               : access->cols == 0 ? " (cols is 0, which means 1)"
                                                   : "",
                               access->row, access->col, data->tiles_down, data->tiles_across,
                               FL_NAME("", data->label, "the handle"));
    }
    if (access->mode > FILCH_READWRITE && fl_access_is_block(access)) {
        return fl_graph_refuse(
            graph, desc, FILCH_INVALID_ARGUMENT,
            "access %u: a block of %u x %u tiles of %s%s%s cannot %s, only a tile", i,
            named.row1 - named.row0, named.col1 - named.col0,
            FL_NAME("", data->label, "the handle"),
            access->mode == FILCH_COMMUTE ? "commute" : "reduce");
    }
    fl_tiles tiles = fl_access_tiles(access);
    for (uint32_t j = 0; j < i; ++j) {
        const filch_access *other = &desc->accesses[j];
        if (other->data == data && exclude(other, access) &&
            fl_tiles_meet(tiles, fl_access_tiles(other))) {
            return refuse_common(graph, desc, j, i);
        }
    }
    return FILCH_OK;
}

/* Checks an access to scratch memory. */
static filch_status check_scratch(const filch_graph *graph, const filch_task_desc *desc, uint32_t i)
{
    const filch_access *access = &desc->accesses[i];
    bool fits = access->data == NULL && access->bytes != 0 &&
                access->bytes <= (uint64_t)UINT32_MAX * 64 && access->rows == 0 &&
                access->cols == 0 && access->halo == NULL;
    return fits ? FILCH_OK
                : fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                                  "access %u: scratch needs bytes (below 2^38), and no handle, "
                                  "rows, cols or halo",
                                  i);
}

/* Checks an access to a sparse matrix. Its tiles have pointers and columns, which no task makes. */
static filch_status check_csr(const filch_graph *graph, const filch_task_desc *desc, uint32_t i)
{
    const filch_access *access = &desc->accesses[i];
    fl_tiles tiles = fl_access_named(access);
    const char *wrong = access->mode == FILCH_WRITE    ? "is written without being read"
                        : access->mode == FILCH_REDUCE ? "is reduced to"
                        : tiles.row1 - tiles.row0 > 1  ? "is not the only one named"
                        : access->halo != NULL         ? "has a halo"
                                                       : NULL;
    return wrong == NULL
               ? FILCH_OK
               : fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                                 "access %u: row block %u of %s%s%s %s; a task reads single blocks "
                                 "of a sparse matrix, or changes their values (FILCH_READWRITE)",
                                 i, access->row, FL_NAME("", access->data->label, "the matrix"),
                                 wrong);
}

/* Checks a task's access to a handle: the access itself, and whether its first tile is in the
 * handle. */
static inline filch_status check_access(const filch_graph *graph, const filch_task_desc *desc,
                                        uint32_t i)
{
    const filch_access *access = &desc->accesses[i];
    const filch_data *data = access->data;
    uint32_t mode = (uint32_t)access->mode;
    if (FL_UNLIKELY(mode > FILCH_REDUCE || (MODES >> mode & 1) == 0 || access->bytes != 0 ||
                    access->reserved != 0 || (access->halo != NULL && mode != FILCH_READ))) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT, "access %u: %s (mode %d)", i,
                               access->reserved != 0  ? "reserved is not 0"
                               : access->halo != NULL ? "only what is read has a halo"
                               : access->bytes != 0   ? "only scratch has bytes"
                                                      : "unknown mode",
                               (int)mode);
    }
    filch_status standing = fl_object_standing(graph->object.core, data, FL_MAGIC_DATA);
    if (FL_UNLIKELY(standing != FILCH_OK)) {
        const fl_argument argument = fl_data_argument(data, "the data handle");
        char text[FL_ARGUMENT_TEXT];
        return fl_graph_refuse(graph, desc, standing, "access %u: %s", i,
                               fl_argument_explain(&argument, text));
    }
    if (FL_UNLIKELY(access->row >= data->tiles_down || access->col >= data->tiles_across)) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: tile (%u, %u) is outside the %u x %u tiles of %s%s%s", i,
                               access->row, access->col, data->tiles_down, data->tiles_across,
                               FL_NAME("", data->label, "the handle"));
    }
    return FL_UNLIKELY(data->csr != NULL) ? check_csr(graph, desc, i) : FILCH_OK;
}

/* Checks that no earlier access of the task names the tile of access i where one of the two
 * writes. */
static filch_status check_repeated(const filch_graph *graph, const filch_task_desc *desc,
                                   uint32_t i)
{
    const filch_access *access = &desc->accesses[i];
    for (uint32_t j = 0; j < i; ++j) {
        const filch_access *other = &desc->accesses[j];
        if (other->data == access->data && other->row == access->row && other->col == access->col &&
            exclude(other, access)) {
            return refuse_common(graph, desc, j, i);
        }
    }
    return FILCH_OK;
}

/* Number of a bit for a tile. Accesses with unlike bits name unlike tiles. The tiles of a stencil
 * and of a row or column have unlike bits. */
static inline uint32_t bit_of(const filch_access *access)
{
    return ((uint32_t)((uintptr_t)access->data >> 6) + access->row + access->col * 8) & 63;
}

/* Checks an access, and notes what kind it is. *tiles: bits of the tiles of earlier accesses. */
static inline filch_status note_access(const filch_graph *graph, const filch_task_desc *desc,
                                       uint32_t i, fl_kinds *kinds, uint64_t *tiles)
{
    const filch_access *access = &desc->accesses[i];
    if (access->mode == FILCH_SCRATCH) {
        return check_scratch(graph, desc, i);
    }
    filch_status status = check_access(graph, desc, i);
    if (FL_UNLIKELY(status != FILCH_OK)) {
        return status;
    }
    uint64_t bit = (uint64_t)1 << bit_of(access);
    kinds->modes |= 1u << access->mode;
    kinds->most |= access->rows | access->cols | (access->halo != NULL ? 2u : 0u);
    kinds->parents |= (uintptr_t)access->data->parent;
    kinds->temporaries |= (uintptr_t)access->data->tile_hosts;
    if (FL_UNLIKELY(kinds->most > 1)) {
        status = check_block(graph, desc, i);
        kinds->block_count += status == FILCH_OK && fl_access_is_block(access);
    } else if (FL_UNLIKELY((*tiles & bit) != 0)) {
        status = check_repeated(graph, desc, i);
    }
    *tiles |= bit;
    if (FL_UNLIKELY(access->mode == FILCH_REDUCE) && status == FILCH_OK) {
        status = check_reduction(graph, desc, i);
        status = status == FILCH_OK ? fl_capacity_combination(graph, desc, i) : status;
    }
    return status;
}

filch_status fl_description_check(const filch_graph *graph, const filch_task_desc *desc,
                                  fl_kinds *kinds)
{
    fl_core *core = graph->object.core;
    const filch_codelet *codelet = desc->codelet;
    filch_status standing = fl_object_standing(core, codelet, FL_MAGIC_CODELET);
    if (FL_UNLIKELY(standing != FILCH_OK)) {
        const fl_argument argument = fl_codelet_argument(codelet, "the codelet");
        char text[FL_ARGUMENT_TEXT];
        return fl_graph_refuse(graph, desc, standing, "%s", fl_argument_explain(&argument, text));
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
    if (FL_UNLIKELY(codelet->arg_size != 0 && desc->args == NULL)) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "arguments are missing: codelet '%s' takes %u bytes", codelet->name,
                               (unsigned)codelet->arg_size);
    }
    const char *wrong = codelet->arg_size == 0 && desc->args != NULL
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
    fl_kinds seen = {0};
    uint64_t tiles = 0;
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        filch_status status = note_access(graph, desc, i, &seen, &tiles);
        if (FL_UNLIKELY(status != FILCH_OK)) {
            return status;
        }
    }
    *kinds = seen;
    return fl_capacity_task(graph, desc);
}
