/* SPDX-License-Identifier: Apache-2.0 */
/* Table of operations of CUDA devices; launches, marks and copies are in lane.c. */
#define _GNU_SOURCE
#include "backend/cuda/cuda.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/chunk.h"
#include "backend/cuda/describe.h"
#include "backend/cuda/device.h"
#include "backend/cuda/driver/pointer.h"
#include "backend/cuda/event.h"
#include "backend/cuda/links.h"
#include "backend/cuda/multicast.h"
#include "backend/cuda/queue/graph.h"
#include "backend/cuda/queue/lane.h"
#include "backend/cuda/queue/span.h"
#include "backend/cuda/queue/stage.h"
#include "backend/cuda/slices.h"

/* Two lanes let a kernel's last blocks and the next kernel's first blocks run together. Slices use
 * two lanes as well, though three slices have more streams than the eight kept apart by hardware
 * queues. Measured with the default number of queues and with more (CUDA_DEVICE_MAX_CONNECTIONS),
 * two lanes per slice are quicker than one. */
#define LANES 2
/* Overhead of a launch, measured; a prior. */
#define OVERHEAD_NS 2500
/* Bytes of the driver's compiler messages about a PTX image. */
#define JIT_LOG 2048
/* Architecture that has the instruction to wait for the kernels before (PTX ISA 7.8,
 * griddepcontrol). */
#define WAIT_ARCH 90

/* --- Finding devices --- */

/* Returns the library loaded by an earlier item of the specification, or null. */
static fl_cuda_library *library_share(const fl_device *devices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (devices[i].backend == &fl_cuda_backend)
            return fl_cuda_of(&devices[i])->gpu->library;
    }
    return NULL;
}

static void library_release(fl_cuda_library *library, const fl_memory *memory)
{
    if (--library->users > 0)
        return;
    fl_cuda_unload(library);
    fl_free(memory, library, sizeof *library);
}

static filch_status library_open(const fl_discovery *how, const fl_device *devices, size_t count,
                                 fl_cuda_library **found, filch_error *error)
{
    fl_cuda_library *library = library_share(devices, count);
    filch_status status;

    if (library == NULL) {
        library = fl_alloc_zeroed(how->memory, sizeof *library);
        if (library == NULL)
            return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                                 "no memory for the CUDA driver's entry points");
        status = fl_cuda_load(library, error);
        if (status != FILCH_OK) {
            fl_free(how->memory, library, sizeof *library);
            return status;
        }
    }
    library->users++;
    *found = library;
    return FILCH_OK;
}

static void gpu_release(fl_cuda_gpu *gpu, const fl_memory *memory)
{
    fl_cuda_library *library = gpu->library;

    if (gpu->users > 0)
        return;
    fl_free(memory, gpu, sizeof *gpu);
    library_release(library, memory);
}

static uint32_t place_next(const fl_device *devices, size_t count)
{
    uint32_t place = 1;

    for (size_t i = 0; i < count; i++) {
        if (devices[i].place >= place)
            place = devices[i].place + 1;
    }
    return place;
}

