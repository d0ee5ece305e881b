/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace shows of jobs: when each could run and when it was over. Kept while a trace records,
 * under core->lock. */
#ifndef FL_GRAPH_LOGBOOK_H
#define FL_GRAPH_LOGBOOK_H

#include "graph/job.h"
#include "observe/trace.h"

typedef struct fl_logbook {
    fl_core *core;
    fl_trace_ring *jobs;
} fl_logbook;

/* Room for so many jobs, the newest; null: no memory. */
fl_logbook *fl_logbook_new(fl_core *core, uint64_t capacity);
void fl_logbook_free(fl_logbook *logbook);

/* A job is over, all of whose fields are still there; under core->lock. */
void fl_logbook_ended(fl_logbook *logbook, const filch_job *job);

/* The logbook while a trace is recorded, else null. */
static inline fl_logbook *fl_logbook_of(const fl_core *core)
{
    /* Acquire: what it holds was made before. */
    return fl_load_acquire(&core->jobs->logbook);
}

#endif
