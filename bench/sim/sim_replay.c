/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim/sim_replay.h"

#include "sim/sim_machine.h"
#include "support/fail.h"

#include "base/hash.h"
#include "filch/filch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_JOBS_AT_ONCE 64
/* Runs that count; one where there are many tiles, which even out. */
#define MOST_RUNS 5
#define MANY_TILES 20000
/* Of a tile's time, more or less. */
#define UNSTEADINESS 0.005
/* Of a task or a batch. */
#define MOST_USES 255
/* Bytes in which a trace counts scratch memory. */
#define SCRATCH_UNIT 64

typedef struct replay replay;

/* What functions of a codelet need: by its argument. */
typedef struct part {
    const replay *replay;
    uint32_t codelet;
    uint64_t task;
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
    uint64_t run; /* which of several */
    const bench_sim_record *record;
    const bench_sim_setup *setup;
    bench_policy_room policy;
    filch_runtime *runtime;
    filch_codelet **codelets; /* two for each of the record's: for tasks, and for batches */
    filch_data **data;        /* by the record's handles */
    void **buffers;           /* their addresses, at which nothing is */
    built *jobs;
};

/* Whether the devices are the record's own. */
static bool is_same(const replay *r)
{
    return r->setup->devices == NULL;
}

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

/* No two runs of a kernel take the same time. Where there is much to choose from, who decides by
 * times finds another order each time, and a median of runs that are all alike would be one of
 * them.
 */
static double unsteady(const part *own, const filch_call *call, double ns)
{
    const uint64_t of[] = {own->replay->run, own->task, call->lo, call->hi};
    uint64_t hash = fl_hash_bytes(FL_HASH_START, of, sizeof of);
    double share = (double)(hash >> 11) / (double)(UINT64_C(1) << 53); /* 0 to 1 */
    return ns * (1 + UNSTEADINESS * (2 * share - 1));
}

static double cost(const filch_call *call)
{
    const part *own = call->args;
    double ns = own->profile
                    ? profile_at(own->profile, call->hi) - profile_at(own->profile, call->lo)
                    : own->ns;
    ns = unsteady(own, call, ns);
    return is_same(own->replay)
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

/* The speeds of the record's own devices, for all of its work: one over the time that a device
 * takes for what takes the first device of the record a nanosecond. */
static bool find_speeds(const bench_sim_record *record, double **speeds)
{
    double all_ns = 0;
    *speeds = calloc(record->device_count, sizeof **speeds);
    for (size_t k = 0; *speeds && k < record->tile_count; k++) {
        const bench_sim_tile *tile = &record->tiles[k];
        double ns = tile->us * 1e3 / bench_sim_ratio(record, tile->codelet, tile->device);
        all_ns += ns;
        for (uint32_t d = 0; d < record->device_count; d++)
            (*speeds)[d] += ns * bench_sim_ratio(record, tile->codelet, d);
    }
    for (size_t d = 0; *speeds && d < record->device_count; d++)
        (*speeds)[d] = (*speeds)[d] > 0 ? all_ns / (*speeds)[d] : 1;
    return *speeds != NULL;
}

/* The speeds in the file of the record's own devices are alike: unlike are the costs of tiles. */
static filch_status open_same(replay *r, filch_runtime_desc *config, filch_error *error)
{
    char path[256], spec[sizeof path + 8];
    const char *folder = getenv("TMPDIR");
    double *speeds = NULL;
    if (r->setup->policy == BENCH_POLICY_PERFECT && !find_speeds(r->record, &speeds))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--policy", 0, "no memory for the speeds");
    (void)snprintf(path, sizeof path, "%s/filch-sim-XXXXXX", folder ? folder : "/tmp");
    filch_status status = bench_sim_machine_write(r->record, path, error);
    if (status == FILCH_OK) {
        (void)snprintf(spec, sizeof spec, "sim:%s", path);
        config->devices = spec;
        config->scores = speeds;
        config->score_count = speeds ? r->record->device_count : 0;
        status = filch_runtime_create(config, error, &r->runtime);
        unlink(path);
    }
    free(speeds);
    return status;
}

static filch_status open_runtime(replay *r, filch_error *error)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    bench_policy_choose(r->setup->policy, &r->policy, &config);
    if (is_same(r))
        return open_same(r, &config, error);
    config.devices = r->setup->devices;
    return filch_runtime_create(&config, error, &r->runtime);
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

/* --- Handles --- */

static size_t bytes_of(const bench_sim_handle *handle)
{
    return (size_t)(handle->element * handle->rows * handle->cols);
}

/* Contents are only reckoned with: nobody touches them. */
static filch_status make_handle(replay *r, size_t index, filch_error *error)
{
    const bench_sim_handle *handle = &r->record->handles[index];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    void *buffer =
        mmap(NULL, bytes_of(handle), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (buffer == MAP_FAILED)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--from", 0,
                          "no addresses for a handle of %zu bytes", bytes_of(handle));
    r->buffers[index] = buffer;
    desc.ptr = buffer;
    desc.element = handle->element;
    desc.rows = handle->rows;
    desc.cols = handle->cols;
    desc.tile_rows = handle->tile_rows;
    desc.tile_cols = handle->tile_cols;
    desc.row_cuts = handle->row_cuts;
    desc.col_cuts = handle->col_cuts;
    desc.row_cut_count = handle->row_cut_count;
    desc.col_cut_count = handle->col_cut_count;
    desc.flags = handle->is_managed ? FILCH_DATA_MANAGED : 0;
    filch_status status = filch_data_create(r->runtime, &desc, &r->data[index]);
    return status == FILCH_OK ? FILCH_OK : failed(r, status, "--from", error);
}

static filch_status make_handles(replay *r, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < r->record->handle_count && status == FILCH_OK; k++)
        status = make_handle(r, k, error);
    return status;
}

