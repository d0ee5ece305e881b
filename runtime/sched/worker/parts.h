/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of a worker: frames of nested waits, theft, exploration, slow devices, kinds of
 * tasks. */
#ifndef FL_SCHED_WORKER_PARTS_H
#define FL_SCHED_WORKER_PARTS_H

#include "sched/worker/item.h"
#include "sync/deque.h"

/* Attention mask of a worker: what its step looks at beside work. */
enum {
    FL_DUTY_POLL_EVENTS = 1, /* polls the host's events (host_events.h) */
    FL_DUTY_WITHDRAWN = 2,   /* the host has taken the device offline */
    FL_DUTY_LEFT = 4,        /* the device is offline by its description */
    FL_DUTY_OFFLINE = FL_DUTY_WITHDRAWN | FL_DUTY_LEFT
};

/* Divisible tasks that a worker has begun and not ended, at a time; further tasks run in one call.
 */
#define FL_DIVISIONS 4

/* An item that waits for nested work; one a level of nesting. */
typedef struct fl_frame {
    fl_item item;
    const filch_job *goal; /* the job that the item waits for */
    struct fl_frame *outer;
    uint32_t depth;            /* 1: outermost */
    int64_t floors[FL_LEVELS]; /* ends of the worker's deques when the wait began */
} fl_frame;

/* Depth from which a wait takes only work of its own job, of jobs that its job stands behind
 * (nested_wait.h), and work that its worker has already: every further item may wait in turn, and
 * the stack is finite. */
#define FL_DEEP_WAIT 16

/* A victim that was not robbed because by prediction it ends its work before the thief would. */
typedef struct fl_watch {
    uint32_t victim;
    uint64_t steps; /* the victim's count of steps at `since` */
    uint64_t since; /* ns; 0: no watch */
} fl_watch;

/* Exploration of a device that steal throttling keeps from tasks (explore.h). */
typedef struct fl_explore {
    double best;          /* least value that item_ns ever had; 0: none yet */
    uint64_t at;          /* end of the last timed task, ns */
    uint64_t next, after; /* time of the next exploration; time between the last and the next, ns */
    uint32_t count;       /* tasks timed, up to the number of a mean */
    bool is_on;           /* the next timed task is an exploration's */
    bool is_suspected;    /* the last task was far faster than the mean; one task proves nothing */
} fl_explore;

/* Whether a device with its own memory is slow, or weakly linked (slow.h). */
typedef struct fl_slow {
    _Atomic uint32_t is_on;
    bool is_far;    /* no device's memory is linked to this device, while two others are linked */
    uint32_t alike; /* timed tasks in a row that say "not slow", up to a bound */
    /* Time of the last task over its time on the fastest device: bits of a double, written by the
     * worker; and that ratio by the scores. Relaxed: an estimate. */
    _Atomic uint64_t times;
    double by_score;
    _Atomic uint32_t given; /* claimed tasks from slow devices that are not begun; an estimate */
} fl_slow;

/* Victims to look at first, and where to go on, when devices are many (victims.h). */
#define FL_KNOWN 8
typedef struct fl_victim_order {
    uint32_t at; /* positions behind the worker's own that were looked at in turn */
    uint32_t known_count, known_next;
    uint32_t known[FL_KNOWN];
} fl_victim_order;

/* Kinds of tasks whose mean times a core's worker remembers. */
#define FL_KIND_SLOTS 8u
#define FL_KIND_SHIFT 29 /* leaves a number below 8 of 32 bits */

typedef struct fl_kind {
    const filch_codelet *codelet; /* a name, never followed */
    uint64_t mean;                /* bits of a double, ns */
} fl_kind;

#endif
