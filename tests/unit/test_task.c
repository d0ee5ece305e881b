/* SPDX-License-Identifier: Apache-2.0 */
/* The claim of a task by a hint. */
#include "fixture.h"

#include "graph/build/graph.h"

/* A hint of exactly 2^23 runs ago has the epoch of now. */
static void test_aliased_hint_claims_only_what_is_ready(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task tasks[4];
    for (int i = 0; i < 4; ++i) {
        tasks[i] = fixture_add(graph, codelet, NULL, NULL, 0);
    }
    assert_ok(filch_graph_edge(graph, tasks[0], tasks[1])); /* one predecessor */
    assert_ok(filch_graph_edge(graph, tasks[0], tasks[2]));
    assert_ok(filch_graph_edge(graph, tasks[1], tasks[3])); /* two */
    assert_ok(filch_graph_edge(graph, tasks[2], tasks[3]));
    for (int run = 0; run < 2; ++run) {
        assert_ok(fixture_run(graph));
        for (int i = 1; i < 4; ++i) {
            fl_task *task = &graph->slabs->tasks[i], *claimed = NULL;
            bool poisoned;
            uint64_t word = fl_load_acquire(&task->word);
            assert_false(fl_task_claim(fl_hint_make(task, word), &claimed, &poisoned));
            assert_true(fl_load_relaxed(&task->word) == word);
        }
    }
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

/* Of those who hold the same hint one gets the task, and nobody after it ran. */
static void test_a_hint_claims_once(void **state)
{
    (void)state;
    _Alignas(128) fl_task task = {.predecessors = 1};
    fl_task *claimed = NULL;
    bool poisoned = true;
    fl_store_relaxed(&task.word, (uint64_t)7 << 32 | FL_TASK_POISONED);
    uint64_t hint = fl_hint_make(&task, fl_load_relaxed(&task.word));
    fl_store_relaxed(&task.pending, 1);
    assert_false(fl_task_claim(hint, &claimed, &poisoned)); /* not ready */
    fl_store_relaxed(&task.pending, 0);
    assert_true(fl_task_claim(hint, &claimed, &poisoned));
    assert_ptr_equal(claimed, &task);
    assert_true(poisoned);
    assert_false(fl_task_claim(hint, &claimed, &poisoned));
    /* The next epoch starts clean. */
    assert_true(fl_load_relaxed(&task.word) == (uint64_t)8 << 32);
    /* Of an open graph it stays in its epoch until it retires. */
    fl_store_relaxed(&task.word, (uint64_t)7 << 32 | FL_TASK_OPEN | FL_TASK_LOCKED);
    assert_true(fl_task_claim(hint, &claimed, &poisoned));
    assert_false(poisoned);
    assert_false(fl_task_claim(hint, &claimed, &poisoned));
    assert_true(fl_load_relaxed(&task.word) ==
                ((uint64_t)7 << 32 | FL_TASK_OPEN | FL_TASK_LOCKED | FL_TASK_CLAIMED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aliased_hint_claims_only_what_is_ready),
        cmocka_unit_test(test_a_hint_claims_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
