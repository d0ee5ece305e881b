/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/tiles/tiles.h"

#include "memory/route/relay.h"
#include "memory/tiles/edge.h"

/* Maximum number of source nodes compared for a tile. */
#define MOST_SOURCES 32
/* Maximum number of relays compared, in third memories between the sources and the receiver. */
#define MOST_RELAYS 64

/* --- The table --- */

/* A table has the host's node, and at most a node per device. */
_Static_assert(SIZE_MAX / 2 / sizeof(fl_replica) / (FL_DEVICE_LIMIT + 1) > UINT32_MAX,
               "the size of a table overflows for no number of tiles");

static fl_replicas *make_replicas(fl_places *places, filch_data *data)
{
    const fl_memory *memory = &places->core->memory;
    size_t tiles = fl_data_tile_count(data);
    size_t head = (sizeof(fl_replicas) + 15) & ~(size_t)15;
    size_t bytes = head + tiles * places->count * sizeof(fl_replica);
    fl_replicas *made = fl_alloc_zeroed(memory, bytes);
    if (made != NULL && fl_mutex_init(&made->lock) != FILCH_OK) {
        fl_free(memory, made, bytes);
        made = NULL;
    }
    if (made != NULL) {
        made->bytes = bytes;
        made->places = places->count;
        made->tiles = (uint32_t)tiles;
        made->at = (fl_replica *)(void *)((char *)made + head);
        made->home = (fl_block){.data = data,
                                .ptr = data->home_base,
                                .bytes = fl_data_bytes(data),
                                .pitch = (size_t)(data->ld * data->element),
                                .place = data->home,
                                .tiles = fl_rect_of_range(data, 0, (uint32_t)tiles),
                                .held = (uint32_t)tiles};
        for (uint32_t tile = 0; data->home != 0 && tile < tiles; ++tile) {
            fl_replica_at(made, tile, data->home)->block = &made->home;
        }
    }
    return made;
}

fl_replicas *fl_replicas_get(fl_places *places, filch_data *data)
{
    /* Acquire: the table's contents are visible with the pointer. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    if (replicas != NULL) {
        return replicas;
    }
    fl_replicas *made = make_replicas(places, data);
    if (made == NULL) {
        return NULL;
    }
    /* Acquire-release: other threads see the new table whole; the losing thread never shared its
     * table. */
    if (!fl_cas_acq_rel(&data->replicas, &replicas, made)) {
        fl_mutex_fini(&made->lock);
        fl_free(&places->core->memory, made, made->bytes);
        return replicas;
    }
    return made;
}

void fl_replicas_free(fl_places *places, filch_data *data)
{
    fl_replicas *replicas = fl_load_relaxed(&data->replicas); /* no users of the handle remain */
    while (replicas->edges != NULL) {
        fl_edge_end(&places->core->memory, replicas, replicas->edges->tile);
    }
    fl_mutex_fini(&replicas->lock);
    fl_free(&places->core->memory, replicas, replicas->bytes);
    fl_store_relaxed(&data->replicas, NULL);
}

filch_status fl_replicas_tell_none(const filch_data *data, filch_error *error)
{
    return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = data->label},
                         "no memory to keep track of the handle's tiles");
}

/* --- Validity --- */

bool fl_replica_is_valid(const filch_data *data, const fl_replica *replica, uint32_t place)
{
    /* Relaxed: the lock orders both members; a read without the lock is an estimate. */
    return fl_load_relaxed(&replica->version) == fl_data_version(data)
               ? fl_load_relaxed(&replica->state) != FL_INVALID
               : data->has_home && place == data->home;
}

bool fl_tile_is_at(const filch_data *data, uint32_t tile, uint32_t place)
{
    /* Acquire: the table's contents are visible with the pointer. */
    const fl_replicas *replicas = fl_load_acquire(&((filch_data *)(uintptr_t)data)->replicas);
    return replicas != NULL ? fl_replica_is_valid(data, fl_replica_at(replicas, tile, place), place)
                            : place == data->home;
}

