/* SPDX-License-Identifier: Apache-2.0 */
/* States of a codelet's host function, one for each device that runs it. */
#ifndef FL_GRAPH_TASK_HOST_STATES_H
#define FL_GRAPH_TASK_HOST_STATES_H

#include "backend/backend.h"
#include "base/core.h"
#include "filch/codelet.h"

typedef struct fl_host_states fl_host_states;

/* Opens a state on every device that runs host functions. *made is null if the descriptor has no
 * open function. After a failure every opened state is closed. */
filch_status fl_host_states_open(fl_core *core, const filch_codelet_desc *desc, fl_device *devices,
                                 uint32_t count, fl_host_states **made, filch_error *error);
/* Closes every state; null is allowed. No host function of the codelet runs any more. */
void fl_host_states_close(fl_core *core, fl_host_states *states);
/* State on a device; null without states. */
void *fl_host_states_at(const fl_host_states *states, uint32_t device);

#endif
