/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the operands of an item: the tiles that a task or a chunk uses, and how. */
#ifndef FL_SCHED_EXECUTE_OPERANDS_H
#define FL_SCHED_EXECUTE_OPERANDS_H

#include "sched/worker/worker.h"

/* Whether an item has operands that may be in another memory. */
bool fl_operands_matter(const fl_item *item);
/* Fills worker->call.views and offload->operands only. False: worker->stall.error says why not. */
bool fl_operands_list(fl_worker *worker, const fl_item *item);

#endif
