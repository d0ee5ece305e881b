/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of a handle in all places, for those who move them: replica.c, which knows what work
 * needs, evict.c, which makes room for it, and home.c, for what the host does with them.
 *
 * Locks, in the order in which they are taken: a handle's, then one of residents (evict.h). Who
 * holds a handle's lock may start copies, but takes no memory that others have to be evicted for:
 * that needs the locks of theirs. */
#ifndef FL_MEMORY_TILES_TILES_H
#define FL_MEMORY_TILES_TILES_H

#include "memory/route/plan.h"
#include "memory/tiles/evict.h"
#include "memory/tiles/replica.h"

typedef enum fl_validity { FL_INVALID, FL_SHARED, FL_MODIFIED } fl_validity;

/* One tile in one place. The atomic members are written under the handle's lock; who looks for a
 * victim reads them without, and looks again under the lock before it does anything. */
typedef struct fl_replica {
    fl_block *block;  /* its memory there; null: none, or the host's */
    fl_marker ready;  /* what made it valid, or is on its way though it is not … */
    fl_marker source; /* … from what this made, another device's: valid if that did not fail */
    _Atomic uint32_t version; /* that state speaks of */
    _Atomic uint32_t state;   /* fl_validity */
    _Atomic uint64_t coming;  /* ready, for those who guess without the lock */
    /* Somebody has it in hand to write it, and has not said yet that it was written: what came from
     * elsewhere now could come late, and what went elsewhere be half of it. Until the next
     * fl_replica_set. */
    bool is_claimed;
} fl_replica;

typedef struct fl_replicas {
    fl_mutex lock; /* all below but at's address */
    size_t bytes;  /* of this allocation */
    uint32_t places, tiles;
    _Atomic uint32_t leaving; /* blocks that somebody is evicting */
    /* Of fl_replica_pin; changed under the lock, and without it a guess. */
    _Atomic uint32_t pins;
    fl_block home;  /* the caller's buffer on a device, if that is the home */
    fl_replica *at; /* place by place, tile by tile */
} fl_replicas;

static inline fl_replica *fl_replica_at(const fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    return &replicas->at[(size_t)place * replicas->tiles + tile];
}

/* The handle's replicas, made when first asked for; null: no memory. Any thread. */
fl_replicas *fl_replicas_get(fl_places *places, struct filch_data *data);
/* They could not be made. */
filch_status fl_replicas_tell_none(const struct filch_data *data, filch_error *error);
/* Frees them; the blocks are gone. */
void fl_replicas_free(fl_places *places, struct filch_data *data);

/* --- Under the handle's lock --- */

/* A replica of an older version says nothing; the caller's buffer is then good, where there is
 * one. Also without the lock, as a guess. */
bool fl_replica_is_valid(const struct filch_data *data, const fl_replica *replica, uint32_t place);
/* The same, and it was not lost with a device. */
bool fl_replica_is_good(const fl_places *places, const struct filch_data *data,
                        const fl_replica *replica, uint32_t place);
/* The device with which a valid replica was lost; null: it is good. */
fl_device *fl_replica_lost_with(const fl_places *places, const struct filch_data *data,
                                const fl_replica *replica, uint32_t place);
void fl_replica_set(const struct filch_data *data, fl_replica *replica, fl_validity state,
                    fl_marker ready);
/* It is valid no more; what is on its way there is remembered, as it must not come late. */
void fl_replica_invalidate(const struct filch_data *data, fl_replica *replica);
/* Before a copy on a lane of the carrier's to a replica that is not valid: what is on its way there
 * on other lanes has come. Blocks. */
void fl_replica_clear(const fl_places *places, const fl_replica *replica, const fl_device *carrier,
                      uint32_t lane);

/* Bytes that tiles [first, end) take where columns have no gaps between them. */
size_t fl_coalesced_bytes(const struct filch_data *data, uint32_t first, uint32_t end);
/* Where a tile, or elements that a view describes, are in a block that holds them. */
char *fl_block_at(const struct filch_data *data, const fl_block *block, const filch_view *view);
/* Puts the tiles of an empty block into it: what is valid of them in the place moves there, by
 * copies on the device's lane, from blocks that nobody uses. */
filch_status fl_block_adopt(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                            fl_block *block, fl_device *device, filch_error *error);
/* Takes a tile out of its block, which remembers the copies to it that are under way. True: the
 * block is empty. */
bool fl_replica_detach(const fl_places *places, const struct filch_data *data, fl_replica *replica);

/* A block of elements as it lies in a place. */
typedef struct fl_spot {
    char *ptr;
    size_t pitch; /* bytes from one column to the next */
    uint32_t place;
    fl_marker vacant; /* of the block: a copy there is put behind it */
} fl_spot;

/* Of what the view describes; block: that holds it, null for the host's memory. */
fl_spot fl_spot_of(const struct filch_data *data, const filch_view *view, const fl_block *block,
                   uint32_t place);
/* Starts a copy of what the view describes. carrier: the device on whose lane it goes; traffic: of
 * those who want it, or null. */
filch_status fl_copy_start(fl_places *places, fl_device *carrier, const filch_view *view,
                           fl_spot to, fl_spot from, fl_marker behind, fl_traffic *traffic,
                           fl_marker *marker, filch_error *error);
/* The same of some columns of some bytes each. */
filch_status fl_columns_start(fl_places *places, fl_device *carrier, size_t width, size_t height,
                              fl_spot to, fl_spot from, fl_marker behind, fl_traffic *traffic,
                              fl_marker *marker, filch_error *error);
/* The place from which a device (null: the host) best copies a tile by one copy, or by way of the
 * host's memory; replicas->places: it is good nowhere. */
uint32_t fl_tile_source(const fl_places *places, const struct filch_data *data,
                        const fl_replicas *replicas, uint32_t tile, const fl_device *device);
/* The same with all ways, perhaps over a relay; device: null for the host. */
fl_plan fl_tile_way(const fl_places *places, const struct filch_data *data,
                    const fl_replicas *replicas, uint32_t tile, const fl_device *device,
                    bool may_relay);
/* Whether a device's copies can reach a place other than its own. */
static inline bool fl_device_reaches(const fl_device *device, uint32_t place)
{
    return place == 0 || (place < 64 && (device->peers >> place & 1) != 0);
}
/* Makes a tile valid in a place where it has memory; device: one of the place, null for the
 * host's. */
filch_status fl_tile_fill(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                          uint32_t tile, uint32_t place, fl_device *device, fl_traffic *traffic,
                          filch_error *error);
/* For a use in that mode: the same where it is not valid and is to be read; adds to waits what must
 * be past before the tile may be touched there. */
filch_status fl_tile_fetch(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                           uint32_t tile, fl_device *device, uint32_t mode, fl_traffic *traffic,
                           fl_waits *waits, filch_error *error);
/* Brings what the view describes, a part of a tile, from the replica that is the plan's source over
 * the plan's relay to a spot that no tile is in; adds to waits what it has come behind. On failure
 * of the copies none is left in flight. */
filch_status fl_part_relay(fl_places *places, const struct filch_data *data, const fl_replica *from,
                           const filch_view *view, const fl_plan *plan, fl_spot to,
                           fl_device *device, fl_traffic *traffic, fl_waits *waits,
                           filch_error *error);
/* There is no source of a tile: says because of which device. */
filch_status fl_tile_tell_lost(const fl_places *places, const struct filch_data *data,
                               fl_replicas *replicas, uint32_t tile, filch_error *error);

#endif
