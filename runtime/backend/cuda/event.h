/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and records events of the host. Members of the table of operations; see backend.h. */
#ifndef FL_BACKEND_CUDA_EVENT_H
#define FL_BACKEND_CUDA_EVENT_H

#include "backend/cuda/device.h"

filch_status fl_cuda_event_past(const fl_device *device, void *event, const char *label,
                                filch_error *error);
filch_status fl_cuda_event_record(fl_device *device, void *event, const char *label,
                                  filch_error *error);
/* Destroys the stream used for recording. */
void fl_cuda_event_close(fl_cuda_device *state);

#endif
