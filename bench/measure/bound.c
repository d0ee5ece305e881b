/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/bound.h"

#include "offload/gpu.h"
#include "support/fail.h"
#include "support/stats.h"
#include "support/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Least number of measured runs of a device's kernels; one more before them brings in the data. */
#define PROBES 5
/* Of the copies in each direction at once. */
#define DUPLEX_BYTES ((size_t)64 << 20)
#define DUPLEX_ROUNDS 4

/* --- The devices alone --- */

/* Median of `count` runs. */
static filch_status time_alone(bench_session *alone, size_t count, double *median,
                               filch_error *error)
{
    double *seconds = calloc(count, sizeof *seconds);
    bench_stats stats;
    if (!seconds)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "bound", 0, "no memory");
    filch_status status = bench_session_run(alone, &seconds[0], error);
    for (size_t k = 0; k < count && status == FILCH_OK; k++)
        status = bench_session_run(alone, &seconds[k], error);
    if (status == FILCH_OK && !bench_stats_of(seconds, count, &stats))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "bound", 0, "no memory");
    *median = status == FILCH_OK ? stats.median : INFINITY;
    free(seconds);
    return status;
}

/* The median of as many runs as were measured, so the bound has the same clocks: a GPU at its power
 * limit is slower than one that has rested, and lowers its clocks for some tenths of a second now
 * and then. */
static filch_status speed_of(const bench_session *session, const bench_session_config *config,
                             uint32_t index, size_t repeat, double *speed, filch_error *error)
{
    bench_session alone;
    bench_problem problem;
    double median = INFINITY;
    filch_status status = bench_session_open_alone(session, config, index, &alone, error);
    if (status != FILCH_OK)
        return status;
    status = time_alone(&alone, repeat < PROBES ? PROBES : repeat, &median, error);
    session->workload->describe(session->state, &problem);
    *speed += status == FILCH_OK && median > 0 ? problem.work / median : 0;
    bench_session_close(&alone);
    return status;
}

/* Slices of a GPU run at once and are measured one after the other: they share what they share. */
static filch_status measure_speed(const bench_session *session, const bench_session_config *config,
                                  size_t repeat, bench_bound_result *bound, filch_error *error)
{
    bench_session_config unlimited = *config;
    filch_status status = FILCH_OK;
    unlimited.memory_limit = 0;
    session->workload->probe(session->state, true);
    for (uint32_t d = 0; d < session->devices && status == FILCH_OK; d++)
        status = speed_of(session, &unlimited, d, repeat, &bound->speed, error);
    session->workload->probe(session->state, false);
    return status;
}

/* --- The links --- */

/* One GPU of the run, copying both ways. */
typedef struct duplex {
    bench_gpu gpu;
    CUstream streams[2];
    CUdeviceptr device[2];
    void *host[2];
} duplex;

static void duplex_close(duplex *d)
{
    if (!d->gpu.context)
        return;
    if (bench_gpu_enter(&d->gpu, NULL) == FILCH_OK) {
        for (size_t k = 0; k < 2; k++) {
            bench_gpu_stream_free(&d->gpu, &d->streams[k]);
            bench_gpu_free(&d->gpu, &d->device[k]);
        }
        bench_gpu_leave(&d->gpu);
    }
    for (size_t k = 0; k < 2; k++)
        bench_gpu_shared_free(&d->gpu, d->host[k]);
    bench_gpu_close(&d->gpu);
}

static filch_status duplex_open(duplex *d, uint32_t ordinal, filch_error *error)
{
    filch_status status = bench_gpu_open(&d->gpu, ordinal, error);
    if (status == FILCH_OK)
        status = bench_gpu_enter(&d->gpu, error);
    if (status != FILCH_OK)
        return status;
    for (size_t k = 0; k < 2 && status == FILCH_OK; k++) {
        status = bench_gpu_stream(&d->gpu, &d->streams[k], error);
        if (status == FILCH_OK)
            status = bench_gpu_alloc(&d->gpu, &d->device[k], DUPLEX_BYTES, error);
        if (status == FILCH_OK && !(d->host[k] = bench_gpu_shared_alloc(&d->gpu, DUPLEX_BYTES)))
            status = bench_fail(error, FILCH_OUT_OF_MEMORY, "links", 0, "no page-locked memory");
    }
    bench_gpu_leave(&d->gpu);
    return status;
}

static filch_status duplex_issue(duplex *d, size_t rounds, filch_error *error)
{
    filch_status status = bench_gpu_enter(&d->gpu, error);
    if (status != FILCH_OK)
        return status;
    for (size_t k = 0; k < rounds && status == FILCH_OK; k++) {
        status =
            bench_gpu_send(&d->gpu, d->device[0], d->host[0], DUPLEX_BYTES, d->streams[0], error);
        if (status == FILCH_OK)
            status = bench_gpu_fetch(&d->gpu, d->host[1], d->device[1], DUPLEX_BYTES, d->streams[1],
                                     error);
    }
    bench_gpu_leave(&d->gpu);
    return status;
}

static filch_status duplex_wait(duplex *d, filch_error *error)
{
    filch_status status = bench_gpu_enter(&d->gpu, error);
    if (status != FILCH_OK)
        return status;
    for (size_t k = 0; k < 2 && status == FILCH_OK; k++)
        status = bench_gpu_wait(&d->gpu, d->streams[k], error);
    bench_gpu_leave(&d->gpu);
    return status;
}

