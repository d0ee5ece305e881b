/* SPDX-License-Identifier: Apache-2.0 */
/* Recording: the rings of a runtime, the start and end of recording, and the files written from the
 * rings. */
#define _POSIX_C_SOURCE 200809L
#include "tracing.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "filch/report.h"
#include "graph/build/structure_trace.h"
#include "graph/job/job_figures.h"
#include "observe/page.h"

_Static_assert(FL_TRACE_COPY_RINGS == FL_COPY_LANES, "a ring for each lane");

/* Number of the runtime's rings: the length of rt->rings. */
static size_t ring_count(const filch_runtime *rt)
{
    return (1 + FL_COPY_LANES) * rt->pool.count;
}

static void free_rings(filch_runtime *rt)
{
    for (size_t i = 0; i < ring_count(rt); ++i) {
        fl_trace_ring_free(&rt->core.memory, rt->rings[i]);
        rt->rings[i] = NULL;
    }
    fl_job_trace_free(rt->logbook);
    rt->logbook = NULL;
}

static fl_trace_ring **copy_rings(const filch_runtime *rt, uint32_t device)
{
    return &rt->rings[rt->pool.count + FL_COPY_LANES * (size_t)device];
}

/* Makes every ring or leaves no ring. A non-null rt->rings[0] tells of a complete set. */
static filch_status make_rings(filch_runtime *rt)
{
    for (size_t i = 0; i < ring_count(rt); ++i) {
        size_t device = i < rt->pool.count ? i : (i - rt->pool.count) / FL_COPY_LANES;
        if (i < rt->pool.count || rt->pool.devices[device].backend->trace != NULL) {
            rt->rings[i] =
                fl_trace_ring_new(&rt->core.memory, (uint64_t)rt->core.settings.trace_events);
            if (rt->rings[i] == NULL) {
                free_rings(rt);
                return FILCH_OUT_OF_MEMORY;
            }
        }
    }
    rt->logbook = fl_job_trace_new(&rt->core, (uint64_t)rt->core.settings.trace_events);
    if (rt->logbook == NULL) {
        free_rings(rt);
        return FILCH_OUT_OF_MEMORY;
    }
    return FILCH_OK;
}

static void free_report(filch_runtime *rt)
{
    if (rt->report != NULL) {
        fl_free(&rt->core.memory, rt->report, strlen(rt->report) + 1);
        rt->report = NULL;
    }
}

/* Makes rt->report from the setting: the program may change its working directory later. */
static filch_status find_report(filch_runtime *rt, filch_error *error)
{
    const char *path = rt->core.settings.report;
    fl_fault fault = {.status = FILCH_IO, .call = "filch_runtime_create", .label = "FILCH_REPORT"};
    char folder[PATH_MAX] = "";
    if (path[0] == '\0') {
        return FILCH_OK;
    }
    if (path[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        fault.native_code = errno;
        return fl_error_fill(error, fault,
                             "FILCH_REPORT is \"%s\", and the working directory has no path", path);
    }
    const char *between = folder[0] != '\0' ? "/" : "";
    size_t bytes = strlen(folder) + strlen(between) + strlen(path) + 1;
    rt->report = fl_alloc_zeroed(&rt->core.memory, bytes);
    if (rt->report == NULL) {
        fault.status = FILCH_OUT_OF_MEMORY;
        return fl_error_fill(error, fault, "no memory for the report's path");
    }
    snprintf(rt->report, bytes, "%s%s%s", folder, between, path);
    return FILCH_OK;
}

/* Tells the meter whether jobs are in progress. Relaxed: a sample more or less. */
static bool has_jobs(const fl_core *core)
{
    return fl_load_relaxed(&core->jobs->running) != 0;
}

static filch_status make_meter(filch_runtime *rt)
{
    uint32_t count = (uint32_t)rt->pool.count;
    filch_status status = fl_meter_init(&rt->meter, &rt->core, count, has_jobs);
    for (uint32_t i = 0; i < count && status == FILCH_OK; ++i) {
        if (rt->pool.devices[i].info.pci[0] != '\0') {
            fl_meter_add(&rt->meter, i, rt->pool.devices[i].info.pci);
        }
    }
    return status;
}

filch_status fl_tracing_init(filch_runtime *rt, filch_error *error)
{
    filch_status status = find_report(rt, error);
    if (status != FILCH_OK) {
        return status;
    }
    size_t bytes = ring_count(rt) * sizeof *rt->rings;
    rt->rings = fl_alloc_zeroed(&rt->core.memory, bytes);
    status = rt->rings == NULL ? FILCH_OUT_OF_MEMORY : make_meter(rt);
    if (status != FILCH_OK) {
        fl_fault fault = {.status = status, .call = "filch_runtime_create"};
        fl_free(&rt->core.memory, rt->rings, bytes);
        free_report(rt);
        return fl_error_fill(error, fault, "no memory for the trace");
    }
    return FILCH_OK;
}

void fl_tracing_fini(filch_runtime *rt)
{
    fl_meter_fini(&rt->meter);
    free_rings(rt);
    free_report(rt);
    fl_free(&rt->core.memory, rt->rings, ring_count(rt) * sizeof *rt->rings);
}

void fl_tracing_stop(filch_runtime *rt)
{
    fl_meter_stop(&rt->meter);
    fl_store_release(&rt->jobs.logbook, NULL);
    for (uint32_t i = 0; i < rt->sched.count; ++i) {
        const fl_backend *backend = rt->pool.devices[i].backend;
        fl_store_release(&rt->sched.workers[i].call.trace, NULL);
        if (backend->trace != NULL) {
            backend->trace->stop(&rt->pool.devices[i]);
        }
    }
}

filch_status fl_tracing_start(filch_runtime *rt)
{
    filch_status status = rt->rings[0] == NULL ? make_rings(rt) : FILCH_OK;
    for (uint32_t i = 0; i < rt->sched.count && status == FILCH_OK; ++i) {
        fl_device *device = &rt->pool.devices[i];
        fl_trace_ring **copies = copy_rings(rt, i);
        if (device->backend->trace != NULL) {
            status = device->backend->trace->start(device, &rt->core.memory, copies);
        }
    }
    status = status == FILCH_OK ? fl_meter_start(&rt->meter) : status;
    if (status != FILCH_OK) {
        fl_tracing_stop(rt);
        return status;
    }
    for (uint32_t i = 0; i < rt->sched.count; ++i) {
        fl_store_release(&rt->sched.workers[i].call.trace, rt->rings[i]);
    }
    fl_store_release(&rt->jobs.logbook, rt->logbook);
    return FILCH_OK;
}

/* Stops or resumes writing to the copies' rings; call with true before reading, with false after
 * reading. */
static void hold_copies(filch_runtime *rt, bool begins)
{
    fl_mutex_lock(&rt->core.lock); /* no trace starts while the lock is held */
    for (uint32_t i = 0; i < rt->sched.count; ++i) {
        const fl_backend *backend = rt->pool.devices[i].backend;
        if (backend->trace != NULL && backend->trace->hold != NULL) {
            backend->trace->hold(&rt->pool.devices[i], begins);
        }
    }
    fl_mutex_unlock(&rt->core.lock);
}

filch_status filch_trace_start(filch_runtime *rt)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_mutex_lock(&rt->core.lock);
    status = fl_tracing_start(rt);
    fl_mutex_unlock(&rt->core.lock);
    return status == FILCH_OK ? FILCH_OK
                              : fl_core_fail(&rt->core, status, "filch_trace_start", NULL,
                                             "no memory for the trace");
}

