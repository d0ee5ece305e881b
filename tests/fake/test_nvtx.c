/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges around launches on a GPU: of kernels, of enqueue functions, of a whole graph, and of
 * launches that fail. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "fakenvtx/heard.h"
#include "jobs.h"

#define CHAIN 40

static void start_profiled(void)
{
    (void)setenv(VARIABLE, FL_NVTX_WHOLE, 1);
    start("cuda:0", "2", NULL);
    forget();
    memset(x, 0, sizeof x);
}

static void add_labelled(filch_graph *to, filch_codelet *codelet, filch_data *data,
                         const char *label)
{
    filch_access access = {.data = data, .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.label = label;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

static void kernels_have_ranges(void **state)
{
    (void)state;
    start_profiled();
    filch_codelet *bumps = on_gpu("bump");
    filch_data *data = handle(x);
    filch_graph *chain = graph();
    for (int k = 0; k < CHAIN; k++)
        add_labelled(chain, bumps, data, k == 0 ? "first" : NULL);
    finish(submit(chain), FILCH_OK);
    assert_int_equal(x[0], CHAIN);
    hear();
    assert_balanced();
    assert_int_equal(count_of(FAKE_PUSH, NULL), CHAIN);
    assert_int_equal(count_of(FAKE_PUSH, "first"), 1);
    assert_int_equal(count_of(FAKE_PUSH, "bump"), CHAIN - 1);
    assert_int_equal(first_of(FAKE_START, "job 1: graph"), 0);
    assert_int_equal(end_of(0), event_count - 1);
    assert_ok(filch_graph_destroy(chain));
    assert_ok(filch_data_destroy(data));
    stop();
}

static _Atomic uint64_t enqueuer; /* thread that called the function within the task's range */

static int enqueue_nothing(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)call;
    (void)lane;
    (void)state;
    hear();
    const fake_nvtx_event *last = &events[event_count - 1];
    bool is_within = last->kind == FAKE_PUSH && strcmp(last->name, "library call") == 0;
    atomic_store(&enqueuer, is_within ? (uint64_t)gettid() : 0);
    return is_within ? 0 : 9;
}

static void enqueue_functions_are_called_within(void **state)
{
    (void)state;
    start_profiled();
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    cuda.enqueue = enqueue_nothing;
    desc.name = "enqueue";
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    filch_data *data = handle(x);
    filch_graph *one = graph();
    add_labelled(one, codelet, data, "library call");
    finish(submit(one), FILCH_OK);
    hear();
    assert_balanced();
    assert_int_equal(events[first_of(FAKE_PUSH, "library call")].thread, atomic_load(&enqueuer));
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_data_destroy(data));
    stop();
}

static void a_graph_launched_whole_has_one(void **state)
{
    (void)state;
    (void)setenv("FILCH_REPLAY", "2", 1);
    start_profiled();
    filch_codelet *bumps = on_gpu("bump");
    filch_data *data = handle(x);
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *chain = NULL;
    desc.label = "time step";
    assert_ok(filch_graph_create(runtime, &desc, &chain));
    for (int k = 0; k < CHAIN; k++)
        add_labelled(chain, bumps, data, NULL);
    finish(submit(chain), FILCH_OK);
    forget();
    finish(submit(chain), FILCH_OK);
    hear();
    assert_balanced();
    assert_int_equal(fakecuda_graphs(CHAIN), 1);
    assert_int_equal(count_of(FAKE_PUSH, "time step"), 1);
    assert_int_equal(count_of(FAKE_PUSH, NULL), 1);
    assert_int_equal(x[0], 2 * CHAIN);
    assert_ok(filch_graph_destroy(chain));
    assert_ok(filch_data_destroy(data));
    stop();
    (void)unsetenv("FILCH_REPLAY");
}

static void a_launch_that_fails_ends_its_range(void **state)
{
    (void)state;
    start_profiled();
    filch_codelet *bumps = on_gpu("bump");
    filch_data *data = handle(x);
    filch_graph *one = graph();
    add_labelled(one, bumps, data, "refused");
    fakecuda_fail("cuLaunchKernelEx", 1, 1, 701, -1, false); /* out of resources */
    fakecuda_fail("cuLaunchKernel", 1, 1, 701, -1, false);
    finish(submit(one), FILCH_TASK_FAILED);
    hear();
    assert_balanced();
    assert_int_equal(count_of(FAKE_PUSH, "refused"), 1);
    assert_int_equal(count_of(FAKE_END, NULL), 1);
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_data_destroy(data));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_have_ranges),
        cmocka_unit_test(enqueue_functions_are_called_within),
        cmocka_unit_test(a_graph_launched_whole_has_one),
        cmocka_unit_test(a_launch_that_fails_ends_its_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
