/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run, read back from its trace: what was run where, for how long, behind what, and what
 * it used. */
#ifndef BENCH_SIM_TRACE_H
#define BENCH_SIM_TRACE_H

#include "filch/data.h"
#include "filch/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One tile. */
typedef struct bench_sim_tile {
    uint32_t device, codelet;
    double start_us, end_us;
    double us;       /* of the device's time, where several tiles shared that */
    double delay_us; /* of it, before it began */
    bool is_chunk;
    uint64_t first, end; /* items of a chunk; of a task its position in first */
    uint64_t graph;      /* of a task: number of its graph */
    uint64_t number;     /* of its job; 0: the trace does not say */
    size_t job;          /* whose it is, once they were sorted out */
} bench_sim_tile;

/* A handle. Tiles are as high as row_cuts says, or tile_rows where it is null; likewise across. */
typedef struct bench_sim_handle {
    uint64_t element, rows, cols, tile_rows, tile_cols;
    uint64_t *row_cuts, *col_cuts;
    uint32_t row_cut_count, col_cut_count;
    uint32_t tiles_down, tiles;
    bool is_managed;
    bool is_resident; /* most of it was in devices' memory when it was first used */
} bench_sim_handle;

/* What a task uses: a tile of a handle or a block from that tile on, each perhaps with a halo, or
 * (FILCH_SCRATCH) so many 64 bytes. */
typedef struct bench_sim_use {
    uint32_t handle, tile;
    uint32_t rows, cols; /* tiles of the block; 1 and 1: one tile */
    filch_access_mode mode;
    bool has_halo;
    filch_halo halo;
} bench_sim_use;

/* Who waits for whom in a graph, beyond what follows from what they use: successors of task i are
 * successors[begin[i]] and on, up to begin[i + 1]; what it uses stands likewise in uses. */
typedef struct bench_sim_graph {
    uint64_t number;
    size_t count;
    size_t *begin;
    uint32_t *successors;
    size_t *all_begin; /* the same with what does follow */
    uint32_t *all_successors;
    size_t *use_begin; /* null: the trace does not say */
    bench_sim_use *uses;
    int32_t *priorities; /* null: they come from ranks */
    uint32_t *homes;     /* FILCH_ANY_DEVICE, or a device of the record and 1; null: not known */
} bench_sim_graph;

/* What a batch uses of a handle: all, or elements offset + scale * item and on, with a halo. */
typedef struct bench_sim_map {
    uint32_t handle;
    filch_access_mode mode;
    bool is_whole;
    uint64_t offset, scale, before, after;
} bench_sim_map;

typedef struct bench_sim_batch {
    uint64_t number; /* of its job */
    uint64_t n, grain;
    bool is_known; /* what it uses */
    size_t count;
    bench_sim_map *maps;
} bench_sim_batch;

/* One run of a graph, or a batch. */
typedef struct bench_sim_job {
    /* Null: a batch, or a graph of which nothing but times is known. */
    const bench_sim_graph *graph;
    const bench_sim_batch *batch; /* null: a graph, or nothing but times is known */
    bool is_batch;
    uint64_t number;     /* 0: the trace does not say */
    char name[48];       /* as the trace shows the job itself, cut; empty: it does not */
    size_t first, count; /* of its tiles, which stand together, in the order of their beginnings */
    double start_us, end_us;
    double lead_us;    /* from its beginning to when the first device did something … */
    double tail_us;    /* … and from the last one's end to its own */
    uint64_t n, grain; /* of a batch */
} bench_sim_job;

typedef enum bench_sim_way {
    BENCH_SIM_IN,
    BENCH_SIM_OUT,
    BENCH_SIM_PEER,
    BENCH_SIM_WAYS
} bench_sim_way;

/* A copy that a device received, or sent home. */
typedef struct bench_sim_copy {
    uint32_t device;
    uint32_t from; /* of BENCH_SIM_PEER */
    bench_sim_way way;
    double bytes, start_us, end_us;
} bench_sim_copy;

/* A device that had nothing to do, or whose worker took work from another. */
typedef struct bench_sim_wait {
    uint32_t device;
    double start_us, end_us;
} bench_sim_wait;

/* Zero-initialised is empty. */
typedef struct bench_sim_record {
    char **devices, **codelets; /* names */
    size_t device_count, codelet_count;
    double *scores;   /* by device; 0: unknown, as is … */
    uint64_t *memory; /* … bytes that may be held of its own */
    bench_sim_tile *tiles;
    size_t tile_count;
    bench_sim_copy *copies; /* by their beginnings */
    size_t copy_count;
    bench_sim_wait *waits, *thefts;
    size_t wait_count, theft_count;
    bench_sim_handle *handles;
    size_t handle_count;
    bench_sim_graph *graphs;
    size_t graph_count;
    bench_sim_batch *batches; /* by number */
    size_t batch_count;
    bench_sim_job *jobs; /* in the order of their beginnings */
    size_t job_count;
    bench_sim_job *marks; /* as the trace shows jobs themselves: numbers and times alone */
    size_t mark_count;
    double *gap_us;   /* by device: what lies between two tiles that follow each other closely */
    double *chunk_us; /* and what a chunk takes however many items it has, in none of their us */
    double *ratios;   /* see bench_sim_ratio */
    double *keep_us;  /* by codelet: for how long after a tile of it its worker is kept, which then
                         launches nothing behind; below 0: it is not */
    bool has_host;    /* what the workers of GPUs take is known: */
    double launch_us; /* from a launch to a tile's beginning … */
    double copy_us;   /* … or a copy's, … */
    double see_us;    /* … and from a tile's end to when it is seen at the soonest */
    double seconds;   /* from the first job's beginning to the last one's end */
    bool is_first;    /* the first job of the runtime is among them */
    size_t loose;     /* tasks of graphs of which it does not say who waits for whom */
    size_t blind;     /* where there are copies: tiles of which it does not say what they use */
    size_t twice;     /* chunks that ran again and did not count */
} bench_sim_record;

/* FILCH_IO, FILCH_PARSE, FILCH_DATA (it lacks events, holds no tile, or some of it makes no sense),
 * FILCH_OUT_OF_MEMORY; nothing is then held. */
filch_status bench_sim_record_read(bench_sim_record *record, const char *path, filch_error *error);
void bench_sim_record_free(bench_sim_record *record);

/* How much longer tiles of a codelet take on a device than on the first device of the record; of
 * codelets that either never ran as the others do, 1 where there are none. */
double bench_sim_ratio(const bench_sim_record *record, uint32_t codelet, uint32_t device);

#endif
