/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "measure/session.h"

#include "support/fail.h"
#include "support/timing.h"

#include "observe/losses.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run of this length is not repeated to measure a device alone. */
#define LONG_RUN_S 0.5
/* The longest that a worker can be made to spin before it sleeps. */
#define SPIN_US "1000000"

static void forget(bench_session *s)
{
    bench_built *built = &s->built;
    if (built->graph)
        (void)filch_graph_destroy(built->graph);
    if (built->other)
        (void)filch_graph_destroy(built->other);
    if (built->restore)
        (void)filch_graph_destroy(built->restore);
    if (s->workload && s->workload->unbuild)
        s->workload->unbuild(s->state, built);
    for (size_t k = 0; k < BENCH_BUILT_DATA; k++)
        if (built->data[k])
            (void)filch_data_destroy(built->data[k]);
    *built = (bench_built){.runtime = built->runtime};
}

void bench_session_close(bench_session *s)
{
    if (s->built.runtime) {
        forget(s);
        (void)filch_runtime_abort(s->built.runtime);
    }
    free(s->device_info);
    free(s->stats);
    free(s->part);
    free(s->losses);
    free(s->loss_part);
    *s = (bench_session){0};
}

static filch_status build(bench_session *s, filch_error *error)
{
    filch_status status = s->workload->build(s->state, &s->built);
    if (status == FILCH_OK && s->built.graph)
        status = filch_graph_seal(s->built.graph);
    if (status == FILCH_OK && s->built.other)
        status = filch_graph_seal(s->built.other);
    if (status == FILCH_OK && s->built.restore)
        status = filch_graph_seal(s->built.restore);
    if (status != FILCH_OK)
        return bench_runtime_failed(s->built.runtime, status, s->workload->name, error);
    return FILCH_OK;
}

filch_status bench_session_rebuild(bench_session *s, filch_error *error)
{
    forget(s);
    return build(s, error);
}

filch_status bench_session_trim(const bench_session *s, filch_error *error)
{
    for (uint32_t d = 0; d < s->devices; d++) {
        filch_status status = filch_device_trim(s->built.runtime, d, 0);
        if (status != FILCH_OK)
            return bench_runtime_failed(s->built.runtime, status, "--devices", error);
    }
    return FILCH_OK;
}

static filch_status describe_devices(bench_session *s, filch_error *error)
{
    s->devices = filch_device_count(s->built.runtime);
    s->device_info = calloc(s->devices, sizeof *s->device_info);
    s->stats = calloc(s->devices, sizeof *s->stats);
    s->part = calloc(s->devices, sizeof *s->part);
    s->losses = calloc(s->devices, sizeof *s->losses);
    s->loss_part = calloc(s->devices, sizeof *s->loss_part);
    if (!s->device_info || !s->stats || !s->part || !s->losses || !s->loss_part)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--devices", 0, "no memory");
    for (uint32_t d = 0; d < s->devices; d++) {
        s->device_info[d].size = sizeof s->device_info[d];
        filch_status status = filch_device_at(s->built.runtime, d, &s->device_info[d]);
        if (status != FILCH_OK)
            return bench_runtime_failed(s->built.runtime, status, "--devices", error);
    }
    s->is_virtual = s->device_info[0].backend == FILCH_BACKEND_SIM;
    return FILCH_OK;
}

unsigned bench_session_gpus(const bench_session *s, unsigned *ordinals)
{
    unsigned count = 0;
    for (uint32_t d = 0; d < s->devices; d++) {
        const filch_device_info *info = &s->device_info[d];
        unsigned at = 0;
        if (info->backend != FILCH_BACKEND_CUDA)
            continue;
        while (at < count && ordinals[at] != info->ordinal)
            at++;
        if (at == count && count < BENCH_PEER_GPUS)
            ordinals[count++] = info->ordinal;
    }
    return count;
}

static void print_message(filch_log_level level, const char *text, void *user)
{
    (void)level;
    /* Runtimes that are compared work in turns: that they share cores is meant. */
    if (strstr(text, "workers of another runtime of this process") != NULL)
        return;
    fprintf(user, "filch: %s\n", text);
}

