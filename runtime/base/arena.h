/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocator with free lists by size, for the small parts of one graph. Not thread-safe.
 * Unrelated to the device arenas of runtime/memory. */
#ifndef FL_BASE_ARENA_H
#define FL_BASE_ARENA_H

#include "base/atomic.h"
#include "base/memory.h"

#define FL_ARENA_MOST 65536u
#define FL_ARENA_FINE 512u  /* greatest size of a class of its own */
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
/* Slow path of fl_arena_alloc. */
void *fl_arena_alloc_rare(fl_arena *arena, size_t size);
/* Slow path of fl_arena_free: sizes above FL_ARENA_FINE. */
void fl_arena_free_large(fl_arena *arena, void *pointer, size_t size);
/* Slow path of fl_arena_reserve. */
bool fl_arena_reserve_rare(fl_arena *arena, size_t count, size_t size);

/* Rounds a size of at most FL_ARENA_FINE up to the size of its class. */
static inline size_t fl_arena_round(size_t size)
{
    return size == 0 ? 16 : (size + 15) / 16 * 16;
}

/* Returns at most FL_ARENA_MOST bytes, aligned to 16; null when memory is out. */
static inline void *fl_arena_alloc(fl_arena *arena, size_t size)
{
    if (FL_LIKELY(size <= FL_ARENA_FINE)) {
        size_t bytes = fl_arena_round(size);
        void **free = &arena->free[bytes / 16 - 1];
        char *piece = *free;
        if (piece != NULL) {
            *free = *(void **)(void *)piece;
            return piece;
        }
        piece = arena->at;
        if (FL_LIKELY((size_t)(arena->end - piece) >= bytes)) {
            arena->at = piece + bytes;
            return piece;
        }
    }
    return fl_arena_alloc_rare(arena, size);
}

/* Returns a piece to its free list; size is the size of the allocation; null is allowed. */
static inline void fl_arena_free(fl_arena *arena, void *pointer, size_t size)
{
    if (FL_UNLIKELY(size > FL_ARENA_FINE)) {
        fl_arena_free_large(arena, pointer, size);
    } else if (pointer != NULL) {
        void **free = &arena->free[fl_arena_round(size) / 16 - 1];
        *(void **)pointer = *free;
        *free = pointer;
    }
}

/* Makes sure that the next count allocations of size bytes succeed, if no other allocation from the
 * arena comes between. size is at most FL_ARENA_FINE. False: no memory. */
static inline bool fl_arena_reserve(fl_arena *arena, size_t count, size_t size)
{
    return FL_LIKELY((size_t)(arena->end - arena->at) >= count * fl_arena_round(size)) ||
           fl_arena_reserve_rare(arena, count, size);
}

#endif
