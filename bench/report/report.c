/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "report/loss_table.h"
#include "support/file_out.h"
#include "support/table.h"

#include <math.h>
#include <string.h>

#define CHART_WIDTH 820.0
#define LABEL_WIDTH 130.0
#define PLOT_WIDTH (CHART_WIDTH - LABEL_WIDTH - 100.0)
#define ROW_HEIGHT 26.0
#define REPEAT_HEIGHT 220.0

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--fg:#1c2330;--bg:#fff;--line:#cfd5de;--busy:#2463a8;"
    "--wait:#d8892b;--idle:#c9ced6;--peer:#8a5aa8}\n"
    "@media(prefers-color-scheme:dark){:root{--fg:#e4e8ee;--bg:#161a20;--line:#3a424e;"
    "--busy:#5b9be0;--wait:#e0a552;--idle:#4a525e;--peer:#b58ad0}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);"
    "max-width:860px;margin:2em auto;padding:0 1em}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25em .8em;border-bottom:1px solid var(--line);text-align:right}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    ".scroll{overflow-x:auto}svg{max-width:100%;height:auto}svg text{font-size:12px;"
    "fill:var(--fg)}\n"
    ".busy{fill:var(--busy)}.wait{fill:var(--wait)}.idle{fill:var(--idle)}.peer{fill:var(--peer)}\n"
    ".median{stroke:var(--fg);stroke-dasharray:5 4}.axis{stroke:var(--line)}\n"
    "</style>\n";

static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            putc(*text, out);
        }
    }
}

