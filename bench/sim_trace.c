/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim_trace.h"

#include "fail.h"

#include <jansson.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a dispatch costs is the mean of those gaps between tiles that are no longer than so many
 * times the longest of the shortest quarter: the others are waits. */
#define CLOSE_PART 4
#define CLOSE_TIMES 4.0

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t whole_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static bool no_memory(filch_error *error, filch_status *status)
{
    *status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--from", 0, "no memory for the trace");
    return false;
}

/* --- Names --- */

static bool name_find(char ***names, size_t *count, const char *name, uint32_t *index)
{
    for (size_t k = 0; k < *count; k++)
        if (strcmp((*names)[k], name) == 0) {
            *index = (uint32_t)k;
            return true;
        }
    char **grown = realloc(*names, (*count + 1) * sizeof *grown);
    if (!grown)
        return false;
    *names = grown;
    grown[*count] = strdup(name);
    *index = (uint32_t)*count;
    return grown[(*count)++] != NULL;
}

/* --- Events --- */

/* The rows of devices' tiles: by their numbers, one name each. */
typedef struct rows {
    json_int_t *tid;
    uint32_t *device;
    size_t count;
} rows;

static bool rows_find(const rows *r, json_int_t tid, uint32_t *device)
{
    for (size_t k = 0; k < r->count; k++)
        if (r->tid[k] == tid) {
            *device = r->device[k];
            return true;
        }
    return false;
}

/* The row that jobs stand in, or -1. */
static json_int_t job_row(const json_t *events)
{
    size_t index;
    const json_t *event;
    json_array_foreach(events, index, event)
    {
        if (strcmp(text_of(event, "cat"), "job") == 0)
            return json_integer_value(json_object_get(event, "tid"));
    }
    return -1;
}

/* A row of copies is named "DEVICE KIND", and no device's name holds a blank. */
static bool rows_read(rows *r, bench_sim_record *record, const json_t *events)
{
    size_t index;
    const json_t *event;
    json_int_t jobs = job_row(events);
    r->tid = calloc(json_array_size(events) + 1, sizeof *r->tid);
    r->device = calloc(json_array_size(events) + 1, sizeof *r->device);
    if (!r->tid || !r->device)
        return false;
    json_array_foreach(events, index, event)
    {
        const char *name = text_of(json_object_get(event, "args"), "name");
        if (strcmp(text_of(event, "name"), "thread_name") != 0 || strchr(name, ' ') ||
            json_integer_value(json_object_get(event, "tid")) == jobs)
            continue;
        r->tid[r->count] = json_integer_value(json_object_get(event, "tid"));
        if (!name_find(&record->devices, &record->device_count, name, &r->device[r->count++]))
            return false;
    }
    return true;
}

static bool tile_read(bench_sim_record *record, const rows *r, const json_t *event)
{
    const json_t *args = json_object_get(event, "args");
    bench_sim_tile *tile = &record->tiles[record->tile_count];
    bool is_task = json_object_get(args, "task") != NULL;
    *tile = (bench_sim_tile){
        .start_us = json_number_value(json_object_get(event, "ts")),
        .us = json_number_value(json_object_get(event, "dur")),
        .is_chunk = !is_task,
        .first = whole_of(args, is_task ? "task" : "first"),
        .end = whole_of(args, "end"),
        .graph = whole_of(args, "graph"),
    };
    if (!rows_find(r, json_integer_value(json_object_get(event, "tid")), &tile->device))
        return true; /* a row without a name: no device's */
    record->tile_count++;
    return name_find(&record->codelets, &record->codelet_count, text_of(event, "name"),
                     &tile->codelet);
}

static filch_status events_read(bench_sim_record *record, const json_t *events, const char *path,
                                filch_error *error)
{
    rows r = {0};
    filch_status status = FILCH_OK;
    size_t index;
    const json_t *event;
    record->tiles = calloc(json_array_size(events) + 1, sizeof *record->tiles);
    bool fits = record->tiles && rows_read(&r, record, events);
    json_array_foreach(events, index, event)
    {
        const char *category = text_of(event, "cat");
        record->copies += strcmp(category, "copy") == 0;
        if (fits && strcmp(category, "tile") == 0)
            fits = tile_read(record, &r, event);
    }
    free(r.tid);
    free(r.device);
    if (!fits)
        no_memory(error, &status);
    else if (record->tile_count == 0)
        status = bench_fail(error, FILCH_DATA, path, 0, "the trace holds no tile");
    return status;
}

/* --- Graphs --- */

