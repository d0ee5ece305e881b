/* SPDX-License-Identifier: Apache-2.0 */
/* Presence of devices: withdrawn by the host, or gone for a while by a simulation's description.
 *
 * Presence changes seldom; every change is counted in sched->roster, and every worker is woken to
 * look again. Between changes an offline worker handles only work sent directly, and can sleep.
 *
 * No wake-up is lost with a worker chosen just before going offline. The waker had published the
 * work before, and the change wakes every remaining worker after. */
#ifndef FL_SCHED_WORKER_PRESENCE_H
#define FL_SCHED_WORKER_PRESENCE_H

#include "sched/worker/sched.h"

/* Sets or clears a duty of FL_DUTY_OFFLINE; false: no change. Any thread. */
bool fl_presence_set(fl_sched *sched, uint32_t index, uint32_t duty, bool is_set);
/* Function of fl_scheduler: a job was cancelled, and its tasks wait for no device any more. Any
 * thread. */
void fl_presence_cancelled(fl_scheduler *self);
filch_presence fl_presence_of(const fl_sched *sched, uint32_t index);
/* A device that leaves and returns by its description: sets or clears FL_DUTY_LEFT; returns the
 * time of the next change. */
uint64_t fl_presence_turn(fl_worker *worker);

#endif