/* The environment is changed where no thread of a runtime of this process reads it. */
static filch_status create_runtime(const filch_runtime_desc *config, bool spins, filch_error *error,
                                   filch_runtime **runtime)
{
    const char *name = "FILCH_SPIN_US";
    const char *kept = getenv(name); /* NOLINT(concurrency-mt-unsafe) */
    char *copy = kept ? strdup(kept) : NULL;
    if (kept && !copy)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, name, 0, "no memory");
    if (spins)
        (void)setenv(name, SPIN_US, 1); /* NOLINT(concurrency-mt-unsafe) */
    filch_status status = filch_runtime_create(config, error, runtime);
    if (spins && copy)
        (void)setenv(name, copy, 1); /* NOLINT(concurrency-mt-unsafe) */
    else if (spins)
        (void)unsetenv(name); /* NOLINT(concurrency-mt-unsafe) */
    free(copy);
    return status;
}

filch_status bench_session_open(bench_session *s, const bench_workload *workload, void *state,
                                const bench_session_config *config, filch_error *error)
{
    filch_runtime_desc c = FILCH_RUNTIME_DESC_INIT;
    c.devices = config->devices;
    c.score = config->score;
    c.scores = config->scores;
    c.score_count = config->score_count;
    c.memory_limit = config->memory_limit;
    c.log = print_message;
    c.log_user = stderr;
    *s = (bench_session){
        .workload = workload, .state = state, .slow = config->slow, .withdraw = config->withdraw};
    bench_policy_choose(config->policy, &s->policy, &c);
    filch_status status = create_runtime(&c, config->spins, error, &s->built.runtime);
    if (status != FILCH_OK)
        return status;
    status = describe_devices(s, error);
    if (status == FILCH_OK)
        status = build(s, error);
    if (status != FILCH_OK)
        bench_session_close(s);
    return status;
}

filch_status bench_session_reopen(bench_session *s, const bench_session_config *config,
                                  filch_error *error)
{
    const bench_workload *workload = s->workload;
    void *state = s->state;
    bench_session_close(s);
    return bench_session_open(s, workload, state, config, error);
}

static filch_status job_failed(const bench_session *s, filch_job *job, filch_status status,
                               filch_error *error)
{
    filch_error inner = FILCH_ERROR_INIT;
    if (status != FILCH_TASK_FAILED || filch_job_error(job, &inner) != FILCH_OK)
        return bench_runtime_failed(s->built.runtime, status, s->workload->name, error);
    if (s->workload->explain)
        s->workload->explain(s->state, &inner);
    if (error)
        *error = inner;
    return inner.status != FILCH_OK ? inner.status : FILCH_TASK_FAILED;
}

/* Back to the input, in the host's memory and on the devices. */
static filch_status restore(bench_session *s, filch_error *error)
{
    filch_job *job = NULL;
    if (s->workload->reset)
        s->workload->reset(s->state);
    if (!s->built.restore)
        return FILCH_OK;
    filch_status status = filch_graph_submit(s->built.restore, NULL, &job);
    if (status != FILCH_OK)
        return bench_runtime_failed(s->built.runtime, status, "restore", error);
    status = filch_job_wait(job, -1);
    if (status != FILCH_OK)
        status = job_failed(s, job, status, error);
    (void)filch_job_release(job);
    return status;
}

static filch_status bring_home(bench_session *s, filch_error *error)
{
    filch_status status = FILCH_OK;
    if (s->built.result)
        status = filch_data_acquire(s->built.result, FILCH_READ);
    if (s->built.result && status == FILCH_OK)
        status = filch_data_release(s->built.result);
    return status == FILCH_OK ? FILCH_OK
                              : bench_runtime_failed(s->built.runtime, status, "the result", error);
}

/* Starts all jobs of a run; *started of them, also on failure. */
static filch_status start(bench_session *s, filch_job **jobs, size_t *started)
{
    const bench_workload *w = s->workload;
    size_t count = w->jobs ? w->jobs(s->state) : 1;
    filch_status status = FILCH_OK;
    *started = 0;
    while (*started < count && status == FILCH_OK) {
        filch_job **job = &jobs[*started];
        *job = NULL;
        status = w->start ? w->start(s->state, &s->built, job)
                          : filch_graph_submit(s->built.graph, NULL, job);
        *started += status == FILCH_OK;
        if (status == FILCH_OK && w->waits && filch_job_wait(*job, -1) != FILCH_OK)
            break; /* whoever waits again learns of it */
    }
    return status;
}

