/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's files: each option's target is replaced whole, or refused and left alone. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "problems/png_image.h"
#include "report/json_out.h"
#include "report/report.h"
#include "support/file_out.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], target[96], other[96];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/filch-files-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    (void)snprintf(target, sizeof target, "%s/target", folder);
    (void)snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

/* Fails where a file is left behind. */
static int end(void **state)
{
    (void)state;
    (void)unlink(target);
    (void)unlink(other);
    return rmdir(folder);
}

static void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool has_text(const char *path, const char *wanted)
{
    char text[32] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    (void)fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    return strcmp(text, wanted) == 0;
}

static filch_status write_report(const char *path, filch_error *error)
{
    bench_result result;
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    desc.devices = "host:1";
    desc.drive = FILCH_DRIVE_POLL;
    desc.trace = 1;
    assert_int_equal(filch_runtime_create(&desc, NULL, &runtime), FILCH_OK);
    assert_true(bench_result_init(&result, 1, 1, false));
    filch_status status = bench_report_write(path, runtime, &result, error);
    bench_result_free(&result);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
    return status;
}

static filch_status write_json(const char *path, filch_error *error)
{
    json_t *document = json_pack("{s:[i, i, i]}", "numbers", 1, 2, 3);
    assert_non_null(document);
    filch_status status = bench_json_put(path, document, error);
    json_decref(document);
    return status;
}

static filch_status write_picture(const char *path, filch_error *error)
{
    static const unsigned char rgb[3] = {1, 2, 3};
    return bench_png_write(path, 1, 1, rgb, error);
}

typedef filch_status (*write_fn)(const char *path, filch_error *error);

static const write_fn writers[] = {write_report, write_json, write_picture};
#define WRITERS (sizeof writers / sizeof *writers)

static void links_and_devices_stay(void **state)
{
    (void)state;
    for (size_t k = 0; k < WRITERS; k++) {
        filch_error error = FILCH_ERROR_INIT;
        put_text(other, "precious");
        assert_int_equal(symlink(other, target), 0);
        assert_int_equal(writers[k](target, &error), FILCH_IO);
        assert_string_equal(error.label, target);
        assert_non_null(strstr(error.text, "symbolic link"));
        assert_true(has_text(other, "precious"));
        assert_int_equal(unlink(target), 0);
        assert_int_equal(writers[k]("/dev/null", &error), FILCH_IO);
        assert_non_null(strstr(error.text, "device"));
        assert_int_equal(writers[k](target, &error), FILCH_OK);
        assert_false(has_text(target, ""));
        assert_int_equal(unlink(target), 0);
    }
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    const struct rlimit small = {.rlim_cur = 4, .rlim_max = RLIM_INFINITY};
    struct rlimit usual;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    for (size_t k = 0; k < WRITERS; k++) {
        filch_error error = FILCH_ERROR_INIT;
        put_text(target, "precious");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        filch_status status = writers[k](target, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
        assert_int_equal(status, FILCH_IO);
        assert_string_equal(error.label, target);
        assert_non_null(strstr(error.text, strerror(EFBIG)));
        assert_true(has_text(target, "precious"));
    }
    (void)signal(SIGXFSZ, handler);
}

/* A command that is refused for its files has run nothing: the matrix is not there either. */
static void a_run_asks_before_it_runs(void **state)
{
    static const char *const options[] = {"--json", "--trace", "--report", "--image"};
    filch_error error = FILCH_ERROR_INIT;
    char text[512] = "";
    (void)state;
    assert_int_equal(bench_file_check("--json", NULL, false, &error), FILCH_OK);
    assert_int_equal(bench_file_check("--json", "-", true, &error), FILCH_OK);
    assert_int_equal(symlink(other, target), 0);
    assert_int_equal(bench_file_check("--json", target, true, &error), FILCH_IO);
    assert_string_equal(error.label, "--json");
    assert_non_null(strstr(error.text, target));
    for (size_t k = 0; k < 4; k++) {
        char option[16],
            *words[] = {"run", k < 3 ? "cholesky" : "mandelbrot", "", "", option, target, NULL};
        words[2] = k < 3 ? "--matrix" : "--n";
        words[3] = k < 3 ? "/nonexistent/matrix.mtx" : "100";
        (void)snprintf(option, sizeof option, "%s", options[k]);
        fflush(stderr);
        int kept = dup(STDERR_FILENO), pipes[2];
        assert_int_equal(pipe(pipes), 0);
        assert_true(dup2(pipes[1], STDERR_FILENO) >= 0);
        int code = bench_run_main(6, words);
        assert_true(dup2(kept, STDERR_FILENO) >= 0);
        close(kept);
        close(pipes[1]);
        ssize_t got = read(pipes[0], text, sizeof text - 1);
        close(pipes[0]);
        assert_true(got > 0);
        text[got] = '\0';
        assert_int_equal(code, BENCH_EXIT_ERROR);
        assert_non_null(strstr(text, option));
        assert_non_null(strstr(text, "symbolic link"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(links_and_devices_stay, begin, end),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_the_old_file, begin, end),
        cmocka_unit_test_setup_teardown(a_run_asks_before_it_runs, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
