/* SPDX-License-Identifier: Apache-2.0 */
/* Format: "Trace Event Format", Google, 2016: complete events (ph X) in microseconds. */
#define _POSIX_C_SOURCE 200809L
#include "observe/trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "base/plain_locale.h"

fl_trace_ring *fl_trace_ring_new(const fl_memory *memory, uint64_t capacity)
{
    size_t bytes = sizeof(fl_trace_ring) + (size_t)capacity * sizeof(fl_trace_slot);
    fl_trace_ring *ring = fl_alloc(memory, bytes);
    if (ring != NULL) {
        ring->bytes = bytes;
        ring->capacity = capacity;
        ring->next = ring->at = 0;
        ring->added = 0;
        ring->missed = 0;
        fl_name_set_init(&ring->labels, memory, UINT16_MAX);
    }
    return ring;
}

void fl_trace_ring_free(const fl_memory *memory, fl_trace_ring *ring)
{
    if (ring != NULL) {
        fl_name_set_fini(&ring->labels);
        fl_free(memory, ring, ring->bytes);
    }
}

/* Returns the step from each of two or more orders to the next one, or 0 if steps differ. Tasks
 * that one call made ready are taken from a deque in a row: a slot in place of 48 keeps the first
 * writes to the ring's pages cheap. */
static int32_t common_step(const fl_trace_tasks *tasks)
{
    uint32_t step = tasks->orders[1] - tasks->orders[0], differences = 0;
    for (uint32_t i = 2; i < tasks->count; ++i) {
        differences |= (tasks->orders[i] - tasks->orders[i - 1]) ^ step;
    }
    return differences == 0 ? (int32_t)step : 0;
}

void fl_trace_add_tasks(fl_trace_ring *ring, fl_trace_event event, const fl_trace_tasks *tasks)
{
    if (tasks->count == 1) {
        event.first = tasks->orders[0];
        event.tasks = 1;
        event.count = 0;
        fl_trace_add(ring, event);
        return;
    }
    event.row.order = tasks->orders[0];
    event.row.step = common_step(tasks);
    event.tasks = FL_TRACE_SEVERAL;
    event.count = (uint16_t)tasks->count;
    fl_trace_add(ring, event);
    if (event.row.step != 0) {
        return;
    }
    for (uint32_t done = 1; done < tasks->count; done += FL_TRACE_NAMED) {
        struct fl_trace_members *slot = &fl_trace_take(ring)->members;
        memcpy(slot->orders, tasks->orders + done, sizeof slot->orders);
        slot->kind = FL_TRACE_MEMBERS;
    }
}

fl_trace_walk fl_trace_walk_begin(const fl_trace_ring *ring)
{
    bool is_full = ring != NULL && ring->next > ring->capacity;
    return (fl_trace_walk){ring, is_full ? ring->next - ring->capacity : 0};
}

static const fl_trace_slot *slot_at(const fl_trace_ring *ring, uint64_t number)
{
    return &ring->slots[number % ring->capacity];
}

const fl_trace_event *fl_trace_walk_next(fl_trace_walk *walk)
{
    while (walk->ring != NULL && walk->at < walk->ring->next) {
        const fl_trace_slot *slot = slot_at(walk->ring, walk->at++);
        if (slot->event.kind != FL_TRACE_MEMBERS) {
            return &slot->event;
        }
    }
    return NULL;
}

uint32_t fl_trace_walk_task(const fl_trace_walk *walk, uint32_t task)
{
    const fl_trace_event *event = &slot_at(walk->ring, walk->at - 1)->event;
    if (event->tasks != FL_TRACE_SEVERAL) {
        return (uint32_t)event->first;
    }
    if (task == 0 || event->row.step != 0) {
        return event->row.order + task * (uint32_t)event->row.step;
    }
    const fl_trace_slot *slot = slot_at(walk->ring, walk->at + (task - 1) / FL_TRACE_NAMED);
    return slot->members.orders[(task - 1) % FL_TRACE_NAMED];
}

/* The Unicode Standard, table 3-7. */
size_t fl_character_bytes(const unsigned char *at)
{
    size_t bytes = at[0] < 0x80                     ? 1
                   : at[0] >= 0xc2 && at[0] <= 0xdf ? 2
                   : (at[0] & 0xf0) == 0xe0         ? 3
                   : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                    : 0;
    /* The bounds exclude overlong forms, surrogates, and code points above U+10FFFF. */
    unsigned char least = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < bytes; ++i) {
        if (at[i] < least || at[i] > most) {
            return 0;
        }
        least = 0x80;
        most = 0xbf;
    }
    return bytes;
}

