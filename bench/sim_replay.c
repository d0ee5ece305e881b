/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim_replay.h"

#include "fail.h"
#include "session.h"

#include "filch/filch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_JOBS_AT_ONCE 64

typedef struct replay replay;

/* What functions of a codelet need: by its argument. */
typedef struct part {
    const replay *replay;
    uint32_t codelet;
    double ns;                     /* of a task, on the record's first device */
    const struct profile *profile; /* of a batch */
} part;

/* How long the items of a batch take, on the record's first device: ns of all before each chunk. */
typedef struct profile {
    size_t count;
    uint64_t *at; /* count + 1 */
    double *ns;
} profile;

/* A graph is built once for each of its runs, as tasks take other times each time. */
typedef struct built {
    filch_graph *graph;
    profile profile;
    filch_job *job;
} built;

struct replay {
    const bench_sim_record *record;
    bool is_same; /* the record's own devices */
    filch_runtime *runtime;
    filch_codelet **codelets; /* two for each of the record's: for tasks, and for batches */
    built *jobs;
};

/* --- What the simulated tiles take --- */

static int do_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static double task_work(const filch_call *call)
{
    return ((const part *)call->args)->ns;
}

/* ns of items [0, item). */
static double profile_at(const profile *p, uint64_t item)
{
    size_t low = 0, high = p->count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (p->at[middle] <= item)
            low = middle;
        else
            high = middle;
    }
    double share = (double)(item - p->at[low]) / (double)(p->at[low + 1] - p->at[low]);
    return p->ns[low] + share * (p->ns[low + 1] - p->ns[low]);
}

static double cost(const filch_call *call)
{
    const part *own = call->args;
    double ns = own->profile
                    ? profile_at(own->profile, call->hi) - profile_at(own->profile, call->lo)
                    : own->ns;
    return own->replay->is_same
               ? ns * bench_sim_ratio(own->replay->record, own->codelet, call->device)
               : ns;
}

static int by_first(const void *a, const void *b)
{
    const bench_sim_tile *const *x = a, *const *y = b;
    return ((*x)->first > (*y)->first) - ((*x)->first < (*y)->first);
}

static bool profile_make(const replay *r, const bench_sim_job *job, profile *p)
{
    const bench_sim_tile **order = calloc(job->count, sizeof *order);
    p->at = calloc(job->count + 1, sizeof *p->at);
    p->ns = calloc(job->count + 1, sizeof *p->ns);
    bool fits = order && p->at && p->ns;
    for (size_t k = 0; fits && k < job->count; k++)
        order[k] = &r->record->tiles[job->first + k];
    if (fits)
        qsort(order, job->count, sizeof *order, by_first);
    for (size_t k = 0; fits && k < job->count; k++) {
        const bench_sim_tile *tile = order[k];
        p->at[k + 1] = tile->end;
        p->ns[k + 1] =
            p->ns[k] + tile->us * 1e3 / bench_sim_ratio(r->record, tile->codelet, tile->device);
    }
    p->count = job->count;
    free(order);
    return fits;
}

/* --- The runtime --- */

static filch_status failed(const replay *r, filch_status status, const char *what,
                           filch_error *error)
{
    filch_error cause = FILCH_ERROR_INIT;
    if (r->runtime && filch_runtime_error(r->runtime, &cause) == FILCH_OK && cause.status == status)
        return bench_fail(error, status, what, 0, "%s", cause.text);
    return bench_fail(error, status, what, 0, "%s", filch_status_message(status));
}

/* A description of the record's devices; the path is a template of mkstemp's. */
static filch_status describe(const bench_sim_record *record, char *path, filch_error *error)
{
    int file = mkstemp(path);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (!stream) {
        if (file >= 0)
            close(file);
        return bench_fail(error, FILCH_IO, path, 0, "cannot be written");
    }
    fprintf(stream, "{\"devices\": [");
    for (size_t d = 0; d < record->device_count; d++) {
        /* A core has one tile at a time, a GPU the next one behind it. */
        bool is_core = strncmp(record->devices[d], "host", 4) == 0;
        fprintf(
            stream, "%s\n{\"name\": \"%s\", \"speed\": 1e9, \"overhead_us\": %.9g, \"window\": %d}",
            d != 0 ? "," : "", record->devices[d], fmin(record->gap_us[d], 1e9), is_core ? 1 : 2);
    }
    fprintf(stream, "]}\n");
    bool is_bad = ferror(stream) != 0;
    is_bad = fclose(stream) != 0 || is_bad;
    return is_bad ? bench_fail(error, FILCH_IO, path, 0, "cannot be written") : FILCH_OK;
}

