/* SPDX-License-Identifier: Apache-2.0 */
/* Theft from another worker. */
#ifndef FL_SCHED_DECIDE_STEAL_H
#define FL_SCHED_DECIDE_STEAL_H

#include "sched/worker/worker.h"

/* Takes work from another worker; sets worker->idle.ready_at. True: look again, the worker has
 * work. */
bool fl_worker_steal(fl_worker *worker);

#endif
