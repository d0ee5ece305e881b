/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/tiles/replica.h"

#include "memory/tiles/coalesce.h"
#include "memory/tiles/edge.h"

/* --- Operands --- */

static uint32_t place_of(const fl_device *device)
{
    return device != NULL ? device->place : 0;
}

/* Context for fetching the operands of a work item. */
typedef struct fl_fetch {
    fl_places *places;
    fl_device *device; /* null: the host's memory */
    uint32_t place;
    const fl_admission *admission;
    fl_waits *waits;
    filch_error *error;
} fl_fetch;

/* Acquire: fetch has made the replicas, perhaps on a second thread. */
static fl_replicas *replicas_of(const fl_operand *operand)
{
    return fl_load_acquire(&operand->data->replicas);
}

static bool is_empty(const fl_operand *operand)
{
    return operand->is_chunk && operand->first == operand->last;
}

static bool is_all(const fl_operand *operand)
{
    return fl_rect_count(operand->tiles) == fl_data_tile_count(operand->data);
}

/* Tells whether the operand is a task's block of several tiles. */
static bool is_block(const fl_operand *operand)
{
    return !operand->is_chunk && fl_rect_count(operand->tiles) != 1;
}

/* View of the operand's elements, as on the host. */
static filch_view host_view(const fl_operand *operand)
{
    return operand->is_chunk ? fl_data_range_view(operand->data, operand->first, operand->last)
           : operand->region != NULL ? fl_data_region_view(operand->data, operand->region)
                                     : fl_data_rect_view(operand->data, operand->tiles);
}

void fl_operand_resolve(fl_operand *operand)
{
    uint32_t tile, end;
    operand->is_streamed = fl_data_is_streamed(operand->data) && !operand->is_whole;
    fl_data_tiles_of(operand->data, operand->first, operand->last, &tile, &end);
    operand->tiles = fl_rect_of_range(operand->data, tile, end);
}

/* --- Memory for operands --- */

/* Returns the block holding every tile of the operand; null: no such block. Requires the lock. */
static fl_block *find_block(const fl_replicas *replicas, const fl_operand *operand, uint32_t place)
{
    fl_block *block = fl_replica_at(replicas, operand->tiles.first, place)->block;
    for (uint32_t i = 1; block != NULL && i < fl_rect_count(operand->tiles); ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        block = fl_replica_at(replicas, tile, place)->block == block ? block : NULL;
    }
    return block;
}

/* Pins a block. Requires the lock. */
static void pin(const fl_fetch *fetch, fl_block *block)
{
    /* Relaxed: an eviction checks under the lock, and the time is an estimate. */
    fl_add_relaxed(&block->uses, 1);
    fl_store_relaxed(&block->used, fl_load_relaxed(&fetch->places->residents[fetch->place].now));
}

static void unpin(const fl_operand *operand, uint32_t place)
{
    if (!is_empty(operand)) {
        /* Pinned: the block is still in place. Release: the block's use precedes its eviction. */
        fl_block *block = fl_replica_at(replicas_of(operand), operand->tiles.first, place)->block;
        fl_sub_acq_rel(&block->uses, 1);
    }
}

/* Returns the operand's elements in a tile, as on the host. */
static filch_view part_view(const fl_operand *operand, uint32_t tile)
{
    const filch_view all = host_view(operand), whole = fl_data_tile_view(operand->data, tile);
    return fl_data_common_view(operand->data, &all, &whole);
}

/* Tells whether the operand's halo ends within a tile that the node lacks. Requires the lock. */
static bool is_edge(const fl_operand *operand, const fl_replicas *replicas, uint32_t tile,
                    uint32_t place)
{
    if (operand->region == NULL || place == 0 ||
        fl_replica_is_valid(operand->data, fl_replica_at(replicas, tile, place), place)) {
        return false;
    }
    filch_view part = part_view(operand, tile), whole = fl_data_tile_view(operand->data, tile);
    return part.rows < whole.rows || part.cols < whole.cols;
}

/* Tells whether the operand may use its edges in the node. A broadcast may be about to copy tiles.
 * Requires the lock. */
static bool has_edges_free(const fl_operand *operand, const fl_replicas *replicas, uint32_t place)
{
    uint32_t count = operand->region != NULL ? fl_rect_count(operand->tiles) : 0;
    bool is_free = count == 0 || fl_load_relaxed(&replicas->pins) == 0;
    for (uint32_t i = 0; i < count && is_free; ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        filch_view part = part_view(operand, tile);
        is_free = !is_edge(operand, replicas, tile, place) ||
                  fl_edge_admits(replicas, tile, place, &part);
    }
    return is_free;
}

/* Ends the uses of edges at the first `count` tiles of an operand. */
static void leave_edges(fl_places *places, const fl_operand *operand, uint32_t place,
                        uint32_t count, uint64_t fetched)
{
    fl_replicas *replicas = replicas_of(operand);
    if (operand->region == NULL || count == 0) {
        return;
    }
    fl_mutex_lock(&replicas->lock);
    fl_edges_leave(&places->core->memory, replicas, operand->tiles, count, place, fetched);
    fl_mutex_unlock(&replicas->lock);
}

