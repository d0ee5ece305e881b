/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/marks.h"

#include <stdlib.h>

bench_mark *bench_marks_create(size_t count)
{
    bench_mark *marks = aligned_alloc(sizeof *marks, count * sizeof *marks);
    if (marks)
        bench_marks_reset(marks, count);
    return marks;
}

void bench_marks_reset(bench_mark *marks, size_t count)
{
    for (size_t k = 0; k < count; k++)
        marks[k] = (bench_mark){.device = BENCH_MARK_NOBODY};
}

bench_moves bench_marks_sum(const bench_mark *marks, size_t count)
{
    bench_moves sum = {0};
    for (size_t k = 0; k < count; k++) {
        sum.visits += marks[k].visits;
        sum.moves += marks[k].moves;
    }
    return sum;
}
