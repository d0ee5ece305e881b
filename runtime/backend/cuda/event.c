/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/event.h"

filch_status fl_cuda_event_past(const fl_device *device, void *event, const char *label,
                                filch_error *error)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    CUresult result = api->cuEventQuery(event); /* events of any context may be queried under any */

    /* The result need not concern this device: if the device is lost, other calls notice. */
    return result == FL_CUDA_SUCCESS ? FILCH_OK
           : result == FL_CUDA_ERROR_NOT_READY
               ? FILCH_NOT_READY
               : fl_cuda_fail_api(api, result, "cuEventQuery", NULL, label, error);
}

/* Makes a stream of the context itself, also for a slice: the event belongs to the context. */
static CUresult herald_open(fl_cuda_device *state, CUstream *stream)
{
    CUresult result = FL_CUDA_SUCCESS;

    fl_mutex_lock(&state->guest_lock);
    if (state->herald == NULL)
        result = state->gpu->api->cuStreamCreate(&state->herald, FL_CU_STREAM_NON_BLOCKING);
    if (result != FL_CUDA_SUCCESS)
        state->herald = NULL;
    *stream = state->herald;
    fl_mutex_unlock(&state->guest_lock);
    return result;
}

filch_status fl_cuda_event_record(fl_device *device, void *event, const char *label,
                                  filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    const char *call = "cuStreamCreate";
    CUstream stream = NULL;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(state->gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = herald_open(state, &stream);
    if (result == FL_CUDA_SUCCESS) {
        call = "cuEventRecord";
        result = state->gpu->api->cuEventRecord(event, stream);
    }
    (void)fl_cuda_leave(&scope);
    return result == FL_CUDA_SUCCESS
               ? FILCH_OK
               : fl_cuda_fail(state->gpu, result, call, device->info.name, label, error);
}

void fl_cuda_event_close(fl_cuda_device *state)
{
    fl_cuda_scope scope;

    if (state->herald == NULL)
        return;
    if (fl_cuda_enter(state->gpu, &scope, NULL) == FILCH_OK) {
        (void)state->gpu->api->cuStreamDestroy(state->herald);
        (void)fl_cuda_leave(&scope);
    }
    state->herald = NULL;
}
