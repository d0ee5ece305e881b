/* SPDX-License-Identifier: Apache-2.0 */
/* Work-stealing deque of 64-bit entries (task hints). One owner pushes and pops at the bottom, last
 * in first out. Many thieves may steal at the top, oldest first.
 *
 * C11 form by Lê, Pop, Cohen, Zappa Nardelli, "Correct and Efficient Work-Stealing for Weak Memory
 * Models", PPoPP 2013, of the deque of Chase and Lev, SPAA 2005.
 *
 * Progress: push and pop are wait-free except for growth, which allocates; steal is lock-free, and
 * growth never blocks a thief. Retired rings are kept until fl_deque_fini, because a thief may read
 * an old ring at every moment. Ring sizes double: the retired rings together are smaller than the
 * present ring. */
#ifndef FL_SYNC_DEQUE_H
#define FL_SYNC_DEQUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/memory.h"

/* Ring of slots; index i lives in slot i & mask. Slots are atomic because a thief may read a slot
 * during the owner's refill. The thief's compare-and-swap on top then fails. */
typedef struct fl_deque_ring {
    uint64_t mask;                 /* slots - 1; the number of slots is a power of two */
    struct fl_deque_ring *retired; /* predecessor of the ring, half the size */
    _Alignas(64) _Atomic uint64_t slots[];
} fl_deque_ring;

typedef struct fl_deque {
    _Alignas(64) _Atomic int64_t top;    /* advanced by thieves and by the owner's last pop */
    _Alignas(64) _Atomic int64_t bottom; /* written by the owner */
    _Atomic(fl_deque_ring *) ring;
    int64_t top_seen; /* owner's old copy of top: a push reads top only when the ring looks full */
    const fl_memory *memory;
} fl_deque;

/* Initialises a deque with 2^log2_capacity slots, 2^30 at most. FILCH_OUT_OF_MEMORY,
 * FILCH_INVALID_ARGUMENT. fl_deque_fini is allowed even after a failure. */
filch_status fl_deque_init(fl_deque *deque, const fl_memory *memory, unsigned log2_capacity);
/* Frees the rings. No thief may be inside. */
void fl_deque_fini(fl_deque *deque);
/* Owner: pushes an entry. Returns false when the ring was full and could not grow; the deque is
 * then unchanged. */
static inline bool fl_deque_push(fl_deque *deque, uint64_t entry);
/* Owner: pops the newest entry; false when empty. */
static inline bool fl_deque_pop(fl_deque *deque, uint64_t *entry);
typedef enum fl_steal { FL_STEAL_OK, FL_STEAL_EMPTY, FL_STEAL_LOST } fl_steal;
/* Steals the oldest entry. Thread-safe. FL_STEAL_LOST: the owner or a second thief won the race;
 * worth a retry. */
fl_steal fl_deque_steal(fl_deque *deque, uint64_t *entry);
/* Reads the entry at *index, or at the top when *index is below the top; returns false past the
 * last entry. Sets *index and *is_top. Thread-safe. Serves entries that may be dead, with ownership
 * settled elsewhere: a thief may look at several entries, use one in the middle and leave it in the
 * deque. An entry above the top may be newer than its index, or 0 in an empty slot. */
bool fl_deque_look(const fl_deque *deque, int64_t *index, uint64_t *entry, bool *is_top);
/* Removes the entry that fl_deque_look found at the top; returns false when the entry was removed
 * meanwhile. Thread-safe. Never call for an entry above the top: the index may hold a newer entry
 * once the top arrives. */
bool fl_deque_drop(fl_deque *deque, int64_t index);
/* Returns the present number of entries, approximately, never negative. Thread-safe. */
int64_t fl_deque_size(const fl_deque *deque);

/* Memory orders, once for push, pop and steal.
 *
 * Publication. Only the owner stores bottom. Every store is at least release, and follows the
 * stores of the slots below the new bottom. A thief reads bottom with acquire before the ring and
 * the slot. A thief finding t < bottom therefore sees entry t, the ring holding entry t, and
 * everything the owner wrote before pushing t.
 *
 * Refilling. Before storing a slot anew, the owner reads, with acquire, a top beyond the slot's old
 * index. A thief's compare-and-swap (release) wrote the top after reading the slot. No thief that
 * wins index t can therefore have read a later entry from its slot.
 *
 * Race for the last entry (store-load, Dekker). pop stores bottom = b, then loads top; steal loads
 * top = t, then bottom. The four accesses and the compare-and-swaps are seq_cst and have a single
 * total order. Assume that owner and thief take index b, the owner without a compare-and-swap. The
 * owner then loaded a top < b, before the swap that made top b, before the thief's load of top,
 * before the thief's load of bottom. The last load therefore finds b or the value of a later push:
 * an empty deque, or an entry pushed anew at b. No fence is needed: thread sanitizers see every
 * edge. On x86-64 the loads are plain, and pop's exchange is the only locked instruction of a push
 * and a pop. */

/* Slow path of push: reads top again, then grows the ring. */
bool fl_deque_make_room(fl_deque *deque);

static inline bool fl_deque_push(fl_deque *deque, uint64_t entry)
{
    /* Relaxed: the owner alone writes bottom and ring. */
    int64_t bottom = fl_load_relaxed(&deque->bottom);
    fl_deque_ring *ring = fl_load_relaxed(&deque->ring);
    /* top_seen <= top, read with acquire (see Refilling). */
    if (FL_UNLIKELY((uint64_t)(bottom - deque->top_seen) > ring->mask)) {
        if (!fl_deque_make_room(deque))
            return false;
        ring = fl_load_relaxed(&deque->ring);
    }
    /* Release: the task behind the entry, for fl_deque_look: the slot may be refilled during the
     * look. */
    fl_store_release(&ring->slots[(uint64_t)bottom & ring->mask], entry);
    /* Release: entry, ring and the task behind the entry before the index leading to them. */
    fl_store_release(&deque->bottom, bottom + 1);
    return true;
}

static inline bool fl_deque_pop(fl_deque *deque, uint64_t *entry)
{
    /* Relaxed: the owner alone writes bottom. */
    int64_t bottom = fl_load_relaxed(&deque->bottom) - 1;
    /* top never decreases: an old copy proves the deque empty and saves a cache line. */
    if (bottom < deque->top_seen)
        return false;
    fl_deque_ring *ring = fl_load_relaxed(&deque->ring);
    /* Seq_cst: bottom before the load of top, against a thief's top before bottom. */
    (void)fl_exchange_seq_cst(&deque->bottom, bottom);
    int64_t top = fl_load_seq_cst(&deque->top);
    deque->top_seen = top;
    if (FL_LIKELY(top < bottom)) {
        /* Relaxed: the owner stored the slot itself. */
        *entry = fl_load_relaxed(&ring->slots[(uint64_t)bottom & ring->mask]);
        return true;
    }
    bool won = false;
    if (top == bottom) {
        *entry = fl_load_relaxed(&ring->slots[(uint64_t)bottom & ring->mask]);
        /* Seq_cst: the last entry goes to the thread that moves top past it. */
        won = fl_cas_seq_cst(&deque->top, &top, bottom + 1);
        deque->top_seen = bottom + 1;
    }
    /* Release, like every store to bottom. top is bottom + 1 by now: a thief reading the value
     * finds the deque empty or fails its swap. */
    fl_store_release(&deque->bottom, bottom + 1);
    return won;
}

#endif
