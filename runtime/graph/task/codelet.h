/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FL_GRAPH_TASK_CODELET_H
#define FL_GRAPH_TASK_CODELET_H

#include "backend/backend.h"
#include "base/core.h"
#include "filch/codelet.h"
#include "graph/task/host_states.h"
#include "module/kernel.h"

struct filch_codelet {
    fl_object object;
    /* Called for an item on a host device: the caller's function, or the scheduler's function
     * before it where the task may pend or a profiler is attached. */
    filch_host_fn host;
    filch_host_fn host_given; /* the caller's function, or null */
    void *user;               /* the caller's */
    fl_host_states *states;   /* of the host function, by device; null: it has none */
    filch_work_fn work;
    filch_work_fn cost;
    fl_kernel *kernel; /* CUDA implementation, ready to run; null: not given, or no device for it */
    uint32_t arg_size;
    uint32_t flags;
    /* FL_IMPL_* bits: the given implementations, and so the usable kinds of device. */
    uint32_t implementations;
    uint32_t kind_count; /* number of devices of the usable kinds */
    /* Number of the devices able to run the codelet, and their bit set. The scheduler's
     * codelet_init enters every device of the usable kinds. A device that the kernel cannot be made
     * for is taken out before the first task of the codelet. */
    uint32_t device_count;
    uint64_t runs_on[FL_DEVICE_LIMIT / 64];
    uint64_t source;           /* hash of the CUDA implementation's source, if the scheduler asks */
    filch_host_fn host_within; /* where a profiler is attached: called by host within a range */
    uint8_t able;              /* number of the set runs_on, from the scheduler's able */
    char name[64];
    /* The scheduler's measured speeds, one per device, follow in the same allocation. */
    _Alignas(64) unsigned char speeds[];
};

static inline bool fl_devices_have(const uint64_t *devices, uint32_t device)
{
    return (devices[device / 64] >> device % 64 & 1) != 0;
}

/* Tells whether a task of the codelet may end after its host function has returned. */
static inline bool fl_codelet_may_pend(const filch_codelet *codelet)
{
    return (codelet->flags & FILCH_CODELET_MAY_PEND) != 0;
}

/* A codelet as an argument of a call; what: how the call names it. */
static inline fl_argument fl_codelet_argument(const filch_codelet *codelet, const char *what)
{
    return (fl_argument){codelet, FL_MAGIC_CODELET, what, codelet != NULL ? codelet->name : ""};
}

static inline bool fl_codelet_runs_on(const filch_codelet *codelet, uint32_t device)
{
    return fl_devices_have(codelet->runs_on, device);
}

#endif
