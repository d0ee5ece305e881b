/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the data of a task or chunk fit into the memory of some device able to run the
 * task or chunk. */
#ifndef FL_GRAPH_BUILD_CAPACITY_H
#define FL_GRAPH_BUILD_CAPACITY_H

#include "graph/build/graph.h"
#include "memory/alloc/node.h"

/* Devices able to run a task or chunk, and the bytes needed on each device. */
typedef struct fl_fitting {
    const uint64_t *devices; /* bit set */
    uint64_t (*need)(const void *what, uint32_t place);
    const void *what;
} fl_fitting;

/* Tells whether some device has room. fitting, if not null, receives the bits of the devices with
 * room. If no device has room, *most is the largest capacity and *needs the larger number of bytes
 * needed. */
bool fl_capacity_fits(const fl_core *core, const fl_fitting *what, uint64_t *fitting,
                      uint64_t *needs, uint64_t *most);
/* Slow path of fl_capacity_task. */
filch_status fl_capacity_task_limited(const filch_graph *graph, const filch_task_desc *desc);
/* Does the fl_capacity_task check for combining the partial results of access i's tile. The tile's
 * position is already checked. */
filch_status fl_capacity_combination(const filch_graph *graph, const filch_task_desc *desc,
                                     uint32_t i);
/* Returns the bytes that a task takes in a memory node. Tiles with their home buffer in the node
 * are not counted. For a number of no memory node, every byte of the task counts. */
uint64_t fl_capacity_need(const fl_task *task, uint32_t place);
/* Tells whether an otherwise empty device has room for a task. */
bool fl_capacity_has_room(const fl_core *core, const fl_task *task, uint32_t device);
/* Tells whether some device has a memory of its own. */
static inline bool fl_capacity_is_limited(const fl_core *core)
{
    return core->places->count != 1;
}

/* Slow path of fl_capacity_is_large. */
bool fl_capacity_is_large_for_some(const fl_core *core, const fl_task *task, uint64_t *set);
/* Tells whether a task is large: some device in the codelet's set lacks room for the task. If the
 * task is large, set receives the bits of the devices with room. */
static inline bool fl_capacity_is_large(const fl_core *core, const fl_task *task, uint64_t *set)
{
    return task->access_count != 0 && fl_capacity_is_limited(core) &&
           fl_capacity_is_large_for_some(core, task, set);
}

/* Returns FILCH_NO_DEVICE_MEMORY, recorded with both sizes, if an otherwise correct task fits on no
 * device. */
static inline filch_status fl_capacity_task(const filch_graph *graph, const filch_task_desc *desc)
{
    return desc->access_count != 0 && fl_capacity_is_limited(graph->object.core)
               ? fl_capacity_task_limited(graph, desc)
               : FILCH_OK;
}

#endif
