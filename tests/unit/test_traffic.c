/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a product must move, against what can be reckoned by hand and a search. */
#include "problems/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

static bench_product product_of(size_t side, size_t columns)
{
    return (bench_product){.side = side,
                           .across = side,
                           .columns = columns,
                           .tile = 1,
                           .last = 1,
                           .tile_cols = 1,
                           .last_cols = 1,
                           .element = 1,
                           .begin = 0,
                           .end = side * side};
}

static double least(size_t side, size_t columns, double room)
{
    const bench_product product = product_of(side, columns);
    return bench_traffic_least(&product, room);
}

static void what_fits_comes_once(void **state)
{
    (void)state;
    assert_true(least(4, 4, 1000) == 32);
    assert_true(least(4, 2, 1000) == 32);
    assert_true(least(1, 1, 3) == 2);
    /* A block of two columns, and a step's four tiles of A and two of B: then A comes twice. */
    assert_true(least(4, 2, 8 + 6) <= 16 + 32);
    bench_product part = product_of(4, 4);
    part.begin = 4;
    part.end = 8; /* one column of C: all of A, and one of B */
    assert_true(bench_traffic_least(&part, 1000) == 16 + 4);
    part.end = 4;
    assert_true(bench_traffic_least(&part, 1000) == 0);
}

/* Beside the block of one column there is room for two tiles: nothing is there twice but B's. */
static void what_does_not_fit_comes_again(void **state)
{
    (void)state;
    assert_true(least(4, 1, 4 + 2) == 4 * 16 + 16);
    assert_true(isinf(least(4, 1, 4 + 1)));
    assert_true(isinf(least(4, 2, 8)));
    assert_true(least(4, 1, 4 + 6) < 4 * 16 + 16);
}

static void the_last_tile_may_be_smaller(void **state)
{
    (void)state;
    bench_product product = product_of(3, 3);
    product.tile = 10;
    product.last = 4;
    product.tile_cols = 10;
    product.last_cols = 4;
    product.element = 2;
    assert_true(bench_traffic_least(&product, 1e6) == 2 * 2 * 24 * 24);
    assert_true(isnan(least(BENCH_SIDE_MOST + 1, 1, 1e6)));
}

/* C in three columns of 8 and one of 2 by tiles of A of 13: as before but for B's and C's sizes. */
static void tiles_of_c_may_be_narrower(void **state)
{
    (void)state;
    bench_product product = product_of(2, 4);
    product.across = 4;
    product.tile = product.last = 13;
    product.tile_cols = 8;
    product.last_cols = 2;
    product.end = 2 * 4;
    assert_true(bench_traffic_least(&product, 1e6) == 2 * 26 * 26);
    product.begin = 6; /* the narrow column alone */
    assert_true(bench_traffic_least(&product, 1e6) == 26 * 26 + 26 * 2);
    /* Of which nothing but C, a tile of A and one of B fit. */
    product.begin = 4;
    product.columns = 2;
    double c = 26 * 8 + 26 * 2, a = 13 * 13, b = 13 * 8;
    assert_true(isinf(bench_traffic_least(&product, c + a + b - 1)));
    assert_true(isfinite(bench_traffic_least(&product, c + a + b)));
    product.across = (size_t)BENCH_SIDE_MOST * BENCH_SIDE_MOST * BENCH_SIDE_MOST;
    assert_true(isnan(bench_traffic_least(&product, 1e6)));
}

enum { MOST_SIDE = 3, MOST_USES = 2 * MOST_SIDE * MOST_SIDE * MOST_SIDE };

/* The fewest tiles by trying every choice of what leaves. */
static double search(const uint8_t *uses, size_t count, size_t at, uint32_t there, int room)
{
    double best = INFINITY;
    if (at == count)
        return 0;
    uint32_t use = 1u << uses[at], kept = use | 1u << uses[at & ~(size_t)1];
    if (there & use)
        return search(uses, count, at + 1, there, room);
    if (__builtin_popcount(there) < room)
        return 1 + search(uses, count, at + 1, there | use, room);
    for (uint32_t gone = 1; gone <= there; gone <<= 1)
        if (there & gone & ~kept)
            best = fmin(best, search(uses, count, at + 1, (there & ~gone) | use, room));
    return 1 + best;
}

static void no_choice_is_better(void **state)
{
    (void)state;
    for (size_t side = 2; side <= MOST_SIDE; side++)
        for (int room = 2; room <= (side == 2 ? 8 : 3); room++) {
            uint8_t uses[MOST_USES];
            size_t count = 0;
            for (size_t j = 0; j < side; j++)
                for (size_t k = 0; k < side; k++)
                    for (size_t i = 0; i < side; i++) {
                        uses[count++] = (uint8_t)(i * side + k);
                        uses[count++] = (uint8_t)(side * side + k * side + j);
                    }
            /* One column of three is enough to search through. */
            bench_product product = product_of(side, 1);
            product.end = side == 2 ? 4 : 3;
            count = side == 2 ? count : count / 3;
            assert_true(bench_traffic_least(&product, (double)(side + (size_t)room)) ==
                        search(uses, count, 0, 0, room));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_comes_once),
        cmocka_unit_test(what_does_not_fit_comes_again),
        cmocka_unit_test(the_last_tile_may_be_smaller),
        cmocka_unit_test(tiles_of_c_may_be_narrower),
        cmocka_unit_test(no_choice_is_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
