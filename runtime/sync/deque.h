/* SPDX-License-Identifier: Apache-2.0 */
/* Work-stealing deque of 64-bit entries (task hints). One owner pushes and pops at the bottom,
 * last in first out; any number of thieves steal at the top, oldest first.
 *
 * The C11 form of Lê, Pop, Cohen, Zappa Nardelli, "Correct and Efficient Work-Stealing for Weak
 * Memory Models", PPoPP 2013, of the deque of Chase and Lev, SPAA 2005.
 *
 * Progress: push and pop are wait-free but for growth, which allocates; steal is lock-free and is
 * never blocked by growth. Retired rings are kept until fl_deque_fini (their sizes double, so all
 * of them together are smaller than the present one): a thief may read an old ring at any time. */
#ifndef FL_SYNC_DEQUE_H
#define FL_SYNC_DEQUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/memory.h"

/* Index i lives in slot i & mask. Slots are atomic because a thief may read one that the owner is
 * refilling; such a thief then fails its compare-and-swap on top. */
typedef struct fl_deque_ring {
    uint64_t mask;                 /* slots - 1; the number of slots is a power of two */
    struct fl_deque_ring *retired; /* the ring before this one, half its size */
    _Alignas(64) _Atomic uint64_t slots[];
} fl_deque_ring;

typedef struct fl_deque {
    _Alignas(64) _Atomic int64_t top;    /* thieves and the owner's last pop advance it */
    _Alignas(64) _Atomic int64_t bottom; /* the owner's */
    _Atomic(fl_deque_ring *) ring;
    int64_t top_seen; /* owner's old copy of top: a push reads top only when full */
    const fl_memory *memory;
} fl_deque;

/* 2^log2_capacity slots at first; 2^30 at most. FILCH_OUT_OF_MEMORY, FILCH_INVALID_ARGUMENT. After
 * a failure fl_deque_fini is allowed. */
filch_status fl_deque_init(fl_deque *deque, const fl_memory *memory, unsigned log2_capacity);
/* No thief may be inside. */
void fl_deque_fini(fl_deque *deque);
/* Owner. false when the ring was full and could not grow; nothing changed then. */
static inline bool fl_deque_push(fl_deque *deque, uint64_t entry);
/* Owner. false when empty. */
static inline bool fl_deque_pop(fl_deque *deque, uint64_t *entry);
typedef enum fl_steal { FL_STEAL_OK, FL_STEAL_EMPTY, FL_STEAL_LOST } fl_steal;
/* Any thread. FL_STEAL_LOST: another thief or the owner won the race; worth a retry. */
fl_steal fl_deque_steal(fl_deque *deque, uint64_t *entry);
/* Any thread; for entries that may be dead, whose owners are settled elsewhere, so that several may
 * be looked at and one in the middle may be used and left behind. The entry at *index, or at the
 * top where *index is below it; false past the last one. Sets *index, and *is_top. An entry that is
 * not at the top may be newer than the index that it was found at; it is 0 where there is none. */
bool fl_deque_look(const fl_deque *deque, int64_t *index, uint64_t *entry, bool *is_top);
/* Any thread: removes the entry that fl_deque_look found at the top; false when it was removed
 * meanwhile. Of no other entry: what is at its index when the top gets there may be a newer one. */
bool fl_deque_drop(fl_deque *deque, int64_t index);
/* Any thread: entries now, approximately, never negative. */
int64_t fl_deque_size(const fl_deque *deque);

/* The orders, once for push, pop and steal.
 *
 * Publication. Every store to bottom is by the owner and at least release, and comes after the slot
 * of each index below it was stored; a thief reads bottom with acquire before the ring and the
 * slot. So a thief that finds t < bottom sees entry t, the ring that holds it, and all that the
 * owner wrote before it pushed t.
 *
 * Refilling. A slot is stored anew only after the owner read, with acquire, a top beyond the slot's
 * old index. That top was written by a compare-and-swap (release) which followed its thief's read
 * of the slot, so no thief that wins index t can have read a later entry from its slot.
 *
 * The race for the last entry (store-load, Dekker). pop stores bottom = b, then loads top; steal
 * loads top = t, then bottom. All four and the compare-and-swaps are seq_cst, so they have one
 * total order. Were both to take index b, the owner without a compare-and-swap, then the owner
 * loaded a top < b, before the swap that made top b, before the thief's load of top, before its
 * load of bottom, which therefore finds b or what a later push stored: empty, or an entry pushed
 * anew at b. No fence is needed, so thread sanitizers see every edge; on x86-64 the loads are
 * plain, and pop's exchange is the one locked instruction of a push and a pop. */

/* Slow path of push: looks at top again, then grows. */
bool fl_deque_make_room(fl_deque *deque);

static inline bool fl_deque_push(fl_deque *deque, uint64_t entry)
{
    /* Relaxed: only this thread writes bottom and ring. */
    int64_t bottom = fl_load_relaxed(&deque->bottom);
    fl_deque_ring *ring = fl_load_relaxed(&deque->ring);
    /* top_seen <= top, and was read with acquire (Refilling, above). */
    if (FL_UNLIKELY((uint64_t)(bottom - deque->top_seen) > ring->mask)) {
        if (!fl_deque_make_room(deque))
            return false;
        ring = fl_load_relaxed(&deque->ring);
    }
    /* Release: the task behind the entry, for fl_deque_look, which may find the slot refilled. */
    fl_store_release(&ring->slots[(uint64_t)bottom & ring->mask], entry);
    /* Release: entry, ring and the task behind the entry before the index that leads to them. */
    fl_store_release(&deque->bottom, bottom + 1);
    return true;
}

static inline bool fl_deque_pop(fl_deque *deque, uint64_t *entry)
{
    /* Relaxed: only this thread writes bottom. */
    int64_t bottom = fl_load_relaxed(&deque->bottom) - 1;
    /* top never goes back: an old copy proves the deque empty without another cache line. */
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
        /* Seq_cst: the last entry goes to whoever moves top past it. */
        won = fl_cas_seq_cst(&deque->top, &top, bottom + 1);
        deque->top_seen = bottom + 1;
    }
    /* Release, like every store to bottom. top is bottom + 1 by now, so a thief that reads this
     * value finds the deque empty or fails its swap. */
    fl_store_release(&deque->bottom, bottom + 1);
    return won;
}

#endif
