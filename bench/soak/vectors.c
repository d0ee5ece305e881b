/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/vectors.h"

#include "filch/filch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS 3
#define LENGTH 32768
#define TILE 2048
#define JOBS 6
/* What all vectors take, and some more: tiles have to leave when several are used. */
#define LIMIT ((uint64_t)8 << 20)

typedef struct vectors {
    soak *s;
    soak_watch *watch;
    uint64_t *random;
    filch_runtime *runtime;
    uint32_t devices;
    char text[128];
    filch_codelet *axpy;
    filch_data *from, *to[VECTORS];
    double x[LENGTH], y[VECTORS][LENGTH], expected[VECTORS][LENGTH];
    bool is_open[VECTORS]; /* something was left out: what it holds is not known */
    bool is_lost;          /* a device is */
} vectors;

typedef struct vector_job {
    filch_job *job;
    uint32_t to;
    double alpha;
    bool is_cancelled;
} vector_job;

#define EXPECT(v, call) expect((v), (call), #call)

static bool expect(vectors *v, filch_status status, const char *call)
{
    if (status != FILCH_OK)
        soak_fail(v->s, "%s: %s is %s", v->text, call, filch_status_name(status));
    return status == FILCH_OK;
}

static bool create(vectors *v)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    config.devices = v->s->devices;
    config.memory_limit = soak_chance(v->random, 50) ? LIMIT : 0;
    config.drive = soak_chance(v->random, 25) ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS;
    snprintf(v->text, sizeof v->text, "runtime on %s%s, %s", config.devices,
             config.memory_limit ? " of little memory" : "",
             config.drive == FILCH_DRIVE_POLL ? "poll" : "threads");
    soak_watch_say(v->watch, "the creation of a %s", v->text);
    if (filch_runtime_create(&config, &error, &v->runtime) != FILCH_OK) {
        soak_fail(v->s, "a %s cannot be made: %s", v->text, error.text);
        return false;
    }
    v->devices = filch_device_count(v->runtime);
    soak_count(&v->s->counts.runtimes, 1);
    soak_count(&v->s->counts.limits, config.memory_limit != 0);
    return true;
}

static bool handle(vectors *v, double *at, filch_data **data)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = at;
    desc.element = sizeof *at;
    desc.rows = LENGTH;
    desc.tile_rows = TILE;
    return EXPECT(v, filch_data_create(v->runtime, &desc, data));
}

static bool furnish(vectors *v)
{
    const filch_kernel *kernel = filch_kernel_find("axpy_f64");
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "axpy";
    desc.host = kernel->host;
    desc.cuda = kernel->cuda;
    desc.arg_size = kernel->arg_size;
    bool is_made =
        EXPECT(v, filch_codelet_create(v->runtime, &desc, &v->axpy)) && handle(v, v->x, &v->from);
    for (uint32_t i = 0; i < LENGTH; i++)
        v->x[i] = (double)soak_below(v->random, 1000);
    for (uint32_t k = 0; k < VECTORS && is_made; k++) {
        for (uint32_t i = 0; i < LENGTH; i++)
            v->y[k][i] = v->expected[k][i] = (double)soak_below(v->random, 1000);
        is_made = handle(v, v->y[k], &v->to[k]);
    }
    return is_made;
}

