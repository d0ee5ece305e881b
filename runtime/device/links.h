/* SPDX-License-Identifier: Apache-2.0 */
/* Links between the memories of a pool's devices, and the links' measured bandwidths. */
#ifndef FL_DEVICE_LINKS_H
#define FL_DEVICE_LINKS_H

#include "backend/backend.h"
#include "base/atomic.h"
#include "base/thread.h"

struct fl_pool;

typedef struct fl_bandwidths {
    bool is_ready;
    fl_mutex lock; /* admits a single measuring thread at a time */
    /* Bits of doubles, by place: [from][to]. Made by the first measurement; published with
     * release. */
    _Atomic(_Atomic uint64_t *) bits;
    size_t bytes;
} fl_bandwidths;

filch_status fl_bandwidths_init(fl_bandwidths *bandwidths);
/* Returns the measured bytes a second between two of `places` places; 0: not measured. Any
 * thread. */
double fl_bandwidths_get(const fl_bandwidths *bandwidths, uint32_t places, uint32_t from,
                         uint32_t to);
/* Makes a table for `places` places, unless a table exists: no figure is measured yet. One thread
 * at a time. */
filch_status fl_bandwidths_open(fl_bandwidths *bandwidths, const fl_memory *memory,
                                uint32_t places);
/* Stores a measured rate; the table must exist. Any thread. */
void fl_bandwidths_set(const fl_bandwidths *bandwidths, uint32_t places, uint32_t from, uint32_t to,
                       double rate);
void fl_bandwidths_fini(fl_bandwidths *bandwidths, const fl_memory *memory);

/* Implementations of the public functions of filch/device.h. */
filch_status fl_pool_link(struct fl_pool *pool, uint32_t from, uint32_t to, filch_link *link,
                          filch_error *error);
filch_status fl_pool_measure_links(struct fl_pool *pool, const fl_memory *memory,
                                   filch_error *error);

#endif
