/* SPDX-License-Identifier: Apache-2.0 */
/* Owns every part of a runtime, and makes the public calls spanning several parts. */
#include "runtime.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/score.h"
#include "live.h"
#include "memory/host/multicast.h"
#include "observe/nvtx.h"
#include "sched/drive/driver.h"
#include "sched/drive/scheduler.h"
#include "sched/execute/pending.h"
#include "sched/model/speed_file.h"
#include "sched/worker/sched.h"
#include "tracing.h"

/* Largest number of jobs that an error names. */
#define JOBS_TOLD 3

#define CREATE "filch_runtime_create"
/* Size of the record in the first version of the interface; later versions only append. */
#define CONFIG_SIZE_FIRST offsetof(filch_runtime_desc, cuda_context)

uint32_t filch_version(void)
{
    return 100; /* 0.1.0 */
}

static void *caller_alloc(size_t size, size_t align, void *user)
{
    const filch_allocator *allocator = user;
    return allocator->alloc(size, align, allocator->user);
}

static void caller_free(void *pointer, size_t size, size_t align, void *user)
{
    const filch_allocator *allocator = user;
    allocator->free(pointer, size, align, allocator->user);
}

static filch_status refuse(filch_error *error, filch_status status, const char *text)
{
    return fl_error_fill(error, (fl_fault){.status = status, .call = CREATE}, "%s", text);
}

/* Returns the fault found in a caller's policy, or null. */
static const char *check_policy(const filch_runtime_desc *config)
{
    const filch_policy_desc *desc = config->custom_policy;
    if (desc == NULL) {
        return config->policy == FILCH_POLICY_CUSTOM ? "policy is custom, but there is none" : NULL;
    }
    return config->policy != FILCH_POLICY_DEFAULT && config->policy != FILCH_POLICY_CUSTOM
               ? "policy and custom_policy contradict each other"
           : desc->flags > FILCH_POLICY_TRUE_TIMES ? "the policy's flags are unknown"
           : (unsigned)desc->batches > FILCH_POLICY_BATCHES_COMMON
               ? "the policy's batches are unknown"
           : desc->batches == FILCH_POLICY_BATCHES_PLACED && desc->place == NULL
               ? "the policy places batches, but has no function that does"
               : NULL;
}

/* Returns the fault found in the sizes of the caller's records, or null. */
static const char *check_sizes(const filch_runtime_desc *given, const filch_runtime_desc *full,
                               char text[FL_SIZE_TEXT])
{
    const char *wrong = given != NULL ? fl_size_wrong(given, CONFIG_SIZE_FIRST, sizeof *given,
                                                      "the configuration", text)
                                      : NULL;
    const filch_policy_desc *policy = full->custom_policy;
    return wrong == NULL && policy != NULL
               ? fl_size_wrong(policy, sizeof *policy, sizeof *policy, "the policy", text)
               : wrong;
}

static filch_status check_config(const filch_runtime_desc *config, filch_runtime **runtime,
                                 filch_error *error)
{
    const char *wrong =
        runtime == NULL                                  ? "there is nowhere to put the runtime"
        : error != NULL && error->size == 0              ? "the error's size is not set"
        : config->reserved != 0                          ? "reserved is not 0"
        : (unsigned)config->policy > FILCH_POLICY_CUSTOM ? "unknown policy"
        : (unsigned)config->drive > FILCH_DRIVE_POLL     ? "unknown drive"
        : (unsigned)config->score > FILCH_SCORE_CAPACITY ? "unknown score"
        : (unsigned)config->log_level > FILCH_LOG_DEBUG  ? "unknown log level"
        : (unsigned)config->cuda_context > FILCH_CUDA_CONTEXT_PRIVATE    ? "unknown cuda_context"
        : (unsigned)config->cuda_schedule > FILCH_CUDA_SCHEDULE_BLOCKING ? "unknown cuda_schedule"
        : (unsigned)config->bind > FILCH_BIND_NONE                       ? "unknown bind"
        : config->speeds != NULL && strlen(config->speeds) >= FL_SETTING_TEXT
            ? "speeds is longer than 255 bytes"
        : config->memory_limit > INT64_MAX && config->memory_limit < FILCH_MEMORY_HALF
            ? "memory_limit is beyond every memory"
        : (unsigned)config->allocator_kind > FILCH_ALLOCATOR_SYSTEM ? "unknown allocator kind"
        : (config->scores == NULL) != (config->score_count == 0)    ? "scores and score_count "
                                                                      "contradict each other"
        : config->allocator != NULL &&
                (config->allocator->alloc == NULL || config->allocator->free == NULL)
            ? "the allocator lacks a function"
            : check_policy(config);
    return wrong == NULL ? FILCH_OK : refuse(error, FILCH_INVALID_ARGUMENT, wrong);
}

