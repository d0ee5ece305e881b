/* SPDX-License-Identifier: Apache-2.0 */
/* What fl_device.state is on a CUDA device. */
#ifndef FL_BACKEND_CUDA_DEVICE_H
#define FL_BACKEND_CUDA_DEVICE_H

#include "backend/cuda/gpu.h"
#include "base/thread.h"

struct fl_cuda_lanes;

typedef struct fl_cuda_device {
    fl_cuda_gpu *gpu;
    CUgreenCtx slice;     /* null: the whole GPU; streams are made from it, it is never current */
    uint32_t sms;         /* multiprocessors that the device's streams use */
    uint32_t slice_index; /* in gpu->slices */
    bool is_open;
    struct fl_cuda_lanes *lanes; /* set by fl_cuda_lanes_open, gone after fl_cuda_lanes_close */
    fl_mutex guest_lock;
    CUstream guest;  /* stream of calls that run on the caller's thread; made when first wanted */
    CUstream herald; /* on which nothing but the host's events is recorded; likewise */
} fl_cuda_device;

static inline fl_cuda_device *fl_cuda_of(const fl_device *device)
{
    return device->state;
}

/* Makes a stream that runs on the device's multiprocessors; its context must be current. */
filch_status fl_cuda_stream_create(const fl_device *device, CUstream *stream, filch_error *error);

#endif
