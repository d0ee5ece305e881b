/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory is a memfd mapped twice: the address given out has no access rights, the fake's own
 * work goes through the other. Freed addresses stay reserved for a while, so that late uses are
 * told from wrong ones. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

#define PAGE ((size_t)4096)
#define GRAIN ((size_t)512) /* what small blocks are rounded to in the budget */
#define FREED_MOST 4096u    /* addresses kept reserved */
/* Pinned blocks of this size and more are mapped between two pages of no access. The sanitizers'
 * allocators write the shadow of a whole block whenever it is allocated or freed. */
#define PINNED_MAPPED ((size_t)64 << 10)

typedef struct host_range {
    uintptr_t address;
    size_t size;
    bool is_registered; /* else allocated by cuMemHostAlloc */
    fake_context *context;
    uint32_t pending; /* queued work that uses it */
} host_range;

static fake_allocation **blocks; /* ascending by address, freed ones too */
static size_t block_count, block_capacity;
static uint32_t freed_count;
static host_range *ranges;
static size_t range_count, range_capacity;

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

/* Index of the first block whose end is above the address. */
static size_t find_index(uintptr_t address)
{
    size_t low = 0, high = block_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle]->address + blocks[middle]->mapped <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

fake_allocation *fake_allocation_find(uintptr_t address, bool *was_freed)
{
    size_t i = find_index(address);

    *was_freed = false;
    if (i == block_count || address < blocks[i]->address)
        return NULL;
    *was_freed = blocks[i]->bytes == NULL;
    return blocks[i];
}

bool fake_is_device_pointer(uintptr_t address)
{
    bool was_freed;

    return fake_allocation_find(address, &was_freed) != NULL || fake_is_reserved(address);
}

void fake_block_insert(fake_allocation *block)
{
    size_t at = find_index(block->address);

    if (block_count == block_capacity) {
        block_capacity = block_capacity == 0 ? 64 : 2 * block_capacity;
        blocks = realloc(blocks, block_capacity * sizeof(fake_allocation *));
        if (blocks == NULL)
            abort();
    }
    memmove(&blocks[at + 1], &blocks[at], (block_count - at) * sizeof(fake_allocation *));
    blocks[at] = block;
    block_count++;
}

void fake_block_remove(const fake_allocation *block)
{
    size_t at = find_index(block->address);

    memmove(&blocks[at], &blocks[at + 1], (block_count - at - 1) * sizeof(fake_allocation *));
    block_count--;
}

fake_allocation *fake_block_after(uintptr_t address)
{
    size_t at = find_index(address);

    return at < block_count ? blocks[at] : NULL;
}

