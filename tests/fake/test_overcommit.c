/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose tiles need several times the memory of the GPUs, on the fake driver: right answers,
 * every job ends, and no more is moved than has to be. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "make.h"
#include "random.h"

#define IMAGE "FAKECUBIN arch=90 entry=product,churn,shift,fold"
#define FAKE \
    "{\"kernel_ns\": 2000, \"devices\": [{\"count\": 3}], \"links\": [{\"from\": 0, \"to\": 1}]}"
#define KIB ((uint64_t)1024)

static filch_runtime *runtime;

/* --- Kernels --- */

/* product(a, b, c): every element of c from the whole of a and b. */
static int product(const filch_call *call)
{
    const uint64_t *a = call->views[0].ptr, *b = call->views[1].ptr;
    uint64_t *c = call->views[2].ptr, sum = 0;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        sum = sum * 31 + a[i];
    for (uint64_t i = 0; i < call->views[1].rows; i++)
        sum = sum * 37 + b[i];
    for (uint64_t i = 0; i < call->views[2].rows; i++)
        c[i] = sum + i;
    return 0;
}

/* churn(a, b): b from a and itself. */
static int churn(const filch_call *call)
{
    const uint64_t *a = call->views[0].ptr;
    uint64_t *b = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[1].rows; i++)
        b[i] = b[i] * 6364136223846793005u + a[i % call->views[0].rows] + i;
    return 0;
}

/* shift(a, b): chunks. */
static int shift(const filch_call *call)
{
    const uint64_t *a = call->views[0].ptr;
    uint64_t *b = call->views[1].ptr;
    for (uint64_t i = 0; i < call->hi - call->lo; i++)
        b[i] = 3 * a[i] + call->lo + i;
    return 0;
}

/* fold(a with a neighbour on each side, w, b): chunks. */
static int fold(const filch_call *call)
{
    const filch_view *a = &call->views[0], *w = &call->views[1], *b = &call->views[2];
    const uint64_t *from = a->ptr, *weights = w->ptr;
    uint64_t *to = b->ptr;
    for (uint64_t i = 0; i < b->rows; i++) {
        uint64_t at = b->row + i - a->row, sum = from[at] * weights[(b->row + i) % w->rows];
        sum += at > 0 ? from[at - 1] : 1;
        sum += at + 1 < a->rows ? from[at + 1] : 1;
        to[i] = sum;
    }
    return 0;
}

static uint64_t leaving;

/* await(x): until so many tiles have begun to leave for the host. */
static int await_leaving(const filch_call *call)
{
    (void)call;
    while (fakecuda_count("cuMemcpyDtoHAsync") < leaving) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
    return 0;
}

/* --- Making things --- */

static void start_with(const char *devices, uint64_t limit, const char *lanes, const char *fake)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    (void)setenv("FILCH_LANES", lanes, 1);
    fakecuda_reset();
    assert_true(fakecuda_configure(fake));
    fakecuda_register_filch("product", product, 3, false, 0);
    fakecuda_register_filch("churn", churn, 2, false, 0);
    fakecuda_register_filch("shift", shift, 2, true, 0);
    fakecuda_register_filch("fold", fold, 3, true, 0);
    config.devices = devices;
    config.memory_limit = limit;
    runtime = runtime_of(&config);
}

