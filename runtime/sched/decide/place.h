/* SPDX-License-Identifier: Apache-2.0 */
/* Which core a ready task belongs to, where devices are cores of one memory: the one that the
 * caller named, else the one that holds (used last) most of the tiles at the place where it writes,
 * else its home by the static partition. Where two arrays are written in turn, the core of one
 * would soon be another than the core of the other, if only the written tile counted. */
#ifndef FL_SCHED_DECIDE_PLACE_H
#define FL_SCHED_DECIDE_PLACE_H

#include "sched/worker/worker.h"

/* A closed graph's job is about to begin: puts its roots in the order of the cores that they belong
 * to, of one core by level, highest first. A core gets at most about twice its even share; the rest
 * stay with their homes. Positions in graph->roots where each core's begin, and behind the last
 * one's end; as the graph was sealed where tasks are too short for that, or there is no memory. */
const uint32_t *fl_place_roots(fl_sched *sched, filch_graph *graph);
/* The graph's run is over: its roots are in the order in which it was sealed. */
void fl_place_restore(filch_graph *graph);
/* Predicted time of a task on a core, ns, by what tasks of its codelet took there; 0: not known. */
double fl_place_root_ns(const fl_sched *sched, const fl_task *task, uint32_t core);
/* The graph is destroyed: frees what that took. */
void fl_place_drop(filch_graph *graph);
/* A ready task of the worker's. True: it was given to the core that it belongs to; the caller
 * touches it no more. */
bool fl_place_gives(fl_worker *worker, fl_task *task);
/* Any thread that is no worker's: the core to which a ready task goes, if it can run it; `target`
 * where no core has its data. A core that sleeps is woken for short tasks only when the time that
 * it could have worked adds up to what waking costs; until then one that is awake has them. */
uint32_t fl_place_target(fl_sched *sched, const fl_task *task, uint32_t target);
/* A task was put into the owner's inbox: wakes the owner where it sleeps; where it is at long
 * tasks, another worker, which takes the task if that pays. */
void fl_place_tell(fl_sched *sched, const fl_worker *owner);
/* The worker's next tasks are of another kind. */
void fl_place_turn(fl_worker *worker, const filch_codelet *codelet);
/* The worker has taken the task: tells thieves what kind of task it is at. */
static inline void fl_place_begin(fl_worker *worker, const fl_task *task)
{
    /* Relaxed, both: estimates, which only the worker writes. */
    uint32_t bytes = task->access_count != 0 ? task->bytes : 0;
    if (fl_load_relaxed(&worker->cargo) != bytes) {
        fl_store_relaxed(&worker->cargo, bytes);
    }
    if (FL_UNLIKELY(task->codelet != worker->kind)) {
        fl_place_turn(worker, task->codelet);
    }
}
/* The worker's task, with accesses, is over: the worker holds the tiles that it wrote, and those
 * that it read at the same place. */
void fl_place_note(const fl_worker *worker, const fl_task *task);
/* What the data of a task stolen from another core cost, ns; 0 where no holders are kept. */
double fl_place_theft_ns(const fl_worker *thief, const fl_worker *victim);

#endif
