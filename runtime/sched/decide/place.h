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
/* Returns the core to receive a ready task of the worker, which is awake or worth waking. Null: the
 * worker keeps the task. *owed_ns: time that sleeping cores could have worked for the worker. */
fl_worker *fl_place_receiver(const fl_worker *worker, const fl_task *task, double *owed_ns);
/* Returns the core to receive a ready task: the owner, if able to run the task; `target`, where no
 * core has the task's data. For threads outside of the workers. A sleeping core is woken for short
 * tasks only when the core's missed working time, *owed_ns, adds up to the cost of waking; until
 * then an awake core gets the tasks. */
uint32_t fl_place_target(const fl_sched *sched, const fl_task *task, uint32_t target,
                         double *owed_ns);
/* Notes the worker as the holder of tiles, after a task with accesses: of written tiles, and of
 * tiles read at the same place. */
void fl_place_note(const fl_worker *worker, const fl_task *task);
/* Predicts the transfer cost for the data of a task stolen from the victim, ns; 0 where no holders
 * are kept. */
double fl_place_theft_ns(const fl_worker *thief, const fl_worker *victim);

#endif
