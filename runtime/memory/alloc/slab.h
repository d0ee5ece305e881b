/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: small blocks of an arena's memory, by an arena of jemalloc whose extents come from the
 * owner through hooks and hold nothing of jemalloc's own.
 *
 * An arena made by "arenas.create" would write its metadata into that memory, which this process
 * must not touch; "experimental.arenas_create_ext" (jemalloc 5.3) can keep it apart. */
#ifndef FL_MEMORY_ALLOC_SLAB_H
#define FL_MEMORY_ALLOC_SLAB_H

#include <stdbool.h>
#include <stddef.h>

#include "filch/status.h"

/* Blocks up to this size go into slabs. Larger ones would be extents of their own in jemalloc too,
 * of the size of one of its classes: with sizes from 256 B to 8 MB that costs 31 % of what is
 * mapped at best (extents kept in 64 MiB pieces for ever; 35 % to 99 % with other settings of
 * decay, growth and fit) and 230 ns an operation, against 21 % and 65 ns where they are cut from
 * the chunks directly. */
#define FL_SLAB_MOST ((size_t)14336)

/* Where the pages come from; called from within take and give, from any thread. Sizes are multiples
 * of 4 KiB, as are alignments; null: no memory. give is for one piece of take's, split or merged
 * since as split and merge (false: refused) were told. */
typedef struct fl_slab_pages {
    void *(*take)(void *user, size_t bytes, size_t align);
    void (*give)(void *user, void *piece, size_t bytes);
    bool (*split)(void *user, void *piece, size_t first);
    bool (*merge)(void *user, void *piece, void *next);
    void *user;
} fl_slab_pages;

typedef struct fl_slabs fl_slabs;
struct fl_memory;

/* Whether this build has a jemalloc that can do this. */
bool fl_slabs_are_there(void);
/* FILCH_UNSUPPORTED where they are not; FILCH_OUT_OF_MEMORY. pages is copied. */
filch_status fl_slabs_new(const struct fl_memory *memory, const fl_slab_pages *pages,
                          fl_slabs **slabs);
/* Gives all pages back, whether blocks are in use or not. Null is allowed. */
void fl_slabs_free(const struct fl_memory *memory, fl_slabs *slabs);
/* At most FL_SLAB_MOST bytes, aligned to align (a power of two, at most 4096); null: no memory. Any
 * thread. */
void *fl_slabs_take(fl_slabs *slabs, size_t bytes, size_t align);
/* bytes and align as taken. Any thread. */
void fl_slabs_give(fl_slabs *slabs, void *block, size_t bytes, size_t align);

#endif
