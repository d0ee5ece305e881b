/* SPDX-License-Identifier: Apache-2.0 */
/* What tiles move at, between the host and a GPU and from GPU to GPU: by tasks that do nothing but
 * name them, beside the driver's own copies back to back from page-locked memory. */
#include "micro/micro.h"
#include "offload/gpu.h"
#include "support/fail.h"
#include "support/timing.h"

#include "filch/filch.h"

#include <stdlib.h>
#include <string.h>

/* Small tiles are moved in numbers that make this up, as far as that is sensible. */
#define ENOUGH ((size_t)64 << 20)
#define TILES_MOST 256
#define DEVICES 2

enum memory { PINNED, PAGEABLE, MEMORIES };
enum direction { TO_GPU, FROM_GPU, DIRECTIONS };

typedef struct bed {
    filch_runtime *runtime;
    filch_codelet *codelet;
    bench_gpu gpu; /* cuda:0 */
    bench_gpu other;
    CUstream stream;
    CUdeviceptr device;
    CUdeviceptr beside; /* on the other */
    void *host[MEMORIES];
    size_t bytes; /* of each block */
    uint32_t gpus;
} bed;

static size_t tiles_of(size_t tile)
{
    size_t tiles = ENOUGH / tile;
    return tiles < 1 ? 1 : tiles > TILES_MOST ? TILES_MOST : tiles;
}

static int enqueue_nothing(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)call;
    (void)lane;
    (void)state;
    return 0;
}

/* --- The driver's copies --- */

static CUresult raw_one(const bed *b, enum memory memory, enum direction direction, size_t at,
                        size_t bytes)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    char *host = (char *)b->host[memory] + at;
    return direction == TO_GPU ? api->cuMemcpyHtoDAsync(b->device + at, host, bytes, b->stream)
                               : api->cuMemcpyDtoHAsync(host, b->device + at, bytes, b->stream);
}

static filch_status raw_round(const bed *b, enum memory memory, enum direction direction,
                              size_t tile, double *rate, filch_error *error)
{
    size_t tiles = tiles_of(tile);
    filch_status status = bench_gpu_enter(&b->gpu, error);
    if (status != FILCH_OK)
        return status;
    double begin = bench_now_s();
    for (size_t k = 0; k < tiles && status == FILCH_OK; k++)
        status = bench_gpu_check(&b->gpu, raw_one(b, memory, direction, k * tile, tile), "a copy",
                                 error);
    if (status == FILCH_OK)
        status = bench_gpu_wait(&b->gpu, b->stream, error);
    *rate = (double)(tiles * tile) / (bench_now_s() - begin) * 1e-9;
    bench_gpu_leave(&b->gpu);
    return status;
}

static filch_status raw_peer_round(const bed *b, size_t tile, double *rate, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpu);
    size_t tiles = tiles_of(tile);
    filch_status status = bench_gpu_enter(&b->gpu, error);
    if (status != FILCH_OK)
        return status;
    double begin = bench_now_s();
    for (size_t k = 0; k < tiles && status == FILCH_OK; k++)
        status = bench_gpu_check(&b->gpu,
                                 api->cuMemcpyPeerAsync(b->beside + k * tile, b->other.context,
                                                        b->device + k * tile, b->gpu.context, tile,
                                                        b->stream),
                                 "cuMemcpyPeerAsync", error);
    if (status == FILCH_OK)
        status = bench_gpu_wait(&b->gpu, b->stream, error);
    *rate = (double)(tiles * tile) / (bench_now_s() - begin) * 1e-9;
    bench_gpu_leave(&b->gpu);
    return status;
}

/* --- By tasks --- */

/* A task a tile. */
typedef struct errand {
    filch_data *data;
    filch_graph *graph;
    filch_graph *back; /* of a peer copy: overwrites the tiles on the first GPU */
} errand;

static filch_status errand_graph(const bed *b, const errand *e, size_t tiles,
                                 filch_access_mode mode, uint32_t affinity, filch_graph **graph)
{
    filch_status status = filch_graph_create(b->runtime, NULL, graph);
    for (size_t k = 0; k < tiles && status == FILCH_OK; k++) {
        const filch_access access = {.data = e->data, .row = (uint32_t)k, .mode = mode};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = b->codelet;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.affinity = affinity;
        status = filch_graph_add(*graph, &desc, NULL);
    }
    return status == FILCH_OK ? filch_graph_seal(*graph) : status;
}

static void errand_end(errand *e)
{
    if (e->graph)
        (void)filch_graph_destroy(e->graph);
    if (e->back)
        (void)filch_graph_destroy(e->back);
    if (e->data)
        (void)filch_data_destroy(e->data);
}

static filch_status errand_data(const bed *b, errand *e, void *memory, size_t tile, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = memory;
    desc.element = 1;
    desc.rows = tiles_of(tile) * tile;
    desc.tile_rows = tile;
    desc.label = "tiles";
    desc.flags = flags;
    return filch_data_create(b->runtime, &desc, &e->data);
}

