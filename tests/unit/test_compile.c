/* SPDX-License-Identifier: Apache-2.0 */
/* The real NVRTC: what it says, and every kernel of the library for every architecture it knows.
 * Skipped where there is none. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "count.h"
#include "filch/kernels.h"
#include "module/image.h"

static fixture_memory counted;

/* Where it is looked for: as by a runtime. */
static const char *compiler(void)
{
    const char *given = getenv("FILCH_NVRTC");

    return given != NULL ? given : "";
}

static fl_memory tested_memory(void)
{
    return (fl_memory){counted.allocator.alloc, counted.allocator.free, counted.allocator.user,
                       "caller"};
}

static int begin(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    return 0;
}

static fl_nvrtc_program program_of(const char *source)
{
    static const char *const options[] = {"--gpu-architecture=sm_90", "--no-source-include"};

    return (fl_nvrtc_program){.source = source,
                              .header_name = "filch/kernel.h",
                              .header = "typedef float number;\n",
                              .options = options,
                              .option_count = 2};
}

static void the_real_compiler_compiles(void **state)
{
    static const char source[] = "#include \"filch/kernel.h\"\n"
                                 "extern \"C\" __global__ void one(number *x) { *x = 1; }\n";
    fl_memory memory = tested_memory();
    fl_nvrtc_program program = program_of(source);
    filch_error error = FILCH_ERROR_INIT;
    fl_nvrtc nvrtc;
    void *image = NULL;
    size_t bytes = 0;

    (void)state;
    assert_ok(fl_nvrtc_load(&nvrtc, compiler(), 0, NULL));
    assert_ok(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, NULL));
    assert_true(bytes > 100);
    assert_memory_equal(image, "\177ELF", 4);
    fl_free(&memory, image, bytes);

    program.source = "__device__ int fine;\n\n#warning careful\n__device__ int broken = ;\n";
    assert_status(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, &error),
                  FILCH_COMPILE);
    assert_int_equal(error.line, 4);
    assert_string_equal(error.native_name, "NVRTC_ERROR_COMPILATION");
    assert_string_equal(error.text, "expected an expression");

    /* The working directory is no place to look for headers. */
    program.source = "#include \"tests/unit/fixture.h\"\n";
    assert_status(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, &error),
                  FILCH_COMPILE);
    assert_int_equal(error.line, 1);
    assert_non_null(strstr(error.text, "open source file \"tests/unit/fixture.h\""));

    program.source = "extern \"C\" __global__ void one() { asm volatile(\"nonsense;\"); }\n";
    assert_status(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, &error),
                  FILCH_COMPILE);
    assert_non_null(strstr(error.text, "ptxas"));

    program.source = source;
    program.options = (const char *const[]){"--gpu-architecture=sm_90", "--bogus"};
    assert_status(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, &error),
                  FILCH_COMPILE);
    assert_non_null(strstr(error.text, "--bogus"));
    fl_nvrtc_unload(&nvrtc);
    assert_int_equal(counted.pieces, 0);
}

typedef struct guest {
    fl_nvrtc *nvrtc;
    _Atomic int done, leave;
    filch_status status;
} guest;

static int compile_and_stay(void *arg)
{
    guest *g = arg;
    fl_nvrtc_program program = program_of("__device__ int x;");
    fl_memory memory = tested_memory();
    void *image = NULL;
    size_t bytes = 0;

    g->status = fl_nvrtc_compile(g->nvrtc, &program, &memory, NULL, &image, &bytes, NULL);
    if (g->status == FILCH_OK)
        fl_free(&memory, image, bytes);
    atomic_store(&g->done, 1);
    (void)fixture_await(&g->leave, 1);
    return 0;
}

static void a_thread_that_compiled_may_outlive_the_library(void **state)
{
    fl_nvrtc nvrtc;

    (void)state;
    assert_ok(fl_nvrtc_load(&nvrtc, compiler(), 0, NULL));
    for (int round = 0; round < 3; round++) {
        guest g = {.nvrtc = &nvrtc};
        fl_thread thread;

        assert_ok(fl_thread_start(&thread, compile_and_stay, &g));
        assert_true(fixture_await(&g.done, 1));
        fl_nvrtc_unload(&nvrtc);
        atomic_store(&g.leave, 1);
        fl_thread_join(thread);
        assert_ok(g.status);
        assert_ok(fl_nvrtc_load(&nvrtc, compiler(), 0, NULL));
    }
    fl_nvrtc_unload(&nvrtc);
}