void *fake_reserve(size_t bytes)
{
    return (void *)syscall(SYS_mmap, NULL, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void fake_unreserve(void *at, size_t bytes)
{
    (void)syscall(SYS_munmap, at, bytes);
}

static void forget_freed(void)
{
    for (size_t i = 0; i < block_count && freed_count > FREED_MOST / 2;) {
        fake_allocation *block = blocks[i];
        if (block->bytes != NULL) {
            i++;
            continue;
        }
        fake_unreserve((void *)block->address, block->mapped);
        free(block);
        memmove(&blocks[i], &blocks[i + 1], (block_count - i - 1) * sizeof(fake_allocation *));
        block_count--;
        freed_count--;
    }
}

void fake_fill(int descriptor, size_t bytes)
{
    static char ones[64 << 10];

    if (!fake.config.fills)
        return;
    memset(ones, 0xff, sizeof ones);
    for (size_t at = 0; at < bytes;) {
        size_t left = bytes - at < sizeof ones ? bytes - at : sizeof ones;
        ssize_t written = pwrite(descriptor, ones, left, (off_t)at);
        if (written <= 0)
            abort();
        at += (size_t)written;
    }
}

/* Two mappings of the same pages; the one given out is followed by a page that is nobody's. */
static bool map_twice(fake_allocation *block)
{
    int descriptor = memfd_create("fakecuda", MFD_CLOEXEC);
    char *given = MAP_FAILED, *bytes = MAP_FAILED;
    size_t used = block->mapped - PAGE;

    if (descriptor >= 0 && ftruncate(descriptor, (off_t)used) == 0) {
        bytes = mmap(NULL, used, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
        given = fake_reserve(block->mapped);
    }
    if (descriptor >= 0 && block->size <= FAKE_FILL_MOST)
        fake_fill(descriptor, block->size);
    if (descriptor >= 0)
        (void)close(descriptor);
    if (bytes == MAP_FAILED || given == MAP_FAILED) {
        if (bytes != MAP_FAILED)
            (void)munmap(bytes, used);
        return false;
    }
    block->bytes = bytes;
    block->address = (uintptr_t)given;
    return true;
}

size_t fake_block_round(size_t size)
{
    return round_up(size, GRAIN);
}

fake_allocation *fake_block_make(size_t size)
{
    fake_allocation *block = calloc(1, sizeof *block);

    if (block == NULL)
        abort();
    block->size = size;
    block->mapped = round_up(size, PAGE) + PAGE;
    if (!map_twice(block)) {
        free(block);
        return NULL;
    }
    return block;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    CUresult result = fake_begin("cuMemAlloc", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (out == NULL || bytes == 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    fake_context *context = fake_current();
    fake_device *device = fake_context_device(context);
    if (bytes > device->memory || fake_block_round(bytes) > device->memory - device->used)
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    fake_allocation *block = fake_block_make(bytes);
    if (block == NULL)
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    block->context = context;
    block->device = context->device;
    device->used += fake_block_round(bytes);
    fake_block_insert(block);
    *out = block->address;
    return fake_end(FL_CUDA_SUCCESS);
}

void fake_block_end(fake_allocation *block)
{
    fake_device_get(block->device)->used -= fake_block_round(block->size);
    (void)munmap(block->bytes, block->mapped - PAGE);
    block->bytes = NULL;
    if (++freed_count > FREED_MOST)
        forget_freed();
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult result =
        fake_begin("cuMemFree", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL | FAKE_ENDING);
    bool was_freed;

    if (result != FL_CUDA_SUCCESS || pointer == 0)
        return fake_end(result);
    fake_allocation *block = fake_allocation_find(pointer, &was_freed);
    if (block == NULL || block->address != pointer || was_freed || block->context == NULL) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "%#llx %s", pointer,
                                     was_freed ? "is freed twice" : "is no block's start"));
    }
    if (block->context != fake_current())
        (void)fake_violate(0, "the memory is of another context than the current one");
    fake_poisoned_settle();
    if (block->pending > 0)
        (void)fake_violate(0, "the memory is used by work that is queued");
    /* As the driver, which waits for the device. */
    fake_context_wait(block->context);
    result = block->context->poison;
    if (block->bytes != NULL)
        fake_block_end(block);
    return fake_end(result);
}

size_t fake_memory_live(const fake_context *context)
{
    size_t count = 0;

    for (size_t i = 0; i < block_count; i++) {
        if (blocks[i]->bytes != NULL && blocks[i]->memory == NULL &&
            (context == NULL || blocks[i]->context == context))
            count++;
    }
    return count;
}

void fake_memory_end(fake_context *context)
{
    for (size_t i = 0; i < block_count; i++) {
        fake_allocation *block = blocks[i];
        if (block->bytes != NULL && block->context == context) {
            fake_context_device(context)->used -= round_up(block->size, GRAIN);
            (void)munmap(block->bytes, block->mapped - PAGE);
            block->bytes = NULL;
            freed_count++;
        }
    }
}

bool fake_block_reached(const fake_context *context, const fake_allocation *block)
{
    return block->context == NULL ? (block->reach >> context->device & 1) != 0
                                  : fake_context_reaches(context, block->context);
}

/* Bytes from the offset on that are in the block and, of a mapping, in those that follow it. */
static size_t bytes_from(const fake_context *context, const fake_allocation *block, size_t offset)
{
    size_t bytes = block->size - offset;

    while (block->memory != NULL) {
        const fake_allocation *next = fake_block_after(block->address + block->size);
        if (next == NULL || next->memory == NULL || next->address != block->address + block->size ||
            next->device < 0 || next->bytes != block->bytes + block->size ||
            (context != NULL && !fake_block_reached(context, next)))
            break;
        bytes += next->size;
        block = next;
    }
    return bytes;
}

char *fake_memory_reach(const fake_context *context, CUdeviceptr pointer, size_t bytes,
                        fake_allocation **out)
{
    bool was_freed;
    fake_allocation *block = fake_allocation_find(pointer, &was_freed);

    if (block == NULL) {
        (void)fake_violate(0, "%#llx is no device memory", pointer);
        return NULL;
    }
    if (was_freed) {
        (void)fake_violate(0, "%#llx is freed device memory", pointer);
        return NULL;
    }
    if (block->device < 0) {
        (void)fake_violate(0, "%#llx is a multicast address: it is for multimem instructions only",
                           pointer);
        return NULL;
    }
    if (block->born != NULL && block->born->finished < block->born_after) {
        (void)fake_violate(0, "%#llx is used before its stream has reached its allocation",
                           pointer);
        return NULL;
    }
    size_t offset = (size_t)(pointer - block->address);
    if (offset > block->size || bytes > bytes_from(context, block, offset)) {
        (void)fake_violate(0, "%zu bytes at offset %zu are outside a block of %zu bytes", bytes,
                           offset, block->size);
        return NULL;
    }
    if (context != NULL && !fake_block_reached(context, block)) {
        (void)fake_violate(0, "device memory of a context that the stream's one cannot reach");
        return NULL;
    }
    if (out != NULL)
        *out = block;
    return block->bytes + offset;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CUresult result = fake_begin("cuMemGetInfo", FAKE_READY | FAKE_CURRENT);

    if (result == FL_CUDA_SUCCESS) {
        const fake_device *device = fake_context_device(fake_current());
        *free_bytes = device->memory - device->used;
        *total = device->memory;
    }
    return fake_end(result);
}

uint64_t fakecuda_occupy(int device, uint64_t bytes)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake_device *at = fake_device_get(device);
    at->used -= at->occupied;
    at->occupied = bytes < at->memory - at->used ? bytes : at->memory - at->used;
    at->used += at->occupied;
    bytes = at->occupied;
    (void)pthread_mutex_unlock(&fake.lock);
    return bytes;
}

/* --- Pinned host memory --- */

static host_range *range_find(uintptr_t address, size_t bytes)
{
    for (size_t i = 0; i < range_count; i++) {
        if (address < ranges[i].address + ranges[i].size && ranges[i].address < address + bytes)
            return &ranges[i];
    }
    return NULL;
}

bool fake_is_pinned(uintptr_t address, size_t bytes)
{
    const host_range *range = range_find(address, bytes);

    return range != NULL && address >= range->address &&
           address + bytes <= range->address + range->size;
}

bool fake_is_split(uintptr_t address, size_t bytes)
{
    return range_find(address, bytes) != NULL && !fake_is_pinned(address, bytes);
}

void fake_pinned_use(uintptr_t address, int change)
{
    host_range *range = range_find(address, 1);

    if (range != NULL)
        range->pending += (uint32_t)change;
}

size_t fake_pinned_live(const fake_context *context)
{
    size_t count = 0;

    for (size_t i = 0; i < range_count; i++)
        count += context == NULL || ranges[i].context == context;
    return count;
}

static void range_add(uintptr_t address, size_t size, bool is_registered)
{
    if (range_count == range_capacity) {
        range_capacity = range_capacity == 0 ? 16 : 2 * range_capacity;
        ranges = realloc(ranges, range_capacity * sizeof *ranges);
        if (ranges == NULL)
            abort();
    }
    ranges[range_count++] = (host_range){address, size, is_registered, fake_current(), 0};
}

static CUresult device_attribute(void *data, CUpointer_attribute attribute,
                                 const fake_allocation *block)
{
    fake_context *context = block->context;

    switch (attribute) {
    case FL_CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = fake_handle(context); /* null for mappings, which have none */
        return FL_CUDA_SUCCESS;
    case FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = FL_CU_MEMORYTYPE_DEVICE;
        return FL_CUDA_SUCCESS;
    case FL_CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = 0;
        return FL_CUDA_SUCCESS;
    case FL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = block->device;
        return FL_CUDA_SUCCESS;
    case FL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = block->address;
        return FL_CUDA_SUCCESS;
    case FL_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = block->size;
        return FL_CUDA_SUCCESS;
    default:
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "the fake knows no attribute %d",
                            attribute);
    }
}

