/* SPDX-License-Identifier: Apache-2.0 */
/* What is swept: every job knows its answer, and a failure has to say what it was. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"
#include "filch/multicast.h"
#include "runtime.h"
#include "sweep.h"

/* Seconds after which a job hangs; the runs before it took milliseconds. */
#define LIMIT 10.0

enum {
    TILES = 6,
    TILE = 8,
    ITEMS = 600,
    LINKS = 8,
    RUNS = 5,
    GROUP = 4,
    WIDE_TILES = 3,
    WIDE = 70000
};

/* Bytes of memory for about half of the tiles. */
#define SHORT 1536u

typedef struct arguments {
    uint64_t seed;
} arguments;

void sweep_wrong(sweep_report *report, const char *format, ...)
{
    va_list list;

    if (report->is_wrong)
        return;
    report->is_wrong = true;
    va_start(list, format);
    vsnprintf(report->text, sizeof report->text, format, list);
    va_end(list);
}

/* Depends on both arguments and on their order. */
static inline uint64_t blend(uint64_t a, uint64_t b)
{
    uint64_t state = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return state ^ state >> 31;
}

/* --- Kernels --- */

static void mix(const uint64_t *from, uint64_t *to, uint64_t count, uint64_t seed)
{
    for (uint64_t k = 0; k < count; k++)
        to[k] = blend(blend(seed, from[k]), to[k]);
}

static int run_mix(const filch_call *call)
{
    const arguments *args = call->args;

    mix(call->views[0].ptr, call->views[1].ptr, call->views[1].rows, args->seed);
    return 0;
}

static int run_scale(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    uint64_t *to = call->views[1].ptr;

    for (uint64_t k = 0; k < call->hi - call->lo; k++)
        to[k] = blend(from[k], call->lo + k);
    return 0;
}

static void increase(const uint64_t *from, uint64_t *to, uint64_t count, uint64_t seed)
{
    for (uint64_t k = 0; k < count; k++)
        to[k] += blend(seed, from[k]);
}

static int run_increase(const filch_call *call)
{
    const arguments *args = call->args;

    increase(call->views[0].ptr, call->views[1].ptr, call->views[1].rows, args->seed);
    return 0;
}

static int run_zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

static int run_gather(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;

    for (uint64_t k = 0; k < call->views[0].rows; k++)
        to[k] += from[k];
    return 0;
}

void sweep_register(void)
{
    fakecuda_register_filch("increase", run_increase, 2, false, sizeof(arguments));
    fakecuda_register_filch("zero", run_zero, 1, false, 0);
    fakecuda_register_filch("gather", run_gather, 2, false, 0);
    fakecuda_register_filch("mix", run_mix, 2, false, sizeof(arguments));
    fakecuda_register_filch("scale", run_scale, 2, true, 0);
}

/* --- Failures --- */

/* What stays broken is noticed by whichever call comes next, and what fails as it runs by whichever
 * call looks. */
static bool is_noticed_late(const sweep_report *report)
{
    return report->is_sticky || (report->call != NULL && strncmp(report->call, "cu", 2) != 0);
}

/* A failure names the call, the device and who asked. */
static void check_error(sweep_world *world, const char *what, const filch_error *error)
{
    sweep_report *report = world->report;
    bool is_late = is_noticed_late(report);

    report->failures++;
    if (report->call == NULL)
        sweep_wrong(report, "%s failed though nothing was made to: %s", what, error->text);
    else if (error->call[0] == '\0' || error->text[0] == '\0')
        sweep_wrong(report, "%s failed and the error names no call: '%s'", what, error->text);
    else if (!is_late && strcmp(error->call, report->call) != 0)
        sweep_wrong(report, "%s failed and the error names %s: %s", what, error->call, error->text);
    else if (strncmp(error->device, "cuda:", 5) != 0)
        sweep_wrong(report, "%s failed and the error names device '%s': %s", what, error->device,
                    error->text);
    else if (error->label[0] == '\0')
        sweep_wrong(report, "%s failed and the error has no label: %s", what, error->text);
    else if (report->is_sticky && error->status != FILCH_DEVICE_LOST)
        sweep_wrong(report, "%s failed with %s though the device is lost: %s", what,
                    filch_status_name(error->status), error->text);
    else if (error->native_code == 0)
        sweep_wrong(report, "%s failed and the error has no code: %s", what, error->text);
}

