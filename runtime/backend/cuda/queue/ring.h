/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of page-locked memory, cut into slots as copies need them. Slots are taken in order and
 * lie in order. A slot's memory is free again once the slot and all slots taken before are free.
 * The user of a ring holds the owner's lock. */
#ifndef FL_BACKEND_CUDA_QUEUE_RING_H
#define FL_BACKEND_CUDA_QUEUE_RING_H

#include "backend/backend.h"
#include "base/atomic.h"

struct fl_cuda_lane;

/* Sizes of a ring. A ring holds the slots of the link, slots on the way, and slots in work by
 * processors. The size per processor also exceeds the near caches of the processor: the link is
 * half as fast writing to memory still cached there, or reading from such memory. */
#define FL_RING_OF_THREAD ((size_t)4 << 20)
#define FL_RING_LEAST ((size_t)16 << 20)
#define FL_RING_MOST ((size_t)64 << 20)
#define FL_RING_SLOTS 64
/* Largest slot: 76 us of the link, followed by 2.6 us of idle link before the next slot. */
#define FL_SLOT_MOST ((size_t)4 << 20)
/* Bytes a processor takes at a time from a slot filled or emptied by several: 10 us of work. */
#define FL_UNIT_BYTES ((size_t)128 << 10)

typedef enum fl_slot_state {
    SLOT_FREE, /* in: free once the lane is past the sequence */
    SLOT_TAKEN,
    SLOT_ABOARD,
    SLOT_LANDING
} fl_slot_state;

typedef struct fl_cuda_slot {
    char *bytes;
    size_t at, size; /* offset and bytes in the ring */
    fl_slot_state state;
    uint32_t units, begun, ended; /* units of the processors' work */
    fl_device *device;            /* device using the slot */
    struct fl_cuda_lane *lane;    /* lane of device; null: none yet, or no more */
    uint64_t sequence;            /* sequence of the copy from or to the slot */
    char *host;                   /* address in the caller's buffer */
    size_t pitch, width, height;
    /* Copies in: */
    fl_copy piece; /* put on the lane when all units are filled */
    /* Copies out: */
    uint64_t copy; /* number of the copy the piece belongs to */
    /* a piece of another copy leads to equal bytes and was put earlier */
    bool is_behind;
    bool is_late;              /* another device has waited for the slot, in vain */
    struct fl_cuda_slot *next; /* next slot aboard, in the order of putting */
} fl_cuda_slot;

enum { RING_NONE, RING_THERE, RING_REFUSED };

typedef struct fl_cuda_ring {
    _Atomic uint32_t state; /* release once the ring exists or was refused */
    char *memory;
    size_t bytes;
    fl_cuda_slot slots[FL_RING_SLOTS];
    uint32_t oldest, used;
    size_t end; /* end of the slot taken last: the memory used longest ago comes next */
} fl_cuda_ring;

/* Returns whether nothing uses the slot. */
bool fl_cuda_slot_is_free(const fl_cuda_slot *slot);
/* Returns the beginning of a unit in the slot; for the unit after the last, the end of the slot's
 * bytes. */
size_t fl_cuda_slot_begin(const fl_cuda_slot *slot, uint32_t unit);
/* Returns whether nothing uses any slot of the ring. */
bool fl_ring_is_idle(fl_cuda_ring *ring);
/* Returns a slot for a piece of at most FL_SLOT_MOST bytes; null: no room yet. */
fl_cuda_slot *fl_ring_take(fl_cuda_ring *ring, const fl_copy *piece, char *host, size_t pitch);

#endif
