/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/links.h"

#include "backend/cuda/device.h"

/* Copy size: the copy lasts far longer than its start, on any link. */
#define COPY_BYTES ((size_t)64 << 20)
#define COPIES 4

static fl_cuda_gpu *gpu_of(const fl_device *device)
{
    return fl_cuda_of(device)->gpu;
}

filch_status fl_cuda_link_describe(const fl_device *device, const fl_device *other,
                                   filch_link *link, filch_error *error)
{
    fl_cuda_gpu *gpu = gpu_of(device);
    const char *call = "cuDeviceCanAccessPeer";
    int access = 1;
    int atomics = 0;
    int rank = 0;
    CUresult result = FL_CUDA_SUCCESS;

    if (other != NULL) {
        const CUdevice from = gpu->device, to = gpu_of(other)->device;

        result = gpu->api->cuDeviceCanAccessPeer(&access, from, to);
        if (result == FL_CUDA_SUCCESS) {
            call = "cuDeviceGetP2PAttribute";
            result = gpu->api->cuDeviceGetP2PAttribute(
                &rank, FL_CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, from, to);
        }
        if (result == FL_CUDA_SUCCESS)
            result = gpu->api->cuDeviceGetP2PAttribute(
                &atomics, FL_CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to);
    }
    /* Do not mark a GPU lost: the calls ask about a pair of GPUs and use no context. The caller may
     * have another GPU's context current, and the failure may be that GPU's. */
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail_api(gpu->api, result, call, device->info.name, NULL, error);
    link->has_access = access != 0;
    link->has_atomics = atomics != 0;
    link->rank = rank;
    return FILCH_OK;
}

/* --- Measuring --- */

/* Buffers of a measurement; stream and events belong to the copying GPU. */
typedef struct trial {
    fl_cuda_gpu *gpu, *other; /* other: null for the host */
    bool is_inward;           /* from the host to gpu */
    CUdeviceptr here, there;
    void *pinned;
    CUstream stream;
    CUevent start, stop;
    const char *call; /* the last call; for errors */
} trial;

static CUresult copy(trial *t)
{
    const fl_cuda_api *api = t->gpu->api;

    t->call = t->other != NULL ? "cuMemcpyPeerAsync"
              : t->is_inward   ? "cuMemcpyHtoDAsync"
                               : "cuMemcpyDtoHAsync";
    return t->other != NULL ? api->cuMemcpyPeerAsync(t->there, t->other->context, t->here,
                                                     t->gpu->context, COPY_BYTES, t->stream)
           : t->is_inward   ? api->cuMemcpyHtoDAsync(t->here, t->pinned, COPY_BYTES, t->stream)
                            : api->cuMemcpyDtoHAsync(t->pinned, t->here, COPY_BYTES, t->stream);
}

/* Allocates on the other GPU, with its context current. */
static CUresult take_there(trial *t)
{
    t->call = "cuMemAlloc";
    return t->other->api->cuMemAlloc(&t->there, COPY_BYTES);
}

/* Allocates the remaining resources, with gpu's context current, and writes the memory: memory
 * never written may have no pages behind and copy too fast. */
static CUresult take_here(trial *t)
{
    const fl_cuda_api *api = t->gpu->api;
    CUresult result = api->cuMemAlloc(&t->here, COPY_BYTES);

    t->call = "cuMemAlloc";
    if (result == FL_CUDA_SUCCESS && t->other == NULL) {
        t->call = "cuMemHostAlloc";
        result = api->cuMemHostAlloc(&t->pinned, COPY_BYTES, FL_CU_MEMHOSTALLOC_PORTABLE);
    }
    if (result == FL_CUDA_SUCCESS) {
        t->call = "cuStreamCreate";
        result = api->cuStreamCreate(&t->stream, FL_CU_STREAM_NON_BLOCKING);
    }
    if (result == FL_CUDA_SUCCESS) {
        t->call = "cuEventCreate";
        result = api->cuEventCreate(&t->start, 0);
    }
    if (result == FL_CUDA_SUCCESS)
        result = api->cuEventCreate(&t->stop, 0);
    if (result == FL_CUDA_SUCCESS) {
        t->call = "cuMemsetD8Async";
        result = api->cuMemsetD8Async(t->here, 0, COPY_BYTES, t->stream);
    }
    if (result == FL_CUDA_SUCCESS && t->pinned != NULL && t->is_inward) {
        t->call = "cuMemcpyDtoHAsync";
        result = api->cuMemcpyDtoHAsync(t->pinned, t->here, COPY_BYTES, t->stream);
    }
    return result;
}

