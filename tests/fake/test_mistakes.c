/* SPDX-License-Identifier: Apache-2.0 */
/* A user's mistakes around GPUs: each is told with the label of what it is about, and takes nothing
 * else down. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "jobs.h"

#define TWO "{\"devices\":[{\"count\":2}]}"
#define MIXED "{\"devices\":[{\"arch\":\"9.0\"},{\"arch\":\"7.5\",\"sms\":40}]}"

typedef struct arguments {
    uint64_t add;
} arguments;

/* plus(to, arguments) */
static int plus(const filch_call *call)
{
    const arguments *args = call->args;
    uint64_t *to = call->views[0].ptr;

    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] += args->add;
    return 0;
}

static void begin(const char *devices, const char *driver)
{
    (void)setenv("FILCH_NVRTC", FL_NVRTC_FAKE13, 1);
    start(devices, "2", driver);
    fakecuda_register_filch("plus", plus, 1, false, sizeof(arguments));
}

/* --- What a codelet is made of --- */

typedef struct recipe {
    const char *image, *source, *entry;
    filch_shape shape;
    filch_shape_fn shape_of;
    size_t arg_size;
    filch_host_fn host;
} recipe;

static filch_status cook(const recipe *r, filch_codelet **codelet)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;

    cuda.image = r->image;
    cuda.image_bytes = r->image != NULL ? strlen(r->image) + 1 : 0;
    cuda.source = r->source;
    cuda.entry = r->entry != NULL ? r->entry : "bump";
    cuda.shape = r->shape;
    cuda.shape_of = r->shape_of;
    desc.name = "dinner";
    desc.cuda = &cuda;
    desc.host = r->host;
    desc.arg_size = (uint32_t)r->arg_size;
    return filch_codelet_create(runtime, &desc, codelet);
}

/* The runtime is as good as new. */
static void expect_unharmed(void)
{
    filch_data *data = handle(y);
    filch_graph *good = graph();

    set(y, 1);
    add(good, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    finish(submit(good), FILCH_OK);
    expect(y, 2);
    assert_ok(filch_graph_destroy(good));
    assert_ok(filch_data_destroy(data));
}

static filch_error refused(recipe r, filch_status expected, const char *fragment)
{
    filch_codelet *codelet = NULL;
    filch_error error = FILCH_ERROR_INIT;

    assert_int_equal(cook(&r, &codelet), expected);
    assert_null(codelet);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_int_equal(error.status, expected);
    assert_string_equal(error.label, "dinner");
    if (strstr(error.text, fragment) == NULL)
        fail_msg("'%s' is not in '%s'", fragment, error.text);
    expect_unharmed();
    return error;
}

static void bad_codelets_are_refused(void **state)
{
    static const char good[] = "FAKECUBIN arch=90 entry=bump";

    (void)state;
    begin("cuda", TWO);
    filch_error error =
        refused((recipe){.source = "line 1;\n@error;\n"}, FILCH_COMPILE, "the word @error");
    assert_int_equal(error.line, 2);
    error = refused((recipe){.image = good, .entry = "bum"}, FILCH_NOT_FOUND, "'bum'");
    assert_string_equal(error.call, "cuModuleGetFunction");
    assert_string_equal(error.device, "cuda:0");
    error = refused((recipe){.image = "FAKECUBIN arch=80 entry=bump"}, FILCH_IMAGE,
                    "no code for cuda:0, compute capability 9.0");
    assert_string_equal(error.call, "cuModuleLoadDataEx");
    assert_string_equal(error.device, "cuda:0");
    (void)refused((recipe){.image = "not an image"}, FILCH_IMAGE, "cannot be loaded on cuda:0");
    stop();
}

/* A compiler newer than the driver is said so when it is first needed, not before. */
static void a_compiler_newer_than_the_driver_is_refused(void **state)
{
    static const recipe plain = {.source = "a kernel"};
    static const recipe either = {.source = "a kernel", .host = bump};
    filch_codelet *codelet = NULL;

    (void)state;
    begin("cuda:0,host:1", "{\"driver\":12080}");
    (void)refused(plain, FILCH_DRIVER_TOO_OLD, "NVRTC 13.7 is newer than the driver");
    assert_ok(cook(&either, &codelet)); /* the host is left */
    stop();
}

/* One that is good for some devices runs there. */
static void an_image_of_another_architecture_runs_where_it_can(void **state)
{
    static const recipe old = {.image = "FAKECUBIN arch=75 entry=bump"};
    static const recipe either = {.image = "FAKECUBIN arch=90 entry=bump", .host = bump};
    filch_codelet *codelet = NULL;
    filch_device_stats stats[2];
    filch_job_info info = {.size = sizeof info};

    (void)state;
    for (int round = 0; round < 2; round++) {
        begin(round == 0 ? "cuda" : "cuda:1,host:1", MIXED);
        assert_ok(cook(round == 0 ? &old : &either, &codelet));
        filch_data *data = handle(x);
        filch_graph *many = graph();
        set(x, 1);
        for (int i = 0; i < 10; i++)
            add(many, codelet, FILCH_READWRITE, data, NULL, NULL);
        filch_job *job = submit(many);
        assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
        expect(x, 11);
        assert_ok(filch_job_stats(job, &info, stats, 2));
        assert_int_equal(stats[0].tiles, 0);
        assert_int_equal(stats[1].tiles, 10);
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(many));
        assert_ok(filch_data_destroy(data));
        stop();
    }
}

