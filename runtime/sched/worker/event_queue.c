/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/worker/event_queue.h"

#include <string.h>

filch_status fl_event_queue_init(fl_event_queue *events, const fl_memory *memory, uint32_t workers)
{
    memset(events, 0, sizeof *events);
    events->workers = workers;
    events->at = fl_alloc(memory, workers * sizeof *events->at);
    events->place = fl_alloc_zeroed(memory, workers * sizeof *events->place);
    events->heap = fl_alloc_zeroed(memory, workers * sizeof *events->heap);
    if (events->at == NULL || events->place == NULL || events->heap == NULL) {
        fl_event_queue_fini(events, memory);
        return FILCH_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < workers; ++i) {
        events->at[i] = FL_TIME_NEVER;
    }
    return FILCH_OK;
}

void fl_event_queue_fini(fl_event_queue *events, const fl_memory *memory)
{
    fl_free(memory, events->at, events->workers * sizeof *events->at);
    fl_free(memory, events->place, events->workers * sizeof *events->place);
    fl_free(memory, events->heap, events->workers * sizeof *events->heap);
    events->at = NULL;
    events->place = events->heap = NULL;
    events->workers = events->count = 0;
}

void fl_event_queue_add(fl_event_queue *events, uint32_t worker)
{
    /* Release: publishes the waker's writes to the driver taking the bit. */
    fl_or_release(&events->due[worker / 64], (uint64_t)1 << worker % 64);
}

void fl_event_queue_add_all(fl_event_queue *events)
{
    for (uint32_t i = 0; i < events->workers; ++i) {
        fl_event_queue_add(events, i);
    }
}

uint64_t fl_event_queue_take(fl_event_queue *events, uint32_t word)
{
    /* Relaxed: most often no bit is set; a bit set meanwhile is found next time. */
    if (fl_load_relaxed(&events->due[word]) == 0) {
        return 0;
    }
    /* Acquire: pairs with the release above. */
    return fl_and_acq_rel(&events->due[word], 0);
}

/* --- The heap --- */

static bool is_before(const fl_event_queue *events, uint32_t a, uint32_t b)
{
    return events->at[a] != events->at[b] ? events->at[a] < events->at[b] : a < b;
}

static void put(fl_event_queue *events, uint32_t slot, uint32_t worker)
{
    events->heap[slot] = worker;
    events->place[worker] = slot;
}

static void rise(fl_event_queue *events, uint32_t slot)
{
    uint32_t worker = events->heap[slot];
    while (slot != 0 && is_before(events, worker, events->heap[(slot - 1) / 2])) {
        put(events, slot, events->heap[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    put(events, slot, worker);
}

static void sink(fl_event_queue *events, uint32_t slot)
{
    uint32_t worker = events->heap[slot];
    for (uint32_t child; (child = 2 * slot + 1) < events->count; slot = child) {
        if (child + 1 < events->count &&
            is_before(events, events->heap[child + 1], events->heap[child])) {
            ++child;
        }
        if (!is_before(events, events->heap[child], worker)) {
            break;
        }
        put(events, slot, events->heap[child]);
    }
    put(events, slot, worker);
}

static void drop(fl_event_queue *events, uint32_t worker)
{
    uint32_t slot = events->place[worker], last = events->heap[--events->count];
    events->at[worker] = FL_TIME_NEVER;
    if (last != worker) {
        put(events, slot, last);
        rise(events, slot);
        sink(events, events->place[last]);
    }
}

void fl_event_queue_set(fl_event_queue *events, uint32_t worker, uint64_t at)
{
    uint64_t before = events->at[worker];
    if (at == before) {
        return;
    }
    if (at == FL_TIME_NEVER) {
        drop(events, worker);
        return;
    }
    events->at[worker] = at;
    if (before == FL_TIME_NEVER) {
        put(events, events->count++, worker);
    }
    rise(events, events->place[worker]);
    sink(events, events->place[worker]);
}

uint64_t fl_event_queue_next(const fl_event_queue *events)
{
    return events->count != 0 ? events->at[events->heap[0]] : FL_TIME_NEVER;
}

void fl_event_queue_reach(fl_event_queue *events, uint64_t now)
{
    while (fl_event_queue_next(events) <= now) {
        uint32_t worker = events->heap[0];
        drop(events, worker);
        fl_event_queue_add(events, worker);
    }
}

void fl_event_queue_engage(fl_event_queue *events, uint32_t worker, bool is_engaged)
{
    uint64_t bit = (uint64_t)1 << worker % 64;
    bool was = (events->engaged[worker / 64] & bit) != 0;
    if (was != is_engaged) {
        events->engaged[worker / 64] ^= bit;
        /* Adds -1 modulo 2^32. */
        events->engaged_count += is_engaged ? 1 : UINT32_MAX;
    }
}
