/* SPDX-License-Identifier: Apache-2.0 */
/* The shared ready queue as data (execute/shared_queue.h), and the timelines of the devices that
 * share the queue (model/timeline.h). Members are guarded by the queue's lock, except as noted. */
#ifndef FL_SCHED_WORKER_TIMELINE_H
#define FL_SCHED_WORKER_TIMELINE_H

#include "sched/worker/sched.h"
#include "sync/ranked.h"

/* Largest number of tasks in flight on a device that the timeline tells apart. */
#define FL_TIMELINE_TASKS 32u

/* Predicted ends of a task that a device took. */
typedef struct fl_timeline_end {
    uint64_t end;     /* end of the task */
    uint64_t follows; /* end of the longest chain of successors, on the fastest device */
} fl_timeline_end;

/* Timeline of one device. */
typedef struct fl_timeline {
    fl_timeline_end due[FL_TIMELINE_TASKS]; /* tasks taken and not retired, by ascending ends */
    uint32_t count;
    uint32_t others;   /* items in flight at the last question that did not come from the queue */
    bool has_left_all; /* the last choice left the queue's tasks to other devices */
    uint32_t seen;     /* with has_left_all: number of tasks that the choice left */
    bool is_gone;      /* the device failed, and the failure is noted */
    /* Time at which another device left a task to this free device and woke the worker; 0: no call.
     * Until the worker asks, the time since the call counts as the predicted wait. */
    uint64_t called_at;
    uint64_t called_for; /* value of the queue's `changes` at the call */
    /* During a choice: time until the device is free, expected tasks included, ns. */
    double rest;
    double speed;     /* during a choice: 1 / ns of the first task; 0: the device takes no task */
    uint64_t look_at; /* time to look at tasks left to others, ns; FL_TIME_NEVER: when woken */
} fl_timeline;

struct fl_shared_queue {
    /* Relaxed: estimates. */
    _Atomic uint32_t is_unlike; /* devices differ in speed, by the last measurements */
    _Atomic uint32_t alike;     /* number of timed tasks in a row that found devices alike */
    _Atomic uint32_t is_hasty;  /* tasks are too short for weighing */
    _Alignas(64) fl_mutex lock; /* a line apart: every task reads the members before, which change
                                   seldom */
    fl_ranked_lists tasks;
    uint64_t changes;                /* number of tasks ever put or taken */
    uint64_t waiting[FL_IDLE_WORDS]; /* workers that found no task since the last wake-up */
    fl_timeline timelines[];         /* one a device */
};

#endif
