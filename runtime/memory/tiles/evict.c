/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/tiles/evict.h"

#include <inttypes.h>

#include "memory/tiles/edge.h"
#include "memory/tiles/tiles.h"

/* Maximum number of candidates compared; the next search continues behind the compared blocks. */
#define MOST_COMPARED 256u
/* Maximum number of a block's tiles sampled for the score. */
#define MOST_TILES 8u
/* Maximum number of consecutive victims found in use before a search gives up. */
#define MOST_TRIES 16u
/* Maximum number of retries after a concurrent pin. A worker retrying in vain then waits for its
 * turn; a worker pinning again and again makes progress. */
#define MOST_LOOKS 64u
/* Cost of a write-back relative to the copy back in: halves a block's score. */
#define WRITE_WEIGHT 0.5
#define NEVER_SCORE 1e18
#define INVALID_SCORE 1e30

static fl_residents *residents_of(const fl_places *places, uint32_t place)
{
    return &places->residents[place];
}

/* --- Beginning and end --- */

fl_residents *fl_residents_new(fl_core *core, uint32_t places)
{
    fl_residents *made = fl_alloc_zeroed(&core->memory, places * sizeof *made);
    for (uint32_t i = 0; made != NULL && i < places; ++i) {
        if (fl_mutex_init(&made[i].admit) != FILCH_OK) {
            break;
        }
        if (fl_mutex_init(&made[i].lock) != FILCH_OK) {
            fl_mutex_fini(&made[i].admit);
            break;
        }
        if (fl_mutex_init(&made[i].flow_lock) != FILCH_OK) {
            fl_mutex_fini(&made[i].lock);
            fl_mutex_fini(&made[i].admit);
            break;
        }
        made[i].is_ready = true;
        if (i + 1 == places) {
            return made;
        }
    }
    for (uint32_t i = 0; made != NULL && i < places && made[i].is_ready; ++i) {
        fl_mutex_fini(&made[i].flow_lock);
        fl_mutex_fini(&made[i].lock);
        fl_mutex_fini(&made[i].admit);
    }
    fl_free(&core->memory, made, places * sizeof *made);
    return NULL;
}

static void free_block(fl_places *places, fl_block *block)
{
    fl_place_give(places, block->place, block->ptr, block->bytes, 0);
    fl_free(&places->core->memory, block, sizeof *block);
}

/* Tells whether a marker is past; a failed device has nothing in flight. */
static bool is_past(const fl_places *places, fl_marker marker)
{
    fl_device *device = &places->devices[fl_marker_device(marker)];
    filch_status status =
        marker != 0 ? device->backend->lane->reached(device, marker, NULL) : FILCH_OK;
    if (status != FILCH_OK && status != FILCH_NOT_READY) {
        device->backend->lane->drain(device, NULL); /* the progress of a failed device is unknown */
    }
    return status != FILCH_NOT_READY;
}

/* Clears a marker already past. False: the marker is not past. */
static bool settle(const fl_places *places, fl_marker *marker)
{
    if (!is_past(places, *marker)) {
        return false;
    }
    *marker = 0;
    return true;
}

static bool is_free(const fl_places *places, fl_block *block)
{
    for (uint32_t i = 0; i < FL_BLOCK_READERS; ++i) {
        if (!settle(places, &block->readers[i])) {
            return false;
        }
    }
    return settle(places, &block->last) && settle(places, &block->vacant);
}

/* Returns the only marker a given-back block waits for, a copy on a lane of the block's node. 0:
 * the block waits for other markers. */
static fl_marker copy_before(const fl_places *places, fl_block *block)
{
    fl_marker *const at[] = {&block->last, &block->vacant};
    fl_marker found = 0;
    for (uint32_t i = 0; i < FL_BLOCK_READERS + 2; ++i) {
        fl_marker *marker = i < FL_BLOCK_READERS ? &block->readers[i] : at[i - FL_BLOCK_READERS];
        if (settle(places, marker) || *marker == found) {
            continue;
        }
        /* A device of a second node may fail alone, together with the memory read or written by
         * the copy. */
        if (found != 0 || fl_marker_lane(*marker) < FL_LANE_IN ||
            places->devices[fl_marker_device(*marker)].place != block->place) {
            return 0;
        }
        found = *marker;
    }
    return found;
}

