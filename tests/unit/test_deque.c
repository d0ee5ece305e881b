/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sync/deque.h"

/* Memory that counts and, once `left` allocations have been made, fails. */
typedef struct counter {
    fl_memory memory, system;
    size_t allocs, frees, bytes, left;
} counter;

static void *counter_alloc(size_t size, size_t align, void *user)
{
    counter *c = user;
    if (c->left == 0)
        return NULL;
    c->left--;
    void *pointer = c->system.alloc(size, align, c->system.user);
    if (pointer) {
        c->allocs++;
        c->bytes += size;
    }
    return pointer;
}

static void counter_free(void *pointer, size_t size, size_t align, void *user)
{
    counter *c = user;
    c->frees++;
    c->bytes -= size;
    c->system.free(pointer, size, align, c->system.user);
}

static void counter_init(counter *c, size_t left)
{
    *c = (counter){.system = fl_memory_system(), .left = left};
    c->memory = (fl_memory){counter_alloc, counter_free, c, "caller"};
}

static void assert_pop(fl_deque *deque, uint64_t expected)
{
    uint64_t entry = ~expected;
    assert_true(fl_deque_pop(deque, &entry));
    assert_int_equal(entry, expected);
}

static void assert_steal(fl_deque *deque, uint64_t expected)
{
    uint64_t entry = ~expected;
    assert_int_equal(fl_deque_steal(deque, &entry), FL_STEAL_OK);
    assert_int_equal(entry, expected);
}

static void assert_empty(fl_deque *deque)
{
    uint64_t entry = 77;
    assert_false(fl_deque_pop(deque, &entry));
    assert_int_equal(fl_deque_steal(deque, &entry), FL_STEAL_EMPTY);
    assert_int_equal(entry, 77);
    assert_int_equal(fl_deque_size(deque), 0);
}

static void test_layout(void **state)
{
    (void)state;
    /* top, which thieves write, shares no line with what the owner writes. */
    assert_int_equal(sizeof(fl_deque), 128);
    assert_int_equal(alignof(fl_deque), 64);
    assert_int_equal(offsetof(fl_deque, top), 0);
    assert_int_equal(offsetof(fl_deque, bottom), 64);
    assert_true(offsetof(fl_deque, memory) + sizeof(void *) <= 128);
    assert_int_equal(sizeof(fl_deque_ring), 64);
    assert_int_equal(offsetof(fl_deque_ring, slots), 64);
    fl_deque deque;
    assert_true(atomic_is_lock_free(&deque.top));
    assert_true(atomic_is_lock_free(&deque.ring));
}

static void test_owner_takes_newest_thief_oldest(void **state)
{
    (void)state;
    counter c;
    counter_init(&c, SIZE_MAX);
    fl_deque deque;
    assert_int_equal(fl_deque_init(&deque, &c.memory, 4), FILCH_OK);
    assert_empty(&deque);
    for (uint64_t i = 1; i <= 6; i++)
        assert_true(fl_deque_push(&deque, i));
    assert_int_equal(fl_deque_size(&deque), 6);
    assert_pop(&deque, 6);
    assert_steal(&deque, 1);
    assert_steal(&deque, 2);
    assert_pop(&deque, 5);
    assert_int_equal(fl_deque_size(&deque), 2);
    assert_steal(&deque, 3);
    assert_pop(&deque, 4);
    assert_empty(&deque);
    /* Emptied by a pop, by a steal, and used again each time. */
    assert_true(fl_deque_push(&deque, UINT64_MAX));
    assert_steal(&deque, UINT64_MAX);
    assert_empty(&deque);
    assert_true(fl_deque_push(&deque, 0));
    assert_pop(&deque, 0);
    assert_empty(&deque);
    fl_deque_fini(&deque);
    assert_int_equal(c.bytes, 0);
}

static void test_wraps_without_growing(void **state)
{
    (void)state;
    counter c;
    counter_init(&c, 1);
    fl_deque deque;
    assert_int_equal(fl_deque_init(&deque, &c.memory, 3), FILCH_OK);
    /* Every phase of the ring, filled to the last slot, emptied from both ends. */
    uint64_t next = 0;
    for (int lap = 0; lap < 1000; lap++) {
        uint64_t first = next;
        for (int i = 0; i < 8; i++)
            assert_true(fl_deque_push(&deque, next++));
        for (uint64_t i = 0; i < 5; i++)
            assert_steal(&deque, first + i);
        for (uint64_t i = 1; i <= 3; i++)
            assert_pop(&deque, next - i);
        assert_empty(&deque);
    }
    assert_int_equal(c.allocs, 1);
    fl_deque_fini(&deque);
    assert_int_equal(c.bytes, 0);
}

static void test_looks_before_it_takes(void **state)
{
    (void)state;
    counter c;
    counter_init(&c, SIZE_MAX);
    fl_deque deque;
    int64_t index = 0;
    uint64_t entry;
    bool is_top;
    assert_int_equal(fl_deque_init(&deque, &c.memory, 4), FILCH_OK);
    assert_false(fl_deque_look(&deque, &index, &entry, &is_top));
    for (uint64_t i = 1; i <= 4; i++)
        assert_true(fl_deque_push(&deque, 10 * i));
    for (uint64_t i = 1; i <= 4; i++, index++) {
        assert_true(fl_deque_look(&deque, &index, &entry, &is_top));
        assert_int_equal(index, i - 1);
        assert_int_equal(entry, 10 * i);
        assert_true(is_top == (i == 1));
    }
    assert_false(fl_deque_look(&deque, &index, &entry, &is_top));
    assert_false(fl_deque_drop(&deque, 2)); /* not at the top */
    assert_int_equal(fl_deque_size(&deque), 4);
    assert_true(fl_deque_drop(&deque, 0));
    assert_false(fl_deque_drop(&deque, 0));
    index = 0; /* gone: the top is given instead */
    assert_true(fl_deque_look(&deque, &index, &entry, &is_top));
    assert_int_equal(index, 1);
    assert_int_equal(entry, 20);
    assert_true(is_top);
    assert_steal(&deque, 20);
    assert_pop(&deque, 40);
    assert_pop(&deque, 30);
    assert_empty(&deque);
    fl_deque_fini(&deque);
}

