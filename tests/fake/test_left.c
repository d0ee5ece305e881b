/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs leave behind that are cancelled before their turn, or over while somebody looks at
 * them, and tasks for which one GPU has no room. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 32768
#include "runtime.h"
#include "sched/decide/slow.h"
#include "sched/model/missing.h"

#include "jobs.h"

static void pause_ms(long ms)
{
    const struct timespec nap = {0, ms * 1000000};
    (void)nanosleep(&nap, NULL);
}

static filch_task_desc describe(filch_codelet *codelet, const filch_access *access,
                                uint32_t affinity)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = access;
    desc.access_count = 1;
    desc.affinity = affinity;
    return desc;
}

/* --- Cancelled before their turn --- */

/* A closed job is in the middle of a chain on a tile of a partition. An open one stands behind it
 * at the parent, and has a use of the partition that does not wait. */
static void a_cancelled_job_leaves_the_partition_as_it_is(void **state)
{
    enum { CHAIN = 600 };
    (void)state;
    start("cuda:0", "1", "{\"devices\": [{\"count\": 1}]}");
    filch_codelet *bumps = on_gpu("bump"), *holder = on_gpu("hold");
    filch_data *parent = handle(x), *child = NULL;
    filch_data_desc tiling = FILCH_DATA_DESC_INIT;
    tiling.tile_rows = N / 2;
    assert_ok(filch_data_partition(parent, &tiling, &child));
    memset(x, 0, sizeof x);
    filch_graph_desc how = FILCH_GRAPH_DESC_INIT;
    filch_graph *chain = graph(), *open = NULL;
    how.kind = FILCH_GRAPH_OPEN;
    assert_ok(filch_graph_create(runtime, &how, &open));
    const filch_access access = {.data = child, .mode = FILCH_READWRITE};
    const filch_task_desc one = describe(bumps, &access, 0), wait = describe(holder, &access, 0);
    assert_ok(filch_graph_partition(chain, parent, child));
    for (int i = 0; i < CHAIN; i++)
        assert_ok(filch_graph_add(chain, i == 1 ? &wait : &one, NULL));
    atomic_store(&is_held, 1);
    filch_job *first = submit(chain);
    await_holds(1);
    pause_ms(50); /* the next ones are on the device's lane */
    filch_job *second = submit(open);
    assert_ok(filch_graph_partition(open, parent, child));
    assert_ok(filch_graph_add(open, &one, NULL));
    assert_ok(filch_job_cancel(second));
    assert_ok(filch_graph_close(open));
    atomic_store(&is_held, 0);
    finish(second, FILCH_CANCELLED);
    finish(first, FILCH_OK);
    stop();
    assert_int_equal(x[0], CHAIN - 1);
}