/* Takes the oldest given-back block of a size that waits for a single copy only; null: no such
 * block. */
static fl_block *take_given(fl_places *places, uint32_t place, size_t bytes)
{
    fl_residents *residents = residents_of(places, place);
    fl_block **best = NULL, *found = NULL;
    fl_marker before = 0;
    fl_mutex_lock(&residents->lock);
    for (fl_block **link = &residents->given; *link != NULL; link = &(*link)->next) {
        fl_marker marker = fl_block_round((*link)->bytes) == fl_block_round(bytes)
                               ? copy_before(places, *link)
                               : 0;
        if (marker != 0) {
            best = link;
            before = marker;
        }
    }
    if (best != NULL) {
        found = *best;
        *best = found->next;
        *found =
            (fl_block){.ptr = found->ptr, .bytes = found->bytes, .place = place, .vacant = before};
    }
    fl_mutex_unlock(&residents->lock);
    return found;
}

/* Frees given-back blocks with past markers; returns the bytes still waiting. */
static size_t reclaim(fl_places *places, uint32_t place)
{
    fl_residents *residents = residents_of(places, place);
    size_t waiting = 0;
    fl_mutex_lock(&residents->lock);
    for (fl_block **link = &residents->given; *link != NULL;) {
        fl_block *block = *link;
        if (is_free(places, block)) {
            *link = block->next;
            free_block(places, block);
        } else {
            waiting += block->bytes;
            link = &block->next;
        }
    }
    fl_mutex_unlock(&residents->lock);
    return waiting;
}

void fl_residents_free(fl_places *places)
{
    for (uint32_t i = 0; places->residents != NULL && i < places->count; ++i) {
        while (reclaim(places, i) != 0) {
            fl_relax();
        }
        fl_mutex_fini(&places->residents[i].flow_lock);
        fl_mutex_fini(&places->residents[i].lock);
        fl_mutex_fini(&places->residents[i].admit);
    }
    fl_free(&places->core->memory, places->residents, places->count * sizeof *places->residents);
    places->residents = NULL;
}

/* --- Blocks --- */

void fl_block_enter(fl_places *places, fl_block *block)
{
    fl_residents *residents = residents_of(places, block->place);
    fl_mutex_lock(&residents->lock);
    block->is_leaving = false;
    if (residents->ring == NULL) {
        residents->ring = block->next = block->prev = block;
    } else { /* at the end of the ring */
        block->next = residents->ring;
        block->prev = residents->ring->prev;
        block->prev->next = block->next->prev = block;
    }
    ++residents->count;
    fl_mutex_unlock(&residents->lock);
}

/* Requires the lock of residents. */
static void unlink_block(fl_residents *residents, fl_block *block)
{
    block->prev->next = block->next;
    block->next->prev = block->prev;
    if (residents->ring == block) {
        residents->ring = block->next != block ? block->next : NULL;
    }
    --residents->count;
}

bool fl_block_leave(fl_places *places, fl_block *block)
{
    fl_residents *residents = residents_of(places, block->place);
    fl_mutex_lock(&residents->lock);
    bool is_ours = !block->is_leaving;
    if (is_ours) {
        unlink_block(residents, block);
    }
    fl_mutex_unlock(&residents->lock);
    return is_ours;
}

void fl_block_give(fl_places *places, fl_block *block, fl_marker last)
{
    fl_residents *residents = residents_of(places, block->place);
    block->last = last;
    if (is_free(places, block)) {
        free_block(places, block);
        return;
    }
    fl_mutex_lock(&residents->lock);
    block->next = residents->given;
    residents->given = block;
    fl_mutex_unlock(&residents->lock);
}

