/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/memory.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN_NATURAL alignof(max_align_t)
#define ARRAY_FIRST 8

static void *system_alloc(size_t size, size_t align, void *user)
{
    void *pointer = NULL;

    (void)user;
    if (align <= ALIGN_NATURAL)
        return malloc(size);
    return posix_memalign(&pointer, align, size) == 0 ? pointer : NULL;
}

static void system_free(void *pointer, size_t size, size_t align, void *user)
{
    (void)size;
    (void)align;
    (void)user;
    free(pointer);
}

fl_memory fl_memory_system(void)
{
    return (fl_memory){system_alloc, system_free, NULL, "system"};
}

#ifdef FL_HAVE_JEMALLOC

/* Only mallocx and sdallocx are used. The build hides jemalloc's malloc and free: a host that links
 * or loads filch keeps its own. */
#include <jemalloc/jemalloc.h>

static int jemalloc_flags(size_t align)
{
    return align <= ALIGN_NATURAL ? 0 : MALLOCX_LG_ALIGN(__builtin_ctzll(align));
}

static void *jemalloc_alloc(size_t size, size_t align, void *user)
{
    (void)user;
    return mallocx(size, jemalloc_flags(align));
}

static void jemalloc_free(void *pointer, size_t size, size_t align, void *user)
{
    (void)user;
    /* The sized call skips the look-up of the size class. */
    sdallocx(pointer, size, jemalloc_flags(align));
}

fl_memory fl_memory_default(void)
{
    return (fl_memory){jemalloc_alloc, jemalloc_free, NULL, "jemalloc"};
}

#else

fl_memory fl_memory_default(void)
{
    return fl_memory_system();
}

#endif

/* Allocators never see a size of zero. alloc and free must agree on the substitute. */
static size_t size_real(size_t size)
{
    return size == 0 ? 1 : size;
}

void *fl_alloc(const fl_memory *memory, size_t size)
{
    return memory->alloc(size_real(size), ALIGN_NATURAL, memory->user);
}

void *fl_alloc_zeroed(const fl_memory *memory, size_t size)
{
    void *pointer = fl_alloc(memory, size);

    if (pointer != NULL)
        memset(pointer, 0, size);
    return pointer;
}

void *fl_alloc_aligned(const fl_memory *memory, size_t size, size_t align)
{
    assert(align != 0 && (align & (align - 1)) == 0);
    return memory->alloc(size_real(size), align, memory->user);
}

void fl_free(const fl_memory *memory, void *pointer, size_t size)
{
    fl_free_aligned(memory, pointer, size, ALIGN_NATURAL);
}

void fl_free_aligned(const fl_memory *memory, void *pointer, size_t size, size_t align)
{
    if (pointer != NULL)
        memory->free(pointer, size_real(size), align, memory->user);
}

bool fl_size_mul(size_t count, size_t size, size_t *bytes)
{
    if (size != 0 && count > SIZE_MAX / size)
        return false;
    *bytes = count * size;
    return true;
}

filch_status fl_array_reserve(const fl_memory *memory, void *items_pointer, size_t *capacity,
                              size_t need, size_t item_size)
{
    size_t grown = *capacity > SIZE_MAX / 2 ? SIZE_MAX : *capacity * 2;
    size_t bytes;
    void *before;
    void *after;

    if (need <= *capacity)
        return FILCH_OK;
    if (grown < ARRAY_FIRST)
        grown = ARRAY_FIRST;
    if (grown < need)
        grown = need;
    /* Doubling near the top of the address space may overflow although need itself does not. */
    if (!fl_size_mul(grown, item_size, &bytes)) {
        grown = need;
        if (!fl_size_mul(grown, item_size, &bytes))
            return FILCH_OVERFLOW;
    }
    after = fl_alloc(memory, bytes);
    if (after == NULL)
        return FILCH_OUT_OF_MEMORY;
    /* The pointer has the caller's type, hence the move as bytes. */
    memcpy(&before, items_pointer, sizeof before);
    if (before != NULL) {
        memcpy(after, before, *capacity * item_size);
        fl_free(memory, before, *capacity * item_size);
    }
    memcpy(items_pointer, &after, sizeof after);
    *capacity = grown;
    return FILCH_OK;
}
