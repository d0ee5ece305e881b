/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int expected, failed;

void page_expect(int truth, const char *text, const char *function, int line)
{
    expected++;
    if (truth)
        return;
    failed++;
    fprintf(stderr, "%s, line %d: not so: %s\n", function, line, text);
}

int page_end(const char *page)
{
    printf("%s: %d expectations, %d failed\n", page, expected, failed);
    return failed > 0 || expected == 0;
}

static void need(filch_status status, filch_runtime *rt, const char *what)
{
    filch_error error = FILCH_ERROR_INIT;
    if (status == FILCH_OK)
        return;
    if (rt != NULL)
        (void)filch_runtime_error(rt, &error);
    fprintf(stderr, "%s: %s: %s\n", what, filch_status_name(status), error.text);
    exit(1);
}

filch_runtime *start(const char *devices)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *rt = NULL;
    config.devices = devices;
    need(filch_runtime_create(&config, NULL, &rt), NULL, devices);
    return rt;
}

void stop(filch_runtime *rt)
{
    need(filch_runtime_destroy(rt), NULL, "the end of a runtime");
}

filch_codelet *host_codelet(filch_runtime *rt, const char *name, filch_host_fn host, uint32_t flags)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = host;
    desc.flags = flags;
    need(filch_codelet_create(rt, &desc, &codelet), rt, name);
    return codelet;
}

static filch_data *matrix(filch_runtime *rt, double *values, uint64_t rows, uint64_t cols,
                          uint64_t tile_rows, uint64_t tile_cols)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = desc.ld = rows;
    desc.cols = cols;
    desc.tile_rows = tile_rows;
    desc.tile_cols = tile_cols;
    need(filch_data_create(rt, &desc, &data), rt, "a handle");
    return data;
}

filch_data *vector(filch_runtime *rt, double *values, uint64_t rows, uint64_t tile)
{
    return matrix(rt, values, rows, 1, tile, 1);
}

filch_data *square(filch_runtime *rt, double *values, uint64_t n, uint64_t tile)
{
    return matrix(rt, values, n, n, tile, tile);
}

filch_task_desc task_of(filch_codelet *codelet, const filch_access *accesses, uint32_t count)
{
    static filch_access kept[256];
    static uint32_t used;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    page_expect(used + count <= sizeof kept / sizeof *kept, "room for accesses", __func__,
                __LINE__);
    memcpy(&kept[used], accesses, count * sizeof *accesses);
    task.codelet = codelet;
    task.accesses = &kept[used];
    task.access_count = count;
    used += count;
    return task;
}

filch_graph *new_graph(filch_runtime *rt)
{
    filch_graph *graph = NULL;
    need(filch_graph_create(rt, NULL, &graph), rt, "a graph");
    return graph;
}

void add(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses, uint32_t count)
{
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = codelet;
    task.accesses = accesses;
    task.access_count = count;
    need(filch_graph_add(graph, &task, NULL), NULL, "adding a task");
}

filch_status run(filch_graph *graph)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = filch_graph_run(graph, NULL, &error);
    if (status != FILCH_OK)
        fprintf(stderr, "%s: %s\n", filch_status_name(status), error.text);
    return status;
}

filch_status wait_for(filch_job *job)
{
    filch_status status = filch_job_wait(job, -1);
    need(filch_job_release(job), NULL, "the release of a job");
    return status;
}
