/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas: the validity of a handle's tiles per memory node, and the copies making tiles valid.
 *
 * A tile is invalid, shared (valid in the node, perhaps elsewhere too) or modified (valid only in
 * the node). The order of a graph's tasks separates conflicting uses of a tile. Replicas record the
 * good copies and the markers preceding the copies' validity. A device's node gets memory for a
 * tile on the first need. The node keeps the memory until the handle's end or an eviction
 * (evict.h).
 *
 * Storage. Tiles lie in blocks. A block holds a rectangle of tiles of a handle; a tile is in at
 * most a single block per node. A task's access to a tile makes a block of the tile or a few tiles.
 * A chunk of a batch, and a task's access to a block of tiles, need a contiguous view of their
 * tiles. They therefore take, in the order given,
 *  1. an existing block holding every tile of the chunk;
 *  2. for a chunk: a new block for the whole handle, if no eviction is necessary;
 *  3. for a writing use, and for one of the whole handle: a new block for the tiles, receiving the
 *     tiles already in the node; for a handle with halos: a new block for the whole handle, if no
 *     eviction is necessary and nobody uses a tile in the node;
 *  4. for a use that only reads: a private block, filled from the sources of its elements and
 *     given back at the end of the use. A task takes this way also where the way before would move
 *     tiles that other items use. Chunks of a buffer owned by the host between jobs always use
 *     private copies (`is_streamed`), with a copy out if written.
 * A halo has parts of tiles. An invalid tile at the side of a halo gets the part into its place in
 * the block, and stays invalid (edge.h).
 * Handles fitting into memory thus lie in a single block without further copies, and larger handles
 * lie in blocks of tiles or chunks. A tile in a larger block is used in place. Eviction takes the
 * whole block; the tiles come back on demand. Columns lie without gaps in every block but the
 * caller's own (a handle with a home on a device).
 *
 * Versions. The host may write to the buffer of an unmanaged handle between jobs. The start of a
 * job on an unmanaged handle therefore begins a new version, with only the host's copy valid. */
#ifndef FL_MEMORY_TILES_REPLICA_H
#define FL_MEMORY_TILES_REPLICA_H

#include "memory/alloc/node.h"
#include "memory/tiles/data.h"
#include "memory/tiles/evict.h"

/* Bytes moved by the copies of a job between a device and other memories. Every worker may add
 * to the counters. */
typedef struct fl_traffic {
    _Alignas(64) _Atomic uint64_t in; /* bytes from the host's memory */
    _Atomic uint64_t out;             /* bytes to the host's memory */
    _Atomic uint64_t peer;            /* bytes from a second device's memory */
    _Atomic uint64_t evicted;         /* number of blocks evicted to make room for the job */
    /* Bytes written back by the evictions, also counted in `out`. */
    _Atomic uint64_t written_back;
} fl_traffic;

/* A work item's use of a handle. */
typedef struct fl_operand {
    struct filch_data *data;
    filch_view *view; /* on entry: as on the host; on return: as in the node */
    uint32_t mode;    /* FILCH_READ, FILCH_WRITE or FILCH_READWRITE */
    bool is_final;    /* no later task of the job writes some tile: write such tiles back */
    /* Chunk of a batch: elements [first, last) along the divided axis; else a block of tiles. */
    bool is_chunk;
    bool is_whole; /* batch: every chunk uses the whole handle */
    fl_rect tiles; /* of a chunk set by resolve */
    /* Read block with a halo: the elements, some of them parts of tiles. Null: tiles as a whole. */
    const fl_region *region;
    /* Block of tiles that is final: the number of the last user to write each tile of the handle,
     * and the number of this user. Null: every tile of the operand is final. */
    const uint32_t *last_writers;
    uint32_t writer;
    uint64_t first, last;
    /* Set by resolve: chunks of an unmanaged handle with a home in host memory. Every chunk is
     * copied in and out individually, regardless of tiles. */
    bool is_streamed;
    /* Private output of a chunk that writes the handle without reading. Fetch gives the chunk
     * private memory regardless of tiles, and evicts no block for the memory. The memory stays
     * invisible until fl_operand_publish. On the host, fetch gives no memory. */
    bool is_shadowed;
    /* Set by fetch: a chunk's private memory, until commit or release. A private output keeps
     * the memory until published or given back. */
    fl_block *staging;
    bool is_reserved; /* internal to fetch */
    uint32_t edged;   /* internal to fetch: tiles looked at for edges */
    uint64_t fetched; /* set by fetch: the number of the fetch in the node */
    /* Counters of the operand's copies, an entry per device; null: not counted. */
    fl_traffic *traffic;
} fl_operand;

/* Set of markers an operation has to wait for. */
#define FL_MOST_WAITS 1024
typedef struct fl_waits {
    fl_marker at[FL_MOST_WAITS];
    uint32_t count;
} fl_waits;

/* Adds a marker; 0 adds nothing. */
filch_status fl_waits_add(fl_waits *waits, fl_marker marker, filch_error *error);
/* Returns FILCH_OK once every marker is past, FILCH_NOT_READY, or the error of a failed device.
 * Removes past markers. */
filch_status fl_waits_check(fl_places *places, fl_waits *waits, filch_error *error);
/* Blocks until a marker (0: no marker) is past, or the marker's device has failed. */
filch_status fl_marker_await(const fl_places *places, fl_marker marker, filch_error *error);
/* Abandons a wait: blocks until the copies no longer touch memory. */
void fl_waits_abandon(fl_places *places, fl_waits *waits);

