/* SPDX-License-Identifier: Apache-2.0 */
/* Which other devices could run work of a worker's device: for tasks, hints and batches. The only
 * definition. */
#ifndef FL_SCHED_WORKER_OTHERS_H
#define FL_SCHED_WORKER_OTHERS_H

#include "sched/worker/device.h"
#include "sched/worker/sched.h"

/* State of a device that may take work over. */
typedef enum fl_others {
    FL_OTHERS_ONLINE,  /* starts work now */
    FL_OTHERS_OFFLINE, /* withdrawn: may return */
    FL_OTHERS_FAILED,  /* fails tasks */
    FL_OTHERS_GOOD,    /* online or offline */
    FL_OTHERS_PRESENT  /* online or failed: a rest is cut for them all */
} fl_others;

/* Whether `other` is a device of the state, and not the worker's own. Null worker: any device. */
static inline bool fl_other_is(const fl_worker *w, const fl_worker *other, fl_others state)
{
    if (state != FL_OTHERS_PRESENT && fl_worker_has_failed(other) != (state == FL_OTHERS_FAILED)) {
        return false;
    }
    return other != w && (state == FL_OTHERS_FAILED || state == FL_OTHERS_GOOD ||
                          fl_worker_is_offline(other) == (state == FL_OTHERS_OFFLINE));
}

/* Whether the device may run the task of a live hint. Only the number of the task's set of devices
 * may be read; a stale hint may lead to an arbitrary number. Where the numbers of device sets ran
 * out, the task is left to the owner. */
static inline bool fl_hint_is_for(const fl_worker *w, uint64_t hint)
{
    /* Acquire: the set is visible with the number. */
    uint8_t able = fl_load_acquire(&fl_hint_task(hint)->able);
    return able == FL_ABLE_ALL || (able != FL_ABLE_UNKNOWN &&
                                   (w->sched->able[able][w->index / 64] >> w->index % 64 & 1) != 0);
}

/* Whether `other` could run the task in place of the worker's device. */
static inline bool fl_other_can(const fl_worker *w, const fl_worker *other, const fl_task *task,
                                fl_others state)
{
    return fl_other_is(w, other, state) && fl_worker_can_run(other, task);
}

/* A further condition on a device; null: none. */
typedef bool (*fl_may_take_fn)(const fl_worker *worker, const fl_worker *other,
                               const fl_task *task);

/* Finds a device other than the worker's (null worker: any device) for a task of the caller's, in
 * turn from the device `first` on. Null: none. */
fl_worker *fl_other_for(const fl_sched *sched, const fl_worker *worker, const fl_task *task,
                        fl_others state, uint64_t first, fl_may_take_fn may);
/* Whether another device can run the task of a live hint. */
bool fl_others_can_hint(const fl_worker *worker, uint64_t hint, fl_others state);
/* Whether another device of the state may still run grains of the batch, and had capacity for its
 * grains. False under FILCH_POLICY_STATIC. */
bool fl_others_can_batch(const fl_worker *worker, const filch_job *job, fl_others state);

/* Whether the worker left its range of the job to others, and one of them can take it. */
static inline bool fl_share_is_left(const fl_worker *w, const filch_job *job)
{
    return FL_UNLIKELY(fl_load_relaxed(&fl_job_share(job, w->index)->is_out) != 0) &&
           fl_others_can_batch(w, job, FL_OTHERS_GOOD);
}

#endif