static filch_status run_graph(filch_graph *graph, double *seconds, uint64_t *moved)
{
    filch_device_stats stats[DEVICES] = {{0}};
    filch_job_info info = {.size = sizeof info};
    filch_job *job = NULL;
    double begin = bench_now_s();
    filch_status status = filch_graph_submit(graph, NULL, &job);
    if (status != FILCH_OK)
        return status;
    status = filch_job_wait(job, -1);
    *seconds = bench_now_s() - begin;
    if (status == FILCH_OK)
        status = filch_job_stats(job, &info, stats, DEVICES);
    *moved = 0;
    for (size_t d = 0; d < DEVICES && status == FILCH_OK; d++)
        *moved += stats[d].bytes_in + stats[d].bytes_out + stats[d].bytes_peer;
    (void)filch_job_release(job);
    return status;
}

/* A rate of what was not moved would be worthless. */
static filch_status errand_round(const errand *e, size_t tile, double *rate, filch_error *error)
{
    size_t bytes = tiles_of(tile) * tile;
    double seconds;
    uint64_t moved;
    filch_status status = e->back ? run_graph(e->back, &seconds, &moved) : FILCH_OK;
    if (status == FILCH_OK)
        status = run_graph(e->graph, &seconds, &moved);
    if (status != FILCH_OK)
        return status;
    *rate = (double)bytes / seconds * 1e-9;
    if (moved < bytes) /* twice as many through the host */
        return bench_fail(error, FILCH_DATA, "copy", 0, "%llu bytes were moved, not %zu",
                          (unsigned long long)moved, bytes);
    return FILCH_OK;
}

/* --- Measuring --- */

/* The driver's round and filch's by turns; the first of each warms up. */
typedef struct contest {
    double raw[MICRO_ROUNDS];
    double ours[MICRO_ROUNDS];
} contest;

static filch_status contest_host(const bed *b, enum memory memory, enum direction direction,
                                 size_t tile, contest *c, filch_error *error)
{
    errand e = {0};
    filch_status status = errand_data(b, &e, b->host[memory], tile, 0);
    if (status == FILCH_OK)
        status = errand_graph(b, &e, tiles_of(tile), direction == TO_GPU ? FILCH_READ : FILCH_WRITE,
                              1, &e.graph);
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) {
        status = raw_round(b, memory, direction, tile, &c->raw[r < 0 ? 0 : r], error);
        if (status == FILCH_OK)
            status = errand_round(&e, tile, &c->ours[r < 0 ? 0 : r], error);
    }
    errand_end(&e);
    return status;
}

static filch_status contest_peer(const bed *b, size_t tile, contest *c, filch_error *error)
{
    errand e = {0};
    filch_status status = errand_data(b, &e, b->host[PINNED], tile, FILCH_DATA_MANAGED);
    if (status == FILCH_OK)
        status = errand_graph(b, &e, tiles_of(tile), FILCH_WRITE, 1, &e.back);
    if (status == FILCH_OK)
        status = errand_graph(b, &e, tiles_of(tile), FILCH_READ, 2, &e.graph);
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) {
        status = raw_peer_round(b, tile, &c->raw[r < 0 ? 0 : r], error);
        if (status == FILCH_OK)
            status = errand_round(&e, tile, &c->ours[r < 0 ? 0 : r], error);
    }
    errand_end(&e);
    return status;
}

static void size_text(size_t bytes, char *text, size_t size)
{
    if (bytes >= (size_t)1 << 20)
        snprintf(text, size, "%zu MiB", bytes >> 20);
    else
        snprintf(text, size, "%zu KiB", bytes >> 10);
}

/* The ratio is to the driver's rate from page-locked memory. */
static void report(FILE *out, micro_list *list, size_t tile, const char *way, contest *c,
                   double pinned)
{
    char size[32], name[MICRO_NAME];
    size_text(tile, size, sizeof size);
    snprintf(name, sizeof name, "%s %s, driver", size, way);
    micro_report(out, list, name, micro_median(c->raw), "GB/s");
    snprintf(name, sizeof name, "%s %s, filch", size, way);
    micro_report(out, list, name, micro_median(c->ours), "GB/s");
    snprintf(name, sizeof name, "%s %s, filch over pinned driver", size, way);
    micro_report(out, list, name, micro_median(c->ours) / pinned, "");
}