/* Adds a device of the GPU: the whole GPU, or slice `index`. */
static filch_status device_add(const fl_memory *memory, const fl_settings *settings,
                               fl_cuda_gpu *gpu, const filch_device_info *info, uint32_t index,
                               uint32_t place, fl_device **devices, size_t *count, size_t *capacity)
{
    filch_status status = fl_array_reserve(memory, devices, capacity, *count + 1, sizeof **devices);
    fl_cuda_device *state;
    fl_device *device;

    if (status != FILCH_OK)
        return status;
    state = fl_alloc_zeroed(memory, sizeof *state);
    if (state == NULL)
        return FILCH_OUT_OF_MEMORY;
    if (fl_mutex_init(&state->guest_lock) != FILCH_OK) {
        fl_free(memory, state, sizeof *state);
        return FILCH_OUT_OF_MEMORY;
    }
    state->gpu = gpu;
    state->slice_index = index;
    state->sms = gpu->slice_count > 0 ? gpu->slice_sms[index] : gpu->sms;
    gpu->users++;

    device = &(*devices)[*count];
    memset(device, 0, sizeof *device);
    device->info = *info;
    device->info.team = state->sms;
    if (gpu->slice_count > 0) {
        device->info.features |= FILCH_DEVICE_SLICE;
        (void)snprintf(device->info.name, sizeof device->info.name, "%s/%" PRIu32, gpu->name,
                       index);
    } else {
        (void)snprintf(device->info.name, sizeof device->info.name, "%s", gpu->name);
    }
    device->backend = &fl_cuda_backend;
    device->state = state;
    device->place = place;
    device->implementations = FL_IMPL_CUDA;
    device->lanes = settings != NULL && settings->lanes != 0 ? (uint32_t)settings->lanes : LANES;
    device->info.compute_lanes = device->lanes;
    device->overhead_ns = OVERHEAD_NS;
    (*count)++;
    return FILCH_OK;
}

static void cuda_close(fl_device *device, const fl_memory *memory);

