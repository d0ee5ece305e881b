/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fake.h"

fake_stream *fake_stream_make(fake_context *context, unsigned flags, int priority)
{
    fake_stream *stream = fake_object_make(FAKE_STREAM, sizeof *stream, context);

    stream->flags = flags;
    stream->priority = priority;
    stream->last = &stream->first;
    return stream;
}

fake_stream *fake_stream_get(CUstream handle)
{
    if (handle == NULL || (uintptr_t)handle <= 2) {
        (void)fake_violate(0, "the default stream is used");
        return NULL;
    }
    return fake_find_current(FAKE_STREAM, handle);
}

static CUresult create(const char *call, CUstream *stream, unsigned flags, int priority)
{
    CUresult result = fake_begin(call, FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result == FL_CUDA_SUCCESS && flags > FL_CU_STREAM_NON_BLOCKING)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS)
        *stream = fake_handle(fake_stream_make(fake_current(), flags, priority));
    return fake_end(result);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return create("cuStreamCreate", stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    CUresult result =
        fake_begin("cuStreamDestroy", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *stream = fake_stream_get(handle);
    if (stream == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    /* What is queued still runs, as with the driver: the executors look at dead streams too. */
    fake_object_end(&stream->object);
    return fake_end(stream->object.context->poison);
}

/* A query or wait: a finished stream in a good context, or why not. */
static CUresult state(const fake_stream *stream)
{
    if (stream->object.context->poison != FL_CUDA_SUCCESS)
        return stream->object.context->poison;
    return fake_stream_is_idle(stream) ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_NOT_READY;
}

CUresult cuStreamQuery(CUstream handle)
{
    CUresult result = fake_begin("cuStreamQuery", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *stream = fake_stream_get(handle);
    if (stream == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    return fake_end(state(stream));
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUresult result = fake_begin("cuStreamSynchronize", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *stream = fake_stream_get(handle);
    if (stream == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    fake_stream_wait(stream);
    return fake_end(stream->object.context->poison);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent awaited, unsigned int flags)
{
    CUresult result = fake_begin("cuStreamWaitEvent", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if ((flags & ~1u) != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    fake_stream *stream = fake_stream_get(handle);
    /* The event may be of any context. */
    fake_event *event = fake_find(FAKE_EVENT, awaited);
    if (stream == NULL || event == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (event->last != NULL)
        fake_submit_wait(stream, event->last);
    return fake_end(FL_CUDA_SUCCESS);
}

/* --- Events --- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    CUresult result = fake_begin("cuEventCreate", FAKE_READY | FAKE_CURRENT);

    if (result == FL_CUDA_SUCCESS && (flags & ~3u) != 0)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS) {
        fake_event *made = fake_object_make(FAKE_EVENT, sizeof *made, fake_current());
        made->flags = flags;
        *event = fake_handle(made);
    }
    return fake_end(result);
}

/* Forgets what was recorded last. */
static void event_clear(fake_event *event)
{
    fake_record_drop(event->last);
    event->last = NULL;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    CUresult result = fake_begin("cuEventDestroy", FAKE_READY | FAKE_CURRENT | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_event *event = fake_find_current(FAKE_EVENT, handle);
    if (event == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    event_clear(event);
    fake_object_end(&event->object);
    return fake_end(event->object.context->poison);
}

CUresult cuEventRecord(CUevent handle, CUstream on)
{
    CUresult result = fake_begin("cuEventRecord", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *stream = fake_stream_get(on);
    fake_event *event = fake_find_current(FAKE_EVENT, handle);
    if (stream == NULL || event == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    event_clear(event);
    event->last = calloc(1, sizeof *event->last);
    if (event->last == NULL)
        abort();
    event->last->references = 1;
    fake_submit_record(stream, event->last);
    return fake_end(FL_CUDA_SUCCESS);
}

/* Events are asked from any context and from none, as the driver allows. */
static CUresult event_get(CUevent handle, fake_event **event)
{
    *event = fake_find(FAKE_EVENT, handle);
    if (*event == NULL)
        return FL_CUDA_ERROR_INVALID_HANDLE;
    return (*event)->object.context->poison;
}

/* What an event answers is its own context's fault, whatever the caller's is. */
static void blame_event(CUevent handle)
{
    const fake_event *event = fake_find(FAKE_EVENT, handle);

    if (event != NULL)
        fake_blame(event->object.context);
}

CUresult cuEventQuery(CUevent handle)
{
    CUresult result = fake_begin("cuEventQuery", FAKE_READY);
    fake_event *event;

    if (result == FL_CUDA_SUCCESS)
        result = event_get(handle, &event);
    else
        blame_event(handle);
    if (result == FL_CUDA_SUCCESS && event->last != NULL && !event->last->is_done)
        result = FL_CUDA_ERROR_NOT_READY;
    return fake_end(result);
}

CUresult cuEventSynchronize(CUevent handle)
{
    CUresult result = fake_begin("cuEventSynchronize", FAKE_READY);
    fake_event *event;

    if (result == FL_CUDA_SUCCESS)
        result = event_get(handle, &event);
    else
        blame_event(handle);
    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if ((event->flags & FL_CU_EVENT_BLOCKING_SYNC) == 0 && fake_is_steady())
        (void)fake_violate(0, "a wait that spins in the steady state");
    fake_record *record = event->last;
    if (record != NULL) {
        record->references++;
        while (!record->is_done)
            (void)pthread_cond_wait(&fake.finished, &fake.lock);
        fake_record_drop(record);
    }
    return fake_end(event->object.context->poison);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to)
{
    CUresult result = fake_begin("cuEventElapsedTime", FAKE_READY | FAKE_CURRENT);
    fake_event *start, *end;

    if (result == FL_CUDA_SUCCESS)
        result = event_get(from, &start);
    if (result == FL_CUDA_SUCCESS)
        result = event_get(to, &end);
    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (((start->flags | end->flags) & FL_CU_EVENT_DISABLE_TIMING) != 0) {
        return fake_end(
            fake_violate(FL_CUDA_ERROR_INVALID_HANDLE, "an event that was made without timing"));
    }
    if (start->object.context != end->object.context)
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_HANDLE, "events of two contexts"));
    if (start->last == NULL || end->last == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (!start->last->is_done || !end->last->is_done)
        return fake_end(FL_CUDA_ERROR_NOT_READY);
    *milliseconds = (float)((double)(int64_t)(end->last->time_ns - start->last->time_ns) * 1e-6);
    return fake_end(FL_CUDA_SUCCESS);
}
