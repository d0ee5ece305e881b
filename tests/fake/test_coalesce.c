/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles with short columns come with their neighbours (memory/tiles/coalesce.h): how many copies
 * that takes, and that what tasks see is right whatever was brought together. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fakecuda.h"
#include "filch/filch.h"
#include "patience.h"
#include "random.h"

#define IMAGE "FAKECUBIN arch=90 entry=fold(56,56),touch(56),put(56,56)"
#define ONE "{\"devices\": [{\"count\": 1}], \"copy_ns\": 20000}"
#define TWO "{\"devices\": [{\"count\": 2}], \"copy_ns\": 20000}"
#define SOON PATIENCE

/* Tiles of 32 x 4 elements: columns of 256 bytes, as short as run together. */
enum { DOWN = 8, ACROSS = 6, TILE_ROWS = 32, TILE_COLS = 4 };
enum { ROWS = DOWN * TILE_ROWS, COLS = ACROSS * TILE_COLS, LD = ROWS + 8 };

static filch_runtime *runtime;
static filch_codelet *fold_codelet, *touch_codelet, *put_codelet;

#define assert_ok(call) assert_int_equal((call), FILCH_OK)

/* fold(a, b): b from all of a, which is of the same shape, and itself. */
static int fold(const filch_call *call)
{
    const filch_view *a = &call->views[0], *b = &call->views[1];

    for (uint64_t j = 0; j < b->cols; j++) {
        const uint64_t *from = (const uint64_t *)a->ptr + j * a->ld;
        uint64_t *to = (uint64_t *)b->ptr + j * b->ld;

        for (uint64_t i = 0; i < b->rows; i++)
            to[i] = to[i] * 6364136223846793005u + from[i] + i + 100 * j;
    }
    return 0;
}

/* Set by the tasks below. */
static atomic_int is_held, is_touched;

/* touch(a): every element. */
static int touch(const filch_call *call)
{
    const filch_view *a = &call->views[0];

    for (uint64_t j = 0; j < a->cols; j++)
        for (uint64_t i = 0; i < a->rows; i++)
            ((uint64_t *)a->ptr)[j * a->ld + i] += 1;
    return 0;
}

/* On a GPU. */
static int touch_there(const filch_call *call)
{
    int failed = touch(call);

    atomic_store(&is_touched, 1);
    return failed;
}

/* put(a, b): b from a alone. */
static int put(const filch_call *call)
{
    const filch_view *a = &call->views[0], *b = &call->views[1];

    for (uint64_t j = 0; j < b->cols; j++)
        for (uint64_t i = 0; i < b->rows; i++)
            ((uint64_t *)b->ptr)[j * b->ld + i] = ((const uint64_t *)a->ptr)[j * a->ld + i] * 3 + i;
    return 0;
}

static filch_codelet *codelet(const char *entry)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;

    cuda.image = IMAGE;
    cuda.image_bytes = sizeof IMAGE;
    cuda.entry = entry;
    desc.name = entry;
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &made));
    return made;
}

static void start(const char *devices, const char *driver, uint64_t limit)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;

    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    fakecuda_register_filch("fold", fold, 2, false, 0);
    fakecuda_register_filch("touch", touch_there, 1, false, 0);
    fakecuda_register_filch("put", put, 2, false, 0);
    config.devices = devices;
    config.memory_limit = limit;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK)
        fail_msg("%s", error.text);
    fold_codelet = codelet("fold");
    touch_codelet = codelet("touch");
    put_codelet = codelet("put");
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

typedef struct matrix {
    uint64_t *now, *wanted;
    filch_data *data;
} matrix;

static matrix make(uint64_t seed, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    matrix m = {calloc((size_t)LD * COLS, sizeof *m.now), calloc((size_t)LD * COLS, sizeof *m.now),
                NULL};

    assert_non_null(m.now);
    assert_non_null(m.wanted);
    for (uint64_t i = 0; i < (uint64_t)LD * COLS; i++)
        m.now[i] = m.wanted[i] = seed * 1000003 + i;
    desc.ptr = m.now;
    desc.element = sizeof *m.now;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.ld = LD;
    desc.tile_rows = TILE_ROWS;
    desc.tile_cols = TILE_COLS;
    desc.flags = flags;
    assert_ok(filch_data_create(runtime, &desc, &m.data));
    return m;
}

static void drop(matrix *m)
{
    assert_ok(filch_data_destroy(m->data));
    free(m->now);
    free(m->wanted);
}