/* Adds the devices of a GPU; a failure adds no device. */
static filch_status gpu_add(const fl_discovery *how, fl_cuda_library *library,
                            const fl_device_spec *spec, uint32_t ordinal, fl_device **devices,
                            size_t *count, size_t *capacity, filch_error *error)
{
    const size_t before = *count;
    const uint32_t place = place_next(*devices, before);
    fl_cuda_gpu *gpu = fl_alloc_zeroed(how->memory, sizeof *gpu);
    filch_device_info info;
    fl_cuda_cut cut;
    filch_status status;

    if (gpu == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory for a GPU's description");
    gpu->api = &library->api;
    gpu->library = library;
    library->users++;
    gpu->ordinal = ordinal;
    gpu->slice_count = spec->slice_count;
    memcpy(gpu->slice_sms, spec->slices, sizeof gpu->slice_sms);
    (void)snprintf(gpu->name, sizeof gpu->name, "cuda:%" PRIu32, ordinal);
    status = fl_cuda_describe(gpu, how->settings, &info, error);
    if (status == FILCH_OK && gpu->slice_count > 0)
        status = fl_cuda_slices_check(gpu, &cut, error);
    if (status != FILCH_OK) {
        gpu_release(gpu, how->memory);
        return status;
    }
    gpu->users++; /* temporary use, until the devices have their own */
    for (uint32_t i = 0; i < (gpu->slice_count > 0 ? gpu->slice_count : 1); i++) {
        status =
            device_add(how->memory, how->settings, gpu, &info, i, place, devices, count, capacity);
        if (status != FILCH_OK) {
            (void)fl_error_fill(error, (fl_fault){.status = status, .device = gpu->name},
                                "no memory for device %s", gpu->name);
            break;
        }
        (*devices)[*count - 1].is_named = spec->has_number;
    }
    if (status != FILCH_OK) {
        while (*count > before)
            cuda_close(&(*devices)[--*count], how->memory);
    }
    gpu->users--;
    gpu_release(gpu, how->memory);
    return status;
}

/* Writes "; CUDA_VISIBLE_DEVICES is "..."" as a possible reason, if the variable is set. */
static const char *visible_text(char *text, size_t size)
{
    char value[40];

    text[0] = '\0';
    if (fl_environment_quote("CUDA_VISIBLE_DEVICES", value, sizeof value))
        (void)snprintf(text, size, "; CUDA_VISIBLE_DEVICES is \"%s\"", value);
    return text;
}

static filch_status gpus_add(const fl_discovery *how, fl_cuda_library *library,
                             const fl_device_spec *spec, fl_device **devices, size_t *count,
                             size_t *capacity, filch_error *error)
{
    const uint32_t first = spec->has_number ? spec->number : 0;
    const uint32_t end = spec->has_number ? first + 1 : library->count;
    const size_t wanted = spec->slice_count > 0 ? spec->slice_count : end - first;
    fl_fault fault = {.status = FILCH_NO_DEVICE, .line = spec->column};
    filch_error reason = FILCH_ERROR_INIT;
    const size_t before = *count;
    char visible[80];
    filch_status status;

    (void)visible_text(visible, sizeof visible);
    if (library->count == 0)
        return fl_error_fill(error, fault, "the CUDA driver shows no GPU%s", visible);
    if (first >= library->count) {
        fault.status = FILCH_UNKNOWN_ORDINAL;
        return fl_error_fill(error, fault,
                             "there is no cuda:%" PRIu32 ": the CUDA driver shows %" PRIu32
                             " GPU%s, from cuda:0%s",
                             first, library->count, library->count == 1 ? "" : "s", visible);
    }
    status = fl_backend_check_limit(how, before, wanted, (fl_fault){.line = spec->column});
    for (uint32_t i = first; i < end && status == FILCH_OK; i++) {
        char name[16];

        status = gpu_add(how, library, spec, i, devices, count, capacity, &reason);
        if (status == FILCH_OK)
            continue;
        if (spec->has_number || status == FILCH_OUT_OF_MEMORY) {
            reason.line = spec->column;
            if (error != NULL)
                fl_error_copy(error, &reason);
            break;
        }
        (void)snprintf(name, sizeof name, "cuda:%" PRIu32, i);
        fl_backend_refuse(how, FILCH_BACKEND_CUDA, name, i, &reason);
        status = FILCH_OK;
    }
    if (status == FILCH_OK && *count == before)
        return fl_error_fill(error, fault, "no GPU can be used: %s", reason.text);
    if (status != FILCH_OK) {
        while (*count > before)
            cuda_close(&(*devices)[--*count], how->memory);
    }
    return status;
}

/* Enumerates GPUs. Without a specification naming CUDA (column 0), an absent driver or a driver
 * without GPUs is no error. A broken driver is then reported as a refusal, and no device is added
 * either. */
static filch_status cuda_enumerate(const fl_discovery *how, const fl_device_spec *spec,
                                   fl_device **devices, size_t *count, size_t *capacity)
{
    fl_cuda_library *library = NULL;
    filch_error reason = FILCH_ERROR_INIT;
    filch_status status = library_open(how, *devices, *count, &library, &reason);

    if (status == FILCH_OK) {
        status = gpus_add(how, library, spec, devices, count, capacity, &reason);
        library_release(library, how->memory);
    } else if (spec->column == 0 && status != FILCH_OUT_OF_MEMORY) {
        if (status != FILCH_NO_DRIVER)
            fl_backend_refuse(how, FILCH_BACKEND_CUDA, "cuda", 0, &reason);
        return FILCH_NO_DEVICE;
    }
    if (status == FILCH_NO_DEVICE && spec->column == 0)
        return status;
    if (status != FILCH_OK && how->error != NULL) {
        if (reason.line == 0)
            reason.line = spec->column;
        fl_error_copy(how->error, &reason);
    }
    return status;
}

/* --- Opening and closing --- */

/* Undoes one open. */
static void gpu_shut(fl_cuda_gpu *gpu, const fl_memory *memory)
{
    if (gpu->opens == 1)
        fl_cuda_stage_close(gpu, memory);
    fl_cuda_gpu_close(gpu);
}

static filch_status cuda_open(fl_device *device, const fl_discovery *how)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_gpu *gpu = state->gpu;
    uint64_t here = 0;
    uint64_t all = 0;
    filch_status status = fl_cuda_gpu_open(gpu, how->settings, how->error);

    if (status != FILCH_OK)
        return status;
    state->slice = gpu->slice_count > 0 ? gpu->slices[state->slice_index] : NULL;
    status = fl_cuda_memory(gpu, &here, &all, how->error);
    if (status == FILCH_OK && gpu->opens == 1)
        status =
            fl_cuda_budget(gpu, how->settings->memory_limit, here, all, &gpu->budget, how->error);
    if (status == FILCH_OK && gpu->opens == 1)
        status = fl_cuda_stage_open(device, how);
    if (status == FILCH_OK)
        status = fl_cuda_lanes_open(device, how->memory, how->error);
    if (status != FILCH_OK) {
        state->slice = NULL;
        gpu_shut(gpu, how->memory);
        return status;
    }
    device->info.memory_total = all;
    device->info.memory_free = here;
    device->info.budget = gpu->budget;
    state->is_open = true;
    return FILCH_OK;
}

