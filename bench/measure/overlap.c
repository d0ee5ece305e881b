/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/overlap.h"

#include "support/fail.h"

#include <jansson.h>
#include <sys/stat.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_KIND UINT32_MAX

/* A row of the trace: one device's tiles, or its copies of one kind. */
typedef struct row {
    json_int_t tid;
    const char *name;
    size_t length; /* of the device's part of it */
    size_t device;
} row;

/* Something begins or ends. */
typedef struct point {
    size_t device;
    double at; /* us */
    uint32_t kind;
    int change; /* 1 or -1 */
} point;

typedef struct trace {
    row *rows;
    size_t row_count, device_count;
    bool *has_copies; /* by device */
    point *points;
    size_t point_count;
} trace;

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* As a number of a bit of bench_overlap_result, or NO_KIND. */
static uint32_t kind_of(const json_t *event)
{
    static const char *const copies[] = {
        [BENCH_IN] = "in", [BENCH_OUT] = "out", [BENCH_PEER] = "peer"};
    const char *category = text_of(event, "cat"), *name = text_of(event, "name");
    if (strcmp(category, "tile") == 0)
        return BENCH_KERNELS;
    for (uint32_t kind = BENCH_IN; kind <= BENCH_PEER; kind++)
        if (strcmp(category, "copy") == 0 && strcmp(name, copies[kind]) == 0)
            return kind;
    return NO_KIND;
}

/* Names of devices hold no blank; a row of copies is named "DEVICE KIND". */
static void add_row(trace *t, const json_t *event)
{
    row *added = &t->rows[t->row_count];
    *added = (row){.tid = json_integer_value(json_object_get(event, "tid")),
                   .name = text_of(json_object_get(event, "args"), "name"),
                   .device = t->device_count};
    added->length = strcspn(added->name, " ");
    for (size_t k = 0; k < t->row_count; k++)
        if (t->rows[k].length == added->length &&
            strncmp(t->rows[k].name, added->name, added->length) == 0)
            added->device = t->rows[k].device;
    t->device_count += added->device == t->device_count;
    t->row_count++;
}

static bool find_device(const trace *t, const json_t *event, size_t *device)
{
    json_int_t tid = json_integer_value(json_object_get(event, "tid"));
    for (size_t k = 0; k < t->row_count; k++)
        if (t->rows[k].tid == tid) {
            *device = t->rows[k].device;
            return true;
        }
    return false;
}

static bool collect(trace *t, const json_t *events)
{
    size_t index, count = json_array_size(events) + 1;
    const json_t *event;
    t->rows = calloc(count, sizeof *t->rows);
    t->has_copies = calloc(count, sizeof *t->has_copies);
    t->points = calloc(2 * count, sizeof *t->points);
    if (!t->rows || !t->has_copies || !t->points)
        return false;
    json_array_foreach(events, index, event) if (strcmp(text_of(event, "name"), "thread_name") == 0)
        add_row(t, event);
    json_array_foreach(events, index, event)
    {
        uint32_t kind = kind_of(event);
        size_t device;
        if (kind == NO_KIND || !find_device(t, event, &device))
            continue;
        double start = json_number_value(json_object_get(event, "ts"));
        double end = start + json_number_value(json_object_get(event, "dur"));
        t->has_copies[device] |= kind != BENCH_KERNELS;
        t->points[t->point_count++] = (point){device, start, kind, 1};
        t->points[t->point_count++] = (point){device, end, kind, -1};
    }
    return true;
}

static int by_device_and_time(const void *a, const void *b)
{
    const point *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sums, over the devices that copy, the time of each set of what was under way. */
static void sweep(trace *t, double *us, size_t *devices, double *span)
{
    double first = INFINITY, last = -INFINITY, before = 0;
    int under_way[BENCH_OVERLAP_KINDS] = {0};
    qsort(t->points, t->point_count, sizeof *t->points, by_device_and_time);
    for (size_t k = 0; k < t->point_count; k++) {
        const point *p = &t->points[k];
        unsigned set = 0;
        first = fmin(first, p->at);
        last = fmax(last, p->at);
        for (uint32_t kind = 0; kind < BENCH_OVERLAP_KINDS; kind++)
            set |= under_way[kind] > 0 ? 1u << kind : 0;
        if (t->has_copies[p->device])
            us[set] += set ? p->at - before : 0; /* nothing is under way between devices */
        under_way[p->kind] += p->change;
        before = p->at;
    }
    *span = last - first;
    for (size_t d = 0; d < t->device_count; d++)
        *devices += t->has_copies[d];
}

static void measure(trace *t, bench_overlap_result *overlap)
{
    double us[BENCH_OVERLAP_SETS] = {0}, span;
    size_t devices = 0;
    sweep(t, us, &devices, &span);
    if (devices == 0 || !(span > 0))
        return;
    overlap->is_known = true;
    overlap->seconds = span * 1e-6;
    overlap->devices = devices;
    overlap->part[0] = 1;
    for (unsigned set = 1; set < BENCH_OVERLAP_SETS; set++) {
        overlap->part[set] = us[set] / (span * (double)devices);
        overlap->part[0] -= overlap->part[set];
    }
}

filch_status bench_overlap_read(const char *path, bench_overlap_result *overlap, filch_error *error)
{
    json_error_t wrong;
    trace t = {0};
    struct stat file;
    filch_status status = FILCH_OK;
    *overlap = (bench_overlap_result){0};
    if (stat(path, &file) == 0 && !S_ISREG(file.st_mode))
        return FILCH_OK;
    json_t *root = json_load_file(path, 0, &wrong);
    if (!root && json_error_code(&wrong) == json_error_cannot_open_file)
        return bench_fail(error, FILCH_IO, path, 0, "%s", wrong.text);
    if (!root)
        return bench_fail(error, FILCH_PARSE, path, wrong.line, "%s", wrong.text);
    const json_t *events = json_object_get(root, "traceEvents");
    const json_t *missing = json_object_get(root, "otherData");
    if (!json_is_array(events))
        status = bench_fail(error, FILCH_PARSE, path, 0, "lacks the list traceEvents");
    else if (!collect(&t, events))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, path, 0, "no memory");
    else
        measure(&t, overlap);
    overlap->overwritten =
        (uint64_t)json_integer_value(json_object_get(missing, "events_overwritten"));
    overlap->missed = (uint64_t)json_integer_value(json_object_get(missing, "copies_missed"));
    free(t.rows);
    free(t.has_copies);
    free(t.points);
    json_decref(root);
    return status;
}