/* Of memory that nobody gave out, or that is freed, the driver says so: asking is no mistake. */
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    CUresult result = fake_begin("cuPointerGetAttribute", FAKE_READY | FAKE_CURRENT);
    bool was_freed;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (data == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    const fake_allocation *block = fake_allocation_find(pointer, &was_freed);
    if (block != NULL && !was_freed && pointer - block->address < block->size)
        return fake_end(device_attribute(data, attribute, block));
    if (attribute == FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE && range_find((uintptr_t)pointer, 1)) {
        *(unsigned *)data = FL_CU_MEMORYTYPE_HOST;
        return fake_end(FL_CUDA_SUCCESS);
    }
    return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
}

static void *pinned_new(size_t bytes)
{
    void *made = NULL;

    if (bytes < PINNED_MAPPED)
        return posix_memalign(&made, PAGE, bytes) == 0 ? made : NULL;
    size_t used = round_up(bytes, PAGE);
    char *whole = fake_reserve(used + 2 * PAGE);
    if (whole == MAP_FAILED)
        return NULL;
    if (mprotect(whole + PAGE, used, PROT_READ | PROT_WRITE) != 0) {
        fake_unreserve(whole, used + 2 * PAGE);
        return NULL;
    }
    return whole + PAGE;
}

static void pinned_free(void *block, size_t bytes)
{
    if (bytes < PINNED_MAPPED) {
        free(block);
    } else {
        fake_unreserve((char *)block - PAGE, round_up(bytes, PAGE) + 2 * PAGE);
    }
}

