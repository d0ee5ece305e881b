/* SPDX-License-Identifier: Apache-2.0 */
/* Extents: pieces of large chunks of memory the process may not touch. Nodes beside the memory
 * therefore hold every fact about a piece.
 *
 * Free pieces stand in segregated lists with two levels of size classes, searched for a good
 * fit, and merge with free neighbours (M. Masmano, I. Ripoll, A. Crespo, J. Real, "TLSF: a new
 * dynamic memory allocator for real-time systems", ECRTS 2004). Not thread-safe. */
#ifndef FL_MEMORY_ALLOC_EXTENT_H
#define FL_MEMORY_ALLOC_EXTENT_H

#include "base/memory.h"

/* Classes of sizes: powers of two, each cut into FL_EXTENT_PARTS. */
enum { FL_EXTENT_POWERS = 40, FL_EXTENT_LOG2_PARTS = 5, FL_EXTENT_PARTS = 32 };

typedef struct fl_extent fl_extent;
typedef struct fl_extent_slab fl_extent_slab;

typedef struct fl_extents {
    const fl_memory *memory;
    size_t granule;                  /* a power of two; every size and address is a multiple */
    size_t used;                     /* bytes of pieces in use */
    size_t mapped;                   /* bytes of every chunk */
    size_t chunk_count, empty_count; /* number of chunks, and of chunks without a piece in use */
    uint64_t powers;                 /* bits of the powers with free pieces */
    uint32_t parts[FL_EXTENT_POWERS];
    fl_extent *free[FL_EXTENT_POWERS][FL_EXTENT_PARTS];
    fl_extent **table; /* pieces in use, by address */
    size_t table_size, table_count;
    fl_extent *spare; /* unused nodes */
    fl_extent_slab *slabs;
} fl_extents;

void fl_extents_init(fl_extents *extents, const fl_memory *memory, size_t granule);
/* Frees the bookkeeping. The chunks belong to the caller. */
void fl_extents_fini(fl_extents *extents);

/* Adds a free chunk, aligned to the granule. FILCH_OUT_OF_MEMORY: the host's memory is
 * exhausted, and the chunk was not added. */
filch_status fl_extents_add(fl_extents *extents, void *chunk, size_t bytes);
/* Takes a piece of bytes (a multiple of the granule), aligned to align (a power of two, at least
 * the granule). FILCH_NO_DEVICE_MEMORY: no free piece is large enough. FILCH_OUT_OF_MEMORY: the
 * host's memory is exhausted. */
filch_status fl_extents_take(fl_extents *extents, size_t bytes, size_t align, void **piece);
/* Gives a piece back, and returns the piece's size. Does nothing and returns 0 for an address
 * without a piece in use. Needs no memory. */
size_t fl_extents_give(fl_extents *extents, void *piece);
/* Splits a piece in use into two, the first of `first` bytes. False: no memory, or no piece in
 * use larger than `first`. */
bool fl_extents_split(fl_extents *extents, void *piece, size_t first);
/* Merges two pieces in use. False: the pieces are no neighbours in a chunk. */
bool fl_extents_merge(fl_extents *extents, void *piece, void *next);
/* Removes the largest empty chunk of at most `most` bytes. Null: no such chunk. */
void *fl_extents_remove(fl_extents *extents, size_t most, size_t *bytes);
/* Checks the consistency of the bookkeeping, for tests. Walks every piece. */
bool fl_extents_is_valid(const fl_extents *extents);

#endif
