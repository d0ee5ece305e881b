/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench cache`, by its exit codes and by what it says on standard output. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "module/disk.h"

static char folder[64];
static char told[8192];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/filch-cache-XXXXXX");
    return mkdtemp(folder) == NULL || setenv("FILCH_CACHE_DIR", folder, 1) != 0 ||
           unsetenv("FILCH_CACHE_LIMIT") != 0;
}

static int end(void **state)
{
    char lock[128];

    (void)state;
    (void)snprintf(lock, sizeof lock, "%s/lock", folder);
    (void)unlink(lock);
    return rmdir(folder); /* clear has left nothing else */
}

/* Runs the command with standard output in told. */
static int cache(const char *action)
{
    char name[] = "cache", word[32] = "";
    char *argv[] = {name, word, NULL};
    FILE *file = tmpfile();
    int kept = dup(STDOUT_FILENO);
    size_t length;
    int code;

    assert_non_null(file);
    assert_true(kept >= 0);
    (void)snprintf(word, sizeof word, "%s", action);
    (void)fflush(stdout);
    (void)dup2(fileno(file), STDOUT_FILENO);
    code = bench_cache_main(action[0] != '\0' ? 2 : 1, argv);
    (void)fflush(stdout);
    (void)dup2(kept, STDOUT_FILENO);
    (void)close(kept);
    rewind(file);
    length = fread(told, 1, sizeof told - 1, file);
    told[length] = '\0';
    (void)fclose(file);
    return code;
}

static void store(int number, const char *label, bool is_ptx)
{
    fl_memory memory = fl_memory_system();
    fl_disk_info info = {.arch = 90, .is_ptx = is_ptx, .bytes = 100};
    char data[100] = "image";
    fl_digest key = {{0}};
    fl_disk disk;

    key.bytes[0] = (unsigned char)number;
    (void)snprintf(info.label, sizeof info.label, "%s", label);
    assert_ok(fl_disk_open(&disk, &memory, NULL, folder, 1 << 20, FL_DISK_CREATE, NULL));
    fl_disk_write(&disk, &key, &info, data);
    fl_disk_close(&disk);
}

static void kernels_are_listed_checked_and_cleared(void **state)
{
    char path[256];

    (void)state;
    store(0xa1, "gemm", false);
    store(0xa2, "axpy", true);
    assert_int_equal(cache(""), BENCH_EXIT_OK);
    assert_non_null(strstr(told, "gemm"));
    assert_non_null(strstr(told, "sm_90"));
    assert_non_null(strstr(told, "axpy"));
    assert_non_null(strstr(told, "compute_90"));
    assert_non_null(strstr(told, "a20000000000"));
    assert_non_null(strstr(told, ": 2 compiled kernels, 520"));
    assert_int_equal(cache("size"), BENCH_EXIT_OK);
    assert_null(strstr(told, "gemm"));
    assert_non_null(strstr(told, ": 2 compiled kernels, 520"));
    assert_int_equal(cache("check"), BENCH_EXIT_OK);
    assert_non_null(strstr(told, ": 2 compiled kernels, 0 of them unfit"));
    (void)snprintf(path, sizeof path, "%s/a1%062d.img", folder, 0);
    assert_int_equal(truncate(path, 200), 0);
    assert_int_equal(cache("check"), BENCH_EXIT_FAILED);
    assert_non_null(strstr(told, "a1000000"));
    assert_null(strstr(told, "a2000000"));
    assert_non_null(strstr(told, ": 2 compiled kernels, 1 of them unfit"));
    assert_int_equal(cache("list"), BENCH_EXIT_OK);
    assert_null(strstr(told, "gemm"));
    assert_non_null(strstr(told, "(damaged)"));
    assert_int_equal(cache("clear"), BENCH_EXIT_OK);
    assert_non_null(strstr(told, ": 2 files, 460"));
    assert_int_equal(cache("list"), BENCH_EXIT_OK);
    assert_non_null(strstr(told, ": 0 compiled kernels"));
}

static void nothing_kept_is_no_error(void **state)
{
    (void)state;
    (void)setenv("FILCH_CACHE_DIR", "/nowhere/at/all", 1);
    assert_int_equal(cache("list"), BENCH_EXIT_OK);
    assert_string_equal(told, "/nowhere/at/all: no compiled kernels: there is no such folder\n");
    assert_int_equal(cache("clear"), BENCH_EXIT_OK);
    (void)setenv("FILCH_CACHE_DIR", "off", 1);
    assert_int_equal(cache("size"), BENCH_EXIT_OK);
    assert_non_null(strstr(told, "no compiled kernels are kept"));
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    assert_int_equal(cache("lsit"), BENCH_EXIT_ERROR);
    assert_int_equal(cache("--help"), BENCH_EXIT_OK);
    assert_non_null(strstr(told, "usage: filch-bench cache"));
    (void)setenv("FILCH_CACHE_LIMIT", "lots", 1);
    assert_int_equal(cache("list"), BENCH_EXIT_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernels_are_listed_checked_and_cleared, begin, end),
        cmocka_unit_test_setup_teardown(nothing_kept_is_no_error, begin, end),
        cmocka_unit_test_setup_teardown(mistakes_are_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
