/* SPDX-License-Identifier: Apache-2.0 */
/* Theft: takes work from another worker, by the rules of decide/steal.h or by a host's policy. */
#ifndef FL_SCHED_EXECUTE_THEFT_H
#define FL_SCHED_EXECUTE_THEFT_H

#include "sched/worker/worker.h"

/* Takes work from another worker; sets worker->idle.ready_at. True: look again, the worker has
 * work. */
bool fl_worker_steal(fl_worker *worker);

#endif
