/* SPDX-License-Identifier: Apache-2.0 */
/* Multiprocessor resources and green contexts: a device's multiprocessors are split in groups once,
 * and a green context is made of some of them. */
#define _GNU_SOURCE
#include <string.h>

#include "fake.h"

/* What the fake keeps in a resource's private bytes. */
typedef struct origin {
    uint32_t magic;
    int device;
    uint32_t split; /* 0: the whole device */
    uint32_t first; /* multiprocessor */
    bool is_rest;
} origin;

#define MAGIC 0xfa4ecadau

static origin origin_get(const CUdevResource *resource)
{
    origin o;

    memcpy(&o, resource->_internal_padding, sizeof o);
    return o;
}

static void resource_set(CUdevResource *resource, const fake_device *device, origin o,
                         uint32_t count)
{
    memset(resource, 0, sizeof *resource);
    resource->type = FL_CU_DEV_RESOURCE_TYPE_SM;
    resource->sm.smCount = count;
    if (fake.config.driver >= 13000) {
        resource->sm.minSmPartitionSize = (unsigned)device->granularity;
        resource->sm.smCoscheduledAlignment = (unsigned)device->granularity;
    }
    memcpy(resource->_internal_padding, &o, sizeof o);
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    CUresult result = fake_begin_device("cuDeviceGetDevResource", FAKE_READY, device);

    if (result == FL_CUDA_SUCCESS && type != FL_CU_DEV_RESOURCE_TYPE_SM)
        result = FL_CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (result == FL_CUDA_SUCCESS && fake_device_get(device)->is_mig)
        result = FL_CUDA_ERROR_NOT_SUPPORTED;
    if (result == FL_CUDA_SUCCESS) {
        const fake_device *d = fake_device_get(device);
        resource_set(resource, d, (origin){MAGIC, device, 0, 0, false}, (uint32_t)d->sms);
    }
    return fake_end(result);
}

/* Groups that a device has: not all multiprocessors lie in whole ones of the usual size. On the 132
 * of an H200 there are 15 of 8, but 8 of 16, 5 of 24 and 4 of 32. */
static uint32_t group_count(const fake_device *device, uint32_t size)
{
    uint32_t unit = (uint32_t)device->granularity;
    uint32_t count = (uint32_t)device->sms / size;

    if (size != unit)
        return count;
    if (device->groups > 0)
        return (uint32_t)device->groups < count ? (uint32_t)device->groups : count;
    return device->sms == 132 && unit == 8 ? 15 : count;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *groups, unsigned int *count,
                                     const CUdevResource *input, CUdevResource *remaining,
                                     unsigned int flags, unsigned int least)
{
    CUresult result = fake_begin("cuDevSmResourceSplitByCount", FAKE_READY);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (count == NULL || input == NULL || (flags & ~3u) != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    origin from = origin_get(input);
    if (from.magic != MAGIC || input->type != FL_CU_DEV_RESOURCE_TYPE_SM)
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_RESOURCE_TYPE, "no resource"));
    if (from.split != 0) {
        return fake_end(
            fake_violate(FL_CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                         from.is_rest ? "a remainder is split again" : "a group is split again"));
    }
    const fake_device *device = fake_device_get(from.device);
    uint32_t unit = (flags & FL_CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0
                        ? 2
                        : (uint32_t)device->granularity;
    uint32_t size = (least + unit - 1) / unit * unit;
    size = size == 0 ? unit : size;
    uint32_t most = group_count(device, size);
    if (most == 0 || (groups != NULL && *count == 0))
        return fake_end(FL_CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    if (groups == NULL) {
        *count = most;
        return fake_end(FL_CUDA_SUCCESS);
    }
    *count = *count < most ? *count : most;
    from.split = ++fake.splits;
    for (uint32_t i = 0; i < *count; i++) {
        from.first = i * size;
        resource_set(&groups[i], device, from, size);
    }
    if (remaining != NULL) {
        from.first = *count * size;
        from.is_rest = true;
        resource_set(remaining, device, from, (uint32_t)device->sms - from.first);
        if (remaining->sm.smCount == 0)
            remaining->type = FL_CU_DEV_RESOURCE_TYPE_INVALID;
    }
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources,
                                   unsigned int count)
{
    CUresult result = fake_begin("cuDevResourceGenerateDesc", FAKE_READY);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (resources == NULL || count == 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    origin first = origin_get(&resources[0]);
    fake_desc *desc = fake_object_make(FAKE_DESC, sizeof *desc, NULL);
    desc->device = first.device;
    desc->split = first.split;
    for (unsigned i = 0; i < count; i++) {
        origin next = origin_get(&resources[i]);
        if (next.magic != MAGIC || resources[i].type != FL_CU_DEV_RESOURCE_TYPE_SM)
            return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_RESOURCE_TYPE, "no resource"));
        if (next.split != first.split || next.device != first.device) {
            return fake_end(
                fake_violate(FL_CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "groups of two splits"));
        }
        for (uint32_t k = 0; k < resources[i].sm.smCount; k++)
            desc->members[(next.first + k) / 64] |= (uint64_t)1 << (next.first + k) % 64;
        desc->count += resources[i].sm.smCount;
    }
    *out = fake_handle(desc);
    return fake_end(FL_CUDA_SUCCESS);
}

