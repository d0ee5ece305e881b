/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA devices from loading the driver to closing them, against the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/describe.h"
#include "backend/cuda/device.h"
#include "backend/cuda/driver/loader.h"
#include "device/pool.h"
#include "fake.h"

#define TWO "{\"devices\":[{\"count\":2}]}"
#define MIXED                                                                                      \
    "{\"devices\":[{\"name\":\"NVIDIA H200\",\"sms\":132,\"arch\":\"9.0\",\"memory\":4294967296}," \
    "{\"name\":\"Tesla T4\",\"sms\":40,\"arch\":\"7.5\",\"ecc\":false},"                           \
    "{\"name\":\"NVIDIA A100-SXM4-40GB MIG 1g.5gb\",\"sms\":14,\"arch\":\"8.0\",\"mig\":true}]}"

static fl_memory memory;
static fl_settings settings;

static void configure(const char *text)
{
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    fakecuda_reset();
    assert_true(fakecuda_configure(text));
    memory = fl_memory_default();
    fl_settings_defaults(&settings);
}

static filch_status pool_try(fl_pool *pool, const char *spec, filch_error *error)
{
    const fl_discovery how = {.memory = &memory, .error = error, .settings = &settings};

    return fl_pool_open(pool, spec, &how);
}

static void pool_make(fl_pool *pool, const char *spec)
{
    filch_error error = FILCH_ERROR_INIT;

    if (pool_try(pool, spec, &error) != FILCH_OK)
        fail_msg("%s: %s", spec == NULL ? "default" : spec, error.text);
}

