/* SPDX-License-Identifier: Apache-2.0 */
/* What one GPU has reaches the others at: by filch_data_broadcast, beside the driver's plain copies
 * from that GPU to all the others at once. */
#include "micro/micro.h"
#include "offload/gpu.h"
#include "support/fail.h"
#include "support/timing.h"

#include "filch/filch.h"

#include <stdlib.h>

#define GPUS_MOST 8u

typedef struct bed {
    filch_runtime *runtime;
    filch_codelet *codelet;
    bench_gpu gpus[GPUS_MOST];
    CUstream streams[GPUS_MOST]; /* a receiver's copies are on its own, as filch's are */
    CUdeviceptr blocks[GPUS_MOST];
    uint32_t count;
    size_t bytes; /* of each block */
} bed;

static int enqueue_nothing(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)call;
    (void)lane;
    (void)state;
    return 0;
}

/* --- Plain copies --- */

static filch_status on_gpu(const bed *b, uint32_t gpu, size_t bytes, bool waits, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&b->gpus[gpu]);
    filch_status status = bench_gpu_enter(&b->gpus[gpu], error);
    if (status != FILCH_OK)
        return status;
    status = waits ? bench_gpu_wait(&b->gpus[gpu], b->streams[gpu], error)
                   : bench_gpu_check(&b->gpus[gpu],
                                     api->cuMemcpyPeerAsync(b->blocks[gpu], b->gpus[gpu].context,
                                                            b->blocks[0], b->gpus[0].context, bytes,
                                                            b->streams[gpu]),
                                     "cuMemcpyPeerAsync", error);
    bench_gpu_leave(&b->gpus[gpu]);
    return status;
}

static filch_status raw_round(const bed *b, size_t bytes, double *seconds, filch_error *error)
{
    filch_status status = FILCH_OK;
    double begin = bench_now_s();
    for (uint32_t k = 1; k < b->count && status == FILCH_OK; k++)
        status = on_gpu(b, k, bytes, false, error);
    for (uint32_t k = 1; k < b->count && status == FILCH_OK; k++)
        status = on_gpu(b, k, bytes, true, error);
    *seconds = bench_now_s() - begin;
    return status;
}

/* --- Broadcasts --- */

/* What only the first GPU has. */
typedef struct load {
    filch_data *data;
    filch_graph *graph; /* overwrites it there */
    size_t bytes;
} load;

static filch_status load_make(const bed *b, size_t bytes, load *l)
{
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    *l = (load){.bytes = bytes};
    data.element = 1;
    data.rows = bytes;
    data.label = "load";
    data.flags = FILCH_DATA_NO_BUFFER;
    filch_status status = filch_data_create(b->runtime, &data, &l->data);
    const filch_access access = {.data = l->data, .mode = FILCH_WRITE};
    task.codelet = b->codelet;
    task.accesses = &access;
    task.access_count = 1;
    task.affinity = 1;
    if (status == FILCH_OK)
        status = filch_graph_create(b->runtime, NULL, &l->graph);
    return status == FILCH_OK ? filch_graph_add(l->graph, &task, NULL) : status;
}

static void load_end(load *l)
{
    if (l->graph)
        (void)filch_graph_destroy(l->graph);
    if (l->data)
        (void)filch_data_destroy(l->data);
}

static filch_status finish(filch_job *job, uint64_t *moved, filch_error *error)
{
    filch_job_info info = {.size = sizeof info};
    filch_status status = filch_job_wait(job, -1);
    if (status == FILCH_OK)
        status = filch_job_stats(job, &info, NULL, 0);
    else
        (void)filch_job_error(job, error);
    *moved = info.bytes;
    (void)filch_job_release(job);
    return status;
}

static filch_status our_round(const bed *b, const load *l, filch_broadcast_way way, double *seconds,
                              filch_error *error)
{
    filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
    filch_job *job = NULL;
    uint64_t moved = 0;
    filch_status status = filch_graph_submit(l->graph, NULL, &job);
    if (status == FILCH_OK)
        status = finish(job, &moved, error);
    if (status != FILCH_OK)
        return status;
    how.way = way;
    double begin = bench_now_s();
    status = filch_data_broadcast(l->data, &how, NULL, &job);
    if (status == FILCH_OK)
        status = finish(job, &moved, error);
    *seconds = bench_now_s() - begin;
    /* A rate of what was not moved would be worthless; more is moved through the host. */
    uint64_t least = (b->count - 1) * (uint64_t)l->bytes;
    if (status == FILCH_OK && moved < least)
        return bench_fail(error, FILCH_DATA, "broadcast", 0, "%llu bytes were moved, not %llu",
                          (unsigned long long)moved, (unsigned long long)least);
    return status;
}

/* --- Measuring --- */

enum { PLAIN, CHOSEN, CHAIN, TREE, DIRECT, WAYS };

