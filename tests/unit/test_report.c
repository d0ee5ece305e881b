/* SPDX-License-Identifier: Apache-2.0 */
/* What people see: report, table, picture. */
#define _GNU_SOURCE
#include "problems/png_image.h"
#include "report/report.h"
#include "support/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <png.h>

static filch_runtime *recording(void)
{
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    desc.devices = "host:1";
    desc.drive = FILCH_DRIVE_POLL;
    desc.trace = 1;
    assert_int_equal(filch_runtime_create(&desc, NULL, &runtime), FILCH_OK);
    return runtime;
}

/* The data of the page that the result is written to. */
static json_t *page_of(const bench_result *result)
{
    static const char begin[] = "id=\"data\">";
    char path[] = "/tmp/filch_report_XXXXXX";
    static char text[1 << 19];
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = recording();
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(bench_report_write(path, runtime, result, &error), FILCH_OK);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    assert_true(size < sizeof text - 1);
    text[size] = '\0';
    fclose(file);
    unlink(path);
    char *at = strstr(text, begin);
    assert_non_null(at);
    at += sizeof begin - 1;
    char *end = strstr(at, "</script>");
    assert_non_null(end);
    *end = '\0';
    assert_null(strchr(at, '<'));
    json_t *root = json_loads(at, 0, NULL);
    assert_non_null(root);
    return root;
}

static void test_report(void **state)
{
    (void)state;
    bench_result r;
    assert_true(bench_result_init(&r, 2, 4, true));
    strcpy(r.workload, "</script> & \"co\"");
    strcpy(r.work_unit, "flop");
    strcpy(r.versus[0].name, "tbb");
    r.work = 1e9;
    for (size_t k = 0; k < 4; k++) {
        r.seconds[k] = 0.5;
        r.versus[0].seconds[k] = 1.5;
    }
    strcpy(r.devices[0].name, "host:0");
    r.devices[0].busy_s = 3;
    r.devices[1].stolen_in = 123457;
    assert_true(bench_result_derive(&r));
    json_t *root = page_of(&r), *expected = bench_result_json(&r);
    assert_true(json_equal(json_object_get(root, "bench"), expected));
    json_decref(expected);
    json_decref(root);
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = recording();
    assert_int_equal(bench_report_write("/nonexistent/x.html", runtime, &r, &error), FILCH_IO);
    assert_int_equal(bench_report_write("/dev/full", runtime, &r, &error), FILCH_IO);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
    bench_result_free(&r);
}

/* A run that measured nothing still gives a page. */
static void test_report_of_nothing(void **state)
{
    (void)state;
    bench_result r;
    assert_true(bench_result_init(&r, 1, 0, false));
    json_t *root = page_of(&r);
    assert_true(json_is_null(json_object_get(json_object_get(root, "bench"), "residual")));
    json_decref(root);
    bench_result_free(&r);
}

static void test_table(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bench_table table = {0};
    assert_false(bench_table_print(&table, out));
    bench_table_column(&table, true, "name");
    bench_table_column(&table, false, "µs");
    bench_table_cell(&table, "%s", "a");
    bench_table_cell(&table, "%d", 1234);
    bench_table_cell(&table, "%s", "longer");
    bench_table_cell(&table, "%d", 5);
    assert_true(bench_table_print(&table, out));
    bench_table_column(&table, false, "too late");
    assert_false(bench_table_print(&table, out));
    bench_table_free(&table);
    bench_progress progress;
    bench_progress_start(&progress, out, "never shown", 3);
    bench_progress_step(&progress);
    bench_progress_end(&progress);
    fclose(out);
    assert_string_equal(text, "name      µs\n------  ----\na       1234\nlonger     5\n");
    free(text);
}

static void test_format(void **state)
{
    (void)state;
    char text[32];
    const struct {
        double value;
        const char *si;
    } si[] = {{0, "0"}, {999, "999"}, {1000, "1 k"}, {12345678, "12.35 M"}, {-2.5e9, "-2.5 G"}};
    for (size_t k = 0; k < sizeof si / sizeof *si; k++) {
        bench_format_si(si[k].value, text, sizeof text);
        assert_string_equal(text, si[k].si);
    }
    const struct {
        double value;
        const char *seconds;
    } times[] = {
        {0, "0 s"}, {2.5, "2.5 s"}, {0.0125, "12.5 ms"}, {3e-6, "3 us"}, {1.5e-9, "1.5 ns"}};
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        bench_format_seconds(times[k].value, text, sizeof text);
        assert_string_equal(text, times[k].seconds);
    }
}

static void test_picture(void **state)
{
    (void)state;
    char path[] = "/tmp/filch_picture_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    filch_error error = FILCH_ERROR_INIT;
    const unsigned char rgb[2 * 3 * 3] = {255, 0,  0,  0,  255, 0,  0,  0,  255,
                                          10,  20, 30, 40, 50,  60, 70, 80, 90};
    assert_int_equal(bench_png_write(path, 3, 2, rgb, &error), FILCH_OK);
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&image, path));
    assert_int_equal(image.width, 3);
    assert_int_equal(image.height, 2);
    image.format = PNG_FORMAT_RGB;
    unsigned char back[sizeof rgb];
    assert_true(png_image_finish_read(&image, NULL, back, 0, NULL));
    assert_memory_equal(back, rgb, sizeof rgb);
    unlink(path);

    assert_int_equal(bench_png_write(path, 0, 2, rgb, &error), FILCH_INVALID_ARGUMENT);
    assert_int_equal(bench_png_write(path, SIZE_MAX, 2, rgb, &error), FILCH_INVALID_ARGUMENT);
    assert_true(access(path, F_OK) != 0);
    assert_int_equal(bench_png_write("/nonexistent/x.png", 3, 2, rgb, &error), FILCH_IO);
    assert_string_equal(error.label, "/nonexistent/x.png");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report),  cmocka_unit_test(test_report_of_nothing),
        cmocka_unit_test(test_table),   cmocka_unit_test(test_format),
        cmocka_unit_test(test_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