static void assert_nothing_left(void)
{
    static const char *const kinds[] = {"context", "stream", "event", "module", "green", "memory"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        assert_int_equal(fakecuda_live(kinds[i]), 0);
    if (fakecuda_violations() != 0)
        fail_msg("%s", fakecuda_last_violation());
}

static void pool_end(fl_pool *pool)
{
    fl_pool_close(pool, &memory);
    assert_nothing_left();
}

static filch_error refused(const char *spec, filch_status expected, const char *fragment)
{
    filch_error error = FILCH_ERROR_INIT;
    fl_pool pool;
    filch_status status = pool_try(&pool, spec, &error);

    if (status != expected || strstr(error.text, fragment) == NULL)
        fail_msg("%s: status %d, '%s'", spec, status, error.text);
    assert_int_equal(error.status, expected);
    assert_int_equal(pool.count, 0);
    assert_nothing_left();
    return error;
}

/* --- The driver's library --- */

static void load_fails(const char *config, filch_status expected, const char *fragment)
{
    fl_cuda_library library;
    filch_error error = FILCH_ERROR_INIT;

    configure(config);
    if (fl_cuda_load(&library, &error) != expected || strstr(error.text, fragment) == NULL)
        fail_msg("%s: %d, '%s'", config, error.status, error.text);
    assert_null(library.handle);
    /* Nothing stays behind: a driver that came meanwhile is taken. */
    configure("");
    assert_int_equal(fl_cuda_load(&library, &error), FILCH_OK);
    fl_cuda_unload(&library);
}

static void bad_drivers_are_told_apart(void **state)
{
    fl_cuda_library library;
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    load_fails("{\"stub\":true}", FILCH_DRIVER_STUB, "made for linking only");
    load_fails("{\"driver\":11080}", FILCH_DRIVER_TOO_OLD, "version 11.8, older than 12.0");
    load_fails("{\"missing\":[\"cuLaunchKernel\"]}", FILCH_DRIVER_BROKEN,
               "has no cuLaunchKernel of version 4000");
    load_fails("{\"failures\":[{\"call\":\"cuInit\",\"result\":803}]}", FILCH_DRIVER_BROKEN,
               "cuInit gives CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    assert_int_equal(fl_cuda_load_named(&library, "libcuda.so.nowhere", &error), FILCH_NO_DRIVER);
    assert_non_null(strstr(error.text, "there is no CUDA driver"));
    /* A library of another kind, and a file that is no library. */
    assert_int_equal(fl_cuda_load_named(&library, "libm.so.6", &error), FILCH_DRIVER_BROKEN);
    assert_non_null(strstr(error.text, "it is no CUDA driver"));
    assert_int_equal(fl_cuda_load_named(&library, "/proc/self/cmdline", &error),
                     FILCH_DRIVER_BROKEN);
    assert_null(library.handle);
}

/* An older driver lacks the newer entry points, and that is all. */
static void optional_entries_follow_the_driver(void **state)
{
    static const struct {
        const char *config;
        bool params, split, streams;
    } cases[] = {
        {"{\"driver\":12000}", false, false, false},
        {"{\"driver\":12040}", true, true, false},
        {"{\"driver\":12050}", true, true, true},
        {"{\"driver\":13000}", true, true, true},
        {"{\"missing\":[\"cuFuncGetParamInfo\"]}", false, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fl_cuda_library library;
        filch_error error = FILCH_ERROR_INIT;

        configure(cases[i].config);
        if (fl_cuda_load(&library, &error) != FILCH_OK)
            fail_msg("%s: %s", cases[i].config, error.text);
        assert_int_equal(library.api.cuFuncGetParamInfo != NULL, cases[i].params);
        assert_int_equal(library.api.cuDevSmResourceSplitByCount != NULL, cases[i].split);
        assert_int_equal(library.api.cuGreenCtxStreamCreate != NULL, cases[i].streams);
        assert_non_null(library.api.cuGraphAddKernelNode);
        fl_cuda_unload(&library);
    }
}

/* --- Specifications --- */

static void every_gpu_or_those_named(void **state)
{
    fl_pool pool;

    (void)state;
    configure("{\"devices\":[{\"count\":3}]}");
    pool_make(&pool, NULL);
    assert_int_equal(pool.count, 3);
    assert_string_equal(pool.devices[2].info.name, "cuda:2");
    assert_int_equal(pool.devices[2].info.ordinal, 2);
    assert_int_equal(pool.devices[2].place, 3);
    assert_int_equal(pool.place_count, 4);
    pool_end(&pool);
    pool_make(&pool, "cuda:2,host:1,cuda:0");
    assert_int_equal(pool.count, 3);
    assert_string_equal(pool.devices[0].info.name, "cuda:2");
    assert_int_equal(pool.devices[0].info.place, 1);
    assert_int_equal(pool.devices[1].info.place, 0);
    assert_string_equal(pool.devices[2].info.name, "cuda:0");
    assert_int_equal(pool.devices[2].info.place, 2);
    /* One library for both items. */
    assert_ptr_equal(fl_cuda_of(&pool.devices[0])->gpu->library,
                     fl_cuda_of(&pool.devices[2])->gpu->library);
    pool_end(&pool);
    assert_int_equal(refused("host:1,cuda:3", FILCH_UNKNOWN_ORDINAL, "there is no cuda:3").line, 8);
    refused("cuda:0,cuda:0", FILCH_DUPLICATE_DEVICE, "already");
}

static void hidden_gpus_name_the_variable(void **state)
{
    fl_pool pool;

    (void)state;
    configure(TWO);
    (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
    refused("cuda", FILCH_NO_DEVICE, "CUDA_VISIBLE_DEVICES is \"\"");
    configure(TWO);
    (void)setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    refused("cuda:1", FILCH_UNKNOWN_ORDINAL, "CUDA_VISIBLE_DEVICES is \"1\"");
    /* By default hidden GPUs are none. */
    configure(TWO);
    (void)setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    pool_make(&pool, NULL);
    assert_int_equal(pool.devices[0].info.backend, FILCH_BACKEND_HOST);
    assert_int_equal(pool.refusals.count, 0);
    pool_end(&pool);
}

/* A driver that is there but does not work is an error only where CUDA was asked for. */
static void a_useless_driver_leaves_the_host(void **state)
{
    fl_pool pool;

    (void)state;
    configure("{\"driver\":11040}");
    pool_make(&pool, NULL);
    assert_int_equal(pool.devices[0].info.backend, FILCH_BACKEND_HOST);
    assert_int_equal(pool.refusals.count, 1);
    assert_string_equal(pool.refusals.items[0].name, "cuda");
    assert_int_equal(pool.refusals.items[0].error.status, FILCH_DRIVER_TOO_OLD);
    pool_end(&pool);
    configure("{\"driver\":11040}");
    assert_int_equal(refused("host:1,cuda", FILCH_DRIVER_TOO_OLD, "11.4").line, 8);
}

static void one_broken_gpu_takes_no_other_down(void **state)
{
    static const char *const failing[] = {"cuDevicePrimaryCtxRetain", "cuDeviceTotalMem",
                                          "cuMemGetInfo"};

    (void)state;
    for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++) {
        filch_device_refusal refusal = {.size = sizeof refusal};
        fl_pool pool;

        configure("{\"devices\":[{\"count\":3}]}");
        fakecuda_fail(failing[i], 1, 0, 46, 1, false);
        pool_make(&pool, NULL);
        assert_int_equal(pool.count, 2);
        assert_string_equal(pool.devices[1].info.name, "cuda:2");
        assert_int_equal(pool.devices[1].info.index, 1);
        assert_int_equal(pool.devices[1].info.place, 2);
        assert_int_equal(pool.place_count, 3);
        assert_int_equal(pool.refusals.count, 1);
        assert_int_equal(fl_pool_refused(&pool, 0, &refusal), FILCH_OK);
        assert_string_equal(refusal.name, "cuda:1");
        assert_int_equal(refusal.ordinal, 1);
        assert_int_equal(refusal.error.native_code, 46);
        assert_string_equal(refusal.error.native_name, "CUDA_ERROR_DEVICE_UNAVAILABLE");
        assert_string_equal(refusal.error.call, failing[i]);
        assert_int_equal(fl_pool_refused(&pool, 1, &refusal), FILCH_BAD_INDEX);
        pool_end(&pool);
        /* Asked for by itself, it is an error; the others are not touched. */
        configure("{\"devices\":[{\"count\":3}]}");
        fakecuda_fail(failing[i], 1, 0, 46, 1, false);
        refused("cuda:0,cuda:1", FILCH_DEVICE_LOST, "cuda:1: ");
        fakecuda_reset();
        /* All of them: the host is left by default, nothing where CUDA was named. */
        configure(TWO);
        fakecuda_fail(failing[i], 1, 0, 46, -1, false);
        pool_make(&pool, NULL);
        assert_int_equal(pool.devices[0].info.backend, FILCH_BACKEND_HOST);
        assert_int_equal(pool.refusals.count, 2);
        pool_end(&pool);
        refused("cuda", FILCH_NO_DEVICE, "cuda:");
    }
}

static void a_prohibited_gpu_is_left_out(void **state)
{
    fl_pool pool;

    (void)state;
    configure("{\"devices\":[{},{\"compute_mode\":2}]}");
    pool_make(&pool, "cuda");
    assert_int_equal(pool.count, 1);
    assert_non_null(strstr(pool.refusals.items[0].error.text, "prohibits contexts"));
    pool_end(&pool);
}

/* --- Descriptions --- */

static void a_mixed_pool_is_described(void **state)
{
    fl_pool pool;

    (void)state;
    configure(MIXED);
    pool_make(&pool, "cuda");
    assert_int_equal(pool.count, 3);

    const filch_device_info *h200 = &pool.devices[0].info;
    const filch_device_info *t4 = &pool.devices[1].info;
    const filch_device_info *mig = &pool.devices[2].info;

    assert_string_equal(h200->model, "NVIDIA H200");
    assert_int_equal(h200->capability, 90);
    assert_int_equal(t4->capability, 75);
    assert_int_equal(pool.devices[1].backend->module->target(&pool.devices[1]), 75);
    assert_int_equal(h200->team, 132);
    assert_int_equal(h200->multiprocessors, 132);
    assert_int_equal(h200->single_lanes, 128);
    assert_int_equal(t4->single_lanes, 64);
    assert_true(h200->clock_khz > 0);
    assert_true(fabs(h200->score / t4->score -
                     132.0 * 128 * h200->clock_khz / (40.0 * 64 * t4->clock_khz)) < 1e-9);
    assert_int_equal(h200->features & FILCH_DEVICE_ECC, FILCH_DEVICE_ECC);
    assert_int_equal(t4->features & (FILCH_DEVICE_ECC | FILCH_DEVICE_CLUSTERS), 0);
    assert_int_equal(mig->features & FILCH_DEVICE_MIG, FILCH_DEVICE_MIG);
    assert_memory_equal(h200->uuid, "GPU-", 4);
    assert_memory_equal(mig->uuid, "MIG-", 4);
    assert_int_equal(strlen(h200->uuid), 40);
    assert_string_not_equal(h200->uuid, t4->uuid);
    assert_non_null(strchr(h200->pci, ':'));
    assert_int_equal(h200->memory_total, UINT64_C(4) << 30);
    assert_true(h200->budget > 0 && h200->budget < h200->memory_total);
    assert_int_equal(h200->compute_lanes, pool.devices[0].lanes);
    pool_end(&pool);
}

static void budgets_spare_the_driver(void **state)
{
    const uint64_t gib = UINT64_C(1) << 30;
    const struct {
        uint64_t limit, here, budget;
    } cases[] = {
        {FILCH_MEMORY_FIT, 80 * gib, 72 * gib},
        {FILCH_MEMORY_FIT, 10 * gib, 10 * gib - (gib >> 1)},
        {FILCH_MEMORY_FIT, gib / 4, 0},
        {FILCH_MEMORY_HALF, 80 * gib, 40 * gib},
        {FILCH_MEMORY_HALF, 30 * gib, 30 * gib},
        {1, 80 * gib, 1},
        {80 * gib, 79 * gib, 79 * gib},
    };
    const fl_cuda_gpu gpu = {.name = "cuda:3"};
    filch_error error = FILCH_ERROR_INIT;
    uint64_t budget = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            fl_cuda_budget(&gpu, (int64_t)cases[i].limit, cases[i].here, 80 * gib, &budget, &error),
            FILCH_OK);
        assert_int_equal(budget, cases[i].budget);
    }
    assert_int_equal(fl_cuda_budget(&gpu, (int64_t)(80 * gib + 1), gib, 80 * gib, &budget, &error),
                     FILCH_TOO_LARGE);
    assert_string_equal(error.text, "the memory limit is 85899345921 bytes, but cuda:3 has "
                                    "85899345920 bytes of memory");
    assert_string_equal(error.device, "cuda:3");
}

/* --- Contexts --- */

static void the_primary_context_is_the_hosts(void **state)
{
    unsigned int flags = 99;
    CUcontext host = NULL;
    CUcontext now = NULL;
    fl_cuda_library library;
    int active = 1;
    fl_pool pool;

    (void)state;
    configure("{\"devices\":[{\"primary_flags\":4},{}]}");
    assert_int_equal(fl_cuda_load(&library, NULL), FILCH_OK);
    assert_int_equal(library.api.cuDevicePrimaryCtxRetain(&host, 0), FL_CUDA_SUCCESS);
    assert_int_equal(library.api.cuCtxPushCurrent(host), FL_CUDA_SUCCESS);
    pool_make(&pool, "cuda");
    assert_ptr_equal(fl_cuda_of(&pool.devices[0])->gpu->context, host);
    assert_int_equal(cuDevicePrimaryCtxGetState(0, &flags, &active), FL_CUDA_SUCCESS);
    assert_int_equal(flags, 4);
    assert_int_equal(library.api.cuCtxGetCurrent(&now), FL_CUDA_SUCCESS);
    assert_ptr_equal(now, host);
    fl_pool_close(&pool, &memory);
    assert_int_equal(library.api.cuCtxGetCurrent(&now), FL_CUDA_SUCCESS);
    assert_ptr_equal(now, host);
    assert_int_equal(cuDevicePrimaryCtxGetState(1, &flags, &active), FL_CUDA_SUCCESS);
    assert_int_equal(active, 0);
    assert_int_equal(library.api.cuCtxPopCurrent(&now), FL_CUDA_SUCCESS);
    assert_int_equal(library.api.cuDevicePrimaryCtxRelease(0), FL_CUDA_SUCCESS);
    fl_cuda_unload(&library);
    assert_nothing_left();
}

static void a_private_context_has_the_flags_asked_for(void **state)
{
    static const struct {
        const char *word;
        unsigned int flags;
    } cases[] = {{"auto", 0}, {"spin", 1}, {"yield", 2}, {"blocking", 4}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CUcontext now = (CUcontext)(uintptr_t)1;
        unsigned int flags = 99;
        int active = 1;
        fl_cuda_scope scope;
        fl_pool pool;

        configure(TWO);
        assert_int_equal(fl_setting_parse(&settings, "FILCH_CUDA_CONTEXT", "private", NULL),
                         FILCH_OK);
        assert_int_equal(fl_setting_parse(&settings, "FILCH_CUDA_SCHEDULE", cases[i].word, NULL),
                         FILCH_OK);
        pool_make(&pool, "cuda:1");

        fl_cuda_gpu *gpu = fl_cuda_of(&pool.devices[0])->gpu;

        assert_int_equal(gpu->api->cuCtxGetCurrent(&now), FL_CUDA_SUCCESS);
        assert_null(now);
        assert_int_equal(fl_cuda_enter(gpu, &scope, NULL), FILCH_OK);
        assert_int_equal(cuCtxGetFlags(&flags), FL_CUDA_SUCCESS);
        assert_true(fl_cuda_leave(&scope));
        assert_int_equal(flags & 7u, cases[i].flags);
        assert_int_equal(flags & 8u, 8);
        assert_int_equal(cuDevicePrimaryCtxGetState(1, &flags, &active), FL_CUDA_SUCCESS);
        assert_int_equal(active, 0);
        pool_end(&pool);
        refused("cuda:0/8+8", FILCH_UNSUPPORTED, "FILCH_CUDA_CONTEXT must not be private");
    }
}

typedef struct misuse {
    const fl_cuda_api *api;
    CUcontext other;
    int kind;
} misuse;

/* What a host's function may do to the stack of contexts. */
static int misbehave(const filch_lane *lane, void *user)
{
    const misuse *how = user;
    CUcontext top = NULL;

    switch (how->kind) {
    case 1: /* set */
        return how->api->cuCtxSetCurrent(how->other);
    case 2: /* more pushed than popped */
        return how->api->cuCtxPushCurrent(how->other) + how->api->cuCtxPushCurrent(lane->context) +
               how->api->cuCtxPushCurrent(how->other);
    case 3: /* more popped than pushed */
        return how->api->cuCtxPopCurrent(&top);
    default:
        return 0;
    }
}

static void a_scope_restores_whatever_happens_inside(void **state)
{
    misuse how;
    fl_pool pool;

    (void)state;
    configure(TWO);
    pool_make(&pool, "cuda");
    how.api = fl_cuda_of(&pool.devices[0])->gpu->api;
    how.other = fl_cuda_of(&pool.devices[1])->gpu->context;
    for (int outer = 0; outer < 2; outer++) {
        CUcontext before = outer == 0 ? NULL : how.other;

        for (how.kind = 0; how.kind <= 3; how.kind++) {
            CUcontext now = (CUcontext)(uintptr_t)1;
            filch_error error = FILCH_ERROR_INIT;
            int code = -1;

            if (before != NULL)
                assert_int_equal(how.api->cuCtxPushCurrent(before), FL_CUDA_SUCCESS);
            assert_int_equal(pool.devices[0].backend->interop->within(&pool.devices[0], misbehave,
                                                                      &how, &code, &error),
                             FILCH_OK);
            assert_int_equal(code, 0);
            assert_int_equal(how.api->cuCtxGetCurrent(&now), FL_CUDA_SUCCESS);
            assert_ptr_equal(now, before);
            if (before != NULL)
                assert_int_equal(how.api->cuCtxPopCurrent(&now), FL_CUDA_SUCCESS);
            assert_int_equal(how.api->cuCtxGetCurrent(&now), FL_CUDA_SUCCESS);
            assert_null(now);
        }
    }
    pool_end(&pool);
}

/* Codes after which a context answers nothing else take the device; others do not. */
static void codes_become_statuses(void **state)
{
    static const struct {
        CUresult code;
        filch_status status;
    } cases[] = {
        {1, FILCH_BACKEND},       {2, FILCH_NO_DEVICE_MEMORY}, {200, FILCH_IMAGE},
        {209, FILCH_IMAGE},       {218, FILCH_IMAGE},          {214, FILCH_DEVICE_LOST},
        {600, FILCH_NOT_READY},   {700, FILCH_DEVICE_LOST},    {701, FILCH_BACKEND},
        {702, FILCH_DEVICE_LOST}, {709, FILCH_DEVICE_LOST},    {710, FILCH_DEVICE_LOST},
        {714, FILCH_DEVICE_LOST}, {718, FILCH_DEVICE_LOST},    {719, FILCH_DEVICE_LOST},
        {720, FILCH_BACKEND},     {999, FILCH_DEVICE_LOST},    {12345, FILCH_BACKEND},
    };

    (void)state;
    configure(TWO);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filch_error error = FILCH_ERROR_INIT;
        fl_pool pool;

        pool_make(&pool, "cuda:0");

        fl_cuda_gpu *gpu = fl_cuda_of(&pool.devices[0])->gpu;

        assert_int_equal(fl_cuda_fail(gpu, cases[i].code, "cuThat", NULL, "task", &error),
                         cases[i].status);
        assert_int_equal(fl_cuda_lost(gpu, NULL, NULL), cases[i].status == FILCH_DEVICE_LOST);
        assert_int_equal(error.native_code, cases[i].code);
        assert_true(error.native_name[0] != '\0');
        assert_string_equal(error.call, "cuThat");
        assert_string_equal(error.device, "cuda:0");
        assert_string_equal(error.label, "task");
        pool_end(&pool);
    }
}

