/* SPDX-License-Identifier: Apache-2.0 */
/* Chunk size: how many grains of a range a worker takes at once. */
#ifndef FL_SCHED_DECIDE_CHUNK_H
#define FL_SCHED_DECIDE_CHUNK_H

#include "sched/model/speed.h"
#include "sched/worker/sched.h"

/* Input of the chunk rule: the rest of the range, and durations of a chunk. */
typedef struct fl_chunk_ask {
    double grains, work, ns; /* the rest: grains, work, predicted time on the device */
    double wanted;           /* ns: a part of the time until all devices have done the rest */
    double least;            /* ns: a shorter chunk consists mostly of dispatch */
    double limit;            /* ns: a longer chunk would end after the rest elsewhere */
    double most;             /* grains */
    double probes;           /* a device of unknown speed explores a part of the rest: one of so
                                many */
    double first, elsewhere; /* ns: end of one grain on the device, and of the rest elsewhere */
} fl_chunk_ask;

/* The chunk rule: grains of a chunk, at least 1. A chunk is no larger than the speed is known for.
 * 0: the other devices end the rest before the device ends one grain. */
double fl_chunk_grains(const fl_speed *speed, const fl_chunk_ask *ask);

/* Chunks for which one prediction of the end by all devices stands, as devices may be many. */
static inline uint32_t fl_chunk_asked_each(const fl_sched *sched)
{
    uint32_t some = sched->count / FL_CHUNK_DEVICES;
    return some > FL_CHUNK_ASKED_EACH ? some : FL_CHUNK_ASKED_EACH;
}

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