/* Finds the tiles of a chunk's operand, and sets is_streamed. */
void fl_operand_resolve(fl_operand *operand);
/* Limits on memory taken for operands, and on eviction. */
typedef struct fl_admission {
    const fl_foresight *foresight; /* null: next uses are unknown */
    bool is_tight;                 /* the node is empty: take no more than the operands' need */
    bool is_pressed;               /* eviction is necessary for the operands */
    bool is_spare;                 /* eviction is forbidden for the operands */
} fl_admission;

/* What a work item's fetch leaves for the release: a bit set of the staged operands, and the number
 * of the fetch in the node. An item has no more staged operands than bits. */
#define FL_MOST_STAGED 256
typedef struct fl_staged {
    uint64_t bits[FL_MOST_STAGED / 64];
    uint64_t fetched;
} fl_staged;

/* Makes every operand of a work item available to a device (null: a device in the host's
 * memory), or no operand. Reserves and pins memory, starts copies, and sets the views. Adds to
 * waits the markers to be past before the operands' use. FILCH_NOT_READY, with *error unset: no
 * room now, but perhaps after a retirement. FILCH_NO_DEVICE_MEMORY: no room although the node
 * has no further item in flight. Callable by every worker. */
filch_status fl_operands_fetch(fl_places *places, fl_device *device, fl_operand *operands,
                               uint32_t count, const fl_admission *admission, fl_waits *waits,
                               filch_error *error);
/* Releases the operands, once per successful fetch. The item has retired, or the item never went
 * onto a lane and its waits are abandoned. staged: operands with private memory already given
 * back by commit; null: no operand. */
void fl_operands_release(fl_places *places, fl_device *device, fl_operand *operands, uint32_t count,
                         const fl_staged *staged);
/* Returns the set of operands with private memory. */
fl_staged fl_operands_staged(const fl_operand *operands, uint32_t count);
/* Commits a written operand after the work went onto a lane behind the waits. marker: the work's
 * own marker (0: the work ran on the host). The written tiles become valid only in the device's
 * node. Starts a write-back if required; *home is the write-back's marker, else 0. Changes
 * nothing for a private output. */
filch_status fl_operand_commit(fl_places *places, fl_device *device, fl_operand *operand,
                               fl_marker marker, fl_marker *home, filch_error *error);

/* Publishes a private output: the work is past and its result counts. A streamed output is
 * written back like every chunk. Otherwise the private memory becomes the tiles' memory in the
 * node, the only valid copy. Takes no memory. The call ends the caller's ownership of the
 * private memory, also on failure. */
filch_status fl_operand_publish(fl_places *places, fl_device *device, fl_operand *operand,
                                fl_marker *home, filch_error *error);

/* --- For broadcasts of a tile to several nodes (host/broadcast.c), while no second job uses the
 * handle --- */

/* Location of a tile, present or future. */
typedef struct fl_replica_spot {
    char *ptr;           /* first element of the tile */
    size_t pitch;        /* bytes from a column to the next */
    bool is_good;        /* tile is valid in the node once `behind` is past */
    fl_marker behind[2]; /* markers preceding validity; 0: no marker */
} fl_replica_spot;

/* Prepares every wanted node (a flag per node) for the tile, and describes every node in spots.
 * A null ptr means no memory. Requires a pinned handle. Fails, perhaps with memory already
 * taken, if a node lacks memory or every node lacks the tile. FILCH_NOT_READY: later releases
 * may free enough memory. */
filch_status fl_replica_open(fl_places *places, struct filch_data *data, uint32_t tile,
                             const bool *wanted, fl_replica_spot *spots, filch_error *error);
/* Begins a version as a job using the handle starts or ends. Precondition: no second job runs.
 * Requires core->lock. */
void fl_data_begin_version(struct filch_data *data);
/* Blocks until no write-back by an eviction is under way to the home or the host's buffer.
 * Follows fl_data_begin_version after a failed job. */
void fl_data_quiesce(fl_places *places, struct filch_data *data);
/* Makes the given tiles usable by the host in the given mode, with contents for reading. Blocks.
 * On failure *error names the handle. */
filch_status fl_data_fetch_host(fl_places *places, struct filch_data *data, fl_tiles tiles,
                                filch_access_mode mode, filch_error *error);
/* Notes the host's writes to the given tiles: only the host's copy is valid. Copies the tiles to
 * a caller's buffer on a device, if the buffer must be current; blocks for the copies. */
filch_status fl_data_host_wrote(fl_places *places, struct filch_data *data, fl_tiles tiles,
                                filch_error *error);
/* Ends the lifetime of a temporary's tile: the contents are lost, without a copy anywhere, and the
 * tile's memory in every node is free once copies under way are past. Memory pinned by a fetch
 * ahead of a task that has run elsewhere stays until fl_data_end_lifetimes. Precondition: no task
 * uses the tile. Thread-safe. Blocks for copies from and to the host's memory. */
void fl_tile_end_lifetime(fl_places *places, struct filch_data *data, uint32_t tile);
/* Ends the lifetimes of all tiles. Precondition: as above. */
void fl_data_end_lifetimes(fl_places *places, struct filch_data *data);
/* Frees the handle's memory in every node. Precondition: no job uses the handle. */
void fl_data_drop_replicas(fl_places *places, struct filch_data *data);

#endif
