/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker with queued tasks wakes an idle worker. */
#ifndef FL_SCHED_WORKER_WAKE_H
#define FL_SCHED_WORKER_WAKE_H

#include "sched/worker/worker.h"

/* Tasks were queued in this step: wakes an idle worker where that pays. */
void fl_worker_wake_others(fl_worker *worker);

#endif
