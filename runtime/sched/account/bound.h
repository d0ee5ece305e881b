/* SPDX-License-Identifier: Apache-2.0 */
/* The area bound: the shortest time in which unlike devices can do all work of several kinds, each
 * kind divided among them at will. */
#ifndef FL_SCHED_ACCOUNT_BOUND_H
#define FL_SCHED_ACCOUNT_BOUND_H

#include <stdint.h>

/* ns that the device takes for all work of the kind; INFINITY: it cannot do it, or nobody knows. */
typedef double (*fl_bound_fn)(const void *user, uint32_t kind, uint32_t device);

/* A lower bound of that time, exact for one kind, and where all devices are equally good at all
 * kinds. A kind for which no device has a time does not count. */
double fl_bound_area(fl_bound_fn ns, const void *user, uint32_t kinds, uint32_t devices);

#endif
