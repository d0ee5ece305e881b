/* SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include <stdlib.h>

#include "fail.h"
#include "gpu.h"

/* Large enough for the copy to last far longer than its start, on any link. */
#define COPY_BYTES ((size_t)64 << 20)
#define COPIES 4

/* One GPU with memory to copy, a stream and two events of its context. */
typedef struct end {
    bench_gpu gpu;
    CUdeviceptr block;
    CUstream stream;
    CUevent events[2];
} end;

static filch_status end_open(end *e, uint32_t ordinal, bool measure, filch_error *error)
{
    filch_status status = bench_gpu_open(&e->gpu, ordinal, error);
    if (status != FILCH_OK || !measure)
        return status;
    const fl_cuda_api *api = bench_gpu_api(&e->gpu);
    status = bench_gpu_enter(&e->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = bench_gpu_check(&e->gpu, api->cuMemAlloc(&e->block, COPY_BYTES), "cuMemAlloc", error);
    if (status == FILCH_OK)
        status =
            bench_gpu_check(&e->gpu, api->cuStreamCreate(&e->stream, FL_CU_STREAM_NON_BLOCKING),
                            "cuStreamCreate", error);
    if (status == FILCH_OK)
        status = bench_gpu_check(&e->gpu, api->cuMemsetD8Async(e->block, 0, COPY_BYTES, e->stream),
                                 "cuMemsetD8Async", error);
    for (int i = 0; i < 2 && status == FILCH_OK; i++)
        status =
            bench_gpu_check(&e->gpu, api->cuEventCreate(&e->events[i], 0), "cuEventCreate", error);
    if (status == FILCH_OK) /* others read the block on their own streams */
        status = bench_gpu_check(&e->gpu, api->cuStreamSynchronize(e->stream),
                                 "cuStreamSynchronize", error);
    bench_gpu_leave(&e->gpu);
    return status;
}

static void end_close(end *e)
{
    if (e->gpu.context && bench_gpu_enter(&e->gpu, NULL) == FILCH_OK) {
        const fl_cuda_api *api = bench_gpu_api(&e->gpu);
        for (int i = 0; i < 2; i++)
            if (e->events[i])
                (void)api->cuEventDestroy(e->events[i]);
        if (e->stream)
            (void)api->cuStreamDestroy(e->stream);
        if (e->block)
            (void)api->cuMemFree(e->block);
        bench_gpu_leave(&e->gpu);
    }
    bench_gpu_close(&e->gpu);
}

/* Queues one copy on from's stream, or on to's where from is the host. */
static CUresult copy(const end *from, const end *to, void *pinned)
{
    if (!from)
        return bench_gpu_api(&to->gpu)->cuMemcpyHtoDAsync(to->block, pinned, COPY_BYTES,
                                                          to->stream);
    const fl_cuda_api *api = bench_gpu_api(&from->gpu);
    return to ? api->cuMemcpyPeerAsync(to->block, to->gpu.context, from->block, from->gpu.context,
                                       COPY_BYTES, from->stream)
              : api->cuMemcpyDtoHAsync(pinned, from->block, COPY_BYTES, from->stream);
}

static filch_status measure_copies(const end *from, const end *to, void *pinned, double *rate,
                                   filch_error *error)
{
    const end *owner = from ? from : to;
    const fl_cuda_api *api = bench_gpu_api(&owner->gpu);
    float ms = 0;
    filch_status status = bench_gpu_enter(&owner->gpu, error);
    if (status != FILCH_OK)
        return status;
    CUresult result = copy(from, to, pinned); /* the first one maps and wakes things up */
    if (result == FL_CUDA_SUCCESS)
        result = api->cuEventRecord(owner->events[0], owner->stream);
    for (int i = 0; i < COPIES && result == FL_CUDA_SUCCESS; i++)
        result = copy(from, to, pinned);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuEventRecord(owner->events[1], owner->stream);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuEventSynchronize(owner->events[1]);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuEventElapsedTime(&ms, owner->events[0], owner->events[1]);
    bench_gpu_leave(&owner->gpu);
    *rate = ms > 0 ? (double)COPY_BYTES * COPIES / ((double)ms * 1e-3) : 0;
    return bench_gpu_check(&owner->gpu, result, "a copy", error);
}

/* Copies between GPUs go through the host until access is on. */
static void let_reach(const end *from, const end *to)
{
    if (bench_gpu_enter(&from->gpu, NULL) == FILCH_OK) {
        (void)bench_gpu_api(&from->gpu)->cuCtxEnablePeerAccess(to->gpu.context, 0);
        bench_gpu_leave(&from->gpu);
    }
}

static filch_status read_pair(const end *from, const end *to, bench_link *link, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&from->gpu);
    int access = 0;
    filch_status status = bench_gpu_check(
        &from->gpu, api->cuDeviceCanAccessPeer(&access, from->gpu.device, to->gpu.device),
        "cuDeviceCanAccessPeer", error);
    if (status == FILCH_OK)
        status = bench_gpu_check(
            &from->gpu,
            api->cuDeviceGetP2PAttribute(&link->rank, FL_CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK,
                                         from->gpu.device, to->gpu.device),
            "cuDeviceGetP2PAttribute", error);
    link->has_access = access != 0;
    return status;
}

