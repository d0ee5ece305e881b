/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual clock's agenda: which worker is to be stepped now, and which one when. So a
 * simulation costs what happens in it, not the number of its devices at each event. */
#ifndef FL_SCHED_DRIVE_EVENT_QUEUE_H
#define FL_SCHED_DRIVE_EVENT_QUEUE_H

#include "backend/backend.h"
#include "base/clock.h"
#include "base/memory.h"

#define FL_EVENT_QUEUE_WORDS (FL_DEVICE_LIMIT / 64)

typedef struct fl_event_queue {
    /* Set by wakers, any thread; taken by the one that drives. */
    _Atomic uint64_t due[FL_EVENT_QUEUE_WORDS];
    _Atomic uint64_t stirs; /* wake-ups that came from outside of the workers */
    /* The driver's: a binary heap of the workers that want a step at some time, by time and index;
     * and what of them is under way. */
    uint64_t *at;    /* one a worker; FL_TIME_NEVER: not in the heap */
    uint32_t *place; /* one a worker: where in the heap it is */
    uint32_t *heap;
    uint32_t workers, count;
    uint64_t engaged[FL_EVENT_QUEUE_WORDS]; /* workers that wait for a device */
    uint32_t engaged_count;
} fl_event_queue;

filch_status fl_event_queue_init(fl_event_queue *events, const fl_memory *memory, uint32_t workers);
void fl_event_queue_fini(fl_event_queue *events, const fl_memory *memory);
/* The worker is to be stepped now; any thread, wait-free. */
void fl_event_queue_add(fl_event_queue *events, uint32_t worker);
void fl_event_queue_add_all(fl_event_queue *events);
/* Those of one word that are to be stepped now, and are no more. */
uint64_t fl_event_queue_take(fl_event_queue *events, uint32_t word);
/* When the worker wants a step unasked; FL_TIME_NEVER: it does not. */
void fl_event_queue_set(fl_event_queue *events, uint32_t worker, uint64_t at);
/* The earliest of these times. */
uint64_t fl_event_queue_next(const fl_event_queue *events);
/* All whose time has come are to be stepped now. */
void fl_event_queue_reach(fl_event_queue *events, uint64_t now);
/* Whether the worker waits for its device, as opposed to for work. */
void fl_event_queue_engage(fl_event_queue *events, uint32_t worker, bool is_engaged);

#endif
