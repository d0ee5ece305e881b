/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim/sim_trace.h"

#include "sim/sim_homes.h"
#include "sim/sim_host.h"
#include "sim/sim_parts.h"
#include "sim/sim_times.h"
#include "support/fail.h"

#include <jansson.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Later than any run ends; sums of so many microseconds still are far from the end of the clock. */
#define LATEST_US 1e15

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

/* Rows by their numbers: of devices' tiles, one name each, and of their copies. */
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
    bool fits = r->tid && r->device;
    json_array_foreach(events, index, event)
    {
        const char *name = text_of(json_object_get(event, "args"), "name");
        if (!fits || strcmp(text_of(event, "name"), "thread_name") != 0 ||
            json_integer_value(json_object_get(event, "tid")) == jobs)
            continue;
        char *device = strndup(name, strcspn(name, " "));
        r->tid[r->count] = json_integer_value(json_object_get(event, "tid"));
        fits = device &&
               name_find(&record->devices, &record->device_count, device, &r->device[r->count++]);
        free(device);
    }
    return fits;
}

/* When an event began and ended. */
static filch_status times_read(const json_t *event, const char *path, double *start_us,
                               double *end_us, filch_error *error)
{
    const json_t *start = json_object_get(event, "ts"), *length = json_object_get(event, "dur");
    *start_us = json_number_value(start);
    *end_us = *start_us + json_number_value(length);
    if (!json_is_number(start) || !json_is_number(length) || *start_us < 0 || *end_us < *start_us)
        return bench_fail(error, FILCH_DATA, path, 0, "an event '%s' has no times",
                          text_of(event, "name"));
    return *end_us <= LATEST_US ? FILCH_OK
                                : bench_fail(error, FILCH_DATA, path, 0,
                                             "an event '%s' ends at %g us, later than %g, 31 years",
                                             text_of(event, "name"), *end_us, LATEST_US);
}

/* A whole number among the arguments of an event; absent: 0, unless it must be there. */
static filch_status argument(const json_t *event, const char *key, bool must, const char *path,
                             uint64_t *value, filch_error *error)
{
    const json_t *found = json_object_get(json_object_get(event, "args"), key);
    *value = (uint64_t)json_integer_value(found);
    return (!found && !must) || (json_is_integer(found) && json_integer_value(found) >= 0)
               ? FILCH_OK
               : bench_fail(error, FILCH_DATA, path, 0, "an event '%s' has no '%s'",
                            text_of(event, "name"), key);
}

/* The tasks of an event that stands for several, run one after another; else null. */
static const json_t *tasks_of(const json_t *event)
{
    const json_t *tasks = json_object_get(json_object_get(event, "args"), "tasks");
    return json_is_array(tasks) ? tasks : NULL;
}

/* How many tiles an event stands for. */
static size_t tiles_of(const json_t *event)
{
    const json_t *tasks = tasks_of(event);
    return tasks ? json_array_size(tasks) : 1;
}

/* Makes a tile of each task of an event; each took as long as the others. */
static filch_status tasks_read(bench_sim_record *record, const json_t *tasks, bench_sim_tile all,
                               const char *path, filch_error *error)
{
    size_t index;
    const json_t *task;
    double start_us = all.start_us;
    if (json_array_size(tasks) == 0)
        return bench_fail(error, FILCH_DATA, path, 0, "an event has no tasks");
    all.us /= (double)json_array_size(tasks);
    json_array_foreach(tasks, index, task)
    {
        json_int_t position = json_integer_value(task);
        if (!json_is_integer(task) || position < 0 || position >= UINT32_MAX)
            return bench_fail(error, FILCH_DATA, path, 0, "task %zu of an event is no task", index);
        bench_sim_tile *tile = &record->tiles[record->tile_count++];
        *tile = all;
        tile->first = (uint64_t)position;
        tile->start_us = start_us + (double)index * all.us;
        tile->end_us = tile->start_us + all.us;
    }
    return FILCH_OK;
}