CUresult cuMemHostAlloc(void **block, size_t bytes, unsigned int flags)
{
    CUresult result = fake_begin("cuMemHostAlloc", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (bytes == 0 || (flags & ~7u) != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    void *made = pinned_new(bytes);
    if (made == NULL)
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    range_add((uintptr_t)made, bytes, false);
    *block = made;
    return fake_end(FL_CUDA_SUCCESS);
}

/* Size: of the range. */
static CUresult range_end(void *block, bool is_registered, size_t *size)
{
    host_range *range = range_find((uintptr_t)block, 1);

    if (range == NULL || range->address != (uintptr_t)block ||
        range->is_registered != is_registered) {
        return fake_violate(is_registered ? FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
                                          : FL_CUDA_ERROR_INVALID_VALUE,
                            "%p was not %s", block, is_registered ? "registered" : "allocated");
    }
    *size = range->size;
    fake_poisoned_settle();
    range = range_find((uintptr_t)block, 1);
    if (range != NULL && range->pending > 0)
        (void)fake_violate(0, "the memory is used by work that is queued");
    /* As the driver, which waits for all that might use the memory. */
    fake_context_wait(NULL);
    range = range_find((uintptr_t)block, 1);
    if (range != NULL)
        *range = ranges[--range_count];
    return FL_CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *block)
{
    CUresult result =
        fake_begin("cuMemFreeHost", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL | FAKE_ENDING);
    size_t bytes = 0;

    if (result == FL_CUDA_SUCCESS)
        result = range_end(block, false, &bytes);
    if (result == FL_CUDA_SUCCESS) {
        pinned_free(block, bytes);
        result = fake_current()->poison;
    }
    return fake_end(result);
}

CUresult cuMemHostRegister_v2(void *block, size_t bytes, unsigned int flags)
{
    CUresult result = fake_begin("cuMemHostRegister", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (block == NULL || bytes == 0 || (flags & ~15u) != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (fake_is_device_pointer((uintptr_t)block))
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "device memory is registered"));
    if (range_find((uintptr_t)block, bytes) != NULL)
        return fake_end(FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    range_add((uintptr_t)block, bytes, true);
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuMemHostUnregister(void *block)
{
    CUresult result =
        fake_begin("cuMemHostUnregister", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL | FAKE_ENDING);
    size_t bytes = 0;

    if (result == FL_CUDA_SUCCESS)
        result = range_end(block, true, &bytes);
    if (result == FL_CUDA_SUCCESS)
        result = fake_current()->poison;
    return fake_end(result);
}

void *fakecuda_peek(const void *device_pointer, size_t bytes)
{
    (void)pthread_mutex_lock(&fake.lock);
    char *found = fake_memory_reach(NULL, (CUdeviceptr)(uintptr_t)device_pointer, bytes, NULL);
    (void)pthread_mutex_unlock(&fake.lock);
    return found;
}

void *fakecuda_map(const void *device_pointer, size_t bytes)
{
    const fake_stream *stream = fake_running_stream();
    uintptr_t address = (uintptr_t)device_pointer;
    char *found;

    (void)pthread_mutex_lock(&fake.lock);
    if (stream == NULL) {
        found = NULL;
        (void)fake_violate(0, "fakecuda_map outside a kernel");
    } else if (fake_is_pinned(address, bytes)) {
        found = (char *)address;
    } else {
        found = fake_memory_reach(stream->object.context, address, bytes, NULL);
    }
    (void)pthread_mutex_unlock(&fake.lock);
    return found;
}