bool fl_tile_is_coming(const fl_places *places, const filch_data *data, uint32_t tile,
                       uint32_t place)
{
    /* Acquire: as above. Relaxed: an estimate. */
    const fl_replicas *replicas = fl_load_acquire(&((filch_data *)(uintptr_t)data)->replicas);
    fl_marker marker =
        replicas != NULL ? fl_load_relaxed(&fl_replica_at(replicas, tile, place)->coming) : 0;
    const fl_device *from = &places->devices[fl_marker_device(marker)];
    return marker != 0 && !from->backend->lane->is_past(from, marker);
}

void fl_replica_set(const filch_data *data, fl_replica *replica, fl_validity state, fl_marker ready)
{
    fl_store_relaxed(&replica->version, fl_data_version(data));
    fl_store_relaxed(&replica->state, (uint32_t)state);
    replica->ready = ready;
    replica->source = 0;
    replica->is_claimed = false;
    fl_store_relaxed(&replica->coming, ready); /* an estimate */
}

void fl_replica_invalidate(const filch_data *data, fl_replica *replica)
{
    /* A work item ends before a later writer starts, but a copy may still be under way. */
    bool is_copy = fl_marker_lane(replica->ready) >= FL_LANE_IN;
    fl_replica_set(data, replica, FL_INVALID, is_copy ? replica->ready : 0);
}

void fl_replica_clear(const fl_places *places, const fl_replica *replica, const fl_device *carrier,
                      uint32_t lane)
{
    /* Copies on a lane run in order. A failed device no longer delivers a copy. */
    if (fl_marker_device(replica->ready) != carrier->info.index ||
        fl_marker_lane(replica->ready) != lane) {
        (void)fl_marker_await(places, replica->ready, NULL);
    }
}

/* Returns the device that failed before reaching the marker, or null. */
static fl_device *lost_before(const fl_places *places, fl_marker marker)
{
    fl_device *device = &places->devices[fl_marker_device(marker)];
    return marker != 0 && fl_device_is_lost(device, NULL) &&
                   device->backend->lane->reached(device, marker, NULL) != FILCH_OK
               ? device
               : NULL;
}

fl_device *fl_replica_lost_with(const fl_places *places, const filch_data *data,
                                const fl_replica *replica, uint32_t place)
{
    fl_device *device = place != 0 ? places->at[place].device : NULL;
    if (device != NULL && fl_device_is_lost(device, NULL)) {
        return device;
    }
    if (fl_load_relaxed(&replica->version) != fl_data_version(data)) {
        return NULL;
    }
    device = lost_before(places, replica->ready);
    return device != NULL ? device : lost_before(places, replica->source);
}

bool fl_replica_is_good(const fl_places *places, const filch_data *data, const fl_replica *replica,
                        uint32_t place)
{
    return fl_replica_is_valid(data, replica, place) &&
           fl_replica_lost_with(places, data, replica, place) == NULL;
}

/* Returns the first node from `from` on with a good tile, if no choice is necessary. */
static uint32_t first_source(const fl_places *places, const filch_data *data,
                             const fl_replicas *replicas, uint32_t tile, uint32_t from)
{
    uint32_t place = from;
    while (place < replicas->places &&
           !fl_replica_is_good(places, data, fl_replica_at(replicas, tile, place), place)) {
        ++place;
    }
    return place;
}

/* Finds up to `room` third memories as relays for a tile from the origin to a device, fast by
 * measured rates. The sender and the receiver must reach the relay. */
static uint32_t find_relays(const fl_places *places, const fl_origin *origin,
                            const fl_device *device, fl_relay *relays, uint32_t room)
{
    const fl_device *sender = places->at[origin->place].device;
    uint32_t count = 0;
    for (uint32_t place = 1; place < places->count && count < room; ++place) {
        const fl_device *between = places->at[place].device;
        double in = fl_places_rate(places, origin->place, place);
        double out = fl_places_rate(places, place, device->place);
        bool is_faster =
            !origin->is_straight || (origin->rate > 0 && in > origin->rate && out > origin->rate);
        if (place != origin->place && place != device->place && in > 0 && out > 0 && is_faster &&
            fl_device_reaches(sender, place) && fl_device_reaches(device, place) &&
            !fl_device_is_lost(between, NULL)) {
            relays[count++] =
                (fl_relay){place, in, out, fl_flow_peer(places, place), fl_flow_out(places, place)};
        }
    }
    return count;
}

