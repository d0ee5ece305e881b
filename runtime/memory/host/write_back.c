/* SPDX-License-Identifier: Apache-2.0 */
/* A handle's tiles outside of tasks: reads and writes by the host, beginnings of versions, and
 * the release of memory in the nodes. */
#include <stdio.h>

#include "memory/tiles/tiles.h"

/* Makes the host's copy of the tile the only valid copy. Requires the lock. */
static void take_home(const filch_data *data, fl_replicas *replicas, uint32_t tile)
{
    for (uint32_t place = 1; place < replicas->places; ++place) {
        fl_replica_invalidate(data, fl_replica_at(replicas, tile, place));
    }
    fl_replica_set(data, fl_replica_at(replicas, tile, 0), FL_MODIFIED, 0);
}

void fl_data_begin_version(filch_data *data)
{
    if (!data->is_managed) {
        /* Relaxed: core->lock orders the writers. A concurrent reader of tiles no job writes may
         * take either version. */
        fl_store_relaxed(&data->version, fl_data_version(data) + 1);
    }
}

void fl_data_quiesce(fl_places *places, filch_data *data)
{
    /* Acquire: the table's contents are visible with the pointer. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    fl_waits waits = {.count = 0};
    if (replicas == NULL) {
        return;
    }
    fl_mutex_lock(&replicas->lock);
    for (uint32_t tile = 0; tile < replicas->tiles; ++tile) {
        /* A marker of every version counts: the copy may still be under way. */
        (void)fl_waits_add(&waits, fl_replica_at(replicas, tile, 0)->ready, NULL);
        (void)fl_waits_add(&waits, fl_replica_at(replicas, tile, data->home)->ready, NULL);
    }
    fl_mutex_unlock(&replicas->lock);
    fl_waits_abandon(places, &waits);
}

/* Waits for copies. Leaves no failed or unwaitable copy in flight. */
static filch_status await(fl_places *places, const filch_data *data, filch_status status,
                          fl_waits *waits, filch_error *error)
{
    if (status == FILCH_OK) {
        while (waits->count != 0 && status == FILCH_OK) {
            status = fl_marker_await(places, waits->at[waits->count - 1], error);
            waits->count -= status == FILCH_OK;
        }
    }
    if (status != FILCH_OK) {
        fl_waits_abandon(places, waits); /* the copies lead to or from the host's buffer */
        snprintf(error->label, sizeof error->label, "%s", data->label);
    }
    return status;
}

filch_status fl_data_fetch_host(fl_places *places, filch_data *data, fl_tiles tiles,
                                filch_access_mode mode, filch_error *error)
{
    /* Acquire: the table's contents are visible with the pointer. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    filch_status status = fl_data_need_host(data, error);
    bool is_hosts = places->count == 1 || (data->has_home && data->home == 0);
    if (status != FILCH_OK || (replicas == NULL && is_hosts)) {
        return status; /* no device with separate memory has used the handle */
    }
    replicas = fl_replicas_get(places, data);
    if (replicas == NULL) {
        return fl_replicas_tell_none(data, error);
    }
    fl_waits waits = {.count = 0};
    fl_mutex_lock(&replicas->lock);
    for (uint32_t col = tiles.col0; col < tiles.col1; ++col) {
        for (uint32_t row = tiles.row0; row < tiles.row1 && status == FILCH_OK; ++row) {
            uint32_t tile = fl_data_tile(data, row, col);
            status = fl_tile_fetch(places, data, replicas, tile, NULL, mode, NULL, &waits, error);
        }
    }
    fl_mutex_unlock(&replicas->lock);
    return await(places, data, status, &waits, error);
}