static filch_status choose_memory(const filch_runtime_desc *config, const fl_settings *settings,
                                  filch_allocator *allocator, fl_memory *memory, filch_error *error)
{
    if (config->allocator != NULL) {
        *allocator = *config->allocator;
        *memory = (fl_memory){caller_alloc, caller_free, allocator, "caller"};
        return FILCH_OK;
    }
    int64_t kind =
        config->allocator_kind != 0 ? (int64_t)config->allocator_kind : settings->allocator;
    *memory = kind == FILCH_ALLOCATOR_SYSTEM ? fl_memory_system() : fl_memory_default();
    if (kind == FILCH_ALLOCATOR_JEMALLOC && strcmp(memory->name, "jemalloc") != 0) {
        return refuse(error, FILCH_UNSUPPORTED, "this build of filch has no jemalloc");
    }
    return FILCH_OK;
}

static filch_drive choose_drive(const filch_runtime *rt)
{
    filch_drive drive = (filch_drive)rt->core.settings.drive;
    if (drive == FILCH_DRIVE_DEFAULT) {
        /* The virtual clock has no threads: a waiting thread drives the clock. */
        drive = rt->pool.is_virtual ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS;
    }
    return drive;
}

/* Returns whether a device computes in memory of its own; simulated devices only pretend. */
static bool has_memories(const fl_pool *pool)
{
    for (size_t i = 0; i < pool->count; ++i) {
        if (pool->devices[i].backend->memory != NULL) {
            return true;
        }
    }
    return false;
}

/* Opens the memory nodes, and the table of kernels loaded on every node. */
static filch_status open_memories(filch_runtime *rt, filch_error *error)
{
    fl_core *core = &rt->core;
    fl_pool *pool = &rt->pool;
    uint32_t places = has_memories(pool) ? pool->place_count : 1;
    filch_status status =
        fl_places_init(&rt->places, core, pool->devices, pool->count, places, error);
    if (status != FILCH_OK) {
        return status;
    }
    rt->places.bandwidths = &pool->bandwidths;
    if (places > 1 && (rt->places.residents = fl_residents_new(core, places)) == NULL) {
        fl_places_fini(&rt->places);
        return refuse(error, FILCH_OUT_OF_MEMORY, "no memory for the table of memories");
    }
    status = fl_modules_init(&rt->modules, core, pool->devices, pool->count, pool->place_count);
    if (status != FILCH_OK) {
        fl_residents_free(&rt->places);
        fl_places_fini(&rt->places);
        return refuse(error, status, "no memory for kernels");
    }
    core->places = &rt->places;
    core->modules = &rt->modules;
    return FILCH_OK;
}

static void close_memories(filch_runtime *rt)
{
    fl_modules_fini(&rt->modules);
    fl_residents_free(&rt->places);
    fl_places_fini(&rt->places);
}

static filch_policy choose_policy(const filch_runtime *rt, const filch_runtime_desc *config)
{
    return config->custom_policy != NULL            ? FILCH_POLICY_CUSTOM
           : config->policy != FILCH_POLICY_DEFAULT ? config->policy
                                                    : (filch_policy)rt->core.settings.policy;
}

