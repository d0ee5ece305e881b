/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory for filch's own structures.
 *
 * An fl_memory is a plain table carried by every runtime. It names jemalloc by default, the system
 * allocator where the build or the caller chose it, or the caller's own functions (fault injection
 * in tests). jemalloc stands behind its non-standard entry points only; filch never replaces
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
    /* Frees pointer (never null); size and align are the allocation's. */
    void (*free)(void *pointer, size_t size, size_t align, void *user);
    void *user;
    const char *name; /* "jemalloc", "system" or "caller" */
} fl_memory;

/* Returns the build's default: jemalloc, or the system allocator when the build has no jemalloc. */
fl_memory fl_memory_default(void);
fl_memory fl_memory_system(void);

/* Allocate memory; null when memory is out. Zero bytes give a unique pointer. */
void *fl_alloc(const fl_memory *memory, size_t size);
void *fl_alloc_zeroed(const fl_memory *memory, size_t size);
void *fl_alloc_aligned(const fl_memory *memory, size_t size, size_t align);
/* Free memory; size is the allocation's. Null pointers are allowed. */
void fl_free(const fl_memory *memory, void *pointer, size_t size);
void fl_free_aligned(const fl_memory *memory, void *pointer, size_t size, size_t align);
/* Writes count * size to *bytes; returns false on overflow. */
bool fl_size_mul(size_t count, size_t size, size_t *bytes);

/* Grows *items (item_size bytes per item, *capacity items) to hold at least need, doubling. The
 * contents move; a failure leaves everything unchanged. */
filch_status fl_array_reserve(const fl_memory *memory, void *items_pointer, size_t *capacity,
                              size_t need, size_t item_size);

#endif
