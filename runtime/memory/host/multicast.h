/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects: the permitted order of operations, and their undoing. The backend performs
 * the steps (backend/multicast.h). */
#ifndef FL_MEMORY_HOST_MULTICAST_H
#define FL_MEMORY_HOST_MULTICAST_H

#include "base/core.h"
#include "filch/multicast.h"

/* Undoes the remaining states of an object at the end of the runtime. Resources refused by the
 * driver stay with the driver. The object's own memory belongs to the core. */
void fl_multicast_drop(filch_multicast *multicast);

#endif