/* Returns the next node from `from` on with a good tile. Skips nodes waiting for a copy from a
 * third device, unless `chains` is set: such a chain makes the host wait, see move_tile. */
static uint32_t next_source(const fl_places *places, const filch_data *data,
                            const fl_replicas *replicas, uint32_t tile, uint32_t from, bool chains)
{
    uint32_t place = first_source(places, data, replicas, tile, from);
    while (place < replicas->places && !chains) {
        const fl_replica *replica = fl_replica_at(replicas, tile, place);
        const fl_device *third = &places->devices[fl_marker_device(replica->source)];
        if (fl_load_relaxed(&replica->version) != fl_data_version(data) || replica->source == 0 ||
            third->backend->lane->is_past(third, replica->source)) {
            break;
        }
        place = first_source(places, data, replicas, tile, place + 1);
    }
    return place;
}

/* Chooses among several sources and routes; source: a node, or replicas->places. */
static fl_plan find_way(const fl_places *places, const filch_data *data,
                        const fl_replicas *replicas, uint32_t tile, const fl_device *device,
                        bool may_relay)
{
    fl_origin sources[MOST_SOURCES];
    fl_relay relays[MOST_RELAYS];
    uint32_t count = 0, relay_count = 0;
    bool chains = next_source(places, data, replicas, tile, 0, false) == replicas->places;
    uint32_t place = next_source(places, data, replicas, tile, 0, chains);
    while (place < replicas->places && count < MOST_SOURCES) {
        bool is_straight = fl_device_reaches(device, place) || place == device->place;
        fl_origin *origin = &sources[count++];
        *origin = (fl_origin){
            .place = place,
            .is_straight = is_straight,
            .rate = fl_places_rate(places, place, is_straight ? device->place : 0),
            .queued = place != 0 ? fl_flow_out(places, place) : 0,
            .relays = &relays[relay_count],
        };
        if (may_relay && place != 0 && place != device->place) {
            origin->relay_count = find_relays(places, origin, device, &relays[relay_count],
                                              MOST_RELAYS - relay_count);
            relay_count += origin->relay_count;
        }
        place = next_source(places, data, replicas, tile, place + 1, chains);
    }
    const fl_receiver receiver = {fl_places_rate(places, 0, device->place),
                                  fl_flow_in(places, device->place)};
    fl_plan plan = fl_plan_copy(sources, count, receiver, fl_coalesced_bytes(data, tile, tile + 1));
    plan.source = plan.source != FL_PLAN_NONE ? sources[plan.source].place : replicas->places;
    return plan;
}

uint32_t fl_tile_source(const fl_places *places, const filch_data *data,
                        const fl_replicas *replicas, uint32_t tile, const fl_device *device)
{
    uint32_t place = first_source(places, data, replicas, tile, 0);
    if (device == NULL || place == replicas->places ||
        first_source(places, data, replicas, tile, place + 1) == replicas->places) {
        return place;
    }
    return find_way(places, data, replicas, tile, device, false).source;
}

fl_plan fl_tile_way(const fl_places *places, const filch_data *data, const fl_replicas *replicas,
                    uint32_t tile, const fl_device *device, bool may_relay)
{
    uint32_t place = first_source(places, data, replicas, tile, 0);
    bool is_only = device == NULL || place == replicas->places ||
                   first_source(places, data, replicas, tile, place + 1) == replicas->places;
    /* A route without a measured rate is compared with no second route. */
    bool has_choice =
        !is_only || (device != NULL && place != 0 && place != replicas->places &&
                     (!fl_device_reaches(device, place) ||
                      (may_relay && fl_places_rate(places, place, device->place) > 0)));
    return has_choice ? find_way(places, data, replicas, tile, device, may_relay)
                      : (fl_plan){.source = place, .pieces = 1};
}

