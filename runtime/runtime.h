/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FL_RUNTIME_H
#define FL_RUNTIME_H

#include "device/cpu_claim.h"
#include "device/pool.h"
#include "filch/filch.h"
#include "graph/build/graph.h"
#include "graph/job/job.h"
#include "memory/alloc/node.h"
#include "module/kernel.h"
#include "observe/meter.h"
#include "sched/worker/sched.h"

struct filch_runtime {
    fl_core core; /* First member: the layers below use a filch_runtime * as an fl_core *. */
    filch_allocator allocator;
    fl_store store;
    fl_jobs jobs;
    fl_pool pool;
    fl_cpu_claim claim; /* CPUs bound to the workers' threads. */
    fl_places places;
    fl_modules modules;
    fl_sched sched;
    /* Trace rings, null until tracing starts. Every worker has a ring; every device whose backend
     * can report copies has a ring per copy lane as well. */
    fl_trace_ring **rings;
    struct fl_job_trace *logbook; /* Trace of jobs; null until tracing starts. */
    fl_meter meter;               /* Power and clocks of the GPUs while a trace records. */
    struct fl_live *live;         /* Live view on standard error (live.c); null: none. */
    char *report; /* Absolute path of the report that FILCH_REPORT asks for; null: none. */
};

/* Returns whether no job runs. Waits for jobs still leaving after publishing their results. */
bool fl_runtime_is_idle(filch_runtime *rt);

/* Saves the speeds of this run; statuses as filch_runtime_save_speeds. Any thread (speeds.c). */
filch_status fl_speeds_save(filch_runtime *rt, filch_error *error);

#endif