static void score_devices(filch_runtime *rt, const filch_runtime_desc *config)
{
    filch_score score =
        config->score != FILCH_SCORE_DEFAULT ? config->score : (filch_score)rt->core.settings.score;
    if (config->scores == NULL) { /* else the scheduler takes over the caller's scores */
        fl_pool_score(&rt->pool, score, config->rate, config->rate_user);
    }
}

/* Builds every part above the core; a failure leaves no part behind. */
static filch_status build(filch_runtime *rt, const filch_runtime_desc *config, filch_error *error)
{
    fl_core *core = &rt->core;
    fl_discovery how = {
        .memory = &core->memory,
        .log = &core->log,
        .error = error,
        .settings = &core->settings,
        .clock = &core->clock,
    };
    const char *spec = config->devices != NULL ? config->devices : core->settings.devices;
    filch_status status = fl_store_init(&rt->store, &core->memory);
    if (status != FILCH_OK) {
        return refuse(error, status, "the task store has no lock");
    }
    core->store = &rt->store;
    core->jobs = &rt->jobs;
    core->nvtx = fl_nvtx_attach(&core->log);
    status = fl_pool_open(&rt->pool, spec, &how);
    if (status != FILCH_OK) {
        if (error != NULL && config->devices == NULL && spec[0] != '\0' &&
            error->label[0] == '\0') {
            snprintf(error->label, sizeof error->label, "FILCH_DEVICES");
        }
        goto store;
    }
    score_devices(rt, config);
    fl_clock_init(&core->clock, rt->pool.is_virtual);
    filch_drive drive = choose_drive(rt);
    const fl_sched_config sched = {.scores = config->scores,
                                   .policy = choose_policy(rt, config),
                                   .custom = config->custom_policy,
                                   .drive = drive};
    if (config->scores != NULL && config->score_count != rt->pool.count) {
        status = fl_error_fill(error, (fl_fault){.status = FILCH_INVALID_ARGUMENT, .call = CREATE},
                               "%zu devices, but %zu scores were given", rt->pool.count,
                               config->score_count);
        goto pool;
    }
    if (rt->pool.is_virtual && drive == FILCH_DRIVE_THREADS) {
        status = refuse(error, FILCH_UNSUPPORTED, "simulated devices have no threads");
        goto pool;
    }
    status = open_memories(rt, error);
    if (status != FILCH_OK) {
        goto pool;
    }
    status = fl_tracing_init(rt, error);
    if (status != FILCH_OK) {
        goto memories;
    }
    status = fl_sched_init(&rt->sched, core, &rt->pool, &sched, error);
    if (status != FILCH_OK) {
        goto rings;
    }
    bool is_traced = core->settings.trace == 1 || core->settings.report[0] != '\0';
    if (config->trace == 1 || is_traced) {
        status = fl_tracing_start(rt);
        if (status != FILCH_OK) {
            refuse(error, status, "no memory for the trace");
            goto sched;
        }
    }
    return FILCH_OK;
sched:
    fl_sched_fini(&rt->sched);
rings:
    fl_tracing_fini(rt);
memories:
    close_memories(rt);
pool:
    fl_pool_close(&rt->pool, &core->memory);
store:
    fl_store_fini(&rt->store);
    return status;
}

/* Registers the CPUs bound to the workers' threads. Called once the devices are final and the
 * host's log is set. */
static void claim_cpus(filch_runtime *rt)
{
    rt->claim.file = -1;
    if (rt->sched.drive == FILCH_DRIVE_THREADS) {
        fl_cpu_claim_open(&rt->claim, FL_CPU_CLAIM_FILE);
        fl_cpu_claim_pool(&rt->claim, &rt->pool, &rt->core.log);
    }
}

/* Completes the caller's configuration, possibly of an older version, by defaults. */
static filch_runtime_desc complete_config(const filch_runtime_desc *given)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    if (given != NULL) {
        size_t known = given->size < sizeof config ? given->size : sizeof config;
        memcpy(&config, given, given->size < CONFIG_SIZE_FIRST ? sizeof given->size : known);
    }
    return config;
}

