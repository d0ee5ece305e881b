/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of one device: a state machine that never blocks. Drivers (driver.c) call its step
 * from a pinned thread, from filch_poll, or under a virtual clock. */
#ifndef FL_SCHED_WORKER_H
#define FL_SCHED_WORKER_H

#include "backend/backend.h"
#include "graph/job.h"
#include "observe/trace.h"
#include "sched/deque.h"
#include "sched/event.h"
#include "sched/inbox.h"
#include "sched/share.h"
#include "sched/speed.h"

#define FL_WINDOW_MOST 16
#define FL_MOST_VIEWS 256

typedef struct fl_sched fl_sched;

/* What a worker runs at once. */
typedef struct fl_tile {
    filch_job *job;
    fl_task *task;   /* null: a chunk of a batch */
    uint32_t lo, hi; /* grains of the chunk */
    bool skip;       /* poisoned, or the job is cancelled: retire without running */
    bool timed;
    int code;       /* what the host function returned */
    double work;    /* declared units, when timed */
    uint64_t start; /* when timed */
    uint64_t ns;    /* how long it took, when timed */
} fl_tile;

/* Tiles that wait for nested work to finish: one a level of nesting. */
typedef struct fl_frame {
    fl_tile tile;
    const filch_job *goal; /* what the tile waits for */
    struct fl_frame *outer;
    uint32_t depth;            /* 1: outermost */
    int64_t floors[FL_LEVELS]; /* the worker's deques end here when the wait begins */
} fl_frame;

/* Waits nested deeper than this take only work that their own job needs, or that the worker has
 * already: each other tile may wait in turn, and the stack is finite. */
#define FL_DEEP_WAIT 16

/* A victim from which nothing was taken, since it would be done first by the predictions. */
typedef struct fl_watch {
    uint32_t victim;
    uint64_t steps; /* it had made … */
    uint64_t since; /* … at this time; 0: no watch */
} fl_watch;

typedef enum fl_act {
    FL_ACT_RUN,  /* synchronous device: worker->tile is to be run by the driver, then step again */
    FL_ACT_MORE, /* something was done: step again */
    FL_ACT_WAIT  /* nothing until worker->wake_at, or until notified */
} fl_act;

typedef struct fl_worker {
    /* Read by thieves and releasers. */
    fl_deque levels[FL_LEVELS];
    _Alignas(64) _Atomic uint32_t level_mask; /* levels that may hold entries; the owner's */
    _Atomic uint64_t tile_ns; /* bits of a double: recent mean of a task; 0 unknown */
    _Atomic uint64_t steps;   /* ever made; relaxed: tells a busy worker from a stuck one */
    fl_inbox inbox;
    fl_mailbox mailbox;
    _Alignas(64) _Atomic(filch_job *) hazard;
    fl_event event;
    _Atomic uint32_t held; /* poll mode: a thread runs this worker */

    /* The owner's. */
    _Alignas(64) fl_sched *sched;
    fl_device *device;
    uint32_t index;
    uint32_t queued; /* entries pushed less entries popped: at least what the deques hold */
    uint32_t mask;   /* copy of level_mask */
    bool pushed;     /* entries were made available since idle workers were last looked for */
    bool in_step;
    fl_task *bypass;  /* ready, known to nobody else, to be run next */
    fl_task *adopted; /* claimed by a theft, to be run next */
    bool adopted_poisoned;
    const filch_graph *graph; /* whose job is current */
    filch_job *job; /* whose retired tiles are counted in retired; current for busy time */
    fl_share *share;
    int64_t retired;
    uint64_t busy_since;
    bool has_tile;
    fl_tile tile; /* synchronous: the one running */
    fl_frame *frames;
    fl_tile window[FL_WINDOW_MOST]; /* asynchronous: in flight, oldest first */
    uint32_t in_flight, oldest;
    uint64_t wake_at;
    uint64_t idle_since;  /* 0: not idle */
    uint64_t ready_at;    /* when a refused theft would pay; FL_TIME_NEVER: not by itself */
    uint64_t nap_ns;      /* last time slept without being asked for; 0: has just worked */
    fl_watch watch;       /* one victim of the last refusals */
    fl_watch next_watch;  /* whom to watch after the theft being tried */
    filch_job *completed; /* whose last tile was counted in this step; linked by next */
    filch_view *views;    /* FL_MOST_VIEWS of them; those of the innermost running tile */
    char *scratch;
    size_t scratch_bytes;
    _Atomic(fl_trace_ring *) trace; /* null: not recording */
} fl_worker;

filch_status fl_worker_init(fl_worker *worker, fl_sched *sched, fl_device *device, uint32_t index);
void fl_worker_fini(fl_worker *worker);

/* Retires, fills the window, says what is next. Never blocks. Only the worker's driver. */
fl_act fl_worker_step(fl_worker *worker);
/* Runs worker->tile on the calling thread. */
void fl_worker_run(fl_worker *worker);
/* Retires the tile that was run, without picking another. */
void fl_worker_settle(fl_worker *worker);
/* Makes a hint to a ready task available on this worker; the owner only. */
void fl_worker_push(fl_worker *worker, fl_task *task);
/* Whether the job, or one it waits for, is what the calling task belongs to. */
bool fl_worker_is_inside(const fl_worker *worker, const filch_job *job);

/* --- Parts, in files of their own --- */

/* A tile from a span of any active job: the device's own share, in pick.c. */
bool fl_pick_span(fl_worker *worker, fl_tile *tile);
/* A tile from the spans of one job that the caller keeps alive: the device's own, else another's.
 */
bool fl_pick_goal(fl_worker *worker, filch_job *job, fl_tile *tile);
/* Takes work from another worker (steal.c); true: look again, there is some. Sets worker->ready_at.
 */
bool fl_worker_steal(fl_worker *worker);
/* Hazard pointer to the job in a slot; null when the slot is empty. */
filch_job *fl_worker_visit(fl_worker *worker, uint32_t slot);
void fl_worker_leave(fl_worker *worker);
/* Declared work of grains [lo, hi) of a batch. */
double fl_batch_work(const fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t hi);
/* ns per unit of work of a batch on a device where it works now; 0 when nothing is known. */
double fl_batch_ns(const fl_sched *sched, const filch_job *job, uint32_t device);
/* Notes what the current job's chunk, which was timed, says of the items after it. */
void fl_batch_learn(const fl_worker *worker, const fl_tile *tile);
/* ns per unit of work of a codelet on a device: measured, or guessed from another device's measure
 * and the scores; 0 when nothing is known. */
double fl_sched_ns(const fl_sched *sched, const filch_codelet *codelet, uint32_t device);
/* The ring to record in, or null. It lives as long as the runtime, so a copy may be used after
 * recording was stopped. Acquire: the ring was set up before it was published. */
static inline fl_trace_ring *fl_trace_of(const fl_worker *w)
{
    return fl_load_acquire(&w->trace);
}

/* Whether the device can run the task. A gate runs anywhere. */
static inline bool fl_worker_can_run(const fl_worker *w, const fl_task *task)
{
    return task->is_gate || (task->codelet->implementations & w->device->implementations) != 0;
}

static inline fl_speed *fl_codelet_speed(const filch_codelet *codelet, uint32_t device)
{
    return (fl_speed *)(uintptr_t)codelet->speeds + device;
}

#endif