static filch_status read_all(const uint32_t *ordinals, const end *ends, size_t count, void *pinned,
                             bench_link *links, size_t *link_count, filch_error *error)
{
    filch_status status = FILCH_OK;
    bench_link *at = links;
    for (size_t i = 0; i < count && pinned && status == FILCH_OK; i++) {
        *at = (bench_link){BENCH_LINK_HOST, ordinals[i], true, 0, 0};
        status = measure_copies(NULL, &ends[i], pinned, &at++->rate, error);
        *at = (bench_link){ordinals[i], BENCH_LINK_HOST, true, 0, 0};
        if (status == FILCH_OK)
            status = measure_copies(&ends[i], NULL, pinned, &at++->rate, error);
    }
    for (size_t k = 0; k < count * count && status == FILCH_OK; k++) {
        const end *from = &ends[k / count], *to = &ends[k % count];
        if (from == to)
            continue;
        *at = (bench_link){.from = ordinals[k / count], .to = ordinals[k % count]};
        status = read_pair(from, to, at, error);
        if (status == FILCH_OK && pinned) {
            if (at->has_access)
                let_reach(from, to);
            status = measure_copies(from, to, pinned, &at->rate, error);
        }
        at++;
    }
    *link_count = (size_t)(at - links);
    return status;
}

filch_status bench_links_read(const uint32_t *ordinals, size_t count, bool measure,
                              bench_link **links, size_t *link_count, filch_error *error)
{
    end *ends = calloc(count + 1, sizeof *ends);
    bench_link *made = calloc(count * (count + 1) + 1, sizeof *made);
    void *pinned = NULL;
    filch_status status = FILCH_OK;
    *links = NULL;
    *link_count = 0;
    if (!ends || !made)
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "devices", 0, "no memory for the links");
    for (size_t i = 0; i < count && status == FILCH_OK; i++)
        status = end_open(&ends[i], ordinals[i], measure, error);
    if (status == FILCH_OK && measure && count > 0) {
        pinned = bench_gpu_shared_alloc(&ends[0].gpu, COPY_BYTES);
        if (!pinned)
            status = bench_fail(error, FILCH_OUT_OF_MEMORY, "devices", 0,
                                "no page-locked memory to copy from");
    }
    if (status == FILCH_OK)
        status = read_all(ordinals, ends, count, pinned, made, link_count, error);
    if (pinned)
        bench_gpu_shared_free(&ends[0].gpu, pinned);
    for (size_t i = 0; ends && i < count; i++)
        end_close(&ends[i]);
    free(ends);
    if (status == FILCH_OK)
        *links = made;
    else
        free(made);
    return status;
}
