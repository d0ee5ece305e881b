/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of a GPU's memory: what a block costs to take and to give back, beside the driver's own
 * allocations in the same run, and how much of what is mapped is lost to fragments. Where there is
 * no GPU the arena cuts addresses that nobody may touch: its own cost is the same. */
#define _GNU_SOURCE
#include "micro/micro.h"
#include "offload/gpu.h"

#include "base/clock.h"
#include "device/pool.h"
#include "memory/alloc/node.h"
#include "memory/alloc/source.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)
#define PAIRS 200000
#define SLOW_PAIRS 2000
#define DRIVER_PAIRS 20000
#define PLAIN_PAIRS 20
/* The fragments: so many operations at so many bytes live, of sizes log-uniform between these. */
#define OPERATIONS 1000000
#define LIVE ((uint64_t)1100 * 1000 * 1000)
#define SMALLEST 256.0
#define LOG2_RANGE 15.0 /* to 8 MiB */
#define BLOCKS 100000

typedef struct bed {
    fl_core core;
    fl_pool pool; /* of cuda:0, where there is one */
    fl_device imagined;
    fl_places places;
    uint32_t place;
    bench_gpu gpu;
    bool has_gpu, is_open;
    int self; /* stands for a worker */
} bed;

/* --- Addresses in place of a GPU's memory --- */

static filch_status imagined_granularity(const fl_device *device, size_t *bytes, filch_error *error)
{
    (void)device;
    (void)error;
    *bytes = 2 * MIB;
    return FILCH_OK;
}

static filch_status imagined_chunk(fl_device *device, size_t bytes, void **chunk,
                                   filch_error *error)
{
    size_t step = 2 * MIB;
    char *at =
        mmap(NULL, bytes + step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)device;
    if (at == MAP_FAILED)
        return fl_error_fill(error, (fl_fault){.status = FILCH_NO_DEVICE_MEMORY}, "no addresses");
    size_t skip = (step - (uintptr_t)at % step) % step;
    if (skip > 0)
        (void)munmap(at, skip);
    (void)munmap(at + skip + bytes, step - skip);
    *chunk = at + skip;
    return FILCH_OK;
}

static void imagined_chunk_end(fl_device *device, void *chunk, size_t bytes)
{
    (void)device;
    (void)munmap(chunk, bytes);
}

static filch_status imagined_block(fl_device *device, size_t bytes, void **block,
                                   filch_error *error)
{
    (void)device;
    (void)bytes;
    (void)block;
    return fl_error_fill(error, (fl_fault){.status = FILCH_UNSUPPORTED}, "chunks only");
}

static bool imagined_past(const fl_device *device, fl_marker marker)
{
    (void)device;
    return marker != 0;
}

static filch_status imagined_reached(fl_device *device, fl_marker marker, filch_error *error)
{
    (void)device;
    (void)marker;
    (void)error;
    return FILCH_OK;
}

static const fl_lane_ops imagined_lane_ops = {
    .reached = imagined_reached,
    .is_past = imagined_past,
};

static const fl_memory_ops imagined_memory_ops = {
    .take = imagined_block,
    .chunk_granularity = imagined_granularity,
    .chunk_take = imagined_chunk,
    .chunk_give = imagined_chunk_end,
};

static const fl_backend imagined = {
    .name = "imagined",
    .lane = &imagined_lane_ops,
    .memory = &imagined_memory_ops,
};

/* --- The bed --- */

static filch_status open_devices(bed *b, fl_device **devices, size_t *count, uint32_t *places)
{
    filch_error error = FILCH_ERROR_INIT;
    const fl_discovery how = {
        .memory = &b->core.memory, .error = &error, .settings = &b->core.settings};
    b->has_gpu = bench_gpu_count(&error) > 0;
    if (b->has_gpu) {
        filch_status status = fl_pool_open(&b->pool, "cuda:0", &how);
        if (status != FILCH_OK)
            return status;
        *devices = b->pool.devices;
        *count = b->pool.count;
        *places = b->pool.place_count;
        b->place = b->pool.devices[0].place;
        return bench_gpu_open(&b->gpu, 0, &error);
    }
    b->imagined.backend = &imagined;
    b->imagined.place = b->place = 1;
    b->imagined.info.budget = UINT64_C(1) << 40;
    (void)strcpy(b->imagined.info.name, "imagined");
    *devices = &b->imagined;
    *count = 1;
    *places = 2;
    return FILCH_OK;
}

