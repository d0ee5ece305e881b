/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/alloc/node.h"

#include <inttypes.h>
#include <string.h>

#include "device/links.h"
#include "memory/alloc/source.h"

/* Maximum bytes of a size in a bucket, as a fraction of the budget. */
#define BIN_PART 32
/* Number of blocks waiting for markers before the first reap. */
#define REAP_FIRST 64

/* --- Markers --- */

static bool is_past(const void *user, fl_marker marker)
{
    const fl_places *places = user;
    const fl_device *device = &places->devices[fl_marker_device(marker)];
    return device->backend->lane->is_past(device, marker);
}

/* Asks the driver whether the work before a marker is over. Work on a failed device counts as
 * over. */
static bool is_over(const fl_places *places, fl_marker marker)
{
    fl_device *device = &places->devices[fl_marker_device(marker)];
    return marker == 0 || device->backend->lane->reached(device, marker, NULL) != FILCH_NOT_READY;
}

/* --- Buckets --- */

/* Returns the calling thread's bucket. The first owner_count workers to call own a bucket each. */
static fl_bucket *bucket_of(const fl_places *places, fl_place *place)
{
    void *self = fl_tss_get(places->core->worker);
    uint32_t i = self != NULL ? 0 : place->owner_count;
    for (; i < place->owner_count; ++i) {
        /* Relaxed: a name is only compared. */
        void *owner = fl_load_relaxed(&place->owners[i]);
        if (owner == NULL && fl_cas_relaxed(&place->owners[i], &owner, self)) {
            break;
        }
        if (owner == self) {
            break;
        }
    }
    /* Later workers, and threads without a worker, share the last bucket. */
    return &place->buckets[i];
}

/* Gives blocks from a bucket to the heap, or to the list of pending blocks. */
static void put_away(fl_places *places, fl_place *place, const fl_spare *blocks, uint32_t count,
                     size_t bytes);

/* Empties every bucket. */
static void flush(fl_places *places, fl_place *place)
{
    fl_spare blocks[FL_BIN_BLOCKS];
    for (uint32_t i = 0; i <= place->owner_count; ++i) {
        for (uint32_t bin = 0; bin < FL_BUCKET_BINS; ++bin) {
            size_t bytes;
            fl_bucket_claim_wait(&place->buckets[i]);
            uint32_t count = fl_bucket_empty(&place->buckets[i], bin, blocks, &bytes);
            fl_bucket_release(&place->buckets[i]);
            put_away(places, place, blocks, count, bytes);
        }
    }
}

/* Bytes in every bucket. Requires the node's lock. */
static uint64_t cached_bytes(fl_place *place)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i <= place->owner_count; ++i) {
        fl_bucket_claim_wait(&place->buckets[i]);
        bytes += place->buckets[i].cached;
        fl_bucket_release(&place->buckets[i]);
    }
    return bytes;
}

/* --- Pending blocks --- */

static void give_heap(fl_place *place, void *block, size_t bytes)
{
    fl_heap_give(&place->heap, block, bytes);
    fl_mutex_lock(&place->lock);
    fl_store_relaxed(&place->held, fl_load_relaxed(&place->held) - bytes);
    fl_mutex_unlock(&place->lock);
}

/* Removes the last pending block. Requires the lock. */
static fl_pending remove_last(fl_place *place)
{
    size_t count = fl_load_relaxed(&place->pending_count) - 1;
    fl_store_relaxed(&place->pending_count, count);
    return place->pending[count];
}

