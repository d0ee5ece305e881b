/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/options.h"

#include "support/fail.h"

#include "base/config.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MICROSECONDS_LEAST 0.01
#define MICROSECONDS_MOST 1e6

enum option_id {
    OPTION_DEVICES = 256,
    OPTION_SCORES,
    OPTION_POLICY,
    OPTION_N,
    OPTION_TILE,
    OPTION_MATRIX,
    OPTION_VERSUS,
    OPTION_PRECISION,
    OPTION_REPEAT,
    OPTION_SEED,
    OPTION_CHECK,
    OPTION_COLD,
    OPTION_NO_SPEEDS,
    OPTION_RESIDENT,
    OPTION_OWN_KERNELS,
    OPTION_COST,
    OPTION_TILE_COLS,
    OPTION_PATTERN,
    OPTION_WIDTH,
    OPTION_TASK_US,
    OPTION_STEPS,
    OPTION_OPEN,
    OPTION_STRIPS,
    OPTION_STEPS_A_GRAPH,
    OPTION_FACTOR,
    OPTION_SLOW,
    OPTION_WITHDRAW,
    OPTION_PINNED,
    OPTION_PAGEABLE,
    OPTION_MEMORY_LIMIT,
    OPTION_JSON,
    OPTION_TRACE,
    OPTION_REPORT,
    OPTION_IMAGE,
    OPTION_HELP
};

static const struct option long_options[] = {
    {"devices", required_argument, NULL, OPTION_DEVICES},
    {"scores", required_argument, NULL, OPTION_SCORES},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"n", required_argument, NULL, OPTION_N},
    {"tile", required_argument, NULL, OPTION_TILE},
    {"tile-cols", required_argument, NULL, OPTION_TILE_COLS},
    {"matrix", required_argument, NULL, OPTION_MATRIX},
    {"versus", required_argument, NULL, OPTION_VERSUS},
    {"precision", required_argument, NULL, OPTION_PRECISION},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"cold", no_argument, NULL, OPTION_COLD},
    {"no-speeds", no_argument, NULL, OPTION_NO_SPEEDS},
    {"resident", no_argument, NULL, OPTION_RESIDENT},
    {"own-kernels", no_argument, NULL, OPTION_OWN_KERNELS},
    {"slow", required_argument, NULL, OPTION_SLOW},
    {"withdraw", required_argument, NULL, OPTION_WITHDRAW},
    {"cost", required_argument, NULL, OPTION_COST},
    {"pattern", required_argument, NULL, OPTION_PATTERN},
    {"width", required_argument, NULL, OPTION_WIDTH},
    {"task-us", required_argument, NULL, OPTION_TASK_US},
    {"steps", required_argument, NULL, OPTION_STEPS},
    {"open", no_argument, NULL, OPTION_OPEN},
    {"strips", required_argument, NULL, OPTION_STRIPS},
    {"steps-a-graph", required_argument, NULL, OPTION_STEPS_A_GRAPH},
    {"factor", required_argument, NULL, OPTION_FACTOR},
    {"pinned", no_argument, NULL, OPTION_PINNED},
    {"pageable", no_argument, NULL, OPTION_PAGEABLE},
    {"memory-limit", required_argument, NULL, OPTION_MEMORY_LIMIT},
    {"json", required_argument, NULL, OPTION_JSON},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"report", required_argument, NULL, OPTION_REPORT},
    {"image", required_argument, NULL, OPTION_IMAGE},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

