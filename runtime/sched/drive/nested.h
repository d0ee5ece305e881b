/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nested: what waits inside tasks take. The job that one is for comes first. It may stand behind
 * others at a handle: a wait that is nested deep in others takes nothing but its own job's work and
 * what its worker has, and would wait for ever where all who could begin those jobs do likewise.
 */
#ifndef FILCH_SCHED_NESTED_H
#define FILCH_SCHED_NESTED_H

#include "sched/worker/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In a nested wait for a job: takes a tile of it, whoever has it, or, where all have one place for
 * them, what became ready in other jobs meanwhile. By who drives the worker. */
bool fl_nested_pick_goal(fl_worker *worker, fl_tile *tile);

/* In a nested wait, by who drives the worker: takes a tile of a job that has begun and that the
 * wait's own stands behind, whoever has it, as fl_pick_goal does. Takes core->lock. */
bool fl_nested_pick_ahead(fl_worker *worker, fl_tile *tile);

#ifdef __cplusplus
}
#endif

#endif
