/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's devices: discovered once from a specification, fixed until the runtime ends. */
#ifndef FL_DEVICE_POOL_H
#define FL_DEVICE_POOL_H

#include "backend/backend.h"
#include "base/atomic.h"

typedef struct fl_pool {
    fl_device *devices;
    size_t count;
    size_t capacity;
    uint32_t place_count;
    bool is_virtual;          /* every device is simulated */
    _Atomic uint64_t next;    /* round-robin ticket; relaxed: only its own order matters */
} fl_pool;

/* Parses spec (null or empty: every usable GPU, else the host's cores), enumerates and opens. Mixed virtual and real devices
 * are FILCH_UNSUPPORTED, a device named twice FILCH_DUPLICATE_DEVICE, none FILCH_NO_DEVICE. On failure
 * *pool is empty and *error (may be null) is filled. */
filch_status fl_pool_open(fl_pool *pool, const char *spec, const fl_discovery *how);
void fl_pool_close(fl_pool *pool, const fl_memory *memory);

/* As the public functions of filch/device.h. */
filch_status fl_pool_by_ordinal(const fl_pool *pool, filch_backend backend, uint32_t ordinal,
                                uint32_t *index);
uint32_t fl_pool_next(fl_pool *pool);
filch_status fl_pool_info(const fl_pool *pool, uint32_t index, filch_device_info *info);
uint32_t fl_pool_best_memory(const fl_pool *pool);
uint32_t fl_pool_best_score(const fl_pool *pool);
filch_status fl_pool_choose(const fl_pool *pool, filch_device_rate_fn rate, void *user,
                            uint32_t *index);

#endif