void fl_trace_put_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        size_t bytes = fl_character_bytes(at);
        if (bytes == 0) {
            fputs("\\ufffd", file); /* U+FFFD, the replacement character */
        } else if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else if (*at < 0x20 || *at == '<') { /* "<" could end a script element */
            fprintf(file, "\\u%04x", *at);
        } else {
            fwrite(at, 1, bytes, file);
        }
        at += bytes != 0 ? bytes : 1;
    }
}

static const char *kind_name(uint32_t kind)
{
    static const char *const kinds[] = {"tile", "theft", "wait", "pending", "job",
                                        "in",   "out",   "peer", "inner"};
    return kinds[kind];
}

#define COPY_KINDS (FL_TRACE_KINDS - FL_TRACE_IN)

/* Returns the row of an event. Order: rows of devices, rows of copies by device and kind, row of
 * jobs. */
static uint32_t row_of(uint32_t lane, uint32_t kind, uint32_t count)
{
    return kind == FL_TRACE_JOB  ? count * (1 + COPY_KINDS)
           : kind >= FL_TRACE_IN ? count + lane * COPY_KINDS + (kind - FL_TRACE_IN)
                                 : lane;
}

/* Writes the names of a work item's tasks: a list where it stands for several. */
static void put_tasks(FILE *file, const fl_trace_walk *walk, const fl_trace_event *event)
{
    uint32_t count = fl_trace_task_count(event);
    if (count == 1) {
        fprintf(file, "\"task\":%llu", (unsigned long long)event->first);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) {
        fprintf(file, "%s%u", i != 0 ? "," : "\"tasks\":[", (unsigned)fl_trace_walk_task(walk, i));
    }
    fputc(']', file);
}

static void put_args(FILE *file, const fl_trace_walk *walk, const fl_trace_event *event,
                     const fl_trace_lane *lanes)
{
    const char *label = fl_trace_label_of(walk->ring, event);
    if (label != NULL) {
        fprintf(file, "\"label\":\"");
        fl_trace_put_text(file, label);
        fprintf(file, "\",");
    }
    if (fl_trace_is_copy(event)) {
        uint64_t ns = event->end - event->start;
        fprintf(file, "\"bytes\":%llu,\"other\":\"", (unsigned long long)event->first);
        fl_trace_put_text(file,
                          event->other != FL_TRACE_HOST ? lanes[event->other].device : "host");
        fprintf(file, "\",\"GB/s\":%.4g", ns != 0 ? (double)event->first / (double)ns : 0);
    } else if (event->kind == FL_TRACE_THEFT) {
        fprintf(file, "\"victim\":\"");
        fl_trace_put_text(file, lanes[event->other].device);
        fprintf(file, "\",\"taken\":%llu", (unsigned long long)event->first);
    } else if (event->kind == FL_TRACE_TILE && event->tasks == 0) {
        fprintf(file, "\"first\":%llu,\"end\":%llu,\"job\":%u", (unsigned long long)event->first,
                (unsigned long long)event->last, (unsigned)event->other);
    } else if (event->kind == FL_TRACE_TILE || event->kind == FL_TRACE_PENDING) {
        put_tasks(file, walk, event);
        fprintf(file, ",\"graph\":%llu,\"job\":%u", (unsigned long long)event->last,
                (unsigned)event->other);
    } else if (event->kind == FL_TRACE_JOB) {
        fprintf(file, "\"job\":%u,\"%s\":%llu", (unsigned)event->first,
                event->tasks == 0 ? "items" : "graph", (unsigned long long)event->last);
        if (event->other != 0) {
            fprintf(file, ",\"skipped\":%u", (unsigned)event->other);
        }
    }
}

/* Writes the two halves of an asynchronous event: pending tasks overlap, on the row of one device.
 */
