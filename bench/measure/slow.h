/* SPDX-License-Identifier: Apache-2.0 */
/* A device that becomes slower while a run is under way, as under a co-tenant or when it throttles:
 * from then on it does each of its tiles several times over, one after another on the host, and by
 * more blocks of the same kernel on a GPU. Only for work whose result is the same if done again. */
#ifndef BENCH_SLOW_H
#define BENCH_SLOW_H

#include "filch/filch.h"

#define BENCH_SLOW_MOST 64

typedef struct bench_slow {
    uint32_t device;
    uint32_t factor; /* times as long; 0: no device becomes slower */
    double after_s;  /* from the start of each run */
} bench_slow;

/* DEVICE:FACTOR@SECONDS. FILCH_PARSE. */
filch_status bench_slow_parse(const char *text, bench_slow *slow, filch_error *error);

/* From now on, which is when a run starts; factor 0: none. No tile runs meanwhile. */
void bench_slow_begin(bench_slow slow);

/* How often a device does its tiles now, 1 at least. Any thread. */
uint32_t bench_slow_times(uint32_t device);

/* Seconds that devices of those speeds take for so much work if none is ever idle. */
double bench_slow_ideal_s(bench_slow slow, double work, double all_speeds, double its_speed);

#endif
