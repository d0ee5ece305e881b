/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: blocks of a memory that this process may not touch, cut from large chunks of it or taken
 * one by one. What is known of a block is kept on the host.
 *
 * A heap hands out and takes back only memory that nothing in flight uses: whoever gives a block
 * has made sure. Any thread; blocking: under one lock, also while the source is asked.
 *
 * The source may have less than the limit: others use it, too. A request that it refuses bounds
 * what it lends, and beyond that it is not asked any more: whoever needs memory is refused at once,
 * and makes room with what there is. But others give back what they took, so one of several
 * refusals asks again, of ever more while the source has nothing; so does what follows a trim,
 * another limit, and fl_heap_insist. What is had then ends the bound. */
#ifndef FL_MEMORY_ALLOC_HEAP_H
#define FL_MEMORY_ALLOC_HEAP_H

#include "base/atomic.h"
#include "base/error.h"
#include "base/thread.h"
#include "filch/device.h"
#include "memory/alloc/extent.h"
#include "memory/alloc/slab.h"

/* Sizes are rounded up to this, and blocks aligned to it. */
#define FL_BLOCK_STEP ((size_t)512)

/* Where the memory comes from. Chunks or single blocks, as the kind of the heap has it; the other
 * functions may be null. take: FILCH_NO_DEVICE_MEMORY where there is none. */
typedef struct fl_source fl_source;
struct fl_source {
    const char *name;   /* whose memory; for errors */
    void *user;         /* the source's own, as is … */
    void *pool;         /* … this */
    size_t granularity; /* a power of two, at least 4096: sizes and addresses of chunks */
    filch_status (*chunk_take)(const fl_source *source, size_t bytes, void **chunk,
                               filch_error *error);
    void (*chunk_give)(const fl_source *source, void *chunk, size_t bytes);
    filch_status (*block_take)(const fl_source *source, size_t bytes, void **block,
                               filch_error *error);
    void (*block_give)(const fl_source *source, void *block);
    void (*blocks_trim)(const fl_source *source); /* hands back what it keeps of given blocks;
                                                     null: it keeps nothing */
};

/* Unused blocks of one size, of a heap that takes them one by one. */
typedef struct fl_shelf {
    size_t bytes;
    void **blocks;
    size_t count, capacity;
} fl_shelf;

typedef struct fl_heap {
    filch_arena kind; /* never FILCH_ARENA_DEFAULT */
    const fl_memory *memory;
    fl_source source;
    fl_slabs *slabs;       /* FILCH_ARENA_JEMALLOC */
    fl_mutex lock;         /* all below; never held while jemalloc is called, whose hooks take it */
    uint64_t limit;        /* most bytes to hold of the source's … */
    _Atomic uint64_t lent; /* … and most that it has, by its refusals; UINT64_MAX: none is known.
                              Relaxed: changed under the lock, a figure by itself */
    uint32_t refused, patience; /* requests beyond that since it was asked; to be refused before */
    uint64_t shortages;         /* requests that the source refused, down to the size needed */
    uint64_t mapped; /* bytes of the source's held: of chunks, or of blocks used and unused */
    uint64_t mapped_peak;
    fl_extents extents; /* heaps of chunks */
    fl_shelf *shelves;  /* FILCH_ARENA_PLAIN */
    size_t shelf_count, shelf_capacity;
} fl_heap;

static inline size_t fl_block_round(size_t bytes)
{
    return (bytes + FL_BLOCK_STEP - 1) & ~(FL_BLOCK_STEP - 1);
}

/* The limit is that of what is held of the source's; where chunks are larger, of one chunk. kind:
 * as in fl_heap. FILCH_UNSUPPORTED: the build has no jemalloc for FILCH_ARENA_JEMALLOC. On failure
 * nothing is left. */
filch_status fl_heap_init(fl_heap *heap, filch_arena kind, const fl_memory *memory,
                          const fl_source *source, uint64_t limit);
/* Every block was given back. */
void fl_heap_fini(fl_heap *heap);
/* bytes: rounded by fl_block_round, not 0. Where the limit or the source leaves no more, what is
 * unused goes back to the source first; then FILCH_NO_DEVICE_MEMORY. FILCH_OUT_OF_MEMORY: the
 * host's is out. */
filch_status fl_heap_take(fl_heap *heap, size_t bytes, void **block, filch_error *error);
/* bytes as taken. */
void fl_heap_give(fl_heap *heap, void *block, size_t bytes);
/* The source is asked again for what it refused. False: it has refused nothing since. */
bool fl_heap_insist(fl_heap *heap);
/* Hands back to the source what is unused until at most keep bytes are held. */
void fl_heap_trim(fl_heap *heap, uint64_t keep);
/* Another limit; what is unused is handed back where it is lower than what is held. */
void fl_heap_limit(fl_heap *heap, uint64_t limit);

#endif
