/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of a GPU's memory: what filch takes stays within, however many take at once. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/thread.h"
#include "device/pool.h"
#include "memory/alloc/node.h"

#include "jobs.h"

#define MIB ((size_t)1 << 20)
/* 512 MiB are left to others: the budget is 40 MiB. */
#define SMALL \
    "{\"fill\":false,\"devices\":[{\"memory\":578813952,\"granularity\":8,\"groups\":15}]}"
#define BUDGET (40 * MIB)

/* Places without a runtime. */
typedef struct memories {
    fl_core core;
    fl_pool pool;
    fl_places places;
} memories;

static const filch_arena kinds[] = {FILCH_ARENA_JEMALLOC, FILCH_ARENA_PAGES, FILCH_ARENA_POOL,
                                    FILCH_ARENA_PLAIN};

/* Of kinds; in a loop over all of them. */
static bool is_there(filch_arena kind)
{
    return kind != FILCH_ARENA_JEMALLOC || fl_slabs_are_there();
}

static void open_memories(memories *m, const char *devices, filch_arena kind)
{
    filch_error error = FILCH_ERROR_INIT;
    fl_settings settings;

    memset(m, 0, sizeof *m);
    fl_settings_defaults(&settings);
    fakecuda_reset();
    assert_true(fakecuda_configure(SMALL));
    m->core.memory = fl_memory_default();
    m->core.settings.arena = kind;
    assert_ok(fl_tss_init(&m->core.worker));
    const fl_discovery how = {.memory = &m->core.memory, .error = &error, .settings = &settings};
    if (fl_pool_open(&m->pool, devices, &how) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_ok(fl_places_init(&m->places, &m->core, m->pool.devices, m->pool.count,
                             m->pool.place_count, &error));
}

static void close_memories(memories *m)
{
    fl_places_fini(&m->places);
    fl_pool_close(&m->pool, &m->core.memory);
    fl_tss_fini(m->core.worker);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("physical"), 0);
    assert_int_equal(fakecuda_live("range"), 0);
    assert_int_equal(fakecuda_live("pool"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static void *take(memories *m, size_t bytes)
{
    filch_error error = FILCH_ERROR_INIT;
    void *block = NULL;

    if (fl_place_take(&m->places, 1, bytes, &block, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    return block;
}

/* Calls that ask the driver for memory. */
static uint64_t asked_for(void)
{
    return fakecuda_count("cuMemAlloc") + fakecuda_count("cuMemCreate") +
           fakecuda_count("cuMemAllocFromPoolAsync");
}

static void what_is_over_the_budget_is_not_asked_for(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        filch_error error = FILCH_ERROR_INIT;
        void *none = &error;
        memories m;

        if (!is_there(kinds[k]))
            continue;
        open_memories(&m, "cuda", kinds[k]);
        assert_int_equal(m.pool.devices[0].info.budget, BUDGET);
        void *block = take(&m, 30 * MIB);
        uint64_t asked = asked_for();
        assert_int_equal(fl_place_take(&m.places, 1, 10 * MIB + 1, &none, &error),
                         FILCH_NO_DEVICE_MEMORY);
        assert_string_equal(error.text, "cuda:0: 10486272 bytes were asked for, but of its budget, "
                                        "41943040 bytes, 31457280 are taken");
        assert_string_equal(error.device, "cuda:0");
        assert_ptr_equal(none, &error);
        assert_int_equal(asked_for(), asked);
        void *rest = take(&m, 10 * MIB); /* to the last byte */
        fl_place_give(&m.places, 1, rest, 10 * MIB, 0);
        fl_place_give(&m.places, 1, block, 30 * MIB, 0);
        close_memories(&m);
    }
}

static void blocks_kept_for_reuse_count_and_go_first(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        memories m;

        if (!is_there(kinds[k]))
            continue;
        open_memories(&m, "cuda", kinds[k]);
        fl_place_give(&m.places, 1, take(&m, 30 * MIB), 30 * MIB, 0);
        fl_place_give(&m.places, 1, take(&m, 8 * MIB), 8 * MIB, 0);
        uint64_t asked = asked_for();
        void *block = take(&m, 8 * MIB);
        if (kinds[k] != FILCH_ARENA_POOL) {
            assert_int_equal(asked_for(), asked); /* what fits takes nothing away */
            assert_true(m.places.at[1].heap.mapped >= 30 * MIB);
        }
        fl_place_give(&m.places, 1, block, 8 * MIB, 0);
        block = take(&m, 31 * MIB);
        assert_true(m.places.at[1].heap.mapped <= BUDGET);
        if (kinds[k] == FILCH_ARENA_PLAIN) {
            assert_int_equal(fakecuda_count("cuMemFree"), 2);
            assert_int_equal(fakecuda_live("memory"), 1);
        }
        fl_place_give(&m.places, 1, block, 31 * MIB, 0);
        close_memories(&m);
    }
}

static void slices_have_one_budget(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    memories m;
    void *more;

    (void)state;
    open_memories(&m, "cuda:0/88+24", FILCH_ARENA_DEFAULT);
    assert_int_equal(m.pool.devices[0].place, m.pool.devices[1].place);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(m.pool.devices[i].info.budget, BUDGET);
    void *block = take(&m, 30 * MIB);
    assert_int_equal(fl_place_take(&m.places, 1, 30 * MIB, &more, &error), FILCH_NO_DEVICE_MEMORY);
    fl_place_give(&m.places, 1, block, 30 * MIB, 0);
    close_memories(&m);
}

/* --- Many at once --- */

#define TAKERS 4
#define ROUNDS 200

typedef struct taker {
    memories *m;
    _Atomic uint64_t *held; /* by all */
    size_t bytes;           /* of one block; each has its own size, so that none is kept for long */
    uint32_t refused, beyond;
} taker;

static int take_and_give(void *user)
{
    taker *t = user;

    for (int round = 0; round < ROUNDS; round++) {
        void *blocks[4];
        int count = 0;
        for (; count < 4; count++) {
            filch_error error = FILCH_ERROR_INIT;
            if (fl_place_take(&t->m->places, 1, t->bytes, &blocks[count], &error) != FILCH_OK) {
                t->refused++;
                break;
            }
            if (atomic_fetch_add(t->held, t->bytes) + t->bytes > BUDGET)
                t->beyond++;
        }
        while (count > 0) {
            atomic_fetch_sub(t->held, t->bytes);
            fl_place_give(&t->m->places, 1, blocks[--count], t->bytes, 0);
        }
    }
    return 0;
}

static void takers_together_stay_within(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        _Atomic uint64_t held = 0;
        fl_thread threads[TAKERS];
        taker takers[TAKERS];
        memories m;
        uint32_t refused = 0;

        if (!is_there(kinds[k]))
            continue;
        open_memories(&m, "cuda", kinds[k]);
        for (size_t i = 0; i < TAKERS; i++) {
            takers[i] = (taker){.m = &m, .held = &held, .bytes = (9 + i) * MIB};
            assert_ok(fl_thread_start(&threads[i], take_and_give, &takers[i]));
        }
        for (size_t i = 0; i < TAKERS; i++) {
            fl_thread_join(threads[i]);
            refused += takers[i].refused;
            assert_int_equal(takers[i].beyond, 0);
        }
        assert_true(refused > 0);
        assert_true(m.places.at[1].heap.mapped_peak <= BUDGET);
        close_memories(&m);
    }
}

/* --- A job --- */

static void a_task_over_the_budget_is_refused(void **state)
{
    filch_access accesses[3] = {
        {.mode = FILCH_SCRATCH, .bytes = BUDGET}, {.mode = FILCH_READ}, {.mode = FILCH_WRITE}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    start("cuda", "2", SMALL);
    filch_data *a = handle(x), *b = handle(y), *c = handle(z);
    filch_codelet *codelet = on_gpu("sum");
    filch_graph *made = graph();
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = 3;
    desc.label = "greedy";
    accesses[1].data = a;
    accesses[2].data = b;
    set(x, 1);
    set(y, 2);
    add(made, codelet, FILCH_WRITE, a, b, c);
    assert_int_equal(filch_graph_add(made, &desc, NULL), FILCH_NO_DEVICE_MEMORY);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_string_equal(error.text,
                        "task #1 'greedy': needs 41944064 bytes, the largest device that "
                        "can run it has 41943040");
    assert_string_equal(error.label, "greedy");
    finish(submit(made), FILCH_OK);
    assert_int_equal(z[1], 5);
    accesses[0].bytes = BUDGET - 2 * N * sizeof *x; /* to the last byte */
    assert_ok(filch_graph_add(made = graph(), &desc, NULL));
    stop();
}

/* --- The limit --- */

static filch_status create(const char *devices, uint64_t limit, filch_error *error,
                           filch_runtime **made)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;

    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\":[{\"memory\":1073741824},"
                                   "{\"memory\":2147483648}]}"));
    config.devices = devices;
    config.memory_limit = limit;
    *error = (filch_error)FILCH_ERROR_INIT;
    return filch_runtime_create(&config, error, made);
}

