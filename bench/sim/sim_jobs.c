/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_jobs.h"

#include "support/fail.h"
#include "support/table.h"

#include <string.h>

#define MOST_ROWS 20

typedef struct row {
    const bench_sim_job *job; /* the first */
    size_t runs, tiles;
    double recorded_s, predicted_s;
} row;

typedef struct rows {
    size_t count;
    row at[MOST_ROWS + 1]; /* the last is the rest */
} rows;

static uint32_t codelet_of(const bench_sim_record *record, const bench_sim_job *job)
{
    return record->tiles[job->first].codelet;
}

static bool is_alike(const bench_sim_record *record, const bench_sim_job *a, const bench_sim_job *b)
{
    return strcmp(a->name, b->name) == 0 && a->is_batch == b->is_batch && a->graph == b->graph &&
           (a->graph != NULL || codelet_of(record, a) == codelet_of(record, b));
}

static void add_job(rows *r, const bench_sim_record *record, const bench_sim_job *job,
                    double predicted_s)
{
    size_t k = 0;
    while (k < r->count && k < MOST_ROWS && !is_alike(record, r->at[k].job, job))
        k++;
    if (k == r->count)
        r->at[r->count++] = (row){.job = job};
    r->at[k].runs++;
    r->at[k].tiles += job->count;
    r->at[k].recorded_s += (job->end_us - job->start_us) / 1e6;
    r->at[k].predicted_s += predicted_s;
}

static void show_name(bench_table *table, const bench_sim_record *record, const rows *r, size_t k)
{
    const bench_sim_job *job = r->at[k].job;
    const char *name = job->name[0] != '\0' ? job->name : job->is_batch ? "batch" : "graph";
    bool is_labelled = strcmp(name, "graph") != 0;
    if (k == MOST_ROWS)
        bench_table_cell(table, "others");
    else if (job->graph != NULL)
        bench_table_cell(table, "%s%sgraph %llu", is_labelled ? name : "", is_labelled ? ", " : "",
                         (unsigned long long)job->graph->number);
    else
        bench_table_cell(table, "%s, %s", name, record->codelets[codelet_of(record, job)]);
}

filch_status bench_sim_jobs_show(const bench_sim_record *record,
                                 const bench_sim_prediction *prediction, FILE *out,
                                 filch_error *error)
{
    rows r = {0};
    bench_table table = {0};
    for (size_t k = 0; k < record->job_count; k++)
        add_job(&r, record, &record->jobs[k], prediction->job_s[k]);
    bench_table_column(&table, true, "job");
    bench_table_column(&table, false, "runs");
    bench_table_column(&table, false, "tiles");
    bench_table_column(&table, false, "recorded");
    bench_table_column(&table, false, "simulated");
    bench_table_column(&table, false, "change");
    for (size_t k = 0; k < r.count; k++) {
        show_name(&table, record, &r, k);
        bench_table_cell(&table, "%zu", r.at[k].runs);
        bench_table_cell(&table, "%zu", r.at[k].tiles);
        bench_table_cell(&table, "%.4g ms", r.at[k].recorded_s * 1e3);
        bench_table_cell(&table, "%.4g ms", r.at[k].predicted_s * 1e3);
        if (r.at[k].recorded_s > 0)
            bench_table_cell(&table, "%+.1f %%",
                             (r.at[k].predicted_s / r.at[k].recorded_s - 1) * 100);
        else
            bench_table_cell(&table, "-");
    }
    bool is_printed = bench_table_print(&table, out);
    bench_table_free(&table);
    return is_printed ? FILCH_OK
                      : bench_fail(error, FILCH_IO, "standard output", 0, "cannot be written");
}