/* The run before has left what is managed where it was last used; what was not there in the record
 * goes back to the host. */
static filch_status send_home(const replay *r)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < r->record->handle_count && status == FILCH_OK; k++) {
        const bench_sim_handle *handle = &r->record->handles[k];
        if (!handle->is_managed || handle->is_resident)
            continue;
        status = filch_data_acquire(r->data[k], FILCH_WRITE);
        if (status == FILCH_OK)
            status = filch_data_release(r->data[k]);
    }
    return status;
}

/* --- Jobs --- */

/* What a task uses, but for partial results, which stay where they are made. */
static uint32_t uses_of(const replay *r, const bench_sim_graph *graph, size_t task,
                        filch_access *accesses)
{
    uint32_t count = 0;
    if (!graph || !graph->use_begin)
        return 0;
    for (size_t k = graph->use_begin[task]; k < graph->use_begin[task + 1] && count < MOST_USES;
         k++) {
        const bench_sim_use *use = &graph->uses[k];
        if (use->mode == FILCH_SCRATCH) {
            accesses[count++] =
                (filch_access){.mode = FILCH_SCRATCH, .bytes = (uint64_t)use->tile * SCRATCH_UNIT};
        } else if (use->mode != FILCH_REDUCE) {
            uint32_t down = r->record->handles[use->handle].tiles_down;
            accesses[count++] = (filch_access){.data = r->data[use->handle],
                                               .row = use->tile % down,
                                               .col = use->tile / down,
                                               .mode = use->mode,
                                               .rows = use->rows,
                                               .cols = use->cols,
                                               .halo = use->has_halo ? &use->halo : NULL};
        }
    }
    return count;
}

/* The homes of the record come from its scores, and true speeds give others. */
static bool heeds_homes(const replay *r)
{
    return is_same(r) && r->setup->policy != BENCH_POLICY_PERFECT;
}

/* Tasks that ran have their times, one that was divided those of its pieces together; what has none
 * is a gate. Of a graph of which nothing else is known the tasks stand in the order of their
 * beginnings. */
static filch_status fill_graph(const replay *r, const bench_sim_job *job, filch_graph *graph,
                               filch_task *tasks, size_t count)
{
    const bench_sim_record *record = r->record;
    const bench_sim_tile **tile_of = calloc(count + 1, sizeof *tile_of);
    double *ns_of = calloc(count + 1, sizeof *ns_of);
    filch_access accesses[MOST_USES];
    bool has_homes = heeds_homes(r) && job->graph && job->graph->homes;
    filch_status status = tile_of && ns_of ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    for (size_t k = 0; k < job->count && status == FILCH_OK; k++) {
        const bench_sim_tile *tile = &record->tiles[job->first + k];
        size_t task = job->graph ? tile->first : k;
        tile_of[task] = tile;
        ns_of[task] += tile->us * 1e3 / bench_sim_ratio(record, tile->codelet, tile->device);
    }
    for (size_t i = 0; i < count && status == FILCH_OK; i++) {
        const bench_sim_tile *tile = tile_of[i];
        part own = {.replay = r, .codelet = tile ? tile->codelet : 0, .task = i, .ns = ns_of[i]};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = r->codelets[2 * (size_t)own.codelet];
        desc.args = &own;
        desc.accesses = accesses;
        desc.access_count = uses_of(r, job->graph, i, accesses);
        if (has_homes)
            desc.affinity = job->graph->homes[i];
        desc.priority = job->graph && job->graph->priorities ? job->graph->priorities[i] : 0;
        status = filch_graph_add(graph, &desc, &tasks[i]);
    }
    for (size_t i = 0; job->graph && i < count && status == FILCH_OK; i++)
        for (size_t e = job->graph->begin[i]; e < job->graph->begin[i + 1] && status == FILCH_OK;
             e++)
            status = filch_graph_edge(graph, tasks[i], tasks[job->graph->successors[e]]);
    free(tile_of);
    free(ns_of);
    return status;
}

