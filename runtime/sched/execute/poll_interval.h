/* SPDX-License-Identifier: Apache-2.0 */
/* When a device that computes by itself is polled next. */
#ifndef FL_SCHED_EXECUTE_POLL_INTERVAL_H
#define FL_SCHED_EXECUTE_POLL_INTERVAL_H

#include "sched/worker/worker.h"

/* Time of the next poll, ns, of a device with items in flight. */
uint64_t fl_poll_interval_next(const fl_worker *worker);

#endif
