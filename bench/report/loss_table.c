/* SPDX-License-Identifier: Apache-2.0 */
#include "report/loss_table.h"

#include "support/table.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const bench_loss_part parts[BENCH_LOSS_PARTS] = {
    {"busy_s", "busy", offsetof(filch_losses, busy_ns)},
    {"slow_s", "slow", offsetof(filch_losses, slow_ns)},
    {"dispatch_s", "dispatch", offsetof(filch_losses, dispatch_ns)},
    {"data_s", "data", offsetof(filch_losses, data_ns)},
    {"spoiled_s", "spoiled", offsetof(filch_losses, spoiled_ns)},
    {"preempted_s", "preempted", offsetof(filch_losses, preempted_ns)},
    {"starved_s", "starved", offsetof(filch_losses, starved_ns)},
    {"unshared_s", "unshared", offsetof(filch_losses, unshared_ns)},
    {"held_s", "held off", offsetof(filch_losses, held_ns)},
    {"tail_s", "tail", offsetof(filch_losses, tail_ns)},
    {"other_s", "other jobs", offsetof(filch_losses, other_ns)},
};

static const struct {
    const char *key;
    const char *title;
    size_t offset;
} refusals[] = {
    {"refused_held", "refused: held", offsetof(filch_losses, refused_held)},
    {"refused_empty", "empty", offsetof(filch_losses, refused_empty)},
    {"refused_unable", "unable", offsetof(filch_losses, refused_unable)},
    {"refused_raced", "raced", offsetof(filch_losses, refused_raced)},
    {"refused_dear", "dear", offsetof(filch_losses, refused_dear)},
};

#define REFUSALS (sizeof refusals / sizeof *refusals)

const bench_loss_part *bench_loss_parts(void)
{
    return parts;
}

static uint64_t value_at(const filch_losses *losses, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)losses + offset, sizeof value);
    return value;
}

double bench_loss_share(const filch_losses *losses, const bench_loss_part *part)
{
    return losses->wall_ns != 0 ? (double)value_at(losses, part->offset) / (double)losses->wall_ns
                                : 0;
}

/* They consist of such counts. */
void bench_losses_add(filch_losses *sum, const filch_losses *losses)
{
    uint64_t a[sizeof *sum / sizeof(uint64_t)], b[sizeof *sum / sizeof(uint64_t)];
    _Static_assert(sizeof a == sizeof *sum, "counts and nothing else");
    memcpy(a, sum, sizeof a);
    memcpy(b, losses, sizeof b);
    for (size_t k = 0; k < sizeof a / sizeof *a; k++)
        a[k] += b[k];
    memcpy(sum, a, sizeof a);
}

filch_losses bench_losses_total(const bench_result *r)
{
    filch_losses total = {0};
    for (size_t d = 0; d < r->device_count; d++)
        bench_losses_add(&total, &r->devices[d].losses);
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

static void rows(bench_table *table, const char *name, const filch_losses *losses, size_t runs)
{
    bench_table_cell(table, "%s", name);
    for (size_t k = 0; k < BENCH_LOSS_PARTS; k++)
        bench_table_cell(table, "%.2f", 100 * bench_loss_share(losses, &parts[k]));
    for (size_t k = 0; k < REFUSALS; k++)
        bench_table_cell(table, "%.1f",
                         (double)value_at(losses, refusals[k].offset) / (double)runs);
}

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
    bench_table table = {0};
    bench_table_column(&table, true, "device");
    for (size_t k = 0; k < BENCH_LOSS_PARTS; k++)
        bench_table_column(&table, false, parts[k].title);
    for (size_t k = 0; k < REFUSALS; k++)
        bench_table_column(&table, false, refusals[k].title);
    for (size_t d = 0; d < r->device_count; d++)
        rows(&table, r->devices[d].name, &r->devices[d].losses, of->runs);
    filch_losses total = bench_losses_total(r);
    rows(&table, "all", &total, of->runs);
    bool printed = bench_table_print(&table, out);
    bench_table_free(&table);
    if (total.unrated_ns != 0)
        fprintf(
            out,
            "Of busy %.2f points are of tasks that declare no work, or too few to know how fast\n"
            "they can be: these are taken to have run as fast as they could.\n",
            100 * (double)total.unrated_ns / (double)total.wall_ns);
    return printed;
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
    json_t *object = json_object();
    put(&object, "wall_s", number((double)losses->wall_ns * 1e-9));
    for (size_t k = 0; k < BENCH_LOSS_PARTS; k++)
        put(&object, parts[k].key, number((double)value_at(losses, parts[k].offset) * 1e-9));
    put(&object, "estimated_s", number((double)losses->estimated_ns * 1e-9));
    put(&object, "unrated_s", number((double)losses->unrated_ns * 1e-9));
    for (size_t k = 0; k < REFUSALS; k++)
        put(&object, refusals[k].key,
            json_integer((json_int_t)value_at(losses, refusals[k].offset)));
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