static void guest_close(fl_cuda_device *state)
{
    fl_cuda_scope scope;

    if (state->guest == NULL)
        return;
    if (fl_cuda_enter(state->gpu, &scope, NULL) == FILCH_OK) {
        (void)state->gpu->api->cuStreamDestroy(state->guest);
        (void)fl_cuda_leave(&scope);
    }
    state->guest = NULL;
}

static void cuda_close(fl_device *device, const fl_memory *memory)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_gpu *gpu;

    if (state == NULL)
        return;
    gpu = state->gpu;
    if (state->is_open) {
        guest_close(state);
        fl_cuda_event_close(state);
        fl_cuda_lanes_close(device, memory);
        gpu_shut(gpu, memory);
    }
    fl_mutex_fini(&state->guest_lock);
    fl_free(memory, state, sizeof *state);
    device->state = NULL;
    gpu->users--;
    gpu_release(gpu, memory);
}

static filch_status cuda_enter(fl_device *device, fl_stay *stay, filch_error *error)
{
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(fl_cuda_of(device)->gpu, &scope, error);

    if (status == FILCH_OK)
        *stay = (fl_stay){scope.gpu, scope.before};
    return status;
}

static void cuda_leave(fl_stay *stay)
{
    fl_cuda_scope scope = {stay->what, stay->before};

    (void)fl_cuda_leave(&scope);
}

/* Binds the worker's own thread. filch made the thread: affinity and current context are filch's. A
 * system refusing the affinity leaves a worker merely not near its GPU. */
static filch_status cuda_bind(fl_device *device)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    CUresult result;

    for (size_t i = 0; i < sizeof device->info.affinity / sizeof device->info.affinity[0]; i++) {
        if (device->info.affinity[i] == 0)
            continue;
        (void)sched_setaffinity(0, sizeof device->info.affinity,
                                (const cpu_set_t *)(const void *)device->info.affinity);
        break;
    }
    result = gpu->api->cuCtxSetCurrent(gpu->context);
    /* No call of the thread would reach the device. */
    return result == FL_CUDA_SUCCESS
               ? FILCH_OK
               : fl_cuda_lose(gpu, result, "cuCtxSetCurrent", device->info.name, NULL);
}

/* --- Other GPUs --- */

static bool gpu_reaches(fl_cuda_gpu *gpu, const fl_cuda_gpu *other)
{
    const uint64_t bit = (uint64_t)1 << (other->ordinal % 64);
    fl_cuda_scope scope;
    CUresult result;
    int can = 0;

    if (gpu == other || (gpu->reached & bit) != 0)
        return true;
    if (other->ordinal >= 64 ||
        gpu->api->cuDeviceCanAccessPeer(&can, gpu->device, other->device) != FL_CUDA_SUCCESS ||
        can == 0 || fl_cuda_enter(gpu, &scope, NULL) != FILCH_OK)
        return false;
    result = gpu->api->cuCtxEnablePeerAccess(other->context, 0);
    (void)fl_cuda_leave(&scope);
    if (result == FL_CUDA_SUCCESS)
        gpu->enabled |= bit;
    else if (result != FL_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return false;
    gpu->reached |= bit;
    return true;
}

static void cuda_link(fl_device *device, const fl_device *other)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;

    if (other->backend != device->backend || other->place >= 64 ||
        !gpu_reaches(gpu, fl_cuda_of(other)->gpu) ||
        (other->place != device->place && !fl_cuda_lanes_link(device)))
        return;
    device->peers |= (uint64_t)1 << other->place;
    if (gpu->ordinal < 64)
        fl_cuda_of(other)->gpu->readers |= (uint64_t)1 << gpu->ordinal;
}

