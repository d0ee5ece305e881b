/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends to whom when one block goes to several places: a forest whose roots have it.
 *
 * With P pieces, a deepest path of D copies and at most F children of one sender, the last piece
 * has arrived after (P + D - 1) steps, each of F copies of a piece that share the sender's egress:
 * a chain is F = 1 and the deepest, a tree F = 2 and D about log2 of the receivers. What a copy
 * costs beside its bytes keeps pieces from being as small as would be best for the first factor.
 * (Pipelined broadcast: S. L. Johnsson, C.-T. Ho, "Optimum broadcasting and personalized
 * communication in hypercubes", IEEE Trans. Computers 38(9), 1989.) */
#ifndef FL_MEMORY_ROUTE_SPREAD_H
#define FL_MEMORY_ROUTE_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "filch/broadcast.h"

#define FL_SPREAD_ROOT UINT32_MAX

/* One place of a spread. */
typedef struct fl_spread_node {
    uint32_t place;
    uint32_t parent; /* position of who sends to it, or FL_SPREAD_ROOT: it has the block */
    uint32_t depth;  /* copies on the way */
    uint32_t children;
    bool is_relay; /* the host's memory, which nobody asked to have it */
} fl_spread_node;

/* What joins two places' memories, as a spread needs it. */
typedef struct fl_spread_link {
    bool is_straight; /* between devices: one reaches the other's memory */
    int32_t rank;     /* smaller is faster */
    double rate;      /* measured, bytes a second; 0: not */
} fl_spread_link;

typedef fl_spread_link (*fl_spread_link_fn)(void *user, uint32_t from, uint32_t to);

typedef struct fl_spread {
    fl_spread_node *nodes; /* of the caller's: room for every place; senders before receivers */
    uint32_t count;
    uint32_t depth;  /* of the deepest */
    uint32_t fanout; /* children of the device that sends most; 1 at least */
} fl_spread;

/* Finds who sends to whom. has, wants: one flag a place, of which 0 is the host's memory; somebody
 * has it. Links between devices come before the host's, senders that have sent to fewer than the
 * way allows before others, links that were measured to be faster, then better ranks, before
 * others. way: not the default. */
void fl_spread_plan(fl_spread *spread, uint32_t places, const bool *has, const bool *wants,
                    filch_broadcast_way way, fl_spread_link_fn link, void *user);
/* Pieces that a block of so many bytes is best cut into, at the rate of a link between GPUs, in
 * bytes a second; over a slower way pieces may be smaller by as much. */
#define FL_SPREAD_RATE 400e9
uint32_t fl_spread_pieces(const fl_spread *spread, uint64_t bytes);
/* The time of it, in bytes of one copy. */
double fl_spread_cost(const fl_spread *spread, uint64_t bytes);

#endif