filch_status fl_block_read(const fl_places *places, fl_block *block, fl_marker marker,
                           filch_error *error)
{
    uint32_t free = FL_BLOCK_READERS;
    if (is_past(places, marker)) {
        return FILCH_OK;
    }
    for (uint32_t i = 0; i < FL_BLOCK_READERS; ++i) {
        if (block->readers[i] >> 50 == marker >> 50 && block->readers[i] != 0) {
            /* Copies on a lane run in order; an older marker adds nothing. */
            block->readers[i] = marker > block->readers[i] ? marker : block->readers[i];
            return FILCH_OK;
        }
        free = block->readers[i] == 0 ? i : free;
    }
    for (uint32_t i = 0; i < FL_BLOCK_READERS && free == FL_BLOCK_READERS; ++i) {
        free = is_past(places, block->readers[i]) ? i : free;
    }
    filch_status status = FILCH_OK;
    if (free == FL_BLOCK_READERS) {
        free = 0;
        status = fl_marker_await(places, block->readers[0], error);
    }
    block->readers[free] = marker;
    return status;
}

filch_status fl_block_new(fl_places *places, uint32_t place, size_t bytes, fl_block **block,
                          filch_error *error)
{
    fl_block *made = fl_alloc_zeroed(&places->core->memory, sizeof *made);
    if (made == NULL) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory to keep track of a block of device memory");
    }
    void *taken;
    filch_status status = fl_place_take(places, place, bytes, &taken, error);
    if (status != FILCH_OK) {
        fl_free(&places->core->memory, made, sizeof *made);
        return status;
    }
    made->ptr = taken;
    made->bytes = bytes;
    made->place = place;
    *block = made;
    return FILCH_OK;
}

/* --- Copies under way --- */

static void add_flow(fl_flow *flow, fl_marker marker, uint64_t bytes)
{
    if (flow->count == FL_FLOW_COPIES) {
        flow->queued -= flow->bytes[flow->first];
        flow->first = (flow->first + 1) % FL_FLOW_COPIES;
        --flow->count;
    }
    uint32_t at = (flow->first + flow->count++) % FL_FLOW_COPIES;
    flow->at[at] = marker;
    flow->bytes[at] = bytes;
    flow->queued += bytes;
}

void fl_flow_note(const fl_places *places, uint32_t to, uint32_t from, fl_marker marker,
                  uint64_t bytes)
{
    for (int side = 0; side < 2; ++side) {
        uint32_t place = side == 0 ? to : from;
        fl_residents *residents = residents_of(places, place);
        fl_flow *inward =
            fl_copy_lane(to, from) == FL_LANE_PEER ? &residents->peer : &residents->in;
        if (place != 0) {
            fl_mutex_lock(&residents->flow_lock);
            add_flow(side == 0 ? inward : &residents->out, marker, bytes);
            fl_mutex_unlock(&residents->flow_lock);
        }
    }
}

static uint64_t queued_in(const fl_places *places, fl_residents *residents, fl_flow *flow)
{
    fl_mutex_lock(&residents->flow_lock);
    while (flow->count != 0 && is_past(places, flow->at[flow->first])) {
        flow->queued -= flow->bytes[flow->first];
        flow->first = (flow->first + 1) % FL_FLOW_COPIES;
        --flow->count;
    }
    uint64_t queued = flow->queued;
    fl_mutex_unlock(&residents->flow_lock);
    return queued;
}

static void look_at(const fl_places *places, fl_residents *residents, fl_flow *flow)
{
    fl_marker oldest;
    do {
        (void)queued_in(places, residents, flow);
        fl_mutex_lock(&residents->flow_lock);
        oldest = flow->count != 0 ? flow->at[flow->first] : 0;
        fl_mutex_unlock(&residents->flow_lock);
        /* A waiter receives the error of a failed copy. */
    } while (oldest != 0 &&
             places->devices[fl_marker_device(oldest)].backend->lane->reached(
                 &places->devices[fl_marker_device(oldest)], oldest, NULL) == FILCH_OK);
}

void fl_flow_look(const fl_places *places, uint32_t place)
{
    fl_residents *residents = residents_of(places, place);
    look_at(places, residents, &residents->in);
    look_at(places, residents, &residents->peer);
}

void fl_flow_note_past(const fl_places *places, uint32_t place)
{
    fl_residents *residents = residents_of(places, place);
    (void)queued_in(places, residents, &residents->in);
    (void)queued_in(places, residents, &residents->peer);
    (void)queued_in(places, residents, &residents->out);
}