static uint64_t budget_of(filch_runtime *rt, uint32_t index)
{
    filch_device_info info = {.size = sizeof info};

    assert_ok(filch_device_at(rt, index, &info));
    return info.budget;
}

static void a_limit_holds_for_each_gpu(void **state)
{
    const struct {
        uint64_t limit, first, second;
    } cases[] = {
        {0, 512 * MIB, 1536 * MIB},
        {FILCH_MEMORY_FIT, 512 * MIB, 1536 * MIB},
        {FILCH_MEMORY_HALF, 512 * MIB, 1024 * MIB},
        {64 * MIB, 64 * MIB, 64 * MIB},
        {1024 * MIB, 1024 * MIB, 1024 * MIB},
    };
    filch_error error;
    filch_runtime *rt;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(create("cuda:0,cuda:1", cases[i].limit, &error, &rt));
        assert_int_equal(budget_of(rt, 0), cases[i].first);
        assert_int_equal(budget_of(rt, 1), cases[i].second);
        assert_ok(filch_runtime_destroy(rt));
    }
}

static void the_limit_may_come_from_the_environment(void **state)
{
    filch_error error;
    filch_runtime *rt;

    (void)state;
    (void)setenv("FILCH_MEMORY_LIMIT", "48M", 1);
    assert_ok(create("cuda:0/88+24", 0, &error, &rt));
    assert_int_equal(budget_of(rt, 0), 48 * MIB);
    assert_int_equal(budget_of(rt, 1), 48 * MIB);
    assert_ok(filch_runtime_destroy(rt));
    assert_ok(create("cuda:0", FILCH_MEMORY_HALF, &error, &rt)); /* the field goes before */
    assert_int_equal(budget_of(rt, 0), 512 * MIB);
    assert_ok(filch_runtime_destroy(rt));
    (void)setenv("FILCH_MEMORY_LIMIT", "0", 1);
    assert_int_equal(create("cuda:0", 0, &error, &rt), FILCH_PARSE);
    assert_string_equal(error.label, "FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_MEMORY_LIMIT");
}