static void start(const char *devices, uint64_t limit, const char *lanes)
{
    start_with(devices, limit, lanes, FAKE);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_codelet *codelet(const char *entry, filch_host_fn host)
{
    return codelet_of(runtime, IMAGE, entry, host, 0);
}

static filch_codelet *on_host(const char *name, filch_host_fn fn)
{
    return host_codelet_of(runtime, name, fn);
}

/* Tiles of `tile` elements, one after the other. */
static filch_data *handle(uint64_t *at, uint64_t tiles, uint64_t tile, uint32_t flags)
{
    return vector_of(runtime, at, tiles * tile, tile, flags);
}

static filch_graph *graph(void)
{
    return graph_of(runtime);
}

static void add(filch_graph *to, filch_codelet *runs, const filch_access *accesses, uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = runs;
    desc.accesses = accesses;
    desc.access_count = count;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

static void finish_with(filch_job *job, filch_device_stats *stats, uint32_t count)
{
    filch_job_info info = {.size = sizeof info};
    await_result(job, FILCH_OK);
    if (stats != NULL)
        assert_ok(filch_job_stats(job, &info, stats, count));
    assert_ok(filch_job_release(job));
}

static uint64_t *numbers(uint64_t count, uint64_t seed)
{
    uint64_t *at = calloc(count, sizeof *at);
    assert_non_null(at);
    for (uint64_t i = 0; i < count; i++)
        at[i] = seed * 1000003 + i;
    return at;
}

/* --- Products --- */

enum { PANELS = 12, PANEL = 512, CELL = 64 };

/* C(i, j) from panels A(i) and B(j), by columns of C. */
static filch_graph *product_graph(filch_codelet *runs, filch_data *a, filch_data *b, filch_data *c)
{
    filch_graph *made = graph();
    for (uint32_t j = 0; j < PANELS; j++)
        for (uint32_t i = 0; i < PANELS; i++) {
            const filch_access accesses[] = {
                {.data = a, .row = i, .mode = FILCH_READ},
                {.data = b, .row = j, .mode = FILCH_READ},
                {.data = c, .row = j * PANELS + i, .mode = FILCH_WRITE}};
            add(made, runs, accesses, 3);
        }
    return made;
}

static void check_product(const uint64_t *a, const uint64_t *b, const uint64_t *c)
{
    for (uint32_t j = 0; j < PANELS; j++)
        for (uint32_t i = 0; i < PANELS; i++) {
            uint64_t cell[CELL];
            const filch_view views[] = {{.ptr = (void *)(uintptr_t)(a + i * PANEL), .rows = PANEL},
                                        {.ptr = (void *)(uintptr_t)(b + j * PANEL), .rows = PANEL},
                                        {.ptr = cell, .rows = CELL}};
            const filch_call call = {.views = (filch_view *)(uintptr_t)views};
            (void)product(&call);
            assert_memory_equal(cell, c + (j * PANELS + i) * CELL, sizeof cell);
        }
}

static void products_larger_than_memory_are_right(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda", "cuda:0/88+24,host:1", "cuda:0,host:2"};
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (uint32_t managed = 0; managed < 2; managed++) {
            uint64_t *a = numbers(PANELS * PANEL, 1), *b = numbers(PANELS * PANEL, 2);
            uint64_t *c = numbers(PANELS * PANELS * CELL, 3);
            uint32_t flags = managed != 0 ? FILCH_DATA_MANAGED : 0;
            start(devices[d], 24 * KIB, "4"); /* of 168 KiB */
            filch_data *da = handle(a, PANELS, PANEL, flags), *db = handle(b, PANELS, PANEL, flags);
            filch_data *dc = handle(c, PANELS * PANELS, CELL, flags);
            filch_graph *made = product_graph(codelet("product", product), da, db, dc);
            for (int round = 0; round < 3; round++) {
                finish_with(submit(made), NULL, 0);
                assert_ok(filch_data_acquire(dc, FILCH_READ));
                check_product(a, b, c);
                assert_ok(filch_data_release(dc));
            }
            stop();
            free(a);
            free(b);
            free(c);
        }
}

/* Bytes that have to be brought in for the products in the order of their submission, where so many
 * panels of A and B have room and the future is known (Belady's rule). */
static uint64_t least_bytes(uint32_t room)
{
    uint32_t order[2 * PANELS * PANELS], count = 0, in = 0;
    bool is_in[2 * PANELS] = {false};
    uint64_t brought = 0;
    for (uint32_t j = 0; j < PANELS; j++)
        for (uint32_t i = 0; i < PANELS; i++) {
            order[count++] = i;
            order[count++] = PANELS + j;
        }
    for (uint32_t at = 0; at < count; at++) {
        uint32_t victim = 0, farthest = 0;
        if (is_in[order[at]])
            continue;
        brought++;
        for (uint32_t p = 0; p < 2 * PANELS && in == room; p++) {
            uint32_t next = at + 1;
            while (next < count && order[next] != p)
                next++;
            /* The task's other panel is in use. */
            if (is_in[p] && next > farthest && p != order[at ^ 1u]) {
                farthest = next;
                victim = p;
            }
        }
        if (in == room)
            is_in[victim] = false;
        else
            in++;
        is_in[order[at]] = true;
    }
    return brought * PANEL * sizeof(uint64_t);
}

static void little_more_is_moved_than_has_to_be(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= 4; lanes += 3) {
        uint64_t *a = numbers(PANELS * PANEL, 1), *b = numbers(PANELS * PANEL, 2);
        uint64_t *c = numbers(PANELS * PANELS * CELL, 3);
        const uint32_t room = 10; /* panels, of 24 */
        filch_device_stats stats = {0};
        start("cuda:0", room * PANEL * sizeof *a, lanes == 1 ? "1" : "4");
        filch_data *da = handle(a, PANELS, PANEL, 0), *db = handle(b, PANELS, PANEL, 0);
        filch_data *dc = handle(c, PANELS * PANELS, CELL, 0);
        filch_graph *made = product_graph(codelet("product", NULL), da, db, dc);
        finish_with(submit(made), &stats, 1);
        check_product(a, b, c);
        /* While the last tiles of a column run, the next one's panel is brought: room for one. */
        assert_true(stats.bytes_in <= least_bytes(room - 1) * 6 / 5);
        assert_true(stats.evicted >= stats.bytes_in / (PANEL * sizeof *a) - room);
        assert_int_equal(stats.bytes_evicted, 0); /* results go home by themselves */
        assert_int_equal(stats.bytes_out, (uint64_t)PANELS * PANELS * CELL * sizeof *c);
        stop();
        free(a);
        free(b);
        free(c);
    }
}

/* --- Written over --- */

enum { OVER = 9, OVER_TILE = 512 };

static filch_task place(filch_graph *to, filch_codelet *runs, const filch_access *accesses,
                        uint32_t count, uint32_t device)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task made;
    desc.codelet = runs;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.affinity = 1 + device;
    assert_ok(filch_graph_add(to, &desc, &made));
    return made;
}

