/* SPDX-License-Identifier: Apache-2.0 */
/* What joins the memories of a pool's devices, and how fast that was found to be. */
#ifndef FL_DEVICE_LINKS_H
#define FL_DEVICE_LINKS_H

#include "backend/backend.h"
#include "base/atomic.h"
#include "base/thread.h"

struct fl_pool;

typedef struct fl_bandwidths {
    bool is_ready;
    fl_mutex lock; /* one measures at a time */
    /* Bits of doubles, place by place: from, to. Made by who measures first; release then. */
    _Atomic(_Atomic uint64_t *) bits;
    size_t bytes;
} fl_bandwidths;

filch_status fl_bandwidths_init(fl_bandwidths *bandwidths);
/* Bytes a second from one place to another of so many, as measured; 0: they were not. Any thread.
 */
double fl_bandwidths_get(const fl_bandwidths *bandwidths, uint32_t places, uint32_t from,
                         uint32_t to);
/* Makes the table, where there is none, for `places` places: nothing is measured. One at a time. */
filch_status fl_bandwidths_open(fl_bandwidths *bandwidths, const fl_memory *memory,
                                uint32_t places);
/* What was measured; the table is there. Any thread. */
void fl_bandwidths_set(const fl_bandwidths *bandwidths, uint32_t places, uint32_t from, uint32_t to,
                       double rate);
void fl_bandwidths_fini(fl_bandwidths *bandwidths, const fl_memory *memory);

/* As the public functions of filch/device.h. */
filch_status fl_pool_link(struct fl_pool *pool, uint32_t from, uint32_t to, filch_link *link,
                          filch_error *error);
filch_status fl_pool_measure_links(struct fl_pool *pool, const fl_memory *memory,
                                   filch_error *error);

#endif
