/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FL_GRAPH_TASK_CODELET_H
#define FL_GRAPH_TASK_CODELET_H

#include "backend/backend.h"
#include "base/core.h"
#include "filch/codelet.h"
#include "module/kernel.h"

struct filch_codelet {
    fl_object object;
    filch_host_fn host;
    filch_work_fn work;
    filch_work_fn cost;
    fl_kernel *kernel; /* CUDA implementation, ready to run; null: none, or no device for it */
    uint32_t arg_size;
    uint32_t flags;
    uint32_t implementations; /* FL_IMPL_* bits: which kinds of device can run it */
    uint32_t kind_count;      /* how many devices are of such a kind */
    /* Bit set of the devices that can run it, and how many. The scheduler's codelet_init takes all
     * of those kinds; one for which the kernel cannot be made is taken out before any task is made
     * of the codelet. */
    uint32_t device_count;
    uint64_t runs_on[FL_DEVICE_LIMIT / 64];
    uint64_t source; /* hash of what the CUDA implementation is made of, where the scheduler asks */
    uint8_t able;    /* number of that set, by the scheduler's able */
    char name[64];
    /* The scheduler's measured speeds, one a device, follow in the same allocation. */
    _Alignas(64) unsigned char speeds[];
};

static inline bool fl_devices_have(const uint64_t *devices, uint32_t device)
{
    return (devices[device / 64] >> device % 64 & 1) != 0;
}

static inline bool fl_codelet_runs_on(const filch_codelet *codelet, uint32_t device)
{
    return fl_devices_have(codelet->runs_on, device);
}

#endif
