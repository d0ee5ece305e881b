/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/job/job_figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/build/structure_note.h"
#include "observe/advice.h"
#include "observe/losses.h"

#define MOST_BYTES ((size_t)16 << 20)
#define MOST_JOBS 1024

bool fl_job_figures_init(fl_job_figures *figures, const fl_core *core)
{
    const fl_memory *memory = &core->memory;
    size_t devices = core->scheduler->device_count;
    size_t bytes =
        sizeof(fl_log_job) + devices * (sizeof(filch_losses) + sizeof(filch_device_stats));
    size_t fit = MOST_BYTES / bytes, room = fit < MOST_JOBS ? fit : MOST_JOBS, all = room + 1;
    *figures =
        (fl_job_figures){.room = room,
                         .jobs = fl_alloc_zeroed(memory, all * sizeof *figures->jobs),
                         .losses = fl_alloc_zeroed(memory, all * devices * sizeof *figures->losses),
                         .stats = fl_alloc_zeroed(memory, all * devices * sizeof *figures->stats)};
    if (figures->jobs == NULL || figures->losses == NULL || figures->stats == NULL) {
        fl_job_figures_fini(figures, core);
        return false;
    }
    return true;
}

void fl_job_figures_fini(fl_job_figures *figures, const fl_core *core)
{
    const fl_memory *memory = &core->memory;
    size_t all = figures->room + 1, devices = core->scheduler->device_count;
    fl_free(memory, figures->jobs, all * sizeof *figures->jobs);
    fl_free(memory, figures->losses, all * devices * sizeof *figures->losses);
    fl_free(memory, figures->stats, all * devices * sizeof *figures->stats);
    *figures = (fl_job_figures){0};
}

/* --- Noting --- */

/* Counts of filch_device_stats that the report has. */
typedef struct fl_stat_field {
    const char *name;
    size_t offset;
} fl_stat_field;

static const fl_stat_field counts[] = {
    {"tiles", offsetof(filch_device_stats, tiles)},
    {"stolen_in", offsetof(filch_device_stats, stolen_in)},
    {"stolen_out", offsetof(filch_device_stats, stolen_out)},
    {"items", offsetof(filch_device_stats, items)},
    {"bytes_in", offsetof(filch_device_stats, bytes_in)},
    {"bytes_out", offsetof(filch_device_stats, bytes_out)},
    {"bytes_peer", offsetof(filch_device_stats, bytes_peer)},
    {"evicted", offsetof(filch_device_stats, evicted)},
    {"bytes_evicted", offsetof(filch_device_stats, bytes_evicted)},
    {"moved", offsetof(filch_device_stats, moved)},
    {"pending", offsetof(filch_device_stats, pending)},
};

#define COUNTS (sizeof counts / sizeof *counts)

static uint64_t *count_at(filch_device_stats *stats, size_t field)
{
    return (uint64_t *)(void *)((char *)stats + counts[field].offset);
}

static void add_stats(filch_device_stats *sum, filch_device_stats *stats)
{
    for (size_t k = 0; k < COUNTS; ++k) {
        *count_at(sum, k) += *count_at(stats, k);
    }
    sum->work += stats->work;
    sum->busy_s += stats->busy_s;
}

static void add_job(fl_log_job *sum, const fl_log_job *job)
{
    filch_report *to = &sum->report;
    const filch_report *from = &job->report;
    to->wall_ns += from->wall_ns;
    to->area_ns += from->area_ns;
    to->bound_ns += from->area_ns; /* paths are known when the report is written */
    fl_losses_add(&to->total, &from->total);
    sum->info.total += job->info.total;
    sum->info.done += job->info.done;
    sum->info.failed += job->info.failed;
    sum->info.skipped += job->info.skipped;
}

void fl_job_figures_note(fl_job_figures *figures, filch_job *job, const fl_log_job *made,
                         filch_status result)
{
    fl_scheduler *scheduler = job->object.core->scheduler;
    uint32_t devices = scheduler->device_count;
    size_t at = figures->next++ % figures->room;
    fl_log_job *note = &figures->jobs[at], *sum = &figures->jobs[figures->room];
    filch_losses *losses = &figures->losses[at * devices];
    filch_device_stats *stats = &figures->stats[at * devices];
    *note = *made;
    note->report = (filch_report)FILCH_REPORT_INIT;
    note->info = (filch_job_info)FILCH_JOB_INFO_INIT;
    note->info.total = fl_load_relaxed(&job->total);
    memset(losses, 0, devices * sizeof *losses);
    memset(stats, 0, devices * sizeof *stats);
    if (job->broadcast == NULL) {
        scheduler->job_report(scheduler, job, &note->report, losses, sizeof *losses, devices);
        scheduler->job_stats(scheduler, job, &note->info, stats, sizeof *stats, devices);
        note->report.total.restarts_refused += fl_load_relaxed(&job->run_once);
    }
    note->report.status = note->info.status = result;
    add_job(sum, note);
    for (uint32_t d = 0; d < devices; ++d) {
        fl_losses_add(&figures->losses[figures->room * devices + d], &losses[d]);
        add_stats(&figures->stats[figures->room * devices + d], &stats[d]);
    }
}