/* Ends the fetch of edges. */
static void settle_edges(const fl_fetch *fetch, const fl_operand *operand)
{
    fl_replicas *replicas = replicas_of(operand);
    if (operand->edged == 0) {
        return;
    }
    fl_mutex_lock(&replicas->lock);
    fl_edges_fetched(replicas, operand->tiles, operand->edged, fetch->place, fetch);
    fl_mutex_unlock(&replicas->lock);
}

/* Undoes the reservations of the first `count` operands. */
static void unreserve(const fl_fetch *fetch, fl_operand *operands, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        fl_operand *operand = &operands[i];
        if (!operand->is_reserved) {
            continue;
        }
        operand->is_reserved = false;
        if (operand->staging != NULL) {
            fl_block_give(fetch->places, operand->staging, 0);
            operand->staging = NULL;
        } else if (!operand->is_streamed) {
            settle_edges(fetch, operand);
            leave_edges(fetch->places, operand, fetch->place, operand->edged, operand->fetched);
            unpin(operand, fetch->place);
        }
    }
}

/* Tells whether a tile should join a coalesced block with its neighbours instead of keeping its
 * own block. Requires the lock. */
static bool may_regroup(const fl_fetch *fetch, const fl_operand *operand,
                        const fl_replicas *replicas, const fl_block *block)
{
    const fl_admission *admission = fetch->admission;
    return admission->foresight != NULL && !operand->is_chunk && !is_block(operand) &&
           (operand->mode & FILCH_READ) != 0 && !admission->is_tight && !admission->is_pressed &&
           fl_load_relaxed(&block->uses) == 0 && /* relaxed: under the lock */
           !fl_replica_is_valid(operand->data,
                                fl_replica_at(replicas, operand->tiles.first, fetch->place),
                                fetch->place) &&
           fl_coalesced_may_join(operand->data, replicas, operand->tiles.first, fetch->place);
}

/* Pins the operand's block, if present and meant to stay in place. */
static bool reserve_resident(const fl_fetch *fetch, fl_operand *operand, bool stays)
{
    if (is_empty(operand)) {
        operand->is_reserved = true;
    } else if (!operand->is_streamed && !operand->is_shadowed) {
        fl_replicas *replicas = replicas_of(operand);
        fl_mutex_lock(&replicas->lock);
        fl_block *block = find_block(replicas, operand, fetch->place);
        if (block != NULL && (stays || !may_regroup(fetch, operand, replicas, block)) &&
            has_edges_free(operand, replicas, fetch->place)) {
            pin(fetch, block);
            operand->is_reserved = true;
        }
        fl_mutex_unlock(&replicas->lock);
    }
    return operand->is_reserved;
}

/* Tells whether a block holding one of the tiles is in use. */
static bool is_used(const fl_replicas *replicas, fl_rect tiles, uint32_t place)
{
    for (uint32_t i = 0; i < fl_rect_count(tiles); ++i) {
        const fl_block *block = fl_replica_at(replicas, fl_rect_at(tiles, i), place)->block;
        /* Acquire: the accesses of former users precede the caller's. */
        if (block != NULL && fl_load_acquire(&block->uses) != 0) {
            return true;
        }
    }
    return false;
}

/* Assigns a new block to tiles, the operand's among them, and pins the block. Gives the block back
 * if a second thread was faster. FILCH_NOT_READY: the tiles are in use in a second block. */
static filch_status settle(const fl_fetch *fetch, fl_operand *operand, fl_block *block,
                           fl_rect tiles)
{
    filch_data *data = operand->data;
    fl_replicas *replicas = replicas_of(operand);
    filch_view view = fl_data_rect_view(data, tiles);
    filch_status status = FILCH_OK;
    block->data = data;
    block->tiles = tiles;
    block->pitch = (size_t)(view.rows * view.element);
    fl_mutex_lock(&replicas->lock);
    fl_block *found = find_block(replicas, operand, fetch->place);
    if (found != NULL && !operand->is_chunk &&
        (found->tiles.first > tiles.first || fl_rect_last(found->tiles) < fl_rect_last(tiles))) {
        found = NULL; /* a task's tile moves into a block with its neighbours */
    }
    if (found != NULL || is_used(replicas, tiles, fetch->place)) {
        if (found != NULL) {
            pin(fetch, found);
        }
        fl_mutex_unlock(&replicas->lock);
        fl_block_give(fetch->places, block, 0);
        operand->is_reserved = found != NULL;
        return found != NULL ? FILCH_OK : FILCH_NOT_READY;
    }
    status = fl_block_adopt(fetch->places, data, replicas, block, fetch->device, fetch->error);
    bool is_held = block->held != 0; /* holds the tiles moved before a failure */
    if (is_held) {
        fl_block_enter(fetch->places, block);
    }
    if (status == FILCH_OK) {
        pin(fetch, block);
        operand->is_reserved = true;
    }
    fl_mutex_unlock(&replicas->lock);
    if (!is_held) {
        fl_block_give(fetch->places, block, 0);
    }
    return status;
}