const char *bench_options_usage(void)
{
    return "  --devices SPEC      cuda, cuda:1, cuda:0/88+24+8, host, host:4, host:2x8, host@4-7,\n"
           "                      host:2@4,6, host:4@any, sim:FILE, separated by commas\n"
           "                      (default: every GPU, else the host's cores)\n"
           "  --scores WORD       what scores are reckoned from: peak (default, at the "
           "precision),\n"
           "                      bandwidth, memory, blend, capacity\n"
           "  --scores S,S,...    one score a device, in place of filch's own\n"
           "  --policy WORD       steal (default), static, perfect (static, with true speeds for\n"
           "                      scores, which are measured first), central, guided,\n"
           "                      round-robin, earliest\n"
           "  --n N               size of the problem\n"
           "  --tile T            size of a tile\n"
           "  --tile-cols W       columns of a tile of the result (default: as rows): gemm\n"
           "  --matrix FILE.mtx   a Matrix Market file in place of a generated matrix\n"
           "  --versus NAME,...   interleave contenders that do the same work: openblas, openmp,\n"
           "                      tbb, starpu where installed; on GPUs bare, cublas, cublasxt,\n"
           "                      cusolver, cusolverirs, cusparse, and with --resident\n"
           "                      cusolvermg;\n"
           "                      static, central, guided, round-robin: filch with that\n"
           "                      policy; spin: filch whose workers never sleep; one: filch\n"
           "                      with one worker, a core of the host\n"
           "  --precision WORD    double (default) or single: cholesky, gemm, lu, qr, syrk, trsm,\n"
           "                      potrs, getrs, nbody, jacobi\n"
           "  --factor WORD       solve: tf32, bf16, fp16, tf32x3 (three products of tf32) or\n"
           "                      single, the precision of products that factor (default:\n"
           "                      the fastest of tf32, tf32x3 and single)\n"
           "  --repeat R          measured repeats (default 7)\n"
           "  --seed S            seed of generated input\n"
           "  --check             check the result; exit 1 where it is wrong\n"
           "  --cold              a new runtime, which has measured nothing, for each repeat\n"
           "  --no-speeds         no device is measured alone: less time, and no efficiency\n"
           "  --slow D:F@S        device D takes F times as long from S seconds of each run on:\n"
           "                      mandelbrot, stream, layered, narrow, heat, cg on the host\n"
           "  --withdraw D@S[-S]  device D is withdrawn S seconds after the start of each run,\n"
           "                      and taken back at the second time\n"
           "  --own-kernels       filch's kernels on GPUs, also where cuBLAS is installed\n"
           "  --resident          matrices stay on the devices: their copies are not timed\n"
           "  --cost C            stream: multiply-adds an element of 8 bytes (default 1000)\n"
           "  --pattern WORD      narrow: stencil (default), fft, nearest (2 on each side),\n"
           "                      all_to_all\n"
           "  --width W           narrow: tasks of a step (default 8)\n"
           "  --task-us X         narrow: microseconds of a task, from 0.01 on (default 1)\n"
           "  --steps S           narrow: steps (default 8000 tasks); heat (default 100);\n"
           "                      cg: iterations (default 50)\n"
           "  --steps-a-graph K   heat, cg: steps of a graph that is submitted again (default\n"
           "                      10, 1; on GPUs up to 50)\n"
           "  --strips B          heat: strips of the grid (default 8; where there are GPUs 3 a\n"
           "                      device, 1 on one GPU); cg: blocks of the rows (default 3 a\n"
           "                      device; one a GPU where all are alike)\n"
           "  --open              narrow: built while it runs, each time\n"
           "  --pinned            cholesky, gemm, layered, lu, qr, stream: the host's memory\n"
           "                      page-locked by the driver (the default beside cublasxt)\n"
           "  --pageable          likewise, as malloc gives it (default: page-locked where it\n"
           "                      is, if there are GPUs)\n"
           "  --memory-limit B    bytes that filch may take of each GPU's memory, e.g. 8G; fit,\n"
           "                      half: see FILCH_MEMORY_LIMIT\n"
           "  --json FILE         write the result document (- is standard output)\n"
           "  --trace FILE        write a trace of one more run; tell how copies overlapped "
           "kernels\n"
           "  --report FILE.html  write a report\n"
           "  --image FILE.png    write the picture of a workload that has one\n";
}

static filch_status wrong(filch_error *error, const char *option, const char *value,
                          const char *expected)
{
    return bench_fail(error, FILCH_PARSE, option, 0, "'%s' is not %s", value, expected);
}

static filch_status parse_whole(const char *option, const char *text, uint64_t limit,
                                uint64_t *value, filch_error *error)
{
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0')
        return wrong(error, option, text, "a whole number");
    if (errno == ERANGE || parsed < 1 || parsed > limit)
        return bench_fail(error, FILCH_PARSE, option, 0, "'%s' is outside 1..%llu", text,
                          (unsigned long long)limit);
    *value = parsed;
    return FILCH_OK;
}

static filch_status parse_size(const char *option, const char *text, size_t limit, size_t *value,
                               filch_error *error)
{
    uint64_t parsed = 0;
    filch_status status = parse_whole(option, text, limit, &parsed, error);
    if (status == FILCH_OK)
        *value = (size_t)parsed;
    return status;
}

