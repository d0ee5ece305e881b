/* SPDX-License-Identifier: Apache-2.0 */
/* A policy of the host's own over two GPUs and a core: what it is told of bytes and of who can run
 * what, and that it is followed there. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"
#include "measure/policies.h"

enum { GPUS = 2, CORE = 2, BYTES = N * sizeof(uint64_t) };

/* What the policy does, and what it saw last, at one task at a time. */
static struct {
    uint32_t send_to; /* FILCH_POLICY_AUTO: where least is missing */
    uint64_t missing[GPUS + 1];
    double transfer[GPUS + 1];
    uint32_t can_run; /* bits */
} seen;

static uint32_t place(const filch_policy_view *view, void *user)
{
    uint32_t best = FILCH_POLICY_AUTO;
    (void)user;
    seen.can_run = 0;
    for (uint32_t d = 0; d < filch_policy_devices(view); d++) {
        seen.missing[d] = filch_policy_missing(view, d);
        seen.transfer[d] = filch_policy_transfer(view, d);
        seen.can_run |= (uint32_t)filch_policy_can_run(view, d) << d;
        if (filch_policy_can_run(view, d) &&
            (best == FILCH_POLICY_AUTO || seen.missing[d] < seen.missing[best]))
            best = d;
    }
    return seen.send_to != FILCH_POLICY_AUTO ? seen.send_to : best;
}

static uint32_t steal_nothing(const filch_policy_view *view, uint32_t *amount, void *user)
{
    (void)view;
    (void)amount;
    (void)user;
    return FILCH_POLICY_NOBODY;
}

static void begin(void)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    start("cuda", "2", "{\"devices\":[{\"count\":2}]}");
    assert_ok(filch_runtime_destroy(runtime));
    policy.name = "nearest";
    policy.place = place;
    policy.steal = steal_nothing;
    policy.batches = FILCH_POLICY_BATCHES_PLACED;
    config.devices = "cuda,host:1";
    config.custom_policy = &policy;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
}

/* One task that reads a handle and adds to another; returns who ran it. */
static uint32_t run(filch_codelet *codelet, filch_data *from, filch_data *to)
{
    filch_access accesses[2] = {{.data = from, .mode = FILCH_READ},
                                {.data = to, .mode = FILCH_READWRITE}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_job_info info = {.size = sizeof info};
    filch_device_stats stats[GPUS + 1];
    filch_graph *one = graph();
    uint32_t runner = 0;
    desc.codelet = codelet;
    desc.accesses = from != NULL ? accesses : &accesses[1];
    desc.access_count = from != NULL ? 2 : 1;
    assert_ok(filch_graph_add(one, &desc, NULL));
    filch_job *job = submit(one);
    assert_ok(filch_job_wait(job, SOON));
    assert_ok(filch_job_stats(job, &info, stats, GPUS + 1));
    while (stats[runner].tiles == 0)
        runner++;
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(one));
    return runner;
}

static void it_sees_where_tiles_are(void **state)
{
    (void)state;
    begin();
    filch_codelet *bumps = on_gpu("bump"), *copies = on_gpu("copy");
    filch_data *from = handle_with(x, FILCH_DATA_MANAGED), *to = handle_with(y, FILCH_DATA_MANAGED);
    set(x, 1);
    set(y, 0);
    /* At home, where GPUs lack it. */
    seen.send_to = 1;
    assert_int_equal(run(bumps, NULL, from), 1);
    assert_int_equal(seen.can_run, 3);
    assert_int_equal(seen.missing[0], BYTES);
    assert_int_equal(seen.missing[1], BYTES);
    assert_int_equal(seen.missing[CORE], 0);
    assert_true(seen.transfer[0] > 0 && seen.transfer[CORE] == 0);
    /* On GPU 1 alone, then, which is sent what reads it. */
    seen.send_to = FILCH_POLICY_AUTO;
    assert_int_equal(run(copies, from, to), 1);
    assert_int_equal(seen.missing[0], 2 * BYTES);
    assert_int_equal(seen.missing[1], BYTES);
    assert_int_equal(run(copies, from, to), 1);
    assert_int_equal(seen.missing[1], 0);
    assert_true(seen.transfer[1] == 0);
    /* The core is told what it would have to bring home. */
    assert_int_equal(seen.missing[CORE], 2 * BYTES);
    assert_ok(filch_data_acquire(to, FILCH_READ));
    expect(y, 2);
    assert_ok(filch_data_release(to));
    assert_ok(filch_data_destroy(from));
    assert_ok(filch_data_destroy(to));
    stop();
}

