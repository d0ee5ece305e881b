/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and codelets that differ in what they can run: every task and item runs once, on a device
 * that can run it, after what it waits for; what no device can run is refused.
 *
 * On simulated devices, and on host devices that are polled by several threads and of which some
 * are taken for others. Codelets are given kinds that their host functions do not need. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/task/codelet.h"
#include "patience.h"
#include "property.h"
#include "runtime.h"
#include "sched/drive/scheduler.h"
#include "sched/worker/sched.h"

enum {
    ALL_KINDS = FL_IMPL_HOST_FN | FL_IMPL_CUDA,
    MOST_TASKS = 300,
    MOST_PREDS = 3,
    MOST_ITEMS = 2000,
    POLLERS = 3,
    TILES = 24,
    CODELETS = 5 /* the first is for all devices, the next two for one kind each */
};

typedef struct trial {
    property_world world;
    bool is_sim, fails;
    uint32_t kinds[PROPERTY_MOST_DEVICES]; /* what each device can run */
    filch_codelet *codelets[CODELETS], *spans[CODELETS];
} trial;

typedef struct task {
    trial *trial;
    struct task *preds[MOST_PREDS];
    uint32_t pred_count, codelet;
    _Atomic uint32_t ran; /* relaxed: orders nothing */
    uint32_t mark;        /* plain: what orders tasks orders it too */
    filch_task name;
} task;

typedef struct items {
    trial *trial;
    uint32_t codelet;
    _Atomic uint32_t *ran;
} items;

/* What each codelet has implementations for, and devices on which it is taken to fail. */
static const uint32_t kinds_of[CODELETS] = {ALL_KINDS, FL_IMPL_HOST_FN, FL_IMPL_CUDA, FL_IMPL_CUDA,
                                            ALL_KINDS};
static const uint32_t fails_on[CODELETS] = {0, 0, 0, 0x55, 0x0e};

static bool can_run(const trial *t, uint32_t device, uint32_t codelet)
{
    return (t->kinds[device] & kinds_of[codelet]) != 0 &&
           (!t->fails || (fails_on[codelet] >> device & 1) == 0);
}

static int run_task(const filch_call *call)
{
    task *self;
    memcpy(&self, call->args, sizeof self);
    if (!can_run(self->trial, call->device, self->codelet)) {
        property_fail("a task of codelet %u ran on device %u", self->codelet, call->device);
    }
    for (uint32_t i = 0; i < self->pred_count; ++i) {
        if (self->preds[i]->mark != self->mark + 1) {
            property_fail("a task ran before one that it waits for");
        }
    }
    ++self->mark;
    fl_add_relaxed(&self->ran, 1);
    return 0;
}

static int run_items(const filch_call *call)
{
    items *self;
    memcpy(&self, call->args, sizeof self);
    if (!can_run(self->trial, call->device, self->codelet)) {
        property_fail("items of codelet %u ran on device %u", self->codelet, call->device);
    }
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        fl_add_relaxed(&self->ran[i], 1);
    }
    return 0;
}

static double work(const filch_call *call)
{
    (void)call;
    return 1e4;
}

/* --- Worlds --- */

static filch_status open_sim(trial *t, filch_runtime_desc *config, uint32_t count)
{
    static const char *const words[] = {"", "[\"host\"]", "[\"cuda\"]", "[\"cuda\", \"host\"]"};
    const char *folder = getenv("TMPDIR");
    char path[200], devices[sizeof path + 8];
    snprintf(path, sizeof path, "%s/filch-masks-XXXXXX", folder != NULL ? folder : "/tmp");
    int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    fprintf(file, "{\"devices\": [");
    for (uint32_t d = 0; d < count; ++d) {
        fprintf(file, "%s{\"speed\": %g, \"score\": %u, \"implements\": %s}", d != 0 ? ", " : "",
                d % 2 != 0 ? 1e8 : 7e9, d % 3, words[t->kinds[d]]);
    }
    fprintf(file, "]}\n");
    fclose(file);
    snprintf(devices, sizeof devices, "sim:%s", path);
    config->devices = devices;
    filch_status status = filch_runtime_create(config, NULL, &t->world.runtime);
    unlink(path);
    return status;
}

