/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's devices: discovered once from a specification, fixed until the runtime ends. */
#ifndef FL_DEVICE_POOL_H
#define FL_DEVICE_POOL_H

#include "backend/backend.h"
#include "base/atomic.h"
#include "device/links.h"
#include "device/probe.h"

/* The size of filch_device_info in the first version of the interface; later ones only append. */
#define FL_POOL_INFO_LEAST (offsetof(filch_device_info, affinity) + sizeof(uint64_t[16]))

typedef struct fl_pool {
    fl_device *devices;
    size_t count;
    size_t capacity;
    uint32_t place_count;  /* place 0, the host's memory, always counts */
    bool is_virtual;       /* every device is simulated */
    _Atomic uint64_t next; /* round-robin ticket; relaxed: only its own order matters */
    fl_refusals refusals;  /* devices left out; fixed once the pool is open */
    fl_probes probes;
    fl_bandwidths bandwidths;
} fl_pool;

/* Parses spec (null or empty: every usable GPU, else the host's cores), enumerates and opens.
 *
 * Mixed virtual and real devices and backends that the build lacks are FILCH_UNSUPPORTED, no device
 * FILCH_NO_DEVICE. FILCH_DUPLICATE_DEVICE where a device is named twice: a GPU, a simulator file or
 * a device name that repeats, a second item of host devices of one team size (write host:4, not
 * host:2,host:2), any item beside one that names all devices of its backend. Else as spec.h and
 * the backends. A device that cannot be used is an error where the specification names it by
 * itself; else it is left out, with its reason in pool->refusals. On failure *pool is empty and
 * how->error (may be null) is filled. how->refusals is not used. */
filch_status fl_pool_open(fl_pool *pool, const char *spec, const fl_discovery *how);
void fl_pool_close(fl_pool *pool, const fl_memory *memory);

/* As the public functions of filch/device.h. An info->size below that of the first version is
 * FILCH_INVALID_ARGUMENT; memory that cannot be asked for counts as 0 bytes free. */
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
