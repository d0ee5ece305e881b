/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the board (shared_queue.h): its lists (shared_queue.c), and what each device is thought to
 * be at, by which it is found who takes what (eft.c). All of it is under board->lock but where
 * said. */
#ifndef FL_SCHED_WORKER_TIMELINE_H
#define FL_SCHED_WORKER_TIMELINE_H

#include "sched/worker/sched.h"

/* Lists of tasks by rank: as many as a mask has bits. */
#define FL_RANKS 64u
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
    uint32_t count;
    uint64_t changes; /* tasks ever put there or taken */
    uint64_t ranks;   /* lists that are not empty */
    fl_link *first[FL_RANKS], *last[FL_RANKS];
    uint64_t waiting[FL_IDLE_WORDS]; /* who found nothing since they were woken last */
    uint64_t called[FL_IDLE_WORDS];  /* devices to be woken by the worker that has the lock */
    fl_timeline timelines[];
};

/* A place in the lists. */
typedef struct fl_spot {
    uint32_t rank;
    fl_link *before; /* null: it is the first */
    fl_link *link;   /* null: there is none */
} fl_spot;

/* The next task after the spot, from urgent ones on or from the others; a spot without a link is
 * before all. False: that was the last. */
bool fl_spot_step(const fl_shared_queue *board, fl_spot *spot, bool is_upwards);

/* Recent mean of a device's tasks; 0: it has run none. Estimates, here and below: no order. */
static inline double fl_eft_mean(const fl_worker *w)
{
    return fl_bits_double(fl_load_relaxed(&w->item_ns));
}

/* Tasks that a device computes at once. */
static inline uint32_t fl_eft_lanes(const fl_worker *w)
{
    uint32_t lanes = w->device->is_synchronous ? 1 : w->device->lanes;
    return lanes != 0 ? lanes : 1;
}

/* The worker's: tasks that keep its device from others. */
static inline uint32_t fl_eft_in_flight(const fl_worker *w)
{
    return w->in_flight - w->homing_count;
}

/* Ns of a task on a device; above 0. */
double fl_eft_ns(const fl_worker *worker, const fl_task *task);
/* Tasks in flight up to which the worker may take more. */
uint32_t fl_eft_depth(const fl_worker *worker);
/* The worker asks: what it has in flight is what it says. */
void fl_eft_arrive(fl_worker *worker);
/* A task for the worker, among those on the board; false: none as yet, and seat->look_at says when
 * to look again. */
bool fl_eft_choose(fl_worker *worker, uint64_t t, fl_spot *spot);
/* Whether the worker, behind what it has in flight, would end a task first that depends on some of
 * that. */
bool fl_eft_wins(fl_worker *worker, uint64_t t, const fl_task *task);
/* It has the task from now on. */
void fl_eft_take(fl_worker *worker, uint64_t t, const fl_task *task);

#endif
