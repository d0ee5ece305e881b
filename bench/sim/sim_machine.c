/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim/sim_machine.h"

#include "sim/sim_host.h"
#include "sim/sim_times.h"
#include "support/fail.h"

#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a way that nothing went: what sixteen lanes of PCI Express 4 carry. */
#define UNKNOWN_RATE 25e9
/* Within one memory. */
#define NO_TIME_RATE 1e18
#define MOST_MEMORY ((uint64_t)1 << 50)
/* Compute lanes of a GPU, where nothing else is said. */
#define GPU_LANES 2

typedef struct machine {
    const bench_sim_record *record;
    FILE *stream;
    bool has_links;
    bool fits; /* no memory was lacked */
} machine;

/* A core has one tile at a time, in the memory that copies come from. */
static bool is_core(const bench_sim_record *record, size_t device)
{
    return strncmp(record->devices[device], "host", 4) == 0;
}

/* Slices of a GPU are named GPU/SLICE, and share its link and its memory. */
static size_t gpu_length(const bench_sim_record *record, size_t device)
{
    return strcspn(record->devices[device], "/");
}

static bool is_one_gpu(const bench_sim_record *record, size_t a, size_t b)
{
    size_t length = gpu_length(record, a);
    return length == gpu_length(record, b) &&
           strncmp(record->devices[a], record->devices[b], length) == 0;
}

/* Whether a copy went that way. */
static bool is_known(const bench_sim_link *link)
{
    return link->rate > 0 || link->latency_us > 0;
}

/* What is known of a device's own link, else of all others', else of the other direction. */
static bench_sim_link link_of(machine *m, bench_sim_way way, size_t device)
{
    const bench_sim_record *record = m->record;
    uint32_t all = (uint32_t)record->device_count;
    const bench_sim_way ways[] = {way, way == BENCH_SIM_IN ? BENCH_SIM_OUT : BENCH_SIM_IN};
    bench_sim_link link = {0};
    double latency_us = 0;
    for (size_t k = 0; k < 4 && !(link.rate > 0); k++) {
        m->fits = bench_sim_link_find(record, ways[k / 2], k % 2 == 0 ? (uint32_t)device : all, all,
                                      &link) &&
                  m->fits;
        latency_us = latency_us > 0 ? latency_us : link.latency_us;
    }
    link.rate = link.rate > 0 ? link.rate : UNKNOWN_RATE;
    link.latency_us = latency_us;
    return link;
}

static double limited_rate(double rate)
{
    return fmin(fmax(rate, 1), NO_TIME_RATE);
}

static void put_link(machine *m, size_t device)
{
    const bench_sim_record *record = m->record;
    if (is_core(record, device)) {
        fprintf(m->stream, ", \"link\": {\"bandwidth\": %.9g}", NO_TIME_RATE);
        return;
    }
    bench_sim_link in = link_of(m, BENCH_SIM_IN, device);
    bench_sim_link out = link_of(m, BENCH_SIM_OUT, device);
    fprintf(m->stream,
            ", \"link\": {\"bandwidth\": %.9g, \"latency_us\": %.9g, \"bandwidth_out\": %.9g, "
            "\"latency_out_us\": %.9g",
            limited_rate(in.rate), in.latency_us, limited_rate(out.rate), out.latency_us);
    size_t length = gpu_length(record, device);
    if (record->devices[device][length] != '\0')
        fprintf(m->stream, ", \"bus\": \"%.*s\"", (int)length, record->devices[device]);
    fprintf(m->stream, "}");
}

/* The first slice of a GPU has the memory. */
static void put_shares(machine *m, size_t device)
{
    for (size_t d = 0; d < device; d++)
        if (is_one_gpu(m->record, d, device)) {
            fprintf(m->stream, ", \"shares\": \"%s\"", m->record->devices[d]);
            return;
        }
}

/* Codelets may be called anything. */
static void put_text(machine *m, const char *text)
{
    json_t *string = json_string(text);
    m->fits = string && json_dumpf(string, m->stream, JSON_ENCODE_ANY) == 0 && m->fits;
    json_decref(string);
}

