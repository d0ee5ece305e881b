/* SPDX-License-Identifier: Apache-2.0 */
/* What a run on GPUs takes before its first tile, and who took it. */
#ifndef BENCH_STARTUP_H
#define BENCH_STARTUP_H

#include "offload/gpu.h"

#define BENCH_STARTUP_GPUS 64

typedef struct bench_startup {
    double begin_s;  /* when the process began, by bench_now_s() */
    double driver_s; /* the driver, and a context on each GPU of the run */
    uint32_t count;
    uint32_t ordinals[BENCH_STARTUP_GPUS];
    bench_gpu gpus[BENCH_STARTUP_GPUS]; /* held until the end, so that filch finds them ready */
} bench_startup;

/* Opens the GPUs that the run is to use, as far as they can be: what cannot, filch reports. */
void bench_startup_open(bench_startup *startup, const char *devices);
void bench_startup_close(bench_startup *startup);

#endif
