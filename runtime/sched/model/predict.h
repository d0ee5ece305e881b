/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted time and work of codelets and of parts of batches. */
#ifndef FL_SCHED_MODEL_PREDICT_H
#define FL_SCHED_MODEL_PREDICT_H

#include "sched/worker/sched.h"

/* Declared work of grains [lo, hi) of a batch. */
double fl_batch_work(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t hi);
/* Notes what the current job's chunk, which is over, tells of the items after it. */
void fl_batch_learn(const fl_worker *worker, const fl_item *item);
/* Work of positions [lo, hi) of a range of a batch, on the worker's device. */
double fl_pieces_work(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t hi);

/* Functions of fl_scheduler (graph/scheduler.h). */
void fl_predict_init(fl_scheduler *self, filch_codelet *codelet);
double fl_predict_estimate(fl_scheduler *self, const filch_codelet *codelet, double work);
double fl_predict_least_ns(fl_scheduler *self, const filch_codelet *codelet);

#endif
