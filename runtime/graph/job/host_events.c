/* SPDX-License-Identifier: Apache-2.0 */
/* Host events: jobs wait for host events, and signal host events.
 *
 * A worker polls the events of a waiting job. A stream with a wait and a callback would need no
 * polling, but has two disadvantages. A callback cannot be revoked; no thread could end a job, or
 * its runtime, before the host's events. Streams share the hardware's few queues; foreign work,
 * perhaps the very work in front of the event, could end up behind the wait. */
#include "graph/job/job.h"

#define MOST_EVENTS 1024u

static bool knows_events(const fl_device *device)
{
    return device->backend->interop != NULL;
}

/* Finds a device with a driver that knows events, even a failed device; null: no such device. */
static fl_device *find_device(const fl_core *core)
{
    for (uint32_t d = 0; d < core->scheduler->device_count; ++d) {
        if (knows_events(&core->places->devices[d])) {
            return &core->places->devices[d];
        }
    }
    return NULL;
}

static filch_status fail(fl_core *core, const char *call, filch_error *error)
{
    filch_status status = error->status;
    if (error->call[0] == '\0') {
        return fl_core_fail(core, status, call, error->label, "%s", error->text);
    }
    fl_error_store(&core->errors, error);
    return status;
}

/* Stores the events that are not past. */
static filch_status take_waits(filch_job *job, const filch_submit_desc *submit,
                               const fl_device *device, filch_error *error)
{
    fl_fault fault = {.status = FILCH_INVALID_ARGUMENT, .label = job->label};
    const fl_memory *memory = &job->object.core->memory;
    uint32_t count = submit->cuda_wait_count;
    if (count > MOST_EVENTS) {
        return fl_error_fill(error, fault, "%u events to wait for are over %u", count, MOST_EVENTS);
    }
    job->events = fl_alloc(memory, count * sizeof *job->events);
    if (job->events == NULL) {
        fault.status = FILCH_OUT_OF_MEMORY;
        return fl_error_fill(error, fault, "no memory for the events to wait for");
    }
    job->event_room = count;
    for (uint32_t i = 0; i < count; ++i) {
        void *event = submit->cuda_waits[i];
        if (event == NULL) {
            return fl_error_fill(error, fault, "event %u to wait for is null", i);
        }
        filch_status status =
            device->backend->interop->event_past(device, event, job->label, error);
        if (status == FILCH_NOT_READY) {
            job->events[job->event_count++] = event;
        } else if (status != FILCH_OK) {
            return status;
        }
    }
    return FILCH_OK;
}

static filch_status take_signal(filch_job *job, const filch_submit_desc *submit, fl_device *device,
                                filch_error *error)
{
    const fl_core *core = job->object.core;
    fl_fault fault = {.status = FILCH_BAD_INDEX, .label = job->label};
    uint32_t index = submit->cuda_signal_device;
    if (index > core->scheduler->device_count) {
        return fl_error_fill(error, fault, "cuda_signal_device: there is no device %u", index - 1);
    }
    device = index != 0 ? &core->places->devices[index - 1] : device;
    if (!knows_events(device)) {
        fault.status = FILCH_UNSUPPORTED;
        return fl_error_fill(error, fault, "cuda_signal_device: %s is no GPU", device->info.name);
    }
    filch_status status =
        device->backend->interop->event_record(device, submit->cuda_signal, job->label, error);
    if (status == FILCH_OK) {
        job->signal = submit->cuda_signal;
        job->signal_device = device;
    }
    return status;
}

filch_status fl_job_take_events(filch_job *job, const filch_submit_desc *submit, const char *call)
{
    fl_core *core = job->object.core;
    filch_error error = FILCH_ERROR_INIT;
    if (submit->cuda_wait_count == 0 && submit->cuda_signal == NULL) {
        return FILCH_OK;
    }
    fl_device *device = find_device(core);
    if (device == NULL) {
        return fl_core_fail(core, FILCH_UNSUPPORTED, call, job->label,
                            "CUDA events in a runtime without a GPU");
    }
    if (job->is_open && submit->cuda_wait_count != 0) {
        return fl_core_fail(core, FILCH_UNSUPPORTED, call, job->label,
                            "an open graph cannot wait for events");
    }
    filch_status status = FILCH_OK;
    if (submit->cuda_wait_count != 0) {
        status = take_waits(job, submit, device, &error);
        if (job->event_count == 0) {
            fl_job_drop_events(job);
        }
    }
    if (status == FILCH_OK && submit->cuda_signal != NULL) {
        status = take_signal(job, submit, device, &error);
    }
    return status == FILCH_OK ? FILCH_OK : fail(core, call, &error);
}

bool fl_job_events_past(filch_job *job, bool *moved)
{
    if (job->is_spreading) {
        return fl_job_spread_on(job, moved);
    }
    const fl_device *device = find_device(job->object.core);
    filch_error error = FILCH_ERROR_INIT;
    while (job->event_count != 0) {
        if (fl_load_relaxed(&job->cancelled) != 0) {
            /* Store left_out before the count that completes the job. */
            fl_store_relaxed(&job->left_out, 1);
            return true;
        }
        filch_status status = device->backend->interop->event_past(
            device, job->events[job->event_count - 1], job->label, &error);
        if (status == FILCH_NOT_READY) {
            return false;
        }
        if (status != FILCH_OK) {
            fl_job_fail_start(job, &error);
            return true;
        }
        --job->event_count;
    }
    return true;
}

void fl_job_drop_events(filch_job *job)
{
    fl_free(&job->object.core->memory, job->events, job->event_room * sizeof *job->events);
    job->events = NULL;
    job->event_count = job->event_room = 0;
}

void fl_job_signal(filch_job *job)
{
    fl_core *core = job->object.core;
    fl_device *device = job->signal_device;
    filch_error error = FILCH_ERROR_INIT;
    if (device->backend->interop->event_record(device, job->signal, job->label, &error) !=
        FILCH_OK) {
        fl_log_write(&core->log, FILCH_LOG_ERROR, "%s%s%s cannot record its event: %s",
                     FL_NAME("job ", job->label, "the job"), error.text);
    }
    job->signal = NULL;
}
