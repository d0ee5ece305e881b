/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: physical memory by handle, reserved addresses, and what is mapped where. A
 * reservation is twice as large as it looks: the addresses given out, without access rights, and
 * beside them where the fake's own work finds the same pages. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

#define GRAIN ((size_t)FAKE_VIRTUAL_GRAIN)
#define FILL_MOST ((size_t)1 << 20)      /* what is beyond starts as zeroes */
#define FIRST_HANDLE 0x7a00000000000000u /* no pointer, and no small number */

typedef struct reservation {
    uintptr_t address;
    char *shadow;
    size_t size;
} reservation;

static fake_memory **memories;
static size_t memory_count, memory_capacity;
static reservation *reservations;
static size_t reservation_count, reservation_capacity;
static size_t mapping_count;
static size_t alive[2]; /* memories; multicast objects */

static void *grow(void *array, size_t count, size_t *capacity, size_t bytes)
{
    if (count == *capacity) {
        *capacity = *capacity == 0 ? 16 : 2 * *capacity;
        array = realloc(array, *capacity * bytes);
        if (array == NULL)
            abort();
    }
    return array;
}

static bool is_aligned(size_t value)
{
    return value % GRAIN == 0;
}

size_t fake_virtual_live(const char *kind)
{
    return strcmp(kind, "reservation") == 0 ? reservation_count
           : strcmp(kind, "mapping") == 0   ? mapping_count
                                            : alive[strcmp(kind, "multicast") == 0];
}

/* --- Physical memory --- */

fake_memory *fake_memory_make(int device, size_t size)
{
    fake_memory *made = calloc(1, sizeof *made);

    memories = grow(memories, memory_count, &memory_capacity, sizeof *memories);
    if (made == NULL)
        abort();
    *made = (fake_memory){.handle = FIRST_HANDLE + memory_count * 16,
                          .is_alive = true,
                          .device = device,
                          .descriptor = -1,
                          .size = size};
    memories[memory_count++] = made;
    alive[device < 0]++;
    return made;
}

static fake_memory *find_any(uint64_t handle)
{
    uint64_t index = (handle - FIRST_HANDLE) / 16;

    return handle >= FIRST_HANDLE && handle % 16 == 0 && index < memory_count ? memories[index]
                                                                              : NULL;
}

fake_memory *fake_memory_find(uint64_t handle, bool is_multicast)
{
    fake_memory *found = find_any(handle);

    if (found == NULL)
        (void)fake_violate(0, "%#llx is no handle of memory", (unsigned long long)handle);
    else if (!found->is_alive)
        (void)fake_violate(0, "the memory is released");
    else if ((found->device < 0) != is_multicast)
        (void)fake_violate(0, "a handle of memory and one of a multicast object are taken for "
                              "each other");
    else
        return found;
    return NULL;
}

void fake_memory_settle(fake_memory *memory)
{
    if (memory->is_alive || memory->mappings > 0 || memory->bindings > 0 || memory->descriptor < 0)
        return;
    (void)close(memory->descriptor);
    memory->descriptor = -1;
    fake_device_get(memory->device)->used -= memory->size;
}

static bool is_device_memory(const CUmemAllocationProp *p)
{
    return p != NULL && p->type == FL_CU_MEM_ALLOCATION_TYPE_PINNED &&
           p->location.type == FL_CU_MEM_LOCATION_TYPE_DEVICE && p->requestedHandleTypes == 0 &&
           p->win32HandleMetaData == NULL && p->allocFlags.usage == 0;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags which)
{
    CUresult result = fake_begin("cuMemGetAllocationGranularity", FAKE_READY);

    if (result == FL_CUDA_SUCCESS &&
        (bytes == NULL || !is_device_memory(properties) || which < 0 || which > 1))
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS)
        *bytes = GRAIN;
    return fake_end(result);
}

