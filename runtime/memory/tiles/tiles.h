/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of a handle in every memory node, for the code moving tiles. replica.c knows the needs of
 * work items, evict.c makes room, host/write_back.c serves the host's own accesses.
 *
 * Lock order: a handle's lock first, then a lock of residents (evict.h). The holder of a
 * handle's lock may start copies. The holder must not take memory by eviction: eviction takes
 * the locks of the victims' handles. */
#ifndef FL_MEMORY_TILES_TILES_H
#define FL_MEMORY_TILES_TILES_H

#include "memory/route/plan.h"
#include "memory/tiles/evict.h"
#include "memory/tiles/replica.h"

typedef enum fl_validity { FL_INVALID, FL_SHARED, FL_MODIFIED } fl_validity;

/* A tile in a memory node. The handle's lock guards writes of the atomic members. The search for
 * a victim reads the members without the lock, and checks again under the lock before acting. */
typedef struct fl_replica {
    fl_block *block; /* memory of the tile in the node; null: no memory, or the host's */
    /* Work or copy making the tile valid. In an invalid tile: the last copy under way to the
     * tile's memory. */
    fl_marker ready;
    /* Marker of a second device preceding `ready`, or 0. A valid tile holds correct contents
     * only if `source` did not fail. */
    fl_marker source;
    _Atomic uint32_t version; /* version of the contents described by `state` */
    _Atomic uint32_t state;   /* fl_validity */
    _Atomic uint64_t coming;  /* copy of `ready` for lock-free estimates */
    /* A writer has claimed the tile and has not yet committed. A copy arriving now could
     * overwrite the result, and a copy leaving now could read half of the result. Cleared by the
     * next fl_replica_set. */
    bool is_claimed;
} fl_replica;

typedef struct fl_replicas {
    fl_mutex lock; /* guards the members below, except the pointer `at` itself */
    size_t bytes;  /* size of the whole allocation */
    uint32_t places, tiles;
    _Atomic uint32_t leaving; /* number of blocks being evicted */
    /* Number of calls of fl_replica_pin not yet undone. Changed under the lock; a read without
     * the lock is an estimate. */
    _Atomic uint32_t pins;
    struct fl_edge *edges; /* parts of tiles for items in flight (edge.h) */
    fl_block home;         /* the caller's buffer on a device, if the home is a device */
    fl_replica *at;        /* table ordered by node, then by tile */
} fl_replicas;

static inline fl_replica *fl_replica_at(const fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    return &replicas->at[(size_t)place * replicas->tiles + tile];
}

/* Returns the handle's replicas, and makes the table on the first call; null: no memory.
 * Thread-safe. */
fl_replicas *fl_replicas_get(fl_places *places, struct filch_data *data);
/* Reports a failed allocation of the replicas. */
filch_status fl_replicas_tell_none(const struct filch_data *data, filch_error *error);
/* Frees the replicas. Precondition: no blocks remain. */
void fl_replicas_free(fl_places *places, struct filch_data *data);

/* --- Estimates without the lock. Thread-safe --- */

/* Tells whether a node has the tile, now or by a copy under way. A tile that no device has used is
 * at home, or in the host's memory. */
bool fl_tile_is_at(const struct filch_data *data, uint32_t tile, uint32_t place);
/* Tells whether the tile that a node has is under way, as far as known. */
bool fl_tile_is_coming(const fl_places *places, const struct filch_data *data, uint32_t tile,
                       uint32_t place);

/* --- Under the handle's lock --- */

/* Tells whether a replica is valid. A replica of an older version carries no information; only
 * the caller's buffer, if present, is valid then. A call without the lock returns an estimate. */
bool fl_replica_is_valid(const struct filch_data *data, const fl_replica *replica, uint32_t place);
/* Tells whether a replica is valid and was not lost with a failed device. */
bool fl_replica_is_good(const fl_places *places, const struct filch_data *data,
                        const fl_replica *replica, uint32_t place);
/* Returns the failed device holding or producing a valid replica; null: the replica is good. */
fl_device *fl_replica_lost_with(const fl_places *places, const struct filch_data *data,
                                const fl_replica *replica, uint32_t place);
void fl_replica_set(const struct filch_data *data, fl_replica *replica, fl_validity state,
                    fl_marker ready);
/* Makes a replica invalid. The marker of a copy under way stays recorded, since the copy must
 * not arrive late. */
void fl_replica_invalidate(const struct filch_data *data, fl_replica *replica);
/* Waits for copies under way to an invalid replica on lanes other than the carrier's `lane`.
 * Precedes a new copy on the carrier's lane. Blocks. */
void fl_replica_clear(const fl_places *places, const fl_replica *replica, const fl_device *carrier,
                      uint32_t lane);

