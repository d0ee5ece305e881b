/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs run whatever hands out a GPU's memory; it is counted and handed back; and the fake driver's
 * pools are as strict as the rest of it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory/alloc/slab.h"

#include "fake.h"
#include "jobs.h"

#define PAIR "{\"devices\":[{\"count\":2%s}],\"links\":[{\"from\":0,\"to\":1}]}"

static void expect_nothing_left(void)
{
    static const char *const parts[] = {"memory", "handle", "mapping", "reservation", "pool"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_int_equal(fakecuda_live(parts[i]), 0);
}

static filch_memory_stats stats_of(uint32_t device)
{
    filch_memory_stats stats = {.size = sizeof stats};

    assert_ok(filch_device_memory(runtime, device, &stats));
    return stats;
}

/* b on one GPU from a, c on the other from both. */
static void run_both(filch_data *a, filch_data *b, filch_data *c)
{
    filch_access copies[] = {{.data = a, .mode = FILCH_READ}, {.data = b, .mode = FILCH_WRITE}};
    filch_access sums[] = {{.data = a, .mode = FILCH_READ},
                           {.data = b, .mode = FILCH_READ},
                           {.data = c, .mode = FILCH_WRITE}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_graph *made = graph();

    desc.codelet = on_gpu("copy");
    desc.accesses = copies;
    desc.access_count = 2;
    desc.affinity = 1;
    assert_ok(filch_graph_add(made, &desc, NULL));
    desc.codelet = on_gpu("sum");
    desc.accesses = sums;
    desc.access_count = 3;
    desc.affinity = 2;
    assert_ok(filch_graph_add(made, &desc, NULL));
    for (int round = 0; round < 3; round++)
        finish(submit(made), FILCH_OK);
    assert_ok(filch_graph_destroy(made));
}

typedef struct choice {
    const char *wanted; /* FILCH_ARENA */
    const char *lacks;  /* attributes of the GPUs */
    filch_arena got;
    const char *call; /* by which memory was taken */
} choice;

static const choice choices[] = {
    {"jemalloc", "", FILCH_ARENA_JEMALLOC, "cuMemCreate"},
    {"jemalloc", ",\"attributes\":{\"102\":0}", FILCH_ARENA_JEMALLOC, "cuMemAlloc"},
    {"pages", "", FILCH_ARENA_PAGES, "cuMemCreate"},
    {"pages", ",\"attributes\":{\"102\":0}", FILCH_ARENA_PAGES, "cuMemAlloc"},
    {"pool", "", FILCH_ARENA_POOL, "cuMemAllocFromPoolAsync"},
    {"plain", "", FILCH_ARENA_PLAIN, "cuMemAlloc"},
};

static void jobs_run_with_every_arena(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const choice *k = &choices[i];
        char fake_text[256];

        if (k->got == FILCH_ARENA_JEMALLOC && !fl_slabs_are_there())
            continue;
        (void)snprintf(fake_text, sizeof fake_text, PAIR, k->lacks);
        (void)setenv("FILCH_ARENA", k->wanted, 1);
        (void)setenv("FILCH_POLICY", "static", 1); /* each GPU gets its task */
        start("cuda:0,cuda:1", "2", fake_text);
        filch_data *a = handle(x), *b = handle(y), *c = handle(z);
        set(x, 5);
        run_both(a, b, c);
        for (int n = 0; n < N; n++)
            assert_int_equal(z[n], x[n] + y[n]);
        assert_true(fakecuda_count(k->call) > 0);
        for (uint32_t d = 0; d < 2; d++) {
            filch_memory_stats stats = stats_of(d);
            assert_int_equal(stats.arena, k->got);
            assert_true(stats.takes > 0 && stats.mapped >= stats.requested);
            assert_true(stats.mapped_peak <= stats.budget);
        }
        assert_ok(filch_data_destroy(a));
        assert_ok(filch_data_destroy(b));
        assert_ok(filch_data_destroy(c));
        for (uint32_t d = 0; d < 2; d++) {
            assert_ok(filch_device_trim(runtime, d, 0));
            assert_int_equal(stats_of(d).requested, 0);
            assert_int_equal(stats_of(d).mapped, 0);
        }
        assert_int_equal(fakecuda_live("mapping"), 0);
        stop();
        expect_nothing_left();
    }
    (void)unsetenv("FILCH_ARENA");
    (void)unsetenv("FILCH_POLICY");
}

static void what_cannot_be_had_is_said(void **state)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\":[{\"attributes\":{\"115\":0}}]}"));
    (void)setenv("FILCH_ARENA", "pool", 1);
    config.devices = "cuda";
    assert_int_equal(filch_runtime_create(&config, &error, &runtime), FILCH_UNSUPPORTED);
    assert_string_equal(error.text, "cuda:0: no arena of kind pool here");
    assert_string_equal(error.label, "FILCH_ARENA");
    (void)unsetenv("FILCH_ARENA");
    expect_nothing_left();
}

