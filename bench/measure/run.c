/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench run` and `filch-bench sim`: one workload on filch, measured, checked, compared. */
#define _GNU_SOURCE
#include "measure/run.h"
#include "cli/cli.h"
#include "measure/bound.h"
#include "measure/overlap.h"
#include "measure/versus.h"
#include "offload/startup.h"
#include "problems/tiles.h"
#include "report/json_out.h"
#include "report/report.h"
#include "report/show.h"
#include "support/fail.h"
#include "support/file_out.h"
#include "support/stats.h"
#include "support/table.h"
#include "support/timing.h"

#include "base/hash.h"
#include "observe/losses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_LIMIT_S 2.0
/* A run of this length needs no uncounted one directly before it. */
#define LONG_RUN_S 0.5
/* Shorter runs tell too little of a device. */
#define PART_LEAST_S 0.25
#define TILES_MAX 24
#define TILES_FINAL 4
#define FINAL_ROUNDS 3
#define FINAL_RUNS 3 /* of a round, the first of them cold */

typedef struct run {
    const bench_options *options;
    const bench_workload *workload;
    FILE *out; /* what is not the JSON document: its own stream where that is standard output */
    void *state;
    bench_session_config config;
    bench_session session;
    bool is_cold;
    bench_versus versus[BENCH_VERSUS_MOST];
    size_t versus_count; /* that stand open */
    bench_startup startup;
    double ready_s;  /* when the problem stood in filch for the first time … */
    double vendor_s; /* … and what the vendor's libraries had taken until then */
    bench_result result;
    double part_s;  /* for which each device is measured alone; 0: until the problem is solved */
    double *scores; /* that were measured, or null */
} run;

/* --- Choice of the tile --- */

static size_t count_ways(const run *r)
{
    size_t count = 0;
    while (r->workload->way && r->workload->way(r->state, count))
        count++;
    return count > 0 ? count : 1;
}

/* A choice is a tile and one of its ways. */
static void choice_set(run *r, size_t choice, size_t ways)
{
    r->workload->tile_set(r->state, choice / ways);
    if (ways > 1)
        r->workload->way_set(r->state, choice % ways);
}

static bool fits(const run *r, size_t tile, size_t way)
{
    return !r->workload->way_fits || r->workload->way_fits(r->state, tile, way);
}

static size_t list_choices(const run *r, size_t ways, size_t *choices, size_t capacity)
{
    size_t tiles[TILES_MAX], count = 0, given = r->options->tile;
    size_t tile_count = given ? ways > 1 : r->workload->tiles(r->state, tiles, TILES_MAX);
    for (size_t k = 0; k < tile_count; k++)
        for (size_t way = 0; way < ways && count < capacity; way++)
            if (fits(r, given ? given : tiles[k], way))
                choices[count++] = (given ? given : tiles[k]) * ways + way;
    return count;
}

static void print_choice(const run *r, size_t choice, size_t ways)
{
    fprintf(r->out, " %zu%s%s", choice / ways, ways > 1 ? " " : "",
            ways > 1 ? r->workload->way(r->state, choice % ways) : "");
}

/* Up to so many runs: none after one that takes longer than `hopeless`. */
static filch_status time_choice(run *r, size_t choice, size_t ways, size_t times, double hopeless,
                                double *seconds, size_t *count, filch_error *error)
{
    double least = INFINITY;
    choice_set(r, choice, ways);
    filch_status status = bench_session_rebuild(&r->session, error);
    *count = 0;
    while (*count < times && (*count == 0 || least <= hopeless) && status == FILCH_OK) {
        status = bench_session_run(&r->session, &seconds[*count], error);
        least = fmin(least, seconds[(*count)++]);
    }
    return status;
}

/* What no later run makes up for: a first run finds clocks low and loads kernels. */
static double hopeless_beside(double least)
{
    return 1.5 * least + 0.25;
}

/* The median of each of the best few, in turn, so that what slows the machine for a while slows
 * each of them. A disturbance is short beside long runs, which have one round. */
static filch_status time_best(run *r, const size_t *choices, size_t ways, size_t few, double *best,
                              filch_error *error)
{
    double warm[TILES_FINAL][FINAL_ROUNDS * (FINAL_RUNS - 1)];
    size_t rounds = best[0] < LONG_RUN_S ? FINAL_ROUNDS : 1, count = 0;
    filch_status status = FILCH_OK;
    bench_progress progress;
    bench_progress_start(&progress, stderr, "best tiles", few * rounds);
    for (size_t round = 0; round < rounds; round++)
        for (size_t k = 0; k < few && status == FILCH_OK; k++) {
            double seconds[FINAL_RUNS];
            status = time_choice(r, choices[k], ways, FINAL_RUNS, INFINITY, seconds, &count, error);
            for (size_t at = 1; at < FINAL_RUNS && status == FILCH_OK; at++)
                warm[k][round * (FINAL_RUNS - 1) + at - 1] = seconds[at];
            bench_progress_step(&progress);
        }
    bench_progress_end(&progress);
    for (size_t k = 0; k < few && status == FILCH_OK; k++) {
        bench_stats stats;
        if (!bench_stats_of(warm[k], rounds * (FINAL_RUNS - 1), &stats))
            return bench_fail(error, FILCH_OUT_OF_MEMORY, "tile", 0, "no memory");
        best[k] = stats.median;
    }
    return status;
}

/* Every candidate is run twice, and the faster run tells whether it is among the best few: what
 * disturbs a run only ever slows it. The medians of the best few decide: schedules of one graph
 * differ from run to run, and some tiles have more bad ones than others. */
static filch_status choose_tile(run *r, filch_error *error)
{
    size_t choices[TILES_MAX];
    double best[TILES_MAX];
    size_t ways = count_ways(r), count = list_choices(r, ways, choices, TILES_MAX), few = 0;
    if (count == 0)
        return FILCH_OK;
    filch_status status = FILCH_OK;
    double least = INFINITY;
    bench_progress progress;
    bench_progress_start(&progress, stderr, "tiles", count);
    for (size_t k = 0; k < count && status == FILCH_OK; k++) {
        double seconds[2];
        size_t runs;
        status = time_choice(r, choices[k], ways, 2, hopeless_beside(least), seconds, &runs, error);
        if (status == FILCH_OK)
            best[k] = runs > 1 ? fmin(seconds[0], seconds[1]) : seconds[0];
        least = status == FILCH_OK ? fmin(least, best[k]) : least;
        bench_progress_step(&progress);
    }
    bench_progress_end(&progress);
    if (status == FILCH_OK) {
        bench_order_by(choices, best, count);
        while (few < count && few < TILES_FINAL && best[few] <= hopeless_beside(least))
            few++;
        if (few > 1)
            status = time_best(r, choices, ways, few, best, error);
    }
    bench_order_by(choices, best, few);
    if (status != FILCH_OK)
        return status;
    fprintf(r->out, "tile");
    print_choice(r, choices[0], ways);
    fprintf(r->out, ", the fastest of");
    for (size_t k = 0; k < count; k++) {
        print_choice(r, choices[k], ways);
        fprintf(r->out, ": %.1f ms%s", best[k] * 1e3, k + 1 < count ? "," : "\n");
    }
    choice_set(r, choices[0], ways);
    return bench_session_rebuild(&r->session, error);
}

void bench_order_by(size_t *values, double *keys, size_t count)
{
    for (size_t k = 1; k < count; k++)
        for (size_t at = k; at > 0 && keys[at] < keys[at - 1]; at--) {
            double key = keys[at];
            size_t value = values[at];
            keys[at] = keys[at - 1];
            values[at] = values[at - 1];
            keys[at - 1] = key;
            values[at - 1] = value;
        }
}

/* --- Measuring --- */

static void add_device_stats(run *r)
{
    r->result.losses.runs++;
    r->result.losses.wall_s += r->session.wall_s;
    r->result.losses.area_s += r->session.area_s;
    r->result.losses.path_s = r->session.path_s;
    r->result.visits += r->session.moves.visits;
    r->result.moves += r->session.moves.moves;
    for (uint32_t d = 0; d < r->session.devices; d++) {
        const filch_device_stats *stats = &r->session.stats[d];
        bench_device_result *device = &r->result.devices[d];
        device->busy_s += stats->busy_s;
        device->idle_s += stats->idle_s;
        device->tiles += stats->tiles;
        device->stolen_in += stats->stolen_in;
        device->stolen_out += stats->stolen_out;
        device->bytes_in += stats->bytes_in;
        device->bytes_out += stats->bytes_out;
        device->bytes_peer += stats->bytes_peer;
        device->evicted += stats->evicted;
        device->bytes_evicted += stats->bytes_evicted;
        fl_losses_add(&device->losses, &r->session.losses[d]);
        /* Kernels wait for copies on the device, where nobody sees for how long. */
        if ((stats->bytes_in | stats->bytes_out | stats->bytes_peer) != 0)
            device->transfer_s = NAN;
    }
}

/* On the virtual clock every run must be the same to the last tile and nanosecond. */
static uint64_t schedule_of(const run *r)
{
    uint64_t hash = fl_hash_bytes(FL_HASH_START, &r->session.info.seconds, sizeof(double));
    for (uint32_t d = 0; d < r->session.devices; d++) {
        const filch_device_stats *stats = &r->session.stats[d];
        const uint64_t counts[] = {stats->tiles,      stats->items,    stats->stolen_in,
                                   stats->stolen_out, stats->bytes_in, stats->bytes_out,
                                   stats->bytes_peer, stats->evicted};
        hash = fl_hash_bytes(hash, counts, sizeof counts);
    }
    return r->workload->schedule ? r->workload->schedule(r->state, hash) : hash;
}

static filch_status compare_schedule(run *r, size_t round, filch_error *error)
{
    uint64_t schedule = schedule_of(r);
    if (round == 0)
        r->result.schedule = schedule;
    if (schedule != r->result.schedule)
        return bench_fail(error, FILCH_DATA, "sim", 0,
                          "run %zu has another schedule (%016llx) than the first (%016llx)",
                          round + 1, (unsigned long long)schedule,
                          (unsigned long long)r->result.schedule);
    return FILCH_OK;
}

/* Each short measured run directly follows one that is not counted where a peer has just had the
 * caches and the cores to itself; the peer is treated alike. */
static filch_status measure_filch(run *r, size_t round, filch_error *error)
{
    double *seconds = &r->result.seconds[round];
    filch_status status = FILCH_OK;
    if (r->is_cold)
        status = bench_session_reopen(&r->session, &r->config, error);
    else if (round == 0 || (r->versus_count && r->result.seconds[round - 1] < LONG_RUN_S))
        status = bench_session_run(&r->session, seconds, error);
    r->session.wants_path = round + 1 == r->result.repeat; /* no run follows that is measured */
    if (status == FILCH_OK)
        status = bench_session_run(&r->session, seconds, error);
    r->session.wants_path = false;
    if (status == FILCH_OK && r->session.is_virtual)
        status = compare_schedule(r, round, error);
    if (status == FILCH_OK)
        add_device_stats(r);
    r->result.cpu_s += r->session.cpu_s;
    return status;
}

static filch_status measure_versus(run *r, size_t index, size_t round, filch_error *error)
{
    bench_versus *versus = &r->versus[index];
    bench_versus_result *result = &r->result.versus[index];
    double *seconds = result->seconds;
    filch_status status = FILCH_OK;
    if (!r->is_cold && (round == 0 || seconds[round - 1] < LONG_RUN_S))
        status = bench_versus_run(versus, &seconds[round], error);
    if (status == FILCH_OK)
        status = bench_versus_run(versus, &seconds[round], error);
    result->cpu_s += versus->cpu_s;
    result->visits += versus->session.moves.visits; /* a peer has none */
    result->moves += versus->session.moves.moves;
    return status;
}

static filch_status measure(run *r, filch_error *error)
{
    size_t repeat = r->result.repeat;
    bool settles = r->versus_count && !r->session.is_virtual;
    filch_status status = FILCH_OK;
    bench_progress progress;
    bench_progress_start(&progress, stderr, r->workload->name, repeat);
    for (size_t k = 0; k < repeat && status == FILCH_OK; k++) {
        if (settles)
            (void)bench_settle(SETTLE_LIMIT_S);
        status = measure_filch(r, k, error);
        for (size_t v = 0; v < r->versus_count && status == FILCH_OK; v++) {
            if (settles)
                (void)bench_settle(SETTLE_LIMIT_S);
            status = measure_versus(r, v, k, error);
        }
        bench_progress_step(&progress);
    }
    bench_progress_end(&progress);
    if (settles)
        (void)bench_settle(SETTLE_LIMIT_S);
    return status;
}

/* A device alone need not do all of a problem that many devices share: it is measured for as long
 * as a run of all of them takes, which is how long it is at its share. */
static filch_status measure_share(run *r, filch_error *error)
{
    double seconds = 0;
    if (r->session.is_virtual || r->session.devices == 1 || !r->workload->is_even)
        return FILCH_OK;
    filch_status status = bench_session_run(&r->session, &seconds, error);
    r->part_s = fmax(seconds, PART_LEAST_S);
    return status;
}

/* A lone device that nothing slows is alone in the measured runs: the fastest run counts. A second
 * runtime for it would change what is measured, as every runtime has streams of its own, and a GPU
 * runs short kernels a third slower where a process has many. */
static bool is_measured_alone(const run *r)
{
    return r->session.devices == 1 && !r->session.is_virtual && r->options->slow.factor == 0 &&
           !r->options->withdraw.is_asked;
}

static double speed_of_runs(const run *r)
{
    bench_problem problem = {0};
    double best = INFINITY;
    r->workload->describe(r->state, &problem);
    for (size_t k = 0; k < r->result.repeat; k++)
        best = fmin(best, r->result.seconds[k]);
    return best > 0 ? problem.work / best : 0;
}

/* Called before and after the measured runs, adding half each time: machines drift. */
static filch_status measure_speeds(run *r, bool is_after, filch_error *error)
{
    filch_status status = FILCH_OK;
    bench_progress progress;
    if (r->options->no_speeds) {
        for (uint32_t d = 0; d < r->session.devices; d++)
            r->result.devices[d].speed = NAN;
        return FILCH_OK;
    }
    if (is_measured_alone(r)) {
        r->result.devices[0].speed = is_after ? speed_of_runs(r) : 0;
        return FILCH_OK;
    }
    bench_progress_start(&progress, stderr, "each device alone", r->session.devices);
    for (uint32_t d = 0; d < r->session.devices && status == FILCH_OK; d++) {
        double speed = 0;
        uint32_t like = d;
        /* Simulated devices of one description are exactly alike. */
        for (uint32_t k = 0; k < d && r->session.is_virtual && like == d; k++)
            if (strcmp(r->session.device_info[k].model, r->session.device_info[d].model) == 0)
                like = k;
        if (like != d) {
            r->result.devices[d].speed = r->result.devices[like].speed;
        } else {
            status =
                bench_session_speed_alone(&r->session, &r->config, d, r->part_s, &speed, error);
            r->result.devices[d].speed += speed / 2;
        }
        bench_progress_step(&progress);
    }
    bench_progress_end(&progress);
    return status;
}

/* --- The whole run --- */

static void describe_result(run *r)
{
    static const char *const backends[] = {"", "host", "cuda", "sim"};
    bench_result *result = &r->result;
    bench_problem problem = {0};
    r->workload->describe(r->state, &problem);
    result->n = problem.n;
    result->tile = problem.tile;
    result->tile_cols = problem.tile_cols;
    result->steps = problem.steps;
    snprintf(result->step, sizeof result->step, "%s", problem.step ? problem.step : "");
    snprintf(result->variant, sizeof result->variant, "%s", problem.variant);
    snprintf(result->how, sizeof result->how, "%s", problem.how);
    result->slow = r->options->slow;
    result->withdraw = r->options->withdraw;
    result->work = problem.work;
    snprintf(result->workload, sizeof result->workload, "%s", r->workload->name);
    filch_policy_counts policy = {.size = sizeof policy};
    (void)filch_runtime_policy(r->session.built.runtime, &policy);
    snprintf(result->policy, sizeof result->policy, "%.15s",
             r->options->policy == BENCH_POLICY_DEFAULT ? policy.name
                                                        : bench_policy_name(r->options->policy));
    snprintf(result->precision, sizeof result->precision, "%s",
             r->options->precision == BENCH_SINGLE ? "single" : "double");
    snprintf(result->work_unit, sizeof result->work_unit, "%s", r->workload->unit);
    for (size_t k = 0; k < r->versus_count; k++) {
        bench_versus_result *versus = &result->versus[k];
        snprintf(versus->name, sizeof versus->name, "%s", r->versus[k].name);
        snprintf(versus->setting, sizeof versus->setting, "%s",
                 bench_versus_setting(&r->versus[k]));
    }
    result->startup = (bench_startup_result){
        .is_known = r->startup.count > 0,
        .driver_s = r->startup.driver_s,
        .vendor_s = r->vendor_s,
        .rest_s = r->ready_s - r->startup.begin_s - r->startup.driver_s - r->vendor_s,
    };
    for (uint32_t d = 0; d < r->session.devices; d++) {
        const filch_device_info *info = &r->session.device_info[d];
        bench_device_result *device = &result->devices[d];
        snprintf(device->name, sizeof device->name, "%s", info->name);
        snprintf(device->model, sizeof device->model, "%s", info->model);
        snprintf(device->backend, sizeof device->backend, "%s", backends[info->backend]);
        device->score = info->score;
    }
}

/* One more run, neither counted nor timed, that may be traced, checked and drawn. */
static filch_status run_last(run *r, filch_error *error)
{
    const bench_options *o = r->options;
    const bench_workload *w = r->workload;
    filch_runtime *runtime;
    double seconds;
    filch_status status =
        r->is_cold ? bench_session_reopen(&r->session, &r->config, error) : FILCH_OK;
    if (status != FILCH_OK)
        return status;
    runtime = r->session.built.runtime;
    bool rebuild = false;
    if (o->check && w->check_begin)
        status = w->check_begin(r->state, &rebuild, error);
    if (status == FILCH_OK && rebuild)
        status = bench_session_rebuild(&r->session, error);
    bool records = o->trace || o->report;
    if (status == FILCH_OK && records && (status = filch_trace_start(runtime)) != FILCH_OK)
        status = bench_runtime_failed(runtime, status, o->trace ? "--trace" : "--report", error);
    if (status == FILCH_OK)
        status = bench_session_run(&r->session, &seconds, error);
    if (records)
        (void)filch_trace_stop(runtime); /* what the check does is no part of the run */
    if (status == FILCH_OK && o->check) {
        status = w->check(r->state, &r->result.residual, error);
        r->result.checked = status == FILCH_OK;
    }
    if (o->check && w->check_end)
        w->check_end(r->state);
    if (status == FILCH_OK && o->trace) {
        filch_status written = filch_trace_write(runtime, o->trace);
        status = written == FILCH_OK ? bench_overlap_read(o->trace, &r->result.overlap, error)
                                     : bench_runtime_failed(runtime, written, "--trace", error);
    }
    if (status == FILCH_OK && o->image)
        status = w->image(r->state, o->image, r->session.devices, error);
    return status;
}

static filch_status finish(run *r, filch_error *error)
{
    const bench_options *o = r->options;
    filch_status status = FILCH_OK;
    if (o->check || o->trace || o->report || o->image)
        status = run_last(r, error);
    filch_status agrees = FILCH_OK;
    for (size_t k = 0; k < r->versus_count && status == FILCH_OK && agrees == FILCH_OK; k++)
        if (o->check || r->versus[k].peer)
            agrees = bench_versus_agrees(&r->versus[k], error);
    describe_result(r);
    if (status == FILCH_OK)
        status = bench_bound_measure(&r->session, &r->config, &r->result, error);
    bench_result_derive(&r->result);
    if (status == FILCH_OK || status == FILCH_DATA)
        (void)bench_show(r->out, &r->result);
    if (r->session.is_virtual && status == FILCH_OK)
        fprintf(r->out, "\nschedule %016llx, the same in %zu runs\n",
                (unsigned long long)r->result.schedule, r->result.repeat);
    if (status == FILCH_OK && o->json)
        status = bench_json_write(o->json, &r->result, error);
    if (status == FILCH_OK && o->report)
        status = bench_report_write(o->report, r->session.built.runtime, &r->result, error);
    return status == FILCH_OK ? agrees : status;
}

/* The true speeds that the static policy with perfect scores goes by: simulated devices tell
 * theirs; others are measured, each alone. */
static filch_status measure_scores(run *r, filch_error *error)
{
    bench_session probe;
    bench_session_config config = r->config;
    config.policy = BENCH_POLICY_STATIC;
    filch_status status = bench_session_open(&probe, r->workload, r->state, &config, error);
    if (status != FILCH_OK)
        return status;
    r->scores = calloc(probe.devices, sizeof *r->scores);
    if (!r->scores)
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--policy", 0, "no memory for the scores");
    for (uint32_t d = 0; !probe.is_virtual && d < probe.devices && status == FILCH_OK; d++)
        status = bench_session_speed_alone(&probe, &config, d, 0, &r->scores[d], error);
    if (!probe.is_virtual) {
        r->config.scores = r->scores;
        r->config.score_count = probe.devices;
    }
    bench_session_close(&probe);
    return status;
}

/* What cannot be written is told before the run, not after it. */
static filch_status check_files(const bench_options *o, filch_error *error)
{
    filch_status status = bench_file_check("--json", o->json, true, error);
    if (status == FILCH_OK)
        status = bench_file_check("--trace", o->trace, false, error);
    if (status == FILCH_OK)
        status = bench_file_check("--report", o->report, false, error);
    return status == FILCH_OK ? bench_file_check("--image", o->image, false, error) : status;
}

/* Options that the workload, or another option, leaves without a meaning. */
static filch_status check_options(const run *r, filch_error *error)
{
    const bench_options *o = r->options;
    if (o->image && !r->workload->image)
        return bench_fail(error, FILCH_UNSUPPORTED, "--image", 0, "%s has no picture",
                          r->workload->name);
    if ((o->pinned || o->pageable) && !r->workload->takes_memory)
        return bench_fail(error, FILCH_UNSUPPORTED, o->pinned ? "--pinned" : "--pageable", 0,
                          "%s has the memory that it has", r->workload->name);
    if (o->cost && !r->workload->takes_cost)
        return bench_fail(error, FILCH_UNSUPPORTED, "--cost", 0, "%s costs what it costs",
                          r->workload->name);
    if (o->tile_cols && !r->workload->takes_cols)
        return bench_fail(error, FILCH_UNSUPPORTED, "--tile-cols", 0, "%s has square tiles",
                          r->workload->name);
    const char *beyond = bench_options_beyond(o, r->workload->takes);
    if (beyond)
        return bench_fail(error, FILCH_UNSUPPORTED, beyond, 0, "means nothing to %s",
                          r->workload->name);
    if (o->slow.factor && (!r->workload->takes_slow || bench_is_simulated(o)))
        return bench_fail(error, FILCH_UNSUPPORTED, "--slow", 0, "%s",
                          bench_is_simulated(o) ? "simulated devices are as their file says"
                                                : "its tiles cannot be done again");
    if (o->withdraw.is_asked && (o->slow.factor || bench_is_simulated(o)))
        return bench_fail(error, FILCH_UNSUPPORTED, "--withdraw", 0, "%s",
                          o->slow.factor ? "not together with --slow"
                                         : "simulated devices are as their file says");
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < o->versus_count && status == FILCH_OK; k++)
        status = bench_versus_exists(o->versus[k], r->workload, error);
    return status;
}

static filch_status open_run(run *r, filch_error *error)
{
    const bench_options *o = r->options;
    bench_problem problem = {0};
    filch_status status = check_options(r, error);
    if (status == FILCH_OK)
        status = check_files(o, error);
    if (status == FILCH_OK)
        status = r->workload->setup(o, error, &r->state);
    if (status != FILCH_OK)
        return status;
    r->config = (bench_session_config){.devices = o->devices,
                                       .score = o->score,
                                       .scores = o->scores,
                                       .score_count = o->score_count,
                                       .policy = o->policy,
                                       .memory_limit = o->memory_limit,
                                       .slow = o->slow,
                                       .withdraw = o->withdraw};
    if (o->policy == BENCH_POLICY_PERFECT && !o->scores)
        status = measure_scores(r, error);
    if (status == FILCH_OK)
        status = bench_session_open(&r->session, r->workload, r->state, &r->config, error);
    if (status != FILCH_OK)
        return status;
    if (o->slow.factor && o->slow.device >= r->session.devices)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--slow", 0, "there are %u devices",
                          r->session.devices);
    if (o->withdraw.is_asked && o->withdraw.device >= r->session.devices)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--withdraw", 0, "there are %u devices",
                          r->session.devices);
    r->ready_s = bench_now_s();
    r->workload->describe(r->state, &problem);
    r->vendor_s = problem.vendor_s;
    r->is_cold = o->cold || r->session.is_virtual;
    if (r->workload->tiles && !r->session.is_virtual)
        status = choose_tile(r, error);
    if (status != FILCH_OK)
        return status;
    r->workload->describe(r->state, &problem);
    fprintf(r->out, "%s\n\n", problem.text);
    if (!bench_result_init(&r->result, r->session.devices, o->repeat, o->versus_count))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--repeat", 0, "no memory for the results");
    if (o->versus_count) /* contenders find room for their operands */
        status = bench_session_trim(&r->session, error);
    for (size_t k = 0; k < o->versus_count && status == FILCH_OK; k++) {
        status = bench_versus_open(&r->versus[k], o->versus[k], &r->session, &r->config, r->is_cold,
                                   error);
        r->versus_count += status == FILCH_OK;
    }
    return status;
}

static int execute(const bench_options *options, const char *command)
{
    run r = {.options = options, .workload = bench_workload_find(options->workload)};
    r.out = options->json && strcmp(options->json, "-") == 0 ? stderr : stdout;
    filch_error error = FILCH_ERROR_INIT;
    bench_startup_open(&r.startup, options->devices);
    int before = bench_blas_threads_set(1);
    filch_status status = open_run(&r, &error);
    if (status == FILCH_OK)
        status = measure_share(&r, &error);
    if (status == FILCH_OK)
        status = measure_speeds(&r, false, &error);
    if (status == FILCH_OK)
        status = measure(&r, &error);
    if (status == FILCH_OK)
        status = measure_speeds(&r, true, &error);
    bool measured = status == FILCH_OK;
    if (measured)
        status = finish(&r, &error);
    for (size_t k = 0; k < BENCH_VERSUS_MOST; k++)
        bench_versus_close(&r.versus[k]);
    if (r.session.built.runtime)
        bench_session_close(&r.session);
    bench_result_free(&r.result);
    free(r.scores);
    if (r.state)
        r.workload->teardown(r.state);
    bench_startup_close(&r.startup);
    bench_blas_threads_set(before);
    if (status == FILCH_OK)
        return BENCH_EXIT_OK;
    int code = bench_cli_fail(command, &error);
    return measured && status == FILCH_DATA ? BENCH_EXIT_FAILED : code;
}

static void print_help(const char *command)
{
    printf("usage: filch-bench %s WORKLOAD [options]\n", command);
    for (size_t k = 0; bench_workload_at(k); k++)
        printf("  %-12s %s\n", bench_workload_at(k)->name, bench_workload_at(k)->help);
    printf("options:\n%s", bench_options_usage());
}

int bench_run_command(int argc, char **argv, bool must_simulate)
{
    bench_options options;
    filch_error error = FILCH_ERROR_INIT;
    const char *command = argv[0];
    if (bench_options_parse(argc, argv, &options, &error) != FILCH_OK)
        return bench_cli_fail(command, &error);
    int code;
    if (options.help) {
        print_help(command);
        code = BENCH_EXIT_OK;
    } else if (!bench_workload_find(options.workload)) {
        (void)bench_fail(&error, FILCH_NOT_FOUND, options.workload, 0,
                         "is no workload; --help lists them");
        code = bench_cli_fail(command, &error);
    } else if (must_simulate && !bench_is_simulated(&options)) {
        (void)bench_fail(&error, FILCH_PARSE, "--devices", 0,
                         "sim:FILE is missing: a file that describes the devices");
        code = bench_cli_fail(command, &error);
    } else {
        code = execute(&options, command);
    }
    bench_options_free(&options);
    return code;
}

int bench_run_main(int argc, char **argv)
{
    return bench_run_command(argc, argv, false);
}