/* --- Writing --- */

/* State of the writing of a report. */
typedef struct fl_figures_page {
    FILE *file;
    fl_job_trace *logbook;
    uint64_t origin;
    uint32_t devices;
} fl_figures_page;

static void put_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\"%s\":\"", name);
    fl_trace_put_text(file, text);
    fputc('"', file);
}

static void put_columns(FILE *file)
{
    const fl_loss_field *parts = fl_loss_parts();
    size_t count;
    const fl_loss_field *fields = fl_loss_fields(&count);
    for (size_t k = 0; k < FL_LOSS_PARTS; ++k) {
        fprintf(file, "%s{\"name\":\"%s\",\"title\":\"%s\",\"meaning\":\"%s\"}",
                k != 0 ? "," : ",\n\"parts\":[", parts[k].name, parts[k].title, parts[k].meaning);
    }
    for (size_t k = 0; k < count; ++k) {
        fprintf(file, "%s\"%s\"", k != 0 ? "," : "],\n\"loss_fields\":[", fields[k].name);
    }
    fprintf(file, "],\n\"stat_fields\":[");
    for (size_t k = 0; k < COUNTS; ++k) {
        fprintf(file, "\"%s\",", counts[k].name);
    }
    fprintf(file, "\"work\",\"busy_s\"]");
}

static void put_losses(FILE *file, const filch_losses *losses)
{
    size_t count;
    const fl_loss_field *fields = fl_loss_fields(&count);
    for (size_t k = 0; k < count; ++k) {
        fprintf(file, "%s%" PRIu64, k != 0 ? "," : "[", fl_loss_value(losses, &fields[k]));
    }
    fputc(']', file);
}

static void put_stats(FILE *file, filch_device_stats *stats)
{
    fputc('[', file);
    for (size_t k = 0; k < COUNTS; ++k) {
        fprintf(file, "%" PRIu64 ",", *count_at(stats, k));
    }
    fprintf(file, "%.17g,%.9g]", isfinite(stats->work) ? stats->work : 0, stats->busy_s);
}

static void put_advice(FILE *file, const filch_report *report, uint64_t items)
{
    fl_advice advice[FL_ADVICE_MOST];
    uint32_t count = fl_advice_is_grounded(report, items) ? fl_advise(report, items, advice) : 0;
    fputs(",\"advice\":[", file);
    for (uint32_t i = 0; i < count; ++i) {
        fprintf(file, "%s{\"about\":\"%s\",\"share\":%.4f", i != 0 ? "," : "", advice[i].about,
                advice[i].share);
        put_text(file, "text", advice[i].text);
        fputc('}', file);
    }
    fputc(']', file);
}

/* Writes the figures with the given place in the arrays; the report has its path. */
static void put_figures(const fl_figures_page *page, size_t at, const filch_report *report)
{
    const fl_job_figures *figures = &page->logbook->figures;
    const filch_job_info *info = &figures->jobs[at].info;
    FILE *file = page->file;
    uint64_t items = 0;
    fprintf(file,
            ",\"total\":%" PRIu64 ",\"done\":%" PRIu64 ",\"failed\":%" PRIu64
            ",\"skipped\":%" PRIu64 ",\"wall\":%" PRIu64 ",\"area\":%" PRIu64 ",\"path\":%" PRIu64
            ",\"bound\":%" PRIu64 ",\"efficiency\":%.6f,\"losses\":[",
            info->total, info->done, info->failed, info->skipped, report->wall_ns, report->area_ns,
            report->path_ns, report->bound_ns,
            report->wall_ns != 0 ? (double)report->bound_ns / (double)report->wall_ns : 0);
    for (uint32_t d = 0; d < page->devices; ++d) {
        fprintf(file, d != 0 ? "," : "");
        put_losses(file, &figures->losses[at * page->devices + d]);
    }
    fprintf(file, "],\"stats\":[");
    for (uint32_t d = 0; d < page->devices; ++d) {
        filch_device_stats *stats = &figures->stats[at * page->devices + d];
        fprintf(file, d != 0 ? "," : "");
        put_stats(file, stats);
        items += stats->tiles;
    }
    fputc(']', file);
    put_advice(file, report, items);
}

