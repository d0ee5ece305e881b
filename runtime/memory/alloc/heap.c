/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/alloc/heap.h"

#include <inttypes.h>

/* Usual size of a chunk, large enough for rare calls of the driver: mapping 64 MiB takes the
 * driver 140 us. A load of 1.1 GB in blocks of 256 B to 8 MB leaves 19 to 23 % of the mapped
 * memory unused. Chunks of 64 MiB leave 21 to 25 %, since a chunk for the last few blocks weighs
 * more. Chunks of 16 MiB leave 20 to 24 %, and a single growing range 20 to 21 %. */
#define CHUNK ((size_t)32 << 20)
/* Number of blocks considered few for a chunk. */
#define FEW 3
/* Size of a jemalloc page. */
#define PAGE ((size_t)4096)
/* Maximum size of a jemalloc slab. */
#define SLAB (8 * PAGE)
/* Number of requests refused without asking an exhausted source; doubled after every further
 * refusal by the source. A question takes about as long as evicting a block of a megabyte. */
#define LEAST_PATIENCE 8u
#define MOST_PATIENCE 4096u

static bool has_chunks(const fl_heap *heap)
{
    return heap->kind == FILCH_ARENA_JEMALLOC || heap->kind == FILCH_ARENA_PAGES;
}

static size_t round_to(size_t bytes, size_t step)
{
    return bytes > SIZE_MAX - step ? SIZE_MAX & ~(step - 1) : (bytes + step - 1) & ~(step - 1);
}

/* --- Chunks --- */

static void give_chunk(fl_heap *heap, void *chunk, size_t bytes)
{
    heap->source.chunk_give(&heap->source, chunk, bytes);
    heap->mapped -= bytes;
}

/* Hands empty chunks back until at most keep bytes are held. Requires the lock. */
static void drop_chunks(fl_heap *heap, uint64_t keep)
{
    while (heap->mapped > keep) {
        size_t bytes;
        void *chunk = fl_extents_remove(&heap->extents, SIZE_MAX, &bytes);
        if (chunk == NULL) {
            return;
        }
        give_chunk(heap, chunk, bytes);
    }
}

static filch_status refuse(const fl_heap *heap, size_t bytes, filch_error *error)
{
    return fl_error_fill(
        error, (fl_fault){.status = FILCH_NO_DEVICE_MEMORY, .device = heap->source.name},
        "%s: %zu bytes were asked for, but of its budget, %" PRIu64 " bytes, %" PRIu64 " are taken",
        heap->source.name, bytes, heap->limit, heap->mapped);
}

/* --- Memory of the source --- */

static bool is_within(const fl_heap *heap, size_t bytes, uint64_t most)
{
    return bytes <= most && heap->mapped <= most - bytes;
}

/* Maximum bytes that may be held, or are available. Requires the lock. */
static uint64_t bound_of(const fl_heap *heap)
{
    uint64_t lent = fl_load_relaxed(&heap->lent);
    return lent < heap->limit ? lent : heap->limit;
}

/* Notes a refusal of `bytes` more; sizes are multiples of step. Requires the lock. */
static void note_refusal(fl_heap *heap, size_t bytes, size_t step)
{
    uint64_t lent = heap->mapped + bytes - step;
    if (lent < fl_load_relaxed(&heap->lent)) {
        fl_store_relaxed(&heap->lent, lent);
    }
}

/* Tells whether to ask the source for a request beyond its known memory. Requires the lock. */
static bool asks_again(fl_heap *heap)
{
    if (++heap->refused < heap->patience) {
        return false;
    }
    heap->refused = 0;
    heap->patience = heap->patience < MOST_PATIENCE ? 2 * heap->patience : MOST_PATIENCE;
    return true;
}

/* Forgets every refusal: the source's memory is unknown again. Requires the lock. */
static void forget_refusals(fl_heap *heap)
{
    fl_store_relaxed(&heap->lent, UINT64_MAX);
    heap->refused = 0;
    heap->patience = LEAST_PATIENCE;
}

