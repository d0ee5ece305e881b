/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FL_GRAPH_CODELET_H
#define FL_GRAPH_CODELET_H

#include "backend/backend.h"
#include "base/core.h"
#include "filch/codelet.h"

struct filch_codelet {
    fl_object object;
    filch_host_fn host;
    filch_work_fn work;
    filch_work_fn cost;
    uint32_t arg_size;
    uint32_t flags;
    uint32_t implementations; /* FL_IMPL_* bits: which kinds of device can run it */
    char name[64];
    /* The scheduler's measured speeds, one a device, follow in the same allocation. */
    _Alignas(64) unsigned char speeds[];
};

#endif
