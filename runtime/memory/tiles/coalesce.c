/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/tiles/coalesce.h"

#include "memory/tiles/edge.h"

/* Column bytes sufficient for nearly the full rate of the link. */
#define WIDE_BYTES ((size_t)64 << 10)
/* Column bytes sufficient under memory pressure or with several GPUs. Under pressure a tile
 * copied too early evicts a tile needed again. With several GPUs a tile copied from the host is
 * not copied from a peer. */
#define WIDE_LEAST ((size_t)32 << 10)
/* Maximum bytes of a coalesced copy. A larger copy delays the first user, and leaves as a single
 * victim. */
#define MOST_BYTES ((size_t)128 << 20)
#define PART_OF_BUDGET 16u
/* Maximum distance, in work items, to the use of every coalesced tile: the second under pressure,
 * with several GPUs, and where the tile's own columns reach WIDE_LEAST. A neighbour delays the
 * copies behind it, and longer columns add little to their rate. */
#define SOON 64u
#define SOON_LEAST 16u
/* Alignment of tiles in a block, equal to the alignment of blocks: kernels may rely on aligned
 * tiles. */
#define ALIGNMENT 256u

static size_t column_bytes(const filch_data *data, uint32_t tile)
{
    return (size_t)(fl_data_tile_view(data, tile).rows * data->element);
}

/* Tells whether the host holds a good tile, without a copy under way to the host and without a
 * writer. */
static bool is_settled(const fl_places *places, const filch_data *data, const fl_replicas *replicas,
                       uint32_t tile)
{
    const fl_replica *host = fl_replica_at(replicas, tile, 0);
    const fl_device *from = &places->devices[fl_marker_device(host->ready)];
    if (host->is_claimed || !fl_replica_is_good(places, data, host, 0)) {
        return false;
    }
    return fl_load_relaxed(&host->version) != fl_data_version(data) ||
           (host->source == 0 &&
            (host->ready == 0 || from->backend->lane->is_past(from, host->ready)));
}

static bool is_missing(const fl_places *places, const filch_data *data, const fl_replicas *replicas,
                       uint32_t tile, uint32_t place)
{
    const fl_replica *replica = fl_replica_at(replicas, tile, place);
    return !fl_replica_is_valid(data, replica, place) && !replica->is_claimed &&
           is_settled(places, data, replicas, tile);
}

/* --- Choosing --- */

static bool is_sparing(const fl_places *places, const fl_admission *admission)
{
    return admission->is_pressed || places->count > 2;
}

static size_t wide_bytes(const fl_places *places, const fl_admission *admission)
{
    return is_sparing(places, admission) ? WIDE_LEAST : WIDE_BYTES;
}

bool fl_coalesced_is_wanted(const fl_places *places, const filch_data *data, uint32_t tile,
                            const fl_admission *admission)
{
    const fl_foresight *foresight = admission->foresight;
    if (foresight == NULL || !fl_data_has_columns(data) ||
        column_bytes(data, tile) >= wide_bytes(places, admission)) {
        return false;
    }
    foresight->prepare(foresight->user);
    return true;
}

bool fl_coalesced_may_join(const filch_data *data, const fl_replicas *replicas, uint32_t tile,
                           uint32_t place)
{
    const fl_block *block = fl_replica_at(replicas, tile, place)->block;
    return fl_data_has_columns(data) && column_bytes(data, tile) < WIDE_BYTES &&
           (block == NULL || (fl_rect_count(block->tiles) == 1 && block != &replicas->home &&
                              fl_load_relaxed(&block->uses) == 0)); /* rises under the lock only */
}

typedef struct fl_choice {
    fl_places *places;
    const fl_device *device;
    filch_data *data;
    const fl_replicas *replicas;
    const fl_admission *admission;
    const fl_block *block; /* block holding every chosen tile; null: any replaceable block */
    size_t most;           /* bytes */
} fl_choice;

static bool may_come(const fl_choice *c, uint32_t tile)
{
    const uint32_t place = c->device->place;
    bool fits = c->block != NULL ? fl_replica_at(c->replicas, tile, place)->block == c->block
                                 : fl_coalesced_may_join(c->data, c->replicas, tile, place);
    return fits && fl_edge_find(c->replicas, tile, place) == NULL &&
           is_missing(c->places, c->data, c->replicas, tile, place) &&
           fl_tile_source(c->places, c->data, c->replicas, tile, c->device) == 0;
}

