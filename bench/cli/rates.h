/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench devices --speeds`: how fast filch's own kernels are on each device, as the scheduler
 * measures it. */
#ifndef BENCH_RATES_H
#define BENCH_RATES_H

#include "filch/filch.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct bench_rate {
    char device[64];
    const char *codelet;
    const char *unit;
    filch_speed before; /* as an earlier run had it (FILCH_SPEEDS); source unknown: nothing */
    filch_speed speed;
} bench_rate;

/* Zero-initialised is an empty list. */
typedef struct bench_rates {
    bench_rate *rates;
    size_t count;
} bench_rates;

/* Runs the kernels on each of the devices (null: filch's own choice), all devices at once. Where a
 * device cannot run one its speed stays unknown. */
filch_status bench_rates_measure(bench_rates *rates, const char *devices, filch_error *error);
void bench_rates_free(bench_rates *rates);
/* False when memory was out, or the stream failed. */
bool bench_rates_print(const bench_rates *rates, FILE *stream);
/* An array with an object a rate; null when memory was out. */
json_t *bench_rates_json(const bench_rates *rates);

#endif
