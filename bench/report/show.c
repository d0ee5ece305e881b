/* SPDX-License-Identifier: Apache-2.0 */
#include "report/show.h"

#include "report/loss_table.h"
#include "support/stats.h"
#include "support/table.h"

#include <math.h>
#include <string.h>

static void row(bench_table *table, const char *name, const char *value)
{
    bench_table_cell(table, "%s", name);
    bench_table_cell(table, "%s", value);
}

static void seconds_row(bench_table *table, const char *name, const double *seconds, size_t count)
{
    bench_stats stats;
    char median[32], least[32], text[128];
    if (!bench_stats_of(seconds, count, &stats))
        return;
    bench_format_seconds(stats.median, median, sizeof median);
    bench_format_seconds(stats.min, least, sizeof least);
    snprintf(text, sizeof text, "%s  (median of %zu, least %s, noise %.1f %%)", median, count,
             least, 100 * bench_stats_noise(&stats) / stats.median);
    row(table, name, text);
}

static void cores_row(bench_table *table, const char *name, double cpu_s, const double *seconds,
                      size_t count)
{
    double sum = 0;
    char text[64];
    for (size_t k = 0; k < count; k++)
        sum += seconds[k];
    if (sum <= 0)
        return;
    snprintf(text, sizeof text, "%.3f  (processor time over time)", cpu_s / sum);
    row(table, name, text);
}

static void startup_row(bench_table *table, const bench_startup_result *startup)
{
    char driver[32], vendor[32], rest[32], text[160];
    if (!startup->is_known)
        return;
    bench_format_seconds(startup->driver_s, driver, sizeof driver);
    bench_format_seconds(startup->vendor_s, vendor, sizeof vendor);
    bench_format_seconds(startup->rest_s, rest, sizeof rest);
    snprintf(text, sizeof text, "%s  (beside driver and contexts %s, cuBLAS and cuSOLVER %s)", rest,
             driver, vendor);
    row(table, "start-up", text);
}

static void bound_rows(bench_table *table, const bench_result *r)
{
    const bench_bound_result *b = &r->bound;
    char compute[32], transfer[32], moved[32], least[32], text[128];
    if (!b->is_known)
        return;
    bench_format_seconds(b->compute_s, compute, sizeof compute);
    bench_format_seconds(b->transfer_s, transfer, sizeof transfer);
    snprintf(text, sizeof text,
             "%.3f  (time over the longer of kernels %s and links %s, each alone)",
             r->median_s / bench_bound_s(b), compute, transfer);
    row(table, "time over bound", text);
    snprintf(text, sizeof text, "%.1f %%", 100 * bench_bound_s(b) / r->median_s);
    row(table, "of the bound", text);
    bench_format_si(b->bytes, moved, sizeof moved);
    bench_format_si(b->least_bytes, least, sizeof least);
    snprintf(text, sizeof text, "%sB, %.3f of the least possible, %sB", moved,
             b->bytes / b->least_bytes, least);
    row(table, "bytes moved", text);
}

static void overlap_row(bench_table *table, const bench_overlap_result *o)
{
    const unsigned kernels = 1u << BENCH_KERNELS, in = 1u << BENCH_IN, out = 1u << BENCH_OUT;
    const unsigned peer = 1u << BENCH_PEER;
    char text[192];
    if (!o->is_known)
        return;
    snprintf(text, sizeof text,
             "kernels %.0f %%, in %.0f %%, out %.0f %%, peer %.0f %%; kernels with copies %.0f %%, "
             "kernels, in and out %.0f %%%s",
             100 * bench_overlap_of(o, kernels, 0), 100 * bench_overlap_of(o, in, 0),
             100 * bench_overlap_of(o, out, 0), 100 * bench_overlap_of(o, peer, 0),
             100 * bench_overlap_of(o, kernels, in | out | peer),
             100 * bench_overlap_of(o, kernels | in | out, 0),
             o->overwritten != 0 || o->missed != 0 ? "; the trace is not complete" : "");
    row(table, "overlap", text);
}

/* prefix: "" or "its ". */
static void moves_row(bench_table *table, const char *prefix, double moves, double visits)
{
    char name[32], text[64];
    if (!(visits > 0))
        return;
    snprintf(name, sizeof name, "%smoves", prefix);
    snprintf(text, sizeof text, "%.1f %%  (of what is written again, on another device)",
             100 * moves / visits);
    row(table, name, text);
}

static void step_row(bench_table *table, const char *prefix, const bench_result *r, double seconds)
{
    char name[64], text[32];
    if (r->steps == 0)
        return;
    snprintf(name, sizeof name, "%stime per %s", prefix, r->step);
    bench_format_seconds(seconds / (double)r->steps, text, sizeof text);
    row(table, name, text);
}

