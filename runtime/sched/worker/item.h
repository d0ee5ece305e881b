/* SPDX-License-Identifier: Apache-2.0 */
/* Work items: what a worker runs at once, and items in flight on a device that computes by itself.
 */
#ifndef FL_SCHED_WORKER_ITEM_H
#define FL_SCHED_WORKER_ITEM_H

#include "backend/backend.h"
#include "graph/job/job.h"
#include "memory/tiles/replica.h"
#include "sync/race.h"

#define FL_MOST_VIEWS 256
_Static_assert(FL_MOST_VIEWS <= FL_MOST_STAGED, "any of them may be staged");

/* Chunks of one worker that may have a backup run, in flight at a time. */
#define FL_RACES 8

/* One of the two runs of a chunk that may have a backup run (execute/backup.h). */
typedef struct fl_backup_run {
    fl_race *race;  /* the first run's worker owns the race */
    uint32_t first; /* the worker of the first run */
    uint64_t word;  /* a second run that has not joined yet: the race as last read */
    bool is_taken, is_second;
    bool has_lost; /* the second run's or the first run's results count instead */
    char *output; /* private output on the host; null: the chunk writes nothing, or no output yet */
    size_t output_bytes;
    fl_block *blocks; /* private output on a GPU, linked by next */
} fl_backup_run;

/* State of an item. */
typedef enum fl_item_state {
    FL_ITEM_DONE,         /* over, or none */
    FL_ITEM_PICKED,       /* taken by the worker */
    FL_ITEM_FETCHING,     /* on the host: waits for its operands */
    FL_ITEM_STALLED,      /* waits until other items give memory back */
    FL_ITEM_LAUNCHED,     /* on the device's lane, or called by the driver */
    FL_ITEM_WRITING_BACK, /* past on the lane; its results are on the way home */
    FL_ITEM_PENDING /* on the host: the function returned FILCH_PENDING, and the worker is to let
                       the task go */
} fl_item_state;

/* A work item: a task, a piece of a divisible task, a chunk of a batch, or a whole graph. */
typedef struct fl_item {
    filch_job *job;
    fl_task *task;   /* null: a chunk of a batch, or a whole graph */
    uint32_t lo, hi; /* grains of the chunk, or of the piece of a divided task */
    bool skip;       /* poisoned, or the job is cancelled: retire without running */
    bool timed;
    bool only_traced; /* timed for the trace alone: the speed model learns nothing */
    bool is_graph;    /* a whole graph at once; task is null */
    bool
        is_claimed; /* the task was claimed when it was picked; skip tells whether it is poisoned */
    bool is_ahead;  /* launched before its predecessors were over */
    bool continues; /* a continuation (execute/ahead.c); with is_ahead */
    bool is_refused;    /* the device could not take it: worker->stall.error says why */
    uint8_t state;      /* an fl_item_state */
    int code;           /* result of the host function */
    uint32_t stands;    /* items that the time stands for, itself included; valid when timed */
    double work;        /* declared units; valid when timed */
    uint64_t start;     /* ns; valid when timed */
    uint64_t ns;        /* duration; valid when timed */
    uint64_t own;       /* share of the time of items that ran at once, ns (backend.h) */
    uint64_t fair;      /* a chunk's share by work; a task's own, ns */
    fl_backup_run *run; /* chunk: not null when it may have a backup run. Task: undefined */
} fl_item;

/* Markers in foreign memory nodes that an item in flight may depend on. An item that depends on
 * more is launched when the rest is past. */
#define FL_FOREIGN 8

/* Copies that bring one item's results home, each on its own lane. The worker waits for the oldest
 * copies when an item needs more. */
#define FL_HOMES 4

/* Items in flight at most on a device that computes: the number that hides the launch latency of
 * short items. */
#define FL_IN_FLIGHT_COMPUTING 256u

/* No element of a list of items in flight. */
#define FL_NO_FLIGHT UINT32_MAX

