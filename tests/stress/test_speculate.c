/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks run twice at once on threads: now and then one sleeps on one worker, others take it over,
 * and its job is over before it is. Each item counts once, whatever fails or is cancelled; results
 * are those of one run, in memory that nobody writes to when the job is over; and what a run reads
 * does not change under it. A batch is an operation. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "filch/filch.h"
#include "stress.h"

enum { ITEMS = 512, GRAIN = 16, SLEEP_US = 4000, WORK = 200 };

static stress s;
static uint64_t in[ITEMS], out[ITEMS]; /* plain: a thread sanitizer sees who touches them */
static _Atomic uint64_t slept, runs;
static uint64_t restarts, won, failed, cancelled, renewed, busy;

/* What the host says to the functions, as arguments. */
typedef struct order {
    uint64_t version; /* all of the input is this */
    uint64_t bad;     /* an item that fails, or none */
    uint32_t sleeper; /* the device that may sleep */
    uint32_t turn;    /* of so many runs one sleeps */
} order;

static void nap(uint64_t us)
{
    const struct timespec t = {.tv_nsec = (long)(us * 1000)};
    (void)nanosleep(&t, NULL);
}

static int copy(const filch_call *call)
{
    const order *o = call->args;
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    int code = 0;
    bool sleeps = call->device == o->sleeper && fl_add_relaxed(&runs, 1) % o->turn == 0;
    for (uint64_t i = 0; i < call->hi - call->lo; ++i) {
        uint64_t value = from[i];
        for (int k = 0; k < WORK; ++k) {
            fl_relax();
        }
        to[i] = value * ITEMS + call->lo + i;
        code = call->lo + i == o->bad ? 3 : code;
    }
    if (sleeps) {
        fl_add_relaxed(&slept, 1);
        nap(SLEEP_US);
    }
    for (uint64_t i = 0; i < call->hi - call->lo; ++i) {
        if (from[i] != o->version) {
            stress_fail(&s, "an input changed under a run", call->lo + i);
        }
    }
    return code;
}

static filch_data *make_data(filch_runtime *runtime, uint64_t *buffer)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = buffer;
    desc.element = sizeof *buffer;
    desc.rows = ITEMS;
    if (filch_data_create(runtime, &desc, &data) != FILCH_OK) {
        stress_fail(&s, "data", 0);
    }
    return data;
}

typedef struct field {
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_data *in, *out;
    fl_random random;
} field;

static void open_field(field *f)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    config.devices = "host:4";
    desc.name = "copy";
    desc.host = copy;
    desc.arg_size = sizeof(order);
    desc.flags = FILCH_CODELET_RESTARTABLE;
    if (filch_runtime_create(&config, NULL, &f->runtime) != FILCH_OK ||
        filch_codelet_create(f->runtime, &desc, &f->codelet) != FILCH_OK) {
        stress_fail(&s, "runtime", 0);
    }
    f->in = make_data(f->runtime, in);
    f->out = make_data(f->runtime, out);
}

/* The host writes the input, behind the runs that read it. */
static void renew_input(field *f, uint64_t version)
{
    filch_hold *hold = NULL;
    if (filch_data_acquire_tiles(f->in, NULL, FILCH_WRITE, -1, &hold) != FILCH_OK) {
        stress_fail(&s, "acquire", version);
        return;
    }
    for (int i = 0; i < ITEMS; ++i) {
        in[i] = version;
    }
    (void)filch_hold_release(hold);
}