static filch_job *submit_batch(filch_codelet *copies, filch_data *from, filch_data *to)
{
    const filch_batch_access accesses[] = {
        {.data = from, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = to, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = copies;
    desc.n = N;
    desc.grain = N / 16;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    return job;
}

static filch_graph *tasks_for(filch_codelet *codelet, uint32_t affinity, int count)
{
    const filch_access scratch = {.bytes = 64, .mode = FILCH_SCRATCH};
    const filch_task_desc desc = describe(codelet, &scratch, affinity);
    filch_graph *made = graph();
    for (int i = 0; i < count; i++)
        assert_ok(filch_graph_add(made, &desc, NULL));
    return made;
}

/* A batch that waits for the host is cancelled; a device that is at something else has a part of
 * it, at which thieves look. */
static void handles_stay_until_a_cancelled_batch_is_over(void **state)
{
    (void)state;
    start("cuda:0,cuda:1", "1", "{\"kernel_ns\": 100000, \"devices\": [{\"count\": 2}]}");
    fakecuda_register_filch("copy", copy, 2, true, 0);
    filch_codelet *copies = on_gpu("copy");
    filch_graph *held = tasks_for(on_gpu("hold"), 2, 6);
    for (int round = 0; round < 4; round++) {
        filch_hold *whole = NULL;
        filch_data *from = handle(x), *to = handle(y);
        atomic_store(&holds, 0);
        atomic_store(&is_held, 1);
        filch_job *other = submit(held);
        await_holds(1);
        assert_ok(filch_data_acquire_tiles(from, NULL, FILCH_WRITE, SOON, &whole));
        filch_job *job = submit_batch(copies, from, to);
        assert_ok(filch_job_cancel(job));
        assert_ok(filch_hold_release(whole));
        filch_status gone = filch_data_destroy(from);
        bool is_over = filch_job_wait(job, 0) != FILCH_TIMEOUT;
        assert_true(gone == FILCH_BUSY || (gone == FILCH_OK && is_over));
        atomic_store(&is_held, 0);
        finish(job, FILCH_CANCELLED);
        if (gone != FILCH_OK)
            assert_ok(filch_data_destroy(from));
        assert_ok(filch_data_destroy(to));
        assert_int_equal(filch_job_wait(other, SOON), FILCH_OK);
        assert_ok(filch_job_release(other));
    }
    stop();
}

/* --- Over while somebody looks --- */

/* A thief saw a hint to a task of a graph. Before it looks further, that is destroyed, and one of
 * fewer tasks has its memory, and runs. */
static void a_stale_hint_leads_to_no_task_of_another_graph(void **state)
{
    enum { LATE = 150 };
    (void)state;
    start_driven("cuda:0,cuda:1", "1", "{\"devices\": [{\"count\": 2}]}", FILCH_DRIVE_POLL);
    filch_codelet *looks = on_gpu("hold"); /* writes nothing */
    atomic_store(&is_held, 0);
    filch_data *data = handle(x);
    filch_graph *large = graph(), *small;
    const filch_access access = {.data = data, .mode = FILCH_READ};
    const filch_task_desc desc = describe(looks, &access, 0);
    for (int i = 0; i < LATE + 50; i++)
        assert_ok(filch_graph_add(large, &desc, NULL));
    assert_int_equal(filch_job_wait(submit(large), SOON), FILCH_OK);
    const fl_task *task = fl_graph_task_at(large, LATE);
    uint64_t hint = fl_hint_make(task, fl_load_relaxed(&task->word));
    assert_ok(filch_graph_destroy(large));
    small = graph();
    for (int i = 0; i < 10; i++)
        assert_ok(filch_graph_add(small, &desc, NULL));
    assert_ptr_equal(fl_graph_task_at(small, 0), task - LATE); /* or nothing is shown */
    filch_job *job = submit(small);
    fl_missing missing;
    fl_missing_of_hints(&runtime->sched.workers[0], &runtime->sched.workers[1], &hint, 1,
                        fl_slow_holds_up, &missing);
    assert_false(missing.is_known);
    finish(job, FILCH_OK);
    stop();
}

/* --- Room --- */

enum { VECTORS = 8, MEMORY = 576 << 20 };

static uint64_t room[VECTORS][N];

static void run_on(filch_codelet *bumps, filch_data **data, int count)
{
    filch_graph *made = graph();
    for (int i = 0; i < count; i++) {
        const filch_access access = {.data = data[i % VECTORS], .mode = FILCH_READWRITE};
        const filch_task_desc desc = describe(bumps, &access, 1 + (uint32_t)i % 2);
        assert_ok(filch_graph_add(made, &desc, NULL));
    }
    filch_job *job = submit(made);
    filch_status status = filch_job_wait(job, SOON);
    assert_ok(filch_job_release(job));
    assert_int_equal(status, FILCH_OK);
    assert_ok(filch_graph_destroy(made));
}

static void make_all(filch_data **data)
{
    for (int i = 0; i < VECTORS; i++)
        data[i] = handle(room[i]);
}

static void destroy_all(filch_data **data)
{
    for (int i = 0; i < VECTORS; i++)
        assert_ok(filch_data_destroy(data[i]));
}

/* Another process has all of the fast GPU's memory: what cannot be there is not sent back to it by
 * the one that is ten times as slow. */
static void what_was_moved_for_room_stays(void **state)
{
    filch_data *data[VECTORS];
    (void)state;
    (void)setenv("FILCH_ARENA", "plain", 1);
    start("cuda:0,cuda:1", "1",
          "{\"fill\": false, \"kernel_ns\": 1000000, \"devices\": [{\"memory\": 603979776}, "
          "{\"memory\": 603979776, \"speed\": 0.1}]}");
    (void)unsetenv("FILCH_ARENA");
    filch_codelet *bumps = on_gpu("bump");
    make_all(data);
    for (int i = 0; i < 12; i++)
        run_on(bumps, data, 64); /* speeds are known */
    destroy_all(data);
    make_all(data);
    assert_ok(filch_device_trim(runtime, 0, 0));
    (void)fakecuda_occupy(0, MEMORY);
    for (int i = 0; i < 6; i++)
        run_on(bumps, data, VECTORS);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_job_leaves_the_partition_as_it_is),
        cmocka_unit_test(handles_stay_until_a_cancelled_batch_is_over),
        cmocka_unit_test(a_stale_hint_leads_to_no_task_of_another_graph),
        cmocka_unit_test(what_was_moved_for_room_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