/* An item in flight on a device that computes by itself. */
typedef struct fl_in_flight {
    fl_item item;
    uint64_t launched;  /* ns */
    double expected;    /* predicted duration, ns; 0: unknown */
    fl_marker arriving; /* a copy that the device waits for before the item; 0: none, or past */
    uint64_t arrived;   /* when the worker saw the copy past, ns */
    uint32_t lane;
    bool is_sample;   /* counted in offload->samples */
    bool is_ahead;    /* in the ring of items whose successors are to be looked at */
    bool has_failed;  /* still runs; worker->stall.late says why it failed */
    bool is_admitted; /* its operands are pinned, except the staged operands of a chunk */
    struct fl_pending_task *pending; /* simulated device: of a pending task; or null */
    uint32_t next;                   /* index of the next element of a list */
    uint32_t home_count, foreign_count;
    /* Few items use the members below. */
    fl_marker homes[FL_HOMES];     /* write-back copies of the item's results */
    fl_marker foreign[FL_FOREIGN]; /* the item is good if no marker of these has failed */
    fl_staged staged;
} fl_in_flight;

/* Name of one run of an item, as long as the runtime lives. */
typedef struct fl_item_name {
    const void *of;    /* the task, or the job of a chunk */
    uint64_t sequence; /* of the job */
    uint64_t number;   /* epoch of the task, or first grain of the chunk */
} fl_item_name;

static inline fl_item_name fl_item_name_of(const fl_item *item)
{
    const fl_task *task = item->task;
    /* Relaxed: the caller has the task, and only the owner of a claimed task changes its epoch. */
    return (fl_item_name){.of = task != NULL ? (const void *)task : item->job,
                          .sequence = item->job->sequence,
                          .number = task != NULL ? fl_word_epoch(fl_load_relaxed(&task->word))
                                                 : item->lo};
}

/* Codelet of the item; null for a gate. */
static inline const filch_codelet *fl_item_codelet(const fl_item *item)
{
    return item->task != NULL ? item->task->codelet : fl_batch_codelet(item->job->batch);
}

/* Whether operands of the item may have private memory. */
static inline bool fl_item_may_stage(const fl_item *item)
{
    return item->task == NULL || item->task->has_blocks;
}

/* Has the item retire as failed, without a result of its own. */
static inline void fl_item_refuse(fl_item *item)
{
    item->code = -1;
    item->is_refused = true;
    item->timed = false;
}

/* Sets the item to a ready task, not claimed yet. False: the task is null. */
static inline bool fl_item_set_task(fl_item *item, fl_task *task)
{
    item->is_graph = item->is_claimed = false;
    item->task = task;
    return task != NULL;
}

/* Sets the item to a task claimed before; task->is_poisoned says whether to skip it. False: the
 * task is null. */
static inline bool fl_item_set_claimed(fl_item *item, fl_task *task)
{
    item->is_graph = false;
    item->is_claimed = true;
    item->task = task;
    item->skip = task != NULL && task->is_poisoned;
    return task != NULL;
}

/* Ends a gate, which does nothing, as failed where its predecessors failed. */
static inline void fl_item_pass(fl_item *item)
{
    if (fl_task_passes(item->task)) {
        item->code = item->skip ? -1 : 0;
        item->skip = true;
    }
}

/* Items [*lo, *hi) of a task with items that the item runs: a part, or all. */
static inline void fl_item_range(const fl_item *item, uint64_t *lo, uint64_t *hi)
{
    const fl_items *items = fl_task_items(item->task);
    *lo = 0;
    *hi = items->count;
    if (items->division != NULL) {
        fl_items_range(items, item->lo, item->hi, lo, hi);
    }
}

/* Whether the item is a chunk whose codelet allows a backup run. */
static inline bool fl_item_may_race(const fl_item *item, const filch_codelet *codelet)
{
    return item->task == NULL && (codelet->flags & FILCH_CODELET_RESTARTABLE) != 0 && !item->skip;
}

#endif
