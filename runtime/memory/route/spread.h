/* SPDX-License-Identifier: Apache-2.0 */
/* Plan of a broadcast of a block to several nodes: a forest of senders and receivers, with roots
 * already holding the block.
 *
 * Consider P pieces, a deepest path of D copies and at most F children of a sender. The last
 * piece arrives after (P + D - 1) steps. A step takes F copies of a piece sharing the sender's
 * egress. A chain has F = 1 and the largest D; a tree has F = 2 and a D of about log2 of the
 * receivers. The fixed cost of a copy limits the number of pieces favoured by the first factor.
 * (Pipelined broadcast: S. L. Johnsson, C.-T. Ho, "Optimum broadcasting and personalized
 * communication in hypercubes", IEEE Trans. Computers 38(9), 1989.) */
#ifndef FL_MEMORY_ROUTE_SPREAD_H
#define FL_MEMORY_ROUTE_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "filch/broadcast.h"

#define FL_SPREAD_ROOT UINT32_MAX

/* Memory node taking part in a broadcast. */
typedef struct fl_spread_node {
    uint32_t place;
    /* Position of the sender, or FL_SPREAD_ROOT: the node already holds the block. */
    uint32_t parent;
    uint32_t depth; /* number of copies from the root */
    uint32_t children;
    bool is_relay; /* the host's memory, used as a relay without being a requested receiver */
} fl_spread_node;

/* Link between two memories, as needed for a plan. */
typedef struct fl_spread_link {
    bool is_straight; /* between devices: the receiver reaches the sender's memory */
    int32_t rank;     /* a smaller rank is faster */
    double rate;      /* measured bytes a second; 0: not measured */
} fl_spread_link;

typedef fl_spread_link (*fl_spread_link_fn)(void *user, uint32_t from, uint32_t to);

typedef struct fl_spread {
    /* Owned by the caller: room for every memory node; senders precede receivers. */
    fl_spread_node *nodes;
    uint32_t count;
    uint32_t depth;  /* depth of the deepest node */
    uint32_t fanout; /* children of the device with the most children; at least 1 */
} fl_spread;

/* Finds a sender for every receiver. has, wants: a flag per memory node, with 0 as the host's;
 * at least a single memory node has the block. Prefers, in the order given, links between
 * devices to the host's links, senders below the way's limit of receivers, links with higher
 * measured rates, and better ranks. way: not the default. */
void fl_spread_plan(fl_spread *spread, uint32_t places, const bool *has, const bool *wants,
                    filch_broadcast_way way, fl_spread_link_fn link, void *user);
/* Returns the best number of pieces for a block of the given bytes at the rate of a link between
 * GPUs, in bytes a second. Pieces may shrink in proportion to a slower route's rate. */
#define FL_SPREAD_RATE 400e9
uint32_t fl_spread_pieces(const fl_spread *spread, uint64_t bytes);
/* Returns the broadcast's time, in bytes of a copy. */
double fl_spread_cost(const fl_spread *spread, uint64_t bytes);

#endif