static double positive(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

static void print_seconds(FILE *out, double seconds)
{
    char text[32];
    bench_format_seconds(seconds, text, sizeof text);
    fputs(isfinite(seconds) ? text : "&#8211;", out);
}

static void print_figure(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.4g", value);
    else
        fputs("&#8211;", out);
}

static void print_rate(FILE *out, double value, const char *unit)
{
    char text[32];
    bench_format_si(value, text, sizeof text);
    if (!isfinite(value)) {
        fputs("&#8211;", out);
        return;
    }
    fprintf(out, "%s%s", text, strchr(text, ' ') ? "" : " ");
    print_escaped(out, unit);
}

static void print_summary(FILE *out, const bench_result *r)
{
    fputs("<table>\n<tr><th>time (median)<td>", out);
    print_seconds(out, r->median_s);
    fputs("\n<tr><th>rate<td>", out);
    print_rate(out, r->rate, r->work_unit);
    fputs("/s\n<tr><th>efficiency<td>", out);
    print_figure(out, r->efficiency);
    fputs("\n<tr><th>imbalance<td>", out);
    print_figure(out, r->imbalance);
    fputs("\n<tr><th>residual<td>", out);
    if (isfinite(r->residual))
        fprintf(out, "%.2e", r->residual);
    else
        fputs("&#8211;", out);
    fprintf(out, "\n<tr><th>checked<td>%s\n", r->checked ? "yes" : "no");
    if (r->bound.is_known) {
        fputs("<tr><th>time over that of links or kernels alone<td>", out);
        print_figure(out, r->median_s / bench_bound_s(&r->bound));
        fputs("\n<tr><th>bytes moved over the least possible<td>", out);
        print_figure(out, r->bound.bytes / r->bound.least_bytes);
        putc('\n', out);
    }
    for (size_t k = 0; k < r->versus_count; k++) {
        const bench_versus_result *v = &r->versus[k];
        fputs("<tr><th>", out);
        print_escaped(out, v->name);
        if (v->setting[0])
            fprintf(out, ", %s", v->setting);
        fputs(" (median)<td>", out);
        print_seconds(out, v->median_s);
        fputs("\n<tr><th>ratio, above 1 filch is faster<td>", out);
        print_figure(out, v->ratio);
        putc('\n', out);
    }
    fputs("</table>\n", out);
}

static void print_repeat_bar(FILE *out, const char *class, double x, double width, double seconds,
                             double longest)
{
    double height = longest > 0 ? REPEAT_HEIGHT * positive(seconds) / longest : 0;
    fprintf(out, "<rect class=%s x=%.2f y=%.2f width=%.2f height=%.2f><title>", class, x,
            10 + REPEAT_HEIGHT - height, width, height);
    print_seconds(out, seconds);
    fputs("</title></rect>\n", out);
}

static void print_repeats(FILE *out, const bench_result *r)
{
    double longest = 0;
    for (size_t k = 0; k < r->repeat; k++) {
        longest = fmax(longest, positive(r->seconds[k]));
        for (size_t v = 0; v < r->versus_count; v++)
            longest = fmax(longest, positive(r->versus[v].seconds[k]));
    }
    double slot = r->repeat ? (CHART_WIDTH - LABEL_WIDTH) / (double)r->repeat : 0;
    double bar = slot * 0.8 / (double)(1 + r->versus_count);
    double base = 10 + REPEAT_HEIGHT;
    fprintf(out,
            "<svg viewBox=\"0 0 %.0f %.0f\" width=%.0f role=img aria-label=\"time of each "
            "repeat\">\n",
            CHART_WIDTH, base + 24, CHART_WIDTH);
    for (size_t k = 0; k < r->repeat; k++) {
        double x = LABEL_WIDTH + slot * (double)k;
        print_repeat_bar(out, "busy", x, bar, r->seconds[k], longest);
        for (size_t v = 0; v < r->versus_count; v++)
            print_repeat_bar(out, "peer", x + bar * (double)(1 + v), bar, r->versus[v].seconds[k],
                             longest);
    }
    double median = longest > 0 ? base - REPEAT_HEIGHT * positive(r->median_s) / longest : base;
    fprintf(out,
            "<line class=axis x1=%.0f y1=%.1f x2=%.0f y2=%.1f /><line class=median x1=%.0f "
            "y1=%.1f x2=%.0f y2=%.1f />\n<text x=0 y=%.1f>median ",
            LABEL_WIDTH, base, CHART_WIDTH, base, LABEL_WIDTH, median, CHART_WIDTH, median,
            median + 4);
    print_seconds(out, r->median_s);
    fprintf(out, "</text><text x=%.0f y=%.1f>repeat 1 to %zu</text>\n</svg>\n", LABEL_WIDTH,
            base + 18, r->repeat);
}

static void print_segment(FILE *out, const char *class, const char *what, double y, double seconds,
                          double scale, double *x)
{
    double width = positive(seconds) * scale;
    if (width > 0) {
        fprintf(out, "<rect class=%s x=%.2f y=%.2f width=%.2f height=%.0f><title>%s ", class, *x,
                y + 4, width, ROW_HEIGHT - 8, what);
        print_seconds(out, seconds);
        fputs("</title></rect>", out);
    }
    *x += width;
}

static void print_device_bars(FILE *out, const bench_result *r)
{
    double longest = 0;
    for (size_t d = 0; d < r->device_count; d++) {
        const bench_device_result *device = &r->devices[d];
        longest = fmax(longest, positive(device->busy_s) + positive(device->transfer_s) +
                                    positive(device->idle_s));
    }
    double scale = longest > 0 ? PLOT_WIDTH / longest : 0;
    fprintf(out,
            "<svg viewBox=\"0 0 %.0f %.0f\" width=%.0f role=img aria-label=\"busy, waiting and "
            "idle time of each device\">\n",
            CHART_WIDTH, ROW_HEIGHT * (double)(r->device_count + 1), CHART_WIDTH);
    for (size_t d = 0; d < r->device_count; d++) {
        const bench_device_result *device = &r->devices[d];
        double y = ROW_HEIGHT * (double)d;
        double x = LABEL_WIDTH;
        fprintf(out, "<text x=0 y=%.1f>", y + ROW_HEIGHT * 0.65);
        print_escaped(out, device->name);
        fputs("</text>", out);
        print_segment(out, "busy", "busy", y, device->busy_s, scale, &x);
        print_segment(out, "wait", "waiting for data", y, device->transfer_s, scale, &x);
        print_segment(out, "idle", "idle", y, device->idle_s, scale, &x);
        double all = (x - LABEL_WIDTH) / (scale > 0 ? scale : 1);
        fprintf(out, "<text x=%.1f y=%.1f>%.1f %% busy</text>\n", x + 6, y + ROW_HEIGHT * 0.65,
                all > 0 ? 100 * positive(device->busy_s) / all : 0);
    }
    double y = ROW_HEIGHT * (double)r->device_count;
    static const char *const legend[][2] = {
        {"busy", "busy"}, {"wait", "waiting for data"}, {"idle", "idle"}};
    for (size_t k = 0; k < 3; k++) {
        double x = LABEL_WIDTH + 150 * (double)k;
        fprintf(out, "<rect class=%s x=%.0f y=%.1f width=12 height=12 /><text x=%.0f y=%.1f>%s",
                legend[k][0], x, y + 7, x + 18, y + 17, legend[k][1]);
        fputs("</text>", out);
    }
    fputs("\n</svg>\n", out);
}

static void print_devices(FILE *out, const bench_result *r)
{
    fputs("<div class=scroll><table>\n<tr><th>device<th>model<th>score<th>speed<th>busy<th>waiting"
          "<th>idle<th>tiles<th>stolen in<th>stolen out<th>bytes in<th>bytes out<th>from peers\n",
          out);
    for (size_t d = 0; d < r->device_count; d++) {
        const bench_device_result *device = &r->devices[d];
        fputs("<tr><td>", out);
        print_escaped(out, device->name);
        fputs("<td>", out);
        print_escaped(out, device->model);
        fputs("<td>", out);
        print_figure(out, device->score);
        fputs("<td>", out);
        print_rate(out, device->speed, r->work_unit);
        fputs("/s<td>", out);
        print_seconds(out, device->busy_s);
        fputs("<td>", out);
        print_seconds(out, device->transfer_s);
        fputs("<td>", out);
        print_seconds(out, device->idle_s);
        const uint64_t counts[] = {device->tiles,    device->stolen_in, device->stolen_out,
                                   device->bytes_in, device->bytes_out, device->bytes_peer};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            fprintf(out, "<td>%llu", (unsigned long long)counts[k]);
        putc('\n', out);
    }
    fputs("</table></div>\n", out);
}

static void print_losses(FILE *out, const bench_result *r)
{
    const bench_loss_part *parts = bench_loss_parts();
    filch_losses total = bench_losses_total(r);
    if (r->losses.runs == 0)
        return;
    fputs("<h2>Where the time went</h2>\n<p>In per cent of each device's time. The runs reached ",
          out);
    print_figure(out, 100 * bench_loss_efficiency(&r->losses));
    fputs(" % of what the best speeds seen and the longest path allow (", out);
    print_seconds(out, bench_loss_bound_s(&r->losses));
    fputs(").</p>\n<div class=scroll><table>\n<tr><th>device", out);
    for (size_t k = 0; k < BENCH_LOSS_PARTS; k++)
        fprintf(out, "<th>%s", parts[k].title);
    for (size_t d = 0; d <= r->device_count; d++) {
        bool is_sum = d == r->device_count;
        const filch_losses *losses = is_sum ? &total : &r->devices[d].losses;
        fputs("\n<tr><td>", out);
        print_escaped(out, is_sum ? "all" : r->devices[d].name);
        for (size_t k = 0; k < BENCH_LOSS_PARTS; k++)
            fprintf(out, "<td>%.2f", 100 * bench_loss_share(losses, &parts[k]));
    }
    fputs("\n</table></div>\n", out);
}

void bench_report_print(FILE *out, const bench_result *result)
{
    fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
          "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<title>filch: ",
          out);
    print_escaped(out, result->workload);
    fprintf(out, "</title>\n%s</head><body>\n<h1>", style);
    print_escaped(out, result->workload);
    fprintf(out, "</h1>\n<p>n = %zu, tile %zu, ", result->n, result->tile);
    print_escaped(out, result->precision);
    fputs(" precision, policy ", out);
    print_escaped(out, result->policy);
    fprintf(out, ", %zu repeats, %zu devices</p>\n", result->repeat, result->device_count);
    print_summary(out, result);
    fputs("<h2>Time of each repeat</h2>\n", out);
    if (result->versus_count != 0) {
        fputs("<p>Left filch, right ", out);
        for (size_t k = 0; k < result->versus_count; k++) {
            fputs(k == 0 ? "" : ", ", out);
            print_escaped(out, result->versus[k].name);
        }
        fputs("; interleaved.</p>\n", out);
    }
    print_repeats(out, result);
    fputs("<h2>Devices</h2>\n<p>Summed over the repeats.</p>\n", out);
    print_device_bars(out, result);
    print_devices(out, result);
    print_losses(out, result);
    fputs("</body></html>\n", out);
}

filch_status bench_report_write(const char *path, const bench_result *result, filch_error *error)
{
    bench_file file;
    filch_status status = bench_file_begin(&file, path, error);
    if (status != FILCH_OK)
        return status;
    bench_report_print(file.stream, result);
    return bench_file_end(&file, error);
}
