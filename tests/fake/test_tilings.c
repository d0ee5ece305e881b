/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that graphs use in several tilings, on GPUs, slices and cores: random tilings and graphs
 * against a sequential executor, and what they move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include "count.h"
#include "graph/build/graph.h"
#include "make.h"
#include "random.h"

enum {
    ROWS = 13,
    COLS = 11,
    LD = 15,
    TILINGS = 3, /* the parent, and two partitions */
    MOST_CUTS = 5,
    SUMS = 3,
    TASKS = 60,
    RUNS = 3,
    CASES = TEST_ROUNDS(16)
};

#define IMAGE "FAKECUBIN arch=90 entry=fold,stir,put,add,zero,gather"

static filch_runtime *runtime;
static filch_codelet *fold, *stir, *put, *add, *zero, *gather;
static uint64_t matrix[COLS * LD], sums[SUMS], shadow[COLS * LD], shadow_sums[SUMS];
static filch_data *tilings[TILINGS], *totals;
/* How they are cut, ends included. */
static uint64_t row_at[TILINGS][MOST_CUTS + 1], col_at[TILINGS][MOST_CUTS + 1];
static uint32_t rows_of[TILINGS], cols_of[TILINGS];

/* --- What tasks do --- */

typedef struct block {
    uint64_t *ptr;
    uint64_t ld, rows, cols;
} block;

static block block_of(const filch_view *view)
{
    return (block){view->ptr, view->ld, view->rows, view->cols};
}

typedef enum { FOLD, STIR, PUT, ADD, KINDS } kind;

static void do_step(kind what, block tile, uint64_t *sum, uint64_t factor)
{
    for (uint64_t j = 0; j < tile.cols; j++) {
        for (uint64_t i = 0; i < tile.rows; i++) {
            uint64_t *at = &tile.ptr[j * tile.ld + i];
            if (what == FOLD)
                *sum = 31 * *sum + factor * *at;
            else if (what == STIR)
                *at = 31 * *at + factor * (*sum + i + 7 * j);
            else if (what == PUT)
                *at = factor * (*sum + 3 * i + j);
            else
                *at += factor * (*sum + 1);
        }
    }
}

static int run(kind what, const filch_call *call)
{
    do_step(what, block_of(&call->views[0]), call->views[1].ptr, *(const uint64_t *)call->args);
    return 0;
}

static int run_fold(const filch_call *call)
{
    return run(FOLD, call);
}

static int run_stir(const filch_call *call)
{
    return run(STIR, call);
}

static int run_put(const filch_call *call)
{
    return run(PUT, call);
}

static int run_add(const filch_call *call)
{
    return run(ADD, call);
}

static int run_zero(const filch_call *call)
{
    block to = block_of(&call->views[0]);
    for (uint64_t j = 0; j < to.cols; j++)
        memset(&to.ptr[j * to.ld], 0, to.rows * sizeof *to.ptr);
    return 0;
}

/* gather(to, from): adds what was added elsewhere. */
static int run_gather(const filch_call *call)
{
    block to = block_of(&call->views[0]), from = block_of(&call->views[1]);
    for (uint64_t j = 0; j < to.cols; j++) {
        for (uint64_t i = 0; i < to.rows; i++)
            to.ptr[j * to.ld + i] += from.ptr[j * from.ld + i];
    }
    return 0;
}

/* --- Making things --- */

static filch_codelet *codelet(const char *entry, filch_host_fn host, uint32_t views,
                              uint32_t arg_size)
{
    fakecuda_register_filch(entry, host, views, false, arg_size);
    return codelet_of(runtime, IMAGE, entry, host, arg_size);
}

static void start(const char *devices, const char *driver, uint64_t limit)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    config.devices = devices;
    config.memory_limit = limit;
    runtime = runtime_of(&config);
    fold = codelet("fold", run_fold, 2, sizeof(uint64_t));
    stir = codelet("stir", run_stir, 2, sizeof(uint64_t));
    put = codelet("put", run_put, 2, sizeof(uint64_t));
    add = codelet("add", run_add, 2, sizeof(uint64_t));
    zero = codelet("zero", run_zero, 1, 0);
    gather = codelet("gather", run_gather, 2, 0);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

/* Sizes that add up to the extent, in one case of three all alike but the last. */
static uint32_t random_cuts(fl_random *random, uint64_t extent, uint64_t *starts, uint64_t *cuts)
{
    uint32_t count = 0;
    uint64_t width = fl_random_below(random, 3) == 0 ? 3 + fl_random_below(random, 5) : 0;
    for (starts[0] = 0; starts[count] < extent; count++) {
        uint64_t left = extent - starts[count];
        uint64_t cut = width != 0               ? width
                       : count + 1 == MOST_CUTS ? left
                                                : 1 + fl_random_below(random, (uint32_t)left);
        cuts[count] = cut < left ? cut : left;
        starts[count + 1] = starts[count] + cuts[count];
    }
    return count;
}

