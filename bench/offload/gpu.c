/* SPDX-License-Identifier: Apache-2.0 */
#include "offload/gpu.h"

#include "support/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const bench_gpu *gpu, CUresult result)
{
    const char *name = NULL;
    if (bench_gpu_api(gpu)->cuGetErrorName(result, &name) != FL_CUDA_SUCCESS || !name)
        name = "an unknown error";
    return name;
}

/* After bench_fail(). */
static filch_status add_native(const bench_gpu *gpu, CUresult result, filch_status status,
                               filch_error *error)
{
    if (error) {
        error->native_code = result;
        snprintf(error->native_name, sizeof error->native_name, "%s", name_of(gpu, result));
    }
    return status;
}

filch_status bench_gpu_check(const bench_gpu *gpu, CUresult result, const char *call,
                             filch_error *error)
{
    if (result == FL_CUDA_SUCCESS)
        return FILCH_OK;
    filch_status status =
        bench_fail(error, FILCH_BACKEND, call, 0, "the driver answered %s", name_of(gpu, result));
    return add_native(gpu, result, status, error);
}

filch_status bench_gpu_open(bench_gpu *gpu, uint32_t ordinal, filch_error *error)
{
    *gpu = (bench_gpu){0};
    filch_status status = fl_cuda_load(&gpu->library, error);
    if (status != FILCH_OK)
        return status;
    const fl_cuda_api *api = bench_gpu_api(gpu);
    if (ordinal >= gpu->library.count)
        status = bench_fail(error, FILCH_UNKNOWN_ORDINAL, "cuda", 0,
                            "there %s %u GPU%s, no cuda:%u", gpu->library.count == 1 ? "is" : "are",
                            gpu->library.count, gpu->library.count == 1 ? "" : "s", ordinal);
    if (status == FILCH_OK)
        status = bench_gpu_check(gpu, api->cuDeviceGet(&gpu->device, (int)ordinal), "cuDeviceGet",
                                 error);
    if (status == FILCH_OK)
        status = bench_gpu_check(gpu, api->cuDevicePrimaryCtxRetain(&gpu->context, gpu->device),
                                 "cuDevicePrimaryCtxRetain", error);
    if (status != FILCH_OK) {
        fl_cuda_unload(&gpu->library);
        *gpu = (bench_gpu){0};
    }
    return status;
}

void bench_gpu_close(bench_gpu *gpu)
{
    if (!gpu->context)
        return;
    (void)bench_gpu_api(gpu)->cuDevicePrimaryCtxRelease(gpu->device);
    fl_cuda_unload(&gpu->library);
    *gpu = (bench_gpu){0};
}

uint32_t bench_gpu_first(const char *devices)
{
    const char *spec = devices ? devices : getenv("FILCH_DEVICES"); /* NOLINT: no other thread */
    spec = spec && *spec ? spec : "cuda";
    for (const char *at = spec; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        uint32_t ordinal = 0;
        if (strncmp(at, "cuda", 4) == 0) {
            (void)sscanf(at, "cuda:%u", &ordinal);
            return ordinal;
        }
    }
    return UINT32_MAX;
}

uint32_t bench_gpu_count(filch_error *error)
{
    fl_cuda_library library;
    if (fl_cuda_load(&library, error) != FILCH_OK)
        return 0;
    uint32_t count = library.count;
    if (count == 0)
        (void)bench_fail(error, FILCH_NO_DEVICE, "cuda", 0, "the driver shows no GPU");
    fl_cuda_unload(&library);
    return count;
}

bool bench_gpu_is_among(const char *devices)
{
    return bench_gpu_first(devices) != UINT32_MAX && bench_gpu_count(NULL) > 0;
}

filch_status bench_gpu_enter(const bench_gpu *gpu, filch_error *error)
{
    return bench_gpu_check(gpu, bench_gpu_api(gpu)->cuCtxPushCurrent(gpu->context),
                           "cuCtxPushCurrent", error);
}

void bench_gpu_leave(const bench_gpu *gpu)
{
    CUcontext popped;
    (void)bench_gpu_api(gpu)->cuCtxPopCurrent(&popped);
}

filch_status bench_gpu_stream(const bench_gpu *gpu, CUstream *stream, filch_error *error)
{
    return bench_gpu_check(gpu,
                           bench_gpu_api(gpu)->cuStreamCreate(stream, FL_CU_STREAM_NON_BLOCKING),
                           "cuStreamCreate", error);
}

