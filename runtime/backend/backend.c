/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/backend.h"

#include <stdio.h>

#include "backend/cuda/cuda.h"
#include "backend/host/host.h"
#include "backend/sim/sim.h"

static const fl_backend *const backends[] = {
    &fl_host_backend,
    &fl_cuda_backend,
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

void fl_backend_refuse(const fl_discovery *how, filch_backend kind, const char *name,
                       uint32_t ordinal, const filch_error *error)
{
    fl_refusals *refusals = how->refusals;

    fl_log_write(how->log, FILCH_LOG_WARNING, "%s is left out: %s", name, error->text);
    if (refusals == NULL ||
        fl_array_reserve(how->memory, &refusals->items, &refusals->capacity, refusals->count + 1,
                         sizeof *refusals->items) != FILCH_OK)
        return;

    filch_device_refusal *refusal = &refusals->items[refusals->count++];

    *refusal = (filch_device_refusal){
        .size = sizeof *refusal,
        .backend = kind,
        .ordinal = ordinal,
        .error = *error,
    };
    (void)snprintf(refusal->name, sizeof refusal->name, "%s", name);
}