/* --- Through fl_images --- */

static void open_images(fl_images *images, const fl_memory *memory)
{
    fl_settings settings;

    fl_settings_defaults(&settings);
    (void)snprintf(settings.cache_dir, sizeof settings.cache_dir, "off");
    (void)snprintf(settings.nvrtc, sizeof settings.nvrtc, "%s", compiler());
    assert_ok(fl_images_init(images, memory, NULL, &settings));
}

static const fl_image *get(fl_images *images, const fl_image_request *request)
{
    filch_error error = FILCH_ERROR_INIT;
    const fl_image *image = NULL;

    if (fl_image_get(images, request, &image, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    return image;
}

static void images_are_of_their_target(void **state)
{
    fl_memory memory = tested_memory();
    fl_image_request request = {.label = "seen",
                                .source = "#include \"filch/kernel.h\"\n"
                                          "extern \"C\" __global__ void seen(filch_view view, "
                                          "filch_range range) {}\n"};
    fl_images images;
    const fl_image *image;
    uint32_t newest;

    (void)state;
    open_images(&images, &memory);
    request.arch = 90;
    image = get(&images, &request);
    assert_false(image->is_ptx);
    assert_memory_equal(image->data, "\177ELF", 4);
    assert_non_null(memmem(image->data, image->bytes, "seen", 4));
    newest = images.nvrtc.archs[images.nvrtc.arch_count - 1];
    request.arch = newest + 50;
    image = get(&images, &request);
    assert_true(image->is_ptx);
    assert_int_equal(image->arch, newest);
    assert_non_null(strstr(image->data, ".entry seen("));
    fl_images_fini(&images);
    assert_int_equal(counted.pieces, 0);
}

/* Minutes of compiling: the newest target and every third, and in builds that look for errors of
 * filch's own the newest; all of them with FL_TEST_LONG=1. */
static bool is_taken(uint32_t target, uint32_t count)
{
    const char *env = getenv("FL_TEST_LONG");
    bool is_one = target + 1 == count;
#ifdef NDEBUG
    is_one = is_one || target % 3 == 0;
#endif
    return is_one || (env != NULL && strcmp(env, "1") == 0);
}

static void every_kernel_compiles_for_every_target(void **state)
{
    fl_memory memory = tested_memory();
    const filch_kernel *kernel;
    fl_image_stats stats;
    fl_images images;

    (void)state;
    if (TEST_SEEKS_RACES)
        skip();
    open_images(&images, &memory);
    assert_ok(fl_nvrtc_load(&images.nvrtc, compiler(), 0, NULL)); /* for what it knows */
    for (uint32_t a = 0; a < images.nvrtc.arch_count; a++) {
        if (!is_taken(a, images.nvrtc.arch_count))
            continue;
        for (size_t k = 0; (kernel = filch_kernel_at(k)) != NULL; k++) {
            fl_image_request request = {.label = kernel->name,
                                        .source = kernel->cuda->source,
                                        .options = kernel->cuda->options,
                                        .arch = images.nvrtc.archs[a]};
            const fl_image *image = get(&images, &request);

            assert_false(image->is_ptx);
            assert_non_null(memmem(image->data, image->bytes, kernel->cuda->entry,
                                   strlen(kernel->cuda->entry) + 1));
        }
    }
    fl_images_stats(&images, &stats);
    print_message("%u images of %u bytes for sm_%u to sm_%u\n", (unsigned)stats.compiles,
                  (unsigned)stats.bytes, images.nvrtc.archs[0],
                  images.nvrtc.archs[images.nvrtc.arch_count - 1]);
    assert_true(stats.compiles > 1 && stats.failures == 0);
    fl_images_fini(&images);
    assert_int_equal(counted.pieces, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_real_compiler_compiles, begin),
        cmocka_unit_test_setup(a_thread_that_compiled_may_outlive_the_library, begin),
        cmocka_unit_test_setup(images_are_of_their_target, begin),
        cmocka_unit_test_setup(every_kernel_compiles_for_every_target, begin),
    };
    filch_error error = FILCH_ERROR_INIT;
    fl_nvrtc nvrtc;

    if (fl_nvrtc_load(&nvrtc, compiler(), 0, &error) == FILCH_NO_COMPILER) {
        printf("%s: skipped\n", error.text);
        return 77;
    }
    fl_nvrtc_unload(&nvrtc);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
