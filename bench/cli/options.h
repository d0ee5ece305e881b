/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `filch-bench run` and `filch-bench sim`. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "measure/policies.h"
#include "measure/slow.h"
#include "measure/withdraw.h"

#include "filch/config.h"

#include <stdbool.h>

/* Contenders of a run at most, and bytes of a contender's name. */
#define BENCH_VERSUS_MOST 8
#define BENCH_VERSUS_NAME 32

typedef enum bench_precision { BENCH_DOUBLE, BENCH_SINGLE } bench_precision;

/* How a solve's products round; see kernels/dense/mixed.h. */
typedef enum bench_factor {
    BENCH_FACTOR_NONE,
    BENCH_FACTOR_TF32,
    BENCH_FACTOR_BF16,
    BENCH_FACTOR_FP16,
    BENCH_FACTOR_TF32X3,
    BENCH_FACTOR_SINGLE
} bench_factor;

/* Of a graph in steps; see narrow.h. */
typedef enum bench_pattern {
    BENCH_PATTERN_NONE,
    BENCH_PATTERN_STENCIL,
    BENCH_PATTERN_FFT,
    BENCH_PATTERN_NEAREST,
    BENCH_PATTERN_ALL_TO_ALL
} bench_pattern;

/* Options that only some workloads heed: bits of bench_workload.takes. */
enum {
    BENCH_TAKES_PATTERN = 1,
    BENCH_TAKES_WIDTH = 2,
    BENCH_TAKES_TASK_US = 4,
    BENCH_TAKES_STEPS = 8,
    BENCH_TAKES_OPEN = 16,
    BENCH_TAKES_STRIPS = 32,
    BENCH_TAKES_STEPS_A_GRAPH = 64,
    BENCH_TAKES_FACTOR = 128
};

/* Texts belong to argv. Null and 0 mean "not given". */
typedef struct bench_options {
    const char *workload;
    const char *devices;
    filch_score score; /* as --scores or the precision says; FILCH_SCORE_DEFAULT: FILCH_SCORE's */
    double *scores;
    size_t score_count;
    bench_policy policy;
    size_t n;
    size_t tile;
    size_t tile_cols;
    const char *matrix;
    char versus[BENCH_VERSUS_MOST][BENCH_VERSUS_NAME]; /* in the order given */
    size_t versus_count;
    bench_precision precision;
    size_t repeat;
    uint64_t seed;
    bool check;
    bool cold;
    bool no_speeds;
    bool resident;
    bool own_kernels;
    size_t cost;
    bench_pattern pattern;
    size_t width;
    double task_us;
    size_t steps;
    bool open;
    size_t strips;
    size_t steps_a_graph;
    bench_factor factor;
    bool pinned;
    bool pageable;
    bench_slow slow;
    bench_withdraw withdraw;
    uint64_t memory_limit; /* as filch_runtime_desc's */
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

/* The value of --policy. FILCH_PARSE, as above. */
filch_status bench_options_policy(const char *text, bench_policy *policy, filch_error *error);
/* The first option that is given and not among these bits; null: there is none. */
const char *bench_options_beyond(const bench_options *options, unsigned takes);
/* "stencil", "fft", "nearest", "all_to_all". */
const char *bench_pattern_name(bench_pattern pattern);
/* "tf32", "bf16", "fp16", "single". */
const char *bench_factor_name(bench_factor factor);

/* Whether --versus names that contender. */
bool bench_options_have_versus(const bench_options *options, const char *name);

/* The text that --help prints, one option a line. */
const char *bench_options_usage(void);

#endif
