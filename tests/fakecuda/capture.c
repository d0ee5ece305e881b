/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture. A capturing stream keeps the nodes that its next one depends on; events carry
 * such sets from stream to stream. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "fake.h"

static void join(fake_nodes *into, const fake_nodes *from)
{
    for (size_t i = 0; i < from->count; i++)
        (void)fake_nodes_add(into, from->items[i]);
}

void fake_capture_break(const fake_graph *graph)
{
    for (uint32_t i = 0; i < fake_object_count(FAKE_STREAM); i++) {
        fake_stream *stream = (fake_stream *)fake_object_any(FAKE_STREAM, i);
        if (stream->capture == graph)
            stream->is_capture_broken = true;
    }
}

CUresult fake_capture_refuse(fake_stream *stream)
{
    if (stream->capture == NULL)
        return FL_CUDA_SUCCESS;
    fake_capture_break(stream->capture);
    return fake_violate(FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is capturing");
}

void fake_capture_record(fake_stream *stream, fake_event *event)
{
    event->capture = stream->capture;
    join(&event->frontier, &stream->frontier);
}

CUresult fake_capture_wait(fake_stream *stream, fake_event *event)
{
    if (event->capture == NULL) {
        fake_capture_break(stream->capture);
        return fake_violate(FL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                            "a capturing stream waits for an event from outside the capture");
    }
    if (stream->capture != NULL && stream->capture != event->capture) {
        fake_capture_break(stream->capture);
        return fake_violate(FL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "two captures would merge");
    }
    if (!event->capture->is_capturing) {
        return fake_violate(FL_CUDA_ERROR_CAPTURED_EVENT,
                            "the event was recorded in a capture that has ended");
    }
    if (stream->capture == NULL) {
        stream->capture = event->capture;
        stream->is_capture_origin = false;
        stream->is_capture_broken = false;
        stream->frontier.count = 0;
    }
    join(&stream->frontier, &event->frontier);
    return FL_CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    CUresult result = fake_begin("cuStreamBeginCapture", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *stream = fake_stream_get(handle);
    if (stream == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (mode < 0 || mode > FL_CU_STREAM_CAPTURE_MODE_RELAXED)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (stream->capture != NULL)
        return fake_end(fake_violate(FL_CUDA_ERROR_ILLEGAL_STATE, "the stream captures already"));
    stream->capture = fake_object_make(FAKE_GRAPH, sizeof(fake_graph), NULL);
    stream->capture->is_capturing = true;
    stream->is_capture_origin = true;
    stream->is_capture_broken = false;
    stream->frontier.count = 0;
    return fake_end(FL_CUDA_SUCCESS);
}

/* Whether everything that the nodes stand for comes before one of `behind`. */
static bool is_covered(const fake_nodes *nodes, const fake_nodes *behind)
{
    fake_nodes before = {0};
    bool is_good = true;

    join(&before, behind);
    for (size_t i = 0; i < before.count; i++)
        join(&before, &before.items[i]->behind);
    for (size_t i = 0; i < nodes->count; i++)
        is_good = is_good && !fake_nodes_add(&before, nodes->items[i]);
    free(before.items);
    return is_good;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    CUresult result = fake_begin("cuStreamEndCapture", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *origin = fake_stream_get(handle);
    *out = NULL;
    if (origin == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    fake_graph *graph = origin->capture;
    if (graph == NULL || !origin->is_capture_origin) {
        return fake_end(fake_violate(graph == NULL ? FL_CUDA_ERROR_ILLEGAL_STATE
                                                   : FL_CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                                     "the capture did not begin on this stream"));
    }
    if (origin->is_capture_broken)
        result = FL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (uint32_t i = 0; i < fake_object_count(FAKE_STREAM); i++) {
        fake_stream *stream = (fake_stream *)fake_object_any(FAKE_STREAM, i);
        if (stream->capture != graph)
            continue;
        if (result == FL_CUDA_SUCCESS && !is_covered(&stream->frontier, &origin->frontier)) {
            result = fake_violate(FL_CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                                  "a stream of the capture was not joined to its origin");
        }
        stream->capture = NULL;
    }
    graph->is_capturing = false;
    if (result == FL_CUDA_SUCCESS)
        *out = fake_handle(graph);
    else
        graph->object.is_alive = false;
    return fake_end(result);
}
