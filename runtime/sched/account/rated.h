/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a job's devices by codelet, for codelets declaring work, and the best speed of every
 * device ever seen for the codelet. A task without declared work may have an arbitrary length, so
 * no best time is known for the task. */
#ifndef FL_SCHED_ACCOUNT_RATED_H
#define FL_SCHED_ACCOUNT_RATED_H

#include "sched/worker/sched.h"

/* Counts a successful work item of the current job. For the device's worker; takes a few
 * nanoseconds. */
void fl_rated_count(fl_worker *worker, const filch_codelet *codelet, double work);

/* Total work of a job's devices for a single codelet. */
typedef struct fl_rated_sum {
    uint64_t tiles;
    double work;
} fl_rated_sum;

/* Returns the number of the job's codelets found so far, at most FL_RATED. Thread-safe. */
uint32_t fl_rated_kinds(const filch_job *job);
fl_rated_sum fl_rated_total(const fl_sched *sched, const filch_job *job, uint32_t kind);
/* Returns the device's best time for the items and the work in `done`; 0: unknown, or the device
 * cannot run the codelet. Thread-safe. While the job runs, only devices with completed items of the
 * codelet have a best time. The function reads noted figures, so the figures of a complete job
 * never change. */
double fl_rated_best(const fl_sched *sched, const filch_job *job, uint32_t kind, uint32_t device,
                     fl_rated_sum done);

#endif
