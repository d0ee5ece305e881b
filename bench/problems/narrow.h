/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of short tasks in steps: a task a step and a point, which reads cells of some points from
 * the step before and writes the cell of its own point. The patterns are Task Bench's (E. Slaughter
 * et al., "Task Bench: a parameterized benchmark for evaluating parallel runtime performance",
 * SC20). Two rows of cells are used in turn. filch and its peers call the functions below, so that
 * they do the same work. */
#ifndef BENCH_NARROW_H
#define BENCH_NARROW_H

#include "cli/options.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Points that a task reads, and tasks that it comes after, at most; of "all_to_all" all points. */
#define BENCH_NARROW_READS 5
/* A point's neighbours on each side that "nearest" reads. */
#define BENCH_NARROW_RADIUS 2
#define BENCH_NARROW_NOBODY UINT32_MAX

/* A cache line: what a task writes. */
typedef struct bench_cell {
    uint64_t value;
    uint32_t device; /* that wrote it; BENCH_NARROW_NOBODY: none did */
    uint32_t moves;  /* of the point so far: steps whose device is not that of the step before */
    char unused[48];
} bench_cell;

typedef struct bench_narrow_graph {
    bench_pattern pattern;
    size_t width, steps;
    uint64_t rounds;      /* of a task's loop */
    bench_cell *cells[2]; /* width each; step s writes row s % 2 and reads the other one */
} bench_narrow_graph;

/* How many points a task reads, and how many tasks it comes after, at most. */
static inline size_t bench_narrow_most(const bench_narrow_graph *n)
{
    return n->pattern == BENCH_PATTERN_ALL_TO_ALL ? n->width : BENCH_NARROW_READS;
}
/* The points whose cells a task reads, in ascending order, at least its own; how many. points has
 * room for bench_narrow_most(). */
size_t bench_narrow_reads(const bench_narrow_graph *n, size_t step, size_t point, size_t *points);
/* The points whose tasks of the step before it comes after: those whose results it reads, and those
 * that read what it overwrites. None in step 0. */
size_t bench_narrow_before(const bench_narrow_graph *n, size_t step, size_t point, size_t *points);

/* Rounds that take so long on the calling thread's core, by the fastest of several measurements. */
uint64_t bench_narrow_rounds(double microseconds);
/* The task's loop: a fixed number of instructions a round, each of which waits for the one before.
 */
uint64_t bench_narrow_work(uint64_t value, uint64_t rounds);

/* Takes in what was read, point by point; starts with 0. */
static inline uint64_t bench_narrow_fold(uint64_t value, uint64_t read)
{
    value ^= read;
    return (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
}

/* Both rows as they are before step 0. */
void bench_narrow_reset(const bench_narrow_graph *n);
/* One task, on the cells in place. */
void bench_narrow_task(const bench_narrow_graph *n, size_t step, size_t point);

#ifdef __cplusplus
}
#endif

#endif
