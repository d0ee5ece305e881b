/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer cost between cores of one memory: the time lost by a task whose data are in a different
 * core's caches. The nearest cache shared by two cores and the memory nodes decide the price.
 * Predictions only: running jobs change no state here. Thread-safe. */
#ifndef FL_SCHED_MODEL_TRANSFER_H
#define FL_SCHED_MODEL_TRANSFER_H

#include <stdint.h>

#include "backend/backend.h"

/* A task that one awake worker gives another: the line of the queue, the task's own, its views. */
#define FL_HANDOFF_NS 300.0
/* What a theft costs a host thread: finding the victim and moving its cache lines. */
#define FL_THEFT_NS 1000.0
/* A worker that sleeps: the system call, and the time until its thread runs. */
#define FL_WAKE_UP_NS 10000.0

/* Predicted time, ns, that device `to` loses with `bytes` last written by device `from`. */
double fl_transfer_ns(const fl_device *from, const fl_device *to, double bytes);

#endif
