/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks on slices of one GPU, which share its memory: slices with nothing else to do run
 * pieces of a long task that one of them has begun, each item once; who comes after the task, on
 * whatever device, the host too, sees what all of them wrote; and what fails, is cancelled,
 * withdrawn or short of memory leaves nothing undone or done twice. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 4096
#include "jobs.h"

enum { GRAIN = 16, SLICES = 3, LEAST = 2, SMS = 120, RUNS = 6 };

#define DEVICES "cuda:0/88+24+8"
#define RANGES "FAKECUBIN arch=90 entry=range,move"
#define DRIVER "{\"threads\": 8, \"devices\": [{\"count\": 2}]}"

static _Atomic uint32_t ran[N];  /* times that each item did */
static _Atomic uint32_t at_once; /* slices that run a piece */
static _Atomic uint32_t most_at_once, calls, bad_calls;
static uint32_t item_ns; /* what an item takes a GPU of SMS multiprocessors */

static void nap(uint64_t ns)
{
    const struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    (void)nanosleep(&time, NULL);
}

/* Begins a piece, which takes as long as its slice is small. */
static void begin(const uint64_t *range, const fakecuda_geometry *geometry)
{
    uint32_t count = atomic_fetch_add(&at_once, 1) + 1, most = atomic_load(&most_at_once);
    while (count > most && !atomic_compare_exchange_weak(&most_at_once, &most, count)) {
    }
    atomic_fetch_add(&calls, 1);
    if (range[0] % GRAIN != 0 || range[1] > N || range[0] >= range[1] ||
        (range[1] % GRAIN != 0 && range[1] != N))
        atomic_fetch_add(&bad_calls, 1);
    for (uint64_t i = range[0]; i < range[1]; i++)
        atomic_fetch_add(&ran[i], 1);
    nap((range[1] - range[0]) * item_ns * SMS / geometry->multiprocessors);
}

static uint64_t *items_of(void *param)
{
    filch_view view;
    memcpy(&view, param, sizeof view);
    return fakecuda_map(view.ptr, view.rows * sizeof(uint64_t));
}

/* range(to): adds one to each of its items; fails at the middle one where it is to. */
static int range_twin(void **params, const fakecuda_geometry *geometry)
{
    uint64_t *to = items_of(params[0]), range[2];
    memcpy(range, params[1], sizeof range);
    begin(range, geometry);
    for (uint64_t i = range[0]; i < range[1]; i++)
        to[i]++;
    atomic_fetch_sub(&at_once, 1);
    return atomic_load(&fails) != 0 && range[0] <= N / 2 && range[1] > N / 2;
}

/* move(from, to): to = from + 1. */
static int move_twin(void **params, const fakecuda_geometry *geometry)
{
    const uint64_t *from = items_of(params[0]);
    uint64_t *to = items_of(params[1]), range[2];
    memcpy(range, params[2], sizeof range);
    begin(range, geometry);
    for (uint64_t i = range[0]; i < range[1]; i++)
        to[i] = from[i] + 1;
    atomic_fetch_sub(&at_once, 1);
    return 0;
}

/* scratch(to, scratch): as range. */
static int scratch_twin(void **params, const fakecuda_geometry *geometry)
{
    void *without[] = {params[0], params[2]};
    return range_twin(without, geometry);
}

static filch_codelet *ranges, *moves, *bumps;

static void open_slices(const char *devices, const char *lanes, filch_drive drive)
{
    static const size_t sizes[] = {sizeof(filch_view), 2 * sizeof(uint64_t)};
    static const size_t more[] = {sizeof(filch_view), sizeof(filch_view), 2 * sizeof(uint64_t)};
    start_driven(devices, lanes, DRIVER, drive);
    fakecuda_register("range", range_twin, 2, sizes);
    fakecuda_register("move", move_twin, 3, more);
    ranges = codelet_of(runtime, RANGES, "range", NULL, 0);
    moves = codelet_of(runtime, RANGES, "move", NULL, 0);
    bumps = on_gpu("bump");
    item_ns = 4000;
    atomic_store(&fails, 0);
    atomic_store(&bad_calls, 0);
    atomic_store(&most_at_once, 0);
}

