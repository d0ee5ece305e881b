/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocator with free lists by size, for the small parts of one graph. Not thread-safe.
 * Unrelated to the device arenas of runtime/memory. */
#ifndef FL_BASE_ARENA_H
#define FL_BASE_ARENA_H

#include "base/memory.h"

#define FL_ARENA_MOST 65536u
#define FL_ARENA_CLASSES 39 /* 16, 32, … 512, then 1 KiB, 2 KiB, … 64 KiB */

typedef struct fl_arena_block fl_arena_block;

typedef struct fl_arena {
    const fl_memory *memory;
    fl_arena_block *blocks;
    char *at, *end;
    size_t next_block;
    void *free[FL_ARENA_CLASSES];
} fl_arena;

void fl_arena_init(fl_arena *arena, const fl_memory *memory);
/* Frees every block. */
void fl_arena_fini(fl_arena *arena);
/* Returns at most FL_ARENA_MOST bytes, aligned to 16; null when memory is out. */
void *fl_arena_alloc(fl_arena *arena, size_t size);
/* Returns a piece to its free list; size is the size of the allocation; null is allowed. */
void fl_arena_free(fl_arena *arena, void *pointer, size_t size);

#endif
