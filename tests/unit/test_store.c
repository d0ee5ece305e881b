/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/thread.h"
#include "graph/task/store.h"

static void *piece_alloc(size_t size, size_t align, void *user)
{
    fixture_memory *memory = user;
    return memory->allocator.alloc(size, align, memory);
}

static void piece_free(void *pointer, size_t size, size_t align, void *user)
{
    fixture_memory *memory = user;
    memory->allocator.free(pointer, size, align, memory);
}

static fixture_memory counted;
static const fl_memory table = {piece_alloc, piece_free, &counted, "caller"};

static void slabs_are_reused_and_freed_at_the_end(void **state)
{
    (void)state;
    fl_store store;
    fixture_memory_init(&counted);
    assert_ok(fl_store_init(&store, &table));
    fl_slab *first = fl_store_take(&store), *second = fl_store_take(&store);
    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
    assert_int_equal(fl_load_relaxed(&store.bytes), 2 * sizeof(fl_slab));
    assert_int_equal((uintptr_t)&first->tasks[0] % 128, 0);
    assert_int_equal(first->used, 0);
    first->used = 7;
    first->next = second;
    fl_store_give(&store, first);
    fl_store_give(&store, NULL);
    int64_t calls = counted.calls;
    fl_slab *a = fl_store_take(&store), *b = fl_store_take(&store);
    assert_true((a == first && b == second) || (a == second && b == first));
    assert_int_equal(counted.calls, calls);
    assert_int_equal(a->used, 0);
    assert_null(a->next);
    assert_int_equal(fl_load_relaxed(&store.bytes), 2 * sizeof(fl_slab));
    fl_store_fini(&store); /* also of slabs that nobody gave back */
    assert_int_equal(counted.bytes, 0);
}

static void no_memory_gives_null_and_nothing_is_lost(void **state)
{
    (void)state;
    fl_store store;
    fixture_memory_init(&counted);
    assert_ok(fl_store_init(&store, &table));
    counted.fail_all = 1;
    assert_null(fl_store_take(&store));
    counted.fail_all = 0;
    assert_non_null(fl_store_take(&store));
    fl_store_fini(&store);
    assert_int_equal(counted.bytes, 0);
}

/* An allocator whose memory lies where a hint cannot point. */
static _Atomic int far_frees;

static void *far_alloc(size_t size, size_t align, void *user)
{
    (void)size;
    (void)align;
    (void)user;
    return (void *)(uintptr_t)0x00ffff0000000000u; /* never touched */
}

static void far_free(void *pointer, size_t size, size_t align, void *user)
{
    (void)size;
    (void)align;
    (void)user;
    assert_int_equal((uintptr_t)pointer, 0x00ffff0000000000u);
    ++far_frees;
}

static void memory_beyond_48_bits_is_refused(void **state)
{
    (void)state;
    const fl_memory far = {far_alloc, far_free, NULL, "far"};
    fl_store store;
    assert_ok(fl_store_init(&store, &far));
    assert_null(fl_store_take(&store));
    assert_int_equal(far_frees, 1);
    fl_store_fini(&store);
}

static int take_and_give(void *arg)
{
    fl_store *store = arg;
    for (int i = 0; i < 2000; ++i) {
        fl_slab *slab = fl_store_take(store);
        if (slab == NULL || slab->used != 0) {
            return 1;
        }
        slab->used = 1;
        fl_store_give(store, slab);
    }
    return 0;
}

static void threads_share_it(void **state)
{
    (void)state;
    fl_store store;
    fl_thread threads[3];
    fixture_memory_init(&counted);
    assert_ok(fl_store_init(&store, &table));
    for (int i = 0; i < 3; ++i) {
        assert_ok(fl_thread_start(&threads[i], take_and_give, &store));
    }
    for (int i = 0; i < 3; ++i) {
        fl_thread_join(threads[i]);
    }
    assert_in_range(counted.pieces, 1, 3);
    fl_store_fini(&store);
    assert_int_equal(counted.bytes, 0);
}

/* Hints and claims (task.h). */
static void a_hint_claims_its_run_only(void **state)
{
    (void)state;
    fl_store store;
    fixture_memory_init(&counted);
    assert_ok(fl_store_init(&store, &table));
    fl_slab *slab = fl_store_take(&store);
    fl_task *task = &slab->tasks[FL_SLAB_TASKS - 1], *claimed = NULL;
    bool poisoned = true;
    uint64_t hint = fl_hint_make(task, task->word);
    assert_ptr_equal(fl_hint_task(hint), task);
    fl_store_relaxed(&task->pending, 1);
    assert_false(fl_task_claim(hint, &claimed, &poisoned)); /* not ready */
    fl_store_relaxed(&task->pending, 0);
    assert_true(fl_task_claim(hint, &claimed, &poisoned));
    assert_ptr_equal(claimed, task);
    assert_false(poisoned);
    assert_false(fl_task_claim(hint, &claimed, &poisoned)); /* the next epoch */
    assert_int_equal(fl_word_epoch(task->word), 1);
    fl_or_relaxed(&task->word, (uint64_t)FL_TASK_POISONED);
    assert_true(fl_task_claim(fl_hint_make(task, task->word), &claimed, &poisoned));
    assert_true(poisoned);
    assert_int_equal(task->word & FL_TASK_POISONED, 0);
    /* A task of an open graph keeps its epoch while it is claimed. */
    fl_store_relaxed(&task->word, (uint64_t)9 << 32 | FL_TASK_OPEN);
    hint = fl_hint_make(task, task->word);
    assert_true(fl_task_claim(hint, &claimed, &poisoned));
    assert_int_equal(fl_word_epoch(task->word), 9);
    assert_false(fl_task_claim(hint, &claimed, &poisoned));
    fl_store_fini(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_are_reused_and_freed_at_the_end),
        cmocka_unit_test(no_memory_gives_null_and_nothing_is_lost),
        cmocka_unit_test(memory_beyond_48_bits_is_refused),
        cmocka_unit_test(threads_share_it),
        cmocka_unit_test(a_hint_claims_its_run_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