static filch_status read_settings(const filch_runtime_desc *config, const fl_log *log,
                                  fl_settings *settings, filch_error *error)
{
    filch_status status = fl_settings_read(settings, log, error);
    if (status == FILCH_OK && config->drive != FILCH_DRIVE_DEFAULT) {
        settings->drive = config->drive;
    }
    if (status == FILCH_OK && config->cuda_context != FILCH_CUDA_CONTEXT_DEFAULT) {
        settings->cuda_context = config->cuda_context;
    }
    if (status == FILCH_OK && config->cuda_schedule != FILCH_CUDA_SCHEDULE_DEFAULT) {
        settings->cuda_schedule = config->cuda_schedule;
    }
    if (status == FILCH_OK && config->bind != FILCH_BIND_DEFAULT) {
        settings->bind = config->bind;
    }
    if (status == FILCH_OK && config->allow_multicast) {
        settings->multicast = 1;
    }
    if (status == FILCH_OK && config->memory_limit != 0) {
        settings->memory_limit = (int64_t)config->memory_limit;
    }
    if (status == FILCH_OK && config->speeds != NULL) {
        snprintf(settings->speeds, sizeof settings->speeds, "%s", config->speeds);
    }
    return status;
}

filch_status filch_runtime_create(const filch_runtime_desc *given, filch_error *error,
                                  filch_runtime **runtime)
{
    const filch_runtime_desc full = complete_config(given), *config = &full;
    fl_settings settings;
    fl_log log = {config->log, config->log_user, config->log_level};
    fl_memory memory;
    filch_allocator allocator = {0};
    char text[FL_SIZE_TEXT];
    const char *wrong = check_sizes(given, config, text);
    filch_status status = wrong != NULL ? refuse(error, FILCH_INVALID_ARGUMENT, wrong)
                                        : check_config(config, runtime, error);
    status = status == FILCH_OK ? read_settings(config, &log, &settings, error) : status;
    status = status == FILCH_OK ? fl_tracing_check(&settings, error) : status;
    status =
        status == FILCH_OK ? choose_memory(config, &settings, &allocator, &memory, error) : status;
    if (status != FILCH_OK) {
        return status;
    }
    filch_runtime *rt = fl_alloc_aligned(&memory, sizeof *rt, _Alignof(filch_runtime));
    if (rt == NULL) {
        return refuse(error, FILCH_OUT_OF_MEMORY, "no memory for a runtime");
    }
    memset(rt, 0, sizeof *rt);
    rt->allocator = allocator;
    if (memory.user == &allocator) {
        memory.user = &rt->allocator;
    }
    rt->core.settings = settings;
    rt->core.log = fl_settings_log(&settings, &log);
    status = fl_core_init(&rt->core, &memory, error);
    if (status == FILCH_OK) {
        status = build(rt, config, error);
        if (status == FILCH_OK) {
            claim_cpus(rt);
            fl_live_start(rt);
            *runtime = rt;
            return FILCH_OK;
        }
        fl_core_fini(&rt->core);
    }
    fl_free_aligned(&memory, rt, sizeof *rt, _Alignof(filch_runtime));
    return status;
}

/* Saves speeds for later runs, where the host asked for a file. A failure is only logged, as the
 * jobs are done. */
static void keep_speeds(filch_runtime *rt)
{
    filch_error error = FILCH_ERROR_INIT;
    if (fl_speed_file_is_on(&rt->sched.speed_file) && fl_speeds_save(rt, &error) != FILCH_OK) {
        fl_log_write(&rt->core.log, FILCH_LOG_WARNING, "measured speeds are not kept: %s",
                     error.text);
    }
}

