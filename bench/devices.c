/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench devices`: what filch would run on here, and what it would not and why. */
#define _GNU_SOURCE
#include "cli.h"
#include "fail.h"
#include "table.h"

#include "filch/filch.h"

#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* What can be asked for as a whole; a backend without devices says why. */
static const char *const backends[] = {"cuda", "host"};

#define BACKENDS (sizeof backends / sizeof *backends)

typedef struct request {
    const char *devices; /* null: filch's choice */
    const char *json;    /* null: a table; "-" or a file */
    bool help;
} request;

static const char usage[] = "usage: filch-bench devices [--devices SPEC] [--json[=FILE]]\n"
                            "  --devices SPEC  these instead of filch's own choice\n"
                            "  --json[=FILE]   as JSON, on standard output or in a file\n";

static filch_status parse(int argc, char **argv, request *r, filch_error *error)
{
    static const struct option options[] = {
        {"devices", required_argument, NULL, 'd'},
        {"json", optional_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int id;
    optind = 0;
    opterr = 0;
    while ((id = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (id == 'd')
            r->devices = optarg;
        else if (id == 'j')
            r->json = optarg ? optarg : "-";
        else if (id == 'h')
            r->help = true;
        else
            return bench_fail(error, FILCH_PARSE, argv[optind - 1], 0,
                              "is not an option, or its value is missing");
    }
    if (optind < argc)
        return bench_fail(error, FILCH_PARSE, argv[optind], 0, "is one word too many");
    return FILCH_OK;
}

static filch_status open_runtime(const char *devices, filch_runtime **runtime, filch_error *error)
{
    filch_config config = FILCH_CONFIG_INIT;
    config.devices = devices;
    config.drive = FILCH_DRIVE_POLL; /* nothing will run: no threads */
    return filch_runtime_create(&config, error, runtime);
}

/* Why a backend gives no devices; empty where it gives some. */
static void reason_missing(const char *backend, char *text, size_t size)
{
    filch_runtime *runtime = NULL;
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = open_runtime(backend, &runtime, &error);
    if (status == FILCH_OK) {
        (void)filch_runtime_destroy(runtime);
        snprintf(text, size, "%s", "");
    } else {
        snprintf(text, size, "%s", error.text[0] ? error.text : filch_status_message(status));
    }
}

static const char *backend_name(filch_backend backend)
{
    return backend == FILCH_BACKEND_CUDA ? "cuda" : backend == FILCH_BACKEND_SIM ? "sim" : "host";
}

static filch_status describe(filch_runtime *runtime, uint32_t index, filch_device_info *info,
                             filch_error *error)
{
    info->size = sizeof *info;
    filch_status status = filch_device_at(runtime, index, info);
    if (status != FILCH_OK)
        (void)filch_runtime_error(runtime, error);
    return status;
}

static filch_status print_table(filch_runtime *runtime, filch_error *error)
{
    static const char *const titles[] = {"score", "team", "memory", "free"};
    bench_table table = {0};
    filch_status status = FILCH_OK;
    bench_table_column(&table, true, "device");
    bench_table_column(&table, true, "model");
    for (size_t k = 0; k < sizeof titles / sizeof *titles; k++)
        bench_table_column(&table, false, titles[k]);
    for (uint32_t d = 0; d < filch_device_count(runtime) && status == FILCH_OK; d++) {
        filch_device_info info;
        char text[32];
        status = describe(runtime, d, &info, error);
        if (status != FILCH_OK)
            break;
        bench_table_cell(&table, "%s", info.name);
        bench_table_cell(&table, "%s", info.model);
        bench_table_cell(&table, "%.4g", info.score);
        bench_table_cell(&table, "%u", info.team);
        bench_format_si((double)info.memory_total, text, sizeof text);
        bench_table_cell(&table, "%sB", text);
        bench_format_si((double)info.memory_free, text, sizeof text);
        bench_table_cell(&table, "%sB", text);
    }
    if (status == FILCH_OK && !bench_table_print(&table, stdout))
        status = bench_fail(error, FILCH_IO, "devices", 0, "the table could not be printed");
    bench_table_free(&table);
    for (size_t k = 0; k < BACKENDS && status == FILCH_OK; k++) {
        char reason[256];
        reason_missing(backends[k], reason, sizeof reason);
        if (reason[0])
            printf("\nmissing: %s: %s\n", backends[k], reason);
    }
    return status;
}

static json_t *device_json(const filch_device_info *info)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I}", "name", info->name, "model",
                     info->model, "backend", backend_name(info->backend), "ordinal",
                     (json_int_t)info->ordinal, "place", (json_int_t)info->place, "score",
                     info->score, "team", (json_int_t)info->team, "memory_total",
                     (json_int_t)info->memory_total, "memory_free", (json_int_t)info->memory_free);
}

static filch_status fill_json(filch_runtime *runtime, json_t *devices, json_t *missing,
                              filch_error *error)
{
    bool failed = false;
    for (uint32_t d = 0; d < filch_device_count(runtime); d++) {
        filch_device_info info;
        filch_status status = describe(runtime, d, &info, error);
        if (status != FILCH_OK)
            return status;
        failed |= json_array_append_new(devices, device_json(&info)) != 0;
    }
    for (size_t k = 0; k < BACKENDS; k++) {
        char reason[256];
        reason_missing(backends[k], reason, sizeof reason);
        if (reason[0])
            failed |= json_array_append_new(missing, json_pack("{s:s, s:s}", "backend", backends[k],
                                                               "reason", reason)) != 0;
    }
    return failed ? bench_fail(error, FILCH_OUT_OF_MEMORY, "--json", 0, "no memory") : FILCH_OK;
}

static filch_status print_json(filch_runtime *runtime, const char *path, filch_error *error)
{
    json_t *devices = json_array();
    json_t *missing = json_array();
    filch_status status = devices && missing
                              ? fill_json(runtime, devices, missing, error)
                              : bench_fail(error, FILCH_OUT_OF_MEMORY, "--json", 0, "no memory");
    json_t *document = json_pack("{s:o, s:o}", "devices", devices, "missing", missing);
    if (status == FILCH_OK) {
        FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
        bool failed = !document || !file || json_dumpf(document, file, JSON_INDENT(2)) != 0 ||
                      putc('\n', file) == EOF || fflush(file) != 0;
        if (file && file != stdout)
            failed |= fclose(file) != 0;
        if (failed)
            status = bench_fail(error, FILCH_IO, path, 0, "cannot be written");
    }
    json_decref(document);
    return status;
}

int bench_devices_main(int argc, char **argv)
{
    request r = {0};
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    filch_status status = parse(argc, argv, &r, &error);
    if (status == FILCH_OK && r.help) {
        fputs(usage, stdout);
        return BENCH_EXIT_OK;
    }
    if (status == FILCH_OK)
        status = open_runtime(r.devices, &runtime, &error);
    if (status == FILCH_OK) {
        status = r.json ? print_json(runtime, r.json, &error) : print_table(runtime, &error);
        (void)filch_runtime_destroy(runtime);
    }
    return status == FILCH_OK ? BENCH_EXIT_OK : bench_cli_fail("devices", &error);
}