static filch_status take(const fl_fetch *fetch, const fl_operand *operand, size_t bytes,
                         fl_block **block)
{
    const fl_victims any = {.foresight = fetch->admission->foresight,
                            .traffic = operand->traffic,
                            .is_nobody = fetch->admission->is_spare || operand->is_shadowed};
    return fl_block_new_evict(fetch->places, fetch->device, bytes, &any, block, fetch->error);
}

/* Takes private memory for the operand's elements. */
static filch_status stage(const fl_fetch *fetch, fl_operand *operand)
{
    filch_view view = host_view(operand);
    filch_status status =
        take(fetch, operand, (size_t)(view.rows * view.cols * view.element), &operand->staging);
    operand->is_reserved = status == FILCH_OK;
    return status;
}

/* Reserves a block for the whole handle, if no eviction is necessary. */
static bool reserve_whole(const fl_fetch *fetch, fl_operand *operand)
{
    filch_error error = FILCH_ERROR_INIT;
    uint32_t tiles = fl_data_tile_count(operand->data);
    fl_block *block;
    if (fetch->admission->is_tight ||
        fl_block_new(fetch->places, fetch->place, fl_coalesced_bytes(operand->data, 0, tiles),
                     &block, &error) != FILCH_OK) {
        return false;
    }
    return settle(fetch, operand, block, fl_rect_of_range(operand->data, 0, tiles)) == FILCH_OK;
}

/* Reserves a coalesced block for a tile and its neighbours, if worthwhile. Evicts only blocks
 * with later next uses. */
static bool reserve_run(const fl_fetch *fetch, fl_operand *operand)
{
    const fl_foresight *foresight = fetch->admission->foresight;
    if ((operand->mode & FILCH_READ) == 0 || fetch->admission->is_tight) {
        return false;
    }
    fl_coalesced run = fl_coalesced_choose(fetch->places, fetch->device, operand->data,
                                           operand->tiles.first, fetch->admission);
    uint32_t count = run.end - run.first;
    const fl_victims later = {.foresight = foresight,
                              .later = run.latest,
                              .most = 2 * count,
                              .traffic = operand->traffic};
    filch_error error = FILCH_ERROR_INIT;
    fl_block *block;
    if (count == 1 || fl_block_new_evict(fetch->places, fetch->device,
                                         fl_coalesced_bytes(operand->data, run.first, run.end),
                                         &later, &block, &error) != FILCH_OK) {
        return false;
    }
    return settle(fetch, operand, block, fl_rect_of_range(operand->data, run.first, run.end)) ==
           FILCH_OK;
}

/* Reserves a new block for exactly the operand's tiles. */
static filch_status reserve_tiles(const fl_fetch *fetch, fl_operand *operand)
{
    fl_block *block;
    filch_status status =
        take(fetch, operand, fl_rect_bytes(operand->data, operand->tiles), &block);
    return status == FILCH_OK ? settle(fetch, operand, block, operand->tiles) : status;
}

/* Reserves a block for the whole handle, where the tiles in the node have no users and may move. A
 * halo then lies beside its tile. */
static bool reserve_around(const fl_fetch *fetch, fl_operand *operand)
{
    fl_replicas *replicas = replicas_of(operand);
    fl_rect all = fl_rect_of_range(operand->data, 0, fl_data_tile_count(operand->data));
    fl_mutex_lock(&replicas->lock);
    bool may_move = !is_used(replicas, all, fetch->place);
    fl_mutex_unlock(&replicas->lock);
    return may_move && reserve_whole(fetch, operand);
}

/* Reserves memory for a task's block of tiles. A block that the task only reads may be private: no
 * tile has to move then, and nothing waits for the other users of the tiles. */
static filch_status reserve_block(const fl_fetch *fetch, fl_operand *operand, bool may_stage)
{
    bool writes = (operand->mode & FILCH_WRITE) != 0;
    filch_status status = FILCH_NOT_READY;
    if (reserve_resident(fetch, operand, true) ||
        (operand->region != NULL && reserve_around(fetch, operand))) {
        return FILCH_OK;
    }
    if (writes || (is_all(operand) && operand->region == NULL) || !may_stage) {
        status = reserve_tiles(fetch, operand);
    }
    return status == FILCH_NOT_READY && !writes && may_stage ? stage(fetch, operand) : status;
}

/* Reserves new memory for an operand. Requires residents->admit. */
static filch_status reserve_new(const fl_fetch *fetch, fl_operand *operand, uint32_t index)
{
    bool writes = (operand->mode & FILCH_WRITE) != 0;
    bool may_stage = index < FL_MOST_STAGED;
    if (operand->is_chunk) {
        if ((operand->is_streamed || operand->is_shadowed) && may_stage) {
            return stage(fetch, operand);
        }
        if (!operand->is_streamed && !is_all(operand) && reserve_whole(fetch, operand)) {
            return FILCH_OK;
        }
        if (!writes && !is_all(operand) && may_stage) {
            return stage(fetch, operand);
        }
    }
    if (is_block(operand)) {
        return reserve_block(fetch, operand, may_stage);
    }
    if (!operand->is_chunk &&
        ((fl_load_relaxed(&operand->data->has_halos) && reserve_around(fetch, operand)) ||
         reserve_run(fetch, operand) || reserve_resident(fetch, operand, true))) {
        return FILCH_OK;
    }
    return reserve_tiles(fetch, operand);
}