filch_status filch_trace_stop(filch_runtime *rt)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status == FILCH_OK) {
        fl_tracing_stop(rt);
    }
    return status;
}

/* Returns the budget of the device's own memory in bytes; 0: no own memory, or no limit. */
static uint64_t budget_of(const filch_runtime *rt, const fl_device *device)
{
    bool is_own = rt->places.count > 1 && device->place != 0;
    uint64_t budget = is_own ? rt->places.at[device->place].budget : 0;
    return budget < INT64_MAX ? budget : 0;
}

/* Callback of fl_trace_write: writes the devices with the scheduler's scores and budgets, then the
 * structure of jobs. */
static void put_outline(FILE *file, fl_core *core)
{
    filch_runtime *rt = (filch_runtime *)(void *)core;
    for (uint32_t i = 0; i < rt->sched.count; ++i) {
        const fl_device *device = &rt->pool.devices[i];
        double score = rt->sched.scores[i];
        fprintf(file, "%s{\"name\":\"", i != 0 ? "," : ",\"devices\":[");
        fl_trace_put_text(file, device->info.name);
        fprintf(file, "\",\"score\":%.17g,\"memory\":%llu}", isfinite(score) ? score : 0,
                (unsigned long long)budget_of(rt, device));
    }
    fprintf(file, "]");
    fl_meter_write(file, &rt->meter, false, 0);
    fl_structure_trace_write(file, rt->logbook);
}

/* Checks that the rings can be read now; records the failure under the call's name. */
static filch_status check_readable(filch_runtime *rt, const char *path, const char *call)
{
    filch_status status = fl_object_check_for(rt, FL_MAGIC_RUNTIME, call);
    if (status != FILCH_OK) {
        return status;
    }
    status = path == NULL              ? FILCH_INVALID_ARGUMENT
             : rt->rings[0] == NULL    ? FILCH_WRONG_STATE
             : !fl_runtime_is_idle(rt) ? FILCH_BUSY
                                       : FILCH_OK;
    return status == FILCH_OK ? FILCH_OK
                              : fl_core_fail(&rt->core, status, call, NULL, "%s",
                                             path == NULL           ? "the path is null"
                                             : rt->rings[0] == NULL ? "nothing was ever recorded"
                                                                    : "a job runs");
}

/* Returns the devices and their rings, to be freed by drop_lanes, with copies held back. Null: no
 * memory, recorded under the call's name. */
