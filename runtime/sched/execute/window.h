/* SPDX-License-Identifier: Apache-2.0 */
/* Locality window: ready tasks that a worker keeps to choose among them (decide/locality.h). */
#ifndef FL_SCHED_EXECUTE_WINDOW_H
#define FL_SCHED_EXECUTE_WINDOW_H

#include "sched/decide/locality.h"
#include "sched/worker/operands.h"
#include "sched/worker/sched.h"
#include "sched/worker/worker.h"

/* A task is about to be put on the device: looks whether an operand is missing. True: the worker is
 * to choose among tasks (fl_locality_chooses). */
bool fl_window_expect(fl_worker *worker, const fl_task *task);
/* The slow part of fl_window_note. Precondition: some of the memory node's evictions are new, or
 * the worker is to choose among tasks. */
void fl_window_note_evictions(fl_worker *worker, uint64_t evicted);
/* As fl_window_gather, where the worker is to choose. */
bool fl_window_fill(fl_worker *worker);

/* An item was put on the device: looks whether a tile was evicted. */
static inline void fl_window_note(fl_worker *w)
{
    /* Relaxed: a statistic. */
    uint64_t evicted =
        fl_load_relaxed(&w->sched->core->places->residents[w->device->place].evicted);
    /* Else nothing changes: the worker does not choose, and begins with an eviction. */
    if (evicted != w->offload->evicted || fl_locality_chooses(w)) {
        fl_window_note_evictions(w, evicted);
    }
}

/* Moves ready tasks into the window, in part, where the worker is to choose. True: the next task is
 * one of the window. */
static inline bool fl_window_gather(fl_worker *w)
{
    return fl_locality_chooses(w) && w->device->place != 0 && fl_window_fill(w);
}

/* Level of the most urgent ready task of the worker, in the window or not; more where tasks just
 * made ready have not been looked at; below 0: none is ready. */
int fl_window_top(const fl_worker *worker);
/* Gives tasks of the window away while a device is hungry (fl_sched.hungry). */
void fl_window_share(fl_worker *worker);
/* Adds a root. The window has room for the roots of fl_locality_room. */
void fl_window_add(fl_worker *worker, fl_task *task);
/* Takes the chosen task. Precondition: the window is not empty. */
void fl_window_take(fl_worker *worker, fl_item *item);
/* Task of the window whose missing operands are to be fetched ahead now. Null: none. */
fl_local_task *fl_window_to_fetch(fl_worker *worker);

#endif
