/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench sim`: a workload on simulated devices, or a recorded run on others. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "measure/run.h"
#include "sim/sim_jobs.h"
#include "sim/sim_replay.h"
#include "support/fail.h"
#include "support/table.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct request {
    const char *from;
    const char *devices; /* null: the record's */
    bool help;
} request;

static const char usage[] =
    "usage: filch-bench sim --from TRACE [--devices sim:FILE]\n"
    "       filch-bench sim WORKLOAD --devices sim:FILE [options of run]\n"
    "  --from TRACE        a trace of any program (filch_trace_write, filch-bench run --trace):\n"
    "                      predicts how long the same jobs take, their copies included\n"
    "  --devices sim:FILE  on these devices, where a device like the record's first one has speed\n"
    "                      1e9; without it on the record's own\n"
    "WORKLOAD and its options: see filch-bench run --help.\n";

static filch_status parse(int argc, char **argv, request *r, filch_error *error)
{
    static const struct option options[] = {
        {"from", required_argument, NULL, 'f'},
        {"devices", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int id;
    optind = 0;
    opterr = 0;
    while ((id = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (id == 'f')
            r->from = optarg;
        else if (id == 'd')
            r->devices = optarg;
        else if (id == 'h')
            r->help = true;
        else
            return bench_fail(error, FILCH_PARSE, argv[optind - 1], 0,
                              "is no option of sim --from, or its value is missing");
    }
    if (optind < argc)
        return bench_fail(error, FILCH_PARSE, argv[optind], 0, "is one word too many");
    if (r->devices && strncmp(r->devices, "sim:", 4) != 0)
        return bench_fail(error, FILCH_PARSE, "--devices", 0,
                          "'%s' is not sim:FILE, a file that describes the devices", r->devices);
    return FILCH_OK;
}

static bool show_devices(const bench_sim_prediction *prediction)
{
    bench_table table = {0};
    bench_table_column(&table, true, "device");
    bench_table_column(&table, false, "busy");
    bench_table_column(&table, false, "tiles");
    for (uint32_t d = 0; d < prediction->devices; d++) {
        bench_table_cell(&table, "%s", prediction->names[d]);
        bench_table_cell(&table, "%.4g ms", prediction->busy_s[d] * 1e3);
        bench_table_cell(&table, "%llu", (unsigned long long)prediction->tiles[d]);
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

static filch_status predict(const request *r, filch_error *error)
{
    bench_sim_record record;
    bench_sim_prediction prediction = {0};
    filch_status status = bench_sim_record_read(&record, r->from, error);
    if (status != FILCH_OK)
        return status;
    printf("recorded: %zu tiles of %zu jobs on %zu devices, %.4f ms\n", record.tile_count,
           record.job_count, record.device_count, record.seconds * 1e3);
    if (record.loose != 0)
        printf("  of %zu tasks it does not say what they waited for: here for nothing\n",
               record.loose);
    if (record.blind != 0)
        printf("  of %zu tiles it does not say what they use: here nothing\n", record.blind);
    if (record.twice != 0)
        printf("  %zu chunks ran twice: here once\n", record.twice);
    status = bench_sim_predict(&record, r->devices, &prediction, error);
    if (status == FILCH_OK) {
        printf("predicted %s%s: %.4f ms, %+.1f %%; from %.4f to %.4f ms in several runs\n",
               r->devices ? "on " : "there", r->devices ? r->devices : "", prediction.seconds * 1e3,
               (prediction.seconds / record.seconds - 1) * 100, prediction.least_s * 1e3,
               prediction.most_s * 1e3);
        show_copies(&record, &prediction);
        status = bench_sim_jobs_show(&record, &prediction, stdout, error);
        printf("\n");
        if (status == FILCH_OK && !show_devices(&prediction))
            status = bench_fail(error, FILCH_IO, "standard output", 0, "cannot be written");
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