static void bad_arguments_are_refused(void **state)
{
    filch_memory_stats stats = {.size = sizeof stats}, small = {.size = 8};

    (void)state;
    start("cuda:0,host:1", "2", "{}");
    assert_int_equal(filch_device_memory(NULL, 0, &stats), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_device_memory(runtime, 2, &stats), FILCH_BAD_INDEX);
    assert_int_equal(filch_device_memory(runtime, 0, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_device_memory(runtime, 0, &small), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_device_trim(NULL, 0, 0), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_device_trim(runtime, 2, 0), FILCH_BAD_INDEX);
    assert_ok(filch_device_trim(runtime, 1, 0)); /* the host's: nothing to hand back */
    assert_int_equal(stats_of(1).arena, FILCH_ARENA_DEFAULT);
    assert_int_equal(stats_of(1).budget, 0);
    assert_true(stats_of(0).budget > 0);
    stop();
}

/* --- The fake's pools --- */

static void pools_are_strict(void **state)
{
    const CUmemPoolProps props = {.allocType = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {FL_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUcontext context = NULL;
    CUmemoryPool pool = NULL;
    CUstream stream = NULL;
    CUdeviceptr block = 0, other = 0;

    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\":[{\"memory\":1048576}]}"));
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(context), 0);
    assert_int_equal(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(cuMemPoolCreate(&pool, &props), 0);
    assert_int_equal(cuMemAllocFromPoolAsync(&block, 600000, pool, stream), 0);
    assert_int_equal(cuMemAllocFromPoolAsync(&other, 600000, pool, stream),
                     FL_CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuStreamSynchronize(stream), 0);
    assert_int_equal(cuMemsetD8Async(block, 0, 600000, stream), 0);
    assert_int_equal(cuStreamSynchronize(stream), 0);
    assert_int_equal(fakecuda_violations(), 0);
    fakecuda_quiet(true);
    /* Not by the other call, and not twice. */
    assert_int_equal(cuMemFree_v2(block), FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fakecuda_forgive(), 1);
    assert_int_equal(cuMemFreeAsync(block, stream), 0);
    assert_int_equal(cuMemFreeAsync(block, stream), FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fakecuda_forgive(), 1);
    /* Used before its stream has come to its allocation. */
    fakecuda_hold();
    assert_int_equal(cuMemAllocFromPoolAsync(&block, 600000, pool, stream), 0);
    (void)cuMemsetD8Async(block, 0, 8, stream);
    assert_int_equal(fakecuda_forgive(), 1);
    fakecuda_release();
    assert_int_equal(cuStreamSynchronize(stream), 0);
    /* Gone with blocks in it. */
    assert_int_equal(cuMemPoolDestroy(pool), 0);
    assert_int_equal(fakecuda_forgive(), 1);
    assert_int_equal(cuMemPoolDestroy(pool), FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fakecuda_forgive(), 1);
    fakecuda_quiet(false);
    assert_int_equal(cuMemFreeAsync(block, stream), 0);
    assert_int_equal(cuStreamDestroy_v2(stream), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
    expect_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_with_every_arena),
        cmocka_unit_test(what_cannot_be_had_is_said),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(pools_are_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
