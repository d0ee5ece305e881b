/* SPDX-License-Identifier: Apache-2.0 */
/* Event queue of the virtual clock: the workers to be stepped now, and the times of later steps. A
 * simulation costs time per event, not per device and event. */
#ifndef FL_SCHED_WORKER_EVENT_QUEUE_H
#define FL_SCHED_WORKER_EVENT_QUEUE_H

#include "backend/backend.h"
#include "base/clock.h"
#include "base/memory.h"

#define FL_EVENT_QUEUE_WORDS (FL_DEVICE_LIMIT / 64)

typedef struct fl_event_queue fl_event_queue;
struct fl_event_queue {
    /* Workers to be stepped now. Wakers on every thread set bits; the driver takes bits. */
    _Atomic uint64_t due[FL_EVENT_QUEUE_WORDS];
    _Atomic uint64_t stirs; /* number of wake-ups from threads that are not workers */
    /* Driver's data: a binary heap of the workers with a requested step, by time and index, and the
     * workers engaged with a device. */
    uint64_t *at;    /* requested time of each worker; FL_TIME_NEVER: not in the heap */
    uint32_t *place; /* heap position of each worker */
    uint32_t *heap;
    uint32_t workers, count;
    uint64_t engaged[FL_EVENT_QUEUE_WORDS]; /* workers waiting for a device */
    uint32_t engaged_count;
};

filch_status fl_event_queue_init(fl_event_queue *events, const fl_memory *memory, uint32_t workers);
void fl_event_queue_fini(fl_event_queue *events, const fl_memory *memory);
/* Marks the worker for a step now; any thread, wait-free. */
void fl_event_queue_add(fl_event_queue *events, uint32_t worker);
void fl_event_queue_add_all(fl_event_queue *events);
/* Takes the marked workers of one word, and clears the marks. */
uint64_t fl_event_queue_take(fl_event_queue *events, uint32_t word);
/* Sets the time of the worker's next unrequested step; FL_TIME_NEVER: no step. */
void fl_event_queue_set(fl_event_queue *events, uint32_t worker, uint64_t at);
/* Returns the earliest requested time. */
uint64_t fl_event_queue_next(const fl_event_queue *events);
/* Marks every worker with a requested time up to `now`. */
void fl_event_queue_reach(fl_event_queue *events, uint64_t now);
/* Sets whether the worker waits for the device, as opposed to work. */
void fl_event_queue_engage(fl_event_queue *events, uint32_t worker, bool is_engaged);

#endif