/* Adds a neighbouring tile to the coalesced copy if worthwhile. */
static bool grow(const fl_choice *c, fl_coalesced *run, uint32_t tile)
{
    const fl_foresight *foresight = c->admission->foresight;
    const fl_coalesced grown = {tile < run->first ? tile : run->first,
                                tile < run->first ? run->end : tile + 1, run->latest};
    uint32_t upper = tile < run->first ? tile : run->end - 1;
    if (fl_coalesced_bytes(c->data, grown.first, grown.end) > c->most ||
        column_bytes(c->data, upper) % ALIGNMENT != 0 || !may_come(c, tile)) {
        return false;
    }
    bool is_read, is_sparing_now = is_sparing(c->places, c->admission) ||
                                   column_bytes(c->data, tile) >= WIDE_LEAST;
    uint64_t next = foresight->next_use(foresight->user, c->data, tile, c->device->place, &is_read);
    if (!is_read || next > (is_sparing_now ? SOON_LEAST : SOON)) {
        return false;
    }
    *run = grown;
    run->latest = next > run->latest ? next : run->latest;
    return true;
}

/* Requires the handle's lock. */
static fl_coalesced choose(const fl_choice *c, uint32_t tile)
{
    fl_coalesced run = {tile, tile + 1, 0};
    uint32_t top = tile - tile % c->data->tiles_down, bottom = top + c->data->tiles_down;
    size_t wide = wide_bytes(c->places, c->admission), bytes = column_bytes(c->data, tile);
    bool may_grow = may_come(c, tile);
    while (may_grow && bytes < wide) {
        may_grow = (run.end < bottom && grow(c, &run, run.end)) ||
                   (run.first > top && grow(c, &run, run.first - 1));
        bytes = column_bytes(c->data, tile) * (run.end - run.first);
    }
    return run;
}

fl_coalesced fl_coalesced_choose(fl_places *places, const fl_device *device, filch_data *data,
                                 uint32_t tile, const fl_admission *admission)
{
    /* Acquire: the table's contents are visible with the pointer. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    uint64_t part = fl_place_budget(places, device->place) / PART_OF_BUDGET;
    const fl_choice choice = {.places = places,
                              .device = device,
                              .data = data,
                              .replicas = replicas,
                              .admission = admission,
                              .most = part < MOST_BYTES ? (size_t)part : MOST_BYTES};
    fl_coalesced run = {tile, tile + 1, 0};
    if (fl_coalesced_is_wanted(places, data, tile, admission)) {
        fl_mutex_lock(&replicas->lock);
        run = choose(&choice, tile);
        fl_mutex_unlock(&replicas->lock);
    }
    return run;
}

/* --- Copying --- */

filch_status fl_coalesced_fill(fl_places *places, filch_data *data, fl_replicas *replicas,
                               uint32_t tile, fl_device *device, const fl_admission *admission,
                               fl_traffic *traffic, filch_error *error)
{
    uint32_t place = device->place;
    const fl_choice choice = {.places = places,
                              .device = device,
                              .data = data,
                              .replicas = replicas,
                              .admission = admission,
                              .block = fl_replica_at(replicas, tile, place)->block,
                              .most = MOST_BYTES};
    fl_coalesced run = choose(&choice, tile);
    if (run.end - run.first == 1) {
        return FILCH_OK;
    }
    filch_view view = fl_data_tile_view(data, run.first);
    filch_view last = fl_data_tile_view(data, run.end - 1);
    fl_marker marker;
    for (uint32_t t = run.first; t < run.end; ++t) {
        fl_replica_clear(places, fl_replica_at(replicas, t, place), device, FL_LANE_IN);
    }
    view.rows = last.row + last.rows - view.row;
    filch_status status =
        fl_copy_start(places, device, &view, fl_spot_of(data, &view, choice.block, place),
                      fl_spot_of(data, &view, NULL, 0), 0, traffic, &marker, error);
    for (uint32_t t = run.first; t < run.end && status == FILCH_OK; ++t) {
        fl_replica_set(data, fl_replica_at(replicas, t, 0), FL_SHARED, 0);
        fl_replica_set(data, fl_replica_at(replicas, t, place), FL_SHARED, marker);
    }
    return status;
}