static filch_status open_bed(bed *b)
{
    fl_device *devices = NULL;
    size_t count = 0;
    uint32_t places = 0;
    *b = (bed){0};
    b->core.memory = fl_memory_default();
    filch_status status = fl_settings_read(&b->core.settings, NULL, NULL);
    if (status == FILCH_OK)
        status = fl_tss_init(&b->core.worker);
    if (status != FILCH_OK)
        return status;
    status = open_devices(b, &devices, &count, &places);
    if (status == FILCH_OK)
        status = fl_places_init(&b->places, &b->core, devices, count, places, NULL);
    b->is_open = status == FILCH_OK;
    if (status == FILCH_OK)
        status = fl_tss_set(b->core.worker, &b->self);
    return status;
}

static void close_bed(bed *b)
{
    (void)fl_tss_set(b->core.worker, NULL);
    if (b->is_open)
        fl_places_fini(&b->places);
    bench_gpu_close(&b->gpu);
    if (b->has_gpu)
        fl_pool_close(&b->pool, &b->core.memory);
    fl_tss_fini(b->core.worker);
}

/* --- One block, over and over --- */

static int time_pairs(bed *b, size_t bytes, double *ns)
{
    int failed = 0;
    uint64_t start = fl_time_now();
    for (int i = 0; i < PAIRS && !failed; i++) {
        void *block;
        failed = fl_place_take(&b->places, b->place, bytes, &block, NULL) != FILCH_OK;
        if (!failed)
            fl_place_give(&b->places, b->place, block, bytes, 0);
    }
    *ns = (double)(fl_time_now() - start) / PAIRS;
    return failed;
}

/* The same from the heap behind the buckets. */
static int time_heap(bed *b, size_t bytes, double *ns)
{
    fl_heap *heap = &b->places.at[b->place].heap;
    int failed = 0;
    uint64_t start = fl_time_now();
    for (int i = 0; i < SLOW_PAIRS && !failed; i++) {
        void *block;
        failed = fl_heap_take(heap, fl_block_round(bytes), &block, NULL) != FILCH_OK;
        if (!failed)
            fl_heap_give(heap, block, fl_block_round(bytes));
    }
    *ns = (double)(fl_time_now() - start) / SLOW_PAIRS;
    return failed;
}

/* --- The driver --- */

typedef CUresult (*alloc_async_fn)(CUdeviceptr *block, size_t bytes, CUstream stream);

/* On a stream of its own, from the device's default pool, as a program would call it. */
static int time_async(const bed *b, size_t bytes, double *ns)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    alloc_async_fn alloc = NULL;
    CUstream stream = NULL;
    void *found = dlsym(b->gpu.library.handle, "cuMemAllocAsync");
    memcpy(&alloc, &found, sizeof alloc);
    if (!alloc || bench_gpu_enter(&b->gpu, NULL) != FILCH_OK)
        return 1;
    CUresult result = api->cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING);
    uint64_t start = fl_time_now();
    for (int i = 0; i < DRIVER_PAIRS && result == FL_CUDA_SUCCESS; i++) {
        CUdeviceptr block = 0;
        result = alloc(&block, bytes, stream);
        if (result == FL_CUDA_SUCCESS)
            result = api->cuMemFreeAsync(block, stream);
    }
    *ns = (double)(fl_time_now() - start) / DRIVER_PAIRS;
    if (stream) {
        (void)api->cuStreamSynchronize(stream);
        (void)api->cuStreamDestroy(stream);
    }
    bench_gpu_leave(&b->gpu);
    return result != FL_CUDA_SUCCESS;
}

static int time_plain(const bed *b, size_t bytes, double *ns)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    CUresult result = FL_CUDA_SUCCESS;
    if (bench_gpu_enter(&b->gpu, NULL) != FILCH_OK)
        return 1;
    uint64_t start = fl_time_now();
    for (int i = 0; i < PLAIN_PAIRS && result == FL_CUDA_SUCCESS; i++) {
        CUdeviceptr block = 0;
        result = api->cuMemAlloc(&block, bytes);
        if (result == FL_CUDA_SUCCESS)
            result = api->cuMemFree(block);
    }
    *ns = (double)(fl_time_now() - start) / PLAIN_PAIRS;
    bench_gpu_leave(&b->gpu);
    return result != FL_CUDA_SUCCESS;
}

/* --- Fragments --- */

typedef struct piece {
    void *ptr;
    size_t bytes;
} piece;

/* SplitMix64, as in tests/random.h: the same sizes in every run. */
static uint64_t next_number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Takes until LIVE bytes are live, then gives one back at random and so on: part of what is mapped
 * at most that is not requested at most, and ns an operation. */
