/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The sanitizers' allocators end the process at an impossible size unless told to return null. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* A caller's allocator that checks the pairing of calls and fails at a chosen one. */
typedef struct ledger {
    int calls;
    int fail_at; /* from 1; 0 = never */
    int live;
    struct {
        void *pointer;
        size_t size;
        size_t align;
    } blocks[16];
} ledger;

static void *ledger_alloc(size_t size, size_t align, void *user)
{
    ledger *book = user;
    size_t slot = 0;

    assert_true(size > 0);
    assert_true(align > 0 && (align & (align - 1)) == 0);
    if (++book->calls == book->fail_at)
        return NULL;
    while (book->blocks[slot].pointer != NULL)
        slot++;
    book->blocks[slot].pointer = aligned_alloc(align, (size + align - 1) / align * align);
    assert_non_null(book->blocks[slot].pointer);
    memset(book->blocks[slot].pointer, 0xa5, size);
    book->blocks[slot].size = size;
    book->blocks[slot].align = align;
    book->live++;
    return book->blocks[slot].pointer;
}

static void ledger_free(void *pointer, size_t size, size_t align, void *user)
{
    ledger *book = user;
    size_t slot = 0;

    while (book->blocks[slot].pointer != pointer)
        slot++;
    assert_int_equal(book->blocks[slot].size, size);
    assert_int_equal(book->blocks[slot].align, align);
    book->blocks[slot].pointer = NULL;
    book->live--;
    free(pointer);
}

static fl_memory ledger_memory(ledger *book)
{
    return (fl_memory){ledger_alloc, ledger_free, book, "caller"};
}

static void use_every_alignment(fl_memory memory)
{
    static const size_t sizes[] = {1, 7, 8, 24, 64, 100, 4096, 70000, 3000000};

    for (size_t align = 1; align <= 65536; align *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            unsigned char *pointer = fl_alloc_aligned(&memory, sizes[i], align);

            assert_non_null(pointer);
            assert_int_equal((uintptr_t)pointer % align, 0);
            memset(pointer, 0x5a, sizes[i]);
            fl_free_aligned(&memory, pointer, sizes[i], align);
        }
    }
}

static void built_in_allocators_align_every_size(void **state)
{
    (void)state;
    use_every_alignment(fl_memory_default());
    use_every_alignment(fl_memory_system());
}

static void names_say_which_allocator_it_is(void **state)
{
    fl_memory chosen = fl_memory_default();
    fl_memory system = fl_memory_system();

    (void)state;
    assert_string_equal(system.name, "system");
    /* The build decides which of the two the default is. */
    if (chosen.alloc == system.alloc) {
        assert_string_equal(chosen.name, "system");
    } else {
        assert_string_equal(chosen.name, "jemalloc");
        assert_true(chosen.free != system.free);
    }
}

static void impossible_sizes_give_null(void **state)
{
    const fl_memory kinds[] = {fl_memory_default(), fl_memory_system()};
    /* Hidden from the compiler, which would warn of the size. */
    volatile size_t huge = SIZE_MAX / 2 - 4096;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_null(fl_alloc(&kinds[i], huge));
        assert_null(fl_alloc_zeroed(&kinds[i], huge));
        assert_null(fl_alloc_aligned(&kinds[i], huge, 4096));
    }
}

static void plain_allocations_are_naturally_aligned_and_paired(void **state)
{
    ledger book = {0};
    fl_memory memory = ledger_memory(&book);
    void *a = fl_alloc(&memory, 40);
    void *b = fl_alloc_zeroed(&memory, 100);
    static const unsigned char zeros[100];

    (void)state;
    assert_int_equal(book.blocks[0].size, 40);
    assert_int_equal(book.blocks[0].align, alignof(max_align_t));
    assert_memory_equal(b, zeros, sizeof zeros);
    fl_free(&memory, a, 40);
    fl_free(&memory, b, 100);
    fl_free(&memory, NULL, 8);
    fl_free_aligned(&memory, NULL, 8, 64);
    assert_int_equal(book.live, 0);
    assert_int_equal(book.calls, 2);
}

