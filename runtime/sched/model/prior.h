/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of earlier runs, from and to a file. */
#ifndef FL_SCHED_MODEL_PRIOR_H
#define FL_SCHED_MODEL_PRIOR_H

#include "sched/worker/sched.h"
#include "sched/worker/speed_record.h"

/* Speeds of earlier runs of a new codelet become its priors. Any thread. */
void fl_prior_set(fl_sched *sched, filch_codelet *codelet);
/* The largest number of records that fl_prior_collect gives. Under the core's lock. */
size_t fl_prior_most(const fl_sched *sched);
/* Collects the estimates worth saving of every codelet. Returns the number of records. Under the
 * core's lock. */
size_t fl_prior_collect(const fl_sched *sched, fl_record *records);

#endif
