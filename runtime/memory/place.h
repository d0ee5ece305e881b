/* SPDX-License-Identifier: Apache-2.0 */
/* Places: the memories of a runtime. Blocks of device memory are taken from the driver when first
 * needed and kept for reuse, since taking and giving them back may serialize the device. */
#ifndef FL_MEMORY_PLACE_H
#define FL_MEMORY_PLACE_H

#include "backend/backend.h"
#include "base/core.h"

/* Blocks of one size that nobody uses. */
typedef struct fl_bin {
    size_t bytes;
    void **blocks;
    size_t count, capacity;
} fl_bin;

typedef struct fl_place {
    fl_device *device; /* one that computes there and reaches it for all; null: the host's memory */
    fl_mutex lock;     /* all below */
    uint64_t taken;    /* bytes of the device's, in use or in the bins; at most its budget */
    fl_bin *bins;
    size_t bin_count, bin_capacity;
} fl_place;

typedef struct fl_places {
    fl_core *core;
    fl_device *devices; /* of the pool, by index */
    size_t device_count;
    uint32_t count; /* 1: nothing but the host's memory, or devices that only pretend */
    fl_place *at;
    struct fl_residents *residents; /* what is in each (evict.h); null: not used for tiles */
} fl_places;

filch_status fl_places_init(fl_places *places, fl_core *core, fl_device *devices,
                            size_t device_count, uint32_t place_count);
/* Nothing is in flight, and every block was given back. */
void fl_places_fini(fl_places *places);

/* Takes a block of at least bytes; any thread. Where the device's budget leaves no more, or the
 * device has none, the unused blocks of other sizes go back to it first; then
 * FILCH_NO_DEVICE_MEMORY. */
filch_status fl_place_take(fl_places *places, uint32_t index, size_t bytes, void **block,
                           filch_error *error);
/* Gives it back; nothing in flight uses it. bytes as taken. Any thread. */
void fl_place_give(fl_places *places, uint32_t index, void *block, size_t bytes);

#endif
