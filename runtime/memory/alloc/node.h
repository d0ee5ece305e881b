/* SPDX-License-Identifier: Apache-2.0 */
/* Places: the memories of a runtime, each with its arena, which all workers share.
 *
 * In front of the arena's heap (heap.h) stands a bucket for each worker of the place and one for
 * all other threads (bucket.h). A block comes back with the marker of the last work that touched
 * it, and is handed out again once that is past: work on other lanes knows nothing of it, and
 * whoever takes a block may write it from the host's side of a copy at once. Asking the driver
 * costs a microsecond, so a block whose marker is known to be past goes first, then memory that
 * nobody used, and only a heap without any asks. A taker that puts its work behind a marker anyway
 * can have a block that is not past (FL_TAKE_BEHIND): what is evicted then need not be waited for
 * by the host. */
#ifndef FL_MEMORY_ALLOC_NODE_H
#define FL_MEMORY_ALLOC_NODE_H

#include "backend/backend.h"
#include "base/core.h"
#include "memory/alloc/bucket.h"
#include "memory/alloc/heap.h"

/* A block given back whose marker was not known to be past. */
typedef struct fl_pending {
    void *ptr;
    size_t bytes;
    fl_marker last;
} fl_pending;

typedef struct fl_place {
    fl_device *device; /* one that computes there and reaches it for all; null: the host's memory */
    fl_heap heap;      /* where there is a device; all below too */
    _Atomic(void *)
        *owners;        /* workers of the buckets, as the core names them; null: not yet one's */
    fl_bucket *buckets; /* one more than there are owners: for all others */
    uint32_t owner_count;
    _Atomic uint64_t reserved; /* bytes promised and not taken; raised under the lock */
    fl_mutex lock;             /* all below; never held while the heap's lock is waited for … */
    fl_pending *pending;       /* … or a driver is asked */
    _Atomic size_t pending_count; /* relaxed: changed under the lock, looked at without */
    size_t pending_capacity, reap_at;
    uint64_t pending_bytes;
    uint64_t held; /* bytes of the heap's blocks, rounded, taken and not given back to it */
    uint64_t budget;
    uint64_t taken, given, takes, gives; /* as in the buckets, of what passed by them */
    uint64_t requested_peak;
} fl_place;

typedef struct fl_places {
    fl_core *core;
    fl_device *devices; /* of the pool, by index */
    size_t device_count;
    uint32_t count; /* 1: nothing but the host's memory, or devices that only pretend */
    fl_place *at;
    const struct fl_bandwidths *bandwidths; /* measured between places; null: none are */
    struct fl_residents *residents; /* what is in each (evict.h); null: not used for tiles */
} fl_places;

/* Chooses each place's arena as core->settings.arena says, and logs it. FILCH_UNSUPPORTED: what was
 * asked for by name cannot be had; FILCH_OUT_OF_MEMORY; what the driver says. error may be null. */
filch_status fl_places_init(fl_places *places, fl_core *core, fl_device *devices,
                            size_t device_count, uint32_t place_count, filch_error *error);
/* Nothing is in flight, and every block was given back. */
void fl_places_fini(fl_places *places);

/* Takes a block of at least bytes, aligned to 512, that nothing in flight uses; any thread. Where
 * the budget leaves no more, or the device has none, unused memory goes back to it first; then
 * FILCH_NO_DEVICE_MEMORY (blocks given back whose markers are not past do not count as unused:
 * retry once they are, or take with FL_TAKE_BEHIND). FILCH_OUT_OF_MEMORY: the host's is out. Its
 * contents are anything. */
filch_status fl_place_take(fl_places *places, uint32_t index, size_t bytes, void **block,
                           filch_error *error);
/* Gives it back; nothing uses it once the marker is past (0: now). bytes as taken. Any thread;
 * never fails. The marker must be one that others may wait for (fl_backend.is_marked), or its lane
 * the caller's own. */
void fl_place_give(fl_places *places, uint32_t index, void *block, size_t bytes, fl_marker last);

/* The block may come with a marker that is not past, behind which its first use must be put; then
 * *behind is it, else 0. */
#define FL_TAKE_BEHIND 1u
/* It was reserved. */
#define FL_TAKE_RESERVED 2u
/* It is full of zeroes, whoever had it before, once the marker in *behind is past. */
#define FL_TAKE_ZEROED 4u

/* As fl_place_take, with flags. On failure what was reserved still is. behind may be null where
 * neither FL_TAKE_BEHIND nor FL_TAKE_ZEROED is among them. */
filch_status fl_place_take_as(fl_places *places, uint32_t index, size_t bytes, uint32_t flags,
                              void **block, fl_marker *behind, filch_error *error);

/* Promises bytes (of each block fl_block_round(bytes), summed) to the caller: what others take or
 * are promised leaves them. FILCH_NO_DEVICE_MEMORY where what is in use, what is promised and this
 * are more than fl_place_budget. The promise is of budget: that free memory is in pieces which are
 * too small, or still used by work in flight, is found out by the take. Any thread. */
filch_status fl_place_reserve(fl_places *places, uint32_t index, uint64_t bytes,
                              filch_error *error);
/* Takes back what was promised and not taken. */
void fl_place_unreserve(fl_places *places, uint32_t index, uint64_t bytes);

/* Most that may be held of the device's now: the budget, or what is left of it where others use the
 * memory too and the device had no more when it was asked (heap.h); UINT64_MAX: no budget holds
 * there. Any thread. */
uint64_t fl_place_budget(const fl_places *places, uint32_t index);
/* The device is asked again for what it refused. False: it has refused nothing since. For who would
 * fail otherwise. */
bool fl_place_insist(fl_places *places, uint32_t index);

/* Another budget, at most the device's: what is unused beyond it goes back. What is in use stays;
 * takes fail until enough of it was given back. */
void fl_place_cap(fl_places *places, uint32_t index, uint64_t bytes);
/* Hands unused memory back to the device until at most keep bytes of its are held; what it refused
 * before it is asked for again. */
void fl_place_trim(fl_places *places, uint32_t index, uint64_t keep);
/* Counts; recent, but of one moment only where nobody takes or gives meanwhile. */
void fl_place_stats(fl_places *places, uint32_t index, filch_memory_stats *stats);

#endif