uint64_t fl_flow_in(const fl_places *places, uint32_t place)
{
    fl_residents *residents = residents_of(places, place);
    return queued_in(places, residents, &residents->in);
}

uint64_t fl_flow_peer(const fl_places *places, uint32_t place)
{
    fl_residents *residents = residents_of(places, place);
    return queued_in(places, residents, &residents->peer);
}

uint64_t fl_flow_out(const fl_places *places, uint32_t place)
{
    fl_residents *residents = residents_of(places, place);
    return queued_in(places, residents, &residents->out);
}

/* --- Choosing --- */

double fl_candidate_score(fl_candidate candidate)
{
    if (!candidate.is_valid) {
        return INVALID_SCORE;
    }
    double score = candidate.next == FL_ACCESS_NEVER     ? NEVER_SCORE
                   : candidate.next == FL_ACCESS_UNKNOWN ? (double)candidate.unused
                                                         : (double)candidate.next;
    return candidate.is_only ? score * WRITE_WEIGHT : score;
}

/* Tells whether a second node has the tile, as far as known without the handle's lock. */
static bool is_elsewhere(const filch_data *data, const fl_replicas *replicas, uint32_t tile,
                         uint32_t place)
{
    for (uint32_t other = 0; other < replicas->places; ++other) {
        if (other != place &&
            fl_replica_is_valid(data, fl_replica_at(replicas, tile, other), other)) {
            return true;
        }
    }
    return false;
}

/* Scores a block. Requires the lock of residents, which keeps the handle alive. */
static double score_block(const fl_residents *residents, const fl_block *block,
                          const fl_foresight *foresight)
{
    const filch_data *data = block->data;
    /* Acquire: the table precedes the block. */
    const fl_replicas *replicas = fl_load_acquire(&data->replicas);
    uint64_t now = fl_load_relaxed(&residents->now), used = fl_load_relaxed(&block->used);
    fl_candidate candidate = {.next = FL_ACCESS_NEVER, .unused = now > used ? now - used : 0};
    uint32_t count = fl_rect_count(block->tiles), step = (count - 1) / MOST_TILES + 1;
    bool is_known = foresight != NULL;
    for (uint32_t i = 0; i < count; i += step) {
        uint32_t tile = fl_rect_at(block->tiles, i);
        if (!fl_replica_is_valid(data, fl_replica_at(replicas, tile, block->place), block->place)) {
            continue;
        }
        candidate.is_valid = true;
        candidate.is_only = candidate.is_only || !is_elsewhere(data, replicas, tile, block->place);
        uint64_t next = is_known
                            ? foresight->next_use(foresight->user, data, tile, block->place, NULL)
                            : FL_ACCESS_UNKNOWN;
        is_known = next != FL_ACCESS_UNKNOWN;
        candidate.next = next < candidate.next ? next : candidate.next;
    }
    candidate.next = is_known ? candidate.next : FL_ACCESS_UNKNOWN;
    return fl_candidate_score(candidate);
}

/* Relaxed: checked again under the handle's lock. */
static bool may_leave(const fl_block *block)
{
    const fl_replicas *replicas = fl_load_acquire(&block->data->replicas);
    return fl_load_relaxed(&block->uses) == 0 && fl_load_relaxed(&replicas->pins) == 0;
}

/* Takes the best victim out of the ring; null: no block may leave, or (*is_empty) the ring is
 * empty. */
static fl_block *choose(fl_residents *residents, const fl_victims *victims, bool *is_empty)
{
    fl_block *best = NULL;
    double most = victims->later != 0 ? (double)victims->later : -1;
    uint32_t compared = 0;
    fl_mutex_lock(&residents->lock);
    fl_block *at = residents->ring;
    *is_empty = residents->count == 0;
    for (size_t left = residents->count; left != 0 && compared < MOST_COMPARED; --left) {
        if (may_leave(at)) {
            double score = score_block(residents, at, victims->foresight);
            ++compared;
            if (score > most) {
                most = score;
                best = at;
            }
        }
        at = at->next;
    }
    residents->ring = at;
    if (best != NULL) {
        /* Acquire as in score_block. */
        fl_replicas *replicas = fl_load_acquire(&best->data->replicas);
        unlink_block(residents, best);
        best->is_leaving = true;
        /* Relaxed: the thread freeing the handle takes the lock first. */
        fl_add_relaxed(&replicas->leaving, 1);
    }
    fl_mutex_unlock(&residents->lock);
    return best;
}

