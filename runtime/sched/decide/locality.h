/* SPDX-License-Identifier: Apache-2.0 */
/* The locality window: which ready task needs least to be brought, and what to fetch ahead. In use
 * where tiles have to be brought, or memory is short. */
#ifndef FL_SCHED_DECIDE_LOCALITY_H
#define FL_SCHED_DECIDE_LOCALITY_H

#include "sched/worker/operands.h"
#include "sched/worker/worker.h"

/* A task is about to be put on the device: looks whether an operand is missing. True: the worker is
 * to choose among tasks, because tiles have to be brought, or memory is short. */
bool fl_locality_expect(fl_worker *worker, const fl_task *task);
/* Whether a device with its own memory has ended nothing yet, and nothing was missing. */
bool fl_locality_is_new(const fl_worker *worker);
/* Whether a task that the worker made ready stays with the worker, which chooses by what is on its
 * device: an operand would have to be brought, or memory is short. */
bool fl_locality_keeps(const fl_worker *worker, const fl_task *task);
/* An item was put on the device: looks whether a tile was evicted. */
void fl_locality_note(fl_worker *worker);
/* Moves ready tasks into the window, in part, where the worker is to choose. True: the next task is
 * one of the window. */
bool fl_locality_gather(fl_worker *worker);
/* Whether every task of the window lacks an operand while every lane has an item to run. */
bool fl_locality_waits(fl_worker *worker);
/* Gives tasks of the window away that devices out of work may take. */
void fl_locality_share(fl_worker *worker);
/* Task of the window whose missing operands are to be fetched ahead now. Null: none. */
fl_local_task *fl_locality_to_fetch(fl_worker *worker);
/* Roots that the worker takes at once from `rest` in a range. The worker adds the roots beyond the
 * first, then takes one from the window. */
uint32_t fl_locality_room(const fl_worker *worker, uint32_t rest);
void fl_locality_add(fl_worker *worker, fl_task *task);
void fl_locality_take(fl_worker *worker, fl_item *item);

#endif
