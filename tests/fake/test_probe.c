/* SPDX-License-Identifier: Apache-2.0 */
/* filch_device_probe, filch_device_scope and the list of devices left out, on the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "filch/filch.h"

static filch_runtime *runtime_make(const char *devices)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;

    config.devices = devices;
    config.drive = FILCH_DRIVE_POLL;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK)
        fail_msg("%s: %s", devices == NULL ? "default" : devices, error.text);
    return runtime;
}

static void runtime_end(filch_runtime *runtime)
{
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    if (fakecuda_violations() != 0)
        fail_msg("%s", fakecuda_last_violation());
}

static void configure(const char *text)
{
    fakecuda_reset();
    assert_true(fakecuda_configure(text));
}

static filch_error last_error(filch_runtime *runtime)
{
    filch_error error = FILCH_ERROR_INIT;

    assert_int_equal(filch_runtime_error(runtime, &error), FILCH_OK);
    return error;
}

static void assert_probe_fails(filch_runtime *runtime, const filch_probe_desc *desc,
                               filch_status status, const char *text)
{
    filch_probe probe, before;

    memset(&probe, 0x5a, sizeof probe);
    probe.size = sizeof probe;
    before = probe;
    assert_int_equal(filch_device_probe(runtime, "fft", desc, &probe), status);
    assert_string_equal(last_error(runtime).text, text);
    assert_string_equal(last_error(runtime).label, "fft");
    assert_memory_equal(&probe, &before, sizeof probe);
}

typedef struct builds {
    uint32_t count;
    int code;
    filch_probe seen;
} builds;

static int build(const filch_probe *probe, void *user)
{
    builds *made = user;

    made->count++;
    made->seen = *probe;
    return made->code;
}

static void a_probe_resolves_its_gpu(void **state)
{
    filch_probe_desc desc = FILCH_PROBE_DESC_INIT;
    filch_probe probe = {.size = sizeof probe};
    builds made = {0};
    filch_runtime *runtime;

    (void)state;
    configure("{\"devices\":[{\"arch\":\"9.0\"},{\"arch\":\"7.5\",\"sms\":40}]}");
    runtime = runtime_make("host:1,cuda");
    desc.ordinal = 1;
    desc.build = build;
    desc.user = &made;
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, &probe), FILCH_OK);
    assert_ptr_equal(probe.runtime, runtime);
    assert_non_null(probe.context);
    assert_non_null(probe.stream);
    assert_int_equal(probe.ordinal, 1);
    assert_int_equal(probe.cuda_device, 1);
    assert_int_equal(probe.device, 2);
    assert_int_equal(probe.capability, 75);
    assert_int_equal(probe.multiprocessors, 40);
    assert_int_equal(made.count, 1);
    assert_memory_equal(&made.seen, &probe, sizeof probe);
    /* Built is built, for this label and this GPU. */
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, NULL), FILCH_OK);
    assert_int_equal(made.count, 1);
    assert_int_equal(filch_device_probe(runtime, "blas", &desc, NULL), FILCH_OK);
    assert_int_equal(made.count, 2);
    desc.ordinal = 0;
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, &probe), FILCH_OK);
    assert_int_equal(made.count, 3);
    assert_int_equal(probe.device, 1);
    desc.is_retry = 1;
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, &probe), FILCH_OK);
    assert_int_equal(made.count, 4);
    assert_int_equal(filch_device_probe(runtime, "fft", NULL, NULL), FILCH_OK);
    desc.ordinal = 7;
    assert_probe_fails(runtime, &desc, FILCH_UNKNOWN_ORDINAL,
                       "fft backend: no CUDA device 7 in this runtime");
    runtime_end(runtime);
}

static void without_a_driver_every_probe_says_so(void **state)
{
    filch_runtime *runtime;

    (void)state;
    configure("{\"driver\":11040}");
    runtime = runtime_make(NULL);
    assert_probe_fails(runtime, NULL, FILCH_DRIVER_TOO_OLD,
                       "fft backend: no CUDA runtime available");
    assert_int_equal(filch_device_refused_count(runtime), 1);
    runtime_end(runtime);
    configure("");
    runtime = runtime_make("host:1");
    assert_probe_fails(runtime, NULL, FILCH_NO_DRIVER, "fft backend: no CUDA runtime available");
    assert_int_equal(filch_device_refused_count(runtime), 0);
    runtime_end(runtime);
}