/* Reserves a written block whose tiles lie apart. */
static filch_status reserve_apart(const fl_fetch *fetch, fl_operand *operand)
{
    fl_replicas *replicas = replicas_of(operand);
    fl_mutex_lock(&replicas->lock);
    bool is_resident = find_block(replicas, operand, fetch->place) != NULL;
    fl_mutex_unlock(&replicas->lock);
    return is_resident ? FILCH_OK : reserve_tiles(fetch, operand);
}

/* Reserves every operand, or no operand. Requires residents->admit. */
static filch_status reserve_all(const fl_fetch *fetch, fl_operand *operands, uint32_t count)
{
    filch_status status = FILCH_OK;
    /* Written blocks come before every pin of the item's own: their tiles may have to move. */
    for (uint32_t i = 0; i < count && status == FILCH_OK; ++i) {
        if (is_block(&operands[i]) && (operands[i].mode & FILCH_WRITE) != 0) {
            status = reserve_apart(fetch, &operands[i]);
        }
    }
    /* Resident operands come first: later reservations must not evict the blocks. */
    for (uint32_t i = 0; i < count && status == FILCH_OK; ++i) {
        if (!operands[i].is_reserved) {
            reserve_resident(fetch, &operands[i], false);
        }
    }
    for (uint32_t i = 0; i < count && status == FILCH_OK; ++i) {
        if (!operands[i].is_reserved) {
            status = reserve_new(fetch, &operands[i], i);
        }
    }
    if (status != FILCH_OK) {
        unreserve(fetch, operands, count);
    }
    return status;
}

/* Reserves every operand while no second worker does. A worker waiting for the mutex holds no
 * reservation and is not counted as inside. Otherwise two workers, unable to get their needs,
 * would each be told to wait for the other. */
static filch_status reserve_in_turn(const fl_fetch *fetch, fl_operand *operands, uint32_t count)
{
    fl_residents *residents = &fetch->places->residents[fetch->place];
    fl_residents_go(fetch->places, fetch->place);
    fl_mutex_lock(&residents->admit);
    fl_residents_come(fetch->places, fetch->place);
    filch_status status = reserve_all(fetch, operands, count);
    fl_mutex_unlock(&residents->admit);
    return status;
}

/* --- Contents of operands --- */

/* Copies a streamed chunk from the host into the chunk's private memory. */
static filch_status stream_in(const fl_fetch *fetch, const fl_operand *operand)
{
    filch_data *data = operand->data;
    filch_view view = fl_data_range_view(data, operand->first, operand->last);
    fl_marker marker;
    if ((operand->mode & FILCH_READ) == 0) {
        return fl_waits_add(fetch->waits, operand->staging->vacant, fetch->error);
    }
    fl_spot to = {operand->staging->ptr, (size_t)(view.rows * view.element), fetch->place,
                  operand->staging->vacant};
    filch_status status =
        fl_copy_start(fetch->places, fetch->device, &view, to, fl_spot_of(data, &view, NULL, 0), 0,
                      operand->traffic, &marker, fetch->error);
    return status == FILCH_OK ? fl_waits_add(fetch->waits, marker, fetch->error) : status;
}

/* Copies the part of a staged chunk in a tile, by a single copy from the best node the device
 * reaches. Requires the lock. */
static filch_status copy_part(const fl_fetch *fetch, const fl_operand *operand,
                              fl_replicas *replicas, uint32_t tile, const filch_view *view,
                              fl_spot to)
{
    filch_data *data = operand->data;
    uint32_t source = fl_tile_source(fetch->places, data, replicas, tile, fetch->device);
    filch_status status = FILCH_OK;
    fl_marker marker;
    if (source == replicas->places) {
        return fl_tile_tell_lost(fetch->places, data, replicas, tile, fetch->error);
    }
    if (source != fetch->place && !fl_device_reaches(fetch->device, source)) {
        status = fl_data_need_host_tile(data, tile, fetch->error);
        if (status == FILCH_OK) {
            status = fl_tile_fill(fetch->places, data, replicas, tile, 0, NULL, operand->traffic,
                                  fetch->error);
        }
        source = 0;
    }
    const fl_replica *from = fl_replica_at(replicas, tile, source);
    bool is_current = fl_load_relaxed(&from->version) == fl_data_version(data);
    if (status == FILCH_OK && is_current) {
        status = fl_marker_await(fetch->places, from->source, fetch->error);
    }
    if (status == FILCH_OK) {
        status = fl_copy_start(
            fetch->places, fetch->device, view, to, fl_spot_of(data, view, from->block, source),
            is_current ? from->ready : 0, operand->traffic, &marker, fetch->error);
    }
    if (status == FILCH_OK) { /* first: the copy is under way, regardless of later errors */
        status = fl_waits_add(fetch->waits, marker, fetch->error);
    }
    return status == FILCH_OK && source != 0
               ? fl_block_read(fetch->places, from->block, marker, fetch->error)
               : status;
}

