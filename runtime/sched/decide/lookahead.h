/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ahead: which task may go on a lane behind predecessors that are not over. */
#ifndef FL_SCHED_DECIDE_LOOKAHEAD_H
#define FL_SCHED_DECIDE_LOOKAHEAD_H

#include "sched/worker/worker.h"

/* Whether a successor of a task that the worker launched in a run may be put behind the
 * predecessors on the worker's device. run: the run's epoch. The caller has just seen the successor
 * neither claimed nor ready; the claim looks again. is_shared: the graph's ready tasks go to the
 * shared ready queue. */
bool fl_lookahead_may_follow(const fl_worker *worker, const fl_task *task, uint32_t run,
                             bool is_shared);

/* Whether a successor continues its predecessor: it writes a tile that the predecessor writes, so
 * no other device has a newer one. Blocks of several tiles do not count. */
bool fl_lookahead_continues(const fl_task *before, const fl_task *task);

/* State of the predecessors of a task that was claimed ahead. */
typedef enum fl_lookahead_state {
    FL_LOOKAHEAD_WAITS,
    FL_LOOKAHEAD_OVER,
    FL_LOOKAHEAD_FAILED
} fl_lookahead_state;
fl_lookahead_state fl_lookahead_look(const fl_task *task);

#endif