static filch_view view(const matrix *m, uint32_t row, uint32_t col)
{
    return (filch_view){
        .ptr = m->wanted + (size_t)col * TILE_COLS * LD + (size_t)row * TILE_ROWS,
        .rows = TILE_ROWS,
        .cols = TILE_COLS,
        .ld = LD,
        .element = sizeof *m->wanted,
    };
}

/* A task on the graph, and the same on what is wanted. */
static void add_pair(filch_graph *graph, bool is_put, const matrix *a, const matrix *b,
                     const uint32_t at[4])
{
    const filch_access accesses[] = {
        {.data = a->data, .row = at[0], .col = at[1], .mode = FILCH_READ},
        {.data = b->data,
         .row = at[2],
         .col = at[3],
         .mode = is_put ? FILCH_WRITE : FILCH_READWRITE}};
    filch_view views[] = {view(a, at[0], at[1]), view(b, at[2], at[3])};
    const filch_call call = {.views = views, .view_count = 2};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;

    desc.codelet = is_put ? put_codelet : fold_codelet;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    (void)(is_put ? put : fold)(&call);
}

static void add_fold(filch_graph *graph, const matrix *a, const matrix *b, const uint32_t at[4])
{
    add_pair(graph, false, a, b, at);
}

static filch_graph *new_graph(void)
{
    filch_graph *graph = NULL;

    assert_ok(filch_graph_create(runtime, NULL, &graph));
    return graph;
}

static void run(filch_graph *graph)
{
    filch_job *job = NULL;
    filch_error error = FILCH_ERROR_INIT;

    assert_ok(filch_graph_submit(graph, NULL, &job));
    if (filch_job_wait(job, SOON) != FILCH_OK) {
        (void)filch_job_error(job, &error);
        fail_msg("%s", error.text);
    }
    assert_ok(filch_job_release(job));
}

static void compare(const matrix *m)
{
    assert_memory_equal(m->now, m->wanted, (size_t)LD * COLS * sizeof *m->now);
}

/* Down all columns, so that neighbours are used one after the other. */
static filch_graph *sweep(const matrix *a)
{
    filch_graph *graph = new_graph();

    for (uint32_t col = 0; col < ACROSS; col++)
        for (uint32_t row = 0; row < DOWN; row++) {
            const filch_access access = {
                .data = a->data, .row = row, .col = col, .mode = FILCH_READWRITE};
            filch_task_desc desc = FILCH_TASK_DESC_INIT;

            desc.codelet = touch_codelet;
            desc.accesses = &access;
            desc.access_count = 1;
            assert_ok(filch_graph_add(graph, &desc, NULL));
        }
    return graph;
}

static void sweep_wanted(const matrix *a)
{
    for (uint32_t col = 0; col < ACROSS; col++)
        for (uint32_t row = 0; row < DOWN; row++) {
            filch_view at = view(a, row, col);
            const filch_call call = {.views = &at, .view_count = 1};

            (void)touch(&call);
        }
}

/* One copy in for each column of tiles, in the first run and in the later ones, whose tiles have
 * memory already; home they come one by one. */
static void a_column_of_tiles_comes_at_once(void **state)
{
    (void)state;
    start("cuda:0", ONE, 0);
    matrix a = make(1, 0);
    filch_graph *graph = sweep(&a);
    for (uint32_t round = 0; round < 2; round++) {
        uint64_t before = fakecuda_count("cuMemcpy2DAsync");
        a.now[0] += round; /* the host's between jobs */
        a.wanted[0] += round;
        run(graph);
        sweep_wanted(&a);
        compare(&a);
        assert_int_equal(fakecuda_count("cuMemcpy2DAsync") - before, ACROSS + ACROSS * DOWN);
        assert_int_equal(fakecuda_bytes(-1, 0), (round + 1) * sizeof(uint64_t) * ROWS * COLS);
    }
    assert_ok(filch_graph_destroy(graph));
    drop(&a);
    stop();
}

/* What is overwritten next is not brought, though it is next to what is and used as soon. */
static void what_is_overwritten_stays(void **state)
{
    (void)state;
    start("cuda:0", ONE, 0);
    matrix a = make(1, 0), b = make(2, 0);
    filch_graph *graph = new_graph();
    const uint32_t half = DOWN / 2;
    for (uint32_t row = 0; row < DOWN; row++) /* those above are changed, those below put */
        add_pair(graph, row >= half, row >= half ? &b : &a, &a,
                 (const uint32_t[]){row >= half ? 0 : row, row >= half ? 0 : 1, row, 0});
    run(graph);
    compare(&a);
    assert_int_equal(fakecuda_bytes(-1, 0),
                     (2 * half + 1) * sizeof(uint64_t) * TILE_ROWS * TILE_COLS);
    assert_ok(filch_graph_destroy(graph));
    drop(&a);
    drop(&b);
    stop();
}

