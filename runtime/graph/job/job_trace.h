/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace tells of jobs: when each could run and when it was over, what batches use, and the
 * shapes of handles, which may be gone when it is written. Kept while a trace records, under
 * core->lock. */
#ifndef FL_GRAPH_JOB_JOB_TRACE_H
#define FL_GRAPH_JOB_JOB_TRACE_H

#include "graph/job/job.h"
#include "observe/trace.h"

/* A handle as it was when a job that used it first began. */
typedef struct fl_log_data {
    uint64_t element, rows, cols, tile_rows, tile_cols;
    uint64_t *row_starts, *col_starts; /* copies, or null; as the handle's */
    uint32_t tiles_down, tiles_across;
    uint32_t resident; /* tiles of a managed one that some device's memory had */
    bool is_managed, is_on_device;
} fl_log_data;

/* A batch of all its items. */
typedef struct fl_log_batch {
    uint64_t job, n, grain;
    uint32_t access_count;
    struct fl_log_access *accesses;
} fl_log_batch;

typedef struct fl_log_access {
    uint32_t data; /* number of the handle's, from 1; 0: nothing is known of it */
    filch_access_mode mode;
    filch_map_kind map;
    uint64_t offset, scale, before, after;
} fl_log_access;

typedef struct fl_job_trace {
    fl_core *core;
    fl_trace_ring *jobs;
    uint64_t most;       /* batches, and handles, that are noted, … */
    uint64_t most_tasks; /* … and tasks of a graph of which it is told what they use */
    fl_log_data *data;
    size_t data_count, data_capacity;
    fl_log_batch *batches;
    size_t batch_count, batch_capacity;
} fl_job_trace;

/* Room for so many jobs, the newest, and so many tiles a device; null: no memory. */
fl_job_trace *fl_job_trace_new(fl_core *core, uint64_t capacity);
void fl_job_trace_free(fl_job_trace *logbook);

/* A job is about to begin. Takes core->lock. */
void fl_job_trace_begins(fl_job_trace *logbook, filch_job *job);
/* A job is over, all of whose fields are still there; under core->lock. */
void fl_job_trace_ended(fl_job_trace *logbook, const filch_job *job);

/* The logbook while a trace is recorded, else null. */
static inline fl_job_trace *fl_job_trace_of(const fl_core *core)
{
    /* Acquire: what it holds was made before. */
    return fl_load_acquire(&core->jobs->logbook);
}

#endif
