/* SPDX-License-Identifier: Apache-2.0 */
/* Breakdown of a device's time within a job. account.c keeps the account; report.c fills the
 * report. */
#ifndef FL_SCHED_ACCOUNT_ACCOUNT_H
#define FL_SCHED_ACCOUNT_ACCOUNT_H

#include "sched/account/ledger.h"
#include "sched/account/preempt.h"
#include "sched/worker/sched.h"

/* Values of filch_job.accounted. */
enum { FL_ACCOUNT_NONE, FL_ACCOUNT_BEGUN, FL_ACCOUNT_ENDED };

/* Parts of a job's time on a device, ns. starved, held, unshared, tail, own and other add up to the
 * job's time. */
typedef struct fl_time_parts {
    uint64_t starved, held, unshared, tail;
    uint64_t own;   /* time on the job */
    uint64_t other; /* time on other jobs */
    uint64_t gap;   /* cost of a dispatch; not a part of the sum */
    uint64_t refused[FL_REFUSALS];
} fl_time_parts;

/* Measures the parts of a job's time from the beginning up to `end`; the job has begun. last: time
 * at which the job's last item was taken. */
void fl_account_measure(const fl_sched *sched, const filch_job *job, uint32_t device, uint64_t end,
                        uint64_t last, fl_time_parts *parts);

/* The job begins, or has ended: notes what the workers are at. */
void fl_account_begin(fl_sched *sched, filch_job *job);
void fl_account_end(fl_sched *sched, filch_job *job);
/* The current job's timed item is about to retire. */
void fl_account_timed(fl_worker *worker, const fl_item *item);
/* An item that was not timed failed. ns: its predicted duration; 0: unknown. */
void fl_account_spoiled(fl_worker *worker, const fl_item *item, double ns);
/* All items in flight are lost with their device. */
void fl_account_lost(fl_worker *worker);
/* Shows a timed item in the trace, while one records. */
void fl_account_record(const fl_worker *worker, const fl_item *item, const filch_codelet *codelet);
/* An item was put on the device. */
void fl_account_launched(fl_worker *worker, const fl_in_flight *flight);
/* Estimated duration, ns, of an item in flight that is past and was not timed. */
uint64_t fl_account_guess(const fl_worker *worker, const fl_in_flight *flight);
/* Sets own and fair of an item that a poll has just found past. Both are the whole duration of a
 * task, as tasks are timed by samples. */
void fl_account_divide(fl_worker *worker, fl_item *item);
/* An item in flight is about to retire. */
void fl_account_land(fl_worker *worker, const fl_in_flight *flight);
/* The worker leaves the current job at time t: counts worker->now.retired items. */
void fl_account_flush(fl_worker *worker, uint64_t t);
/* The current job waits for data or memory from now on, or not. */
void fl_account_wait(fl_worker *worker, bool waits);
/* The worker has nothing to do: worker->idle.ready_at says why. */
void fl_account_idle(fl_worker *worker);
/* The dispatch that was being measured is over; counts: it was one. */
void fl_account_end_gap(fl_worker *worker, bool counts);
/* fl_scheduler's job_report (report.c). */
void fl_account_report(fl_scheduler *self, const filch_job *job, filch_report *report,
                       filch_losses *devices, size_t device_bytes, uint32_t count);
/* fl_scheduler's job_stats (report.c). */
void fl_account_stats(fl_scheduler *self, const filch_job *job, filch_job_info *info, void *devices,
                      size_t device_bytes, uint32_t count);

#endif