/* A call that failed, if it did, failed as it should. */
static void check_failure(sweep_world *world, filch_status status, const char *what)
{
    filch_error error = FILCH_ERROR_INIT;

    if (status == FILCH_OK)
        return;
    (void)filch_runtime_error(world->runtime, &error);
    check_error(world, what, &error);
}

static void check_ok(sweep_world *world, filch_status status, const char *call)
{
    filch_error error = FILCH_ERROR_INIT;

    if (status == FILCH_OK)
        return;
    (void)filch_runtime_error(world->runtime, &error);
    sweep_wrong(world->report, "%s gave %s: %s", call, filch_status_name(status), error.text);
}

#define ok(call) check_ok(world, (call), #call)

/* Whether the job succeeded. */
static bool wait_for(sweep_world *world, filch_job *job)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = filch_job_wait(job, LIMIT);

    if (status == FILCH_TIMEOUT) {
        sweep_wrong(world->report, "a job hangs");
        return false;
    }
    if (status != FILCH_OK && filch_job_error(job, &error) != FILCH_OK)
        sweep_wrong(world->report, "a job gave %s and says nothing of it",
                    filch_status_name(status));
    else if (status != FILCH_OK)
        check_error(world, "a job", &error);
    return status == FILCH_OK;
}

/* --- Graphs --- */

typedef struct cells {
    uint64_t now[TILES * TILE];
    uint64_t wanted[TILES * TILE];
    filch_data *data;
} cells;

static void make_cells(sweep_world *world, cells *c, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;

    for (uint64_t k = 0; k < TILES * TILE; k++)
        c->now[k] = c->wanted[k] = blend(k, 1);
    desc.ptr = c->now;
    desc.element = sizeof c->now[0];
    desc.rows = TILES * TILE;
    desc.tile_rows = TILE;
    desc.label = "cells";
    desc.flags = flags;
    ok(filch_data_create(world->runtime, &desc, &c->data));
}

static void compare(sweep_world *world, const cells *c)
{
    for (uint64_t k = 0; k < TILES * TILE; k++) {
        if (c->now[k] != c->wanted[k]) {
            sweep_wrong(world->report, "a job succeeded and element %llu is wrong",
                        (unsigned long long)k);
            return;
        }
    }
}

/* Adds a task, and does it to the wanted values. */
static void add(sweep_world *world, filch_graph *graph, cells *c, uint32_t from, uint32_t to,
                uint64_t seed)
{
    const arguments args = {seed};
    const filch_access accesses[] = {{.data = c->data, .row = from, .mode = FILCH_READ},
                                     {.data = c->data, .row = to, .mode = FILCH_READWRITE}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;

    desc.codelet = world->mix;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.affinity = 1 + to % filch_device_count(world->runtime);
    desc.label = "mixing";
    ok(filch_graph_add(graph, &desc, NULL));
    mix(&c->wanted[from * TILE], &c->wanted[to * TILE], TILE, seed);
}

static bool run_graph(sweep_world *world, filch_graph *graph)
{
    filch_job *job = NULL;
    bool succeeded = false;

    ok(filch_graph_submit(graph, NULL, &job));
    if (job != NULL) {
        succeeded = wait_for(world, job);
        if (!world->report->is_wrong)
            ok(filch_job_release(job));
    }
    return succeeded;
}

/* Six tasks: three tiles meet in one, which two others need. */
static void run_tree(sweep_world *world)
{
    static const uint32_t pairs[][2] = {{0, 1}, {2, 3}, {1, 4}, {3, 4}, {4, 5}, {4, 0}};
    filch_graph *graph = NULL;
    cells c;

    make_cells(world, &c, 0);
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++)
        add(world, graph, &c, pairs[k][0], pairs[k][1], k);
    if (run_graph(world, graph))
        compare(world, &c);
    if (world->report->is_wrong)
        return; /* what hangs cannot be destroyed */
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(c.data));
}

/* One graph again and again, until it goes to the device by one call. */
static void run_again(sweep_world *world)
{
    filch_graph *graph = NULL;
    bool goes_on = true;
    cells c;

    make_cells(world, &c, 0);
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint32_t k = 0; k + 1 < TILES; k++)
        add(world, graph, &c, k, k + 1, k);
    for (uint32_t run = 0; run < RUNS && goes_on; run++) {
        for (uint32_t k = 0; run != 0 && k + 1 < TILES; k++)
            mix(&c.wanted[k * TILE], &c.wanted[(k + 1) * TILE], TILE, k);
        goes_on = run_graph(world, graph);
        if (goes_on)
            compare(world, &c);
    }
    if (world->report->is_wrong)
        return;
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(c.data));
}

