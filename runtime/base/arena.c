/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#define FIRST_BLOCK 1024u
#define LAST_BLOCK (256u * 1024u)

struct fl_arena_block {
    fl_arena_block *next;
    size_t bytes;
};

void fl_arena_init(fl_arena *arena, const fl_memory *memory)
{
    *arena = (fl_arena){.memory = memory, .next_block = FIRST_BLOCK};
}

void fl_arena_fini(fl_arena *arena)
{
    for (fl_arena_block *block = arena->blocks; block != NULL;) {
        fl_arena_block *next = block->next;
        fl_free(arena->memory, block, block->bytes);
        block = next;
    }
    fl_arena_init(arena, arena->memory);
}

/* Rounds a size up to its size class and returns the class number. Classes are every 16 bytes up to
 * 512, then powers of two. */
static unsigned class_of(size_t size, size_t *rounded)
{
    if (size <= FL_ARENA_FINE) {
        *rounded = fl_arena_round(size);
        return (unsigned)(*rounded / 16) - 1;
    }
    unsigned class = 32;
    size_t bytes = 1024;
    while (bytes < size) {
        bytes *= 2;
        ++class;
    }
    *rounded = bytes;
    return class;
}

static bool add_block(fl_arena *arena, size_t need)
{
    size_t bytes = arena->next_block;
    while (bytes < need + sizeof(fl_arena_block) + 16) {
        bytes *= 2;
    }
    fl_arena_block *block = fl_alloc(arena->memory, bytes);
    if (block == NULL) {
        return false;
    }
    *block = (fl_arena_block){arena->blocks, bytes};
    arena->blocks = block;
    arena->at = (char *)block + 16;
    arena->end = (char *)block + bytes;
    if (arena->next_block < LAST_BLOCK) {
        arena->next_block *= 2;
    }
    return true;
}

void *fl_arena_alloc_rare(fl_arena *arena, size_t size)
{
    if (size > FL_ARENA_MOST) {
        return NULL;
    }
    size_t bytes;
    unsigned class = class_of(size, &bytes);
    void *reused = arena->free[class];
    if (reused != NULL) {
        arena->free[class] = *(void **)reused;
        return reused;
    }
    if ((size_t)(arena->end - arena->at) < bytes && !add_block(arena, bytes)) {
        return NULL;
    }
    void *piece = arena->at;
    arena->at += bytes;
    return piece;
}

void fl_arena_free_large(fl_arena *arena, void *pointer, size_t size)
{
    if (pointer != NULL) {
        size_t bytes;
        unsigned class = class_of(size, &bytes);
        *(void **)pointer = arena->free[class];
        arena->free[class] = pointer;
    }
}

bool fl_arena_reserve_rare(fl_arena *arena, size_t count, size_t size)
{
    void *taken = NULL;
    bool fits = true;
    for (size_t i = 0; i < count && fits; ++i) {
        void *piece = fl_arena_alloc(arena, size);
        fits = piece != NULL;
        if (fits) {
            *(void **)piece = taken;
            taken = piece;
        }
    }
    while (taken != NULL) {
        void *next = *(void **)taken;
        fl_arena_free(arena, taken, size);
        taken = next;
    }
    return fits;
}