/* Reports a refusal. cause: the source's error, or null if the source was not asked. */
static filch_status refuse_short(const fl_heap *heap, size_t bytes, const filch_error *cause,
                                 filch_error *error)
{
    fl_fault fault = {.status = FILCH_NO_DEVICE_MEMORY, .device = heap->source.name};
    if (cause != NULL) {
        fault.native_code = cause->native_code;
        fault.native_name = cause->native_name;
        fault.call = cause->call;
    }
    return fl_error_fill(error, fault,
                         "%s: %zu bytes were asked for, but the device, of which others use the "
                         "memory, too, gives no more than %" PRIu64 " bytes, and %" PRIu64
                         " are taken",
                         heap->source.name, bytes, fl_load_relaxed(&heap->lent), heap->mapped);
}

/* Notes the outcome of a request: success, a refusal even of the size rounded only to step, or a
 * different failure. Requires the lock. */
static filch_status conclude(fl_heap *heap, size_t asked, size_t step, filch_status status,
                             const filch_error *cause, filch_error *error)
{
    size_t least = round_to(asked, step);
    if (status == FILCH_OK) {
        if (!is_within(heap, least, fl_load_relaxed(&heap->lent))) {
            forget_refusals(heap); /* further users have returned memory */
        }
        return FILCH_OK;
    }
    if (status == FILCH_NO_DEVICE_MEMORY) {
        ++heap->shortages;
        note_refusal(heap, least, step);
        return refuse_short(heap, asked, cause, error);
    }
    if (error != NULL) {
        fl_error_copy(error, cause);
    }
    return status;
}

static filch_status tell_no_memory(const fl_heap *heap, filch_error *error)
{
    return fl_error_fill(error,
                         (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = heap->source.name},
                         "%s: no memory on the host to keep track of blocks", heap->source.name);
}

/* Returns the usual size, or enough for a few blocks if the usual size holds only a few blocks
 * of the requested size. Most blocks have a common size, and the rest at a chunk's end fits no
 * block. Returns at most `most`; precondition: `most` has room for a block. */
static size_t chunk_size(size_t asked, size_t granularity, uint64_t most)
{
    size_t blocks = asked < CHUNK ? (CHUNK + asked - 1) / asked : 1;
    size_t bytes = round_to(blocks > FEW ? CHUNK : blocks * asked, granularity);
    return bytes <= most ? bytes : (size_t)(most & ~(uint64_t)(granularity - 1));
}

/* Asks the source for a chunk of *bytes, and for less after a refusal, down to `least`. Requires
 * the lock. */
static filch_status ask_chunk(fl_heap *heap, size_t least, size_t *bytes, void **chunk,
                              filch_error *error)
{
    const fl_source *source = &heap->source;
    filch_status status;
    while ((status = source->chunk_take(source, *bytes, chunk, error)) == FILCH_NO_DEVICE_MEMORY &&
           *bytes > least) {
        note_refusal(heap, *bytes, source->granularity);
        size_t half = round_to(*bytes / 2, source->granularity);
        *bytes = half > least && half < *bytes ? half : least;
    }
    if (status == FILCH_NO_DEVICE_MEMORY && heap->extents.empty_count != 0) {
        drop_chunks(heap, 0);
        status = source->chunk_take(source, *bytes, chunk, error);
    }
    return status;
}

/* Takes a chunk with room for a request from the source; hands unused memory back first if
 * necessary. Requires the lock. */
