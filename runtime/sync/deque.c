/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/deque.h"

#include <string.h>

enum { RING_ALIGN = 64, LOG2_SLOTS_MAX = 30 };

static size_t ring_bytes(uint64_t slots)
{
    return sizeof(fl_deque_ring) + (size_t)slots * sizeof(uint64_t);
}

/* Makes a ring of zeros: a thief that slept through a growth may read an empty slot before its
 * compare-and-swap fails. Zeros keep the value determinate. */
static fl_deque_ring *ring_new(const fl_memory *memory, uint64_t slots)
{
    fl_deque_ring *ring = fl_alloc_aligned(memory, ring_bytes(slots), RING_ALIGN);
    if (!ring)
        return NULL;
    memset(ring, 0, ring_bytes(slots));
    ring->mask = slots - 1;
    return ring;
}

static bool deque_grow(fl_deque *deque, uint64_t slots)
{
    fl_deque_ring *old = fl_load_relaxed(&deque->ring);
    fl_deque_ring *ring = ring_new(deque->memory, slots);
    if (!ring)
        return false;
    int64_t bottom = fl_load_relaxed(&deque->bottom);
    /* Indices below top_seen are taken. Relaxed: storing ring and bottom publishes the copies. */
    for (int64_t i = deque->top_seen; i < bottom; i++) {
        uint64_t entry = fl_load_relaxed(&old->slots[(uint64_t)i & old->mask]);
        fl_store_relaxed(&ring->slots[(uint64_t)i & ring->mask], entry);
    }
    ring->retired = old;
    /* Release: the copies before the ring. A thief still reading the old ring finds every index
     * below the bottom it read, because retired rings are never written. */
    fl_store_release(&deque->ring, ring);
    return true;
}

filch_status fl_deque_init(fl_deque *deque, const fl_memory *memory, unsigned log2_capacity)
{
    atomic_init(&deque->top, 0);
    atomic_init(&deque->bottom, 0);
    atomic_init(&deque->ring, NULL);
    deque->top_seen = 0;
    deque->memory = memory;
    if (log2_capacity > LOG2_SLOTS_MAX)
        return FILCH_INVALID_ARGUMENT;
    fl_deque_ring *ring = ring_new(memory, UINT64_C(1) << log2_capacity);
    if (!ring)
        return FILCH_OUT_OF_MEMORY;
    atomic_init(&deque->ring, ring);
    return FILCH_OK;
}

void fl_deque_fini(fl_deque *deque)
{
    /* Relaxed: the caller orders the end of the deque after every use. */
    fl_deque_ring *ring = fl_load_relaxed(&deque->ring);
    while (ring) {
        fl_deque_ring *retired = ring->retired;
        fl_free_aligned(deque->memory, ring, ring_bytes(ring->mask + 1), RING_ALIGN);
        ring = retired;
    }
    fl_store_relaxed(&deque->ring, NULL);
}

bool fl_deque_make_room(fl_deque *deque)
{
    uint64_t slots = fl_load_relaxed(&deque->ring)->mask + 1;
    /* Acquire: the winning thief's read of a slot before the owner stores the slot anew. */
    deque->top_seen = fl_load_acquire(&deque->top);
    if ((uint64_t)(fl_load_relaxed(&deque->bottom) - deque->top_seen) < slots)
        return true;
    return slots < UINT64_C(1) << LOG2_SLOTS_MAX && deque_grow(deque, slots * 2);
}

fl_steal fl_deque_steal(fl_deque *deque, uint64_t *entry)
{
    /* Seq_cst, top before bottom: see the race for the last entry in the header. */
    int64_t top = fl_load_seq_cst(&deque->top);
    /* Also acquire: the slot, its ring and the task before the index. */
    int64_t bottom = fl_load_seq_cst(&deque->bottom);
    if (top >= bottom)
        return FL_STEAL_EMPTY;
    /* Acquire: the ring's contents before its address. The ring may be newer than bottom, never
     * older. */
    fl_deque_ring *ring = fl_load_acquire(&deque->ring);
    /* Relaxed: ordered by the acquire of bottom; a refilled slot makes the swap fail. */
    uint64_t found = fl_load_relaxed(&ring->slots[(uint64_t)top & ring->mask]);
    /* Seq_cst: index top goes to the thread that moves top. The release half keeps the read of the
     * slot before the owner's refill. */
    if (!fl_cas_seq_cst(&deque->top, &top, top + 1))
        return FL_STEAL_LOST;
    *entry = found;
    return FL_STEAL_OK;
}

/* The entry at the top is stable, as in fl_deque_steal: while top stands at an index, only the
 * thread that moves top takes the entry. Entries above the top change whenever the owner pops and
 * pushes. */
bool fl_deque_look(const fl_deque *deque, int64_t *index, uint64_t *entry, bool *is_top)
{
    /* Orders are those of fl_deque_steal. */
    int64_t top = fl_load_seq_cst(&deque->top);
    int64_t bottom = fl_load_seq_cst(&deque->bottom);
    *index = *index > top ? *index : top;
    if (*index >= bottom)
        return false;
    *is_top = *index == top;
    const fl_deque_ring *ring = fl_load_acquire(&deque->ring);
    /* Acquire: the owner's writes before the push of an entry newer than the bottom read above.
     * Copies in a grown ring come with the ring. */
    *entry = fl_load_acquire(&ring->slots[(uint64_t)*index & ring->mask]);
    return true;
}

bool fl_deque_drop(fl_deque *deque, int64_t index)
{
    /* Seq_cst: see fl_deque_steal. */
    return fl_cas_seq_cst(&deque->top, &index, index + 1);
}

int64_t fl_deque_size(const fl_deque *deque)
{
    /* Relaxed: an estimate. A pop in progress or a steal between the loads can make the size
     * negative. */
    int64_t top = fl_load_relaxed(&deque->top);
    int64_t size = fl_load_relaxed(&deque->bottom) - top;
    return size > 0 ? size : 0;
}
