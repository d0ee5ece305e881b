/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a device's time in a job, between account.c, which keeps account, and report.c. */
#ifndef FL_SCHED_ACCOUNT_ACCOUNT_H
#define FL_SCHED_ACCOUNT_ACCOUNT_H

#include "sched/worker/sched.h"

/* Of filch_job.accounted. */
enum { FL_ACCOUNT_NONE, FL_ACCOUNT_BEGUN, FL_ACCOUNT_ENDED };

/* Nanoseconds that add up to the job's. */
typedef struct fl_parts {
    uint64_t starved, held, unshared, tail;
    uint64_t own;   /* on this job */
    uint64_t other; /* on others */
    uint64_t gap;   /* no part: what a dispatch costs */
    uint64_t refused[FL_REFUSALS];
} fl_parts;

/* Of a job that has begun, up to `end`; last: when its last tile was taken. */
void fl_account_measure(const fl_sched *sched, const filch_job *job, uint32_t device, uint64_t end,
                        uint64_t last, fl_parts *parts);

#endif
