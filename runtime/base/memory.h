/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory for filch's own structures.
 *
 * An fl_memory is a plain table that each runtime carries: jemalloc by default, the system
 * allocator where the build or the caller chose it, or the caller's own functions (fault injection
 * in tests). jemalloc stands behind its non-standard entry points only, so filch never replaces
 * malloc. */
#ifndef FL_BASE_MEMORY_H
#define FL_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filch/status.h"

typedef struct fl_memory {
    /* Returns size (> 0) bytes aligned to align (a power of two), not zeroed, or null. */
    void *(*alloc)(size_t size, size_t align, void *user);
    /* size and align are those of the allocation. pointer is never null. */
    void (*free)(void *pointer, size_t size, size_t align, void *user);
    void *user;
    const char *name; /* "jemalloc", "system" or "caller" */
} fl_memory;

/* The build's default: jemalloc, or the system's where the build has no jemalloc. */
fl_memory fl_memory_default(void);
fl_memory fl_memory_system(void);

/* Null when memory is out or count * size overflows. Zero bytes give a unique pointer. */
void *fl_alloc(const fl_memory *memory, size_t size);
void *fl_alloc_zeroed(const fl_memory *memory, size_t size);
void *fl_alloc_aligned(const fl_memory *memory, size_t size, size_t align);
/* Null pointers are allowed; size is that of the allocation. */
void fl_free(const fl_memory *memory, void *pointer, size_t size);
void fl_free_aligned(const fl_memory *memory, void *pointer, size_t size, size_t align);
/* count * size into *bytes; false on overflow. */
bool fl_size_mul(size_t count, size_t size, size_t *bytes);

/* Grows *items (item_size bytes each, *capacity of them) to hold at least need, doubling. The
 * contents move; on failure nothing changes. */
filch_status fl_array_reserve(const fl_memory *memory, void *items_pointer, size_t *capacity,
                              size_t need, size_t item_size);

#endif
