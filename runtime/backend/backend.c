/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/backend.h"

#include "backend/host/host.h"
#include "backend/sim/sim.h"

static const fl_backend *const backends[] = {
    &fl_host_backend,
    &fl_sim_backend,
    NULL,
};

const fl_backend *const *fl_backends(void)
{
    return backends;
}

const fl_backend *fl_backend_by_kind(filch_backend kind)
{
    for (const fl_backend *const *backend = backends; *backend != NULL; backend++) {
        if ((*backend)->kind == kind)
            return *backend;
    }
    return NULL;
}

filch_status fl_backend_check_limit(const fl_discovery *how, size_t count, size_t wanted,
                                    fl_fault where)
{
    if (wanted <= FL_DEVICE_LIMIT - count)
        return FILCH_OK;
    where.status = FILCH_UNSUPPORTED;
    return fl_error_fill(how->error, where,
                         "%zu devices are more than the %d that a runtime may have", count + wanted,
                         FL_DEVICE_LIMIT);
}