static filch_status tile_read(bench_sim_record *record, const rows *r, const json_t *event,
                              const char *path, filch_error *error)
{
    bench_sim_tile *tile = &record->tiles[record->tile_count];
    const json_t *tasks = tasks_of(event);
    bool is_task = tasks || json_object_get(json_object_get(event, "args"), "task") != NULL;
    *tile = (bench_sim_tile){.is_chunk = !is_task};
    if (!rows_find(r, json_integer_value(json_object_get(event, "tid")), &tile->device))
        return FILCH_OK; /* a row without a name: no device's */
    filch_status status = times_read(event, path, &tile->start_us, &tile->end_us, error);
    tile->us = tile->end_us - tile->start_us;
    if (status == FILCH_OK && !tasks)
        status = argument(event, is_task ? "task" : "first", true, path, &tile->first, error);
    if (status == FILCH_OK)
        status = argument(event, is_task ? "graph" : "end", true, path,
                          is_task ? &tile->graph : &tile->end, error);
    if (status == FILCH_OK)
        status = argument(event, "job", false, path, &tile->number, error);
    if (status == FILCH_OK && is_task && tile->first >= UINT32_MAX)
        status = bench_fail(error, FILCH_DATA, path, 0, "no graph has a task %llu",
                            (unsigned long long)tile->first);
    if (status == FILCH_OK && !name_find(&record->codelets, &record->codelet_count,
                                         text_of(event, "name"), &tile->codelet))
        no_memory(error, &status);
    if (tasks && status == FILCH_OK)
        return tasks_read(record, tasks, *tile, path, error);
    record->tile_count++;
    return status;
}

static filch_status copy_read(bench_sim_record *record, const rows *r, const json_t *event,
                              const char *path, filch_error *error)
{
    static const char *const ways[] = {
        [BENCH_SIM_IN] = "in", [BENCH_SIM_OUT] = "out", [BENCH_SIM_PEER] = "peer"};
    bench_sim_copy *copy = &record->copies[record->copy_count];
    const char *other = text_of(json_object_get(event, "args"), "other");
    uint64_t bytes;
    *copy = (bench_sim_copy){.way = BENCH_SIM_IN};
    while (copy->way < BENCH_SIM_WAYS && strcmp(ways[copy->way], text_of(event, "name")) != 0)
        copy->way++;
    if (copy->way == BENCH_SIM_WAYS ||
        !rows_find(r, json_integer_value(json_object_get(event, "tid")), &copy->device))
        return FILCH_OK; /* within one memory */
    filch_status status = times_read(event, path, &copy->start_us, &copy->end_us, error);
    if (status == FILCH_OK)
        status = argument(event, "bytes", true, path, &bytes, error);
    if (status != FILCH_OK)
        return status;
    copy->bytes = (double)bytes;
    if (copy->way == BENCH_SIM_PEER) {
        while (copy->from < record->device_count && strcmp(record->devices[copy->from], other) != 0)
            copy->from++;
        if (copy->from == record->device_count)
            return bench_fail(error, FILCH_DATA, path, 0, "a copy comes from '%s', which is no row",
                              other);
    }
    record->copy_count++;
    return FILCH_OK;
}

static filch_status wait_read(bench_sim_wait *waits, size_t *count, const rows *r,
                              const json_t *event, const char *path, filch_error *error)
{
    bench_sim_wait *wait = &waits[*count];
    if (!rows_find(r, json_integer_value(json_object_get(event, "tid")), &wait->device))
        return FILCH_OK;
    ++*count;
    return times_read(event, path, &wait->start_us, &wait->end_us, error);
}

static filch_status job_read(bench_sim_record *record, const json_t *event, const char *path,
                             filch_error *error)
{
    bench_sim_job *job = &record->marks[record->mark_count];
    filch_status status = times_read(event, path, &job->start_us, &job->end_us, error);
    if (status == FILCH_OK)
        status = argument(event, "job", true, path, &job->number, error);
    (void)snprintf(job->name, sizeof job->name, "%s", text_of(event, "name"));
    record->mark_count++;
    return status;
}

static filch_status events_read(bench_sim_record *record, const json_t *events, const char *path,
                                filch_error *error)
{
    rows r = {0};
    filch_status status = FILCH_OK;
    size_t index, room = json_array_size(events) + 1, tiles = 1;
    const json_t *event;
    json_array_foreach(events, index, event) tiles += tiles_of(event);
    record->tiles = calloc(tiles, sizeof *record->tiles);
    record->copies = calloc(room, sizeof *record->copies);
    record->waits = calloc(room, sizeof *record->waits);
    record->thefts = calloc(room, sizeof *record->thefts);
    record->marks = calloc(room, sizeof *record->marks);
    if (!record->tiles || !record->copies || !record->waits || !record->thefts || !record->marks ||
        !rows_read(&r, record, events))
        no_memory(error, &status);
    json_array_foreach(events, index, event)
    {
        const char *category = text_of(event, "cat");
        if (status == FILCH_OK && strcmp(category, "tile") == 0)
            status = tile_read(record, &r, event, path, error);
        if (status == FILCH_OK && strcmp(category, "copy") == 0)
            status = copy_read(record, &r, event, path, error);
        if (status == FILCH_OK && strcmp(category, "wait") == 0)
            status = wait_read(record->waits, &record->wait_count, &r, event, path, error);
        if (status == FILCH_OK && strcmp(category, "theft") == 0)
            status = wait_read(record->thefts, &record->theft_count, &r, event, path, error);
        if (status == FILCH_OK && strcmp(category, "job") == 0)
            status = job_read(record, event, path, error);
    }
    free(r.tid);
    free(r.device);
    if (status == FILCH_OK && record->tile_count == 0)
        status = bench_fail(error, FILCH_DATA, path, 0, "the trace holds no tile");
    return status;
}

