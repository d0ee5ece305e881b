/* SPDX-License-Identifier: Apache-2.0 */
/* The step of a worker: retires, fills the device, says what is next. */
#ifndef FL_SCHED_EXECUTE_STEP_H
#define FL_SCHED_EXECUTE_STEP_H

#include "sched/account/account.h"
#include "sched/execute/divide.h"
#include "sched/execute/give.h"
#include "sched/execute/idle.h"
#include "sched/execute/next.h"
#include "sched/execute/reduce.h"
#include "sched/execute/retire.h"
#include "sched/worker/worker.h"

/* Never blocks. Only the worker's driver calls it. */
fl_act fl_worker_step(fl_worker *worker);
/* Has the item timed. The work of a chunk is known before. */
static inline void fl_item_set_timed(fl_item *item, const filch_codelet *codelet)
{
    item->timed = true;
    item->only_traced = false;
    item->stands = 1;
    if (item->task != NULL) {
        item->work = FL_UNLIKELY(item->task->has_items) ? fl_divide_work(item)
                     : codelet->work != NULL            ? (double)item->task->work
                                                        : 1;
    }
}

/* Retires the item that was run, without picking another. */
void fl_worker_settle(fl_worker *worker);

#endif