/* All tiles that one GPU has changed leave it at once, and copies are slow. Meanwhile the other one
 * writes them without reading them, first those that left last, and sends them home: what left
 * before must not come after that. */
static void write_over_what_left(void)
{
    uint64_t *at = numbers(OVER * OVER_TILE, 1), *kept = numbers(OVER * OVER_TILE, 1);
    uint64_t *large = numbers(10 * OVER_TILE, 2), *small = numbers(4 * OVER_TILE, 3);
    leaving = OVER;
    (void)setenv("FILCH_POLICY", "static", 1);
    start_with("cuda:0,cuda:1,host:1", 12 * OVER_TILE * sizeof *at, "1",
               "{\"copy_ns\": 2000000, \"devices\": [{\"count\": 2}]}");
    (void)unsetenv("FILCH_POLICY");
    filch_codelet *churns = codelet("churn", NULL), *products = codelet("product", NULL);
    filch_data *data = handle(at, OVER, OVER_TILE, FILCH_DATA_PIN);
    filch_data *seeds = handle(small, 4, OVER_TILE, 0),
               *whole = handle(large, 1, 10 * OVER_TILE, 0);
    filch_graph *made = graph();
    filch_task changes[OVER];
    for (uint32_t i = 0; i < OVER; i++) {
        const filch_access accesses[] = {{.data = seeds, .mode = FILCH_READ},
                                         {.data = data, .row = i, .mode = FILCH_READWRITE}};
        changes[i] = place(made, churns, accesses, 2, 0);
    }
    const filch_access filling[] = {{.data = whole, .mode = FILCH_READ},
                                    {.data = seeds, .row = 1, .mode = FILCH_READWRITE}};
    filch_task fills = place(made, churns, filling, 2, 0);
    const filch_access waiting[] = {{.data = seeds, .row = 2, .mode = FILCH_READ}};
    filch_task waits = place(made, on_host("await", await_leaving), waiting, 1, 2);
    for (uint32_t i = 0; i < OVER; i++) {
        assert_ok(filch_graph_edge(made, changes[i], fills));
        assert_ok(filch_graph_edge(made, changes[i], waits));
    }
    for (uint32_t i = OVER; i-- > 0;) {
        const filch_access accesses[] = {{.data = seeds, .row = 2, .mode = FILCH_READ},
                                         {.data = seeds, .row = 3, .mode = FILCH_READ},
                                         {.data = data, .row = i, .mode = FILCH_WRITE}};
        filch_view views[] = {{.ptr = small + 2 * OVER_TILE, .rows = OVER_TILE},
                              {.ptr = small + 3 * OVER_TILE, .rows = OVER_TILE},
                              {.ptr = kept + i * OVER_TILE, .rows = OVER_TILE}};
        const filch_call call = {.views = views};
        assert_ok(filch_graph_edge(made, waits, place(made, products, accesses, 3, 1)));
        (void)product(&call);
    }
    filch_device_stats stats[3] = {0};
    finish_with(submit(made), stats, 3);
    /* There is room for one tile beside what fills the memory: the seeds, or one of these. */
    assert_in_range(stats[0].bytes_evicted, (OVER - 1) * OVER_TILE * sizeof *at,
                    OVER * OVER_TILE * sizeof *at);
    assert_memory_equal(at, kept, OVER * OVER_TILE * sizeof *at);
    stop();
    free(at);
    free(kept);
    free(large);
    free(small);
}