/* Disables access from the device's GPU to the other's, if enabled by filch, and forgets the GPU's
 * readers. Called for each device in turn. */
static void cuda_unlink(fl_device *device, const fl_device *other)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_gpu *peer = other->backend == device->backend ? fl_cuda_of(other)->gpu : NULL;
    fl_cuda_scope scope;

    device->peers = 0;
    gpu->readers = 0;
    if (peer == NULL || peer->ordinal >= 64 || (gpu->enabled >> peer->ordinal & 1) == 0 ||
        fl_cuda_enter(gpu, &scope, NULL) != FILCH_OK)
        return;
    (void)gpu->api->cuCtxDisablePeerAccess(peer->context);
    (void)fl_cuda_leave(&scope);
    gpu->enabled &= ~((uint64_t)1 << peer->ordinal);
    gpu->reached &= ~((uint64_t)1 << peer->ordinal);
}

static bool cuda_lost(const fl_device *device, filch_error *error)
{
    return fl_cuda_lost(fl_cuda_of(device)->gpu, device->info.name, error);
}

/* --- Memory --- */

static filch_status cuda_memory_free(const fl_device *device, uint64_t *bytes)
{
    uint64_t total;

    return fl_cuda_memory(fl_cuda_of(device)->gpu, bytes, &total, NULL);
}

static filch_status cuda_memory_take(fl_device *device, size_t bytes, void **block,
                                     filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    CUdeviceptr address = 0;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = gpu->api->cuMemAlloc(&address, bytes);
    (void)fl_cuda_leave(&scope);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_call_fail(device, result, "cuMemAlloc", error);
    *block = (void *)(uintptr_t)address;
    return FILCH_OK;
}

static void cuda_memory_give(fl_device *device, void *block)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_scope scope;

    /* A destroyed context has freed its memory. */
    if (block == NULL || fl_cuda_enter(gpu, &scope, NULL) != FILCH_OK)
        return;
    (void)gpu->api->cuMemFree((CUdeviceptr)(uintptr_t)block);
    (void)fl_cuda_leave(&scope);
}

/* --- Kernels --- */

static uint32_t cuda_target(const fl_device *device)
{
    return fl_cuda_of(device)->gpu->arch;
}

static int cuda_version(const fl_device *device)
{
    return fl_cuda_of(device)->gpu->library->version;
}

/* Puts the driver's compiler messages on a single line; a cubin has none. */
static void log_flatten(char *log)
{
    char *end = log + strnlen(log, JIT_LOG - 1);

    *end = '\0';
    for (char *c = log; c < end; c++) {
        if ((unsigned char)*c < ' ')
            *c = ' ';
    }
    while (end > log && end[-1] == ' ')
        *--end = '\0';
}

static filch_status module_refuse(fl_cuda_gpu *gpu, CUresult result, const char *label,
                                  const char *log, filch_error *error)
{
    filch_status status = fl_cuda_fail(gpu, result, "cuModuleLoadDataEx", NULL, label, error);
    fl_fault fault;

    if (status != FILCH_IMAGE || error == NULL)
        return status;
    fault = (fl_fault){
        .status = status,
        .native_code = result,
        .native_name = NULL,
        .call = "cuModuleLoadDataEx",
        .device = gpu->name,
        .label = label,
    };
    (void)gpu->api->cuGetErrorName(result, &fault.native_name);
    if (result == FL_CUDA_ERROR_NO_BINARY_FOR_GPU)
        return fl_error_fill(error, fault,
                             "%s: the image has no code for %s, compute capability %u.%u", label,
                             gpu->name, gpu->arch / 10, gpu->arch % 10);
    if (log[0] != '\0')
        return fl_error_fill(error, fault, "%s: the image cannot be loaded on %s: %s", label,
                             gpu->name, log);
    return fl_error_fill(error, fault, "%s: the image cannot be loaded on %s (%s)", label,
                         gpu->name, fault.native_name != NULL ? fault.native_name : "unknown");
}