/* --- Slices --- */

static void a_gpu_is_cut_in_one_split(void **state)
{
    static const uint32_t sizes[] = {88, 24, 8};
    fl_pool pool;

    (void)state;
    configure("{\"devices\":[{\"granularity\":8,\"groups\":15}]}");
    pool_make(&pool, "cuda:0/88+24+8,host:1");
    assert_int_equal(pool.count, 4);
    assert_int_equal(pool.place_count, 2);
    assert_int_equal(fakecuda_live("green"), 3);
    assert_int_equal(fakecuda_count("cuGreenCtxCreate"), 3);
    for (uint32_t i = 0; i < 3; i++) {
        const fl_device *device = &pool.devices[i];
        char name[16] = "cuda:0/0";

        name[7] = (char)('0' + i);
        assert_string_equal(device->info.name, name);
        assert_int_equal(device->info.team, sizes[i]);
        assert_int_equal(device->info.multiprocessors, 132);
        assert_int_equal(device->info.features & FILCH_DEVICE_SLICE, FILCH_DEVICE_SLICE);
        assert_int_equal(device->place, 1);
        assert_non_null(fl_cuda_of(device)->slice);
        assert_ptr_equal(fl_cuda_of(device)->gpu, fl_cuda_of(&pool.devices[0])->gpu);
        assert_true(fabs(device->info.score * sizes[0] - pool.devices[0].info.score * sizes[i]) <
                    1e-6);
    }
    pool_end(&pool);
    /* Finer ones, where nothing coarser does. */
    pool_make(&pool, "cuda:0/100+30+2");
    assert_int_equal(pool.count, 3);
    pool_end(&pool);
}

