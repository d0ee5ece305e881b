/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/multicast.h"

#include "backend/cuda/device.h"

static fl_cuda_gpu *gpu_of(const fl_device *device)
{
    return fl_cuda_of(device)->gpu;
}

static filch_status end(const fl_device *device, CUresult result, const char *call,
                        filch_error *error)
{
    return result == FL_CUDA_SUCCESS
               ? FILCH_OK
               : fl_cuda_fail(gpu_of(device), result, call, device->info.name, NULL, error);
}

/* --- Support --- */

static filch_status multicast_check(const fl_device *device, filch_error *error)
{
    const fl_cuda_gpu *gpu = gpu_of(device);
    const fl_cuda_api *api = gpu->api;
    const fl_fault fault = {.status = FILCH_UNSUPPORTED, .device = device->info.name};
    const int version = gpu->library->version;
    int is_supported = 0;

    if (api->cuMulticastGetGranularity == NULL || api->cuMulticastCreate == NULL ||
        api->cuMulticastAddDevice == NULL || api->cuMulticastBindMem == NULL ||
        api->cuMulticastBindAddr == NULL || api->cuMulticastUnbind == NULL)
        return fl_error_fill(error, fault, "%s: multicast needs CUDA driver >= 12.1, this is %d.%d",
                             device->info.name, version / 1000, version % 1000 / 10);
    CUresult result = api->cuDeviceGetAttribute(
        &is_supported, FL_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, gpu->device);
    if (result != FL_CUDA_SUCCESS)
        return end(device, result, "cuDeviceGetAttribute", error);
    if (is_supported == 0)
        return fl_error_fill(error, fault, "%s: the driver says that it has no multicast",
                             device->info.name);
    return FILCH_OK;
}

static CUmulticastObjectProp properties_of(uint32_t devices, uint64_t bytes)
{
    return (CUmulticastObjectProp){.numDevices = devices, .size = (size_t)bytes};
}

static filch_status multicast_granularity(const fl_device *device, uint32_t devices, uint64_t bytes,
                                          uint64_t *minimum, uint64_t *recommended,
                                          filch_error *error)
{
    const fl_cuda_api *api = gpu_of(device)->api;
    const CUmulticastObjectProp properties = properties_of(devices, bytes);
    size_t least = 0;
    size_t best = 0;
    CUresult result =
        api->cuMulticastGetGranularity(&least, &properties, FL_CU_MULTICAST_GRANULARITY_MINIMUM);

    if (result == FL_CUDA_SUCCESS)
        result = api->cuMulticastGetGranularity(&best, &properties,
                                                FL_CU_MULTICAST_GRANULARITY_RECOMMENDED);
    if (result == FL_CUDA_SUCCESS && least == 0)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    *minimum = least;
    *recommended = best;
    return end(device, result, "cuMulticastGetGranularity", error);
}

/* --- The object --- */

static filch_status multicast_create(const fl_device *device, const fl_settings *settings,
                                     uint32_t devices, uint64_t bytes, uint64_t *object,
                                     filch_error *error)
{
    const CUmulticastObjectProp properties = properties_of(devices, bytes);
    CUmemGenericAllocationHandle made = 0;
    fl_cuda_scope scope;

    /* Keep the only call of cuMulticastCreate behind this check. */
    if (settings->multicast != 1)
        return fl_error_fill(error,
                             (fl_fault){.status = FILCH_UNSUPPORTED, .device = device->info.name},
                             "%s: multicast is not allowed in this runtime", device->info.name);
    filch_status status = fl_cuda_enter(gpu_of(device), &scope, error);
    if (status != FILCH_OK)
        return status;
    status = end(device, gpu_of(device)->api->cuMulticastCreate(&made, &properties),
                 "cuMulticastCreate", error);
    (void)fl_cuda_leave(&scope);
    *object = made;
    return status;
}

static filch_status multicast_add(const fl_device *device, uint64_t object, filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    status = end(device, gpu->api->cuMulticastAddDevice(object, gpu->device),
                 "cuMulticastAddDevice", error);
    (void)fl_cuda_leave(&scope);
    return status;
}

static filch_status multicast_bind(const fl_device *device, uint64_t object, uint64_t offset,
                                   uint64_t memory, uint64_t bytes, filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    status = end(device,
                 gpu->api->cuMulticastBindMem(object, (size_t)offset, memory, 0, (size_t)bytes, 0),
                 "cuMulticastBindMem", error);
    (void)fl_cuda_leave(&scope);
    return status;
}

