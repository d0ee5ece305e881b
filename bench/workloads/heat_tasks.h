/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of heat.c do, on the host and on GPUs. Views:
 *
 *   BENCH_HEAT_INIT  the strip
 *   BENCH_HEAT_STEP  the strip with a column on each side, as far as there is one; the same strip
 * of the other grid
 */
#ifndef BENCH_HEAT_TASKS_H
#define BENCH_HEAT_TASKS_H

#include "problems/heat.h"
#include "workloads/marks.h"

typedef enum bench_heat_task { BENCH_HEAT_INIT, BENCH_HEAT_STEP, BENCH_HEAT_TASKS } bench_heat_task;

/* By value in each task, and in the kernels' source. */
typedef struct bench_heat_arguments {
    const bench_heat_grid *grid;
    bench_mark *mark;
    uint64_t strip;
} bench_heat_arguments;

typedef struct bench_heat_code {
    const char *name; /* the kernel's, too */
    filch_host_fn host;
    filch_cuda_desc cuda;
    uint32_t views;
} bench_heat_code;

extern const bench_heat_code bench_heat_codes[BENCH_HEAT_TASKS];

#endif