static filch_status open_runtime(replay *r, const char *devices, filch_error *error)
{
    filch_config config = FILCH_CONFIG_INIT;
    char path[256], spec[sizeof path + 8];
    const char *folder = getenv("TMPDIR");
    filch_status status = FILCH_OK;
    config.devices = devices;
    if (!devices) {
        (void)snprintf(path, sizeof path, "%s/filch-sim-XXXXXX", folder ? folder : "/tmp");
        status = describe(r->record, path, error);
        (void)snprintf(spec, sizeof spec, "sim:%s", path);
        config.devices = spec;
    }
    if (status == FILCH_OK)
        status = filch_runtime_create(&config, error, &r->runtime);
    if (!devices)
        unlink(path);
    return status;
}

static filch_status make_codelets(replay *r, filch_error *error)
{
    const bench_sim_record *record = r->record;
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < 2 * record->codelet_count && status == FILCH_OK; k++) {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = record->codelets[k / 2];
        desc.host = do_nothing;
        desc.work = k % 2 == 0 ? task_work : NULL; /* items count 1 unless somebody says more */
        desc.cost = cost;
        desc.arg_size = sizeof(part);
        status = filch_codelet_create(r->runtime, &desc, &r->codelets[k]);
        if (status != FILCH_OK)
            status = failed(r, status, desc.name, error);
    }
    return status;
}

/* --- Jobs --- */

/* Tasks that ran have their times; what has none is a gate. */
static filch_status fill_graph(const replay *r, const bench_sim_job *job, filch_graph *graph,
                               filch_task *tasks, size_t count)
{
    const bench_sim_record *record = r->record;
    const bench_sim_tile **tile_of = calloc(count, sizeof *tile_of);
    filch_status status = tile_of ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    for (size_t k = 0; k < job->count && status == FILCH_OK; k++)
        if (record->tiles[job->first + k].first < count)
            tile_of[record->tiles[job->first + k].first] = &record->tiles[job->first + k];
    for (size_t i = 0; i < count && status == FILCH_OK; i++) {
        const bench_sim_tile *tile = tile_of[i];
        part own = {.replay = r, .codelet = tile ? tile->codelet : 0};
        if (tile)
            own.ns = tile->us * 1e3 / bench_sim_ratio(r->record, tile->codelet, tile->device);
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = r->codelets[2 * (size_t)own.codelet];
        desc.args = &own;
        status = filch_graph_add(graph, &desc, &tasks[i]);
    }
    for (size_t i = 0; job->graph && i < count && status == FILCH_OK; i++)
        for (size_t e = job->graph->begin[i]; e < job->graph->begin[i + 1] && status == FILCH_OK;
             e++)
            status = filch_graph_edge(graph, tasks[i], tasks[job->graph->successors[e]]);
    free(tile_of);
    return status;
}

static filch_status build_job(replay *r, size_t index)
{
    const bench_sim_job *job = &r->record->jobs[index];
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    size_t count = job->graph ? job->graph->count : 0;
    if (job->is_batch)
        return profile_make(r, job, &r->jobs[index].profile) ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    for (size_t k = 0; !job->graph && k < job->count; k++) {
        uint64_t task = r->record->tiles[job->first + k].first;
        count = task + 1 > count ? (size_t)task + 1 : count;
    }
    filch_task *tasks = calloc(count + 1, sizeof *tasks);
    filch_status status =
        tasks ? filch_graph_create(r->runtime, &desc, &r->jobs[index].graph) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        status = fill_graph(r, job, r->jobs[index].graph, tasks, count);
    free(tasks);
    return status;
}

static filch_status submit(replay *r, size_t index)
{
    const bench_sim_job *job = &r->record->jobs[index];
    built *b = &r->jobs[index];
    if (!job->is_batch)
        return filch_graph_submit(b->graph, NULL, &b->job);
    uint32_t codelet = r->record->tiles[job->first].codelet;
    const part own = {.replay = r, .codelet = codelet, .profile = &b->profile};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = r->codelets[2 * (size_t)codelet + 1];
    desc.args = &own;
    desc.n = job->n;
    desc.grain = job->grain;
    return filch_batch_submit(r->runtime, &desc, NULL, &b->job);
}

static void add_stats(const replay *r, filch_job *job, filch_device_stats *stats,
                      bench_sim_prediction *prediction)
{
    filch_job_info info = {.size = sizeof info};
    if (filch_job_stats(job, &info, stats, prediction->devices) != FILCH_OK)
        return;
    (void)r;
    for (uint32_t d = 0; d < prediction->devices; d++) {
        prediction->busy_s[d] += stats[d].busy_s;
        prediction->tiles[d] += stats[d].tiles;
    }
}