static filch_status open_host(trial *t, filch_runtime_desc *config, uint32_t count)
{
    char devices[16];
    snprintf(devices, sizeof devices, "host:%u", count);
    config->devices = devices;
    config->drive = FILCH_DRIVE_POLL; /* no threads yet, so that devices can be changed */
    filch_status status = filch_runtime_create(config, NULL, &t->world.runtime);
    if (status == FILCH_OK) {
        fl_sched *sched = (fl_sched *)(void *)fl_core_of(t->world.runtime)->scheduler;
        for (uint32_t d = 0; d < count; ++d) {
            sched->pool->devices[d].implementations = t->kinds[d];
        }
        fl_sched_sort_devices(sched);
    }
    return status;
}

static int poll_loop(void *arg)
{
    property_world *world = arg;
    while (fl_load_acquire(&world->stop) == 0) {
        bool worked = false;
        property_ok(filch_runtime_poll(world->runtime, 0.0005, &worked));
        if (!worked) {
            fl_thread_yield();
        }
    }
    return 0;
}

static filch_codelet *make_codelet(trial *t, uint32_t number, filch_host_fn host)
{
    fl_scheduler *scheduler = fl_core_of(t->world.runtime)->scheduler;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    char name[16];
    snprintf(name, sizeof name, "codelet-%u", number);
    desc.name = name;
    desc.host = host;
    desc.work = host == run_task ? work : NULL;
    desc.arg_size = sizeof(void *);
    property_ok(filch_codelet_create(t->world.runtime, &desc, &made));
    made->implementations = kinds_of[number];
    scheduler->codelet_init(scheduler, made);
    for (uint32_t d = 0; d < t->world.devices; ++d) {
        if (fl_codelet_runs_on(made, d) && !can_run(t, d, number)) {
            made->runs_on[0] &= ~((uint64_t)1 << d);
            --made->device_count;
        }
    }
    made->able = scheduler->able(scheduler, made->runs_on);
    return made;
}

static void trial_open(trial *t, fl_random *random)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    uint32_t count = 2 + fl_random_below(random, PROPERTY_MOST_DEVICES - 1);
    memset(t, 0, sizeof *t);
    t->is_sim = property_chance(random, 50);
    t->world.policy = property_policy(random, t->is_sim, &config);
    bool is_poor = property_chance(random, 20); /* some kind may be on no device */
    for (uint32_t d = 0; d < count; ++d) {
        t->kinds[d] = !is_poor && d < 2 ? 1 + d : 1 + fl_random_below(random, is_poor ? 2 : 3);
    }
    /* A kernel fails for a place, so devices that are alike in one place all have it or none. */
    t->fails = t->is_sim;
    for (uint32_t d = 1; d < count; ++d) {
        t->fails = t->fails || t->kinds[d] != t->kinds[0];
    }
    property_ok(t->is_sim ? open_sim(t, &config, count) : open_host(t, &config, count));
    t->world.devices = count;
    for (uint32_t i = 0; i < CODELETS; ++i) {
        t->codelets[i] = make_codelet(t, i, run_task);
        t->spans[i] = make_codelet(t, i, run_items);
    }
    for (uint32_t i = 0; !t->is_sim && i < POLLERS - 1; ++i) {
        property_ok(fl_thread_start(&t->world.pollers[i], poll_loop, &t->world));
        ++t->world.poller_count;
    }
}

static void trial_close(trial *t)
{
    fl_store_release(&t->world.stop, 1);
    for (uint32_t i = 0; i < t->world.poller_count; ++i) {
        fl_thread_join(t->world.pollers[i]);
    }
    property_ok(filch_runtime_destroy(t->world.runtime));
}

static bool is_runnable(const trial *t, uint32_t codelet)
{
    bool any = false;
    for (uint32_t d = 0; d < t->world.devices; ++d) {
        any = any || can_run(t, d, codelet);
    }
    return any;
}

static void expect_named(trial *t, filch_status status, uint32_t codelet)
{
    filch_error error = FILCH_ERROR_INIT;
    char name[16];
    snprintf(name, sizeof name, "codelet-%u", codelet);
    property_expect(status, FILCH_NO_DEVICE, "submission of what no device can run");
    property_ok(filch_runtime_error(t->world.runtime, &error));
    if (strstr(error.text, name) == NULL && strstr(error.label, name) == NULL) {
        property_fail("the error does not name the codelet: %s", error.text);
    }
}

/* --- Graphs --- */