/* Copies a part of a tile over the best route, including relays. Requires the lock. */
static filch_status bring_part(const fl_fetch *fetch, const fl_operand *operand,
                               fl_replicas *replicas, uint32_t tile, const filch_view *view,
                               fl_spot to)
{
    const filch_data *data = operand->data;
    fl_plan plan = fl_tile_way(fetch->places, data, replicas, tile, fetch->device, true);
    if (plan.relay != 0 &&
        fl_part_relay(fetch->places, data, fl_replica_at(replicas, tile, plan.source), view, &plan,
                      to, fetch->device, operand->traffic, fetch->waits, NULL) == FILCH_OK) {
        return FILCH_OK;
    }
    /* The relay lacks room, or a copy failed; the direct route does not depend on the relay. */
    return copy_part(fetch, operand, replicas, tile, view, to);
}

/* Copies the part of an operand in a tile into the operand's private memory. Requires the lock. */
static filch_status gather_tile(const fl_fetch *fetch, const fl_operand *operand,
                                fl_replicas *replicas, uint32_t tile)
{
    filch_view all = host_view(operand), view = part_view(operand, tile);
    size_t pitch = (size_t)(all.rows * all.element);
    fl_spot to = {operand->staging->ptr + (size_t)(view.col - all.col) * pitch +
                      (size_t)((view.row - all.row) * view.element),
                  pitch, fetch->place, operand->staging->vacant};
    return bring_part(fetch, operand, replicas, tile, &view, to);
}

/* Starts the copies to an edge. Requires the lock. */
static filch_status fill_edge(const fl_fetch *fetch, const fl_operand *operand,
                              fl_replicas *replicas, fl_edge *edge)
{
    const fl_replica *replica = fl_replica_at(replicas, edge->tile, fetch->place);
    fl_waits own = {.count = 0};
    fl_fetch alone = *fetch;
    alone.waits = &own;
    /* A copy of an earlier version must not arrive behind the part. */
    (void)fl_marker_await(fetch->places, replica->ready, NULL);
    filch_status status =
        bring_part(&alone, operand, replicas, edge->tile, &edge->part,
                   fl_spot_of(operand->data, &edge->part, replica->block, fetch->place));
    for (uint32_t i = 0; i < own.count; ++i) { /* also after a failure: copies may be under way */
        fl_edge_note(edge, own.at[i]);
        filch_status added = fl_waits_add(fetch->waits, own.at[i], fetch->error);
        status = status == FILCH_OK ? added : status;
    }
    edge->is_filled = status == FILCH_OK;
    return status;
}

/* Makes the elements of an edge available. Requires the lock. */
static filch_status use_edge(const fl_fetch *fetch, const fl_operand *operand,
                             fl_replicas *replicas, fl_edge *edge)
{
    filch_status status = FILCH_OK;
    if (!edge->is_filled) {
        return fill_edge(fetch, operand, replicas, edge);
    }
    for (uint32_t i = 0; i < edge->copy_count && status == FILCH_OK; ++i) {
        status = fl_waits_add(fetch->waits, edge->copies[i], fetch->error);
    }
    return status;
}

/* Makes a tile of an operand available as a whole. Requires the lock. */
static filch_status fetch_tile(const fl_fetch *fetch, const fl_operand *operand,
                               fl_replicas *replicas, uint32_t tile)
{
    const fl_replica *replica = fl_replica_at(replicas, tile, fetch->place);
    filch_status status = FILCH_OK;
    if (replicas->edges != NULL && fetch->place != 0 && (operand->mode & FILCH_READ) != 0 &&
        !fl_replica_is_valid(operand->data, replica, fetch->place)) {
        status = fl_tile_complete(fetch->places, operand->data, replicas, tile, fetch->device,
                                  operand->traffic, fetch->error);
    }
    return status != FILCH_OK
               ? status
               : fl_tile_fetch(fetch->places, operand->data, replicas, tile, fetch->device,
                               operand->mode, operand->traffic, fetch->waits, fetch->error);
}

/* Fills the edges of an operand with a halo in place. */
static filch_status fill_edges(const fl_fetch *fetch, fl_operand *operand)
{
    fl_replicas *replicas = replicas_of(operand);
    filch_status status = FILCH_OK;
    if (operand->region == NULL || operand->staging != NULL || fetch->place == 0) {
        return FILCH_OK;
    }
    fl_mutex_lock(&replicas->lock);
    for (uint32_t i = 0; i < fl_rect_count(operand->tiles) && status == FILCH_OK; ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        fl_edge *edge = NULL;
        if (is_edge(operand, replicas, tile, fetch->place)) {
            filch_view part = part_view(operand, tile);
            status =
                fl_edge_join(&fetch->places->core->memory, operand->data, replicas, tile,
                             fetch->place, &part, fetch, operand->fetched, &edge, fetch->error);
        } else {
            /* A second worker of the node may have brought the tile since fill. */
            status = fetch_tile(fetch, operand, replicas, tile);
        }
        operand->edged += status == FILCH_OK;
        status =
            edge != NULL && status == FILCH_OK ? use_edge(fetch, operand, replicas, edge) : status;
    }
    fl_mutex_unlock(&replicas->lock);
    return status;
}

