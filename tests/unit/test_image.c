/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel images over a fake compiler: what is compiled, what is found again, and what is said when
 * neither can be. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "module/image.h"

/* kernels/filch_kernel.h, as the library has it. */
extern const char fl_kernel_header[];

static fixture_memory counted;
static fl_memory memory;
static fl_settings settings;
static char folder[64];

typedef struct heard {
    int warnings;
    char text[512];
} heard;

static heard said;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *all = user;

    if (level != FILCH_LOG_WARNING)
        return;
    all->warnings++;
    (void)snprintf(all->text, sizeof all->text, "%s", text);
}

static const fl_log log_here = {hear, &said, FILCH_LOG_DEBUG};

static void use_compiler(const char *path)
{
    assert_true(strlen(path) < sizeof settings.nvrtc);
    memcpy(settings.nvrtc, path, strlen(path) + 1);
}

static void use_folder(const char *path)
{
    (void)snprintf(settings.cache_dir, sizeof settings.cache_dir, "%s", path);
}

static int begin(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    memory = (fl_memory){counted.allocator.alloc, counted.allocator.free, counted.allocator.user,
                         "caller"};
    said = (heard){0};
    (void)snprintf(folder, sizeof folder, "/tmp/filch-image-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    fl_settings_defaults(&settings);
    use_compiler(FL_NVRTC_FAKE13);
    use_folder(folder);
    return 0;
}

static int end(void **state)
{
    DIR *all = opendir(folder);

    (void)state;
    for (const struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        char path[512];

        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)remove(path);
    }
    if (all != NULL)
        (void)closedir(all);
    (void)rmdir(folder);
    return counted.pieces != 0;
}

static void open_images(fl_images *images)
{
    assert_ok(fl_images_init(images, &memory, &log_here, &settings));
}

static fl_image_stats stats_of(fl_images *images)
{
    fl_image_stats stats;

    fl_images_stats(images, &stats);
    return stats;
}

