/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/drive/agenda.h"

#include <string.h>

filch_status fl_agenda_init(fl_agenda *agenda, const fl_memory *memory, uint32_t workers)
{
    memset(agenda, 0, sizeof *agenda);
    agenda->workers = workers;
    agenda->at = fl_alloc(memory, workers * sizeof *agenda->at);
    agenda->place = fl_alloc_zeroed(memory, workers * sizeof *agenda->place);
    agenda->heap = fl_alloc_zeroed(memory, workers * sizeof *agenda->heap);
    if (agenda->at == NULL || agenda->place == NULL || agenda->heap == NULL) {
        fl_agenda_fini(agenda, memory);
        return FILCH_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < workers; ++i) {
        agenda->at[i] = FL_TIME_NEVER;
    }
    return FILCH_OK;
}

void fl_agenda_fini(fl_agenda *agenda, const fl_memory *memory)
{
    fl_free(memory, agenda->at, agenda->workers * sizeof *agenda->at);
    fl_free(memory, agenda->place, agenda->workers * sizeof *agenda->place);
    fl_free(memory, agenda->heap, agenda->workers * sizeof *agenda->heap);
    agenda->at = NULL;
    agenda->place = agenda->heap = NULL;
    agenda->workers = agenda->count = 0;
}

void fl_agenda_add(fl_agenda *agenda, uint32_t worker)
{
    /* Release: what the waker published, for the driver that takes the bit. */
    fl_or_release(&agenda->due[worker / 64], (uint64_t)1 << worker % 64);
}

void fl_agenda_add_all(fl_agenda *agenda)
{
    for (uint32_t i = 0; i < agenda->workers; ++i) {
        fl_agenda_add(agenda, i);
    }
}

uint64_t fl_agenda_take(fl_agenda *agenda, uint32_t word)
{
    /* Relaxed: most often there are none; a bit set meanwhile is found the next time. */
    if (fl_load_relaxed(&agenda->due[word]) == 0) {
        return 0;
    }
    return fl_and_acq_rel(&agenda->due[word], 0); /* acquire: pairs with the release above */
}

/* --- The heap --- */

static bool is_before(const fl_agenda *agenda, uint32_t a, uint32_t b)
{
    return agenda->at[a] != agenda->at[b] ? agenda->at[a] < agenda->at[b] : a < b;
}

static void put(fl_agenda *agenda, uint32_t slot, uint32_t worker)
{
    agenda->heap[slot] = worker;
    agenda->place[worker] = slot;
}

static void rise(fl_agenda *agenda, uint32_t slot)
{
    uint32_t worker = agenda->heap[slot];
    while (slot != 0 && is_before(agenda, worker, agenda->heap[(slot - 1) / 2])) {
        put(agenda, slot, agenda->heap[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    put(agenda, slot, worker);
}

static void sink(fl_agenda *agenda, uint32_t slot)
{
    uint32_t worker = agenda->heap[slot];
    for (uint32_t child; (child = 2 * slot + 1) < agenda->count; slot = child) {
        if (child + 1 < agenda->count &&
            is_before(agenda, agenda->heap[child + 1], agenda->heap[child])) {
            ++child;
        }
        if (!is_before(agenda, agenda->heap[child], worker)) {
            break;
        }
        put(agenda, slot, agenda->heap[child]);
    }
    put(agenda, slot, worker);
}

static void drop(fl_agenda *agenda, uint32_t worker)
{
    uint32_t slot = agenda->place[worker], last = agenda->heap[--agenda->count];
    agenda->at[worker] = FL_TIME_NEVER;
    if (last != worker) {
        put(agenda, slot, last);
        rise(agenda, slot);
        sink(agenda, agenda->place[last]);
    }
}

void fl_agenda_set(fl_agenda *agenda, uint32_t worker, uint64_t at)
{
    uint64_t before = agenda->at[worker];
    if (at == before) {
        return;
    }
    if (at == FL_TIME_NEVER) {
        drop(agenda, worker);
        return;
    }
    agenda->at[worker] = at;
    if (before == FL_TIME_NEVER) {
        put(agenda, agenda->count++, worker);
    }
    rise(agenda, agenda->place[worker]);
    sink(agenda, agenda->place[worker]);
}

uint64_t fl_agenda_next(const fl_agenda *agenda)
{
    return agenda->count != 0 ? agenda->at[agenda->heap[0]] : FL_TIME_NEVER;
}

void fl_agenda_reach(fl_agenda *agenda, uint64_t now)
{
    while (fl_agenda_next(agenda) <= now) {
        uint32_t worker = agenda->heap[0];
        drop(agenda, worker);
        fl_agenda_add(agenda, worker);
    }
}

void fl_agenda_engage(fl_agenda *agenda, uint32_t worker, bool is_engaged)
{
    uint64_t bit = (uint64_t)1 << worker % 64;
    bool was = (agenda->engaged[worker / 64] & bit) != 0;
    if (was != is_engaged) {
        agenda->engaged[worker / 64] ^= bit;
        agenda->engaged_count += is_engaged ? 1 : UINT32_MAX; /* modulo 2^32 */
    }
}
