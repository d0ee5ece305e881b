/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer cost between cores of one memory: the time lost by a task whose data are in a different
 * core's caches. The nearest cache shared by two cores and the memory nodes decide the price.
 * Predictions only: running jobs change no state here. Thread-safe. */
#ifndef FL_SCHED_MODEL_TRANSFER_H
#define FL_SCHED_MODEL_TRANSFER_H

#include <stdint.h>

#include "backend/backend.h"
#include "sched/worker/tuning.h"

/* Predicted time, ns, that device `to` loses with `bytes` last written by device `from`. */
double fl_transfer_ns(const fl_device *from, const fl_device *to, double bytes);

#endif