static void versus_rows(bench_table *table, const bench_result *r, size_t index)
{
    const bench_versus_result *v = &r->versus[index];
    char text[128];
    seconds_row(table, v->name, v->seconds, r->repeat);
    if (v->setting[0])
        row(table, "its best setting", v->setting);
    if (strcmp(r->work_unit, "task") == 0) {
        snprintf(text, sizeof text, "%.1f ns", v->median_s / r->work * 1e9);
        row(table, "its cost per task", text);
    }
    step_row(table, "its ", r, v->median_s);
    moves_row(table, "its ", v->moves, v->visits);
    cores_row(table, "its host cores in use", v->cpu_s, v->seconds, r->repeat);
    snprintf(text, sizeof text, "%.3f  (%s's time over filch's: above 1 filch is faster)", v->ratio,
             v->name);
    row(table, "ratio", text);
}

static bool show_totals(FILE *out, const bench_result *r)
{
    bench_table table = {0};
    char text[128];
    bench_table_column(&table, true, "run");
    bench_table_column(&table, true, "");
    seconds_row(&table, "time", r->seconds, r->repeat);
    if (strcmp(r->work_unit, "task") == 0) {
        snprintf(text, sizeof text, "%.1f ns", r->median_s / r->work * 1e9);
        row(&table, "cost per task", text);
    }
    step_row(&table, "", r, r->median_s);
    bench_format_si(r->rate, text, sizeof text);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s/s", r->work_unit);
    row(&table, "rate", text);
    if (isfinite(r->efficiency)) {
        snprintf(text, sizeof text, "%.1f %%  (of the devices' speeds, each measured alone)",
                 100 * r->efficiency);
        row(&table, "efficiency", text);
    }
    if (isfinite(r->imbalance)) {
        snprintf(text, sizeof text, "%.3f  (longest busy device over their mean)", r->imbalance);
        row(&table, "imbalance", text);
    }
    if (isfinite(r->residual)) {
        snprintf(text, sizeof text, "%.2e", r->residual);
        row(&table, "backward error", text);
    }
    if (r->how[0])
        row(&table, "solved", r->how);
    moves_row(&table, "", r->moves, r->visits);
    row(&table, "checked", r->checked ? "yes" : "no");
    cores_row(&table, "host cores in use", r->cpu_s, r->seconds, r->repeat);
    bound_rows(&table, r);
    overlap_row(&table, &r->overlap);
    startup_row(&table, &r->startup);
    for (size_t k = 0; k < r->versus_count; k++)
        versus_rows(&table, r, k);
    bool printed = bench_table_print(&table, out);
    bench_table_free(&table);
    return printed;
}

static void seconds_cell(bench_table *table, double seconds, size_t repeat)
{
    char text[32];
    bench_format_seconds(seconds / (double)repeat, text, sizeof text);
    bench_table_cell(table, "%s", isfinite(seconds) ? text : "-");
}

static bool show_devices(FILE *out, const bench_result *r)
{
    static const char *const titles[] = {"score",    "speed",     "busy",      "idle",
                                         "waiting",  "tiles",     "in",        "out",
                                         "bytes in", "bytes out", "from peers"};
    bench_table table = {0};
    bench_table_column(&table, true, "device");
    for (size_t k = 0; k < sizeof titles / sizeof *titles; k++)
        bench_table_column(&table, false, titles[k]);
    for (size_t d = 0; d < r->device_count; d++) {
        const bench_device_result *device = &r->devices[d];
        char text[32];
        bench_table_cell(&table, "%s", device->name);
        bench_table_cell(&table, "%.4g", device->score);
        bench_format_si(device->speed, text, sizeof text);
        if (isfinite(device->speed))
            bench_table_cell(&table, "%s%s/s", text, r->work_unit);
        else
            bench_table_cell(&table, "-");
        seconds_cell(&table, device->busy_s, r->repeat);
        seconds_cell(&table, device->idle_s, r->repeat);
        seconds_cell(&table, device->transfer_s, r->repeat);
        bench_table_cell(&table, "%.1f", (double)device->tiles / (double)r->repeat);
        bench_table_cell(&table, "%.1f", (double)device->stolen_in / (double)r->repeat);
        bench_table_cell(&table, "%.1f", (double)device->stolen_out / (double)r->repeat);
        bench_format_si((double)device->bytes_in / (double)r->repeat, text, sizeof text);
        bench_table_cell(&table, "%sB", text);
        bench_format_si((double)device->bytes_out / (double)r->repeat, text, sizeof text);
        bench_table_cell(&table, "%sB", text);
        bench_format_si((double)device->bytes_peer / (double)r->repeat, text, sizeof text);
        bench_table_cell(&table, "%sB", text);
    }
    bool printed = bench_table_print(&table, out);
    bench_table_free(&table);
    return printed;
}

bool bench_show(FILE *out, const bench_result *result)
{
    bool totals = show_totals(out, result);
    fputs("\nMeans of a run; in and out are tiles stolen from others and by others.\n", out);
    return show_devices(out, result) && bench_losses_show(out, result) && totals;
}
