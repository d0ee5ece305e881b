/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of memory that is allocated and freed in the order of streams. What is freed stays the
 * pool's up to its threshold. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fake.h"

typedef struct fake_pool {
    fake_object object;
    int device;
    uint64_t access;
    uint64_t threshold, kept; /* bytes */
    size_t live;              /* blocks */
} fake_pool;

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult result =
        fake_begin_device("cuMemPoolCreate", FAKE_READY | FAKE_SERIAL, props->location.id);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (fake_device_get(props->location.id) == NULL || props->handleTypes != 0 ||
        props->allocType != FL_CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != FL_CU_MEM_LOCATION_TYPE_DEVICE)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    fake_pool *made = fake_object_make(FAKE_POOL, sizeof *made, NULL);
    made->device = props->location.id;
    made->access = (uint64_t)1 << made->device;
    *pool = fake_handle(made);
    return fake_end(FL_CUDA_SUCCESS);
}

static void trim(fake_pool *pool, uint64_t keep)
{
    uint64_t gone = pool->kept > keep ? pool->kept - keep : 0;

    fake_device_get(pool->device)->used -= gone;
    pool->kept -= gone;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    CUresult result = fake_begin("cuMemPoolDestroy", FAKE_READY | FAKE_SERIAL | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_pool *pool = fake_find(FAKE_POOL, handle);
    if (pool == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (pool->live > 0)
        (void)fake_violate(0, "%zu blocks of the pool are not freed", pool->live);
    trim(pool, 0);
    fake_object_end(&pool->object);
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    CUresult result = fake_begin("cuMemPoolSetAttribute", FAKE_READY);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_pool *pool = fake_find(FAKE_POOL, handle);
    if (pool == NULL || attribute != FL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    pool->threshold = *(uint64_t *)value;
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *who, size_t count)
{
    CUresult result = fake_begin("cuMemPoolSetAccess", FAKE_READY);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_pool *pool = fake_find(FAKE_POOL, handle);
    if (pool == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        int id = who[i].location.id;
        if (who[i].location.type != FL_CU_MEM_LOCATION_TYPE_DEVICE || fake_device_get(id) == NULL ||
            who[i].flags != FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
        if (id != pool->device && !fake_link_get(id, pool->device)->has_peer)
            return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_DEVICE,
                                         "device %d cannot reach device %d", id, pool->device));
        pool->access |= (uint64_t)1 << id;
    }
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
    CUresult result = fake_begin("cuMemPoolTrimTo", FAKE_READY | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_pool *pool = fake_find(FAKE_POOL, handle);
    if (pool == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    trim(pool, keep);
    return fake_end(FL_CUDA_SUCCESS);
}

/* Takes bytes from what the pool kept, then from the device. */
static bool charge(fake_pool *pool, uint64_t bytes)
{
    fake_device *device = fake_device_get(pool->device);
    uint64_t kept = bytes < pool->kept ? bytes : pool->kept;

    if (bytes - kept > device->memory - device->used)
        return false;
    device->used += bytes - kept;
    pool->kept -= kept;
    return true;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool handle, CUstream on)
{
    CUresult result = fake_begin("cuMemAllocFromPoolAsync", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_pool *pool = fake_find(FAKE_POOL, handle);
    fake_stream *stream = fake_stream_get(on);
    if (pool == NULL || stream == NULL || bytes == 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (!charge(pool, fake_block_round(bytes)))
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    fake_allocation *block = fake_block_make(bytes);
    if (block == NULL) {
        pool->kept += fake_block_round(bytes);
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    }
    block->device = pool->device;
    block->reach = pool->access;
    block->pool = pool;
    fake_record *record = calloc(1, sizeof *record);
    if (record == NULL)
        abort();
    record->references = 1;
    fake_submit_record(stream, record); /* its place in the stream's order */
    fake_record_drop(record);
    block->born = stream;
    block->born_after = stream->queued;
    pool->live++;
    fake_block_insert(block);
    *out = block->address;
    return fake_end(FL_CUDA_SUCCESS);
}

/* filch frees what nothing uses any more, so that it is gone at once, whatever the stream does. */
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream on)
{
    CUresult result = fake_begin("cuMemFreeAsync", FAKE_READY | FAKE_CURRENT | FAKE_ENDING);
    bool was_freed;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *stream = fake_stream_get(on);
    fake_allocation *block = fake_allocation_find((uintptr_t)pointer, &was_freed);
    if (stream == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (block == NULL || block->address != pointer || was_freed || block->pool == NULL)
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "%#llx %s", pointer,
                                     was_freed ? "is freed twice" : "is no block of a pool"));
    fake_poisoned_settle();
    if (block->pending > 0) {
        (void)fake_violate(0, "the memory is used by work that is queued");
        fake_context_wait(NULL);
    }
    fake_pool *pool = block->pool;
    size_t bytes = fake_block_round(block->size);
    fake_block_end(block);
    /* Which took it from the device's count, but the pool keeps it. */
    fake_device_get(pool->device)->used += bytes;
    pool->kept += bytes;
    trim(pool, pool->threshold);
    pool->live--;
    return fake_end(FL_CUDA_SUCCESS);
}