/* --- How it is called --- */

static int refuse_shape(const filch_call *call, filch_shape *shape)
{
    (void)call;
    shape->block[0] = 32;
    return 42;
}

/* As filch's own kernels do. */
static int misfit_shape(const filch_call *call, filch_shape *shape)
{
    (void)call;
    (void)shape;
    return FILCH_KERNEL_MISFIT;
}

/* One task of three fails, on a tile of its own; its successor is skipped. */
static filch_error serve(recipe r, const void *args)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_codelet *codelet = NULL, *good = on_gpu("bump");
    filch_error error = FILCH_ERROR_INIT;
    filch_data *bad = handle(x), *other = handle(z);
    filch_access access = {.data = bad, .mode = FILCH_READWRITE};
    filch_job_info info = {.size = sizeof info};
    filch_graph *mixed = graph();

    assert_ok(cook(&r, &codelet));
    set(x, 1);
    set(z, 1);
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.args = r.arg_size != 0 ? args : NULL;
    desc.label = "the cook";
    assert_ok(filch_graph_add(mixed, &desc, NULL));
    add(mixed, good, FILCH_READWRITE, bad, NULL, NULL);
    add(mixed, good, FILCH_READWRITE, other, NULL, NULL);
    filch_job *job = submit(mixed);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_string_equal(error.label, "the cook");
    assert_non_null(strstr(error.text, "the cook"));
    assert_memory_equal(error.device, "cuda:", 5);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.done, 1);
    assert_int_equal(info.failed, 1);
    assert_int_equal(info.skipped, 1);
    expect(x, 1);
    expect(z, 2);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(mixed));
    assert_ok(filch_data_destroy(bad));
    assert_ok(filch_data_destroy(other));
    expect_unharmed();
    return error;
}

static void expect_text(filch_error error, filch_status status, const char *fragment)
{
    assert_int_equal(error.status, status);
    if (strstr(error.text, fragment) == NULL)
        fail_msg("'%s' is not in '%s'", fragment, error.text);
}

static void impossible_geometries_fail_their_task(void **state)
{
    static const char image[] = "FAKECUBIN arch=90 entry=bump";
    static const struct {
        filch_shape shape;
        const char *fragment;
    } cases[] = {
        {{.grid = {1, 65536}, .block = {32}}, "the grid has more blocks"},
        {{.grid = {1, 1, 65536}, .block = {32}}, "the grid has more blocks"},
        {{.grid = {UINT32_MAX}, .block = {32}}, "the grid has more blocks"},
        {{.block = {1025}}, "more threads than this GPU"},
        {{.block = {64, 32}}, "more threads than this GPU"},
        {{.block = {UINT32_MAX, UINT32_MAX, UINT32_MAX}}, "more threads than this GPU"},
        {{.block = {32}, .shared_bytes = 1 << 20}, "more shared memory"},
        {{.grid = {6}, .block = {32}, .cluster = {4, 1, 1}}, "no multiple of its clusters"},
    };

    (void)state;
    begin("cuda", TWO);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filch_error error = serve((recipe){.image = image, .shape = cases[i].shape}, NULL);
        expect_text(error, FILCH_INVALID_ARGUMENT, cases[i].fragment);
    }
    filch_error error = serve((recipe){.image = image, .shape_of = refuse_shape}, NULL);
    expect_text(error, FILCH_TASK_FAILED, "42");
    assert_int_equal(error.native_code, 42);
    error = serve((recipe){.image = image, .shape_of = misfit_shape}, NULL);
    expect_text(error, FILCH_TASK_FAILED, "-1");
    assert_int_equal(error.native_code, FILCH_KERNEL_MISFIT);
    stop();
    begin("cuda", MIXED);
    error = serve((recipe){.image = "FAKECUBIN arch=75 entry=bump",
                           .shape = {.block = {32}, .cluster = {1, 1, 1}}},
                  NULL);
    expect_text(error, FILCH_INVALID_ARGUMENT, "no clusters");
    stop();
    /* A GPU with limits of its own: attribute 3 is those of a block along y, 6 of a grid. */
    begin("cuda", "{\"devices\":[{\"attributes\":{\"3\":256,\"6\":100}}]}");
    error = serve((recipe){.image = image, .shape = {.block = {1, 257}}}, NULL);
    expect_text(error, FILCH_INVALID_ARGUMENT, "more threads than this GPU");
    error = serve((recipe){.image = image, .shape = {.grid = {1, 101}, .block = {32}}}, NULL);
    expect_text(error, FILCH_INVALID_ARGUMENT, "more blocks than this GPU");
    stop();
}