static int fragment(bed *b, double *lost, double *ns)
{
    piece *pieces = calloc(BLOCKS, sizeof *pieces);
    uint64_t state = 1, live = 0;
    size_t count = 0;
    int failed = !pieces;
    fl_place_trim(&b->places, b->place, 0);
    fl_place *place = &b->places.at[b->place];
    uint64_t start = fl_time_now(), peak = 0, mapped = 0;
    for (int i = 0; i < OPERATIONS && !failed; i++) {
        if (live < LIVE) {
            double part = (double)(next_number(&state) >> 11) * 0x1p-53;
            size_t bytes = (size_t)(SMALLEST * exp2(LOG2_RANGE * part));
            failed = count == BLOCKS || fl_place_take(&b->places, b->place, bytes,
                                                      &pieces[count].ptr, NULL) != FILCH_OK;
            if (failed)
                break;
            pieces[count++].bytes = bytes;
            live += bytes;
            peak = live > peak ? live : peak;
            mapped = place->heap.mapped > mapped ? place->heap.mapped : mapped;
        } else {
            size_t at = (size_t)(next_number(&state) % count);
            fl_place_give(&b->places, b->place, pieces[at].ptr, pieces[at].bytes, 0);
            live -= pieces[at].bytes;
            pieces[at] = pieces[--count];
        }
    }
    *ns = (double)(fl_time_now() - start) / OPERATIONS;
    *lost = mapped != 0 ? 100 * (1 - (double)peak / (double)mapped) : 0;
    while (count-- != 0)
        fl_place_give(&b->places, b->place, pieces[count].ptr, pieces[count].bytes, 0);
    fl_place_trim(&b->places, b->place, 0);
    free(pieces);
    return failed;
}

/* --- The figures --- */

static const struct {
    const char *hand, *heap, *async, *ratio, *plain;
    size_t bytes;
} sizes[] = {
    {"take+give at hand, 4 KiB", "take+give from the heap, 4 KiB",
     "cuMemAllocAsync+cuMemFreeAsync, 4 KiB", "those over take+give at hand, 4 KiB",
     "cuMemAlloc+cuMemFree, 4 KiB", 4096},
    {"take+give at hand, 2 MiB", "take+give from the heap, 2 MiB",
     "cuMemAllocAsync+cuMemFreeAsync, 2 MiB", "those over take+give at hand, 2 MiB",
     "cuMemAlloc+cuMemFree, 2 MiB", 2 * MIB},
    {"take+give at hand, 8 MiB", "take+give from the heap, 8 MiB",
     "cuMemAllocAsync+cuMemFreeAsync, 8 MiB", "those over take+give at hand, 8 MiB",
     "cuMemAlloc+cuMemFree, 8 MiB", 8 * MIB},
};

static int measure_size(bed *b, FILE *out, micro_list *list, size_t k)
{
    double hand[MICRO_ROUNDS], heap[MICRO_ROUNDS], async[MICRO_ROUNDS], plain[MICRO_ROUNDS];
    int failed = 0;
    /* One round more than is kept: the first warms up. */
    for (int r = -1; r < MICRO_ROUNDS && !failed; r++) {
        int kept = r < 0 ? 0 : r;
        failed =
            time_pairs(b, sizes[k].bytes, &hand[kept]) || time_heap(b, sizes[k].bytes, &heap[kept]);
        if (!failed && b->has_gpu)
            failed = time_async(b, sizes[k].bytes, &async[kept]) ||
                     time_plain(b, sizes[k].bytes, &plain[kept]);
    }
    if (failed)
        return 1;
    double at_hand = micro_median(hand);
    micro_report(out, list, sizes[k].hand, at_hand, "ns");
    micro_report(out, list, sizes[k].heap, micro_median(heap), "ns");
    if (b->has_gpu) {
        double driver = micro_median(async);
        micro_report(out, list, sizes[k].async, driver, "ns");
        micro_report(out, list, sizes[k].ratio, driver / at_hand, "x");
        micro_report(out, list, sizes[k].plain, micro_median(plain), "ns");
    }
    return 0;
}

int micro_arena(FILE *out, micro_list *list)
{
    bed b;
    double lost = 0, ns = 0;
    int failed = open_bed(&b) != FILCH_OK;
    if (!failed && out)
        fprintf(out, "arena: %s, of %s\n", fl_arena_name(b.places.at[b.place].heap.kind),
                b.has_gpu ? "cuda:0" : "addresses alone, as there is no GPU");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes && !failed; k++)
        failed = measure_size(&b, out, list, k);
    failed = failed || fragment(&b, &lost, &ns);
    if (!failed) {
        micro_report(out, list, "take or give, 256 B to 8 MiB at random", ns, "ns");
        micro_report(out, list, "mapped and lost to fragments, 1.1 GB live", lost, "%");
    }
    close_bed(&b);
    return failed;
}
