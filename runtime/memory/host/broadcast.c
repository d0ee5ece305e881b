/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/host/broadcast.h"

#include <stdio.h>
#include <string.h>

#include "device/links.h"
#include "memory/route/part.h"
#include "memory/route/spread.h"
#include "memory/tiles/tiles.h"

/* Pieces between two fences. Two stretches are under way at once: a stretch is followed up while
 * the second stretch keeps the lanes busy. Two stretches take fewer events than a lane has. */
#define STRETCH 48u
/* Minimum bytes of a piece, unless the tile or column is smaller. */
#define LEAST_PIECE 4096u

/* Copies completing the data sent to every node before the fence. */
typedef struct fence {
    fl_marker *last;   /* a marker per node */
    uint32_t tile_end; /* tiles before tile_end are complete with the fence */
    bool is_set;
} fence;

typedef struct link_entry {
    fl_spread_link link;
    bool is_known;
} link_entry;

struct fl_broadcast {
    fl_queued_access use;
    fl_places *places;
    filch_data *data;
    filch_broadcast_way way;
    size_t bytes; /* size of the whole allocation */
    uint64_t wanted_piece, piece, total;
    uint32_t tile, tile_end; /* tile being sent, and end of the tiles */
    uint32_t settled;        /* tiles before `settled` are valid in every node */
    uint64_t sent;           /* bytes sent of the tile; UINT64_MAX: the tile is not open */
    uint32_t pieces;         /* pieces since the last fence */
    bool is_pinned, is_stopped, is_planned;
    bool is_waiting;     /* waiting for memory held by other work */
    filch_status status; /* status of the first failure */
    filch_error error;   /* error of the first failure */
    fence fences[2];     /* the older fence first */
    /* Current plan; other_nodes holds the nodes of a second plan for comparison. */
    fl_spread spread;
    fl_spread_node *other_nodes;
    bool *wants, *has, *wanted, *arrives; /* a flag per node */
    fl_replica_spot *spots;               /* a spot per node */
    fl_marker *last;                      /* a marker per node: the newest copy to the node */
    link_entry *links;                    /* an entry per pair of nodes */
};

/* --- Replicas of the handle --- */

/* Pins a handle around a broadcast. Blocks of the handle stay in every node until the unpin; the
 * caller counts as a user about to release memory. */
static filch_status pin(fl_places *places, filch_data *data, filch_error *error)
{
    fl_replicas *replicas = fl_replicas_get(places, data);
    if (replicas == NULL) {
        return fl_replicas_tell_none(data, error);
    }
    /* The pin counts as an admitted item: a worker needing the room waits for the unpin. */
    for (uint32_t place = 1; place < replicas->places; ++place) {
        fl_residents_come(places, place);
    }
    fl_mutex_lock(&replicas->lock);
    fl_add_relaxed(&replicas->pins, 1); /* exact under the lock */
    fl_mutex_unlock(&replicas->lock);
    return FILCH_OK;
}

static void unpin(fl_places *places, filch_data *data)
{
    fl_replicas *replicas = fl_load_acquire(&data->replicas); /* acquire as in fl_replicas_get */
    fl_mutex_lock(&replicas->lock);
    fl_sub_relaxed(&replicas->pins, 1);
    fl_mutex_unlock(&replicas->lock);
    for (uint32_t place = 1; place < replicas->places; ++place) {
        fl_residents_go(places, place);
    }
}

/* Notes the tile's arrival in the given nodes: the tile is shared between the old and new nodes. */
static void settle(filch_data *data, uint32_t tile, const bool *arrived)
{
    fl_replicas *replicas = fl_load_acquire(&data->replicas); /* acquire as in fl_replicas_get */
    fl_mutex_lock(&replicas->lock);
    for (uint32_t place = 0; place < replicas->places; ++place) {
        fl_replica *replica = fl_replica_at(replicas, tile, place);
        if (arrived[place]) {
            fl_replica_set(data, replica, FL_SHARED, 0);
        } else if (fl_replica_is_valid(data, replica, place)) {
            bool is_known = fl_load_relaxed(&replica->version) == fl_data_version(data);
            fl_marker source = is_known ? replica->source : 0;
            fl_replica_set(data, replica, FL_SHARED, is_known ? replica->ready : 0);
            replica->source = source;
        }
    }
    fl_mutex_unlock(&replicas->lock);
}