static const fl_image *get(fl_images *images, const fl_image_request *request)
{
    filch_error error = FILCH_ERROR_INIT;
    const fl_image *image = NULL;

    if (fl_image_get(images, request, &image, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    return image;
}

static void refused(fl_images *images, const fl_image_request *request, filch_status expected,
                    filch_error *error)
{
    static const fl_image untouched;
    const fl_image *image = &untouched;

    *error = (filch_error)FILCH_ERROR_INIT;
    assert_status(fl_image_get(images, request, &image, error), expected);
    assert_status(error->status, expected);
    assert_ptr_equal(image, &untouched);
    assert_status(fl_image_get(images, request, &image, NULL), expected);
}

static const fl_image_request plain = {.label = "axpy", .source = "the source", .arch = 90};

/* All members are of eight bytes on either side, and the header asserts their sum. */
static void both_sides_have_one_layout(void **state)
{
    static const struct {
        const char *declared;
        size_t offset;
    } members[] = {
#define MEMBER(type, name) {type #name ";", offsetof(filch_view, name)}
        MEMBER("void *", ptr),
        MEMBER("unsigned long long ", rows),
        MEMBER("unsigned long long ", cols),
        MEMBER("unsigned long long ", ld),
        MEMBER("unsigned long long ", row),
        MEMBER("unsigned long long ", col),
        MEMBER("unsigned long long ", element),
    };
    const char *at = strstr(fl_kernel_header, "typedef struct filch_view {");

    (void)state;
    assert_non_null(at);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        assert_int_equal(members[i].offset, 8 * i);
        at = strstr(at, members[i].declared);
        assert_non_null(at);
    }
    assert_non_null(strstr(at, "} filch_view;"));
    assert_non_null(strstr(fl_kernel_header, "sizeof(filch_view) == 56"));
    assert_int_equal(sizeof(filch_view), 56);
}

static void an_image_is_compiled_once_then_found(void **state)
{
    fl_images images;
    const fl_image *first;
    char text[200];
    fl_image_stats stats;

    (void)state;
    open_images(&images);
    first = get(&images, &plain);
    assert_false(first->is_ptx);
    assert_int_equal(first->arch, 90);
    (void)snprintf(text, sizeof text,
                   "--gpu-architecture=sm_90\n--no-source-include\nthe source\n");
    assert_non_null(memmem(first->data, first->bytes, text, strlen(text)));
    /* The header is there to be included. */
    assert_non_null(memmem(first->data, first->bytes, "\nfilch/kernel.h\n/* SPDX", 23));
    assert_ptr_equal(get(&images, &plain), first);
    /* Who asks does not matter. */
    assert_ptr_equal(
        get(&images, &(fl_image_request){.source = "the source", .options = " ", .arch = 90}),
        first);
    stats = stats_of(&images);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(stats.memory_hits, 2);
    assert_int_equal(stats.disk_hits, 0);
    assert_int_equal(stats.bytes, first->bytes);
    /* Another runtime finds it on disk. */
    fl_images later;
    open_images(&later);
    const fl_image *second = get(&later, &plain);
    assert_int_equal(second->bytes, first->bytes);
    assert_memory_equal(second->data, first->data, first->bytes);
    assert_int_equal(second->arch, 90);
    assert_ptr_equal(get(&later, &plain), second);
    stats = stats_of(&later);
    assert_int_equal(stats.compiles, 0);
    assert_int_equal(stats.disk_hits, 1);
    assert_int_equal(stats.memory_hits, 1);
    fl_images_fini(&later);
    fl_images_fini(&images);
    assert_int_equal(said.warnings, 0);
}

static void everything_that_matters_is_in_the_key(void **state)
{
    static const fl_image_request others[] = {
        {.source = "the source ", .arch = 90},
        {.source = "the source", .arch = 80},
        {.source = "the source", .arch = 90, .options = "-DA -DB"},
        {.source = "the source", .arch = 90, .options = "-DB -DA"},
        {.source = "the source", .arch = 90, .options = "-DA-DB"},
        {.source = "the source", .arch = 99}, /* PTX of sm_90 */
    };
    const size_t count = sizeof others / sizeof others[0];
    fl_images images, older;

    (void)state;
    open_images(&images);
    (void)get(&images, &plain);
    for (size_t i = 0; i < count; i++)
        (void)get(&images, &others[i]);
    assert_int_equal(stats_of(&images).compiles, count + 1);
    assert_int_equal(stats_of(&images).memory_hits, 0);
    /* Blanks between options mean nothing. */
    (void)get(&images,
              &(fl_image_request){.source = "the source", .arch = 90, .options = "\t-DA\n  -DB "});
    assert_int_equal(stats_of(&images).memory_hits, 1);
    fl_images_fini(&images);
    /* Another compiler's images are others. */
    use_compiler(FL_NVRTC_FAKE12);
    open_images(&older);
    (void)get(&older, &plain);
    assert_int_equal(stats_of(&older).compiles, 1);
    fl_images_fini(&older);
}

static void ptx_is_made_where_the_target_is_unknown(void **state)
{
    fl_image_request request = plain;
    filch_error error;
    fl_images images;
    const fl_image *image;

    (void)state;
    open_images(&images);
    fl_images_set_driver(&images, 13000);
    request.arch = 121;
    image = get(&images, &request);
    assert_true(image->is_ptx);
    assert_int_equal(image->arch, 120);
    assert_int_equal(image->bytes, strlen(image->data) + 1);
    assert_non_null(strstr(image->data, "--gpu-architecture=compute_120\n"));
    assert_int_equal(said.warnings, 1);
    assert_string_equal(said.text, "NVRTC 13.7 is newer than the driver, which is for CUDA 13.0 "
                                   "and may not understand the PTX made for sm_120");
    request.arch = 70;
    refused(&images, &request, FILCH_UNSUPPORTED, &error);
    assert_string_equal(error.text, "axpy, for sm_70: NVRTC 13.7 compiles for sm_75 and newer "
                                    "only; an older NVRTC is needed");
    /* What the driver makes of PTX changes with it; a cubin is final. */
    request.arch = 121;
    (void)get(&images, &plain);
    assert_int_equal(stats_of(&images).compiles, 2);
    fl_images_set_driver(&images, 13070);
    (void)get(&images, &request);
    (void)get(&images, &plain);
    assert_int_equal(stats_of(&images).compiles, 3);
    assert_int_equal(stats_of(&images).memory_hits, 1);
    assert_int_equal(said.warnings, 1); /* the driver is as new now */
    fl_images_fini(&images);
}

static void failures_name_label_and_line(void **state)
{
    fl_image_request request = {.label = "mine", .source = "a\n@error", .arch = 80};
    filch_error error;
    fl_images images;

    (void)state;
    open_images(&images);
    refused(&images, &request, FILCH_COMPILE, &error);
    assert_string_equal(error.text, "mine:2: the word @error (for sm_80)");
    assert_string_equal(error.label, "mine");
    assert_int_equal(error.line, 2);
    assert_string_equal(error.native_name, "NVRTC_ERROR_COMPILATION");
    assert_string_equal(error.call, "nvrtcCompileProgram");
    request.label = NULL;
    refused(&images, &request, FILCH_COMPILE, &error);
    assert_string_equal(error.text, "kernel:2: the word @error (for sm_80)");
    request = (fl_image_request){.label = "mine", .source = "x", .options = "--bogus", .arch = 80};
    refused(&images, &request, FILCH_COMPILE, &error);
    assert_string_equal(error.text,
                        "mine, for sm_80: nvrtc: error: unrecognized option --bogus found");
    request.options = "-DX -arch=sm_90";
    refused(&images, &request, FILCH_INVALID_ARGUMENT, &error);
    assert_non_null(strstr(error.text, "the option -arch=sm_90 names an architecture"));
    request.options = "--gpu-architecture=sm_90";
    refused(&images, &request, FILCH_INVALID_ARGUMENT, &error);
    request.options = NULL;
    request.source = NULL;
    refused(&images, &request, FILCH_INVALID_ARGUMENT, &error);
    assert_string_equal(error.label, "mine");
    request.source = "x";
    request.arch = 0;
    refused(&images, &request, FILCH_INVALID_ARGUMENT, &error);
    request.arch = 80;
    request.source = "@uncreatable";
    refused(&images, &request, FILCH_COMPILER_BROKEN, &error);
    assert_string_equal(error.call, "nvrtcCreateProgram");
    assert_int_equal(stats_of(&images).compiles, 0);
    assert_int_equal(stats_of(&images).failures, 16);
    assert_int_equal(stats_of(&images).bytes, 0);
    fl_images_fini(&images);
}

static void without_a_compiler_it_can_be_tried_again(void **state)
{
    char path[128];
    filch_error error;
    fl_images images;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/libnvrtc.so", folder);
    use_compiler(path);
    open_images(&images);
    fl_images_set_driver(&images, 12040);
    refused(&images, &plain, FILCH_NO_COMPILER, &error);
    assert_string_equal(error.label, "axpy");
    assert_int_equal(symlink(FL_NVRTC_FAKE12, path), 0);
    (void)get(&images, &plain);
    assert_int_equal(stats_of(&images).compiles, 1);
    fl_images_fini(&images);
}

static void an_old_driver_is_said_so(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    fl_images images;

    (void)state;
    open_images(&images);
    fl_images_set_driver(&images, 12080);
    assert_null(images.nvrtc.library); /* it is not loaded before it is needed */
    refused(&images, &plain, FILCH_DRIVER_TOO_OLD, &error);
    assert_non_null(strstr(error.text, "NVRTC 13.7 is newer than the driver"));
    assert_string_equal(error.label, "axpy");
    fl_images_set_driver(&images, 13000);
    (void)get(&images, &plain);
    assert_int_equal(said.warnings, 0); /* within a major version cubins are understood */
    fl_images_fini(&images);
}

/* The one image in the folder. */
static void only_file(char path[512])
{
    DIR *all = opendir(folder);
    int found = 0;

    assert_non_null(all);
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
        size_t length = strlen(entry->d_name);

        if (length > 4 && strcmp(entry->d_name + length - 4, ".img") == 0) {
            (void)snprintf(path, 512, "%s/%s", folder, entry->d_name);
            found++;
        }
    }
    (void)closedir(all);
    assert_int_equal(found, 1);
}

