/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: small blocks of an arena's memory, managed by a jemalloc arena. Hooks supply the extents
 * from the owner; the extents hold no metadata of jemalloc.
 *
 * An arena made by "arenas.create" would write metadata into the extents, but the process must
 * not touch the memory. "experimental.arenas_create_ext" (jemalloc 5.3) can keep the metadata
 * apart. */
#ifndef FL_MEMORY_ALLOC_SLAB_H
#define FL_MEMORY_ALLOC_SLAB_H

#include <stdbool.h>
#include <stddef.h>

#include "filch/status.h"

/* Maximum size of a block in a slab. A larger block would be an extent of its own in jemalloc,
 * too, with the size of a jemalloc class. Sizes from 256 B to 8 MB then waste at least 31 % of
 * the mapped memory (extents kept for ever in 64 MiB pieces; 35 % to 99 % with different
 * settings of decay, growth and fit) and take 230 ns an operation. Blocks cut directly from the
 * chunks waste 21 % and take 65 ns. */
#define FL_SLAB_MOST ((size_t)14336)

/* Source of pages, called within take and give on any thread. Sizes and alignments are multiples
 * of 4 KiB; a null result means no memory. give takes a piece returned by take, or changed since
 * by split and merge (false: refused). */
typedef struct fl_slab_pages {
    void *(*take)(void *user, size_t bytes, size_t align);
    void (*give)(void *user, void *piece, size_t bytes);
    bool (*split)(void *user, void *piece, size_t first);
    bool (*merge)(void *user, void *piece, void *next);
    void *user;
} fl_slab_pages;

typedef struct fl_slabs fl_slabs;
struct fl_memory;

/* Tells whether the build has a suitable jemalloc. */
bool fl_slabs_are_there(void);
/* Makes slabs. FILCH_UNSUPPORTED: no suitable jemalloc; FILCH_OUT_OF_MEMORY. pages is copied. */
filch_status fl_slabs_new(const struct fl_memory *memory, const fl_slab_pages *pages,
                          fl_slabs **slabs);
/* Frees the slabs, and gives every page back, including pages with blocks in use. Accepts null. */
void fl_slabs_free(const struct fl_memory *memory, fl_slabs *slabs);
/* Takes a block of at most FL_SLAB_MOST bytes, aligned to align (a power of two, at most 4096);
 * null: no memory. Thread-safe. */
void *fl_slabs_take(fl_slabs *slabs, size_t bytes, size_t align);
/* Gives a block back, with bytes and align as taken. Thread-safe. */
void fl_slabs_give(fl_slabs *slabs, void *block, size_t bytes, size_t align);

#endif