static filch_status take_chunk(fl_heap *heap, size_t asked, void **chunk, size_t *taken,
                               filch_error *error)
{
    size_t step = heap->source.granularity, least = round_to(asked, step);
    uint64_t most = bound_of(heap);
    filch_error cause = FILCH_ERROR_INIT;
    *taken = least;
    if (!is_within(heap, least, most)) {
        drop_chunks(heap, least > most ? most : most - least);
    }
    if (!is_within(heap, least, heap->limit)) {
        return refuse(heap, asked, error);
    }
    if (is_within(heap, least, most)) {
        *taken = chunk_size(asked, step, most - heap->mapped);
    } else if (!asks_again(heap)) {
        return refuse_short(heap, asked, NULL, error);
    }
    filch_status status = ask_chunk(heap, least, taken, chunk, &cause);
    return conclude(heap, asked, step, status, &cause, error);
}

/* Adds a chunk with room for a block. Requires the lock. */
static filch_status grow(fl_heap *heap, size_t asked, filch_error *error)
{
    size_t taken = 0;
    void *chunk;
    filch_status status = take_chunk(heap, asked, &chunk, &taken, error);
    if (status != FILCH_OK) {
        return status;
    }
    heap->mapped += taken;
    if (fl_extents_add(&heap->extents, chunk, taken) != FILCH_OK) {
        give_chunk(heap, chunk, taken);
        return tell_no_memory(heap, error);
    }
    heap->mapped_peak = heap->mapped > heap->mapped_peak ? heap->mapped : heap->mapped_peak;
    return FILCH_OK;
}

static filch_status take_pages(fl_heap *heap, size_t asked, size_t align, void **piece,
                               filch_error *error)
{
    size_t bytes = round_to(asked, heap->extents.granule);
    fl_mutex_lock(&heap->lock);
    filch_status status = fl_extents_take(&heap->extents, bytes, align, piece);
    if (status == FILCH_NO_DEVICE_MEMORY) {
        status = grow(heap, asked, error);
        status = status == FILCH_OK ? fl_extents_take(&heap->extents, bytes, align, piece) : status;
    }
    fl_mutex_unlock(&heap->lock);
    if (status == FILCH_OUT_OF_MEMORY) {
        return tell_no_memory(heap, error);
    }
    return status;
}

static void give_pages(fl_heap *heap, void *piece)
{
    fl_mutex_lock(&heap->lock);
    fl_extents_give(&heap->extents, piece);
    if (FL_UNLIKELY(heap->mapped > heap->limit)) { /* the limit fell meanwhile */
        drop_chunks(heap, heap->limit);
    }
    fl_mutex_unlock(&heap->lock);
}

/* --- Pages for slabs --- */

static void *slab_take(void *user, size_t bytes, size_t align)
{
    void *piece;
    return take_pages(user, bytes, align > PAGE ? align : PAGE, &piece, NULL) == FILCH_OK ? piece
                                                                                          : NULL;
}

static void slab_give(void *user, void *piece, size_t bytes)
{
    (void)bytes;
    give_pages(user, piece);
}

static bool slab_split(void *user, void *piece, size_t first)
{
    fl_heap *heap = user;
    fl_mutex_lock(&heap->lock);
    bool is_split = fl_extents_split(&heap->extents, piece, first);
    fl_mutex_unlock(&heap->lock);
    return is_split;
}

static bool slab_merge(void *user, void *piece, void *next)
{
    fl_heap *heap = user;
    fl_mutex_lock(&heap->lock);
    bool is_merged = fl_extents_merge(&heap->extents, piece, next);
    fl_mutex_unlock(&heap->lock);
    return is_merged;
}

/* Takes a small block. jemalloc gives no reason for a failure; a request for a slab's pages
 * finds the reason. If pages are available now, jemalloc may ask again. */
static filch_status take_small(fl_heap *heap, size_t bytes, void **block, filch_error *error)
{
    for (int attempt = 0; attempt < 2; ++attempt) {
        void *piece = fl_slabs_take(heap->slabs, bytes, FL_BLOCK_STEP);
        if (FL_LIKELY(piece != NULL)) {
            *block = piece;
            return FILCH_OK;
        }
        filch_status status = take_pages(heap, SLAB, PAGE, &piece, error);
        if (status != FILCH_OK) {
            return status;
        }
        give_pages(heap, piece);
    }
    return tell_no_memory(heap, error);
}

