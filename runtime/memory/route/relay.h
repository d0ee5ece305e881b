/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of two copies, for a receiver unable to reach the source memory, or faster over a third
 * memory. The stop is in the host's memory, or in the memory of a third device, the relay, reached
 * by the sender and the receiver. The tile is cut into parts: a part leaves the stop while the next
 * part arrives.
 *
 * The sender writes the first copy and the receiver fetches the second copy. The relay's own
 * lanes take no part, and the relay's work neither waits nor counts. Parts lie in a ring of a
 * few slots in the relay's memory. The ring comes from free memory: no block is evicted, and a
 * worker needing the room may count on the ring's return. A slot is overwritten behind the copy
 * out of the slot. */
#ifndef FL_MEMORY_ROUTE_RELAY_H
#define FL_MEMORY_ROUTE_RELAY_H

#include "memory/tiles/tiles.h"

typedef struct fl_detour {
    fl_device *out, *in; /* sender and receiver: either copies on a lane of its own */
    fl_spot from, to;
    size_t width, height; /* bytes of a column, and number of columns */
    uint32_t pieces;      /* approximate number of parts */
    fl_marker behind;     /* marker preceding the sender's data; 0: the data are present */
    fl_traffic *traffic;
    /* Results: the last copies to the stop and from the stop. */
    fl_marker left, arrived;
} fl_detour;

/* Starts the copies over a stop with room for the whole block. On failure, including a failure
 * of the second copy, waits until no copy is in flight. */
filch_status fl_detour_over(fl_places *places, fl_detour *detour, fl_spot stop, filch_error *error);
/* Starts the copies over a relay's node. FILCH_NO_DEVICE_MEMORY: no room for a ring.
 * FILCH_DEVICE_LOST: the relay has failed. Takes a lock of the relay node's residents. */
filch_status fl_detour_relayed(fl_places *places, fl_detour *detour, uint32_t relay,
                               filch_error *error);

#endif
