/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs say of the bytes that they moved, on the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "make.h"
#include "patience.h"

#define IMAGE "FAKECUBIN arch=90 entry=twice,double_items"
#define N 96
#define BYTES ((uint64_t)N * sizeof(uint64_t))
#define DEVICES 3
#define LINKED "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1}]}"
#define UNLINKED \
    "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1, \"peer\": false}]}"

static filch_runtime *runtime;
static uint64_t x[N], y[N], z[N];

/* twice(from, to) */
static int twice(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    uint64_t *to = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[1].rows; i++)
        to[i] = 2 * from[i];
    return 0;
}

static void start(const char *devices, const char *fake)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(fake));
    fakecuda_register_filch("twice", twice, 2, false, 0);
    fakecuda_register_filch("double_items", twice, 2, true, 0);
    config.devices = devices;
    config.policy = FILCH_POLICY_STATIC;
    runtime = runtime_of(&config);
    for (uint64_t i = 0; i < N; i++)
        x[i] = i + 1;
    memset(y, 0, sizeof y);
    memset(z, 0, sizeof z);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_codelet *codelet(const char *entry, filch_host_fn host)
{
    return codelet_of(runtime, IMAGE, entry, host, 0);
}

static filch_data *handle(uint64_t *at, uint32_t flags)
{
    return vector_of(runtime, at, N, 0, flags);
}

static filch_graph *graph(void)
{
    return graph_of(runtime);
}

static void add(filch_graph *to, filch_codelet *doubles, uint32_t device, filch_data *from,
                filch_data *into)
{
    const filch_access accesses[] = {{.data = from, .mode = FILCH_READ},
                                     {.data = into, .mode = FILCH_WRITE}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = doubles;
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.affinity = device + 1;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

/* What the devices say of the job, which must succeed; their sum is what the job says. */
static void finish_with(filch_job *job, filch_device_stats *stats)
{
    filch_job_info info = {.size = sizeof info};
    uint64_t sum = 0;
    await_result(job, FILCH_OK);
    memset(stats, 0, DEVICES * sizeof *stats);
    assert_ok(filch_job_stats(job, &info, stats, DEVICES));
    for (uint32_t d = 0; d < DEVICES; d++)
        sum += stats[d].bytes_in + stats[d].bytes_out + stats[d].bytes_peer;
    assert_int_equal(info.bytes, sum);
    assert_ok(filch_job_release(job));
}

static void run(filch_graph *of, filch_device_stats *stats)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(of, NULL, &job));
    finish_with(job, stats);
}

static void expect(const filch_device_stats *stats, uint64_t in, uint64_t out, uint64_t peer)
{
    assert_int_equal(stats->bytes_in, in);
    assert_int_equal(stats->bytes_out, out);
    assert_int_equal(stats->bytes_peer, peer);
}

/* --- Tests --- */

/* Unmanaged handles come and go with every job, replays of the graph included; managed ones are
 * moved when they must be. */
static void a_job_counts_what_it_moves(void **state)
{
    filch_device_stats stats[DEVICES];
    (void)state;
    start("cuda:0", LINKED);
    filch_codelet *doubles = codelet("twice", NULL);
    filch_graph *plain = graph(), *kept = graph();
    add(plain, doubles, 0, handle(x, 0), handle(y, 0));
    filch_data *resident = handle(z, FILCH_DATA_MANAGED);
    add(kept, doubles, 0, handle(x, FILCH_DATA_MANAGED), resident);
    for (int k = 0; k < 6; k++) {
        run(plain, stats);
        expect(&stats[0], BYTES, BYTES, 0);
    }
    assert_int_equal(y[N - 1], 2 * N);
    for (int k = 0; k < 6; k++) {
        run(kept, stats);
        expect(&stats[0], k == 0 ? BYTES : 0, 0, 0);
    }
    assert_ok(filch_data_acquire(resident, FILCH_READ)); /* no job's */
    assert_int_equal(z[N - 1], 2 * N);
    assert_ok(filch_data_release(resident));
    stop();
}

