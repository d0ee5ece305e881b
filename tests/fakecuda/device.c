/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation and what devices tell about themselves. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static void uuid_text(const fake_device *device, char *out, size_t bytes)
{
    const unsigned char *u = device->uuid;

    (void)snprintf(out, bytes,
                   "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   device->is_mig ? "MIG" : "GPU", u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7],
                   u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* One item of CUDA_VISIBLE_DEVICES: an index, or a prefix of a UUID; -1 ends the list. */
static int visible_item(const char *item)
{
    char *end;
    long index = strtol(item, &end, 10);

    if (end != item && *end == '\0')
        return index >= 0 && index < (long)fake.config.device_count ? (int)index : -1;
    if (strncmp(item, "GPU-", 4) != 0 && strncmp(item, "MIG-", 4) != 0)
        return -1;
    for (uint32_t i = 0; i < fake.config.device_count; i++) {
        char text[64];
        uuid_text(&fake.config.devices[i], text, sizeof text);
        if (strncmp(text, item, strlen(item)) == 0)
            return (int)i;
    }
    return -1;
}

static void find_visible(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");

    fake.visible_count = 0;
    if (list == NULL) {
        for (uint32_t i = 0; i < fake.config.device_count; i++)
            fake.visible[fake.visible_count++] = i;
        return;
    }
    /* As the driver: devices up to the first item that is none; one named twice hides all. */
    while (*list != '\0' && fake.visible_count < FAKE_DEVICES) {
        char item[64];
        size_t length = strcspn(list, ",");
        (void)snprintf(item, sizeof item, "%.*s", (int)length, list);
        int index = visible_item(item + strspn(item, " "));
        if (index < 0)
            break;
        for (uint32_t i = 0; i < fake.visible_count; i++) {
            if (fake.visible[i] == (uint32_t)index) {
                fake.visible_count = 0;
                return;
            }
        }
        fake.visible[fake.visible_count++] = (uint32_t)index;
        list += length + (list[length] == ',');
    }
}

CUresult cuInit(unsigned int flags)
{
    CUresult result = fake_begin("cuInit", FAKE_ANY);

    if (!fake_configure_once())
        return fake_end(FL_CUDA_ERROR_UNKNOWN);
    if (fake.config.is_stub)
        result = FL_CUDA_ERROR_STUB_LIBRARY;
    if (result == FL_CUDA_SUCCESS && flags != 0)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result != FL_CUDA_SUCCESS || fake.is_initialised)
        return fake_end(result);
    find_visible();
    if (fake.visible_count == 0)
        return fake_end(FL_CUDA_ERROR_NO_DEVICE);
    fake.is_initialised = true;
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult result = fake_begin("cuDriverGetVersion", FAKE_ANY);

    (void)fake_configure_once();
    if (version == NULL)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS && fake.config.is_stub)
        result = FL_CUDA_ERROR_STUB_LIBRARY;
    if (result == FL_CUDA_SUCCESS)
        *version = fake.config.driver;
    return fake_end(result);
}

fake_device *fake_device_get(CUdevice device)
{
    if (device < 0 || (uint32_t)device >= fake.visible_count)
        return NULL;
    return &fake.config.devices[fake.visible[device]];
}

const fake_link *fake_link_get(CUdevice from, CUdevice to)
{
    return &fake.config.links[fake.visible[from]][fake.visible[to]];
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = fake_begin("cuDeviceGetCount", FAKE_READY);

    if (result == FL_CUDA_SUCCESS)
        *count = (int)fake.visible_count;
    return fake_end(result);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = fake_begin_device("cuDeviceGet", FAKE_READY, ordinal);

    if (result == FL_CUDA_SUCCESS)
        *device = ordinal;
    return fake_end(result);
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    CUresult result = fake_begin_device("cuDeviceGetName", FAKE_READY, device);

    if (result == FL_CUDA_SUCCESS && bytes > 0) {
        const fake_device *d = fake_device_get(device);
        bool is_named = !d->is_mig || strstr(d->name, "MIG") != NULL;
        (void)snprintf(name, (size_t)bytes, "%s%s", d->name, is_named ? "" : " MIG 1g.18gb");
    }
    return fake_end(result);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult result = fake_begin_device("cuDeviceGetUuid", FAKE_READY, device);

    if (result == FL_CUDA_SUCCESS)
        memcpy(uuid, fake_device_get(device)->uuid, 16);
    return fake_end(result);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = fake_begin_device("cuDeviceTotalMem", FAKE_READY, device);

    if (result == FL_CUDA_SUCCESS)
        *bytes = fake_device_get(device)->memory;
    return fake_end(result);
}

CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device)
{
    CUresult result = fake_begin_device("cuDeviceGetPCIBusId", FAKE_READY, device);
    const fake_device *d = fake_device_get(device);

    if (result == FL_CUDA_SUCCESS && (d == NULL || (size_t)bytes <= strlen(d->pci)))
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS)
        (void)snprintf(id, (size_t)bytes, "%s", d->pci);
    return fake_end(result);
}

static int pci_part(const fake_device *device, int part)
{
    unsigned domain = 0, bus = 0, slot = 0;

    (void)sscanf(device->pci, "%x:%x:%x", &domain, &bus, &slot);
    return (int)(part == 0 ? domain : part == 1 ? bus : slot);
}

/* Attributes that do not depend on the configuration. */
static const struct {
    int attribute, value;
} constant_attributes[] = {
    {FL_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {FL_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {FL_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {FL_CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {FL_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
    {FL_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6016},
    {FL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
    {FL_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {FL_CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {FL_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {FL_CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {FL_CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {FL_CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {FL_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
};

int fake_device_attribute(const fake_device *d, int attribute, int *value)
{
    for (uint32_t i = 0; i < d->override_count; i++) {
        if (d->overrides[i].attribute == attribute) {
            *value = d->overrides[i].value;
            return FL_CUDA_SUCCESS;
        }
    }
    for (size_t i = 0; i < sizeof constant_attributes / sizeof constant_attributes[0]; i++) {
        if (constant_attributes[i].attribute == attribute) {
            *value = constant_attributes[i].value;
            return FL_CUDA_SUCCESS;
        }
    }
    switch (attribute) {
    case FL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = d->clock_khz;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = d->sms;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_INTEGRATED:
        *value = d->is_integrated;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        *value = d->compute_mode;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
        *value = d->has_ecc;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case FL_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    case FL_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value = pci_part(d, attribute == FL_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID ? 0
                             : attribute == FL_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID  ? 1
                                                                               : 2);
        break;
    case FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = d->major;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = d->minor;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        *value = d->major >= 9;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
        if (fake.config.driver < 12010)
            return FL_CUDA_ERROR_INVALID_VALUE;
        *value = d->major >= 9;
        break;
    case FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        if (fake.config.driver < 12020)
            return FL_CUDA_ERROR_INVALID_VALUE;
        *value = d->numa;
        break;
    default:
        return FL_CUDA_ERROR_INVALID_VALUE;
    }
    return FL_CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = fake_begin_device("cuDeviceGetAttribute", FAKE_READY, device);

    if (result == FL_CUDA_SUCCESS)
        result = fake_device_attribute(fake_device_get(device), attribute, value);
    return fake_end(result);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult result = fake_begin_device("cuDeviceCanAccessPeer", FAKE_READY, device);

    if (result == FL_CUDA_SUCCESS && fake_device_get(peer) == NULL)
        result = FL_CUDA_ERROR_INVALID_DEVICE;
    if (result == FL_CUDA_SUCCESS)
        *can = device != peer && fake_link_get(device, peer)->has_peer;
    return fake_end(result);
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to)
{
    CUresult result = fake_begin_device("cuDeviceGetP2PAttribute", FAKE_READY, from);

    if (result == FL_CUDA_SUCCESS && (fake_device_get(to) == NULL || from == to))
        result = FL_CUDA_ERROR_INVALID_DEVICE;
    if (result == FL_CUDA_SUCCESS) {
        const fake_link *link = fake_link_get(from, to);
        switch (attribute) {
        case FL_CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            *value = link->rank;
            break;
        case FL_CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
            *value = link->has_peer;
            break;
        case FL_CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
            *value = link->has_atomics;
            break;
        default:
            result = FL_CUDA_ERROR_INVALID_VALUE;
        }
    }
    return fake_end(result);
}
