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
#include "sched/worker/sched.h"

struct filch_runtime {
    fl_core core; /* first: a filch_runtime * is an fl_core * to the layers below */
    filch_allocator allocator;
    fl_store store;
    fl_jobs jobs;
    fl_pool pool;
    fl_cpu_claim claim; /* CPUs that the workers' threads are bound to */
    fl_places places;
    fl_modules modules;
    fl_sched sched;
    /* Null until tracing starts: one a worker, and then for each device two, of copies in and out,
     * where its backend can tell of such. */
    fl_trace_ring **rings;
    struct fl_job_trace *logbook; /* likewise: of jobs */
};

#endif