/* Loads an image. The driver does not use bytes: a cubin tells its own size, and PTX ends with a
 * null byte stored after the image. */
static filch_status cuda_module_load(fl_device *device, const void *image, size_t bytes,
                                     const char *label, void **module, filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    char log[JIT_LOG] = "";
    CUjit_option options[] = {FL_CU_JIT_ERROR_LOG_BUFFER, FL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    CUmodule made = NULL;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status;

    if (label == NULL)
        label = "kernel";
    if (image == NULL || bytes == 0)
        return fl_error_fill(error, (fl_fault){.status = FILCH_IMAGE, .label = label},
                             "%s: the image is empty", label);
    status = fl_cuda_enter(gpu, &scope, error);
    if (status != FILCH_OK)
        return status;
    result = gpu->api->cuModuleLoadDataEx(&made, image, sizeof options / sizeof options[0], options,
                                          values);
    (void)fl_cuda_leave(&scope);
    if (result != FL_CUDA_SUCCESS) {
        log_flatten(log);
        return module_refuse(gpu, result, label, log, error);
    }
    *module = made;
    return FILCH_OK;
}

static void cuda_module_unload(fl_device *device, void *module)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_scope scope;

    if (module == NULL || fl_cuda_enter(gpu, &scope, NULL) != FILCH_OK)
        return;
    fl_cuda_lanes_forget(device);
    (void)gpu->api->cuModuleUnload(module);
    (void)fl_cuda_leave(&scope);
}

/* Reads number and size of the parameters; drivers before 12.4 cannot tell. */
static CUresult params_count(const fl_cuda_api *api, CUfunction handle, fl_function *function)
{
    size_t offset = 0;
    size_t bytes = 0;

    function->param_count = UINT32_MAX;
    function->param_bytes = 0;
    if (api->cuFuncGetParamInfo == NULL)
        return FL_CUDA_SUCCESS;
    for (uint32_t i = 0;; i++) {
        CUresult result = api->cuFuncGetParamInfo(handle, i, &offset, &bytes);

        /* INVALID_VALUE marks the index past the last parameter, but may also report another
         * failure. A kernel seemingly with fewer parameters is refused: ask again, as the true end
         * does not move. */
        if (result == FL_CUDA_ERROR_INVALID_VALUE)
            result = api->cuFuncGetParamInfo(handle, i, &offset, &bytes);
        if (result == FL_CUDA_ERROR_INVALID_VALUE) {
            function->param_count = i;
            return FL_CUDA_SUCCESS;
        }
        if (result != FL_CUDA_SUCCESS)
            return result;
        function->param_bytes = offset + bytes;
    }
}

/* Permits all the shared memory a block of the GPU may have beside the kernel's static memory. A
 * launch asks only for its need, and permission costs nothing. */
static CUresult shared_permit(const fl_cuda_gpu *gpu, CUfunction handle, uint32_t *most,
                              const char **call)
{
    int fixed = 0;
    CUresult result =
        gpu->api->cuFuncGetAttribute(&fixed, FL_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle);

    *call = "cuFuncGetAttribute";
    if (result != FL_CUDA_SUCCESS || fixed < 0 || (uint32_t)fixed >= gpu->shared_most)
        return result;
    *call = "cuFuncSetAttribute";
    *most = gpu->shared_most - (uint32_t)fixed;
    return gpu->api->cuFuncSetAttribute(handle, FL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        (int)gpu->shared_most - fixed);
}

