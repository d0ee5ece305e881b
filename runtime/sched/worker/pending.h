/* SPDX-License-Identifier: Apache-2.0 */
/* Pending tasks as data. A record belongs to one call of a host function that may return
 * FILCH_PENDING, and then to the pending task until the task retires. Records are made when needed,
 * used again, and freed with the scheduler: a stale handle always leads to a record. */
#ifndef FL_SCHED_WORKER_PENDING_H
#define FL_SCHED_WORKER_PENDING_H

#include "base/thread.h"
#include "filch/pending.h"
#include "sched/worker/parts.h"
#include "sync/ending.h"
#include "sync/inbox.h"

typedef struct fl_pending_task fl_pending_task;
struct fl_pending_task {
    _Alignas(64) fl_ending ending;
    struct fl_sched *sched; /* constant */
    fl_pending_task *next;  /* in the list of free records */
    fl_pending_task *all;   /* list of every record; constant */
    fl_link link;           /* in the inbox of tasks to retire */
    /* For threads that only look: values of the present run if the ending's serial says so. Relaxed
     * or acquire at the reader. */
    _Atomic(filch_job *) job;
    _Atomic(const filch_codelet *) codelet;
    _Atomic uint32_t order; /* of the task in its graph */
    /* The worker's until it lets the task go, then the retiring worker's. */
    uint32_t worker;   /* ran the function */
    bool is_taken;     /* the function took the handle */
    bool is_published; /* written operands are committed at the end */
    fl_item item;      /* the task */
    filch_call call;   /* the function's argument */
    filch_view *views; /* room for view_room views */
    uint32_t view_room;
    char *scratch; /* the call's scratch memory, once let go; or null */
    size_t scratch_bytes;
    uint64_t since; /* when the worker let the task go, ns */
    /* The ender's until it gives the end, then the retiring worker's. */
    int code;
    uint64_t ended; /* ns */
    char text[FL_CALL_TEXT];
};

/* Records of a scheduler. */
typedef struct fl_pendings {
    fl_inbox ended;        /* tasks let go whose end was given: any worker retires them */
    fl_mutex lock;         /* guards the lists of records */
    fl_pending_task *free; /* linked by next */
    fl_pending_task *all;  /* linked by all */
    /* Threads inside filch_pending_end: the runtime is not freed before they leave. Release, when
     * falling: after the last access to the scheduler. */
    _Alignas(64) _Atomic uint64_t enders;
} fl_pendings;

static inline fl_pending_task *fl_pending_of_link(fl_link *link)
{
    return (fl_pending_task *)(void *)((char *)link - offsetof(fl_pending_task, link));
}

#endif