static uint64_t view_bytes(const filch_view *view)
{
    return view->rows * view->cols * view->element;
}

/* --- Creation --- */

static size_t align(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Lays out the arrays behind the structure, and returns the total bytes. A null base only
 * counts. */
static size_t lay_out(fl_broadcast *b, uint32_t count)
{
    char *base = (char *)b;
    size_t at = align(sizeof *b);
    size_t flags = align(count * sizeof(bool)), markers = align(count * sizeof(fl_marker));
    size_t nodes = align((size_t)(count + 1) * sizeof(fl_spread_node));
    size_t spots = align(count * sizeof(fl_replica_spot));
    size_t links = align((size_t)count * count * sizeof(link_entry));
    if (b != NULL) {
        b->wants = (bool *)(base + at);
        b->has = (bool *)(base + at + flags);
        b->wanted = (bool *)(base + at + 2 * flags);
        b->arrives = (bool *)(base + at + 3 * flags);
        char *next = base + at + 4 * flags;
        b->last = (fl_marker *)(void *)next;
        b->fences[0].last = (fl_marker *)(void *)(next + markers);
        b->fences[1].last = (fl_marker *)(void *)(next + 2 * markers);
        next += 3 * markers;
        b->spread.nodes = (fl_spread_node *)(void *)next;
        b->other_nodes = (fl_spread_node *)(void *)(next + nodes);
        next += 2 * nodes;
        b->spots = (fl_replica_spot *)(void *)next;
        b->links = (link_entry *)(void *)(next + spots);
    }
    return at + 4 * flags + 3 * markers + 2 * nodes + spots + links;
}

fl_broadcast *fl_broadcast_new(fl_places *places, filch_data *data, const bool *wants,
                               uint32_t tile, uint32_t tile_end, filch_broadcast_way way,
                               uint64_t piece)
{
    size_t bytes = lay_out(NULL, places->count);
    fl_broadcast *b = fl_alloc_zeroed(&places->core->memory, bytes);
    if (b == NULL) {
        return NULL;
    }
    lay_out(b, places->count);
    b->places = places;
    b->data = data;
    b->way = way;
    b->bytes = bytes;
    b->wanted_piece = piece;
    b->tile = b->settled = tile;
    b->tile_end = tile_end;
    b->sent = UINT64_MAX;
    b->use =
        (fl_queued_access){.data = data, .writes = true}; /* no job reads while replicas appear */
    b->error = (filch_error)FILCH_ERROR_INIT;
    memcpy(b->wants, wants, places->count * sizeof *wants);
    for (uint32_t t = tile; t < tile_end; ++t) {
        filch_view view = fl_data_tile_view(data, t);
        b->total += view_bytes(&view);
    }
    return b;
}

void fl_broadcast_free(fl_broadcast *b)
{
    if (b != NULL) {
        fl_free(&b->places->core->memory, b, b->bytes);
    }
}

fl_queued_access *fl_broadcast_use(fl_broadcast *b)
{
    return &b->use;
}

void fl_broadcast_tiles(const fl_broadcast *b, uint32_t *tile, uint32_t *end)
{
    *tile = b->tile;
    *end = b->tile_end;
}

void fl_broadcast_stop(fl_broadcast *b)
{
    b->is_stopped = true;
}

bool fl_broadcast_is_whole(const fl_broadcast *b)
{
    return b->status == FILCH_OK && b->tile == b->tile_end;
}

/* --- Plan of senders --- */

/* Returns a link. Asks the driver once per pair. A pair without a known rank gets the best rank. */
static fl_spread_link find_link(void *user, uint32_t from, uint32_t to)
{
    fl_broadcast *b = user;
    link_entry *entry = &b->links[(size_t)from * b->places->count + to];
    if (!entry->is_known) {
        const fl_device *receiver = b->places->at[to].device, *sender = b->places->at[from].device;
        filch_link link = {.size = sizeof link};
        entry->is_known = true;
        entry->link.is_straight = from < 64 && (receiver->peers >> from & 1) != 0;
        if (entry->link.is_straight && sender->backend->copy != NULL &&
            sender->backend->copy->link_describe(sender, receiver, &link, NULL) == FILCH_OK) {
            entry->link.rank = link.rank;
        }
        entry->link.rate = fl_places_rate(b->places, from, to);
    }
    return entry->link;
}

/* Makes the plan for tiles in the nodes flagged in `has`. */
static void make_plan(fl_broadcast *b)
{
    uint32_t count = b->places->count;
    filch_broadcast_way way = b->way != FILCH_BROADCAST_DEFAULT ? b->way : FILCH_BROADCAST_CHAIN;
    fl_spread_plan(&b->spread, count, b->has, b->wants, way, find_link, b);
    if (b->way == FILCH_BROADCAST_DEFAULT) {
        fl_spread tree = {.nodes = b->other_nodes};
        fl_spread_plan(&tree, count, b->has, b->wants, FILCH_BROADCAST_TREE, find_link, b);
        if (fl_spread_cost(&tree, b->total) < fl_spread_cost(&b->spread, b->total)) {
            b->other_nodes = b->spread.nodes;
            b->spread = tree;
        }
    }
    uint64_t piece = b->wanted_piece;
    if (piece == 0) {
        piece = way == FILCH_BROADCAST_DIRECT
                    ? b->total
                    : b->total / fl_spread_pieces(&b->spread, b->total) + 1;
        piece = piece > LEAST_PIECE ? piece : LEAST_PIECE;
        piece = (piece + LEAST_PIECE - 1) / LEAST_PIECE * LEAST_PIECE;
    }
    b->piece = piece;
    b->is_planned = true;
    memcpy(b->wanted, b->wants, count * sizeof *b->wanted);
    memset(b->arrives, 0, count * sizeof *b->arrives);
    for (uint32_t i = 0; i < b->spread.count; ++i) {
        const fl_spread_node *node = &b->spread.nodes[i];
        b->arrives[node->place] = node->parent != FL_SPREAD_ROOT;
        b->wanted[node->place] = b->wanted[node->place] || node->is_relay;
    }
}

/* Opens the tile, and makes a new plan if the tile is in different nodes than the tile before.
 * Copies under way belong to the old plan, therefore must arrive first. */
static filch_status open_tile(fl_broadcast *b, filch_error *error)
{
    bool is_same = b->is_planned;
    const bool *wanted = b->is_planned ? b->wanted : b->wants;
    filch_status status = fl_replica_open(b->places, b->data, b->tile, wanted, b->spots, error);
    if (status != FILCH_OK) {
        return status;
    }
    for (uint32_t place = 0; place < b->places->count; ++place) {
        is_same = is_same && b->has[place] == b->spots[place].is_good;
    }
    if (!is_same) {
        if (b->pieces != 0 || b->fences[0].is_set) {
            return FILCH_NOT_READY;
        }
        for (uint32_t place = 0; place < b->places->count; ++place) {
            b->has[place] = b->spots[place].is_good;
        }
        make_plan(b);
        /* Opens again: the plan may also need the host's memory. */
        status = fl_replica_open(b->places, b->data, b->tile, b->wanted, b->spots, error);
    }
    if (status == FILCH_OK) {
        b->sent = 0;
    }
    return status;
}

/* --- Copies --- */

static bool is_tight(const fl_broadcast *b, size_t width)
{
    for (uint32_t i = 0; i < b->spread.count; ++i) {
        if (b->spots[b->spread.nodes[i].place].pitch != width) {
            return false;
        }
    }
    return true;
}

static fl_part next_part(const fl_broadcast *b, const filch_view *view)
{
    size_t width = (size_t)(view->rows * view->element);
    size_t piece = b->piece < SIZE_MAX ? (size_t)b->piece : SIZE_MAX;
    return fl_part_next(width, (size_t)view->cols, is_tight(b, width), (size_t)b->sent, piece);
}

/* Returns the device whose lane takes the copy: the receiver's, or the sender's if the host
 * receives. */
static fl_device *carrier_of(const fl_places *places, uint32_t to, uint32_t from)
{
    return places->at[to != 0 ? to : from].device;
}

/* Relaxed: a reader of exact figures has seen the job complete. */
static void count_copy(fl_traffic *traffic, const fl_device *carrier, uint32_t to, uint32_t from,
                       size_t bytes)
{
    if (traffic != NULL) {
        fl_traffic *own = &traffic[carrier->info.index];
        fl_add_relaxed(to == 0 ? &own->out : from == 0 ? &own->in : &own->peer, bytes);
    }
}

/* Starts the copy of a part to a node, behind the copy to the node's sender. */
static filch_status send(fl_broadcast *b, const fl_spread_node *node, const fl_part *p,
                         fl_traffic *traffic, filch_error *error)
{
    uint32_t sender = b->spread.nodes[node->parent].place;
    const fl_replica_spot *to = &b->spots[node->place], *from = &b->spots[sender];
    bool is_root = b->spread.nodes[node->parent].parent == FL_SPREAD_ROOT;
    fl_device *carrier = carrier_of(b->places, node->place, sender);
    fl_copy copy = {
        .to = to->ptr + p->column * to->pitch + p->offset,
        .from = from->ptr + p->column * from->pitch + p->offset,
        .to_device = b->places->at[node->place].device,
        .from_device = b->places->at[sender].device,
        .to_pitch = to->pitch,
        .from_pitch = from->pitch,
        .width = p->width,
        .height = p->height,
        .behind = is_root ? from->behind : &b->last[sender],
        .behind_count = is_root ? 2 : 1,
    };
    filch_status status = carrier->backend->copy->start(carrier, &copy, error);
    /* A copy may be on the lane despite a later failure. */
    b->last[node->place] = copy.marker != 0 ? copy.marker : b->last[node->place];
    if (status == FILCH_OK) {
        count_copy(traffic, carrier, node->place, sender, p->width * p->height);
        fl_place_count_copy(b->places, node->place, sender, p->width * p->height);
    }
    return status;
}

static filch_status send_part(fl_broadcast *b, fl_traffic *traffic, filch_error *error)
{
    filch_view view = fl_data_tile_view(b->data, b->tile);
    fl_part p = next_part(b, &view);
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < b->spread.count && status == FILCH_OK; ++i) {
        const fl_spread_node *node = &b->spread.nodes[i];
        if (node->parent != FL_SPREAD_ROOT) {
            status = send(b, node, &p, traffic, error);
        }
    }
    ++b->pieces;
    b->sent += p.width * p.height;
    if (status == FILCH_OK && b->sent == view_bytes(&view)) {
        ++b->tile;
        b->sent = UINT64_MAX;
    }
    return status;
}