/* Adds what a job did to the run's figures. */
static filch_status add_stats(bench_session *s, filch_job *job)
{
    filch_job_info info = {.size = sizeof info};
    filch_status status = filch_job_stats(job, &info, s->part, s->devices);
    if (status != FILCH_OK)
        return status;
    info.seconds += s->info.seconds;
    info.total += s->info.total;
    info.done += s->info.done;
    s->info = info;
    for (uint32_t d = 0; d < s->devices; d++) {
        filch_device_stats *sum = &s->stats[d];
        sum->tiles += s->part[d].tiles;
        sum->stolen_in += s->part[d].stolen_in;
        sum->stolen_out += s->part[d].stolen_out;
        sum->items += s->part[d].items;
        sum->work += s->part[d].work;
        sum->busy_s += s->part[d].busy_s;
        sum->idle_s += s->part[d].idle_s;
        sum->bytes_in += s->part[d].bytes_in;
        sum->bytes_out += s->part[d].bytes_out;
        sum->bytes_peer += s->part[d].bytes_peer;
        sum->evicted += s->part[d].evicted;
        sum->bytes_evicted += s->part[d].bytes_evicted;
        sum->speed = sum->busy_s > 0 ? sum->work / sum->busy_s : 0;
    }
    return FILCH_OK;
}

static filch_status add_losses(bench_session *s, filch_job *job)
{
    filch_graph *graph = s->wants_path ? s->built.graph : NULL;
    filch_report report = FILCH_REPORT_INIT;
    filch_status status = filch_job_report(job, graph, &report, s->loss_part, s->devices);
    if (graph && status == FILCH_INVALID_ARGUMENT) /* the job is of another graph, or of none */
        status = filch_job_report(job, NULL, &report, s->loss_part, s->devices);
    if (status != FILCH_OK)
        return status;
    s->wall_s += (double)report.wall_ns * 1e-9;
    s->area_s += (double)report.area_ns * 1e-9;
    s->path_s += (double)report.path_ns * 1e-9;
    for (uint32_t d = 0; d < s->devices; d++)
        fl_losses_add(&s->losses[d], &s->loss_part[d]);
    return FILCH_OK;
}

/* The figures of jobs that all succeeded; the jobs are given back in any case. */
static filch_status conclude(bench_session *s, filch_job **jobs, size_t count, filch_status status)
{
    s->info = (filch_job_info){.size = sizeof s->info};
    memset(s->stats, 0, s->devices * sizeof *s->stats);
    memset(s->losses, 0, s->devices * sizeof *s->losses);
    s->wall_s = s->area_s = s->path_s = 0;
    for (size_t k = 0; k < count; k++) {
        if (status == FILCH_OK)
            status = add_stats(s, jobs[k]);
        if (status == FILCH_OK)
            status = add_losses(s, jobs[k]);
        (void)filch_job_release(jobs[k]);
    }
    return status;
}

static uint64_t tiles_done(bench_session *s, filch_job *job)
{
    filch_job_info info = {.size = sizeof info};
    uint64_t tiles = 0;
    if (filch_job_stats(job, &info, s->part, s->devices) != FILCH_OK)
        return 0;
    for (uint32_t d = 0; d < s->devices; d++)
        tiles += s->part[d].tiles;
    return tiles;
}

/* Waits for a job to end; most_s > 0: ends it after about that time. */
static filch_status wait_for(bench_session *s, filch_job *job, double most_s)
{
    filch_status status = FILCH_TIMEOUT;
    if (most_s <= 0)
        return filch_job_wait(job, -1);
    for (int k = 0; k < BENCH_PART_LIMITS && status == FILCH_TIMEOUT; k++) {
        if (k > 0 && tiles_done(s, job) >= BENCH_PART_TILES)
            break;
        status = filch_job_wait(job, most_s);
    }
    if (status != FILCH_TIMEOUT)
        return status;
    (void)filch_job_cancel(job);
    status = filch_job_wait(job, -1);
    return status == FILCH_CANCELLED ? FILCH_OK : status;
}

