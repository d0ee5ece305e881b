/* SPDX-License-Identifier: Apache-2.0 */
/* The real NVRTC: what it says, and every kernel of the library for every architecture it knows.
 * Skipped where there is none. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "module/image.h"

static fixture_memory counted;

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
    assert_ok(fl_nvrtc_load(&nvrtc, "", 0, NULL));
    assert_ok(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, NULL));
    assert_true(bytes > 100);
    assert_memory_equal(image, "\177ELF", 4);
    fl_free(&memory, image, bytes);

    program.source = "__device__ int fine;\n\n#warning careful\nint broken = ;\n";
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
    assert_ok(fl_nvrtc_load(&nvrtc, "", 0, NULL));
    for (int round = 0; round < 3; round++) {
        guest g = {.nvrtc = &nvrtc};
        fl_thread thread;

        assert_ok(fl_thread_start(&thread, compile_and_stay, &g));
        assert_true(fixture_await(&g.done, 1));
        fl_nvrtc_unload(&nvrtc);
        atomic_store(&g.leave, 1);
        fl_thread_join(thread);
        assert_ok(g.status);
        assert_ok(fl_nvrtc_load(&nvrtc, "", 0, NULL));
    }
    fl_nvrtc_unload(&nvrtc);
}

/* --- Through fl_images --- */

static void open_images(fl_images *images, const fl_memory *memory)
{
    fl_settings settings;

    fl_settings_defaults(&settings);
    (void)snprintf(settings.cache_dir, sizeof settings.cache_dir, "off");
    assert_ok(fl_images_init(images, memory, NULL, &settings));
}

/* Of filch/codelet.h on this side, of filch/kernel.h on the other. */
static void both_sides_have_one_layout(void **state)
{
    fl_memory memory = tested_memory();
    char source[2048];
    fl_image_request request = {.label = "layout", .source = source, .arch = 90};
    filch_error error = FILCH_ERROR_INIT;
    const fl_image *image = NULL;
    fl_images images;

    (void)state;
    open_images(&images, &memory);
#define AT(member) offsetof(filch_view, member)
    (void)snprintf(source, sizeof source,
                   "#include \"filch/kernel.h\"\n"
                   "#define AT(member, place) static_assert(\\\n"
                   "    __builtin_offsetof(filch_view, member) == place, \"\");\n"
                   "static_assert(sizeof(filch_view) == %zu, \"\");\n"
                   "static_assert(sizeof(filch_range) == 16, \"\");\n"
                   "AT(ptr, %zu) AT(rows, %zu) AT(cols, %zu) AT(ld, %zu) AT(row, %zu)\n"
                   "AT(col, %zu) AT(element, %zu)\n"
                   "extern \"C\" __global__ void layout(filch_view view) {}\n",
                   sizeof(filch_view), AT(ptr), AT(rows), AT(cols), AT(ld), AT(row), AT(col),
                   AT(element));
    if (fl_image_get(&images, &request, &image, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_false(image->is_ptx);
    assert_non_null(memmem(image->data, image->bytes, "layout", 6));
    fl_images_fini(&images);
    assert_int_equal(counted.pieces, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_real_compiler_compiles, begin),
        cmocka_unit_test_setup(a_thread_that_compiled_may_outlive_the_library, begin),
        cmocka_unit_test_setup(both_sides_have_one_layout, begin),
    };
    filch_error error = FILCH_ERROR_INIT;
    fl_nvrtc nvrtc;

    if (fl_nvrtc_load(&nvrtc, "", 0, &error) == FILCH_NO_COMPILER) {
        printf("%s: skipped\n", error.text);
        return 77;
    }
    fl_nvrtc_unload(&nvrtc);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
