/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that commute and tasks that reduce, on GPUs, slices and cores: random graphs against a
 * sequential executor, and what they move. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "make.h"
#include "random.h"

enum { HANDLES = 3, TILES = 3, TILE = 16, N = TILES * TILE, TASKS = 60, RUNS = 3, CASES = 12 };
enum { LARGE = 2048 }; /* elements of a tile */

#define IMAGE "FAKECUBIN arch=90 entry=spread,blend,zero,gather"

static filch_runtime *runtime;
static filch_codelet *spread, *blend, *zero, *gather;
static uint64_t buffers[HANDLES][N], shadows[HANDLES][N];
static filch_data *handles[HANDLES];
static _Atomic int inside[HANDLES * TILES], overlaps;

typedef struct arguments {
    uint64_t factor;
    _Atomic int *inside; /* null: several may run at once */
} arguments;

/* --- What tasks do --- */

static void add_to(const uint64_t *from, uint64_t *to, uint64_t factor)
{
    for (int i = 0; i < TILE; i++)
        to[i] += factor * (from[i] + 1);
}

static void blend_to(const uint64_t *from, uint64_t *to, uint64_t factor)
{
    for (int i = 0; i < TILE; i++)
        to[i] = 31 * to[i] + factor * from[i] + 7;
}

/* spread(from, to): adds. */
static int run_spread(const filch_call *call)
{
    const arguments *args = call->args;
    if (args->inside != NULL && atomic_fetch_add(args->inside, 1) != 0)
        atomic_fetch_add(&overlaps, 1);
    add_to(call->views[0].ptr, call->views[1].ptr, args->factor);
    if (args->inside != NULL)
        atomic_fetch_sub(args->inside, 1);
    return 0;
}

/* blend(from, to): must come in order. */
static int run_blend(const filch_call *call)
{
    const arguments *args = call->args;
    blend_to(call->views[0].ptr, call->views[1].ptr, args->factor);
    return 0;
}

/* zero(to) */
static int run_zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

/* gather(to, from): adds what was added elsewhere. */
static int run_gather(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] += from[i];
    return 0;
}

/* --- Making things --- */

static filch_codelet *codelet(const char *entry, filch_host_fn host, uint32_t arg_size)
{
    return codelet_of(runtime, IMAGE, entry, host, arg_size);
}

static void start(const char *devices, const char *driver, uint32_t flags)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    fakecuda_register_filch("spread", run_spread, 2, false, sizeof(arguments));
    fakecuda_register_filch("blend", run_blend, 2, false, sizeof(arguments));
    fakecuda_register_filch("zero", run_zero, 1, false, 0);
    fakecuda_register_filch("gather", run_gather, 2, false, 0);
    config.devices = devices;
    runtime = runtime_of(&config);
    spread = codelet("spread", run_spread, sizeof(arguments));
    blend = codelet("blend", run_blend, sizeof(arguments));
    zero = codelet("zero", run_zero, 0);
    gather = codelet("gather", run_gather, 0);
    for (int h = 0; h < HANDLES; h++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = buffers[h];
        desc.element = sizeof(uint64_t);
        desc.rows = N;
        desc.tile_rows = TILE;
        desc.flags = flags | (h == 1 ? FILCH_DATA_ORDERED : 0);
        assert_ok(filch_data_create(runtime, &desc, &handles[h]));
        assert_ok(filch_data_reduction(handles[h], zero, gather));
        for (int i = 0; i < N; i++)
            buffers[h][i] = shadows[h][i] = (uint64_t)(100 * h + i);
    }
    atomic_store(&overlaps, 0);
}

