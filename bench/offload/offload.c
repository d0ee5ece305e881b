/* SPDX-License-Identifier: Apache-2.0 */
#include "offload/offload.h"

#include "support/fail.h"
#include "workloads/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A GPU is busy with tiles of 512 and more and at its best from 2048 on; more than 64 tiles along a
 * side make no difference to the balance any more. */
#define SIDE_TILES_MOST 64
#define TILE_FIRST 1024

static void open_gpu(bench_offload *o, const filch_device_info *info)
{
    uint32_t ordinal;
    /* Of a slice too: cuda:0/1. */
    if (!o->gpu.context && (sscanf(info->name, "cuda:%u", &ordinal) != 1 ||
                            bench_gpu_open(&o->gpu, ordinal, NULL) != FILCH_OK))
        return;
    if (!o->has_no_vendor && !o->vendor)
        (void)fl_vendor_open(&o->gpu.library, NULL, &o->vendor);
}

/* Whether no device before shares the place's memory. */
static bool is_first_of_place(filch_runtime *runtime, uint32_t device, uint32_t place)
{
    for (uint32_t d = 0; d < device; d++) {
        filch_device_info info = {.size = sizeof info};
        if (filch_device_at(runtime, d, &info) == FILCH_OK && info.place == place)
            return false;
    }
    return true;
}

void bench_offload_meet(bench_offload *o, filch_runtime *runtime)
{
    uint32_t count = filch_device_count(runtime);
    o->has_gpus = o->has_memories = o->has_others = false;
    o->total_budget = 0;
    for (uint32_t d = 0; d < count; d++) {
        filch_device_info info = {.size = sizeof info};
        if (filch_device_at(runtime, d, &info) != FILCH_OK)
            continue;
        bool is_gpu = info.backend == FILCH_BACKEND_CUDA;
        o->has_gpus |= is_gpu;
        o->has_memories |= info.budget != 0;
        o->total_budget += is_first_of_place(runtime, d, info.place) ? info.budget : 0;
        o->has_others |= !is_gpu;
        if (is_gpu)
            open_gpu(o, &info);
    }
}

filch_status bench_offload_choose(bench_offload *o, const bench_options *options,
                                  filch_error *error)
{
    bool is_beside = bench_options_have_versus(options, bench_peer_cublasxt.name);
    o->memory = options->pageable              ? BENCH_MEMORY_PAGEABLE
                : options->pinned || is_beside ? BENCH_MEMORY_PINNED
                                               : BENCH_MEMORY_LOCKED;
    uint32_t ordinal = bench_gpu_first(options->devices);
    if (o->memory != BENCH_MEMORY_PINNED)
        return FILCH_OK;
    return ordinal == UINT32_MAX
               ? bench_fail(error, FILCH_UNSUPPORTED, is_beside ? "--versus" : "--pinned", 0,
                            "there is no GPU among the devices to lock pages for")
               : bench_gpu_open(&o->gpu, ordinal, error);
}

filch_status bench_offload_alloc(bench_offload *o, size_t bytes, const char *option,
                                 filch_error *error, void **memory)
{
    size_t k = 0;
    while (k < BENCH_OFFLOAD_BLOCKS && o->blocks[k])
        k++;
    if (k < BENCH_OFFLOAD_BLOCKS)
        o->blocks[k] = o->memory == BENCH_MEMORY_PINNED ? bench_gpu_shared_alloc(&o->gpu, bytes)
                                                        : calloc(bytes, 1);
    if (k == BENCH_OFFLOAD_BLOCKS || !o->blocks[k])
        return bench_fail(error, FILCH_OUT_OF_MEMORY, option, 0, "no memory for %zu bytes%s", bytes,
                          o->memory == BENCH_MEMORY_PINNED ? ", page-locked" : "");
    *memory = o->blocks[k];
    return FILCH_OK;
}

filch_status bench_offload_squares(bench_offload *o, size_t n, size_t count, size_t element,
                                   const char *option, filch_error *error, void **memory)
{
    size_t bytes = 0;
    filch_status status = bench_squares_bytes(n, count, element, option, error, &bytes);
    return status == FILCH_OK ? bench_offload_alloc(o, bytes, option, error, memory) : status;
}

void bench_offload_close(bench_offload *o)
{
    for (size_t k = 0; k < BENCH_OFFLOAD_PINS; k++)
        if (o->pinned[k])
            bench_gpu_unpin(&o->gpu, o->pinned[k]);
    for (size_t k = 0; k < BENCH_OFFLOAD_BLOCKS; k++) {
        if (o->memory == BENCH_MEMORY_PINNED)
            bench_gpu_shared_free(&o->gpu, o->blocks[k]);
        else
            free(o->blocks[k]);
    }
    fl_vendor_close(o->vendor);
    bench_gpu_close(&o->gpu);
    *o = (bench_offload){0};
}

