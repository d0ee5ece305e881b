/* SPDX-License-Identifier: Apache-2.0 */
/* Temporaries on GPUs, slices and cores: random graphs against a sequential executor, and what
 * memory they need. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "count.h"
#include "graph/build/graph.h"
#include "make.h"
#include "memory/tiles/tiles.h"
#include "random.h"

enum {
    N = 64, /* elements a tile of the random graphs */
    TEMPORARIES = 4,
    MOST_TILES = 3,
    HANDLES = TEMPORARIES + 1, /* the last has a buffer */
    TASKS = 70,
    RUNS = 3,
    CASES = TEST_ROUNDS(10),
    LONG = 8192, /* elements a tile of the chains */
    LONG_BYTES = LONG * sizeof(uint64_t),
    STEPS = 60,
    LIVE = 3
};

#define IMAGE "FAKECUBIN arch=90 entry=put,stir,add,zero,gather"

static filch_runtime *runtime;
static filch_codelet *put, *stir, *add, *zero, *gather;
static filch_data *handles[HANDLES];
static uint32_t tiles_of[HANDLES];
static uint64_t buffer[MOST_TILES * N];
static uint64_t shadow[HANDLES][MOST_TILES * N];

/* --- What tasks do --- */

static void do_put(uint64_t *to, uint64_t count, uint64_t factor)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = factor * (i + 3);
}

static void do_stir(const uint64_t *from, uint64_t *to, uint64_t count, uint64_t factor,
                    bool overwrites)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = 31 * from[i] + factor * (i + 1) + (overwrites ? 0 : 7 * to[i]);
}

static void do_add(uint64_t *to, uint64_t count, uint64_t factor)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] += factor ^ i;
}

/* The lowest bit of a factor tells stir whether it overwrites. */
static bool overwrites(uint64_t factor)
{
    return (factor & 1) != 0;
}

static int run_put(const filch_call *call)
{
    do_put(call->views[0].ptr, call->views[0].rows, *(const uint64_t *)call->args);
    return 0;
}

static int run_stir(const filch_call *call)
{
    uint64_t factor = *(const uint64_t *)call->args;
    do_stir(call->views[0].ptr, call->views[1].ptr, call->views[1].rows, factor,
            overwrites(factor));
    return 0;
}

static int run_add(const filch_call *call)
{
    do_add(call->views[0].ptr, call->views[0].rows, *(const uint64_t *)call->args);
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
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] += from[i];
    return 0;
}

/* --- Making things --- */

static filch_codelet *codelet(const char *entry, filch_host_fn host, uint32_t views,
                              uint32_t arg_size)
{
    fakecuda_register_filch(entry, host, views, false, arg_size);
    return codelet_of(runtime, IMAGE, entry, host, arg_size);
}

static void start(const char *devices, const char *driver, uint64_t limit,
                  const filch_allocator *allocator)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    config.devices = devices;
    config.memory_limit = limit;
    config.allocator = allocator;
    runtime = runtime_of(&config);
    put = codelet("put", run_put, 1, sizeof(uint64_t));
    stir = codelet("stir", run_stir, 2, sizeof(uint64_t));
    add = codelet("add", run_add, 1, sizeof(uint64_t));
    zero = codelet("zero", run_zero, 1, 0);
    gather = codelet("gather", run_gather, 2, 0);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_data *temporary(uint64_t tiles, uint64_t rows, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *made = NULL;
    desc.element = sizeof(uint64_t);
    desc.rows = tiles * rows;
    desc.tile_rows = rows;
    desc.flags = flags;
    desc.label = "t";
    assert_ok(filch_data_create(runtime, &desc, &made));
    return made;
}

static void make_handles(fl_random *random)
{
    for (uint32_t h = 0; h < HANDLES; h++) {
        uint32_t ordered = fl_random_below(random, 2) != 0 ? FILCH_DATA_ORDERED : 0;
        tiles_of[h] = h < TEMPORARIES ? 1 + fl_random_below(random, MOST_TILES) : MOST_TILES;
        handles[h] = h < TEMPORARIES ? temporary(tiles_of[h], N, FILCH_DATA_TEMPORARY | ordered)
                                     : vector_of(runtime, buffer, MOST_TILES * N, N, ordered);
        assert_ok(filch_data_reduction(handles[h], zero, gather));
    }
    for (uint32_t i = 0; i < MOST_TILES * N; i++)
        buffer[i] = shadow[TEMPORARIES][i] = i;
}