/* Values before and after, of each case: worked out once. */
static uint64_t wide_first[WIDE_TILES * WIDE], wide_wanted[WIDE_TILES * WIDE];

static void work_out_wide(void)
{
    static bool is_done;
    if (is_done)
        return;
    for (uint64_t k = 0; k < WIDE_TILES * WIDE; k++)
        wide_first[k] = wide_wanted[k] = blend(k, 2);
    for (uint32_t k = 0; k < WIDE_TILES; k++)
        mix(&wide_wanted[k * WIDE], &wide_wanted[(k + 1) % WIDE_TILES * WIDE], WIDE, k);
    is_done = true;
}

static void mix_widely(sweep_world *world, uint32_t flags)
{
    static uint64_t now[WIDE_TILES * WIDE];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_graph *graph = NULL;
    filch_data *data = NULL;

    work_out_wide();
    memcpy(now, wide_first, sizeof now);
    desc.ptr = now;
    desc.element = sizeof now[0];
    desc.rows = WIDE_TILES * WIDE;
    desc.tile_rows = WIDE;
    desc.label = "wide cells";
    desc.flags = flags;
    if (filch_data_create(world->runtime, &desc, &data) != FILCH_OK) {
        filch_error error = FILCH_ERROR_INIT;
        (void)filch_runtime_error(world->runtime, &error);
        /* What could not be unlocked in the round before stays locked. */
        if (error.status != FILCH_WRONG_STATE || world->report->call == NULL ||
            strcmp(world->report->call, "cuMemHostUnregister") != 0)
            check_error(world, "filch_data_create", &error);
        return;
    }
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint32_t k = 0; k < WIDE_TILES; k++) {
        const uint32_t to = (k + 1) % WIDE_TILES;
        const arguments args = {k};
        const filch_access accesses[] = {{.data = data, .row = k, .mode = FILCH_READ},
                                         {.data = data, .row = to, .mode = FILCH_READWRITE}};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = world->mix;
        task.args = &args;
        task.accesses = accesses;
        task.access_count = 2;
        task.affinity = 1 + to % filch_device_count(world->runtime);
        task.label = "mixing widely";
        ok(filch_graph_add(graph, &task, NULL));
    }
    if (run_graph(world, graph) && memcmp(now, wide_wanted, sizeof now) != 0)
        sweep_wrong(world->report, "a job succeeded and some wide element is wrong");
    if (world->report->is_wrong)
        return;
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(data));
}

/* Tiles so large that they are copied in pieces, through page-locked slots. */
static void run_wide(sweep_world *world)
{
    mix_widely(world, 0);
}

static void run_pinned(sweep_world *world)
{
    mix_widely(world, FILCH_DATA_PIN);
}

/* Each task needs the one before, on the same tile or the next. */
static void run_chain(sweep_world *world)
{
    filch_graph *graph = NULL;
    cells c;

    make_cells(world, &c, 0);
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint32_t k = 0; k < LINKS; k++)
        add(world, graph, &c, k / 2 % TILES, (k + 1) / 2 % TILES + (k % 2 == 0), k);
    if (run_graph(world, graph))
        compare(world, &c);
    if (world->report->is_wrong)
        return;
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(c.data));
}

/* A managed handle stays on the devices between jobs; the host looks in between. */
static void run_managed(sweep_world *world)
{
    filch_graph *graph = NULL;
    cells c;

    make_cells(world, &c, FILCH_DATA_MANAGED);
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint32_t k = 0; k + 1 < TILES; k++)
        add(world, graph, &c, k, k + 1, k);
    bool is_known = run_graph(world, graph);
    for (uint32_t look = 0; look < 2 && is_known && !world->report->is_wrong; look++) {
        filch_status status = filch_data_acquire(c.data, FILCH_READWRITE);
        if (status != FILCH_OK) {
            check_failure(world, status, "filch_data_acquire");
            break;
        }
        compare(world, &c);
        c.now[look] = c.wanted[look] = look;
        ok(filch_data_release(c.data));
        for (uint32_t k = 0; look == 0 && k + 1 < TILES; k++)
            mix(&c.wanted[k * TILE], &c.wanted[(k + 1) * TILE], TILE, k);
        is_known = look != 0 || run_graph(world, graph);
    }
    if (world->report->is_wrong)
        return;
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(c.data));
}