static bool parse_score_word(const char *text, filch_score *score)
{
    static const struct {
        const char *word;
        filch_score score;
    } words[] = {
        {"peak", FILCH_SCORE_PEAK},         {"bandwidth", FILCH_SCORE_BANDWIDTH},
        {"memory", FILCH_SCORE_MEMORY},     {"blend", FILCH_SCORE_BLEND},
        {"capacity", FILCH_SCORE_CAPACITY},
    };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (strcmp(text, words[k].word) == 0) {
            *score = words[k].score;
            return true;
        }
    }
    return false;
}

static filch_status parse_scores(const char *text, bench_options *options, filch_error *error)
{
    size_t count = 1;
    if (parse_score_word(text, &options->score)) {
        bench_options_free(options); /* numbers given before */
        return FILCH_OK;
    }
    for (const char *c = text; *c; c++)
        count += *c == ',';
    double *scores = calloc(count, sizeof *scores);
    if (!scores)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--scores", 0, "no memory");
    const char *at = text;
    for (size_t k = 0; k < count; k++) {
        char *end;
        scores[k] = strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0') || !isfinite(scores[k]) || scores[k] <= 0) {
            free(scores);
            return bench_fail(error, FILCH_PARSE, "--scores", 0,
                              "score %zu of '%s' is neither a number above 0 nor peak, bandwidth, "
                              "memory, blend or capacity",
                              k + 1, text);
        }
        at = end + 1;
    }
    free(options->scores);
    options->scores = scores;
    options->score_count = count;
    return FILCH_OK;
}

static const char *const pattern_names[] = {
    [BENCH_PATTERN_STENCIL] = "stencil",
    [BENCH_PATTERN_FFT] = "fft",
    [BENCH_PATTERN_NEAREST] = "nearest",
    [BENCH_PATTERN_ALL_TO_ALL] = "all_to_all",
};

const char *bench_pattern_name(bench_pattern pattern)
{
    return pattern_names[pattern];
}

static const char *const factor_names[] = {
    [BENCH_FACTOR_TF32] = "tf32",     [BENCH_FACTOR_BF16] = "bf16",
    [BENCH_FACTOR_FP16] = "fp16",     [BENCH_FACTOR_TF32X3] = "tf32x3",
    [BENCH_FACTOR_SINGLE] = "single",
};

const char *bench_factor_name(bench_factor factor)
{
    return factor_names[factor];
}

static filch_status parse_factor(const char *text, bench_factor *factor, filch_error *error)
{
    for (int k = BENCH_FACTOR_TF32; k <= BENCH_FACTOR_SINGLE; k++)
        if (strcmp(text, factor_names[k]) == 0) {
            *factor = (bench_factor)k;
            return FILCH_OK;
        }
    return wrong(error, "--factor", text, "tf32, bf16, fp16, tf32x3 or single");
}

static filch_status parse_pattern(const char *text, bench_pattern *pattern, filch_error *error)
{
    for (int k = BENCH_PATTERN_STENCIL; k <= BENCH_PATTERN_ALL_TO_ALL; k++)
        if (strcmp(text, pattern_names[k]) == 0) {
            *pattern = (bench_pattern)k;
            return FILCH_OK;
        }
    return wrong(error, "--pattern", text, "stencil, fft, nearest or all_to_all");
}

static filch_status parse_microseconds(const char *option, const char *text, double *value,
                                       filch_error *error)
{
    char *end;
    double parsed = strtod(text, &end);
    if (text[0] < '0' || text[0] > '9' || *end != '\0')
        return wrong(error, option, text, "a number");
    if (!(parsed >= MICROSECONDS_LEAST && parsed <= MICROSECONDS_MOST))
        return bench_fail(error, FILCH_PARSE, option, 0, "'%s' is outside %g..%g", text,
                          MICROSECONDS_LEAST, MICROSECONDS_MOST);
    *value = parsed;
    return FILCH_OK;
}

const char *bench_options_beyond(const bench_options *o, unsigned takes)
{
    const struct {
        const char *option;
        unsigned bit;
        bool is_given;
    } given[] = {
        {"--pattern", BENCH_TAKES_PATTERN, o->pattern != BENCH_PATTERN_NONE},
        {"--width", BENCH_TAKES_WIDTH, o->width != 0},
        {"--task-us", BENCH_TAKES_TASK_US, o->task_us > 0},
        {"--steps", BENCH_TAKES_STEPS, o->steps != 0},
        {"--open", BENCH_TAKES_OPEN, o->open},
        {"--strips", BENCH_TAKES_STRIPS, o->strips != 0},
        {"--steps-a-graph", BENCH_TAKES_STEPS_A_GRAPH, o->steps_a_graph != 0},
        {"--factor", BENCH_TAKES_FACTOR, o->factor != BENCH_FACTOR_NONE},
    };
    for (size_t k = 0; k < sizeof given / sizeof *given; k++)
        if (given[k].is_given && (takes & given[k].bit) == 0)
            return given[k].option;
    return NULL;
}

