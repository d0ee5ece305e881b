/* SPDX-License-Identifier: Apache-2.0 */
/* Extents: the pieces of large chunks of memory that this process may not touch. All that is known
 * of a piece is therefore kept beside it, in nodes.
 *
 * A good fit by segregated lists of free pieces with two levels of classes, and their merging with
 * free neighbours (M. Masmano, I. Ripoll, A. Crespo, J. Real, "TLSF: a new dynamic memory allocator
 * for real-time systems", ECRTS 2004). Not thread-safe. */
#ifndef FL_MEMORY_ALLOC_EXTENT_H
#define FL_MEMORY_ALLOC_EXTENT_H

#include "base/memory.h"

/* Classes of sizes: powers of two, each cut into FL_EXTENT_PARTS. */
enum { FL_EXTENT_POWERS = 40, FL_EXTENT_LOG2_PARTS = 5, FL_EXTENT_PARTS = 32 };

typedef struct fl_extent fl_extent;
typedef struct fl_extent_slab fl_extent_slab;

typedef struct fl_extents {
    const fl_memory *memory;
    size_t granule; /* a power of two, of which all sizes and addresses are multiples */
    size_t used;    /* bytes of pieces in use */
    size_t mapped;  /* bytes of all chunks */
    size_t chunk_count, empty_count; /* chunks; of them, those of which nothing is in use */
    uint64_t powers;                 /* bits of the powers that have free pieces */
    uint32_t parts[FL_EXTENT_POWERS];
    fl_extent *free[FL_EXTENT_POWERS][FL_EXTENT_PARTS];
    fl_extent **table; /* of pieces in use, by address */
    size_t table_size, table_count;
    fl_extent *spare; /* nodes of nothing */
    fl_extent_slab *slabs;
} fl_extents;

void fl_extents_init(fl_extents *extents, const fl_memory *memory, size_t granule);
/* Frees what is known of the chunks, which are the caller's. */
void fl_extents_fini(fl_extents *extents);

/* Adds a chunk, all of it free; aligned to the granule. FILCH_OUT_OF_MEMORY: the host's is out, and
 * the chunk was not added. */
filch_status fl_extents_add(fl_extents *extents, void *chunk, size_t bytes);
/* Takes a piece of bytes (a multiple of the granule), aligned to align (a power of two, at least
 * the granule). FILCH_NO_DEVICE_MEMORY: no free piece is large enough. FILCH_OUT_OF_MEMORY: the
 * host's is out. */
filch_status fl_extents_take(fl_extents *extents, size_t bytes, size_t align, void **piece);
/* Gives a piece back, and returns its size; 0, and nothing happens, for what is none in use. Needs
 * no memory. */
size_t fl_extents_give(fl_extents *extents, void *piece);
/* Makes two pieces in use of one, the first of `first` bytes; false: memory is out. */
bool fl_extents_split(fl_extents *extents, void *piece, size_t first);
/* Makes one of two pieces in use; false where they are not neighbours in a chunk. */
bool fl_extents_merge(fl_extents *extents, void *piece, void *next);
/* Takes an empty chunk away: the largest of at most `most` bytes. Null: there is none. */
void *fl_extents_remove(fl_extents *extents, size_t most, size_t *bytes);
/* Whether everything holds together; for tests. Walks all of it. */
bool fl_extents_is_valid(const fl_extents *extents);

#endif