static void give_here(trial *t)
{
    const fl_cuda_api *api = t->gpu->api;

    if (t->stream != NULL) {
        (void)api->cuStreamSynchronize(t->stream); /* after a failure copies may be in flight */
        (void)api->cuStreamDestroy(t->stream);
    }
    if (t->start != NULL)
        (void)api->cuEventDestroy(t->start);
    if (t->stop != NULL)
        (void)api->cuEventDestroy(t->stop);
    if (t->pinned != NULL)
        (void)api->cuMemFreeHost(t->pinned);
    if (t->here != 0)
        (void)api->cuMemFree(t->here);
}

/* Times the copies after an untimed first copy, which maps memory and wakes the link. */
static CUresult run(trial *t, float *ms)
{
    const fl_cuda_api *api = t->gpu->api;
    CUresult result = copy(t);

    if (result == FL_CUDA_SUCCESS) {
        t->call = "cuEventRecord";
        result = api->cuEventRecord(t->start, t->stream);
    }
    for (int i = 0; i < COPIES && result == FL_CUDA_SUCCESS; i++)
        result = copy(t);
    if (result == FL_CUDA_SUCCESS) {
        t->call = "cuEventRecord";
        result = api->cuEventRecord(t->stop, t->stream);
    }
    if (result == FL_CUDA_SUCCESS) {
        t->call = "cuEventSynchronize";
        result = api->cuEventSynchronize(t->stop);
    }
    if (result == FL_CUDA_SUCCESS) {
        t->call = "cuEventElapsedTime";
        result = api->cuEventElapsedTime(ms, t->start, t->stop);
    }
    return result;
}

static filch_status trial_run(trial *t, const char *device, float *ms, filch_error *error)
{
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(t->gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = take_here(t);
    if (result == FL_CUDA_SUCCESS)
        result = run(t, ms);
    give_here(t);
    (void)fl_cuda_leave(&scope);
    return result == FL_CUDA_SUCCESS ? FILCH_OK
                                     : fl_cuda_fail(t->gpu, result, t->call, device, NULL, error);
}

filch_status fl_cuda_link_measure(const fl_device *from, const fl_device *to, double *rate,
                                  filch_error *error)
{
    const fl_device *owner = from != NULL ? from : to;
    trial t = {
        .gpu = gpu_of(owner),
        .other = from != NULL && to != NULL ? gpu_of(to) : NULL,
        .is_inward = from == NULL,
    };
    fl_cuda_scope scope;
    float ms = 0;
    CUresult result = FL_CUDA_SUCCESS;
    filch_status status = FILCH_OK;

    if (t.other != NULL) {
        status = fl_cuda_enter(t.other, &scope, error);
        if (status != FILCH_OK)
            return status;
        result = take_there(&t);
        (void)fl_cuda_leave(&scope);
        if (result != FL_CUDA_SUCCESS)
            return fl_cuda_fail(t.other, result, t.call, to->info.name, NULL, error);
    }
    status = trial_run(&t, owner->info.name, &ms, error);
    if (t.there != 0 && fl_cuda_enter(t.other, &scope, NULL) == FILCH_OK) {
        (void)t.other->api->cuMemFree(t.there);
        (void)fl_cuda_leave(&scope);
    }
    if (status == FILCH_OK)
        *rate = ms > 0 ? (double)COPY_BYTES * COPIES / ((double)ms * 1e-3) : 0;
    return status;
}