filch_status bench_options_policy(const char *text, bench_policy *policy, filch_error *error)
{
    *policy = bench_policy_find(text);
    if (*policy == BENCH_POLICIES)
        return wrong(error, "--policy", text,
                     "steal, static, perfect, central, guided, round-robin or earliest");
    return FILCH_OK;
}

static filch_status parse_precision(const char *text, bench_options *options, filch_error *error)
{
    if (strcmp(text, "double") == 0)
        options->precision = BENCH_DOUBLE;
    else if (strcmp(text, "single") == 0)
        options->precision = BENCH_SINGLE;
    else
        return wrong(error, "--precision", text, "'single' or 'double'");
    return FILCH_OK;
}

static filch_status parse_text(const char *option, const char *text, const char **value,
                               filch_error *error)
{
    if (text[0] == '\0')
        return bench_fail(error, FILCH_PARSE, option, 0, "the value is empty");
    *value = text;
    return FILCH_OK;
}

bool bench_options_have_versus(const bench_options *options, const char *name)
{
    for (size_t k = 0; k < options->versus_count; k++)
        if (strcmp(options->versus[k], name) == 0)
            return true;
    return false;
}

/* A later list replaces an earlier one. */
static filch_status parse_versus(const char *text, bench_options *o, filch_error *error)
{
    o->versus_count = 0;
    for (const char *at = text, *end; at; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ',');
        size_t length = (size_t)(end - at);
        if (length == 0)
            return bench_fail(error, FILCH_PARSE, "--versus", 0, "a name in '%s' is empty", text);
        if (length >= BENCH_VERSUS_NAME)
            return bench_fail(error, FILCH_PARSE, "--versus", 0, "'%.*s' is too long for a name",
                              (int)length, at);
        if (o->versus_count == BENCH_VERSUS_MOST)
            return bench_fail(error, FILCH_PARSE, "--versus", 0, "'%s' has more than %d names",
                              text, BENCH_VERSUS_MOST);
        char word[BENCH_VERSUS_NAME] = {0};
        memcpy(word, at, length);
        if (bench_options_have_versus(o, word))
            return bench_fail(error, FILCH_PARSE, "--versus", 0, "'%s' is named twice", word);
        memcpy(o->versus[o->versus_count++], word, sizeof word);
    }
    return FILCH_OK;
}

/* As the setting of the same meaning. */
static filch_status parse_limit(const char *text, uint64_t *limit, filch_error *error)
{
    fl_settings settings;
    filch_error inner = FILCH_ERROR_INIT;
    fl_settings_defaults(&settings);
    if (text[0] == '\0')
        return bench_fail(error, FILCH_PARSE, "--memory-limit", 0, "the value is empty");
    if (fl_setting_parse(&settings, "FILCH_MEMORY_LIMIT", text, &inner) != FILCH_OK)
        return bench_fail(error, FILCH_PARSE, "--memory-limit", 0, "'%s': %s", text,
                          strchr(inner.text, ';') + 2);
    *limit = (uint64_t)settings.memory_limit;
    return FILCH_OK;
}

/* What an option without a value sets. */
static bool *find_flag(int id, bench_options *o)
{
    switch (id) {
    case OPTION_CHECK:
        return &o->check;
    case OPTION_COLD:
        return &o->cold;
    case OPTION_NO_SPEEDS:
        return &o->no_speeds;
    case OPTION_RESIDENT:
        return &o->resident;
    case OPTION_OWN_KERNELS:
        return &o->own_kernels;
    case OPTION_OPEN:
        return &o->open;
    case OPTION_PINNED:
        return &o->pinned;
    case OPTION_PAGEABLE:
        return &o->pageable;
    default:
        return &o->help;
    }
}