/* Beside two for copies a device, eight streams a GPU are to do; no device has more than two. */
static void lanes_are_two_unless_set(void **state)
{
    static const struct {
        const char *spec;
        uint32_t count, set, lanes;
    } cases[] = {
        {"cuda:0", 1, 0, 2},         {"cuda:0/88", 1, 0, 2},        {"cuda:0/64+56", 2, 0, 2},
        {"cuda:0/88+24+8", 3, 0, 2}, {"cuda:0/8+8+8+8+8", 5, 0, 2}, {"cuda:0/88+24+8", 3, 5, 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fl_pool pool;

        configure("{\"devices\":[{\"granularity\":8,\"groups\":15}]}");
        settings.lanes = cases[i].set;
        pool_make(&pool, cases[i].spec);
        assert_int_equal(pool.count, cases[i].count);
        for (size_t d = 0; d < pool.count; d++) {
            assert_int_equal(pool.devices[d].lanes, cases[i].lanes);
            assert_int_equal(pool.devices[d].info.compute_lanes, cases[i].lanes);
        }
        assert_int_equal(fakecuda_live("stream"), cases[i].count * (cases[i].lanes + 2));
        pool_end(&pool);
    }
}

static void an_impossible_cut_says_what_is_possible(void **state)
{
    (void)state;
    configure("{\"devices\":[{\"granularity\":8,\"groups\":15}]}");
    refused("cuda:0/88+24+24", FILCH_INVALID_ARGUMENT,
            "multiples of 8, together at most 120, or multiples of 2");
    refused("cuda:0/7", FILCH_INVALID_ARGUMENT, "cannot be cut into 7");
    refused("cuda:0/4294967295+8", FILCH_INVALID_ARGUMENT, "4294967295+8");
    configure("{\"driver\":12040}");
    refused("cuda:0/8", FILCH_UNSUPPORTED, "needs a driver of version 12.5, this is 12.4");
}

static void a_slice_that_fails_leaves_nothing(void **state)
{
    static const char *const failing[] = {"cuGreenCtxCreate", "cuGreenCtxStreamCreate",
                                          "cuDevResourceGenerateDesc", "cuEventCreate"};

    (void)state;
    for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++) {
        configure("{\"devices\":[{\"granularity\":8,\"groups\":15}]}");
        fakecuda_fail(failing[i], 2, 1, 2, -1, false);
        assert_string_equal(refused("cuda:0/88+24+8", FILCH_NO_DEVICE_MEMORY, "").call, failing[i]);
    }
}

