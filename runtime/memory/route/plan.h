/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of the source and route for a tile's copy into a node. Pure: depends on the arguments
 * only, and changes nothing.
 *
 * A route of two copies, with a stop in a third memory, is cut into pieces: a piece leaves the
 * stop while the next piece arrives. The route takes the time of the slower copy plus a piece of
 * the faster copy. */
#ifndef FL_MEMORY_ROUTE_PLAN_H
#define FL_MEMORY_ROUTE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define FL_PLAN_NONE UINT32_MAX

/* Bytes a second assumed for unmeasured routes: typical of PCI Express, and of NVLink. */
#define FL_HOST_RATE 25e9
#define FL_PEER_RATE 100e9

/* Memory of a third device, usable as a relay for a tile. */
typedef struct fl_relay {
    uint32_t place;
    double in_rate, out_rate; /* bytes a second to and from the relay, both measured */
    uint64_t in_queued;       /* bytes already queued into the relay */
    uint64_t out_queued;      /* bytes already queued out of the relay */
} fl_relay;

/* Node holding the tile, as seen by the receiver. */
typedef struct fl_origin {
    uint32_t place;   /* 0: the host's memory */
    bool is_straight; /* the receiver can copy from the memory without a stop */
    /* Bytes a second of the direct route, or of the first copy of a staged route; 0: not
     * measured. */
    double rate;
    uint64_t queued; /* bytes already queued on the route */
    const fl_relay *relays;
    uint32_t relay_count;
} fl_origin;

typedef struct fl_plan {
    uint32_t source; /* index among the sources, or FL_PLAN_NONE: no source */
    uint32_t relay;  /* node of the stop; 0: no stop, or the host's memory */
    bool is_staged;  /* staged in the host's memory */
    uint32_t pieces; /* pieces of a route with a stop; else 1 */
    double seconds;  /* predicted seconds of the copy */
} fl_plan;

/* The receiver's route from the host's memory, also used by staged copies. */
typedef struct fl_receiver {
    double host_rate;     /* bytes a second; 0: not measured */
    uint64_t host_queued; /* bytes already queued on the receiver's copy lane */
} fl_receiver;

/* Returns the plan with the earliest arrival of `bytes`. Ties go to the first source, and to a
 * single copy rather than two. Spares the host's memory, the source of every device, if a peer's
 * route is as fast. Assumes typical rates for unmeasured routes. */
fl_plan fl_plan_copy(const fl_origin *sources, uint32_t count, fl_receiver receiver,
                     uint64_t bytes);

#endif
