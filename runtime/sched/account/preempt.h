/* SPDX-License-Identifier: Apache-2.0 */
/* Preemption: time without a core, although the worker's thread could run. The time is awake time
 * missing on the thread's processor clock. No clock is read while items run. A reading takes two
 * system calls, about half a microsecond. Readings happen only at the end of a period of at least
 * FL_PREEMPT_LEAST_NS. A shorter period cannot lose much. */
#ifndef FL_SCHED_ACCOUNT_PREEMPT_H
#define FL_SCHED_ACCOUNT_PREEMPT_H

#include "sched/worker/ledger.h"
#include "sched/worker/tuning.h"

/* Starts the measurement; null: read uses the system's times. For the worker's thread only, like
 * every function below. */
void fl_preempt_begin(fl_preempt *preempt, fl_thread_times_fn read, void *user);
/* Notes an idle sleep of the worker. */
void fl_preempt_slept(fl_preempt *preempt, uint64_t from, uint64_t to);
/* Returns the time within from..to, ns, in which the thread could run but had no core. The thread
 * was awake for the whole period, and calls the function at the end of the period. The ratio of the
 * counts `taken` and `blocked` separates preemption from voluntary waits within items. Late
 * wake-ups do not count. */
uint64_t fl_preempt_take(fl_preempt *preempt, uint64_t from, uint64_t to);

#endif