/* --- Following up --- */

static void set_fence(fl_broadcast *b)
{
    fence *f = &b->fences[b->fences[0].is_set];
    memcpy(f->last, b->last, b->places->count * sizeof *f->last);
    f->tile_end = b->tile;
    f->is_set = true;
    b->pieces = 0;
}

/* Records the first failure, with the device in the error and the handle's label. */
static void fail(fl_broadcast *b, filch_status status, const filch_error *error)
{
    if (b->status == FILCH_OK) {
        b->status = status;
        b->error = *error;
        b->error.status = status;
        snprintf(b->error.label, sizeof b->error.label, "%s", b->data->label);
    }
    b->is_stopped = true;
}

/* Tells whether every copy of a fence is past, or its device has failed. */
static bool is_past(fl_broadcast *b, fence *f)
{
    for (uint32_t place = 0; place < b->places->count; ++place) {
        fl_marker marker = f->last[place];
        if (marker == 0) {
            continue;
        }
        filch_error error = FILCH_ERROR_INIT;
        fl_device *device = &b->places->devices[fl_marker_device(marker)];
        filch_status status = device->backend->lane->reached(device, marker, &error);
        if (status == FILCH_NOT_READY) {
            return false;
        }
        if (status != FILCH_OK) {
            device->backend->lane->drain(device,
                                         NULL); /* the progress of a failed device is unknown */
            fail(b, status, &error);
        }
        f->last[place] = 0;
    }
    return true;
}

