/* SPDX-License-Identifier: Apache-2.0 */
/* Every wake-up of a worker, and its fence. */
#ifndef FL_SCHED_WORKER_WAKE_H
#define FL_SCHED_WORKER_WAKE_H

#include "sched/worker/sched.h"

/* Tasks were queued in this step: wakes an idle worker where that pays. */
void fl_worker_wake_others(fl_worker *worker);
/* Wakes up to `count` idle workers, or `count` of each kind where not all devices run the same, for
 * work that is already visible. Makes a full fence before. Any thread. */
void fl_sched_wake(fl_sched *sched, uint32_t count);
/* Wakes one worker if it sleeps; false if it does not sleep. Makes a full fence before. Any
 * thread. */
bool fl_sched_wake_worker(fl_sched *sched, uint32_t index);
/* Poll mode: wakes the threads of the host that listen, to drive the workers again. Any thread. */
void fl_sched_turn(fl_sched *sched);
/* Lets threads of the host that wait look again. Makes a full fence before. Any thread. */
void fl_sched_tell(fl_sched *sched);

#endif
