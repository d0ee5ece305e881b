/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of two copies, for tiles whose receiver cannot reach the memory that has them, or is faster
 * over another: with a stop in the host's memory, or in that of a third device, the relay, which
 * both ends reach. The tile is cut into parts, and while one goes on the next one comes.
 *
 * The sender puts the first copy there and the receiver fetches the second: the relay's own lanes
 * have nothing to do with it, and its work neither waits nor counts. In its memory a part lies in a
 * ring of a few slots, taken from what is free (nothing is evicted for it, and who needs the room
 * counts on having it back), and is overwritten behind the copy that took it away. */
#ifndef FL_MEMORY_ROUTE_RELAY_H
#define FL_MEMORY_ROUTE_RELAY_H

#include "memory/tiles/tiles.h"

typedef struct fl_detour {
    fl_device *out, *in; /* the sender and the receiver: each copies on a lane of its own */
    fl_spot from, to;
    size_t width, height; /* columns of so many bytes, and how many */
    uint32_t pieces;      /* to cut them into, about */
    fl_marker behind;     /* what the sender has them behind; 0: it has them */
    fl_traffic *traffic;
    /* Results: the last copies to the stop and from there. */
    fl_marker left, arrived;
} fl_detour;

/* Starts the copies with a stop at a spot where all of it has room. On failure, of which those that
 * the other one fails with are some, no copy is left in flight: waits for them. */
filch_status fl_detour_over(fl_places *places, fl_detour *detour, fl_spot stop, filch_error *error);
/* The same with a stop in a relay's place. FILCH_NO_DEVICE_MEMORY: there is no room for a ring;
 * FILCH_DEVICE_LOST: the relay is lost, too. Takes a lock of its place's residents. */
filch_status fl_detour_relayed(fl_places *places, fl_detour *detour, uint32_t relay,
                               filch_error *error);

#endif
