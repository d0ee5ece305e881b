/* SPDX-License-Identifier: Apache-2.0 */
/* Which core runs a ready task where cores share one memory: the one that has its data, unless the
 * caller names another. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/core.h"
#include "graph/build/graph.h"
#include "memory/tiles/data.h"
#include "sched/decide/place.h"
#include "sched/model/kind.h"
#include "sched/worker/sched.h"

/* A tile that no core would have moved to it for one short task. */
enum { CELLS = 1 << 17, TILES = 2, ROUNDS = 2000, SMALL = 1 << 10 };

static filch_runtime *runtime;
static filch_codelet *work;
static filch_data *data;
static double *cells;

typedef struct work_args {
    _Atomic int *waits_for; /* null: nothing */
    _Atomic int *sets;
    _Atomic uint32_t *ran_on; /* the device's index + 1 */
} work_args;

static int run_work(const filch_call *call)
{
    const work_args *args = call->args;
    if (args->waits_for != NULL && !fixture_await(args->waits_for, 1)) {
        return 1;
    }
    double *cell = call->views[0].ptr;
    ++*cell;
    atomic_store(args->ran_on, call->device + 1);
    if (args->sets != NULL) {
        atomic_store(args->sets, 1);
    }
    return 0;
}

static void open_cores(const char *devices, uint64_t rows, uint64_t tile)
{
    runtime = fixture_runtime(devices, FILCH_DRIVE_THREADS, NULL);
    work = fixture_codelet(runtime, "work", run_work, sizeof(work_args));
    cells = calloc(rows, sizeof *cells);
    assert_non_null(cells);
    data = fixture_vector(runtime, cells, sizeof *cells, rows, tile);
}

static void close_cores(void)
{
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
    free(cells);
}

static void add(filch_graph *graph, const work_args *args, const filch_access *accesses,
                uint32_t count, uint32_t affinity)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = work;
    desc.args = args;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.affinity = affinity;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

/* The second device writes tile 0, the first device tile 1 after that; so the first device makes
 * the last task ready, which needs both, and writes tile `main`. Returns where that ran, and how
 * many tasks the job counts as away from their data. The second device alone has run short tasks
 * only, so that by prediction nobody gains by a theft from it. */
static uint32_t run_three(uint32_t main, uint32_t affinity, uint64_t *moved)
{
    _Atomic int is_written = 0;
    _Atomic uint32_t ran_on[3] = {0};
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    const work_args args[3] = {{.sets = &is_written, .ran_on = &ran_on[0]},
                               {.waits_for = &is_written, .ran_on = &ran_on[1]},
                               {.ran_on = &ran_on[2]}};
    const filch_access first = fixture_access(data, 0, FILCH_READWRITE);
    const filch_access second = fixture_access(data, 1, FILCH_READWRITE);
    const filch_access both[2] = {main == 0 ? first : second,
                                  fixture_access(data, 1 - main, FILCH_READ)};
    add(graph, &args[0], &first, 1, 2);
    add(graph, &args[1], &second, 1, 1);
    add(graph, &args[2], both, 2, affinity);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, 60));
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    *moved = info.moved;
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    return atomic_load(&ran_on[2]);
}

/* Where the system stops a core's thread for long, the other one may take its tasks: one round of
 * many is enough. */
static void a_ready_task_goes_to_the_core_with_its_data(void **state)
{
    (void)state;
    uint64_t moved;
    uint32_t there = 0;
    open_cores("host:2", (uint64_t)CELLS * TILES, CELLS);
    for (int round = 0; round < ROUNDS && there == 0; ++round) {
        there += run_three(0, 0, &moved) == 2;
    }
    assert_true(there > 0); /* none where the releaser keeps it */
    close_cores();
}

static void the_callers_affinity_comes_first(void **state)
{
    (void)state;
    uint64_t moved;
    uint32_t there = 0, counted = 0;
    open_cores("host:2", (uint64_t)CELLS * TILES, CELLS);
    for (int round = 0; round < ROUNDS && (there == 0 || counted == 0); ++round) {
        there += run_three(1, 2, &moved) == 2;
        counted += moved != 0; /* tile 1 went from the first device to the second one */
    }
    assert_true(there > 0);
    assert_true(counted > 0);
    close_cores();
}

/* --- Roots --- */

static void run_graph(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, 60));
    assert_ok(filch_job_release(job));
}

