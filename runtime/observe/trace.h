/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of events per worker, one per lane of each device's copies, and one of jobs. One writer at
 * a time (the worker; who holds the copy lane's lock; who holds core->lock); read only while no job
 * runs and, of copies, while the backend holds them (trace_hold). */
#ifndef FL_OBSERVE_TRACE_H
#define FL_OBSERVE_TRACE_H

#include <stdio.h>

#include "base/core.h"

typedef enum fl_trace_kind {
    FL_TRACE_TILE,
    FL_TRACE_THEFT,
    FL_TRACE_WAIT,
    FL_TRACE_JOB, /* from when it could run to its end; in a row for all */
    /* Copies, each kind in a row of its own: */
    FL_TRACE_IN, /* from the host */
    FL_TRACE_OUT,
    FL_TRACE_PEER,  /* from another device's memory */
    FL_TRACE_INNER, /* within one memory */
    FL_TRACE_KINDS
} fl_trace_kind;

#define FL_TRACE_HOST UINT32_MAX

typedef struct fl_trace_event {
    uint64_t start, end;  /* ns */
    const char *name;     /* of a codelet, or "graph": lives as long as the runtime */
    uint64_t first, last; /* task's order in first, its graph in last; or items; theft: how many in
                             first; copy: bytes in first; job: number in first, graph's or items
                             in last */
    uint32_t other;       /* tile: its job's number; theft: the victim; copy: the other device, or
                             FL_TRACE_HOST */
    uint16_t kind;
    uint16_t is_chunk; /* tile; job: is a batch */
} fl_trace_event;
_Static_assert(sizeof(fl_trace_event) == 48, "filch/trace.h says so");

typedef struct fl_trace_ring {
    size_t bytes;
    uint64_t capacity;
    uint64_t next;   /* events ever written */
    uint64_t missed; /* of which nothing is known but that they were */
    fl_trace_event events[];
} fl_trace_ring;

fl_trace_ring *fl_trace_ring_new(const fl_memory *memory, uint64_t capacity);
void fl_trace_ring_free(const fl_memory *memory, fl_trace_ring *ring);

static inline void fl_trace_add(fl_trace_ring *ring, fl_trace_event event)
{
    ring->events[ring->next++ % ring->capacity] = event;
}

/* Lanes for copies of a device. */
#define FL_TRACE_COPY_RINGS 3

/* Who is who in the file. */
typedef struct fl_trace_lane {
    const char *device;
    const fl_trace_ring *ring;                        /* null: recorded nothing */
    const fl_trace_ring *copies[FL_TRACE_COPY_RINGS]; /* the same */
} fl_trace_lane;

/* Writes text as the inside of a JSON string; a byte that is no UTF-8, as where a name was cut
 * within a character, as U+FFFD. */
void fl_trace_put_text(FILE *file, const char *text);

/* Writes the lanes and the jobs (null: recorded nothing) as Chrome/Perfetto JSON; put_more, if not
 * null, adds members to "otherData", each with a comma before it. Times count from the first job's
 * beginning, or from the first tile or copy if that is earlier. FILCH_IO leaves no file. */
filch_status fl_trace_write(const char *path, const fl_trace_lane *lanes, uint32_t count,
                            const fl_trace_ring *jobs, fl_core *core,
                            void (*put_more)(FILE *file, fl_core *core));

#endif