/* --- Memory and modules --- */

static void memory_is_taken_and_given(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    uint64_t before = 0;
    uint64_t after = 0;
    void *block = NULL;
    fl_pool pool;

    (void)state;
    configure("{\"devices\":[{\"memory\":1073741824}]}");
    pool_make(&pool, "cuda");

    fl_device *device = &pool.devices[0];
    const fl_backend *backend = device->backend;

    assert_int_equal(backend->device->memory_free(device, &before), FILCH_OK);
    assert_int_equal(backend->memory->take(device, 1 << 20, &block, &error), FILCH_OK);
    assert_non_null(block);
    assert_int_equal(backend->device->memory_free(device, &after), FILCH_OK);
    assert_true(after < before);
    backend->memory->give(device, block);
    assert_int_equal(backend->device->memory_free(device, &after), FILCH_OK);
    assert_int_equal(after, before);
    block = &error;
    assert_int_equal(backend->memory->take(device, (size_t)1 << 40, &block, &error),
                     FILCH_NO_DEVICE_MEMORY);
    assert_ptr_equal(block, &error);
    assert_string_equal(error.native_name, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_string_equal(error.device, "cuda:0");
    /* Out of memory is no loss. */
    assert_int_equal(backend->memory->take(device, 64, &block, &error), FILCH_OK);
    backend->memory->give(device, block);
    pool_end(&pool);
}

static void bad_images_name_their_label(void **state)
{
    static const char text[] = "this is no image";
    filch_error error = FILCH_ERROR_INIT;
    void *module = NULL;
    fl_pool pool;

    (void)state;
    configure(TWO);
    pool_make(&pool, "cuda:0");

    fl_device *device = &pool.devices[0];
    const fl_backend *backend = device->backend;

    assert_int_equal(backend->module->load(device, text, sizeof text, "axpy", &module, &error),
                     FILCH_IMAGE);
    assert_non_null(strstr(error.text, "axpy: the image cannot be loaded on cuda:0"));
    assert_string_equal(error.label, "axpy");
    assert_int_equal(backend->module->load(device, text, 0, "axpy", &module, &error), FILCH_IMAGE);
    fakecuda_fail("cuModuleLoadDataEx", 1, 1, 209, -1, false);
    assert_int_equal(backend->module->load(device, text, sizeof text, "axpy", &module, &error),
                     FILCH_IMAGE);
    assert_non_null(strstr(error.text, "no code for cuda:0, compute capability 9.0"));
    assert_null(module);
    pool_end(&pool);
}

/* The thread is the test's own, and is put back. */
static void a_worker_is_bound_to_its_context(void **state)
{
    CUcontext now = NULL;
    cpu_set_t before, after;
    fl_pool pool;

    (void)state;
    configure(TWO);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    pool_make(&pool, "cuda:1");

    fl_device *device = &pool.devices[0];
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;

    memset(device->info.affinity, 0, sizeof device->info.affinity);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            device->info.affinity[cpu / 64] |= UINT64_C(1) << (cpu % 64);
            break;
        }
    }
    assert_int_equal(device->backend->device->bind(device), FILCH_OK);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_int_equal(CPU_COUNT(&after), 1);
    assert_int_equal(gpu->api->cuCtxGetCurrent(&now), FL_CUDA_SUCCESS);
    assert_ptr_equal(now, gpu->context);
    assert_int_equal(gpu->api->cuCtxSetCurrent(NULL), FL_CUDA_SUCCESS);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    pool_end(&pool);
}