static bool graph_read(bench_sim_graph *graph, const json_t *object)
{
    const json_t *lists = json_object_get(object, "successors"), *list, *number;
    size_t index, at, edges = 0;
    graph->number = whole_of(object, "graph");
    graph->count = json_array_size(lists);
    graph->begin = calloc(graph->count + 1, sizeof *graph->begin);
    json_array_foreach(lists, index, list) edges += json_array_size(list);
    graph->successors = calloc(edges + 1, sizeof *graph->successors);
    if (!graph->begin || !graph->successors)
        return false;
    edges = 0;
    json_array_foreach(lists, index, list)
    {
        json_array_foreach(list, at, number)
        {
            json_int_t to = json_integer_value(number);
            if (to >= 0 && (size_t)to < graph->count)
                graph->successors[edges++] = (uint32_t)to;
        }
        graph->begin[index + 1] = edges;
    }
    return true;
}

static filch_status graphs_read(bench_sim_record *record, const json_t *array, filch_error *error)
{
    filch_status status = FILCH_OK;
    size_t index;
    const json_t *object;
    record->graphs = calloc(json_array_size(array) + 1, sizeof *record->graphs);
    bool fits = record->graphs != NULL;
    json_array_foreach(array, index, object)
    {
        if (fits)
            fits = graph_read(&record->graphs[record->graph_count++], object);
    }
    if (!fits)
        no_memory(error, &status);
    return status;
}

static const bench_sim_graph *graph_find(const bench_sim_record *record, uint64_t number)
{
    for (size_t k = 0; k < record->graph_count; k++)
        if (record->graphs[k].number == number)
            return &record->graphs[k];
    return NULL;
}

/* --- Jobs --- */

