/* SPDX-License-Identifier: Apache-2.0 */
/* Who last worked on each part of a problem: visits, and moves among them. */
#include "workloads/marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void visits_and_moves(void **state)
{
    (void)state;
    bench_mark *marks = bench_marks_create(2);
    assert_non_null(marks);
    assert_int_equal(sizeof marks[0], 64);
    bench_mark_visit(&marks[0], 1); /* the first one finds nobody's */
    assert_true(bench_marks_sum(marks, 2).visits == 0);
    bench_mark_visit(&marks[0], 1);
    bench_mark_visit(&marks[0], 0);
    bench_mark_visit(&marks[0], 0);
    bench_mark_visit(&marks[1], 0);
    bench_mark_visit(&marks[1], 1);
    bench_moves sum = bench_marks_sum(marks, 2);
    assert_true(sum.visits == 4 && sum.moves == 2);
    bench_marks_reset(marks, 2);
    bench_mark_visit(&marks[0], 0);
    sum = bench_marks_sum(marks, 2);
    assert_true(sum.visits == 0 && sum.moves == 0);
    free(marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(visits_and_moves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