/* Workers that are bound to nothing in particular may run wherever the process may. */
static void a_worker_may_be_left_unbound(void **state)
{
    cpu_set_t allowed;
    fl_pool pool;

    (void)state;
    configure(TWO);
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    settings.bind = FILCH_BIND_NONE;
    pool_make(&pool, "cuda");
    for (size_t i = 0; i < pool.count; i++) {
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
            assert_int_equal(pool.devices[i].info.affinity[cpu / 64] >> (cpu % 64) & 1,
                             CPU_ISSET(cpu, &allowed) != 0);
    }
    pool_end(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_drivers_are_told_apart),
        cmocka_unit_test(optional_entries_follow_the_driver),
        cmocka_unit_test(every_gpu_or_those_named),
        cmocka_unit_test(hidden_gpus_name_the_variable),
        cmocka_unit_test(a_useless_driver_leaves_the_host),
        cmocka_unit_test(one_broken_gpu_takes_no_other_down),
        cmocka_unit_test(a_prohibited_gpu_is_left_out),
        cmocka_unit_test(a_mixed_pool_is_described),
        cmocka_unit_test(budgets_spare_the_driver),
        cmocka_unit_test(the_primary_context_is_the_hosts),
        cmocka_unit_test(a_private_context_has_the_flags_asked_for),
        cmocka_unit_test(a_scope_restores_whatever_happens_inside),
        cmocka_unit_test(codes_become_statuses),
        cmocka_unit_test(a_gpu_is_cut_in_one_split),
        cmocka_unit_test(an_impossible_cut_says_what_is_possible),
        cmocka_unit_test(lanes_are_two_unless_set),
        cmocka_unit_test(a_slice_that_fails_leaves_nothing),
        cmocka_unit_test(memory_is_taken_and_given),
        cmocka_unit_test(bad_images_name_their_label),
        cmocka_unit_test(a_worker_is_bound_to_its_context),
        cmocka_unit_test(a_worker_may_be_left_unbound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
