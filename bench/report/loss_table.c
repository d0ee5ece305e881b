/* SPDX-License-Identifier: Apache-2.0 */
#include "report/loss_table.h"

#include "support/table.h"

#include "observe/losses.h"

#include <math.h>
#include <stdlib.h>

filch_losses bench_losses_total(const bench_result *r)
{
    filch_losses total = {0};
    for (size_t d = 0; d < r->device_count; d++)
        fl_losses_add(&total, &r->devices[d].losses);
    return total;
}

double bench_loss_bound_s(const bench_loss_result *losses)
{
    return fmax(losses->area_s / (double)losses->runs, losses->path_s);
}

double bench_loss_efficiency(const bench_loss_result *losses)
{
    return losses->wall_s > 0 ? bench_loss_bound_s(losses) * (double)losses->runs / losses->wall_s
                              : NAN;
}

/* --- Text --- */

bool bench_losses_show(FILE *out, const bench_result *r)
{
    const bench_loss_result *of = &r->losses;
    char area[32], path[32];
    if (of->runs == 0)
        return true;
    bench_format_seconds(of->area_s / (double)of->runs, area, sizeof area);
    bench_format_seconds(of->path_s, path, sizeof path);
    fprintf(out,
            "\nWhere the devices' time went, in per cent; then thefts refused, and why.\n"
            "No run ends before all work is done at the best speeds seen, %s, nor before its\n"
            "longest path, %s: of that the runs reached %.1f %%.\n",
            area, of->path_s > 0 ? path : "not known", 100 * bench_loss_efficiency(of));
    fl_loss_row *rows = calloc(r->device_count + 1, sizeof *rows);
    if (!rows)
        return false;
    for (size_t d = 0; d < r->device_count; d++)
        rows[d] = (fl_loss_row){r->devices[d].name, r->devices[d].losses};
    filch_losses total = bench_losses_total(r);
    rows[r->device_count] = (fl_loss_row){"all", total};
    fl_losses_print(out, rows, r->device_count + 1, (double)of->runs);
    free(rows);
    if (total.unrated_ns != 0)
        fprintf(
            out,
            "Of busy %.2f points are of tasks that declare no work, or too few to know how fast\n"
            "they can be: these are taken to have run as fast as they could.\n",
            100 * (double)total.unrated_ns / (double)total.wall_ns);
    return !ferror(out);
}

/* --- JSON --- */

static void put(json_t **object, const char *key, json_t *value)
{
    if (!*object) {
        json_decref(value);
    } else if (json_object_set_new(*object, key, value) != 0) {
        json_decref(*object);
        *object = NULL;
    }
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *bench_losses_json(const filch_losses *losses)
{
    size_t count;
    const fl_loss_field *parts = fl_loss_parts(), *refusals = fl_loss_refusals(&count);
    json_t *object = json_object();
    put(&object, "wall_s", number((double)losses->wall_ns * 1e-9));
    for (size_t k = 0; k < FL_LOSS_PARTS; k++) {
        char key[32];
        snprintf(key, sizeof key, "%s_s", parts[k].name);
        put(&object, key, number((double)fl_loss_value(losses, &parts[k]) * 1e-9));
    }
    put(&object, "estimated_s", number((double)losses->estimated_ns * 1e-9));
    put(&object, "unrated_s", number((double)losses->unrated_ns * 1e-9));
    for (size_t k = 0; k < count; k++)
        put(&object, refusals[k].name,
            json_integer((json_int_t)fl_loss_value(losses, &refusals[k])));
    return object;
}

json_t *bench_loss_result_json(const bench_result *r)
{
    filch_losses total = bench_losses_total(r);
    json_t *object = json_object();
    put(&object, "runs", json_integer((json_int_t)r->losses.runs));
    put(&object, "wall_s", number(r->losses.wall_s / (double)r->losses.runs));
    put(&object, "area_s", number(r->losses.area_s / (double)r->losses.runs));
    put(&object, "path_s", r->losses.path_s > 0 ? number(r->losses.path_s) : json_null());
    put(&object, "bound_s", number(bench_loss_bound_s(&r->losses)));
    put(&object, "efficiency", number(bench_loss_efficiency(&r->losses)));
    put(&object, "total", bench_losses_json(&total));
    return object;
}
