/* SPDX-License-Identifier: Apache-2.0 */
/* Takes from ranges of grains and roots. */
#ifndef FL_SCHED_EXECUTE_PICK_H
#define FL_SCHED_EXECUTE_PICK_H

#include "sched/worker/worker.h"

/* Takes an item from the worker's own share of a range of any active job; of batches only with
 * may_begin. False: none. */
bool fl_pick_range(fl_worker *worker, bool may_begin, fl_item *item);
/* Takes an item from the ranges of a job that the caller keeps alive: from the worker's own share,
 * else from another worker's. False: none. */
bool fl_pick_goal(fl_worker *worker, filch_job *job, fl_item *item);
/* Takes a part without gaps from the worker's part of a batch, for every kind of cut. */
bool fl_pieces_take_any(const fl_worker *worker, filch_job *job, uint32_t *lo, uint32_t *hi);
/* Gives back a chunk, the last chunk taken from the worker's part. False: impossible. */
bool fl_pieces_return(const fl_worker *worker, const fl_item *item);
/* Rest of the worker's part, in units of the range. */
uint32_t fl_pieces_rest(const fl_worker *worker, const filch_job *job);

#endif
