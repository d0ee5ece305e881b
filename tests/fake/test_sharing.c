/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and runs that share handles, devices and task memory: what one leaves behind must not be
 * taken for another's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"

/* The host writes between jobs; then a reader waits for another handle, and a second reader, which
 * need not wait, must not think that the first has looked. */
static void a_reader_that_waits_brings_nothing(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *sums = on_gpu("sum"), *holder = on_host("hold", hold);
    uint64_t held[N], other[N];
    filch_data *from = handle(x), *to = handle(y), *sink = handle(z);
    filch_data *gate = handle(held), *spare = handle(other);
    filch_graph *first = graph(), *holding = graph(), *waiting = graph();
    add(first, copies, FILCH_WRITE, from, to, NULL);
    add(holding, holder, FILCH_READWRITE, gate, NULL, NULL);
    add(waiting, sums, FILCH_WRITE, from, gate, spare);
    set(x, 100);
    finish(submit(first), FILCH_OK);
    expect(y, 100);
    set(x, 700);
    set(held, 1);
    atomic_store(&is_held, 1);
    filch_job *hold_job = submit(holding), *wait_job = submit(waiting);
    await_holds(1);
    finish(submit(first), FILCH_OK);
    expect(y, 700);
    /* And one more while both are there: what is on the GPU is good now. */
    uint64_t copied = fakecuda_count("cuMemcpyHtoDAsync");
    filch_graph *again = graph();
    add(again, copies, FILCH_WRITE, from, sink, NULL);
    finish(submit(again), FILCH_OK);
    expect(z, 700);
    assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), copied);
    atomic_store(&is_held, 0);
    finish(hold_job, FILCH_OK);
    finish(wait_job, FILCH_OK);
    for (int i = 0; i < N; i++)
        assert_int_equal(other[i], 701 + 2 * i);
    stop();
}

/* A job is over when its last task is, whatever else is on the GPU: on another lane, … */
static void a_job_ends_beside_a_longer_one(void **state)
{
    (void)state;
    start("cuda:0", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *holder = on_gpu("hold");
    filch_data *from = handle(x), *to = handle(y), *gate = handle(z);
    filch_graph *quick = graph(), *slow = graph();
    add(quick, copies, FILCH_WRITE, from, to, NULL);
    add(slow, holder, FILCH_READ, gate, NULL, NULL);
    set(x, 5);
    atomic_store(&is_held, 1);
    filch_job *slow_job = submit(slow);
    await_holds(1);
    finish(submit(quick), FILCH_OK);
    assert_int_equal(filch_job_status(slow_job), FILCH_NOT_READY);
    expect(y, 5);
    atomic_store(&is_held, 0);
    finish(slow_job, FILCH_OK);
    stop();
}

static filch_graph *pair[2];
static filch_job *pair_jobs[2];

/* Both at once, so that the worker puts both on the GPU before it looks. */
static void submit_pair(filch_job *job, filch_status status, void *user)
{
    (void)job;
    (void)status;
    for (int i = 0; i < 2; i++)
        (void)filch_graph_submit(pair[i], NULL, &pair_jobs[i]);
    atomic_store((_Atomic int *)user, 1);
}

/* … or on the same one, behind it. */
static void a_job_ends_in_front_of_a_longer_one(void **state)
{
    (void)state;
    start("cuda:0", "1", NULL);
    filch_codelet *copies = on_gpu("copy"), *holder = on_gpu("hold"), *bumps = on_gpu("bump");
    filch_data *from = handle(x), *gate = handle(z), *to = handle_with(y, FILCH_DATA_MANAGED);
    filch_graph *before = graph();
    _Atomic int submitted = 0;
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    how.on_complete = submit_pair;
    how.user = (void *)&submitted;
    add(before, bumps, FILCH_READWRITE, from, NULL, NULL);
    pair[0] = graph();
    pair[1] = graph();
    add(pair[0], copies, FILCH_WRITE, from, to, NULL);
    add(pair[1], holder, FILCH_READ, gate, NULL, NULL);
    set(x, 5);
    atomic_store(&is_held, 1);
    assert_ok(filch_graph_submit(before, &how, NULL));
    await_holds(1);
    while (atomic_load(&submitted) == 0) {
    }
    assert_int_equal(filch_job_wait(pair_jobs[0], SOON), FILCH_OK);
    assert_int_equal(filch_job_status(pair_jobs[1]), FILCH_NOT_READY);
    assert_ok(filch_data_acquire(to, FILCH_READ));
    expect(y, 6);
    assert_ok(filch_data_release(to));
    atomic_store(&is_held, 0);
    finish(pair_jobs[0], FILCH_OK);
    finish(pair_jobs[1], FILCH_OK);
    stop();
}

/* A task on the GPU follows one that is there, and one on the host that takes a while: not before
 * that is over, whatever marks earlier graphs in the same memory, or earlier runs, have left. Marks
 * tell 256 runs apart. */
static void nobody_follows_what_has_not_begun(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", "{\"kernel_ns\": 100000}");
    filch_codelet *copies = on_gpu("copy"), *sums = on_gpu("sum"), *lates = on_host("late", late);
    uint64_t in[N];
    filch_data *from = handle(in), *a = handle(x), *b = handle(y), *to = handle(z);
    atomic_store(&naps_us, 300);
    for (uint64_t k = 0; k < 300; k++) {
        filch_graph *diamond = graph();
        add(diamond, copies, FILCH_WRITE, from, a, NULL);
        add(diamond, lates, FILCH_READWRITE, b, NULL, NULL);
        add(diamond, sums, FILCH_WRITE, a, b, to);
        set(in, 10 * k);
        memset(y, 0, sizeof y);
        finish(submit(diamond), FILCH_OK);
        expect(z, 10 * k + 1);
        assert_ok(filch_graph_destroy(diamond));
    }
    filch_graph *diamond = graph();
    add(diamond, copies, FILCH_WRITE, from, a, NULL);
    add(diamond, lates, FILCH_READWRITE, b, NULL, NULL);
    add(diamond, sums, FILCH_WRITE, a, b, to);
    atomic_store(&naps_us, 200);
    for (int run = 0; run < 2 * 256 + 1; run++) {
        bool is_good = run % 256 == 0;
        set(in, 3);
        memset(y, 0, sizeof y);
        atomic_store(&fails, is_good ? 0 : 1);
        finish(submit(diamond), is_good ? FILCH_OK : FILCH_TASK_FAILED);
        if (is_good)
            expect(z, 4);
    }
    atomic_store(&fails, 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_that_waits_brings_nothing),
        cmocka_unit_test(a_job_ends_beside_a_longer_one),
        cmocka_unit_test(a_job_ends_in_front_of_a_longer_one),
        cmocka_unit_test(nobody_follows_what_has_not_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