static void hold(const filch_data *of, uint32_t tile, uint32_t core)
{
    fl_store_relaxed(&of->holders[tile], (uint16_t)(core + 1));
}

static uint32_t holder(const filch_data *of, uint32_t tile)
{
    return fl_load_relaxed(&of->holders[tile]) - 1u;
}

/* The core to which the root that uses the tile as its first access goes; nothing runs meanwhile.
 */
static uint32_t core_of_root(filch_graph *graph, uint32_t tile)
{
    fl_sched *sched = (fl_sched *)(void *)fl_core_of(runtime)->scheduler;
    const uint32_t *begin = fl_place_roots(sched, graph);
    uint32_t core = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        for (uint32_t i = begin[d]; i < begin[d + 1]; ++i) {
            core = graph->roots[i]->accesses[0].tile == tile ? d : core;
        }
    }
    fl_place_restore(graph);
    return core;
}

/* A task for each tile of the handle, run once, and thus sealed. */
static filch_graph *roots_of(uint32_t tiles, _Atomic uint32_t *ran_on)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t tile = 0; tile < tiles; ++tile) {
        const filch_access access = fixture_access(data, tile, FILCH_READWRITE);
        const work_args args = {.ran_on = ran_on};
        add(graph, &args, &access, 1, 0);
    }
    run_graph(graph);
    return graph;
}

static void roots_go_to_the_cores_with_their_data(void **state)
{
    (void)state;
    _Atomic uint32_t ran_on;
    open_cores("host:2", (uint64_t)CELLS * TILES, CELLS);
    filch_graph *graph = roots_of(TILES, &ran_on);
    for (uint32_t first = 0; first < 2; ++first) {
        hold(data, 0, first);
        hold(data, 1, 1 - first);
        assert_int_equal(core_of_root(graph, 0), first);
        assert_int_equal(core_of_root(graph, 1), 1 - first);
    }
    run_graph(graph); /* in any order, all of them */
    assert_ok(filch_graph_destroy(graph));
    close_cores();
}

/* A core gets no more than twice its share: who made all of the data does not do all of the work.
 */
static void one_core_does_not_get_all(void **state)
{
    (void)state;
    enum { CORES = 4, ROOTS = 16 };
    _Atomic uint32_t ran_on;
    uint32_t there = 0;
    open_cores("host:4@any", (uint64_t)CELLS * ROOTS, CELLS);
    filch_graph *graph = roots_of(ROOTS, &ran_on);
    for (uint32_t tile = 0; tile < ROOTS; ++tile) {
        hold(data, tile, 2);
    }
    for (uint32_t tile = 0; tile < ROOTS; ++tile) {
        there += core_of_root(graph, tile) == 2;
    }
    assert_true(there > ROOTS / CORES && there <= 2 * ROOTS / CORES + ROOTS / CORES + 1);
    assert_ok(filch_graph_destroy(graph));
    close_cores();
}

/* Homes are even; a few bytes are no reason to go elsewhere. */
static void small_tiles_leave_roots_at_home(void **state)
{
    (void)state;
    _Atomic uint32_t ran_on;
    open_cores("host:2", TILES, 1);
    filch_graph *graph = roots_of(TILES, &ran_on);
    uint32_t home = core_of_root(graph, 0);
    hold(data, 0, 1 - home);
    assert_int_equal(core_of_root(graph, 0), home);
    assert_ok(filch_graph_destroy(graph));
    close_cores();
}

/* Of four tiles at one place one core holds two, of which one is the main tile, and the other core
 * holds two: the next task goes to the other core, and whoever runs it holds all four. */
