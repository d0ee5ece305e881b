/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: blocks of a memory the process may not touch, cut from large chunks or taken individually.
 * The host keeps the facts about every block.
 *
 * A heap hands out and takes back only memory unused by work in flight; the giver of a block
 * guarantees the condition. Thread-safe and blocking: a single lock covers every operation, also
 * calls of the source.
 *
 * The source may have less than the limit, because further users share the memory. A refused
 * request bounds the memory lent by the source. Beyond the bound the heap does not ask: a
 * request is refused at once, and the requester makes room in the existing memory. Further users
 * may return memory, however. The heap therefore asks again once in a number of refusals; the
 * number grows while the source stays empty. The heap also asks again after a trim, a new limit,
 * or fl_heap_insist. Success ends the bound. */
#ifndef FL_MEMORY_ALLOC_HEAP_H
#define FL_MEMORY_ALLOC_HEAP_H

#include "base/atomic.h"
#include "base/error.h"
#include "base/thread.h"
#include "filch/device.h"
#include "memory/alloc/extent.h"
#include "memory/alloc/slab.h"

/* Step of rounded sizes, and alignment of blocks. */
#define FL_BLOCK_STEP ((size_t)512)

/* Source of the memory: chunks or single blocks, depending on the kind of the heap; the
 * functions for the unused kind may be null. take: FILCH_NO_DEVICE_MEMORY if no memory is left. */
typedef struct fl_source fl_source;
struct fl_source {
    const char *name; /* owner of the memory; for errors */
    void *user;       /* private to the source */
    void *pool;       /* private to the source */
    /* A power of two, at least 4096: sizes and addresses of chunks are multiples. */
    size_t granularity;
    filch_status (*chunk_take)(const fl_source *source, size_t bytes, void **chunk,
                               filch_error *error);
    void (*chunk_give)(const fl_source *source, void *chunk, size_t bytes);
    filch_status (*block_take)(const fl_source *source, size_t bytes, void **block,
                               filch_error *error);
    void (*block_give)(const fl_source *source, void *block);
    /* Hands back given blocks kept by the source; null: the source keeps no block. */
    void (*blocks_trim)(const fl_source *source);
};

/* Unused blocks of a single size, in a heap taking blocks individually. */
typedef struct fl_shelf {
    size_t bytes;
    void **blocks;
    size_t count, capacity;
} fl_shelf;

typedef struct fl_heap {
    filch_arena kind; /* never FILCH_ARENA_DEFAULT */
    const fl_memory *memory;
    fl_source source;
    fl_slabs *slabs; /* FILCH_ARENA_JEMALLOC */
    /* Guards every member below; never held while calling jemalloc: the hooks take the lock. */
    fl_mutex lock;
    uint64_t limit; /* maximum bytes to hold of the source's memory */
    /* Maximum bytes available from the source, as shown by refusals; UINT64_MAX: unknown.
     * Relaxed: changed under the lock, an independent figure. */
    _Atomic uint64_t lent;
    /* Requests beyond `lent` since the last question to the source, and number of refusals
     * before the next. */
    uint32_t refused, patience;
    /* Requests refused by the source, even at the smallest sufficient size. */
    uint64_t shortages;
    /* Bytes held of the source's memory: in chunks, or in used and unused blocks. */
    uint64_t mapped;
    uint64_t mapped_peak;
    fl_extents extents; /* heaps of chunks */
    fl_shelf *shelves;  /* FILCH_ARENA_PLAIN */
    size_t shelf_count, shelf_capacity;
} fl_heap;

static inline size_t fl_block_round(size_t bytes)
{
    return (bytes + FL_BLOCK_STEP - 1) & ~(FL_BLOCK_STEP - 1);
}

/* Makes a heap. limit bounds the bytes held of the source's memory; a limit below the size of a
 * chunk allows a single chunk. kind: as in fl_heap. FILCH_UNSUPPORTED: the build has no jemalloc
 * for FILCH_ARENA_JEMALLOC. After a failure nothing is left to free. */
filch_status fl_heap_init(fl_heap *heap, filch_arena kind, const fl_memory *memory,
                          const fl_source *source, uint64_t limit);
/* Frees the heap. Precondition: every block was given back. */
void fl_heap_fini(fl_heap *heap);
/* Takes a block. bytes: rounded by fl_block_round, not 0. If the limit or the source leaves too
 * little, unused memory goes back to the source first, followed by FILCH_NO_DEVICE_MEMORY in
 * case of failure. FILCH_OUT_OF_MEMORY: the host's memory is exhausted. */
filch_status fl_heap_take(fl_heap *heap, size_t bytes, void **block, filch_error *error);
/* Gives a block back, with bytes as taken. */
void fl_heap_give(fl_heap *heap, void *block, size_t bytes);
/* Lets the heap ask the source again. False: no refusal is known that bounds the source below
 * the limit. */
bool fl_heap_insist(fl_heap *heap);
/* Hands unused memory back to the source until at most keep bytes are held. */
void fl_heap_trim(fl_heap *heap, uint64_t keep);
/* Sets a new limit. Hands unused memory back if the limit is lower than the bytes held. */
void fl_heap_limit(fl_heap *heap, uint64_t limit);

#endif
