/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves a GPU's memory, and what is brought there, by what is known of the tasks to come: how
 * many bytes that takes. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "jobs.h"

#define TILE (N * sizeof(uint64_t))

/* A GPU alone, with room for so many tiles. */
static void start_with(const char *limit, const char *lanes)
{
    (void)setenv("FILCH_MEMORY_LIMIT", limit, 1);
    (void)setenv("FILCH_ARENA", "plain", 1);
    (void)setenv("FILCH_REPLAY", "0", 1);
    start("cuda:0", lanes, "{\"kernel_ns\": 50000, \"devices\": [{}]}");
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_ARENA");
    (void)unsetenv("FILCH_REPLAY");
}

static filch_task add_one(filch_graph *to, filch_codelet *codelet, filch_access_mode mode,
                          filch_data *data)
{
    const filch_access access = {.data = data, .mode = mode};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task made;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_graph_add(to, &desc, &made));
    return made;
}

/* zero(to): the neutral element. */
static int zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

/* gather(to, from): adds a partial result. */
static int gather(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] += from[i];
    return 0;
}

/* For a partial result somebody has to leave: who is not used any more, not who is next. */
static void partial_results_take_the_place_of_what_is_over(void **state)
{
    (void)state;
    start_with("1K", "1");
    fakecuda_register_filch("sum", zero, 1, false, 0);
    fakecuda_register_filch("copy", gather, 2, false, 0);
    filch_codelet *reads = on_gpu("hold"), *bumps = on_gpu("bump");
    filch_data *again = handle(x), *over = handle(y), *total = handle(z);
    set(z, 5);
    assert_ok(filch_data_reduction(total, on_gpu("sum"), on_gpu("copy")));
    filch_graph *made = graph();
    filch_task tasks[] = {
        add_one(made, reads, FILCH_READ, again),   add_one(made, reads, FILCH_READ, over),
        add_one(made, bumps, FILCH_REDUCE, total), add_one(made, reads, FILCH_READ, again),
        add_one(made, bumps, FILCH_REDUCE, total),
    };
    for (size_t i = 1; i < sizeof tasks / sizeof *tasks; i++)
        assert_ok(filch_graph_edge(made, tasks[i - 1], tasks[i]));
    finish(submit(made), FILCH_OK);
    expect(z, 7);
    assert_int_equal(fakecuda_bytes(-1, 0), 3 * TILE);
    stop();
}

/* Has something been brought of late, and tiles take as long as makes the worker think of that. */
static void make_choosy(filch_codelet *reads, filch_data *data)
{
    filch_graph *made = graph();
    add_one(made, reads, FILCH_READWRITE, data);
    for (int i = 0; i < 8; i++)
        finish(submit(made), FILCH_OK);
}

/* The parent's tiles only have to be at home before their parts are used: no device needs them. */
static void what_only_has_to_be_home_is_not_fetched(void **state)
{
    enum { PARTS = 8 };
    filch_data_desc desc = FILCH_DATA_DESC_INIT, tiling = FILCH_DATA_DESC_INIT;
    filch_data *parent = NULL, *part = NULL;
    (void)state;
    start_with("1M", "1");
    filch_codelet *holder = on_gpu("hold"), *bumps = on_gpu("bump");
    filch_data *other = handle(y), *warm = handle(z);
    desc.ptr = x;
    desc.element = sizeof *x;
    desc.rows = N;
    desc.tile_rows = 2 * (N / PARTS);
    tiling.tile_rows = N / PARTS;
    assert_ok(filch_data_create(runtime, &desc, &parent));
    assert_ok(filch_data_partition(parent, &tiling, &part));
    set(x, 3);
    make_choosy(bumps, warm);
    filch_graph *made = graph(), *held = graph();
    add_one(held, holder, FILCH_READ, other);
    assert_ok(filch_graph_partition(made, parent, part));
    for (uint32_t row = 0; row < PARTS; row++) {
        const filch_access access = {.data = part, .row = row, .mode = FILCH_READWRITE};
        filch_task_desc bump_it = FILCH_TASK_DESC_INIT;
        bump_it.codelet = bumps;
        bump_it.accesses = &access;
        bump_it.access_count = 1;
        assert_ok(filch_graph_add(made, &bump_it, NULL));
    }
    uint64_t before = fakecuda_bytes(-1, 0);
    atomic_store(&is_held, 1);
    filch_job *job = submit(held);
    await_holds(1);
    filch_job *next = submit(made);
    while (fakecuda_bytes(-1, 0) - before < TILE + TILE / PARTS) /* of a part */
        sched_yield();
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    finish(next, FILCH_OK);
    expect(x, 4);
    assert_int_equal(fakecuda_bytes(-1, 0) - before, 2 * TILE);
    stop();
}

/* Of tiles that ready tasks lack, the one comes first with which most of them can run for each
 * byte: not what the oldest lacks, nor the fewest bytes. */
static void fetch_for(uint32_t of_few, uint64_t wanted)
{
    enum { FEW = N / 2, SHARERS = 3 };
    static uint64_t shared[N], few[FEW];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *small = NULL;
    start_with("8K", "1"); /* a sixteenth of that is fetched ahead at once: a tile */
    filch_codelet *holder = on_gpu("hold"), *bumps = on_gpu("bump");
    filch_data *there = handle(y), *warm = handle(z), *many = handle(shared);
    desc.ptr = few;
    desc.element = sizeof *few;
    desc.rows = FEW;
    assert_ok(filch_data_create(runtime, &desc, &small));
    make_choosy(bumps, warm);
    filch_graph *made = graph(), *held = graph();
    add_one(held, holder, FILCH_READ, there);
    for (uint32_t i = 0; i < of_few; i++)
        add_one(made, holder, FILCH_READ, small);
    add_one(made, holder, FILCH_READ, there); /* lacks nothing */
    for (int i = 0; i < SHARERS; i++)
        add_one(made, holder, FILCH_READ, many);
    atomic_store(&is_held, 1);
    filch_job *job = submit(held);
    await_holds(1);
    uint64_t before = fakecuda_bytes(-1, 0), first;
    fakecuda_hold(); /* the copy does not arrive: no other follows it */
    filch_job *next = submit(made);
    while ((first = fakecuda_bytes(-1, 0) - before) < TILE)
        sched_yield();
    fakecuda_release();
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    finish(next, FILCH_OK);
    assert_int_equal(first, wanted);
    assert_int_equal(fakecuda_bytes(-1, 0) - before, TILE + sizeof few);
    stop();
}

static void what_serves_most_comes_first(void **state)
{
    (void)state;
    fetch_for(1, TILE);
    fetch_for(2, TILE + TILE / 2); /* two for half the bytes: they come first, and leave room */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_results_take_the_place_of_what_is_over),
        cmocka_unit_test(what_only_has_to_be_home_is_not_fetched),
        cmocka_unit_test(what_serves_most_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