static void make_handles(fl_random *random, uint32_t flags)
{
    for (uint32_t t = 0; t < TILINGS; t++) {
        uint64_t heights[MOST_CUTS], widths[MOST_CUTS];
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        static const char *const labels[] = {"parent", "first", "second"};
        desc.label = labels[t];
        desc.row_cuts = heights;
        desc.col_cuts = widths;
        desc.row_cut_count = rows_of[t] = random_cuts(random, ROWS, row_at[t], heights);
        desc.col_cut_count = cols_of[t] = random_cuts(random, COLS, col_at[t], widths);
        if (t == 0) {
            desc.ptr = matrix;
            desc.element = sizeof *matrix;
            desc.rows = ROWS;
            desc.cols = COLS;
            desc.ld = LD;
            desc.flags = flags;
            assert_ok(filch_data_create(runtime, &desc, &tilings[0]));
        } else {
            assert_ok(filch_data_partition(tilings[0], &desc, &tilings[t]));
        }
        assert_ok(filch_data_reduction(tilings[t], zero, gather));
    }
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = sums;
    desc.element = sizeof *sums;
    desc.rows = SUMS;
    desc.tile_rows = 1;
    assert_ok(filch_data_create(runtime, &desc, &totals));
    for (uint32_t i = 0; i < COLS * LD; i++)
        matrix[i] = shadow[i] = i;
    for (uint32_t i = 0; i < SUMS; i++)
        sums[i] = shadow_sums[i] = 1000 + i;
}

/* --- Programs --- */

typedef struct step {
    bool is_switch;  /* to another tiling, by way of the parent */
    uint32_t tiling; /* of the task; or the next one */
    uint32_t row, col, sum;
    kind what;
    filch_access_mode mode;
    uint64_t factor;
} step;

static step random_step(fl_random *random, uint32_t *current)
{
    static const filch_access_mode modes[][2] = {{FILCH_READ, FILCH_READ},
                                                 {FILCH_READWRITE, FILCH_READWRITE},
                                                 {FILCH_WRITE, FILCH_WRITE},
                                                 {FILCH_COMMUTE, FILCH_REDUCE}};
    step s = {.is_switch = fl_random_below(random, 8) == 0};
    if (s.is_switch)
        *current = (*current + 1 + fl_random_below(random, TILINGS - 1)) % TILINGS;
    s.tiling = *current;
    s.row = fl_random_below(random, rows_of[s.tiling]);
    s.col = fl_random_below(random, cols_of[s.tiling]);
    s.sum = fl_random_below(random, SUMS);
    s.what = (kind)fl_random_below(random, KINDS);
    s.mode = modes[s.what][fl_random_below(random, 2)];
    s.factor = fl_random_next(random);
    return s;
}

static void switch_to(filch_graph *graph, uint32_t *current, uint32_t next)
{
    if (*current != 0)
        assert_ok(filch_graph_unpartition(graph, tilings[0], tilings[*current]));
    if (next != 0)
        assert_ok(filch_graph_partition(graph, tilings[0], tilings[next]));
    *current = next;
}