/* The pages, filled as other new memory is. */
static int make_pages(size_t bytes)
{
    int descriptor = memfd_create("fakecuda", MFD_CLOEXEC);

    if (descriptor >= 0 && ftruncate(descriptor, (off_t)bytes) != 0) {
        (void)close(descriptor);
        return -1;
    }
    if (descriptor >= 0)
        fake_fill(descriptor, bytes < FILL_MOST ? bytes : FILL_MOST);
    return descriptor;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    CUresult result = fake_begin_device("cuMemCreate", FAKE_READY | FAKE_SERIAL,
                                        properties != NULL ? properties->location.id : 0);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (memory == NULL || bytes == 0 || flags != 0 || !is_device_memory(properties))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (!is_aligned(bytes)) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                     "%zu bytes are no multiple of the granularity", bytes));
    }
    fake_device *device = fake_device_get(properties->location.id);
    if (bytes > device->memory || bytes > device->memory - device->used)
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    int descriptor = make_pages(bytes);
    if (descriptor < 0)
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    fake_memory *made = fake_memory_make(properties->location.id, bytes);
    made->descriptor = descriptor;
    device->used += bytes;
    *memory = made->handle;
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = fake_begin("cuMemRelease", FAKE_READY | FAKE_SERIAL | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_memory *any = find_any(handle);
    fake_memory *found = fake_memory_find(handle, any != NULL && any->device < 0);
    if (found == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (found->device < 0 && found->mappings > 0)
        (void)fake_violate(0, "the multicast object is mapped");
    if (found->device >= 0 && found->bindings > 0)
        (void)fake_violate(0, "the memory is bound to a multicast object");
    if (found->device < 0)
        fake_team_end(found);
    found->is_alive = false;
    alive[found->device < 0]--;
    fake_memory_settle(found);
    return fake_end(FL_CUDA_SUCCESS);
}

/* --- Addresses --- */

static reservation *find_reservation(uintptr_t address, size_t bytes)
{
    for (size_t i = 0; i < reservation_count; i++) {
        reservation *r = &reservations[i];
        if (address >= r->address && address - r->address < r->size &&
            bytes <= r->size - (address - r->address))
            return r;
    }
    return NULL;
}

bool fake_is_reserved(uintptr_t address)
{
    return find_reservation(address, 1) != NULL;
}

/* The whole range at an address that is a multiple of the alignment. */
static char *map_aligned(size_t bytes, size_t alignment)
{
    size_t room = bytes + alignment;
    char *at = fake_reserve(room);

    if (at == MAP_FAILED)
        return NULL;
    size_t skip = (alignment - (uintptr_t)at % alignment) % alignment;
    if (skip > 0)
        fake_unreserve(at, skip);
    if (alignment - skip > 0)
        fake_unreserve(at + skip + bytes, alignment - skip);
    return at + skip;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    CUresult result = fake_begin("cuMemAddressReserve", FAKE_READY | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (address == NULL || bytes == 0 || flags != 0 || wanted != 0 ||
        (alignment & (alignment - 1)) != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (!is_aligned(bytes)) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                     "%zu bytes are no multiple of the granularity", bytes));
    }
    char *given = map_aligned(bytes, alignment > GRAIN ? alignment : GRAIN);
    char *shadow = map_aligned(bytes, GRAIN);
    if (given == NULL || shadow == NULL) {
        if (given != NULL)
            fake_unreserve(given, bytes);
        if (shadow != NULL)
            fake_unreserve(shadow, bytes);
        return fake_end(FL_CUDA_ERROR_OUT_OF_MEMORY);
    }
    reservations =
        grow(reservations, reservation_count, &reservation_capacity, sizeof *reservations);
    reservations[reservation_count++] = (reservation){(uintptr_t)given, shadow, bytes};
    *address = (uintptr_t)given;
    return fake_end(FL_CUDA_SUCCESS);
}

/* A mapping that touches the range, or null. */
static fake_allocation *find_mapping(uintptr_t address, size_t bytes)
{
    fake_allocation *block = fake_block_after(address);

    return block != NULL && block->address < address + bytes ? block : NULL;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    CUresult result = fake_begin("cuMemAddressFree", FAKE_READY | FAKE_SERIAL | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    reservation *r = find_reservation(address, bytes);
    if (r == NULL || r->address != address || r->size != bytes) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                     "%#llx and %zu bytes are no reservation", address, bytes));
    }
    if (find_mapping(address, bytes) != NULL) {
        return fake_end(
            fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "something is mapped in the reservation"));
    }
    fake_unreserve((void *)r->address, r->size);
    (void)munmap(r->shadow, r->size);
    *r = reservations[--reservation_count];
    return fake_end(FL_CUDA_SUCCESS);
}

