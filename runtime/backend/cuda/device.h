/* SPDX-License-Identifier: Apache-2.0 */
/* State of a CUDA device, kept in fl_device.state. */
#ifndef FL_BACKEND_CUDA_DEVICE_H
#define FL_BACKEND_CUDA_DEVICE_H

#include "backend/cuda/gpu.h"
#include "base/thread.h"

struct fl_cuda_lanes;

typedef struct fl_cuda_device {
    fl_cuda_gpu *gpu;
    /* null: the whole GPU; streams are made from the slice, never current itself */
    CUgreenCtx slice;
    uint32_t sms;         /* multiprocessors used by the device's streams */
    uint32_t slice_index; /* index in gpu->slices */
    bool is_open;
    struct fl_cuda_lanes *lanes; /* set by fl_cuda_lanes_open, gone after fl_cuda_lanes_close */
    fl_mutex guest_lock;
    CUstream guest;  /* stream of calls on the caller's thread; made when first wanted */
    CUstream herald; /* stream recording nothing but the host's events; made when first wanted */
} fl_cuda_device;

static inline fl_cuda_device *fl_cuda_of(const fl_device *device)
{
    return device->state;
}

/* Makes a stream running on the device's multiprocessors; the device's context must be current. */
filch_status fl_cuda_stream_create(const fl_device *device, CUstream *stream, filch_error *error);

#endif