static const fl_log_graph *find_graph(const fl_job_trace *logbook, uint64_t number)
{
    for (size_t i = logbook->graph_count; i-- > 0;) {
        const fl_log_graph *graph = *fl_job_trace_graph_at(logbook, i);
        if (graph->number == number) {
            return graph;
        }
    }
    return NULL;
}

/* Writes the newest jobs; returns the sum of the reports, with the paths of the graphs where every
 * job is among the newest. */
static filch_report put_jobs(const fl_figures_page *page)
{
    const fl_job_trace *logbook = page->logbook;
    const fl_job_figures *figures = &logbook->figures;
    uint64_t first = figures->next > figures->room ? figures->next - figures->room : 0;
    filch_report sum = figures->jobs[figures->room].report;
    fprintf(page->file, ",\n\"jobs\":[");
    for (uint64_t i = first; i < figures->next; ++i) {
        size_t at = i % figures->room;
        const fl_log_job *job = &figures->jobs[at];
        const fl_log_graph *graph = job->graph != 0 ? find_graph(logbook, job->graph) : NULL;
        filch_report report = job->report;
        if (graph != NULL) {
            report.path_ns = (uint64_t)graph->path_ns;
        }
        report.bound_ns = report.area_ns > report.path_ns ? report.area_ns : report.path_ns;
        sum.path_ns += first == 0 ? report.path_ns : 0;
        sum.bound_ns += report.bound_ns - report.area_ns;
        fprintf(page->file, "%s{\"job\":%" PRIu64, i != first ? ",\n" : "\n", job->number);
        put_text(page->file, "label", job->label);
        put_text(page->file, "name", job->name);
        put_text(page->file, "status", filch_status_name(report.status));
        fprintf(page->file, ",\"graph\":%" PRIu64 ",\"start\":%" PRIu64 ",\"ns\":%" PRIu64,
                job->graph, job->start > page->origin ? job->start - page->origin : 0,
                job->end - job->start);
        put_figures(page, at, &report);
        fputc('}', page->file);
    }
    fputc(']', page->file);
    return sum;
}

static void put_graph(FILE *file, const fl_log_graph *graph)
{
    fprintf(file, "{\"graph\":%" PRIu32 ",\"tasks\":%" PRIu32, graph->number, graph->tasks);
    put_text(file, "label", graph->label);
    fprintf(file, ",\"begin\":[");
    for (uint32_t i = 0; i <= graph->tasks; ++i) {
        fprintf(file, "%s%" PRIu32, i != 0 ? "," : "", graph->begin[i]);
    }
    fprintf(file, "],\"successors\":[");
    for (size_t i = 0; i < graph->edges; ++i) {
        fprintf(file, "%s%" PRIu32, i != 0 ? "," : "", graph->list[i]);
    }
    fprintf(file, "]}");
}

static void put_structure(const fl_figures_page *page)
{
    const fl_job_trace *logbook = page->logbook;
    FILE *file = page->file;
    fprintf(file, ",\n\"graphs\":[");
    for (size_t i = 0; i < logbook->graph_count; ++i) {
        fprintf(file, i != 0 ? ",\n" : "\n");
        put_graph(file, *fl_job_trace_graph_at(logbook, i));
    }
    fprintf(file, "],\n\"handles\":[");
    for (size_t i = 0; i < logbook->data_count; ++i) {
        const fl_log_data *data = &logbook->data[i];
        fprintf(file, "%s{\"rows\":%" PRIu64 ",\"cols\":%" PRIu64 ",\"element\":%" PRIu64,
                i != 0 ? "," : "", data->rows, data->cols, data->element);
        put_text(file, "label", data->label);
        fputc('}', file);
    }
    fputc(']', file);
}

void fl_job_figures_write(FILE *file, fl_job_trace *logbook, uint64_t origin)
{
    fl_core *core = logbook->core;
    const fl_job_figures *figures = &logbook->figures;
    const fl_figures_page page = {file, logbook, origin, core->scheduler->device_count};
    put_columns(file);
    fl_mutex_lock(&core->lock);
    filch_report sum = put_jobs(&page);
    fprintf(file, ",\n\"total\":{\"jobs\":%" PRIu64, figures->next);
    put_figures(&page, figures->room, &sum);
    fputc('}', file);
    put_structure(&page);
    fl_mutex_unlock(&core->lock);
}
