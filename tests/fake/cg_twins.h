/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of conjugate gradients on the fake driver: the workload's, which do what its tasks do
 * on the host, and those of the loop over cuSPARSE. */
#ifndef TESTS_FAKE_CG_TWINS_H
#define TESTS_FAKE_CG_TWINS_H

#include "fakecuda.h"
#include "workloads/cg_tasks.h"

static inline int fake_cg_ratio(void **params, const fakecuda_geometry *geometry)
{
    double *at[4];
    (void)geometry;
    for (size_t k = 0; k < 4; k++)
        if ((at[k] = fakecuda_map(*(void **)params[k], sizeof(double))) == NULL)
            return 1;
    *at[2] = *at[1] > 0 ? *at[0] / *at[1] : 0;
    *at[3] = -*at[2];
    return 0;
}

static inline int fake_cg_combine(void **params, const fakecuda_geometry *geometry)
{
    uint64_t count = *(uint64_t *)params[3];
    double *p = fakecuda_map(*(void **)params[0], count * sizeof *p);
    const double *r = fakecuda_map(*(void **)params[1], count * sizeof *r);
    const double *beta = fakecuda_map(*(void **)params[2], sizeof *beta);
    if (!p || !r || !beta || (uint64_t)geometry->grid[0] * geometry->block[0] < count)
        return 1;
    for (uint64_t k = 0; k < count; k++)
        p[k] = r[k] + *beta * p[k];
    return 0;
}

static inline void fake_cg_twins_register(void)
{
    const size_t bytes[4] = {8, 8, 8, 8};
    fakecuda_register("ratio", fake_cg_ratio, 4, bytes);
    fakecuda_register("combine", fake_cg_combine, 4, bytes);
    for (size_t k = 0; k < BENCH_CG_TASKS; k++)
        fakecuda_register_filch(bench_cg_codes[k].cuda.entry, bench_cg_codes[k].host,
                                bench_cg_codes[k].views, false, sizeof(bench_cg_arguments));
}

#endif