/* From one GPU's memory to another's, straight or by way of the host's, and to a host device. */
static void every_way_is_told_apart(void **state)
{
    filch_device_stats stats[DEVICES];
    (void)state;
    for (int linked = 0; linked < 2; linked++) {
        start("cuda:0,cuda:1,host:1", linked ? LINKED : UNLINKED);
        filch_codelet *doubles = codelet("twice", twice);
        filch_data *from = handle(x, FILCH_DATA_MANAGED), *mid = handle(y, FILCH_DATA_MANAGED);
        filch_data *to = handle(z, FILCH_DATA_MANAGED);
        filch_graph *first = graph(), *second = graph(), *third = graph();
        add(first, doubles, 0, from, mid);
        add(second, doubles, 1, mid, to);
        add(third, doubles, 2, to, from);
        run(first, stats);
        expect(&stats[0], BYTES, 0, 0);
        expect(&stats[1], 0, 0, 0);
        run(second, stats);
        expect(&stats[0], 0, linked ? 0 : BYTES, 0);
        expect(&stats[1], linked ? 0 : BYTES, 0, linked ? BYTES : 0);
        run(third, stats);
        expect(&stats[0], 0, 0, 0);
        expect(&stats[1], 0, BYTES, 0);
        expect(&stats[2], 0, 0, 0);
        assert_int_equal(x[N - 1], 8 * N);
        stop();
    }
}

/* Chunks bring their own items, and take them home. */
static void a_batch_counts_its_chunks(void **state)
{
    filch_device_stats stats[DEVICES];
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    (void)state;
    start("cuda:0,cuda:1", LINKED);
    const filch_batch_access accesses[] = {
        {.data = handle(x, 0), .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = handle(y, 0), .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    desc.codelet = codelet("double_items", NULL);
    desc.n = N;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    finish_with(job, stats);
    for (int d = 0; d < 2; d++)
        expect(&stats[d], stats[d].items * sizeof *x, stats[d].items * sizeof *y, 0);
    assert_int_equal(stats[0].items + stats[1].items, N);
    assert_int_equal(y[0], 2);
    assert_int_equal(y[N - 1], 2 * N);
    stop();
}

/* A caller that was built before there were byte counts, or counts of evictions, gets elements of
 * the size it knows. */
static void older_callers_get_what_they_know(void **state)
{
    struct {
        unsigned char bytes[offsetof(filch_device_stats, bytes_in)];
    } old[2];
    struct {
        unsigned char bytes[offsetof(filch_device_stats, evicted)];
    } newer[2];
    filch_device_stats stats[DEVICES];
    filch_job_info info = {.size = offsetof(filch_job_info, bytes), .bytes = 17};
    filch_job *job = NULL;
    (void)state;
    start("cuda:0,cuda:1", LINKED);
    filch_graph *plain = graph();
    add(plain, codelet("twice", NULL), 1, handle(x, 0), handle(y, 0));
    assert_ok(filch_graph_submit(plain, NULL, &job));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_stats(job, &info, (filch_device_stats *)(void *)old, 2));
    assert_int_equal(info.size, offsetof(filch_job_info, bytes));
    assert_int_equal(info.done, 1);
    assert_int_equal(info.bytes, 17);
    info.size = offsetof(filch_job_info, evicted);
    info.evicted = 18;
    assert_ok(filch_job_stats(job, &info, (filch_device_stats *)(void *)newer, 2));
    assert_int_equal(info.bytes, 2 * BYTES);
    assert_int_equal(info.evicted, 18);
    finish_with(job, stats);
    assert_memory_equal(&old[0], &stats[0], sizeof old[0]);
    assert_memory_equal(&old[1], &stats[1], sizeof old[1]);
    assert_memory_equal(&newer[0], &stats[0], sizeof newer[0]);
    assert_memory_equal(&newer[1], &stats[1], sizeof newer[1]);
    assert_int_equal(stats[1].tiles, 1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_counts_what_it_moves),
        cmocka_unit_test(every_way_is_told_apart),
        cmocka_unit_test(a_batch_counts_its_chunks),
        cmocka_unit_test(older_callers_get_what_they_know),
    };
    (void)setenv("FILCH_REPLAY", "3", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
