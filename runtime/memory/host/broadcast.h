/* SPDX-License-Identifier: Apache-2.0 */
/* The copies of a broadcast: started a window at a time and looked after by whoever steps it, until
 * they have arrived. Between new and free no other job uses the handle. */
#ifndef FL_MEMORY_HOST_BROADCAST_H
#define FL_MEMORY_HOST_BROADCAST_H

#include "filch/broadcast.h"
#include "memory/tiles/replica.h"

typedef struct fl_broadcast fl_broadcast;

/* wants: one flag a place, copied. tile, tile_end: which. piece: bytes, 0: chosen. Null: no memory.
 * Any thread, as all of these, but one at a time. */
fl_broadcast *fl_broadcast_new(fl_places *places, filch_data *data, const bool *wants,
                               uint32_t tile, uint32_t tile_end, filch_broadcast_way way,
                               uint64_t piece);
/* Its copies are past: the last step did not return FILCH_NOT_READY. */
void fl_broadcast_free(fl_broadcast *broadcast);
/* The use of the handle, for the order of jobs. */
fl_queued_access *fl_broadcast_use(fl_broadcast *broadcast);
/* What has not been sent yet: tiles [*tile, *end). */
void fl_broadcast_tiles(const fl_broadcast *broadcast, uint32_t *tile, uint32_t *end);

/* Starts what there is room for. FILCH_NOT_READY: copies are on their way; *moved: some have
 * arrived since the last step. FILCH_OK: all tiles are everywhere, or it was stopped. Else the
 * failure of one copy: the others are past, and tiles that had not arrived everywhere are valid
 * where they were. traffic: counts one a device, or null. Blocks only where a device is lost. */
filch_status fl_broadcast_step(fl_broadcast *broadcast, fl_traffic *traffic, bool *moved,
                               filch_error *error);
/* Starts nothing more. */
void fl_broadcast_stop(fl_broadcast *broadcast);
/* After the last step: whether all of it was sent. */
bool fl_broadcast_is_whole(const fl_broadcast *broadcast);

#endif