/* No tile has memory. */
static void check_vacant(const filch_data *data)
{
    const fl_replicas *replicas = fl_load_acquire(&((filch_data *)(uintptr_t)data)->replicas);
    for (uint32_t tile = 0; tile < fl_data_tile_count(data); tile++) {
        assert_null(fl_load_relaxed(&data->tile_hosts[tile]));
        for (uint32_t place = 0; replicas != NULL && place < replicas->places; place++)
            assert_null(fl_replica_at(replicas, tile, place)->block);
    }
}

/* --- Random programs --- */

typedef enum { PUT, STIR, ADD, DISCARD, KINDS } kind;

typedef struct step {
    kind what;
    uint32_t from, from_tile, to, to_tile;
    filch_access_mode mode;
    uint64_t factor;
} step;

/* Tells which tiles have contents at a point of a program. */
typedef struct alive {
    bool at[HANDLES][MOST_TILES];
} alive;

static alive nothing(void)
{
    alive a = {.at = {{false}}};
    for (uint32_t t = 0; t < MOST_TILES; t++)
        a.at[TEMPORARIES][t] = true;
    return a;
}

static void draw_tile(fl_random *random, const alive *a, bool has_contents, uint32_t *handle,
                      uint32_t *tile)
{
    do {
        *handle = fl_random_below(random, HANDLES);
        *tile = fl_random_below(random, tiles_of[*handle]);
    } while (has_contents && !a->at[*handle][*tile]);
}

static step draw(fl_random *random, alive *a)
{
    step s = {.what = fl_random_below(random, 12) == 0 ? DISCARD
                                                       : (kind)fl_random_below(random, DISCARD),
              .factor = fl_random_next(random)};
    bool has_contents = s.what == ADD || (s.what == STIR && !overwrites(s.factor));
    draw_tile(random, a, true, &s.from, &s.from_tile);
    do {
        draw_tile(random, a, has_contents, &s.to, &s.to_tile);
    } while (s.what == STIR && s.to == s.from && s.to_tile == s.from_tile);
    s.mode = s.what == ADD  ? (fl_random_below(random, 2) != 0 ? FILCH_COMMUTE : FILCH_REDUCE)
             : has_contents ? FILCH_READWRITE
                            : FILCH_WRITE;
    if (s.what == DISCARD) {
        s.to = fl_random_below(random, TEMPORARIES);
        memset(a->at[s.to], 0, sizeof a->at[s.to]);
    } else {
        a->at[s.to][s.to_tile] = true;
    }
    return s;
}

static void add_step(filch_graph *graph, const step *s)
{
    filch_codelet *const codelets[] = {put, stir, add};
    const filch_access accesses[] = {
        {.data = handles[s->from], .row = s->from_tile, .mode = FILCH_READ},
        {.data = handles[s->to], .row = s->to_tile, .mode = s->mode},
    };
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    if (s->what == DISCARD) {
        assert_ok(filch_graph_discard(graph, handles[s->to]));
        return;
    }
    desc.codelet = codelets[s->what];
    desc.args = &s->factor;
    desc.accesses = s->what == STIR ? accesses : &accesses[1];
    desc.access_count = s->what == STIR ? 2 : 1;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static void play(const step *s)
{
    uint64_t *to = &shadow[s->to][s->to_tile * N];
    if (s->what == PUT)
        do_put(to, N, s->factor);
    else if (s->what == STIR)
        do_stir(&shadow[s->from][s->from_tile * N], to, N, s->factor, overwrites(s->factor));
    else if (s->what == ADD)
        do_add(to, N, s->factor);
}

static void check_end(void)
{
    assert_memory_equal(buffer, shadow[TEMPORARIES], sizeof buffer);
    for (uint32_t h = 0; h < TEMPORARIES; h++)
        check_vacant(handles[h]);
}

/* Two graphs that use the handles are in flight at once, the one's runs in turn with the other's.
 */
static void run_closed(fl_random *random)
{
    static step steps[2][TASKS];
    filch_graph *graphs[2];
    for (int g = 0; g < 2; g++) {
        alive a = nothing();
        graphs[g] = graph_of(runtime);
        for (int i = 0; i < TASKS; i++) {
            steps[g][i] = draw(random, &a);
            add_step(graphs[g], &steps[g][i]);
        }
    }
    for (int round = 0; round < RUNS; round++) {
        filch_job *jobs[4];
        for (int j = 0; j < 4; j++) {
            jobs[j] = submit(graphs[j % 2]);
            if (j == 1) { /* a graph is submitted again once its run is over */
                finish(jobs[0], FILCH_OK);
                finish(jobs[1], FILCH_OK);
            }
            for (int i = 0; i < TASKS; i++)
                play(&steps[j % 2][i]);
        }
        finish(jobs[2], FILCH_OK);
        finish(jobs[3], FILCH_OK);
        check_end();
    }
    assert_ok(filch_graph_destroy(graphs[0]));
    assert_ok(filch_graph_destroy(graphs[1]));
}

static void run_open(fl_random *random)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    alive a = nothing();
    desc.kind = FILCH_GRAPH_OPEN;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    filch_job *job = submit(graph);
    for (int i = 0; i < 2 * TASKS; i++) {
        const step s = draw(random, &a);
        add_step(graph, &s);
        play(&s);
    }
    assert_ok(filch_graph_close(graph));
    finish(job, FILCH_OK);
    check_end();
    assert_ok(filch_graph_destroy(graph));
}