/* Sets the view to the operand's location. Requires the lock. */
static void set_view(const fl_fetch *fetch, const fl_operand *operand, const fl_replicas *replicas)
{
    filch_data *data = operand->data;
    filch_view *view = operand->view;
    if (fetch->place == 0) {
        /* The host buffer may be new. */
        fl_data_put_on_host(data, view);
    } else if (operand->staging != NULL) {
        view->ptr = operand->staging->ptr;
        view->ld = view->rows;
    } else {
        const fl_block *block = fl_replica_at(replicas, operand->tiles.first, fetch->place)->block;
        view->ptr = fl_block_at(data, block, view);
        view->ld = block->pitch / view->element;
    }
}

/* Starts the copies of an operand, and adds the markers ahead of its use to waits. */
static filch_status fill(const fl_fetch *fetch, fl_operand *operand)
{
    fl_replicas *replicas = replicas_of(operand);
    filch_status status = FILCH_OK;
    if (is_empty(operand)) {
        return FILCH_OK;
    }
    if (fetch->place == 0 && (operand->is_streamed || operand->is_shadowed)) {
        /* The output may be published into the host buffer. */
        return fl_data_need_host(operand->data, fetch->error);
    }
    if (operand->staging != NULL && (operand->is_streamed || operand->is_shadowed)) {
        status = stream_in(fetch, operand);
        set_view(fetch, operand, replicas);
        return status;
    }
    bool in_run = !operand->is_chunk && !is_block(operand) && fetch->place != 0 &&
                  (operand->mode & FILCH_READ) != 0 &&
                  fl_coalesced_is_wanted(fetch->places, operand->data, operand->tiles.first,
                                         fetch->admission);
    fl_mutex_lock(&replicas->lock);
    if (in_run) {
        status = fl_coalesced_fill(fetch->places, operand->data, replicas, operand->tiles.first,
                                   fetch->device, fetch->admission, operand->traffic, fetch->error);
    }
    for (uint32_t i = 0; i < fl_rect_count(operand->tiles) && status == FILCH_OK; ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        status = operand->staging != NULL ? gather_tile(fetch, operand, replicas, tile)
                 : is_edge(operand, replicas, tile, fetch->place)
                     ? FILCH_OK /* fill_edges, behind the tiles of all operands */
                     : fetch_tile(fetch, operand, replicas, tile);
    }
    if (status == FILCH_OK) {
        set_view(fetch, operand, replicas);
    }
    fl_mutex_unlock(&replicas->lock);
    return status;
}

/* --- Fetching and committing --- */

filch_status fl_operands_fetch(fl_places *places, fl_device *device, fl_operand *operands,
                               uint32_t count, const fl_admission *admission, fl_waits *waits,
                               filch_error *error)
{
    const fl_fetch fetch = {places, device, place_of(device), admission, waits, error};
    filch_status status = FILCH_OK;
    uint32_t here = 0;
    for (uint32_t i = 0; i < count; ++i) {
        operands[i].is_reserved = false;
        operands[i].staging = NULL;
        operands[i].edged = 0;
        /* Makes the replicas of the handle if missing. */
        if (fl_replicas_get(places, operands[i].data) == NULL) {
            return fl_replicas_tell_none(operands[i].data, error);
        }
    }
    if (fetch.place != 0) {
        fl_residents_come(places, fetch.place);
        /* Relaxed: an item that follows another on a device is fetched after it. */
        const uint64_t now = fl_load_relaxed(&places->residents[fetch.place].entered);
        for (uint32_t i = 0; i < count; ++i) {
            operands[i].fetched = now;
        }
        while (here < count && reserve_resident(&fetch, &operands[here], false)) {
            ++here;
        }
        if (here < count) {
            unreserve(&fetch, operands, here);
            status = reserve_in_turn(&fetch, operands, count);
        }
    }
    bool has_begun = status == FILCH_OK; /* copies may be under way */
    for (uint32_t i = 0; i < count && status == FILCH_OK; ++i) {
        status = fill(&fetch, &operands[i]);
    }
    for (uint32_t i = 0; i < count && status == FILCH_OK; ++i) {
        status = fill_edges(&fetch, &operands[i]);
    }
    for (uint32_t i = 0; i < count && status == FILCH_OK; ++i) {
        settle_edges(&fetch, &operands[i]);
    }
    if (status != FILCH_OK && fetch.place != 0) {
        if (has_begun) {
            fl_waits_abandon(places, waits); /* the copies use the reserved memory */
        }
        unreserve(&fetch, operands, count);
        fl_residents_go(places, fetch.place);
    }
    return status;
}

void fl_operands_release(fl_places *places, fl_device *device, fl_operand *operands, uint32_t count,
                         const fl_staged *staged)
{
    uint32_t place = place_of(device);
    for (uint32_t i = 0; i < count && place != 0; ++i) {
        fl_operand *operand = &operands[i];
        bool is_staged = staged != NULL && (staged->bits[i / 64] >> i % 64 & 1) != 0;
        if (operand->staging != NULL) {
            fl_block_give(places, operand->staging, 0);
            operand->staging = NULL;
        } else if (!is_staged) {
            leave_edges(places, operand, place, fl_rect_count(operand->tiles),
                        staged != NULL ? staged->fetched : operand->fetched);
            unpin(operand, place);
        }
    }
    if (place != 0) {
        fl_residents_go(places, place);
    }
}

