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
    FL_TRACE_KINDS
} fl_trace_kind;

#define FL_TRACE_HOST UINT32_MAX

typedef struct fl_trace_event {
    uint64_t start, end; /* ns */
    const char *name; /* name of a codelet, "graph" or "broadcast": lives as long as the runtime */
    uint64_t first, last; /* task: order in first, its graph in last; chunk: first item and end;
                             theft: count of taken entries in first; copy: bytes in first; job:
                             number in first, graph's number or count of items in last */
    uint32_t other; /* work item: number of its job; theft: the victim; copy: the device at the far
                       end, or FL_TRACE_HOST; job: count of tasks or items skipped */
    uint8_t kind;
    uint8_t is_chunk; /* work item: a chunk of a batch; job: a batch */
    union {
        uint16_t device; /* pending task: the device that ran the function */
        uint16_t label;  /* task, job: number in the ring's labels; 0: no label */
    };
} fl_trace_event;
_Static_assert(sizeof(fl_trace_event) == 48, "filch/trace.h says so");

typedef struct fl_trace_ring {
    size_t bytes;
    uint64_t capacity;
    uint64_t next;   /* events ever written */
    uint64_t missed; /* copies without an event: not recorded */
    fl_name_set labels;
    fl_trace_event events[];
} fl_trace_ring;

fl_trace_ring *fl_trace_ring_new(const fl_memory *memory, uint64_t capacity);
void fl_trace_ring_free(const fl_memory *memory, fl_trace_ring *ring);

/* Returns the number of a label for an event of the ring, to be added by the same thread. A null or
 * empty label, and a label beyond the room for labels, gives 0. */
static inline uint16_t fl_trace_label(fl_trace_ring *ring, const char *label)
{
    return label != NULL && label[0] != '\0' ? (uint16_t)fl_name_add(&ring->labels, label) : 0;
}

/* Returns the label of an event of the ring, or null. */
static inline const char *fl_trace_label_of(const fl_trace_ring *ring, const fl_trace_event *event)
{
    bool can_have = event->kind == FL_TRACE_TILE || event->kind == FL_TRACE_JOB;
    return can_have && event->label != 0 ? fl_name_at(&ring->labels, event->label) : NULL;
}

static inline void fl_trace_add(fl_trace_ring *ring, fl_trace_event event)
{
    ring->events[ring->next++ % ring->capacity] = event;
}

/* Copy lanes of a device. */
#define FL_TRACE_COPY_RINGS 3

/* Device and rings of a worker, for the file. */
typedef struct fl_trace_lane {
    const char *device;
    const fl_trace_ring *ring;                        /* null: no events recorded */
    const fl_trace_ring *copies[FL_TRACE_COPY_RINGS]; /* null: no copies recorded */
} fl_trace_lane;

/* Writes text as the inside of a JSON string, also within an HTML page. A byte that is not UTF-8,
 * e.g. of a name cut within a character, becomes U+FFFD. */
void fl_trace_put_text(FILE *file, const char *text);

/* Events of a ring, oldest first: numbers from fl_trace_first to ring->next, without the latter. */
static inline uint64_t fl_trace_first(const fl_trace_ring *ring)
{
    return ring->next > ring->capacity ? ring->next - ring->capacity : 0;
}

static inline const fl_trace_event *fl_trace_at(const fl_trace_ring *ring, uint64_t number)
{
    return &ring->events[number % ring->capacity];
}

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
