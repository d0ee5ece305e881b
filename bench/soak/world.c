/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "soak/world.h"

#include "measure/policies.h"

#include "soak/jobs.h"
#include "soak/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct world {
    soak *s;
    soak_watch *watch;
    uint64_t random;
    filch_runtime *runtime;
    bench_policy_room policy;
    uint32_t devices;
    char text[96]; /* what it is, for messages */
    soak_field *field;
    _Atomic int64_t pieces; /* of the caller's allocator, live; relaxed: a count alone */
} world;

#define EXPECT(w, call) expect((w), (call), #call)

static bool expect(world *w, filch_status status, const char *call)
{
    if (status != FILCH_OK)
        soak_fail(w->s, "%s: %s is %s", w->text, call, filch_status_name(status));
    return status == FILCH_OK;
}

/* --- The runtime --- */

static void *allocate(size_t size, size_t align, void *user)
{
    world *w = user;
    void *made = NULL;
    if (posix_memalign(&made, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
        return NULL;
    atomic_fetch_add_explicit(&w->pieces, 1, memory_order_relaxed);
    return made;
}

static void release(void *pointer, size_t size, size_t align, void *user)
{
    world *w = user;
    (void)size;
    (void)align;
    atomic_fetch_sub_explicit(&w->pieces, 1, memory_order_relaxed);
    free(pointer);
}

static double any_score(const filch_device_info *info, void *user)
{
    (void)info;
    return 1.0 + soak_below(user, 10);
}

static bool create(world *w)
{
    static const char *const specs[] = {"host:1", "host:2", "host:3", "host:1x2,host:1"};
    static const bench_policy policies[] = {
        BENCH_POLICY_STEAL,   BENCH_POLICY_STEAL,  BENCH_POLICY_STATIC,      BENCH_POLICY_STEAL,
        BENCH_POLICY_CENTRAL, BENCH_POLICY_GUIDED, BENCH_POLICY_ROUND_ROBIN, BENCH_POLICY_EARLIEST};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_allocator allocator = {allocate, release, w};
    filch_error error = FILCH_ERROR_INIT;
    bench_policy policy = policies[soak_below(&w->random, 8)];
    config.devices = specs[soak_below(&w->random, 4)];
    bench_policy_choose(policy, &w->policy, &config);
    config.drive = soak_chance(&w->random, 25) ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS;
    config.trace = soak_chance(&w->random, 20);
    config.allocator = soak_chance(&w->random, 50) ? &allocator : NULL;
    config.rate = soak_chance(&w->random, 30) ? any_score : NULL;
    config.rate_user = &w->random;
    snprintf(w->text, sizeof w->text, "runtime on %s, %s, %s", config.devices,
             bench_policy_name(policy), config.drive == FILCH_DRIVE_POLL ? "poll" : "threads");
    soak_watch_say(w->watch, "the creation of a %s", w->text);
    if (filch_runtime_create(&config, &error, &w->runtime) != FILCH_OK) {
        soak_fail(w->s, "a %s cannot be made: %s", w->text, error.text);
        return false;
    }
    w->devices = filch_device_count(w->runtime);
    soak_count(&w->s->counts.runtimes, 1);
    return true;
}

/* --- Jobs and faults --- */

static void start(world *w, uint32_t k)
{
    soak_job *job = &w->field->jobs[k];
    filch_on_failure how = soak_chance(&w->random, 70) ? FILCH_FAILURE_SKIP : FILCH_FAILURE_CANCEL;
    job->job = NULL;
    soak_watch_say(w->watch, "the submission of %s %u of a %s", soak_kind_name(job->kind), k,
                   w->text);
    EXPECT(w, soak_job_start(w->field, w->runtime, k, how));
    soak_count(&w->s->counts.jobs, 1);
}

/* Lets what runs get somewhere; in poll mode it drives it. */
static void run_a_while(world *w, soak_job *job)
{
    filch_status status = filch_job_wait(job->job, (double)soak_below(&w->random, 300) * 1e-6);
    if (status != FILCH_OK && status != FILCH_TIMEOUT && status != FILCH_TASK_FAILED &&
        status != FILCH_CANCELLED)
        soak_fail(w->s, "%s: a short wait is %s", w->text, filch_status_name(status));
}

static void disturb(world *w, uint32_t jobs)
{
    soak_job *job = &w->field->jobs[soak_below(&w->random, jobs)];
    if (soak_chance(&w->random, 20)) {
        run_a_while(w, job);
        EXPECT(w, filch_job_cancel(job->job));
        job->is_cancelled = true;
        soak_count(&w->s->counts.cancels, 1);
    }
    if (w->devices > 1 && soak_chance(&w->random, 25)) {
        uint32_t device = soak_below(&w->random, w->devices);
        soak_watch_say(w->watch, "the withdrawal of device %u of a %s", device, w->text);
        EXPECT(w, filch_device_withdraw(w->runtime, device));
        run_a_while(w, job);
        EXPECT(w, filch_device_readmit(w->runtime, device));
        soak_count(&w->s->counts.withdrawals, 1);
    }
}

static void finish(world *w, uint32_t k)
{
    soak_job *job = &w->field->jobs[k];
    soak_watch_say(w->watch, "%s %u, of %llu, of a %s", soak_kind_name(job->kind), k,
                   (unsigned long long)soak_job_total(job), w->text);
    filch_status status = filch_job_wait(job->job, SOAK_PATIENCE_S / 2.0);
    if (status == FILCH_TIMEOUT) {
        soak_fail(w->s, "%s %u of a %s does not end", soak_kind_name(job->kind), k, w->text);
        return;
    }
    uint64_t ran = soak_job_repeat(w->field, k);
    bool may_differ = job->is_cancelled || job->may_fail;
    soak_count(&w->s->counts.tasks, ran);
    soak_count(&w->s->counts.failures, status == FILCH_TASK_FAILED);
    if ((status != FILCH_OK && !may_differ) || (status == FILCH_OK && ran != soak_job_total(job)))
        soak_fail(w->s, "%s %u of a %s is %s, and %llu of %llu ran", soak_kind_name(job->kind), k,
                  w->text, filch_status_name(status), (unsigned long long)ran,
                  (unsigned long long)soak_job_total(job));
    if (atomic_load_explicit(&job->completions, memory_order_relaxed) != 1)
        soak_fail(w->s, "%s: a job's callback did not come once", w->text);
    EXPECT(w, filch_job_release(job->job));
    if (job->kind == SOAK_OPEN) {
        EXPECT(w, filch_graph_destroy(job->graph));
        job->graph = NULL;
    }
}

static void check_bytes(world *w)
{
    const soak_field *field = w->field;
    for (uint32_t v = 0; v < SOAK_VECTORS && !soak_has_failed(w->s); v++)
        for (uint32_t i = 0; i < SOAK_LENGTH; i++)
            if (field->real[v][i] != field->expected[v][i]) {
                soak_fail(w->s, "%s: element %u of vector %u is wrong", w->text, i, v);
                return;
            }
    soak_count(&w->s->counts.checks, 1);
}

/* True: the runtime was aborted. */
static bool run_bout(world *w, uint32_t jobs)
{
    for (uint32_t k = 0; k < jobs && !soak_has_failed(w->s); k++)
        start(w, k);
    if (soak_has_failed(w->s))
        return false;
    disturb(w, jobs);
    if (soak_chance(&w->random, 4)) {
        soak_watch_say(w->watch, "the abortion of a %s", w->text);
        EXPECT(w, filch_runtime_abort(w->runtime));
        for (uint32_t k = 0; k < jobs; k++)
            soak_count(&w->s->counts.tasks, soak_job_repeat(w->field, k));
        soak_count(&w->s->counts.aborts, 1);
        check_bytes(w);
        return true;
    }
    for (uint32_t k = 0; k < jobs && !soak_has_failed(w->s); k++)
        finish(w, k);
    check_bytes(w);
    return false;
}

/* Bouts of jobs; graphs are run again, or made anew. True: the runtime was aborted. */
static bool run_bouts(world *w)
{
    uint32_t bouts = 2 + soak_below(&w->random, 20), made = 0;
    for (uint32_t b = 0; b < bouts && !soak_has_failed(w->s); b++) {
        uint32_t jobs = 1 + soak_below(&w->random, SOAK_JOBS);
        for (uint32_t k = 0; k < jobs; k++) {
            soak_job *job = &w->field->jobs[k];
            if (k < made && soak_chance(&w->random, 60))
                continue;
            if (k < made && job->graph)
                EXPECT(w, filch_graph_destroy(job->graph));
            EXPECT(w, soak_job_make(w->field, w->runtime, k, &w->random));
        }
        made = made > jobs ? made : jobs;
        if (run_bout(w, jobs))
            return true;
    }
    return false;
}

static void live(world *w)
{
    bool is_gone = false;
    if (!create(w))
        return;
    if (EXPECT(w, soak_field_make(w->field, w->runtime, &w->random)))
        is_gone = run_bouts(w);
    if (soak_has_failed(w->s) && !is_gone)
        return; /* the runtime is left as it is: what hangs cannot be destroyed */
    soak_watch_say(w->watch, "the end of a %s", w->text);
    if (!is_gone)
        EXPECT(w, filch_runtime_destroy(w->runtime));
    if (atomic_load_explicit(&w->pieces, memory_order_relaxed) != 0)
        soak_fail(w->s, "a %s has left %lld allocations behind", w->text,
                  (long long)atomic_load_explicit(&w->pieces, memory_order_relaxed));
}

void soak_world_live(soak *s, soak_watch *watch, uint64_t seed)
{
    world *w = calloc(1, sizeof *w);
    soak_field *field = calloc(1, sizeof *field);
    if (!w || !field) {
        soak_fail(s, "no memory for a world");
        free(w);
        free(field);
        return;
    }
    *w = (world){.s = s, .watch = watch, .random = seed, .field = field};
    if (s->devices && soak_chance(&w->random, 50))
        soak_vectors_live(s, watch, &w->random);
    else
        live(w);
    if (!soak_has_failed(s)) { /* else a runtime may still use them */
        free(field);
        free(w);
    }
    soak_watch_say(watch, "nothing");
}