/* Frees an idle runtime. */
static void tear_down(filch_runtime *rt)
{
    fl_core *core = &rt->core;
    fl_live_stop(rt);
    keep_speeds(rt);
    fl_tracing_keep_report(rt);
    fl_tracing_stop(rt); /* detach the rings before the lanes making copies go */
    fl_clock_advance(&core->clock,
                     FL_TIME_NEVER - 1); /* virtual clock: end every operation under way */
    fl_sched_fini(&rt->sched);
    fl_cpu_claim_close(&rt->claim);
    for (fl_object *object = core->objects; object != NULL;) {
        fl_object *next = object->next;
        switch (fl_load_relaxed(&object->magic)) {
        case FL_MAGIC_GRAPH:
            fl_graph_free((filch_graph *)(void *)object);
            break;
        case FL_MAGIC_DATA:
            fl_data_drop_replicas(&rt->places, (filch_data *)(void *)object);
            break;
        case FL_MAGIC_MULTICAST:
            fl_multicast_drop((filch_multicast *)(void *)object);
            break;
        case FL_MAGIC_CODELET:
            fl_kernel_free(&rt->modules, ((filch_codelet *)(void *)object)->kernel);
            fl_host_states_close(core, ((filch_codelet *)(void *)object)->states);
            break;
        default:
            break;
        }
        object = next;
    }
    fl_jobs_fini(core);
    fl_tracing_fini(rt);
    close_memories(rt);
    fl_pool_close(&rt->pool, &core->memory);
    fl_store_fini(&rt->store);
    filch_allocator allocator = rt->allocator;
    fl_memory inner = core->inner;
    fl_core_fini(core);
    if (inner.user == &rt->allocator) {
        inner.user = &allocator;
    }
    fl_free_aligned(&inner, rt, sizeof *rt, _Alignof(filch_runtime));
}

static filch_status check_outside(filch_runtime *rt, const char *call)
{
    if (fl_sched_self(&rt->sched) != NULL || fl_jobs_in_callback(&rt->core)) {
        return fl_core_fail(&rt->core, FILCH_WRONG_STATE, call, NULL,
                            "called from one of the runtime's tasks or callbacks");
    }
    return FILCH_OK;
}

/* Returns an object that is a running job, or null. Under core->lock, which keeps the job and its
 * label. */
static const filch_job *as_running(const fl_object *object)
{
    return fl_load_relaxed(&object->magic) == (uint32_t)FL_MAGIC_JOB &&
                   filch_job_status((filch_job *)(uintptr_t)object) == FILCH_NOT_READY
               ? (const filch_job *)(const void *)object
               : NULL;
}

bool fl_runtime_is_idle(filch_runtime *rt)
{
    fl_core *core = &rt->core;
    bool is_busy = false;
    fl_mutex_lock(&core->lock);
    for (const fl_object *object = core->objects; object != NULL && !is_busy;
         object = object->next) {
        is_busy = as_running(object) != NULL;
    }
    fl_mutex_unlock(&core->lock);
    return !is_busy &&
           fl_sched_wait(&rt->sched, (fl_goal){.running = &rt->jobs.running}, -1) == FILCH_OK;
}

filch_status filch_runtime_drain(filch_runtime *rt, double seconds)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    status = status == FILCH_OK ? check_outside(rt, "filch_runtime_drain") : status;
    if (status != FILCH_OK) {
        return status;
    }
    if (isnan(seconds)) {
        return fl_core_fail(&rt->core, FILCH_INVALID_ARGUMENT, "filch_runtime_drain", NULL,
                            "seconds is not a number");
    }
    return fl_sched_wait(&rt->sched, (fl_goal){.running = &rt->jobs.running}, seconds);
}

filch_status filch_runtime_policy(filch_runtime *rt, filch_policy_counts *counts)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_size_check(&rt->core, counts, sizeof *counts, 0, "the result",
                           "filch_runtime_policy", NULL);
    if (status != FILCH_OK) {
        return status;
    }
    fl_rules *rules = &rt->sched.rules;
    filch_policy_counts now = {
        .size = counts->size,
        .policy = rules->kind,
        .places = fl_load_relaxed(&rules->places.times),
        .places_refused = fl_load_relaxed(&rules->places.refused),
        .chunks = fl_load_relaxed(&rules->chunks.times),
        .chunks_refused = fl_load_relaxed(&rules->chunks.refused),
        .steals = fl_load_relaxed(&rules->steals.times),
        .steals_refused = fl_load_relaxed(&rules->steals.refused),
    };
    memcpy(now.name, rules->name, sizeof now.name);
    memcpy(counts, &now, sizeof now);
    return FILCH_OK;
}

