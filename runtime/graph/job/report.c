/* SPDX-License-Identifier: Apache-2.0 */
/* Breakdown of a job's time. The scheduler knows which device ran what, and when. */
#include <stddef.h>
#include <string.h>

#include "filch/report.h"
#include "graph/build/path.h"
#include "graph/job/job.h"
#include "observe/advice.h"
#include "observe/losses.h"

#define CALL "filch_job_report"
#define PRINT "filch_report_print"
/* Size of the report in the first version; later versions append, to filch_losses alone or to both
 * structures. */
#define LEAST_SIZE (offsetof(filch_report, total) + offsetof(filch_losses, refused_dear))

static filch_status add_path(const filch_job *job, filch_graph *graph, double *ns)
{
    fl_core *core = job->object.core;
    if (!fl_object_lives(graph, FL_MAGIC_GRAPH)) {
        return fl_core_fail(core, FILCH_INVALID_HANDLE, CALL, job->label, "the graph %s",
                            fl_object_wrong(graph, FL_MAGIC_GRAPH));
    }
    if (graph != job->ran) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CALL, job->label,
                            "the graph is not the one that the job is of");
    }
    if (graph->kind == FILCH_GRAPH_OPEN) {
        return fl_core_fail(core, FILCH_WRONG_STATE, CALL, job->label,
                            "the graph is an open one: its tasks are forgotten as they end");
    }
    fl_latch_lock(&graph->lock);
    filch_status status = fl_graph_path(graph, ns);
    fl_latch_unlock(&graph->lock);
    return status == FILCH_OK
               ? FILCH_OK
               : fl_core_fail(core, status, CALL, job->label, "no memory for the longest path");
}

filch_status filch_job_report(filch_job *job, filch_graph *graph, filch_report *report,
                              filch_losses *devices, uint32_t count)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = job->object.core;
    fl_scheduler *scheduler = core->scheduler;
    status = fl_size_check(core, report, LEAST_SIZE, 0, "the report", CALL, job->label);
    if (status != FILCH_OK) {
        return status;
    }
    if (devices == NULL && count != 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CALL, job->label,
                            "count is %u, but devices is null", count);
    }
    if (job->batch == NULL && job->ran == NULL) {
        return fl_core_fail(core, FILCH_WRONG_STATE, CALL, job->label, "%s",
                            job->is_repetition ? "the breakdown is of single runs, and the job is "
                                                 "a repetition"
                                               : "a broadcast runs on no device");
    }
    double path_ns = 0;
    if (graph != NULL && (status = add_path(job, graph, &path_ns)) != FILCH_OK) {
        return status;
    }
    filch_report now = FILCH_REPORT_INIT;
    /* Acquire: the figures of a complete job are final. */
    now.status = (filch_status)fl_load_acquire(&job->result);
    now.device_count = scheduler->device_count;
    size_t known = report->size < sizeof now ? report->size : sizeof now;
    scheduler->job_report(scheduler, job, &now, devices, known - offsetof(filch_report, total),
                          count);
    now.total.restarts_refused += fl_load_relaxed(&job->run_once);
    now.path_ns = graph != NULL ? (uint64_t)path_ns : now.path_ns;
    now.bound_ns = now.area_ns > now.path_ns ? now.area_ns : now.path_ns;
    now.efficiency = now.wall_ns != 0 ? (double)now.bound_ns / (double)now.wall_ns : 0;
    now.size = report->size;
    memcpy(report, &now, known);
    return FILCH_OK;
}

/* --- As text --- */

static void put_heading(FILE *file, const filch_job *job, const filch_report *report)
{
    double wall = (double)report->wall_ns / 1e6;
    fprintf(file, "job %llu%s%s: %s, %.6g ms on %u devices, of which %u did work\n",
            (unsigned long long)job->sequence, job->label[0] != '\0' ? " " : "", job->label,
            filch_status_name(report->status), wall, report->device_count, report->measured_count);
    fprintf(file, "all work at the best speeds seen: %.6g ms; ", (double)report->area_ns / 1e6);
    if (report->path_ns != 0) {
        fprintf(file, "longest path: %.6g ms; ", (double)report->path_ns / 1e6);
    }
    fprintf(file, "%.1f %% of the larger bound reached\n\n", 100 * report->efficiency);
}

static void put_advice(FILE *file, const filch_report *report, uint64_t items)
{
    fl_advice advice[FL_ADVICE_MOST];
    if (!fl_advice_is_grounded(report, items)) {
        fprintf(file, "\nNo advice%s: work items run: %llu\n",
                report->status == FILCH_NOT_READY ? " yet" : "", (unsigned long long)items);
        return;
    }
    uint32_t count = fl_advise(report, items, advice);
    fprintf(file, "\nWhat to change first:\n");
    for (uint32_t i = 0; i < count; ++i) {
        fprintf(file, "%u. %s\n", i + 1, advice[i].text);
    }
}

filch_status filch_report_print(filch_job *job, filch_graph *graph, FILE *file)
{
    filch_report report = FILCH_REPORT_INIT;
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = job->object.core;
    const fl_memory *memory = &core->memory;
    size_t devices = core->scheduler->device_count, rows = devices + 1;
    if (file == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, PRINT, job->label, "the stream is null");
    }
    filch_losses *losses = fl_alloc(memory, devices * sizeof *losses);
    filch_device_stats *stats = fl_alloc(memory, devices * sizeof *stats);
    fl_loss_row *table = fl_alloc(memory, rows * sizeof *table);
    if (losses == NULL || stats == NULL || table == NULL) {
        status = fl_core_fail(core, FILCH_OUT_OF_MEMORY, PRINT, job->label, "no memory");
    } else {
        status = filch_job_report(job, graph, &report, losses, (uint32_t)devices);
    }
    if (status == FILCH_OK) {
        filch_job_info info = FILCH_JOB_INFO_INIT;
        uint64_t items = 0;
        core->scheduler->job_stats(core->scheduler, job, &info, stats, sizeof *stats,
                                   (uint32_t)devices);
        for (size_t d = 0; d < devices; ++d) {
            table[d] = (fl_loss_row){core->places->devices[d].info.name, losses[d]};
            items += stats[d].tiles;
        }
        table[devices] = (fl_loss_row){"all", report.total};
        put_heading(file, job, &report);
        fl_losses_print(file, table, rows, 1);
        put_advice(file, &report, items);
    }
    fl_free(memory, table, rows * sizeof *table);
    fl_free(memory, stats, devices * sizeof *stats);
    fl_free(memory, losses, devices * sizeof *losses);
    return status;
}