static void add_task(filch_graph *to, filch_codelet *codelet, filch_data *from, filch_data *data,
                     filch_access_mode mode, uint32_t affinity)
{
    const filch_access accesses[2] = {{.data = from, .mode = FILCH_READ},
                                      {.data = data, .mode = mode}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = from != NULL ? accesses : accesses + 1;
    desc.access_count = from != NULL ? 2 : 1;
    desc.affinity = affinity;
    desc.items = codelet != bumps ? N : 0;
    desc.grain = codelet != bumps ? GRAIN : 0;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

/* What a job's slices did. */
typedef struct outcome {
    filch_report report;
    filch_device_stats stats[SLICES];
} outcome;

static void clear_runs(void)
{
    for (int i = 0; i < N; i++)
        atomic_store(&ran[i], 0);
    atomic_store(&calls, 0);
}

static void end_run(filch_job *job, filch_status result, outcome *out)
{
    filch_job_info info = {.size = sizeof info};
    out->report = (filch_report)FILCH_REPORT_INIT;
    assert_int_equal(filch_job_wait(job, SOON), result);
    assert_ok(filch_job_stats(job, &info, out->stats, SLICES));
    assert_ok(filch_job_report(job, NULL, &out->report, NULL, 0));
    assert_int_equal(info.done + info.failed + info.skipped, info.total);
    assert_int_equal(atomic_load(&bad_calls), 0);
    assert_int_equal(atomic_load(&at_once), 0);
    assert_ok(filch_job_release(job));
}

static void run(filch_graph *from, filch_status result, outcome *out)
{
    clear_runs();
    end_run(submit(from), result, out);
}

static void check_ran(uint32_t times)
{
    for (int i = 0; i < N; i++)
        assert_int_equal(atomic_load(&ran[i]), times);
}

static void check_host(filch_data *data, const uint64_t *at, uint64_t value, uint32_t flags)
{
    if ((flags & FILCH_DATA_MANAGED) != 0)
        assert_ok(filch_data_acquire(data, FILCH_READ));
    expect(at, value);
    if ((flags & FILCH_DATA_MANAGED) != 0)
        assert_ok(filch_data_release(data));
}

/* A long task by itself, of the least slice: all help, and each item runs once. */
static void check_help(const char *lanes, uint32_t flags, filch_drive drive)
{
    open_slices(DEVICES, lanes, drive);
    filch_data *a = handle_with(x, flags);
    filch_graph *g = graph();
    outcome out;
    uint64_t divided = 0, pieces = 0, tiles[SLICES] = {0};
    add_task(g, ranges, NULL, a, FILCH_READWRITE, 1 + LEAST);
    set(x, 100);
    for (uint64_t round = 1; round <= RUNS; round++) {
        run(g, FILCH_OK, &out);
        check_ran(1);
        check_host(a, x, 100 + round, flags);
        divided += out.report.total.divided;
        pieces += out.report.total.pieces;
        assert_int_equal(out.report.total.pieces, atomic_load(&calls));
        for (int d = 0; d < SLICES; d++)
            tiles[d] += out.stats[d].tiles;
    }
    assert_int_equal(divided, RUNS);
    assert_true(pieces > RUNS * SLICES);
    for (int d = 0; d < SLICES; d++)
        assert_true(tiles[d] > 0);
    assert_int_equal(atomic_load(&most_at_once), SLICES);
    assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    stop();
}

static void a_long_task_gets_help(void **state)
{
    (void)state;
    check_help("1", 0, FILCH_DRIVE_THREADS);
    check_help("2", FILCH_DATA_MANAGED, FILCH_DRIVE_THREADS);
    check_help("1", FILCH_DATA_MANAGED, FILCH_DRIVE_POLL);
}

/* Chains over two handles: what comes after a divided task, divided or not, on the same slice or
 * another, sees all that it wrote, and so does the host. */
static void check_chain(uint32_t flags, filch_graph_kind kind)
{
    enum { STEPS = 3 };
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *g = NULL;
    outcome out;
    uint64_t pieces = 0;
    open_slices(DEVICES, "2", FILCH_DRIVE_DEFAULT);
    item_ns = 1500;
    filch_data *a = handle_with(x, flags), *b = handle_with(y, flags);
    set(x, 100);
    set(y, 7);
    for (uint64_t round = 1; round <= RUNS; round++) {
        filch_job *job = NULL;
        if (g == NULL) {
            desc.kind = kind;
            assert_ok(filch_graph_create(runtime, &desc, &g));
        }
        clear_runs();
        if (kind == FILCH_GRAPH_OPEN)
            job = submit(g);
        for (uint32_t i = 0; i < STEPS && (round == 1 || kind == FILCH_GRAPH_OPEN); i++) {
            add_task(g, ranges, NULL, a, FILCH_READWRITE, 1 + i % SLICES);
            add_task(g, bumps, NULL, a, FILCH_READWRITE, 1 + (i + 1) % SLICES);
            add_task(g, moves, a, b, FILCH_WRITE, 1 + (i + 2) % SLICES);
            add_task(g, bumps, NULL, b, FILCH_READWRITE, 0);
        }
        if (kind == FILCH_GRAPH_OPEN)
            assert_ok(filch_graph_close(g));
        end_run(job != NULL ? job : submit(g), FILCH_OK, &out);
        check_ran(2 * STEPS);
        pieces += out.report.total.pieces;
        check_host(a, x, 100 + 2 * STEPS * round, flags);
        check_host(b, y, 100 + 2 * STEPS * round + 2, flags);
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_destroy(g));
            g = NULL;
        }
    }
    assert_true(pieces > RUNS * STEPS);
    if (g != NULL)
        assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    assert_ok(filch_data_destroy(b));
    stop();
}