/* Takes a block with a past marker out of the list. ask: may ask the driver, too. */
static bool take_over(const fl_places *places, fl_place *place, size_t *from, bool ask,
                      fl_pending *found)
{
    bool has_found = false;
    fl_mutex_lock(&place->lock);
    while (*from < fl_load_relaxed(&place->pending_count) && !has_found) {
        *found = place->pending[*from];
        has_found = is_past(places, found->last);
        if (!has_found && ask) {
            fl_mutex_unlock(&place->lock);
            bool over = is_over(places, found->last);
            fl_mutex_lock(&place->lock);
            /* Concurrent threads may have changed the list. */
            has_found = over && *from < fl_load_relaxed(&place->pending_count) &&
                        place->pending[*from].ptr == found->ptr &&
                        place->pending[*from].last == found->last;
        }
        if (has_found) {
            place->pending[*from] = remove_last(place);
            place->pending_bytes -= found->bytes;
        } else {
            ++*from;
        }
    }
    fl_mutex_unlock(&place->lock);
    return has_found;
}

/* Gives pending blocks with past markers to the heap. */
static void reap(const fl_places *places, fl_place *place, bool ask)
{
    fl_pending found;
    size_t from = 0;
    while (take_over(places, place, &from, ask, &found)) {
        give_heap(place, found.ptr, found.bytes);
    }
    fl_mutex_lock(&place->lock);
    place->reap_at = 2 * fl_load_relaxed(&place->pending_count) > REAP_FIRST
                         ? 2 * fl_load_relaxed(&place->pending_count)
                         : REAP_FIRST;
    fl_mutex_unlock(&place->lock);
}

/* Keeps a block with a pending marker. Without memory for the list, waits for the marker: the
 * block must not be lost, and a return must not fail. */
static void put_pending(fl_places *places, fl_place *place, void *block, size_t bytes,
                        fl_marker last)
{
    fl_mutex_lock(&place->lock);
    bool has_room =
        fl_array_reserve(&places->core->memory, &place->pending, &place->pending_capacity,
                         fl_load_relaxed(&place->pending_count) + 1,
                         sizeof *place->pending) == FILCH_OK;
    if (has_room) {
        size_t count = fl_load_relaxed(&place->pending_count);
        place->pending[count] = (fl_pending){block, bytes, last};
        fl_store_relaxed(&place->pending_count, count + 1);
        place->pending_bytes += bytes;
    }
    bool is_long = fl_load_relaxed(&place->pending_count) >= place->reap_at;
    fl_mutex_unlock(&place->lock);
    if (!has_room) {
        (void)fl_device_await(&places->devices[fl_marker_device(last)], last, NULL);
        give_heap(place, block, bytes);
    } else if (is_long) {
        reap(places, place, false);
    }
}

static void put_away(fl_places *places, fl_place *place, const fl_spare *blocks, uint32_t count,
                     size_t bytes)
{
    for (uint32_t i = 0; i < count; ++i) {
        if (blocks[i].last == 0 || is_past(places, blocks[i].last)) {
            give_heap(place, blocks[i].ptr, bytes);
        } else {
            put_pending(places, place, blocks[i].ptr, bytes, blocks[i].last);
        }
    }
}

/* --- Taking --- */

static void *take_fast(fl_places *places, fl_place *place, size_t asked, size_t bytes,
                       uint32_t flags, fl_marker *last)
{
    fl_bucket *bucket = bucket_of(places, place);
    fl_spare old[FL_BIN_BLOCKS];
    uint32_t old_count = 0;
    size_t old_bytes = 0;
    void *block = NULL;
    if (FL_UNLIKELY(!fl_bucket_claim(bucket))) {
        return NULL;
    }
    block = fl_bucket_take(bucket, bytes, (flags & FL_TAKE_BEHIND) != 0, is_past, places, last);
    if (FL_LIKELY(block != NULL)) {
        bucket->taken += asked;
        ++bucket->takes;
    } else {
        old_count = fl_bucket_miss(bucket, bytes, old, &old_bytes);
    }
    fl_bucket_release(bucket);
    put_away(places, place, old, old_count, old_bytes);
    return block;
}

/* Tells whether `bytes` more may be held. Requires the node's lock. */
static bool is_allowed(const fl_place *place, uint64_t bytes)
{
    uint64_t held = fl_load_relaxed(&place->held);
    return held <= place->budget && bytes <= place->budget - held;
}

