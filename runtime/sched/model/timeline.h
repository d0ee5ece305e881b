/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines of the devices that share a ready queue: the tasks that each device took, and when the
 * device is free again. Under the queue's lock, except fl_timeline_lanes and fl_timeline_in_flight.
 */
#ifndef FL_SCHED_MODEL_TIMELINE_H
#define FL_SCHED_MODEL_TIMELINE_H

#include "sched/worker/timeline.h"

static inline fl_timeline *fl_timeline_of(const fl_worker *w)
{
    return &w->sched->shared_queue->timelines[w->index];
}

/* Tasks that a device computes at once. */
static inline uint32_t fl_timeline_lanes(const fl_worker *w)
{
    uint32_t lanes = w->device->is_synchronous ? 1 : w->device->lanes;
    return lanes != 0 ? lanes : 1;
}

/* The worker's: tasks that keep its device from others. */
static inline uint32_t fl_timeline_in_flight(const fl_worker *w)
{
    return w->pipeline.in_flight - w->pipeline.writing_back_count;
}

/* --- Tasks that a device took --- */

/* The worker asks for a task, and tells what is in flight. */
void fl_timeline_update(fl_worker *worker);
/* The worker has the task from now on. */
void fl_timeline_take(fl_worker *worker, uint64_t t, const fl_task *task);
/* Another device leaves a task to a device. True: the device is free, and was not called since the
 * queue changed. */
bool fl_timeline_call(const fl_sched *sched, uint32_t device, uint64_t t);

/* --- Predictions of one choice --- */

/* Surveys every device: time until free, and speed at the task. Unmeasured devices count only for
 * an asker that is unmeasured, too. */
void fl_timeline_survey(const fl_worker *asker, uint64_t t, const fl_task *task);
/* No device begins a task before the asker's tasks in flight are over. */
void fl_timeline_follow(const fl_worker *asker, uint64_t t);
/* Returns the device with the earliest finish time of the task; UINT32_MAX: no device can run the
 * task. *ns: time for which the task keeps the device. */
uint32_t fl_timeline_first(const fl_sched *sched, const fl_task *task, double *ns);
/* The device is expected to take a task, and to be free later by ns. */
void fl_timeline_expect(const fl_sched *sched, uint32_t device, double ns);
/* Time of the task on the device that is fastest at the task, ns. */
double fl_timeline_least(const fl_sched *sched, const fl_task *task);

/* Remaining work of the graph. */
typedef struct fl_outlay {
    double speed;   /* speed of the fastest device */
    double all;     /* sum of the devices' speeds, in fastest devices */
    double in_work; /* ns that the fastest device would need for the tasks in flight */
    double longest; /* ns until the last successor of the tasks in flight is over */
} fl_outlay;

fl_outlay fl_timeline_sum(const fl_sched *sched, uint64_t t);

#endif
