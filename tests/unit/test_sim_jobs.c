/* SPDX-License-Identifier: Apache-2.0 */
/* The table of jobs, recorded and predicted. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_jobs.h"

enum { JOBS = 60 };

static bench_sim_job jobs[JOBS];
static bench_sim_tile tiles[JOBS];
static bench_sim_graph graphs[JOBS];
static double predicted[JOBS];
static char *codelets[] = {"add", "scale"};
static char *text;

/* A job of one tile that took 2 ms and is to take 1. */
static bench_sim_job *job(size_t k, const char *name, bench_sim_graph *graph)
{
    tiles[k] = (bench_sim_tile){.codelet = (uint32_t)(k % 2)};
    jobs[k] = (bench_sim_job){.graph = graph,
                              .is_batch = graph == NULL,
                              .first = k,
                              .count = 1,
                              .start_us = 5000 * (double)k,
                              .end_us = 5000 * (double)k + 2000};
    (void)snprintf(jobs[k].name, sizeof jobs[k].name, "%s", name);
    predicted[k] = 1e-3;
    return &jobs[k];
}

static const char *show(size_t count)
{
    size_t bytes = 0;
    filch_error error = FILCH_ERROR_INIT;
    bench_sim_record record = {
        .jobs = jobs, .job_count = count, .tiles = tiles, .codelets = codelets};
    bench_sim_prediction prediction = {.job_s = predicted};
    free(text);
    text = NULL;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    assert_int_equal(bench_sim_jobs_show(&record, &prediction, out, &error), FILCH_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static size_t lines(const char *of)
{
    size_t count = 0;
    for (; *of != '\0'; ++of)
        count += *of == '\n';
    return count;
}

static void runs_of_a_graph_share_a_row(void **state)
{
    (void)state;
    graphs[0].number = 3;
    graphs[1].number = 4;
    job(0, "assemble", &graphs[0]);
    job(1, "step", &graphs[1]);
    job(2, "step", &graphs[1]);
    job(3, "batch", NULL);
    job(4, "", NULL);
    job(5, "batch", NULL);
    predicted[2] = 3e-3;
    const char *shown = show(6);
    assert_int_equal(lines(shown), 2 + 4); /* job 5 is as job 3 */
    assert_non_null(strstr(shown, "assemble, graph 3     1      1      2 ms       1 ms  -50.0 %"));
    assert_non_null(strstr(shown, "step, graph 4         2      2      4 ms       4 ms   +0.0 %"));
    assert_non_null(strstr(shown, "batch, scale          2      2      4 ms       2 ms  -50.0 %"));
    assert_non_null(strstr(shown, "batch, add            1      1      2 ms       1 ms  -50.0 %"));
}

static void many_jobs_end_in_a_row_of_others(void **state)
{
    (void)state;
    for (size_t k = 0; k < JOBS; ++k) {
        graphs[k].number = k + 1;
        job(k, "graph", &graphs[k]);
    }
    const char *shown = show(JOBS);
    assert_int_equal(lines(shown), 2 + 20 + 1);
    assert_non_null(strstr(shown, "\ngraph 20 "));
    assert_null(strstr(shown, "\ngraph 21 "));
    const char *others = strstr(shown, "others");
    assert_non_null(others);
    assert_non_null(strstr(others, "40     40     80 ms      40 ms  -50.0 %"));
}

static void a_job_without_time_has_no_change(void **state)
{
    (void)state;
    job(0, "batch", NULL)->end_us = jobs[0].start_us;
    assert_non_null(strstr(show(1), "0 ms       1 ms       -"));
}

static int end(void **state)
{
    (void)state;
    free(text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_a_graph_share_a_row),
        cmocka_unit_test(many_jobs_end_in_a_row_of_others),
        cmocka_unit_test(a_job_without_time_has_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