/* --- Single blocks --- */

/* Hands every unused block back. Requires the lock. */
static void drop_blocks(fl_heap *heap)
{
    for (size_t i = 0; i < heap->shelf_count; ++i) {
        fl_shelf *shelf = &heap->shelves[i];
        while (shelf->count != 0) {
            heap->source.block_give(&heap->source, shelf->blocks[--shelf->count]);
            heap->mapped -= shelf->bytes;
        }
        fl_free(heap->memory, shelf->blocks, shelf->capacity * sizeof *shelf->blocks);
    }
    fl_free(heap->memory, heap->shelves, heap->shelf_capacity * sizeof *heap->shelves);
    heap->shelves = NULL;
    heap->shelf_count = heap->shelf_capacity = 0;
    if (heap->source.blocks_trim != NULL) {
        heap->source.blocks_trim(&heap->source);
    }
}

/* Returns the shelf of a size, or null. Requires the lock. */
static fl_shelf *find_shelf(const fl_heap *heap, size_t bytes)
{
    for (size_t i = 0; i < heap->shelf_count; ++i) {
        if (heap->shelves[i].bytes == bytes) {
            return &heap->shelves[i];
        }
    }
    return NULL;
}

/* Takes a single block. Requires the lock: concurrent takers share the limit. */
static filch_status take_block(fl_heap *heap, size_t bytes, void **block, filch_error *error)
{
    const fl_source *source = &heap->source;
    fl_shelf *shelf = find_shelf(heap, bytes);
    if (shelf != NULL && shelf->count != 0) {
        *block = shelf->blocks[--shelf->count];
        return FILCH_OK;
    }
    if (!is_within(heap, bytes, bound_of(heap))) {
        drop_blocks(heap);
    }
    if (!is_within(heap, bytes, heap->limit)) {
        return refuse(heap, bytes, error);
    }
    if (!is_within(heap, bytes, bound_of(heap)) && !asks_again(heap)) {
        return refuse_short(heap, bytes, NULL, error);
    }
    filch_error cause = FILCH_ERROR_INIT;
    filch_status status = source->block_take(source, bytes, block, &cause);
    if (status == FILCH_NO_DEVICE_MEMORY) {
        drop_blocks(heap);
        status = source->block_take(source, bytes, block, &cause);
    }
    status = conclude(heap, bytes, FL_BLOCK_STEP, status, &cause, error);
    if (status == FILCH_OK) {
        heap->mapped += bytes;
        heap->mapped_peak = heap->mapped > heap->mapped_peak ? heap->mapped : heap->mapped_peak;
    }
    return status;
}

/* Makes room for a further block of a size; null: no memory. Requires the lock. */
static fl_shelf *widen_shelf(fl_heap *heap, size_t bytes)
{
    fl_shelf *shelf = find_shelf(heap, bytes);
    if (shelf == NULL) {
        if (fl_array_reserve(heap->memory, &heap->shelves, &heap->shelf_capacity,
                             heap->shelf_count + 1, sizeof *heap->shelves) != FILCH_OK) {
            return NULL;
        }
        shelf = &heap->shelves[heap->shelf_count++];
        *shelf = (fl_shelf){.bytes = bytes};
    }
    return fl_array_reserve(heap->memory, &shelf->blocks, &shelf->capacity, shelf->count + 1,
                            sizeof *shelf->blocks) == FILCH_OK
               ? shelf
               : NULL;
}

/* Gives a single block back. The driver's pool keeps blocks itself; without a pool, taking a
 * block from the driver and giving the block back serialize the device. Requires the lock. */
static void give_block(fl_heap *heap, void *block, size_t bytes)
{
    fl_shelf *shelf = heap->kind == FILCH_ARENA_PLAIN ? widen_shelf(heap, bytes) : NULL;
    if (shelf != NULL) {
        shelf->blocks[shelf->count++] = block;
    } else {
        heap->source.block_give(&heap->source, block);
        heap->mapped -= bytes;
    }
}

