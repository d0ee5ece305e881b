/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the bench's workloads and peers do, on the fake driver. */
#ifndef TESTS_GPU_BENCH_TWINS_H
#define TESTS_GPU_BENCH_TWINS_H

#include "fake/cg_twins.h"
#include "fake/heat_twins.h"
#include "gpu/twins.h"

#include <string.h>

static inline int bench_twin_nothing(void **params, const fakecuda_geometry *geometry)
{
    (void)params;
    (void)geometry;
    return 0;
}

static inline int bench_twin_add_mark(unsigned *own, const unsigned *first, const unsigned *second)
{
    unsigned a = first ? *first : 0;
    unsigned b = second ? *second : 0;
    *own += 1 + (a > b ? a : b);
    return 0;
}

/* Of the peer: three addresses in device memory. */
static inline int bench_twin_mark_on_device(void **params, const fakecuda_geometry *geometry)
{
    const unsigned *at[3];
    (void)geometry;
    for (size_t k = 0; k < 3; k++) {
        memcpy(&at[k], params[k], sizeof at[k]);
        at[k] = at[k] ? fakecuda_map(at[k], sizeof *at[k]) : NULL;
    }
    return bench_twin_add_mark((unsigned *)(uintptr_t)at[0], at[1], at[2]);
}

/* Of the workload: one structure of three addresses in memory of the host's. */
static inline int bench_twin_mark_on_host(void **params, const fakecuda_geometry *geometry)
{
    unsigned *at[3];
    (void)geometry;
    memcpy(at, params[0], sizeof at);
    return bench_twin_add_mark(at[0], at[1], at[2]);
}

/* One structure: a mark in memory of the host's and a time. */
static inline int bench_twin_stay_busy(void **params, const fakecuda_geometry *geometry)
{
    unsigned *own;
    (void)geometry;
    memcpy(&own, params[0], sizeof own);
    return bench_twin_add_mark(own, NULL, NULL);
}

/* As the stream's own on the host. */
static inline int bench_twin_stream(const filch_call *call)
{
    uint64_t cost = *(const uint64_t *)call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1];
    for (uint64_t k = 0; k < (call->hi - call->lo) * from->rows; k++) {
        double x = ((const double *)from->ptr)[k / from->rows * from->ld + k % from->rows], v = x;
        for (uint64_t i = 0; i < cost; i++)
            v = v * 0.5 + x;
        ((double *)to->ptr)[k / from->rows * to->ld + k % from->rows] = v;
    }
    return 0;
}

static inline uint64_t bench_twin_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* As the layered graph's: 16 threads an element. */
static inline int bench_twin_layered(const filch_call *call)
{
    uint64_t args[2]; /* seed, rounds */
    const filch_view *to = &call->views[call->view_count - 1];
    memcpy(args, call->args, sizeof args);
    for (uint64_t e = 0; e < to->rows; e++) {
        uint64_t x = args[0] + e, sum = 0;
        for (uint32_t v = 0; v + 1 < call->view_count; v++)
            x = bench_twin_mix(x ^ ((const uint64_t *)call->views[v].ptr)[e]);
        for (uint64_t t = 0; t < 16; t++) {
            uint64_t y = x + t * 0x9e3779b97f4a7c15u;
            for (uint64_t r = 0; r < args[1]; r++)
                y = bench_twin_mix(y);
            sum ^= y;
        }
        ((uint64_t *)to->ptr)[e] = sum;
    }
    return 0;
}

/* As cmocka's setup of a group. */
static inline int bench_twins_register(void **state)
{
    static const char *const layers[] = {"layered0", "layered1", "layered2", "layered3"};
    static const size_t three[] = {sizeof(void *), sizeof(void *), sizeof(void *)};
    static const size_t structure[] = {3 * sizeof(void *)};
    static const size_t pair[] = {2 * sizeof(void *)};
    (void)state;
    fakecuda_register("nothing", bench_twin_nothing, 0, NULL);
    fakecuda_register("nothing_given", bench_twin_nothing, 1, pair);
    fakecuda_register("leave_mark", bench_twin_mark_on_host, 1, structure);
    fakecuda_register("mark", bench_twin_mark_on_device, 3, three);
    fakecuda_register("busy", bench_twin_stay_busy, 1, pair);
    fakecuda_register_filch("stream", bench_twin_stream, 2, true, sizeof(uint64_t));
    for (uint32_t r = 0; r < sizeof layers / sizeof *layers; r++)
        fakecuda_register_filch(layers[r], bench_twin_layered, r + 1, false, 2 * sizeof(uint64_t));
    fake_cg_twins_register();
    fake_heat_twins_register();
    gpu_twins_register();
    return 0;
}

#endif
