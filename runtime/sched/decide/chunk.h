/* SPDX-License-Identifier: Apache-2.0 */
/* Chunk size: how many grains of a range a worker takes at once. */
#ifndef FL_SCHED_DECIDE_CHUNK_H
#define FL_SCHED_DECIDE_CHUNK_H

#include "sched/worker/sched.h"

/* Grains of the next chunk of the device's share of a batch; `rest` grains from lo are left. 0: no
 * chunk while a different item is in flight. */
uint32_t fl_chunk_size(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t rest);
/* Grains of a chunk where a policy cuts the batch, and does not say: an equal part. */
uint32_t fl_chunk_equal(const fl_sched *sched, const filch_job *job);
/* Grains, at most `want`, of which several chunks fit into the memory of the worker's device. */
uint32_t fl_chunk_fit(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t want);
/* Whether the worker may cut from a range of the job that ends at hi; *floor: the first position
 * from which the device can run everything. */
bool fl_range_is_open(const fl_worker *worker, const filch_job *job, uint32_t hi, uint32_t *floor);

#endif