static void stop(void)
{
    assert_int_equal(atomic_load(&overlaps), 0);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

typedef struct step {
    uint32_t from, from_tile, to, to_tile;
    filch_access_mode mode;
    uint64_t factor;
} step;

static void add_step(filch_graph *graph, const step *s)
{
    bool orders = s->mode == FILCH_READWRITE;
    const arguments args = {s->factor,
                            s->mode == FILCH_COMMUTE ? &inside[s->to * TILES + s->to_tile] : NULL};
    const filch_access accesses[] = {
        {.data = handles[s->from], .row = s->from_tile, .mode = FILCH_READ},
        {.data = handles[s->to], .row = s->to_tile, .mode = s->mode},
    };
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = orders ? blend : spread;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static void play_step(const step *s)
{
    const uint64_t *from = &shadows[s->from][s->from_tile * TILE];
    uint64_t *to = &shadows[s->to][s->to_tile * TILE];
    (s->mode == FILCH_READWRITE ? blend_to : add_to)(from, to, s->factor);
}

static step random_step(fl_random *random)
{
    static const filch_access_mode modes[] = {FILCH_READWRITE, FILCH_COMMUTE, FILCH_COMMUTE,
                                              FILCH_COMMUTE,   FILCH_REDUCE,  FILCH_REDUCE,
                                              FILCH_REDUCE};
    step s = {.to = fl_random_below(random, HANDLES),
              .to_tile = fl_random_below(random, TILES),
              .from_tile = fl_random_below(random, TILES),
              .mode = modes[fl_random_below(random, 7)],
              .factor = fl_random_next(random)};
    s.from = (s.to + 1 + fl_random_below(random, HANDLES - 1)) % HANDLES;
    return s;
}

static void check_bytes(uint32_t flags)
{
    for (int h = 0; h < HANDLES; h++) {
        if (flags != 0)
            assert_ok(filch_data_acquire(handles[h], FILCH_READ));
        assert_memory_equal(buffers[h], shadows[h], sizeof buffers[h]);
        if (flags != 0)
            assert_ok(filch_data_release(handles[h]));
    }
}

/* --- The tests --- */

static void run_closed(fl_random *random, uint32_t flags)
{
    step steps[TASKS];
    filch_graph *graph = NULL;
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    for (int i = 0; i < TASKS; i++) {
        steps[i] = random_step(random);
        add_step(graph, &steps[i]);
    }
    for (int run = 0; run < RUNS; run++) {
        finish(submit(graph), FILCH_OK);
        for (int i = 0; i < TASKS; i++)
            play_step(&steps[i]);
        check_bytes(flags);
    }
    assert_ok(filch_graph_destroy(graph));
}

static void run_open(fl_random *random, uint32_t flags)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.kind = FILCH_GRAPH_OPEN;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    filch_job *job = submit(graph);
    for (int i = 0; i < TASKS; i++) {
        const step s = random_step(random);
        add_step(graph, &s);
        play_step(&s);
    }
    assert_ok(filch_graph_close(graph));
    finish(job, FILCH_OK);
    check_bytes(flags);
    assert_ok(filch_graph_destroy(graph));
}

static void random_graphs_give_what_one_after_the_other_gives(void **state)
{
    static const struct {
        const char *devices, *driver;
    } pools[] = {
        {"cuda:0", "{\"devices\": [{}]}"},
        {"cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}]}"},
        {"cuda:0,cuda:1,host:2", "{\"devices\": [{\"count\": 2}], \"kernel_ns\": 20000}"},
        {"cuda:0/44+44,host:1", "{\"devices\": [{}], \"kernel_ns\": 5000}"},
        {"cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1, "
                          "\"peer\": false}], \"kernel_ns\": 3000}"},
        {"host:2,cuda:0", "{\"devices\": [{}], \"kernel_ns\": 100000}"},
    };
    (void)state;
    for (size_t p = 0; p < sizeof pools / sizeof pools[0]; p++) {
        for (uint64_t seed = 0; seed < CASES; seed++) {
            fl_random random;
            uint32_t flags = seed % 2 != 0 ? FILCH_DATA_MANAGED : 0;
            fl_random_init(&random, seed, p);
            start(pools[p].devices, pools[p].driver, flags);
            run_closed(&random, flags);
            run_open(&random, flags);
            stop();
        }
    }
}

/* Each adds to one tile of an unmanaged handle, maybe behind or in front of a task that writes the
 * tile alone. The tile goes home once. */
static void the_last_of_a_group_sends_the_tile_home(void **state)
{
    static const filch_access_mode modes[] = {FILCH_COMMUTE, FILCH_REDUCE};
    (void)state;
    for (int m = 0; m < 8; m++) {
        filch_graph *graph = NULL;
        const bool is_behind = (m & 2) != 0, is_before = (m & 4) != 0;
        const uint32_t tasks = 20u + is_behind + is_before;
        const step s = {.from = 0, .to = 1, .mode = modes[m % 2], .factor = 3};
        const step alone = {.from = 0, .to = 1, .mode = FILCH_READWRITE, .factor = 5};
        start("cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}]}", 0);
        assert_ok(filch_graph_create(runtime, NULL, &graph));
        if (is_behind)
            add_step(graph, &alone);
        for (int i = 0; i < 20; i++)
            add_step(graph, &s);
        if (is_before)
            add_step(graph, &alone);
        for (int run = 0; run < RUNS; run++) {
            filch_job *job = submit(graph);
            filch_job_info info = {.size = sizeof info};
            filch_device_stats stats[2];
            assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
            assert_ok(filch_job_stats(job, &info, stats, 2));
            assert_int_equal(stats[0].bytes_out + stats[1].bytes_out, TILE * sizeof(uint64_t));
            assert_int_equal(info.total, tasks);
            assert_int_equal(info.done, tasks);
            assert_ok(filch_job_release(job));
            if (is_behind)
                play_step(&alone);
            for (int i = 0; i < 20; i++)
                play_step(&s);
            if (is_before)
                play_step(&alone);
            check_bytes(0);
        }
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

static filch_status add_reducing_to(filch_graph *graph, filch_codelet *reducer, filch_data *to)
{
    const arguments args = {3, NULL};
    const filch_access accesses[] = {{.data = handles[0], .mode = FILCH_READ},
                                     {.data = to, .mode = FILCH_REDUCE}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = reducer;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = 2;
    return filch_graph_add(graph, &desc, NULL);
}

static filch_status add_reducing(filch_graph *graph, filch_codelet *reducer)
{
    return add_reducing_to(graph, reducer, handles[1]);
}

/* A GPU has room for a tile, but not for a partial result beside it: what combines them runs where
 * there is room, or the task is refused. */
static void a_combination_needs_room_for_two(void **state)
{
    static uint64_t large[LARGE];
    static const char *const devices[] = {"cuda:0", "cuda:0,host:1"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        filch_error error = FILCH_ERROR_INIT;
        filch_graph *graph = NULL;
        filch_data *to = NULL;
        (void)setenv("FILCH_MEMORY_LIMIT", "24K", 1);
        start(devices[d], "{\"devices\": [{}]}", 0);
        (void)unsetenv("FILCH_MEMORY_LIMIT");
        filch_codelet *gpu_spread = codelet("spread", NULL, sizeof(arguments));
        memset(large, 0, sizeof large);
        desc.ptr = large;
        desc.element = sizeof *large;
        desc.rows = LARGE;
        assert_ok(filch_data_create(runtime, &desc, &to));
        assert_ok(filch_data_reduction(to, zero, gather));
        assert_ok(filch_graph_create(runtime, NULL, &graph));
        if (d == 0) {
            assert_int_equal(add_reducing_to(graph, gpu_spread, to), FILCH_NO_DEVICE_MEMORY);
            assert_ok(filch_runtime_error(runtime, &error));
            assert_non_null(strstr(error.text, "access 1: 'gather', which combines"));
            assert_non_null(strstr(error.text, "needs 32768 bytes"));
        }
        for (int i = 0; i < 10 && d == 1; i++)
            assert_ok(add_reducing_to(graph, gpu_spread, to));
        for (int run = 0; run < RUNS && d == 1; run++)
            finish(submit(graph), FILCH_OK);
        for (int i = 0; i < TILE; i++)
            assert_int_equal(large[i], d == 0 ? 0 : RUNS * 10 * 3 * (shadows[0][i] + 1));
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

/* Tasks that reduce go where the neutral element can be made; combining may be done elsewhere. */
static void a_reduction_needs_its_neutral_element_where_it_runs(void **state)
{
    (void)state;
    start("cuda:0,host:1", "{\"devices\": [{}]}", 0);
    filch_graph *graph = NULL;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *host_gather = NULL;
    filch_codelet *gpu_zero = codelet("zero", NULL, 0);
    filch_codelet *gpu_spread = codelet("spread", NULL, sizeof(arguments));
    desc.name = "gather";
    desc.host = run_gather;
    assert_ok(filch_codelet_create(runtime, &desc, &host_gather));
    assert_ok(filch_data_reduction(handles[1], gpu_zero, host_gather));
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    assert_int_equal(add_reducing(graph, spread), FILCH_NO_DEVICE);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_runtime_error(runtime, &error));
    assert_non_null(strstr(error.text, "neutral element"));
    for (int i = 0; i < 10; i++)
        assert_ok(add_reducing(graph, gpu_spread));
    finish(submit(graph), FILCH_OK);
    for (int i = 0; i < TILE; i++)
        assert_int_equal(buffers[1][i], shadows[1][i] + 10 * 3 * (shadows[0][i] + 1));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_give_what_one_after_the_other_gives),
        cmocka_unit_test(the_last_of_a_group_sends_the_tile_home),
        cmocka_unit_test(a_reduction_needs_its_neutral_element_where_it_runs),
        cmocka_unit_test(a_combination_needs_room_for_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