/* Checks the sending devices of the roots: copies from a failed device may end without an error. */
static void check_roots(fl_broadcast *b)
{
    for (uint32_t i = 0; i < b->spread.count; ++i) {
        const fl_spread_node *node = &b->spread.nodes[i];
        const fl_device *device = b->places->at[node->place].device;
        filch_error error = FILCH_ERROR_INIT;
        if (node->parent == FL_SPREAD_ROOT && node->children != 0 && node->place != 0 &&
            fl_device_is_lost(device, &error)) {
            fail(b, FILCH_DEVICE_LOST, &error);
        }
    }
}

/* Retires the older fence; false: the fence is not past. */
static bool follow_up(fl_broadcast *b)
{
    if (!is_past(b, &b->fences[0])) {
        return false;
    }
    check_roots(b);
    /* A failure leaves the arrivals unknown. Copies sent on behind a failed copy may hold
     * arbitrary bytes, even if their own device reports success. */
    for (; b->status == FILCH_OK && b->settled < b->fences[0].tile_end; ++b->settled) {
        settle(b->data, b->settled, b->arrives);
    }
    fence first = b->fences[0];
    first.is_set = false;
    b->fences[0] = b->fences[1];
    b->fences[1] = first;
    return true;
}

/* Tells whether a part may be sent now. */
static bool is_open(const fl_broadcast *b)
{
    return !b->is_stopped && b->tile < b->tile_end && !b->fences[1].is_set;
}

