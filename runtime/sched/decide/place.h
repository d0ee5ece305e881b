/* SPDX-License-Identifier: Apache-2.0 */
/* Owner of a ready task, where devices are cores of a single memory. The first applicable rule
 * decides: the core named by the caller; the core holding (last using) most of the tiles at the
 * place where the task writes; the task's home by the static partition. The written tile alone is
 * not enough: where two arrays are written in turn, the cores of the arrays would soon differ. */
#ifndef FL_SCHED_DECIDE_PLACE_H
#define FL_SCHED_DECIDE_PLACE_H

#include "sched/worker/worker.h"

/* Sorts the roots of a closed graph by owning core at the beginning of the graph's job. The roots
 * of a core are sorted by level, highest first. A core gets at most about twice the even share; the
 * remaining roots stay with the home cores. Returns positions in graph->roots: the begin of every
 * core's roots, and the end of the last core's roots. The order of sealing stays where tasks are
 * too short to pay for the sorting, or memory is missing. */
const uint32_t *fl_place_roots(fl_sched *sched, filch_graph *graph);
/* Restores the order of sealing in graph->roots after the graph's run. */
void fl_place_restore(filch_graph *graph);
/* Predicts the time of a task on a core, ns, by the codelet's speed, measured or guessed from the
 * scores; 0: unknown. */
double fl_place_root_ns(const fl_sched *sched, const fl_task *task, uint32_t core);
/* Frees the memory of fl_place_roots; the graph is being destroyed. */
void fl_place_drop(filch_graph *graph);
/* Gives a ready task of the worker to the owning core. True: the task was given away; the caller
 * does not touch the task any more. */
bool fl_place_gives(fl_worker *worker, fl_task *task);
/* Returns the core to receive a ready task: the owner, if able to run the task; `target`, where no
 * core has the task's data. For threads outside of the workers. A sleeping core is woken for short
 * tasks only when the core's missed working time adds up to the cost of waking; until then an awake
 * core gets the tasks. */
uint32_t fl_place_target(fl_sched *sched, const fl_task *task, uint32_t target);
/* Announces a task just put into the owner's inbox. Wakes a sleeping owner. If the owner runs long
 * tasks, wakes a second worker instead, and the second worker takes the task if the theft pays. */
void fl_place_tell(fl_sched *sched, const fl_worker *owner);
/* Turns the worker to a new kind of task. */
void fl_place_turn(fl_worker *worker, const filch_codelet *codelet);
/* Publishes the kind and the bytes of a task just taken by the worker, for thieves. */
static inline void fl_place_begin(fl_worker *worker, const fl_task *task)
{
    /* Relaxed, twice: estimates, written by the worker only. */
    uint32_t bytes = task->access_count != 0 ? task->bytes : 0;
    if (fl_load_relaxed(&worker->queues.cargo) != bytes) {
        fl_store_relaxed(&worker->queues.cargo, bytes);
    }
    if (FL_UNLIKELY(task->codelet != worker->theft.kind)) {
        fl_place_turn(worker, task->codelet);
    }
}
/* Notes the worker as the holder of tiles, after a task with accesses: of written tiles, and of
 * tiles read at the same place. */
void fl_place_note(const fl_worker *worker, const fl_task *task);
/* Predicts the transfer cost for the data of a task stolen from the victim, ns; 0 where no holders
 * are kept. */
double fl_place_theft_ns(const fl_worker *thief, const fl_worker *victim);

#endif