static void a_gpu_left_out_can_be_had_later(void **state)
{
    filch_device_refusal refusal = {.size = sizeof refusal};
    filch_probe_desc desc = FILCH_PROBE_DESC_INIT;
    filch_probe probe = {.size = sizeof probe};
    filch_runtime *runtime;
    uint64_t tries;

    (void)state;
    configure("{\"devices\":[{\"count\":2}]}");
    fakecuda_fail("cuDevicePrimaryCtxRetain", 1, 2, 46, 1, false);
    runtime = runtime_make("cuda");
    assert_int_equal(filch_device_count(runtime), 1);
    assert_int_equal(filch_device_refused_count(runtime), 1);
    assert_int_equal(filch_device_refused_at(runtime, 0, &refusal), FILCH_OK);
    assert_string_equal(refusal.name, "cuda:1");
    assert_int_equal(refusal.error.native_code, 46);
    assert_int_equal(filch_device_refused_at(runtime, 1, &refusal), FILCH_BAD_INDEX);
    refusal.size = 8;
    assert_int_equal(filch_device_refused_at(runtime, 0, &refusal), FILCH_INVALID_ARGUMENT);
    /* Remembered: nothing is tried. */
    desc.ordinal = 1;
    tries = fakecuda_count("cuDevicePrimaryCtxRetain");
    assert_probe_fails(runtime, &desc, FILCH_DEVICE_LOST,
                       "fft backend: failed to create CUDA context for device 1");
    assert_string_equal(last_error(runtime).native_name, "CUDA_ERROR_DEVICE_UNAVAILABLE");
    assert_string_equal(last_error(runtime).call, "cuDevicePrimaryCtxRetain");
    assert_int_equal(fakecuda_count("cuDevicePrimaryCtxRetain"), tries);
    /* Tried, and it fails once more; then it works, and stays. */
    desc.is_retry = 1;
    assert_probe_fails(runtime, &desc, FILCH_DEVICE_LOST,
                       "fft backend: failed to create CUDA context for device 1");
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, &probe), FILCH_OK);
    assert_int_equal(probe.device, UINT32_MAX);
    assert_non_null(probe.context);
    desc.is_retry = 0;
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, &probe), FILCH_OK);
    assert_int_equal(filch_device_count(runtime), 1);
    runtime_end(runtime);
}

static void failures_of_streams_and_builds_are_told(void **state)
{
    filch_probe_desc desc = FILCH_PROBE_DESC_INIT;
    builds made = {.code = 42};
    filch_runtime *runtime;

    (void)state;
    configure("{\"devices\":[{\"count\":2}]}");
    runtime = runtime_make("cuda");
    fakecuda_fail("cuStreamCreate", 1, 1, 2, 0, false);
    assert_probe_fails(runtime, NULL, FILCH_NO_DEVICE_MEMORY,
                       "fft backend: failed to create CUDA stream for device 0");
    desc.build = build;
    desc.user = &made;
    assert_probe_fails(runtime, &desc, FILCH_TASK_FAILED,
                       "fft backend: build step failed for device 0 (code 42)");
    assert_int_equal(last_error(runtime).native_code, 42);
    /* Remembered until a retry; nobody else is concerned. */
    made.code = 0;
    assert_probe_fails(runtime, &desc, FILCH_TASK_FAILED,
                       "fft backend: build step failed for device 0 (code 42)");
    assert_int_equal(made.count, 1);
    assert_int_equal(filch_device_probe(runtime, "blas", &desc, NULL), FILCH_OK);
    assert_int_equal(filch_device_probe(runtime, "fft", NULL, NULL), FILCH_OK);
    desc.is_retry = 1;
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, NULL), FILCH_OK);
    assert_int_equal(made.count, 3);
    desc.is_retry = 0;
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, NULL), FILCH_OK);
    assert_int_equal(made.count, 3);
    runtime_end(runtime);
}