static void add_task(trial *t, filch_graph *graph, task *all, uint32_t number, filch_data *data,
                     bool has_edges, fl_random *random)
{
    task *made = &all[number], *at = made;
    *made = (task){.trial = t, .codelet = fl_random_below(random, CODELETS)};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_access access = {.data = data, .row = number % TILES, .mode = FILCH_WRITE};
    desc.codelet = t->codelets[made->codelet];
    desc.args = &at;
    desc.affinity = property_chance(random, 40) ? fl_random_below(random, t->world.devices + 1) : 0;
    if (!is_runnable(t, made->codelet)) {
        expect_named(t, filch_graph_add(graph, &desc, NULL), made->codelet);
        made->codelet = 0;
        desc.codelet = t->codelets[0];
    }
    if (has_edges && number >= TILES) {
        made->preds[made->pred_count++] = &all[number - TILES]; /* wrote the tile before */
    }
    if (has_edges) {
        desc.accesses = &access;
        desc.access_count = 1;
    }
    property_ok(filch_graph_add(graph, &desc, &made->name));
    for (uint32_t i = 0; has_edges && i + 1 < MOST_PREDS && number != 0; ++i) {
        task *pred = &all[fl_random_below(random, number)];
        if (property_chance(random, 50)) {
            property_ok(filch_graph_edge(graph, pred->name, made->name));
            made->preds[made->pred_count++] = pred;
        }
    }
}

static void finish(trial *t, filch_job *job)
{
    property_ok(filch_job_wait(job, t->is_sim ? -1 : PATIENCE));
    property_ok(filch_job_release(job));
}

/* Closed and run several times, or open and run once; without edges all tasks are roots, or ready
 * when they are added. */
static void check_graph(trial *t, fl_random *random)
{
    task *all = property_alloc(MOST_TASKS, sizeof *all);
    uint64_t cells[TILES] = {0};
    filch_data_desc data_desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    data_desc.ptr = cells;
    data_desc.element = sizeof cells[0];
    data_desc.rows = TILES;
    data_desc.tile_rows = 1;
    property_ok(filch_data_create(t->world.runtime, &data_desc, &data));
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    bool is_open = property_chance(random, 40), has_edges = property_chance(random, 60);
    desc.kind = is_open ? FILCH_GRAPH_OPEN : FILCH_GRAPH_CLOSED;
    property_ok(filch_graph_create(t->world.runtime, &desc, &graph));
    uint32_t count = 1 + fl_random_below(random, MOST_TASKS);
    uint32_t runs = is_open ? 1 : 1 + fl_random_below(random, 4);
    if (is_open) {
        property_ok(filch_graph_submit(graph, NULL, &job));
    }
    for (uint32_t i = 0; i < count; ++i) {
        add_task(t, graph, all, i, data, has_edges && !is_open, random);
    }
    if (is_open) {
        property_ok(filch_graph_close(graph));
        finish(t, job);
    }
    for (uint32_t run = 0; !is_open && run < runs; ++run) {
        property_ok(filch_graph_submit(graph, NULL, &job));
        finish(t, job);
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (fl_load_relaxed(&all[i].ran) != runs) {
            property_fail("task %u of %u ran %u times, not %u", i, count,
                          fl_load_relaxed(&all[i].ran), runs);
        }
    }
    property_ok(filch_graph_destroy(graph));
    property_ok(filch_data_destroy(data));
    free(all);
}

/* --- Batches --- */

static void check_batch(trial *t, fl_random *random)
{
    uint64_t n = fl_random_below(random, MOST_ITEMS);
    items self = {.trial = t, .codelet = fl_random_below(random, CODELETS)}, *at = &self;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    self.ran = property_alloc(MOST_ITEMS, sizeof *self.ran);
    desc.codelet = t->spans[self.codelet];
    desc.args = &at;
    desc.n = n;
    desc.grain = 1 + fl_random_below(random, 20);
    if (is_runnable(t, self.codelet)) {
        property_ok(filch_batch_submit(t->world.runtime, &desc, NULL, &job));
        finish(t, job);
    } else {
        expect_named(t, filch_batch_submit(t->world.runtime, &desc, NULL, &job), self.codelet);
        n = 0;
    }
    for (uint64_t i = 0; i < MOST_ITEMS; ++i) {
        if (fl_load_relaxed(&self.ran[i]) != (i < n)) {
            property_fail("item %u of %u ran %u times", (unsigned)i, (unsigned)n,
                          fl_load_relaxed(&self.ran[i]));
        }
    }
    free(self.ran);
}

static void check(property_world *world, fl_random *random)
{
    static trial t;
    (void)world;
    trial_open(&t, random);
    for (uint32_t i = 0; i < 4 && !property_has_failed(); ++i) {
        check_graph(&t, random);
        check_batch(&t, random);
    }
    if (!property_has_failed()) {
        trial_close(&t);
    }
}

int main(int argc, char **argv)
{
    return property_main("test_masks", argc, argv, check, 1000);
}