static void arguments_that_do_not_match_fail_their_task(void **state)
{
    static const arguments args[3] = {{1}, {2}, {3}};
    static const struct {
        const char *image;
        size_t arg_size;
        const char *fragment;
    } cases[] = {
        {"FAKECUBIN arch=90 entry=plus(56,8)", 0, "has 2 parameters, but is called with 1"},
        {"FAKECUBIN arch=90 entry=plus(56,56,8)", 8, "has 3 parameters, but is called with 2"},
        {"FAKECUBIN arch=90 entry=plus(56)", 8, "has 1 parameters, but is called with 2"},
        {"FAKECUBIN arch=90 entry=plus(56,24)", 8, "other sizes"},
        {"FAKECUBIN arch=90 entry=plus(56,8)", 24, "other sizes"},
        {"FAKECUBIN arch=90 entry=plus(48)", 0, "other sizes"},
    };

    (void)state;
    begin("cuda", TWO);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filch_error error =
            serve((recipe){.image = cases[i].image, .entry = "plus", .arg_size = cases[i].arg_size},
                  args);
        expect_text(error, FILCH_INVALID_ARGUMENT, cases[i].fragment);
    }
    stop();
}

/* --- Which devices --- */

static void create_fails(const char *devices, filch_status expected, const char *fragment)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;

    fakecuda_reset();
    assert_true(fakecuda_configure(TWO));
    config.devices = devices;
    assert_int_equal(filch_runtime_create(&config, &error, &runtime), expected);
    assert_int_equal(error.status, expected);
    if (strstr(error.text, fragment) == NULL)
        fail_msg("'%s' is not in '%s'", fragment, error.text);
}

static void expect_devices(const char *visible, const char *devices, uint32_t count)
{
    (void)setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    begin(devices, TWO);
    assert_int_equal(filch_device_count(runtime), count);
    if (count != 0)
        expect_unharmed();
    stop();
}

static void absent_devices_are_told(void **state)
{
    (void)state;
    create_fails("cuda:2", FILCH_UNKNOWN_ORDINAL, "cuda:2");
    create_fails("cuda:0,cuda:7", FILCH_UNKNOWN_ORDINAL, "there is no cuda:7");
    (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
    create_fails("cuda", FILCH_NO_DEVICE, "CUDA_VISIBLE_DEVICES is \"\"");
    (void)setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    create_fails("cuda:1", FILCH_UNKNOWN_ORDINAL, "CUDA_VISIBLE_DEVICES is \"1\"");
    /* The driver takes a list up to the first item that it does not know. */
    (void)setenv("CUDA_VISIBLE_DEVICES", "7,0", 1);
    create_fails("cuda", FILCH_NO_DEVICE, "CUDA_VISIBLE_DEVICES is \"7,0\"");
    (void)setenv("CUDA_VISIBLE_DEVICES", "none of them", 1);
    create_fails("cuda:0", FILCH_NO_DEVICE, "none of them");
    expect_devices("1", "cuda", 1);
    expect_devices("1,0", "cuda", 2);
    expect_devices("0,banana", "cuda,host:1", 2);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_codelets_are_refused),
        cmocka_unit_test(a_compiler_newer_than_the_driver_is_refused),
        cmocka_unit_test(an_image_of_another_architecture_runs_where_it_can),
        cmocka_unit_test(impossible_geometries_fail_their_task),
        cmocka_unit_test(arguments_that_do_not_match_fail_their_task),
        cmocka_unit_test(absent_devices_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
