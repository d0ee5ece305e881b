/* SPDX-License-Identifier: Apache-2.0 */
/* Best speeds that devices have shown, for the breakdown of a job's time (account/rated.h). */
#ifndef FL_SCHED_MODEL_PROVEN_H
#define FL_SCHED_MODEL_PROVEN_H

#include "sched/worker/sched.h"

/* Notes the device's best speed after the worker timed an item of the current job. */
void fl_proven_note(fl_worker *worker, const filch_codelet *codelet, double work);
/* Notes the best speeds of all devices at the end of the job. */
void fl_proven_end(const fl_sched *sched, const filch_job *job);

#endif
