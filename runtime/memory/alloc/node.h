/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes (places): the memories of a runtime, each with an arena shared by every worker.
 *
 * A bucket per worker of the node, and a bucket for every remaining thread (bucket.h), stand in
 * front of the arena's heap (heap.h). A block comes back with the marker of the last work
 * touching the memory, and is handed out again once the marker is past. Work on a second lane is
 * not ordered behind the marker, and the taker may write the block at once from the host's side
 * of a copy. A question to the driver costs a microsecond. A block with a marker known to be
 * past therefore goes first, followed by unused memory; only an empty heap asks the driver. A
 * taker ordering its work behind a marker can have a block with a pending marker
 * (FL_TAKE_BEHIND): the host then need not wait for an evicted block. */
#ifndef FL_MEMORY_ALLOC_NODE_H
#define FL_MEMORY_ALLOC_NODE_H

#include "backend/backend.h"
#include "base/core.h"
#include "memory/alloc/bucket.h"
#include "memory/alloc/heap.h"

/* Returned block with a marker not known to be past. */
typedef struct fl_pending {
    void *ptr;
    size_t bytes;
    fl_marker last;
} fl_pending;

typedef struct fl_place {
    fl_device *device; /* representative device computing in the node; null: the host's memory */
    fl_heap heap;      /* the heap and every member below exist only with a device */
    _Atomic(void *)
        /* Workers owning the buckets, as named by the core; null: bucket not yet owned. */
        *owners;
    fl_bucket *buckets; /* a bucket per owner, and a last bucket for every remaining thread */
    uint32_t owner_count;
    /* Guards every member below; never held while waiting for the heap's lock or asking a
     * driver. */
    fl_mutex lock;
    fl_pending *pending;          /* returned blocks waiting for markers */
    _Atomic size_t pending_count; /* relaxed: changed under the lock, read without */
    size_t pending_capacity, reap_at;
    uint64_t pending_bytes;
    /* Rounded bytes of blocks taken from the heap and not given back to the heap. Relaxed: changed
     * under the lock, read without. */
    _Atomic uint64_t held;
    uint64_t budget;
    /* Counts as in the buckets, for blocks bypassing the buckets. */
    uint64_t taken, given, takes, gives;
    uint64_t requested_peak;
    /* Bytes copied into and out of the node, ever. Relaxed: statistics. */
    _Atomic uint64_t copied_in, copied_out;
} fl_place;

typedef struct fl_places {
    fl_core *core;
    fl_device *devices; /* devices of the pool, by index */
    size_t device_count;
    /* Number of nodes; 1: only the host's memory, or devices with a pretended memory. */
    uint32_t count;
    fl_place *at;
    const struct fl_bandwidths *bandwidths; /* measured between nodes; null: not measured */
    /* Blocks of every node (evict.h); null: no tiles in the nodes. */
    struct fl_residents *residents;
} fl_places;

/* Chooses every node's arena according to core->settings.arena, and logs the choice.
 * FILCH_UNSUPPORTED: the arena asked for by name is not available; FILCH_OUT_OF_MEMORY; errors
 * of the driver. error may be null. */
filch_status fl_places_init(fl_places *places, fl_core *core, fl_device *devices,
                            size_t device_count, uint32_t place_count, filch_error *error);
/* Frees the nodes. Precondition: nothing is in flight, and every block was given back. */
void fl_places_fini(fl_places *places);

/* Takes a block of at least bytes, aligned to 512 and unused by work in flight, with arbitrary
 * contents. If the budget or the device leaves too little, unused memory goes back to the device
 * first, followed by FILCH_NO_DEVICE_MEMORY in case of failure. Returned blocks with pending
 * markers do not count as unused: retry once the markers are past, or take with FL_TAKE_BEHIND.
 * FILCH_OUT_OF_MEMORY: the host's memory is exhausted. Thread-safe. */
filch_status fl_place_take(fl_places *places, uint32_t index, size_t bytes, void **block,
                           filch_error *error);
/* Gives a block back; the block is unused once the marker is past (0: now). bytes as taken.
 * Thread-safe; never fails. Every thread must be able to wait for the marker
 * (fl_backend.is_marked), unless the marker's lane belongs to the caller. */
void fl_place_give(fl_places *places, uint32_t index, void *block, size_t bytes, fl_marker last);

/* Flag: the block may come with a pending marker, returned in *behind (else 0). The first use
 * must be ordered behind the marker. */
#define FL_TAKE_BEHIND 1u
/* Flag: the block is full of zeroes, regardless of former owners, once the marker in *behind is
 * past. */
#define FL_TAKE_ZEROED 2u

/* Takes a block as fl_place_take does, with flags. behind may be null without FL_TAKE_BEHIND and
 * FL_TAKE_ZEROED. */
filch_status fl_place_take_as(fl_places *places, uint32_t index, size_t bytes, uint32_t flags,
                              void **block, fl_marker *behind, filch_error *error);

/* Maximum bytes currently available from the device: the device's budget (a lower fl_place_cap
 * does not count), or less if further users share the memory and the device refused a request
 * (heap.h). UINT64_MAX: no budget applies. Thread-safe. */
uint64_t fl_place_budget(const fl_places *places, uint32_t index);
/* Measured bytes a second from one node to another; 0: not measured. Thread-safe. */
double fl_places_rate(const fl_places *places, uint32_t from, uint32_t to);
/* Lets the heap ask the device again after refusals. False: no refusal is known, or the node is
 * the host's. For callers about to fail. */
bool fl_place_insist(fl_places *places, uint32_t index);

/* Sets a new budget, at most the device's. Unused memory beyond the budget goes back. Memory in
 * use stays; takes fail until enough memory was given back. */
void fl_place_cap(fl_places *places, uint32_t index, uint64_t bytes);
/* Hands unused memory back to the device until at most keep bytes of the device's memory are
 * held. Later requests ask the device again, regardless of earlier refusals. */
void fl_place_trim(fl_places *places, uint32_t index, uint64_t keep);
/* Returns counts: recent, but consistent only without concurrent takes and gives. */
void fl_place_stats(fl_places *places, uint32_t index, filch_memory_stats *stats);

/* Present figures of a node, for a reader that must hold nobody up. */
typedef struct fl_place_figures {
    uint64_t held;                  /* bytes taken from the heap, of the budget */
    uint64_t budget;                /* of the device; 0: the node is the host's */
    uint64_t copied_in, copied_out; /* bytes ever copied into and out of the node */
} fl_place_figures;

/* Reads the figures of a node. Thread-safe; wait-free. */
fl_place_figures fl_place_figures_now(const fl_places *places, uint32_t index);

/* Counts a copy between two nodes. Thread-safe; wait-free. */
static inline void fl_place_count_copy(fl_places *places, uint32_t to, uint32_t from, size_t bytes)
{
    /* Relaxed: statistics. */
    fl_add_relaxed(&places->at[to].copied_in, bytes);
    fl_add_relaxed(&places->at[from].copied_out, bytes);
}

#endif