fl_staged fl_operands_staged(const fl_operand *operands, uint32_t count)
{
    fl_staged staged = {.fetched = count != 0 ? operands[0].fetched : 0};
    for (uint32_t i = 0; i < count && i < FL_MOST_STAGED; ++i) {
        staged.bits[i / 64] |= (uint64_t)(operands[i].staging != NULL) << i % 64;
    }
    return staged;
}

/* Tells whether the operand's write of a tile is the last. */
static bool is_last(const fl_operand *operand, uint32_t tile)
{
    return operand->last_writers == NULL || operand->last_writers[tile] == operand->writer;
}

/* Writes the final tiles of an operand back to the caller's buffer on a device. Requires the lock.
 */
static filch_status send_to_device(fl_places *places, const fl_operand *operand,
                                   fl_replicas *replicas, fl_marker *home, filch_error *error)
{
    filch_data *data = operand->data;
    fl_device *device = places->at[data->home].device;
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < fl_rect_count(operand->tiles) && status == FILCH_OK; ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        if (!is_last(operand, tile)) {
            continue;
        }
        status =
            fl_tile_fill(places, data, replicas, tile, data->home, device, operand->traffic, error);
        fl_marker next = fl_replica_at(replicas, tile, data->home)->ready;
        /* A lane is in order. Tiles may arrive on several lanes, depending on the load of the
         * routes. */
        if (status == FILCH_OK && *home != 0 && *home >> 50 != next >> 50) {
            status = fl_marker_await(places, *home, error);
        }
        *home = next;
    }
    return status;
}

/* Writes the final tiles of an operand back from a device's node to the host's buffer. Requires the
 * lock. */
static filch_status send_home(fl_places *places, fl_device *device, const fl_operand *operand,
                              fl_replicas *replicas, fl_marker marker, fl_marker *home,
                              filch_error *error)
{
    filch_data *data = operand->data;
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < fl_rect_count(operand->tiles) && status == FILCH_OK; ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        if (!is_last(operand, tile)) {
            continue;
        }
        fl_replica *replica = fl_replica_at(replicas, tile, device->place);
        filch_view view = fl_data_tile_view(data, tile);
        fl_replica_clear(places, fl_replica_at(replicas, tile, 0), device, FL_LANE_OUT);
        status = fl_copy_start(places, device, &view, fl_spot_of(data, &view, NULL, 0),
                               fl_spot_of(data, &view, replica->block, device->place), marker,
                               operand->traffic, home, error);
        if (status == FILCH_OK) {
            fl_replica_set(data, fl_replica_at(replicas, tile, 0), FL_SHARED, *home);
            fl_replica_set(data, replica, FL_SHARED, marker);
        }
    }
    return status;
}

/* Commits a chunk with private memory. Writes a written chunk back to the host's buffer, and
 * gives the memory back behind its last use. */
static filch_status commit_staged(fl_places *places, fl_device *device, fl_operand *operand,
                                  fl_marker marker, fl_marker *home, filch_error *error)
{
    filch_data *data = operand->data;
    filch_status status = FILCH_OK;
    if ((operand->mode & FILCH_WRITE) != 0) {
        filch_view view = fl_data_range_view(data, operand->first, operand->last);
        fl_spot from = {operand->staging->ptr, (size_t)(view.rows * view.element), device->place,
                        0};
        status = fl_copy_start(places, device, &view, fl_spot_of(data, &view, NULL, 0), from,
                               marker, operand->traffic, home, error);
    }
    fl_block_give(places, operand->staging, *home != 0 ? *home : marker);
    operand->staging = NULL;
    return status;
}

filch_status fl_operand_commit(fl_places *places, fl_device *device, fl_operand *operand,
                               fl_marker marker, fl_marker *home, filch_error *error)
{
    *home = 0;
    if (operand->is_shadowed) {
        return FILCH_OK;
    }
    if (operand->staging != NULL) {
        return commit_staged(places, device, operand, marker, home, error);
    }
    if ((operand->mode & FILCH_WRITE) == 0 || operand->is_streamed || is_empty(operand)) {
        return FILCH_OK;
    }
    filch_data *data = operand->data;
    fl_replicas *replicas = replicas_of(operand);
    uint32_t place = place_of(device);
    filch_status status = FILCH_OK;
    fl_mutex_lock(&replicas->lock);
    for (uint32_t i = 0; i < fl_rect_count(operand->tiles); ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        for (uint32_t other = 0; other < replicas->places; ++other) {
            fl_replica_invalidate(data, fl_replica_at(replicas, tile, other));
        }
        fl_edge_end(&places->core->memory, replicas, tile);
        fl_replica_set(data, fl_replica_at(replicas, tile, place), FL_MODIFIED, marker);
    }
    if (data->has_home && place != data->home && operand->is_final) {
        status = data->home == 0 ? send_home(places, device, operand, replicas, marker, home, error)
                                 : send_to_device(places, operand, replicas, home, error);
    }
    fl_mutex_unlock(&replicas->lock);
    return status;
}