static filch_status measure_size(const bed *b, size_t bytes, FILE *out, micro_list *list,
                                 filch_error *error)
{
    static const char *const names[WAYS] = {"driver's copies from one", "filch", "filch, chain",
                                            "filch, tree", "filch, direct"};
    static const filch_broadcast_way ways[WAYS] = {
        [CHOSEN] = FILCH_BROADCAST_DEFAULT,
        [CHAIN] = FILCH_BROADCAST_CHAIN,
        [TREE] = FILCH_BROADCAST_TREE,
        [DIRECT] = FILCH_BROADCAST_DIRECT,
    };
    double seconds[WAYS][MICRO_ROUNDS], medians[WAYS];
    char name[MICRO_NAME];
    load l;
    filch_status status = load_make(b, bytes, &l);
    /* By turns; the first round of each warms up. */
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) {
        size_t at = r < 0 ? 0 : (size_t)r;
        status = raw_round(b, bytes, &seconds[PLAIN][at], error);
        for (int w = CHOSEN; w < WAYS && status == FILCH_OK; w++)
            status = our_round(b, &l, ways[w], &seconds[w][at], error);
    }
    for (int w = PLAIN; w < WAYS && status == FILCH_OK; w++) {
        medians[w] = micro_median(seconds[w]);
        snprintf(name, sizeof name, "%zu KiB to %u GPUs, %s", bytes >> 10, b->count - 1, names[w]);
        micro_report(out, list, name, (double)bytes * (b->count - 1) / medians[w] * 1e-9, "GB/s");
    }
    if (status == FILCH_OK) {
        snprintf(name, sizeof name, "%zu KiB to %u GPUs, filch over the driver's", bytes >> 10,
                 b->count - 1);
        micro_report(out, list, name, medians[PLAIN] / medians[CHOSEN], "");
    }
    load_end(&l);
    return status;
}

/* --- The bed --- */

static filch_status open_gpu(bed *b, uint32_t k, filch_error *error)
{
    const fl_cuda_api *api;
    filch_status status = bench_gpu_open(&b->gpus[k], k, error);
    if (status == FILCH_OK)
        status = bench_gpu_enter(&b->gpus[k], error);
    if (status != FILCH_OK)
        return status;
    api = bench_gpu_api(&b->gpus[k]);
    status = bench_gpu_alloc(&b->gpus[k], &b->blocks[k], b->bytes, error);
    if (status == FILCH_OK)
        status = bench_gpu_stream(&b->gpus[k], &b->streams[k], error);
    /* Memory that nobody wrote may copy faster than it should. */
    if (status == FILCH_OK)
        status = bench_gpu_check(&b->gpus[k],
                                 api->cuMemsetD8Async(b->blocks[k], 1, b->bytes, b->streams[k]),
                                 "cuMemsetD8Async", error);
    if (status == FILCH_OK)
        status = bench_gpu_wait(&b->gpus[k], b->streams[k], error);
    bench_gpu_leave(&b->gpus[k]);
    return status;
}

static void close_gpu(bed *b, uint32_t k)
{
    if (b->gpus[k].context && bench_gpu_enter(&b->gpus[k], NULL) == FILCH_OK) {
        bench_gpu_stream_free(&b->gpus[k], &b->streams[k]);
        bench_gpu_free(&b->gpus[k], &b->blocks[k]);
        bench_gpu_leave(&b->gpus[k]);
    }
    bench_gpu_close(&b->gpus[k]);
}

static void close_bed(bed *b)
{
    if (b->runtime)
        (void)filch_runtime_abort(b->runtime);
    for (uint32_t k = 0; k < b->count; k++)
        close_gpu(b, k);
}

/* filch lets the GPUs reach each other, which the driver's copies profit from, too. */
static filch_status open_bed(bed *b, filch_error *error)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_status status = FILCH_OK;
    for (uint32_t k = 0; k < b->count && status == FILCH_OK; k++)
        status = open_gpu(b, k, error);
    config.devices = "cuda";
    config.policy = FILCH_POLICY_STATIC; /* tasks run where their affinity says */
    if (status == FILCH_OK)
        status = filch_runtime_create(&config, error, &b->runtime);
    codelet.name = "nothing";
    codelet.cuda = &cuda;
    cuda.enqueue = enqueue_nothing;
    return status == FILCH_OK ? filch_codelet_create(b->runtime, &codelet, &b->codelet) : status;
}

int micro_broadcast_upto(FILE *out, micro_list *list, size_t largest)
{
    filch_error error = FILCH_ERROR_INIT;
    bed b = {.bytes = largest, .count = bench_gpu_count(&error)};
    if (b.count < 2 || b.count > GPUS_MOST) {
        fprintf(stderr, "filch-bench micro: broadcast: %s\n",
                b.count == 0   ? error.text
                : b.count == 1 ? "there is one GPU only"
                               : "there are more than 8 GPUs");
        return MICRO_ABSENT;
    }
    filch_status status = open_bed(&b, &error);
    for (size_t bytes = (size_t)64 << 10; bytes <= largest && status == FILCH_OK; bytes *= 4)
        status = measure_size(&b, bytes, out, list, &error);
    if (status != FILCH_OK && error.status == FILCH_OK && b.runtime)
        (void)filch_runtime_error(b.runtime, &error);
    close_bed(&b);
    if (status == FILCH_OK)
        return 0;
    fprintf(stderr, "filch-bench micro: broadcast: %s\n",
            error.text[0] ? error.text : filch_status_message(status));
    return 1;
}

int micro_broadcast(FILE *out, micro_list *list)
{
    return micro_broadcast_upto(out, list, (size_t)1 << 30);
}