static filch_status build_job(replay *r, size_t index)
{
    const bench_sim_job *job = &r->record->jobs[index];
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    size_t count = job->graph ? job->graph->count : job->count;
    if (job->is_batch)
        return profile_make(r, job, &r->jobs[index].profile) ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    if (job->graph && job->graph->priorities)
        desc.priorities = FILCH_PRIORITIES_CALLER;
    filch_task *tasks = calloc(count + 1, sizeof *tasks);
    filch_status status =
        tasks ? filch_graph_create(r->runtime, &desc, &r->jobs[index].graph) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        status = fill_graph(r, job, r->jobs[index].graph, tasks, count);
    free(tasks);
    return status;
}

/* False: there are more than a batch may have. */
static bool maps_of(const replay *r, const bench_sim_batch *batch, filch_batch_access *accesses,
                    uint32_t *count)
{
    *count = 0;
    for (size_t k = 0; batch && batch->is_known && k < batch->count && k < MOST_USES; k++) {
        const bench_sim_map *map = &batch->maps[k];
        accesses[(*count)++] =
            (filch_batch_access){.data = r->data[map->handle],
                                 .mode = map->mode,
                                 .map = map->is_whole ? FILCH_MAP_WHOLE : FILCH_MAP_AFFINE,
                                 .offset = map->offset,
                                 .scale = map->scale,
                                 .before = map->before,
                                 .after = map->after};
    }
    return !batch || batch->count <= MOST_USES;
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
    filch_batch_access accesses[MOST_USES];
    if (!maps_of(r, job->batch, accesses, &desc.access_count))
        return FILCH_OVERFLOW;
    desc.accesses = accesses;
    desc.codelet = r->codelets[2 * (size_t)codelet + 1];
    desc.args = &own;
    desc.n = job->n;
    desc.grain = job->grain;
    return filch_batch_submit(r->runtime, &desc, NULL, &b->job);
}

static void add_stats(filch_job *job, filch_device_stats *stats, bench_sim_prediction *prediction)
{
    filch_job_info info = {.size = sizeof info};
    if (filch_job_stats(job, &info, stats, prediction->devices) != FILCH_OK)
        return;
    for (uint32_t d = 0; d < prediction->devices; d++) {
        prediction->busy_s[d] += stats[d].busy_s;
        prediction->tiles[d] += stats[d].tiles;
        prediction->stolen[d] += stats[d].stolen_in;
        prediction->bytes[BENCH_SIM_IN] += (double)stats[d].bytes_in;
        prediction->bytes[BENCH_SIM_OUT] += (double)stats[d].bytes_out;
        prediction->bytes[BENCH_SIM_PEER] += (double)stats[d].bytes_peer;
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
    memset(prediction->stolen, 0, prediction->devices * sizeof *prediction->stolen);
    memset(prediction->bytes, 0, sizeof prediction->bytes);
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
            /* What the host does about a job, it does wherever that runs. */
            double host_us = record->jobs[oldest].lead_us + record->jobs[oldest].tail_us;
            prediction->job_s[oldest] = info.seconds + host_us / 1e6;
            lap = fmax(lap, prediction->job_s[oldest]);
            add_stats(r->jobs[oldest].job, stats, prediction);
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
    prediction->stolen = calloc(count, sizeof *prediction->stolen);
    prediction->job_s = calloc(r->record->job_count + 1, sizeof *prediction->job_s);
    bool fits = prediction->names && prediction->busy_s && prediction->tiles &&
                prediction->stolen && prediction->job_s;
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
    free(prediction->stolen);
    free(prediction->job_s);
    *prediction = (bench_sim_prediction){0};
}

static bool arrays_init(replay *r)
{
    const bench_sim_record *record = r->record;
    r->codelets = calloc(2 * record->codelet_count, sizeof(filch_codelet *));
    r->jobs = calloc(record->job_count, sizeof *r->jobs);
    r->data = calloc(record->handle_count + 1, sizeof(filch_data *));
    r->buffers = calloc(record->handle_count + 1, sizeof(void *));
    return r->codelets && r->jobs && r->data && r->buffers;
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
    for (size_t k = 0; r->buffers && k < r->record->handle_count; k++)
        if (r->buffers[k])
            (void)munmap(r->buffers[k], bytes_of(&r->record->handles[k]));
    free(r->codelets);
    free(r->jobs);
    free(r->data);
    free(r->buffers);
}

static filch_status open_replay(replay *r, filch_error *error)
{
    filch_status status = open_runtime(r, error);
    if (status == FILCH_OK && !arrays_init(r))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--from", 0, "no memory for the jobs");
    if (status == FILCH_OK)
        status = make_codelets(r, error);
    if (status == FILCH_OK)
        status = make_handles(r, error);
    for (size_t k = 0; status == FILCH_OK && k < r->record->job_count; k++) {
        status = build_job(r, k);
        if (status != FILCH_OK)
            status = failed(r, status, "--from", error);
    }
    return status;
}

/* trace: of this run alone; null: none. */
static filch_status run_once(replay *r, const char *trace, bench_sim_prediction *prediction,
                             filch_error *error)
{
    filch_status status = send_home(r);
    r->run++;
    bench_sim_prediction_free(prediction);
    if (status == FILCH_OK && !prediction_init(r, prediction))
        status = FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK && trace)
        status = filch_trace_start(r->runtime);
    if (status == FILCH_OK)
        status = run_all(r, prediction);
    if (status != FILCH_OK)
        return failed(r, status, "--from", error);
    if (trace) {
        (void)filch_trace_stop(r->runtime);
        status = filch_trace_write(r->runtime, trace);
    }
    return status == FILCH_OK ? FILCH_OK : failed(r, status, "--trace", error);
}