static filch_status cuda_function_get(fl_device *device, void *module, const char *entry,
                                      const char *label, fl_function *function, filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    const char *call = "cuModuleGetFunction";
    fl_function made = {0};
    CUfunction handle = NULL;
    int threads = 0;
    int width = 0;
    int arch = 0;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = gpu->api->cuModuleGetFunction(&handle, module, entry);
    if (result == FL_CUDA_SUCCESS) {
        call = "cuFuncGetAttribute";
        result = gpu->api->cuFuncGetAttribute(&threads, FL_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                              handle);
    }
    if (result == FL_CUDA_SUCCESS)
        result = shared_permit(gpu, handle, &made.most_shared, &call);
    if (result == FL_CUDA_SUCCESS) {
        call = "cuFuncGetParamInfo";
        result = params_count(gpu->api, handle, &made);
    }
    if (result == FL_CUDA_SUCCESS && gpu->has_clusters) {
        call = "cuFuncGetAttribute";
        result = gpu->api->cuFuncGetAttribute(&width, FL_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                              handle);
    }
    if (result == FL_CUDA_SUCCESS) {
        call = "cuFuncGetAttribute";
        result = gpu->api->cuFuncGetAttribute(&arch, FL_CU_FUNC_ATTRIBUTE_PTX_VERSION, handle);
    }
    (void)fl_cuda_leave(&scope);
    if (result == FL_CUDA_ERROR_NOT_FOUND)
        return fl_error_fill(error,
                             (fl_fault){.status = FILCH_NOT_FOUND,
                                        .native_code = result,
                                        .native_name = "CUDA_ERROR_NOT_FOUND",
                                        .call = call,
                                        .device = device->info.name,
                                        .label = label},
                             "%s: the image has no kernel called '%s'; is it declared extern \"C\" "
                             "__global__?",
                             label != NULL ? label : "kernel", entry);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, call, device->info.name, label, error);
    made.handle = handle;
    made.most_threads = threads > 0 ? (uint32_t)threads : 0;
    memcpy(made.most_grid, gpu->grid_most, sizeof made.most_grid);
    memcpy(made.most_block, gpu->block_most, sizeof made.most_block);
    made.has_clusters = gpu->has_clusters;
    made.is_clustered = width != 0; /* a kernel sets all three dimensions, or none */
    /* Code for an older architecture has no instruction to wait, whatever the device. */
    made.can_wait = arch >= WAIT_ARCH && gpu->api->cuGraphAddDependencies != NULL;
    *function = made;
    return FILCH_OK;
}

/* --- Streams --- */

filch_status fl_cuda_stream_create(const fl_device *device, CUstream *stream, filch_error *error)
{
    const fl_cuda_device *state = fl_cuda_of(device);
    const fl_cuda_api *api = state->gpu->api;
    CUresult result =
        state->slice != NULL
            ? api->cuGreenCtxStreamCreate(stream, state->slice, FL_CU_STREAM_NON_BLOCKING, 0)
            : api->cuStreamCreate(stream, FL_CU_STREAM_NON_BLOCKING);

    if (result == FL_CUDA_SUCCESS)
        return FILCH_OK;
    *stream = NULL;
    return fl_cuda_fail(state->gpu, result,
                        state->slice != NULL ? "cuGreenCtxStreamCreate" : "cuStreamCreate",
                        device->info.name, NULL, error);
}

static filch_status guest_open(fl_device *device, CUstream *stream, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    filch_status status = FILCH_OK;

    fl_mutex_lock(&state->guest_lock);
    if (state->guest == NULL)
        status = fl_cuda_stream_create(device, &state->guest, error);
    *stream = state->guest;
    fl_mutex_unlock(&state->guest_lock);
    return status;
}

