/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the board (shared_queue.h): its lists (sync/ranked.h), and what each device is thought to
 * be at, by which it is found who takes what (eft.c). All of it is under board->lock but where
 * said. */
#ifndef FL_SCHED_WORKER_TIMELINE_H
#define FL_SCHED_WORKER_TIMELINE_H

#include "sched/worker/sched.h"
#include "sync/ranked.h"

/* Tasks in flight on one device that are told apart. */
#define FL_TIMELINE_TASKS 32u

/* A task that a device took, by prediction. */
typedef struct fl_timeline_end {
    uint64_t end;     /* of the task */
    uint64_t follows; /* of what follows from it, on the fastest device */
} fl_timeline_end;

/* One device. */
typedef struct fl_timeline {
    fl_timeline_end
        due[FL_TIMELINE_TASKS]; /* what it took and has not retired, by ascending ends */
    uint32_t count;
    uint32_t others; /* in flight there when it asked last, of which the board knows nothing */
    /* It found nothing since it was woken last: it is told of what is put there. */
    bool is_held;  /* as what was there was not for it … */
    uint32_t seen; /* … so many tasks */
    bool is_gone;  /* lost, and noted as such */
    /* Another device left it a task although it was free: at this time (0: no), when the board had
     * changed so often. It is woken then. While it does not ask, it is taken to be as long from
     * free as it has not come. */
    uint64_t called_at, called_for;
    /* While one chooses: ns until it is free, with what it is thought to take. */
    double rest;
    double speed;     /* the same: of the most urgent task, a ns and lane; 0: it is out of it */
    uint64_t look_at; /* the worker's: since the last pick, or never */
} fl_timeline;

struct fl_shared_queue {
    _Atomic uint32_t is_unlike; /* devices are, by what was measured last; relaxed: an estimate */
    _Atomic uint32_t alike;     /* so many tasks in a row said that they are not; relaxed */
    _Atomic uint32_t is_hasty;  /* tasks are too short to be weighed; relaxed: an estimate */
    _Alignas(64) fl_mutex lock; /* what is above is read for each task, and changes seldom */
    fl_ranked_lists tasks;
    uint64_t changes;                /* tasks ever put there or taken */
    uint64_t waiting[FL_IDLE_WORDS]; /* who found nothing since they were woken last */
    fl_timeline timelines[];
};

#endif
