/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles that come to a device together.
 *
 * A copy engine takes a tile of a larger matrix column by column, and short columns keep it from
 * the link's rate: 2,048 doubles of each column came at 49 GB/s where the link does 55, and at 33
 * GB/s beside kernels that use the device's memory (H200; docs/performance.md). So a tile with
 * short columns is brought together with those above and below it that the device is about to use
 * as well, into one block, by one copy. */
#ifndef FL_MEMORY_TILES_COALESCE_H
#define FL_MEMORY_TILES_COALESCE_H

#include "memory/tiles/tiles.h"

typedef struct fl_coalesced {
    uint32_t first, end; /* of one column of tiles */
    uint64_t latest;     /* tiles of work until the last of them is used */
} fl_coalesced;

/* Whether tiles like this one are brought so; makes the foresight ready for what follows. Without
 * the handle's lock. */
bool fl_coalesced_is_wanted(const fl_places *places, const struct filch_data *data, uint32_t tile,
                            const fl_admission *admission);
/* The tile alone, or with others that are good in the host's memory, not in the device's, and soon
 * wanted there. Without the handle's lock. */
fl_coalesced fl_coalesced_choose(fl_places *places, const fl_device *device,
                                 struct filch_data *data, uint32_t tile,
                                 const fl_admission *admission);
/* Under the handle's lock: whether a tile has no block in a place, or one of its own that may be
 * given up for one with its neighbours. */
bool fl_coalesced_may_join(const struct filch_data *data, const fl_replicas *replicas,
                           uint32_t tile, uint32_t place);
/* Under the handle's lock: where the tile is missing on a device, and in a block with others that
 * are, too, and wanted soon: copies them all. Else nothing is done. */
filch_status fl_coalesced_fill(fl_places *places, struct filch_data *data, fl_replicas *replicas,
                               uint32_t tile, fl_device *device, const fl_admission *admission,
                               fl_traffic *traffic, filch_error *error);

#endif
