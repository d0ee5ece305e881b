/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run, read back from its trace: what was run where, for how long, and behind what. */
#ifndef BENCH_SIM_TRACE_H
#define BENCH_SIM_TRACE_H

#include "filch/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One tile. */
typedef struct bench_sim_tile {
    uint32_t device, codelet;
    double start_us, us;
    bool is_chunk;
    uint64_t first, end; /* items of a chunk; of a task its position in first */
    uint64_t graph;      /* of a task: number of its graph */
    size_t job;          /* whose it is, once they were sorted out */
} bench_sim_tile;

/* Who waits for whom in a graph: successors of task i are successors[begin[i]] and on, up to
 * begin[i + 1]. */
typedef struct bench_sim_graph {
    uint64_t number;
    size_t count;
    size_t *begin;
    uint32_t *successors;
} bench_sim_graph;

/* One run of a graph, or a batch. */
typedef struct bench_sim_job {
    const bench_sim_graph
        *graph; /* null: a batch, or a graph of which nothing but times is known */
    bool is_batch;
    size_t first, count; /* of its tiles, which stand together, in the order of their beginnings */
    double start_us, end_us;
    uint64_t n, grain; /* of a batch */
} bench_sim_job;

/* Zero-initialised is empty. */
typedef struct bench_sim_record {
    char **devices, **codelets; /* names */
    size_t device_count, codelet_count;
    bench_sim_tile *tiles;
    size_t tile_count;
    bench_sim_graph *graphs;
    size_t graph_count;
    bench_sim_job *jobs; /* in the order of their beginnings */
    size_t job_count;
    double *gap_us; /* by device: what lies between two tiles that follow each other closely */
    double *ratios; /* see bench_sim_ratio */
    double seconds; /* from the first tile's beginning to the last one's end */
    size_t copies;  /* that the trace has; nothing is done with them */
    size_t loose;   /* tasks of graphs of which it does not say who waits for whom */
} bench_sim_record;

/* FILCH_IO, FILCH_PARSE, FILCH_DATA (it lacks events, or holds no tile), FILCH_OUT_OF_MEMORY;
 * nothing is then held. */
filch_status bench_sim_record_read(bench_sim_record *record, const char *path, filch_error *error);
void bench_sim_record_free(bench_sim_record *record);

/* How much longer tiles of a codelet take on a device than on the first device of the record; 1
 * where either ran none. */
double bench_sim_ratio(const bench_sim_record *record, uint32_t codelet, uint32_t device);

#endif