/* The runs differ, as times do, and as each decides by what it measured in those before. Where the
 * record is of the first jobs of its runtime, each is in a runtime of its own; else that of the
 * record knew its devices, and the first run is for that and does not count. trace: of the last
 * run; null: none. */
static filch_status run_often(const bench_sim_record *record, const bench_sim_setup *setup,
                              bench_sim_prediction *runs, int count, const char *trace,
                              filch_error *error)
{
    replay r = {.record = record, .setup = setup};
    bool is_open = false;
    filch_status status = FILCH_OK;
    for (int run = 0; run < count && status == FILCH_OK; run++) {
        if (record->is_first && is_open) {
            uint64_t runs_before = r.run;
            close_replay(&r);
            r = (replay){.record = record, .setup = setup, .run = runs_before};
            is_open = false;
        }
        if (!is_open) {
            status = open_replay(&r, error);
            if (status == FILCH_OK && trace)
                (void)filch_trace_stop(r.runtime); /* FILCH_TRACE may have started it */
            if (status == FILCH_OK && !record->is_first)
                status = run_once(&r, NULL, &runs[run], error);
        }
        is_open = true;
        if (status == FILCH_OK)
            status = run_once(&r, run == count - 1 ? trace : NULL, &runs[run], error);
        runs[run].run = run;
    }
    close_replay(&r);
    return status;
}

static int by_seconds(const void *a, const void *b)
{
    const bench_sim_prediction *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

static void free_runs(bench_sim_prediction *runs)
{
    for (int run = 0; run < MOST_RUNS; run++)
        bench_sim_prediction_free(&runs[run]);
}

/* Which run is the median is known after all of them. So the runs up to it are repeated, the last
 * one traced: each comes out as before, as the clock is virtual and recording takes no time. */
static filch_status trace_median(const bench_sim_record *record, const bench_sim_setup *setup,
                                 int median, filch_error *error)
{
    bench_sim_prediction runs[MOST_RUNS] = {{0}};
    filch_status status = run_often(record, setup, runs, median + 1, setup->trace, error);
    free_runs(runs);
    return status;
}

filch_status bench_sim_predict(const bench_sim_record *record, const bench_sim_setup *setup,
                               bench_sim_prediction *prediction, filch_error *error)
{
    bench_sim_prediction runs[MOST_RUNS] = {{0}};
    int count = record->tile_count > MANY_TILES ? 1 : MOST_RUNS;
    filch_status status =
        run_often(record, setup, runs, count, count == 1 ? setup->trace : NULL, error);
    *prediction = (bench_sim_prediction){0};
    if (status == FILCH_OK) {
        qsort(runs, (size_t)count, sizeof *runs, by_seconds);
        *prediction = runs[count / 2];
        prediction->least_s = runs[0].seconds;
        prediction->most_s = runs[count - 1].seconds;
        runs[count / 2] = (bench_sim_prediction){0};
    }
    free_runs(runs);
    if (status == FILCH_OK && setup->trace && count > 1)
        status = trace_median(record, setup, prediction->run, error);
    if (status != FILCH_OK)
        bench_sim_prediction_free(prediction);
    return status;
}