static uint64_t budget_of(const fl_place *place)
{
    uint64_t lent = fl_load_relaxed(&place->heap.lent); /* an independent figure */
    return lent < place->budget ? lent : place->budget;
}

static filch_status refuse(const fl_place *place, uint64_t bytes, uint64_t budget, uint64_t used,
                           filch_error *error)
{
    const char *name = place->device->info.name;
    return fl_error_fill(error, (fl_fault){.status = FILCH_NO_DEVICE_MEMORY, .device = name},
                         "%s: %" PRIu64 " bytes were asked for, but of its budget, "
                         "%" PRIu64 " bytes, %" PRIu64 " are taken",
                         name, bytes, budget, used);
}

/* Accounts for a block about to leave the heap. */
static filch_status admit(fl_place *place, uint64_t bytes, filch_error *error)
{
    fl_mutex_lock(&place->lock);
    filch_status status = FILCH_OK;
    if (is_allowed(place, bytes)) {
        fl_store_relaxed(&place->held, fl_load_relaxed(&place->held) + bytes);
    } else {
        status = refuse(place, bytes, place->budget, fl_load_relaxed(&place->held), error);
    }
    fl_mutex_unlock(&place->lock);
    return status;
}

static void admit_not(fl_place *place, uint64_t bytes)
{
    fl_mutex_lock(&place->lock);
    fl_store_relaxed(&place->held, fl_load_relaxed(&place->held) - bytes);
    fl_mutex_unlock(&place->lock);
}

/* Bytes requested and not given back, from every bucket and past the buckets. */
static uint64_t requested_bytes(fl_place *place)
{
    uint64_t taken = place->taken, given = place->given;
    for (uint32_t i = 0; i <= place->owner_count; ++i) {
        fl_bucket_claim_wait(&place->buckets[i]);
        taken += place->buckets[i].taken;
        given += place->buckets[i].given;
        fl_bucket_release(&place->buckets[i]);
    }
    return taken - given;
}

/* Counts a block taken past the buckets, and updates the peak. Between two calls, requests grow
 * by at most the bytes in the buckets. */
static void count_take(fl_place *place, size_t asked)
{
    fl_mutex_lock(&place->lock);
    place->taken += asked;
    ++place->takes;
    uint64_t requested = requested_bytes(place);
    if (requested > place->requested_peak) {
        place->requested_peak = requested;
    }
    fl_mutex_unlock(&place->lock);
}

/* Takes a pending block of a size, for a taker whose device waits for the marker. The budget
 * already includes the block. */
static bool take_pending(fl_place *place, size_t bytes, void **block, fl_marker *last)
{
    bool has_found = false;
    fl_mutex_lock(&place->lock);
    for (size_t i = 0; i < fl_load_relaxed(&place->pending_count) && !has_found; ++i) {
        if (place->pending[i].bytes == bytes && is_allowed(place, 0)) {
            *block = place->pending[i].ptr;
            *last = place->pending[i].last;
            place->pending[i] = remove_last(place);
            place->pending_bytes -= bytes;
            has_found = true;
        }
    }
    fl_mutex_unlock(&place->lock);
    return has_found;
}

/* Takes a block from the heap, if the budget allows. */
static filch_status take_heap(fl_place *place, size_t bytes, void **block, filch_error *error)
{
    filch_status status = admit(place, bytes, error);
    if (status == FILCH_OK) {
        status = fl_heap_take(&place->heap, bytes, block, error);
        if (status != FILCH_OK) {
            admit_not(place, bytes);
        }
    }
    return status;
}

/* Takes a block past the bucket: first from the heap, next from memory kept in every bucket,
 * last a block with a pending marker. */