static void a_damaged_file_is_compiled_anew(void **state)
{
    fl_images images;
    char path[512];
    struct stat whole;

    (void)state;
    open_images(&images);
    (void)get(&images, &plain);
    fl_images_fini(&images);
    only_file(path);
    assert_int_equal(stat(path, &whole), 0);
    for (off_t size = 0; size < whole.st_size; size += whole.st_size / 3) {
        assert_int_equal(truncate(path, size), 0);
        said.warnings = 0;
        open_images(&images);
        (void)get(&images, &plain);
        assert_int_equal(stats_of(&images).compiles, 1);
        assert_int_equal(stats_of(&images).disk_refused, 1);
        assert_int_equal(said.warnings, 1);
        assert_non_null(strstr(said.text, "on disk is damaged or not ours"));
        fl_images_fini(&images);
        open_images(&images);
        (void)get(&images, &plain);
        assert_int_equal(stats_of(&images).disk_hits, 1);
        assert_int_equal(stats_of(&images).disk_refused, 0);
        fl_images_fini(&images);
    }
}

static void what_reads_other_files_is_not_kept(void **state)
{
    static const char *const options[] = {"-I/usr/include", "--include-path=x", "-DA -include=y",
                                          "--pre-include=z", "--use-pch=p"};
    const size_t count = sizeof options / sizeof options[0];

    (void)state;
    for (int round = 0; round < 2; round++) {
        fl_images images;

        open_images(&images);
        for (size_t i = 0; i < count; i++) {
            fl_image_request request = plain;

            request.options = options[i];
            (void)get(&images, &request);
            (void)get(&images, &request);
        }
        assert_int_equal(stats_of(&images).compiles, count);
        assert_int_equal(stats_of(&images).memory_hits, count);
        fl_images_fini(&images);
    }
}

