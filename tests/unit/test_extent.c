/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of chunks: none overlaps another, free neighbours become one, and nothing is lost when the
 * host's memory is out. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "memory/alloc/extent.h"
#include "random.h"
#include "untouchable.h"

#define STEP ((size_t)512)
#define assert_ok(call) assert_int_equal((call), FILCH_OK)

/* Chunks are only addresses: nothing of them is touched. */
static char *chunk_at(uintptr_t index)
{
    return (char *)((index + 1) << 32); /* NOLINT(performance-no-int-to-ptr) */
}

static size_t below(fl_random *r, size_t n)
{
    return fl_random_below(r, (uint32_t)n);
}

typedef struct piece {
    char *at;
    size_t bytes;
} piece;

enum { MOST = 400 };

static bool overlaps(const piece *a, const piece *b)
{
    return a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

static void expect_apart(const piece *pieces, size_t count, const piece *made)
{
    for (size_t i = 0; i < count; i++)
        assert_false(overlaps(&pieces[i], made));
}

static void drop(piece *pieces, size_t *count, size_t at)
{
    pieces[at] = pieces[--*count];
}

/* One random operation of those that a heap makes. */
static void step(fl_extents *x, fl_random *r, piece *pieces, size_t *count)
{
    size_t at = *count != 0 ? below(r, *count) : 0;
    size_t what = below(r, 10);
    if (what < 5 && *count < MOST) {
        size_t align = STEP << below(r, 5);
        piece made = {NULL, STEP * (1 + below(r, (size_t)1 << below(r, 9)))};
        void *taken;
        if (fl_extents_take(x, made.bytes, align, &taken) == FILCH_OK) {
            made.at = taken;
            assert_int_equal((uintptr_t)taken % align, 0);
            expect_apart(pieces, *count, &made);
            pieces[(*count)++] = made;
        }
    } else if (what < 8 && *count != 0) {
        assert_int_equal(fl_extents_give(x, pieces[at].at), pieces[at].bytes);
        assert_int_equal(fl_extents_give(x, pieces[at].at), 0);
        drop(pieces, count, at);
    } else if (what == 8 && *count != 0 && *count < MOST && pieces[at].bytes > STEP) {
        size_t first = STEP * (1 + below(r, pieces[at].bytes / STEP - 1));
        assert_true(fl_extents_split(x, pieces[at].at, first));
        pieces[(*count)++] = (piece){pieces[at].at + first, pieces[at].bytes - first};
        pieces[at].bytes = first;
    } else if (*count > 1) {
        size_t next = below(r, *count);
        if (fl_extents_merge(x, pieces[at].at, pieces[next].at)) {
            assert_ptr_equal(pieces[at].at + pieces[at].bytes, pieces[next].at);
            pieces[at].bytes += pieces[next].bytes;
            drop(pieces, count, next);
        }
    }
}

static void random_operations_keep_to_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fl_memory memory = fl_memory_default();
        fl_random r;
        piece pieces[MOST];
        size_t count = 0;
        fl_extents x;
        fl_random_init(&r, seed, 0);
        fl_extents_init(&x, &memory, STEP);
        for (uintptr_t i = 0; i < 4; i++)
            assert_ok(fl_extents_add(&x, chunk_at(i), STEP * (400 + 300 * i)));
        for (int i = 0; i < 4000; i++) {
            size_t used = 0;
            step(&x, &r, pieces, &count);
            for (size_t k = 0; k < count; k++)
                used += pieces[k].bytes;
            assert_int_equal(x.used, used);
            if (i % 50 == 0)
                assert_true(fl_extents_is_valid(&x));
        }
        while (count != 0)
            assert_true(fl_extents_give(&x, pieces[--count].at) != 0);
        assert_true(fl_extents_is_valid(&x));
        assert_int_equal(x.empty_count, 4);
        size_t bytes, before = SIZE_MAX;
        for (int i = 0; i < 4; i++) { /* the largest first */
            assert_non_null(fl_extents_remove(&x, SIZE_MAX, &bytes));
            assert_true(bytes < before);
            before = bytes;
        }
        assert_int_equal(x.mapped, 0);
        fl_extents_fini(&x);
    }
}

static void a_piece_of_its_own_class_is_found_behind_many(void **state)
{
    fl_memory memory = fl_memory_default();
    fl_extents x;
    void *taken, *more[200];
    (void)state;
    fl_extents_init(&x, &memory, STEP);
    /* All in one class: 1024 to 1055 granules. The last added is the first looked at. */
    assert_ok(fl_extents_add(&x, chunk_at(0), STEP * 1055));
    for (uintptr_t i = 1; i <= 200; i++)
        assert_ok(fl_extents_add(&x, chunk_at(i), STEP * 1024));
    assert_ok(fl_extents_take(&x, STEP * 1055, STEP, &taken));
    assert_ptr_equal(taken, chunk_at(0));
    assert_int_equal(fl_extents_take(&x, STEP * 1025, STEP, &taken), FILCH_NO_DEVICE_MEMORY);
    for (int i = 0; i < 200; i++)
        assert_ok(fl_extents_take(&x, STEP * 1024, STEP, &more[i]));
    assert_int_equal(fl_extents_take(&x, STEP, STEP, &taken), FILCH_NO_DEVICE_MEMORY);
    assert_true(fl_extents_is_valid(&x));
    fl_extents_fini(&x);
}

static void nothing_is_lost_without_memory(void **state)
{
    scarce s;
    fl_memory memory = scarce_memory(&s);
    (void)state;
    for (int left = 0; left < 12; left++) {
        void *pieces[1000];
        size_t count = 0;
        fl_extents x;
        bool was_refused = false;
        fl_extents_init(&x, &memory, STEP);
        atomic_store(&s.left, left);
        if (fl_extents_add(&x, chunk_at(0), STEP * 1000) == FILCH_OK) {
            while (count < 1000 && !was_refused) {
                filch_status status = fl_extents_take(&x, STEP, STEP, &pieces[count]);
                was_refused = status == FILCH_OUT_OF_MEMORY;
                count += status == FILCH_OK;
                assert_true(was_refused || status == FILCH_OK);
            }
            assert_true(fl_extents_is_valid(&x));
            while (count != 0)
                assert_int_equal(fl_extents_give(&x, pieces[--count]), STEP);
            assert_int_equal(x.empty_count, 1);
        } else {
            was_refused = true;
            assert_int_equal(x.mapped, 0);
        }
        assert_true(was_refused || left > 8);
        fl_extents_fini(&x);
        assert_int_equal(atomic_load(&s.live), 0);
        atomic_store(&s.left, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_keep_to_the_model),
        cmocka_unit_test(a_piece_of_its_own_class_is_found_behind_many),
        cmocka_unit_test(nothing_is_lost_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
