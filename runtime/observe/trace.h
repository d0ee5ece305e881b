/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of events: one per worker, one per lane of every device's copies, and one of jobs. A ring
 * has a single writer at a time: the worker, the holder of the copy lane's lock, or the holder of
 * core->lock. Rings are read only while no job runs; rings of copies, only while the backend holds
 * them (trace_hold). */
#ifndef FL_OBSERVE_TRACE_H
#define FL_OBSERVE_TRACE_H

#include <stdio.h>

#include "base/core.h"
#include "observe/name_set.h"

typedef enum fl_trace_kind {
    FL_TRACE_TILE,
    FL_TRACE_THEFT,
    FL_TRACE_WAIT,
    FL_TRACE_PENDING, /* time from the return of a pending task's function until the task's end */
    FL_TRACE_JOB,     /* time from ability to run until the end; a single row of jobs */
    /* Copies, with a row per kind: */
    FL_TRACE_IN, /* copy from the host */
    FL_TRACE_OUT,
    FL_TRACE_PEER,  /* copy from a second device's memory */
    FL_TRACE_INNER, /* copy within one memory */
    FL_TRACE_KINDS,
    FL_TRACE_MEMBERS = FL_TRACE_KINDS /* no event: further tasks of the work item before */
} fl_trace_kind;

#define FL_TRACE_HOST UINT32_MAX
/* Tasks named by a slot of a ring behind the event's own. */
#define FL_TRACE_NAMED 11
/* Most tasks of an event: a first one, and those named by 47 slots. Of brief tasks one in
 * FL_SPEED_PERIOD_LONG is timed and has an event of its own: an event holds those between. */
#define FL_TRACE_TASKS (1 + 47 * FL_TRACE_NAMED)
/* fl_trace_event.tasks of a work item of several tasks. */
#define FL_TRACE_SEVERAL 2

/* Orders of the tasks of a work item, in the order in which they ran. */
typedef struct fl_trace_tasks {
    uint32_t count;
    uint32_t orders[FL_TRACE_TASKS];
} fl_trace_tasks;

typedef struct fl_trace_event {
    uint64_t start, end; /* ns */
    const char *name; /* name of a codelet, "graph" or "broadcast": lives as long as the runtime */
    union {
        uint64_t first; /* a task: its order; chunk: first item; theft: count of taken entries;
                           copy: bytes; job: number */
        struct {
            uint32_t order; /* several tasks: of the first */
            int32_t step;   /* from one's order to the next one's; 0: slots behind name them */
        } row;
    };
    uint64_t last;  /* tasks: their graph's number; chunk: end; job: graph's number or count of
                       items */
    uint32_t other; /* work item: number of its job; theft: the victim; copy: the device at the far
                       end, or FL_TRACE_HOST; job: count of tasks or items skipped */
    uint8_t kind;
    /* Work item: 1: a task; FL_TRACE_SEVERAL: count tasks, run one after another; 0: a chunk of a
     * batch. Job: 0 for a batch, else 1. */
    uint8_t tasks;
    union {
        uint16_t count;  /* several tasks */
        uint16_t device; /* pending task: the device that ran the function */
        uint16_t label;  /* a single task, job: number in the ring's labels; 0: no label */
    };
} fl_trace_event;
_Static_assert(sizeof(fl_trace_event) == 48, "filch/trace.h says so");

typedef union fl_trace_slot {
    fl_trace_event event;
    struct fl_trace_members { /* tasks of the event before, from the second on */
        uint32_t orders[FL_TRACE_NAMED];
        uint8_t kind; /* FL_TRACE_MEMBERS */
    } members;
} fl_trace_slot;
_Static_assert(sizeof(fl_trace_slot) == sizeof(fl_trace_event) &&
                   offsetof(struct fl_trace_members, kind) == offsetof(fl_trace_event, kind),
               "one member tells what a slot is");

typedef struct fl_trace_ring {
    size_t bytes;
    uint64_t capacity;
    uint64_t next;   /* slots ever written */
    uint64_t at;     /* place of the next slot: next % capacity, without a division */
    uint64_t added;  /* events ever added */
    uint64_t missed; /* copies without an event: not recorded */
    fl_name_set labels;
    fl_trace_slot slots[];
} fl_trace_ring;

fl_trace_ring *fl_trace_ring_new(const fl_memory *memory, uint64_t capacity);
void fl_trace_ring_free(const fl_memory *memory, fl_trace_ring *ring);

/* Returns the number of a label for an event of the ring, to be added by the same thread. A null or
 * empty label, and a label beyond the room for labels, gives 0. */
static inline uint16_t fl_trace_label(fl_trace_ring *ring, const char *label)
{
    return label != NULL && label[0] != '\0' ? (uint16_t)fl_name_add(&ring->labels, label) : 0;
}

