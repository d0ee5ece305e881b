/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of cg.c do, on the host and on GPUs. Where GPUs are among the devices a block's
 * direction has copies of its first and its last plane, which neighbours read in its place, the
 * matrix goes with the block, and a block has room for the sums of a kernel's thread blocks. Views:
 *
 *   task           on the host alone                       where there are GPUs
 *   BENCH_CG_INIT       x, r, p, part                      also first, last, work
 *   BENCH_CG_MULTIPLY   q, part, values, columns, p,       q, part, values, columns, p, starts,
 *                       and p of the neighbours            plane before, plane after, work
 *   BENCH_CG_SUM        scalars, parts                     scalars, BENCH_CG_PARTS parts
 *   BENCH_CG_UPDATE     x, r, p, q, part, scalars          also work
 *   BENCH_CG_DIRECTION  p, r, scalars                      also first, last
 */
#ifndef BENCH_CG_TASKS_H
#define BENCH_CG_TASKS_H

#include "problems/cg.h"
#include "workloads/marks.h"

/* Parts that the kernel adds up; beyond the arguments' number any tile will do. */
#define BENCH_CG_PARTS 16
/* Thread blocks at most, and elements of `work`: a line for a counter, which is 0 before and after
 * each task, and a sum a thread block. */
#define BENCH_CG_THREAD_BLOCKS 16384
#define BENCH_CG_WORK (8 + BENCH_CG_THREAD_BLOCKS)

typedef enum bench_cg_task {
    BENCH_CG_INIT,
    BENCH_CG_MULTIPLY,
    BENCH_CG_SUM,
    BENCH_CG_UPDATE,
    BENCH_CG_DIRECTION,
    BENCH_CG_TASKS
} bench_cg_task;

typedef enum bench_cg_meaning {
    BENCH_CG_BEGIN, /* the sum is r r, at first */
    BENCH_CG_ALPHA, /* it is p q */
    BENCH_CG_BETA   /* it is r r, of the next residual */
} bench_cg_meaning;

/* By value in each task, and in the kernels' source. */
typedef struct bench_cg_arguments {
    const bench_cg_system *system;
    bench_mark *mark; /* null: a sum's */
    uint64_t block;
    uint32_t meaning; /* of a sum: bench_cg_meaning */
    uint32_t parts;   /* that are added up */
} bench_cg_arguments;

typedef struct bench_cg_code {
    const char *name; /* the kernel's, too */
    filch_host_fn host;
    filch_cuda_desc cuda;
    uint32_t views; /* of the kernel */
} bench_cg_code;

extern const bench_cg_code bench_cg_codes[BENCH_CG_TASKS];

#endif