static void what_left_does_not_come_after_what_is_written(void **state)
{
    (void)state;
    for (int run = 0; run < 6; run++)
        write_over_what_left();
}

/* --- Two that do not fit together --- */

static void tiles_that_need_most_of_the_memory_take_turns(void **state)
{
    enum { MANY = 8, LARGE = 7680 }; /* 60 KiB each */
    (void)state;
    for (int slices = 0; slices < 2; slices++) {
        uint64_t *at = numbers((uint64_t)MANY * LARGE, 1),
                 *kept = numbers((uint64_t)MANY * LARGE, 1);
        uint64_t *small = numbers(8, 2);
        start(slices ? "cuda:0/88+24" : "cuda:0", 100 * KIB, "4");
        filch_data *data = handle(at, MANY, LARGE, 0), *seed = handle(small, 1, 8, 0);
        filch_codelet *runs = codelet("churn", NULL);
        filch_graph *made = graph();
        for (uint32_t round = 0; round < 3; round++)
            for (uint32_t i = 0; i < MANY; i++) {
                const filch_access accesses[] = {{.data = seed, .mode = FILCH_READ},
                                                 {.data = data, .row = i, .mode = FILCH_READWRITE}};
                const filch_view views[] = {{.ptr = small, .rows = 8},
                                            {.ptr = kept + i * LARGE, .rows = LARGE}};
                const filch_call call = {.views = (filch_view *)(uintptr_t)views};
                add(made, runs, accesses, 2);
                (void)churn(&call);
            }
        filch_device_stats stats[2] = {0};
        finish_with(submit(made), stats, 2);
        assert_memory_equal(at, kept, (uint64_t)MANY * LARGE * sizeof *at);
        /* What is in the memory at the end of a round is used first in the next. */
        uint64_t saved = stats[0].bytes_evicted + stats[1].bytes_evicted;
        assert_true(saved >= (2 * (uint64_t)MANY - 2) * LARGE / 2 * sizeof *at);
        assert_true(saved <= 2 * (uint64_t)MANY * LARGE * sizeof *at);
        stop();
        free(at);
        free(kept);
        free(small);
    }
}

/* --- Batches --- */

enum { ITEMS = 60000, ITEM_TILE = 500, WEIGHTS = 100 };

static void batch(filch_codelet *runs, const filch_batch_access *accesses, uint32_t count,
                  uint64_t grain)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = runs;
    desc.n = ITEMS;
    desc.grain = grain;
    desc.accesses = accesses;
    desc.access_count = count;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    finish_with(job, NULL, 0);
}

static const char *const batch_devices[] = {"cuda:0", "cuda", "cuda:0/88+24", "cuda:0,host:1"};

