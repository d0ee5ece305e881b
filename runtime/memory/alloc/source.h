/* SPDX-License-Identifier: Apache-2.0 */
/* Source of memory for the arena of a device's node: the device's backend. */
#ifndef FL_MEMORY_ALLOC_SOURCE_H
#define FL_MEMORY_ALLOC_SOURCE_H

#include "backend/backend.h"
#include "memory/alloc/heap.h"

/* Chooses the kind of arena: the wanted kind, else FILCH_UNSUPPORTED. The default is the first
 * of jemalloc, the driver's pool, pages and plain supported by the build and the device. */
filch_status fl_source_open(fl_source *source, fl_device *device, const fl_memory *memory,
                            filch_arena wanted, filch_arena *kind, filch_error *error);
/* Closes the source. Precondition: the arena has given back its memory. */
void fl_source_close(const fl_source *source, const fl_memory *memory);

/* Name of a kind as in FILCH_ARENA, such as "jemalloc". */
const char *fl_arena_name(filch_arena kind);

#endif