filch_status fl_tile_tell_lost(const fl_places *places, const filch_data *data,
                               fl_replicas *replicas, uint32_t tile, filch_error *error)
{
    filch_error cause = FILCH_ERROR_INIT;
    for (uint32_t place = 0; place < replicas->places; ++place) {
        const fl_replica *replica = fl_replica_at(replicas, tile, place);
        const fl_device *device = fl_replica_is_valid(data, replica, place)
                                      ? fl_replica_lost_with(places, data, replica, place)
                                      : NULL;
        if (device != NULL) {
            fl_device_is_lost(device, &cause);
        }
    }
    const fl_fault fault = {
        .status = cause.status != FILCH_OK ? cause.status : FILCH_INTERNAL,
        .native_code = cause.native_code,
        .native_name = cause.native_name,
        .call = cause.call,
        .device = cause.device,
        .label = data->label,
    };
    if (cause.status == FILCH_OK && !data->has_home) {
        return fl_data_fail_unwritten(data, tile, NULL, error);
    }
    return fl_error_fill(error, fault, "tile %u of '%s' has no valid copy left: %s", tile,
                         data->label, cause.text);
}

/* --- Blocks --- */

size_t fl_rect_bytes(const filch_data *data, fl_rect rect)
{
    filch_view view = fl_data_rect_view(data, rect);
    return (size_t)(view.rows * view.cols * data->element);
}

size_t fl_region_bytes(const filch_data *data, const fl_region *region)
{
    filch_view view = fl_data_region_view(data, region);
    return (size_t)(view.rows * view.cols * data->element);
}

size_t fl_tile_part_bytes(const filch_data *data, uint32_t tile, const fl_region *region)
{
    filch_view view = fl_data_tile_view(data, tile);
    if (FL_UNLIKELY(region != NULL)) {
        filch_view all = fl_data_region_view(data, region);
        view = fl_data_common_view(data, &all, &view);
    }
    return (size_t)(view.rows * view.cols * data->element);
}

size_t fl_coalesced_bytes(const filch_data *data, uint32_t first, uint32_t end)
{
    return fl_rect_bytes(data, fl_rect_of_range(data, first, end));
}

char *fl_block_at(const filch_data *data, const fl_block *block, const filch_view *view)
{
    filch_view first = fl_data_tile_view(data, block->tiles.first);
    return block->ptr + (size_t)(view->col - first.col) * block->pitch +
           (size_t)((view->row - first.row) * data->element);
}

bool fl_replica_detach(const fl_places *places, const filch_data *data, fl_replica *replica)
{
    fl_block *block = replica->block;
    /* A copy in reads the host's memory, and later users of the tile no longer wait for the
     * copy. */
    if (fl_marker_lane(replica->ready) == FL_LANE_IN) {
        (void)fl_marker_await(places, replica->ready, NULL);
    }
    /* Copies of a failed device read nothing. */
    (void)fl_block_read(places, block, replica->ready, NULL);
    (void)fl_block_read(places, block, replica->source, NULL);
    replica->block = NULL;
    fl_replica_set(data, replica, FL_INVALID, 0);
    return --block->held == 0;
}

fl_spot fl_spot_of(const filch_data *data, const filch_view *view, const fl_block *block,
                   uint32_t place)
{
    if (place == 0) {
        filch_view host = *view;
        fl_data_put_on_host(data, &host);
        return (fl_spot){host.ptr, (size_t)(host.ld * data->element), 0, 0};
    }
    return (fl_spot){fl_block_at(data, block, view), block->pitch, place, block->vacant};
}

/* --- Copies --- */

/* Returns the device of a copy's end: the carrier on the carrier's side, else the device of the
 * node. */
static fl_device *device_of(const fl_places *places, fl_device *carrier, uint32_t place)
{
    return place != 0 && place == carrier->place ? carrier : places->at[place].device;
}

/* Counts a copy as traffic of the receiver, or of the sender if the host receives. Copies within
 * a node count nowhere. Relaxed: several workers may start copies on a device's lanes; a reader
 * of exact figures has seen the job complete. */
static void count_bytes(fl_traffic *traffic, const fl_device *to, const fl_device *from,
                        size_t bytes)
{
    if (traffic != NULL && (to == NULL || from == NULL || to->place != from->place)) {
        fl_traffic *own = &traffic[to != NULL ? to->info.index : from->info.index];
        fl_add_relaxed(to == NULL ? &own->out : from == NULL ? &own->in : &own->peer, bytes);
    }
}

