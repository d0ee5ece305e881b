/* SPDX-License-Identifier: Apache-2.0 */
/* The loader and the compiler's answers, over fake libraries. The real one is test_compile.c's: a
 * process that has either finds it again. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module/nvrtc.h"

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

typedef struct heard {
    int count;
    char text[8][128];
} heard;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *all = user;

    assert_int_equal(level, FILCH_LOG_INFO);
    if (all->count < 8)
        (void)snprintf(all->text[all->count], sizeof all->text[0], "%s", text);
    all->count++;
}

static void assert_unloaded(const fl_nvrtc *nvrtc)
{
    static const fl_nvrtc zeroed;

    assert_memory_equal(nvrtc, &zeroed, sizeof zeroed);
}

static void load_fails(const char *path, int most_major, filch_status expected, filch_error *error)
{
    fl_nvrtc nvrtc;

    *error = (filch_error)FILCH_ERROR_INIT;
    memset(&nvrtc, 0xee, sizeof nvrtc);
    assert_status(fl_nvrtc_load(&nvrtc, path, most_major, error), expected);
    assert_status(error->status, expected);
    assert_unloaded(&nvrtc);
    assert_status(fl_nvrtc_load(&nvrtc, path, most_major, NULL), expected);
}

static void absence_and_faults_are_told_apart(void **state)
{
    filch_error error;

    (void)state;
    load_fails("/nowhere/libnvrtc.so", 0, FILCH_NO_COMPILER, &error);
    assert_string_equal(error.text, "there is no NVRTC library at /nowhere/libnvrtc.so");
    load_fails("./CMakeLists.txt", 0, FILCH_COMPILER_BROKEN, &error);
    assert_non_null(strstr(error.text, "NVRTC cannot be loaded: "));
    assert_string_equal(error.label, "./CMakeLists.txt");
    load_fails(FL_NVRTC_LACKING, 0, FILCH_COMPILER_BROKEN, &error);
    assert_string_equal(error.text, "the NVRTC library lacks the function nvrtcGetCUBIN");
    load_fails(FL_NVRTC_MUTE, 0, FILCH_COMPILER_BROKEN, &error);
    assert_string_equal(error.call, "nvrtcVersion");
    assert_int_equal(error.native_code, 11);
    assert_string_equal(error.native_name, "NVRTC_ERROR_INTERNAL_ERROR");
}

static void a_library_newer_than_the_driver_is_said_so(void **state)
{
    filch_error error;
    fl_nvrtc nvrtc;

    (void)state;
    load_fails(FL_NVRTC_FAKE14, 13, FILCH_DRIVER_TOO_OLD, &error);
    assert_string_equal(error.text, "NVRTC 14.7 is newer than the driver, which is for CUDA 13: a "
                                    "newer driver or NVRTC 13 is needed");
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE14, 14, NULL));
    assert_int_equal(nvrtc.major, 14);
    assert_int_equal(nvrtc.minor, 7);
    fl_nvrtc_unload(&nvrtc);
    assert_unloaded(&nvrtc);
    fl_nvrtc_unload(&nvrtc);
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE14, 0, NULL));
    fl_nvrtc_unload(&nvrtc);
}

static void targets_are_looked_up(void **state)
{
    fl_nvrtc nvrtc;

    (void)state;
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE13, 13, NULL));
    assert_int_equal(nvrtc.arch_count, 4);
    assert_true(fl_nvrtc_supports(&nvrtc, 75) && fl_nvrtc_supports(&nvrtc, 120));
    assert_false(fl_nvrtc_supports(&nvrtc, 70) || fl_nvrtc_supports(&nvrtc, 89) ||
                 fl_nvrtc_supports(&nvrtc, 121) || fl_nvrtc_supports(&nvrtc, 0));
    assert_int_equal(fl_nvrtc_nearest(&nvrtc, 74), 0);
    assert_int_equal(fl_nvrtc_nearest(&nvrtc, 75), 75);
    assert_int_equal(fl_nvrtc_nearest(&nvrtc, 89), 80);
    assert_int_equal(fl_nvrtc_nearest(&nvrtc, 999), 120);
    fl_nvrtc_unload(&nvrtc);
    /* Given out of order. */
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE12, 13, NULL));
    assert_int_equal(fl_nvrtc_nearest(&nvrtc, 89), 50);
    fl_nvrtc_unload(&nvrtc);
}