static void test_indices_beyond_32_bits(void **state)
{
    (void)state;
    fl_memory memory = fl_memory_system();
    fl_deque deque;
    assert_int_equal(fl_deque_init(&deque, &memory, 1), FILCH_OK);
    int64_t far = (INT64_C(1) << 40) - 3;
    atomic_store(&deque.top, far);
    atomic_store(&deque.bottom, far);
    deque.top_seen = far;
    assert_empty(&deque);
    for (uint64_t i = 0; i < 20; i++)
        assert_true(fl_deque_push(&deque, i));
    for (uint64_t i = 0; i < 10; i++)
        assert_steal(&deque, i);
    for (uint64_t i = 19; i >= 10; i--)
        assert_pop(&deque, i);
    assert_empty(&deque);
    fl_deque_fini(&deque);
}

static void test_grows_and_keeps_retired_rings(void **state)
{
    (void)state;
    counter c;
    counter_init(&c, SIZE_MAX);
    fl_deque deque;
    assert_int_equal(fl_deque_init(&deque, &c.memory, 0), FILCH_OK);
    fl_deque_ring *first = atomic_load(&deque.ring);
    assert_int_equal(first->mask, 0);
    /* An offset, so that the copies land in other slots than they came from. */
    assert_true(fl_deque_push(&deque, 5));
    assert_steal(&deque, 5);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(fl_deque_push(&deque, i));
        if (i == 500)
            assert_steal(&deque, 0);
    }
    assert_int_equal(c.allocs, 11);
    assert_int_equal(c.frees, 0);
    /* A thief may be reading any of them: linked, and as they were. */
    fl_deque_ring *ring = atomic_load(&deque.ring);
    assert_int_equal(ring->mask, 1023);
    int rings = 0;
    for (; ring; ring = ring->retired) {
        if (ring->retired)
            assert_int_equal(ring->retired->mask, ring->mask / 2);
        else
            assert_ptr_equal(ring, first);
        rings++;
    }
    assert_int_equal(rings, 11);
    assert_int_equal(atomic_load(&first->slots[0]), 0);
    for (uint64_t i = 1; i < 400; i++)
        assert_steal(&deque, i);
    for (uint64_t i = 999; i >= 400; i--)
        assert_pop(&deque, i);
    assert_empty(&deque);
    fl_deque_fini(&deque);
    assert_int_equal(c.frees, 11);
    assert_int_equal(c.bytes, 0);
}

static void test_failed_growth_changes_nothing(void **state)
{
    (void)state;
    counter c;
    counter_init(&c, 1);
    fl_deque deque;
    assert_int_equal(fl_deque_init(&deque, &c.memory, 2), FILCH_OK);
    for (uint64_t i = 0; i < 4; i++)
        assert_true(fl_deque_push(&deque, i));
    for (int again = 0; again < 3; again++)
        assert_false(fl_deque_push(&deque, 99));
    assert_int_equal(fl_deque_size(&deque), 4);
    /* A theft makes room, which the push finds by itself. */
    assert_steal(&deque, 0);
    assert_true(fl_deque_push(&deque, 4));
    assert_false(fl_deque_push(&deque, 99));
    c.left = 1;
    assert_true(fl_deque_push(&deque, 5));
    for (uint64_t i = 5; i >= 1; i--)
        assert_pop(&deque, i);
    assert_empty(&deque);
    fl_deque_fini(&deque);
    assert_int_equal(c.bytes, 0);
}

static void test_failed_init(void **state)
{
    (void)state;
    counter c;
    counter_init(&c, 0);
    fl_deque deque;
    assert_int_equal(fl_deque_init(&deque, &c.memory, 4), FILCH_OUT_OF_MEMORY);
    fl_deque_fini(&deque);
    c.left = SIZE_MAX;
    assert_int_equal(fl_deque_init(&deque, &c.memory, 31), FILCH_INVALID_ARGUMENT);
    fl_deque_fini(&deque);
    assert_int_equal(fl_deque_init(&deque, &c.memory, 64), FILCH_INVALID_ARGUMENT);
    fl_deque_fini(&deque);
    assert_int_equal(c.allocs, 0);
    assert_int_equal(fl_deque_init(&deque, &c.memory, 4), FILCH_OK);
    fl_deque_fini(&deque);
    fl_deque_fini(&deque);
    assert_int_equal(c.frees, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_owner_takes_newest_thief_oldest),
        cmocka_unit_test(test_wraps_without_growing),
        cmocka_unit_test(test_looks_before_it_takes),
        cmocka_unit_test(test_indices_beyond_32_bits),
        cmocka_unit_test(test_grows_and_keeps_retired_rings),
        cmocka_unit_test(test_failed_growth_changes_nothing),
        cmocka_unit_test(test_failed_init),
    };
    return cmocka_run_group_tests_name("deque", tests, NULL, NULL);
}
