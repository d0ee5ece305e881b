/* SPDX-License-Identifier: Apache-2.0 */
/* Area bound: the shortest time in which devices of unlike speeds complete several kinds of work.
 * The work of every kind is divided among the devices at will. */
#ifndef FL_SCHED_ACCOUNT_BOUND_H
#define FL_SCHED_ACCOUNT_BOUND_H

#include <stdint.h>

/* Returns the device's time for the whole work of a kind, ns. INFINITY: the device cannot do the
 * kind, or the time is unknown. */
typedef double (*fl_bound_fn)(const void *user, uint32_t kind, uint32_t device);

/* Returns a lower bound of the shortest time. The bound is exact for a single kind, and for devices
 * equally good at every kind. A kind with INFINITY on every device does not count. */
double fl_bound_area(fl_bound_fn ns, const void *user, uint32_t kinds, uint32_t devices);

#endif
