/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of page-locked memory, cut into slots as copies need them. They are taken in order and lie
 * in that order; a slot's memory is free again when it and those taken before it are. One who uses
 * it holds its owner's lock. */
#ifndef FL_BACKEND_CUDA_QUEUE_RING_H
#define FL_BACKEND_CUDA_QUEUE_RING_H

#include "backend/backend.h"
#include "base/atomic.h"

struct fl_cuda_lane;

/* A ring holds what the link works at, some on their way, and what the processors have in work; and
 * more than the near caches of the processors that use it, for each of which it has so much: the
 * link is half as fast where it writes what still lies in these, or reads it from there. */
#define FL_RING_OF_THREAD ((size_t)4 << 20)
#define FL_RING_LEAST ((size_t)16 << 20)
#define FL_RING_MOST ((size_t)64 << 20)
#define FL_RING_SLOTS 64
/* A slot at most: 76 us of the link, and 2.6 us that it does nothing before the next. */
#define FL_SLOT_MOST ((size_t)4 << 20)
/* What a processor takes at a time, of a slot that several fill or empty: 10 us of its time. */
#define FL_UNIT_BYTES ((size_t)128 << 10)

typedef enum fl_slot_state {
    SLOT_FREE, /* in: as soon as its lane is past the sequence */
    SLOT_TAKEN,
    SLOT_ABOARD,
    SLOT_LANDING
} fl_slot_state;

typedef struct fl_cuda_slot {
    char *bytes;
    size_t at, size; /* in the ring */
    fl_slot_state state;
    uint32_t units, begun, ended; /* of the processors' work */
    fl_device *device;            /* which uses it */
    struct fl_cuda_lane *lane;    /* of that; null: none yet, or no more */
    uint64_t sequence;            /* of the copy from or to it */
    char *host;                   /* in the caller's buffer */
    size_t pitch, width, height;
    /* In: */
    fl_copy piece; /* put on the lane when all units are there */
    /* Out: */
    uint64_t copy;             /* of which it is a piece */
    bool is_behind;            /* one of another copy was put before that leads to the same bytes */
    bool is_late;              /* another device has waited for it, in vain */
    struct fl_cuda_slot *next; /* of those aboard, in the order in which they were put */
} fl_cuda_slot;

enum { RING_NONE, RING_THERE, RING_REFUSED };

typedef struct fl_cuda_ring {
    _Atomic uint32_t state; /* release once it is there or never will be */
    char *memory;
    size_t bytes;
    fl_cuda_slot slots[FL_RING_SLOTS];
    uint32_t oldest, used;
    size_t end; /* of the slot that was taken last: what was used longest ago comes next */
} fl_cuda_ring;

/* Whether nothing uses the slot. */
bool fl_cuda_slot_is_free(const fl_cuda_slot *slot);
/* Where a unit begins in the slot; that after the last: where they end. */
size_t fl_cuda_slot_begin(const fl_cuda_slot *slot, uint32_t unit);
/* Whether nothing uses any of it. */
bool fl_ring_is_idle(fl_cuda_ring *ring);
/* A slot for a piece of at most FL_SLOT_MOST bytes; null: there is no room yet. */
fl_cuda_slot *fl_ring_take(fl_cuda_ring *ring, const fl_copy *piece, char *host, size_t pitch);

#endif
