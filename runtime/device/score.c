/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "device/score.h"

#include <math.h>
#include <stdio.h>

/* Defaults for figures unknown to the system or the driver. */
#define CORE_HZ 3e9
#define GPU_HZ 1.5e9
#define GPU_LANES 128
/* Bytes a second that a core moves while the neighbours move bytes, too: bandwidth of a socket's
 * memory channels over the socket's cores. */
#define CORE_BYTES 10e9
/* Single-precision operations for every byte that a GPU moves, from 13 (A100) to 80 (RTX 4090). */
#define GPU_FLOPS_A_BYTE 30.0
#define GIB 0x1p30

/* Returns operations a cycle of the vector units that multiply and add: two units a core, as in
 * server cores of the last ten years. */
static double single_a_cycle(void)
{
    double lanes = 4;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        lanes = 16;
    else if (__builtin_cpu_supports("avx"))
        lanes = 8;
#endif
    return lanes * 2 * 2;
}

static double highest_hz(void)
{
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "re");
    double khz = 0;

    if (file == NULL)
        return CORE_HZ;
    if (fscanf(file, "%lf", &khz) != 1 || !(khz > 1e5 && khz < 1e8))
        khz = CORE_HZ / 1e3;
    (void)fclose(file);
    return khz * 1e3;
}

fl_host_core fl_host_core_read(void)
{
    double single = highest_hz() * single_a_cycle();

    return (fl_host_core){.single = single, .twice = single / 2, .bytes = CORE_BYTES};
}

static double gpu_rate(const filch_device_info *info, double lanes)
{
    double hz = info->clock_khz != 0 ? info->clock_khz * 1e3 : GPU_HZ;

    return 2.0 * info->team * lanes * hz;
}

static double gpu_single(const filch_device_info *info)
{
    return gpu_rate(info, info->single_lanes != 0 ? info->single_lanes : GPU_LANES);
}

/* Returns a GPU's bandwidth; for a slice, the slice's part of the bandwidth shared by the
 * multiprocessors. */
static double gpu_bytes(const filch_device_info *info)
{
    double part = info->multiprocessors != 0 ? (double)info->team / info->multiprocessors : 1;

    return info->bandwidth > 0 ? info->bandwidth * part : gpu_single(info) / GPU_FLOPS_A_BYTE;
}

/* Returns multiprocessors, plus free memory, plus a bonus for GPUs from compute capability 8.0 on.
 * For a host device only the cores count: hosts have more memory than GPUs. */
static double capacity(const filch_device_info *info, double share)
{
    if (info->backend != FILCH_BACKEND_CUDA)
        return info->team;
    return info->team + 4.0 * (double)info->memory_free * share / GIB +
           (info->capability >= 80 ? 150.0 : 0.0);
}

double fl_score(filch_score kind, const filch_device_info *info, double share,
                const fl_host_core *core)
{
    bool is_gpu = info->backend == FILCH_BACKEND_CUDA;
    double lanes = info->double_lanes != 0 ? info->double_lanes : GPU_LANES / 64.0;

    switch (kind) {
    case FILCH_SCORE_PEAK_DOUBLE:
        return is_gpu ? gpu_rate(info, lanes) / core->twice : info->team;
    case FILCH_SCORE_BANDWIDTH:
        return is_gpu ? gpu_bytes(info) / core->bytes : info->team;
    case FILCH_SCORE_MEMORY:
        return (double)info->memory_free * share / GIB;
    case FILCH_SCORE_BLEND:
        return sqrt(fl_score(FILCH_SCORE_PEAK, info, share, core) *
                    fl_score(FILCH_SCORE_BANDWIDTH, info, share, core));
    case FILCH_SCORE_CAPACITY:
        return capacity(info, share);
    case FILCH_SCORE_DEFAULT:
    case FILCH_SCORE_PEAK:
        break;
    }
    return is_gpu ? gpu_single(info) / core->single : info->team;
}

/* Returns the device's part of its place, by the sizes of the place's devices. */
static double share_of(const fl_pool *pool, size_t index)
{
    double all = 0;

    for (size_t i = 0; i < pool->count; i++)
        if (pool->devices[i].place == pool->devices[index].place)
            all += pool->devices[i].info.team;
    return all > 0 ? pool->devices[index].info.team / all : 1;
}

void fl_pool_score(fl_pool *pool, filch_score kind, filch_device_rate_fn rate, void *user)
{
    fl_host_core core = fl_host_core_read();
    bool uses_memory = rate != NULL || kind == FILCH_SCORE_MEMORY || kind == FILCH_SCORE_CAPACITY;

    for (size_t i = 0; i < pool->count; i++) {
        fl_device *device = &pool->devices[i];
        filch_device_info info = device->info;

        if (uses_memory &&
            device->backend->device->memory_free(device, &info.memory_free) != FILCH_OK)
            info.memory_free = 0;
        if (rate != NULL)
            device->info.score = rate(&info, user);
        else if (info.backend != FILCH_BACKEND_SIM)
            device->info.score = fl_score(kind, &info, uses_memory ? share_of(pool, i) : 1, &core);
    }
}