/* --- Handles without a buffer, and holds --- */

/* Writes all of it, and takes it for what is wanted. */
static bool fill(sweep_world *world, cells *c)
{

    filch_status status = filch_data_acquire(c->data, FILCH_WRITE);
    check_failure(world, status, "filch_data_acquire");
    if (status != FILCH_OK)
        return false;
    for (uint32_t tile = 0; tile < TILES; tile++) {
        filch_view view = {.ptr = c->now};
        ok(filch_data_view(c->data, tile, 0, &view));
        for (uint64_t k = 0; k < TILE; k++)
            ((uint64_t *)view.ptr)[k] = c->wanted[tile * TILE + k] = blend(tile * TILE + k, 1);
    }
    ok(filch_data_release(c->data));
    return true;
}

/* Two tiles in the order of jobs: behind the one that runs, and in front of the next. */
static bool hold(sweep_world *world, const cells *c)
{
    filch_tiles tiles = FILCH_TILES_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_hold *held = NULL;

    tiles.row0 = 1;
    tiles.row1 = 3;
    filch_status status = filch_data_acquire_tiles(c->data, &tiles, FILCH_READ, LIMIT, &held);
    if (status == FILCH_TIMEOUT)
        sweep_wrong(world->report, "a hold hangs");
    if (status != FILCH_OK) {
        (void)filch_runtime_error(world->runtime, &error);
        if (!world->report->is_wrong)
            check_error(world, "filch_data_acquire_tiles", &error);
        return false;
    }
    for (uint32_t tile = tiles.row0; tile < tiles.row1; tile++) {
        filch_view view = {.ptr = NULL};
        ok(filch_data_view(c->data, tile, 0, &view));
        if (memcmp(view.ptr, &c->wanted[tile * TILE], TILE * sizeof c->wanted[0]) != 0)
            sweep_wrong(world->report, "a job succeeded and tile %u is wrong", tile);
    }
    ok(filch_hold_release(held));
    return true;
}

/* Contents that are on devices only, but for what the host looks at. */
static void run_unbacked(sweep_world *world)
{
    static const uint64_t cuts[TILES] = {TILE, TILE, TILE, TILE, TILE, TILE};
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_graph *graph = NULL;
    cells c;

    desc.element = sizeof c.now[0];
    desc.rows = TILES * TILE;
    desc.row_cuts = cuts;
    desc.row_cut_count = TILES;
    desc.label = "cells";
    desc.flags = FILCH_DATA_NO_BUFFER;
    ok(filch_data_create(world->runtime, &desc, &c.data));
    ok(filch_graph_create(world->runtime, NULL, &graph));
    if (fill(world, &c)) {
        for (uint32_t k = 0; k + 1 < TILES; k++)
            add(world, graph, &c, k, k + 1, k);
        if (run_graph(world, graph) && hold(world, &c) && !world->report->is_wrong) {
            for (uint32_t k = 0; k + 1 < TILES; k++)
                mix(&c.wanted[k * TILE], &c.wanted[(k + 1) * TILE], TILE, k);
            if (run_graph(world, graph))
                (void)hold(world, &c);
        }
    }
    if (world->report->is_wrong)
        return;
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(c.data));
}

/* --- Broadcasts --- */

/* What tasks made goes to both devices, and tasks there use it. */
static void run_broadcast(sweep_world *world)
{
    filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    cells c;

    make_cells(world, &c, FILCH_DATA_MANAGED);
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint32_t k = 0; k + 1 < TILES; k++)
        add(world, graph, &c, k, k + 1, k);
    bool is_known = run_graph(world, graph);
    if (is_known) {
        ok(filch_data_broadcast(c.data, &how, NULL, &job));
        (void)wait_for(world, job); /* the data is as it was, whatever became of it */
        if (world->report->is_wrong)
            return;
        ok(filch_job_release(job));
        for (uint32_t k = 0; k + 1 < TILES; k++)
            mix(&c.wanted[k * TILE], &c.wanted[(k + 1) * TILE], TILE, k);
        is_known = run_graph(world, graph);
    }
    if (is_known && !world->report->is_wrong) {
        filch_status status = filch_data_acquire(c.data, FILCH_READ);
        check_failure(world, status, "filch_data_acquire");
        if (status == FILCH_OK) {
            compare(world, &c);
            ok(filch_data_release(c.data));
        }
    }
    if (world->report->is_wrong)
        return;
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(c.data));
}

