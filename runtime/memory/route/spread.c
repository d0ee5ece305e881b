/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/route/spread.h"

/* Fixed cost of a copy, in bytes: a few microseconds at FL_SPREAD_RATE. */
#define OVERHEAD_BYTES 1048576.0
/* Maximum number of pieces: every piece under way holds an event, and a lane has 128 events
 * (backend/cuda/queue/lane.h). */
#define MOST_PIECES 64u

/* Merit of a pair of sender and receiver; compared member by member, less is better. */
typedef struct merit {
    uint32_t is_staged; /* copy to or from the host's memory */
    uint32_t is_full;   /* the sender already has as many receivers as allowed */
    double rate;
    int64_t rank;
    uint32_t depth;
} merit;

/* Maximum ratio between measurements of a single link. */
#define NOISE 1.25

static bool is_faster(double a, double b)
{
    return a > 0 && b > 0 && a > NOISE * b;
}

static bool is_better(const merit *a, const merit *b)
{
    return a->is_staged != b->is_staged  ? a->is_staged < b->is_staged
           : a->is_full != b->is_full    ? a->is_full < b->is_full
           : is_faster(a->rate, b->rate) ? true
           : is_faster(b->rate, a->rate) ? false
           : a->rank != b->rank          ? a->rank < b->rank
                                         : a->depth < b->depth;
}

static uint32_t most_children(filch_broadcast_way way)
{
    return way == FILCH_BROADCAST_CHAIN ? 1 : way == FILCH_BROADCAST_TREE ? 2 : UINT32_MAX;
}

/* Tells whether a node may send to memory node `to`, and rates the pair. With direct sending a
 * receiver sends nothing on. The host's memory is the exception, as the stop for pairs without a
 * direct link. */
static bool judge(const fl_spread_node *from, uint32_t to, filch_broadcast_way way,
                  fl_spread_link_fn link, void *user, merit *out)
{
    bool hands_on = from->parent != FL_SPREAD_ROOT;
    *out = (merit){.is_staged = from->place == 0 || to == 0,
                   .is_full = from->children >= most_children(way),
                   .depth = from->depth};
    if (way == FILCH_BROADCAST_DIRECT && hands_on && from->place != 0) {
        return false;
    }
    if (out->is_staged) {
        /* Every device has its own route to the host. */
        out->is_full = from->place != 0 && out->is_full;
        return true;
    }
    fl_spread_link between = link(user, from->place, to);
    out->rank = between.rank;
    out->rate = between.rate;
    return between.is_straight;
}

static void add(fl_spread *spread, uint32_t place, uint32_t parent, bool is_relay)
{
    fl_spread_node *node = &spread->nodes[spread->count++];
    *node = (fl_spread_node){.place = place, .parent = parent, .is_relay = is_relay};
    if (parent != FL_SPREAD_ROOT) {
        fl_spread_node *sender = &spread->nodes[parent];
        node->depth = sender->depth + 1;
        spread->depth = node->depth > spread->depth ? node->depth : spread->depth;
        ++sender->children;
        if (sender->place != 0 && sender->children > spread->fanout) {
            spread->fanout = sender->children;
        }
    }
}

static bool has_place(const fl_spread *spread, uint32_t place)
{
    for (uint32_t i = 0; i < spread->count; ++i) {
        if (spread->nodes[i].place == place) {
            return true;
        }
    }
    return false;
}

/* Finds the best next copy; false: every reachable memory node is reached. */
static bool find_next(const fl_spread *spread, uint32_t places, const bool *wants,
                      filch_broadcast_way way, fl_spread_link_fn link, void *user, uint32_t *parent,
                      uint32_t *place)
{
    bool found = false;
    merit best = {0};
    for (uint32_t to = 0; to < places; ++to) {
        if (!wants[to] || has_place(spread, to)) {
            continue;
        }
        for (uint32_t i = 0; i < spread->count; ++i) {
            merit this_one;
            if (judge(&spread->nodes[i], to, way, link, user, &this_one) &&
                (!found || is_better(&this_one, &best))) {
                found = true;
                best = this_one;
                *parent = i;
                *place = to;
            }
        }
    }
    return found;
}

/* Adds the host's memory as a relay, behind the sender with the fewest receivers among the least
 * deep senders. */
static void add_relay(fl_spread *spread)
{
    uint32_t parent = 0;
    for (uint32_t i = 1; i < spread->count; ++i) {
        const fl_spread_node *node = &spread->nodes[i], *best = &spread->nodes[parent];
        if (node->depth < best->depth ||
            (node->depth == best->depth && node->children < best->children)) {
            parent = i;
        }
    }
    add(spread, 0, parent, true);
}

void fl_spread_plan(fl_spread *spread, uint32_t places, const bool *has, const bool *wants,
                    filch_broadcast_way way, fl_spread_link_fn link, void *user)
{
    bool needs_more = false;
    spread->count = 0;
    spread->depth = 0;
    spread->fanout = 1;
    for (uint32_t place = 0; place < places; ++place) {
        if (has[place]) {
            add(spread, place, FL_SPREAD_ROOT, false);
        }
        needs_more = needs_more || (wants[place] && !has[place]);
    }
    while (needs_more) {
        uint32_t parent, place;
        if (find_next(spread, places, wants, way, link, user, &parent, &place)) {
            add(spread, place, parent, false);
            continue;
        }
        needs_more = false;
        for (uint32_t to = 1; to < places; ++to) {
            needs_more = needs_more || (wants[to] && !has_place(spread, to));
        }
        if (needs_more) {
            add_relay(spread); /* the host's memory as a sender reaches every device */
        }
    }
}

uint32_t fl_spread_pieces(const fl_spread *spread, uint64_t bytes)
{
    /* The derivative of fl_spread_cost is 0 at the square root. */
    double square = spread->depth > 1 ? (double)(spread->depth - 1) * (double)spread->fanout *
                                            (double)bytes / OVERHEAD_BYTES
                                      : 0;
    uint32_t pieces = 1;
    while (pieces < MOST_PIECES && (double)pieces * pieces < square) {
        ++pieces;
    }
    return pieces;
}

double fl_spread_cost(const fl_spread *spread, uint64_t bytes)
{
    double pieces = fl_spread_pieces(spread, bytes);
    return (pieces + (double)spread->depth - 1) *
           ((double)spread->fanout * (double)bytes / pieces + OVERHEAD_BYTES);
}
