/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of one device, as data: a state machine that never blocks. Drivers (driver.h) call its
 * step (step.h) from a pinned thread, from filch_runtime_poll, or under a virtual clock. */
#ifndef FL_SCHED_WORKER_WORKER_H
#define FL_SCHED_WORKER_WORKER_H

#include "backend/backend.h"
#include "observe/trace.h"
#include "sched/worker/job_part.h"
#include "sched/worker/operands.h"
#include "sched/worker/parts.h"

typedef struct fl_sched fl_sched;

/* Result of a step. */
typedef enum fl_act {
    FL_ACT_RUN,  /* synchronous device: the driver runs worker->now.item, then steps again */
    FL_ACT_MORE, /* progress was made: step again */
    FL_ACT_WAIT  /* nothing to do until worker->idle.wake_at, or until notified */
} fl_act;

typedef struct fl_worker {
    fl_worker_queues queues;
    fl_ledger ledger;
    fl_worker_signals signals;
    /* Constant. A line apart, as all threads read it. */
    _Alignas(64) fl_sched *sched;
    fl_device *device;
    uint32_t index;
    /* The owner's from here on. */
    _Alignas(64) fl_worker_ready ready;
    fl_worker_now now;
    fl_worker_pipeline pipeline;
    fl_offload *offload; /* null where all devices share the host's memory */
    fl_worker_stall stall;
    fl_worker_idle idle;
    fl_worker_theft theft;
    fl_worker_backup backup;
    fl_worker_call call;
} fl_worker;

/* Tasks and grains retired for the current job. Any thread; for others than the owner a recent
 * count. */
static inline int64_t fl_worker_retired(const fl_worker *w)
{
    return fl_load_relaxed(&w->now.retired); /* relaxed: a statistic for others than the owner */
}

/* Counts n tasks or grains as retired for the current job. Owner only. */
static inline void fl_worker_add_retired(fl_worker *w, int64_t n)
{
    fl_store_relaxed(&w->now.retired, fl_worker_retired(w) + n); /* relaxed: as above */
}

filch_status fl_worker_init(fl_worker *worker, fl_sched *sched, fl_device *device, uint32_t index);
void fl_worker_fini(fl_worker *worker);

#endif
