/* SPDX-License-Identifier: Apache-2.0 */
/* What a job's devices did of each codelet that declares its work, and the best speed that each
 * device was ever seen at there. Tasks without declared work may be of any length: nobody knows how
 * fast one of them could have been. */
#ifndef FL_SCHED_ACCOUNT_RATED_H
#define FL_SCHED_ACCOUNT_RATED_H

#include "sched/worker/worker.h"

/* Counts a tile of the current job that succeeded. The device's worker; a few nanoseconds. */
void fl_rated_count(fl_worker *worker, const filch_codelet *codelet, double work);

/* All that the job's devices did of one codelet. */
typedef struct fl_rated_sum {
    uint64_t tiles;
    double work;
} fl_rated_sum;

/* The job's codelets so far; at most FL_RATED. Any thread. */
uint32_t fl_rated_kinds(const filch_job *job);
fl_rated_sum fl_rated_total(const fl_sched *sched, const filch_job *job, uint32_t kind);
/* The best time in which the device does tiles of so much work together; 0: not known, or it cannot
 * run them. Any thread. While the job runs only devices that did some of it have one. The figures
 * were noted, as those of a complete job stay what they are. */
double fl_rated_best(const fl_sched *sched, const filch_job *job, uint32_t kind, uint32_t device,
                     fl_rated_sum done);
/* The worker timed a tile of the current job: notes its device's best speed. */
void fl_rated_note(fl_worker *worker, const filch_codelet *codelet, double work);
/* The job has ended: notes the best speeds of all devices. */
void fl_rated_end(const fl_sched *sched, const filch_job *job);

#endif
