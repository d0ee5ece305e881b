/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/capacity.h"

#include <inttypes.h>
#include <string.h>

#include "graph/build/graph.h"
#include "graph/scheduler.h"
#include "memory/alloc/node.h"
#include "memory/tiles/tiles.h"

/* Returns the capacity of a device. UINT64_MAX: the device has no separate memory, or only
 * simulates. */
static uint64_t room_of(const fl_device *device)
{
    return device->place != 0 && device->backend->memory != NULL ? device->info.budget : UINT64_MAX;
}

bool fl_capacity_fits(const fl_core *core, const fl_fitting *what, uint64_t *fitting,
                      uint64_t *needs, uint64_t *most)
{
    const fl_places *places = core->places;
    bool any = false;
    *needs = *most = 0;
    for (uint32_t d = 0; d < core->scheduler->device_count; ++d) {
        const fl_device *device = &places->devices[d];
        bool has_limit = room_of(device) != UINT64_MAX;
        if (!fl_devices_have(what->devices, d)) {
            continue;
        }
        uint64_t need = has_limit ? what->need(what->what, device->place) : 0;
        if (!has_limit || need <= device->info.budget) {
            any = true;
            if (fitting == NULL) {
                return true;
            }
            fitting[d / 64] |= (uint64_t)1 << d % 64;
        } else if (device->info.budget >= *most) {
            *most = device->info.budget;
            *needs = need;
        }
    }
    return any;
}

/* --- Tasks --- */

static bool is_same_halo(const filch_halo *a, const filch_halo *b)
{
    return a == b || (a != NULL && b != NULL && memcmp(a, b, sizeof *a) == 0);
}

static bool is_named_before(const filch_task_desc *desc, uint32_t i)
{
    for (uint32_t k = 0; k < i; ++k) {
        const filch_access *a = &desc->accesses[k], *b = &desc->accesses[i];
        if (a->mode != FILCH_SCRATCH && a->data == b->data && is_same_halo(a->halo, b->halo) &&
            fl_rect_is_same(fl_access_rect(a), fl_access_rect(b))) {
            return true;
        }
    }
    return false;
}

/* Returns the bytes that elements take in a memory node. A partial result replaces a reduced tile;
 * the home of a partial result is the host's memory. Blocks with some tiles in common count in
 * full: one of them may be a private copy. A block with a halo may be one, too. */
static uint64_t need_of(const filch_data *data, fl_rect tiles, const fl_region *parts,
                        bool is_partial, uint32_t place)
{
    return (is_partial ? 0 : data->home) == place ? 0
           : parts != NULL                        ? fl_region_bytes(data, parts)
                                                  : fl_rect_bytes(data, tiles);
}

/* Returns the bytes that an access to a handle takes in a memory node. */
static uint64_t access_need(const filch_access *access, uint32_t place)
{
    bool is_partial = access->mode == FILCH_REDUCE;
    if (FL_LIKELY(access->halo == NULL)) {
        return need_of(access->data, fl_access_rect(access), NULL, is_partial, place);
    }
    fl_region region = fl_access_region(access);
    return need_of(access->data, region.tiles, &region, is_partial, place);
}

static uint64_t task_need(const void *what, uint32_t place)
{
    const filch_task_desc *desc = what;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *access = &desc->accesses[i];
        if (access->mode == FILCH_SCRATCH) {
            bytes += (access->bytes + 63) / 64 * 64;
        } else if (!is_named_before(desc, i)) {
            bytes += access_need(access, place);
        }
    }
    return bytes;
}

filch_status fl_capacity_task_limited(const filch_graph *graph, const filch_task_desc *desc)
{
    const fl_core *core = graph->object.core;
    const fl_fitting fitting = {desc->codelet->runs_on, task_need, desc};
    uint64_t needs, most;
    if (fl_capacity_fits(core, &fitting, NULL, &needs, &most)) {
        return FILCH_OK;
    }
    return fl_graph_refuse(
        graph, desc, FILCH_NO_DEVICE_MEMORY,
        "needs %" PRIu64 " bytes, the largest device that can run it has %" PRIu64, needs, most);
}

/* Returns the bytes of the tile and of a partial result: partial results are combined one at a
 * time. */
static uint64_t combination_need(const void *what, uint32_t place)
{
    const filch_access *access = what;
    fl_rect tile = fl_access_rect(access);
    return need_of(access->data, tile, NULL, false, place) +
           need_of(access->data, tile, NULL, true, place);
}

filch_status fl_capacity_combination(const filch_graph *graph, const filch_task_desc *desc,
                                     uint32_t i)
{
    const fl_core *core = graph->object.core;
    const filch_data *data = desc->accesses[i].data;
    const filch_codelet *combine = data->reduction_combine;
    const fl_fitting fitting = {combine->runs_on, combination_need, &desc->accesses[i]};
    uint64_t needs, most;
    if (!fl_capacity_is_limited(core) || fl_capacity_fits(core, &fitting, NULL, &needs, &most)) {
        return FILCH_OK;
    }
    return fl_graph_refuse(graph, desc, FILCH_NO_DEVICE_MEMORY,
                           "access %u: '%s', which combines '%s', needs %" PRIu64
                           " bytes for the tile and a partial result, the largest device that can "
                           "run it has %" PRIu64,
                           i, combine->name, data->label, needs, most);
}

static bool are_same_parts(const fl_region *a, const fl_region *b)
{
    return a == b ||
           (a != NULL && b != NULL && memcmp(&a->margins, &b->margins, sizeof a->margins) == 0);
}

static bool is_used_before(const fl_task *task, uint32_t i)
{
    for (uint32_t k = 0; k < i; ++k) {
        if (task->accesses[k].mode != FILCH_SCRATCH &&
            (task->accesses[k].mode == FILCH_REDUCE) == (task->accesses[i].mode == FILCH_REDUCE) &&
            task->accesses[k].slot == task->accesses[i].slot &&
            are_same_parts(fl_task_parts(task, k), fl_task_parts(task, i)) &&
            fl_rect_is_same(fl_task_tiles(task, k), fl_task_tiles(task, i))) {
            return true;
        }
    }
    return false;
}

uint64_t fl_capacity_need(const fl_task *task, uint32_t place)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode == FILCH_SCRATCH) {
            bytes += (uint64_t)access.tile * 64;
            continue;
        }
        if (!is_used_before(task, i)) {
            bytes += need_of(fl_graph_data(task->graph, access.slot), fl_task_tiles(task, i),
                             fl_task_parts(task, i), access.mode == FILCH_REDUCE, place);
        }
    }
    return bytes;
}

bool fl_capacity_has_room(const fl_core *core, const fl_task *task, uint32_t device)
{
    const fl_device *at = &core->places->devices[device];
    return fl_capacity_need(task, at->place) <= room_of(at);
}

bool fl_capacity_is_large_for_some(const fl_core *core, const fl_task *task, uint64_t *set)
{
    uint32_t count = core->scheduler->device_count;
    uint64_t most = fl_capacity_need(task, UINT32_MAX);
    bool is_large = false;
    for (uint32_t d = 0; d < count && most != 0 && !is_large; ++d) {
        is_large = most > room_of(&core->places->devices[d]);
    }
    if (!is_large) {
        return false;
    }
    memcpy(set, task->codelet->runs_on, sizeof task->codelet->runs_on);
    is_large = false;
    for (uint32_t d = 0; d < count; ++d) {
        if (fl_devices_have(set, d) && !fl_capacity_has_room(core, task, d)) {
            set[d / 64] &= ~((uint64_t)1 << d % 64);
            is_large = true;
        }
    }
    return is_large;
}
