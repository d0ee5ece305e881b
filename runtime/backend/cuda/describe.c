/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "backend/cuda/describe.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory left to the driver and to other users of the GPU. */
#define MEMORY_SPARED ((uint64_t)512 << 20)

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

filch_status fl_cuda_budget(const fl_cuda_gpu *gpu, int64_t limit, uint64_t free_bytes,
                            uint64_t total, uint64_t *budget, filch_error *error)
{
    uint64_t spared = free_bytes > MEMORY_SPARED ? free_bytes - MEMORY_SPARED : 0;

    if (limit == (int64_t)FILCH_MEMORY_FIT)
        *budget = lesser(spared, total / 10 * 9);
    else if (limit == (int64_t)FILCH_MEMORY_HALF)
        *budget = lesser(free_bytes, total / 2);
    else if ((uint64_t)limit <= total)
        *budget = lesser(free_bytes, (uint64_t)limit);
    else
        return fl_error_fill(error, (fl_fault){.status = FILCH_TOO_LARGE, .device = gpu->name},
                             "the memory limit is %" PRId64 " bytes, but %s has %" PRIu64
                             " bytes of memory",
                             limit, gpu->name, total);
    return FILCH_OK;
}

/* Source: CUDA C++ Programming Guide, "Arithmetic Instructions": results per cycle and
 * multiprocessor. Capabilities newer than the guide's count as the newest. */
uint32_t fl_cuda_single_lanes(uint32_t capability)
{
    switch (capability) {
    case 60:
    case 70:
    case 72:
    case 75:
    case 80:
        return 64;
    default:
        return 128;
    }
}

/* Reads an attribute; 0 for attributes unknown to the driver, as attributes come and go with
 * versions. */
static uint32_t attribute(const fl_cuda_gpu *gpu, CUdevice_attribute which)
{
    int value = 0;

    if (gpu->api->cuDeviceGetAttribute(&value, which, gpu->device) != FL_CUDA_SUCCESS || value < 0)
        return 0;
    return (uint32_t)value;
}

/* Reads an attribute required for any operation. */
static filch_status required(fl_cuda_gpu *gpu, CUdevice_attribute which, uint32_t *value,
                             filch_error *error)
{
    int found = 0;
    CUresult result = gpu->api->cuDeviceGetAttribute(&found, which, gpu->device);

    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuDeviceGetAttribute", NULL, NULL, error);
    if (found < 0)
        found = 0;
    *value = (uint32_t)found;
    return FILCH_OK;
}

static filch_status limits_read(fl_cuda_gpu *gpu, filch_error *error)
{
    uint32_t major = 0;
    uint32_t minor = 0;
    const struct {
        CUdevice_attribute which;
        uint32_t *value;
    } wanted[] = {
        {FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {FL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &gpu->sms},
        {FL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &gpu->grid_most[0]},
        {FL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &gpu->grid_most[1]},
        {FL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &gpu->grid_most[2]},
        {FL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &gpu->block_most[0]},
        {FL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &gpu->block_most[1]},
        {FL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &gpu->block_most[2]},
        {FL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &gpu->shared_most},
    };

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        filch_status status = required(gpu, wanted[i].which, wanted[i].value, error);

        if (status != FILCH_OK)
            return status;
    }
    gpu->arch = major * 10 + minor;
    gpu->has_clusters = attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0;
    if (attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == FL_CU_COMPUTEMODE_PROHIBITED)
        return fl_error_fill(error, (fl_fault){.status = FILCH_UNSUPPORTED, .device = gpu->name},
                             "%s is in a compute mode that prohibits contexts (nvidia-smi -c)",
                             gpu->name);
    return FILCH_OK;
}

/* Reads names and identifiers. A MIG instance reports its own identifier; only the name shows that
 * the device is an instance. */
static void identity_read(const fl_cuda_gpu *gpu, filch_device_info *info)
{
    const fl_cuda_api *api = gpu->api;
    CUuuid uuid;
    int length;

    if (api->cuDeviceGetName(info->model, (int)sizeof info->model, gpu->device) != FL_CUDA_SUCCESS)
        (void)snprintf(info->model, sizeof info->model, "unknown GPU");
    info->model[sizeof info->model - 1] = '\0';
    if (strstr(info->model, " MIG ") != NULL)
        info->features |= FILCH_DEVICE_MIG;
    if (api->cuDeviceGetPCIBusId(info->pci, (int)sizeof info->pci, gpu->device) != FL_CUDA_SUCCESS)
        info->pci[0] = '\0';
    info->pci[sizeof info->pci - 1] = '\0';
    for (char *c = info->pci; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c); /* the kernel writes lower case */
    if (api->cuDeviceGetUuid(&uuid, gpu->device) != FL_CUDA_SUCCESS)
        return;
    length = snprintf(info->uuid, sizeof info->uuid, "%s-",
                      (info->features & FILCH_DEVICE_MIG) != 0 ? "MIG" : "GPU");
    for (size_t i = 0; i < sizeof uuid.bytes; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

        length += snprintf(info->uuid + length, sizeof info->uuid - (size_t)length, "%s%02x", dash,
                           (unsigned char)uuid.bytes[i]);
    }
}

