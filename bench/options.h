/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `filch-bench run` and `filch-bench sim`. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "slow.h"
#include "withdraw.h"

#include "filch/config.h"

#include <stdbool.h>

typedef enum bench_precision { BENCH_DOUBLE, BENCH_SINGLE } bench_precision;

/* Texts belong to argv. Null and 0 mean "not given". */
typedef struct bench_options {
    const char *workload;
    const char *devices;
    filch_score score; /* as --scores or the precision says; FILCH_SCORE_DEFAULT: FILCH_SCORE's */
    double *scores;
    size_t score_count;
    filch_policy policy;
    size_t n;
    size_t tile;
    size_t tile_cols;
    const char *matrix;
    const char *versus;
    bench_precision precision;
    size_t repeat;
    uint64_t seed;
    bool check;
    bool cold;
    bool resident;
    bool own_kernels;
    size_t cost;
    bool pinned;
    bool pageable;
    bench_slow slow;
    bench_withdraw withdraw;
    uint64_t memory_limit; /* as filch_config's */
    bool help;
    const char *json;
    const char *trace;
    const char *report;
    const char *image;
} bench_options;

#define BENCH_REPEAT_DEFAULT 7
#define BENCH_REPEAT_MAX 100000

/* Reads argv[1..]; argv[0] is the command. Options may stand before and after the workload.
 *
 * FILCH_PARSE, with the option in error->label and its value in error->text; nothing is then held.
 * FILCH_OUT_OF_MEMORY. Not thread-safe: getopt_long keeps its place in the process. */
filch_status bench_options_parse(int argc, char **argv, bench_options *options, filch_error *error);
void bench_options_free(bench_options *options);

/* The text that --help prints, one option a line. */
const char *bench_options_usage(void);

#endif