filch_status bench_gpu_wait(const bench_gpu *gpu, CUstream stream, filch_error *error)
{
    return bench_gpu_check(gpu, bench_gpu_api(gpu)->cuStreamSynchronize(stream),
                           "cuStreamSynchronize", error);
}

filch_status bench_gpu_alloc(const bench_gpu *gpu, CUdeviceptr *block, size_t bytes,
                             filch_error *error)
{
    CUresult result = bench_gpu_api(gpu)->cuMemAlloc(block, bytes);
    if (result != FL_CUDA_ERROR_OUT_OF_MEMORY)
        return bench_gpu_check(gpu, result, "cuMemAlloc", error);
    filch_status status = bench_fail(error, FILCH_NO_DEVICE_MEMORY, "cuMemAlloc", 0,
                                     "the GPU has no room for %zu bytes", bytes);
    return add_native(gpu, result, status, error);
}

void bench_gpu_free(const bench_gpu *gpu, CUdeviceptr *block)
{
    if (*block)
        (void)bench_gpu_api(gpu)->cuMemFree(*block);
    *block = 0;
}

void bench_gpu_stream_free(const bench_gpu *gpu, CUstream *stream)
{
    if (*stream)
        (void)bench_gpu_api(gpu)->cuStreamDestroy(*stream);
    *stream = NULL;
}

filch_status bench_gpu_send(const bench_gpu *gpu, CUdeviceptr to, const void *from, size_t bytes,
                            CUstream stream, filch_error *error)
{
    return bench_gpu_check(gpu, bench_gpu_api(gpu)->cuMemcpyHtoDAsync(to, from, bytes, stream),
                           "cuMemcpyHtoDAsync", error);
}

filch_status bench_gpu_fetch(const bench_gpu *gpu, void *to, CUdeviceptr from, size_t bytes,
                             CUstream stream, filch_error *error)
{
    return bench_gpu_check(gpu, bench_gpu_api(gpu)->cuMemcpyDtoHAsync(to, from, bytes, stream),
                           "cuMemcpyDtoHAsync", error);
}

filch_status bench_gpu_copy(const bench_gpu *gpu, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                            CUstream stream, filch_error *error)
{
    return bench_gpu_check(gpu, bench_gpu_api(gpu)->cuMemcpyDtoDAsync(to, from, bytes, stream),
                           "cuMemcpyDtoDAsync", error);
}

bool bench_gpu_pin(const bench_gpu *gpu, void *memory, size_t bytes)
{
    if (bench_gpu_enter(gpu, NULL) != FILCH_OK)
        return false;
    CUresult result = bench_gpu_api(gpu)->cuMemHostRegister(
        memory, bytes, FL_CU_MEMHOSTREGISTER_PORTABLE | FL_CU_MEMHOSTREGISTER_DEVICEMAP);
    bench_gpu_leave(gpu);
    return result == FL_CUDA_SUCCESS;
}

void bench_gpu_unpin(const bench_gpu *gpu, void *memory)
{
    if (bench_gpu_enter(gpu, NULL) != FILCH_OK)
        return;
    (void)bench_gpu_api(gpu)->cuMemHostUnregister(memory);
    bench_gpu_leave(gpu);
}

void *bench_gpu_shared_alloc(const bench_gpu *gpu, size_t bytes)
{
    void *memory = NULL;
    if (bench_gpu_enter(gpu, NULL) != FILCH_OK)
        return NULL;
    CUresult result = bench_gpu_api(gpu)->cuMemHostAlloc(
        &memory, bytes, FL_CU_MEMHOSTALLOC_PORTABLE | FL_CU_MEMHOSTALLOC_DEVICEMAP);
    bench_gpu_leave(gpu);
    if (result != FL_CUDA_SUCCESS)
        return NULL;
    memset(memory, 0, bytes);
    return memory;
}

void bench_gpu_shared_free(const bench_gpu *gpu, void *memory)
{
    if (!memory || bench_gpu_enter(gpu, NULL) != FILCH_OK)
        return;
    (void)bench_gpu_api(gpu)->cuMemFreeHost(memory);
    bench_gpu_leave(gpu);
}