/* Makes the memory of a private output, made of whole tiles if not streamed, the memory of the
 * tiles. Blocks left by the tiles may stay in use, but only for different tiles. */
static filch_status adopt_shadow(fl_places *places, fl_device *device, fl_operand *operand,
                                 filch_error *error)
{
    filch_data *data = operand->data;
    fl_replicas *replicas = replicas_of(operand);
    fl_block *block = operand->staging;
    filch_view view = fl_data_range_view(data, operand->first, operand->last);
    block->next = NULL;
    block->data = data;
    block->tiles = operand->tiles;
    block->pitch = (size_t)(view.rows * view.element);
    block->vacant = 0; /* the work waited for the marker, and is past */
    operand->staging = NULL;
    fl_mutex_lock(&replicas->lock);
    for (uint32_t i = 0; i < fl_rect_count(operand->tiles); ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        for (uint32_t place = 0; place < replicas->places; ++place) {
            fl_replica_invalidate(data, fl_replica_at(replicas, tile, place));
        }
        fl_edge_end(&places->core->memory, replicas, tile);
    }
    /* The tiles are invalid: adopting copies nothing, and only a copy could fail. */
    filch_status status = fl_block_adopt(places, data, replicas, block, device, error);
    for (uint32_t i = 0; i < fl_rect_count(operand->tiles); ++i) {
        uint32_t tile = fl_rect_at(operand->tiles, i);
        fl_replica_set(data, fl_replica_at(replicas, tile, device->place), FL_MODIFIED, 0);
    }
    fl_block_enter(places, block);
    fl_mutex_unlock(&replicas->lock);
    return status;
}

filch_status fl_operand_publish(fl_places *places, fl_device *device, fl_operand *operand,
                                fl_marker *home, filch_error *error)
{
    *home = 0;
    return operand->is_streamed ? commit_staged(places, device, operand, 0, home, error)
                                : adopt_shadow(places, device, operand, error);
}

/* --- Several places at once --- */

/* Makes memory for a tile in a node. The memory stays: the handle is pinned. */
static filch_status make_room(fl_places *places, filch_data *data, uint32_t tile, uint32_t place,
                              filch_error *error)
{
    const fl_admission admission = {.foresight = NULL};
    const fl_fetch fetch = {places, places->at[place].device, place, &admission, NULL, error};
    fl_operand operand = {.data = data, .mode = FILCH_READ, .tiles = fl_rect_of_tile(tile)};
    fl_residents *residents = &places->residents[place];
    fl_mutex_lock(&residents->admit);
    filch_status status = reserve_all(&fetch, &operand, 1);
    fl_mutex_unlock(&residents->admit);
    unreserve(&fetch, &operand, 1);
    return status;
}

filch_status fl_replica_open(fl_places *places, filch_data *data, uint32_t tile, const bool *wanted,
                             fl_replica_spot *spots, filch_error *error)
{
    fl_replicas *replicas = fl_load_acquire(&data->replicas); /* acquire as in fl_replicas_get */
    filch_view view = fl_data_tile_view(data, tile);
    filch_status status = FILCH_OK;
    for (uint32_t place = 0; place < replicas->places && status == FILCH_OK; ++place) {
        if (wanted[place]) {
            status = place == 0 ? fl_data_need_host(data, error)
                                : make_room(places, data, tile, place, error);
        }
    }
    if (status != FILCH_OK) {
        return status;
    }
    fl_mutex_lock(&replicas->lock);
    if (fl_tile_source(places, data, replicas, tile, NULL) == replicas->places) {
        status = fl_tile_tell_lost(places, data, replicas, tile, error);
    }
    for (uint32_t place = 0; place < replicas->places && status == FILCH_OK; ++place) {
        fl_replica *replica = fl_replica_at(replicas, tile, place);
        bool is_known = fl_load_relaxed(&replica->version) == fl_data_version(data);
        bool is_good = fl_replica_is_good(places, data, replica, place);
        spots[place] = (fl_replica_spot){.is_good = is_good};
        if (wanted[place] && !is_good && fl_edge_find(replicas, tile, place) != NULL) {
            status = FILCH_NOT_READY; /* items read a part of the tile where the copy would go */
            break;
        }
        /* A copy under way since before the last write of the handle. */
        if (wanted[place] && !is_good) {
            (void)fl_marker_await(places, replica->ready, NULL);
        }
        if (wanted[place] || is_good) {
            fl_spot spot = fl_spot_of(data, &view, replica->block, place);
            if (!is_good) {
                (void)fl_marker_await(places, spot.vacant, NULL);
            }
            spots[place].ptr = spot.ptr;
            spots[place].pitch = spot.pitch;
            spots[place].behind[0] = is_known ? replica->ready : 0;
            spots[place].behind[1] = is_known ? replica->source : 0;
        }
    }
    fl_mutex_unlock(&replicas->lock);
    return status;
}
