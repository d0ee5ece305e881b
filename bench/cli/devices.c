/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench devices`: what filch would run on here, and what it would not and why. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/rates.h"
#include "report/json_out.h"
#include "support/fail.h"
#include "support/table.h"

#include "base/config.h"
#include "filch/filch.h"
#include "module/nvrtc.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* What can be asked for as a whole; a backend without devices says why. */
static const char *const backends[] = {"cuda", "host"};

#define BACKENDS (sizeof backends / sizeof *backends)

typedef struct request {
    const char *devices; /* null: filch's choice */
    const char *json;    /* null: a table; "-" or a file */
    bool measure;
    bool speeds;
    bool help;
} request;

static const char usage[] =
    "usage: filch-bench devices [--devices SPEC] [--measure] [--speeds] [--json[=FILE]]\n"
    "  --devices SPEC  these instead of filch's own choice\n"
    "  --measure       also time copies between the host and GPUs, and among GPUs\n"
    "  --speeds        also run filch's own kernels on each, and show how fast they are\n"
    "  --json[=FILE]   as JSON, on standard output or in a file\n";

static filch_status parse(int argc, char **argv, request *r, filch_error *error)
{
    static const struct option options[] = {
        {"devices", required_argument, NULL, 'd'}, {"measure", no_argument, NULL, 'm'},
        {"speeds", no_argument, NULL, 's'},        {"json", optional_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    int id;
    optind = 0;
    opterr = 0;
    while ((id = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (id == 'd')
            r->devices = optarg;
        else if (id == 'm')
            r->measure = true;
        else if (id == 's')
            r->speeds = true;
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
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
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

/* Why CUDA sources cannot be compiled here; empty where they can. */
static void reason_no_compiler(char *text, size_t size)
{
    fl_nvrtc nvrtc;
    filch_error error = FILCH_ERROR_INIT;
    fl_settings settings;
    text[0] = '\0';
    filch_status status = fl_settings_read(&settings, NULL, &error);
    if (status == FILCH_OK)
        status = fl_nvrtc_load(&nvrtc, settings.nvrtc, 0, &error);
    if (status == FILCH_OK)
        fl_nvrtc_unload(&nvrtc);
    else
        snprintf(text, size, "%s", error.text[0] ? error.text : filch_status_message(status));
}

static const char *backend_name(filch_backend backend)
{
    return backend == FILCH_BACKEND_CUDA ? "cuda" : backend == FILCH_BACKEND_SIM ? "sim" : "host";
}

/* --- Everything that is shown --- */

typedef struct named_link {
    char from[16], to[16];
    filch_link link;
} named_link;

typedef struct lack {
    const char *what;
    char reason[256];
} lack;

typedef struct listing {
    filch_device_info *devices;
    size_t device_count, gpu_count; /* GPUs: by their ordinals, slices counted once */
    filch_device_refusal *refusals;
    size_t refusal_count;
    named_link *links;
    size_t link_count;
    lack lacks[BACKENDS + 1];
    size_t lack_count;
    bench_rates rates; /* empty where they are not asked for */
} listing;

static void listing_free(listing *l)
{
    free(l->devices);
    free(l->refusals);
    free(l->links);
    bench_rates_free(&l->rates);
}

static filch_status read_devices(filch_runtime *runtime, listing *l, filch_error *error)
{
    filch_status status = FILCH_OK;
    l->device_count = filch_device_count(runtime);
    l->refusal_count = filch_device_refused_count(runtime);
    l->devices = calloc(l->device_count, sizeof *l->devices);
    l->refusals = calloc(l->refusal_count + 1, sizeof *l->refusals);
    if (!l->devices || !l->refusals)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "devices", 0, "no memory");
    for (uint32_t d = 0; d < l->device_count && status == FILCH_OK; d++) {
        l->devices[d].size = sizeof l->devices[d];
        status = filch_device_at(runtime, d, &l->devices[d]);
    }
    for (uint32_t r = 0; r < l->refusal_count && status == FILCH_OK; r++) {
        l->refusals[r].size = sizeof l->refusals[r];
        l->refusals[r].error.size = sizeof l->refusals[r].error;
        status = filch_device_refused_at(runtime, r, &l->refusals[r]);
    }
    if (status != FILCH_OK)
        (void)filch_runtime_error(runtime, error);
    return status;
}

static void link_end(const listing *l, uint32_t device, char text[16])
{
    if (device == FILCH_LINK_HOST)
        snprintf(text, 16, "host");
    else
        snprintf(text, 16, "cuda:%" PRIu32, l->devices[device].ordinal);
}

static filch_status read_link(filch_runtime *runtime, listing *l, uint32_t from, uint32_t to)
{
    named_link *made = &l->links[l->link_count++];
    made->link.size = sizeof made->link;
    link_end(l, from, made->from);
    link_end(l, to, made->to);
    return filch_device_link(runtime, from, to, &made->link);
}

/* One device a GPU, whatever slices it is cut into. */
static void find_gpus(listing *l, uint32_t *gpus)
{
    for (uint32_t d = 0; d < l->device_count; d++) {
        size_t at = 0;
        if (l->devices[d].backend != FILCH_BACKEND_CUDA)
            continue;
        while (at < l->gpu_count && l->devices[gpus[at]].ordinal != l->devices[d].ordinal)
            at++;
        if (at == l->gpu_count)
            gpus[l->gpu_count++] = d;
    }
}

/* All ordered pairs of the GPUs, and where copies are measured the host with each. */
static filch_status read_links(filch_runtime *runtime, listing *l, bool measure, filch_error *error)
{
    uint32_t *gpus = calloc(l->device_count + 1, sizeof *gpus);
    filch_status status = FILCH_OK;
    if (gpus)
        find_gpus(l, gpus);
    l->links = calloc(l->gpu_count * (l->gpu_count + 1) + 1, sizeof *l->links);
    if (!gpus || !l->links) {
        free(gpus);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "devices", 0, "no memory");
    }
    if (measure)
        status = filch_device_measure_links(runtime);
    for (size_t g = 0; measure && g < l->gpu_count && status == FILCH_OK; g++) {
        status = read_link(runtime, l, FILCH_LINK_HOST, gpus[g]);
        if (status == FILCH_OK)
            status = read_link(runtime, l, gpus[g], FILCH_LINK_HOST);
    }
    for (size_t k = 0; k < l->gpu_count * l->gpu_count && status == FILCH_OK; k++) {
        uint32_t from = gpus[k / l->gpu_count], to = gpus[k % l->gpu_count];
        if (from != to)
            status = read_link(runtime, l, from, to);
    }
    if (status != FILCH_OK)
        (void)filch_runtime_error(runtime, error);
    free(gpus);
    return status;
}

static void add_lack(listing *l, const char *what)
{
    l->lacks[l->lack_count].what = what;
    l->lack_count += l->lacks[l->lack_count].reason[0] != '\0';
}

static filch_status listing_read(listing *l, const request *r, filch_error *error)
{
    filch_runtime *runtime = NULL;
    filch_status status = open_runtime(r->devices, &runtime, error);
    if (status != FILCH_OK)
        return status;
    status = read_devices(runtime, l, error);
    if (status == FILCH_OK)
        status = read_links(runtime, l, r->measure, error);
    (void)filch_runtime_destroy(runtime);
    if (status == FILCH_OK && r->speeds)
        status = bench_rates_measure(&l->rates, r->devices, error);
    for (size_t k = 0; k < BACKENDS; k++) {
        reason_missing(backends[k], l->lacks[l->lack_count].reason,
                       sizeof l->lacks[l->lack_count].reason);
        add_lack(l, backends[k]);
    }
    reason_no_compiler(l->lacks[l->lack_count].reason, sizeof l->lacks[l->lack_count].reason);
    add_lack(l, "nvrtc");
    return status;
}

/* --- As tables --- */

static void cell_bytes(bench_table *table, double bytes, const char *unit)
{
    char text[32];
    bench_format_si(bytes, text, sizeof text);
    if (bytes > 0)
        bench_table_cell(table, "%s%s", text, unit);
    else
        bench_table_cell(table, "-");
}

static bool print_devices(const listing *l)
{
    static const char *const titles[] = {"score",  "team",      "cc",   "memory", "free",
                                         "budget", "bandwidth", "node", "pci"};
    bench_table table = {0};
    bench_table_column(&table, true, "device");
    bench_table_column(&table, true, "model");
    size_t columns = l->gpu_count > 0 ? sizeof titles / sizeof *titles : 2;
    for (size_t k = 0; k < columns; k++)
        bench_table_column(&table, false, titles[k]);
    if (columns == 2) {
        bench_table_column(&table, false, "memory");
        bench_table_column(&table, false, "free");
    }
    for (size_t d = 0; d < l->device_count; d++) {
        const filch_device_info *info = &l->devices[d];
        bool is_gpu = info->backend == FILCH_BACKEND_CUDA;
        bench_table_cell(&table, "%s", info->name);
        bench_table_cell(&table, "%s", info->model);
        bench_table_cell(&table, "%.4g", info->score);
        bench_table_cell(&table, "%u", info->team);
        if (l->gpu_count > 0 && is_gpu)
            bench_table_cell(&table, "%u.%u", info->capability / 10, info->capability % 10);
        else if (l->gpu_count > 0)
            bench_table_cell(&table, "-");
        cell_bytes(&table, (double)info->memory_total, "B");
        cell_bytes(&table, (double)info->memory_free, "B");
        if (l->gpu_count == 0)
            continue;
        cell_bytes(&table, (double)info->budget, "B");
        cell_bytes(&table, info->bandwidth, "B/s");
        if (is_gpu && info->numa_node >= 0)
            bench_table_cell(&table, "%d", info->numa_node);
        else
            bench_table_cell(&table, "-");
        bench_table_cell(&table, "%s", info->pci[0] ? info->pci : "-");
    }
    bool printed = bench_table_print(&table, stdout);
    bench_table_free(&table);
    return printed;
}

static bool print_links(const listing *l)
{
    bench_table table = {0};
    if (l->link_count == 0)
        return true;
    bench_table_column(&table, true, "from");
    bench_table_column(&table, true, "to");
    bench_table_column(&table, true, "access");
    bench_table_column(&table, true, "atomics");
    bench_table_column(&table, false, "rank");
    bench_table_column(&table, false, "measured");
    for (size_t k = 0; k < l->link_count; k++) {
        const filch_link *link = &l->links[k].link;
        bench_table_cell(&table, "%s", l->links[k].from);
        bench_table_cell(&table, "%s", l->links[k].to);
        bench_table_cell(&table, link->has_access ? "yes" : "no");
        bench_table_cell(&table, link->has_atomics ? "yes" : "no");
        bench_table_cell(&table, "%d", link->rank);
        cell_bytes(&table, link->bandwidth, "B/s");
    }
    putchar('\n');
    bool printed = bench_table_print(&table, stdout);
    bench_table_free(&table);
    return printed;
}

static filch_status print_tables(const listing *l, filch_error *error)
{
    bool printed = print_devices(l) && print_links(l);
    if (printed && l->rates.count > 0) {
        putchar('\n');
        printed = bench_rates_print(&l->rates, stdout);
    }
    for (size_t r = 0; r < l->refusal_count; r++)
        printf("%sleft out: %s: %s\n", r ? "" : "\n", l->refusals[r].name,
               l->refusals[r].error.text);
    for (size_t k = 0; k < l->lack_count; k++)
        printf("%smissing: %s: %s\n", k ? "" : "\n", l->lacks[k].what, l->lacks[k].reason);
    return printed ? FILCH_OK
                   : bench_fail(error, FILCH_IO, "devices", 0, "the tables could not be printed");
}

/* --- As JSON --- */

static json_t *device_json(const filch_device_info *info)
{
    json_t *made =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I}", "name", info->name, "model",
                  info->model, "backend", backend_name(info->backend), "ordinal",
                  (json_int_t)info->ordinal, "place", (json_int_t)info->place, "score", info->score,
                  "team", (json_int_t)info->team, "memory_total", (json_int_t)info->memory_total,
                  "memory_free", (json_int_t)info->memory_free);
    if (!made || info->backend != FILCH_BACKEND_CUDA)
        return made;
    json_t *gpu = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:b, s:b, s:b, "
        "s:b}",
        "uuid", info->uuid, "pci", info->pci, "capability", (json_int_t)info->capability,
        "multiprocessors", (json_int_t)info->multiprocessors, "clock_khz",
        (json_int_t)info->clock_khz, "memory_khz", (json_int_t)info->memory_khz, "memory_bits",
        (json_int_t)info->memory_bits, "single_lanes", (json_int_t)info->single_lanes,
        "double_lanes", (json_int_t)info->double_lanes, "bandwidth", info->bandwidth, "l2_bytes",
        (json_int_t)info->l2_bytes, "block_shared", (json_int_t)info->block_shared, "budget",
        (json_int_t)info->budget, "numa_node", (json_int_t)info->numa_node, "ecc",
        (info->features & FILCH_DEVICE_ECC) != 0, "integrated",
        (info->features & FILCH_DEVICE_INTEGRATED) != 0, "mig",
        (info->features & FILCH_DEVICE_MIG) != 0, "slice",
        (info->features & FILCH_DEVICE_SLICE) != 0);
    if (!gpu || json_object_update(made, gpu) != 0) {
        json_decref(made);
        made = NULL;
    }
    json_decref(gpu);
    return made;
}

static json_t *link_json(const named_link *made)
{
    const filch_link *link = &made->link;
    return json_pack("{s:s, s:s, s:b, s:b, s:i, s:f}", "from", made->from, "to", made->to, "access",
                     (int)link->has_access, "atomics", (int)link->has_atomics, "rank", link->rank,
                     "bytes_per_s", link->bandwidth);
}

static json_t *refusal_json(const filch_device_refusal *refusal)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s}", "name", refusal->name, "backend",
                     backend_name(refusal->backend), "ordinal", (json_int_t)refusal->ordinal,
                     "status", filch_status_name(refusal->error.status), "reason",
                     refusal->error.text);
}

static bool fill_json(const listing *l, json_t *devices, json_t *links, json_t *refused,
                      json_t *missing)
{
    bool failed = false;
    for (size_t d = 0; d < l->device_count; d++)
        failed |= json_array_append_new(devices, device_json(&l->devices[d])) != 0;
    for (size_t k = 0; k < l->link_count; k++)
        failed |= json_array_append_new(links, link_json(&l->links[k])) != 0;
    for (size_t r = 0; r < l->refusal_count; r++)
        failed |= json_array_append_new(refused, refusal_json(&l->refusals[r])) != 0;
    for (size_t k = 0; k < l->lack_count; k++)
        failed |=
            json_array_append_new(missing, json_pack("{s:s, s:s}", "backend", l->lacks[k].what,
                                                     "reason", l->lacks[k].reason)) != 0;
    return !failed;
}

static filch_status print_json(const listing *l, const char *path, filch_error *error)
{
    filch_status status = FILCH_OK;
    json_t *devices = json_array(), *links = json_array();
    json_t *refused = json_array(), *missing = json_array();
    if (!fill_json(l, devices, links, refused, missing))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--json", 0, "no memory");
    json_t *document = json_pack("{s:o, s:o, s:o, s:o}", "devices", devices, "links", links,
                                 "refused", refused, "missing", missing);
    if (document && l->rates.count > 0 &&
        json_object_set_new(document, "speeds", bench_rates_json(&l->rates)) != 0)
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--json", 0, "no memory");
    if (status == FILCH_OK && !document)
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--json", 0, "no memory");
    if (status == FILCH_OK)
        status = bench_json_put(path, document, error);
    json_decref(document);
    return status;
}

int bench_devices_main(int argc, char **argv)
{
    request r = {0};
    listing l = {0};
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = parse(argc, argv, &r, &error);
    if (status == FILCH_OK && r.help) {
        fputs(usage, stdout);
        return BENCH_EXIT_OK;
    }
    if (status == FILCH_OK)
        status = listing_read(&l, &r, &error);
    if (status == FILCH_OK)
        status = r.json ? print_json(&l, r.json, &error) : print_tables(&l, &error);
    listing_free(&l);
    return status == FILCH_OK ? BENCH_EXIT_OK : bench_cli_fail("devices", &error);
}
