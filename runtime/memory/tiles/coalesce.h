/* SPDX-License-Identifier: Apache-2.0 */
/* Coalesced copies: neighbouring tiles copied to a device together.
 *
 * A copy engine takes a tile of a larger matrix column by column. Short columns lower the rate:
 * columns of 2,048 doubles came at 49 GB/s over a link of 55 GB/s, and at 33 GB/s beside kernels
 * using the device's memory (H200; docs/performance.md). A single copy therefore brings a tile
 * with short columns into a block together with the tiles above and below, if the device is
 * about to use the neighbours as well. */
#ifndef FL_MEMORY_TILES_COALESCE_H
#define FL_MEMORY_TILES_COALESCE_H

#include "memory/tiles/tiles.h"

typedef struct fl_coalesced {
    uint32_t first, end; /* tiles of a single tile column */
    uint64_t latest;     /* work items until the use of the last tile */
} fl_coalesced;

/* Tells whether tiles like the given tile are coalesced; prepares the next-use oracle for the
 * calls below. Call without the handle's lock. */
bool fl_coalesced_is_wanted(const fl_places *places, const struct filch_data *data, uint32_t tile,
                            const fl_admission *admission);
/* Chooses the tile alone, or together with neighbours. A neighbour must be good in the host's
 * memory, missing on the device, and soon used on the device. Call without the handle's lock. */
fl_coalesced fl_coalesced_choose(fl_places *places, const fl_device *device,
                                 struct filch_data *data, uint32_t tile,
                                 const fl_admission *admission);
/* Tells whether a tile with short columns has no block in a node, or a unused block of a single
 * tile, replaceable by a block shared with neighbours. Requires the handle's lock. */
bool fl_coalesced_may_join(const struct filch_data *data, const fl_replicas *replicas,
                           uint32_t tile, uint32_t place);
/* Copies a missing tile together with missing neighbours of the tile's block that are used soon.
 * Does nothing for a valid tile or a tile without suitable neighbours. Requires the handle's
 * lock. */
filch_status fl_coalesced_fill(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                               uint32_t tile, fl_device *device, const fl_admission *admission,
                               fl_traffic *traffic, filch_error *error);

#endif