/* Chunks of 937 KiB come and go through 64 KiB. */
static void streams_larger_than_memory_are_right(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof batch_devices / sizeof *batch_devices; d++) {
        uint64_t *a = numbers(ITEMS, 1), *b = numbers(ITEMS, 2);
        start(batch_devices[d], 64 * KIB, "2");
        const filch_batch_access accesses[] = {{.data = handle(a, ITEMS / ITEM_TILE, ITEM_TILE, 0),
                                                .mode = FILCH_READ,
                                                .map = FILCH_MAP_AFFINE,
                                                .scale = 1},
                                               {.data = handle(b, ITEMS / ITEM_TILE, ITEM_TILE, 0),
                                                .mode = FILCH_WRITE,
                                                .map = FILCH_MAP_AFFINE,
                                                .scale = 1}};
        filch_codelet *runs = codelet("shift", shift);
        for (int round = 0; round < 3; round++) {
            batch(runs, accesses, 2, 10);
            for (uint64_t i = 0; i < ITEMS; i++)
                assert_int_equal(b[i], 3 * a[i] + i);
            memset(b, 0, ITEMS * sizeof *b);
        }
        stop();
        free(a);
        free(b);
    }
}

/* Managed handles of 469 KiB each, of which one is read with neighbours, back and forth. */
static void chunks_of_managed_handles_need_not_fit(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof batch_devices / sizeof *batch_devices; d++) {
        uint64_t *a = numbers(ITEMS, 1), *b = numbers(ITEMS, 2), *w = numbers(WEIGHTS, 3);
        uint64_t *from = numbers(ITEMS, 1), *to = numbers(ITEMS, 2);
        start(batch_devices[d], 192 * KIB, "2");
        filch_data *both[] = {handle(a, ITEMS / ITEM_TILE, ITEM_TILE, FILCH_DATA_MANAGED),
                              handle(b, ITEMS / ITEM_TILE, ITEM_TILE, FILCH_DATA_MANAGED)};
        filch_data *weights = handle(w, 1, WEIGHTS, 0);
        filch_codelet *runs = codelet("fold", fold);
        for (uint32_t round = 0; round < 4; round++) {
            const filch_batch_access accesses[] = {
                {.data = both[round % 2],
                 .mode = FILCH_READ,
                 .map = FILCH_MAP_AFFINE,
                 .scale = 1,
                 .before = 1,
                 .after = 1},
                {.data = weights, .mode = FILCH_READ, .map = FILCH_MAP_WHOLE},
                {.data = both[1 - round % 2],
                 .mode = FILCH_WRITE,
                 .map = FILCH_MAP_AFFINE,
                 .scale = 1}};
            filch_view views[] = {{.ptr = from, .rows = ITEMS},
                                  {.ptr = w, .rows = WEIGHTS},
                                  {.ptr = to, .rows = ITEMS}};
            const filch_call call = {.views = views};
            uint64_t *kept = from;
            batch(runs, accesses, 3, 0);
            (void)fold(&call);
            from = to;
            to = kept;
        }
        assert_ok(filch_data_acquire(both[0], FILCH_READ));
        assert_memory_equal(a, from, ITEMS * sizeof *a);
        assert_ok(filch_data_release(both[0]));
        stop();
        free(a);
        free(b);
        free(w);
        free(from);
        free(to);
    }
}

static void a_grain_over_the_budget_is_refused(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    uint64_t *a = numbers(ITEMS, 1), *b = numbers(ITEMS, 2);
    (void)state;
    start("cuda:0", 64 * KIB, "2");
    filch_batch_access accesses[] = {
        {.data = handle(a, 1, ITEMS, 0), .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = handle(b, 1, ITEMS, 0), .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    desc.codelet = codelet("shift", NULL);
    desc.n = ITEMS;
    desc.grain = 5000;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_int_equal(filch_batch_submit(runtime, &desc, NULL, NULL), FILCH_NO_DEVICE_MEMORY);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_string_equal(error.text,
                        "5000 items of 'shift', than which no chunk has fewer, need 80000 bytes, "
                        "the largest device that can run them has 65536");
    desc.grain = 1;
    accesses[0].map = FILCH_MAP_WHOLE;
    assert_int_equal(filch_batch_submit(runtime, &desc, NULL, NULL), FILCH_NO_DEVICE_MEMORY);
    stop();
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_larger_than_memory_are_right),
        cmocka_unit_test(little_more_is_moved_than_has_to_be),
        cmocka_unit_test(what_left_does_not_come_after_what_is_written),
        cmocka_unit_test(tiles_that_need_most_of_the_memory_take_turns),
        cmocka_unit_test(streams_larger_than_memory_are_right),
        cmocka_unit_test(chunks_of_managed_handles_need_not_fit),
        cmocka_unit_test(a_grain_over_the_budget_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
