/* SPDX-License-Identifier: Apache-2.0 */
/* Present abilities of a worker's device: runs a task, computes by itself, is online. */
#ifndef FL_SCHED_WORKER_DEVICE_H
#define FL_SCHED_WORKER_DEVICE_H

#include "graph/build/capacity.h"
#include "sched/worker/sched.h"

static inline const fl_core *fl_worker_core(const fl_worker *w)
{
    return w->sched->core;
}

/* Whether the device failed. Relaxed: a thread that reads an old value leaves work where the failed
 * worker's step finds it. */
static inline bool fl_worker_has_failed(const fl_worker *w)
{
    return fl_load_relaxed(&w->signals.has_failed) != 0;
}

/* Whether the device is offline now. Relaxed: as in fl_worker_has_failed. */
static inline bool fl_worker_is_offline(const fl_worker *w)
{
    return (fl_load_relaxed(&w->signals.duties) & FL_DUTY_OFFLINE) != 0;
}

/* Whether the device starts nothing: failed or offline. */
static inline bool fl_worker_is_unavailable(const fl_worker *w)
{
    return fl_worker_has_failed(w) || fl_worker_is_offline(w);
}

/* Whether the device can run the task, and has capacity for it. A gate runs anywhere. */
static inline bool fl_worker_can_run(const fl_worker *w, const fl_task *task)
{
    return task->is_gate || (fl_codelet_runs_on(task->codelet, w->index) &&
                             (FL_LIKELY(!task->is_large) ||
                              fl_capacity_has_room(fl_worker_core(w), task, w->index)));
}

/* Whether an item waits until other items give memory back. */
static inline bool fl_worker_is_stalled(const fl_worker *w)
{
    return w->stall.stalled.state == FL_ITEM_STALLED;
}

/* Whether the device computes by itself: on lanes beside its worker, in its own memory. */
static inline bool fl_device_computes(const fl_device *device)
{
    return device->backend->lane != NULL;
}

static inline bool fl_worker_computes(const fl_worker *w)
{
    return fl_device_computes(w->device);
}

/* Marks the lanes: the ends of the items launched so far are seen early, not together with the ends
 * of later items. A later wait marks again, and reports an error. */
static inline void fl_worker_mark(const fl_worker *w)
{
    if (w->pipeline.computing != 0 && fl_worker_computes(w)) {
        (void)w->device->backend->lane->mark(w->device, NULL);
    }
}

/* Recent mean time of a task on the device, ns; 0: no task was timed yet. Relaxed: written by the
 * worker, an estimate for others. */
static inline double fl_worker_mean_ns(const fl_worker *w)
{
    return fl_bits_double(fl_load_relaxed(&w->queues.item_ns));
}

/* Cost of a dispatch on the device, ns. */
static inline double fl_worker_dispatch_ns(const fl_worker *w)
{
    return (double)(w->device->overhead_ns != 0 ? w->device->overhead_ns : 500);
}

/* The device as the replicas expect it: null for the host's memory. */
static inline fl_device *fl_worker_carrier(const fl_worker *w)
{
    return w->device->place != 0 ? w->device : NULL;
}

/* Tells whether the worker's device is slow or weakly linked (decide/slow.h). Relaxed: a guess for
 * other workers; set by the worker, or before the first job. */
static inline bool fl_slow_is_on(const fl_worker *w)
{
    return fl_load_relaxed(&w->theft.slow.is_on) != 0;
}

/* Ring to record events in, or null. It lives as long as the runtime, so a copy of the pointer is
 * good after recording was stopped. Acquire: the ring was set up before it was published. */
static inline fl_trace_ring *fl_trace_of(const fl_worker *w)
{
    return fl_load_acquire(&w->call.trace);
}

#endif