/* --- Multicast objects --- */

/* What the driver refuses to take back is asked for once more. */
#define give_back(call)                          \
    do {                                         \
        filch_status first = (call);             \
        check_failure(world, first, #call);      \
        if (first != FILCH_OK)                   \
            check_failure(world, (call), #call); \
    } while (0)

static bool get(sweep_world *world, filch_status status, const char *what)
{
    check_failure(world, status, what);
    return status == FILCH_OK;
}

/* There and back, as far as it goes. */
static void run_multicast(sweep_world *world)
{
    static const uint32_t devices[] = {0, 1};
    filch_multicast_desc desc = FILCH_MULTICAST_DESC_INIT;
    filch_multicast *object = NULL;
    bool is_mapped = false, is_bound[2] = {false, false};
    void *address;

    desc.devices = devices;
    desc.device_count = 2;
    desc.bytes = (uint64_t)2 << 20;
    desc.label = "all";
    if (!get(world, filch_multicast_create(world->runtime, &desc, &object), "create"))
        return;
    bool goes_on = get(world, filch_multicast_add(object, 0), "add") &&
                   get(world, filch_multicast_add(object, 1), "add");
    for (uint32_t d = 0; d < 2 && goes_on; d++)
        goes_on = is_bound[d] =
            get(world, filch_multicast_bind(object, d, 0, desc.bytes, NULL), "bind");
    is_mapped = goes_on && get(world, filch_multicast_map(object, &address), "map");
    if (is_mapped)
        give_back(filch_multicast_unmap(object));
    for (uint32_t d = 0; d < 2; d++) {
        if (is_bound[d])
            give_back(filch_multicast_unbind(object, d, 0, desc.bytes));
    }
    give_back(filch_multicast_destroy(object));
}

/* --- Batches --- */

/* What is said to be finished is right, and the ranges cover everything. */
static void check_items(sweep_world *world, filch_job *job, const uint64_t *from,
                        const uint64_t *to)
{
    filch_item_range ranges[ITEMS];
    size_t count = 0;
    uint64_t at = 0;

    ok(filch_job_items(job, ranges, ITEMS, &count));
    for (size_t k = 0; k < count && k < ITEMS; k++) {
        if (ranges[k].lo != at)
            sweep_wrong(world->report, "the ranges of items do not cover item %llu",
                        (unsigned long long)at);
        at = ranges[k].hi;
        for (uint64_t i = ranges[k].lo; ranges[k].status == FILCH_OK && i < at; i++) {
            if (to[i] != blend(from[i], i))
                sweep_wrong(world->report, "item %llu is said to be finished, and is wrong",
                            (unsigned long long)i);
        }
    }
    if (at != ITEMS)
        sweep_wrong(world->report, "the ranges end at item %llu", (unsigned long long)at);
}

static void run_batch(sweep_world *world)
{
    static uint64_t from[ITEMS], to[ITEMS];
    filch_batch_access accesses[2] = {
        {.mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
    };
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;

    for (uint64_t k = 0; k < ITEMS; k++)
        from[k] = to[k] = blend(k, 2);
    data.element = sizeof from[0];
    data.rows = ITEMS;
    data.label = "items";
    data.ptr = from;
    ok(filch_data_create(world->runtime, &data, &accesses[0].data));
    data.ptr = to;
    ok(filch_data_create(world->runtime, &data, &accesses[1].data));
    desc.codelet = world->scale;
    desc.n = ITEMS;
    desc.grain = 50;
    desc.accesses = accesses;
    desc.access_count = 2;
    ok(filch_batch_submit(world->runtime, &desc, NULL, &job));
    if (job != NULL) {
        (void)wait_for(world, job);
        if (world->report->is_wrong)
            return;
        check_items(world, job, from, to);
        ok(filch_job_release(job));
    }
    ok(filch_data_destroy(accesses[0].data));
    ok(filch_data_destroy(accesses[1].data));
}

/* --- Groups --- */

static bool make_codelet(sweep_world *world, const char *name, filch_host_fn host,
                         const char *image, uint32_t arg_size, filch_codelet **codelet);

static void add_increase(sweep_world *world, filch_graph *graph, filch_codelet *codelet, cells *c,
                         uint32_t to, filch_access_mode mode, uint64_t seed)
{
    const arguments args = {seed};
    uint32_t from = (to + 1) % TILES;
    const filch_access accesses[] = {{.data = c->data, .row = from, .mode = FILCH_READ},
                                     {.data = c->data, .row = to, .mode = mode}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;

    desc.codelet = codelet;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.affinity = 1 + (uint32_t)seed % filch_device_count(world->runtime);
    desc.label = "increasing";
    ok(filch_graph_add(graph, &desc, NULL));
    increase(&c->wanted[from * TILE], &c->wanted[to * TILE], TILE, seed);
}

/* Tasks that commute, tasks that reduce, and one that needs what they made. */
static void run_groups(sweep_world *world)
{
    filch_codelet *increases = NULL, *zero = NULL, *gather = NULL;
    filch_graph *graph = NULL;
    cells c;

    if (!make_codelet(world, "increase", run_increase, "FAKECUBIN arch=90 entry=increase(56,56,8)",
                      sizeof(arguments), &increases) ||
        !make_codelet(world, "zero", run_zero, "FAKECUBIN arch=90 entry=zero(56)", 0, &zero) ||
        !make_codelet(world, "gather", run_gather, "FAKECUBIN arch=90 entry=gather(56,56)", 0,
                      &gather))
        return;
    /* Tasks are refused where a GPU did not take the neutral element, as the log tells. */
    if (!world->report->is_sticky && zero->device_count < increases->device_count)
        return;
    make_cells(world, &c, 0);
    ok(filch_data_reduction(c.data, zero, gather));
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint64_t k = 0; k < GROUP; k++)
        add_increase(world, graph, increases, &c, 0, FILCH_COMMUTE, k);
    for (uint64_t k = 0; k < GROUP; k++)
        add_increase(world, graph, increases, &c, 2, FILCH_REDUCE, k);
    add(world, graph, &c, 2, 0, 1);
    for (uint64_t k = 0; k < GROUP; k++)
        add_increase(world, graph, increases, &c, 2, FILCH_COMMUTE, k);
    if (run_graph(world, graph))
        compare(world, &c);
    if (world->report->is_wrong)
        return; /* what hangs cannot be destroyed */
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(c.data));
}

/* --- Tilings --- */

/* Tasks on sixths of a handle, on its halves, and on one sixth again. */
static void run_tilings(sweep_world *world)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_codelet *increases = NULL;
    filch_data *parts = NULL;
    filch_graph *graph = NULL;
    cells c;

    if (!make_codelet(world, "increase", run_increase, "FAKECUBIN arch=90 entry=increase(56,56,8)",
                      sizeof(arguments), &increases))
        return;
    make_cells(world, &c, FILCH_DATA_MANAGED);
    desc.tile_rows = (uint64_t)TILE * TILES / 2;
    ok(filch_data_partition(c.data, &desc, &parts));
    ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint32_t k = 0; k < TILES; k++)
        add(world, graph, &c, k, (k + 1) % TILES, 1);
    ok(filch_graph_partition(graph, c.data, parts));
    for (uint64_t k = 0; k < GROUP; k++) {
        uint64_t half = (uint64_t)TILE * TILES / 2;
        const arguments args = {k};
        const filch_access accesses[] = {
            {.data = parts, .row = (uint32_t)k % 2, .mode = FILCH_READ},
            {.data = parts, .row = (uint32_t)(k + 1) % 2, .mode = FILCH_READWRITE}};
        filch_task_desc task = FILCH_TASK_DESC_INIT;

        task.codelet = increases;
        task.args = &args;
        task.accesses = accesses;
        task.access_count = 2;
        task.affinity = 1 + (uint32_t)k % filch_device_count(world->runtime);
        ok(filch_graph_add(graph, &task, NULL));
        increase(&c.wanted[k % 2 * half], &c.wanted[(k + 1) % 2 * half], half, k);
    }
    ok(filch_graph_unpartition(graph, c.data, parts));
    add(world, graph, &c, 0, 1, 2);
    if (run_graph(world, graph)) {
        filch_status status = filch_data_acquire(c.data, FILCH_READ);
        check_failure(world, status, "filch_data_acquire");
        if (status == FILCH_OK) {
            compare(world, &c);
            ok(filch_data_release(c.data));
        }
    }
    if (world->report->is_wrong)
        return; /* what hangs cannot be destroyed */
    ok(filch_graph_destroy(graph));
    ok(filch_data_destroy(parts));
    ok(filch_data_destroy(c.data));
}

