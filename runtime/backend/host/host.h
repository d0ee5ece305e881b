/* SPDX-License-Identifier: Apache-2.0 */
/* Host cores as devices: one core each, or teams of cores. All compute in place 0.
 *
 * Only cores that this process may use are handed out, one hardware thread of each, near ones
 * together; or the hardware threads that a specification names, in its order. Where it asks for
 * more cores than there are, they are shared in turn. */
#ifndef FL_BACKEND_HOST_HOST_H
#define FL_BACKEND_HOST_HOST_H

#include "backend/backend.h"

extern const fl_backend fl_host_backend;

#endif