/* --- Jobs --- */

static const bench_sim_graph *graph_find(const bench_sim_record *record, uint64_t number)
{
    for (size_t k = 0; k < record->graph_count; k++)
        if (record->graphs[k].number == number)
            return &record->graphs[k];
    return NULL;
}

static int number_of_batch(const void *key, const void *element)
{
    uint64_t number = *(const uint64_t *)key, own = ((const bench_sim_batch *)element)->number;
    return (number > own) - (number < own);
}

static const bench_sim_batch *batch_find(const bench_sim_record *record, uint64_t number)
{
    return bsearch(&number, record->batches, record->batch_count, sizeof *record->batches,
                   number_of_batch);
}

static int number_of_job(const void *key, const void *element)
{
    uint64_t number = *(const uint64_t *)key, own = ((const bench_sim_job *)element)->number;
    return (number > own) - (number < own);
}

static const bench_sim_job *mark_find(const bench_sim_record *record, uint64_t number)
{
    return bsearch(&number, record->marks, record->mark_count, sizeof *record->marks,
                   number_of_job);
}

static int by_number(const void *a, const void *b)
{
    const bench_sim_tile *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->end_us > y->end_us) - (x->end_us < y->end_us);
}

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

static int copies_by_start(const void *a, const void *b)
{
    const bench_sim_copy *x = a, *y = b;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static int marks_by_number(const void *a, const void *b)
{
    const bench_sim_job *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
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

/* Chunks of one batch, by their first items: all of them, once each. One that two devices ran
 * counts where it was over first; its job becomes none. */
static filch_status check_chunks(bench_sim_record *record, size_t from, size_t to, const char *path,
                                 filch_error *error)
{
    const bench_sim_batch *batch = batch_find(record, record->tiles[from].number);
    uint64_t next = 0;
    bool is_whole = true;
    for (size_t k = from; k < to; k++) {
        bench_sim_tile *tile = &record->tiles[k];
        if (tile->first < next && tile->end <= next) {
            tile->job = SIZE_MAX;
            record->twice++;
            continue;
        }
        is_whole = is_whole && tile->first == next && tile->end > tile->first;
        next = tile->end;
    }
    return is_whole && (!batch || next == batch->n)
               ? FILCH_OK
               : bench_fail(error, FILCH_DATA, path, 0,
                            "the trace lacks chunks of '%s': some were skipped or failed",
                            record->codelets[record->tiles[from].codelet]);
}

/* Tiles that name their jobs. */
static filch_status split_by_number(bench_sim_record *record, const char *path, filch_error *error)
{
    filch_status status = FILCH_OK;
    qsort(record->tiles, record->tile_count, sizeof *record->tiles, by_number);
    for (size_t from = 0, to; from < record->tile_count && status == FILCH_OK; from = to) {
        const bench_sim_tile *tile = &record->tiles[from];
        for (to = from; to < record->tile_count && record->tiles[to].number == tile->number; to++) {
            if (record->tiles[to].is_chunk != tile->is_chunk ||
                record->tiles[to].graph != tile->graph)
                return bench_fail(error, FILCH_DATA, path, 0, "job %llu is of several graphs",
                                  (unsigned long long)tile->number);
            record->tiles[to].job = record->job_count;
        }
        if (tile->is_chunk)
            status = check_chunks(record, from, to, path, error);
        record->job_count++;
    }
    return status;
}

/* Those of older traces. */
static filch_status split_by_source(bench_sim_record *record, const char *path, filch_error *error)
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
    return status;
}

/* Where the trace shows the job itself, from its submission to its end. What lies between the
 * submission and the first copy or tile, and after the last, is the host's. */
static void job_mark(const bench_sim_record *record, bench_sim_job *job)
{
    const bench_sim_job *mark = mark_find(record, job->number);
    double first = job->start_us, last = job->end_us;
    size_t low = 0, high = record->copy_count;
    if (!mark)
        return;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (record->copies[middle].start_us < mark->start_us)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < record->copy_count && record->copies[low].start_us < mark->end_us; low++) {
        first = fmin(first, record->copies[low].start_us);
        last = fmax(last, record->copies[low].end_us);
    }
    memcpy(job->name, mark->name, sizeof job->name);
    job->start_us = mark->start_us;
    job->end_us = mark->end_us;
    job->lead_us = fmax(first - mark->start_us, 0);
    job->tail_us = fmax(mark->end_us - last, 0);
}

