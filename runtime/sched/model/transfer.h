/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer cost: between cores of one memory, and between memory nodes. Predictions only: running
 * jobs change no state here. Thread-safe. */
#ifndef FL_SCHED_MODEL_TRANSFER_H
#define FL_SCHED_MODEL_TRANSFER_H

#include <stdint.h>

#include "backend/backend.h"
#include "memory/alloc/node.h"
#include "sched/worker/tuning.h"

/* Predicted time, ns, that device `to` loses with `bytes` last written by device `from`: data of a
 * task are in a different core's caches. The nearest cache shared by two cores and the memory nodes
 * decide the price. */
double fl_transfer_ns(const fl_device *from, const fl_device *to, double bytes);

/* Time of a byte from one memory node to another, ns: by the direct link, or through the host's
 * memory. usual: rate in bytes a second that an unmeasured link with the host's memory is assumed
 * to have; 0: a link that was not measured takes no time. */
double fl_transfer_link_ns(const fl_places *places, uint32_t from, uint32_t to, double usual);
/* Time of a copy inside the host's memory, ns. */
static inline double fl_transfer_host_ns(double bytes)
{
    return bytes / FL_HOST_COPY_RATE;
}

#endif
