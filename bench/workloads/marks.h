/* SPDX-License-Identifier: Apache-2.0 */
/* Which device last worked on each part of a problem, kept by the tasks themselves: those of one
 * part follow each other, so that no two touch its mark at once. */
#ifndef BENCH_MARKS_H
#define BENCH_MARKS_H

#include "workloads/workload.h"

#define BENCH_MARK_NOBODY UINT32_MAX

/* A cache line, so that no two parts share one. */
typedef struct bench_mark {
    uint32_t device; /* BENCH_MARK_NOBODY: none yet */
    uint32_t visits; /* by tasks that found another one's device here … */
    uint32_t moves;  /* … and were not on that device */
    char unused[52];
} bench_mark;

/* For free(); all marks are as bench_marks_reset() leaves them. Null: no memory. */
bench_mark *bench_marks_create(size_t count);
void bench_marks_reset(bench_mark *marks, size_t count);
bench_moves bench_marks_sum(const bench_mark *marks, size_t count);

static inline void bench_mark_visit(bench_mark *mark, uint32_t device)
{
    if (mark->device != BENCH_MARK_NOBODY) {
        mark->visits++;
        mark->moves += mark->device != device;
    }
    mark->device = device;
}

#endif