static void no_disk_is_no_failure(void **state)
{
    char path[128];
    fl_images images;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fclose(file);
    for (int kind = 0; kind < 4; kind++) {
        said.warnings = 0;
        fl_settings_defaults(&settings);
        use_compiler(FL_NVRTC_FAKE13);
        use_folder(kind == 0 ? "off" : kind == 1 ? path : folder);
        if (kind == 2)
            settings.cache_limit = 0;
        if (kind == 3) { /* no writer gets past this; rights would not stop root */
            char lock[128];

            (void)snprintf(lock, sizeof lock, "%s/lock", folder);
            (void)unlink(lock);
            assert_int_equal(mkdir(lock, 0700), 0);
        }
        for (int round = 0; round < 2; round++) {
            fl_image_request request = plain;

            open_images(&images);
            (void)get(&images, &plain);
            request.arch = 80;
            (void)get(&images, &request);
            assert_int_equal(stats_of(&images).compiles, 2);
            fl_images_fini(&images);
        }
        assert_int_equal(said.warnings, kind == 0 || kind == 2 ? 0 : 2); /* one a runtime */
    }
}

static void memory_may_run_out_anywhere(void **state)
{
    int refusals = 0;

    (void)state;
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        for (int n = 1;; n++) {
            filch_error error = FILCH_ERROR_INIT;
            const fl_image *image = NULL;
            fl_images images;
            filch_status status;
            bool failed;

            if (!on_disk)
                (void)end(NULL);
            (void)mkdir(folder, 0700);
            fixture_memory_fail_after(&counted, n);
            status = fl_images_init(&images, &memory, &log_here, &settings);
            if (status != FILCH_OK) {
                assert_status(status, FILCH_OUT_OF_MEMORY);
                assert_int_equal(counted.pieces, 0);
                refusals++;
                continue;
            }
            int64_t held = counted.pieces;
            status = fl_image_get(&images, &plain, &image, &error);
            failed = atomic_load(&counted.calls) >= atomic_load(&counted.fail_at);
            if (status != FILCH_OK) {
                assert_status(status, FILCH_OUT_OF_MEMORY);
                assert_status(error.status, FILCH_OUT_OF_MEMORY);
                assert_string_equal(error.label, "axpy");
                assert_int_equal(counted.pieces, held);
                assert_true(failed);
                refusals++;
                image = get(&images, &plain); /* now that there is some */
            }
            assert_memory_equal(image->data, "\177ELF", 4);
            fl_images_fini(&images);
            assert_int_equal(counted.pieces, 0);
            if (!failed)
                break;
        }
    }
    assert_true(refusals >= 7); /* path, options, entry, image; path, options, entry, image */
}