/* --- Evicting --- */

static bool is_good_elsewhere(const fl_places *places, const filch_data *data,
                              const fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    for (uint32_t other = 0; other < replicas->places; ++other) {
        if (other != place &&
            fl_replica_is_good(places, data, fl_replica_at(replicas, tile, other), other)) {
            return true;
        }
    }
    return false;
}

/* Writes back a tile without a good copy elsewhere, before the tile leaves the block. Requires
 * the handle's lock. */
static filch_status save_tile(fl_places *places, fl_block *block, fl_replicas *replicas,
                              uint32_t tile, fl_traffic *traffic, uint64_t *saved,
                              filch_error *error)
{
    filch_data *data = block->data;
    fl_replica *replica = fl_replica_at(replicas, tile, block->place);
    filch_status status = FILCH_OK;
    bool is_good = fl_replica_is_good(places, data, replica, block->place);
    if (is_good && !is_good_elsewhere(places, data, replicas, tile, block->place)) {
        fl_device *home = data->home != 0 ? places->at[data->home].device : NULL;
        filch_view view = fl_data_tile_view(data, tile);
        /* A copy to a claimed tile could arrive after the writing kernel. Items read the edge of a
         * tile. */
        if (home != NULL && (fl_replica_at(replicas, tile, data->home)->is_claimed ||
                             fl_edge_find(replicas, tile, data->home) != NULL)) {
            home = NULL;
        }
        if (home != NULL && !fl_device_is_lost(home, NULL)) {
            status = fl_tile_fill(places, data, replicas, tile, data->home, home, traffic, error);
        }
        /* The device may have failed meanwhile. */
        if (home == NULL || fl_device_is_lost(home, NULL)) {
            status = fl_data_need_host_tile(data, tile, error);
            if (status == FILCH_OK) {
                status = fl_tile_fill(places, data, replicas, tile, 0, NULL, traffic, error);
            }
        }
        *saved += status == FILCH_OK ? view.rows * view.cols * view.element : 0;
    }
    return status;
}

/* Empties a block taken out by choose. False: the block is in use again, or a write-back failed
 * (*status); the block is back in the ring. */
static bool empty_block(fl_places *places, fl_block *block, fl_traffic *traffic, uint64_t *saved,
                        filch_status *status, filch_error *error)
{
    filch_data *data = block->data;
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    bool is_ours;
    *status = FILCH_OK;
    fl_mutex_lock(&replicas->lock);
    /* Acquire: the former users' accesses precede the eviction. `uses` rises only under the
     * handle's lock. A block emptied by its tiles meanwhile can be given back only by the
     * caller. */
    is_ours = block->held == 0 ||
              (fl_load_acquire(&block->uses) == 0 && fl_load_relaxed(&replicas->pins) == 0);
    for (uint32_t i = 0; is_ours && i < fl_rect_count(block->tiles); ++i) {
        uint32_t tile = fl_rect_at(block->tiles, i);
        if (fl_replica_at(replicas, tile, block->place)->block != block) {
            continue; /* the tile has moved to a second block */
        }
        *status = save_tile(places, block, replicas, tile, traffic, saved, error);
        is_ours = *status == FILCH_OK;
        if (is_ours) {
            fl_replica_detach(places, data, fl_replica_at(replicas, tile, block->place));
        }
    }
    if (!is_ours) {
        fl_block_enter(places, block);
    }
    fl_mutex_unlock(&replicas->lock);
    /* Release: the caller no longer accesses the handle; the handle may be freed now. */
    fl_sub_acq_rel(&replicas->leaving, 1);
    return is_ours;
}

/* Evicts a block. FILCH_NOT_READY: every candidate is in use. FILCH_NO_DEVICE_MEMORY: the ring
 * is empty. */