/* Writes up to so many different labels of running jobs, " ('first', 'second')"; nothing where no
 * running job has a label. */
static void tell_running(fl_core *core, char *text, size_t bytes)
{
    const char *labels[JOBS_TOLD];
    size_t count = 0, length = 0;
    bool has_more = false;
    text[0] = '\0';
    fl_mutex_lock(&core->lock);
    for (const fl_object *object = core->objects; object != NULL; object = object->next) {
        const filch_job *job = as_running(object);
        bool is_new = job != NULL && job->label[0] != '\0';
        for (size_t i = 0; i < count && is_new; ++i) {
            is_new = strcmp(labels[i], job->label) != 0; /* runs have their repetition's label */
        }
        if (is_new && count < JOBS_TOLD) {
            labels[count++] = job->label;
        } else if (is_new) {
            has_more = true;
        }
    }
    for (size_t i = 0; i < count; ++i) {
        length += (size_t)snprintf(text + length, bytes - length, "%s'%.31s'%s",
                                   i == 0 ? " (" : ", ", labels[i],
                                   i + 1 < count ? ""
                                   : has_more    ? ", ...)"
                                                 : ")");
    }
    fl_mutex_unlock(&core->lock);
}

filch_status filch_runtime_destroy(filch_runtime *rt)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    status = status == FILCH_OK ? check_outside(rt, "filch_runtime_destroy") : status;
    if (status != FILCH_OK) {
        return status;
    }
    if (!fl_runtime_is_idle(rt)) {
        char what[160] = "", labels[JOBS_TOLD * 35 + 8];
        tell_running(&rt->core, labels, sizeof labels);
        bool is_pending = fl_pending_describe(&rt->sched, what, sizeof what);
        return fl_core_fail(&rt->core, FILCH_BUSY, "filch_runtime_destroy", NULL,
                            "jobs still running: %llu%s%s%s",
                            (unsigned long long)fl_load_relaxed(&rt->jobs.running), labels,
                            is_pending ? "; " : "", what);
    }
    tear_down(rt);
    return FILCH_OK;
}

filch_status filch_runtime_abort(filch_runtime *rt)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    status = status == FILCH_OK ? check_outside(rt, "filch_runtime_abort") : status;
    if (status != FILCH_OK) {
        return status;
    }
    /* Repeat: callbacks may submit more jobs. A virtual clock goes as far as necessary. */
    double round = rt->pool.is_virtual ? -1 : 0.01;
    filch_status waited;
    do {
        fl_jobs_cancel(&rt->core);
        fl_holds_end(&rt->core);
        waited = fl_sched_wait(&rt->sched, (fl_goal){.running = &rt->jobs.running}, round);
        if (waited != FILCH_OK && rt->pool.is_virtual) {
            fl_thread_yield(); /* a pending task's end, which another thread gives, is missing */
        }
    } while (waited != FILCH_OK);
    tear_down(rt);
    return FILCH_OK;
}

/* Tells whether the calling thread may drive the workers. */
static filch_status check_polled(filch_runtime *rt, const char *call)
{
    filch_status status = fl_object_check_for(rt, FL_MAGIC_RUNTIME, call);
    if (status != FILCH_OK) {
        return status;
    }
    if (rt->sched.drive != FILCH_DRIVE_POLL || rt->pool.is_virtual ||
        fl_sched_self(&rt->sched) != NULL) {
        return fl_core_fail(&rt->core, FILCH_WRONG_STATE, call, NULL, "%s",
                            rt->pool.is_virtual ? "a virtual clock is driven by filch_job_wait"
                            : rt->sched.drive != FILCH_DRIVE_POLL
                                ? "the runtime has threads of its own"
                                : "called from one of the runtime's tasks or callbacks");
    }
    return FILCH_OK;
}

