/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/alloc/source.h"

static filch_status chunk_take(const fl_source *source, size_t bytes, void **chunk,
                               filch_error *error)
{
    fl_device *device = source->user;
    return device->backend->memory->chunk_take(device, bytes, chunk, error);
}

static void chunk_give(const fl_source *source, void *chunk, size_t bytes)
{
    fl_device *device = source->user;
    device->backend->memory->chunk_give(device, chunk, bytes);
}

static filch_status block_take(const fl_source *source, size_t bytes, void **block,
                               filch_error *error)
{
    fl_device *device = source->user;
    return device->backend->memory->take(device, bytes, block, error);
}

static void block_give(const fl_source *source, void *block)
{
    fl_device *device = source->user;
    device->backend->memory->give(device, block);
}

static filch_status pool_take(const fl_source *source, size_t bytes, void **block,
                              filch_error *error)
{
    fl_device *device = source->user;
    return device->backend->pool->take(device, source->pool, bytes, block, error);
}

static void pool_give(const fl_source *source, void *block)
{
    fl_device *device = source->user;
    device->backend->pool->give(device, source->pool, block);
}

static void pool_trim(const fl_source *source)
{
    fl_device *device = source->user;
    device->backend->pool->trim(device, source->pool);
}

const char *fl_arena_name(filch_arena kind)
{
    static const char *const names[] = {
        [FILCH_ARENA_DEFAULT] = "default", [FILCH_ARENA_JEMALLOC] = "jemalloc",
        [FILCH_ARENA_PAGES] = "pages",     [FILCH_ARENA_POOL] = "pool",
        [FILCH_ARENA_PLAIN] = "plain",
    };
    return names[kind];
}

static filch_status try_chunks(fl_source *source, fl_device *device, filch_error *error)
{
    if (device->backend->memory == NULL) {
        return FILCH_UNSUPPORTED;
    }
    source->chunk_take = chunk_take;
    source->chunk_give = chunk_give;
    return device->backend->memory->chunk_granularity(device, &source->granularity, error);
}

static filch_status try_pool(fl_source *source, fl_device *device, const fl_memory *memory,
                             filch_error *error)
{
    if (device->backend->pool == NULL) {
        return FILCH_UNSUPPORTED;
    }
    source->block_take = pool_take;
    source->block_give = pool_give;
    source->blocks_trim = pool_trim;
    return device->backend->pool->open(device, memory, &source->pool, error);
}

static filch_status try_one(fl_source *source, fl_device *device, const fl_memory *memory,
                            filch_arena kind, filch_error *error)
{
    *source = (fl_source){.name = device->info.name, .user = device};
    switch (kind) {
    case FILCH_ARENA_JEMALLOC:
        return fl_slabs_are_there() ? try_chunks(source, device, error) : FILCH_UNSUPPORTED;
    case FILCH_ARENA_PAGES:
        return try_chunks(source, device, error);
    case FILCH_ARENA_POOL:
        return try_pool(source, device, memory, error);
    case FILCH_ARENA_PLAIN:
        source->block_take = block_take;
        source->block_give = block_give;
        return FILCH_OK;
    case FILCH_ARENA_DEFAULT:
        break;
    }
    return FILCH_INTERNAL;
}

filch_status fl_source_open(fl_source *source, fl_device *device, const fl_memory *memory,
                            filch_arena wanted, filch_arena *kind, filch_error *error)
{
    static const filch_arena order[] = {FILCH_ARENA_JEMALLOC, FILCH_ARENA_POOL, FILCH_ARENA_PAGES,
                                        FILCH_ARENA_PLAIN};
    filch_status status = FILCH_UNSUPPORTED;
    if (wanted != FILCH_ARENA_DEFAULT) {
        *kind = wanted;
        status = try_one(source, device, memory, wanted, error);
        if (status == FILCH_UNSUPPORTED) {
            (void)fl_error_fill(
                error,
                (fl_fault){.status = status, .device = device->info.name, .label = "FILCH_ARENA"},
                "%s: no arena of kind %s here", device->info.name, fl_arena_name(wanted));
        }
        return status;
    }
    for (size_t i = 0; i < sizeof order / sizeof *order && status == FILCH_UNSUPPORTED; ++i) {
        *kind = order[i];
        status = try_one(source, device, memory, order[i], error);
    }
    return status;
}

void fl_source_close(const fl_source *source, const fl_memory *memory)
{
    fl_device *device = source->user;
    if (source->pool != NULL) {
        device->backend->pool->close(device, memory, source->pool);
    }
}
