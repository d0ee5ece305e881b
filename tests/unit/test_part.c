/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a block of columns: every byte once and in order, none larger than asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "memory/route/part.h"
#include "random.h"

enum { MOST = 4096, ROUNDS = 3000 };

/* Copies part by part between two layouts of the same columns. */
static void parts_are_the_whole(void **state)
{
    static unsigned char from[MOST * 2], to[MOST * 2];
    fl_random random;
    (void)state;
    fl_random_init(&random, 4, 1);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t width = 1 + fl_random_below(&random, 200);
        const size_t height = 1 + fl_random_below(&random, (uint32_t)(MOST / width));
        const bool is_tight = round % 2 == 0;
        const size_t pitch = is_tight ? width : width + fl_random_below(&random, (uint32_t)width);
        const size_t piece = 1 + fl_random_below(&random, 600);
        size_t sent = 0;
        for (size_t i = 0; i < pitch * height; i++)
            from[i] = (unsigned char)(1 + fl_random_below(&random, 255));
        memset(to, 0, sizeof to);
        while (sent < width * height) {
            fl_part part = fl_part_next(width, height, is_tight, sent, piece);
            assert_true(part.width * part.height >= 1 && part.width * part.height <= piece);
            /* Only what is one column wherever it lies. */
            assert_true(is_tight || part.offset + part.width <= width);
            for (size_t k = 0; k < part.height; k++) {
                size_t at = (part.column + k) * (is_tight ? width * height : pitch) + part.offset;
                assert_int_equal(to[at], 0);
                memcpy(&to[at], &from[at], part.width);
            }
            sent += part.width * part.height;
        }
        assert_int_equal(sent, width * height);
        for (size_t k = 0; k < height; k++)
            assert_memory_equal(&to[k * pitch], &from[k * pitch], width);
    }
}

/* Not smaller than they must be. */
static void parts_are_large(void **state)
{
    (void)state;
    fl_part part = fl_part_next(100, 10, false, 0, 350);
    assert_int_equal(part.width, 100);
    assert_int_equal(part.height, 3);
    part = fl_part_next(100, 10, true, 350, 350);
    assert_int_equal(part.width * part.height, 350);
    part = fl_part_next(100, 10, false, 900, 350);
    assert_int_equal(part.column, 9);
    assert_int_equal(part.height, 1);
    part = fl_part_next(1000, 2, false, 900, 350);
    assert_int_equal(part.offset, 900);
    assert_int_equal(part.width, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(parts_are_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