static filch_status multicast_bind_address(const fl_device *device, uint64_t object,
                                           uint64_t offset, void *address, uint64_t bytes,
                                           filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    status = end(device,
                 gpu->api->cuMulticastBindAddr(object, (size_t)offset,
                                               (CUdeviceptr)(uintptr_t)address, (size_t)bytes, 0),
                 "cuMulticastBindAddr", error);
    (void)fl_cuda_leave(&scope);
    return status;
}

static filch_status multicast_unbind(const fl_device *device, uint64_t object, uint64_t offset,
                                     uint64_t bytes, filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);

    return end(device,
               gpu->api->cuMulticastUnbind(object, gpu->device, (size_t)offset, (size_t)bytes),
               "cuMulticastUnbind", error);
}

/* --- Memory and addresses --- */

static CUmemAllocationProp memory_of(const fl_cuda_gpu *gpu)
{
    return (CUmemAllocationProp){
        .type = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device},
    };
}

static filch_status multicast_take_memory(const fl_device *device, uint64_t bytes, uint64_t *memory,
                                          uint64_t *made, filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);
    const CUmemAllocationProp properties = memory_of(gpu);
    CUmemGenericAllocationHandle handle = 0;
    const char *call = "cuMemGetAllocationGranularity";
    size_t grain = 0;
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    CUresult result = gpu->api->cuMemGetAllocationGranularity(&grain, &properties,
                                                              FL_CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result == FL_CUDA_SUCCESS) {
        *made = grain != 0 ? (bytes + grain - 1) / grain * grain : bytes;
        call = "cuMemCreate";
        result = gpu->api->cuMemCreate(&handle, (size_t)*made, &properties, 0);
    }
    (void)fl_cuda_leave(&scope);
    *memory = handle;
    return end(device, result, call, error);
}

static filch_status multicast_release(const fl_device *device, uint64_t object, filch_error *error)
{
    return end(device, gpu_of(device)->api->cuMemRelease(object), "cuMemRelease", error);
}

static filch_status multicast_take_address(const fl_device *device, uint64_t bytes,
                                           uint64_t alignment, void **address, filch_error *error)
{
    CUdeviceptr made = 0;
    CUresult result =
        gpu_of(device)->api->cuMemAddressReserve(&made, (size_t)bytes, (size_t)alignment, 0, 0);

    *address = (void *)(uintptr_t)made;
    return end(device, result, "cuMemAddressReserve", error);
}

static filch_status multicast_give_address(const fl_device *device, void *address, uint64_t bytes,
                                           filch_error *error)
{
    return end(
        device,
        gpu_of(device)->api->cuMemAddressFree((CUdeviceptr)(uintptr_t)address, (size_t)bytes),
        "cuMemAddressFree", error);
}

static filch_status multicast_map(const fl_device *device, void *address, uint64_t object,
                                  uint64_t bytes, filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    status = end(device,
                 gpu->api->cuMemMap((CUdeviceptr)(uintptr_t)address, (size_t)bytes, 0, object, 0),
                 "cuMemMap", error);
    (void)fl_cuda_leave(&scope);
    return status;
}

static filch_status multicast_unmap(const fl_device *device, void *address, uint64_t bytes,
                                    filch_error *error)
{
    return end(device,
               gpu_of(device)->api->cuMemUnmap((CUdeviceptr)(uintptr_t)address, (size_t)bytes),
               "cuMemUnmap", error);
}

static filch_status multicast_allow(const fl_device *device, void *address, uint64_t bytes,
                                    filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);
    const CUmemAccessDesc access = {
        .location = {.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device},
        .flags = FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    status =
        end(device,
            gpu->api->cuMemSetAccess((CUdeviceptr)(uintptr_t)address, (size_t)bytes, &access, 1),
            "cuMemSetAccess", error);
    (void)fl_cuda_leave(&scope);
    return status;
}

const fl_multicast_ops fl_cuda_multicast = {
    .check = multicast_check,
    .granularity = multicast_granularity,
    .create = multicast_create,
    .add = multicast_add,
    .bind = multicast_bind,
    .bind_address = multicast_bind_address,
    .unbind = multicast_unbind,
    .take_memory = multicast_take_memory,
    .release = multicast_release,
    .take_address = multicast_take_address,
    .give_address = multicast_give_address,
    .map = multicast_map,
    .unmap = multicast_unmap,
    .allow = multicast_allow,
};