static void what_the_process_has_comes_first(void **state)
{
    void *newer = dlopen(FL_NVRTC_FAKE13, RTLD_LAZY | RTLD_LOCAL);
    void *older = dlopen(FL_NVRTC_FAKE12, RTLD_LAZY | RTLD_LOCAL);
    fl_nvrtc nvrtc;

    (void)state;
    assert_non_null(newer);
    assert_non_null(older);
    /* Minor version 7 is the fakes' alone. */
    assert_ok(fl_nvrtc_load(&nvrtc, "", 0, NULL));
    assert_int_equal(nvrtc.major * 10 + nvrtc.minor, 137);
    fl_nvrtc_unload(&nvrtc);
    /* What the driver cannot follow is passed over. */
    assert_ok(fl_nvrtc_load(&nvrtc, "", 12, NULL));
    assert_int_equal(nvrtc.major * 10 + nvrtc.minor, 127);
    fl_nvrtc_unload(&nvrtc);
    dlclose(newer);
    dlclose(older);
}

/* What a process of its own, whose linker finds fake13, loads: major and minor version. */
static int load_elsewhere(const char *already)
{
    char path[512];
    int status = 0;
    pid_t child;

    (void)snprintf(path, sizeof path, "%s", FL_NVRTC_FAKE13);
    *strrchr(path, '/') = '\0';
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setenv("LD_LIBRARY_PATH", path, 1);
        (void)execl("/proc/self/exe", "test_nvrtc", "--load", already, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int load_and_tell(const char *already)
{
    fl_nvrtc nvrtc;

    if (already[0] != '\0' && dlopen(already, RTLD_LAZY | RTLD_LOCAL) == NULL)
        return 2;
    return fl_nvrtc_load(&nvrtc, "", 0, NULL) == FILCH_OK ? nvrtc.major * 10 + nvrtc.minor : 3;
}

static void then_what_the_linker_finds(void **state)
{
    (void)state;
    assert_int_equal(load_elsewhere(""), 137);
    assert_int_equal(load_elsewhere(FL_NVRTC_FAKE12), 127);
}

static const char *const plain_options[] = {"--gpu-architecture=sm_90"};

static fl_nvrtc_program program_of(const char *source)
{
    return (fl_nvrtc_program){.source = source,
                              .header_name = "filch/kernel.h",
                              .header = "the header",
                              .options = plain_options,
                              .option_count = 1};
}

static void all_texts_reach_the_compiler(void **state)
{
    static const char *const ptx_options[] = {"--gpu-architecture=compute_90", "-DX=1"};
    fl_memory memory = tested_memory();
    fl_nvrtc_program program = program_of("the source");
    fl_nvrtc nvrtc;
    void *image = NULL;
    size_t bytes = 0;

    (void)state;
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE13, 0, NULL));
    assert_ok(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, NULL));
    static const char cubin[] = "\177ELFkernel.cu\nfilch/kernel.h\nthe header\n"
                                "--gpu-architecture=sm_90\nthe source\n";
    assert_int_equal(bytes, sizeof cubin - 1);
    assert_memory_equal(image, cubin, bytes);
    fl_free(&memory, image, bytes);
    program.is_ptx = true;
    program.options = ptx_options;
    program.option_count = 2;
    assert_ok(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, NULL));
    static const char ptx[] = "kernel.cu\nfilch/kernel.h\nthe header\n"
                              "--gpu-architecture=compute_90\n-DX=1\nthe source\n";
    assert_int_equal(bytes, sizeof ptx);
    assert_memory_equal(image, ptx, bytes);
    fl_free(&memory, image, bytes);
    fl_nvrtc_unload(&nvrtc);
    assert_int_equal(counted.pieces, 0);
}

