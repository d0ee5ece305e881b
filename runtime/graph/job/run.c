/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: a submission, a wait for the end, and a report of what failed, in one call, which keeps the
 * job meanwhile. */
#include <stdio.h>
#include <string.h>

#include "graph/job/batch.h"
#include "graph/job/job.h"

/* Lets a record name the function that the caller called, in place of the one that refused inside
 * it. A call of a driver keeps its name. */
static void name_call(fl_core *core, const char *call, filch_error *found)
{
    if (strncmp(found->call, "filch_", strlen("filch_")) == 0 && strcmp(found->call, call) != 0) {
        snprintf(found->call, sizeof found->call, "%s", call);
        fl_error_store(&core->errors, found);
    }
}

/* Fills the caller's error with the thread's newest record if the record tells of the status. */
static filch_status explain(fl_core *core, filch_status status, const char *call,
                            filch_error *error)
{
    filch_error found = FILCH_ERROR_INIT;
    if (core != NULL && fl_error_fetch(&core->errors, &found) == FILCH_OK &&
        found.status == status) {
        name_call(core, call, &found);
        if (error != NULL) {
            fl_error_copy(error, &found);
        }
        return status;
    }
    bool is_told = core == NULL && status == FILCH_INVALID_HANDLE && fl_error_refusal(error);
    return is_told ? status
                   : fl_error_fill(error, (fl_fault){.status = status, .call = call}, "%s",
                                   filch_status_message(status));
}

/* Tells why a run cannot begin; FILCH_OK: nothing is in the way. */
static filch_status check(fl_core *core, const char *call, const char *label,
                          const filch_error *error)
{
    if (error != NULL && error->size == 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label,
                            "the error's size is not set");
    }
    if (!core->scheduler->may_wait(core->scheduler)) {
        return fl_core_fail(core, FILCH_WRONG_STATE, call, label,
                            "neither a callback nor a simulated device's task can wait");
    }
    return FILCH_OK;
}

/* Tells the result of a complete job. */
static void report(filch_job *job, filch_status status, const char *call, filch_error *error)
{
    filch_error found = FILCH_ERROR_INIT;
    if (error == NULL || status == FILCH_OK) {
        return;
    }
    if (filch_job_error(job, &found) != FILCH_OK) {
        (void)fl_error_fill(&found, (fl_fault){.status = status, .label = job->label}, "%s",
                            filch_status_message(status));
    }
    if (found.call[0] == '\0') {
        snprintf(found.call, sizeof found.call, "%s", call);
    }
    fl_error_copy(error, &found);
}

/* Waits for a job without a limit, and drops the job. A job that cannot be waited for is
 * cancelled: a job waiting for the calling task's own job has not begun. */
static filch_status finish(filch_job *job, const char *call, filch_error *error)
{
    fl_core *core = job->object.core;
    filch_status status = filch_job_wait(job, -1);
    if (filch_job_status(job) == status) {
        report(job, status, call, error);
    } else {
        (void)explain(core, status, call, error);
        (void)filch_job_cancel(job);
        /* On a virtual clock nothing could happen: now the cancelled job ends. */
        (void)(status == FILCH_TIMEOUT ? filch_job_wait(job, -1) : FILCH_OK);
    }
    fl_job_drop(job);
    return status;
}

filch_status filch_graph_run(filch_graph *graph, const filch_submit_desc *submit,
                             filch_error *error)
{
    static const char call[] = "filch_graph_run";
    filch_job *job = NULL;
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return explain(NULL, status, call, error);
    }
    fl_core *core = graph->object.core;
    status = check(core, call, graph->label, error);
    if (status == FILCH_OK && graph->kind == FILCH_GRAPH_OPEN) {
        status = fl_core_fail(core, FILCH_WRONG_STATE, call, graph->label, "the graph is open");
    }
    status = status == FILCH_OK ? fl_graph_submit(graph, submit, false, &job) : status;
    return status == FILCH_OK ? finish(job, call, error) : explain(core, status, call, error);
}

filch_status filch_batch_run(filch_runtime *runtime, const filch_batch_desc *desc,
                             const filch_submit_desc *submit, filch_error *error)
{
    static const char call[] = "filch_batch_run";
    filch_job *job = NULL;
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return explain(NULL, status, call, error);
    }
    fl_core *core = fl_core_of(runtime);
    status = check(core, call, NULL, error);
    status = status == FILCH_OK ? fl_batch_submit(core, desc, submit, false, &job) : status;
    return status == FILCH_OK ? finish(job, call, error) : explain(core, status, call, error);
}
