/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the heat equation on the fake driver, which do what its tasks do on the host. */
#ifndef TESTS_FAKE_HEAT_TWINS_H
#define TESTS_FAKE_HEAT_TWINS_H

#include "fakecuda.h"
#include "workloads/heat_tasks.h"

static inline void fake_heat_twins_register(void)
{
    for (size_t k = 0; k < BENCH_HEAT_TASKS; k++)
        fakecuda_register_filch(bench_heat_codes[k].cuda.entry, bench_heat_codes[k].host,
                                bench_heat_codes[k].views, false, sizeof(bench_heat_arguments));
}

#endif