filch_status fl_columns_start(fl_places *places, fl_device *carrier, size_t width, size_t height,
                              fl_spot to, fl_spot from, fl_marker behind, fl_traffic *traffic,
                              fl_marker *marker, filch_error *error)
{
    fl_copy copy = {
        .to = to.ptr,
        .from = from.ptr,
        .to_device = device_of(places, carrier, to.place),
        .from_device = device_of(places, carrier, from.place),
        .to_pitch = to.pitch,
        .from_pitch = from.pitch,
        .width = width,
        .height = height,
        .behind = &behind,
        .behind_count = behind != 0,
        .vacant = to.vacant,
    };
    filch_status status = carrier->backend->copy->start(carrier, &copy, error);
    *marker = copy.marker;
    if (status == FILCH_OK) {
        count_bytes(traffic, copy.to_device, copy.from_device, width * height);
        fl_place_count_copy(places, to.place, from.place, width * height);
        fl_flow_note(places, to.place, from.place, *marker, width * height);
    }
    return status;
}

filch_status fl_copy_start(fl_places *places, fl_device *carrier, const filch_view *view,
                           fl_spot to, fl_spot from, fl_marker behind, fl_traffic *traffic,
                           fl_marker *marker, filch_error *error)
{
    return fl_columns_start(places, carrier, (size_t)(view->rows * view->element),
                            (size_t)view->cols, to, from, behind, traffic, marker, error);
}

filch_status fl_marker_await(const fl_places *places, fl_marker marker, filch_error *error)
{
    fl_device *device = &places->devices[fl_marker_device(marker)];
    return marker != 0 ? fl_device_await(device, marker, error) : FILCH_OK;
}

/* Copies a valid tile from a node to a second node. Requires the lock. */
static filch_status move_tile(fl_places *places, filch_data *data, fl_replicas *replicas,
                              uint32_t tile, uint32_t place, uint32_t source, fl_device *device,
                              fl_traffic *traffic, filch_error *error)
{
    fl_replica *to = fl_replica_at(replicas, tile, place);
    fl_replica *from = fl_replica_at(replicas, tile, source);
    filch_view view = fl_data_tile_view(data, tile);
    bool is_current = fl_load_relaxed(&from->version) == fl_data_version(data);
    fl_marker behind = is_current ? from->ready : 0;
    fl_marker marker;
    /* A replica records only a single second device whose copy it depends on. */
    filch_status status = behind != 0 ? fl_marker_await(places, from->source, error) : FILCH_OK;
    if (status != FILCH_OK) {
        return status;
    }
    fl_device *carrier = place != 0 ? device : places->at[source].device;
    fl_replica_clear(places, to, carrier, fl_copy_lane(place, source));
    status = fl_copy_start(places, carrier, &view, fl_spot_of(data, &view, to->block, place),
                           fl_spot_of(data, &view, from->block, source), behind, traffic, &marker,
                           error);
    if (status == FILCH_OK) {
        fl_replica_set(data, from, FL_SHARED, behind);
        fl_replica_set(data, to, FL_SHARED, marker);
        to->source = fl_marker_device(behind) != fl_marker_device(marker) ? behind : 0;
        status = source != 0 ? fl_block_read(places, from->block, marker, error) : FILCH_OK;
    }
    return status;
}

/* Describes the elements of a tile beside a part of the tile: to the left and to the right of it,
 * above and below. Some have no rows or columns. */
static void list_rest(const filch_view *tile, const filch_view *part, filch_view rest[4])
{
    uint64_t row_end = part->row + part->rows, col_end = part->col + part->cols;
    rest[0] = rest[1] = *tile;
    rest[0].cols = part->col - tile->col;
    rest[1].col = col_end;
    rest[1].cols = tile->col + tile->cols - col_end;
    rest[2] = rest[3] = *part;
    rest[2].row = tile->row;
    rest[2].rows = part->row - tile->row;
    rest[3].row = row_end;
    rest[3].rows = tile->row + tile->rows - row_end;
}

/* A copy of what a node lacks of a tile with an edge. */
typedef struct fl_beside {
    const fl_edge *edge;
    fl_replica *to, *from;
    uint32_t source;  /* node */
    fl_marker behind; /* makes the source valid */
    fl_marker last;   /* the last copy; 0: none */
} fl_beside;