/* A job that is cancelled somewhere leaves no memory behind. */
static void run_cancelled(fl_random *random)
{
    filch_graph *graph = graph_of(runtime);
    alive a = nothing();
    for (int i = 0; i < TASKS; i++) {
        const step s = draw(random, &a);
        add_step(graph, &s);
    }
    for (int round = 0; round < RUNS; round++) {
        filch_job *job = submit(graph);
        (void)filch_job_wait(job, fl_random_unit(random) * 2e-4);
        assert_ok(filch_job_cancel(job));
        filch_status status = filch_job_wait(job, SOON);
        assert_true(status == FILCH_OK || status == FILCH_CANCELLED);
        assert_ok(filch_job_release(job));
        for (uint32_t h = 0; h < TEMPORARIES; h++)
            check_vacant(handles[h]);
    }
    assert_ok(filch_graph_destroy(graph));
}

static void run_mixed(fl_random *random)
{
    static step steps[2][TASKS];
    filch_graph *graphs[2];
    for (int g = 0; g < 2; g++) {
        alive a = nothing();
        graphs[g] = graph_of(runtime);
        for (int i = 0; i < TASKS; i++) {
            do {
                alive before = a;
                steps[g][i] = draw(random, &a);
                if (g == 1 && steps[g][i].what != DISCARD && steps[g][i].to == TEMPORARIES)
                    a = before;
            } while (g == 1 && steps[g][i].what != DISCARD && steps[g][i].to == TEMPORARIES);
            add_step(graphs[g], &steps[g][i]);
        }
    }
    for (int round = 0; round < 4 * RUNS; round++) {
        filch_job *a = submit(graphs[0]), *b = submit(graphs[1]);
        (void)filch_job_wait(a, fl_random_unit(random) * 4e-4);
        assert_ok(filch_job_cancel(b));
        for (int i = 0; i < TASKS; i++)
            play(&steps[0][i]);
        finish(a, FILCH_OK);
        filch_status status = filch_job_wait(b, SOON);
        assert_true(status == FILCH_OK || status == FILCH_CANCELLED);
        assert_ok(filch_job_release(b));
        check_end();
    }
    assert_ok(filch_graph_destroy(graphs[0]));
    assert_ok(filch_graph_destroy(graphs[1]));
}

static void random_graphs_give_what_one_after_the_other_gives(void **state)
{
    static const struct {
        const char *devices, *driver;
        uint64_t limit;
    } pools[] = {
        {"host:3", "{\"devices\": [{}]}", 0},
        {"cuda:0", "{\"devices\": [{}]}", 0},
        {"cuda:0", "{\"devices\": [{}], \"kernel_ns\": 5000}", 4096},
        {"cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}]}", 0},
        {"cuda:0,cuda:1,host:2", "{\"devices\": [{\"count\": 2}], \"kernel_ns\": 20000}", 0},
        {"cuda:0/44+44,host:1", "{\"devices\": [{}], \"kernel_ns\": 5000}", 0},
        {"cuda:0,cuda:1",
         "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1, \"peer\": false}], "
         "\"kernel_ns\": 3000}",
         0},
        {"host:2,cuda:0", "{\"devices\": [{}], \"kernel_ns\": 100000}", 0},
        {"cuda:0,host:1", "{\"devices\": [{}], \"kernel_ns\": 2000}", 4096},
    };
    (void)state;
    for (size_t p = 0; p < sizeof pools / sizeof pools[0]; p++) {
        for (uint64_t seed = 0; seed < CASES; seed++) {
            fl_random random;
            fl_random_init(&random, seed, p);
            start(pools[p].devices, pools[p].driver, pools[p].limit, NULL);
            make_handles(&random);
            run_closed(&random);
            run_open(&random);
            run_mixed(&random);
            run_cancelled(&random);
            stop();
        }
    }
}