static void a_limit_beyond_the_memory_is_refused(void **state)
{
    filch_error error;
    filch_runtime *rt;

    (void)state;
    assert_int_equal(create("cuda:0", 1024 * MIB + 1, &error, &rt), FILCH_TOO_LARGE);
    assert_string_equal(error.text, "the memory limit is 1073741825 bytes, but cuda:0 has "
                                    "1073741824 bytes of memory");
    assert_ok(create("cuda", 1024 * MIB + 1, &error, &rt)); /* the other one */
    assert_int_equal(filch_device_count(rt), 1);
    assert_int_equal(budget_of(rt, 0), 1024 * MIB + 1);
    assert_int_equal(filch_device_refused_count(rt), 1);
    assert_ok(filch_runtime_destroy(rt));
    assert_int_equal(create("cuda", 4096 * MIB, &error, &rt), FILCH_NO_DEVICE);
    assert_non_null(strstr(error.text, "the memory limit is 4294967296 bytes"));
    assert_int_equal(fakecuda_violations(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_over_the_budget_is_not_asked_for),
        cmocka_unit_test(blocks_kept_for_reuse_count_and_go_first),
        cmocka_unit_test(slices_have_one_budget),
        cmocka_unit_test(takers_together_stay_within),
        cmocka_unit_test(a_task_over_the_budget_is_refused),
        cmocka_unit_test(a_limit_holds_for_each_gpu),
        cmocka_unit_test(the_limit_may_come_from_the_environment),
        cmocka_unit_test(a_limit_beyond_the_memory_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