static filch_status cuda_within(fl_device *device, int (*body)(const filch_lane *lane, void *user),
                                void *user, int *code, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_guard guard;
    CUstream stream = NULL;
    filch_status status = fl_cuda_guard_enter(state->gpu, &guard, error);

    if (status != FILCH_OK)
        return status;
    status = guest_open(device, &stream, error);
    if (status == FILCH_OK) {
        const filch_lane lane = {
            .stream = stream,
            .context = state->gpu->context,
            .cuda_device = state->gpu->device,
            .device = device->info.index,
            .lane = device->lanes,
            .lanes = device->lanes,
            .multiprocessors = state->sms,
        };

        *code = body(&lane, user);
    }
    fl_cuda_guard_leave(&guard);
    return status;
}

static const fl_device_ops cuda_device_ops = {
    .enumerate = cuda_enumerate,
    .open = cuda_open,
    .close = cuda_close,
    .bind = cuda_bind,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .memory_free = cuda_memory_free,
    .lost = cuda_lost,
};

static const fl_queue_ops cuda_queue_ops = {
    .launch = fl_cuda_launch,
    .poll = fl_cuda_poll,
    .discard = fl_cuda_discard,
    .began = fl_cuda_began,
    .own = fl_cuda_own,
};

static const fl_lane_ops cuda_lane_ops = {
    .mark = fl_cuda_mark,
    .is_marked = fl_cuda_is_marked,
    .reached = fl_cuda_reached,
    .is_past = fl_cuda_is_past,
    .drain = fl_cuda_drain,
};

static const fl_copy_ops cuda_copy_ops = {
    .start = fl_cuda_copy,
    .link = cuda_link,
    .unlink = cuda_unlink,
    .link_describe = fl_cuda_link_describe,
    .link_measure = fl_cuda_link_measure,
};

static const fl_memory_ops cuda_memory_ops = {
    .take = cuda_memory_take,
    .give = cuda_memory_give,
    .clear = fl_cuda_clear,
    .chunk_granularity = fl_cuda_chunk_granularity,
    .chunk_take = fl_cuda_chunk_take,
    .chunk_give = fl_cuda_chunk_give,
};

static const fl_pool_ops cuda_pool_ops = {
    .open = fl_cuda_pool_open,
    .close = fl_cuda_pool_close,
    .take = fl_cuda_pool_take,
    .give = fl_cuda_pool_give,
    .trim = fl_cuda_pool_trim,
};

static const fl_module_ops cuda_module_ops = {
    .target = cuda_target,
    .version = cuda_version,
    .load = cuda_module_load,
    .unload = cuda_module_unload,
    .function_get = cuda_function_get,
};

static const fl_graph_ops cuda_graph_ops = {
    .create = fl_cuda_graph_new,
    .add = fl_cuda_graph_add,
    .seal = fl_cuda_graph_seal,
    .free = fl_cuda_graph_free,
};

static const fl_trace_ops cuda_trace_ops = {
    .start = fl_cuda_trace_start,
    .stop = fl_cuda_trace_stop,
    .hold = fl_cuda_trace_hold,
};

static const fl_interop_ops cuda_interop_ops = {
    .within = cuda_within,
    .each_lane = fl_cuda_each_lane,
    .event_past = fl_cuda_event_past,
    .event_record = fl_cuda_event_record,
    .check = fl_cuda_memory_check,
    .pin = fl_cuda_memory_pin,
    .unpin = fl_cuda_memory_unpin,
};

const fl_backend fl_cuda_backend = {
    .name = "cuda",
    .kind = FILCH_BACKEND_CUDA,
    .device = &cuda_device_ops,
    .queue = &cuda_queue_ops,
    .lane = &cuda_lane_ops,
    .copy = &cuda_copy_ops,
    .memory = &cuda_memory_ops,
    .pool = &cuda_pool_ops,
    .module = &cuda_module_ops,
    .graph = &cuda_graph_ops,
    .trace = &cuda_trace_ops,
    .interop = &cuda_interop_ops,
    .multicast = &fl_cuda_multicast,
};
