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

#include "cli/cli.h"
#include "fakecuda.h"
#include "gpu/twins.h"

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
    gpu_twins_register();
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
    assert_int_equal(fakecuda_count("pageable"), 0);
    snprintf(text, sizeof text, line, "--pageable --versus cublas");
    assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
    assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
    assert_true(fakecuda_count("pageable") > 0);
    snprintf(text, sizeof text, line, "--versus cublasxt --precision single");
    assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
    assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
}

/* Filch's factor, and the peer's, for which nothing is locked once more. */
static void factorizations_are_from_memory_as_asked(void **state)
{
    static const char *const names[] = {"cholesky", "lu", "qr"};
    char text[160];
    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *line = "%s --n 96 --tile 32 --devices cuda:0 --repeat 1 --check %s";
        snprintf(text, sizeof text, line, names[k], "--versus cusolver");
        assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
        assert_true(fakecuda_count("cuMemHostRegister") >= 3);
        snprintf(text, sizeof text, line, names[k], "--pinned --versus cusolver");
        assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
        assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
        snprintf(text, sizeof text, line, names[k], "--pageable");
        assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
        assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
        uint64_t own = fakecuda_count("pageable");
        snprintf(text, sizeof text, line, names[k], "--pageable --versus cusolver");
        assert_int_equal(run(ONE, text, NULL), BENCH_EXIT_OK);
        assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
        /* Whether Cholesky's tiles are halved, and how much is copied so, the clock decides. */
        assert_true(fakecuda_count("pageable") > own || k == 0);
    }
    assert_int_equal(
        run(ONE,
            "cholesky --matrix tests/data/lund_a.mtx --tile 32 --devices cuda:0 --repeat 1 "
            "--check --pinned",
            NULL),
        BENCH_EXIT_OK);
    assert_int_equal(fakecuda_count("cuMemHostRegister"), 0);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(run(ONE, "gemm --devices host:1 --pinned", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "gemm --devices cuda:5 --pinned", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "jacobi --devices cuda:0 --pinned", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "lu --devices host:1 --pinned", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "gemm --devices cuda:0 --memory-limit 64G", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "gemm --devices cuda:0 --memory-limit 0", NULL), BENCH_EXIT_ERROR);
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* 12 tiles of 8 rows and columns: panels of 6,144 bytes. */
#define PANEL 6144.0
#define RESULT 73728.0

static void the_bound_is_reckoned_and_compared(void **state)
{
    (void)state;
    json_t *document;
    assert_int_equal(run(ONE, "gemm --n 96 --tile 8 --devices cuda:0 --repeat 2", &document),
                     BENCH_EXIT_OK);
    const json_t *bound = json_object_get(document, "bound");
    assert_true(number(bound, "speed") > 0 && number(bound, "rate_in") > 0);
    assert_true(number(bound, "compute_s") > 0 && number(bound, "transfer_s") > 0);
    assert_true(number(bound, "time_over_bound") > 0);
    assert_true(number(bound, "least_bytes") == 24 * PANEL + RESULT);
    assert_true(number(bound, "bytes") == 24 * PANEL + RESULT);
    json_decref(document);
    /* Two GPUs: half of the order each, so all of A twice. */
    assert_int_equal(
        run("{\"devices\": [{\"count\": 2}]}",
            "gemm --n 96 --tile 8 --devices cuda --repeat 1 --scores 1,1 --policy static",
            &document),
        BENCH_EXIT_OK);
    bound = json_object_get(document, "bound");
    assert_true(number(bound, "least_bytes") == 36 * PANEL + RESULT);
    json_decref(document);
    /* On the devices all the time, or none at all: nothing to compare. */
    assert_int_equal(run(ONE, "gemm --n 96 --devices cuda:0 --repeat 1 --resident", &document),
                     BENCH_EXIT_OK);
    assert_null(json_object_get(document, "bound"));
    json_decref(document);
    assert_int_equal(run(ONE, "gemm --n 96 --devices host:1 --repeat 1", &document), BENCH_EXIT_OK);
    assert_null(json_object_get(document, "bound"));
    json_decref(document);
}

/* Panels of 48 KiB, twelve of them, where four or five fit: what moves is more than once each, and
 * no run gets by with less than the least. */
static void less_memory_than_operands_is_enough(void **state)
{
    (void)state;
    const double once = 2 * 192 * 192 * 8, result = 192 * 192 * 8;
    json_t *document;
    assert_int_equal(
        run(ONE, "gemm --n 192 --tile 32 --devices cuda:0 --repeat 3 --check --memory-limit 256K",
            &document),
        BENCH_EXIT_OK);
    assert_true(json_is_true(json_object_get(document, "checked")));
    const json_t *bound = json_object_get(document, "bound");
    assert_true(number(bound, "least_bytes") > once + result);
    assert_true(number(bound, "bytes") >= number(bound, "least_bytes"));
    json_decref(document);
}

/* The host's version of the workload's kernel. */
static int stream(const filch_call *call)
{
    uint64_t cost = *(const uint64_t *)call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1];
    for (uint64_t j = 0; j < call->hi - call->lo; j++)
        for (uint64_t i = 0; i < from->rows; i++) {
            double x = ((const double *)from->ptr)[j * from->ld + i], v = x;
            for (uint64_t k = 0; k < cost; k++)
                v = v * 0.5 + x;
            ((double *)to->ptr)[j * to->ld + i] = v;
        }
    return 0;
}

static void a_stream_goes_in_and_out(void **state)
{
    (void)state;
    const double bytes = 24 * 8 * 1024;
    json_t *document;
    (void)setenv("FILCH_NVRTC", FL_NVRTC_KERNELS, 1);
    (void)setenv("FILCH_CACHE_DIR", "off", 1);
    fakecuda_register_filch("stream", stream, 2, true, sizeof(uint64_t));
    for (int all = 0; all < 2; all++) {
        assert_int_equal(run("{\"devices\": [{\"count\": 2}]}",
                             all ? "stream --n 24 --tile 8 --cost 5 --devices cuda --check --pinned"
                                 : "stream --n 24 --tile 8 --cost 5 --devices cuda:1 --check",
                             &document),
                         BENCH_EXIT_OK);
        assert_true(number(document, "work") == bytes);
        assert_true(json_is_true(json_object_get(document, "checked")));
        const json_t *bound = json_object_get(document, "bound");
        assert_true(number(bound, "speed") > 0 && number(bound, "rate_in") > 0);
        assert_true(number(bound, "least_bytes") == 2 * bytes);
        assert_true(number(bound, "bytes") == 2 * bytes);
        json_decref(document);
    }
    assert_int_equal(run(ONE, "stream --n 24 --precision single", NULL), BENCH_EXIT_ERROR);
    assert_int_equal(run(ONE, "gemm --n 24 --cost 4", NULL), BENCH_EXIT_ERROR);
    (void)unsetenv("FILCH_NVRTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_pinned_as_asked),
        cmocka_unit_test(factorizations_are_from_memory_as_asked),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(the_bound_is_reckoned_and_compared),
        cmocka_unit_test(less_memory_than_operands_is_enough),
        cmocka_unit_test(a_stream_goes_in_and_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
