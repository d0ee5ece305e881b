/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench sim`: a workload on simulated devices, or a recorded run on others. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/options.h"
#include "measure/run.h"
#include "sim/sim_jobs.h"
#include "sim/sim_replay.h"
#include "support/fail.h"
#include "support/file_out.h"
#include "support/table.h"

#include <jansson.h>

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct request {
    const char *from;
    bench_sim_setup setup;
    bool help;
} request;

static const char usage[] =
    "usage: filch-bench sim --from TRACE [--devices sim:FILE] [--policy WORD] [--trace FILE]\n"
    "       filch-bench sim WORKLOAD --devices sim:FILE [options of run]\n"
    "  --from TRACE        a trace of any program (filch_trace_write, filch-bench run --trace):\n"
    "                      predicts how long the same jobs take, their copies included\n"
    "  --devices sim:FILE  on these devices, where a device like the record's first one has speed\n"
    "                      1e9; without it on the record's own\n"
    "  --policy WORD       steal (default), static, perfect, central, guided, round-robin,\n"
    "                      earliest: as of filch-bench run\n"
    "  --trace FILE        write a trace of the simulated run that is told: of the median one\n"
    "WORKLOAD and its options: see filch-bench run --help.\n";

static filch_status parse(int argc, char **argv, request *r, filch_error *error)
{
    static const struct option options[] = {
        {"from", required_argument, NULL, 'f'},   {"devices", required_argument, NULL, 'd'},
        {"policy", required_argument, NULL, 'p'}, {"trace", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    filch_status status = FILCH_OK;
    int id;
    optind = 0;
    opterr = 0;
    while (status == FILCH_OK && (id = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (id == 'f')
            r->from = optarg;
        else if (id == 'd')
            r->setup.devices = optarg;
        else if (id == 'p')
            status = bench_options_policy(optarg, &r->setup.policy, error);
        else if (id == 't')
            r->setup.trace = optarg;
        else if (id == 'h')
            r->help = true;
        else
            return bench_fail(error, FILCH_PARSE, argv[optind - 1], 0,
                              "is no option of sim --from, or its value is missing");
    }
    if (status != FILCH_OK)
        return status;
    if (optind < argc)
        return bench_fail(error, FILCH_PARSE, argv[optind], 0, "is one word too many");
    if (r->setup.devices && strncmp(r->setup.devices, "sim:", 4) != 0)
        return bench_fail(error, FILCH_PARSE, "--devices", 0,
                          "'%s' is not sim:FILE, a file that describes the devices",
                          r->setup.devices);
    return FILCH_OK;
}

/* Before the simulation, not after it. The record is not to be lost to its replay. */
static filch_status check_trace(const request *r, filch_error *error)
{
    struct stat from, trace;
    const char *path = r->setup.trace;
    if (path && path[0] == '\0')
        return bench_fail(error, FILCH_PARSE, "--trace", 0, "the value is empty");
    if (path && stat(r->from, &from) == 0 && stat(path, &trace) == 0 &&
        from.st_dev == trace.st_dev && from.st_ino == trace.st_ino)
        return bench_fail(error, FILCH_PARSE, "--trace", 0, "%s is the trace that --from reads",
                          path);
    return bench_file_check("--trace", path, false, error);
}

static bool show_devices(const bench_sim_prediction *prediction)
{
    bench_table table = {0};
    bench_table_column(&table, true, "device");
    bench_table_column(&table, false, "busy");
    bench_table_column(&table, false, "tiles");
    bench_table_column(&table, false, "stolen");
    for (uint32_t d = 0; d < prediction->devices; d++) {
        bench_table_cell(&table, "%s", prediction->names[d]);
        bench_table_cell(&table, "%.4g ms", prediction->busy_s[d] * 1e3);
        bench_table_cell(&table, "%llu", (unsigned long long)prediction->tiles[d]);
        bench_table_cell(&table, "%llu", (unsigned long long)prediction->stolen[d]);
    }
    bool printed = bench_table_print(&table, stdout);
    bench_table_free(&table);
    return printed;
}

/* Bytes in, out and between devices. */
static void show_copies(const bench_sim_record *record, const bench_sim_prediction *prediction)
{
    static const char *const ways[] = {
        [BENCH_SIM_IN] = "in", [BENCH_SIM_OUT] = "out", [BENCH_SIM_PEER] = "from peers"};
    double bytes[BENCH_SIM_WAYS] = {0}, end_us = 0;
    /* What is brought home after the last job is no part of it. */
    for (size_t k = 0; k < record->job_count; k++)
        end_us = fmax(end_us, record->jobs[k].end_us);
    for (size_t k = 0; k < record->copy_count && record->copies[k].start_us < end_us; k++)
        bytes[record->copies[k].way] += record->copies[k].bytes;
    for (int way = 0; way < BENCH_SIM_WAYS; way++)
        if (bytes[way] > 0 || prediction->bytes[way] > 0)
            printf("copied %s: %.4g GB, predicted %.4g GB\n", ways[way], bytes[way] / 1e9,
                   prediction->bytes[way] / 1e9);
    printf("\n");
}

/* A replay on few devices has more events a worker than the record, and may fill the rings. */
static void show_missing(const char *trace)
{
    json_t *root = json_load_file(trace, 0, NULL);
    json_int_t missing = json_integer_value(
        json_object_get(json_object_get(root, "otherData"), "events_overwritten"));
    json_decref(root);
    if (missing != 0)
        printf(
            "\n%s lacks %lld events, driven out by newer ones: a larger FILCH_TRACE_EVENTS keeps "
            "them\n",
            trace, (long long)missing);
}

static void show_record(const bench_sim_record *record)
{
    printf("recorded: %zu tiles of %zu jobs on %zu devices, %.4f ms\n", record->tile_count,
           record->job_count, record->device_count, record->seconds * 1e3);
    if (record->loose != 0)
        printf("  of %zu tasks it does not say what they waited for: here for nothing\n",
               record->loose);
    if (record->blind != 0)
        printf("  of %zu tiles it does not say what they use: here nothing\n", record->blind);
    if (record->twice != 0)
        printf("  %zu chunks ran twice: here once\n", record->twice);
}

static void show_seconds(const bench_sim_setup *setup, const bench_sim_record *record,
                         const bench_sim_prediction *prediction)
{
    const char *policy = bench_policy_name(setup->policy);
    printf("predicted %s%s%s%s: %.4f ms, %+.1f %%; from %.4f to %.4f ms in several runs\n",
           setup->devices ? "on " : "there", setup->devices ? setup->devices : "",
           policy[0] != '\0' ? " with policy " : "", policy, prediction->seconds * 1e3,
           (prediction->seconds / record->seconds - 1) * 100, prediction->least_s * 1e3,
           prediction->most_s * 1e3);
}

static filch_status predict(const request *r, filch_error *error)
{
    bench_sim_record record;
    bench_sim_prediction prediction = {0};
    filch_status status = check_trace(r, error);
    if (status == FILCH_OK)
        status = bench_sim_record_read(&record, r->from, error);
    if (status != FILCH_OK)
        return status;
    show_record(&record);
    status = bench_sim_predict(&record, &r->setup, &prediction, error);
    if (status == FILCH_OK) {
        show_seconds(&r->setup, &record, &prediction);
        show_copies(&record, &prediction);
        status = bench_sim_jobs_show(&record, &prediction, stdout, error);
        printf("\n");
        if (status == FILCH_OK && !show_devices(&prediction))
            status = bench_fail(error, FILCH_IO, "standard output", 0, "cannot be written");
        if (status == FILCH_OK && r->setup.trace)
            show_missing(r->setup.trace);
    }
    bench_sim_prediction_free(&prediction);
    bench_sim_record_free(&record);
    return status;
}

static bool is_from(int argc, char **argv)
{
    for (int k = 1; k < argc; k++)
        if (strcmp(argv[k], "--from") == 0 || strncmp(argv[k], "--from=", 7) == 0)
            return true;
    return false;
}

int bench_sim_main(int argc, char **argv)
{
    filch_error error = FILCH_ERROR_INIT;
    request r = {0};
    if (bench_cli_is_help(argc, argv)) {
        fputs(usage, stdout);
        return BENCH_EXIT_OK;
    }
    if (!is_from(argc, argv))
        return bench_run_command(argc, argv, true);
    if (parse(argc, argv, &r, &error) != FILCH_OK)
        return bench_cli_fail(argv[0], &error);
    if (r.help) {
        fputs(usage, stdout);
        return BENCH_EXIT_OK;
    }
    return predict(&r, &error) == FILCH_OK ? BENCH_EXIT_OK : bench_cli_fail(argv[0], &error);
}
