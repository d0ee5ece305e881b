/* SPDX-License-Identifier: Apache-2.0 */
/* Trace of jobs: start and end of each job, accesses of batches, and shapes of handles. A handle
 * may be destroyed before the trace is written. The trace exists while recording, guarded by
 * core->lock. */
#ifndef FL_GRAPH_JOB_JOB_TRACE_H
#define FL_GRAPH_JOB_JOB_TRACE_H

#include "graph/job/job.h"
#include "observe/trace.h"

/* A handle's state when the first job using the handle began. */
typedef struct fl_log_data {
    uint64_t element, rows, cols, tile_rows, tile_cols;
    uint64_t *row_starts, *col_starts; /* copies of the handle's arrays, or null */
    uint32_t tiles_down, tiles_across;
    uint32_t resident; /* number of a managed handle's tiles in some device's memory */
    bool is_managed, is_on_device;
    char label[64];
} fl_log_data;

/* A batch of every item, not a rest. */
typedef struct fl_log_batch {
    uint64_t job, n, grain;
    uint32_t access_count;
    struct fl_log_access *accesses;
} fl_log_batch;

typedef struct fl_log_access {
    uint32_t data; /* number of the handle, from 1; 0: the handle is unknown to the trace */
    filch_access_mode mode;
    filch_map_kind map;
    uint64_t offset, scale, before, after;
} fl_log_access;

/* Figures of a job that is over, except for the devices' figures. */
typedef struct fl_log_job {
    uint64_t number, start, end;
    const char *name; /* codelet of a batch, "graph" or "broadcast" */
    uint64_t graph;   /* number of the graph; 0: no graph */
    char label[64];
    filch_report report; /* path_ns of a graph is 0: fl_log_graph has the path */
    filch_job_info info;
} fl_log_job;

/* Structure of a closed graph, followed by the arrays in the same block. Successors of the task
 * with order i: list[begin[i]] up to, but not including, list[begin[i + 1]]. */
typedef struct fl_log_graph {
    uint32_t number, tasks;
    uint32_t *begin, *list;
    size_t edges;
    double path_ns; /* of filch_report */
    char label[64];
} fl_log_graph;

/* Figures of the newest jobs; and sums over every job, as the element behind the last. */
typedef struct fl_job_figures {
    size_t room;   /* most jobs */
    uint64_t next; /* jobs ever noted */
    fl_log_job *jobs;
    filch_losses *losses;      /* an element a job and device */
    filch_device_stats *stats; /* likewise */
} fl_job_figures;

typedef struct fl_job_trace {
    fl_core *core;
    fl_trace_ring *jobs;
    fl_job_figures figures;
    /* Ring of the newest structures; the oldest is at graph_first. */
    fl_log_graph **graphs;
    size_t graph_first, graph_count, graph_capacity;
    uint64_t graphs_dropped; /* structures ever dropped */
    uint64_t graph_bytes;    /* bytes of the structures, see fl_job_trace_graph */
    /* Maximum number of batches, and of handles. */
    uint64_t most;
    /* Maximum number of a graph's tasks with accesses in the trace. */
    uint64_t most_tasks;
    fl_log_data *data;
    size_t data_count, data_capacity;
    fl_log_batch *batches;
    size_t batch_count, batch_capacity;
} fl_job_trace;

/* Makes a trace with room for the newest capacity jobs, and for accesses of capacity tasks per
 * device; null: no memory. */
fl_job_trace *fl_job_trace_new(fl_core *core, uint64_t capacity);
void fl_job_trace_free(fl_job_trace *logbook);

/* Notes a job that is about to begin. Takes core->lock. */
void fl_job_trace_begins(fl_job_trace *logbook, filch_job *job);
/* Notes a job that is over, with every field still valid. The caller holds core->lock. */
void fl_job_trace_ended(fl_job_trace *logbook, filch_job *job, filch_status result);
/* Keeps the structure of a graph, if the graph is closed and sealed; replaces what an earlier call
 * kept. The oldest structures make room, so that all take at most 32 * most_tasks bytes. Without
 * memory the structure is missing. Takes graph->lock and core->lock. */
void fl_job_trace_graph(fl_job_trace *logbook, filch_graph *graph);
/* Returns the structure with the given place among graph_count, the oldest first. */
static inline fl_log_graph **fl_job_trace_graph_at(const fl_job_trace *logbook, uint64_t place)
{
    return &logbook->graphs[(logbook->graph_first + place) % logbook->graph_capacity];
}
/* Keeps the structures of all graphs. No thread builds, seals or destroys a graph meanwhile. */
void fl_job_trace_graphs(fl_job_trace *logbook);

/* Returns the trace of jobs while a trace is recorded, else null. */
static inline fl_job_trace *fl_job_trace_of(const fl_core *core)
{
    /* Acquire: the object was made before its publication. */
    return fl_load_acquire(&core->jobs->logbook);
}

/* Begin and end the range of a job that is submitted, or over, where a profiler is attached
 * (observe/nvtx.h). The first and the last to happen to the job: it runs only in between. */
void fl_job_begin_range(filch_job *job);
void fl_job_end_range(const filch_job *job);

#endif
