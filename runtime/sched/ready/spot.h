/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the lists of the shared ready queue; under its lock. */
#ifndef FL_SCHED_READY_SPOT_H
#define FL_SCHED_READY_SPOT_H

#include "sched/worker/timeline.h"

/* The next task after the spot, from urgent ones on or from the others; a spot without a link is
 * before all. False: that was the last. */
bool fl_spot_step(const fl_shared_queue *board, fl_queue_spot *spot, bool is_upwards);

#endif