static void send_some(fl_broadcast *b, fl_traffic *traffic)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = FILCH_OK;
    b->is_waiting = false;
    while (is_open(b) && status == FILCH_OK) {
        if (b->sent == UINT64_MAX) {
            status = open_tile(b, &error);
        }
        if (status == FILCH_OK && b->spread.depth == 0) {
            ++b->tile; /* every node has the tile */
            b->sent = UINT64_MAX;
            continue;
        }
        if (status == FILCH_OK) {
            status = send_part(b, traffic, &error);
        }
        if (b->pieces == STRETCH) {
            set_fence(b);
        }
    }
    b->is_waiting = status == FILCH_NOT_READY;
    if (status != FILCH_OK && !b->is_waiting) {
        fail(b, status, &error);
    }
}

static void let_go(fl_broadcast *b)
{
    if (b->is_pinned) {
        unpin(b->places, b->data);
        b->is_pinned = false;
    }
}

filch_status fl_broadcast_step(fl_broadcast *b, fl_traffic *traffic, bool *moved,
                               filch_error *error)
{
    filch_error cause = FILCH_ERROR_INIT;
    *moved = false;
    if (!b->is_pinned && !b->is_stopped) {
        filch_status status = pin(b->places, b->data, &cause);
        b->is_pinned = status == FILCH_OK;
        if (status != FILCH_OK) {
            fail(b, status, &cause);
        }
    }
    for (;;) {
        send_some(b, traffic);
        if (b->pieces != 0 && !b->fences[1].is_set) {
            set_fence(b); /* the broadcast ends here, or waits for copies under way */
        }
        if (!b->fences[0].is_set && b->is_waiting) {
            let_go(b); /* a waiter for room holds no memory, lest two waiters block each other */
            return FILCH_NOT_READY;
        }
        if (!b->fences[0].is_set) {
            break;
        }
        if (!follow_up(b)) {
            return FILCH_NOT_READY;
        }
        *moved = true;
    }
    let_go(b);
    if (b->status != FILCH_OK && error != NULL) {
        *error = b->error;
    }
    return b->status;
}
