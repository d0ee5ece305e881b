/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/critical.h"

#include <math.h>

#include "sched/worker/graph_part.h"
#include "sched/worker/job_part.h"

static void longest_below(fl_task *successor, void *user)
{
    float *longest = user;
    *longest = successor->rank > *longest ? successor->rank : *longest;
}

fl_critical fl_critical_of(const fl_task *task)
{
    float longest = 0;
    if (task->graph->rank_most <= 0) {
        return (fl_critical){0};
    }
    if (task->successor_count != 0) {
        fl_graph_each_successor(task, longest_below, &longest);
    }
    return (fl_critical){.own = (double)(task->rank - longest), .after = (double)longest};
}

double fl_critical_left(const filch_graph *graph)
{
    return fmax(0, graph->rank_sum - fl_part_of_graph(graph)->rank_taken);
}

double fl_critical_left_by_count(const filch_graph *graph, uint32_t device_count)
{
    /* Relaxed: a guess. */
    double count = fl_load_relaxed(&graph->task_count), done = 0;
    for (uint32_t d = 0; d < device_count; ++d) {
        done += (double)fl_load_relaxed(&fl_job_share(graph->job, d)->done);
    }
    return graph->rank_sum * fmax(1 - done / count, 0);
}