static fl_trace_lane *take_lanes(filch_runtime *rt, const char *call)
{
    fl_trace_lane *lanes = fl_alloc(&rt->core.memory, rt->sched.count * sizeof *lanes);
    if (lanes == NULL) {
        fl_core_fail(&rt->core, FILCH_OUT_OF_MEMORY, call, NULL, "no memory");
        return NULL;
    }
    for (uint32_t i = 0; i < rt->sched.count; ++i) {
        fl_trace_ring **copies = copy_rings(rt, i);
        lanes[i] = (fl_trace_lane){.device = rt->pool.devices[i].info.name, .ring = rt->rings[i]};
        for (uint32_t k = 0; k < FL_COPY_LANES; ++k) {
            lanes[i].copies[k] = copies[k];
        }
    }
    hold_copies(rt, true);
    return lanes;
}

static void drop_lanes(filch_runtime *rt, fl_trace_lane *lanes)
{
    hold_copies(rt, false);
    fl_free(&rt->core.memory, lanes, rt->sched.count * sizeof *lanes);
}

filch_status filch_trace_write(filch_runtime *rt, const char *path)
{
    static const char call[] = "filch_trace_write";
    filch_status status = check_readable(rt, path, call);
    if (status != FILCH_OK) {
        return status;
    }
    fl_trace_lane *lanes = take_lanes(rt, call);
    if (lanes == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    status =
        fl_trace_write(path, lanes, rt->sched.count, rt->logbook->jobs, &rt->core, put_outline);
    drop_lanes(rt, lanes);
    return status;
}

/* --- Reports --- */

/* Callback of fl_page_put. */
static void put_figures(FILE *file, fl_core *core, uint64_t origin)
{
    static const char *const backends[] = {"", "host", "cuda", "sim"};
    filch_runtime *rt = (filch_runtime *)(void *)core;
    for (uint32_t i = 0; i < rt->sched.count; ++i) {
        const fl_device *device = &rt->pool.devices[i];
        double score = rt->sched.scores[i];
        fprintf(file, "%s{\"name\":\"", i != 0 ? ",\n" : ",\n\"devices\":[\n");
        fl_trace_put_text(file, device->info.name);
        fprintf(file, "\",\"model\":\"");
        fl_trace_put_text(file, device->info.model);
        fprintf(file, "\",\"backend\":\"%s\",\"team\":%u,\"score\":%.17g,\"memory\":%llu}",
                backends[device->info.backend], (unsigned)device->info.team,
                isfinite(score) ? score : 0, (unsigned long long)budget_of(rt, device));
    }
    fprintf(file, "]");
    fl_meter_write(file, &rt->meter, true, origin);
    fl_job_figures_write(file, rt->logbook, origin);
}

filch_status fl_tracing_page(filch_runtime *rt, const char *path,
                             void (*put_more)(FILE *file, const void *user), const void *user)
{
    static const char call[] = "filch_report_write";
    filch_status status = check_readable(rt, path, call);
    if (status != FILCH_OK) {
        return status;
    }
    fl_trace_lane *lanes = take_lanes(rt, call);
    if (lanes == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    fl_job_trace_graphs(rt->logbook);
    const fl_page page = {.core = &rt->core,
                          .lanes = lanes,
                          .count = rt->sched.count,
                          .jobs = rt->logbook->jobs,
                          .put_figures = put_figures,
                          .put_more = put_more,
                          .user = user};
    status = fl_page_write(path, &page, call);
    drop_lanes(rt, lanes);
    return status;
}

filch_status filch_report_write(filch_runtime *rt, const char *path)
{
    return fl_tracing_page(rt, path, NULL, NULL);
}

/* --- Setting FILCH_REPORT --- */

#define SUFFIX ".html"

filch_status fl_tracing_check(const fl_settings *settings, filch_error *error)
{
    const char *path = settings->report;
    fl_fault fault = {
        .status = FILCH_PARSE, .call = "filch_runtime_create", .label = "FILCH_REPORT"};
    size_t length = strlen(path), suffix = strlen(SUFFIX);
    fl_output output;
    char why[FL_OUTPUT_WHY];
    if (length == 0) {
        return FILCH_OK;
    }
    if (length <= suffix || strcmp(path + length - suffix, SUFFIX) != 0) {
        return fl_error_fill(error, fault,
                             "FILCH_REPORT is \"%s\"; allowed is the path of a file " SUFFIX, path);
    }
    if (!fl_output_can(&output, path)) {
        fault.status = FILCH_IO;
        fault.native_code = output.code;
        return fl_error_fill(error, fault, "FILCH_REPORT is \"%s\", which cannot be written: %s",
                             path, fl_output_why(&output, why));
    }
    return FILCH_OK;
}

void fl_tracing_keep_report(filch_runtime *rt)
{
    filch_error error = FILCH_ERROR_INIT;
    if (rt->report != NULL && filch_report_write(rt, rt->report) != FILCH_OK) {
        (void)fl_error_fetch(&rt->core.errors, &error);
        fl_log_write(&rt->core.log, FILCH_LOG_WARNING, "the report is not written: %s", error.text);
    }
}