static void add_step(filch_graph *graph, const step *s, uint32_t *current)
{
    filch_codelet *const codelets[] = {fold, stir, put, add};
    const filch_access accesses[] = {
        {.data = tilings[s->tiling], .row = s->row, .col = s->col, .mode = s->mode},
        {.data = totals, .row = s->sum, .mode = s->what == FOLD ? FILCH_READWRITE : FILCH_READ},
    };
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelets[s->what];
    desc.args = &s->factor;
    desc.accesses = accesses;
    desc.access_count = 2;
    if (s->is_switch)
        switch_to(graph, current, s->tiling);
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static void play_step(const step *s)
{
    const uint64_t *rows = row_at[s->tiling], *cols = col_at[s->tiling];
    const block tile = {&shadow[cols[s->col] * LD + rows[s->row]], LD,
                        rows[s->row + 1] - rows[s->row], cols[s->col + 1] - cols[s->col]};
    do_step(s->what, tile, &shadow_sums[s->sum], s->factor);
}

static void check_bytes(uint32_t flags)
{
    if (flags != 0)
        assert_ok(filch_data_acquire(tilings[0], FILCH_READ));
    assert_memory_equal(matrix, shadow, sizeof matrix);
    assert_memory_equal(sums, shadow_sums, sizeof sums);
    if (flags != 0)
        assert_ok(filch_data_release(tilings[0]));
}

/* Two graphs that use the handles are in flight at once, the one's runs in turn with the other's.
 */
static void run_closed(fl_random *random, uint32_t flags)
{
    step steps[2][TASKS];
    filch_graph *graphs[2] = {NULL, NULL};
    for (int g = 0; g < 2; g++) {
        uint32_t drawn = 0, current = 0;
        assert_ok(filch_graph_create(runtime, NULL, &graphs[g]));
        for (int i = 0; i < TASKS; i++) {
            steps[g][i] = random_step(random, &drawn);
            add_step(graphs[g], &steps[g][i], &current);
        }
    }
    for (int round = 0; round < RUNS; round++) {
        filch_job *jobs[2];
        for (int g = 0; g < 2; g++) {
            jobs[g] = submit(graphs[g]);
            for (int i = 0; i < TASKS; i++)
                play_step(&steps[g][i]);
        }
        finish(jobs[0], FILCH_OK);
        finish(jobs[1], FILCH_OK);
        check_bytes(flags);
    }
    assert_ok(filch_graph_destroy(graphs[0]));
    assert_ok(filch_graph_destroy(graphs[1]));
}

static void run_open(fl_random *random, uint32_t flags)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    uint32_t drawn = 0, current = 0;
    desc.kind = FILCH_GRAPH_OPEN;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    filch_job *job = submit(graph);
    for (int i = 0; i < TASKS; i++) {
        const step s = random_step(random, &drawn);
        add_step(graph, &s, &current);
        play_step(&s);
    }
    assert_ok(filch_graph_close(graph));
    finish(job, FILCH_OK);
    check_bytes(flags);
    assert_ok(filch_graph_destroy(graph));
}

/* --- The tests --- */

static void random_tilings_give_what_one_after_the_other_gives(void **state)
{
    static const struct {
        const char *devices, *driver;
        uint64_t limit;
    } pools[] = {
        {"host:3", "{\"devices\": [{}]}", 0},
        {"cuda:0", "{\"devices\": [{}]}", 0},
        {"cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}]}", 0},
        {"cuda:0,cuda:1,host:2", "{\"devices\": [{\"count\": 2}], \"kernel_ns\": 20000}", 0},
        {"cuda:0/44+44,host:1", "{\"devices\": [{}], \"kernel_ns\": 5000}", 0},
        {"cuda:0,cuda:1",
         "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1, \"peer\": false}], "
         "\"kernel_ns\": 3000}",
         0},
        {"host:2,cuda:0", "{\"devices\": [{}], \"kernel_ns\": 100000}", 0},
        {"cuda:0,host:1", "{\"devices\": [{}], \"kernel_ns\": 2000}", 8192},
    };
    (void)state;
    for (size_t p = 0; p < sizeof pools / sizeof pools[0]; p++) {
        for (uint64_t seed = 0; seed < CASES; seed++) {
            fl_random random;
            uint32_t flags = seed % 2 != 0 ? FILCH_DATA_MANAGED : 0;
            fl_random_init(&random, seed, p);
            start(pools[p].devices, pools[p].driver, pools[p].limit);
            make_handles(&random, flags);
            run_closed(&random, flags);
            run_open(&random, flags);
            stop();
        }
    }
}

/* A vector of eight elements in two tiles, and each of these in two. Tasks add 2, or read. */
enum { LONG = 8, HALF = LONG / 2, QUARTER = HALF / 2 };
static uint64_t line[LONG], one = 1, spare;
static filch_data *halves, *quarters, *unit, *rest;

static void make_line(uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = line;
    desc.element = sizeof *line;
    desc.rows = LONG;
    desc.tile_rows = HALF;
    desc.flags = flags;
    assert_ok(filch_data_create(runtime, &desc, &halves));
    desc = (filch_data_desc)FILCH_DATA_DESC_INIT;
    desc.tile_rows = QUARTER;
    assert_ok(filch_data_partition(halves, &desc, &quarters));
    desc = (filch_data_desc)FILCH_DATA_DESC_INIT;
    desc.ptr = &one;
    desc.element = sizeof one;
    desc.rows = 1;
    assert_ok(filch_data_create(runtime, &desc, &unit));
    desc.ptr = &spare;
    assert_ok(filch_data_create(runtime, &desc, &rest));
    for (uint64_t i = 0; i < LONG; i++)
        line[i] = i;
}