/* Returns the number of tasks of a work item's event; 0: a chunk of a batch. */
static inline uint32_t fl_trace_task_count(const fl_trace_event *event)
{
    return event->tasks == FL_TRACE_SEVERAL ? event->count : event->tasks;
}

/* Returns the order of a work item's first task, or the first item of a chunk. */
static inline uint64_t fl_trace_first_of(const fl_trace_event *event)
{
    return event->tasks == FL_TRACE_SEVERAL ? event->row.order : event->first;
}

/* Returns the label of an event of the ring, or null. */
static inline const char *fl_trace_label_of(const fl_trace_ring *ring, const fl_trace_event *event)
{
    bool can_have = (event->kind == FL_TRACE_TILE && event->tasks != FL_TRACE_SEVERAL) ||
                    event->kind == FL_TRACE_JOB;
    return can_have && event->label != 0 ? fl_name_at(&ring->labels, event->label) : NULL;
}

/* Returns the next slot, to be filled. */
static inline fl_trace_slot *fl_trace_take(fl_trace_ring *ring)
{
    fl_trace_slot *slot = &ring->slots[ring->at];
    ring->at = ring->at + 1 < ring->capacity ? ring->at + 1 : 0;
    ++ring->next;
    return slot;
}

static inline void fl_trace_add(fl_trace_ring *ring, fl_trace_event event)
{
    fl_trace_take(ring)->event = event;
    ++ring->added;
}

/* Adds a work item of one or more tasks; sets first or row, tasks and count. Where orders do not
 * grow or fall by equal steps, the event's slot is followed by slots that name the tasks from the
 * second on: an event that is not overwritten has its tasks. */
void fl_trace_add_tasks(fl_trace_ring *ring, fl_trace_event event, const fl_trace_tasks *tasks);

/* Copy lanes of a device. */
#define FL_TRACE_COPY_RINGS 3

/* Device and rings of a worker, for the file. */
typedef struct fl_trace_lane {
    const char *device;
    const fl_trace_ring *ring;                        /* null: no events recorded */
    const fl_trace_ring *copies[FL_TRACE_COPY_RINGS]; /* null: no copies recorded */
} fl_trace_lane;

/* Returns the bytes of the UTF-8 character beginning at `at`; 0: not a valid character. */
size_t fl_character_bytes(const unsigned char *at);
/* Writes text as the inside of a JSON string, also within an HTML page. A byte that is not UTF-8,
 * e.g. of a name cut within a character, becomes U+FFFD. */
void fl_trace_put_text(FILE *file, const char *text);

/* Place in a ring, for a walk over its events, oldest first. */
typedef struct fl_trace_walk {
    const fl_trace_ring *ring; /* null: no events */
    uint64_t at;               /* slot of the next event, or of members without their event */
} fl_trace_walk;

fl_trace_walk fl_trace_walk_begin(const fl_trace_ring *ring);
/* Returns the next event, or null. */
const fl_trace_event *fl_trace_walk_next(fl_trace_walk *walk);
/* Returns the order of a task, from 0 on, of the work item that the walk returned last. */
uint32_t fl_trace_walk_task(const fl_trace_walk *walk, uint32_t task);

/* Rings of a device; fl_trace_ring_of returns a ring by number, or null for a ring not made. */
#define FL_TRACE_RINGS (1 + FL_TRACE_COPY_RINGS)

static inline const fl_trace_ring *fl_trace_ring_of(const fl_trace_lane *lane, uint32_t number)
{
    return number == 0 ? lane->ring : lane->copies[number - 1];
}

static inline bool fl_trace_is_copy(const fl_trace_event *event)
{
    return event->kind >= FL_TRACE_IN;
}

/* Numbers of events missing in a file: events overwritten in full rings, and copies that were not
 * recorded. */
typedef struct fl_trace_losses {
    uint64_t overwritten, missed;
} fl_trace_losses;

fl_trace_losses fl_trace_missing(const fl_trace_lane *lanes, uint32_t count,
                                 const fl_trace_ring *jobs);
/* Returns the time from which a file counts: the first job's start, or the first work item or copy
 * if earlier. */
uint64_t fl_trace_origin(const fl_trace_lane *lanes, uint32_t count, const fl_trace_ring *jobs);

/* Writes the lanes and the jobs (null: no jobs recorded) as Chrome/Perfetto JSON. put_more, if not
 * null, adds members to "otherData", every member after a comma. Times count from the first job's
 * start, or from the first work item or copy if earlier. FILCH_IO and FILCH_OUT_OF_MEMORY leave no
 * file. */
filch_status fl_trace_write(const char *path, const fl_trace_lane *lanes, uint32_t count,
                            const fl_trace_ring *jobs, fl_core *core,
                            void (*put_more)(FILE *file, fl_core *core));

#endif
