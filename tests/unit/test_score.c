/* SPDX-License-Identifier: Apache-2.0 */
/* What scores are reckoned from, on descriptions made by hand. */
#define _GNU_SOURCE
#include "fixture.h"

#include <math.h>
#include <stdlib.h>

#include "device/score.h"

static const fl_host_core core = {.single = 100e9, .twice = 50e9, .bytes = 10e9};

/* An A100 of 40 GB, and a host device of eight cores. */
static const filch_device_info gpu = {.backend = FILCH_BACKEND_CUDA,
                                      .team = 108,
                                      .multiprocessors = 108,
                                      .capability = 80,
                                      .clock_khz = 1410000,
                                      .single_lanes = 64,
                                      .double_lanes = 32,
                                      .bandwidth = 1555e9,
                                      .memory_free = (uint64_t)39 << 30};
static const filch_device_info host = {
    .backend = FILCH_BACKEND_HOST, .team = 8, .memory_free = (uint64_t)256 << 30};

static void assert_score(filch_score kind, const filch_device_info *info, double share, double want)
{
    double score = fl_score(kind, info, share, &core);
    if (!(fabs(score - want) <= 1e-9 * want)) {
        fail_msg("score %d is %.17g instead of %.17g", (int)kind, score, want);
    }
}

static void each_kind_has_its_formula(void **state)
{
    (void)state;
    double single = 2 * 108 * 64 * 1.41e9 / 100e9; /* 19.5 Tflop/s, as the data sheet says */
    assert_score(FILCH_SCORE_PEAK, &gpu, 1, single);
    assert_score(FILCH_SCORE_DEFAULT, &gpu, 1, single);
    assert_score(FILCH_SCORE_PEAK_DOUBLE, &gpu, 1, single); /* half of both */
    assert_score(FILCH_SCORE_BANDWIDTH, &gpu, 1, 155.5);
    assert_score(FILCH_SCORE_MEMORY, &gpu, 1, 39);
    assert_score(FILCH_SCORE_BLEND, &gpu, 1, sqrt(single * 155.5));
    assert_score(FILCH_SCORE_CAPACITY, &gpu, 1, 108 + 4 * 39 + 150);
    filch_device_info old = gpu;
    old.capability = 75;
    assert_score(FILCH_SCORE_CAPACITY, &old, 1, 108 + 4 * 39);
}

static void a_slice_has_its_part(void **state)
{
    (void)state;
    filch_device_info slice = gpu;
    slice.team = 27;
    for (filch_score kind = FILCH_SCORE_PEAK; kind <= FILCH_SCORE_BLEND; ++kind) {
        assert_score(kind, &slice, 0.25, fl_score(kind, &gpu, 1, &core) / 4);
    }
    assert_score(FILCH_SCORE_CAPACITY, &slice, 0.25, 27 + 39 + 150);
}

static void a_host_device_has_the_size_of_its_team(void **state)
{
    (void)state;
    static const filch_score kinds[] = {FILCH_SCORE_PEAK, FILCH_SCORE_PEAK_DOUBLE,
                                        FILCH_SCORE_BANDWIDTH, FILCH_SCORE_BLEND,
                                        FILCH_SCORE_CAPACITY};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        assert_score(kinds[i], &host, 1, 8);
    }
    assert_score(FILCH_SCORE_MEMORY, &host, 0.5, 128);
}

/* Drivers leave things out; no device may count for nothing because of that. */
static void what_is_not_known_is_assumed(void **state)
{
    (void)state;
    filch_device_info bare = {.backend = FILCH_BACKEND_CUDA, .team = 40};
    for (filch_score kind = FILCH_SCORE_PEAK; kind <= FILCH_SCORE_CAPACITY; ++kind) {
        double score = fl_score(kind, &bare, 1, &core);
        assert_true(kind == FILCH_SCORE_MEMORY ? score == 0 : score > 1 && score < 1e4);
    }
    fl_host_core here = fl_host_core_read();
    assert_true(here.single >= 1e9 && here.single < 1e12);
    assert_true(here.twice == here.single / 2 && here.bytes > 1e9);
}

static double score_of(filch_runtime *runtime, uint32_t index)
{
    filch_device_info info = {.size = sizeof info};
    assert_ok(filch_device_at(runtime, index, &info));
    return info.score;
}

static filch_runtime *make(const filch_runtime_desc *config)
{
    filch_runtime *runtime = NULL;
    assert_ok(filch_runtime_create(config, NULL, &runtime));
    return runtime;
}

static double rate(const filch_device_info *info, void *user)
{
    assert_true(info->score == (info->index == 0 ? 1 : 2)); /* by peak, as long as nobody rated */
    assert_true(info->memory_free > 0);
    *(int *)user += 1;
    return info->index == 0 ? 5 : (double)NAN;
}

static void the_configuration_chooses(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    int rated = 0;
    config.devices = "host:1,host:1x2";
    config.drive = FILCH_DRIVE_POLL;
    filch_runtime *runtime = make(&config);
    assert_true(score_of(runtime, 0) == 1 && score_of(runtime, 1) == 2);
    assert_ok(filch_runtime_destroy(runtime));
    /* They share a place, so its memory, by the sizes of their teams. */
    config.score = FILCH_SCORE_MEMORY;
    runtime = make(&config);
    assert_true(score_of(runtime, 0) > 0);
    assert_true(fabs(score_of(runtime, 1) / score_of(runtime, 0) - 2) < 0.5);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(setenv("FILCH_SCORE", "memory", 1), 0);
    config.score = FILCH_SCORE_PEAK; /* beats the environment */
    runtime = make(&config);
    assert_true(score_of(runtime, 0) == 1);
    assert_ok(filch_runtime_destroy(runtime));
    config.score = FILCH_SCORE_DEFAULT;
    runtime = make(&config);
    assert_true(score_of(runtime, 0) != 1);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(unsetenv("FILCH_SCORE"), 0);
    config.rate = rate;
    config.rate_user = &rated;
    runtime = make(&config);
    assert_int_equal(rated, 2);
    assert_true(score_of(runtime, 0) == 5 && score_of(runtime, 1) == 0); /* NaN counts as 0 */
    assert_ok(filch_runtime_destroy(runtime));
    static const double scores[] = {3, 4};
    config.scores = scores; /* beat everything */
    config.score_count = 2;
    runtime = make(&config);
    assert_int_equal(rated, 2);
    assert_true(score_of(runtime, 1) == 4);
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_its_formula),
        cmocka_unit_test(a_slice_has_its_part),
        cmocka_unit_test(a_host_device_has_the_size_of_its_team),
        cmocka_unit_test(what_is_not_known_is_assumed),
        cmocka_unit_test(the_configuration_chooses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
