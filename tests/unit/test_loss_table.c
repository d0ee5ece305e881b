/* SPDX-License-Identifier: Apache-2.0 */
/* The loss report as the bench shows it: table, JSON. */
#define _GNU_SOURCE
#include "measure/session.h"
#include "observe/losses.h"
#include "report/loss_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Two runs of a second each on two devices, one of which was idle at their ends. */
static void fill(bench_result *r)
{
    assert_true(bench_result_init(r, 2, 2, false));
    strcpy(r->devices[0].name, "host:0");
    strcpy(r->devices[1].name, "<gpu>");
    r->seconds[0] = r->seconds[1] = 1;
    r->work = 1;
    r->losses = (bench_loss_result){.runs = 2, .wall_s = 2, .area_s = 1.5, .path_s = 0.5};
    r->devices[0].losses = (filch_losses){.wall_ns = 2000000000,
                                          .busy_ns = 1880000000,
                                          .slow_ns = 20000000,
                                          .unrated_ns = 400000000,
                                          .dispatch_ns = 60000000,
                                          .data_ns = 40000000,
                                          .estimated_ns = 5000000};
    r->devices[1].losses = (filch_losses){.wall_ns = 2000000000,
                                          .busy_ns = 1100000000,
                                          .spoiled_ns = 100000000,
                                          .preempted_ns = 60000000,
                                          .starved_ns = 100000000,
                                          .unshared_ns = 40000000,
                                          .held_ns = 80000000,
                                          .tail_ns = 500000000,
                                          .other_ns = 20000000,
                                          .refused_held = 7,
                                          .refused_empty = 5,
                                          .refused_unable = 3,
                                          .refused_raced = 1,
                                          .refused_dear = 4};
    assert_true(bench_result_derive(r));
}

static char text[1 << 16]; /* of a table or page */

static void write_text(bool (*show)(FILE *out, const bench_result *r), const bench_result *r)
{
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    text[0] = '\0';
    assert_true(show(out, r));
    assert_int_equal(fclose(out), 0);
}

/* The words of a row. */
static void expect_row(const char *name, const char *const *cells, size_t count)
{
    char line[512], *at = NULL;
    const char *row = strstr(text, name);
    assert_non_null(row);
    size_t length = strcspn(row, "\n");
    assert_true(length < sizeof line);
    memcpy(line, row, length);
    line[length] = '\0';
    char *word = strtok_r(line, " ", &at);
    for (size_t k = 0; k < count; k++) {
        word = strtok_r(NULL, " ", &at);
        assert_non_null(word);
        assert_string_equal(word, cells[k]);
    }
    assert_null(strtok_r(NULL, " ", &at));
}

static void test_table(void **state)
{
    (void)state;
    bench_result r;
    fill(&r);
    assert_float_equal(bench_loss_bound_s(&r.losses), 0.75, 0);
    assert_float_equal(bench_loss_efficiency(&r.losses), 0.75, 1e-12);
    write_text(bench_losses_show, &r);
    static const char *const first[] = {"94.00", "1.00", "3.00", "2.00", "0.00", "0.00",
                                        "0.00",  "0.00", "0.00", "0.00", "0.00", "0.0",
                                        "0.0",   "0.0",  "0.0",  "0.0"};
    static const char *const second[] = {"55.00", "0.00", "0.00", "0.00",  "5.00", "3.00",
                                         "5.00",  "2.00", "4.00", "25.00", "1.00", "3.5",
                                         "2.5",   "1.5",  "0.5",  "2.0"};
    static const char *const all[] = {"74.50", "0.50", "1.50", "1.00",  "2.50", "1.50",
                                      "2.50",  "1.00", "2.00", "12.50", "0.50", "3.5",
                                      "2.5",   "1.5",  "0.5",  "2.0"};
    expect_row("host:0 ", first, 16);
    expect_row("<gpu> ", second, 16);
    expect_row("all  ", all, 16);
    assert_non_null(strstr(text, "750 ms"));
    assert_non_null(strstr(text, "500 ms"));
    assert_non_null(strstr(text, "75.0 %"));
    assert_non_null(strstr(text, "Of busy 10.00 points"));
    r.losses.path_s = 1; /* now the path is what bounds it */
    assert_float_equal(bench_loss_efficiency(&r.losses), 1, 1e-12);
    r.losses.path_s = 0;
    write_text(bench_losses_show, &r);
    assert_non_null(strstr(text, "not known"));
    r.losses.runs = 0; /* nothing was reported */
    write_text(bench_losses_show, &r);
    assert_string_equal(text, "");
    bench_result_free(&r);
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_non_null(value);
    return json_number_value(value);
}