static filch_status measure_size(const bed *b, size_t tile, FILE *out, micro_list *list,
                                 filch_error *error)
{
    static const char *const ways[MEMORIES][DIRECTIONS] = {
        [PINNED] = {"to GPU, pinned", "from GPU, pinned"},
        [PAGEABLE] = {"to GPU, pageable", "from GPU, pageable"}};
    filch_status status = FILCH_OK;
    contest c;
    for (int d = 0; d < DIRECTIONS && status == FILCH_OK; d++) {
        double pinned = 0;
        for (int m = 0; m < MEMORIES && status == FILCH_OK; m++) {
            status = contest_host(b, (enum memory)m, (enum direction)d, tile, &c, error);
            if (status != FILCH_OK)
                break;
            pinned = m == PINNED ? micro_median(c.raw) : pinned;
            report(out, list, tile, ways[m][d], &c, pinned);
        }
    }
    if (status != FILCH_OK || b->gpus < 2)
        return status;
    status = contest_peer(b, tile, &c, error);
    if (status == FILCH_OK)
        report(out, list, tile, "from GPU to GPU", &c, micro_median(c.raw));
    return status;
}

/* --- The bed --- */

static filch_status take(const bench_gpu *gpu, CUdeviceptr *block, size_t bytes, filch_error *error)
{
    filch_status status = bench_gpu_enter(gpu, error);
    if (status != FILCH_OK)
        return status;
    status = bench_gpu_alloc(gpu, block, bytes, error);
    bench_gpu_leave(gpu);
    return status;
}

static void give(const bench_gpu *gpu, CUdeviceptr *block, CUstream *stream)
{
    if (!gpu->context || bench_gpu_enter(gpu, NULL) != FILCH_OK)
        return;
    bench_gpu_free(gpu, block);
    bench_gpu_stream_free(gpu, stream);
    bench_gpu_leave(gpu);
}

static void close_bed(bed *b)
{
    if (b->runtime)
        (void)filch_runtime_abort(b->runtime);
    give(&b->gpu, &b->device, &b->stream);
    give(&b->other, &b->beside, &(CUstream){NULL});
    if (b->gpu.context)
        bench_gpu_shared_free(&b->gpu, b->host[PINNED]);
    free(b->host[PAGEABLE]);
    bench_gpu_close(&b->other);
    bench_gpu_close(&b->gpu);
}

static filch_status open_raw(bed *b, filch_error *error)
{
    filch_status status = bench_gpu_open(&b->gpu, 0, error);
    if (status == FILCH_OK && b->gpus > 1)
        status = bench_gpu_open(&b->other, 1, error);
    if (status == FILCH_OK)
        status = take(&b->gpu, &b->device, b->bytes, error);
    if (status == FILCH_OK && b->gpus > 1)
        status = take(&b->other, &b->beside, b->bytes, error);
    if (status == FILCH_OK)
        status = bench_gpu_enter(&b->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = bench_gpu_stream(&b->gpu, &b->stream, error);
    bench_gpu_leave(&b->gpu);
    b->host[PINNED] = bench_gpu_shared_alloc(&b->gpu, b->bytes);
    b->host[PAGEABLE] = malloc(b->bytes);
    if (status == FILCH_OK && (!b->host[PINNED] || !b->host[PAGEABLE]))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "copy", 0, "no memory to copy");
    if (b->host[PAGEABLE])
        memset(b->host[PAGEABLE], 1, b->bytes); /* pages that are there */
    return status;
}

/* With the static policy tasks run where their affinity says. filch lets the GPUs reach each other,
 * which the driver's copies profit from, too. */
static filch_status open_bed(bed *b, size_t bytes, filch_error *error)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    *b = (bed){.bytes = bytes, .gpus = bench_gpu_count(error)};
    if (b->gpus == 0)
        return FILCH_NO_DEVICE;
    config.devices = b->gpus > 1 ? "cuda:0,cuda:1" : "cuda:0";
    config.policy = FILCH_POLICY_STATIC;
    filch_status status = filch_runtime_create(&config, error, &b->runtime);
    codelet.name = "nothing";
    codelet.cuda = &cuda;
    cuda.enqueue = enqueue_nothing;
    if (status == FILCH_OK)
        status = filch_codelet_create(b->runtime, &codelet, &b->codelet);
    return status == FILCH_OK ? open_raw(b, error) : status;
}

int micro_copy_upto(FILE *out, micro_list *list, size_t largest)
{
    filch_error error = FILCH_ERROR_INIT;
    bed b;
    size_t bytes = largest * tiles_of(largest);
    filch_status status = open_bed(&b, bytes, &error);
    bool is_absent = b.gpus == 0;
    for (size_t tile = (size_t)64 << 10; tile <= largest && status == FILCH_OK; tile *= 4)
        status = measure_size(&b, tile, out, list, &error);
    if (status != FILCH_OK && error.status == FILCH_OK && b.runtime)
        (void)filch_runtime_error(b.runtime, &error);
    close_bed(&b);
    if (status == FILCH_OK)
        return 0;
    fprintf(stderr, "filch-bench micro: copy: %s\n",
            error.text[0] ? error.text : filch_status_message(status));
    return is_absent ? MICRO_ABSENT : 1;
}

int micro_copy(FILE *out, micro_list *list)
{
    return micro_copy_upto(out, list, (size_t)256 << 20);
}
