/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program against the installed package; valid C11 and C++17. */
#include <stdio.h>

#include <filch/filch.h>

typedef struct shift {
    int by;
} shift;

static int add(const filch_call *call)
{
    const shift *args = (const shift *)call->args;
    int *values = (int *)call->views[0].ptr;

    for (uint64_t i = 0; i < call->views[0].rows; i++) {
        values[i] += args->by;
    }
    return 0;
}

static filch_status build(filch_runtime *runtime, int *values, filch_graph **graph)
{
    filch_codelet_desc codelet_desc = FILCH_CODELET_DESC_INIT;
    filch_data_desc data_desc = FILCH_DATA_DESC_INIT;
    filch_graph_desc graph_desc = FILCH_GRAPH_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_data *data = NULL;

    codelet_desc.name = "add";
    codelet_desc.host = add;
    codelet_desc.arg_size = sizeof(shift);
    data_desc.ptr = values;
    data_desc.element = sizeof(int);
    data_desc.rows = 4;
    data_desc.tile_rows = 2;
    filch_status status = filch_codelet_create(runtime, &codelet_desc, &codelet);
    if (status == FILCH_OK) {
        status = filch_data_create(runtime, &data_desc, &data);
    }
    if (status == FILCH_OK) {
        status = filch_graph_create(runtime, &graph_desc, graph);
    }
    for (uint32_t tile = 0; status == FILCH_OK && tile < 2; tile++) {
        shift args = {10};
        filch_access access = FILCH_RW(data, tile, 0);
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = codelet;
        task.args = &args;
        task.accesses = &access;
        task.access_count = 1;
        status = filch_graph_add(*graph, &task, NULL);
    }
    return status;
}

int main(void)
{
    int values[4] = {1, 2, 3, 4};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    filch_graph *graph = NULL;
    filch_job *job = NULL;

    config.devices = "host:1";
    filch_status status = filch_runtime_create(&config, &error, &runtime);
    if (status == FILCH_OK) {
        status = build(runtime, values, &graph);
    }
    if (status == FILCH_OK) {
        status = filch_graph_submit(graph, NULL, &job);
    }
    if (status == FILCH_OK) {
        status = filch_job_wait(job, -1);
    }
    if (status == FILCH_OK) {
        status = filch_runtime_abort(runtime);
    }
    printf("%s: %d %d %d %d\n", filch_status_message(status), values[0], values[1], values[2],
           values[3]);
    return status == FILCH_OK && values[0] == 11 && values[3] == 14 ? 0 : 1;
}