static void bad_arguments_change_nothing(void **state)
{
    filch_probe_desc desc = FILCH_PROBE_DESC_INIT;
    filch_probe probe = {.size = 8};
    filch_runtime *runtime;

    (void)state;
    configure("");
    runtime = runtime_make("cuda:0");
    assert_int_equal(filch_device_probe(NULL, "fft", NULL, NULL), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_device_probe(runtime, NULL, NULL, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_device_probe(runtime, "fft", NULL, &probe), FILCH_INVALID_ARGUMENT);
    desc.size = 0;
    assert_int_equal(filch_device_probe(runtime, "fft", &desc, NULL), FILCH_INVALID_ARGUMENT);
    runtime_end(runtime);
}

static int scoped(const filch_lane *lane, void *user)
{
    assert_non_null(lane->context);
    assert_non_null(lane->stream);
    return *(const int *)user;
}

static void a_scope_tells_what_its_function_returned(void **state)
{
    filch_runtime *runtime;
    int code = 0;

    (void)state;
    configure("{\"devices\":[{\"granularity\":8,\"groups\":15}]}");
    runtime = runtime_make("cuda:0/88+24,host:1");
    assert_int_equal(filch_device_scope(runtime, 1, scoped, &code), FILCH_OK);
    code = -3;
    assert_int_equal(filch_device_scope(runtime, 0, scoped, &code), FILCH_TASK_FAILED);
    assert_int_equal(last_error(runtime).native_code, -3);
    assert_int_equal(filch_device_scope(runtime, 2, scoped, &code), FILCH_UNSUPPORTED);
    assert_int_equal(filch_device_scope(runtime, 3, scoped, &code), FILCH_BAD_INDEX);
    assert_int_equal(filch_device_scope(runtime, 0, NULL, &code), FILCH_INVALID_ARGUMENT);
    runtime_end(runtime);
}

typedef struct looked {
    unsigned flags;
    int is_primary;
} looked;

static int look(const filch_lane *lane, void *user)
{
    looked *seen = user;
    unsigned flags;

    (void)lane;
    (void)cuDevicePrimaryCtxGetState(0, &flags, &seen->is_primary);
    return cuCtxGetFlags(&seen->flags);
}

/* The host's fields beat the environment, which beats the defaults; an older caller has none. */
static void the_context_is_the_one_asked_for(void **state)
{
    static const struct {
        filch_cuda_context context;
        filch_cuda_schedule schedule;
        bool has_fields, is_private;
        unsigned flags;
    } cases[] = {
        {FILCH_CUDA_CONTEXT_DEFAULT, FILCH_CUDA_SCHEDULE_DEFAULT, true, true, 2},
        {FILCH_CUDA_CONTEXT_PRIVATE, FILCH_CUDA_SCHEDULE_BLOCKING, true, true, 4},
        {FILCH_CUDA_CONTEXT_PRIMARY, FILCH_CUDA_SCHEDULE_SPIN, true, false, 0},
        {FILCH_CUDA_CONTEXT_PRIMARY, FILCH_CUDA_SCHEDULE_SPIN, false, true, 2},
    };

    (void)state;
    (void)setenv("FILCH_CUDA_CONTEXT", "private", 1);
    (void)setenv("FILCH_CUDA_SCHEDULE", "yield", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
        filch_runtime *runtime = NULL;
        looked seen = {99, 99};

        configure(NULL);
        config.devices = "cuda:0";
        config.cuda_context = cases[i].context;
        config.cuda_schedule = cases[i].schedule;
        if (!cases[i].has_fields)
            config.size = offsetof(filch_runtime_desc, cuda_context);
        assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_OK);
        assert_int_equal(filch_device_scope(runtime, 0, look, &seen), FILCH_OK);
        assert_int_equal(seen.is_primary, !cases[i].is_private);
        assert_int_equal(seen.flags & 7u, cases[i].flags);
        runtime_end(runtime);
    }
    (void)unsetenv("FILCH_CUDA_CONTEXT");
    (void)unsetenv("FILCH_CUDA_SCHEDULE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_resolves_its_gpu),
        cmocka_unit_test(without_a_driver_every_probe_says_so),
        cmocka_unit_test(a_gpu_left_out_can_be_had_later),
        cmocka_unit_test(failures_of_streams_and_builds_are_told),
        cmocka_unit_test(bad_arguments_change_nothing),
        cmocka_unit_test(a_scope_tells_what_its_function_returned),
        cmocka_unit_test(the_context_is_the_one_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
