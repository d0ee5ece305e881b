/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/logbook.h"

fl_logbook *fl_logbook_new(fl_core *core, uint64_t capacity)
{
    fl_logbook *logbook = fl_alloc_zeroed(&core->memory, sizeof *logbook);
    if (logbook == NULL) {
        return NULL;
    }
    logbook->core = core;
    logbook->jobs = fl_trace_ring_new(&core->memory, capacity);
    if (logbook->jobs == NULL) {
        fl_logbook_free(logbook);
        return NULL;
    }
    return logbook;
}

void fl_logbook_free(fl_logbook *logbook)
{
    if (logbook != NULL) {
        fl_core *core = logbook->core;
        fl_trace_ring_free(&core->memory, logbook->jobs);
        fl_free(&core->memory, logbook, sizeof *logbook);
    }
}

void fl_logbook_ended(fl_logbook *logbook, const filch_job *job)
{
    /* Relaxed, both: who ends the job has seen its beginning. */
    uint64_t start = fl_load_relaxed(&job->started);
    if (job->broadcast == NULL && fl_load_relaxed(&job->accounted) == 0) {
        return; /* it never began */
    }
    fl_trace_event event = {.start = start < job->finished ? start : job->finished,
                            .end = job->finished,
                            .name = "broadcast",
                            .first = job->sequence,
                            .kind = FL_TRACE_JOB};
    if (job->batch != NULL) {
        event.name = fl_batch_codelet(job->batch)->name;
        event.last = fl_batch_items(job->batch);
        event.is_chunk = 1;
    } else if (job->graph != NULL) {
        event.name = "graph";
        event.last = job->graph->number;
    }
    fl_trace_add(logbook->jobs, event);
}
