/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arena of a device's place gets its memory: the device's backend. */
#ifndef FL_MEMORY_ALLOC_SOURCE_H
#define FL_MEMORY_ALLOC_SOURCE_H

#include "backend/backend.h"
#include "memory/alloc/heap.h"

/* Chooses the kind of arena: what was wanted, else FILCH_UNSUPPORTED; by default the first of
 * jemalloc, the driver's pool, pages and plain that the build and the device have. */
filch_status fl_source_open(fl_source *source, fl_device *device, const fl_memory *memory,
                            filch_arena wanted, filch_arena *kind, filch_error *error);
/* All memory was given back. */
void fl_source_close(const fl_source *source, const fl_memory *memory);

/* "jemalloc" and so on, as FILCH_ARENA has them. */
const char *fl_arena_name(filch_arena kind);

#endif
