/* SPDX-License-Identifier: Apache-2.0 */
/* Format: "Trace Event Format", Google, 2016: complete events (ph X) in microseconds. */
#define _POSIX_C_SOURCE 200809L
#include "observe/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

fl_trace_ring *fl_trace_ring_new(const fl_memory *memory, uint64_t capacity)
{
    size_t bytes = sizeof(fl_trace_ring) + (size_t)capacity * sizeof(fl_trace_event);
    fl_trace_ring *ring = fl_alloc(memory, bytes);
    if (ring != NULL) {
        ring->bytes = bytes;
        ring->capacity = capacity;
        ring->next = 0;
    }
    return ring;
}

void fl_trace_ring_free(const fl_memory *memory, fl_trace_ring *ring)
{
    if (ring != NULL) {
        fl_free(memory, ring, ring->bytes);
    }
}

/* Writes text as the inside of a JSON string. */
static void put_text(FILE *file, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; ++at) {
        if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else if (*at < 0x20) {
            fprintf(file, "\\u%04x", *at);
        } else {
            fputc(*at, file);
        }
    }
}

static void put_event(FILE *file, const fl_trace_event *event, uint32_t lane,
                      const fl_trace_lane *lanes, uint64_t origin)
{
    static const char *const kinds[] = {"tile", "theft", "wait"};
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"cat\":\"%s\",\"name\":\"", lane,
            kinds[event->kind]);
    put_text(file, event->kind == FL_TRACE_TILE ? event->name : kinds[event->kind]);
    fprintf(file, "\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{", (double)(event->start - origin) / 1e3,
            (double)(event->end - event->start) / 1e3);
    if (event->kind == FL_TRACE_THEFT) {
        fprintf(file, "\"victim\":\"");
        put_text(file, lanes[event->other].device);
        fprintf(file, "\",\"taken\":%llu", (unsigned long long)event->first);
    } else if (event->kind == FL_TRACE_TILE && event->is_chunk) {
        fprintf(file, "\"first\":%llu,\"end\":%llu", (unsigned long long)event->first,
                (unsigned long long)event->last);
    } else if (event->kind == FL_TRACE_TILE) {
        fprintf(file, "\"task\":%llu", (unsigned long long)event->first);
    }
    fprintf(file, "}}");
}

static uint64_t first_of(const fl_trace_ring *ring)
{
    return ring->next > ring->capacity ? ring->next - ring->capacity : 0;
}

filch_status fl_trace_write(const char *path, const fl_trace_lane *lanes, uint32_t count,
                            fl_core *core)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        char why[64] = "";
        int code = errno;
        if (strerror_r(code, why, sizeof why) != 0) {
            snprintf(why, sizeof why, "error %d", code);
        }
        return fl_core_fail(core, FILCH_IO, "filch_trace_write", NULL, "%s: %s", path, why);
    }
    uint64_t origin = UINT64_MAX;
    for (uint32_t i = 0; i < count; ++i) {
        const fl_trace_ring *ring = lanes[i].ring;
        for (uint64_t e = ring != NULL ? first_of(ring) : 0; ring != NULL && e < ring->next; ++e) {
            uint64_t start = ring->events[e % ring->capacity].start;
            origin = start < origin ? start : origin;
        }
    }
    fprintf(file,
            "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"filch\"}}");
    for (uint32_t i = 0; i < count; ++i) {
        fprintf(file,
                ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\","
                "\"args\":{\"name\":\"",
                i);
        put_text(file, lanes[i].device);
        fprintf(file, "\"}}");
        const fl_trace_ring *ring = lanes[i].ring;
        for (uint64_t e = ring != NULL ? first_of(ring) : 0; ring != NULL && e < ring->next; ++e) {
            put_event(file, &ring->events[e % ring->capacity], i, lanes, origin);
        }
    }
    fprintf(file, "\n]}\n");
    bool failed = ferror(file) != 0;
    failed = fclose(file) != 0 || failed;
    if (failed) {
        remove(path);
        return fl_core_fail(core, FILCH_IO, "filch_trace_write", NULL, "%s: could not be written",
                            path);
    }
    return FILCH_OK;
}
