/* SPDX-License-Identifier: Apache-2.0 */
/* Back-pressure of open graphs: adds that wait, and waits for few live tasks. */
#include "graph/job/job.h"

#include <math.h>

/* Returns the graph's job with a reference; null: the job is over. */
static filch_job *hold_job(filch_graph *graph)
{
    fl_core *core = graph->object.core;
    fl_mutex_lock(&core->lock);
    filch_job *job = graph->job;
    if (job != NULL) {
        /* Relaxed: under the lock the run has a reference. */
        fl_add_relaxed(&job->refs, 1);
    }
    fl_mutex_unlock(&core->lock);
    return job;
}

bool fl_open_is_full(filch_graph *graph)
{
    fl_scheduler *scheduler = graph->object.core->scheduler;
    filch_job *job = graph->job;
    /* Relaxed: written under our lock. The workers' counts are asked when the last answer is used
     * up: at most once for the tasks that fit. */
    if (fl_load_relaxed(&job->total) < graph->adds_until) {
        return false;
    }
    uint64_t others, live = scheduler->open_live(scheduler, job, &others);
    graph->adds_until =
        fl_load_relaxed(&job->total) + (live < graph->max_live ? graph->max_live - live : 0);
    return others >= graph->max_live;
}

filch_status fl_open_await(filch_graph *graph)
{
    fl_scheduler *scheduler = graph->object.core->scheduler;
    uint64_t most = graph->max_live, low = most - most / 4;
    filch_job *job = hold_job(graph); /* runs: the graph is not closed */
    const fl_open_wait wait = {.graph = graph,
                               .job = job,
                               .below = most,
                               .low = low < most ? low : most - 1,
                               .is_add = true,
                               .call = "filch_graph_add"};
    fl_latch_unlock(&graph->lock);
    filch_status status = scheduler->open_wait(scheduler, &wait, -1);
    fl_job_drop(job);
    fl_latch_lock(&graph->lock);
    return status;
}

/* Records why a wait is refused, or ends without the number. */
static filch_status explain(const filch_graph *graph, filch_status status)
{
    const char *why = status == FILCH_WRONG_STATE ? "a callback cannot wait"
                      : status == FILCH_DEADLOCK
                          ? "no task of the graph can go on but tasks that wait, or the waits "
                            "inside tasks are too deep"
                          : NULL;
    return why == NULL ? status
                       : fl_core_fail(graph->object.core, status, "filch_graph_wait_below",
                                      graph->label, "%s", why);
}

filch_status filch_graph_wait_below(filch_graph *graph, uint64_t count, double seconds)
{
    static const char call[] = "filch_graph_wait_below";
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = graph->object.core;
    if (count == 0 || isnan(seconds)) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, graph->label, "%s",
                            count == 0 ? "count is 0: there are never fewer tasks"
                                       : "seconds is not a number");
    }
    fl_latch_lock(&graph->lock);
    const char *wrong = graph->kind == FILCH_GRAPH_CLOSED   ? "the graph is not open"
                        : graph->state == FL_GRAPH_BUILDING ? "the graph was not submitted"
                                                            : NULL;
    filch_job *job = wrong == NULL ? hold_job(graph) : NULL;
    fl_latch_unlock(&graph->lock);
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_WRONG_STATE, call, graph->label, "%s", wrong);
    }
    if (job == NULL) {
        return FILCH_OK;
    }
    const fl_open_wait wait = {
        .graph = graph, .job = job, .below = count, .low = count - 1, .call = call};
    uint64_t others;
    (void)core->scheduler->open_live(core->scheduler, job, &others);
    if (others >= count) {
        status = core->scheduler->open_wait(core->scheduler, &wait, seconds);
    }
    fl_job_drop(job);
    return explain(graph, status);
}
