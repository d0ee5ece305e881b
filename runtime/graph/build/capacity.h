/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a task or a chunk uses fits into the memory of some device that can run it. */
#ifndef FL_GRAPH_BUILD_CAPACITY_H
#define FL_GRAPH_BUILD_CAPACITY_H

#include "filch/graph.h"
#include "graph/job/batch.h"
#include "graph/task/task.h"

/* FILCH_NO_DEVICE_MEMORY, recorded with both sizes, where a task that is otherwise right fits on no
 * device. */
filch_status fl_capacity_task(const filch_graph *graph, const filch_task_desc *desc);
/* The same for combining what tasks reduce to the tile of an access; its place is checked. */
filch_status fl_capacity_combination(const filch_graph *graph, const filch_task_desc *desc,
                                     uint32_t i);
/* Bytes that a task takes in a place, where nothing of what it uses has its home; of one that is no
 * place, all that it uses. */
uint64_t fl_capacity_need(const fl_task *task, uint32_t place);
/* Whether a device has room for a task when it holds nothing else. */
bool fl_capacity_has_room(const fl_core *core, const fl_task *task, uint32_t device);
/* Finds out whether some devices that its codelet runs on have no room for a task; then it is
 * large, and set has the bits of those that have. */
bool fl_capacity_is_large(const fl_core *core, const fl_task *task, uint64_t *set);
/* The same for the first grain of a batch, than which no chunk is smaller; leaves the batch to the
 * devices where it fits. */
filch_status fl_capacity_batch(fl_core *core, fl_batch *batch, const char *call);

#endif
