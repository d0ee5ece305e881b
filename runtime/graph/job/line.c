/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/job/line.h"

#include "graph/build/run_uses.h"

/* Gives the uses back. The caller holds core->lock. */
static void strip(filch_job *job)
{
    fl_run_uses_give(job->graph, job->uses);
    job->uses = NULL;
}

void fl_line_join(filch_job *job)
{
    filch_graph *graph = job->graph;
    job->before = graph->last_job;
    graph->last_job = job;
    if (job->before == NULL) {
        graph->job = job;
    } else {
        job->before->behind = job;
        ++job->blocked;
    }
}

void fl_line_leave(filch_job *job, filch_job **ready)
{
    filch_graph *graph = job->graph;
    filch_job *next = job->behind;
    strip(job);
    job->behind = NULL;
    graph->job = next;
    if (next == NULL) {
        graph->last_job = NULL;
        return;
    }
    next->before = NULL;
    if (--next->blocked == 0) {
        next->next = *ready;
        *ready = next;
    }
}

void fl_line_replace(filch_job *first, filch_job *job)
{
    filch_graph *graph = first->graph;
    job->uses = first->uses;
    job->behind = first->behind;
    first->uses = NULL;
    first->behind = NULL;
    for (size_t i = 0; i < graph->slot_count; ++i) {
        job->uses->at[i].job = job;
    }
    graph->job = job;
    if (job->behind != NULL) {
        job->behind->before = job;
    } else {
        graph->last_job = job;
    }
}

void fl_line_withdraw(filch_job *job, filch_job **ready)
{
    filch_graph *graph = job->graph;
    job->before->behind = job->behind;
    if (job->behind != NULL) {
        job->behind->before = job->before;
    } else {
        graph->last_job = job->before;
    }
    job->before = job->behind = NULL;
    --job->blocked;
    for (size_t i = 0; i < graph->slot_count; ++i) {
        job->blocked -= !job->uses->at[i].granted;
        fl_access_queue_leave(&job->uses->at[i], fl_job_granted, ready);
    }
    strip(job);
    job->graph = NULL;
    job->is_vacant = job->is_withdrawn = true;
    /* Relaxed, both: the job is begun, and ended, by a thread that takes core->lock later. */
    fl_store_relaxed(&job->remaining, 1);
    fl_store_relaxed(&job->left_out, 1);
    if (job->blocked == 0) {
        job->next = *ready;
        *ready = job;
    }
}

void fl_line_withdraw_all(filch_graph *graph, filch_job **ready)
{
    while (graph->last_job != NULL && graph->last_job != graph->job) {
        fl_line_withdraw(graph->last_job, ready);
    }
}