/* A batch of one chunk that reads a handle and overwrites another. */
static void run_chunk(filch_codelet *codelet, filch_data *from, filch_data *to)
{
    const filch_batch_access accesses[] = {
        {.data = from, .mode = FILCH_READ, .map = FILCH_MAP_WHOLE},
        {.data = to, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = codelet;
    desc.n = desc.grain = N;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    assert_ok(filch_job_wait(job, SOON));
    assert_ok(filch_job_release(job));
}

/* What a chunk reads counts once it is there no more, as for a task; what it writes never does. */
static void a_chunk_lacks_what_it_reads(void **state)
{
    (void)state;
    begin();
    fakecuda_register_filch("copy", copy, 2, true, 0);
    filch_codelet *copies = on_gpu("copy");
    filch_data *from = handle_with(x, FILCH_DATA_MANAGED), *to = handle(y);
    set(x, 1);
    set(y, 0);
    seen.send_to = 1;
    run_chunk(copies, from, to);
    assert_int_equal(seen.missing[0], BYTES);
    assert_int_equal(seen.missing[1], BYTES);
    assert_int_equal(seen.missing[CORE], 0);
    run_chunk(copies, from, to);
    assert_int_equal(seen.missing[0], BYTES);
    assert_int_equal(seen.missing[1], 0);
    assert_true(seen.transfer[0] > 0 && seen.transfer[1] == 0);
    expect(y, 1);
    assert_ok(filch_data_destroy(from));
    assert_ok(filch_data_destroy(to));
    stop();
}

/* A core is no place for a GPU's task, nor a GPU for the host's. */
static void who_cannot_run_a_task_is_not_sent_it(void **state)
{
    filch_policy_counts counts = {.size = sizeof counts};
    (void)state;
    begin();
    filch_codelet *bumps = on_gpu("bump"), *hosts = on_host("bump on the host", bump);
    filch_data *data = handle_with(x, 0);
    set(x, 1);
    seen.send_to = CORE;
    assert_true(run(bumps, NULL, data) < GPUS);
    assert_int_equal(seen.can_run, 3);
    assert_int_equal(run(hosts, NULL, data), CORE);
    assert_int_equal(seen.can_run, 1u << CORE);
    seen.send_to = 0;
    assert_int_equal(run(hosts, NULL, data), CORE);
    assert_int_equal(run(bumps, NULL, data), 0);
    seen.send_to = FILCH_POLICY_ANYONE;
    assert_int_equal(run(hosts, NULL, data), CORE);
    assert_true(run(bumps, NULL, data) < GPUS);
    expect(x, 7);
    assert_ok(filch_runtime_policy(runtime, &counts));
    assert_string_equal(counts.name, "nearest");
    assert_int_equal(counts.places, 6);
    assert_int_equal(counts.places_refused, 2);
    assert_ok(filch_data_destroy(data));
    stop();
}

static double much_work(const filch_call *call)
{
    (void)call;
    return 1e9; /* seconds, by any score */
}

/* The host's thread is the only one: workers are idle when it has found nothing to do. */
static void idle(void)
{
    bool worked = true;
    while (worked)
        assert_ok(filch_runtime_poll(runtime, 0, &worked));
}

/* Two GPUs alike and nothing measured: the second of two tasks goes to the GPU that is free, and
 * what reads its result follows it there, where nothing has to be brought. */
static void the_earliest_finish_counts_copies(void **state)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *bumps = NULL;
    (void)state;
    static bench_policy_room room;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    bench_policy_choose(BENCH_POLICY_EARLIEST, &room, &config);
    custom = config.custom_policy;
    start_driven("cuda", "2", "{\"devices\":[{\"count\":2}]}", FILCH_DRIVE_POLL);
    custom = NULL;
    cuda.image = IMAGE;
    cuda.image_bytes = sizeof IMAGE;
    cuda.entry = "bump";
    desc.name = "bump";
    desc.cuda = &cuda;
    desc.work = much_work;
    assert_ok(filch_codelet_create(runtime, &desc, &bumps));
    filch_data *first = handle_with(x, FILCH_DATA_MANAGED);
    filch_data *second = handle_with(y, FILCH_DATA_MANAGED);
    filch_graph *both = graph();
    add(both, bumps, FILCH_READWRITE, first, NULL, NULL);
    add(both, bumps, FILCH_READWRITE, second, NULL, NULL);
    finish(submit(both), FILCH_OK);
    assert_ok(filch_graph_destroy(both));
    idle();
    assert_int_equal(run(bumps, NULL, second), 1);
    idle();
    assert_int_equal(run(bumps, NULL, first), 0);
    assert_ok(filch_data_destroy(first));
    assert_ok(filch_data_destroy(second));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_sees_where_tiles_are),
        cmocka_unit_test(a_chunk_lacks_what_it_reads),
        cmocka_unit_test(who_cannot_run_a_task_is_not_sent_it),
        cmocka_unit_test(the_earliest_finish_counts_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