static filch_status evict(fl_places *places, fl_device *device, const fl_victims *victims,
                          filch_error *error)
{
    fl_traffic *traffic = victims->traffic;
    fl_residents *residents = residents_of(places, device->place);
    filch_status status = FILCH_OK;
    bool is_empty = false;
    for (uint32_t tries = 0; tries < MOST_TRIES; ++tries) {
        fl_block *block = choose(residents, victims, &is_empty);
        if (block == NULL) {
            return is_empty ? FILCH_NO_DEVICE_MEMORY : FILCH_NOT_READY;
        }
        uint64_t saved = 0;
        bool is_gone = empty_block(places, block, traffic, &saved, &status, error);
        if (traffic != NULL) { /* traffic of the job needing the room; relaxed: statistics */
            fl_add_relaxed(&traffic[device->info.index].evicted, is_gone);
            fl_add_relaxed(&traffic[device->info.index].written_back, saved);
        }
        if (is_gone) {
            fl_add_relaxed(&residents->evicted, 1);
            fl_block_give(places, block, 0);
        }
        if (is_gone || status != FILCH_OK) {
            return status;
        }
    }
    return FILCH_NOT_READY;
}

filch_status fl_block_new_evict(fl_places *places, fl_device *device, size_t bytes,
                                const fl_victims *victims, fl_block **block, filch_error *error)
{
    fl_residents *residents = residents_of(places, device->place);
    const fl_foresight *foresight = victims->foresight;
    bool is_prepared = foresight == NULL, has_insisted = false;
    uint32_t gone = 0, looks = 0;
    for (;;) {
        /* Acquire: an earlier entrant's pins are visible. */
        uint64_t entered = fl_load_acquire(&residents->entered);
        bool is_alone = fl_load_acquire(&residents->inside) <= 1;
        size_t waiting = reclaim(places, device->place);
        filch_status status = fl_block_new(places, device->place, bytes, block, error);
        if (status != FILCH_NO_DEVICE_MEMORY) {
            return status;
        }
        fl_block *given =
            waiting != 0 && !victims->is_vacant ? take_given(places, device->place, bytes) : NULL;
        if (given != NULL) {
            *block = given;
            return FILCH_OK;
        }
        if (waiting >= bytes || victims->is_nobody ||
            (victims->most != 0 && gone == victims->most)) {
            return FILCH_NOT_READY;
        }
        filch_error cause = FILCH_ERROR_INIT;
        if (!is_prepared) {
            foresight->prepare(foresight->user);
            is_prepared = true;
        }
        status = evict(places, device, victims, &cause);
        if (status == FILCH_OK) {
            ++gone;
            continue;
        }
        if (status != FILCH_NOT_READY && status != FILCH_NO_DEVICE_MEMORY) {
            *error = cause;
            return status;
        }
        if (waiting != 0 || !is_alone || victims->later != 0) {
            return FILCH_NOT_READY;
        }
        if (fl_load_acquire(&residents->entered) != entered) {
            if (++looks == MOST_LOOKS) {
                return FILCH_NOT_READY;
            }
            continue;
        }
        if (has_insisted || !fl_place_insist(places, device->place)) {
            return FILCH_NO_DEVICE_MEMORY; /* error of the last attempt */
        }
        has_insisted = true; /* further memory may be free since the last question to the device */
    }
}

bool fl_residents_clear(fl_places *places, fl_device *device)
{
    const fl_victims all = {.foresight = NULL};
    filch_error error = FILCH_ERROR_INIT;
    bool any = false;
    while (evict(places, device, &all, &error) == FILCH_OK) {
        any = true;
    }
    return any;
}

void fl_residents_come(fl_places *places, uint32_t place)
{
    fl_residents *residents = residents_of(places, place);
    fl_add_relaxed(&residents->now, 1);
    fl_add_relaxed(&residents->inside, 1);
    /* Release: `inside` rises first. A reader seeing an equal count of entries twice, and nobody
     * inside, knows that no block was pinned in between. */
    fl_add_release(&residents->entered, 1);
}

void fl_residents_go(fl_places *places, uint32_t place)
{
    /* Release: a reader finding nobody inside sees the unpinned blocks. */
    fl_sub_acq_rel(&residents_of(places, place)->inside, 1);
}