static void zero_bytes_give_a_unique_pointer(void **state)
{
    ledger book = {0};
    const fl_memory kinds[] = {ledger_memory(&book), fl_memory_default(), fl_memory_system()};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        void *a = fl_alloc(&kinds[i], 0);
        void *b = fl_alloc_zeroed(&kinds[i], 0);
        void *c = fl_alloc_aligned(&kinds[i], 0, 64);

        assert_true(a != NULL && b != NULL && c != NULL);
        assert_true(a != b && b != c && a != c);
        fl_free(&kinds[i], a, 0);
        fl_free(&kinds[i], b, 0);
        fl_free_aligned(&kinds[i], c, 0, 64);
    }
    assert_int_equal(book.live, 0);
}

static void a_failing_allocator_gives_null(void **state)
{
    ledger book = {.fail_at = 1};
    fl_memory memory = ledger_memory(&book);

    (void)state;
    assert_null(fl_alloc(&memory, 8));
    book = (ledger){.fail_at = 1};
    assert_null(fl_alloc_zeroed(&memory, 8));
    book = (ledger){.fail_at = 1};
    assert_null(fl_alloc_aligned(&memory, 8, 64));
}

static void sizes_overflow_detectably(void **state)
{
    size_t out = 77;

    (void)state;
    assert_true(fl_size_mul(SIZE_MAX / 8, 8, &out));
    assert_true(out == SIZE_MAX / 8 * 8);
    assert_true(fl_size_mul(5, 0, &out));
    assert_int_equal(out, 0);
    assert_true(fl_size_mul(0, SIZE_MAX, &out));
    assert_int_equal(out, 0);
    out = 77;
    assert_false(fl_size_mul(SIZE_MAX / 8 + 1, 8, &out));
    assert_false(fl_size_mul(SIZE_MAX, SIZE_MAX, &out));
    assert_int_equal(out, 77);
}

static void arrays_grow_by_doubling_and_keep_their_items(void **state)
{
    ledger book = {0};
    fl_memory memory = ledger_memory(&book);
    uint32_t *items = NULL;
    size_t capacity = 0;

    (void)state;
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(fl_array_reserve(&memory, &items, &capacity, i + 1, sizeof *items),
                         FILCH_OK);
        assert_true(capacity > i);
        items[i] = i;
    }
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(items[i], i);
    /* 8, 16, ... 16384: twelve allocations, so a push costs constant time on average. */
    assert_int_equal(book.calls, 12);
    assert_int_equal(book.live, 1);
    assert_int_equal(fl_array_reserve(&memory, &items, &capacity, 100000, sizeof *items), FILCH_OK);
    assert_int_equal(capacity, 100000);
    assert_int_equal(items[9999], 9999);
    fl_free(&memory, items, capacity * sizeof *items);
    assert_int_equal(book.live, 0);
}

static void a_failed_growth_changes_nothing(void **state)
{
    ledger book = {0};
    fl_memory memory = ledger_memory(&book);
    uint64_t *items = NULL;
    uint64_t *before;
    size_t capacity = 0;

    (void)state;
    assert_int_equal(fl_array_reserve(&memory, &items, &capacity, 3, sizeof *items), FILCH_OK);
    items[0] = 42;
    before = items;
    book.fail_at = 2;
    assert_int_equal(fl_array_reserve(&memory, &items, &capacity, 9, sizeof *items),
                     FILCH_OUT_OF_MEMORY);
    assert_int_equal(fl_array_reserve(&memory, &items, &capacity, SIZE_MAX / 8 + 1, sizeof *items),
                     FILCH_OVERFLOW);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 8);
    assert_int_equal(items[0], 42);
    assert_int_equal(book.live, 1);
    fl_free(&memory, items, capacity * sizeof *items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_allocators_align_every_size),
        cmocka_unit_test(names_say_which_allocator_it_is),
        cmocka_unit_test(impossible_sizes_give_null),
        cmocka_unit_test(plain_allocations_are_naturally_aligned_and_paired),
        cmocka_unit_test(zero_bytes_give_a_unique_pointer),
        cmocka_unit_test(a_failing_allocator_gives_null),
        cmocka_unit_test(sizes_overflow_detectably),
        cmocka_unit_test(arrays_grow_by_doubling_and_keep_their_items),
        cmocka_unit_test(a_failed_growth_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
