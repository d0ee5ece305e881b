/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of device.h on a runtime; the pool below them has a test of its own. */
#include "fixture.h"

#include <math.h>
#include <string.h>

static filch_runtime *runtime;

static int set_up(void **state)
{
    static const double scores[3] = {1, 4, 4};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    (void)state;
    config.devices = "host:3";
    config.drive = FILCH_DRIVE_POLL;
    config.scores = scores;
    config.score_count = 3;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

static void devices_are_described_in_order(void **state)
{
    (void)state;
    filch_device_info info = {.size = sizeof info}, other = {.size = sizeof other};
    assert_int_equal(filch_device_count(runtime), 3);
    assert_int_equal(filch_device_count(NULL), 0);
    for (uint32_t i = 0; i < 3; ++i) {
        char name[16] = "host:0";
        name[5] = (char)('0' + i);
        assert_ok(filch_device_at(runtime, i, &info));
        assert_int_equal(info.index, i);
        assert_int_equal(info.ordinal, i);
        assert_int_equal(info.backend, FILCH_BACKEND_HOST);
        assert_string_equal(info.name, name);
        assert_int_equal(info.team, 1);
        assert_true(info.score == (i == 0 ? 1 : 4));
        assert_true(info.memory_total > 0 && info.memory_free <= info.memory_total);
    }
    memset(&other, 0x5a, sizeof other);
    other.size = sizeof other;
    filch_device_info before = other;
    assert_status(filch_device_at(runtime, 3, &other), FILCH_BAD_INDEX);
    assert_status(filch_device_at(runtime, UINT32_MAX, &other), FILCH_BAD_INDEX);
    assert_memory_equal(&other, &before, sizeof other);
    assert_string_equal(fixture_error(runtime).call, "filch_device_at");
    assert_status(filch_device_at(runtime, 0, NULL), FILCH_INVALID_ARGUMENT);
    info.size = 0;
    assert_status(filch_device_at(runtime, 0, &info), FILCH_INVALID_ARGUMENT);
    assert_status(filch_device_at(NULL, 0, &other), FILCH_INVALID_HANDLE);
}

static void ordinals_are_found(void **state)
{
    (void)state;
    uint32_t index = 77;
    assert_ok(filch_device_by_ordinal(runtime, FILCH_BACKEND_HOST, 2, &index));
    assert_int_equal(index, 2);
    assert_status(filch_device_by_ordinal(runtime, FILCH_BACKEND_HOST, 3, &index),
                  FILCH_UNKNOWN_ORDINAL);
    assert_status(filch_device_by_ordinal(runtime, FILCH_BACKEND_CUDA, 0, &index),
                  FILCH_UNKNOWN_ORDINAL);
    assert_int_equal(index, 2);
    assert_int_equal(fixture_error(runtime).status, FILCH_UNKNOWN_ORDINAL);
    assert_status(filch_device_by_ordinal(runtime, FILCH_BACKEND_HOST, 0, NULL),
                  FILCH_INVALID_ARGUMENT);
    assert_status(filch_device_by_ordinal(NULL, FILCH_BACKEND_HOST, 0, &index),
                  FILCH_INVALID_HANDLE);
}

static void next_goes_round_whatever_the_runtime_does(void **state)
{
    (void)state;
    uint32_t first, index;
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    assert_ok(filch_device_next(runtime, &first));
    for (uint32_t i = 1; i < 10; ++i) {
        /* Tasks without a preferred device are dealt out too, but not in the caller's turn. */
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        filch_job *job = NULL;
        assert_ok(filch_graph_submit(graph, NULL, &job));
        fixture_add(graph, nothing, NULL, NULL, 0);
        assert_ok(filch_graph_close(graph));
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(graph));
        assert_ok(filch_device_next(runtime, &index));
        assert_int_equal(index, (first + i) % 3);
    }
    assert_status(filch_device_next(runtime, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_device_next(NULL, &index), FILCH_INVALID_HANDLE);
}

static double rate_by_user(const filch_device_info *info, void *user)
{
    const double *rates = user;
    return rates[info->index];
}

static void the_best_is_chosen_and_ties_go_low(void **state)
{
    (void)state;
    uint32_t index = 9;
    assert_ok(filch_device_best_score(runtime, &index));
    assert_int_equal(index, 1);
    assert_ok(filch_device_best_memory(runtime, &index));
    assert_int_equal(index, 0); /* one place: all have the same */
    double rates[3] = {-5, -2, -2};
    assert_ok(filch_device_choose(runtime, rate_by_user, rates, &index));
    assert_int_equal(index, 1);
    rates[0] = rates[1] = (double)NAN;
    assert_ok(filch_device_choose(runtime, rate_by_user, rates, &index));
    assert_int_equal(index, 2);
    rates[2] = (double)NAN;
    assert_status(filch_device_choose(runtime, rate_by_user, rates, &index), FILCH_NO_DEVICE);
    assert_int_equal(index, 2);
    assert_status(filch_device_choose(runtime, NULL, rates, &index), FILCH_INVALID_ARGUMENT);
    assert_status(filch_device_choose(runtime, rate_by_user, rates, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_device_best_score(runtime, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_device_best_memory(NULL, &index), FILCH_INVALID_HANDLE);
    assert_status(filch_device_best_score(NULL, &index), FILCH_INVALID_HANDLE);
    assert_status(filch_device_choose(NULL, rate_by_user, rates, &index), FILCH_INVALID_HANDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_described_in_order),
        cmocka_unit_test(ordinals_are_found),
        cmocka_unit_test(next_goes_round_whatever_the_runtime_does),
        cmocka_unit_test(the_best_is_chosen_and_ties_go_low),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
