/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: a pair of events around a work item of a compute lane. The owner's, in the device's
 * context. */
#ifndef FL_BACKEND_CUDA_QUEUE_TIMER_H
#define FL_BACKEND_CUDA_QUEUE_TIMER_H

#include "backend/cuda/queue/lane.h"

#define FL_CUDA_NO_TIMER UINT32_MAX

/* Makes the first timers; before the lanes have an owner. */
CUresult fl_cuda_timers_open(const fl_cuda_api *api, fl_cuda_lanes *lanes);
void fl_cuda_timers_close(const fl_cuda_api *api, fl_cuda_lanes *lanes);

/* Starts timing the lane's next operation. record: of a trace that records, or null. Returns the
 * timer, or FL_CUDA_NO_TIMER. */
uint32_t fl_cuda_timer_start(fl_device *device, const fl_cuda_lane *lane,
                             struct fl_cuda_record *record);
/* Ends timing after the operation. False: the driver refuses, and the timer is free. */
bool fl_cuda_timer_stop(const fl_device *device, const fl_cuda_lane *lane, uint32_t timer);
/* Gives back the timer of an operation that failed. */
void fl_cuda_timer_drop(fl_cuda_lanes *lanes, uint32_t timer);

/* Tells whether the first timer stopped before the second; both are past. */
bool fl_cuda_timer_is_before(const fl_device *device, uint32_t first, uint32_t second);
/* Returns the time of the lane's oldest item, which is past, ns; UINT64_MAX: not known. Sets own
 * and began of the lanes. The timer is free, or will be. */
uint64_t fl_cuda_timer_read(const fl_device *device, fl_cuda_lane *lane);

#endif
