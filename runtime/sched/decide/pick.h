/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker takes next from ranges of grains and roots, and how many at once. */
#ifndef FL_SCHED_DECIDE_PICK_H
#define FL_SCHED_DECIDE_PICK_H

#include "sched/worker/worker.h"

/* Takes a task that the worker has claimed before. False: none. */
bool fl_pick_claimed(fl_worker *worker, fl_item *item);
/* Takes an item from the worker's own share of a range of any active job. False: none. */
bool fl_pick_range(fl_worker *worker, fl_item *item);
/* Takes an item from the ranges of a job that the caller keeps alive: from the worker's own share,
 * else from another worker's. False: none. */
bool fl_pick_goal(fl_worker *worker, filch_job *job, fl_item *item);
/* Sets the worker's hazard pointer to the job in a slot. Null: the slot is empty. */
filch_job *fl_worker_visit(fl_worker *worker, uint32_t slot);
/* Clears the hazard pointer. */
void fl_worker_leave(fl_worker *worker);
/* Declared work of grains [lo, hi) of a batch. */
double fl_batch_work(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t hi);
/* Predicted ns per unit of work of a batch on a device where it works now; 0: unknown. */
double fl_batch_ns(const fl_sched *sched, const filch_job *job, uint32_t device);
/* Notes what the current job's chunk, which is over, tells of the items after it. */
void fl_batch_learn(const fl_worker *worker, const fl_item *item);
/* Predicted ns per unit of work of a codelet on a device: measured, or guessed by the scores from a
 * measurement on another device; 0: unknown. */
double fl_sched_ns(const fl_sched *sched, const filch_codelet *codelet, uint32_t device);
/* Whether the worker may cut from a range of the job that ends at hi; *floor: the first position
 * from which the device can run everything. */
bool fl_range_is_open(const fl_worker *worker, const filch_job *job, uint32_t hi, uint32_t *floor);
/* Grains, at most `want`, of which several chunks fit into the memory of the worker's device. */
uint32_t fl_chunk_fit(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t want);

#endif