/* --- One case --- */

static bool make_codelet(sweep_world *world, const char *name, filch_host_fn host,
                         const char *image, uint32_t arg_size, filch_codelet **codelet)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;

    cuda.image = image;
    cuda.image_bytes = strlen(image) + 1;
    cuda.entry = name;
    cuda.shape.block[0] = 32;
    desc.name = name;
    desc.cuda = &cuda;
    desc.host = world->has_host ? host : NULL;
    desc.arg_size = arg_size;
    filch_status status = filch_codelet_create(world->runtime, &desc, codelet);
    check_failure(world, status, "filch_codelet_create");
    return status == FILCH_OK;
}

static bool make_codelets(sweep_world *world)
{
    return make_codelet(world, "mix", run_mix, "FAKECUBIN arch=90 entry=mix(56,56,8)",
                        sizeof(arguments), &world->mix) &&
           make_codelet(world, "scale", run_scale, "FAKECUBIN arch=90 entry=scale(56,56,16)", 0,
                        &world->scale);
}

/* Memory that the runtime has taken; _Atomic, for its workers. */
static void *take(size_t size, size_t align, void *user)
{
    void *pointer = NULL;

    if (posix_memalign(&pointer, align < sizeof pointer ? sizeof pointer : align, size) != 0)
        return NULL;
    atomic_fetch_add((_Atomic int64_t *)user, (int64_t)size);
    return pointer;
}

