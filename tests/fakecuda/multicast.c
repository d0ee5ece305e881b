/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects: teams of devices, and the memory of each that is bound to them. The driver
 * blocks where a team is not whole; here that is a violation, as is everything of which its
 * reference says that it is undefined. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fake.h"

#define MINIMUM ((size_t)FAKE_VIRTUAL_GRAIN)
#define RECOMMENDED (2 * MINIMUM)
#define BINDINGS 64

typedef struct binding {
    int device;
    size_t offset, bytes;
    fake_memory *memory;
} binding;

typedef struct fake_team {
    uint64_t members; /* bits of devices */
    uint32_t size, count;
    binding bindings[BINDINGS];
    uint32_t binding_count;
} team;

static bool is_good(const CUmulticastObjectProp *p)
{
    return p != NULL && p->numDevices >= 1 && p->numDevices <= fake.visible_count && p->size > 0 &&
           p->handleTypes == 0 && p->flags == 0;
}

CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *properties,
                                   CUmulticastGranularity_flags which)
{
    CUresult result = fake_begin("cuMulticastGetGranularity", FAKE_READY);

    if (result == FL_CUDA_SUCCESS &&
        (bytes == NULL || !is_good(properties) || which < 0 || which > 1))
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS)
        *bytes = which == FL_CU_MULTICAST_GRANULARITY_MINIMUM ? MINIMUM : RECOMMENDED;
    return fake_end(result);
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *multicast,
                           const CUmulticastObjectProp *properties)
{
    CUresult result = fake_begin("cuMulticastCreate", FAKE_READY | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (multicast == NULL || !is_good(properties))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (properties->size % MINIMUM != 0) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                     "%zu bytes are no multiple of the granularity",
                                     properties->size));
    }
    fake_memory *made = fake_memory_make(-1, properties->size);
    made->team = calloc(1, sizeof *made->team);
    if (made->team == NULL)
        abort();
    made->team->size = properties->numDevices;
    *multicast = made->handle;
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
    CUresult result = fake_begin_device("cuMulticastAddDevice", FAKE_READY | FAKE_SERIAL, device);
    int supported = 0;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_memory *multicast = fake_memory_find(handle, true);
    if (multicast == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    (void)fake_device_attribute(fake_device_get(device), FL_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
                                &supported);
    if (supported == 0)
        return fake_end(fake_violate(FL_CUDA_ERROR_NOT_SUPPORTED, "a device without multicast"));
    team *t = multicast->team;
    if (t->count == t->size || (t->members >> device & 1) != 0) {
        return fake_end(
            fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                         t->count == t->size ? "the team is whole" : "the device is added twice"));
    }
    t->members |= (uint64_t)1 << device;
    t->count++;
    return fake_end(FL_CUDA_SUCCESS);
}

bool fake_team_is_whole(const fake_memory *multicast)
{
    const team *t = multicast->team;

    if (t->count < t->size)
        (void)fake_violate(0, "%u of %u devices are added: the driver would block", t->count,
                           t->size);
    return t->count == t->size;
}

void fake_team_end(fake_memory *multicast)
{
    team *t = multicast->team;

    if (t->binding_count > 0)
        (void)fake_violate(0, "%u bindings are left of the multicast object", t->binding_count);
    for (uint32_t i = 0; i < t->binding_count; i++) {
        t->bindings[i].memory->bindings--;
        fake_memory_settle(t->bindings[i].memory);
    }
    t->binding_count = 0;
}

static bool is_multiple(size_t a, size_t b, size_t c)
{
    return a % MINIMUM == 0 && b % MINIMUM == 0 && c % MINIMUM == 0;
}

static CUresult bind(fake_memory *multicast, size_t offset, fake_memory *memory,
                     size_t memory_offset, size_t bytes)
{
    team *t = multicast->team;

    if (!fake_team_is_whole(multicast))
        return FL_CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0 || !is_multiple(offset, memory_offset, bytes)) {
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                            "size or offset are no multiples of the granularity");
    }
    if (offset > multicast->size || bytes > multicast->size - offset ||
        memory_offset > memory->size || bytes > memory->size - memory_offset)
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "the range is outside one of both");
    if ((t->members >> memory->device & 1) == 0)
        return fake_violate(FL_CUDA_ERROR_INVALID_DEVICE, "memory of a device that is no member");
    for (uint32_t i = 0; i < t->binding_count; i++) {
        const binding *b = &t->bindings[i];
        if (b->device == memory->device && offset < b->offset + b->bytes &&
            b->offset < offset + bytes)
            return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "memory is bound there already");
    }
    if (t->binding_count == BINDINGS)
        return FL_CUDA_ERROR_OUT_OF_MEMORY;
    t->bindings[t->binding_count++] = (binding){memory->device, offset, bytes, memory};
    memory->bindings++;
    return FL_CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                            CUmemGenericAllocationHandle memory_handle, size_t memory_offset,
                            size_t bytes, unsigned long long flags)
{
    CUresult result = fake_begin("cuMulticastBindMem", FAKE_READY | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_memory *multicast = fake_memory_find(handle, true);
    fake_memory *memory = fake_memory_find(memory_handle, false);
    if (multicast == NULL || memory == NULL || flags != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    return fake_end(bind(multicast, offset, memory, memory_offset, bytes));
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
                             CUdeviceptr address, size_t bytes, unsigned long long flags)
{
    CUresult result = fake_begin("cuMulticastBindAddr", FAKE_READY | FAKE_SERIAL);
    bool was_freed;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_memory *multicast = fake_memory_find(handle, true);
    const fake_allocation *block = fake_allocation_find(address, &was_freed);
    if (multicast == NULL || flags != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    /* The driver takes what cuMemCreate made, and says so of other memory. */
    if (block == NULL || block->memory == NULL || block->device < 0 ||
        bytes > block->size - (address - block->address))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    return fake_end(
        bind(multicast, offset, block->memory, block->offset + (address - block->address), bytes));
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                           size_t bytes)
{
    CUresult result =
        fake_begin_device("cuMulticastUnbind", FAKE_READY | FAKE_SERIAL | FAKE_ENDING, device);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_memory *multicast = fake_memory_find(handle, true);
    if (multicast == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    team *t = multicast->team;
    for (uint32_t i = 0; i < t->binding_count; i++) {
        binding *b = &t->bindings[i];
        if (b->device == device && b->offset == offset && b->bytes == bytes) {
            fake_memory *memory = b->memory;
            *b = t->bindings[--t->binding_count];
            memory->bindings--;
            fake_memory_settle(memory);
            return fake_end(FL_CUDA_SUCCESS);
        }
    }
    return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "nothing is bound exactly so"));
}