static void test_document(void **state)
{
    (void)state;
    char path[] = "/tmp/filch_losses_XXXXXX";
    bench_result r;
    filch_error error = FILCH_ERROR_INIT;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    fill(&r);
    assert_int_equal(bench_json_write(path, &r, &error), FILCH_OK);
    FILE *file = fopen(path, "r"); /* another file than before: it was renamed over that */
    assert_non_null(file);
    json_t *root = json_loadf(file, 0, NULL);
    const json_t *losses = json_object_get(root, "losses");
    assert_float_equal(number_at(losses, "runs"), 2, 0);
    assert_float_equal(number_at(losses, "wall_s"), 1, 0);
    assert_float_equal(number_at(losses, "area_s"), 0.75, 0);
    assert_float_equal(number_at(losses, "path_s"), 0.5, 0);
    assert_float_equal(number_at(losses, "bound_s"), 0.75, 0);
    assert_float_equal(number_at(losses, "efficiency"), 0.75, 1e-12);
    const json_t *total = json_object_get(losses, "total");
    double sum = 0;
    for (size_t k = 0; k < FL_LOSS_PARTS; k++) {
        char key[32];
        snprintf(key, sizeof key, "%s_s", fl_loss_parts()[k].name);
        sum += number_at(total, key);
    }
    assert_float_equal(sum, number_at(total, "wall_s"), 1e-12);
    assert_float_equal(number_at(total, "busy_s"), 2.98, 1e-12);
    assert_float_equal(number_at(total, "slow_s"), 0.02, 1e-12);
    assert_float_equal(number_at(total, "preempted_s"), 0.06, 1e-12);
    assert_float_equal(number_at(total, "unshared_s"), 0.04, 1e-12);
    assert_float_equal(number_at(total, "unrated_s"), 0.4, 1e-12);
    assert_float_equal(number_at(total, "estimated_s"), 0.005, 1e-12);
    const json_t *device = json_array_get(json_object_get(root, "devices"), 1);
    const json_t *own = json_object_get(device, "losses");
    assert_float_equal(number_at(own, "tail_s"), 0.5, 1e-12);
    assert_int_equal(json_integer_value(json_object_get(own, "refused_unable")), 3);
    assert_int_equal(json_integer_value(json_object_get(own, "refused_dear")), 4);
    json_decref(root);
    /* Without a report there is none, not one of zeros. */
    r.losses.runs = 0;
    r.devices[0].losses = r.devices[1].losses = (filch_losses){0};
    assert_int_equal(bench_json_write(path, &r, &error), FILCH_OK);
    root = json_load_file(path, 0, NULL);
    assert_null(json_object_get(root, "losses"));
    device = json_array_get(json_object_get(root, "devices"), 0);
    assert_null(json_object_get(device, "losses"));
    json_decref(root);
    (void)fclose(file);
    (void)remove(path);
    bench_result_free(&r);
}

/* What a session takes from real jobs: of a graph the path, where it is wanted. */
static void check_session(const char *name)
{
    filch_error error = FILCH_ERROR_INIT;
    const bench_workload *workload = bench_workload_find(name);
    /* Tiles long enough for their time to be told from that of their dispatch on a busy machine. */
    bench_options options = {.n = 180, .tile = 60, .devices = "host:2", .seed = 1};
    bench_session_config config = {.devices = "host:2"};
    bench_session session;
    void *problem = NULL;
    double seconds;
    assert_non_null(workload);
    assert_int_equal(workload->setup(&options, &error, &problem), FILCH_OK);
    assert_int_equal(bench_session_open(&session, workload, problem, &config, &error), FILCH_OK);
    for (int run = 0; run < 3; run++) {
        uint64_t walls = 0;
        session.wants_path = run > 0;
        assert_int_equal(bench_session_run(&session, &seconds, &error), FILCH_OK);
        for (uint32_t d = 0; d < session.devices; d++)
            walls += session.losses[d].wall_ns;
        assert_true(session.wall_s > 0 && session.wall_s <= seconds);
        assert_true(fabs((double)walls * 1e-9 - 2 * session.wall_s) < 1e-9);
        double busy_s = 0;
        for (uint32_t d = 0; d < session.devices; d++)
            busy_s += (double)(session.losses[d].busy_ns + session.losses[d].slow_ns) * 1e-9;
        assert_true((session.area_s > 0) == (busy_s > 0)); /* else the system took the cores */
        assert_true((session.path_s > 0) == (run > 0));
    }
    bench_session_close(&session);
    workload->teardown(problem);
}

static void test_session(void **state)
{
    (void)state;
    check_session("gemm");
    check_session("cholesky");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