static void put_host(machine *m)
{
    const bench_sim_record *record = m->record;
    const char *before = "";
    fprintf(m->stream,
            ", \"lanes\": %d, \"host\": {\"launch_us\": %.9g, \"copy_us\": %.9g, \"see_us\": "
            "%.9g, \"keeps\": {",
            GPU_LANES, fmin(record->launch_us, 1e9), fmin(record->copy_us, 1e9),
            fmin(record->see_us, 1e9));
    for (size_t k = 0; k < record->codelet_count; k++)
        if (record->keep_us[k] >= 0) {
            fprintf(m->stream, "%s", before);
            put_text(m, record->codelets[k]);
            fprintf(m->stream, ": %.9g", fmin(record->keep_us[k], 1e9));
            before = ", ";
        }
    fprintf(m->stream, "}}");
}

static void put_device(machine *m, size_t device)
{
    const bench_sim_record *record = m->record;
    fprintf(m->stream, "%s\n{\"name\": \"%s\", \"speed\": 1e9, \"overhead_us\": %.9g",
            device != 0 ? "," : "", record->devices[device],
            fmin(record->gap_us[device] + record->chunk_us[device], 1e9));
    if (record->scores[device] > 0)
        fprintf(m->stream, ", \"score\": %.17g", fmin(record->scores[device], 1e300));
    if (m->has_links) {
        uint64_t memory = record->memory[device];
        memory = memory != 0 && memory < MOST_MEMORY ? memory : MOST_MEMORY;
        fprintf(m->stream, ", \"memory\": %llu", (unsigned long long)memory);
        put_link(m, device);
        if (bench_sim_is_gpu(record, device))
            put_shares(m, device);
        if (record->has_host && bench_sim_is_gpu(record, device))
            put_host(m);
    } else {
        /* A GPU has the next one behind it. */
        fprintf(m->stream, ", \"window\": %d", is_core(record, device) ? 1 : 2);
    }
    fprintf(m->stream, "}");
}

/* Ways from one device's memory to another's: where some device had copies from another, all have
 * them. */
static void put_peers(machine *m)
{
    const bench_sim_record *record = m->record;
    uint32_t all = (uint32_t)record->device_count;
    const char *before = ",\n\"peers\": [\n";
    bench_sim_link any;
    m->fits = bench_sim_link_find(record, BENCH_SIM_PEER, all, all, &any) && m->fits;
    for (uint32_t from = 0; from < all; from++)
        for (uint32_t to = 0; to < all; to++) {
            bench_sim_link link;
            if (is_core(record, from) || is_core(record, to) || is_one_gpu(record, from, to))
                continue;
            m->fits = bench_sim_link_find(record, BENCH_SIM_PEER, to, from, &link) && m->fits;
            link = is_known(&link) ? link : any;
            if (!is_known(&link))
                continue;
            link.rate = link.rate > 0 ? link.rate : any.rate > 0 ? any.rate : UNKNOWN_RATE;
            fprintf(m->stream,
                    "%s{\"from\": \"%s\", \"to\": \"%s\", \"bandwidth\": %.9g, \"latency_us\": "
                    "%.9g}",
                    before, record->devices[from], record->devices[to], limited_rate(link.rate),
                    link.latency_us);
            before = ",\n";
        }
    if (strcmp(before, ",\n") == 0)
        fprintf(m->stream, "]");
}

filch_status bench_sim_machine_write(const bench_sim_record *record, char *path, filch_error *error)
{
    int file = mkstemp(path);
    machine m = {
        .record = record, .has_links = record->copy_count != 0 || record->has_host, .fits = true};
    m.stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (!m.stream) {
        if (file >= 0) {
            close(file);
            unlink(path);
        }
        return bench_fail(error, FILCH_IO, path, 0, "cannot be written");
    }
    fprintf(m.stream, "{\"devices\": [");
    for (size_t d = 0; d < record->device_count; d++)
        put_device(&m, d);
    fprintf(m.stream, "]");
    if (m.has_links)
        put_peers(&m);
    fprintf(m.stream, "}\n");
    bool is_bad = ferror(m.stream) != 0;
    is_bad = fclose(m.stream) != 0 || is_bad;
    if (!is_bad && m.fits)
        return FILCH_OK;
    unlink(path);
    return is_bad ? bench_fail(error, FILCH_IO, path, 0, "cannot be written")
                  : bench_fail(error, FILCH_OUT_OF_MEMORY, "--from", 0, "no memory for the links");
}
