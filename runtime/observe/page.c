/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "observe/page.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/output.h"
#include "base/plain_locale.h"

/* The fixed parts (embed.cmake). */
extern const char fl_page_head[], fl_page_style[], fl_page_body[], fl_page_script[];

/* State of the writing. */
typedef struct fl_page_writer {
    FILE *file;
    const fl_page *page;
    uint64_t origin;
    fl_name_set names;
    bool has_memory;
    const char *before; /* text before the next row */
} fl_page_writer;

static uint32_t name_of(fl_page_writer *writer, const char *name)
{
    uint32_t number = fl_name_add(&writer->names, name);
    writer->has_memory = writer->has_memory && number != 0;
    return number - 1;
}

/* Begins a row: device, start and duration. The part before the origin is cut off. */
static void begin_row(fl_page_writer *writer, uint32_t lane, const fl_trace_event *event)
{
    uint64_t start = event->start > writer->origin ? event->start : writer->origin;
    fprintf(writer->file, "%s[%" PRIu32 ",%" PRIu64 ",%" PRIu64, writer->before, lane,
            start - writer->origin, event->end - start);
    writer->before = ",\n";
}

/* Writes the columns of a work item behind its times. Behind the label stand the tasks from the
 * second on. */
static void put_tile(fl_page_writer *writer, const fl_trace_walk *walk, const fl_trace_event *event)
{
    FILE *file = writer->file;
    const char *label = fl_trace_label_of(walk->ring, event);
    uint32_t count = fl_trace_task_count(event);
    fprintf(file, ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32,
            name_of(writer, event->name), event->other, fl_trace_first_of(event), event->last,
            count);
    if (label != NULL) {
        fprintf(file, ",%" PRIu32, name_of(writer, label));
    }
    for (uint32_t i = 1; i < count; ++i) {
        fprintf(file, "%s%" PRIu32, i != 1 ? "," : ",null,[", fl_trace_walk_task(walk, i));
    }
    fputs(count > 1 ? "]" : "", file);
}

static void put_row(fl_page_writer *writer, uint32_t lane, const fl_trace_walk *walk,
                    const fl_trace_event *event)
{
    FILE *file = writer->file;
    begin_row(writer, event->kind == FL_TRACE_PENDING ? event->device : lane, event);
    switch ((fl_trace_kind)event->kind) {
    case FL_TRACE_TILE:
        put_tile(writer, walk, event);
        break;
    case FL_TRACE_PENDING:
        fprintf(file, ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, name_of(writer, event->name),
                event->other, event->first, event->last);
        break;
    case FL_TRACE_THEFT:
        fprintf(file, ",%" PRIu32 ",%" PRIu64, event->other, event->first);
        break;
    case FL_TRACE_IN:
    case FL_TRACE_OUT:
    case FL_TRACE_PEER:
    case FL_TRACE_INNER:
        fprintf(file, ",%d,%" PRIu64 ",%" PRId64, event->kind - FL_TRACE_IN, event->first,
                event->other != FL_TRACE_HOST ? (int64_t)event->other : -1);
        break;
    default:
        break;
    }
    fputc(']', file);
}

/* Writes the events of the kinds from first to last, as an array of rows. */
static void put_rows(fl_page_writer *writer, const char *name, fl_trace_kind first,
                     fl_trace_kind last)
{
    const fl_page *page = writer->page;
    fprintf(writer->file, ",\n\"%s\":[", name);
    writer->before = "\n";
    for (uint32_t i = 0; i < page->count * FL_TRACE_RINGS; ++i) {
        uint32_t lane = i / FL_TRACE_RINGS;
        fl_trace_walk walk =
            fl_trace_walk_begin(fl_trace_ring_of(&page->lanes[lane], i % FL_TRACE_RINGS));
        for (const fl_trace_event *event; (event = fl_trace_walk_next(&walk)) != NULL;) {
            if (event->kind >= first && event->kind <= last && event->end >= writer->origin) {
                put_row(writer, lane, &walk, event);
            }
        }
    }
    fputc(']', writer->file);
}

static void put_names(fl_page_writer *writer)
{
    FILE *file = writer->file;
    fprintf(file, ",\n\"names\":[");
    for (uint32_t i = 1; i <= writer->names.count; ++i) {
        fprintf(file, i != 1 ? ",\"" : "\"");
        fl_trace_put_text(file, fl_name_at(&writer->names, i));
        fputc('"', file);
    }
    fputc(']', file);
}

/* Writes the JSON. */
static void put_data(fl_page_writer *writer)
{
    const fl_page *page = writer->page;
    FILE *file = writer->file;
    fl_trace_losses losses = fl_trace_missing(page->lanes, page->count, page->jobs);
    fprintf(file,
            "{\"version\":1,\"virtual\":%s,\"events_overwritten\":%" PRIu64
            ",\"copies_missed\":%" PRIu64,
            page->core->clock.is_virtual ? "true" : "false", losses.overwritten, losses.missed);
    page->put_figures(file, page->core, writer->origin);
    if (page->put_more != NULL) {
        page->put_more(file, page->user);
    }
    put_rows(writer, "tiles", FL_TRACE_TILE, FL_TRACE_TILE);
    put_rows(writer, "thefts", FL_TRACE_THEFT, FL_TRACE_THEFT);
    put_rows(writer, "waits", FL_TRACE_WAIT, FL_TRACE_WAIT);
    put_rows(writer, "pending", FL_TRACE_PENDING, FL_TRACE_PENDING);
    put_rows(writer, "copies", FL_TRACE_IN, FL_TRACE_INNER);
    put_names(writer);
    fputs("}\n", file);
}

bool fl_page_put(FILE *file, const fl_page *page)
{
    fl_page_writer writer = {.file = file,
                             .page = page,
                             .origin = fl_trace_origin(page->lanes, page->count, page->jobs),
                             .has_memory = true};
    fl_name_set_init(&writer.names, &page->core->memory, UINT32_MAX - 1);
    fprintf(file, "%s<style>\n%s</style>\n</head>\n%s", fl_page_head, fl_page_style, fl_page_body);
    fputs("<script type=\"application/json\" id=\"data\">\n", file);
    put_data(&writer);
    fprintf(file, "</script>\n<script>\n%s</script>\n</body>\n</html>\n", fl_page_script);
    fl_name_set_fini(&writer.names);
    return writer.has_memory;
}

filch_status fl_page_write(const char *path, const fl_page *page, const char *call)
{
    fl_core *core = page->core;
    fl_output output;
    fl_plain_locale locale;
    FILE *file = NULL;
    char why[FL_OUTPUT_WHY];
    if (!fl_plain_locale_begin(&locale)) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, NULL,
                            "no memory for the locale of numbers");
    }
    if (fl_output_open(&output, AT_FDCWD, path, ".filch-report-", FL_OUTPUT_SHARED)) {
        file = fl_output_stream(&output);
    }
    bool has_memory = file == NULL || fl_page_put(file, page);
    fl_plain_locale_end(&locale);
    if (!has_memory) {
        fl_output_abandon(&output);
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, NULL,
                            "no memory for the report's names");
    }
    if (file != NULL && fl_output_commit(&output)) {
        return FILCH_OK;
    }
    fl_output_abandon(&output);
    fl_fault fault = {.status = FILCH_IO, .native_code = output.code, .call = call};
    return fl_error_record(&core->errors, fault, "%s: %s", path, fl_output_why(&output, why));
}