static uint64_t time_in(double seconds)
{
    uint64_t range = seconds < 0 ? FL_TIME_NEVER : fl_time_from_seconds(seconds);
    uint64_t start = range == 0 ? 0 : fl_time_now();
    return range > FL_TIME_NEVER - start ? FL_TIME_NEVER : start + range;
}

filch_status filch_runtime_poll(filch_runtime *rt, double seconds, bool *worked)
{
    filch_status status = check_polled(rt, "filch_runtime_poll");
    if (status != FILCH_OK) {
        return status;
    }
    bool any = fl_drive_poll(&rt->sched, time_in(seconds));
    if (worked != NULL) {
        *worked = any;
    }
    return FILCH_OK;
}

/* Goal without a job: the work or the time ends the wait. */
static bool is_never(void *unused)
{
    (void)unused;
    return false;
}

filch_status filch_runtime_poll_wait(filch_runtime *rt, filch_job *job, double seconds,
                                     bool *worked)
{
    static const char call[] = "filch_runtime_poll_wait";
    filch_status status = check_polled(rt, call);
    if (status != FILCH_OK) {
        return status;
    }
    const fl_argument argument = {job, FL_MAGIC_JOB, "the job", job != NULL ? job->label : ""};
    status = job != NULL ? fl_argument_check(&rt->core, &argument, call, NULL) : FILCH_OK;
    if (status != FILCH_OK) {
        return status;
    }
    if (job != NULL && (fl_job_is_in_callback(job) || fl_job_is_put_off(job))) {
        return fl_core_fail(&rt->core, FILCH_WRONG_STATE, call, job->label,
                            fl_job_is_in_callback(job)
                                ? "the job's callback cannot wait for it"
                                : "a callback cannot wait for a run that it has cancelled");
    }
    if (isnan(seconds)) {
        return fl_core_fail(&rt->core, FILCH_INVALID_ARGUMENT, call, NULL,
                            "seconds is not a number");
    }
    const fl_goal goal = {.job = job, .is_over = job == NULL ? is_never : NULL};
    bool any;
    status = fl_sched_poll_wait(&rt->sched, &goal, time_in(seconds), &any);
    if (worked != NULL) {
        *worked = any;
    }
    return status;
}

filch_status filch_runtime_error(filch_runtime *rt, filch_error *error)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    return error == NULL || error->size == 0 ? FILCH_INVALID_ARGUMENT
                                             : fl_error_fetch(&rt->core.errors, error);
}

filch_status filch_runtime_usage(filch_runtime *rt, filch_usage *usage)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_size_check(&rt->core, usage, sizeof *usage, 0, "the result", "filch_runtime_usage",
                           NULL);
    if (status != FILCH_OK) {
        return status;
    }
    usage->host_bytes = fl_load_relaxed(&rt->core.host_bytes);
    uint64_t kept = fl_load_relaxed(&rt->jobs.kept), running = fl_load_relaxed(&rt->jobs.running);
    usage->jobs_running = running > kept ? running - kept : 0;
    usage->tasks_live = fl_jobs_tasks(&rt->core);
    usage->task_bytes = fl_load_relaxed(&rt->store.bytes);
    return FILCH_OK;
}

/* --- Devices --- */

static filch_status check_device_call(filch_runtime *rt, const void *result, const char *call)
{
    filch_status status = fl_object_check_for(rt, FL_MAGIC_RUNTIME, call);
    if (status == FILCH_OK && result == NULL) {
        return fl_core_fail(&rt->core, FILCH_INVALID_ARGUMENT, call, NULL, "the result is null");
    }
    return status;
}

uint32_t filch_device_count(filch_runtime *rt)
{
    return fl_object_check(rt, FL_MAGIC_RUNTIME) == FILCH_OK ? (uint32_t)rt->pool.count : 0;
}