static void give(void *pointer, size_t size, size_t align, void *user)
{
    (void)align;
    atomic_fetch_sub((_Atomic int64_t *)user, (int64_t)size);
    free(pointer);
}

/* As if links were measured: those between GPUs are so slow that a tile has many pieces, and yet
 * faster than the host. */
static void tell_rates(filch_runtime *runtime)
{
    const uint32_t places = runtime->pool.place_count;
    fl_bandwidths *rates = &runtime->pool.bandwidths;
    bool is_open = fl_bandwidths_open(rates, &runtime->core.memory, places) == FILCH_OK;

    for (uint32_t k = 0; is_open && k < places * places; k++)
        fl_bandwidths_set(rates, places, k / places, k % places,
                          k / places == 0 || k % places == 0 ? 1e8 : 2e9);
}

static void run_with(const filch_allocator *allocator, const sweep_scenario *scenario,
                     sweep_report *report)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    sweep_world world = {.has_host = scenario->has_host, .report = report};

    config.devices = scenario->devices;
    config.allocator = allocator;
    config.allow_multicast = scenario->may_cast;
    config.memory_limit = scenario->limit;
    if (scenario->has_relay) /* tasks run where they are told to */
        config.policy = FILCH_POLICY_STATIC;
    if (filch_runtime_create(&config, &error, &world.runtime) != FILCH_OK) {
        report->failures++;
        if (report->call == NULL || error.call[0] == '\0' ||
            (!is_noticed_late(report) && strcmp(error.call, report->call) != 0 &&
             strstr(error.text, report->call) == NULL))
            sweep_wrong(report, "filch_runtime_create fails without naming the call: %s",
                        error.text);
        return;
    }
    if (scenario->has_relay)
        tell_rates(world.runtime);
    bool has_codelets = !scenario->has_codelets || make_codelets(&world);
    /* What fails once fails one job; what is gone for good fails what needs it. */
    for (uint32_t round = 0; round < scenario->rounds && has_codelets; round++) {
        uint32_t before = report->failures;
        scenario->run(&world);
        if (report->is_wrong)
            return;
        if (before == 0 || report->failures == before || scenario->is_alone)
            continue;
        /* It may be the first to meet a device that is lost; the next one does without it. */
        before = report->failures;
        scenario->run(&world);
        if (!report->is_wrong && report->failures != before)
            sweep_wrong(report, "later jobs fail too, though another device is left");
    }
    filch_status status = filch_runtime_destroy(world.runtime);
    if (status != FILCH_OK)
        sweep_wrong(report, "filch_runtime_destroy gave %s", filch_status_name(status));
}

