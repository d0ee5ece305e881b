/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/range.h"

static void assert_left(const fl_range *range, uint32_t lo, uint32_t hi)
{
    uint32_t l, h;
    assert_int_equal(fl_range_peek(range, &l, &h), hi - lo);
    assert_int_equal(l, lo);
    assert_int_equal(h, hi);
}

static void assert_empty(fl_range *range)
{
    uint32_t lo = 7, hi = 9;
    assert_false(fl_range_take(range, 1, &lo, &hi));
    assert_false(fl_range_cut(range, 1, 0, 9, &lo, &hi));
    assert_false(fl_range_drain(range, &lo, &hi));
    assert_int_equal(lo, 7);
    assert_int_equal(hi, 9);
    assert_int_equal(fl_range_peek(range, &lo, &hi), 0);
}

static void test_layout(void **state)
{
    (void)state;
    fl_range range;
    assert_int_equal(sizeof range, 64);
    assert_int_equal(alignof(fl_range), 64);
    assert_int_equal(sizeof range.word, 8);
    assert_true(atomic_is_lock_free(&range.word));
}

static void test_take_from_front_cut_from_back(void **state)
{
    (void)state;
    fl_range range;
    uint32_t lo, hi;
    fl_range_set(&range, 100, 200);
    assert_left(&range, 100, 200);
    assert_true(fl_range_take(&range, 10, &lo, &hi));
    assert_int_equal(lo, 100);
    assert_int_equal(hi, 110);
    assert_true(fl_range_cut(&range, 30, 0, 200, &lo, &hi));
    assert_int_equal(lo, 170);
    assert_int_equal(hi, 200);
    assert_left(&range, 110, 170);
    /* Exactly all of it, and more than there is. */
    assert_true(fl_range_take(&range, 59, &lo, &hi));
    assert_true(fl_range_take(&range, 2, &lo, &hi));
    assert_int_equal(lo, 169);
    assert_int_equal(hi, 170);
    assert_empty(&range);
    fl_range_set(&range, 0, 5);
    assert_true(fl_range_cut(&range, 5, 0, 5, &lo, &hi));
    assert_int_equal(lo, 0);
    assert_int_equal(hi, 5);
    assert_empty(&range);
    fl_range_set(&range, 3, 5);
    assert_true(fl_range_cut(&range, UINT32_MAX, 0, 5, &lo, &hi));
    assert_int_equal(lo, 3);
    assert_int_equal(hi, 5);
    assert_empty(&range);
}

static void test_cut_ends_at_the_floor(void **state)
{
    (void)state;
    fl_range range;
    uint32_t lo = 1, hi = 2;
    fl_range_set(&range, 100, 200);
    assert_false(fl_range_cut(&range, 10, 200, 200, &lo, &hi));
    assert_false(fl_range_cut(&range, 10, 0, 199, &lo, &hi)); /* it ends elsewhere */
    assert_left(&range, 100, 200);
    assert_true(fl_range_cut(&range, 30, 180, 200, &lo, &hi));
    assert_int_equal(lo, 180);
    assert_int_equal(hi, 200);
    assert_false(fl_range_cut(&range, 30, 180, 180, &lo, &hi));
    assert_true(fl_range_cut(&range, 30, 140, 180, &lo, &hi));
    assert_int_equal(lo, 150);
    assert_int_equal(hi, 180);
    assert_true(fl_range_take(&range, 49, &lo, &hi)); /* past a floor */
    assert_true(fl_range_cut(&range, 30, 140, 150, &lo, &hi));
    assert_int_equal(lo, 149);
    assert_int_equal(hi, 150);
    assert_empty(&range);
}

static void test_drain(void **state)
{
    (void)state;
    fl_range range;
    uint32_t lo, hi;
    fl_range_set(&range, 4, UINT32_MAX);
    assert_true(fl_range_drain(&range, &lo, &hi));
    assert_int_equal(lo, 4);
    assert_int_equal(hi, UINT32_MAX);
    assert_empty(&range);
    fl_range_set(&range, 0, UINT32_MAX);
    assert_true(fl_range_drain(&range, &lo, &hi));
    assert_int_equal(lo, 0);
    assert_int_equal(hi, UINT32_MAX);
    assert_empty(&range);
}

static void test_return(void **state)
{
    (void)state;
    fl_range range;
    uint32_t lo, hi;
    fl_range_set(&range, 10, 20);
    assert_true(fl_range_take(&range, 4, &lo, &hi));
    assert_true(fl_range_return(&range, 12, 14)); /* all of it, or its end */
    assert_left(&range, 12, 20);
    assert_false(fl_range_return(&range, 9, 11));
    assert_false(fl_range_return(&range, 10, 13));
    assert_left(&range, 12, 20);
    /* Behind what was cut, and where nothing is left. */
    assert_true(fl_range_cut(&range, 5, 0, 20, &lo, &hi));
    assert_true(fl_range_take(&range, 3, &lo, &hi));
    assert_empty(&range);
    assert_true(fl_range_return(&range, 12, 15));
    assert_left(&range, 12, 15);
    assert_true(fl_range_take(&range, 1, &lo, &hi));
    assert_true(fl_range_cut(&range, 2, 0, 15, &lo, &hi));
    assert_empty(&range);
    assert_true(fl_range_return(&range, 12, 13));
    assert_left(&range, 12, 13);
}

static void test_empty_spans(void **state)
{
    (void)state;
    fl_range range;
    const uint32_t at[] = {0, 1, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        fl_range_set(&range, at[i], at[i]);
        assert_empty(&range);
    }
}

static void test_top_of_the_range(void **state)
{
    (void)state;
    fl_range range;
    uint32_t lo, hi;
    /* lo + want passes 2^32. */
    fl_range_set(&range, UINT32_MAX - 3, UINT32_MAX);
    assert_true(fl_range_take(&range, 2, &lo, &hi));
    assert_int_equal(lo, UINT32_MAX - 3);
    assert_int_equal(hi, UINT32_MAX - 1);
    assert_true(fl_range_take(&range, UINT32_MAX, &lo, &hi));
    assert_int_equal(lo, UINT32_MAX - 1);
    assert_int_equal(hi, UINT32_MAX);
    assert_empty(&range);
}

static void test_every_grain_once(void **state)
{
    (void)state;
    fl_range range;
    uint32_t lo, hi, front = 1000, back = 9000, want = 1;
    fl_range_set(&range, front, back);
    while (fl_range_take(&range, want, &lo, &hi)) {
        assert_int_equal(lo, front);
        assert_in_range(hi - lo, 1, want);
        front = hi;
        if (!fl_range_cut(&range, 2 * want, 0, back, &lo, &hi))
            break;
        assert_int_equal(hi, back);
        assert_in_range(hi - lo, 1, 2 * want);
        back = lo;
        want = want % 37 + 1;
    }
    assert_int_equal(front, back);
    assert_empty(&range);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_take_from_front_cut_from_back),
        cmocka_unit_test(test_cut_ends_at_the_floor),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_return),
        cmocka_unit_test(test_empty_spans),
        cmocka_unit_test(test_top_of_the_range),
        cmocka_unit_test(test_every_grain_once),
    };
    return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