static filch_status take_slow(fl_places *places, fl_place *place, size_t bytes, uint32_t flags,
                              void **block, fl_marker *last, filch_error *error)
{
    if (fl_load_relaxed(&place->pending_count) != 0) {
        reap(places, place, false);
    }
    filch_status status = take_heap(place, bytes, block, error);
    if (status == FILCH_NO_DEVICE_MEMORY) {
        flush(places, place);
        reap(places, place, true);
        status = take_heap(place, bytes, block, error);
    }
    if (status == FILCH_NO_DEVICE_MEMORY && (flags & FL_TAKE_BEHIND) != 0 &&
        take_pending(place, bytes, block, last)) {
        status = FILCH_OK;
    }
    return status;
}

/* Zeroes the block behind the marker of its last use. */
static filch_status clear(fl_place *place, void *block, size_t bytes, fl_marker *last,
                          filch_error *error)
{
    fl_device *device = place->device;
    fl_marker cleared = 0;
    filch_status status =
        device->backend->memory->clear(device, block, bytes, *last, &cleared, error);
    if (status == FILCH_OK) {
        *last = cleared;
    }
    return status;
}

filch_status fl_place_take_as(fl_places *places, uint32_t index, size_t bytes, uint32_t flags,
                              void **block, fl_marker *behind, filch_error *error)
{
    fl_place *place = &places->at[index];
    if (FL_UNLIKELY(bytes == 0 || bytes > SIZE_MAX - FL_BLOCK_STEP)) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_INVALID_ARGUMENT},
                             "a block of %zu bytes cannot be had", bytes);
    }
    size_t rounded = fl_block_round(bytes);
    fl_marker last = 0;
    void *found = take_fast(places, place, bytes, rounded, flags, &last);
    if (found == NULL) {
        filch_status status = take_slow(places, place, rounded, flags, &found, &last, error);
        if (status != FILCH_OK) {
            return status;
        }
        count_take(place, bytes);
    }
    if (FL_UNLIKELY((flags & FL_TAKE_ZEROED) != 0)) {
        filch_status status = clear(place, found, bytes, &last, error);
        if (status != FILCH_OK) {
            fl_place_give(places, index, found, bytes, last);
            return status;
        }
    }
    if (behind != NULL) {
        *behind = last;
    }
    *block = found;
    return FILCH_OK;
}

filch_status fl_place_take(fl_places *places, uint32_t index, size_t bytes, void **block,
                           filch_error *error)
{
    return fl_place_take_as(places, index, bytes, 0, block, NULL, error);
}

/* --- Giving --- */

void fl_place_give(fl_places *places, uint32_t index, void *block, size_t bytes, fl_marker last)
{
    fl_place *place = &places->at[index];
    fl_bucket *bucket = bucket_of(places, place);
    size_t rounded = fl_block_round(bytes);
    if (FL_LIKELY(fl_bucket_claim(bucket))) {
        bool is_kept = fl_bucket_give(bucket, rounded, block, last);
        if (FL_LIKELY(is_kept)) {
            bucket->given += bytes;
            ++bucket->gives;
        }
        fl_bucket_release(bucket);
        if (FL_LIKELY(is_kept)) {
            return;
        }
    }
    const fl_spare one = {block, last};
    put_away(places, place, &one, 1, rounded);
    fl_mutex_lock(&place->lock);
    place->given += bytes;
    ++place->gives;
    fl_mutex_unlock(&place->lock);
}

/* --- Upkeep --- */

double fl_places_rate(const fl_places *places, uint32_t from, uint32_t to)
{
    return places->bandwidths != NULL
               ? fl_bandwidths_get(places->bandwidths, places->count, from, to)
               : 0;
}

uint64_t fl_place_budget(const fl_places *places, uint32_t index)
{
    if (index >= places->count || places->at[index].device == NULL) {
        return UINT64_MAX;
    }
    uint64_t lent = fl_load_relaxed(&places->at[index].heap.lent); /* as in budget_of */
    uint64_t budget = places->at[index].device->info.budget;
    return lent < budget ? lent : budget;
}

