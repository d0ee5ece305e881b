/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stddef.h>

/* Sorts both arrays by ascending key; equal keys keep their order. */
void bench_order_by(size_t *values, double *keys, size_t count);

#endif
