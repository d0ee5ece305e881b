/* SPDX-License-Identifier: Apache-2.0 */
/* How much kernels and copies overlapped, by a trace that is known. */
#define _GNU_SOURCE
#include "measure/overlap.h"
#include "report/show.h"

#include <math.h>
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

#define ROW(tid, name) \
    "{\"ph\":\"M\",\"tid\":" #tid ",\"name\":\"thread_name\",\"args\":{\"name\":\"" name "\"}}"
#define EVENT(tid, cat, name, ts, dur)                                                     \
    "{\"ph\":\"X\",\"tid\":" #tid ",\"cat\":\"" cat "\",\"name\":\"" name "\",\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{}}"
#define KERNELS (1u << BENCH_KERNELS)
#define IN (1u << BENCH_IN)
#define OUT (1u << BENCH_OUT)
#define PEER (1u << BENCH_PEER)

static filch_status status_of(const char *text, bench_overlap_result *overlap)
{
    char path[] = "/tmp/filch-overlap-XXXXXX";
    filch_error error = FILCH_ERROR_INIT;
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(file), 0);
    filch_status status = bench_overlap_read(path, overlap, &error);
    assert_int_equal(unlink(path), 0);
    return status;
}

static void expect(double found, double wanted)
{
    if (!(fabs(found - wanted) < 1e-9))
        fail_msg("%.12g, not %.12g", found, wanted);
}

/* On one device, over 100 us: kernels 0-40 and 30-60 (two lanes), in 20-50, out 50-80, peer 90-100.
 * Waits, and what a host device does, are no part of it. */
static const char known[] =
    "{\"otherData\":{\"events_overwritten\":3,\"copies_missed\":2},\"traceEvents\":["
    /* clang-format off */
    ROW(0, "cuda:0") "," ROW(1, "host:0") ","
    ROW(2, "cuda:0 in") "," ROW(3, "cuda:0 out") "," ROW(4, "cuda:0 peer") ","
    EVENT(0, "tile", "in", 0, 40) "," EVENT(0, "tile", "b", 30, 30) ","
    EVENT(2, "copy", "in", 20, 30) "," EVENT(3, "copy", "out", 50, 30) ","
    EVENT(4, "copy", "peer", 90, 10) ","
    EVENT(1, "tile", "a", 10, 80) "," EVENT(0, "wait", "wait", 60, 900)
    /* clang-format on */
    "]}";

static void parts_are_told_by_what_was_under_way(void **state)
{
    (void)state;
    bench_overlap_result o;
    assert_int_equal(status_of(known, &o), FILCH_OK);
    assert_true(o.is_known);
    assert_int_equal(o.devices, 1);
    expect(o.seconds, 100e-6);
    expect(bench_overlap_of(&o, KERNELS, 0), 0.6);
    expect(bench_overlap_of(&o, IN, 0), 0.3);
    expect(bench_overlap_of(&o, OUT, 0), 0.3);
    expect(bench_overlap_of(&o, PEER, 0), 0.1);
    expect(bench_overlap_of(&o, KERNELS | IN, 0), 0.3);
    expect(bench_overlap_of(&o, KERNELS | OUT, 0), 0.1);
    expect(bench_overlap_of(&o, KERNELS, IN | OUT | PEER), 0.4);
    expect(bench_overlap_of(&o, KERNELS | IN | OUT, 0), 0);
    expect(bench_overlap_of(&o, IN | OUT, 0), 0);
    expect(o.part[0], 0.1);
    assert_int_equal(o.overwritten, 3);
    assert_int_equal(o.missed, 2);
}

/* The second device has only a kernel of the first's length, and a copy at the same time. */
static void devices_count_alike(void **state)
{
    static const char two[] = "{\"traceEvents\":["
        /* clang-format off */
        ROW(0, "cuda:0") "," ROW(1, "cuda:1") "," ROW(2, "cuda:0 in") "," ROW(3, "cuda:1 in") ","
        EVENT(0, "tile", "a", 0, 50) "," EVENT(2, "copy", "in", 50, 50) ","
        EVENT(1, "tile", "a", 25, 50) "," EVENT(3, "copy", "in", 50, 50)
        /* clang-format on */
        "]}";
    (void)state;
    bench_overlap_result o;
    assert_int_equal(status_of(two, &o), FILCH_OK);
    assert_int_equal(o.devices, 2);
    expect(bench_overlap_of(&o, KERNELS, 0), 0.5);
    expect(bench_overlap_of(&o, IN, 0), 0.5);
    expect(bench_overlap_of(&o, KERNELS | IN, 0), 0.125);
    expect(o.part[0], 0.125);
    assert_int_equal(o.overwritten + o.missed, 0);
}

static void what_tells_nothing_is_unknown(void **state)
{
    static const char tiles[] =
        "{\"traceEvents\":[" ROW(0, "host:0") "," EVENT(0, "tile", "a", 0, 50) "]}";
    (void)state;
    bench_overlap_result o;
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(status_of(tiles, &o), FILCH_OK);
    assert_false(o.is_known);
    assert_int_equal(status_of("{\"traceEvents\":[]}", &o), FILCH_OK);
    assert_false(o.is_known);
    assert_int_equal(bench_overlap_read("/dev/null", &o, &error), FILCH_OK);
    assert_false(o.is_known);
    assert_int_equal(status_of("{\"traceEvents\":", &o), FILCH_PARSE);
    assert_int_equal(status_of("{}", &o), FILCH_PARSE);
    assert_int_equal(bench_overlap_read("/nonexistent/t", &o, &error), FILCH_IO);
    assert_string_equal(error.label, "/nonexistent/t");
}

/* In the table and the document. */
static void a_result_tells_it(void **state)
{
    (void)state;
    bench_result r;
    char *text = NULL, path[] = "/tmp/filch-overlap-XXXXXX";
    size_t size = 0;
    filch_error error = FILCH_ERROR_INIT;
    assert_true(bench_result_init(&r, 1, 1, false));
    r.seconds[0] = r.work = 1;
    assert_int_equal(status_of(known, &r.overlap), FILCH_OK);
    assert_true(bench_result_derive(&r));
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(bench_show(out, &r));
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "kernels 60 %, in 30 %, out 30 %, peer 10 %; kernels with copies "
                                 "40 %, kernels, in and out 0 %; the trace is not complete"));
    free(text);
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    assert_int_equal(bench_json_write(path, &r, &error), FILCH_OK);
    json_t *document = json_load_file(path, 0, NULL);
    const json_t *overlap = json_object_get(document, "overlap");
    expect(json_real_value(json_object_get(overlap, "kernels_in")), 0.3);
    expect(json_real_value(json_object_get(overlap, "kernels_copies")), 0.4);
    expect(json_real_value(json_object_get(overlap, "nothing")), 0.1);
    assert_int_equal(json_integer_value(json_object_get(overlap, "copies_missed")), 2);
    json_decref(document);
    assert_int_equal(unlink(path), 0);
    bench_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_told_by_what_was_under_way),
        cmocka_unit_test(devices_count_alike),
        cmocka_unit_test(what_tells_nothing_is_unknown),
        cmocka_unit_test(a_result_tells_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
