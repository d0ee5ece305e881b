/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/account/stretch.h"

bool fl_stretch_begin(fl_worker *w, const fl_task *task, struct fl_speed *speed, bool is_uniform)
{
    fl_trace_stretch *stretch = &w->call.stretch;
    fl_trace_ring *ring = fl_trace_of(w);
    if (ring == NULL || stretch->from == 0) {
        return false;
    }
    if (stretch->codelet != task->codelet || stretch->tasks.count == FL_TRACE_TASKS) {
        if (stretch->codelet != NULL) {
            fl_stretch_end(w, fl_worker_clock(w));
        }
        stretch->codelet = task->codelet;
        stretch->uniform = is_uniform ? task->codelet : NULL;
        stretch->speed = speed;
        stretch->ring = ring;
    }
    fl_stretch_put(stretch, task);
    return true;
}

void fl_stretch_end(fl_worker *w, uint64_t at)
{
    fl_trace_stretch *stretch = &w->call.stretch;
    if (stretch->codelet == NULL) {
        return;
    }
    fl_trace_add_tasks(stretch->ring,
                       (fl_trace_event){.start = stretch->from,
                                        .end = at,
                                        .name = stretch->codelet->name,
                                        .last = w->now.graph->number,
                                        .other = (uint32_t)w->now.job->sequence,
                                        .kind = FL_TRACE_TILE},
                       &stretch->tasks);
    stretch->codelet = stretch->uniform = NULL;
    stretch->tasks.count = 0;
    stretch->from = at;
}

void fl_stretch_restart(fl_worker *w, uint64_t at)
{
    fl_stretch_end(w, at);
    w->call.stretch.from = fl_trace_of(w) != NULL ? at : 0;
}
