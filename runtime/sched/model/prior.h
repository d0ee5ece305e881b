/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of earlier runs, from and to a file. */
#ifndef FL_SCHED_MODEL_PRIOR_H
#define FL_SCHED_MODEL_PRIOR_H

#include "sched/worker/sched.h"

/* Speeds of earlier runs of a new codelet become its priors. Any thread. */
void fl_prior_set(fl_sched *sched, filch_codelet *codelet);
/* Saves the speeds of this run; statuses as filch_runtime_save_speeds. Any thread. */
filch_status fl_prior_save(fl_sched *sched, filch_error *error);

#endif
