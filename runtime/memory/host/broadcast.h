/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a broadcast. A step starts a stretch of copies and follows up earlier copies, until
 * every copy has arrived. No second job uses the handle between new and free. */
#ifndef FL_MEMORY_HOST_BROADCAST_H
#define FL_MEMORY_HOST_BROADCAST_H

#include "filch/broadcast.h"
#include "memory/tiles/replica.h"

typedef struct fl_broadcast fl_broadcast;

/* Makes a broadcast of tiles [tile, tile_end). wants: a flag per node, copied. piece: bytes; 0:
 * chosen. Null: no memory. Every function here is callable on any thread, but only by a single
 * thread at a time. */
fl_broadcast *fl_broadcast_new(fl_places *places, filch_data *data, const bool *wants,
                               uint32_t tile, uint32_t tile_end, filch_broadcast_way way,
                               uint64_t piece);
/* Frees the broadcast. Precondition: the copies are past, thus the last step did not return
 * FILCH_NOT_READY. */
void fl_broadcast_free(fl_broadcast *broadcast);
/* Returns the entry in the handle's access queue, for the order of jobs. */
fl_queued_access *fl_broadcast_use(fl_broadcast *broadcast);
/* Returns the tiles [*tile, *end) not yet sent. */
void fl_broadcast_tiles(const fl_broadcast *broadcast, uint32_t *tile, uint32_t *end);

/* Starts copies as far as room permits. FILCH_NOT_READY: copies are under way; *moved: copies
 * have arrived since the last step. FILCH_OK: every tile is in every node, or the broadcast was
 * stopped. Otherwise returns the error of a failed copy: the remaining copies are past, and
 * incompletely sent tiles stay valid in their former nodes. traffic: counters per device, or
 * null. Blocks for a failed device, and for earlier copies to the memory of a tile being opened. */
filch_status fl_broadcast_step(fl_broadcast *broadcast, fl_traffic *traffic, bool *moved,
                               filch_error *error);
/* Stops the start of further copies. */
void fl_broadcast_stop(fl_broadcast *broadcast);
/* Tells, after the last step, whether every tile was sent. */
bool fl_broadcast_is_whole(const fl_broadcast *broadcast);

#endif