/* Polls, for two hundred seconds at least before it gives up. */
static int wait_until(atomic_int *flag)
{
    const struct timespec nap = {.tv_nsec = 100000};

    for (int i = 0; i < 2000000 && !atomic_load(flag); i++)
        (void)nanosleep(&nap, NULL);
    return atomic_load(flag) ? 0 : 1;
}

/* On the host: holds its tile until a kernel has run. */
static int hold(const filch_call *call)
{
    atomic_store(&is_held, 1);
    return wait_until(&is_touched) + touch(call);
}

/* On the host: ends when the other one is held. */
static int follow(const filch_call *call)
{
    return wait_until(&is_held) + touch(call);
}

static void add_touch(filch_graph *graph, filch_codelet *codelet, const matrix *a, uint32_t row)
{
    const filch_access access = {.data = a->data, .row = row, .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_view at = view(a, row, 0);
    const filch_call call = {.views = &at, .view_count = 1};

    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    (void)touch(&call);
}

/* A neighbour that a core of the host is writing is not brought: it comes once, when that is over.
 */
static void what_the_host_writes_stays(void **state)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *holder = NULL, *follower = NULL;
    (void)state;
    start("cuda:0,host:2", ONE, 0);
    desc.name = "hold";
    desc.host = hold;
    assert_ok(filch_codelet_create(runtime, &desc, &holder));
    desc.name = "follow";
    desc.host = follow;
    assert_ok(filch_codelet_create(runtime, &desc, &follower));
    matrix a = make(1, 0);
    filch_graph *graph = new_graph();
    add_touch(graph, holder, &a, 1);
    add_touch(graph, follower, &a, 0);
    add_touch(graph, touch_codelet, &a, 0);
    add_touch(graph, touch_codelet, &a, 1);
    atomic_store(&is_held, 0);
    atomic_store(&is_touched, 0);
    run(graph);
    compare(&a);
    assert_int_equal(fakecuda_bytes(-1, 0), 2 * sizeof(uint64_t) * TILE_ROWS * TILE_COLS);
    assert_ok(filch_graph_destroy(graph));
    drop(&a);
    stop();
}

/* Tiles that have memory of their own, from a graph that uses them far apart, come together for one
 * that uses them together. */
static void tiles_move_together_when_that_pays(void **state)
{
    enum { BETWEEN = 100 };
    (void)state;
    start("cuda:0", ONE, 0);
    matrix a = make(1, 0), b = make(2, 0);
    filch_graph *apart = new_graph(), *graph = sweep(&a);
    for (uint32_t row = 0; row < DOWN; row++) {
        const uint32_t at[] = {row, 0, 0, 1};
        add_fold(apart, &a, &b, at);
        for (uint32_t k = 0; k < BETWEEN; k++)
            add_fold(apart, &b, &b, (const uint32_t[]){0, 2, 0, 1});
    }
    run(apart);
    compare(&b);
    uint64_t before = fakecuda_count("cuMemcpy2DAsync");
    run(graph);
    sweep_wanted(&a);
    compare(&a);
    assert_int_equal(fakecuda_count("cuMemcpy2DAsync") - before, ACROSS + ACROSS * DOWN);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_graph_destroy(apart));
    drop(&a);
    drop(&b);
    stop();
}

/* Wider than the rule is for, or where what begins inside a block would not be aligned: alone. */
static void others_come_alone(void **state)
{
    static const uint64_t rows[] = {30, 8192};
    (void)state;
    start("cuda:0", ONE, 0);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        uint64_t *at = calloc(4 * rows[k], sizeof *at);
        matrix m = {.now = at};
        assert_non_null(at);
        desc.ptr = at;
        desc.element = sizeof *at;
        desc.rows = 4 * rows[k];
        desc.tile_rows = rows[k];
        assert_ok(filch_data_create(runtime, &desc, &m.data));
        filch_graph *graph = new_graph();
        for (uint32_t row = 0; row < 4; row++) {
            const filch_access access = {.data = m.data, .row = row, .mode = FILCH_READWRITE};
            filch_task_desc task = FILCH_TASK_DESC_INIT;
            task.codelet = touch_codelet;
            task.accesses = &access;
            task.access_count = 1;
            assert_ok(filch_graph_add(graph, &task, NULL));
        }
        uint64_t before = fakecuda_count("cuMemcpyHtoDAsync");
        run(graph);
        assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync") - before, 4);
        for (uint64_t i = 0; i < 4 * rows[k]; i++)
            assert_int_equal(at[i], 1);
        assert_ok(filch_graph_destroy(graph));
        assert_ok(filch_data_destroy(m.data));
        free(at);
    }
    stop();
}

