/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's devices: discovered once from a specification, fixed until the runtime ends. */
#ifndef FL_DEVICE_POOL_H
#define FL_DEVICE_POOL_H

#include "backend/backend.h"
#include "base/atomic.h"
#include "device/links.h"
#include "device/probe.h"

/* Size of filch_device_info in the first version of the interface; later versions only append. */
#define FL_POOL_INFO_LEAST (offsetof(filch_device_info, affinity) + sizeof(uint64_t[16]))

typedef struct fl_pool {
    fl_device *devices;
    size_t count;
    size_t capacity;
    uint32_t place_count;  /* place 0, the host's memory, always counts */
    bool is_virtual;       /* every device is simulated */
    _Atomic uint64_t next; /* round-robin ticket; relaxed: only the ticket's own order matters */
    fl_refusals refusals;  /* devices left out; fixed once the pool is open */
    fl_probes probes;
    fl_bandwidths bandwidths;
} fl_pool;

/* Parses spec (null or empty: every usable GPU, else the host's cores), enumerates and opens.
 *
 * Mixed virtual and real devices, and backends missing in the build, are FILCH_UNSUPPORTED; no
 * device is FILCH_NO_DEVICE. A device named twice is FILCH_DUPLICATE_DEVICE: a repeated GPU,
 * simulator file or device name; a second item of host devices of equal team size (write host:4,
 * not host:2,host:2) unless both items name CPUs, and none in common; a second item beside an item
 * that names every device of the backend. Otherwise statuses are as in spec.h and the backends. An
 * unusable device is an error where the specification names the device by itself; else the device
 * is left out, with the reason in pool->refusals. On failure *pool is empty and how->error (may be
 * null) is filled. how->refusals is not used. */
filch_status fl_pool_open(fl_pool *pool, const char *spec, const fl_discovery *how);
void fl_pool_close(fl_pool *pool, const fl_memory *memory);

/* Implementations of the public functions of filch/device.h. An info->size below FL_POOL_INFO_LEAST
 * is FILCH_INVALID_ARGUMENT; memory without a known size counts as 0 bytes free. */
filch_status fl_pool_by_ordinal(const fl_pool *pool, filch_backend backend, uint32_t ordinal,
                                uint32_t *index);
uint32_t fl_pool_next(fl_pool *pool);
filch_status fl_pool_info(const fl_pool *pool, uint32_t index, filch_device_info *info);
filch_status fl_pool_refused(const fl_pool *pool, uint32_t index, filch_device_refusal *refusal);
uint32_t fl_pool_best_memory(const fl_pool *pool);
uint32_t fl_pool_best_score(const fl_pool *pool);
filch_status fl_pool_choose(const fl_pool *pool, filch_device_rate_fn rate, void *user,
                            uint32_t *index);

#endif
