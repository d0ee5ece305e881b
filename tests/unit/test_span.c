/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/span.h"

static void assert_left(const fl_span *span, uint32_t lo, uint32_t hi)
{
    uint32_t l, h;
    assert_int_equal(fl_span_peek(span, &l, &h), hi - lo);
    assert_int_equal(l, lo);
    assert_int_equal(h, hi);
}

static void assert_empty(fl_span *span)
{
    uint32_t lo = 7, hi = 9;
    assert_false(fl_span_take(span, 1, &lo, &hi));
    assert_false(fl_span_cut(span, 1, 0, 9, &lo, &hi));
    assert_false(fl_span_drain(span, &lo, &hi));
    assert_int_equal(lo, 7);
    assert_int_equal(hi, 9);
    assert_int_equal(fl_span_peek(span, &lo, &hi), 0);
}

static void test_layout(void **state)
{
    (void)state;
    fl_span span;
    assert_int_equal(sizeof span, 64);
    assert_int_equal(alignof(fl_span), 64);
    assert_int_equal(sizeof span.word, 8);
    assert_true(atomic_is_lock_free(&span.word));
}

static void test_take_from_front_cut_from_back(void **state)
{
    (void)state;
    fl_span span;
    uint32_t lo, hi;
    fl_span_set(&span, 100, 200);
    assert_left(&span, 100, 200);
    assert_true(fl_span_take(&span, 10, &lo, &hi));
    assert_int_equal(lo, 100);
    assert_int_equal(hi, 110);
    assert_true(fl_span_cut(&span, 30, 0, 200, &lo, &hi));
    assert_int_equal(lo, 170);
    assert_int_equal(hi, 200);
    assert_left(&span, 110, 170);
    /* Exactly all of it, and more than there is. */
    assert_true(fl_span_take(&span, 59, &lo, &hi));
    assert_true(fl_span_take(&span, 2, &lo, &hi));
    assert_int_equal(lo, 169);
    assert_int_equal(hi, 170);
    assert_empty(&span);
    fl_span_set(&span, 0, 5);
    assert_true(fl_span_cut(&span, 5, 0, 5, &lo, &hi));
    assert_int_equal(lo, 0);
    assert_int_equal(hi, 5);
    assert_empty(&span);
    fl_span_set(&span, 3, 5);
    assert_true(fl_span_cut(&span, UINT32_MAX, 0, 5, &lo, &hi));
    assert_int_equal(lo, 3);
    assert_int_equal(hi, 5);
    assert_empty(&span);
}

static void test_cut_ends_at_the_floor(void **state)
{
    (void)state;
    fl_span span;
    uint32_t lo = 1, hi = 2;
    fl_span_set(&span, 100, 200);
    assert_false(fl_span_cut(&span, 10, 200, 200, &lo, &hi));
    assert_false(fl_span_cut(&span, 10, 0, 199, &lo, &hi)); /* it ends elsewhere */
    assert_left(&span, 100, 200);
    assert_true(fl_span_cut(&span, 30, 180, 200, &lo, &hi));
    assert_int_equal(lo, 180);
    assert_int_equal(hi, 200);
    assert_false(fl_span_cut(&span, 30, 180, 180, &lo, &hi));
    assert_true(fl_span_cut(&span, 30, 140, 180, &lo, &hi));
    assert_int_equal(lo, 150);
    assert_int_equal(hi, 180);
    assert_true(fl_span_take(&span, 49, &lo, &hi)); /* past a floor */
    assert_true(fl_span_cut(&span, 30, 140, 150, &lo, &hi));
    assert_int_equal(lo, 149);
    assert_int_equal(hi, 150);
    assert_empty(&span);
}

static void test_drain(void **state)
{
    (void)state;
    fl_span span;
    uint32_t lo, hi;
    fl_span_set(&span, 4, UINT32_MAX);
    assert_true(fl_span_drain(&span, &lo, &hi));
    assert_int_equal(lo, 4);
    assert_int_equal(hi, UINT32_MAX);
    assert_empty(&span);
    fl_span_set(&span, 0, UINT32_MAX);
    assert_true(fl_span_drain(&span, &lo, &hi));
    assert_int_equal(lo, 0);
    assert_int_equal(hi, UINT32_MAX);
    assert_empty(&span);
}

static void test_return(void **state)
{
    (void)state;
    fl_span span;
    uint32_t lo, hi;
    fl_span_set(&span, 10, 20);
    assert_true(fl_span_take(&span, 4, &lo, &hi));
    assert_true(fl_span_return(&span, 12, 14)); /* all of it, or its end */
    assert_left(&span, 12, 20);
    assert_false(fl_span_return(&span, 9, 11));
    assert_false(fl_span_return(&span, 10, 13));
    assert_left(&span, 12, 20);
    /* Behind what was cut, and where nothing is left. */
    assert_true(fl_span_cut(&span, 5, 0, 20, &lo, &hi));
    assert_true(fl_span_take(&span, 3, &lo, &hi));
    assert_empty(&span);
    assert_true(fl_span_return(&span, 12, 15));
    assert_left(&span, 12, 15);
    assert_true(fl_span_take(&span, 1, &lo, &hi));
    assert_true(fl_span_cut(&span, 2, 0, 15, &lo, &hi));
    assert_empty(&span);
    assert_true(fl_span_return(&span, 12, 13));
    assert_left(&span, 12, 13);
}

static void test_empty_spans(void **state)
{
    (void)state;
    fl_span span;
    const uint32_t at[] = {0, 1, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        fl_span_set(&span, at[i], at[i]);
        assert_empty(&span);
    }
}

static void test_top_of_the_range(void **state)
{
    (void)state;
    fl_span span;
    uint32_t lo, hi;
    /* lo + want passes 2^32. */
    fl_span_set(&span, UINT32_MAX - 3, UINT32_MAX);
    assert_true(fl_span_take(&span, 2, &lo, &hi));
    assert_int_equal(lo, UINT32_MAX - 3);
    assert_int_equal(hi, UINT32_MAX - 1);
    assert_true(fl_span_take(&span, UINT32_MAX, &lo, &hi));
    assert_int_equal(lo, UINT32_MAX - 1);
    assert_int_equal(hi, UINT32_MAX);
    assert_empty(&span);
}

static void test_every_grain_once(void **state)
{
    (void)state;
    fl_span span;
    uint32_t lo, hi, front = 1000, back = 9000, want = 1;
    fl_span_set(&span, front, back);
    while (fl_span_take(&span, want, &lo, &hi)) {
        assert_int_equal(lo, front);
        assert_in_range(hi - lo, 1, want);
        front = hi;
        if (!fl_span_cut(&span, 2 * want, 0, back, &lo, &hi))
            break;
        assert_int_equal(hi, back);
        assert_in_range(hi - lo, 1, 2 * want);
        back = lo;
        want = want % 37 + 1;
    }
    assert_int_equal(front, back);
    assert_empty(&span);
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
    return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