static bool sysfs_read(const char *pci, const char *name, char *text, size_t size)
{
    char path[96];
    FILE *file;
    bool found;

    if (pci[0] == '\0' || strchr(pci, '/') != NULL)
        return false;
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", pci, name);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    found = fgets(text, (int)size, file) != NULL;
    (void)fclose(file);
    return found;
}

/* Sets the CPUs of a list such as "0-23,48-71"; CPUs from `most` on are left out. */
static void cpulist_parse(const char *text, uint64_t *set, unsigned long most)
{
    for (char *end; isdigit((unsigned char)*text); text = end + (*end == ',')) {
        unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;

        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtoul(end + 1, &end, 10);
        for (unsigned long cpu = first; cpu <= last && cpu < most; cpu++)
            set[cpu / 64] |= UINT64_C(1) << (cpu % 64);
    }
}

/* Collects the CPUs of all threads of the process: a host may have bound its main thread alone. */
static bool process_cpus(uint64_t *set, size_t bytes)
{
    DIR *tasks = opendir("/proc/self/task");
    bool any = false;

    if (tasks == NULL)
        return false;
    /* The stream belongs to this call alone. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        cpu_set_t mask;

        if (!isdigit((unsigned char)task->d_name[0]) ||
            sched_getaffinity((pid_t)strtol(task->d_name, NULL, 10), sizeof mask, &mask) != 0)
            continue;
        any = true;
        for (size_t cpu = 0; cpu < bytes * 8; cpu++) {
            if (CPU_ISSET(cpu, &mask))
                set[cpu / 64] |= UINT64_C(1) << (cpu % 64);
        }
    }
    (void)closedir(tasks);
    return any;
}

/* Reads the near CPUs usable by the process; without near CPUs the worker stays unbound. */
static void nearness_read(const fl_cuda_gpu *gpu, const fl_settings *settings,
                          filch_device_info *info)
{
    uint64_t near[sizeof info->affinity / sizeof info->affinity[0]] = {0};
    uint64_t mine[sizeof info->affinity / sizeof info->affinity[0]] = {0};
    char text[1024];
    int node = -1;

    if (sysfs_read(info->pci, "numa_node", text, sizeof text))
        node = (int)strtol(text, NULL, 10);
    else if (gpu->api->cuDeviceGetAttribute(&node, FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
                                            gpu->device) != FL_CUDA_SUCCESS)
        node = -1;
    info->numa_node = node < 0 ? -1 : node;
    if (!process_cpus(mine, sizeof mine))
        return;
    if (settings != NULL && settings->bind == FILCH_BIND_NONE) {
        memcpy(info->affinity, mine, sizeof mine);
        return;
    }
    if (!sysfs_read(info->pci, "local_cpulist", text, sizeof text))
        return;
    cpulist_parse(text, near, sizeof near * 8);
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
        info->affinity[i] = near[i] & mine[i];
}

static void speeds_read(const fl_cuda_gpu *gpu, filch_device_info *info)
{
    uint32_t ratio = attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);

    info->clock_khz = attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    info->memory_khz = attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    info->memory_bits = attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    info->block_shared = gpu->shared_most;
    info->l2_bytes = attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    info->single_lanes = fl_cuda_single_lanes(gpu->arch);
    info->double_lanes = ratio > 0 ? info->single_lanes / ratio : 0;
    /* Two transfers a cycle. */
    info->bandwidth = 2.0 * info->memory_khz * 1e3 * info->memory_bits / 8.0;
}

filch_status fl_cuda_describe(fl_cuda_gpu *gpu, const fl_settings *settings,
                              filch_device_info *info, filch_error *error)
{
    size_t total = 0;
    CUresult result = gpu->api->cuDeviceGet(&gpu->device, (int)gpu->ordinal);
    filch_status status;

    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuDeviceGet", NULL, NULL, error);
    status = limits_read(gpu, error);
    if (status != FILCH_OK)
        return status;
    result = gpu->api->cuDeviceTotalMem(&total, gpu->device);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuDeviceTotalMem", NULL, NULL, error);
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    info->backend = FILCH_BACKEND_CUDA;
    info->ordinal = gpu->ordinal;
    info->memory_total = total;
    info->capability = gpu->arch;
    info->multiprocessors = gpu->sms;
    if (attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_ECC_ENABLED) != 0)
        info->features |= FILCH_DEVICE_ECC;
    if (attribute(gpu, FL_CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0)
        info->features |= FILCH_DEVICE_INTEGRATED;
    if (gpu->has_clusters)
        info->features |= FILCH_DEVICE_CLUSTERS;
    identity_read(gpu, info);
    nearness_read(gpu, settings, info);
    speeds_read(gpu, info);
    return FILCH_OK;
}

filch_status fl_cuda_memory(fl_cuda_gpu *gpu, uint64_t *free_bytes, uint64_t *total,
                            filch_error *error)
{
    fl_cuda_scope scope;
    size_t here = 0;
    size_t all = 0;
    CUresult result;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = gpu->api->cuMemGetInfo(&here, &all);
    (void)fl_cuda_leave(&scope);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuMemGetInfo", NULL, NULL, error);
    *free_bytes = here;
    *total = all;
    return FILCH_OK;
}