/* A replay's kernels know where their tiles are and how their columns lie: when another graph has
 * put those together since, they are told anew. */
static void replays_see_tiles_that_moved_together(void **state)
{
    (void)state;
    (void)setenv("FILCH_REPLAY", "2", 1);
    start("cuda:0", ONE, 0);
    matrix a = make(1, FILCH_DATA_MANAGED);
    filch_graph *one = new_graph(), *all = sweep(&a);
    const filch_access access = {.data = a.data, .row = 3, .col = 1, .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = touch_codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_graph_add(one, &desc, NULL));
    for (uint32_t round = 0; round < 12; round++) {
        filch_view at = view(&a, 3, 1);
        const filch_call call = {.views = &at, .view_count = 1};
        run(one);
        (void)touch(&call);
        if (round % 4 == 3) {
            assert_ok(filch_data_acquire(a.data, FILCH_READWRITE));
            compare(&a);
            a.now[LD] += 1;
            a.wanted[LD] += 1;
            assert_ok(filch_data_release(a.data));
            run(all);
            sweep_wanted(&a);
        }
    }
    assert_ok(filch_data_acquire(a.data, FILCH_READ));
    compare(&a);
    assert_ok(filch_data_release(a.data));
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_graph_destroy(all));
    drop(&a);
    stop();
    (void)unsetenv("FILCH_REPLAY");
}

/* Random tasks on one and two GPUs and on slices of one, with enough memory and far too little,
 * again and again. Some write without reading: what one slice is about to write so, no other may
 * bring along with its neighbour, as that copy could come after the kernel. */
static void random_tasks_are_right(void **state)
{
    const char *given = getenv("FL_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t round = 0; round < 36; round++) {
        fl_random random;
        fl_random_init(&random, seed, round);
        start(round % 3 == 0 ? "cuda:0/88+24+8" : "cuda", round % 2 == 0 ? ONE : TWO,
              round % 4 < 2 ? 0 : (uint64_t)24 << 10);
        uint32_t flags = fl_random_below(&random, 2) != 0 ? FILCH_DATA_MANAGED : 0;
        matrix m[2] = {make(1, flags), make(2, flags)};
        for (uint32_t job = 0; job < 4; job++) {
            filch_graph *graph = new_graph();
            for (uint32_t task = 0; task < 60; task++) {
                /* Near each other, so that runs form. */
                const uint32_t at[] = {(uint32_t)fl_random_below(&random, DOWN),
                                       (uint32_t)fl_random_below(&random, 2),
                                       (uint32_t)fl_random_below(&random, DOWN),
                                       2 + (uint32_t)fl_random_below(&random, 2)};
                uint32_t from = (uint32_t)fl_random_below(&random, 2);
                add_pair(graph, fl_random_below(&random, 3) == 0, &m[from],
                         &m[fl_random_below(&random, 2)], at);
            }
            run(graph);
            for (uint32_t k = 0; k < 2; k++) {
                if (flags != 0)
                    assert_ok(filch_data_acquire(m[k].data, FILCH_READWRITE));
                compare(&m[k]);
                m[k].now[fl_random_below(&random, ROWS)] += 1;
                memcpy(m[k].wanted, m[k].now, (size_t)LD * COLS * sizeof *m[k].now);
                if (flags != 0)
                    assert_ok(filch_data_release(m[k].data));
            }
            assert_ok(filch_graph_destroy(graph));
        }
        drop(&m[0]);
        drop(&m[1]);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_of_tiles_comes_at_once),
        cmocka_unit_test(what_is_overwritten_stays),
        cmocka_unit_test(what_the_host_writes_stays),
        cmocka_unit_test(tiles_move_together_when_that_pays),
        cmocka_unit_test(others_come_alone),
        cmocka_unit_test(replays_see_tiles_that_moved_together),
        cmocka_unit_test(random_tasks_are_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