/* --- Threads --- */

typedef struct asker {
    fl_images *images;
    fl_image_request request;
    const fl_image *image;
    filch_error error;
    filch_status status;
    _Atomic int *ready;
} asker;

static int ask(void *arg)
{
    asker *a = arg;

    atomic_fetch_add(a->ready, 1);
    (void)fixture_await(a->ready, 4);
    a->error = (filch_error)FILCH_ERROR_INIT;
    a->status = fl_image_get(a->images, &a->request, &a->image, &a->error);
    return 0;
}

static void ask_together(fl_images *images, const char *source, asker askers[4])
{
    static const char *const labels[] = {"one", "two", "three", "four"};
    _Atomic int ready = 0;
    fl_thread threads[4];

    for (int i = 0; i < 4; i++) {
        askers[i] = (asker){.images = images,
                            .request = {.label = labels[i], .source = source, .arch = 90},
                            .ready = &ready};
        assert_ok(fl_thread_start(&threads[i], ask, &askers[i]));
    }
    for (int i = 0; i < 4; i++)
        fl_thread_join(threads[i]);
}

/* The fake takes its time over these, so that the others come meanwhile. */
static void threads_that_want_the_same_wait_for_one(void **state)
{
    asker askers[4];
    fl_images images;

    (void)state;
    use_folder("off");
    open_images(&images);
    ask_together(&images, "@slow", askers);
    for (int i = 0; i < 4; i++) {
        assert_ok(askers[i].status);
        assert_ptr_equal(askers[i].image, askers[0].image);
    }
    assert_int_equal(stats_of(&images).compiles, 1);
    assert_int_equal(stats_of(&images).memory_hits, 3);
    ask_together(&images, "@slow @error", askers);
    for (int i = 0; i < 4; i++) {
        assert_status(askers[i].status, FILCH_COMPILE);
        assert_string_equal(askers[i].error.label, askers[i].request.label);
        assert_int_equal(
            strncmp(askers[i].error.text, askers[i].request.label, strlen(askers[i].request.label)),
            0);
    }
    fl_images_fini(&images);
}

#define image_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        image_test(both_sides_have_one_layout),
        image_test(an_image_is_compiled_once_then_found),
        image_test(everything_that_matters_is_in_the_key),
        image_test(ptx_is_made_where_the_target_is_unknown),
        image_test(failures_name_label_and_line),
        image_test(without_a_compiler_it_can_be_tried_again),
        image_test(an_old_driver_is_said_so),
        image_test(a_damaged_file_is_compiled_anew),
        image_test(what_reads_other_files_is_not_kept),
        image_test(no_disk_is_no_failure),
        image_test(memory_may_run_out_anywhere),
        image_test(threads_that_want_the_same_wait_for_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
