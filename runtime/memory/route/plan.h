/* SPDX-License-Identifier: Apache-2.0 */
/* From where, and over which ways, a tile comes into a place. Pure: everything that the choice
 * depends on is given, and nothing is changed.
 *
 * A way of two copies, with a stop in a third memory, is cut into pieces: while one goes on from
 * there the next one arrives. It takes as long as the slower copy, and one piece on the other. */
#ifndef FL_MEMORY_ROUTE_PLAN_H
#define FL_MEMORY_ROUTE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define FL_PLAN_NONE UINT32_MAX

/* Bytes a second of ways that were not measured: what is usual of PCI Express, and of NVLink. */
#define FL_HOST_RATE 25e9
#define FL_PEER_RATE 100e9

/* A third device's memory, over which a tile may come. */
typedef struct fl_relay {
    uint32_t place;
    double in_rate, out_rate; /* bytes a second to it and from it, both measured */
    uint64_t in_queued;       /* bytes that wait for the one … */
    uint64_t out_queued;      /* … and the other already */
} fl_relay;

/* One place that has the tile, as the receiver sees it. */
typedef struct fl_origin {
    uint32_t place;   /* 0: the host's */
    bool is_straight; /* its memory can be copied from without a stop */
    double rate;      /* bytes a second of that way, or of the first part of a staged one; 0: not
                         measured */
    uint64_t queued;  /* bytes that wait for that way already */
    const fl_relay *relays;
    uint32_t relay_count;
} fl_origin;

typedef struct fl_plan {
    uint32_t source; /* index among the sources, or FL_PLAN_NONE: there is none */
    uint32_t relay;  /* the place to stop in; 0: none, or the host's */
    bool is_staged;  /* by way of the host's memory */
    uint32_t pieces; /* to cut it into where there is a stop; else 1 */
    double seconds;  /* that it takes, by what is known */
} fl_plan;

/* The receiver: the way from the host's memory to it, which staged copies take, too. */
typedef struct fl_receiver {
    double host_rate;     /* bytes a second; 0: not measured */
    uint64_t host_queued; /* bytes that wait for its copy lane already */
} fl_receiver;

/* The source from which `bytes` arrive first; of equal ones the first, and one copy before two. The
 * host's memory, from which all copy, is spared where another's way is as fast.
 * What was not measured is taken to be as fast as such ways commonly are. */
fl_plan fl_plan_copy(const fl_origin *sources, uint32_t count, fl_receiver receiver,
                     uint64_t bytes);

#endif