filch_status fl_data_host_wrote(fl_places *places, filch_data *data, fl_tiles tiles,
                                filch_error *error)
{
    /* Acquire, as above. A handle never used by a device needs no note. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    filch_status status = FILCH_OK;
    if (replicas == NULL) {
        return FILCH_OK;
    }
    bool sends = data->home != 0 && !data->is_managed;
    fl_waits waits = {.count = 0};
    fl_mutex_lock(&replicas->lock);
    for (uint32_t col = tiles.col0; col < tiles.col1; ++col) {
        for (uint32_t row = tiles.row0; row < tiles.row1; ++row) {
            uint32_t tile = fl_data_tile(data, row, col);
            take_home(data, replicas, tile);
            if (sends && status == FILCH_OK) {
                status = fl_tile_fetch(places, data, replicas, tile, places->at[data->home].device,
                                       FILCH_READ, NULL, &waits, error);
            }
        }
    }
    fl_mutex_unlock(&replicas->lock);
    return await(places, data, status, &waits, error);
}

/* Takes a tile that holds nothing any more out of its block in a node, unless the block is pinned.
 * Requires the lock. */
static void leave_block(fl_places *places, const filch_data *data, fl_replica *replica)
{
    fl_block *block = replica->block;
    /* Acquire: the former users' accesses precede the next owner's. `uses` rises only under the
     * lock. */
    if (block != NULL && fl_load_acquire(&block->uses) == 0 &&
        fl_replica_detach(places, data, replica) && fl_block_leave(places, block)) {
        fl_block_give(places, block, 0); /* else the evicting worker gives the empty block */
    }
}

/* Blocks until a copy no longer writes to the host's memory. */
static void await_arrival(fl_places *places, fl_marker marker)
{
    if (fl_marker_await(places, marker, NULL) != FILCH_OK) {
        fl_device *device = &places->devices[fl_marker_device(marker)];
        device->backend->lane->drain(device, NULL); /* the progress of a failed device is unknown */
    }
}

void fl_tile_end_lifetime(fl_places *places, filch_data *data, uint32_t tile)
{
    /* Acquire: the table's contents are visible with the pointer. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    if (replicas == NULL) { /* no device with separate memory has used the handle */
        fl_data_free_host_tile(data, tile);
        return;
    }
    fl_mutex_lock(&replicas->lock);
    fl_tile_await_readers(places, data, replicas, tile);
    await_arrival(places, fl_replica_at(replicas, tile, 0)->ready);
    for (uint32_t place = 0; place < replicas->places; ++place) {
        fl_replica *replica = fl_replica_at(replicas, tile, place);
        leave_block(places, data, replica);
        fl_replica_invalidate(data, replica);
    }
    fl_data_free_host_tile(data, tile);
    fl_mutex_unlock(&replicas->lock);
}

void fl_data_end_lifetimes(fl_places *places, filch_data *data)
{
    for (uint32_t tile = 0; tile < fl_data_tile_count(data); ++tile) {
        fl_tile_end_lifetime(places, data, tile);
    }
}

/* Takes the handle's tiles out of a node. False: a block is being evicted. */
static bool drop_place(fl_places *places, const filch_data *data, fl_replicas *replicas,
                       uint32_t place)
{
    bool all = true;
    fl_mutex_lock(&replicas->lock);
    for (uint32_t tile = 0; tile < replicas->tiles; ++tile) {
        fl_block *block = fl_replica_at(replicas, tile, place)->block;
        if (block == NULL || block == &replicas->home) {
            continue;
        }
        if (!fl_block_leave(places, block)) {
            all = false;
            continue;
        }
        for (uint32_t i = 0; i < fl_rect_count(block->tiles); ++i) {
            uint32_t t = fl_rect_at(block->tiles, i);
            if (fl_replica_at(replicas, t, place)->block == block) {
                fl_replica_detach(places, data, fl_replica_at(replicas, t, place));
            }
        }
        fl_block_give(places, block, 0);
    }
    fl_mutex_unlock(&replicas->lock);
    return all;
}

void fl_data_drop_replicas(fl_places *places, filch_data *data)
{
    fl_replicas *replicas = fl_load_relaxed(&data->replicas); /* no job uses the handle */
    for (uint32_t place = 1; replicas != NULL && place < replicas->places; ++place) {
        while (!drop_place(places, data, replicas, place)) {
            fl_relax(); /* a second job needs the room: the wait lasts a write-back at most */
        }
    }
    if (replicas != NULL) {
        /* Acquire: the last evicting worker no longer accesses the handle. */
        while (fl_load_acquire(&replicas->leaving) != 0) {
            fl_relax();
        }
        fl_data_quiesce(places, data); /* the buffer may be freed, too */
        fl_replicas_free(places, data);
    }
    fl_data_free_parts(data);
}