filch_status filch_device_at(filch_runtime *rt, uint32_t index, filch_device_info *info)
{
    filch_status status = check_device_call(rt, info, "filch_device_at");
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_size_check(&rt->core, info, FL_POOL_INFO_LEAST, 0, "the result", "filch_device_at",
                           NULL);
    status = status == FILCH_OK ? fl_pool_info(&rt->pool, index, info) : status;
    return status != FILCH_BAD_INDEX
               ? status
               : fl_core_fail(&rt->core, status, "filch_device_at", NULL,
                              "index %u is not below the device count, %zu", index, rt->pool.count);
}

uint32_t filch_device_refused_count(filch_runtime *rt)
{
    return fl_object_check(rt, FL_MAGIC_RUNTIME) == FILCH_OK ? (uint32_t)rt->pool.refusals.count
                                                             : 0;
}

filch_status filch_device_refused_at(filch_runtime *rt, uint32_t index,
                                     filch_device_refusal *refusal)
{
    filch_status status = check_device_call(rt, refusal, "filch_device_refused_at");
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_size_check(&rt->core, refusal, sizeof *refusal, 0, "the result",
                           "filch_device_refused_at", NULL);
    status = status == FILCH_OK ? fl_pool_refused(&rt->pool, index, refusal) : status;
    return status != FILCH_BAD_INDEX
               ? status
               : fl_core_fail(&rt->core, status, "filch_device_refused_at", NULL,
                              "index %u is not below the number left out, %zu", index,
                              rt->pool.refusals.count);
}

filch_status filch_device_by_ordinal(filch_runtime *rt, filch_backend backend, uint32_t ordinal,
                                     uint32_t *index)
{
    filch_status status = check_device_call(rt, index, "filch_device_by_ordinal");
    static const char *const names[] = {"no backend", "host", "cuda", "sim"};
    if (status != FILCH_OK) {
        return status;
    }
    if (backend == 0 || (unsigned)backend >= sizeof names / sizeof *names) {
        return fl_core_fail(&rt->core, FILCH_INVALID_ARGUMENT, "filch_device_by_ordinal", NULL,
                            "there is no backend with the number %d", (int)backend);
    }
    status = fl_pool_by_ordinal(&rt->pool, backend, ordinal, index);
    return status == FILCH_OK ? FILCH_OK
                              : fl_core_fail(&rt->core, status, "filch_device_by_ordinal", NULL,
                                             "backend %s has no device with ordinal %u here",
                                             names[backend], ordinal);
}

filch_status filch_device_next(filch_runtime *rt, uint32_t *index)
{
    filch_status status = check_device_call(rt, index, "filch_device_next");
    if (status == FILCH_OK) {
        *index = fl_pool_next(&rt->pool);
    }
    return status;
}

filch_status filch_device_best_memory(filch_runtime *rt, uint32_t *index)
{
    filch_status status = check_device_call(rt, index, "filch_device_best_memory");
    if (status == FILCH_OK) {
        *index = fl_pool_best_memory(&rt->pool);
    }
    return status;
}

filch_status filch_device_best_score(filch_runtime *rt, uint32_t *index)
{
    filch_status status = check_device_call(rt, index, "filch_device_best_score");
    if (status == FILCH_OK) {
        *index = fl_pool_best_score(&rt->pool);
    }
    return status;
}

filch_status filch_device_choose(filch_runtime *rt, filch_device_rate_fn rate, void *user,
                                 uint32_t *index)
{
    filch_status status = check_device_call(rt, index, "filch_device_choose");
    if (status != FILCH_OK) {
        return status;
    }
    if (rate == NULL) {
        return fl_core_fail(&rt->core, FILCH_INVALID_ARGUMENT, "filch_device_choose", NULL,
                            "the rating function is null");
    }
    status = fl_pool_choose(&rt->pool, rate, user, index);
    return status == FILCH_OK ? FILCH_OK
                              : fl_core_fail(&rt->core, status, "filch_device_choose", NULL,
                                             "every rating was NaN");
}