/* --- Memory --- */

static uint64_t line[LONG];

/* A chain through the tiles of a handle, from nothing to a vector of the caller's. */
static filch_graph *chain(filch_data *data, filch_data *to)
{
    filch_graph *graph = graph_of(runtime);
    for (uint32_t i = 0; i <= STEPS; i++) {
        filch_access accesses[] = {
            {.data = data, .row = i != 0 ? i - 1 : 0, .mode = i != 0 ? FILCH_READ : FILCH_WRITE},
            {.data = i < STEPS ? data : to, .row = i < STEPS ? i : 0, .mode = FILCH_WRITE},
        };
        uint64_t factor = 2 * i + 1;
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = i != 0 ? stir : put;
        desc.args = &factor;
        desc.accesses = accesses;
        desc.access_count = i != 0 ? 2 : 1;
        assert_ok(filch_graph_add(graph, &desc, NULL));
    }
    return graph;
}

static void check_line(void)
{
    static uint64_t model[LONG];
    do_put(model, LONG, 1);
    for (uint64_t i = 1; i <= STEPS; i++)
        do_stir(model, model, LONG, 2 * i + 1, true);
    assert_memory_equal(line, model, sizeof line);
    memset(line, 0, sizeof line);
}

typedef struct figures {
    uint64_t peak, out, in, evicted;
} figures;

/* Runs a chain a few times on a GPU. */
static figures run_chain(const char *driver, uint32_t flags, uint64_t limit)
{
    figures f = {0};
    start("cuda:0", driver, limit, NULL);
    filch_data *to = vector_of(runtime, line, LONG, LONG, 0);
    filch_data *data = temporary(STEPS, LONG, flags);
    filch_graph *graph = chain(data, to);
    for (int run = 0; run < RUNS; run++) {
        filch_job_info info = {.size = sizeof info};
        filch_device_stats stats;
        filch_job *job = submit(graph);
        await_result(job, FILCH_OK);
        assert_ok(filch_job_stats(job, &info, &stats, 1));
        assert_ok(filch_job_release(job));
        f.out += stats.bytes_out;
        f.in += stats.bytes_in;
        f.evicted += stats.evicted;
        check_line();
    }
    filch_memory_stats memory = {.size = sizeof memory};
    assert_ok(filch_device_memory(runtime, 0, &memory));
    f.peak = memory.requested_peak;
    assert_ok(filch_graph_destroy(graph));
    stop();
    return f;
}

/* Where tasks are put behind others on the device, too: three tiles, and the chain's end. A handle
 * without a buffer needs all. */
static void a_chain_needs_the_memory_of_the_live_tiles(void **state)
{
    static const char *const drivers[] = {"{\"devices\": [{}]}",
                                          "{\"devices\": [{}], \"kernel_ns\": 50000}",
                                          "{\"devices\": [{}], \"kernel_ns\": 500000}"};
    (void)state;
    for (size_t d = 0; d < sizeof drivers / sizeof drivers[0]; d++) {
        figures kept = run_chain(drivers[d], FILCH_DATA_NO_BUFFER, 0);
        figures temporary = run_chain(drivers[d], FILCH_DATA_TEMPORARY, 0);
        assert_true(kept.peak >= STEPS * LONG_BYTES);
        assert_true(temporary.peak >= 2 * LONG_BYTES);
        assert_true(temporary.peak <= (LIVE + 1) * LONG_BYTES);
        assert_int_equal(temporary.out, RUNS * LONG_BYTES); /* the result alone */
        assert_int_equal(temporary.in, 0);
        /* In so little memory nothing has to leave. */
        figures little = run_chain(drivers[d], FILCH_DATA_TEMPORARY, (LIVE + 2) * LONG_BYTES);
        assert_int_equal(little.evicted, 0);
        assert_int_equal(little.out, RUNS * LONG_BYTES);
    }
}

/* --- Short of memory --- */

static _Atomic int refuses; /* the host has no memory for a tile */