static void start(vectors *v, vector_job *job)
{
    *job = (vector_job){.to = soak_below(v->random, VECTORS),
                        .alpha = soak_chance(v->random, 50) ? 1 : -1};
    filch_axpy_args args = {job->alpha};
    filch_batch_access accesses[] = {
        {.data = v->from, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = v->to[job->to], .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = v->axpy;
    desc.args = &args;
    desc.n = LENGTH;
    desc.accesses = accesses;
    desc.access_count = 2;
    soak_watch_say(v->watch, "the submission of a batch of a %s", v->text);
    EXPECT(v, filch_batch_submit(v->runtime, &desc, NULL, &job->job));
    soak_count(&v->s->counts.jobs, 1);
}

/* A device may be lost before it is withdrawn, and while it is away. */
static void come_and_go(vectors *v, const vector_job *job, uint32_t device)
{
    filch_status status = filch_device_withdraw(v->runtime, device);
    if (status == FILCH_OK) {
        (void)filch_job_wait(job->job, (double)soak_below(v->random, 300) * 1e-6);
        status = filch_device_readmit(v->runtime, device);
    }
    if (status == FILCH_DEVICE_LOST)
        v->is_lost = true;
    else
        (void)expect(v, status, "a withdrawal");
}

static void disturb(vectors *v, vector_job *job)
{
    if (soak_chance(v->random, 20)) {
        (void)filch_job_wait(job->job, (double)soak_below(v->random, 300) * 1e-6);
        job->is_cancelled = EXPECT(v, filch_job_cancel(job->job));
        soak_count(&v->s->counts.cancels, 1);
    }
    if (v->devices > 1 && soak_chance(v->random, 25)) {
        uint32_t device = soak_below(v->random, v->devices);
        soak_watch_say(v->watch, "the withdrawal of device %u of a %s", device, v->text);
        come_and_go(v, job, device);
        soak_count(&v->s->counts.withdrawals, 1);
    }
}

/* A device that is lost takes what was valid there alone with it. */
static void finish(vectors *v, vector_job *job)
{
    filch_error error = FILCH_ERROR_INIT;
    soak_watch_say(v->watch, "a batch of %u of a %s", LENGTH, v->text);
    filch_status status = filch_job_wait(job->job, SOAK_PATIENCE_S / 2.0);
    if (status == FILCH_TIMEOUT) {
        soak_fail(v->s, "a batch of a %s does not end", v->text);
        return;
    }
    if (status == FILCH_TASK_FAILED && filch_job_error(job->job, &error) == FILCH_OK &&
        error.status == FILCH_DEVICE_LOST) {
        v->is_lost = true;
    } else if (status == FILCH_OK) {
        for (uint32_t i = 0; i < LENGTH; i++)
            v->expected[job->to][i] += job->alpha * v->x[i];
        soak_count(&v->s->counts.tasks, LENGTH);
    } else if (!job->is_cancelled) {
        soak_fail(v->s, "a batch of a %s is %s: %s", v->text, filch_status_name(status),
                  error.text);
    }
    v->is_open[job->to] |= status != FILCH_OK;
    EXPECT(v, filch_job_release(job->job));
}

/* Bits, as a negative zero is not a positive one here. */
static bool are_alike(const double *a, const double *b)
{
    for (uint32_t i = 0; i < LENGTH; i++) {
        uint64_t left, right;
        memcpy(&left, &a[i], sizeof left);
        memcpy(&right, &b[i], sizeof right);
        if (left != right)
            return false;
    }
    return true;
}

static void check(vectors *v)
{
    for (uint32_t k = 0; k < VECTORS; k++) {
        if (v->is_open[k])
            memcpy(v->expected[k], v->y[k], sizeof v->y[k]);
        else if (!are_alike(v->expected[k], v->y[k]))
            soak_fail(v->s, "%s: vector %u is wrong", v->text, k);
        v->is_open[k] = false;
    }
    soak_count(&v->s->counts.checks, 1);
}

static void run_bouts(vectors *v)
{
    uint32_t bouts = 1 + soak_below(v->random, 8);
    for (uint32_t b = 0; b < bouts && !v->is_lost && !soak_has_failed(v->s); b++) {
        vector_job jobs[JOBS];
        uint32_t count = 1 + soak_below(v->random, JOBS), started = 0;
        while (started < count && !soak_has_failed(v->s))
            start(v, &jobs[started++]);
        if (soak_has_failed(v->s))
            return;
        disturb(v, &jobs[soak_below(v->random, count)]);
        for (uint32_t k = 0; k < count && !soak_has_failed(v->s); k++)
            finish(v, &jobs[k]);
        if (!v->is_lost && !soak_has_failed(v->s))
            check(v);
    }
}

void soak_vectors_live(soak *s, soak_watch *watch, uint64_t *random)
{
    vectors *v = calloc(1, sizeof *v);
    if (!v) {
        soak_fail(s, "no memory for vectors");
        return;
    }
    v->s = s;
    v->watch = watch;
    v->random = random;
    if (create(v)) {
        if (furnish(v))
            run_bouts(v);
        soak_count(&s->counts.losses, v->is_lost);
        if (soak_has_failed(s))
            return; /* it may still use them */
        soak_watch_say(watch, "the end of a %s", v->text);
        EXPECT(v, soak_chance(random, 20) ? filch_runtime_abort(v->runtime)
                                          : filch_runtime_destroy(v->runtime));
    }
    free(v);
}