static void add_one(filch_graph *graph, filch_codelet *what, filch_data *data, uint32_t tile,
                    filch_access_mode mode)
{
    const filch_access accesses[] = {
        {.data = data, .row = tile, .mode = mode},
        {.data = what == fold ? rest : unit, .mode = what == fold ? FILCH_READWRITE : FILCH_READ},
    };
    const uint64_t factor = 1;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = what;
    desc.args = &factor;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static filch_device_stats moved(filch_graph *graph, filch_job_info *info)
{
    filch_device_stats stats;
    filch_job *job = submit(graph);
    info->size = sizeof *info;
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    assert_ok(filch_job_stats(job, info, &stats, 1));
    assert_ok(filch_job_release(job));
    return stats;
}

/* Each tile that was written goes home when another tiling needs it, and only then; what was not
 * touched stays where it is. */
static void what_moves_is_what_was_written(void **state)
{
    static const uint64_t half = HALF * sizeof(uint64_t), quarter = QUARTER * sizeof(uint64_t);
    (void)state;
    start("cuda:0", "{\"devices\": [{}]}", 0);
    make_line(FILCH_DATA_MANAGED);
    filch_graph *graph = NULL;
    filch_job_info info;
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    add_one(graph, add, halves, 0, FILCH_READWRITE); /* a half in, and home … */
    add_one(graph, add, halves, 1, FILCH_READWRITE); /* a half in, and home … */
    assert_ok(filch_graph_partition(graph, halves, quarters));
    add_one(graph, add, quarters, 0, FILCH_READWRITE); /* … for these: a quarter in, home … */
    add_one(graph, fold, quarters, 1, FILCH_READ);     /* a quarter in */
    add_one(graph, fold, quarters, 2, FILCH_READ);     /* a quarter in */
    assert_ok(filch_graph_unpartition(graph, halves, quarters));
    add_one(graph, add, halves, 0, FILCH_READWRITE); /* … for this: a half in */
    add_one(graph, fold, halves, 1, FILCH_READ);     /* is there */
    assert_ok(filch_graph_partition(graph, halves, quarters));
    add_one(graph, fold, quarters, 3, FILCH_READ); /* a quarter in; its half is home */
    filch_device_stats stats = moved(graph, &info);
    /* Behind both halves and quarter 0; before all quarters, and half 0. */
    assert_int_equal(graph->own_count, 8);
    assert_int_equal(info.total, 8);
    assert_int_equal(info.done, 8);
    assert_int_equal(stats.bytes_in, 3 * half + 4 * quarter + sizeof one + sizeof spare);
    assert_int_equal(stats.bytes_out, 2 * half + quarter + sizeof spare);
    assert_ok(filch_data_acquire(halves, FILCH_READ));
    for (uint64_t i = 0; i < LONG; i++)
        assert_int_equal(line[i], i + (i < QUARTER ? 6 : i < HALF ? 4 : 2));
    assert_ok(filch_data_release(halves));
    stop();
}

/* What is partitioned to the end is given back: to the device where it is next needed. */
static void what_is_left_partitioned_is_home_in_the_end(void **state)
{
    (void)state;
    for (int is_managed = 0; is_managed < 2; is_managed++) {
        start("cuda:0", "{\"devices\": [{}]}", 0);
        make_line(is_managed ? FILCH_DATA_MANAGED : 0);
        filch_graph *graph = NULL, *after = NULL;
        filch_job_info info;
        assert_ok(filch_graph_create(runtime, NULL, &graph));
        assert_ok(filch_graph_create(runtime, NULL, &after));
        assert_ok(filch_graph_partition(graph, halves, quarters));
        add_one(graph, add, quarters, 1, FILCH_READWRITE);
        add_one(after, add, halves, 0, FILCH_READWRITE);
        for (uint64_t round = 0; round < RUNS; round++) {
            uint64_t stale = is_managed && round != 0 ? HALF : 0; /* on the device since */
            filch_device_stats stats = moved(graph, &info);
            assert_int_equal(stats.bytes_out, (stale + QUARTER) * sizeof *line);
            (void)moved(after, &info);
        }
        assert_ok(filch_data_acquire(halves, FILCH_READ));
        for (uint64_t i = 0; i < LONG; i++)
            assert_int_equal(line[i], i + RUNS * (i < QUARTER ? 2u : i < HALF ? 4u : 0u));
        assert_ok(filch_data_release(halves));
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_tilings_give_what_one_after_the_other_gives),
        cmocka_unit_test(what_moves_is_what_was_written),
        cmocka_unit_test(what_is_left_partitioned_is_home_in_the_end),
    };
    return cmocka_run_group_tests_name("tilings", tests, NULL, NULL);
}
