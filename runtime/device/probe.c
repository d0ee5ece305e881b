/* SPDX-License-Identifier: Apache-2.0 */
#include "device/probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/pool.h"

/* Arguments of a probe for the function that runs in the device's context. */
typedef struct probe_visit {
    filch_probe found;
    const filch_probe_desc *desc;
    bool wants_build;
} probe_visit;

filch_status fl_probes_init(fl_probes *probes)
{
    filch_status status = fl_mutex_init(&probes->lock);

    probes->is_ready = status == FILCH_OK;
    return status;
}

void fl_probes_fini(fl_probes *probes, const fl_memory *memory)
{
    if (!probes->is_ready)
        return;
    for (size_t i = probes->late_count; i-- > 0;)
        probes->late[i].backend->device->close(&probes->late[i], memory);
    fl_free(memory, probes->late, probes->late_capacity * sizeof *probes->late);
    fl_free(memory, probes->records, probes->capacity * sizeof *probes->records);
    fl_mutex_fini(&probes->lock);
    memset(probes, 0, sizeof *probes);
}

/* Fills the error with "LABEL backend: what" and the cause's codes. */
static filch_status refuse(const fl_discovery *how, const char *label, const filch_error *cause,
                           const char *what)
{
    const fl_fault fault = {
        .status = cause->status,
        .native_code = cause->native_code,
        .native_name = cause->native_name,
        .call = cause->call[0] != '\0' ? cause->call : "filch_device_probe",
        .device = cause->device,
        .label = label,
    };

    return fl_error_fill(how->error, fault, "%.63s backend: %s", label, what);
}

static filch_status refuse_for(const fl_discovery *how, const char *label, const filch_error *cause,
                               const char *what, uint32_t ordinal)
{
    char text[96];

    (void)snprintf(text, sizeof text, "%s for device %" PRIu32, what, ordinal);
    return refuse(how, label, cause, text);
}

static filch_status refuse_context(const fl_discovery *how, const char *label,
                                   const filch_error *cause, uint32_t ordinal)
{
    const char *what = strstr(cause->call, "StreamCreate") != NULL
                           ? "failed to create CUDA stream"
                           : "failed to create CUDA context";

    return refuse_for(how, label, cause, what, ordinal);
}

static const filch_device_refusal *refusal_find(const fl_pool *pool, uint32_t ordinal, bool *is_all)
{
    for (size_t i = 0; i < pool->refusals.count; i++) {
        const filch_device_refusal *refusal = &pool->refusals.items[i];

        if (refusal->backend != FILCH_BACKEND_CUDA)
            continue;
        *is_all = strchr(refusal->name, ':') == NULL; /* the driver, not a single GPU */
        if (*is_all || refusal->ordinal == ordinal)
            return refusal;
    }
    return NULL;
}

static fl_device *device_find(fl_device *devices, size_t count, uint32_t ordinal)
{
    for (size_t i = 0; i < count; i++) {
        if (devices[i].info.backend == FILCH_BACKEND_CUDA && devices[i].info.ordinal == ordinal)
            return &devices[i];
    }
    return NULL;
}

/* Opens a GPU that was left out, for probes alone. */
static filch_status late_open(fl_probes *probes, const fl_discovery *how, uint32_t ordinal,
                              fl_device **found)
{
    const fl_backend *backend = fl_backend_by_kind(FILCH_BACKEND_CUDA);
    const fl_device_spec spec = {
        .backend = FILCH_BACKEND_CUDA,
        .has_number = true,
        .number = ordinal,
        .column = 1, /* as if named: every failure is reported */
    };
    filch_status status = backend->device->enumerate(how, &spec, &probes->late, &probes->late_count,
                                                     &probes->late_capacity);
    fl_device *device;

    if (status != FILCH_OK)
        return status;
    device = &probes->late[probes->late_count - 1];
    device->info.index = UINT32_MAX;
    status = backend->device->open(device, how);
    if (status != FILCH_OK) {
        backend->device->close(device, how->memory);
        probes->late_count--;
        return status;
    }
    *found = device;
    return FILCH_OK;
}

/* Finds the device with the number of desc, or reports the reason of the device's absence. */
static filch_status device_resolve(fl_pool *pool, const char *label, const filch_probe_desc *desc,
                                   const fl_discovery *how, fl_device **found)
{
    const uint32_t ordinal = desc->ordinal;
    const filch_device_refusal *refusal;
    filch_error cause = FILCH_ERROR_INIT;
    fl_discovery inner = *how;
    bool is_all = false;
    bool has_gpu = false;
    char text[96];

    inner.error = &cause;
    inner.refusals = NULL;
    *found = device_find(pool->devices, pool->count, ordinal);
    if (*found == NULL)
        *found = device_find(pool->probes.late, pool->probes.late_count, ordinal);
    if (*found != NULL)
        return FILCH_OK;
    refusal = refusal_find(pool, ordinal, &is_all);
    if (refusal != NULL && !is_all) {
        if (desc->is_retry == 0)
            return refuse_context(how, label, &refusal->error, ordinal);
        if (late_open(&pool->probes, &inner, ordinal, found) == FILCH_OK)
            return FILCH_OK;
        return refuse_context(how, label, &cause, ordinal);
    }
    for (size_t i = 0; i < pool->count; i++)
        has_gpu = has_gpu || pool->devices[i].info.backend == FILCH_BACKEND_CUDA;
    if (refusal != NULL || !has_gpu) {
        cause.status = FILCH_NO_DRIVER;
        return refuse(how, label, refusal != NULL ? &refusal->error : &cause,
                      "no CUDA runtime available");
    }
    cause.status = FILCH_UNKNOWN_ORDINAL;
    (void)snprintf(text, sizeof text, "no CUDA device %" PRIu32 " in this runtime", ordinal);
    return refuse(how, label, &cause, text);
}