/* The driver lets green contexts share multiprocessors. Slices must not. */
static void overlap_check(const fake_desc *desc)
{
    for (uint32_t i = 0; i < fake_object_count(FAKE_GREEN); i++) {
        const fake_green *green = (const fake_green *)fake_object_at(FAKE_GREEN, i);
        if (!green->object.is_alive || green->object.context->device != desc->device)
            continue;
        bool overlaps = green->split != desc->split;
        for (uint32_t k = 0; k < FAKE_MULTIPROCESSORS / 64; k++)
            overlaps = overlaps || (green->members[k] & desc->members[k]) != 0;
        if (overlaps)
            (void)fake_violate(0, "it shares multiprocessors with another green context");
    }
}

CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc handle, CUdevice device,
                          unsigned int flags)
{
    CUresult result = fake_begin_device("cuGreenCtxCreate", FAKE_READY | FAKE_SERIAL, device);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_desc *desc = fake_find(FAKE_DESC, handle);
    if (desc == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (flags != FL_CU_GREEN_CTX_DEFAULT_STREAM || desc->device != device)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    fake_context *primary = fake_device_get(device)->primary;
    if (primary == NULL) {
        return fake_end(
            fake_violate(FL_CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained"));
    }
    overlap_check(desc);
    fake_green *green = fake_object_make(FAKE_GREEN, sizeof *green, primary);
    green->split = desc->split;
    green->count = desc->count;
    memcpy(green->members, desc->members, sizeof green->members);
    *out = fake_handle(green);
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
    CUresult result = fake_begin("cuGreenCtxDestroy", FAKE_READY | FAKE_SERIAL | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_green *green = fake_find(FAKE_GREEN, handle);
    if (green == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    fake_context_wait(green->object.context);
    fake_object_end(&green->object);
    bool has_streams = false;
    for (uint32_t i = fake_object_count(FAKE_STREAM); i-- > 0;) {
        fake_stream *stream = (fake_stream *)fake_object_at(FAKE_STREAM, i);
        if (stream->object.is_alive && stream->green == green) {
            has_streams = true;
            fake_object_end(&stream->object);
        }
    }
    if (has_streams)
        (void)fake_violate(0, "the green context has streams left");
    return fake_end(green->object.context->poison);
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx handle, unsigned int flags, int priority)
{
    CUresult result = fake_begin("cuGreenCtxStreamCreate", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_green *green = fake_find(FAKE_GREEN, handle);
    if (green == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (green->object.context != fake_current()) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_CONTEXT,
                                     "the slice's primary context is not the current one"));
    }
    if (flags != FL_CU_STREAM_NON_BLOCKING)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    fake_stream *stream = fake_stream_make(green->object.context, flags, priority);
    stream->green = green;
    *out = fake_handle(stream);
    return fake_end(FL_CUDA_SUCCESS);
}

/* The way to make a green context current, which may be current to one thread only. */
FAKECUDA_API CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx handle);

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx handle)
{
    CUresult result = fake_begin("cuCtxFromGreenCtx", FAKE_READY);

    (void)handle;
    *context = NULL;
    if (result == FL_CUDA_SUCCESS)
        result = fake_violate(FL_CUDA_ERROR_NOT_SUPPORTED, "a green context is to be made current");
    return fake_end(result);
}