bool fl_place_insist(fl_places *places, uint32_t index)
{
    return places->at[index].device != NULL && fl_heap_insist(&places->at[index].heap);
}

void fl_place_trim(fl_places *places, uint32_t index, uint64_t keep)
{
    fl_place *place = &places->at[index];
    if (place->device == NULL) {
        return;
    }
    flush(places, place);
    reap(places, place, true);
    fl_heap_trim(&place->heap, keep);
}

void fl_place_cap(fl_places *places, uint32_t index, uint64_t bytes)
{
    fl_place *place = &places->at[index];
    if (place->device == NULL) {
        return;
    }
    if (bytes > place->device->info.budget) {
        bytes = place->device->info.budget;
    }
    fl_mutex_lock(&place->lock);
    place->budget = bytes;
    fl_mutex_unlock(&place->lock);
    flush(places, place);
    reap(places, place, true);
    fl_heap_limit(&place->heap, bytes);
}

void fl_place_stats(fl_places *places, uint32_t index, filch_memory_stats *stats)
{
    fl_place *place = &places->at[index];
    size_t size = stats->size;
    *stats = (filch_memory_stats){.size = size};
    if (place->device == NULL) {
        return;
    }
    fl_mutex_lock(&place->lock);
    stats->arena = place->heap.kind;
    stats->budget = budget_of(place);
    stats->requested = requested_bytes(place);
    if (stats->requested > place->requested_peak) {
        place->requested_peak = stats->requested;
    }
    stats->requested_peak = place->requested_peak;
    stats->cached = cached_bytes(place) + place->pending_bytes;
    stats->pending = place->pending_bytes;
    stats->takes = place->takes;
    stats->gives = place->gives;
    for (uint32_t i = 0; i <= place->owner_count; ++i) {
        fl_bucket_claim_wait(&place->buckets[i]);
        stats->takes += place->buckets[i].takes;
        stats->gives += place->buckets[i].gives;
        fl_bucket_release(&place->buckets[i]);
    }
    fl_mutex_unlock(&place->lock);
    fl_mutex_lock(&place->heap.lock);
    stats->mapped = place->heap.mapped;
    stats->mapped_peak = place->heap.mapped_peak;
    stats->shortages = place->heap.shortages;
    fl_mutex_unlock(&place->heap.lock);
}

fl_place_figures fl_place_figures_now(const fl_places *places, uint32_t index)
{
    const fl_place *place = &places->at[index];
    /* Relaxed: independent figures. */
    return (fl_place_figures){.held = fl_load_relaxed(&place->held),
                              .budget = place->device != NULL ? place->device->info.budget : 0,
                              .copied_in = fl_load_relaxed(&place->copied_in),
                              .copied_out = fl_load_relaxed(&place->copied_out)};
}

/* --- Beginning and end --- */

static void close_place(fl_places *places, fl_place *place)
{
    const fl_memory *memory = &places->core->memory;
    flush(places, place);
    for (size_t i = 0; i < fl_load_relaxed(&place->pending_count); ++i) {
        fl_heap_give(&place->heap, place->pending[i].ptr, place->pending[i].bytes);
    }
    fl_heap_fini(&place->heap);
    fl_source_close(&place->heap.source, memory);
    fl_mutex_fini(&place->lock);
    fl_free(memory, place->pending, place->pending_capacity * sizeof *place->pending);
    fl_free_aligned(memory, place->buckets, (place->owner_count + 1) * sizeof *place->buckets, 64);
    fl_free(memory, place->owners, place->owner_count * sizeof *place->owners);
}

/* Returns the number of workers of a node. */
static uint32_t count_owners(const fl_places *places, const fl_place *place)
{
    uint32_t count = 0;
    for (size_t d = 0; d < places->device_count; ++d) {
        count += places->devices[d].place == place->device->place;
    }
    return count;
}