static void put_pending(FILE *file, const fl_trace_walk *walk, const fl_trace_event *event,
                        const fl_trace_lane *lanes, uint64_t origin)
{
    for (int half = 0; half < 2; ++half) {
        uint64_t at = half == 0 ? event->start : event->end;
        fprintf(file,
                ",\n{\"ph\":\"%s\",\"pid\":1,\"tid\":%u,\"cat\":\"pending\","
                "\"id\":\"%u.%llu\",\"name\":\"",
                half == 0 ? "b" : "e", (unsigned)event->device, (unsigned)event->other,
                (unsigned long long)event->first);
        fl_trace_put_text(file, event->name);
        fprintf(file, "\",\"ts\":%.3f,\"args\":{", at > origin ? (double)(at - origin) / 1e3 : 0.0);
        put_args(file, walk, event, lanes);
        fprintf(file, "}}");
    }
}

/* Writes an event. The part before the origin is cut off: devices had no work yet. */
static void put_event(FILE *file, const fl_trace_walk *walk, const fl_trace_event *event,
                      uint32_t row, const fl_trace_lane *lanes, uint64_t origin)
{
    const char *kind = kind_name(event->kind);
    bool has_name = event->kind == FL_TRACE_TILE || event->kind == FL_TRACE_JOB;
    uint64_t start = event->start > origin ? event->start : origin;
    if (event->end < origin) {
        return;
    }
    if (event->kind == FL_TRACE_PENDING) {
        put_pending(file, walk, event, lanes, origin);
        return;
    }
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"cat\":\"%s\",\"name\":\"", row,
            fl_trace_is_copy(event) ? "copy" : kind);
    fl_trace_put_text(file, has_name ? event->name : kind);
    fprintf(file, "\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{", (double)(start - origin) / 1e3,
            (double)(event->end - start) / 1e3);
    put_args(file, walk, event, lanes);
    fprintf(file, "}}");
}

static void put_row(FILE *file, uint32_t row, uint32_t order, const char *device, const char *what)
{
    fprintf(file,
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"",
            row);
    fl_trace_put_text(file, device);
    fprintf(file, "%s\"}}", what);
    fprintf(file,
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_sort_index\","
            "\"args\":{\"sort_index\":%u}}",
            row, order);
}

/* Writes a device's rows, in order: the work items, then every kind of copy with an event. */
static void put_lane(FILE *file, const fl_trace_lane *lanes, uint32_t lane, uint32_t count,
                     uint64_t origin)
{
    uint32_t seen = 1u << FL_TRACE_TILE;
    for (uint32_t i = 0; i < FL_TRACE_RINGS; ++i) {
        fl_trace_walk walk = fl_trace_walk_begin(fl_trace_ring_of(&lanes[lane], i));
        for (const fl_trace_event *e; (e = fl_trace_walk_next(&walk)) != NULL;) {
            seen |= 1u << e->kind;
        }
    }
    for (uint32_t kind = 0; kind < FL_TRACE_KINDS; ++kind) {
        if ((seen >> kind & 1) != 0 && (kind == FL_TRACE_TILE || kind >= FL_TRACE_IN)) {
            char what[16] = "";
            if (kind >= FL_TRACE_IN) {
                snprintf(what, sizeof what, " %s", kind_name(kind));
            }
            put_row(file, row_of(lane, kind, count), 1 + lane * FL_TRACE_KINDS + kind,
                    lanes[lane].device, what);
        }
    }
    for (uint32_t i = 0; i < FL_TRACE_RINGS; ++i) {
        fl_trace_walk walk = fl_trace_walk_begin(fl_trace_ring_of(&lanes[lane], i));
        for (const fl_trace_event *e; (e = fl_trace_walk_next(&walk)) != NULL;) {
            put_event(file, &walk, e, row_of(lane, e->kind, count), lanes, origin);
        }
    }
}

/* Writes the row of jobs, above the rows of devices. */
static void put_jobs(FILE *file, const fl_trace_ring *jobs, const fl_trace_lane *lanes,
                     uint32_t count, uint64_t origin)
{
    uint32_t row = row_of(0, FL_TRACE_JOB, count);
    if (jobs == NULL || jobs->next == 0) {
        return;
    }
    put_row(file, row, 0, "jobs", "");
    fl_trace_walk walk = fl_trace_walk_begin(jobs);
    for (const fl_trace_event *e; (e = fl_trace_walk_next(&walk)) != NULL;) {
        put_event(file, &walk, e, row, lanes, origin);
    }
}

/* Returns the earliest start in the ring, or origin if earlier. Waits and thefts count on request
 * only: waits may have begun long before the first work. */