/* Starts the copies. Requires the lock. */
static filch_status copy_rest(fl_places *places, const filch_data *data, fl_beside *rest,
                              fl_device *device, fl_traffic *traffic, filch_error *error)
{
    filch_view tile = fl_data_tile_view(data, rest->edge->tile), parts[4];
    filch_status status =
        rest->behind != 0 ? fl_marker_await(places, rest->from->source, error) : FILCH_OK;
    list_rest(&tile, &rest->edge->part, parts);
    for (uint32_t i = 0; i < 4 && status == FILCH_OK; ++i) {
        if (parts[i].rows == 0 || parts[i].cols == 0) {
            continue;
        }
        status = fl_copy_start(places, device, &parts[i],
                               fl_spot_of(data, &parts[i], rest->to->block, device->place),
                               fl_spot_of(data, &parts[i], rest->from->block, rest->source),
                               rest->behind, traffic, &rest->last, error);
        if (status == FILCH_OK && rest->source != 0) {
            status = fl_block_read(places, rest->from->block, rest->last, error);
        }
    }
    return status;
}

/* Waits for the copies to the edge that are on other lanes than the copies of the rest. */
static filch_status await_edge(const fl_places *places, const fl_beside *rest, filch_error *error)
{
    const fl_edge *edge = rest->edge;
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < edge->copy_count && status == FILCH_OK; ++i) {
        if (rest->last == 0 || edge->copies[i] >> 50 != rest->last >> 50) {
            status = fl_marker_await(places, edge->copies[i], error);
        }
    }
    return status;
}

filch_status fl_tile_complete(fl_places *places, filch_data *data, fl_replicas *replicas,
                              uint32_t tile, fl_device *device, fl_traffic *traffic,
                              filch_error *error)
{
    const fl_edge *edge = fl_edge_find(replicas, tile, device->place);
    if (edge == NULL) {
        return FILCH_OK;
    }
    uint32_t source = fl_tile_source(places, data, replicas, tile, device);
    if (!edge->is_filled || edge->copy_count > FL_EDGE_COPIES || source == replicas->places ||
        source == device->place || !fl_device_reaches(device, source)) {
        return FILCH_NOT_READY;
    }
    fl_beside rest = {.edge = edge,
                      .to = fl_replica_at(replicas, tile, device->place),
                      .from = fl_replica_at(replicas, tile, source),
                      .source = source};
    bool is_current = fl_load_relaxed(&rest.from->version) == fl_data_version(data);
    rest.behind = is_current ? rest.from->ready : 0;
    filch_status status = copy_rest(places, data, &rest, device, traffic, error);
    status = status == FILCH_OK ? await_edge(places, &rest, error) : status;
    if (status != FILCH_OK) {
        (void)fl_marker_await(places, rest.last, NULL); /* the tile stays invalid */
        return status;
    }
    fl_replica_set(data, rest.from, FL_SHARED, rest.behind);
    fl_replica_set(data, rest.to, FL_SHARED, rest.last);
    rest.to->source =
        fl_marker_device(rest.behind) != fl_marker_device(rest.last) ? rest.behind : 0;
    fl_edge_end_at(&places->core->memory, replicas, tile, device->place);
    return FILCH_OK;
}

/* Prepares a detour for the elements of a view, as present in the plan's source. The arrival
 * depends on the copy to the stop, and a replica records a single second device. Waits therefore
 * for the dependences of the source's copy on further devices. */
static filch_status begin_detour(fl_places *places, const filch_data *data, const fl_replica *from,
                                 const filch_view *view, const fl_plan *plan, fl_detour *detour,
                                 filch_error *error)
{
    bool is_current = fl_load_relaxed(&from->version) == fl_data_version(data);
    filch_status status = FILCH_OK;
    detour->out = places->at[plan->source].device;
    detour->from = fl_spot_of(data, view, from->block, plan->source);
    detour->width = (size_t)(view->rows * view->element);
    detour->height = (size_t)view->cols;
    detour->pieces = plan->pieces;
    detour->behind = is_current ? from->ready : 0;
    if (detour->behind != 0) {
        status = fl_marker_await(places, from->source, error);
    }
    if (status == FILCH_OK && fl_marker_device(detour->behind) != detour->out->info.index) {
        status = fl_marker_await(places, detour->behind, error);
    }
    return status;
}

/* Copies a valid tile by two copies, over the relay's memory or (relay 0) the host's. The host
 * then has a valid tile, too. Requires the lock. */