void bench_offload_pin(bench_offload *o, void *memory, size_t bytes)
{
    size_t k = 0;
    if (!o->has_gpus || !o->gpu.context || o->memory != BENCH_MEMORY_LOCKED)
        return;
    while (k < BENCH_OFFLOAD_PINS && o->pinned[k] && o->pinned[k] != memory)
        k++;
    if (k < BENCH_OFFLOAD_PINS && !o->pinned[k] && bench_gpu_pin(&o->gpu, memory, bytes))
        o->pinned[k] = memory;
}

void bench_offload_unpin(bench_offload *o, void *memory)
{
    for (size_t k = 0; k < BENCH_OFFLOAD_PINS; k++)
        if (o->pinned[k] == memory && memory) {
            bench_gpu_unpin(&o->gpu, memory);
            o->pinned[k] = NULL;
        }
}

double bench_offload_room(filch_runtime *runtime)
{
    double room = INFINITY;
    for (uint32_t d = 0; d < filch_device_count(runtime); d++) {
        filch_device_info info = {.size = sizeof info};
        if (filch_device_at(runtime, d, &info) == FILCH_OK && info.budget != 0)
            room = fmin(room, (double)info.budget);
    }
    return room;
}

uint32_t bench_offload_alike(filch_runtime *runtime)
{
    uint32_t count = filch_device_count(runtime);
    double score = 0;
    for (uint32_t d = 0; d < count; d++) {
        filch_device_info info = {.size = sizeof info};
        if (filch_device_at(runtime, d, &info) != FILCH_OK)
            return 0;
        score = d == 0 ? info.score : score;
        if (info.place == 0 || (info.features & FILCH_DEVICE_SLICE) != 0 || info.score != score)
            return 0;
    }
    return count > 1 ? count : 0;
}

bool bench_offload_enqueue(const bench_offload *o, filch_enqueue_fn enqueue, filch_cuda_desc *desc)
{
    if (!o->vendor)
        return false;
    desc->enqueue = enqueue;
    desc->open = fl_vendor_lane_open;
    desc->close = fl_vendor_lane_close;
    desc->user = o->vendor;
    return true;
}

static int open_copy(const filch_lane *lane, void *user, void **state)
{
    (void)lane;
    *state = user;
    return 0;
}

static int enqueue_copy(const filch_call *call, const filch_lane *lane, void *state)
{
    const bench_offload *o = state;
    const filch_view *from = &call->views[0];
    const filch_view *to = &call->views[1];
    const CUDA_MEMCPY2D copy = {.srcMemoryType = FL_CU_MEMORYTYPE_DEVICE,
                                .srcDevice = (CUdeviceptr)(uintptr_t)from->ptr,
                                .srcPitch = from->ld * from->element,
                                .dstMemoryType = FL_CU_MEMORYTYPE_DEVICE,
                                .dstDevice = (CUdeviceptr)(uintptr_t)to->ptr,
                                .dstPitch = to->ld * to->element,
                                .WidthInBytes = to->rows * to->element,
                                .Height = to->cols};
    return -bench_gpu_api(&o->gpu)->cuMemcpy2DAsync(&copy, lane->stream);
}

void bench_offload_copy(bench_offload *o, filch_cuda_desc *desc)
{
    desc->enqueue = enqueue_copy;
    desc->open = open_copy;
    desc->user = o;
}

int bench_offload_copy_on_host(const filch_call *call)
{
    return bench_offload_copy_views(&call->views[0], &call->views[1]);
}

int bench_offload_copy_views(const filch_view *from, const filch_view *to)
{
    for (uint64_t j = 0; j < to->cols; j++)
        memcpy((char *)to->ptr + j * to->ld * to->element,
               (const char *)from->ptr + j * from->ld * from->element, to->rows * to->element);
    return 0;
}

const char *bench_offload_text(const bench_offload *o, char *text, size_t size)
{
    if (!o->has_gpus)
        snprintf(text, size, "%s", "");
    else if (o->vendor)
        snprintf(text, size, ", %s", fl_vendor_text(o->vendor));
    else
        snprintf(text, size, ", filch's kernels");
    return text;
}

void bench_offload_explain(const void *state, filch_error *error)
{
    (void)state;
    (void)fl_vendor_explain(error->native_code, error);
}

double bench_offload_vendor_s(const bench_offload *o)
{
    return o->vendor ? fl_vendor_seconds(o->vendor) : 0;
}

size_t bench_offload_tiles(size_t n, size_t *tiles, size_t capacity)
{
    static const size_t candidates[] = {256, 384, 512, 768, 1024, 1280, 1536, 2048, 3072, 4096};
    size_t count = 0;
    for (size_t k = 0; k < sizeof candidates / sizeof *candidates && count < capacity; k++)
        if (candidates[k] * 2 <= n && candidates[k] * SIDE_TILES_MOST >= n)
            tiles[count++] = candidates[k];
    return count;
}

size_t bench_offload_tile(size_t n)
{
    size_t tile = TILE_FIRST;
    while (tile * SIDE_TILES_MOST < n)
        tile *= 2;
    return tile < n ? tile : n;
}