void sweep_run(const sweep_scenario *scenario, sweep_report *report)
{
    static _Atomic int64_t taken;
    const filch_allocator allocator = {take, give, (void *)&taken};

    taken = 0;
    run_with(&allocator, scenario, report);
    if (taken != 0)
        sweep_wrong(report, "%lld bytes of memory are left", (long long)taken);
}

const sweep_scenario sweep_scenarios[] = {
    {.name = "runtime", .devices = "cuda"},
    {.name = "codelet", .devices = "cuda", .has_codelets = true},
    {.name = "graph", .devices = "cuda", .has_codelets = true, .run = run_tree, .rounds = 2},
    {.name = "batch", .devices = "cuda", .has_codelets = true, .run = run_batch, .rounds = 2},
    {.name = "chain", .devices = "cuda", .has_codelets = true, .run = run_chain, .rounds = 2},
    {.name = "managed", .devices = "cuda", .has_codelets = true, .run = run_managed, .rounds = 2},
    {.name = "apart",
     .devices = "cuda",
     .has_codelets = true,
     .is_apart = true,
     .run = run_managed,
     .rounds = 2},
    {.name = "unbacked", .devices = "cuda", .has_codelets = true, .run = run_unbacked, .rounds = 2},
    {.name = "unbacked apart",
     .devices = "cuda",
     .has_codelets = true,
     .is_apart = true,
     .run = run_unbacked,
     .rounds = 2},
    {.name = "broadcast",
     .devices = "cuda",
     .has_codelets = true,
     .run = run_broadcast,
     .rounds = 2},
    {.name = "staged broadcast",
     .devices = "cuda",
     .has_codelets = true,
     .is_apart = true,
     .run = run_broadcast,
     .rounds = 2},
    {.name = "wide", .devices = "cuda", .has_codelets = true, .run = run_wide, .rounds = 2},
    {.name = "wide apart",
     .devices = "cuda",
     .has_codelets = true,
     .is_apart = true,
     .run = run_wide,
     .rounds = 2},
    {.name = "relayed",
     .devices = "cuda",
     .has_codelets = true,
     .is_alone = true,
     .has_relay = true,
     .run = run_wide,
     .rounds = 2},
    {.name = "pinned", .devices = "cuda", .has_codelets = true, .run = run_pinned, .rounds = 2},
    {.name = "groups", .devices = "cuda", .has_codelets = true, .run = run_groups, .rounds = 2},
    {.name = "groups and host",
     .devices = "cuda:0,host:1",
     .has_host = true,
     .has_codelets = true,
     .run = run_groups,
     .rounds = 2},
    {.name = "tilings", .devices = "cuda", .has_codelets = true, .run = run_tilings, .rounds = 2},
    {.name = "tilings and host",
     .devices = "cuda:0,host:1",
     .has_host = true,
     .has_codelets = true,
     .run = run_tilings,
     .rounds = 2},
    {.name = "multicast",
     .devices = "cuda:0,cuda:1",
     .is_alone = true,
     .may_cast = true,
     .run = run_multicast,
     .rounds = 2},
    {.name = "again",
     .devices = "cuda:0",
     .has_codelets = true,
     .is_alone = true,
     .run = run_again,
     .rounds = 1},
    {.name = "slices",
     .devices = "cuda:0/88+24+8",
     .has_codelets = true,
     .is_alone = true,
     .run = run_tree,
     .rounds = 2},
    {.name = "host",
     .devices = "cuda:0,host:1",
     .has_host = true,
     .has_codelets = true,
     .run = run_tree,
     .rounds = 2},
    {.name = "short of memory",
     .devices = "cuda",
     .has_codelets = true,
     .limit = SHORT,
     .run = run_tree,
     .rounds = 2},
    {.name = "managed and short",
     .devices = "cuda",
     .has_codelets = true,
     .limit = SHORT,
     .run = run_managed,
     .rounds = 2},
    {.name = "batch and short",
     .devices = "cuda:0",
     .has_codelets = true,
     .is_alone = true,
     .limit = 6 * SHORT,
     .run = run_batch,
     .rounds = 2},
    {.name = "mixed",
     .devices = "cuda:0,host:1",
     .has_host = true,
     .has_codelets = true,
     .run = run_batch,
     .rounds = 2},
};

const size_t sweep_scenario_count = sizeof sweep_scenarios / sizeof sweep_scenarios[0];