static filch_status parse_option(int id, const char *value, bench_options *o, filch_error *error)
{
    switch (id) {
    case OPTION_DEVICES:
        return parse_text("--devices", value, &o->devices, error);
    case OPTION_SCORES:
        return parse_scores(value, o, error);
    case OPTION_POLICY:
        return bench_options_policy(value, &o->policy, error);
    case OPTION_N:
        return parse_size("--n", value, SIZE_MAX >> 1, &o->n, error);
    case OPTION_TILE:
        return parse_size("--tile", value, SIZE_MAX >> 1, &o->tile, error);
    case OPTION_TILE_COLS:
        return parse_size("--tile-cols", value, SIZE_MAX >> 1, &o->tile_cols, error);
    case OPTION_MATRIX:
        return parse_text("--matrix", value, &o->matrix, error);
    case OPTION_VERSUS:
        return parse_versus(value, o, error);
    case OPTION_PRECISION:
        return parse_precision(value, o, error);
    case OPTION_REPEAT:
        return parse_size("--repeat", value, BENCH_REPEAT_MAX, &o->repeat, error);
    case OPTION_SEED:
        return parse_whole("--seed", value, UINT64_MAX, &o->seed, error);
    case OPTION_JSON:
        return parse_text("--json", value, &o->json, error);
    case OPTION_TRACE:
        return parse_text("--trace", value, &o->trace, error);
    case OPTION_REPORT:
        return parse_text("--report", value, &o->report, error);
    case OPTION_IMAGE:
        return parse_text("--image", value, &o->image, error);
    case OPTION_SLOW:
        return bench_slow_parse(value, &o->slow, error);
    case OPTION_WITHDRAW:
        return bench_withdraw_parse(value, &o->withdraw, error);
    case OPTION_COST:
        return parse_size("--cost", value, SIZE_MAX >> 1, &o->cost, error);
    case OPTION_PATTERN:
        return parse_pattern(value, &o->pattern, error);
    case OPTION_WIDTH:
        return parse_size("--width", value, SIZE_MAX >> 1, &o->width, error);
    case OPTION_TASK_US:
        return parse_microseconds("--task-us", value, &o->task_us, error);
    case OPTION_STEPS:
        return parse_size("--steps", value, SIZE_MAX >> 1, &o->steps, error);
    case OPTION_STRIPS:
        return parse_size("--strips", value, SIZE_MAX >> 1, &o->strips, error);
    case OPTION_STEPS_A_GRAPH:
        return parse_size("--steps-a-graph", value, SIZE_MAX >> 1, &o->steps_a_graph, error);
    case OPTION_FACTOR:
        return parse_factor(value, &o->factor, error);
    case OPTION_MEMORY_LIMIT:
        return parse_limit(value, &o->memory_limit, error);
    default:
        *find_flag(id, o) = true;
        return FILCH_OK;
    }
}

static filch_status parse_all(int argc, char **argv, bench_options *o, filch_error *error)
{
    int id;
    /* 0 also makes glibc start afresh after an earlier parse; ':' tells a missing value apart. */
    optind = 0;
    opterr = 0;
    while ((id = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (id == ':')
            return bench_fail(error, FILCH_PARSE, argv[optind - 1], 0, "the value is missing");
        if (id == '?')
            return bench_fail(error, FILCH_PARSE, argv[optind - 1], 0,
                              "is not an option, takes no value, or is short for several");
        filch_status status = parse_option(id, optarg, o, error);
        if (status != FILCH_OK)
            return status;
    }
    if (optind < argc)
        o->workload = argv[optind++];
    if (optind < argc)
        return bench_fail(error, FILCH_PARSE, argv[optind], 0,
                          "is one word too many after the workload '%s'", o->workload);
    if (!o->workload && !o->help)
        return bench_fail(error, FILCH_PARSE, argv[0], 0, "the workload is missing");
    if (o->score == FILCH_SCORE_DEFAULT && !getenv("FILCH_SCORE"))
        o->score = FILCH_SCORE_PEAK;
    if (o->score == FILCH_SCORE_PEAK && o->precision == BENCH_DOUBLE)
        o->score = FILCH_SCORE_PEAK_DOUBLE;
    if (o->pinned && o->pageable)
        return bench_fail(error, FILCH_PARSE, "--pageable", 0, "contradicts --pinned");
    if (o->n && o->matrix)
        return bench_fail(error, FILCH_PARSE, "--n", 0, "the size comes from --matrix");
    return FILCH_OK;
}

filch_status bench_options_parse(int argc, char **argv, bench_options *options, filch_error *error)
{
    bench_options parsed = {.repeat = BENCH_REPEAT_DEFAULT};
    filch_status status = parse_all(argc, argv, &parsed, error);
    if (status == FILCH_OK)
        *options = parsed;
    else
        bench_options_free(&parsed);
    return status;
}

void bench_options_free(bench_options *options)
{
    free(options->scores);
    options->scores = NULL;
    options->score_count = 0;
}