static filch_status job_fill(bench_sim_record *record, bench_sim_job *job, size_t first,
                             const char *path, filch_error *error)
{
    const bench_sim_tile *tiles = &record->tiles[first];
    *job = (bench_sim_job){.first = first,
                           .is_batch = tiles->is_chunk,
                           .number = tiles->number,
                           .graph = tiles->is_chunk ? NULL : graph_find(record, tiles->graph),
                           .batch = tiles->is_chunk ? batch_find(record, tiles->number) : NULL,
                           .start_us = tiles->start_us};
    for (; first + job->count < record->tile_count && tiles[job->count].job == tiles->job;
         job->count++) {
        const bench_sim_tile *tile = &tiles[job->count];
        job->end_us = fmax(job->end_us, tile->end_us);
        job->n = tile->end > job->n ? tile->end : job->n;
        job->grain = common(common(job->grain, tile->first), tile->end);
        record->loose += !job->is_batch && !job->graph;
        if (job->graph && tile->first >= job->graph->count)
            return bench_fail(error, FILCH_DATA, path, 0, "graph %llu has no task %llu",
                              (unsigned long long)tile->graph, (unsigned long long)tile->first);
    }
    bool is_known =
        job->is_batch ? job->batch && job->batch->is_known : job->graph && job->graph->use_begin;
    record->blind += !is_known && record->copy_count != 0 ? job->count : 0;
    job->grain = job->batch ? job->batch->grain : job->grain;
    job_mark(record, job);
    return FILCH_OK;
}

static filch_status jobs_find(bench_sim_record *record, const char *path, filch_error *error)
{
    bool has_numbers = true;
    qsort(record->copies, record->copy_count, sizeof *record->copies, copies_by_start);
    qsort(record->marks, record->mark_count, sizeof *record->marks, marks_by_number);
    for (size_t k = 0; k < record->tile_count; k++)
        has_numbers = has_numbers && record->tiles[k].number != 0;
    filch_status status =
        has_numbers ? split_by_number(record, path, error) : split_by_source(record, path, error);
    if (status != FILCH_OK)
        return status;
    qsort(record->tiles, record->tile_count, sizeof *record->tiles, by_job);
    record->tile_count -= record->twice; /* they are the last */
    record->jobs = calloc(record->job_count + 1, sizeof *record->jobs);
    if (!record->jobs) {
        no_memory(error, &status);
        return status;
    }
    size_t made = 0;
    for (size_t first = 0; first < record->tile_count && status == FILCH_OK;
         first += record->jobs[made++].count)
        status = job_fill(record, &record->jobs[made], first, path, error);
    record->job_count = made;
    qsort(record->jobs, made, sizeof *record->jobs, by_start);
    return status;
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
        status = bench_sim_parts_read(record, other, path, error);
    if (status == FILCH_OK)
        status = jobs_find(record, path, error);
    if (status == FILCH_OK && !(bench_sim_times_find(record) && bench_sim_host_find(record) &&
                                bench_sim_homes_find(record)))
        no_memory(error, &status);
    double first = INFINITY, last = 0;
    for (size_t k = 0; status == FILCH_OK && k < record->job_count; k++) {
        first = fmin(first, record->jobs[k].start_us);
        last = fmax(last, record->jobs[k].end_us);
        record->is_first = record->is_first || record->jobs[k].number == 1;
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
    bench_sim_parts_free(record);
    free(record->tiles);
    free(record->copies);
    free(record->waits);
    free(record->thefts);
    free(record->marks);
    free(record->jobs);
    free(record->gap_us);
    free(record->chunk_us);
    free(record->ratios);
    free(record->keep_us);
    *record = (bench_sim_record){0};
}
