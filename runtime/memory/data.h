/* SPDX-License-Identifier: Apache-2.0 */
/* Data handles, and the queue of the jobs that use each. */
#ifndef FL_MEMORY_DATA_H
#define FL_MEMORY_DATA_H

#include "base/core.h"
#include "filch/codelet.h"
#include "filch/data.h"

typedef struct fl_use fl_use;
struct fl_replicas;

/* One job's place in a handle's queue. Jobs that conflict run in the order of submission: a reader
 * waits for the writers before it, a writer for everything before it. */
struct fl_use {
    struct filch_data *data;
    void *job;           /* who waits; opaque here */
    fl_use *next, *prev; /* in the data's queue */
    bool writes;
    bool granted;
    bool queued;
};

struct filch_data {
    fl_object object;
    char *base;
    uint64_t element, rows, cols, ld;
    uint64_t tile_rows, tile_cols;
    uint32_t tiles_down, tiles_across;
    fl_use *first, *last; /* under core->lock */
    /* Where its tiles are valid, made when a device first uses it (replica.c). */
    _Atomic(struct fl_replicas *) replicas;
    uint32_t version;        /* of the contents, as far as filch keeps track; under core->lock */
    bool is_managed;         /* between jobs too the tiles are where they were last used */
    bool is_held;            /* the host has acquired it; under core->lock */
    bool is_written;         /* and writes to it; likewise */
    _Atomic uint32_t graphs; /* graphs that name it; relaxed, checked under the caller's contract */
    char label[64];
};

/* Number of tiles. */
static inline uint32_t fl_data_tile_count(const struct filch_data *data)
{
    return data->tiles_down * data->tiles_across;
}

/* The block that a tile covers. */
filch_view fl_data_tile_view(const struct filch_data *data, uint32_t tile);
/* Elements [first, last) of a 1-D handle, or those columns of a 2-D one. */
filch_view fl_data_range_view(const struct filch_data *data, uint64_t first, uint64_t last);
/* Elements along the axis that a batch divides: columns, or rows where there is one column. */
uint64_t fl_data_extent(const struct filch_data *data);
/* Tile width along that axis. */
uint64_t fl_data_tile_extent(const struct filch_data *data);

/* Puts a use at the end of its data's queue; under core->lock. True when it need not wait. */
bool fl_use_enqueue(fl_use *use);
/* The same, in front of another use of the data (null: at the end). */
bool fl_use_enqueue_before(fl_use *use, fl_use *next);
/* Takes a use out and calls granted for each that thereby need wait no more; under core->lock. */
void fl_use_leave(fl_use *use, void (*granted)(fl_use *use, void *user), void *user);

#endif