static filch_status move_over(fl_places *places, filch_data *data, fl_replicas *replicas,
                              uint32_t tile, const fl_plan *plan, fl_device *device,
                              fl_traffic *traffic, filch_error *error)
{
    fl_replica *to = fl_replica_at(replicas, tile, device->place);
    fl_replica *from = fl_replica_at(replicas, tile, plan->source);
    filch_view view = fl_data_tile_view(data, tile);
    fl_detour detour = {
        .in = device,
        .to = fl_spot_of(data, &view, to->block, device->place),
        .traffic = traffic,
    };
    filch_status status = begin_detour(places, data, from, &view, plan, &detour, error);
    if (status == FILCH_OK && plan->relay == 0) {
        status = fl_data_need_host_tile(data, tile, error);
    }
    if (status == FILCH_OK) {
        fl_replica_clear(places, to, device, fl_copy_lane(device->place, plan->relay));
        if (plan->relay == 0) {
            fl_replica_clear(places, fl_replica_at(replicas, tile, 0), detour.out, FL_LANE_OUT);
        }
        status = plan->relay == 0
                     ? fl_detour_over(places, &detour, fl_spot_of(data, &view, NULL, 0), error)
                     : fl_detour_relayed(places, &detour, plan->relay, error);
    }
    if (status == FILCH_OK) {
        fl_replica_set(data, from, FL_SHARED, detour.behind);
        fl_replica_set(data, to, FL_SHARED, detour.arrived);
        to->source = detour.left;
        if (plan->relay == 0) {
            fl_replica_set(data, fl_replica_at(replicas, tile, 0), FL_SHARED, detour.left);
        }
        status = fl_block_read(places, from->block, detour.left, error);
    }
    return status;
}

filch_status fl_part_relay(fl_places *places, const filch_data *data, const fl_replica *from,
                           const filch_view *view, const fl_plan *plan, fl_spot to,
                           fl_device *device, fl_traffic *traffic, fl_waits *waits,
                           filch_error *error)
{
    fl_detour detour = {.in = device, .to = to, .traffic = traffic};
    filch_status status = begin_detour(places, data, from, view, plan, &detour, error);
    if (status == FILCH_OK) {
        status = fl_detour_relayed(places, &detour, plan->relay, error);
    }
    if (status == FILCH_OK) { /* both copies are under way, regardless of later errors */
        status = fl_waits_add(waits, detour.arrived, error);
        filch_status left = fl_waits_add(waits, detour.left, error);
        status = status == FILCH_OK ? left : status;
    }
    return status == FILCH_OK ? fl_block_read(places, from->block, detour.left, error) : status;
}

filch_status fl_tile_fill(fl_places *places, filch_data *data, fl_replicas *replicas, uint32_t tile,
                          uint32_t place, fl_device *device, fl_traffic *traffic,
                          filch_error *error)
{
    fl_plan plan = fl_tile_way(places, data, replicas, tile, device, true);
    if (plan.relay != 0) {
        if (move_over(places, data, replicas, tile, &plan, device, traffic, NULL) == FILCH_OK) {
            return FILCH_OK;
        }
        /* The relay lacks room, or a copy failed; direct routes do not depend on the relay. */
        plan = fl_tile_way(places, data, replicas, tile, device, false);
    }
    if (plan.source == replicas->places) {
        return fl_tile_tell_lost(places, data, replicas, tile, error);
    }
    if (plan.source == place) {
        return FILCH_OK; /* a version has just begun, for a handle under eviction by a second job */
    }
    return plan.is_staged ? move_over(places, data, replicas, tile, &plan, device, traffic, error)
                          : move_tile(places, data, replicas, tile, place, plan.source, device,
                                      traffic, error);
}

/* Such copies came along with a neighbouring tile, or ahead of a task that ran elsewhere. A failed
 * device reads nothing after a drain. */
void fl_tile_await_readers(const fl_places *places, const filch_data *data,
                           const fl_replicas *replicas, uint32_t tile)
{
    for (uint32_t place = 1; place < replicas->places; ++place) {
        const fl_replica *replica = fl_replica_at(replicas, tile, place);
        if (fl_load_relaxed(&replica->version) == fl_data_version(data) &&
            fl_marker_lane(replica->ready) >= FL_LANE_IN &&
            fl_marker_await(places, replica->ready, NULL) != FILCH_OK) {
            fl_device *device = &places->devices[fl_marker_device(replica->ready)];
            device->backend->lane->drain(device, NULL);
        }
    }
}

