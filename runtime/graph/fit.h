/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a task or a chunk uses fits into the memory of some device that can run it. */
#ifndef FL_GRAPH_FIT_H
#define FL_GRAPH_FIT_H

#include "filch/graph.h"
#include "graph/batch.h"

/* FILCH_NO_DEVICE_MEMORY, recorded with both sizes, where a task that is otherwise right fits on no
 * device. */
filch_status fl_fit_task(fl_core *core, const filch_task_desc *desc);
/* The same for the first grain of a batch, than which no chunk is smaller; leaves the batch to the
 * devices where it fits. */
filch_status fl_fit_batch(fl_core *core, fl_batch *batch, const char *call);

#endif
