/* SPDX-License-Identifier: Apache-2.0 */
/* Locality: which task of the window needs least to be brought, and what to fetch ahead. In use
 * where tiles have to be brought, or memory is short. */
#ifndef FL_SCHED_DECIDE_LOCALITY_H
#define FL_SCHED_DECIDE_LOCALITY_H

#include "sched/worker/device.h"
#include "sched/worker/operands.h"
#include "sched/worker/worker.h"

/* Whether the worker is to choose among tasks: tiles have to be brought, or memory is short. */
static inline bool fl_locality_chooses(const fl_worker *w)
{
    return w->offload != NULL && (w->offload->choosy | w->offload->pressed) != 0;
}

/* Whether an operand of the task would have to be brought to the device. */
bool fl_locality_lacks(const fl_worker *worker, const fl_task *task);
/* Whether a device with its own memory has ended nothing yet, and nothing was missing. */
static inline bool fl_locality_is_new(const fl_worker *w)
{
    return fl_worker_mean_ns(w) == 0 && /* relaxed: own value */
           w->offload != NULL && w->device->place != 0 && w->offload->window_count == 0 &&
           !fl_locality_chooses(w);
}

/* Whether a task that the worker made ready stays with the worker, which chooses by what is on its
 * device: an operand would have to be brought, or memory is short. */
bool fl_locality_keeps(const fl_worker *worker, const fl_task *task);
/* Roots that the worker takes at once from `rest` in a range; 1 where it is not to choose. */
uint32_t fl_locality_room(const fl_worker *worker, uint32_t rest);
/* Largest number of tasks in the window. */
uint32_t fl_locality_most(const fl_worker *worker);
/* Index of the task of the window to run next; window_count: the window is empty. *least: 0: the
 * task lacks nothing; 1: tiles on the way; else twice the bytes to be brought. */
uint32_t fl_locality_choose(const fl_worker *worker, uint64_t *least);
/* Whether a task of the window is of a higher level than `task`. */
bool fl_locality_passes(const fl_worker *worker, const fl_task *task);
/* Whether an item on the lane waits for a copy; items behind it wait, too. */
bool fl_locality_lane_waits(const fl_worker *worker, uint32_t lane);
/* Whether every task of the window lacks an operand while every lane has an item to run, or a
 * further item that waits for a copy would hold the last lane. Where memory is short, only an item
 * that is launched is sure to get its operands: then the last lane is not kept. */
bool fl_locality_waits(const fl_worker *worker);
/* Index of the task of the window whose missing operands are to be fetched ahead now; window_count:
 * none. *has_lack: whether a task of the window may lack anything, from now on. */
uint32_t fl_locality_to_fetch(const fl_worker *worker, bool *has_lack);

#endif
