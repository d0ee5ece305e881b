/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of two result documents. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include "filch/status.h"

#include <stdio.h>

/* Repeats from which a median's noise can be told. */
#define BENCH_COMPARE_REPEATS 3

/* Compares the results of two files, each one result or an array of them, and prints a table on out
 * (null: nothing). Results are matched by workload, n, tile, precision, policy and the names of the
 * devices. *fallen becomes the number that got worse: a median time longer by more than the noise
 * (1.4826 MAD) of both together, or a check that no longer passes.
 *
 * FILCH_IO; FILCH_PARSE (not JSON, a key missing or of another type; error->line is the line);
 * FILCH_DATA (fewer than BENCH_COMPARE_REPEATS repeats, two results of the same key, or one of OLD
 * that NEW lacks: a result that vanished must not pass for one that held); FILCH_OUT_OF_MEMORY. */
filch_status bench_compare_files(const char *old_path, const char *new_path, FILE *out,
                                 size_t *fallen, filch_error *error);

#endif
