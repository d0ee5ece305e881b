/* SPDX-License-Identifier: Apache-2.0 */
/* Work-stealing deque of 64-bit entries (task hints). One owner pushes and pops at the bottom,
 * last in first out; any number of thieves steal at the top, oldest first.
 *
 * The C11 form of Lê, Pop, Cohen, Zappa Nardelli, "Correct and Efficient Work-Stealing for Weak
 * Memory Models", PPoPP 2013, of the deque of Chase and Lev, SPAA 2005.
 *
 * Progress: push and pop are wait-free but for growth, which allocates; steal is lock-free and is
 * never blocked by growth. Retired rings are kept until fl_deque_fini (their sizes double, so all of
 * them together are smaller than the present one): a thief may read an old ring at any time. */
#ifndef FL_SCHED_DEQUE_H
#define FL_SCHED_DEQUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/memory.h"

typedef struct fl_ring fl_ring;

typedef struct fl_deque {
    _Alignas(64) _Atomic int64_t top;     /* thieves and the owner's last pop advance it */
    _Alignas(64) _Atomic int64_t bottom;  /* the owner's */
    _Atomic(fl_ring *) ring;
    int64_t top_seen;                     /* owner's old copy of top: a push reads top only when full */
    const fl_memory *memory;
} fl_deque;

/* log2_capacity: first ring's size. FILCH_OUT_OF_MEMORY. */
filch_status fl_deque_init(fl_deque *deque, const fl_memory *memory, unsigned log2_capacity);
/* No thief may be inside. */
void fl_deque_fini(fl_deque *deque);
/* Owner. false when the ring was full and could not grow; nothing changed then. */
bool fl_deque_push(fl_deque *deque, uint64_t entry);
/* Owner: makes room for count more entries, so that as many pushes cannot fail. */
filch_status fl_deque_reserve(fl_deque *deque, size_t count);
/* Owner. false when empty. */
bool fl_deque_pop(fl_deque *deque, uint64_t *entry);
typedef enum fl_steal { FL_STEAL_OK, FL_STEAL_EMPTY, FL_STEAL_LOST } fl_steal;
/* Any thread. FL_STEAL_LOST: another thief or the owner won the race; worth a retry. */
fl_steal fl_deque_steal(fl_deque *deque, uint64_t *entry);
/* Any thread: reads the oldest entry without taking it; false when empty. Only a hint. */
bool fl_deque_peek(fl_deque *deque, uint64_t *entry);
/* Any thread: entries now, approximately, never negative. */
int64_t fl_deque_size(const fl_deque *deque);

#endif