/* All jobs that ended before this one began are over before it begins here. */
static filch_status run_all(replay *r, bench_sim_prediction *prediction)
{
    const bench_sim_record *record = r->record;
    filch_device_stats *stats = calloc(prediction->devices, sizeof *stats);
    filch_status status = stats ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    double lap = 0;
    size_t oldest = 0;
    prediction->seconds = 0;
    memset(prediction->busy_s, 0, prediction->devices * sizeof *prediction->busy_s);
    memset(prediction->tiles, 0, prediction->devices * sizeof *prediction->tiles);
    for (size_t k = 0; k <= record->job_count && status == FILCH_OK; k++) {
        double last = 0;
        for (size_t j = oldest; j < k; j++)
            last = fmax(last, record->jobs[j].end_us);
        bool waits = k == record->job_count || k - oldest == MOST_JOBS_AT_ONCE ||
                     last <= record->jobs[k].start_us;
        for (; waits && oldest < k && status == FILCH_OK; oldest++) {
            filch_job_info info = {.size = sizeof info};
            status = filch_job_wait(r->jobs[oldest].job, -1);
            if (status == FILCH_OK)
                status = filch_job_stats(r->jobs[oldest].job, &info, NULL, 0);
            lap = fmax(lap, info.seconds);
            add_stats(r, r->jobs[oldest].job, stats, prediction);
            (void)filch_job_release(r->jobs[oldest].job);
        }
        if (waits) {
            /* Between two jobs the host has something to do, wherever they run. */
            double pause = k != 0 && k < record->job_count ? record->jobs[k].start_us - last : 0;
            prediction->seconds += lap + fmax(pause, 0) / 1e6;
            lap = 0;
        }
        if (k < record->job_count && status == FILCH_OK)
            status = submit(r, k);
    }
    free(stats);
    return status;
}

/* --- All of it --- */

static bool prediction_init(const replay *r, bench_sim_prediction *prediction)
{
    uint32_t count = filch_device_count(r->runtime);
    prediction->names = calloc(count, sizeof *prediction->names);
    prediction->busy_s = calloc(count, sizeof *prediction->busy_s);
    prediction->tiles = calloc(count, sizeof *prediction->tiles);
    bool fits = prediction->names && prediction->busy_s && prediction->tiles;
    for (; fits && prediction->devices < count; prediction->devices++) {
        filch_device_info info = {.size = sizeof info};
        (void)filch_device_at(r->runtime, prediction->devices, &info);
        prediction->names[prediction->devices] = strdup(info.name);
        fits = prediction->names[prediction->devices] != NULL;
    }
    return fits;
}

void bench_sim_prediction_free(bench_sim_prediction *prediction)
{
    for (uint32_t d = 0; d < prediction->devices; d++)
        free(prediction->names[d]);
    free(prediction->names);
    free(prediction->busy_s);
    free(prediction->tiles);
    *prediction = (bench_sim_prediction){0};
}

static bool arrays_init(replay *r)
{
    const bench_sim_record *record = r->record;
    r->codelets = calloc(2 * record->codelet_count, sizeof(filch_codelet *));
    r->jobs = calloc(record->job_count, sizeof *r->jobs);
    return r->codelets && r->jobs;
}

static void close_replay(replay *r)
{
    for (size_t k = 0; r->jobs && k < r->record->job_count; k++) {
        if (r->jobs[k].graph)
            (void)filch_graph_destroy(r->jobs[k].graph);
    }
    if (r->runtime)
        (void)filch_runtime_destroy(r->runtime);
    for (size_t k = 0; r->jobs && k < r->record->job_count; k++) {
        free(r->jobs[k].profile.at);
        free(r->jobs[k].profile.ns);
    }
    free(r->codelets);
    free(r->jobs);
}

filch_status bench_sim_predict(const bench_sim_record *record, const char *devices,
                               bench_sim_prediction *prediction, filch_error *error)
{
    replay r = {.record = record, .is_same = devices == NULL};
    filch_status status = open_runtime(&r, devices, error);
    *prediction = (bench_sim_prediction){0};
    if (status == FILCH_OK && (!arrays_init(&r) || !prediction_init(&r, prediction)))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--from", 0, "no memory for the jobs");
    if (status == FILCH_OK)
        status = make_codelets(&r, error);
    for (size_t k = 0; k < record->job_count && status == FILCH_OK; k++) {
        status = build_job(&r, k);
        if (status != FILCH_OK)
            status = failed(&r, status, "--from", error);
    }
    for (int run = 0; run < 2 && status == FILCH_OK; run++) {
        status = run_all(&r, prediction);
        if (status != FILCH_OK)
            status = failed(&r, status, "--from", error);
    }
    close_replay(&r);
    if (status != FILCH_OK)
        bench_sim_prediction_free(prediction);
    return status;
}