static fl_probe_record *record_find(const fl_probes *probes, const char *label, uint32_t ordinal)
{
    for (size_t i = 0; i < probes->count; i++) {
        fl_probe_record *record = &probes->records[i];

        if (record->ordinal == ordinal &&
            strncmp(record->label, label, sizeof record->label - 1) == 0)
            return record;
    }
    return NULL;
}

/* Reserves room for a record, to keep the result of a build step in every case. */
static fl_probe_record *record_reserve(fl_probes *probes, const fl_memory *memory,
                                       const char *label, uint32_t ordinal)
{
    fl_probe_record *record;

    if (fl_array_reserve(memory, &probes->records, &probes->capacity, probes->count + 1,
                         sizeof *probes->records) != FILCH_OK)
        return NULL;
    record = &probes->records[probes->count];
    *record = (fl_probe_record){.ordinal = ordinal};
    (void)snprintf(record->label, sizeof record->label, "%s", label);
    return record;
}

static int visit(const filch_lane *lane, void *user)
{
    probe_visit *visited = user;

    visited->found.context = lane->context;
    visited->found.stream = lane->stream;
    visited->found.cuda_device = lane->cuda_device;
    visited->found.multiprocessors = lane->multiprocessors;
    return visited->wants_build ? visited->desc->build(&visited->found, visited->desc->user) : 0;
}

static filch_status refuse_build(const fl_discovery *how, const char *label, int32_t code,
                                 const char *device, uint32_t ordinal)
{
    filch_error cause = FILCH_ERROR_INIT;
    char text[96];

    cause.status = FILCH_TASK_FAILED;
    cause.native_code = code;
    (void)snprintf(cause.device, sizeof cause.device, "%s", device);
    (void)snprintf(text, sizeof text, "build step failed for device %" PRIu32 " (code %" PRId32 ")",
                   ordinal, code);
    return refuse(how, label, &cause, text);
}

/* Runs a probe. Caller holds the lock. */
static filch_status probe_run(fl_pool *pool, const char *label, const fl_discovery *how,
                              fl_device *device, probe_visit *visited)
{
    const filch_probe_desc *desc = visited->desc;
    filch_error cause = FILCH_ERROR_INIT;
    fl_probe_record *record = NULL;
    bool is_new = false;
    filch_status status;
    int code = 0;

    if (desc->build != NULL) {
        record = record_find(&pool->probes, label, desc->ordinal);
        if (record != NULL && record->code != 0 && desc->is_retry == 0)
            return refuse_build(how, label, record->code, device->info.name, desc->ordinal);
        is_new = record == NULL;
        visited->wants_build = is_new || desc->is_retry != 0;
        if (is_new)
            record = record_reserve(&pool->probes, how->memory, label, desc->ordinal);
        cause.status = FILCH_OUT_OF_MEMORY;
        if (record == NULL)
            return refuse(how, label, &cause, "no memory to remember a build step");
    }
    status = device->backend->interop->within(device, visit, visited, &code, &cause);
    if (status != FILCH_OK)
        return refuse_context(how, label, &cause, desc->ordinal);
    if (!visited->wants_build)
        return FILCH_OK;
    record->code = code;
    pool->probes.count += is_new;
    return code == 0 ? FILCH_OK : refuse_build(how, label, code, device->info.name, desc->ordinal);
}

filch_status fl_pool_probe(fl_pool *pool, filch_runtime *runtime, const char *label,
                           const filch_probe_desc *desc, const fl_discovery *how,
                           filch_probe *probe)
{
    probe_visit visited = {.desc = desc};
    fl_device *device = NULL;
    filch_status status;

    fl_mutex_lock(&pool->probes.lock);
    status = device_resolve(pool, label, desc, how, &device);
    if (status == FILCH_OK) {
        visited.found = (filch_probe){
            .size = sizeof visited.found,
            .runtime = runtime,
            .ordinal = desc->ordinal,
            .device = device->info.index,
            .capability = device->info.capability,
        };
        status = probe_run(pool, label, how, device, &visited);
    }
    fl_mutex_unlock(&pool->probes.lock);
    if (status == FILCH_OK && probe != NULL) {
        const size_t size = probe->size;

        memcpy(probe, &visited.found, size < sizeof visited.found ? size : sizeof visited.found);
        probe->size = size;
    }
    return status;
}