static int by_source(const void *a, const void *b)
{
    const bench_sim_tile *x = a, *y = b;
    if (x->is_chunk != y->is_chunk)
        return x->is_chunk - y->is_chunk;
    uint64_t key_x = x->is_chunk ? x->codelet : x->graph;
    uint64_t key_y = y->is_chunk ? y->codelet : y->graph;
    if (key_x != key_y)
        return key_x < key_y ? -1 : 1;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static int by_job(const void *a, const void *b)
{
    const bench_sim_tile *x = a, *y = b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static int by_start(const void *a, const void *b)
{
    const bench_sim_job *x = a, *y = b;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

/* Chunks of one codelet, in the order of time: a batch is over when its items are. */
static filch_status split_batches(bench_sim_record *record, size_t from, size_t to,
                                  const char *path, filch_error *error)
{
    uint64_t n = 0, done = 0;
    for (size_t k = from; k < to; k++)
        n = record->tiles[k].end > n ? record->tiles[k].end : n;
    for (size_t k = from; k < to; k++) {
        bench_sim_tile *tile = &record->tiles[k];
        tile->job = record->job_count;
        done += tile->end - tile->first;
        if (done > n || tile->end <= tile->first)
            return bench_fail(error, FILCH_DATA, path, 0,
                              "the chunks of '%s' are not those of batches of one size",
                              record->codelets[tile->codelet]);
        if (done == n) {
            done = 0;
            record->job_count++;
        }
    }
    return done == 0 ? FILCH_OK
                     : bench_fail(error, FILCH_DATA, path, 0,
                                  "the trace lacks chunks of '%s': some were skipped or failed",
                                  record->codelets[record->tiles[from].codelet]);
}

/* Tasks of one graph, in the order of time: one that comes again is the next run's. */
static filch_status split_runs(bench_sim_record *record, size_t from, size_t to, filch_error *error)
{
    uint64_t count = 0;
    size_t runs = 0;
    filch_status status = FILCH_OK;
    for (size_t k = from; k < to; k++)
        count = record->tiles[k].first > count ? record->tiles[k].first : count;
    size_t *seen = calloc(count + 1, sizeof *seen);
    if (!seen) {
        no_memory(error, &status);
        return status;
    }
    for (size_t k = from; k < to; k++) {
        size_t run = seen[record->tiles[k].first]++;
        record->tiles[k].job = record->job_count + run;
        runs = run + 1 > runs ? run + 1 : runs;
    }
    free(seen);
    record->job_count += runs;
    return FILCH_OK;
}

static uint64_t common(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void job_fill(bench_sim_record *record, bench_sim_job *job, size_t first)
{
    const bench_sim_tile *tiles = &record->tiles[first];
    *job = (bench_sim_job){.first = first,
                           .is_batch = tiles->is_chunk,
                           .graph = tiles->is_chunk ? NULL : graph_find(record, tiles->graph),
                           .start_us = tiles->start_us};
    for (; first + job->count < record->tile_count && tiles[job->count].job == tiles->job;
         job->count++) {
        const bench_sim_tile *tile = &tiles[job->count];
        job->end_us = fmax(job->end_us, tile->start_us + tile->us);
        job->n = tile->end > job->n ? tile->end : job->n;
        job->grain = common(common(job->grain, tile->first), tile->end);
        record->loose += !job->is_batch && !job->graph;
    }
}

static filch_status jobs_find(bench_sim_record *record, const char *path, filch_error *error)
{
    filch_status status = FILCH_OK;
    qsort(record->tiles, record->tile_count, sizeof *record->tiles, by_source);
    for (size_t from = 0, to; from < record->tile_count && status == FILCH_OK; from = to) {
        const bench_sim_tile *tile = &record->tiles[from];
        for (to = from + 1; to < record->tile_count; to++) {
            const bench_sim_tile *other = &record->tiles[to];
            if (other->is_chunk != tile->is_chunk ||
                (tile->is_chunk ? other->codelet != tile->codelet : other->graph != tile->graph))
                break;
        }
        status = tile->is_chunk ? split_batches(record, from, to, path, error)
                                : split_runs(record, from, to, error);
    }
    if (status != FILCH_OK)
        return status;
    qsort(record->tiles, record->tile_count, sizeof *record->tiles, by_job);
    record->jobs = calloc(record->job_count + 1, sizeof *record->jobs);
    if (!record->jobs) {
        no_memory(error, &status);
        return status;
    }
    size_t made = 0;
    for (size_t first = 0; first < record->tile_count; first += record->jobs[made++].count)
        job_fill(record, &record->jobs[made], first);
    record->job_count = made;
    qsort(record->jobs, made, sizeof *record->jobs, by_start);
    return FILCH_OK;
}

/* --- Times --- */

static int by_device(const void *a, const void *b)
{
    const bench_sim_tile *const *x = a, *const *y = b;
    if ((*x)->device != (*y)->device)
        return (*x)->device < (*y)->device ? -1 : 1;
    return ((*x)->start_us > (*y)->start_us) - ((*x)->start_us < (*y)->start_us);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double close_mean(const double *gaps, size_t count)
{
    double sum = 0;
    size_t close = 0;
    for (; close < count && gaps[close] <= CLOSE_TIMES * gaps[count / CLOSE_PART]; close++)
        sum += gaps[close];
    return close != 0 ? sum / (double)close : 0;
}

static bool gaps_find(bench_sim_record *record)
{
    const bench_sim_tile **order = calloc(record->tile_count, sizeof *order);
    double *gaps = calloc(record->tile_count, sizeof *gaps);
    record->gap_us = calloc(record->device_count, sizeof *record->gap_us);
    bool fits = order && gaps && record->gap_us;
    for (size_t k = 0; fits && k < record->tile_count; k++)
        order[k] = &record->tiles[k];
    if (fits)
        qsort(order, record->tile_count, sizeof *order, by_device);
    for (size_t from = 0, to; fits && from < record->tile_count; from = to) {
        size_t count = 0;
        for (to = from + 1; to < record->tile_count && order[to]->device == order[from]->device;
             to++)
            gaps[count++] =
                fmax(order[to]->start_us - order[to - 1]->start_us - order[to - 1]->us, 0);
        qsort(gaps, count, sizeof *gaps, by_value);
        record->gap_us[order[from]->device] = close_mean(gaps, count);
    }
    free(order);
    free(gaps);
    return fits;
}

static double *ratio_at(const bench_sim_record *record, uint32_t codelet, uint32_t device)
{
    return &record->ratios[(size_t)codelet * record->device_count + device];
}

double bench_sim_ratio(const bench_sim_record *record, uint32_t codelet, uint32_t device)
{
    return *ratio_at(record, codelet, device);
}

static double units_of(const bench_sim_tile *tile)
{
    return tile->is_chunk ? (double)(tile->end - tile->first) : 1;
}

/* By the mean of all that each device ran: right where tiles of a codelet are alike. */
static bool ratios_by_means(bench_sim_record *record)
{
    size_t cells = record->codelet_count * record->device_count;
    double *us = calloc(cells, sizeof *us), *units = calloc(cells, sizeof *units);
    record->ratios = calloc(cells, sizeof *record->ratios);
    bool fits = us && units && record->ratios;
    for (size_t k = 0; fits && k < record->tile_count; k++) {
        const bench_sim_tile *tile = &record->tiles[k];
        size_t cell = (size_t)tile->codelet * record->device_count + tile->device;
        us[cell] += tile->us;
        units[cell] += units_of(tile);
    }
    for (size_t cell = 0; fits && cell < cells; cell++) {
        size_t first = cell / record->device_count * record->device_count;
        bool is_known = us[first] > 0 && us[cell] > 0;
        record->ratios[cell] = is_known ? us[cell] / units[cell] / (us[first] / units[first]) : 1;
    }
    free(us);
    free(units);
    return fits;
}

static int by_place(const void *a, const void *b)
{
    const bench_sim_tile *const *x = a, *const *y = b;
    if ((*x)->job != (*y)->job)
        return (*x)->job < (*y)->job ? -1 : 1;
    return ((*x)->first > (*y)->first) - ((*x)->first < (*y)->first);
}

/* Items that lie side by side take about the same: chunks that follow each other, one of them on
 * the first device, tell more of another than the means, where items are not alike. Logarithms add
 * up, so that a slope counts once for and once against it. */
static bool ratios_by_neighbours(bench_sim_record *record)
{
    size_t cells = record->codelet_count * record->device_count;
    const bench_sim_tile **order = calloc(record->tile_count, sizeof *order);
    double *sums = calloc(cells, sizeof *sums);
    size_t *pairs = calloc(cells, sizeof *pairs);
    bool fits = order && sums && pairs;
    for (size_t k = 0; fits && k < record->tile_count; k++)
        order[k] = &record->tiles[k];
    if (fits)
        qsort(order, record->tile_count, sizeof *order, by_place);
    for (size_t k = 1; fits && k < record->tile_count; k++) {
        const bench_sim_tile *x = order[k - 1], *y = order[k];
        if (!x->is_chunk || x->job != y->job || (x->device == 0) == (y->device == 0) ||
            !(x->us > 0 && y->us > 0))
            continue;
        const bench_sim_tile *own = x->device == 0 ? x : y, *other = x->device == 0 ? y : x;
        size_t cell = (size_t)other->codelet * record->device_count + other->device;
        sums[cell] += log(other->us / units_of(other) / (own->us / units_of(own)));
        pairs[cell]++;
    }
    for (size_t cell = 0; fits && cell < cells; cell++)
        if (pairs[cell] != 0)
            record->ratios[cell] = exp(sums[cell] / (double)pairs[cell]);
    free(order);
    free(sums);
    free(pairs);
    return fits;
}

/* --- The file --- */

static filch_status document_read(bench_sim_record *record, const json_t *root, const char *path,
                                  filch_error *error)
{
    const json_t *other = json_object_get(root, "otherData");
    const json_t *events = json_object_get(root, "traceEvents");
    if (!json_is_array(events) || !json_is_object(other))
        return bench_fail(error, FILCH_DATA, path, 0, "is no trace of filch's");
    if (whole_of(other, "events_overwritten") != 0)
        return bench_fail(error, FILCH_DATA, path, 0,
                          "newer events drove out %llu: record with a larger FILCH_TRACE_EVENTS",
                          (unsigned long long)whole_of(other, "events_overwritten"));
    filch_status status = events_read(record, events, path, error);
    if (status == FILCH_OK)
        status = graphs_read(record, json_object_get(other, "graphs"), error);
    if (status == FILCH_OK)
        status = jobs_find(record, path, error);
    if (status == FILCH_OK &&
        !(gaps_find(record) && ratios_by_means(record) && ratios_by_neighbours(record)))
        no_memory(error, &status);
    double first = INFINITY, last = 0;
    for (size_t k = 0; status == FILCH_OK && k < record->job_count; k++) {
        first = fmin(first, record->jobs[k].start_us);
        last = fmax(last, record->jobs[k].end_us);
    }
    record->seconds = (last - first) / 1e6;
    return status;
}

filch_status bench_sim_record_read(bench_sim_record *record, const char *path, filch_error *error)
{
    json_error_t problem;
    json_t *root = json_load_file(path, 0, &problem);
    *record = (bench_sim_record){0};
    if (!root)
        return bench_fail(error,
                          json_error_code(&problem) == json_error_cannot_open_file ? FILCH_IO
                                                                                   : FILCH_PARSE,
                          path, problem.line > 0 ? problem.line : 0, "%s", problem.text);
    filch_status status = document_read(record, root, path, error);
    json_decref(root);
    if (status != FILCH_OK)
        bench_sim_record_free(record);
    return status;
}

static void names_free(char **names, size_t count)
{
    for (size_t k = 0; k < count; k++)
        free(names[k]);
    free(names);
}

void bench_sim_record_free(bench_sim_record *record)
{
    names_free(record->devices, record->device_count);
    names_free(record->codelets, record->codelet_count);
    for (size_t k = 0; k < record->graph_count; k++) {
        free(record->graphs[k].begin);
        free(record->graphs[k].successors);
    }
    free(record->graphs);
    free(record->tiles);
    free(record->jobs);
    free(record->gap_us);
    free(record->ratios);
    *record = (bench_sim_record){0};
}
