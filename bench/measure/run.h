/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts both arrays by ascending key; equal keys keep their order. */
void bench_order_by(size_t *values, double *keys, size_t count);

/* The command `run`, or with must_simulate `sim`; the exit code of the process. */
int bench_run_command(int argc, char **argv, bool must_simulate);

#endif