static void successors_see_all(void **state)
{
    (void)state;
    check_chain(0, FILCH_GRAPH_CLOSED);
    check_chain(FILCH_DATA_MANAGED, FILCH_GRAPH_CLOSED);
    check_chain(0, FILCH_GRAPH_OPEN);
}

/* --- What goes wrong --- */

/* One long task, which takes about 50 ms with all slices. */
static filch_graph *long_task(filch_data *data)
{
    filch_graph *made = graph();
    item_ns = 12000;
    add_task(made, ranges, NULL, data, FILCH_READWRITE, 1 + LEAST);
    return made;
}

static bool is_over(filch_job *job)
{
    return filch_job_wait(job, 0) != FILCH_TIMEOUT;
}

/* Until so many pieces have begun, or all are over. */
static void await_calls(filch_job *job, uint32_t count)
{
    while (atomic_load(&calls) < count && !is_over(job))
        nap(50000);
}

/* Of a job that is cancelled now, if that does not come too late. */
static void cancel(filch_job *job)
{
    outcome out;
    filch_status result = FILCH_CANCELLED;
    assert_ok(filch_job_cancel(job));
    if (filch_job_wait(job, SOON) == FILCH_OK)
        result = FILCH_OK;
    end_run(job, result, &out);
}

/* After whatever became of the last job: all is as ever. */
static void check_good(filch_graph *g)
{
    outcome out;
    atomic_store(&fails, 0);
    set(x, 40);
    run(g, FILCH_OK, &out);
    check_ran(1);
    expect(x, 41);
}

/* The driver refuses a piece's launch, the first or another: the task fails, what has begun ends,
 * and what comes after is left out. */
static void a_piece_is_refused(void **state)
{
    (void)state;
    open_slices(DEVICES, "1", FILCH_DRIVE_THREADS);
    filch_data *a = handle(x);
    filch_graph *g = long_task(a);
    outcome out;
    add_task(g, bumps, NULL, a, FILCH_READWRITE, 0);
    set(x, 0);
    run(g, FILCH_OK, &out);
    expect(x, 2);
    for (uint64_t nth = 1; nth <= 20; nth += nth < 4 ? 1 : 5) {
        filch_job_info info = {.size = sizeof info};
        clear_runs();
        fakecuda_fail("cuLaunchKernelEx", nth, 1, 701, -1, false); /* out of resources */
        fakecuda_fail("cuLaunchKernel", nth, 1, 701, -1, false);
        filch_job *job = submit(g);
        filch_status status = filch_job_wait(job, SOON);
        assert_int_not_equal(status, FILCH_OK);
        assert_int_not_equal(status, FILCH_TIMEOUT);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.failed, 1);
        assert_int_equal(info.skipped, 1);
        assert_ok(filch_job_release(job));
        assert_int_equal(atomic_load(&at_once), 0);
        for (int i = 0; i < N; i++)
            assert_in_range(atomic_load(&ran[i]), 0, 1);
        fakecuda_reset();
        set(x, 5);
        run(g, FILCH_OK, &out);
        check_ran(1);
        expect(x, 7);
    }
    assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    stop();
}