filch_status fl_tile_fetch(fl_places *places, filch_data *data, fl_replicas *replicas,
                           uint32_t tile, fl_device *device, uint32_t mode, fl_traffic *traffic,
                           fl_waits *waits, filch_error *error)
{
    bool wants_contents = (mode & FILCH_READ) != 0;
    uint32_t place = device != NULL ? device->place : 0;
    fl_replica *replica = fl_replica_at(replicas, tile, place);
    filch_status status = place == 0 ? fl_data_need_host_tile(data, tile, error) : FILCH_OK;
    /* The host may hold further tiles while a job of the handle ends and a version begins. */
    bool is_known = fl_load_relaxed(&replica->version) == fl_data_version(data);
    if (status == FILCH_OK && wants_contents && !fl_replica_is_good(places, data, replica, place)) {
        status = fl_tile_fill(places, data, replicas, tile, place, device, traffic, error);
        is_known = true;
    }
    /* A writer overwriting the tile may ignore a lost copy. */
    if (status == FILCH_OK && is_known &&
        (wants_contents || fl_replica_lost_with(places, data, replica, place) == NULL)) {
        status = fl_waits_add(waits, replica->ready, error);
        status = status == FILCH_OK ? fl_waits_add(waits, replica->source, error) : status;
    }
    if (status == FILCH_OK && place != 0 && !wants_contents) {
        status = fl_waits_add(waits, replica->block->vacant, error);
    }
    if (status == FILCH_OK && place == 0 && (mode & FILCH_WRITE) != 0) {
        fl_tile_await_readers(places, data, replicas, tile);
    }
    if (status == FILCH_OK && place == 0 && mode == FILCH_WRITE) {
        /* No eviction may write back a tile the host is about to write. */
        for (uint32_t other = 1; other < replicas->places; ++other) {
            fl_replica_invalidate(data, fl_replica_at(replicas, tile, other));
        }
        fl_replica_set(data, replica, FL_MODIFIED, 0);
    }
    replica->is_claimed = (mode & FILCH_WRITE) != 0;
    return status;
}

/* Moves a tile from an unused block of the node into the new block. */
static filch_status adopt_tile(fl_places *places, filch_data *data, fl_replica *replica,
                               uint32_t tile, fl_block *block, fl_device *device,
                               filch_error *error)
{
    fl_block *old = replica->block;
    fl_marker marker = 0;
    filch_status status = FILCH_OK;
    uint32_t state = FL_INVALID;
    if (old != NULL && fl_replica_is_good(places, data, replica, block->place)) {
        filch_view view = fl_data_tile_view(data, tile);
        state = fl_load_relaxed(&replica->state);
        status = fl_marker_await(places, replica->source, error);
        if (status == FILCH_OK) {
            status = fl_copy_start(
                places, device, &view, fl_spot_of(data, &view, block, block->place),
                fl_spot_of(data, &view, old, block->place), replica->ready, NULL, &marker, error);
        }
        if (status != FILCH_OK) {
            return status;
        }
        /* The copy leads into the new block: the tile is in the new block now, regardless of the
         * old block. */
        if (fl_block_read(places, old, marker, NULL) != FILCH_OK) {
            (void)fl_marker_await(places, marker, NULL);
        }
    }
    if (old != NULL && fl_replica_detach(places, data, replica) && fl_block_leave(places, old)) {
        fl_block_give(places, old, 0);
    }
    replica->block = block;
    ++block->held;
    if (state != FL_INVALID) {
        fl_replica_set(data, replica, (fl_validity)state, marker);
    }
    return FILCH_OK;
}

filch_status fl_block_adopt(fl_places *places, filch_data *data, fl_replicas *replicas,
                            fl_block *block, fl_device *device, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < fl_rect_count(block->tiles) && status == FILCH_OK; ++i) {
        uint32_t tile = fl_rect_at(block->tiles, i);
        status = adopt_tile(places, data, fl_replica_at(replicas, tile, block->place), tile, block,
                            device, error);
    }
    return status;
}