/* --- Mappings --- */

/* What is wrong with a mapping, or null. */
static const char *check_mapping(const fake_memory *memory, const reservation *r, uintptr_t address,
                                 size_t bytes, size_t offset)
{
    return r == NULL ? "it is not in one reservation"
           : !is_aligned(bytes) || !is_aligned(offset) || !is_aligned(address)
               ? "address, size or offset are no multiples of the granularity"
           : find_mapping(address, bytes) != NULL                   ? "something is mapped there"
           : offset > memory->size || bytes > memory->size - offset ? "it exceeds the memory"
                                                                    : NULL;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result = fake_begin("cuMemMap", FAKE_READY | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_memory *any = find_any(handle);
    fake_memory *memory = fake_memory_find(handle, any != NULL && any->device < 0);
    if (memory == NULL || bytes == 0 || flags != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    const reservation *r = find_reservation(address, bytes);
    const char *wrong = check_mapping(memory, r, address, bytes, offset);
    if (wrong != NULL)
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "%s", wrong));
    if (memory->device < 0 && !fake_team_is_whole(memory))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    fake_allocation *block = calloc(1, sizeof *block);
    if (block == NULL)
        abort();
    char *shadow = r->shadow + (address - r->address);
    if (memory->device >= 0 && mmap(shadow, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                    memory->descriptor, (off_t)offset) == MAP_FAILED)
        abort();
    *block = (fake_allocation){.address = address,
                               .bytes = shadow,
                               .size = bytes,
                               .mapped = bytes,
                               .device = memory->device,
                               .memory = memory,
                               .offset = offset};
    fake_block_insert(block);
    memory->mappings++;
    mapping_count++;
    return fake_end(FL_CUDA_SUCCESS);
}

static void unmap(fake_allocation *block)
{
    if (block->device >= 0 &&
        mmap(block->bytes, block->size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
    block->memory->mappings--;
    mapping_count--;
    fake_memory_settle(block->memory);
    fake_block_remove(block);
    free(block);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    CUresult result = fake_begin("cuMemUnmap", FAKE_READY | FAKE_SERIAL | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_poisoned_settle();
    /* Whole mappings, one behind the other. */
    for (size_t at = 0; at < bytes;) {
        const fake_allocation *block = find_mapping(address + at, 1);
        if (block == NULL || block->memory == NULL || block->address != address + at ||
            block->size > bytes - at) {
            return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                         "%#llx and %zu bytes are not what was mapped", address,
                                         bytes));
        }
        if (block->pending > 0)
            (void)fake_violate(0, "the mapping is used by work that is queued");
        at += block->size;
    }
    for (size_t at = 0; at < bytes;) {
        fake_allocation *block = find_mapping(address + at, 1);
        at += block->size;
        unmap(block);
    }
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *accesses,
                        size_t count)
{
    CUresult result = fake_begin("cuMemSetAccess", FAKE_READY | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    for (size_t i = 0; i < count; i++) {
        if (accesses[i].location.type != FL_CU_MEM_LOCATION_TYPE_DEVICE ||
            fake_device_get(accesses[i].location.id) == NULL)
            return fake_end(FL_CUDA_ERROR_INVALID_DEVICE);
    }
    for (size_t at = 0; at < bytes;) {
        fake_allocation *block = find_mapping(address + at, 1);
        if (block == NULL || block->memory == NULL || block->address != address + at ||
            block->size > bytes - at) {
            return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                         "access to what is not mapped, or to a part of it"));
        }
        for (size_t i = 0; i < count; i++) {
            const CUmemAccessDesc *access = &accesses[i];
            const uint64_t bit = (uint64_t)1 << access->location.id;
            int from = access->location.id, to = block->device;
            if (to >= 0 && from != to && access->flags != 0 && !fake_link_get(from, to)->has_peer)
                return fake_end(FL_CUDA_ERROR_INVALID_DEVICE);
            block->reach = access->flags != 0 ? block->reach | bit : block->reach & ~bit;
        }
        at += block->size;
    }
    return fake_end(FL_CUDA_SUCCESS);
}