/* A kernel faults: with its context all slices are lost, in the middle of their pieces. */
static void a_kernel_faults(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        open_slices(DEVICES, "1", round % 2 == 0 ? FILCH_DRIVE_THREADS : FILCH_DRIVE_POLL);
        filch_data *a = handle(x), *b = handle_with(y, FILCH_DATA_MANAGED);
        filch_graph *g = long_task(a);
        filch_job_info info = {.size = sizeof info};
        add_task(g, ranges, NULL, b, FILCH_READWRITE, 0);
        add_task(g, bumps, NULL, a, FILCH_READWRITE, 0);
        set(x, 0);
        atomic_store(&fails, 1);
        clear_runs();
        filch_job *job = submit(g);
        filch_status status = filch_job_wait(job, SOON);
        assert_true(status == FILCH_TASK_FAILED || status == FILCH_DEVICE_LOST);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.done + info.failed + info.skipped, 3);
        assert_true(info.failed >= 1);
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(g));
        assert_ok(filch_data_destroy(a));
        assert_ok(filch_data_destroy(b));
        stop();
    }
}

static void a_job_is_cancelled(void **state)
{
    (void)state;
    open_slices(DEVICES, "2", FILCH_DRIVE_THREADS);
    filch_data *a = handle(x);
    filch_graph *g = long_task(a);
    uint32_t left_out = 0;
    check_good(g);
    for (uint32_t after = 0; after <= 20; after += 4) {
        clear_runs();
        filch_job *job = submit(g);
        await_calls(job, after);
        cancel(job);
        for (int i = 0; i < N; i++) {
            assert_in_range(atomic_load(&ran[i]), 0, 1);
            left_out += atomic_load(&ran[i]) == 0;
        }
        check_good(g);
    }
    assert_true(left_out > 0);
    assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    stop();
}

/* A slice is withdrawn in the middle, and comes back or does not, or all are for a while. */
static void slices_are_withdrawn(void **state)
{
    (void)state;
    open_slices(DEVICES, "1", FILCH_DRIVE_THREADS);
    filch_data *a = handle(x);
    filch_graph *g = long_task(a);
    outcome out;
    set(x, 0);
    for (uint32_t round = 0; round < 8; round++) {
        bool all = round >= 6;
        clear_runs();
        filch_job *job = submit(g);
        await_calls(job, 3 + round);
        for (uint32_t d = 0; d < SLICES; d++)
            if (all || d == round % SLICES)
                assert_ok(filch_device_withdraw(runtime, d));
        if (all) {
            filch_presence presence = FILCH_PRESENCE_LEAVING;
            for (uint32_t d = 0; d < SLICES; d++)
                do {
                    assert_ok(filch_device_presence(runtime, d, &presence));
                    nap(100000);
                } while (presence != FILCH_PRESENCE_WITHDRAWN);
            bool was_over = is_over(job);
            nap(20000000);
            assert_true(is_over(job) == was_over);
        }
        for (uint32_t d = 0; d < SLICES && all; d++)
            assert_ok(filch_device_readmit(runtime, d));
        end_run(job, FILCH_OK, &out);
        check_ran(1);
        expect(x, round + 1);
        if (!all)
            assert_ok(filch_device_readmit(runtime, round % SLICES));
    }
    /* What nobody who is there could end is cancelled. */
    clear_runs();
    filch_job *job = submit(g);
    await_calls(job, 4);
    for (uint32_t d = 0; d < SLICES; d++)
        assert_ok(filch_device_withdraw(runtime, d));
    nap(20000000);
    cancel(job);
    for (uint32_t d = 0; d < SLICES; d++)
        assert_ok(filch_device_readmit(runtime, d));
    check_good(g);
    assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    stop();
}

/* The GPU's memory holds one tile and a half, or two and a half, of eight: who has no room waits
 * for a task that is divided, and what that holds is given back. */