static void come_together(const char *devices)
{
    enum { HANDLES = 4 };
    _Atomic uint32_t ran_on;
    double *more[HANDLES];
    filch_data *handles[HANDLES];
    filch_access all[HANDLES];
    open_cores(devices, TILES, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int h = 0; h < HANDLES; ++h) {
        more[h] = calloc((size_t)CELLS * TILES, sizeof **more);
        assert_non_null(more[h]);
        handles[h] =
            fixture_vector(runtime, more[h], sizeof **more, (uint64_t)CELLS * TILES, CELLS);
        all[h] = fixture_access(handles[h], 0, h < HANDLES / 2 ? FILCH_READWRITE : FILCH_READ);
        hold(handles[h], 0, 0);
    }
    const work_args args = {.ran_on = &ran_on};
    add(graph, &args, all, HANDLES, 0);
    run_graph(graph);
    for (uint32_t core = 0; core < 2; ++core) {
        for (int h = 0; h < HANDLES; ++h) {
            hold(handles[h], 0, h < HANDLES / 2 ? core : 1 - core);
        }
        assert_int_equal(core_of_root(graph, 0), 1 - core);
        run_graph(graph);
        for (int h = 0; h < HANDLES; ++h) {
            assert_int_equal(holder(handles[h], 0), atomic_load(&ran_on) - 1);
        }
    }
    assert_ok(filch_graph_destroy(graph));
    for (int h = 0; h < HANDLES; ++h) {
        assert_ok(filch_data_destroy(handles[h]));
        free(more[h]);
    }
    close_cores();
}

static void tiles_of_one_place_come_together(void **state)
{
    (void)state;
    come_together("host:2");
    come_together("host:4@any"); /* more cores than tiles */
}

/* A table that was written once and that all read draws no task to the core that wrote it. */
static void a_table_that_all_read_draws_nobody(void **state)
{
    (void)state;
    enum { TASKS = 64 };
    _Atomic uint32_t ran_on;
    double *table = calloc(CELLS, sizeof *table);
    uint32_t drawn = 0;
    assert_non_null(table);
    open_cores("host:2", (uint64_t)TASKS * SMALL, SMALL);
    filch_data *read = fixture_vector(runtime, table, sizeof *table, CELLS, CELLS);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    const work_args args = {.ran_on = &ran_on};
    for (uint32_t k = 0; k < TASKS; ++k) {
        const filch_access accesses[] = {fixture_access(data, k, FILCH_WRITE),
                                         fixture_access(read, 0, FILCH_READ)};
        add(graph, &args, accesses, 2, 0);
    }
    hold(read, 0, 1);
    run_graph(graph);
    assert_int_equal(holder(read, 0), 1);
    for (uint32_t k = 0; k < TASKS; ++k) {
        hold(data, k, k % 2);
    }
    for (uint32_t k = 0; k < TASKS; ++k) {
        drawn += core_of_root(graph, k) != k % 2;
    }
    assert_int_equal(drawn, 0);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(read));
    free(table);
    close_cores();
}

/* What a thief expects of a core is of the kind of task that the core is at. */
static void each_kind_of_task_has_its_time(void **state)
{
    (void)state;
    enum { KINDS = 3, APART = 8192 };
    static char names[KINDS][APART];
    size_t bytes = (sizeof(fl_worker) + _Alignof(fl_worker) - 1) / _Alignof(fl_worker);
    fl_worker *w = aligned_alloc(_Alignof(fl_worker), bytes * _Alignof(fl_worker));
    const filch_codelet *kinds[KINDS];
    uint32_t known = 0;
    assert_non_null(w);
    memset(w, 0, sizeof *w);
    for (size_t k = 0; k < KINDS; ++k) {
        kinds[k] = (const filch_codelet *)(const void *)names[k];
        fl_kind_turn(w, kinds[k]);
        if (k == 1) { /* nothing is known of it yet */
            assert_true(fl_bits_double(fl_load_relaxed(&w->queues.item_ns)) == 100);
        }
        fl_store_relaxed(&w->queues.item_ns, fl_double_bits(100.0 + (double)k));
    }
    fl_kind_turn(w, NULL); /* a gate */
    assert_true(fl_bits_double(fl_load_relaxed(&w->queues.item_ns)) == 100.0 + KINDS - 1);
    for (size_t k = 0; k < KINDS; ++k) {
        fl_kind_turn(w, kinds[k]);
        known += fl_bits_double(fl_load_relaxed(&w->queues.item_ns)) == 100.0 + (double)k;
    }
    assert_true(known >= 2); /* two may share a slot */
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_go_to_the_cores_with_their_data),
        cmocka_unit_test(one_core_does_not_get_all),
        cmocka_unit_test(small_tiles_leave_roots_at_home),
        cmocka_unit_test(tiles_of_one_place_come_together),
        cmocka_unit_test(each_kind_of_task_has_its_time),
        cmocka_unit_test(a_table_that_all_read_draws_nobody),
        cmocka_unit_test(a_ready_task_goes_to_the_core_with_its_data),
        cmocka_unit_test(the_callers_affinity_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
