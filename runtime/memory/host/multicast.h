/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects: the order of what is done with them, and the way back. The steps are the
 * backend's (backend/multicast.h). */
#ifndef FL_MEMORY_HOST_MULTICAST_H
#define FL_MEMORY_HOST_MULTICAST_H

#include "base/core.h"
#include "filch/multicast.h"

/* Takes an object through what remains of its states, when its runtime ends; what the driver
 * refuses to take back stays with it. The object's own memory is the core's. */
void fl_multicast_drop(filch_multicast *multicast);

#endif