static uint64_t origin_in(const fl_trace_ring *ring, bool with_waits, uint64_t origin)
{
    fl_trace_walk walk = fl_trace_walk_begin(ring);
    for (const fl_trace_event *event; (event = fl_trace_walk_next(&walk)) != NULL;) {
        bool is_counted =
            with_waits || (event->kind != FL_TRACE_WAIT && event->kind != FL_TRACE_THEFT);
        origin = is_counted && event->start < origin ? event->start : origin;
    }
    return origin;
}

uint64_t fl_trace_origin(const fl_trace_lane *lanes, uint32_t count, const fl_trace_ring *jobs)
{
    uint64_t origin = UINT64_MAX;
    for (int with_waits = 0; with_waits < 2 && origin == UINT64_MAX; ++with_waits) {
        origin = origin_in(jobs, false, origin);
        for (uint32_t i = 0; i < count * FL_TRACE_RINGS; ++i) {
            origin = origin_in(fl_trace_ring_of(&lanes[i / FL_TRACE_RINGS], i % FL_TRACE_RINGS),
                               with_waits != 0, origin);
        }
    }
    return origin;
}

/* Returns the number of the ring's events that newer events have overwritten. */
static uint64_t overwritten(const fl_trace_ring *ring)
{
    fl_trace_walk walk = fl_trace_walk_begin(ring);
    uint64_t kept = 0;
    while (fl_trace_walk_next(&walk) != NULL) {
        ++kept;
    }
    return ring != NULL ? ring->added - kept : 0;
}

fl_trace_losses fl_trace_missing(const fl_trace_lane *lanes, uint32_t count,
                                 const fl_trace_ring *jobs)
{
    fl_trace_losses losses = {.overwritten = overwritten(jobs)};
    for (uint32_t i = 0; i < count * FL_TRACE_RINGS; ++i) {
        const fl_trace_ring *ring =
            fl_trace_ring_of(&lanes[i / FL_TRACE_RINGS], i % FL_TRACE_RINGS);
        losses.overwritten += overwritten(ring);
        losses.missed += ring != NULL ? ring->missed : 0;
    }
    return losses;
}

static filch_status cannot_write(fl_core *core, const char *path, const fl_output *output)
{
    char why[FL_OUTPUT_WHY];
    fl_fault fault = {.status = FILCH_IO, .native_code = output->code, .call = "filch_trace_write"};
    return fl_error_record(&core->errors, fault, "%s: %s", path, fl_output_why(output, why));
}

/* Writes the JSON. */
static void put_trace(FILE *file, const fl_trace_lane *lanes, uint32_t count,
                      const fl_trace_ring *jobs, fl_core *core,
                      void (*put_more)(FILE *file, fl_core *core))
{
    uint64_t origin = fl_trace_origin(lanes, count, jobs);
    fprintf(file, "{\"displayTimeUnit\":\"ms\",");
    fl_trace_losses losses = fl_trace_missing(lanes, count, jobs);
    fprintf(file, "\"otherData\":{\"events_overwritten\":%llu,\"copies_missed\":%llu",
            (unsigned long long)losses.overwritten, (unsigned long long)losses.missed);
    if (put_more != NULL) {
        put_more(file, core);
    }
    fprintf(file,
            "},\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"filch\"}}");
    put_jobs(file, jobs, lanes, count, origin);
    for (uint32_t i = 0; i < count; ++i) {
        put_lane(file, lanes, i, count, origin);
    }
    fprintf(file, "\n]}\n");
}

filch_status fl_trace_write(const char *path, const fl_trace_lane *lanes, uint32_t count,
                            const fl_trace_ring *jobs, fl_core *core,
                            void (*put_more)(FILE *file, fl_core *core))
{
    fl_output output;
    fl_plain_locale locale;
    FILE *file = NULL;
    if (!fl_plain_locale_begin(&locale)) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, "filch_trace_write", NULL,
                            "no memory for the locale of numbers");
    }
    if (fl_output_open(&output, AT_FDCWD, path, ".filch-trace-", FL_OUTPUT_SHARED)) {
        file = fl_output_stream(&output);
    }
    if (file != NULL) {
        put_trace(file, lanes, count, jobs, core, put_more);
    }
    fl_plain_locale_end(&locale);
    if (file != NULL && fl_output_commit(&output)) {
        return FILCH_OK;
    }
    fl_output_abandon(&output);
    return cannot_write(core, path, &output);
}