static void memory_is_short(void **state)
{
    enum { HANDLES = 8, TIMES = 3 };
    static uint64_t room[HANDLES][N];
    static const char *const limits[] = {"48K", "80K", "112K"};
    (void)state;
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        filch_data *data[HANDLES];
        outcome out;
        uint64_t pieces = 0;
        assert_int_equal(setenv("FILCH_MEMORY_LIMIT", limits[l], 1), 0);
        open_slices(DEVICES, "2", FILCH_DRIVE_THREADS);
        assert_int_equal(unsetenv("FILCH_MEMORY_LIMIT"), 0);
        item_ns = 1000;
        filch_graph *g = graph();
        for (uint32_t i = 0; i < HANDLES; i++) {
            data[i] = handle_with(room[i], i % 2 == 0 ? 0 : FILCH_DATA_MANAGED);
            set(room[i], i);
        }
        for (uint32_t k = 0; k < TIMES; k++)
            for (uint32_t i = 0; i < HANDLES; i++) {
                add_task(g, i % 2 == 0 ? ranges : bumps, NULL, data[i], FILCH_READWRITE, 0);
                add_task(g, i % 2 == 0 ? bumps : ranges, NULL, data[i], FILCH_READWRITE, 0);
            }
        for (uint64_t round = 1; round <= 3; round++) {
            run(g, FILCH_OK, &out);
            pieces += out.report.total.pieces;
            check_ran(TIMES * HANDLES);
            for (uint32_t i = 0; i < HANDLES; i++)
                check_host(data[i], room[i], i + 2 * TIMES * round,
                           i % 2 == 0 ? 0 : FILCH_DATA_MANAGED);
        }
        assert_true(pieces > 0);
        assert_ok(filch_graph_destroy(g));
        for (uint32_t i = 0; i < HANDLES; i++)
            assert_ok(filch_data_destroy(data[i]));
        stop();
    }
}

/* There is room for one task of four, each of which another slice has taken: those that wait for
 * room help with the one that has it. How much of it is shown on the virtual clock
 * (tests/sim/test_slices.c). */
static void who_waits_for_room_helps(void **state)
{
    enum { ALIKE = 4 };
    static uint64_t room[ALIKE][N];
    filch_data *data[ALIKE];
    outcome out;
    uint64_t pieces = 0;
    (void)state;
    assert_int_equal(setenv("FILCH_MEMORY_LIMIT", "48K", 1), 0);
    open_slices("cuda:0/32+32+32+32", "1", FILCH_DRIVE_THREADS);
    assert_int_equal(unsetenv("FILCH_MEMORY_LIMIT"), 0);
    filch_graph *g = graph();
    for (uint32_t i = 0; i < ALIKE; i++) {
        data[i] = handle(room[i]);
        set(room[i], i);
        add_task(g, ranges, NULL, data[i], FILCH_READWRITE, 1 + i);
    }
    for (uint64_t round = 1; round <= RUNS; round++) {
        run(g, FILCH_OK, &out);
        check_ran(ALIKE);
        for (uint32_t i = 0; i < ALIKE; i++)
            expect(room[i], i + round);
        pieces += out.report.total.pieces;
    }
    assert_true(pieces > RUNS * ALIKE);
    assert_ok(filch_graph_destroy(g));
    for (uint32_t i = 0; i < ALIKE; i++)
        assert_ok(filch_data_destroy(data[i]));
    stop();
}

/* With memory of its own for each call a task is run in one; so it is on a GPU by itself, and where
 * the other slice's memory is another's. */
static void what_is_not_divided(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        open_slices(kind == 0 ? DEVICES : "cuda:0,cuda:1/88", "1", FILCH_DRIVE_THREADS);
        filch_data *a = handle(x);
        filch_graph *g = graph();
        outcome out;
        const filch_access accesses[] = {{.data = a, .mode = FILCH_READWRITE},
                                         {.mode = FILCH_SCRATCH, .bytes = 4096}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = ranges;
        desc.accesses = accesses;
        desc.access_count = kind == 0 ? 2 : 1;
        desc.items = N;
        desc.grain = GRAIN;
        if (kind == 0) {
            static const size_t sizes[] = {sizeof(filch_view), sizeof(filch_view),
                                           2 * sizeof(uint64_t)};
            fakecuda_register("scratch", scratch_twin, 3, sizes);
            desc.codelet =
                codelet_of(runtime, "FAKECUBIN arch=90 entry=scratch", "scratch", NULL, 0);
        }
        assert_ok(filch_graph_add(g, &desc, NULL));
        set(x, 0);
        for (uint64_t round = 1; round <= 3; round++) {
            run(g, FILCH_OK, &out);
            check_ran(1);
            expect(x, round);
            assert_int_equal(out.report.total.pieces, 0);
            assert_int_equal(atomic_load(&calls), 1);
        }
        assert_ok(filch_graph_destroy(g));
        assert_ok(filch_data_destroy(a));
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_task_gets_help), cmocka_unit_test(successors_see_all),
        cmocka_unit_test(a_piece_is_refused),    cmocka_unit_test(a_kernel_faults),
        cmocka_unit_test(a_job_is_cancelled),    cmocka_unit_test(slices_are_withdrawn),
        cmocka_unit_test(memory_is_short),       cmocka_unit_test(who_waits_for_room_helps),
        cmocka_unit_test(what_is_not_divided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