/* All GPUs at once, both ways at once: a stream of chunks does no less. */
static filch_status duplex_time(duplex *links, size_t count, size_t rounds, double *seconds,
                                filch_error *error)
{
    filch_status status = FILCH_OK;
    double begin = bench_now_s();
    for (size_t k = 0; k < count && status == FILCH_OK; k++)
        status = duplex_issue(&links[k], rounds, error);
    for (size_t k = 0; k < count && status == FILCH_OK; k++)
        status = duplex_wait(&links[k], error);
    *seconds = bench_now_s() - begin;
    return status;
}

static filch_status measure_duplex(const bench_session *session, bench_bound_result *bound,
                                   filch_error *error)
{
    unsigned ordinals[BENCH_PEER_GPUS];
    unsigned count = bench_session_gpus(session, ordinals);
    duplex *links = calloc(count, sizeof *links);
    filch_status status = FILCH_OK;
    double seconds = 0;
    if (!links)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "links", 0, "no memory");
    for (unsigned k = 0; k < count && status == FILCH_OK; k++)
        status = duplex_open(&links[k], ordinals[k], error);
    if (status == FILCH_OK)
        status = duplex_time(links, count, 1, &seconds, error);
    if (status == FILCH_OK)
        status = duplex_time(links, count, DUPLEX_ROUNDS, &seconds, error);
    for (unsigned k = 0; k < count; k++)
        duplex_close(&links[k]);
    free(links);
    if (status == FILCH_OK)
        bound->rate_in = bound->rate_out =
            (double)(DUPLEX_ROUNDS * DUPLEX_BYTES) * (double)count / seconds;
    return status;
}

/* The first device of each GPU's memory. */
static bool is_first(const bench_session *session, uint32_t index)
{
    for (uint32_t d = 0; d < index; d++)
        if (session->device_info[d].place == session->device_info[index].place)
            return false;
    return session->device_info[index].backend == FILCH_BACKEND_CUDA;
}

static filch_status measure_links(const bench_session *session, bench_bound_result *bound,
                                  filch_error *error)
{
    filch_runtime *runtime = session->built.runtime;
    filch_status status = filch_device_measure_links(runtime);
    for (uint32_t d = 0; d < session->devices && status == FILCH_OK; d++) {
        filch_link in = {.size = sizeof in}, out = {.size = sizeof out};
        if (!is_first(session, d))
            continue;
        status = filch_device_link(runtime, FILCH_LINK_HOST, d, &in);
        if (status == FILCH_OK)
            status = filch_device_link(runtime, d, FILCH_LINK_HOST, &out);
        bound->rate_in += in.bandwidth;
        bound->rate_out += out.bandwidth;
    }
    return status == FILCH_OK ? status : bench_runtime_failed(runtime, status, "links", error);
}

/* --- What must move --- */

static bool reach_each_other(const bench_session *session)
{
    for (uint32_t a = 0; a < session->devices; a++)
        for (uint32_t b = 0; b < session->devices; b++) {
            filch_link link = {.size = sizeof link};
            if (!is_first(session, a) || !is_first(session, b) || a == b)
                continue;
            if (filch_device_link(session->built.runtime, a, b, &link) != FILCH_OK ||
                !link.has_access)
                return false;
        }
    return true;
}

/* Memories in the order of the devices, and the tiles that each of them had in the mean run; items
 * are the last run's. */
static size_t gather(const bench_session *session, const bench_result *result,
                     bench_memory_share *shares)
{
    size_t count = 0;
    for (uint32_t d = 0; d < session->devices; d++) {
        const filch_device_info *info = &session->device_info[d];
        size_t k = 0;
        while (k < count && shares[k].place != info->place)
            k++;
        if (k == count)
            shares[count++] = (bench_memory_share){
                .place = info->place,
                .is_host = info->backend != FILCH_BACKEND_CUDA,
                .room = (double)info->budget,
            };
        shares[k].tiles += (double)result->devices[d].tiles / (double)result->repeat;
        shares[k].items += (double)session->stats[d].items;
    }
    return count;
}

static void moved(const bench_result *result, bench_bound_result *bound)
{
    uint64_t sum = 0;
    for (size_t d = 0; d < result->device_count; d++)
        sum += result->devices[d].bytes_in + result->devices[d].bytes_out +
               result->devices[d].bytes_peer;
    bound->bytes = (double)sum / (double)result->repeat;
}

filch_status bench_bound_measure(const bench_session *session, const bench_session_config *config,
                                 bench_result *result, filch_error *error)
{
    const bench_workload *w = session->workload;
    bench_bound_result *bound = &result->bound;
    bench_traffic traffic = {0};
    unsigned ordinals[BENCH_PEER_GPUS];
    if (!w->traffic || session->is_virtual || bench_session_gpus(session, ordinals) == 0)
        return FILCH_OK;
    bench_memory_share *shares = calloc(session->devices, sizeof *shares);
    if (!shares)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "bound", 0, "no memory");
    size_t count = gather(session, result, shares);
    bool is_known = w->traffic(session->state, shares, count, reach_each_other(session), &traffic);
    free(shares);
    if (!is_known)
        return FILCH_OK;
    filch_status status =
        w->is_duplex ? measure_duplex(session, bound, error) : measure_links(session, bound, error);
    if (status == FILCH_OK)
        status = measure_speed(session, config, result->repeat, bound, error);
    if (status != FILCH_OK)
        return status;
    moved(result, bound);
    bound->least_bytes = traffic.all;
    bound->compute_s = result->work / bound->speed;
    bound->transfer_s = fmax(traffic.in / bound->rate_in, traffic.out / bound->rate_out);
    bound->is_known = true;
    return FILCH_OK;
}
