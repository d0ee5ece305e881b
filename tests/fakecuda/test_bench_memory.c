/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's options of memory, on fake GPUs. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli.h"
#include "fakecuda.h"

#define WORDS 24

/* The exit status of `filch-bench run` with these words, and its document. */
static int run(const char *config, const char *line, json_t **document)
{
    char path[] = "/tmp/filch-memory-XXXXXX", text[256];
    char *words[WORDS + 3];
    int count = 0;
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    snprintf(text, sizeof text, "run %s", line);
    for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    assert_true(count <= WORDS);
    words[count++] = "--json";
    words[count++] = path;
    words[count] = NULL;
    fakecuda_reset();
    assert_true(fakecuda_configure(config));
    int code = bench_run_main(count, words);
    if (document)
        *document = json_load_file(path, 0, NULL);
    unlink(path);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("pinned"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
    return code;
}

#define ONE "{\"devices\": [{}]}"

static void operands_are_pinned_as_asked(void **state)
{
    (void)state;
    const char *line = "gemm --n 96 --tile 32 --devices cuda:0 --repeat 1 --check %s";
    char text[128];
    snprintf(text, sizeof text, line, "");
    assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
    assert_int_equal(fakecuda_count("cuMemHostRegister"), 2);
    snprintf(text, sizeof text, line, "--pinned");
    assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
    assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
    uint64_t pinned = fakecuda_count("cuMemHostAlloc");
    snprintf(text, sizeof text, line, "--pageable --versus cublas");
    assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
    assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
    assert_true(fakecuda_count("cuMemHostAlloc") < pinned);
    snprintf(text, sizeof text, line, "--versus cublasxt --precision single");
    assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
    assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(run(ONE, "gemm --devices host:1 --pinned", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "gemm --devices cuda:5 --pinned", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "jacobi --devices cuda:0 --pinned", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "gemm --devices cuda:0 --memory-limit 64G", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "gemm --devices cuda:0 --memory-limit 0", NULL), BENCH_EXIT_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_pinned_as_asked),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