static filch_status open_buckets(fl_places *places, fl_place *place, uint64_t budget)
{
    const fl_memory *memory = &places->core->memory;
    place->owner_count = count_owners(places, place);
    size_t bytes = (place->owner_count + 1) * sizeof *place->buckets;
    place->owners = fl_alloc_zeroed(memory, place->owner_count * sizeof *place->owners);
    place->buckets = fl_alloc_aligned(memory, bytes, 64);
    filch_status status = place->owners != NULL && place->buckets != NULL
                              ? fl_mutex_init(&place->lock)
                              : FILCH_OUT_OF_MEMORY;
    if (status != FILCH_OK) {
        fl_free_aligned(memory, place->buckets, bytes, 64);
        fl_free(memory, place->owners, place->owner_count * sizeof *place->owners);
        return status;
    }
    memset(place->buckets, 0, bytes);
    for (uint32_t i = 0; i <= place->owner_count; ++i) {
        place->buckets[i].bin_most = (size_t)(budget / BIN_PART);
    }
    place->reap_at = REAP_FIRST;
    return FILCH_OK;
}

static filch_status open_place(fl_places *places, fl_place *place, filch_error *error)
{
    fl_core *core = places->core;
    fl_device *device = place->device;
    filch_arena kind = FILCH_ARENA_DEFAULT;
    fl_source source;
    filch_status status = fl_source_open(&source, device, &core->memory,
                                         (filch_arena)core->settings.arena, &kind, error);
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_heap_init(&place->heap, kind, &core->memory, &source, device->info.budget);
    if (status != FILCH_OK) {
        fl_source_close(&source, &core->memory);
        return fl_error_fill(error, (fl_fault){.status = status, .device = device->info.name},
                             "%s: no memory for its arena", device->info.name);
    }
    place->budget = device->info.budget;
    status = open_buckets(places, place, place->budget);
    if (status != FILCH_OK) {
        fl_heap_fini(&place->heap);
        fl_source_close(&source, &core->memory);
        return fl_error_fill(error, (fl_fault){.status = status, .device = device->info.name},
                             "%s: no memory for its arena", device->info.name);
    }
    fl_log_write(&core->log, FILCH_LOG_INFO, "%s: arena %s, budget %" PRIu64 " bytes",
                 device->info.name, fl_arena_name(kind), place->budget);
    return FILCH_OK;
}

filch_status fl_places_init(fl_places *places, fl_core *core, fl_device *devices,
                            size_t device_count, uint32_t place_count, filch_error *error)
{
    *places = (fl_places){.core = core, .devices = devices, .device_count = device_count};
    places->at = fl_alloc_zeroed(&core->memory, place_count * sizeof *places->at);
    if (places->at == NULL) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory for the table of memories");
    }
    for (size_t d = 0; d < device_count; ++d) {
        /* Devices with a pretended memory have nodes outside the table. */
        if (devices[d].backend->memory != NULL && places->at[devices[d].place].device == NULL) {
            places->at[devices[d].place].device = &devices[d];
        }
    }
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < place_count && status == FILCH_OK; ++i) {
        if (places->at[i].device != NULL) {
            status = open_place(places, &places->at[i], error);
        }
        if (status == FILCH_OK) {
            ++places->count;
        }
    }
    if (status != FILCH_OK) {
        for (uint32_t i = places->count; i < place_count; ++i) {
            places->at[i].device = NULL;
        }
        places->count = place_count;
        fl_places_fini(places);
    }
    return status;
}

void fl_places_fini(fl_places *places)
{
    for (uint32_t i = 0; i < places->count; ++i) {
        if (places->at[i].device != NULL) {
            close_place(places, &places->at[i]);
        }
    }
    fl_free(&places->core->memory, places->at, places->count * sizeof *places->at);
    places->at = NULL;
    places->count = 0;
}
