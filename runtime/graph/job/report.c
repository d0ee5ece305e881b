/* SPDX-License-Identifier: Apache-2.0 */
/* Breakdown of a job's time. The scheduler knows which device ran what, and when. */
#include <stddef.h>
#include <string.h>

#include "filch/report.h"
#include "graph/build/path.h"
#include "graph/job/job.h"

#define CALL "filch_job_report"
/* Size of the report in the first version; later versions append, to filch_losses alone or to both
 * structures. */
#define LEAST_SIZE (offsetof(filch_report, total) + offsetof(filch_losses, refused_dear))

static filch_status add_path(const filch_job *job, filch_graph *graph, double *ns)
{
    fl_core *core = job->object.core;
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    if (graph != job->ran) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CALL, job->label,
                            "the graph is not the one that the job is of");
    }
    if (graph->kind == FILCH_GRAPH_OPEN) {
        return fl_core_fail(core, FILCH_WRONG_STATE, CALL, job->label,
                            "the graph is an open one: its tasks are forgotten as they end");
    }
    fl_mutex_lock(&graph->lock);
    status = fl_graph_path(graph, ns);
    fl_mutex_unlock(&graph->lock);
    return status == FILCH_OK
               ? FILCH_OK
               : fl_core_fail(core, status, CALL, job->label, "no memory for the longest path");
}

filch_status filch_job_report(filch_job *job, filch_graph *graph, filch_report *report,
                              filch_losses *devices, uint32_t count)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = job->object.core;
    fl_scheduler *scheduler = core->scheduler;
    status = fl_size_check(core, report, LEAST_SIZE, 0, "the report", CALL, job->label);
    if (status != FILCH_OK) {
        return status;
    }
    if (devices == NULL && count != 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CALL, job->label,
                            "count is %u, but devices is null", count);
    }
    if (job->batch == NULL && job->ran == NULL) {
        return fl_core_fail(core, FILCH_WRONG_STATE, CALL, job->label,
                            "a broadcast runs on no device");
    }
    double path_ns = 0;
    if (graph != NULL && (status = add_path(job, graph, &path_ns)) != FILCH_OK) {
        return status;
    }
    filch_report now = FILCH_REPORT_INIT;
    /* Acquire: the figures of a complete job are final. */
    now.status = (filch_status)fl_load_acquire(&job->result);
    now.device_count = scheduler->device_count;
    size_t known = report->size < sizeof now ? report->size : sizeof now;
    scheduler->job_report(scheduler, job, &now, devices, known - offsetof(filch_report, total),
                          count);
    now.total.restarts_refused += fl_load_relaxed(&job->run_once);
    now.path_ns = graph != NULL ? (uint64_t)path_ns : now.path_ns;
    now.bound_ns = now.area_ns > now.path_ns ? now.area_ns : now.path_ns;
    now.efficiency = now.wall_ns != 0 ? (double)now.bound_ns / (double)now.wall_ns : 0;
    now.size = report->size;
    memcpy(report, &now, known);
    return FILCH_OK;
}