filch_status bench_session_run_part(bench_session *s, double most_s, double *seconds,
                                    filch_error *error)
{
    const bench_workload *w = s->workload;
    filch_job *jobs[BENCH_JOBS];
    size_t count;
    filch_status status = restore(s, error);
    if (status != FILCH_OK)
        return status;
    bench_withdrawal *withdrawal;
    status = bench_withdraw_begin(s->withdraw, s->built.runtime, &withdrawal, error);
    if (status != FILCH_OK)
        return status;
    double used = bench_cpu_s();
    bench_slow_begin(s->slow);
    double begin = bench_now_s();
    status = start(s, jobs, &count);
    if (status != FILCH_OK)
        (void)bench_runtime_failed(s->built.runtime, status, w->name, error);
    for (size_t k = 0; k < count; k++) {
        filch_status waited = wait_for(s, jobs[k], most_s);
        if (status == FILCH_OK && waited != FILCH_OK)
            status = job_failed(s, jobs[k], waited, error);
    }
    if (status == FILCH_OK && w->finish)
        status = w->finish(s->state, &s->built, error);
    *seconds = bench_now_s() - begin;
    s->cpu_s = bench_cpu_s() - used;
    filch_status ended = bench_withdraw_end(withdrawal, status == FILCH_OK ? error : NULL);
    status = status == FILCH_OK ? ended : status;
    filch_status concluded = conclude(s, jobs, count, status);
    if (status == FILCH_OK && concluded != FILCH_OK)
        status = bench_runtime_failed(s->built.runtime, concluded, w->name, error);
    s->moves = (bench_moves){0};
    if (status == FILCH_OK && w->moves && !w->moves(s->state, &s->moves))
        s->moves = (bench_moves){0};
    if (s->is_virtual)
        *seconds = s->info.seconds;
    return status == FILCH_OK && most_s <= 0 ? bring_home(s, error) : status;
}

filch_status bench_session_run(bench_session *s, double *seconds, filch_error *error)
{
    return bench_session_run_part(s, 0, seconds, error);
}

/* Declared work of the last run. */
static double work_of(const bench_session *s)
{
    double work = 0;
    for (uint32_t d = 0; d < s->devices; d++)
        work += s->stats[d].work;
    return work;
}

filch_status bench_session_open_alone(const bench_session *s, const bench_session_config *config,
                                      uint32_t index, bench_session *alone, filch_error *error)
{
    double *scores = calloc(s->devices, sizeof *scores);
    if (!scores)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--devices", 0, "no memory");
    scores[index] = 1;
    bench_session_config alone_config = *config;
    alone_config.scores = scores;
    alone_config.score_count = s->devices;
    alone_config.policy = BENCH_POLICY_STATIC;
    alone_config.slow = (bench_slow){0};
    alone_config.withdraw = (bench_withdraw){0};
    filch_status status = bench_session_open(alone, s->workload, s->state, &alone_config, error);
    free(scores);
    return status;
}

filch_status bench_session_speed_alone(const bench_session *s, const bench_session_config *config,
                                       uint32_t index, double most_s, double *speed,
                                       filch_error *error)
{
    bench_session alone;
    filch_status status = bench_session_open_alone(s, config, index, &alone, error);
    if (status != FILCH_OK)
        return status;
    double whole = s->workload->is_even && most_s > 0 ? work_of(s) : 0, best = 0, seconds = 0;
    for (int k = 0; k < 2 && seconds < LONG_RUN_S && status == FILCH_OK; k++) {
        status = bench_session_run_part(&alone, whole > 0 ? most_s : 0, &seconds, error);
        double part = whole > 0 ? work_of(&alone) / whole : 1;
        if (status == FILCH_OK && seconds > 0)
            best = fmax(best, part / seconds);
    }
    bench_session_close(&alone);
    bench_problem problem;
    s->workload->describe(s->state, &problem);
    *speed = status == FILCH_OK ? best * problem.work : 0;
    return status;
}