/* --- Heaps --- */

/* Returns the effective limit: at least the smallest chunk of the source. */
static uint64_t limit_of(const fl_heap *heap, uint64_t limit)
{
    return has_chunks(heap) && limit < heap->source.granularity ? heap->source.granularity : limit;
}

filch_status fl_heap_init(fl_heap *heap, filch_arena kind, const fl_memory *memory,
                          const fl_source *source, uint64_t limit)
{
    *heap = (fl_heap){.kind = kind, .memory = memory, .source = *source};
    heap->limit = limit_of(heap, limit);
    forget_refusals(heap);
    filch_status status = fl_mutex_init(&heap->lock);
    if (status != FILCH_OK) {
        return status;
    }
    if (!has_chunks(heap)) {
        return FILCH_OK;
    }
    /* Slabs consist of whole pages; without slabs, small blocks are pieces as well. */
    fl_extents_init(&heap->extents, memory, kind == FILCH_ARENA_JEMALLOC ? PAGE : FL_BLOCK_STEP);
    if (kind == FILCH_ARENA_JEMALLOC) {
        const fl_slab_pages pages = {slab_take, slab_give, slab_split, slab_merge, heap};
        status = fl_slabs_new(memory, &pages, &heap->slabs);
        if (status != FILCH_OK) {
            fl_mutex_fini(&heap->lock);
        }
    }
    return status;
}

void fl_heap_fini(fl_heap *heap)
{
    fl_slabs_free(heap->memory, heap->slabs);
    heap->slabs = NULL;
    fl_heap_trim(heap, 0);
    if (has_chunks(heap)) {
        fl_extents_fini(&heap->extents);
    }
    fl_mutex_fini(&heap->lock);
}

static bool is_small(const fl_heap *heap, size_t bytes)
{
    return heap->kind == FILCH_ARENA_JEMALLOC && bytes <= FL_SLAB_MOST;
}

filch_status fl_heap_take(fl_heap *heap, size_t bytes, void **block, filch_error *error)
{
    filch_status status;
    if (is_small(heap, bytes)) {
        return take_small(heap, bytes, block, error);
    }
    if (has_chunks(heap)) {
        return take_pages(heap, bytes, heap->extents.granule, block, error);
    }
    fl_mutex_lock(&heap->lock);
    status = take_block(heap, bytes, block, error);
    fl_mutex_unlock(&heap->lock);
    return status;
}

void fl_heap_give(fl_heap *heap, void *block, size_t bytes)
{
    if (is_small(heap, bytes)) {
        fl_slabs_give(heap->slabs, block, bytes, FL_BLOCK_STEP);
    } else if (has_chunks(heap)) {
        give_pages(heap, block);
    } else {
        fl_mutex_lock(&heap->lock);
        give_block(heap, block, bytes);
        fl_mutex_unlock(&heap->lock);
    }
}

bool fl_heap_insist(fl_heap *heap)
{
    fl_mutex_lock(&heap->lock);
    bool was_short = fl_load_relaxed(&heap->lent) < heap->limit;
    forget_refusals(heap);
    fl_mutex_unlock(&heap->lock);
    return was_short;
}

void fl_heap_trim(fl_heap *heap, uint64_t keep)
{
    fl_mutex_lock(&heap->lock);
    forget_refusals(heap);
    if (has_chunks(heap)) {
        drop_chunks(heap, keep);
    } else if (heap->mapped > keep || heap->kind == FILCH_ARENA_POOL) {
        drop_blocks(heap);
    }
    fl_mutex_unlock(&heap->lock);
}

void fl_heap_limit(fl_heap *heap, uint64_t limit)
{
    fl_mutex_lock(&heap->lock);
    heap->limit = limit_of(heap, limit);
    fl_mutex_unlock(&heap->lock);
    fl_heap_trim(heap, limit);
}
