/* SPDX-License-Identifier: Apache-2.0 */
/* The program of docs/reading-the-report.md: steps on a vector in tiles, and the report of its job.
 * report [TILES [STEPS]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <filch/filch.h>

static int advance(const filch_call *call)
{
    double *x = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        x[i] = sqrt(x[i]) + 1;
    return 0;
}

static double elements(const filch_call *call)
{
    return (double)call->views[0].rows;
}

static filch_status build(filch_runtime *rt, double *values, uint64_t n, uint32_t tiles, int steps,
                          filch_graph **graph)
{
    filch_data_desc vector = FILCH_DATA_DESC_INIT;
    filch_codelet_desc code = FILCH_CODELET_DESC_INIT;
    filch_data *x = NULL;
    filch_codelet *codelet = NULL;
    vector.ptr = values;
    vector.element = sizeof *values;
    vector.rows = n;
    vector.tile_rows = n / tiles;
    code.name = "advance";
    code.host = advance;
    code.work = elements;
    filch_status status = filch_data_create(rt, &vector, &x);
    if (status == FILCH_OK)
        status = filch_codelet_create(rt, &code, &codelet);
    if (status == FILCH_OK)
        status = filch_graph_create(rt, NULL, graph);
    for (int step = 0; step < steps; step++) {
        for (uint32_t tile = 0; tile < tiles && status == FILCH_OK; tile++) {
            filch_access access = FILCH_RW(x, tile, 0);
            filch_task_desc task = FILCH_TASK_DESC_INIT;
            task.codelet = codelet;
            task.accesses = &access;
            task.access_count = 1;
            status = filch_graph_add(*graph, &task, NULL);
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    enum { N = 1000000 };
    static double values[N];
    uint32_t tiles = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 40;
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *rt = NULL;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    if (tiles < 1 || N % tiles != 0 || steps < 1) {
        fprintf(stderr, "usage: report [TILES [STEPS]], TILES a divisor of %d\n", N);
        return 2;
    }
    if (filch_runtime_create(NULL, &error, &rt) != FILCH_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    filch_status status = build(rt, values, N, tiles, steps, &graph);
    for (int run = 0; run < 2 && status == FILCH_OK; run++) { /* the first measures the speeds */
        if (job != NULL)
            filch_job_release(job);
        status = filch_graph_submit(graph, NULL, &job);
        if (status == FILCH_OK)
            status = filch_job_wait(job, -1);
    }
    if (status == FILCH_OK)
        status = filch_report_print(job, graph, stdout);
    if (status != FILCH_OK) {
        filch_runtime_error(rt, &error);
        fprintf(stderr, "%s\n", error.text);
    }
    filch_runtime_abort(rt);
    return status != FILCH_OK;
}
