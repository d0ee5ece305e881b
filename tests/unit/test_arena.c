/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <string.h>

#include "base/arena.h"

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

static void pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    fl_arena arena;
    fl_arena_init(&arena, &table);
    static const size_t sizes[] = {0,   1,   15,   16,   17,    31,    511,  512,
                                   513, 700, 1024, 4097, 30000, 65535, 65536};
    enum { COUNT = sizeof sizes / sizeof sizes[0], ROUNDS = 20 };
    unsigned char *pieces[COUNT * ROUNDS];
    for (size_t i = 0; i < COUNT * ROUNDS; ++i) {
        size_t size = sizes[i % COUNT];
        pieces[i] = fl_arena_alloc(&arena, size);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < COUNT * ROUNDS; ++i) {
        for (size_t b = 0; b < sizes[i % COUNT]; ++b) {
            assert_int_equal(pieces[i][b], i % 251);
        }
    }
    fl_arena_fini(&arena);
    assert_int_equal(counted.bytes, 0);
    assert_int_equal(counted.pieces, 0);
}

static void freed_pieces_are_used_again(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    fl_arena arena;
    fl_arena_init(&arena, &table);
    for (size_t size = 1; size <= FL_ARENA_MOST; size = size * 3 / 2 + 1) {
        void *a = fl_arena_alloc(&arena, size);
        void *b = fl_arena_alloc(&arena, size);
        fl_arena_free(&arena, a, size);
        fl_arena_free(&arena, b, size);
        int64_t calls = counted.calls;
        void *c = fl_arena_alloc(&arena, size);
        void *d = fl_arena_alloc(&arena, size);
        assert_true((c == a && d == b) || (c == b && d == a));
        assert_int_equal(counted.calls, calls);
    }
    fl_arena_free(&arena, NULL, 16); /* allowed */
    fl_arena_fini(&arena);
    assert_int_equal(counted.bytes, 0);
}

static void a_size_class_never_hands_out_too_little(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    fl_arena arena;
    fl_arena_init(&arena, &table);
    for (size_t size = 1; size <= 1100; ++size) {
        /* A piece freed under one size comes back for every other size of its class only. */
        unsigned char *small = fl_arena_alloc(&arena, size);
        memset(small, 1, size);
        fl_arena_free(&arena, small, size);
        unsigned char *big = fl_arena_alloc(&arena, size + 1);
        memset(big, 2, size + 1); /* the address sanitizer watches block ends */
        fl_arena_free(&arena, big, size + 1);
    }
    fl_arena_fini(&arena);
}

static void too_much_and_no_memory_give_null(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    fl_arena arena;
    fl_arena_init(&arena, &table);
    assert_null(fl_arena_alloc(&arena, FL_ARENA_MOST + 1));
    assert_null(fl_arena_alloc(&arena, SIZE_MAX));
    counted.fail_all = 1;
    assert_null(fl_arena_alloc(&arena, 16));
    counted.fail_all = 0;
    assert_non_null(fl_arena_alloc(&arena, 16));
    counted.fail_all = 1;
    assert_non_null(fl_arena_alloc(&arena, 16)); /* of the block that there is */
    assert_null(fl_arena_alloc(&arena, FL_ARENA_MOST));
    counted.fail_all = 0;
    assert_non_null(fl_arena_alloc(&arena, FL_ARENA_MOST));
    fl_arena_fini(&arena);
    assert_int_equal(counted.bytes, 0);
    /* Usable again after its end. */
    assert_non_null(fl_arena_alloc(&arena, 100));
    fl_arena_fini(&arena);
    assert_int_equal(counted.bytes, 0);
}

static void reserved_pieces_come_without_the_allocator(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 2, 63, 4096}, sizes[] = {1, 32, FL_ARENA_FINE};
    for (size_t k = 0; k < sizeof counts / sizeof *counts * 3; ++k) {
        size_t count = counts[k / 3], size = sizes[k % 3];
        fixture_memory_init(&counted);
        fl_arena arena;
        fl_arena_init(&arena, &table);
        counted.fail_all = 1;
        assert_false(fl_arena_reserve(&arena, count, size));
        counted.fail_all = 0;
        assert_non_null(fl_arena_alloc(&arena, size)); /* after a failure, too */
        assert_true(fl_arena_reserve(&arena, count, size));
        counted.fail_all = 1;
        for (size_t i = 0; i < count; ++i) {
            unsigned char *piece = fl_arena_alloc(&arena, size);
            assert_non_null(piece);
            memset(piece, 1, size);
        }
        fl_arena_fini(&arena);
        assert_int_equal(counted.bytes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(freed_pieces_are_used_again),
        cmocka_unit_test(a_size_class_never_hands_out_too_little),
        cmocka_unit_test(too_much_and_no_memory_give_null),
        cmocka_unit_test(reserved_pieces_come_without_the_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
