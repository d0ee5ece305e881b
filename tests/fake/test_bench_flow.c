/* SPDX-License-Identifier: Apache-2.0 */
/* What factorizations from the host's memory move, on fake GPUs, and when, on the virtual clock. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/cli.h"
#include "gpu/twins.h"
#include "measure/run.h"
#include "workload_trial.h"

#define N 256
#define TILE 32
#define TILES (N / TILE)

static const char *const names[] = {"cholesky", "lu", "qr"};
#define NAMES (sizeof names / sizeof *names)

/* --- Fake GPUs --- */

/* Bytes of the tiles that a factorization uses. */
static double matrix_of(size_t which)
{
    double tile = (double)TILE * TILE * sizeof(double);
    return which == 0 ? TILES * (TILES + 1) / 2 * tile : (double)TILES * TILES * tile;
}

/* Beside the matrix there are pivots, identities and the like. */
static void is_moved_once(double bytes, size_t which)
{
    double tile = (double)TILE * TILE * sizeof(double);
    double more = which == 0 ? tile / 2 : 4 * tile;
    assert_true(bytes >= matrix_of(which));
    assert_true(bytes <= matrix_of(which) + more);
}

/* Two GPUs without thefts: a tile stolen from host memory comes twice. */
static void every_tile_comes_and_goes_once(void **state)
{
    (void)state;
    for (size_t k = 0; k < NAMES; k++)
        for (int all = 0; all < 2; all++) {
            workload_trial t;
            double in = 0, out = 0;
            const bench_options options = {.n = N,
                                           .tile = TILE,
                                           .devices = all ? "cuda" : "cuda:0",
                                           .pinned = true,
                                           .policy = BENCH_POLICY_STATIC};
            assert_int_equal(
                trial_begin(&t, bench_workload_find(names[k]), gpu_twins_register, options),
                FILCH_OK);
            double seconds, residual;
            for (int round = 0; round < 2; round++)
                if (bench_session_run(&t.session, &seconds, &t.error) != FILCH_OK ||
                    t.workload->check(t.problem, &residual, &t.error) != FILCH_OK)
                    fail_msg("%s", t.error.text);
            for (uint32_t d = 0; d < t.session.devices; d++) {
                in += (double)t.session.stats[d].bytes_in;
                out += (double)t.session.stats[d].bytes_out;
            }
            is_moved_once(in, k);
            is_moved_once(out, k);
            trial_end(&t);
        }
}

/* --- The virtual clock --- */

#define LINKED                                                                                     \
    "{\"link\": {\"bandwidth\": 55e9, \"bandwidth_out\": 52e9, \"latency_us\": 8}, \"devices\": [" \
    "{\"name\": \"gpu\", \"speed\": 5e13, \"overhead_us\": 5, \"lanes\": 2, \"memory\": 80e9, "    \
    "\"count\": %d}], \"peers\": [{\"from\": \"gpu\", \"to\": \"gpu\", \"bandwidth\": 300e9, "     \
    "\"latency_us\": 5}]}"

typedef struct flow {
    double first_kernel, last_kernel; /* when they begin */
    double last_in, first_out;        /* of copies of 64 KiB and more: when they begin */
    double links[2];                  /* bytes over each device's link */
} flow;

static json_t *read_and_unlink(const char *path)
{
    json_t *document = json_load_file(path, 0, NULL);
    assert_non_null(document);
    unlink(path);
    return document;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The name of an event's row: a device, or "gpu:0 in" and the like. */
static const char *row_of(const json_t *events, const json_t *event)
{
    size_t at;
    json_t *other;
    json_array_foreach(events, at, other)
    {
        const char *name = json_string_value(json_object_get(other, "name"));
        if (name && strcmp(name, "thread_name") == 0 &&
            number(other, "tid") == number(event, "tid"))
            return json_string_value(json_object_get(json_object_get(other, "args"), "name"));
    }
    return "";
}

static void note(flow *f, const json_t *events, const json_t *event)
{
    const char *sort = json_string_value(json_object_get(event, "cat"));
    double begin = number(event, "ts");
    if (sort && strcmp(sort, "tile") == 0) {
        const char *name = json_string_value(json_object_get(event, "name"));
        if (strcmp(name, "move") != 0 && begin < f->first_kernel)
            f->first_kernel = begin;
        f->last_kernel = begin > f->last_kernel ? begin : f->last_kernel;
    }
    if (!sort || strcmp(sort, "copy") != 0 ||
        number(json_object_get(event, "args"), "bytes") < 65536)
        return;
    const char *row = row_of(events, event);
    double bytes = number(json_object_get(event, "args"), "bytes");
    bool is_in = strstr(row, " in") != NULL, is_out = strstr(row, " out") != NULL;
    if (is_in && begin > f->last_in)
        f->last_in = begin;
    if (is_out && begin < f->first_out)
        f->first_out = begin;
    if (is_in || is_out)
        f->links[strstr(row, ":1") != NULL] += bytes;
}

static flow flow_of(const char *workload, int devices)
{
    char machine[] = "/tmp/filch-flow-XXXXXX", trace[] = "/tmp/filch-flow-XXXXXX", place[64];
    int file = mkstemp(machine);
    assert_true(file >= 0);
    assert_true(dprintf(file, LINKED, devices) > 0);
    assert_int_equal(close(file), 0);
    file = mkstemp(trace);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    snprintf(place, sizeof place, "sim:%s", machine);
    char *words[] = {"sim",       (char *)(uintptr_t)workload,
                     "--n",       "8192",
                     "--tile",    "512",
                     "--repeat",  "1",
                     "--devices", place,
                     "--trace",   trace,
                     NULL};
    assert_int_equal(bench_run_command(12, words, true), BENCH_EXIT_OK);
    unlink(machine);
    json_t *document = read_and_unlink(trace);
    const json_t *events = json_object_get(document, "traceEvents");
    flow f = {.first_kernel = 1e18, .first_out = 1e18};
    size_t at;
    json_t *event;
    json_array_foreach(events, at, event)
    {
        note(&f, events, event);
    }
    json_decref(document);
    return f;
}

static void kernels_begin_while_tiles_come_and_tiles_go_while_kernels_run(void **state)
{
    (void)state;
    for (size_t k = 0; k < NAMES; k++)
        for (int devices = 1; devices <= 2; devices++) {
            flow f = flow_of(names[k], devices);
            assert_true(f.first_kernel < f.last_in);
            assert_true(f.first_out < f.last_kernel);
        }
}

static void the_links_of_equal_devices_are_used_alike(void **state)
{
    (void)state;
    for (size_t k = 0; k < NAMES; k++) {
        flow f = flow_of(names[k], 2);
        double most = strcmp(names[k], "qr") == 0 ? 1.4 : 1.2; /* QR's left columns are stolen */
        assert_true(f.links[0] <= most * f.links[1] && f.links[1] <= most * f.links[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_comes_and_goes_once),
        cmocka_unit_test(kernels_begin_while_tiles_come_and_tiles_go_while_kernels_run),
        cmocka_unit_test(the_links_of_equal_devices_are_used_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
