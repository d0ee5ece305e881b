/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls reporting the memory held by a runtime on its devices. */
#include "runtime.h"

/* Finds the memory node of a device. */
static filch_status find_place(filch_runtime *rt, uint32_t index, const char *call, uint32_t *place)
{
    filch_status status = fl_object_check_for(rt, FL_MAGIC_RUNTIME, call);
    if (status != FILCH_OK) {
        return status;
    }
    if (index >= rt->pool.count) {
        return fl_core_fail(&rt->core, FILCH_BAD_INDEX, call, NULL,
                            "there are %zu devices, no device %u", rt->pool.count, index);
    }
    /* Simulated devices name memory nodes missing from the table: treat the node as the host's. */
    *place = rt->pool.devices[index].place;
    if (*place >= rt->places.count) {
        *place = 0;
    }
    return FILCH_OK;
}

filch_status filch_device_memory(filch_runtime *rt, uint32_t index, filch_memory_stats *stats)
{
    uint32_t place = 0;
    filch_status status = find_place(rt, index, "filch_device_memory", &place);
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_size_check(&rt->core, stats, sizeof *stats, 0, "the result", "filch_device_memory",
                           NULL);
    if (status != FILCH_OK) {
        return status;
    }
    fl_place_stats(&rt->places, place, stats);
    return FILCH_OK;
}

filch_status filch_device_trim(filch_runtime *rt, uint32_t index, uint64_t keep)
{
    uint32_t place = 0;
    filch_status status = find_place(rt, index, "filch_device_trim", &place);
    if (status == FILCH_OK) {
        fl_place_trim(&rt->places, place, keep);
    }
    return status;
}
