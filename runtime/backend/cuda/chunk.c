/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/chunk.h"

#include "backend/cuda/device.h"
#include "backend/cuda/queue/lane.h"

/* Granularity of chunks given by cuMemAlloc. Blocks of at least this size begin at a multiple; the
 * arena needs only a beginning at one of jemalloc's pages. */
#define PLAIN_GRANULARITY ((size_t)2 << 20)
#define PAGE ((uintptr_t)4096)

/* The GPU itself, and all GPUs reaching its memory. */
typedef struct fl_accesses {
    CUmemAccessDesc who[65];
    size_t count;
} fl_accesses;

static bool has_attribute(const fl_cuda_gpu *gpu, CUdevice_attribute attribute)
{
    int value = 0;

    return gpu->api->cuDeviceGetAttribute(&value, attribute, gpu->device) == FL_CUDA_SUCCESS &&
           value != 0;
}

static CUmemLocation location_of(CUdevice device)
{
    return (CUmemLocation){.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

static CUmemAllocationProp prop_of(const fl_cuda_gpu *gpu)
{
    return (CUmemAllocationProp){.type = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = location_of(gpu->device)};
}

/* Lists the GPUs to name explicitly: peer access between contexts does not cover mapped or pool
 * memory. */
static CUresult find_accesses(const fl_cuda_gpu *gpu, fl_accesses *found)
{
    CUresult result = FL_CUDA_SUCCESS;

    found->who[0] = (CUmemAccessDesc){.location = location_of(gpu->device),
                                      .flags = FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    found->count = 1;
    for (int ordinal = 0; ordinal < 64 && result == FL_CUDA_SUCCESS; ordinal++) {
        CUdevice reader;

        if ((gpu->readers >> ordinal & 1) == 0 || (uint32_t)ordinal == gpu->ordinal)
            continue;
        result = gpu->api->cuDeviceGet(&reader, ordinal);
        if (result == FL_CUDA_SUCCESS)
            found->who[found->count++] = (CUmemAccessDesc){
                .location = location_of(reader), .flags = FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return result;
}

filch_status fl_cuda_chunk_granularity(const fl_device *device, size_t *bytes, filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    const CUmemAllocationProp prop = prop_of(gpu);
    CUresult result;
    size_t step = 0;

    *bytes = PLAIN_GRANULARITY;
    gpu->maps_chunks =
        has_attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    if (!gpu->maps_chunks)
        return FILCH_OK;
    result = gpu->api->cuMemGetAllocationGranularity(&step, &prop,
                                                     FL_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_call_fail(device, result, "cuMemGetAllocationGranularity", error);
    *bytes = step > PAGE ? step : PAGE;
    return FILCH_OK;
}

/* --- Mapped --- */

/* Maps memory into a range; a failure leaves nothing mapped. The handle is not needed again: the
 * mapping keeps the memory until unmapped. */
static CUresult map(const fl_cuda_gpu *gpu, CUdeviceptr range, size_t bytes, const char **call)
{
    const CUmemAllocationProp prop = prop_of(gpu);
    CUmemGenericAllocationHandle handle;
    fl_accesses accesses;
    CUresult result;

    *call = "cuDeviceGet";
    result = find_accesses(gpu, &accesses);
    if (result != FL_CUDA_SUCCESS)
        return result;
    *call = "cuMemCreate";
    result = gpu->api->cuMemCreate(&handle, bytes, &prop, 0);
    if (result != FL_CUDA_SUCCESS)
        return result;
    *call = "cuMemMap";
    result = gpu->api->cuMemMap(range, bytes, 0, handle, 0);
    if (result == FL_CUDA_SUCCESS) {
        *call = "cuMemSetAccess";
        result = gpu->api->cuMemSetAccess(range, bytes, accesses.who, accesses.count);
        if (result != FL_CUDA_SUCCESS)
            (void)gpu->api->cuMemUnmap(range, bytes);
    }
    (void)gpu->api->cuMemRelease(handle);
    return result;
}

static CUresult take_mapped(const fl_cuda_gpu *gpu, size_t bytes, CUdeviceptr *range,
                            const char **call)
{
    CUresult result;

    *call = "cuMemAddressReserve";
    result = gpu->api->cuMemAddressReserve(range, bytes, 0, 0, 0);
    if (result != FL_CUDA_SUCCESS)
        return result;
    result = map(gpu, *range, bytes, call);
    if (result != FL_CUDA_SUCCESS)
        (void)gpu->api->cuMemAddressFree(*range, bytes);
    return result;
}

static CUresult take_plain(const fl_cuda_gpu *gpu, size_t bytes, CUdeviceptr *block,
                           const char **call)
{
    CUresult result;

    *call = "cuMemAlloc";
    result = gpu->api->cuMemAlloc(block, bytes);
    if (result == FL_CUDA_SUCCESS && *block % PAGE != 0) {
        (void)gpu->api->cuMemFree(*block);
        result = FL_CUDA_ERROR_NOT_SUPPORTED; /* never seen */
    }
    return result;
}

filch_status fl_cuda_chunk_take(fl_device *device, size_t bytes, void **chunk, filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    CUdeviceptr address = 0;
    const char *call;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = gpu->maps_chunks ? take_mapped(gpu, bytes, &address, &call)
                              : take_plain(gpu, bytes, &address, &call);
    (void)fl_cuda_leave(&scope);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_call_fail(device, result, call, error);
    *chunk = (void *)(uintptr_t)address;
    return FILCH_OK;
}

/* Unmaps a chunk, whatever became of the context: mapped memory belongs to the process. */
static void give_mapped(const fl_cuda_gpu *gpu, CUdeviceptr range, size_t bytes)
{
    (void)gpu->api->cuMemUnmap(range, bytes);
    (void)gpu->api->cuMemAddressFree(range, bytes);
}

void fl_cuda_chunk_give(fl_device *device, void *chunk, size_t bytes)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_scope scope;

    if (gpu->maps_chunks) {
        give_mapped(gpu, (CUdeviceptr)(uintptr_t)chunk, bytes);
    } else if (fl_cuda_enter(gpu, &scope, NULL) == FILCH_OK) {
        (void)gpu->api->cuMemFree((CUdeviceptr)(uintptr_t)chunk);
        (void)fl_cuda_leave(&scope);
    }
}

/* --- Pools --- */

typedef struct fl_cuda_pool {
    CUmemoryPool pool;
    CUstream stream; /* stream for taking and giving only */
} fl_cuda_pool;

static CUresult open_pool(const fl_cuda_gpu *gpu, fl_cuda_pool *made, const char **call)
{
    const CUmemPoolProps props = {.allocType = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = location_of(gpu->device)};
    uint64_t all = UINT64_MAX;
    fl_accesses accesses;
    CUresult result;

    *call = "cuDeviceGet";
    result = find_accesses(gpu, &accesses);
    if (result != FL_CUDA_SUCCESS)
        return result;
    *call = "cuMemPoolCreate";
    result = gpu->api->cuMemPoolCreate(&made->pool, &props);
    if (result != FL_CUDA_SUCCESS) {
        made->pool = NULL;
        return result;
    }
    /* Keep memory given back: the pool is trimmed when memory is short. */
    *call = "cuMemPoolSetAttribute";
    result =
        gpu->api->cuMemPoolSetAttribute(made->pool, FL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
    /* Do not name the GPU itself, which always has access. */
    if (result == FL_CUDA_SUCCESS && accesses.count > 1) {
        *call = "cuMemPoolSetAccess";
        result = gpu->api->cuMemPoolSetAccess(made->pool, accesses.who + 1, accesses.count - 1);
    }
    if (result == FL_CUDA_SUCCESS) {
        *call = "cuStreamCreate";
        result = gpu->api->cuStreamCreate(&made->stream, FL_CU_STREAM_NON_BLOCKING);
        made->stream = result == FL_CUDA_SUCCESS ? made->stream : NULL;
    }
    return result;
}

static void close_pool(const fl_cuda_gpu *gpu, const fl_cuda_pool *pool, bool entered)
{
    if (pool->stream != NULL && entered) {
        (void)gpu->api->cuStreamSynchronize(pool->stream);
        (void)gpu->api->cuStreamDestroy(pool->stream);
    }
    if (pool->pool != NULL)
        (void)gpu->api->cuMemPoolDestroy(pool->pool);
}

filch_status fl_cuda_pool_open(fl_device *device, const fl_memory *memory, void **pool,
                               filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_pool *made;
    const char *call;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status;

    if (!has_attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        return FILCH_UNSUPPORTED;
    made = fl_alloc_zeroed(memory, sizeof *made);
    if (made == NULL)
        return fl_error_fill(error,
                             (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device->info.name},
                             "%s: no memory for its pool", device->info.name);
    status = fl_cuda_enter(gpu, &scope, error);
    if (status != FILCH_OK) {
        fl_free(memory, made, sizeof *made);
        return status;
    }
    result = open_pool(gpu, made, &call);
    if (result != FL_CUDA_SUCCESS)
        close_pool(gpu, made, true);
    (void)fl_cuda_leave(&scope);
    if (result != FL_CUDA_SUCCESS) {
        fl_free(memory, made, sizeof *made);
        return fl_cuda_call_fail(device, result, call, error);
    }
    *pool = made;
    return FILCH_OK;
}

void fl_cuda_pool_close(fl_device *device, const fl_memory *memory, void *pool)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_pool *gone = pool;
    fl_cuda_scope scope;
    /* A stream ends with its context, a pool does not. */
    bool entered = fl_cuda_enter(gpu, &scope, NULL) == FILCH_OK;

    close_pool(gpu, gone, entered);
    if (entered)
        (void)fl_cuda_leave(&scope);
    fl_free(memory, gone, sizeof *gone);
}

filch_status fl_cuda_pool_take(fl_device *device, void *pool, size_t bytes, void **block,
                               filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    const fl_cuda_pool *from = pool;
    const char *call = "cuMemAllocFromPoolAsync";
    CUdeviceptr address = 0;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = gpu->api->cuMemAllocFromPoolAsync(&address, bytes, from->pool, from->stream);
    if (result == FL_CUDA_SUCCESS) {
        /* Wait for the stream to pass the allocation, then other streams may use the block. The
         * stream has no other work. */
        call = "cuStreamSynchronize";
        result = gpu->api->cuStreamSynchronize(from->stream);
        if (result != FL_CUDA_SUCCESS)
            (void)gpu->api->cuMemFreeAsync(address, from->stream);
    }
    (void)fl_cuda_leave(&scope);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_call_fail(device, result, call, error);
    *block = (void *)(uintptr_t)address;
    return FILCH_OK;
}

void fl_cuda_pool_give(fl_device *device, void *pool, void *block)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    const fl_cuda_pool *to = pool;
    fl_cuda_scope scope;

    if (fl_cuda_enter(gpu, &scope, NULL) != FILCH_OK)
        return;
    (void)gpu->api->cuMemFreeAsync((CUdeviceptr)(uintptr_t)block, to->stream);
    (void)fl_cuda_leave(&scope);
}

/* Waits for the stream first: memory given back reaches the pool once the stream is past the
 * free. */
void fl_cuda_pool_trim(fl_device *device, void *pool)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    const fl_cuda_pool *trimmed = pool;
    fl_cuda_scope scope;

    if (fl_cuda_enter(gpu, &scope, NULL) != FILCH_OK)
        return;
    (void)gpu->api->cuStreamSynchronize(trimmed->stream);
    (void)gpu->api->cuMemPoolTrimTo(trimmed->pool, 0);
    (void)fl_cuda_leave(&scope);
}
