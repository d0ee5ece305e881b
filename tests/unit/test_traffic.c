/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a product must move, against what can be reckoned by hand and a search. */
#include "traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

static double least(size_t side, size_t begin, size_t end, double room)
{
    const bench_panels panels = {.side = side, .panel = 1, .last = 1};
    return bench_traffic_least(&panels, begin, end, room);
}

static void what_fits_comes_once(void **state)
{
    (void)state;
    assert_true(least(4, 0, 16, 100) == 8);
    assert_true(least(4, 0, 16, 5) == 8);  /* all of A and one panel of B */
    assert_true(least(4, 4, 8, 100) == 5); /* one column */
    assert_true(least(4, 2, 6, 100) == 6); /* halves of two */
    assert_true(least(4, 7, 7, 100) == 0);
    assert_true(least(1, 0, 1, 2) == 2);
}

/* With room for two panels no panel of A is still there when its row comes round. */
static void what_does_not_fit_comes_again(void **state)
{
    (void)state;
    assert_true(least(4, 0, 16, 2) == 4 + 16);
    assert_true(least(4, 0, 16, 3) > 8 && least(4, 0, 16, 3) < 20);
    assert_true(isinf(least(4, 0, 16, 1)));
}

static void the_last_panel_may_be_smaller(void **state)
{
    (void)state;
    const bench_panels panels = {.side = 3, .panel = 10, .last = 4};
    assert_true(bench_traffic_least(&panels, 0, 9, 1000) == 2 * (10 + 10 + 4));
    assert_true(bench_traffic_least(&panels, 8, 9, 8) == 8);
    assert_true(isinf(bench_traffic_least(&panels, 8, 9, 7)));
    assert_true(isnan(least(BENCH_PANELS_MOST + 1, 0, 1, 10)));
}

/* The fewest panels of A by trying every choice of what leaves. */
static double search(size_t side, size_t at, size_t end, size_t room, uint32_t there)
{
    double best = INFINITY;
    size_t row = at % side;
    double b = row == 0 ? 1 : 0;
    if (at == end)
        return 0;
    if (there >> row & 1u)
        return b + search(side, at + 1, end, room, there);
    if ((size_t)__builtin_popcount(there) + 1 < room)
        return 1 + b + search(side, at + 1, end, room, there | 1u << row);
    for (size_t gone = 0; gone < side; gone++)
        if (there >> gone & 1u)
            best = fmin(best, search(side, at + 1, end, room, (there & ~(1u << gone)) | 1u << row));
    return 1 + b + best;
}

static void no_choice_is_better(void **state)
{
    (void)state;
    for (size_t side = 2; side <= 4; side++)
        for (size_t room = 2; room <= side + 1; room++)
            assert_true(least(side, 0, side * side, (double)room) ==
                        search(side, 0, side * side, room, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_comes_once),
        cmocka_unit_test(what_does_not_fit_comes_again),
        cmocka_unit_test(the_last_panel_may_be_smaller),
        cmocka_unit_test(no_choice_is_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