static void *take_memory(size_t size, size_t align, void *user)
{
    void *made = NULL;
    (void)user;
    if (atomic_load(&refuses) != 0 && size == LONG_BYTES)
        return NULL;
    return posix_memalign(&made, align < sizeof(void *) ? sizeof(void *) : align, size) == 0 ? made
                                                                                             : NULL;
}

static void give_memory(void *pointer, size_t size, size_t align, void *user)
{
    (void)size;
    (void)align;
    (void)user;
    free(pointer);
}

/* All tiles live at once, in the memory of a few: the others are in the host's meanwhile. */
static void what_has_no_room_waits_in_the_hosts_memory(void **state)
{
    const filch_allocator allocator = {take_memory, give_memory, NULL};
    (void)state;
    atomic_store(&refuses, 0);
    start("cuda:0", "{\"devices\": [{}], \"kernel_ns\": 5000}", 8 * LONG_BYTES, &allocator);
    filch_data *to = vector_of(runtime, line, LONG, LONG, 0),
               *data = temporary(STEPS, LONG, FILCH_DATA_TEMPORARY);
    filch_graph *graph = graph_of(runtime);
    for (uint32_t i = 0; i < STEPS; i++) {
        const filch_access access = {.data = data, .row = i, .mode = FILCH_WRITE};
        uint64_t factor = i;
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = put;
        desc.args = &factor;
        desc.accesses = &access;
        desc.access_count = 1;
        assert_ok(filch_graph_add(graph, &desc, NULL));
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        const filch_access accesses[] = {{.data = data, .row = i, .mode = FILCH_READ},
                                         {.data = to, .mode = FILCH_READWRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = gather;
        /* gather(to, from) */
        const filch_access turned[] = {accesses[1], accesses[0]};
        desc.accesses = turned;
        desc.access_count = 2;
        assert_ok(filch_graph_add(graph, &desc, NULL));
    }
    for (uint64_t run = 1; run <= RUNS; run++) {
        filch_job_info info = {.size = sizeof info};
        filch_device_stats stats;
        filch_error error = FILCH_ERROR_INIT;
        filch_job *job = submit(graph);
        await_result(job, FILCH_OK);
        assert_ok(filch_job_stats(job, &info, &stats, 1));
        assert_ok(filch_job_release(job));
        assert_true(stats.evicted != 0 && stats.bytes_evicted != 0);
        check_vacant(data);
        for (uint64_t i = 0; i < LONG; i += LONG / 9)
            assert_int_equal(line[i], run * (STEPS * (STEPS - 1) / 2) * (i + 3));
        atomic_store(&refuses, 1);
        job = submit(graph);
        await_result(job, FILCH_TASK_FAILED);
        assert_ok(filch_job_error(job, &error));
        assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
        assert_non_null(strstr(error.text, "of 't' on the host"));
        assert_ok(filch_job_release(job));
        check_vacant(data);
        atomic_store(&refuses, 0);
        for (uint64_t i = 0; i < LONG; i++) /* the failed job may have gathered some */
            line[i] = run * (STEPS * (STEPS - 1) / 2) * (i + 3);
    }
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* A GPU is lost in the middle of a chain: the job fails, its memory is given back, and the other
 * GPU runs the next job. */
static void what_is_lost_with_a_gpu_has_no_memory(void **state)
{
    (void)state;
    start("cuda:0,cuda:1",
          "{\"devices\": [{\"count\": 2}], \"kernel_ns\": 20000, \"failures\": [{\"call\": "
          "\"kernel\", \"nth\": 70, \"result\": 719, \"sticky\": true}]}",
          0, NULL);
    filch_data *to = vector_of(runtime, line, LONG, LONG, 0);
    filch_data *data = temporary(STEPS, LONG, FILCH_DATA_TEMPORARY);
    filch_graph *graph = chain(data, to);
    int failed = 0;
    for (int run = 0; run < RUNS; run++) {
        filch_job *job = submit(graph);
        filch_status status = filch_job_wait(job, SOON);
        assert_true(status == FILCH_OK || status == FILCH_TASK_FAILED);
        assert_ok(filch_job_release(job));
        failed += status != FILCH_OK;
        if (status == FILCH_OK)
            check_line();
        check_vacant(data);
    }
    assert_int_equal(failed, 1);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_give_what_one_after_the_other_gives),
        cmocka_unit_test(a_chain_needs_the_memory_of_the_live_tiles),
        cmocka_unit_test(what_has_no_room_waits_in_the_hosts_memory),
        cmocka_unit_test(what_is_lost_with_a_gpu_has_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