static void answers_become_statuses(void **state)
{
    static const struct {
        const char *source;
        filch_status status;
        int64_t line;
        int native_code;
        const char *text;
    } cases[] = {
        {"a\nb @error", FILCH_COMPILE, 2, 6, "the word @error"},
        {"@remark\n\n@error", FILCH_COMPILE, 3, 6, "the word @error"},
        {"@assembler", FILCH_COMPILE, 0, 6, "ptxas fatal   : it is too much"},
        {"@silent", FILCH_COMPILE, 0, 6, "the compiler gives no reason"},
        {"@empty", FILCH_COMPILE, 0, 0,
         "the compiler made no machine code; does an option ask for another kind of output?"},
        {"@exhausted", FILCH_OUT_OF_MEMORY, 0, 1,
         "NVRTC: nvrtcCompileProgram failed: NVRTC_ERROR_OUT_OF_MEMORY"},
        {"@builtin", FILCH_COMPILER_BROKEN, 0, 7,
         "NVRTC: nvrtcCompileProgram failed: NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"},
        {"@lost", FILCH_COMPILER_BROKEN, 0, 4,
         "NVRTC: nvrtcGetCUBIN failed: NVRTC_ERROR_INVALID_PROGRAM"},
    };
    fl_memory memory = tested_memory();
    fl_nvrtc nvrtc;

    (void)state;
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE13, 0, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fl_nvrtc_program program = program_of(cases[i].source);
        filch_error error = FILCH_ERROR_INIT;
        void *image = &nvrtc;
        size_t bytes = 1;

        assert_status(fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, &error),
                      cases[i].status);
        assert_status(error.status, cases[i].status);
        assert_string_equal(error.text, cases[i].text);
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.native_code, cases[i].native_code);
        assert_ptr_equal(image, &nvrtc);
        assert_int_equal(bytes, 1);
        assert_int_equal(counted.pieces, 0);
    }
    fl_nvrtc_unload(&nvrtc);
}

static void remarks_go_to_the_log(void **state)
{
    fl_memory memory = tested_memory();
    fl_nvrtc_program program = program_of("@remark");
    heard all = {0};
    const fl_log log = {hear, &all, FILCH_LOG_INFO};
    fl_nvrtc nvrtc;
    void *image = NULL;
    size_t bytes = 0;

    (void)state;
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE13, 0, NULL));
    assert_ok(fl_nvrtc_compile(&nvrtc, &program, &memory, &log, &image, &bytes, NULL));
    fl_free(&memory, image, bytes);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.text[0], "NVRTC: kernel.cu(1): warning #1-D: an error: to come");
    assert_string_equal(all.text[1], "NVRTC: Remark: nothing");
    fl_nvrtc_unload(&nvrtc);
}

static void memory_may_run_out_anywhere(void **state)
{
    fl_memory memory = tested_memory();
    fl_nvrtc_program program = program_of("@remark");
    fl_nvrtc nvrtc;
    int refusals = 0;

    (void)state;
    assert_ok(fl_nvrtc_load(&nvrtc, FL_NVRTC_FAKE13, 0, NULL));
    for (int n = 1; n < 10; n++) {
        void *image = NULL;
        size_t bytes = 0;
        filch_status status;

        fixture_memory_fail_after(&counted, n);
        status = fl_nvrtc_compile(&nvrtc, &program, &memory, NULL, &image, &bytes, NULL);
        if (status == FILCH_OK) {
            fl_free(&memory, image, bytes);
            break;
        }
        assert_status(status, FILCH_OUT_OF_MEMORY);
        assert_int_equal(counted.pieces, 0);
        refusals++;
    }
    assert_int_equal(refusals, 2); /* the log and the image */
    fl_nvrtc_unload(&nvrtc);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(absence_and_faults_are_told_apart, begin),
        cmocka_unit_test_setup(a_library_newer_than_the_driver_is_said_so, begin),
        cmocka_unit_test_setup(targets_are_looked_up, begin),
        cmocka_unit_test_setup(all_texts_reach_the_compiler, begin),
        cmocka_unit_test_setup(answers_become_statuses, begin),
        cmocka_unit_test_setup(remarks_go_to_the_log, begin),
        cmocka_unit_test_setup(memory_may_run_out_anywhere, begin),
        cmocka_unit_test_setup(what_the_process_has_comes_first, begin),
        cmocka_unit_test_setup(then_what_the_linker_finds, begin),
    };

    if (argc == 3 && strcmp(argv[1], "--load") == 0)
        return load_and_tell(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