static filch_job *submit(field *f, const order *o)
{
    filch_batch_access accesses[2] = {
        {.data = f->out, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = f->in, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = f->codelet;
    desc.args = o;
    desc.n = ITEMS;
    desc.grain = GRAIN;
    desc.accesses = accesses;
    desc.access_count = 2;
    if (filch_batch_submit(f->runtime, &desc, NULL, &job) != FILCH_OK) {
        stress_fail(&s, "submit", o->version);
    }
    return job;
}

/* Of a complete job. The buffer is the host's now, and is cleared for the next one. */
static void check(const order *o, filch_job *job, filch_status status, bool was_cancelled)
{
    filch_job_info info = {.size = sizeof info};
    filch_report report = FILCH_REPORT_INIT;
    uint64_t good = 0;
    for (uint64_t i = 0; i < ITEMS; ++i) {
        if (out[i] != UINT64_MAX && out[i] != o->version * ITEMS + i) {
            stress_fail(&s, "a wrong result", i);
        }
        good += out[i] != UINT64_MAX;
        out[i] = UINT64_MAX;
    }
    (void)filch_job_stats(job, &info, NULL, 0);
    (void)filch_job_report(job, NULL, &report, NULL, 0);
    restarts += report.total.restarts;
    won += report.total.restarts_won;
    if (info.done + info.failed + info.skipped != ITEMS || info.done != good ||
        (info.failed != 0) != (status == FILCH_TASK_FAILED) ||
        (info.skipped != 0 && !was_cancelled)) {
        stress_fail(&s, "items do not add up", info.done);
    }
    if (report.total.restarts != report.total.restarts_won + report.total.restarts_lost) {
        stress_fail(&s, "a race is not decided", report.total.restarts);
    }
}

static void run_one(field *f, uint64_t version)
{
    bool is_new = stress_below(&f->random, 4) == 0;
    static order o = {.version = 0};
    if (is_new) {
        o.version = version;
        renew_input(f, version);
    }
    o.bad = stress_below(&f->random, 8) == 0 ? stress_below(&f->random, ITEMS) : ITEMS;
    o.sleeper = (uint32_t)stress_below(&f->random, 4);
    o.turn = 8;
    filch_job *job = submit(f, &o);
    bool cancels = stress_below(&f->random, 8) == 0;
    if (cancels) {
        nap(stress_below(&f->random, 400));
        (void)filch_job_cancel(job);
    }
    filch_status status = filch_job_wait(job, -1);
    check(&o, job, status, cancels);
    failed += status == FILCH_TASK_FAILED;
    cancelled += status == FILCH_CANCELLED;
    (void)filch_job_release(job);
    /* Of what was written the handle may go, unless somebody still runs who would have. */
    if (filch_data_destroy(f->out) == FILCH_OK) {
        f->out = make_data(f->runtime, out);
        ++renewed;
    } else {
        ++busy;
    }
}

int main(int argc, char **argv)
{
    field f;
    stress_begin(&s, "speculate", argc, argv, 600, 60000);
    fl_random_init(&f.random, s.seed, 0);
    for (int i = 0; i < ITEMS; ++i) {
        out[i] = UINT64_MAX;
    }
    open_field(&f);
    for (uint64_t version = 1; version <= s.operations; ++version) {
        run_one(&f, version);
        if (version % 64 == 0) { /* waits for runs that lost */
            if (filch_runtime_destroy(f.runtime) != FILCH_OK) {
                stress_fail(&s, "destroy", version);
            }
            open_field(&f);
        }
    }
    if (filch_runtime_drain(f.runtime, -1) != FILCH_OK || filch_data_destroy(f.in) != FILCH_OK ||
        filch_data_destroy(f.out) != FILCH_OK || filch_runtime_destroy(f.runtime) != FILCH_OK) {
        stress_fail(&s, "the end", 0);
    }
    printf("speculate: %" PRIu64 " naps, %" PRIu64 " chunks begun again, %" PRIu64
           " of them for good; %" PRIu64 " jobs failed, %" PRIu64 " cancelled\n",
           fl_load_relaxed(&slept), restarts, won, failed, cancelled);
    if (s.operations >= 600 &&
        (won == 0 || failed == 0 || cancelled == 0 || renewed == 0 || busy == 0)) {
        stress_fail(&s, "something never happened", won);
    }
    return stress_end(&s);
}