/* Bytes taken by a block of tiles stored without gaps between columns. */
size_t fl_rect_bytes(const struct filch_data *data, fl_rect rect);
/* Bytes of a region's elements. */
size_t fl_region_bytes(const struct filch_data *data, const fl_region *region);
/* Bytes of a tile, or of the elements in the tile of a region with the tile (null: no region). */
size_t fl_tile_part_bytes(const struct filch_data *data, uint32_t tile, const fl_region *region);
/* Bytes taken by tiles [first, end) stored without gaps between columns. */
size_t fl_coalesced_bytes(const struct filch_data *data, uint32_t first, uint32_t end);
/* Address inside a block of a tile, or of elements described by a view. */
char *fl_block_at(const struct filch_data *data, const fl_block *block, const filch_view *view);
/* Moves the tiles of an empty block into the block. Copies valid tiles of the node on the
 * device's lane, from blocks without users. */
filch_status fl_block_adopt(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                            fl_block *block, fl_device *device, filch_error *error);
/* Takes a tile out of its block. The block remembers copies under way to the tile. True: the
 * block is empty now. */
bool fl_replica_detach(const fl_places *places, const struct filch_data *data, fl_replica *replica);

/* Location of a block of elements in a memory node. */
typedef struct fl_spot {
    char *ptr;
    size_t pitch; /* bytes from a column to the next */
    uint32_t place;
    /* Marker of the block's former use; a copy to the spot waits for the marker. */
    fl_marker vacant;
} fl_spot;

/* Returns the spot of the elements described by the view. block: the block holding the elements,
 * null for the host's memory. */
fl_spot fl_spot_of(const struct filch_data *data, const filch_view *view, const fl_block *block,
                   uint32_t place);
/* Starts a copy of the elements described by the view. carrier: the device whose lane takes the
 * copy. traffic: counters of the requesting job, or null. */
filch_status fl_copy_start(fl_places *places, fl_device *carrier, const filch_view *view,
                           fl_spot to, fl_spot from, fl_marker behind, fl_traffic *traffic,
                           fl_marker *marker, filch_error *error);
/* Starts a copy of `height` columns of `width` bytes. */
filch_status fl_columns_start(fl_places *places, fl_device *carrier, size_t width, size_t height,
                              fl_spot to, fl_spot from, fl_marker behind, fl_traffic *traffic,
                              fl_marker *marker, filch_error *error);
/* Returns the best source node for a copy of the tile to a device (null: the host), either
 * direct or staged in the host's memory. replicas->places: no node has a good tile. */
uint32_t fl_tile_source(const fl_places *places, const struct filch_data *data,
                        const fl_replicas *replicas, uint32_t tile, const fl_device *device);
/* Returns the best plan for a copy of the tile, considering every route including relays if
 * may_relay. device: null for the host. */
fl_plan fl_tile_way(const fl_places *places, const struct filch_data *data,
                    const fl_replicas *replicas, uint32_t tile, const fl_device *device,
                    bool may_relay);
/* Tells whether a device's copies can reach a node other than the device's own. */
static inline bool fl_device_reaches(const fl_device *device, uint32_t place)
{
    return place == 0 || (place < 64 && (device->peers >> place & 1) != 0);
}
/* Makes a tile valid in a node already holding memory for the tile. device: a device of the
 * node, null for the host's. */
filch_status fl_tile_fill(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                          uint32_t tile, uint32_t place, fl_device *device, fl_traffic *traffic,
                          filch_error *error);
/* Makes a tile with an edge valid in a device's node (edge.h): copies the elements beside the edge,
 * and ends the edge. Does nothing without an edge. FILCH_NOT_READY, with *error unset: the tile
 * comes over a third memory, and waits for the items that read the edge. Requires the lock. */
filch_status fl_tile_complete(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                              uint32_t tile, fl_device *device, fl_traffic *traffic,
                              filch_error *error);
/* Prepares a tile for a use in the given mode. Fills an invalid tile if the mode reads, and adds
 * to waits the markers to be past before the use. */
filch_status fl_tile_fetch(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                           uint32_t tile, fl_device *device, uint32_t mode, fl_traffic *traffic,
                           fl_waits *waits, filch_error *error);
/* Blocks until no copy reads the host's tile for other nodes. Requires the lock. */
void fl_tile_await_readers(const fl_places *places, const struct filch_data *data,
                           const fl_replicas *replicas, uint32_t tile);
/* Copies a part of a tile, described by the view, from the plan's source over the plan's relay
 * to a spot outside every tile. Adds the markers of arrival to waits. After a failed copy no
 * copy remains in flight. */
filch_status fl_part_relay(fl_places *places, const struct filch_data *data, const fl_replica *from,
                           const filch_view *view, const fl_plan *plan, fl_spot to,
                           fl_device *device, fl_traffic *traffic, fl_waits *waits,
                           filch_error *error);
/* Reports a tile without a source, and names the failed device. */
filch_status fl_tile_tell_lost(const fl_places *places, const struct filch_data *data,
                               fl_replicas *replicas, uint32_t tile, filch_error *error);

#endif
